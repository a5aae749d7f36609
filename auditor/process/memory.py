"""How much memory there is for a table, so that one that will not fit is refused before it is drawn."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path

from auditor.errors import DataError
from auditor.text.column_names import counted

BYTES_PER_VALUE = 32
"""Of a table in memory while it is drawn, looked over and audited: four arrays of doubles (the peak of drawn Gaussian tables of 4 and 16
columns, with and without ``standardize``, grew by 24 to 27 bytes a value between 100,000 and 1,000,000 rows)."""
CONTROL_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def available() -> int:
    """Return the bytes that this process may use: the machine's memory, or less where a container or the shell sets a limit."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    limits += [soft for soft, _ in map(resource.getrlimit, (resource.RLIMIT_AS, resource.RLIMIT_DATA)) if soft != resource.RLIM_INFINITY]
    for name in CONTROL_GROUPS:
        with suppress(OSError, ValueError):  # no such system, or the word «max»
            limits.append(int(Path(name).read_text(encoding="ascii")))
    return min(limits)


def check_room(rows: int, width: int) -> None:
    """Raise `DataError` when a table of so many rows and attributes, which is held in memory, does not fit there."""
    needed, there = rows * width * BYTES_PER_VALUE / 2**30, available() / 2**30
    if needed > there:
        problem = f"{rows:,} rows of {counted(width, 'column')} need {needed:,.1f} GiB of memory, and there are {there:,.1f} GiB"
        raise DataError(f"{problem}; draw fewer rows, or audit a table in a file, which is read block by block", ("rows",))
