"""Programs that tests start, each with a bound on its time: one that hangs fails its test and says so, and no test waits for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PATIENCE = 120
"""Seconds; many times what any of these programs takes, also on a machine with other work to do."""


def environment(*sites: Path | str, **more: str) -> dict[str, str]:
    """The variables of a program that imports this project, and packages in other folders besides."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, *sites)))} | more


def virtual_environment(folder: Path) -> Path:
    """Make a virtual environment that has this one's libraries, but no package of this checkout; return its folder of packages."""
    venv.create(folder, with_pip=False, symlinks=True)
    packages = Path(
        sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    )
    # Python follows no .pth file in these folders, so an editable install of this checkout is not
    # seen.
    folders = dict.fromkeys(str(each.locate_file("")) for each in metadata.distributions())
    (packages / "libraries.pth").write_text(
        "\n".join(folder for folder in folders if Path(folder) != ROOT)
    )
    return packages


def python(*arguments: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run Python to its end, with the options of ``subprocess.run``; a program that takes too long is ended, and the test fails."""
    usual = {"env": environment(), "text": True, "check": False, "timeout": PATIENCE}
    streams = {} if "stderr" in options else {"capture_output": True}
    return subprocess.run([sys.executable, *map(str, arguments)], **usual | streams | options)


@contextmanager
def running(*arguments: Any, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Start Python with the options of ``Popen``; after the block neither it is left nor whatever it started, which could hold its streams open."""
    usual = {"env": environment(), "text": True, "start_new_session": True}
    program = subprocess.Popen([sys.executable, *map(str, arguments)], **usual | options)
    try:
        yield program
    finally:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        with program:  # closes its streams
            program.wait(PATIENCE)


def wait_for(condition: Callable[[], Any], otherwise: str, seconds: float = PATIENCE) -> None:
    """Return once a condition holds; fail with these words if it never does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{otherwise}, after {seconds:.0f} s"
        time.sleep(0.05)
