"""Charts in one line of characters, readable without colour."""

from __future__ import annotations

import math
from collections.abc import Sequence

BLOCKS = " ▁▂▃▄▅▆▇█"


def sparklines(rows: Sequence[Sequence[float]]) -> list[str]:
    """Draw rows of columns on a common scale from 0."""
    top = max((height for row in rows for height in row), default=0.0) or 1.0
    return ["".join(BLOCKS[math.ceil(8 * max(0.0, one) / top)] for one in row) for row in rows]
