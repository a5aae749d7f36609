"""Containment of plugin errors (``with contained()``) and interrupts.

| action of a plugin | result |
| --- | --- |
| raises anything: ``SystemExit``, ``GeneratorExit``, a ``KeyboardInterrupt`` of its own | noted with a reason; the audit continues |
| calls ``os._exit`` | raises, then as above |
| forks, and its child continues | the child exits when the plugin's code returns |
| warns | one line on standard error with kind and place of the warning |
| changes the folder, standard streams, handlers of Ctrl-C and SIGTERM, numpy's error state | restored at the end of the block |

This guards against mistakes, not malice. Not contained: endless loops, exhausted memory, crashes or
exits in compiled code.

Plugins' messages may quote data: only kind and place are shown, or constants of the source code.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Literal, NoReturn, ParamSpec, TextIO, TypeVar

from auditor.base import (
    AuditorError,
    AuditorWarning,
    NotApplicable,
    PluginFailed,
    StorageError,
    WorkersLost,
    clean,
)

# -- Ctrl-C and SIGTERM: the first stops the work, the second the program --------------------------


SIGNALS = (signal.SIGINT, signal.SIGTERM)
ONE_PRESS = 0.3
"""Seconds within which signals are one request."""
STOPPING = "\ninterrupted: stopping; Ctrl-C again stops at once, without a report\n"
SHOW_CURSOR = "\x1b[?25h"


leave = os._exit
"""Original ``os._exit``, so that the second Ctrl-C works despite plugins."""


class CtrlC(KeyboardInterrupt):
    """A signal, as opposed to a plugin's KeyboardInterrupt."""

    status = 128 + signal.SIGINT
    """Exit status of the signal."""


class Interrupted(CtrlC):
    """The first SIGINT or SIGTERM; ``except Exception`` does not catch it."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.signal, self.status = signal.Signals(number).name, 128 + number

    def __str__(self) -> str:
        return f"interrupted by {self.signal}"


def strike(number: int, frame: FrameType | None) -> None:
    """Handle a signal as Python handles SIGINT, with a project exception.

    Raises
    ------
    Interrupted
        Always.
    """
    raise Interrupted(number)


@contextmanager
def own_interrupt() -> Iterator[None]:
    """Raise ``Interrupted`` on SIGINT and SIGTERM, for cleanup and report.

    An ignored SIGINT (nohup, cron) is enabled; handlers of other programs stay. A signal that a
    destructor or callback of a library swallows is sent again.
    """
    unraisable = sys.unraisablehook

    def send_again(swallowed: sys.UnraisableHookArgs) -> None:
        lost = swallowed.exc_value
        if not isinstance(lost, Interrupted):
            unraisable(swallowed)
            return
        number = lost.status - 128
        if signal.getsignal(number) is _handle:
            _State.waiting = number
        threading.Timer(0.05, os.kill, (os.getpid(), number)).start()

    replaced: dict[signal.Signals, tuple[Any, ...]] = {
        signal.SIGINT: (signal.default_int_handler, signal.SIG_IGN),
        signal.SIGTERM: (signal.SIG_DFL,),
    }
    before = {
        number: signal.getsignal(number)
        for number in SIGNALS
        if _in_main_thread() and signal.getsignal(number) in replaced[number]
    }
    for number in before:
        signal.signal(number, strike)
    sys.unraisablehook = send_again
    try:
        yield
    finally:
        sys.unraisablehook = unraisable
        for number, handler in before.items():
            signal.signal(number, handler)


class _State:
    waiting: int | None = None
    """A signal not yet raised."""
    heard: int | None = None
    """The first signal."""
    depth: int = 0


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise ``Interrupted`` on the first signal, exit on the second.

    The second counts from 0.3 s after the first, even in compiled code. Main thread only.
    """
    if not _in_main_thread():
        yield
        return
    _State.waiting, _State.heard, _State.depth = None, None, 0
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    watch = threading.Thread(target=_watch, args=(reader,), name="auditor-signals", daemon=True)
    watch.start()
    before: dict[signal.Signals, Any] = {
        number: signal.signal(number, _handle) for number in SIGNALS
    }
    wakeup = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        writer.shutdown(socket.SHUT_WR)  # forked workers hold it, too
        writer.close()
        watch.join()
        reader.close()


