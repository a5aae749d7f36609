"""How much memory there is for a table, so that one that will not fit is refused before it is drawn; and keeping what was freed."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from functools import cache
from pathlib import Path

from auditor.errors import DataError
from auditor.text.column_names import counted

BYTES_PER_VALUE = 32
"""Of a table in memory while it is drawn, looked over and audited: four arrays of doubles (the peak of drawn Gaussian tables of 4 and 16
columns, with and without ``standardize``, grew by 24 to 27 bytes a value between 100,000 and 1,000,000 rows)."""
CONTROL_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


KEPT_BYTES = 2**24
"""Arrays of up to so many are made of memory that others were freed from; twice as many may stay unused."""


@cache
def keep_freed_memory() -> None:
    """Have arrays made in memory that earlier ones left, which glibc by itself hands back to the system and asks for again.

    The system blanks every page anew, which took a tenth of an audit. There is no switch that Python reaches without a library of C: but
    glibc keeps all up to the size of the largest block that was ever freed (``mallopt(3)``, ``M_MMAP_THRESHOLD``). This one is never
    touched, and so costs nothing. Where memory is another library's, nothing happens.
    """
    import numpy as np  # a twentieth of a second, which those who only ask what there is would pay for

    np.empty(KEPT_BYTES, dtype=np.uint8)  # freed at once


def available() -> int:
    """Return the bytes that this process may use: the machine's memory, or less where a container or the shell sets a limit."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    limits += [soft for soft, _ in map(resource.getrlimit, (resource.RLIMIT_AS, resource.RLIMIT_DATA)) if soft != resource.RLIM_INFINITY]
    for name in CONTROL_GROUPS:
        with suppress(OSError, ValueError):  # no such system, or the word «max»
            limits.append(int(Path(name).read_text(encoding="ascii")))
    return min(limits)


def free() -> int:
    """Return the bytes that could be had just now without taking them from other programs; ``available`` where the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        told = Path("/proc/meminfo").read_text(encoding="ascii").partition("MemAvailable:")[2]
        return min(available(), int(told.split()[0]) * 1024)
    return available()


def check_room(rows: int, width: int) -> None:
    """Raise `DataError` when a table of so many rows and attributes, which is held in memory, does not fit there."""
    needed, there = rows * width * BYTES_PER_VALUE / 2**30, available() / 2**30
    if needed > there:
        problem = f"{rows:,} rows of {counted(width, 'column')} need {needed:,.1f} GiB of memory, and there are {there:,.1f} GiB"
        raise DataError(f"{problem}; draw fewer rows, or audit a table in a file, which is read block by block", ("rows",))
