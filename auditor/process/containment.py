"""One rule for whatever a plugin does wrong: every call into a plugin stands in ``with contained()``, and what it raises stays there.

| what a plugin does | what becomes of it |
| --- | --- |
| raises anything: ``SystemExit``, ``GeneratorExit``, a ``KeyboardInterrupt`` of its own | noted with a reason; the audit goes on |
| calls ``os._exit`` | the same: it raises while plugins run |
| forks, and its child goes on | the child ends where the plugin's code hands back to ours |
| warns | one line on standard error has kind and place of the warning |
| changes the folder, standard streams, handlers of Ctrl-C and SIGTERM, numpy's error state | put back when the block ends |

This is a guard against mistakes, not against malice: a plugin runs with all rights of the program. Not contained are code that never
returns, memory that runs out, a crash of the interpreter or an exit from compiled code (they end the process, and what was finished is in
the journal), and the seed of numpy's global generator, which nothing here draws from.

No plugin's message is shown, as it might quote whatever it met. Shown are: our own messages, which hold no original value by rule; a text
that stands in the plugin's source code as it is, since no value can have got into it; and of everything else the kind and the place.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Literal, NoReturn, ParamSpec, TextIO, TypeVar

from auditor.errors import AuditorError, AuditorWarning, NotApplicable, PluginFailed, StorageError, WorkersLost
from auditor.process.interrupt import SIGNALS, CtrlC, strike
from auditor.text.safe_text import clean

P = ParamSpec("P")
T = TypeVar("T")

OURS = frozenset({"auditor", "auditor_attacks", "auditor_reports"})
"""Packages whose messages hold no original value, by a rule that tests keep."""
LIBRARIES = frozenset({"numpy", "scipy", "pandas", "sklearn", "pyarrow", "pydantic", "pydantic_core", "joblib"})
WITHHELD = "its message is withheld: it might hold original values"
MOST_TEXT = 300
"""Characters of a plugin's own text that are shown."""

leave = os._exit
_owner = os.getpid()
_held = 0
"""Blocks that are open, in whatever thread: the last one gives ``os._exit`` back."""
_show: Callable[..., None] = warnings.showwarning
"""Shows warnings that are not withheld."""
_let_go: Callable[[], None]
"""Undoes the withholding of warnings by the first block that was opened."""
_lock = threading.Lock()
_copying = False
"""Whether a process that is forked now is a worker of ours."""


class contained:  # noqa: N801 - reads as a word in `with contained() as failure:`
    """Run a plugin's code; an exception ends the block, and not what comes after it.

    Signals pass, and so do the two errors that end a run and that no plugin can raise: a full disk and lost workers.

    Attributes
    ----------
    error : AuditorError or None
        What went wrong, fit to be shown: ``NotApplicable``, another ``AuditorError`` where that is what was raised, ``PluginFailed`` else.

    Examples
    --------
    >>> with contained() as failure:
    ...     raise KeyError(41.5)
    >>> failure.status, failure.reason.split()[0]
    ('failed', 'KeyError')
    """

    error: AuditorError | None = None
    cause: type[BaseException] | None = None
    """The kind of exception that was raised, or the nearest one that is known."""
    _ours = False

    def __enter__(self) -> contained:
        self._process = os.getpid()
        self._before = [(put_back, read()) for read, put_back in _KEPT]
        _hold_exit()
        if _in_main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, strike)  # so that a real Ctrl-C can be distinguished from what a plugin raises
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if os.getpid() != self._process:
            leave(1)
        _free_exit()
        for put_back, state in self._before:
            with suppress(Exception):
                put_back(state)
        if error is None or isinstance(error, CtrlC) or (isinstance(error, (StorageError, WorkersLost)) and is_ours(error)):
            return False
        found = safe_error(error)
        self.cause, self._ours = known(type(error)), found is error
        self.error = found.with_traceback(None)  # its frames hold this block, and copies of the table
        return True

    @property
    def status(self) -> Literal["not-applicable", "failed"]:
        """As records have it."""
        return "not-applicable" if isinstance(self.error, NotApplicable) else "failed"

    @property
    def reason(self) -> str:
        """What may be reported; empty when nothing went wrong."""
        return "" if self.error is None else str(self.error)

    def raise_ours(self) -> None:
        """Raise what was raised if that was an error of our own, for callers that cannot go on without the plugin."""
        if self.error is not None and self._ours:
            raise self.error


