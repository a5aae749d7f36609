"""Run a command of auditor and print where its time goes: `python -m benchmarks.parts run quickstart`.

Prints the three parts with most processor seconds, sampled 300 times a second. A part is imports,
an attack with all that it calls, or a room of auditor with the libraries that it calls.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict
from pathlib import PurePath
from types import FrameType

from auditor.cli import main
from benchmarks import FOLDER

ROOT = FOLDER.parent


def part_of(frame: FrameType | None) -> str:
    """Return the part that a frame belongs to."""
    found = "other"
    while frame is not None:
        path = PurePath(frame.f_code.co_filename)
        if "importlib" in path.name:
            return "imports"
        if path.is_relative_to(ROOT) and ".venv" not in path.parts:
            own = path.relative_to(ROOT)
            if own.parts[0] == "attacks" and own.stem[0] != "_":
                found = own.stem
            elif found == "other":
                found = str(own.parent)
        frame = frame.f_back
    return found


def watch(thread: int, done: threading.Event, parts: dict[str, float]) -> None:
    """Add the processor seconds of a thread's parts until it is done."""
    last = time.process_time()
    while not done.wait(1 / 300):
        now = time.process_time()
        part = part_of(sys._current_frames().get(thread))
        parts[part] += now - last
        last = now


if __name__ == "__main__":
    parts, done = defaultdict[str, float](float), threading.Event()
    threading.Thread(target=watch, args=(threading.get_ident(), done, parts), daemon=True).start()
    try:
        main()
    finally:
        done.set()
        most = sorted(parts.items(), key=lambda one: -one[1])[:3]
        shares = (f"{name} {seconds:.2f} s" for name, seconds in most)
        print(", ".join(shares), file=sys.stderr)
