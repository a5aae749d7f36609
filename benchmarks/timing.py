"""Ratios of two times measured in turn, so that a drifting machine drifts in both, timed by pytest-benchmark."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks import FOLDER

Work = Callable[[], object]

MARGIN = 0.05
"""What a bar is missed by before a run of the benchmarks fails: ratios of equal work differ by
about as much from run to run."""


@dataclass(frozen=True)
class Measured:
    """A ratio and the bar it is held to.

    Attributes
    ----------
    group, what, against : str
        Heading in the table, what was timed, and what it was timed against.
    value, low, high : float
        Median and quartiles of the rounds' ratios.
    at_most, at_least : float or None
        The bar; None for neither.
    """

    group: str
    what: str
    against: str
    value: float
    low: float
    high: float
    at_most: float | None = None
    at_least: float | None = None

    @property
    def met(self) -> bool:
        return self._within(0.0)

    @property
    def near(self) -> bool:
        """Whether it is met, or missed by no more than the margin."""
        return self._within(MARGIN)

    def _within(self, margin: float) -> bool:
        below = self.at_most is None or self.value <= self.at_most * (1.0 + margin)
        return below and (self.at_least is None or self.value >= self.at_least * (1.0 - margin))

    @property
    def bar(self) -> str:
        if self.at_most is not None:
            return f"≤ {self.at_most:g}"
        return "" if self.at_least is None else f"≥ {self.at_least:g}"


def seconds(work: Work, timer: Callable[[], float] = time.perf_counter) -> float:
    """Return the time of one call."""
    start = timer()
    work()
    return timer() - start


def run_python(*arguments: str) -> None:
    """Run a Python program as a user's machine does: byte code is kept from one run to the next, which containers' variables may forbid."""
    variables = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    subprocess.run(
        [sys.executable, *arguments],
        check=True,
        capture_output=True,
        cwd=FOLDER.parent,
        env=variables,
    )


def interleaved(
    benchmark: Any, work: Work, against: Work, rounds: int
) -> list[tuple[float, float]]:
    """Return (work, against) round by round, one right after the other, after a round to warm up; linear algebra on one thread.

    pytest-benchmark times the work; the other is timed in its set-up, by the same clock.
    """
    floors: list[float] = []
    timer = benchmark._timer
    # Whatever brings a BLAS of its own must be loaded before it can be limited: scipy's, beside
    # numpy's.
    import scipy.linalg.blas  # noqa: F401

    def before() -> None:
        floors.append(seconds(against, timer))

    with threadpool_limits(limits=1):
        benchmark.pedantic(work, setup=before, rounds=rounds, warmup_rounds=1)
    return list(zip(benchmark.stats.stats.data, floors[-rounds:], strict=True))


def summary(ratios: list[float]) -> tuple[float, float, float]:
    """Return the median and the quartiles."""
    low, _, high = (
        quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else (ratios[0],) * 3
    )
    return median(ratios), low, high
