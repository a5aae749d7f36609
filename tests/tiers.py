"""Pairs of parameters."""

from collections.abc import Iterable
from typing import Any


def each_once(first: Iterable[Any], second: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Pairs that hold each value of the longer list once."""
    a, b = list(first), list(second)
    return [(a[k % len(a)], b[k % len(b)]) for k in range(max(len(a), len(b)))]
