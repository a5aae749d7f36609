"""Parts of a verdict card: exposure, disclosure, knowledge, scales."""

from __future__ import annotations

from typing import NamedTuple

from ..figures.figures import Figure
from ..figures.reading import ceiling
from ..figures.severity import Severity, severity

LITTLE = 0.1
"""Share of the error without copies that copies must remove to count as a cause."""


class Exposure(NamedTuple):
    """The attribute with the lowest error.

    Attributes
    ----------
    tied : tuple of str
        Attributes within its error bars.
    by : str
        The adversary, if different from the verdict's; may contain names from the scenario.
    near : str
        Typical distance of estimates, in the attribute's units.
    """

    attribute: str
    shown: Figure
    tied: tuple[str, ...]
    by: str = ""
    near: str = ""

    @property
    def severity(self) -> Severity:
        """Severity of this attribute's upper bound."""
        return severity(ceiling(self.shown))


class Disclosure(NamedTuple):
    """Records whose sensitive value an attack on classes claims rightly.

    Attributes
    ----------
    news : Figure
        The share beyond chance: 0 if the table's shares predict it, 1 if all is disclosed.
    single : Figure or None
        The share from one copy.
    """

    by: str
    shown: Figure
    news: Figure
    single: Figure | None


class Given(NamedTuple):
    """Error of an adversary with attributes in clear, on the other attributes.

    Attributes
    ----------
    attribute : str
        The attribute with the lowest error, or ``*`` for all others together.
    names : tuple of str
        The known attributes.
    alone : float or None
        The error without copies, if known.
    """

    attribute: str
    shown: Figure
    attack: str
    names: tuple[str, ...]
    alone: float | None

    @property
    def severity(self) -> Severity:
        """Severity of the upper bound."""
        return severity(ceiling(self.shown))

    @property
    def by_copies(self) -> bool:
        """Whether copies remove at least `LITTLE` of the error without copies."""
        return self.alone is None or ceiling(self.shown) < (1 - LITTLE) * self.alone

    @property
    def rank(self) -> int:
        """Rank of the severity if copies contribute, else 0."""
        return self.severity.rank if self.by_copies else 0


class Axis(NamedTuple):
    """One scale of a verdict: 0 exact, 1 no better than without copies.

    Attributes
    ----------
    title, what : str
        Title of the scale, and name of its figures.
    worst, single : str
        Figures of the worst coalition and its best member; ``single`` may be empty.
    alone : bool
        Whether the worst coalition is one copy.
    left, single_left : float
        Positions on the scale.
    blind : str
        Share of right guesses without copies; empty for errors.
    said : str
        Suffix of a figure in text: ``right``.
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
