"""What an expectation is: a statement of a scenario that the audit must prove or refute."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple, TypedDict

from pydantic import Field

from auditor.categorical.neighbours import Drawn
from auditor.containment import contained
from auditor.errors import AuditorError, PluginError
from auditor.registry import Plugin, PluginParameters
from auditor.results import ExpectationRecord, Measurement, Verdict
from auditor.scenario.coalitions import Coalition, parse_coalitions
from auditor.statistics import tail

Names = str | list[str]


class Filter(PluginParameters):
    """Which cells an expectation speaks of; a field left out means all of them."""

    scheme: Names | None = Field(None, description="scheme ids")
    attack: Names | None = Field(None, description="attack ids")
    knowledge: Any = Field(None, description="a state of knowledge, its label or its name, or a list of them")
    coalition: Any = Field(None, description="all, singles, pairs, prefixes, [1, 3] or {first: m}")
    attribute: Names | None = Field(None, description="columns; '*' is all together, the default")
    sweep: dict[str, Any] | None = Field(None, description="values of swept paths")


class NoiseGain(NamedTuple):
    """How much of its best copy's noise a coalition can take off, measured on the noise itself.

    Attributes
    ----------
    share : float
        Squared multiple correlation of the best copy's noise with the differences of the others from it: the share of its variance
        that the best combination of the copies is free of. 0 in law where one copy says all there is.
    regressors, observations : int
        Differences that are not 0, and independent values of noise that the share is measured on.
    """

    share: float
    regressors: int
    observations: int


class Dependence(NamedTuple):
    """The strongest sign that what a copy adds to the best one foretells that one's noise, or the record itself.

    Attributes
    ----------
    best, other : int
        The two copies.
    correlation : float
        ``ρ``, in [−1, 1].
    rows, tests : int
        Rows looked at, and correlations that this is the largest of.
    of_record : bool
        Whether it is the record that is foretold.
    """

    best: int
    other: int
    correlation: float
    rows: int
    tests: int
    of_record: bool

    def p_value(self, margin: float) -> float:
        """Return the p-value against «ρ² is at most the margin», for all of the pair's correlations together (Bonferroni)."""
        bound = math.atanh(math.sqrt(margin))
        found = math.atanh(min(abs(self.correlation), 1.0 - 1e-12))
        return min(1.0, 2.0 * self.tests * tail((found - bound) * math.sqrt(max(self.rows - 3, 0))))


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
        A figure that shows what is off, where the statistic is furthest from its law, and what the law has.
    where : str
        What the figure is of; names copies and attributes.
    """

    statistic: str
    p: float
    tests: int
    rows: int
    observed: float
    expected: float
    where: str


class Look(NamedTuple):
    """What some copies gain over the best of them, from records that look alike to them, whatever the law (``auditor.categorical.alike``).

    Attributes
    ----------
    how : str
        ``patterns`` or ``values``: what counts as alike.
    copies : tuple of int
        A coalition, or three copies of one that is too wide.
    gain, std_error, degrees : float
        The collusion gain of the best attack of any kind, its standard error and degrees of freedom.
    blind : float
        Share of records nothing is known of: each of them might be given away.
    guard : bool
        Whether it can only refute.
    """

    how: str
    copies: Coalition
    gain: float
    std_error: float
    degrees: float
    blind: float
    guard: bool


def averaged(looks: Sequence[Look]) -> Look:
    """Return the mean of the same look in several replicates, which are separate noise."""
    R, first = len(looks), looks[0]
    return Look(
        first.how, first.copies, math.fsum(look.gain for look in looks) / R, math.sqrt(math.fsum(look.std_error**2 for look in looks)) / R,
        math.fsum(look.degrees for look in looks), math.fsum(look.blind for look in looks) / R, any(look.guard for look in looks),
    )  # fmt: skip


@dataclass(frozen=True)
class Pooling:
    """What one coalition gains, judged without trusting the scheme's word.

    Attributes
    ----------
    sufficient : bool or None
        Whether the stated law makes one copy of the coalition say all there is; None when no law is stated.
    gain : tuple of float
        By attribute, collusion gain of the best linear attack learnt from the originals themselves, cross-fitted: nobody without
        the originals can do better with a linear attack. NaN where there are too few rows to learn from.
    std_error : tuple of float
        Standard errors: a jackknife's, and what learning adds to it.
    degrees : int
        Their degrees of freedom.
    noise : NoiseGain or None
        What the measured noise of the copies says, where the law states one shape for all of them.
    looks : tuple of Look
        What records that look alike say of categorical copies.
    dependence : Dependence or None
        The strongest sign that another copy foretells the best one's noise in a way that covariances do not show.
    """

    sufficient: bool | None
    gain: tuple[float, ...]
    std_error: tuple[float, ...]
    degrees: int
    noise: NoiseGain | None = None
    looks: tuple[Look, ...] = ()
    dependence: Dependence | None = None


PairedCell = tuple[str, str, Coalition, str]
"""Knowledge, attack, coalition, attribute."""
PairedGain = tuple[float, float, float]
"""Gain over the coalition's copy with least noise by law, its standard error and degrees of freedom."""


class Facts(TypedDict, total=False):
    """What was found out about a uniform release beyond its cells.

    ``marginal``: for every copy held, its number, level, p-value of the chi-square test, and degrees of freedom; ``drawn``: copies drawn
    between two others.
    """

    marginal: list[tuple[int, float, float, int]]
    drawn: list[Drawn]


