"""Ctrl-C and SIGTERM: the first stops the work, the second the program."""

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
"""Seconds within which signals are one request."""
STOPPING = "\ninterrupted: stopping; Ctrl-C again stops at once, without a report\n"
SHOW_CURSOR = "\x1b[?25h"


_leave = os._exit
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

    An ignored SIGINT (nohup, cron) is enabled.
    """
    replaced: dict[signal.Signals, tuple[Any, ...]] = {
        signal.SIGINT: (signal.default_int_handler, signal.SIG_IGN),
        signal.SIGTERM: (signal.SIG_DFL,),
    }
    here = threading.current_thread() is threading.main_thread()
    before = {
        number: signal.getsignal(number)
        for number in SIGNALS
        if here and signal.getsignal(number) in replaced[number]
    }
    for number in before:
        signal.signal(number, strike)
    try:
        yield
    finally:
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
    if threading.current_thread() is not threading.main_thread():
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
            _leave(128 + numbers[-1])


def _say(text: str) -> None:
    with suppress(OSError):  # standard error is closed
        os.write(2, text.encode())
