"""Strongest attacks: guesses of categories, ranks of settings, error spreads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from auditor.results.records import Distribution, grouped

from .figures import Z95, Figure
from .reading import (
    BEYOND,
    ERROR,
    EVERYTHING,
    Figures,
    Reading,
    Setting,
    best_single,
    ceiling,
    lowest,
    unique,
)

RIGHT, TRUTH, BITS = "accuracy", "reconstruction_probability", "mutual_information"


class Guesses(NamedTuple):
    """Accuracy of a coalition's best guess, and of its best member alone.

    ``blind`` is the share guessed right without copies, ``truth`` the true value's probability.
    """

    right: Figure
    single: Figure | None
    blind: float
    truth: Figure
    bits: Figure | None

    def mistakes(self, right: float) -> float:
        """Share of mistakes without copies that remain: 0 exact, 1 no gain."""
        return max(0.0, 1 - right) / (1 - self.blind) if self.blind < 1 else 1.0

    @property
    def left(self) -> float:
        """Share of mistakes that remain."""
        return self.mistakes(self.right.value)


def guesses_categories(reading: Reading, setting: Setting) -> bool:
    """Whether the setting's attack guesses categories."""
    return bool(reading.figures(setting, BEYOND)) and bool(reading.figures(setting, TRUTH))


def losses(reading: Reading, setting: Setting) -> Figures:
    """Losses that rank coalitions.

    The loss is the normalized error, or ``1 − truth`` for categories.
    """
    if not guesses_categories(reading, setting):
        return reading.figures(setting)
    return {
        coalition: shown.turned(lambda truth: 1 - truth)
        for coalition, shown in reading.figures(setting, TRUTH).items()
    }


def guesses(reading: Reading, setting: Setting, coalition: tuple[int, ...]) -> Guesses | None:
    """Coalition's guesses; None if the attack guesses no categories."""
    right, truth = (reading.figures(setting, metric) for metric in (RIGHT, TRUTH))
    beyond = reading.figures(setting, BEYOND).get(coalition)
    if beyond is None or coalition not in right or coalition not in truth:
        return None
    alone = best_single(losses(reading, setting), coalition)
    copy = () if alone is None else alone.coalition
    blind = right[coalition].value - beyond.value
    bits = reading.figures(setting, BITS).get(coalition)
    return Guesses(right[coalition], right.get(copy), blind, truth[coalition], bits)


PERFECT = "perfect"
EXACT = 1e-6
"""Normalized errors below this bound are exact up to rounding."""


def strongest(reading: Reading, scheme: str) -> Setting | None:
    """Scheme's setting with the lowest error bound.

    Exact reconstructions are ranked by their best single copy.
    """
    found = [setting for setting in _settings(reading) if setting.scheme == scheme]
    return least(reading, judged(reading, found))


def judged(reading: Reading, settings: Sequence[Setting]) -> Sequence[Setting]:
    """Settings that compete for the strongest on one measure.

    Guesses of categories have priority, unless errors of numbers are lower.
    """
    found = [setting for setting in settings if not reading.given(setting.knowledge)] or settings
    guessing = [setting for setting in found if guesses_categories(reading, setting)]
    others = [setting for setting in found if setting not in guessing]
    if not guessing or not others:
        return found
    by_guesses, by_numbers = (
        min(
            (ceiling(shown) for one in some for shown in reading.figures(one).values()),
            default=math.nan,
        )
        for some in (guessing, others)
    )
    return others if by_numbers < by_guesses * (1 - 1e-9) else guessing


def least(reading: Reading, settings: Sequence[Setting]) -> Setting | None:
    """Setting with the lowest error bound of a coalition."""
    ranked = []
    for setting in settings:
        found = losses(reading, setting)
        worst = lowest(found.values())
        if worst is not None:
            order, single = (ceiling(worst), 0.0), best_single(found, worst.coalition)
            if order[0] < EXACT:
                order = 0.0, ceiling(single) if single else 1.0
            ranked.append((order, setting))
    return _least(ranked)


