"""Accuracy of the best guess of categories, with and without copies.

The collusion gain of categories uses another loss: one minus the probability of the true value.
"""

from __future__ import annotations

from typing import NamedTuple

from .figures import Figure
from .reading import BEYOND, Reading, Setting, best_single

RIGHT, TRUTH, BITS = "accuracy", "reconstruction_probability", "mutual_information"


class Guesses(NamedTuple):
    """Accuracy of a coalition's best guess.

    Attributes
    ----------
    right, single : Figure
        Share of records guessed right by the coalition and by its best member.
    blind : float
        Share guessed right without copies, from the most frequent value.
    truth : Figure
        Probability of a record's true value.
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
        """Share of mistakes without copies that remain: 0 exact, 1 no gain."""
        return self._left(self.right)

    @property
    def single_left(self) -> float | None:
        """Share of mistakes left for the best single copy."""
        return None if self.single is None else self._left(self.single)

    def _left(self, right: Figure) -> float:
        return max(0.0, 1 - right.value) / (1 - self.blind) if self.blind < 1 else 1.0


def guesses_categories(reading: Reading, setting: Setting) -> bool:
    """Whether the setting's attack guesses categories."""
    return bool(reading.figures(setting, BEYOND)) and bool(reading.figures(setting, TRUTH))


def losses(reading: Reading, setting: Setting) -> dict[tuple[int, ...], Figure]:
    """Return the losses that rank coalitions.

    The loss is the normalized error, or ``1 − truth`` for categories.
    """
    if not guesses_categories(reading, setting):
        return reading.figures(setting)
    return {
        coalition: shown.turned(lambda truth: 1 - truth)
        for coalition, shown in reading.figures(setting, TRUTH).items()
    }


def guesses(reading: Reading, setting: Setting, coalition: tuple[int, ...]) -> Guesses | None:
    """Return a coalition's guesses; None if the attack guesses no categories."""
    right, truth = (reading.figures(setting, metric) for metric in (RIGHT, TRUTH))
    beyond = reading.figures(setting, BEYOND).get(coalition)
    if beyond is None or coalition not in right or coalition not in truth:
        return None
    alone = best_single(losses(reading, setting), coalition)
    copy = () if alone is None else alone.coalition
    blind = right[coalition].value - beyond.value
    bits = reading.figures(setting, BITS).get(coalition)
    return Guesses(right[coalition], right.get(copy), blind, truth[coalition], bits)
