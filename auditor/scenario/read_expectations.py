"""Section ``expect``: expectations and checks of their filters."""

from __future__ import annotations

from typing import Any, NamedTuple

from auditor import registry
from auditor.adversary.knowledge import KINDS, Knowledge
from auditor.errors import did_you_mean
from auditor.field_paths import parse_path
from auditor.parameters import shown
from auditor.results import metrics
from auditor.scenario.fields import optional_list, split
from auditor.scenario.model import ExpectationUse, Measure, UtilityUse
from auditor.scenario.problems import Path, Problems
from auditor.scenario.read_coalitions import parse_coalitions
from auditor.scenario.read_knowledge import KnowledgeError, parse_knowledge
from auditor.scenario.read_plugins import id_of, plugin_parameters

REMEDIES = {
    "utility": "is not measured; give the section `utility:`",
    "bounds": "are not stated; say under `data:` by how much one record may change, as `bounds: {age: [0, 120]}`",
}


class Audited(NamedTuple):
    """Valid values of filters; None if they change along a sweep.

    Attributes
    ----------
    ids : dict
        Ids of schemes and attacks, including entries with errors.
    knowledge : list of str or None
        Labels.
    measures : set of str
        Requested measures and sections.
    sweep : dict
        Swept paths and their values.
    """

    ids: dict[str, list[str] | None]
    knowledge: list[str] | None
    measures: set[str]
    sweep: dict[str, list[Any]]

    @classmethod
    def of(
        cls,
        fields: dict[str, Any],
        knowledge: tuple[Knowledge, ...],
        measures: tuple[Measure, ...],
        utility: UtilityUse | None,
        sweep: dict[str, list[Any]],
    ) -> Audited:
        """Return the valid values of a scenario's filters."""
        swept = [parse_path(path) for path in sweep]
        ids: dict[str, list[str] | None] = {}
        for field in ("scheme", "attack"):
            items = fields.get(f"{field}s")
            named = [id_of(item) for item in (items if isinstance(items, list) else [items])]
            moving = any(
                path[0] == f"{field}s" and (len(path) <= 2 or path[-1] in ("id", "name"))
                for path in swept
            )
            ids[field] = None if moving else [name for name in named if name is not None]
        labels = (
            None
            if any(path[0] == "knowledge" for path in swept)
            else [state.label for state in knowledge]
        )
        # closeness is measured where an expectation needs it
        measured = {"closeness", *(measure.name for measure in measures)} | (
            {"utility"} if utility is not None else set()
        )
        data = fields.get("data")
        stated = (isinstance(data, dict) and data.get("bounds")) or any(
            path[:2] == ("data", "bounds") for path in swept
        )
        return cls(ids, labels, measured | ({"bounds"} if stated else set()), sweep)


def read_expectations(
    fields: dict[str, Any], problems: Problems, audited: Audited
) -> tuple[ExpectationUse, ...]:
    """Return the section ``expect`` without invalid entries; report errors."""
    items = optional_list(fields, "expect", problems)
    uses = [
        _expectation(("expect", place), item, problems, audited) for place, item in enumerate(items)
    ]
    return tuple(use for use in uses if use is not None)


def _expectation(
    path: Path, item: Any, problems: Problems, audited: Audited
) -> ExpectationUse | None:
    name, where = split(item)
    if not isinstance(name, str):
        problems.add(
            path,
            f"must be one expectation, as `no-collusion-gain: {{scheme: corner-wave}}`; got {shown(item)}",
        )
        return None
    place = path if isinstance(item, str) or "name" in item else (*path, name)
    cls, fixed = _expectation_class(name)
    if cls is None:
        known = [*registry.spellings("expectation"), *metrics.METRICS]
        problems.add(
            place,
            f"is not a known expectation or metric{_got(item)}{did_you_mean(name, known)}",
            key=True,
        )
        return None
    where = {} if where is None else where
    if not isinstance(where, dict):
        problems.add(place, f"must be a mapping of filters and bounds; got {shown(where)}")
        return None
    before = len(problems.found)
    _check_filters(place, where, problems, audited)
    resolved = _resolve_filters(place, where, problems, audited)
    if isinstance(resolved.get("metric"), str):
        resolved["metric"] = metrics.RENAMED.get(resolved["metric"], resolved["metric"])
    parameters = plugin_parameters(place, resolved | fixed, cls.Parameters, (), problems)
    if parameters is not None and len(problems.found) == before:
        expectation = cls.made(parameters)
        _check_metrics(place, where, expectation, problems, audited)
        return ExpectationUse(name, expectation, where, int(path[1]))
    return None