@contextmanager
def shielded() -> Iterator[None]:
    """Delay the first signal to the end of the block, for complete writes."""
    _State.depth += 1
    try:
        yield
    finally:
        _State.depth -= 1
    check()


def check() -> None:
    """Raise ``Interrupted`` if a delayed signal is waiting."""
    if _State.waiting is not None and _State.depth == 0:
        number, _State.waiting = _State.waiting, None
        raise Interrupted(number)


def exit_status() -> int | None:
    """128 plus the received signal's number, or None."""
    return None if _State.heard is None else 128 + _State.heard


def _handle(number: int, frame: FrameType | None) -> None:
    """Python calls this between instructions, possibly much later."""
    del frame
    if _State.heard is None:
        _State.waiting = _State.heard = number
    check()


def _watch(reader: socket.socket) -> None:
    """Read signal numbers at arrival, independent of the main thread."""
    first: float | None = None
    while numbers := reader.recv(64):
        now = time.monotonic()
        if first is None:
            first = now
            _say(STOPPING)
        elif now - first > ONE_PRESS:
            _say(f"{SHOW_CURSOR if sys.stderr.isatty() else ''}stopped at once\n")
            leave(128 + numbers[-1])


def _say(text: str) -> None:
    with suppress(OSError):  # standard error is closed
        os.write(2, text.encode())


# --------------------------------------------------------------------------------------------------


P = ParamSpec("P")
T = TypeVar("T")

OURS = frozenset({"auditor", "auditor_attacks", "auditor_reports"})
"""Packages whose messages hold no original value."""
LIBRARIES = frozenset(
    {"numpy", "scipy", "pandas", "sklearn", "pyarrow", "pydantic", "pydantic_core", "joblib"}
)
WITHHELD = "its message is withheld: it might hold original values"
MOST_TEXT = 300
"""Longest plugin text in a message, in characters."""

_owner = os.getpid()
_held = 0
"""Number of open blocks in all threads."""
_show: Callable[..., None] = warnings.showwarning
"""Original function for warnings."""
_let_go: Callable[[], None]
"""Restores warnings when the last block closes."""
_lock = threading.Lock()
_copying = False
"""Whether a fork is a worker of this program."""


class contained:  # noqa: N801 - reads as a word in `with contained() as failure:`
    """Run a plugin's code; an exception ends only this block.

    Signals, ``StorageError`` and ``WorkersLost`` of this project propagate.

    Attributes
    ----------
    error
        With a safe message: an original ``AuditorError``, or ``PluginFailed``.

    Examples
    --------
    >>> with contained() as failure:
    ...     raise KeyError(41.5)
    >>> failure.status, failure.reason.split()[0]
    ('failed', 'KeyError')
    """

    error: AuditorError | None = None
    cause: type[BaseException] | None = None
    """Type of the exception, or its nearest known base."""
    _ours = False

    def __enter__(self) -> contained:
        self._process = os.getpid()
        self._before = _state()
        _hold_exit()
        if _in_main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            # a real Ctrl-C
            signal.signal(signal.SIGINT, strike)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if os.getpid() != self._process:
            leave(1)
        _free_exit()
        _put_back(*self._before)
        if (
            error is None
            or isinstance(error, CtrlC)
            or (isinstance(error, StorageError | WorkersLost | AuditorWarning) and is_ours(error))
        ):
            return False
        found = safe_error(error)
        self.cause, self._ours = known(type(error)), found is error
        self.error = found.with_traceback(None)  # frames would keep copies of the table alive
        return True

    @property
    def status(self) -> Literal["not-applicable", "failed"]:
        """Status for records."""
        return "not-applicable" if isinstance(self.error, NotApplicable) else "failed"

    @property
    def reason(self) -> str:
        """Safe message; empty without an error."""
        return "" if self.error is None else str(self.error)

    def raise_ours(self) -> None:
        """Raise the error again if it is from this project."""
        if self.error is not None and self._ours:
            raise self.error


