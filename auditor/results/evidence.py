"""What an audit hands to those who judge it: measurements, and beside them what was found of pooling and of the noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from typing_extensions import TypedDict

from auditor.numerics.statistics import one_sided
from auditor.results.codec import Pairs
from auditor.results.records import ExpectationRecord, Measurement
from auditor.types import Coalition

Selector = Callable[[Measurement], bool]


class NoiseGain(NamedTuple):
    """How much of its best copy's noise a coalition can take off, measured on the noise itself.

    Attributes
    ----------
    share : float
        Squared multiple correlation of the best copy's noise with the differences of the others
        from it: the share of its variance that the best combination of the copies is free of. 0 in
        law where one copy says all there is.
    regressors, observations : int
        Differences that are not 0, and independent values of noise that the share is measured on.
    """

    share: float
    regressors: int
    observations: int


class InsiderGain(NamedTuple):
    """Gain of a learner that was fitted to the originals, in rows that were held out.

    Gathered by ``auditor.audit.insider.gain``.

    Attributes
    ----------
    best : int
        The copy with the least noise, which the gain is over.
    copies : tuple of int
        Copies measured: of the coalition, or of a wider one with the same best copy.
    correlation, std_error, degrees : tuple of float
        By attribute, of what other copies add to the prediction with what the best copy leaves
        unknown: 0 on average of lawful copies.
    rows : int
        Rows that were fitted to and judged.
    """

    best: int
    copies: Coalition
    correlation: tuple[float, ...]
    std_error: tuple[float, ...]
    degrees: tuple[float, ...]
    rows: int

    @property
    def gain(self) -> tuple[float, ...]:
        """Share of the best copy's error that is taken off, by attribute."""
        return tuple(max(r, 0.0) ** 2 for r in self.correlation)

    def p_values(self, place: int, margin: float) -> tuple[float, float]:
        """Return p-values of one attribute against «the gain is at least the margin» and «the gain is at most the margin»."""
        r, bound, error, degrees = (
            self.correlation[place],
            math.sqrt(margin),
            self.std_error[place],
            self.degrees[place],
        )
        return one_sided(r, bound, error, degrees), one_sided(-r, -bound, error, degrees)

    def p_value(self, bound: float) -> float:
        """Return the p-value against «no attribute's gain is above the bound» (Bonferroni over attributes)."""
        return min(
            1.0,
            len(self.gain) * min(self.p_values(place, bound)[1] for place in range(len(self.gain))),
        )


LAST_DIGITS = "last digits"
"""The statistic that looks at how copies from files were rounded, and nothing else."""


class LawTest(NamedTuple):
    """One statistic of the noise that was drawn, or of the values that were replaced, against the law that the scheme states.

    Attributes
    ----------
    statistic : str
        Which.
    p : float
        The least p-value of its tests, times their number (Bonferroni), at most 1.
    tests, rows : int
        How many tests, and of how many rows.
    observed, expected : float
        A figure that shows what is off, where the statistic is furthest from its law, and what the
        law has.
    where : str
        What the figure is of; names copies and attributes.
    telling : float
        By how many deviations over √rows a departure of size 1 moves the tests: 1 of a correlation,
        √2 of a complex one.
    departure : str
        What has a size.
    """

    statistic: str
    p: float
    tests: int
    rows: int
    observed: float
    expected: float
    where: str
    telling: float = 1.0
    departure: str = "a correlation"


@dataclass(frozen=True)
class Pooling:
    """What one coalition gains, judged without trusting the scheme's word.

    Attributes
    ----------
    sufficient : bool or None
        Whether the stated law makes one copy of the coalition say all there is, or the classes that
        copies show; None where there is neither.
    noise : NoiseGain or None
        What the measured noise of the copies says, where the law states one shape for all of them.
    unresolved : bool
        Whether some combination of the copies is lost in second moments, so that what it gives away
        is unknown.
    by_classes : bool
        Whether ``sufficient`` is seen on classes and ranges, and so speaks of attacks that read
        these.
    insider : InsiderGain or None
        Gain of the insider learner.
    """

    sufficient: bool | None
    noise: NoiseGain | None = None
    unresolved: bool = False
    insider: InsiderGain | None = None
    proved: bool = True
    by_classes: bool = False

    @property
    def proof(self) -> bool:
        """Whether a law proves, for every attack, that one copy says all there is, if it is what the noise was drawn by."""
        return self.proved and self.sufficient is not None


