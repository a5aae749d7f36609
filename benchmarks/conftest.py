"""What the benchmarks share: a fixture that measures a ratio and holds it to its bar, and the table of all of them at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from benchmarks.page import Page, write_page
from benchmarks.scaling import Curve
from benchmarks.timing import Measured, Work, interleaved, summary

PAGE = pytest.StashKey[Page]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-page",
        action="store_true",
        help="write docs/evidence/performance.md and its charts",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[PAGE] = Page()


class Compare:
    """Measures ratios and keeps them for the table."""

    def __init__(self, benchmark: Any, page: Page, group: str) -> None:
        self._benchmark, self._page, self._group = benchmark, page, group

    def __call__(
        self,
        what: str,
        against: str,
        work: Work,
        floor: Work,
        *,
        at_most: float | None = None,
        at_least: float | None = None,
        rounds: int = 9,
        figure: Callable[[float, float], float] = lambda work, floor: work / floor,
    ) -> Measured:
        """Measure ``figure(work, floor)`` round by round and assert its median meets the bar, or misses it by no more than the margin."""
        pairs = interleaved(self._benchmark, work, floor, rounds)
        return self.keep(what, against, [figure(*pair) for pair in pairs], at_most, at_least)

    def keep(
        self,
        what: str,
        against: str,
        ratios: list[float],
        at_most: float | None = None,
        at_least: float | None = None,
    ) -> Measured:
        """Keep ratios measured otherwise."""
        measured = Measured(self._group, what, against, *summary(ratios), at_most, at_least)
        self._page.measured.append(measured)
        self._page.load.append(os.getloadavg()[0])
        self._benchmark.extra_info.update(ratio=measured.value, bar=measured.bar, against=against)
        assert measured.near, (
            f"{what}: {measured.value:.3g} times {against}; the bar is {measured.bar}"
        )
        return measured

    def curve(self, curve: Curve) -> None:
        """Keep a cost curve, and assert its exponent meets its bar, or misses it by no more than its standard error."""
        self._page.curves.append(curve)
        b, error = curve.exponent
        assert curve.at_most is None or b - error <= curve.at_most, (
            f"{curve.variable}: exponent {b:.2f}; the bar is {curve.at_most}"
        )


@pytest.fixture
def compare(benchmark: Any, request: pytest.FixtureRequest) -> Compare:
    """Measure against a floor or a peer; the module's first line is the heading."""
    page = request.config.stash[PAGE]
    return Compare(benchmark, page, (request.module.__doc__ or "").split("\n")[0].rstrip("."))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = (yield).get_result()
    if report.skipped and isinstance(report.longrepr, tuple):
        item.config.stash[PAGE].skipped.append(report.longrepr[2].removeprefix("Skipped: "))


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    page = config.stash[PAGE]
    terminalreporter.write("\n" + page.tables())
    if config.getoption("--write-page"):
        for path in write_page(page):
            terminalreporter.write_line(f"wrote {path}")
