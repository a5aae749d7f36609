"""The two tiers of tests."""

from collections.abc import Iterable
from typing import Any

import pytest


def each_once(first: Iterable[Any], second: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Pairs that hold each value of the longer list once."""
    a, b = list(first), list(second)
    return [(a[k % len(a)], b[k % len(b)]) for k in range(max(len(a), len(b)))]


def every_pair(first: Iterable[Any], second: Iterable[Any], quick: int | None = None) -> list[Any]:
    a, b = list(first), list(second)
    turns = [(k % len(a), k % len(b)) for k in range(max(len(a), len(b)))][:quick]
    return [
        pytest.param(x, y, marks=() if (i, j) in turns else pytest.mark.slow)
        for i, x in enumerate(a)
        for j, y in enumerate(b)
    ]
