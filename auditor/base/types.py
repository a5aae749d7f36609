"""Common type aliases."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray

Generator: TypeAlias = "np.random.Generator"
Array = NDArray[np.float64]
"""Real numbers: table rows, moments or weights, with shapes in docstrings."""
Indices = NDArray[np.intp]
Flags = NDArray[np.bool_]
"""Indicators, for example of records."""
Shape = tuple[int, ...]
"""Lengths of an array's axes."""
Pair = tuple[Array, Array]
"""Two arrays, as a mean and a covariance."""
Integers = NDArray[np.integer[Any]]
"""Whole numbers of any integer type."""
Codes = NDArray[np.unsignedinteger]
"""Category codes in the smallest unsigned integer type."""
ClassRecords = NDArray[Any]
"""Records of a k-anonymous copy: class and attribute ranges
(``auditor.schemes.generalisation.classes``)."""
Coalition = tuple[int, ...]
"""Copy numbers, ascending, from 1."""
Coalitions = Sequence[Coalition]
Levels = Sequence[float]
"""Levels of copies, in order of release."""
Arrays = Sequence[Array]
"""Arrays by copy."""
CopyBlocks = Iterable[list[Array]]
"""Blocks of rows, each with one array a copy; restartable."""
Block = tuple[int, Array, list[Array]]
"""Block number, original rows, rows of all copies."""
Blocks = Callable[[], Iterable[Block]]
"""Restartable iterable of blocks."""
Microdata = Any
"""An ndarray of shape (n, N) or (n,), a DataFrame or a Series."""
Plain = dict[str, Any]
"""Plain values by name, as in YAML or JSON."""
Options = Mapping[str, Any]
"""Values by name, to be read only."""
Names = Sequence[str]
"""Names of columns, attacks or files."""

C = TypeVar("C")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def unprinted(cls: type[C]) -> type[C]:
    """Make a frozen dataclass of private values: its text shows none of them.

    Instances are compared by identity.
    """
    return dataclass(frozen=True, eq=False, repr=False)(cls)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[C]) -> type[C]:
    """Make a frozen dataclass."""
    return dataclass(frozen=True)(cls)
