"""Base of expectations, and those on the law that noise and replacements follow."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from operator import itemgetter
from typing import Annotated, Any, ClassVar

from pydantic import Field, PositiveFloat

from auditor.base import AuditorError, PluginError, scipy
from auditor.base.types import Options, Plain, frozen
from auditor.numerics.statistics import holm
from auditor.process.containment import OURS, contained
from auditor.registry import Plugin, PluginParameters, register
from auditor.results.records import (
    LAST_DIGITS,
    VERDICTS,
    Evidence as Evidence,
    ExpectationRecord,
    LawTest,
    Measurement,
    ReleaseEvidence,
    Verdict,
    cells,
    describe,
)
from auditor.scenario.model import ExpectationUse
from auditor.scenario.read_plugins import parse_coalitions
from auditor.scenario.yaml_document import Places

Names = str | list[str]
Cell = Sequence[Measurement]
"""One cell: the records of its replicates."""
Place = tuple[str, str]
"""Sweep point as text, and scheme id."""
Selector = Callable[[Measurement], bool]


class Filter(PluginParameters):
    """The cells that an expectation covers; an absent field covers all."""

    scheme: Names | None = None
    """scheme ids"""
    attack: Names | None = None
    """attack ids"""
    knowledge: Any = None
    """a state of knowledge, its label or its name, or a list of them"""
    coalition: Any = None
    """all, singles, pairs, prefixes, [1, 3] or {first: m}"""
    attribute: Names | None = None
    """columns; '*' is all together, the default"""
    sweep: Plain | None = None
    """values of swept paths"""


class Expectation(Plugin):
    """A statement that the evidence proves, refutes or leaves undecided."""

    kind = "expectation"
    needs_pooling: ClassVar[bool] = False
    """Whether the engine must gather ``Pooling`` evidence."""
    needs_closeness: ClassVar[bool] = False
    """Whether ``close`` and ``median_error_ratio`` must be measured."""
    grouped_by: str | None = None
    """Column of the data whose groups of records are judged, too."""
    needs_metrics: ClassVar[tuple[str, ...]] = ()
    """Metrics that must be measured, beside the one that a parameter ``metric`` names."""

    class Parameters(Filter):
        """The filter only."""

    @classmethod
    def made(cls, parameters: Any) -> Expectation:
        """Expectation, or a substitute if its parameters fail."""
        with contained() as failure:
            return cls(parameters)
        assert failure.error is not None
        return Broken(cls, parameters, failure.error)

    @abstractmethod
    def judge(self, evidence: Evidence) -> Judgement:
        """Verdict with its reason."""

    def admits(self, evidence: Evidence, metric: str | None, **kinds: bool) -> Selector:
        """Predicate of the filter; see ``selector``."""
        return selector(self.parameters, metric, copies_released(evidence), **kinds)

    def chosen(self, evidence: Evidence, metric: str | None, **kinds: bool) -> list[Measurement]:
        """Measured records that the filter selects."""
        selected = self.admits(evidence, metric, **kinds)
        return [r for r in evidence.measurements if r.status == "ok" and selected(r)]

    def measured(self, evidence: Evidence, metric: str, **kinds: bool) -> list[Cell]:
        return [*cells(self.chosen(evidence, metric, **kinds)).values()]

    def covered(self, evidence: Evidence) -> list[ReleaseEvidence]:
        """Releases that the filter covers."""
        return [one for one in evidence.releases if self.covers(one.scheme, one.sweep)]

    def covers(self, scheme: str, point: Options) -> bool:
        """Whether the filter covers a scheme at a sweep point."""
        return covers(self.parameters, scheme, point)


class Broken(Expectation):
    """Substitute for an expectation whose parameters fail."""

    def __init__(self, cls: type[Expectation], parameters: Any, failure: AuditorError) -> None:
        self.name, self.reference = cls.name, cls.reference  # type: ignore[misc]
        self.parameters, self._failure = parameters, failure

    def judge(self, evidence: Evidence) -> Judgement:
        """Raise the error that its parameters raised."""
        raise self._failure


@frozen
class Judgement:
    """A verdict and its reason."""

    status: Verdict
    why: str
    observed: float | None = None
    bound: float | list[float] | None = None


def worst(statuses: Sequence[Verdict]) -> Verdict:
    """Worst status; ``undecided`` without any."""
    return min(statuses, key=VERDICTS.index, default="undecided")


def selector(
    filters: Any,
    metric: str | None,
    copies: Mapping[Place, int],
    pooled_only: bool = False,
    each_attribute: bool = False,
) -> Selector:
    """Predicate of a filter.

    Parameters
    ----------
    filters : Filter
        The expectation's parameters.
    metric : str or None
        Only this metric.
    copies : dict
        Number of copies released, for ``all``.
    pooled_only : bool
        Only pooled copies, unless the filter names coalitions.
    each_attribute : bool
        Every attribute and all together, unless filtered.
    """
    coalition = None if filters.coalition is None else parse_coalitions(filters.coalition)
    knowledge = [str(item) for item in listed(filters.knowledge)]
    attributes = listed(filters.attribute) or ([] if each_attribute else ["*"])

    def pooled(record: Measurement) -> bool:
        if coalition is None:
            return len(record.coalition) > 1 or not pooled_only
        return bool(coalition.matches(record.coalition, copies.get(place(record), 0)))

    def selected(record: Measurement) -> bool:
        label = str(record.knowledge)
        return (
            metric in (None, record.metric)
            and (not attributes or record.attribute in attributes)
            and covers(filters, record.scheme, record.sweep)
            and _among(record.attack, filters.attack)
            and (
                filters.knowledge is None
                or label in knowledge
                or label.partition("(")[0] in knowledge
            )
            and pooled(record)
        )

    return selected


def covers(filters: Any, scheme: str, point: Options) -> bool:
    """Whether a filter covers a scheme at a sweep point."""
    sweep = getattr(filters, "sweep", None) or {}
    return _among(scheme, getattr(filters, "scheme", None)) and all(
        point.get(path) == value for path, value in sweep.items()
    )


def place(one: Measurement | ReleaseEvidence) -> Place:
    """Sweep point and scheme of a record or release."""
    return str(one.sweep), one.scheme


FIELDS = "sweep", "scheme", "knowledge", "attack", "coalition", "attribute"


def identity(record: Measurement, *others: str) -> tuple[str, ...]:
    """Fields of a record's cell, as text, without some."""
    return tuple(str(getattr(record, field)) for field in FIELDS if field not in others)


