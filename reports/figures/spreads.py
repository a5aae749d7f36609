"""Distribution of absolute errors: bins for charts, quantiles for text."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any, NamedTuple

from auditor.results.records import Distribution, grouped

from .figures import Z95
from .reading import ERROR, Reading, Setting, ceiling
from .strongest import EXACT


class Bin(NamedTuple):
    """Share of records with absolute error in [low, high), and below ``high``."""

    low: float
    high: float
    share: float
    cumulative: float


class Spread(NamedTuple):
    """Errors of one coalition in one attribute, averaged over replicates.

    ``exact`` means that all errors are 0. ``held`` counts the errors (records times replicates); 0
    if unknown.
    """

    setting: Setting
    coalition: tuple[int, ...]
    attribute: str
    bins: list[Bin]
    exact: bool
    held: int = 0

    def half(self, share: float) -> float | None:
        """Return the 95 % half-width of a share of independent records.

        It is conservative for noise drawn record by record: ``mean p(1 − p) ≤ share (1 − share)``.
        """
        return Z95 * math.sqrt(max(0.0, share * (1 - share)) / self.held) if self.held else None

    def quantile(self, share: float) -> float | None:
        """Return the quantile of the errors; None if it lies beyond the last bin."""
        if self.exact:
            return 0.0
        for one in self.bins:
            if one.cumulative >= share and one.share > 0:
                return one.high - (one.cumulative - share) / one.share * (one.high - one.low)
        return None


def spreads(reading: Reading, limit: int) -> tuple[list[Spread], int]:
    """Return distributions within a limit of bins, and the bins left out.

    Whole coalitions are left out. The largest coalition has priority, then singles and prefixes,
    then the rest.
    """
    groups = grouped((records[0].coalition, records) for records in _cells(reading).values())
    kept: list[Spread] = []
    left, room = 0, limit
    for coalition in sorted(groups, key=_order(max(map(len, groups), default=0))):
        count = sum(map(_filled, groups[coalition]))
        room -= count
        if room < 0 and kept:
            left += count
        else:
            kept += (_spread(reading, records) for records in groups[coalition])
    return kept, left


def spread_of(
    reading: Reading, setting: Setting, coalition: tuple[int, ...], attribute: str
) -> Spread | None:
    """Return one coalition's distribution in one attribute, or None."""
    wanted = (*setting[1:], coalition, attribute)
    found = [
        r
        for r in reading.result.distributions
        if (*r[1:5], r.attribute) == wanted and reading.point_of(r.sweep) == setting.point
    ]
    return _spread(reading, found) if found else None


def _order(largest: int) -> Any:
    def key(coalition: tuple[int, ...]) -> tuple[bool, bool, int, tuple[int, ...]]:
        plain = len(coalition) == 1 or coalition == tuple(range(1, len(coalition) + 1))
        return len(coalition) != largest, not plain, len(coalition), coalition

    return key


def _cells(reading: Reading) -> dict[tuple[Any, ...], list[Distribution]]:
    found = reading.result.distributions
    return grouped(
        ((reading.point_of(one.sweep), *one[1:5], one.attribute, one.edges), one) for one in found
    )


def _spread(reading: Reading, records: list[Distribution]) -> Spread:
    first = records[0]
    setting = Setting(reading.point_of(first.sweep), first.scheme, first.knowledge, first.attack)
    shown = reading.figures(setting, ERROR, first.attribute).get(first.coalition)
    exact = shown is not None and ceiling(shown) < EXACT
    held = reading.rows_of(setting.point) * len(records)
    return Spread(setting, first.coalition, first.attribute, _bins(records), exact, held)


def _filled(records: list[Distribution]) -> int:
    """Return the number of bins up to the last filled one, at least 1."""
    return max(
        next(
            (len(r.shares) - place for place, share in enumerate(reversed(r.shares)) if share > 0),
            1,
        )
        for r in records
    )


def _bins(records: list[Distribution]) -> list[Bin]:
    edges, many = records[0].edges, len(records)
    shares = [
        math.fsum(each) / many
        for each in zip(*(record.shares[: _filled(records)] for record in records), strict=True)
    ]
    return [*map(Bin._make, zip(edges, edges[1:], shares, accumulate(shares), strict=False))]
