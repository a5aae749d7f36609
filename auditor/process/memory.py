"""Available memory, a check before drawing, reuse of freed memory."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from functools import cache
from pathlib import Path

from auditor.errors import DataError
from auditor.text.column_names import counted

BYTES_PER_VALUE = 32
"""Memory of an audited table per value: four arrays of doubles. Measured on Gaussian tables: 24 to
27 bytes."""
CONTROL_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


KEPT_BYTES = 2**24
"""Largest array in bytes for reuse of freed memory; up to twice as much may stay unused."""


@cache
def keep_freed_memory() -> None:
    """Let glibc reuse freed memory instead of returning it to the system.

    New pages cost a tenth of an audit. glibc keeps blocks up to the largest size ever freed
    (``mallopt(3)``, ``M_MMAP_THRESHOLD``), so one untouched block of this size suffices.
    """
    import numpy as np  # 0.05 s, which listing commands need not spend

    np.empty(KEPT_BYTES, dtype=np.uint8)  # freed at once


def available() -> int:
    """Return the usable bytes: the machine's memory, or a lower limit."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    limits += [
        soft
        for soft, _ in map(resource.getrlimit, (resource.RLIMIT_AS, resource.RLIMIT_DATA))
        if soft != resource.RLIM_INFINITY
    ]
    for name in CONTROL_GROUPS:
        with suppress(OSError, ValueError):  # missing file, or the word «max»
            limits.append(int(Path(name).read_text(encoding="ascii")))
    return min(limits)


def free() -> int:
    """Return the bytes free now, or ``available`` if unknown."""
    with suppress(OSError, ValueError, IndexError):
        stated = Path("/proc/meminfo").read_text(encoding="ascii").partition("MemAvailable:")[2]
        return min(available(), int(stated.split()[0]) * 1024)
    return available()


def check_room(rows: int, width: int) -> None:
    """Raise `DataError` if a table does not fit in memory."""
    needed, there = rows * width * BYTES_PER_VALUE / 2**30, available() / 2**30
    if needed > there:
        problem = f"{rows:,} rows of {counted(width, 'column')} need {needed:,.1f} GiB of memory, and there are {there:,.1f} GiB"
        raise DataError(
            f"{problem}; draw fewer rows, or audit a table in a file, which is read block by block",
            ("rows",),
        )