def copies_released(evidence: Evidence) -> dict[Place, int]:
    """Number of copies of each scheme."""
    return {place(release): release.copies for release in evidence.releases}


def listed(value: Any) -> list[Any]:
    """A value as a list; None as an empty one."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _among(value: str | None, names: Names | None) -> bool:
    return names is None or value in listed(names)


Share = Annotated[float, Field(gt=0, lt=1)]


Missing = Sequence[tuple[str, Options]]
"""Scheme and sweep point of each task that was not finished."""


def undecided(record: ExpectationRecord, expectation: Any, missing: Missing) -> ExpectationRecord:
    """Verdict if some tasks are missing.

    Undecided even if finished tasks refute the claim: tests are corrected for all cells.

    Parameters
    ----------
    record : ExpectationRecord
        On the finished tasks.
    expectation : Expectation
        With the tasks it covers by ``scheme`` and ``sweep``.
    """
    lacking = sum(expectation.covers(*task) for task in missing)
    if not lacking:
        return record
    tasks = "1 task that it covers is" if lacking == 1 else f"{lacking} tasks that it covers are"
    so_far = f"; so far: {record.status}: {record.why}" if record.status != "undecided" else ""
    return record.model_copy(
        update={"status": "undecided", "why": f"the audit was stopped: {tasks} missing{so_far}"}
    )


IMPLICIT_LEVEL = 1e-4
"""Level of ``noise-follows-law`` over all schemes, in every audit: one false alarm in ten thousand
audits of honest noise."""


def judge(
    uses: Sequence[ExpectationUse], places: Places, evidence: Evidence, missing: Missing = ()
) -> list[ExpectationRecord]:
    """Verdict on every expectation; undecided if it covers missing tasks."""
    found = []
    for use in uses:
        record = undecided(_judged(use, evidence), use.expectation, missing)
        line = places.problem(("expect", use.place), "").line
        found.append(record.model_copy(update={"line": line}))
    # every audit expects noise to follow its law: schemes that fail, unless already judged
    always = NoiseFollowsLaw.name
    asked = [use.expectation.parameters for use in uses if use.name == always]
    whole = [each for each in asked if each.sweep is None]
    schemes = list(dict.fromkeys(release.scheme for release in evidence.releases))
    for scheme in schemes:
        if any(each.scheme is None or scheme in listed(each.scheme) for each in whole):
            continue
        expectation = NoiseFollowsLaw(scheme=scheme, level=IMPLICIT_LEVEL / len(schemes))
        record = _judged(ExpectationUse(always, expectation, {"scheme": scheme}), evidence)
        found += [undecided(record, expectation, missing)] if record.status == "fails" else []
    return found


def _judged(use: ExpectationUse, evidence: Evidence) -> ExpectationRecord:
    """Verdict; an expectation that fails to judge is undecided."""
    if type(use.expectation).__module__.partition(".")[0] not in OURS:
        evidence = deepcopy(evidence)  # writes of a plugin must not reach the results
    with contained() as failure:
        judged = use.expectation.judge(evidence)
        if not isinstance(judged, Judgement) or type(judged.why) is not str:
            raise PluginError("the expectation returned no judgement with a reason")
    if failure.error is not None:
        judged = Judgement("undecided", f"could not be judged: {failure.reason}")
    return ExpectationRecord(
        expectation=use.name,
        where=use.where,
        status=judged.status,
        observed=judged.observed,
        bound=judged.bound,
        why=judged.why,
        failed=failure.error is not None,
    )


# -- noise and replacements follow their law, and so its guarantees --------------------------------

LEVEL = 1e-4
"""Chance of one false contradiction: a false alarm costs an honest release its verdict."""
OF_ONE_COLUMN = ("distribution", "moments", "sizes near 0", "periods")
"""Statistics of numbers that compare no column with another one."""
COUNTS = ("retention", "transitions")
"""Statistics of categories that count values of single copies."""
FALSE_ALARM = 0.01
SYMBOL = {"epsilon": "ε", "gaussian_dp": "μ"}
"""Guarantees that are compared: the first that is exact for the noise."""
ROUNDING = 1e-9

Tests = Sequence[tuple[ReleaseEvidence, LawTest]]


@register
class NoiseFollowsLaw(Expectation):
    """The drawn noise follows its stated law, by all law tests (Holm).

    Part of every audit. The tests are `auditor.audit.law_tests`, for numbers and categories. Each
    has one p-value for all its comparisons. Holm's step-down over all tests keeps the chance of one
    false «fails» at ``level``.
    """

    name = "noise-follows-law"
    reference = "rosenblatt1952; holm1979; laurent2000; massart1990"

    class Parameters(Filter):
        """The filter (scheme and sweep count), the level and the resolution."""

        level: Share = LEVEL
        """chance of one false «fails», over everything it tests"""
        resolution: Share = 0.1
        """undecided while a correlation, or a share kept of what is to be redrawn, could hide"""
        last_digits: bool = True
        """whether doubles in files may not tell of originals by how they were rounded; false: that they do is accepted"""

    def judge(self, evidence: Evidence) -> Judgement:
        """Verdict over every release that the filter covers.

        Observed and bounded is the least p-value after Holm's correction.
        """
        covered, p = self.covered(evidence), self.parameters
        tests = _tests(covered, self.tested)
        if not tests:
            return Judgement(
                "undecided",
                "no release covered states a law of its noise, or none has rows enough to test",
            )
        least, wrong, finding = _least_likely(tests, p.level)
        if wrong:
            return Judgement(
                "fails",
                f"{wrong} of {len(tests)} statistics contradict the stated law; {finding}",
                least,
                p.level,
            )
        silent = sum(not release.law for release in covered if release.replicate == 1)
        if silent:
            why = f"{silent} of {len(covered)} releases covered state no law, or have too few rows to test it"
            return Judgement("undecided", why, least, p.level)
        count = sum(test.tests for _, test in tests)
        hidden, departure = max(
            ((_could_hide(test, p.level / len(tests)), test.departure) for _, test in tests),
            key=itemgetter(0),
        )
        if hidden > p.resolution:
            why = f"{departure} of {hidden:.2g} could hide in so few rows ({min(test.rows for _, test in tests):,}); add rows"
            return Judgement("undecided", why, least, p.level)
        why = f"{len(tests)} statistics ({count:,} tests) agree with the stated law; {departure} of {hidden:.2g} would show"
        return Judgement("holds", f"{why}; the least likely is {finding}", least, p.level)

    def tested(self, statistic: str) -> bool:
        """Whether a statistic matters."""
        return statistic != LAST_DIGITS or bool(self.parameters.last_digits)


def contradiction(releases: Sequence[ReleaseEvidence]) -> str:
    """Finding against independent noise at ``LEVEL``, else "".

    Independent increments of any distribution protect, so tests of single columns do not count.
    """
    tests = _tests(releases, lambda statistic: statistic not in OF_ONE_COLUMN)
    _, wrong, finding = _least_likely(tests, LEVEL) if tests else (1.0, 0, "")
    return finding if wrong else ""


def _tests(releases: Iterable[ReleaseEvidence], tested: Callable[[str], bool]) -> Tests:
    return [
        (release, test) for release in releases for test in release.law if tested(test.statistic)
    ]


def _least_likely(tests: Tests, level: float) -> tuple[float, int, str]:
    """Least adjusted p-value, number of refuted laws, and the finding."""
    adjusted = holm([test.p for _, test in tests])
    place = min(range(len(tests)), key=lambda k: (adjusted[k], tests[k][1].p))
    release, test = tests[place]
    figure = f"{test.where} {test.observed:.4g}, by law {test.expected:.4g}"
    finding = (
        f"{test.statistic} of {release.scheme}: {figure} (p = {test.p:.2g}, {test.rows:,} rows)"
    )
    return adjusted[place], sum(p <= level for p in adjusted), finding


def _could_hide(test: LawTest, level: float) -> float:
    reach = -float(scipy.special.ndtri(level / (2.0 * max(test.tests, 1))))
    return reach / (test.telling * math.sqrt(test.rows))


@register
class NeighbourCoin(Expectation):
    """A middle copy keeps its neighbours' value as xiao2009, eqs. 3 and 4.

    On records where the neighbours agree, the new copy has their value with probability
    ``u + v + (1 − u − v)/s``, by an exact binomial test.
    """

    name = "neighbour-coin"
    aliases = ("multi-pert-coin",)
    reference = "xiao2009, eqs. 3 and 4"

    class Parameters(Filter):
        """The filter (scheme and sweep count), the copy, and the chances."""

        copy_number: int = Field(alias="copy", ge=1)
        """the copy's number"""
        heads: float = Field(ge=0, le=1)
        """u: chance to keep the less perturbed neighbour's value"""
        tails: float = Field(ge=0, le=1)
        """v: chance to take the more perturbed neighbour's"""
        tolerance: PositiveFloat = 0.0005
        """how far heads and tails may be off, as they are rounded"""

    def judge(self, evidence: Evidence) -> Judgement:
        p = self.parameters
        drawn = [
            coin
            for release in self.covered(evidence)
            for coin in release.facts.get("drawn", ())
            if coin.copy == p.copy_number
        ]
        if not drawn:
            return Judgement(
                "undecided",
                f"copy {p.copy_number} is not drawn between two others in any release covered",
            )
        exact = scipy.stats.binomtest  # takes a second to import
        tests = holm(
            [
                exact(one.same, one.agreeing, one.kept).pvalue if one.agreeing else 1.0
                for one in drawn
            ]
        )
        verdicts: list[Verdict] = []
        for coin, q in zip(drawn, tests, strict=True):
            off = max(abs(coin.heads - p.heads), abs(coin.tails - p.tails))
            wrong = off > p.tolerance or q <= FALSE_ALARM
            verdicts.append("fails" if wrong else "holds" if coin.agreeing else "undecided")
        coin = drawn[0]
        share = coin.same / max(1, coin.agreeing)
        return Judgement(
            worst(verdicts),
            f"u = {coin.heads:.4g}, v = {coin.tails:.4g}; of {coin.agreeing:,} records on which the neighbours agree {share:.4f} keep "
            f"their value, theory {coin.kept:.4f} (p = {min(tests):.2g})",
            share,
            coin.kept,
        )


