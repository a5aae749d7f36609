"""Types that many modules name: one definition of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Numbers: rows of a table, moments, weights. Shapes stand in docstrings."""
Indices = NDArray[np.intp]
Codes = NDArray[np.unsignedinteger]
"""Categories by their place in the domain, in the smallest unsigned integers that hold them."""
ClassRecords = NDArray[Any]
"""Records of a k-anonymous copy: its class, and the range of each attribute (``auditor.schemes.generalisation.copies``)."""
Coalition = tuple[int, ...]
"""Copy numbers, ascending, from 1."""
Block = tuple[int, Array, list[Array]]
"""Number of a block of records, original rows, all copies' rows."""
Blocks = Callable[[], Iterable[Block]]
"""Yields blocks, anew at every call; their arrays may be overwritten by the next."""
Microdata = Any
"""An ndarray of shape (n, N) or (n,), a DataFrame or a Series."""
