"""Arrays that a plugin may read and not write: they are shared with every attack after it, and with later runs in the same process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

A = TypeVar("A", bound=NDArray[Any])


def seal(*arrays: Any) -> None:
    """Make arrays read-only for good; anything else is left alone."""
    for array in arrays:
        if isinstance(array, np.ndarray):
            array.flags.writeable = False


def readable(arrays: Sequence[A]) -> list[A]:
    """Return views that cannot be written to, of arrays that can be."""
    views = [array.view() for array in arrays]
    seal(*views)
    return views
