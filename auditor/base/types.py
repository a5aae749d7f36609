"""Common type aliases."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Real numbers: table rows, moments or weights, with shapes in docstrings."""
Indices = NDArray[np.intp]
Flags = NDArray[np.bool_]
"""Indicators, for example of records."""
Codes = NDArray[np.unsignedinteger]
"""Category codes in the smallest unsigned integer type."""
ClassRecords = NDArray[Any]
"""Records of a k-anonymous copy: class and attribute ranges
(``auditor.schemes.generalisation.classes``)."""
Coalition = tuple[int, ...]
"""Copy numbers, ascending, from 1."""
Block = tuple[int, Array, list[Array]]
"""Block number, original rows, rows of all copies."""
Blocks = Callable[[], Iterable[Block]]
"""Restartable iterable of blocks; the next block may overwrite their arrays."""
Microdata = Any
"""An ndarray of shape (n, N) or (n,), a DataFrame or a Series."""
Plain = dict[str, Any]
"""Plain values by name, as in YAML or JSON."""
