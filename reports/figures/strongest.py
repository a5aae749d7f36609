"""Strongest attack: per scheme for verdicts, overall for charts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from .figures import Figure
from .guesses import guesses_categories, losses
from .reading import (
    BEYOND,
    ERROR,
    EVERYTHING,
    GAIN,
    Reading,
    Setting,
    best_single,
    ceiling,
    lowest,
    unique,
)

PERFECT = "perfect"
EXACT = 1e-6
"""Normalized errors below this bound are exact up to rounding."""


def strongest(reading: Reading, scheme: str) -> Setting | None:
    """Return a scheme's setting with the lowest error bound.

    Exact reconstructions are ranked by their best single copy. Settings with attributes known in
    clear come last, because their overall error is lower by construction. `judged` chooses between
    numbers and categories.
    """
    found = [setting for setting in _settings(reading) if setting.scheme == scheme]
    return least(reading, judged(reading, found))


def judged(reading: Reading, settings: Sequence[Setting]) -> Sequence[Setting]:
    """Return the settings that compete for the strongest on one measure.

    Settings that guess categories have priority. Settings that estimate numbers replace them if
    their error is lower.
    """
    found = [setting for setting in settings if not reading.given(setting.knowledge)] or settings
    guessing = [setting for setting in found if guesses_categories(reading, setting)]
    others = [setting for setting in found if setting not in guessing]
    if not guessing or not others:
        return found
    apart = [
        min(
            (ceiling(shown) for one in some for shown in reading.figures(one).values()),
            default=None,
        )
        for some in (guessing, others)
    ]
    return (
        others
        if apart[0] is not None and apart[1] is not None and apart[1] < apart[0] * (1 - 1e-9)
        else guessing
    )


def least(reading: Reading, settings: Sequence[Setting]) -> Setting | None:
    """Return the setting with the lowest error bound of a coalition."""
    ranked = []
    for setting in settings:
        found = losses(reading, setting)
        worst = lowest(found.values())
        if worst is not None:
            exact, single = ceiling(worst) < EXACT, best_single(found, worst.coalition)
            ranked.append(
                (
                    (0.0, ceiling(single) if single else 1.0) if exact else (ceiling(worst), 0.0),
                    setting,
                )
            )
    return _least(ranked)


def lowest_attribute(
    reading: Reading, settings: Sequence[Setting]
) -> tuple[Setting, str, Figure] | None:
    """Return the setting, attribute and figure with the lowest error bound.

    Attributes known in clear are excluded.
    """
    found = []
    for setting in settings:
        given = reading.given(setting.knowledge)
        for name in reading.attributes:
            shown = (
                lowest(reading.figures(setting, ERROR, name).values())
                if name != EVERYTHING and name not in given
                else None
            )
            found += [] if shown is None else [(setting, name, shown)]
    return min(found, key=lambda one: (ceiling(one[2]), len(one[2].coalition)), default=None)


def _settings(reading: Reading) -> list[Setting]:
    return unique([*reading.settings(ERROR), *reading.settings(BEYOND)])


@lru_cache(maxsize=1)  # a page calls it ten times, and it visits every coalition
def leader(reading: Reading) -> Setting | None:
    """Return the default setting of charts.

    It is the strongest attack with perfect knowledge, on schemes that are not reconstructed
    exactly.
    """
    ranked = []
    exact = {
        scheme
        for scheme in reading.schemes
        if (found := _worst(reading, scheme)) and ceiling(found) < EXACT
    }
    for setting in _settings(reading):
        worst = lowest(losses(reading, setting).values())
        if worst is not None:
            given = bool(reading.given(setting.knowledge))
            ranked.append(
                (
                    (setting.knowledge != PERFECT, given, setting.scheme in exact, ceiling(worst)),
                    setting,
                )
            )
    return _least(ranked)


def _least(ranked: Sequence[tuple[tuple[float, ...], Setting]]) -> Setting | None:
    return min(
        ranked, key=lambda item: [float(f"{part:.9g}") for part in item[0]], default=(None, None)
    )[1]


def _worst(reading: Reading, scheme: str) -> Figure | None:
    setting = strongest(reading, scheme)
    return None if setting is None else lowest(losses(reading, setting).values())


def gain_of(reading: Reading, setting: Setting, coalition: tuple[int, ...]) -> Figure | None:
    """Return a coalition's gain from paired errors, else from two errors."""
    measured = reading.figures(setting, GAIN).get(coalition)
    if measured is not None or len(coalition) < 2:
        return measured
    found = losses(reading, setting)
    pooled, single = found.get(coalition), best_single(found, coalition)
    if pooled is None or single is None or single.value <= 0:
        return None
    ratio, half = pooled.value / single.value, None
    if pooled.half is not None and single.half is not None:
        # treated as independent, which is conservative, because the errors share their noise
        half = (pooled.half**2 + (ratio * single.half) ** 2) ** 0.5 / single.value
    low, high = (None, None) if half is None else (1 - ratio - half, 1 - ratio + half)
    return pooled._replace(value=1 - ratio, low=low, high=high, theory=None)
