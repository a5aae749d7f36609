"""Read-only arrays for plugins.

They are shared with later attacks and later runs in one process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

A = TypeVar("A", bound=NDArray[Any])


def seal(*arrays: Any) -> None:
    """Make arrays permanently read-only; ignore other objects."""
    for array in arrays:
        if isinstance(array, np.ndarray):
            array.flags.writeable = False


def readable(arrays: Sequence[A]) -> list[A]:
    """Return read-only views of writable arrays."""
    views = [array.view() for array in arrays]
    seal(*views)
    return views
