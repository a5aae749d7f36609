"""Ratios of two times measured in turn, so that a drifting machine drifts in both."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from threadpoolctl import threadpool_limits


@dataclass(frozen=True)
class Ratio:
    """A measured ratio and the bar it is held to."""

    what: str
    against: str
    value: float
    at_most: float | None = None
    at_least: float | None = None

    @property
    def met(self) -> bool:
        """Whether the bar is met."""
        return (self.at_most is None or self.value <= self.at_most) and (self.at_least is None or self.value >= self.at_least)

    def __str__(self) -> str:
        bar = f"≤ {self.at_most:g}" if self.at_most is not None else f"≥ {self.at_least:g}"
        return f"| {self.what} | {self.against} | {self.value:.3g} | {bar} | {'yes' if self.met else 'NO'} |"


def seconds(work: Callable[[], object]) -> float:
    """Return the wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def ratio(
    what: str, against: str, first: Callable[[], object], second: Callable[[], object], *, at_most: float | None = None,
    at_least: float | None = None, rounds: int = 9,
) -> Ratio:  # fmt: skip
    """Return the median over rounds of first/second, timed in turn after one round to warm up, on one thread of linear algebra."""
    with threadpool_limits(limits=1):
        first(), second()
        pairs = [(seconds(first), seconds(second)) for _ in range(rounds)]
    return Ratio(what, against, median(a / b for a, b in pairs), at_most, at_least)