def lowest_attribute(
    reading: Reading, settings: Sequence[Setting], names: Sequence[str] = ()
) -> tuple[Setting, str, Figure] | None:
    """Setting, attribute and figure with the lowest error bound.

    Attributes known in clear are excluded. ``names`` restricts the attributes.
    """
    found = [
        (setting, name, shown)
        for setting in settings
        for name in names or reading.attributes
        if name not in (EVERYTHING, *reading.given(setting.knowledge))
        and (shown := lowest(reading.unknown(setting, name).values())) is not None
    ]
    return min(found, key=lambda one: (ceiling(one[2]), len(one[2].coalition)), default=None)


def _settings(reading: Reading) -> list[Setting]:
    return unique([*reading.settings(ERROR), *reading.settings(BEYOND)])


@lru_cache(maxsize=1)  # a page calls it ten times, over every coalition
def leader(reading: Reading) -> Setting | None:
    """Default setting of charts.

    The strongest attack with perfect knowledge, without exact reconstructions.
    """
    worst = {one: lowest(losses(reading, one).values()) for one in _settings(reading)}
    bounds = {one: ceiling(shown) for one, shown in worst.items() if shown}
    strong = (strongest(reading, scheme) for scheme in reading.schemes)
    exact = {one.scheme for one in strong if one and bounds[one] < EXACT}
    return _least(
        [
            (
                (
                    one.knowledge != PERFECT,
                    bool(reading.given(one.knowledge)),
                    one.scheme in exact,
                    bound,
                ),
                one,
            )
            for one, bound in bounds.items()
        ]
    )


def _least(ranked: Sequence[tuple[tuple[float, ...], Setting]]) -> Setting | None:
    return min(
        ranked, key=lambda item: [float(f"{part:.9g}") for part in item[0]], default=(None, None)
    )[1]


class Bin(NamedTuple):
    """Share of records with absolute error in [low, high), and below ``high``."""

    low: float
    high: float
    share: float
    cumulative: float


class Spread(NamedTuple):
    """Errors of one coalition in one attribute, averaged over replicates.

    ``exact``: all errors are 0. ``held``: records times replicates; 0 if unknown.
    """

    setting: Setting
    coalition: tuple[int, ...]
    attribute: str
    bins: list[Bin]
    exact: bool
    held: int = 0

    def half(self, share: float) -> float | None:
        """95 % half-width of a share of independent records.

        Conservative for noise drawn by record: ``mean p(1 − p) ≤ share (1 − share)``.
        """
        return Z95 * math.sqrt(max(0.0, share * (1 - share)) / self.held) if self.held else None

    def quantile(self, share: float) -> float | None:
        """Quantile of the errors; None if it lies beyond the last bin."""
        if self.exact:
            return 0.0
        for one in self.bins:
            if one.cumulative >= share and one.share > 0:
                return one.high - (one.cumulative - share) / one.share * (one.high - one.low)
        return None


def spreads(reading: Reading) -> Iterator[Spread]:
    """Yield every distribution of errors, largest coalitions first."""
    found = grouped(
        ((reading.point_of(one.sweep), *one[1:5], one.attribute, one.edges), one)
        for one in reading.result.distributions
    )
    groups = sorted(found.values(), key=lambda held: (-len(held[0].coalition), held[0].coalition))
    yield from (_spread(reading, records) for records in groups)


def _spread(reading: Reading, records: list[Distribution]) -> Spread:
    first = records[0]
    setting = Setting(reading.point_of(first.sweep), first.scheme, first.knowledge, first.attack)
    shown = reading.figures(setting, ERROR, first.attribute).get(first.coalition)
    exact = shown is not None and ceiling(shown) < EXACT
    held = reading.rows_of(setting.point) * len(records)
    return Spread(setting, first.coalition, first.attribute, _bins(records), exact, held)


def _bins(records: list[Distribution]) -> list[Bin]:
    edges, by_bin = records[0].edges, zip(*(record.shares for record in records), strict=True)
    shares = [math.fsum(each) / len(records) for each in by_bin]
    while len(shares) > 1 and not shares[-1] > 0:
        shares.pop()
    return [*map(Bin._make, zip(edges, edges[1:], shares, accumulate(shares), strict=False))]