@register
class MarginalIsUniform(NoiseFollowsLaw):
    """Every copy follows uniform perturbation at its level (exact counts, Holm).

    Every copy, given the original, is compared with ``T(p)`` (xiao2009, eq. 1 and Theorem 2), or
    with the stated replacements.
    """

    name = "marginal-is-uniform"
    reference = "xiao2009, Theorem 2; hoeffding1956"

    class Parameters(Filter):
        """The filter (scheme and sweep count), the level and the resolution."""

        level: Share = 0.01
        """chance that a true claim is refuted, over everything covered"""
        resolution: Share = 0.5
        """undecided while a larger share kept of what is to be redrawn could hide"""

    def covered(self, evidence: Evidence) -> list[ReleaseEvidence]:
        """Covered releases of categories with a law."""
        return [each for each in super().covered(evidence) if _tests([each], self.tested)]

    def tested(self, statistic: str) -> bool:
        """Whether a statistic counts values that are kept or replaced."""
        return statistic in COUNTS


def as_drawn(
    judged: Judgement, metric: str, high: float | None, filters: Filter, evidence: Evidence
) -> Judgement:
    """Verdict that holds by law, revised by the noise that was drawn.

    An audited lower bound above the allowed value refutes the guarantee. If the noise does not follow
    the law (``noise-follows-law``), the guarantee is undecided.
    """
    selected = selector(filters, f"empirical_{metric}", copies_released(evidence))
    found = [(r.value or 0.0, r) for r in evidence.measurements if selected(r)]
    value, most = max(found, key=itemgetter(0), default=(0.0, None))
    if most is not None and high is not None and value > high:
        why = f"the law states less, but copies that were drawn tell records apart: {most.metric} {value:.4g} ({most.scheme})"
        return Judgement("fails", why, value, judged.bound)
    law = NoiseFollowsLaw(scheme=filters.scheme, sweep=filters.sweep).judge(evidence)
    if law.status != "fails":
        return judged
    why = f"the law would hold to it, but the noise that was drawn does not follow that law: {law.why}"
    return Judgement("undecided", why, judged.observed, judged.bound)


