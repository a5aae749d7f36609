"""Base of expectations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Annotated, Any, ClassVar

from pydantic import Field

from auditor import registry
from auditor.base import AuditorError, PluginError
from auditor.base.types import Options, Plain, frozen
from auditor.process.containment import OURS, contained
from auditor.registry import Plugin, PluginParameters
from auditor.results.records import (
    VERDICTS,
    Evidence as Evidence,
    ExpectationRecord,
    Measurement,
    ReleaseEvidence,
    Verdict,
    cells,
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
        every = kinds | {"each_attribute": True}  # by attribute only
        found = self.chosen(evidence, metric, **kinds) or self.chosen(evidence, metric, **every)
        return [*cells(found).values()]

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


ALWAYS = "noise-follows-law"
"""The expectation of every audit; it is in the results only if it fails."""
IMPLICIT_LEVEL = 1e-4
"""Its level over all schemes: one false alarm in ten thousand audits of honest noise."""


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
    expected = registry.get("expectation", ALWAYS)
    asked = [use.expectation.parameters for use in uses if use.name == ALWAYS]
    whole = [each for each in asked if each.sweep is None]
    schemes = list(dict.fromkeys(release.scheme for release in evidence.releases))
    for scheme in schemes:
        if any(each.scheme is None or scheme in listed(each.scheme) for each in whole):
            continue
        expectation = expected(scheme=scheme, level=IMPLICIT_LEVEL / len(schemes))
        record = _judged(ExpectationUse(ALWAYS, expectation, {"scheme": scheme}), evidence)
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