@dataclass(frozen=True)
class ReleaseEvidence:
    """One release that was audited: a scheme at a sweep point, in one replicate."""

    sweep: dict[str, Any]
    scheme: str
    plugin: str
    levels: tuple[float, ...]
    replicate: int
    rows: int
    pooling: dict[Coalition, Pooling] = field(default_factory=dict)
    paired: dict[PairedCell, PairedGain] = field(default_factory=dict)
    facts: Facts = field(default_factory=Facts)
    law: list[LawTest] = field(default_factory=list)
    """What was found of the stated law, statistic by statistic; empty where none is stated."""


@dataclass(frozen=True)
class Evidence:
    """All an expectation may look at."""

    measurements: Sequence[Measurement]
    releases: Sequence[ReleaseEvidence]


class Expectation(Plugin):
    """A statement that is proved, refuted or left undecided by the evidence."""

    kind = "expectation"
    needs_pooling: ClassVar[bool] = False
    """Whether the engine must gather ``Pooling`` evidence."""
    needs_metrics: ClassVar[tuple[str, ...]] = ()

    class Parameters(Filter):
        """The filter only."""

    @abstractmethod
    def judge(self, evidence: Evidence) -> Judgement:
        """Return the verdict, with what was observed and why."""

    def record(self, name: str, where: dict[str, Any], evidence: Evidence) -> ExpectationRecord:
        """Return the verdict as results hold it."""
        judged = self.judge(evidence)
        if not isinstance(judged, Judgement) or type(judged.why) is not str:
            raise PluginError("the expectation returned no judgement with a reason")
        return ExpectationRecord(
            expectation=name, where=where, status=judged.status, observed=judged.observed, bound=judged.bound, why=judged.why
        )


class Broken(Expectation):
    """Stands in for an expectation that cannot be made, so that the run finishes the rest and says so."""

    def __init__(self, cls: type[Expectation], parameters: Any, failure: AuditorError) -> None:
        self.name, self.reference = cls.name, cls.reference  # type: ignore[misc]
        self.parameters, self._failure = parameters, failure

    def judge(self, evidence: Evidence) -> Judgement:
        """Raise what was raised then.

        Raises
        ------
        AuditorError
            Always.
        """
        raise self._failure


def made(cls: type[Expectation], parameters: Any) -> Expectation:
    """Return an expectation, or what stands in for one that cannot be made."""
    with contained() as failure:
        return cls(parameters)
    assert failure.error is not None
    return Broken(cls, parameters, failure.error)


@dataclass(frozen=True)
class Judgement:
    """A verdict and its reason."""

    status: Verdict
    why: str
    observed: float | None = None
    bound: float | list[float] | None = None


def worst(statuses: Sequence[Verdict]) -> Verdict:
    """Return ``fails`` if any fails, else ``undecided`` if any is, else ``holds``; nothing to judge is undecided."""
    if "fails" in statuses:
        return "fails"
    return "undecided" if "undecided" in statuses or not statuses else "holds"


Selector = Callable[[Measurement], bool]


def selector(
    filters: Any, metric: str | None, copies: dict[tuple[str, str], int], pooled_only: bool = False, each_attribute: bool = False
) -> Selector:
    """Return the predicate that a filter stands for.

    Parameters
    ----------
    filters : Filter
        The expectation's parameters.
    metric : str or None
        Only this metric.
    copies : dict
        Number of copies released, by (sweep point as text, scheme id): ``all`` means that many.
    pooled_only : bool
        Only coalitions of two copies or more, unless the filter names coalitions itself.
    each_attribute : bool
        Every attribute beside all together, unless the filter names attributes itself.
    """
    coalition = None if filters.coalition is None else parse_coalitions(filters.coalition)
    knowledge = None if filters.knowledge is None else [str(item) for item in listed(filters.knowledge)]
    attributes = listed(filters.attribute) or (None if each_attribute else ["*"])

    def selected(record: Measurement) -> bool:
        return (
            (metric is None or record.metric == metric)
            and (attributes is None or record.attribute in attributes)
            and _among(record.scheme, filters.scheme)
            and _among(record.attack, filters.attack)
            and (knowledge is None or _knows(record.knowledge, knowledge))
            and (filters.sweep is None or all(record.sweep.get(path) == value for path, value in filters.sweep.items()))
            and _coalition_matches(record, coalition, copies, pooled_only)
        )

    return selected


def _coalition_matches(record: Measurement, coalition: Any, copies: dict[tuple[str, str], int], pooled_only: bool) -> bool:
    if coalition is None:
        return len(record.coalition) > 1 or not pooled_only
    return bool(coalition.matches(record.coalition, copies.get((str(record.sweep), record.scheme), 0)))


def copies_released(evidence: Evidence) -> dict[tuple[str, str], int]:
    """Return the number of copies by (sweep point as text, scheme id)."""
    return {(str(release.sweep), release.scheme): len(release.levels) for release in evidence.releases}


def listed(value: Any) -> list[Any]:
    """Return a list of one for a lone value, and an empty one for None."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _among(value: str | None, names: Names | None) -> bool:
    return names is None or value in listed(names)


def _knows(label: str | None, wanted: list[str]) -> bool:
    """A label matches itself, its kind (``estimated``), and any narrower spelling resolved to a label beforehand."""
    return label is not None and (label in wanted or label.partition("(")[0] in wanted)


Share = Annotated[float, Field(gt=0, lt=1)]
