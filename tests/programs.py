"""Programs that tests start, each with a bound on its time."""

import os
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATIENCE = 120


def environment(*sites, **more):
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, *sites)))} | more


def virtual_environment(folder):
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


def python(*arguments, **options):
    usual = {"env": environment(), "text": True, "check": False, "timeout": PATIENCE}
    streams = {} if "stderr" in options else {"capture_output": True}
    return subprocess.run([sys.executable, *map(str, arguments)], **usual | streams | options)


@contextmanager
def running(*arguments, **options):
    usual = {"env": environment(), "text": True, "start_new_session": True}
    program = subprocess.Popen([sys.executable, *map(str, arguments)], **usual | options)
    try:
        yield program
    finally:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        with program:  # closes its streams
            program.wait(PATIENCE)


def wait_for(condition, otherwise, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{otherwise}, after {seconds:.0f} s"
        time.sleep(0.05)
