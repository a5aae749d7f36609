"""What a card says beside its sentence: who is exposed most, what is given away and to whom, and the scales that it is placed on."""

from __future__ import annotations

from typing import NamedTuple

from ..figures.figures import Figure
from ..figures.reading import ceiling
from ..figures.severity import Severity, severity

LITTLE = 0.1
"""Of what attributes given in clear leave unknown of the others: copies that take less of it are not to blame for what was known."""


class Exposure(NamedTuple):
    """The attribute rebuilt best.

    Attributes
    ----------
    tied : tuple of str
        Attributes that the error bars cannot tell from it.
    by : str
        Who rebuilds it, where that is not the verdict's own attack and coalition; names in it come from the scenario.
    near : str
        How near its values are known, in its own units.
    """

    attribute: str
    shown: Figure
    tied: tuple[str, ...]
    by: str = ""
    near: str = ""

    @property
    def severity(self) -> Severity:
        """How bad it is for this attribute, for sure."""
        return severity(ceiling(self.shown))


class Disclosure(NamedTuple):
    """Records whose sensitive value an attack on classes claims, and claims rightly, and who does so.

    Attributes
    ----------
    news : Figure
        The same beyond chance: 0 where the table's own shares tell as much, 1 where all is told.
    single : Figure or None
        That of one copy.
    """

    by: str
    shown: Figure
    news: Figure
    single: Figure | None


class Given(NamedTuple):
    """What is left to an adversary who was given attributes in clear, of the others.

    Attributes
    ----------
    attribute : str
        The one left least of, or ``*`` for all of the others together.
    names : tuple of str
        What it was given.
    alone : float or None
        What is left to it without any copy; None where that is not told.
    """

    attribute: str
    shown: Figure
    attack: str
    names: tuple[str, ...]
    alone: float | None

    @property
    def severity(self) -> Severity:
        """How bad it is, for sure."""
        return severity(ceiling(self.shown))

    @property
    def by_copies(self) -> bool:
        """Whether copies give any of it away for sure: `LITTLE` at least of what is unknown without them."""
        return self.alone is None or ceiling(self.shown) < (1 - LITTLE) * self.alone

    @property
    def rank(self) -> int:
        """The severity's rank, as far as copies are at fault; else 0."""
        return self.severity.rank if self.by_copies else 0


class Axis(NamedTuple):
    """One scale of a verdict, written out: 0 is an exact reconstruction, 1 no better than a guess without any copy.

    Attributes
    ----------
    title, what : str
        What the scale shows, and what its figures are: ``share of the variance unknown``, ``Normalized error``.
    worst, single : str
        Figures of the worst coalition and of its best member alone; ``single`` is empty where that is the same, or was not measured.
    alone : bool
        Whether the worst coalition is one copy.
    left, single_left : float
        Places on the scale.
    blind : str
        What needs no copy, for guesses; empty for errors, where it is 1.
    said : str
        What is said after the figure where it stands alone: ``right``.
    """

    title: str
    what: str
    worst: str
    single: str
    alone: bool
    left: float
    single_left: float | None
    severity: Severity
    blind: str = ""
    said: str = ""
