import os
import signal
from pathlib import Path


def die_once(task):
    """Kill the worker that has number 3, the first time."""
    folder, number = task
    mark = Path(folder) / "dead"
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


def die(task):
    os.kill(os.getpid(), signal.SIGKILL)
    return task