@contextmanager
def plugin_errors() -> Iterator[None]:
    """Raise what a plugin's code raises as an `AuditorError`, for callers who asked for one thing: it cannot end their program.

    Raises
    ------
    AuditorError
        What may be reported of what was raised, as of ``contained``.

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
        raise failure.error from None  # its context holds the message that is withheld


def with_plugin_errors(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate what a Python caller asks for with ``plugin_errors``; a call that lacks an argument is a TypeError, and no plugin's doing.

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


# -- what is put back ------------------------------------------------------------------------------------------------------


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _handlers() -> dict[int, Any]:
    return {number: signal.getsignal(number) for number in SIGNALS} if _in_main_thread() else {}


def _set_handlers(before: dict[int, Any]) -> None:
    for number, handler in before.items():
        if handler is not None and signal.getsignal(number) is not handler:
            signal.signal(number, handler)


def _folder() -> str | None:
    with suppress(OSError):  # it may have been removed
        return os.getcwd()  # noqa: PTH109 - a hundred thousand times a run
    return None


def _set_folder(before: str | None) -> None:
    if before is not None and _folder() != before:
        os.chdir(before)


def _set_streams(before: tuple[Any, Any, Any]) -> None:
    sys.stdin, sys.stdout, sys.stderr = before


def _numpy_errors() -> dict[str, Any] | None:
    numpy = sys.modules.get("numpy")
    return None if numpy is None or not hasattr(numpy, "geterr") else numpy.geterr()


def _set_numpy_errors(before: dict[str, Any] | None) -> None:
    if before is not None:
        sys.modules["numpy"].seterr(**before)


_KEPT: tuple[tuple[Callable[[], Any], Callable[[Any], None]], ...] = (
    (lambda: (sys.stdin, sys.stdout, sys.stderr), _set_streams),
    (_handlers, _set_handlers),
    (_folder, _set_folder),
    (_numpy_errors, _set_numpy_errors),
)


def _hold_exit() -> None:
    global _owner, _held, _let_go
    with _lock:
        if not _held:
            _let_go = _withhold_warnings()
        _owner, _held = os.getpid(), _held + 1
        os._exit = _refused


def _end_where_ours_goes_on(frame: FrameType, event: str, _: object) -> None:
    """End a child as a plugin's code hands back to ours: called by every function of the child, as ``sys.setprofile`` has it."""
    if event == "return" and frame.f_back is not None and _home(frame.f_back) in OURS and _home(frame) not in OURS:
        leave(1)


@contextmanager
def copying() -> Iterator[None]:
    """Let copies of this process that are made in the block go on as they like: they are ours, and no plugin's."""
    global _copying
    _copying = True
    try:
        yield
    finally:
        _copying = False


def _watch_child() -> None:
    """Watch a process that a plugin forked.

    It may do what it was made for and leave. One that goes on as if it were the audit would call the plugin again, fork again, and
    double with every call until the machine is full; the end of the block is too late for that.
    """
    global _copying, _held
    if _copying:
        _copying, _held, os._exit = False, 0, leave  # it begins outside of every block; what is forked in it is a plugin's again
    elif _held:
        sys.setprofile(_end_where_ours_goes_on)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_watch_child)


def _free_exit() -> None:
    global _held
    with _lock:
        _held -= 1
        if not _held:
            os._exit = leave
            _let_go()


def _refused(status: int) -> NoReturn:
    """Stand in for ``os._exit`` while plugins run; processes that a plugin started may leave as they like."""
    if os.getpid() != _owner:
        leave(status)
    raise _Left(status)


class _Left(SystemExit):
    """An exit by ``os._exit``, which is a plugin's whoever raises it."""


