"""Which attack is the strongest: against one scheme, for the verdict; and over all of them, for the charts to open with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from .figures import Figure
from .guesses import guesses_categories, losses
from .reading import BEYOND, ERROR, EVERYTHING, GAIN, Reading, Setting, best_single, ceiling, lowest, unique

PERFECT = "perfect"
EXACT = 1e-6
"""Normalized errors below this are an exact reconstruction up to rounding."""


def strongest(reading: Reading, scheme: str) -> Setting | None:
    """Return the setting of one scheme that leaves least for sure; of several exact ones, the one with the best single copy.

    Adversaries who were given attributes in clear come last: an error over all attributes that counts those as known is no larger by
    construction. Of attacks that guess categories and attacks that estimate numbers see `judged`.
    """
    found = [setting for setting in _settings(reading) if setting.scheme == scheme]
    return least(reading, judged(reading, found))


def judged(reading: Reading, settings: Sequence[Setting]) -> Sequence[Setting]:
    """Return the settings that compete for the strongest, all of which are ranked by the same.

    Those that guess categories come first, so that schemes of both kinds are judged by their guesses; but not where an attack that
    estimates numbers leaves less of the variance unknown than any of them: that one is stronger in the measure that both have.
    """
    found = [setting for setting in settings if not reading.given(setting.knowledge)] or settings
    guessing = [setting for setting in found if guesses_categories(reading, setting)]
    others = [setting for setting in found if setting not in guessing]
    if not guessing or not others:
        return found
    apart = [min((ceiling(shown) for one in some for shown in reading.figures(one).values()), default=None) for some in (guessing, others)]
    return others if apart[0] is not None and apart[1] is not None and apart[1] < apart[0] * (1 - 1e-9) else guessing


def least(reading: Reading, settings: Sequence[Setting]) -> Setting | None:
    """Return the setting whose worst coalition leaves least for sure; None of none."""
    ranked = []
    for setting in settings:
        found = losses(reading, setting)
        worst = lowest(found.values())
        if worst is not None:
            exact, single = ceiling(worst) < EXACT, best_single(found, worst.coalition)
            ranked.append(((0.0, ceiling(single) if single else 1.0) if exact else (ceiling(worst), 0.0), setting))
    return _least(ranked)


def lowest_attribute(reading: Reading, settings: Sequence[Setting]) -> tuple[Setting, str, Figure] | None:
    """Return who rebuilds which attribute best for sure, and its figure; attributes that were given in clear are nobody's work."""
    found = []
    for setting in settings:
        given = reading.given(setting.knowledge)
        for name in reading.attributes:
            shown = lowest(reading.figures(setting, ERROR, name).values()) if name != EVERYTHING and name not in given else None
            found += [] if shown is None else [(setting, name, shown)]
    return min(found, key=lambda one: (ceiling(one[2]), len(one[2].coalition)), default=None)


def _settings(reading: Reading) -> list[Setting]:
    """Return every setting with a normalized error, or with guesses of categories."""
    return unique([*reading.settings(ERROR), *reading.settings(BEYOND)])


@lru_cache(maxsize=1)  # a page asks for it ten times, and it goes through every coalition
def leader(reading: Reading) -> Setting | None:
    """Return the setting that charts open with: the strongest attack under perfect knowledge over schemes not rebuilt exactly."""
    ranked = []
    exact = {scheme for scheme in reading.schemes if (found := _worst(reading, scheme)) and ceiling(found) < EXACT}
    for setting in _settings(reading):
        worst = lowest(losses(reading, setting).values())
        if worst is not None:
            given = bool(reading.given(setting.knowledge))
            ranked.append(((setting.knowledge != PERFECT, given, setting.scheme in exact, ceiling(worst)), setting))
    return _least(ranked)


def _least(ranked: Sequence[tuple[tuple[float, ...], Setting]]) -> Setting | None:
    """Return the first setting of the least rank; ranks that differ by rounding are equal."""
    return min(ranked, key=lambda item: [float(f"{part:.9g}") for part in item[0]], default=(None, None))[1]


def _worst(reading: Reading, scheme: str) -> Figure | None:
    setting = strongest(reading, scheme)
    return None if setting is None else lowest(losses(reading, setting).values())


def gain_of(reading: Reading, setting: Setting, coalition: tuple[int, ...]) -> Figure | None:
    """Return the collusion gain of a coalition: as measured on paired errors, else from the two normalized errors."""
    measured = reading.figures(setting, GAIN).get(coalition)
    if measured is not None or len(coalition) < 2:
        return measured
    found = losses(reading, setting)
    pooled, single = found.get(coalition), best_single(found, coalition)
    if pooled is None or single is None or single.value <= 0:
        return None
    ratio, half = pooled.value / single.value, None
    if pooled.half is not None and single.half is not None:
        # the two errors are treated as independent, which is too cautious: they share their noise
        half = (pooled.half**2 + (ratio * single.half) ** 2) ** 0.5 / single.value
    low, high = (None, None) if half is None else (1 - ratio - half, 1 - ratio + half)
    return pooled._replace(value=1 - ratio, low=low, high=high, theory=None)
