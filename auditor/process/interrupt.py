"""Ctrl-C and SIGTERM end a run in order: the first stops the work and leaves time to report it, the second stops the program."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
ONE_PRESS = 0.3
"""Seconds within which signals are one request: ``timeout`` and shells send theirs to a process and again to its group."""
STOPPING = "\ninterrupted: stopping; Ctrl-C again stops at once, without a report\n"
SHOW_CURSOR = "\x1b[?25h"


_leave = os._exit
"""As it is before any plugin runs: the second Ctrl-C ends the program whatever they did."""


class CtrlC(KeyboardInterrupt):
    """A signal, and not a KeyboardInterrupt that some plugin raised."""

    status = 128 + signal.SIGINT
    """The exit status that it asks for."""


class Interrupted(CtrlC):
    """The first SIGINT or SIGTERM; like KeyboardInterrupt it passes through ``except Exception``."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.signal, self.status = signal.Signals(number).name, 128 + number

    def __str__(self) -> str:
        return f"interrupted by {self.signal}"


def strike(number: int, frame: FrameType | None) -> None:
    """Handle a signal as Python handles SIGINT, with an exception of our own.

    Raises
    ------
    Interrupted
        Always.
    """
    raise Interrupted(number)


@contextmanager
def own_interrupt() -> Iterator[None]:
    """Raise ``Interrupted`` on SIGINT and SIGTERM, so that a command cleans up and reports the signal.

    SIGINT that the parent process ignored (nohup, cron) counts again. Another program's handler stays.
    """
    replaced: dict[signal.Signals, tuple[Any, ...]] = {
        signal.SIGINT: (signal.default_int_handler, signal.SIG_IGN), signal.SIGTERM: (signal.SIG_DFL,),
    }  # fmt: skip
    here = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in SIGNALS if here and signal.getsignal(number) in replaced[number]}
    for number in before:
        signal.signal(number, strike)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _State:
    """What has arrived; signals belong to the process, so there is one."""

    waiting: int | None = None
    """A signal that has not been raised yet."""
    heard: int | None = None
    """The first: those that follow at once are the same request, later ones end the program."""
    depth: int = 0


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn the first SIGINT or SIGTERM into ``Interrupted`` in the main thread, and the second into the end of the program.

    A second one counts from 0.3 s after the first, and is obeyed even while compiled code runs. Does nothing outside the main thread,
    where Python allows no signal handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _State.waiting, _State.heard, _State.depth = None, None, 0
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    watch = threading.Thread(target=_watch, args=(reader,), name="auditor-signals", daemon=True)
    watch.start()
    before: dict[signal.Signals, Any] = {number: signal.signal(number, _handle) for number in SIGNALS}
    wakeup = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        writer.close()
        watch.join()
        reader.close()


@contextmanager
def shielded() -> Iterator[None]:
    """Let the first signal wait until the block is done: for writing what must be written whole."""
    _State.depth += 1
    try:
        yield
    finally:
        _State.depth -= 1
    check()


def check() -> None:
    """Raise ``Interrupted`` if a signal arrived that could not be raised where it met the program."""
    if _State.waiting is not None and _State.depth == 0:
        number, _State.waiting = _State.waiting, None
        raise Interrupted(number)


def exit_status() -> int | None:
    """Return the exit status that the signal heard asks for, 128 and its number; None when none was."""
    return None if _State.heard is None else 128 + _State.heard


def _handle(number: int, frame: FrameType | None) -> None:
    """Python calls this between two instructions of the main thread, which may be long after the signal."""
    del frame
    if _State.heard is None:
        _State.waiting = _State.heard = number
    check()


def _watch(reader: socket.socket) -> None:
    """Read the numbers of signals as they arrive, whatever the main thread is doing."""
    first: float | None = None
    while numbers := reader.recv(64):
        now = time.monotonic()
        if first is None:
            first = now
            _say(STOPPING)
        elif now - first > ONE_PRESS:
            _say(f"{SHOW_CURSOR if sys.stderr.isatty() else ''}stopped at once\n")
            _leave(128 + numbers[-1])


def _say(text: str) -> None:
    with suppress(OSError):  # nobody listens
        os.write(2, text.encode())