@contextmanager
def plugin_errors() -> Iterator[None]:
    """Raise a plugin's exceptions as `AuditorError`.

    Raises
    ------
    AuditorError
        With the safe message of ``contained``.

    Examples
    --------
    >>> try:
    ...     with plugin_errors():
    ...         raise SystemExit(0)
    ... except AuditorError as error:
    ...     print(type(error).__name__)
    PluginFailed
    """
    with contained() as failure:
        yield
    if failure.error is not None:
        raise failure.error from None  # the context holds the withheld message


def with_plugin_errors(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a Python function with ``plugin_errors``.

    Wrong arguments raise TypeError.

    Examples
    --------
    >>> with_plugin_errors(lambda x: x)()
    Traceback (most recent call last):
    TypeError: missing a required argument: 'x'
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        signature.bind(*arguments, **named)
        with plugin_errors():
            return function(*arguments, **named)

    return call


# -- restored state ------------------------------------------------------------------------------


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _state() -> tuple[Any, ...]:
    handlers = {number: signal.getsignal(number) for number in SIGNALS} if _in_main_thread() else {}
    folder = None
    with suppress(OSError):  # the folder may have been removed
        folder = os.getcwd()  # noqa: PTH109 - a hundred thousand times a run
    errors: Any = getattr(sys.modules.get("numpy"), "geterr", dict)()
    return (sys.stdin, sys.stdout, sys.stderr), handlers, folder, errors


def _put_back(streams: Any, handlers: dict[int, Any], folder: str | None, errors: Any) -> None:
    sys.stdin, sys.stdout, sys.stderr = streams
    for number, handler in handlers.items():
        if handler is not None and signal.getsignal(number) is not handler:
            signal.signal(number, handler)
    with suppress(OSError):
        if folder is not None:
            os.chdir(folder)
    if errors:
        sys.modules["numpy"].seterr(**errors)


def _hold_exit() -> None:
    global _owner, _held, _let_go
    with _lock:
        if not _held:
            _let_go = _withhold_warnings()
        _owner, _held = os.getpid(), _held + 1
        os._exit = _refused


def _end_where_ours_goes_on(frame: FrameType, event: str, _: object) -> None:
    """End a forked child when plugin code returns to project code."""
    if (
        event == "return"
        and frame.f_back is not None
        and _home(frame.f_back) in OURS
        and _home(frame) not in OURS
    ):
        leave(1)


@contextmanager
def copying() -> Iterator[None]:
    """Mark forks in this block as workers of the program."""
    global _copying
    _copying = True
    try:
        yield
    finally:
        _copying = False


def _watch_child() -> None:
    """Watch a process that a plugin forked.

    It may finish its task and exit.
    """
    global _copying, _held
    if _copying:
        # workers start outside every block; their forks belong to plugins
        _copying, _held, os._exit = False, 0, leave
    elif _held:
        sys.setprofile(_end_where_ours_goes_on)


os.register_at_fork(after_in_child=_watch_child)


def _free_exit() -> None:
    global _held
    with _lock:
        _held -= 1
        if not _held:
            os._exit = leave
            _let_go()


def _refused(status: int) -> NoReturn:
    if os.getpid() != _owner:
        leave(status)
    raise _Left(status)


class _Left(SystemExit):
    """An exit by ``os._exit``, attributed to a plugin."""


@contextmanager
def exits_refused() -> Iterator[None]:
    """Let ``os._exit`` raise until the block ends."""
    _hold_exit()
    try:
        yield
    finally:
        _free_exit()


# -- safe messages ---------------------------------------------------------------------------------


def safe_error(error: BaseException) -> AuditorError:
    """Error without original values; unchanged if from this project."""
    if isinstance(error, AuditorError) and is_ours(error):
        return error
    kind = (
        NotApplicable
        if isinstance(error, NotApplicable)
        else AuditorError
        if isinstance(error, AuditorError)
        else PluginFailed
    )
    return kind(failure_reason(error))


def failure_reason(error: BaseException) -> str:
    """Safe message of an exception."""
    if isinstance(error, AuditorError):
        if is_ours(error):
            return str(error)
        if (text := _spelt_out(error)) is not None:
            return clean(text) if len(text) <= MOST_TEXT else f"{clean(text[:MOST_TEXT])} …"
    found = list(_frames(error.__traceback__))
    return f"{known(type(error)).__name__}{_place(found[-1][0].f_code.co_filename, found[-1][1]) if found else ''} ({WITHHELD})"


def is_ours(error: BaseException) -> bool:
    """Whether project code raised an exception of a known type."""
    if known(type(error)) is not type(error):
        return False
    return all(_home(frame) in OURS for frame, _ in list(_frames(error.__traceback__))[-1:])


def known(kind: type) -> type:
    """Type or its nearest base that is publicly known."""
    homes = OURS | LIBRARIES | sys.stdlib_module_names
    for base in kind.__mro__:
        module, name = str(base.__module__), base.__name__
        if (
            module.partition(".")[0] in homes
            and name[0] != "_"
            and getattr(sys.modules.get(module), name, None) is base
        ):
            found: type = base
            return found
    return object


def _frames(trace: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


def _home(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _place(file: str, line: int) -> str:
    name = Path(file).name
    return f" at {name}:{line}" if re.fullmatch(r"\w[\w.-]{0,80}\.pyx?", name) else ""


def _spelt_out(error: BaseException) -> str | None:
    if len(error.args) != 1 or type(error.args[0]) is not str:
        return None
    text = error.args[0]
    return (
        text
        if any(text in frame.f_code.co_consts for frame, _ in _frames(error.__traceback__))
        else None
    )


def _withhold_warnings() -> Callable[[], None]:
    global _show
    if warnings.showwarning is _show_warning:
        return lambda: None
    before = _show = warnings.showwarning

    def undo() -> None:
        warnings.showwarning = before

    warnings.showwarning = _show_warning
    return undo


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    if issubclass(category, AuditorWarning):
        _show(message, category, filename, lineno, file, line)
    else:
        tell_warning(category, filename, lineno)


def tell_warning(category: type[Warning], filename: str, line: int) -> None:
    """Print kind and place of a plugin's warning, not the message.

    Warnings of this project and of libraries are ignored.
    """
    files = {
        vars(module).get("__file__"): name.partition(".")[0]
        for name, module in sys.modules.copy().items()
    }
    if files.get(filename) not in OURS | LIBRARIES | sys.stdlib_module_names:
        with suppress(Exception):
            sys.stderr.write(
                f"warning: {known(category).__name__}{_place(filename, line)} ({WITHHELD})\n"
            )


# -- uncaught exceptions ---------------------------------------------------------------------------


def withhold_uncaught() -> Callable[[], None]:
    """Withhold messages of warnings and uncaught exceptions; return the undo."""
    before, show_warnings = (threading.excepthook, sys.unraisablehook), _withhold_warnings()

    def tell(found: Any) -> None:
        if found.exc_value is not None and not isinstance(found.exc_value, SystemExit):
            with suppress(Exception):
                sys.stderr.write(
                    f"warning: an uncaught exception: {failure_reason(found.exc_value)}\n"
                )

    def undo() -> None:
        threading.excepthook, sys.unraisablehook = before
        show_warnings()

    threading.excepthook = sys.unraisablehook = tell
    return undo
