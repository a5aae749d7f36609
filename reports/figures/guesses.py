"""Categories: how often the best guess is right from some copies, beside what it would be without any.

An attack that gives every value of a category a probability is judged by the share of records whose most probable value is the true one,
and by the probability given to the true value. One minus the latter is the error that the collusion gain of categories is made of.
"""

from __future__ import annotations

from typing import NamedTuple

from .figures import Figure
from .reading import BEYOND, Reading, Setting, best_single

RIGHT, TRUTH, BITS = "accuracy", "reconstruction_probability", "mutual_information"


class Guesses(NamedTuple):
    """What a coalition's best guess achieves.

    Attributes
    ----------
    right, single : Figure
        Share of the records guessed right by the coalition, and by its best member alone (None where that was not measured).
    blind : float
        Share guessed right without any copy, by always naming the most frequent value.
    truth : Figure
        Probability given to a record's true value.
    bits : Figure or None
        Information on a record, in bits.
    """

    right: Figure
    single: Figure | None
    blind: float
    truth: Figure
    bits: Figure | None

    @property
    def left(self) -> float:
        """Share of the mistakes made without any copy that are left: 0 always right, 1 no better than without one."""
        return self._left(self.right)

    @property
    def single_left(self) -> float | None:
        """The same for the best single copy."""
        return None if self.single is None else self._left(self.single)

    def _left(self, right: Figure) -> float:
        return max(0.0, 1 - right.value) / (1 - self.blind) if self.blind < 1 else 1.0


def guesses_categories(reading: Reading, setting: Setting) -> bool:
    """Whether the attack of a setting guesses categories."""
    return bool(reading.figures(setting, BEYOND)) and bool(reading.figures(setting, TRUTH))


def losses(reading: Reading, setting: Setting) -> dict[tuple[int, ...], Figure]:
    """Return what coalitions are ranked and their gains are counted by: the normalized error; for categories ``1 − truth``."""
    if not guesses_categories(reading, setting):
        return reading.figures(setting)
    return {coalition: shown.turned(lambda truth: 1 - truth) for coalition, shown in reading.figures(setting, TRUTH).items()}


def guesses(reading: Reading, setting: Setting, coalition: tuple[int, ...]) -> Guesses | None:
    """Return a coalition's guesses; None where the attack guesses no categories."""
    right, truth = (reading.figures(setting, metric) for metric in (RIGHT, TRUTH))
    beyond = reading.figures(setting, BEYOND).get(coalition)
    if beyond is None or coalition not in right or coalition not in truth:
        return None
    alone = best_single(losses(reading, setting), coalition)
    copy = () if alone is None else alone.coalition
    blind = right[coalition].value - beyond.value
    bits = reading.figures(setting, BITS).get(coalition)
    return Guesses(right[coalition], right.get(copy), blind, truth[coalition], bits)