def by_guarantees(records: Iterable[Measurement]) -> Judgement | None:
    """Verdict on the guarantees of coalitions, or None without pairs.

    Figures that are only upper bounds (their ``reason`` says so) are left out, since a coalition's
    bound may be looser than one copy's. So are single copies without a guarantee.
    """
    found = {
        (r.metric, str(r.sweep), r.scheme, r.replicate, r.coalition): r.value
        for r in records
        if r.metric in SYMBOL and r.status == "ok" and r.value is not None
        if r.reason is None or math.isinf(r.value)
    }
    pairs: dict[tuple[object, ...], tuple[float, str]] = {}
    for metric, symbol in SYMBOL.items():
        for (name, *where, copies), pooled in found.items():
            alone = [
                (found[key], copy) for copy in copies if (key := (name, *where, (copy,))) in found
            ]
            if name != metric or not len(alone) == len(copies) > 1:
                continue
            best, copy = max(alone, key=itemgetter(0))
            if math.isfinite(best):
                held = f"{symbol} is {_number(pooled)} for copies {describe(copies)} of {where[1]}"
                worse = pooled / max(best, ROUNDING) if pooled > best * (1.0 + ROUNDING) else 0.0
                pairs.setdefault(
                    (*where, copies), (worse, f"{held}, and {_number(best)} for copy {copy} alone")
                )
    if not pairs:
        return None
    worst_first = sorted(pairs.values(), key=itemgetter(0), reverse=True)
    if count := sum(ratio > 0.0 for ratio, _ in worst_first):
        more = f", and so in {count - 1} more" if count > 1 else ""
        return Judgement("fails", f"by guarantee: {worst_first[0][1]}{more}")
    which = "the one coalition's is" if len(pairs) == 1 else f"each of {len(pairs)} coalitions' is"
    return Judgement("holds", f"by guarantee: {which} that of its best copy alone")


def _number(value: float) -> str:
    return "infinite" if math.isinf(value) else f"{value:.4g}"