PairedCell = tuple[str, str, Coalition, str]
"""Knowledge, attack, coalition, attribute."""
PairedGain = tuple[float, float, float]
"""Gain over the coalition's copy with least noise by law, its standard error and degrees of
freedom."""


class Facts(TypedDict, total=False):
    """What was found out about a release beyond its cells.

    ``marginal``: for every copy held, its number, level, p-value of the chi-square test, and
    degrees of freedom; ``drawn``: copies drawn between two others.

    ``fitted``: of copies whose law is estimated from themselves, numbers that were fitted for each
    attribute over rows: by so much of an error that law may flatter an attack.

    ``told``: attacks, each with its knowledge, that were told which values the table has: more than
    moments and copies say.
    """

    fitted: float
    told: list[tuple[str, str]]
    marginal: list[tuple[int, float, float, int]]
    drawn: list[Drawn]


@dataclass(frozen=True)
class ReleaseEvidence:
    """One release that was audited: a scheme at a sweep point, in one replicate."""

    sweep: dict[str, Any]
    scheme: str
    plugin: str
    copies: int
    replicate: int
    rows: int
    pooling: Pairs[Coalition, Pooling] = field(default_factory=dict)
    paired: Pairs[PairedCell, PairedGain] = field(default_factory=dict)
    facts: Facts = field(default_factory=Facts)
    law: list[LawTest] = field(default_factory=list)
    """What was found of the stated law, statistic by statistic; empty where none is stated."""
    notes: tuple[str, ...] = ()
    """What a reader must know of records and columns that were left out."""
    understated: bool = False
    """Whether some of these are less perturbed than what was audited."""

    @property
    def from_files(self) -> bool:
        """Whether its copies come from files, so that no law of theirs is proof of what pooling buys."""
        return any(not pooling.proved for pooling in self.pooling.values())


@dataclass(frozen=True)
class Evidence:
    """All an expectation may look at."""

    measurements: Sequence[Measurement]
    releases: Sequence[ReleaseEvidence]


class Drawn(NamedTuple):
    """One copy between two others, over the records where these two agree.

    Attributes
    ----------
    copy : int
        Its number.
    heads, tails : float
        ``u`` and ``v`` of xiao2009, eqs. 3 and 4, first cases.
    kept : float
        Chance that the new value is the neighbours': ``u + v + (1 − u − v)/s``.
    agreeing, same : int
        Records where the neighbours agree, and those of them where the new copy agrees too.
    """

    copy: int
    heads: float
    tails: float
    kept: float
    agreeing: int
    same: int


class Statement(Protocol):
    """What judges evidence: an expectation plugin, as far as a scenario and a run need to know it."""

    parameters: Any
    """Its checked parameters."""

    def __init__(self, parameters: Any) -> None:
        """Take checked parameters."""

    @property
    def name(self) -> str:
        """Its registered name."""

    @property
    def reference(self) -> str:
        """Where it comes from."""

    @property
    def needs_pooling(self) -> bool:
        """Whether it asks what pooling buys."""

    @property
    def needs_closeness(self) -> bool:
        """Whether close guesses and median errors must be measured."""

    def record(self, name: str, where: dict[str, Any], evidence: Evidence) -> ExpectationRecord:
        """Return its verdict."""


FITTED = "fitted-to-originals"
"""Name of the insider attack on copies without a law."""
SAME = 1e-11
"""A gain smaller than this is rounding: the coalition's estimate is its best copy's, come by in
another order of sums."""
ROW_REDRAWS = 9
"""Of whole releases, for attacks that need rows; Student's t on 8 degrees of freedom is 18 % wider
than the normal."""