@contextmanager
def exits_refused() -> Iterator[None]:
    """Let ``os._exit`` raise until the block ends, wherever plugins are called."""
    _hold_exit()
    try:
        yield
    finally:
        _free_exit()


# -- what may be reported ------------------------------------------------------------------------------------------------------


def safe_error(error: BaseException) -> AuditorError:
    """Return an error whose text holds no original value; the same one where that is ours."""
    if isinstance(error, AuditorError) and is_ours(error):
        return error
    kind = NotApplicable if isinstance(error, NotApplicable) else AuditorError if isinstance(error, AuditorError) else PluginFailed
    return kind(failure_reason(error))


def failure_reason(error: BaseException) -> str:
    """Return what may be reported of an exception."""
    if isinstance(error, AuditorError):
        if is_ours(error):
            return str(error)
        if (text := _spelt_out(error)) is not None:
            return clean(text) if len(text) <= MOST_TEXT else f"{clean(text[:MOST_TEXT])} …"
    found = list(_frames(error.__traceback__))
    return f"{known(type(error)).__name__}{_place(found[-1][0].f_code.co_filename, found[-1][1]) if found else ''} ({WITHHELD})"


def is_ours(error: BaseException) -> bool:
    """Whether our own code raised an exception, and none that a plugin brought along."""
    if known(type(error)) is not type(error):
        return False
    return all(_home(frame) in OURS for frame, _ in list(_frames(error.__traceback__))[-1:])


def known(kind: type) -> type:
    """Return a type, or its nearest base, that is public in Python, in our packages or in a library that these use.

    The name of any other may be put together while a plugin runs.
    """
    homes = OURS | LIBRARIES | sys.stdlib_module_names
    for base in kind.__mro__:
        module, name = str(base.__module__), base.__name__
        if module.partition(".")[0] in homes and name[0] != "_" and getattr(sys.modules.get(module), name, None) is base:
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
    """Return the text of an exception if it stands in the code that raised it as it is; None if it was put together."""
    if len(error.args) != 1 or type(error.args[0]) is not str:
        return None
    text = error.args[0]
    return text if any(text in frame.f_code.co_consts for frame, _ in _frames(error.__traceback__)) else None


def _withhold_warnings() -> Callable[[], None]:
    """Show warnings without their messages, unless they are withheld already; return what undoes that."""
    global _show
    if warnings.showwarning is _show_warning:
        return lambda: None
    before = _show = warnings.showwarning

    def undo() -> None:
        warnings.showwarning = before

    warnings.showwarning = _show_warning
    return undo


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None, line: str | None = None
) -> None:
    """Stand in for ``warnings.showwarning`` while plugins run."""
    if issubclass(category, AuditorWarning):
        _show(message, category, filename, lineno, file, line)
    else:
        tell_warning(category, filename, lineno)


def tell_warning(category: type[Warning], filename: str, line: int) -> None:
    """Tell the kind and the place of a plugin's warning, never its message; a warning of our code or a library is not told."""
    files = {vars(module).get("__file__"): name.partition(".")[0] for name, module in sys.modules.copy().items()}
    if files.get(filename) not in OURS | LIBRARIES | sys.stdlib_module_names:
        with suppress(Exception):
            sys.stderr.write(f"warning: {known(category).__name__}{_place(filename, line)} ({WITHHELD})\n")


# -- what nobody catches ---------------------------------------------------------------------------------------------------


def withhold_uncaught() -> Callable[[], None]:
    """Let warnings, and exceptions in threads and ``__del__``, be reported without their messages; return what undoes that."""
    before, show_warnings = (threading.excepthook, sys.unraisablehook), _withhold_warnings()

    def tell(found: Any) -> None:
        if found.exc_value is not None and not isinstance(found.exc_value, SystemExit):
            with suppress(Exception):
                sys.stderr.write(f"warning: an exception that nobody caught: {failure_reason(found.exc_value)}\n")

    def undo() -> None:
        threading.excepthook, sys.unraisablehook = before
        show_warnings()

    threading.excepthook = sys.unraisablehook = tell
    return undo