def _got(item: Any) -> str:
    return f": {shown(item)}" if isinstance(item, str) else ""


def _expectation_class(name: str) -> tuple[Any, dict[str, Any]]:
    if registry.has("expectation", name):
        return registry.get("expectation", name), {}
    if metrics.is_metric(metrics.canonical(name)):
        return registry.get("expectation", "metric"), {"metric": metrics.canonical(name)}
    return None, {}


def _check_metrics(
    path: Path, where: dict[str, Any], expectation: Any, problems: Problems, audited: Audited
) -> None:
    named = getattr(expectation.parameters, "metric", None)
    if isinstance(where.get("metric"), str) and not metrics.is_metric(str(named)):
        problems.add(
            (*path, "metric"),
            f"is not a known metric: {named!r}{did_you_mean(named, metrics.METRICS)}",
        )
        return
    for metric in {*expectation.needs_metrics, *([named] if isinstance(named, str) else [])}:
        measure = metrics.measured_by(metric)
        if measure is not None and measure not in audited.measures:
            problems.add(
                path,
                f"needs {measure}, which {REMEDIES.get(measure, 'is not measured; add it under `measures:`')}",
            )


def _check_filters(path: Path, where: dict[str, Any], problems: Problems, audited: Audited) -> None:
    for field, known in audited.ids.items():
        wanted = where.get(field)
        for name in wanted if isinstance(wanted, list) else [wanted]:
            if name is not None and known and name not in known:
                hint = did_you_mean(name, set(known))
                problems.add(
                    (*path, field), f"names no {field} of this scenario: {shown(name)}{hint}"
                )
    swept = where.get("sweep")
    for key, value in swept.items() if isinstance(swept, dict) else ():
        if key not in audited.sweep:
            problems.add(
                (*path, "sweep", key),
                f"is not swept in this scenario{did_you_mean(key, audited.sweep)}",
                key=True,
            )
        elif value not in audited.sweep[key]:
            problems.add((*path, "sweep", key), f"is not among the values swept: {shown(value)}")


def _resolve_filters(
    path: Path, where: dict[str, Any], problems: Problems, audited: Audited
) -> dict[str, Any]:
    """Return filters with knowledge as labels, and check the coalition."""
    resolved = dict(where)
    if where.get("coalition") is not None:
        problems.attempt((*path, "coalition"), parse_coalitions, where["coalition"])
    if where.get("knowledge") is not None:
        items = where["knowledge"] if isinstance(where["knowledge"], list) else [where["knowledge"]]
        resolved["knowledge"] = [
            _knowledge_label((*path, "knowledge"), item, problems, audited.knowledge)
            for item in items
        ]
    return resolved


def _knowledge_label(path: Path, item: Any, problems: Problems, known: list[str] | None) -> str:
    """Return the label of a filter's label, bare kind or scenario entry."""
    if isinstance(item, str) and item.partition("(")[0] in KINDS:
        label = item
    else:
        try:
            label = parse_knowledge(item).label
        except KnowledgeError as error:
            for place, message in error.problems:
                problems.add((*path, *place), message)
            return ""
    if known and label not in known and label not in {other.partition("(")[0] for other in known}:
        problems.add(
            path, f"names no knowledge of this scenario: {shown(label)}{did_you_mean(label, known)}"
        )
    return label
