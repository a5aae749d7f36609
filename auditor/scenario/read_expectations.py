"""Section ``expect``: expectations and checks of their filters."""

from __future__ import annotations

from typing import Any, NamedTuple

from auditor import registry
from auditor.adversary.knowledge import KINDS, Knowledge
from auditor.base.errors import did_you_mean
from auditor.registry.field_paths import parse_path
from auditor.registry.parameters import Path, shown
from auditor.results import metrics
from auditor.results.evidence import FITTED
from auditor.scenario.model import ExpectationUse, Measure, UtilityUse
from auditor.scenario.problems import Problems, split
from auditor.scenario.read_knowledge import parse_knowledge
from auditor.scenario.read_plugins import id_of, parse_coalitions

REMEDIES = {
    "utility": "is not measured; give the section `utility:`",
    "bounds": "are not stated; say under `data:` by how much one record may change, as `bounds: {age: [0, 120]}`",
}


class Audited(NamedTuple):
    """Valid values of filters; None if they change along a sweep.

    Attributes
    ----------
    names : dict
        Ids of schemes and attacks, including entries with errors, and labels of knowledge.
    measures : set of str
        Requested measures and sections.
    sweep : dict
        Swept paths and their values.
    """

    names: dict[str, list[str] | None]
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
        moved = {path[0] for path in swept if len(path) <= 2 or path[-1] in ("id", "name")}
        names: dict[str, list[str] | None] = {}
        for field in ("scheme", "attack"):
            items = fields.get(f"{field}s")
            ids = map(id_of, items if isinstance(items, list) else [items])
            names[field] = None if f"{field}s" in moved else list(filter(None, ids))
        names["attack"] = names["attack"] and [*names["attack"], FITTED]
        labels = [state.label for state in knowledge]
        names["knowledge"] = None if any(path[0] == "knowledge" for path in swept) else labels
        # closeness is measured where an expectation needs it
        measured = {"closeness", *(measure.name for measure in measures)}
        measured |= {"utility"} if utility is not None else set()
        data = fields.get("data")
        bounds = isinstance(data, dict) and data.get("bounds")
        if bounds or any(path[:2] == ("data", "bounds") for path in swept):
            measured.add("bounds")
        return cls(names, measured, sweep)


def read_expectations(
    fields: dict[str, Any], problems: Problems, audited: Audited
) -> tuple[ExpectationUse, ...]:
    """Return the section ``expect`` without invalid entries; report errors."""
    items = problems.sequence(("expect",), fields.get("expect"), optional=True)
    uses = [_expectation(place, item, problems, audited) for place, item in enumerate(items)]
    return tuple(use for use in uses if use is not None)


def _expectation(
    number: int, item: Any, problems: Problems, audited: Audited
) -> ExpectationUse | None:
    path: Path = ("expect", number)
    name, where = split(item)
    if not isinstance(name, str):
        wanted = "one expectation, as `no-collusion-gain: {scheme: corner-wave}`"
        problems.add(path, f"must be {wanted}; got {shown(item)}")
        return None
    if not (isinstance(item, str) or "name" in item):
        path = (*path, name)
    metric = metrics.canonical(name)
    if registry.has("expectation", name):
        cls, fixed = registry.get("expectation", name), {}
    elif metrics.is_metric(metric):
        cls, fixed = registry.get("expectation", "metric"), {"metric": metric}
    else:
        got = f": {shown(item)}" if isinstance(item, str) else ""
        hint = did_you_mean(name, [*registry.spellings("expectation"), *metrics.METRICS])
        problems.add(path, f"is not a known expectation or metric{got}{hint}", key=True)
        return None
    where = {} if where is None else where
    if not isinstance(where, dict):
        problems.add(path, f"must be a mapping of filters and bounds; got {shown(where)}")
        return None
    before = len(problems.found)
    resolved = _resolved(path, where, problems, audited) | fixed
    if isinstance(resolved.get("metric"), str):
        resolved["metric"] = metrics.RENAMED.get(resolved["metric"], resolved["metric"])
    parameters = problems.model(path, resolved, cls.Parameters)
    if parameters is None or len(problems.found) > before:
        return None
    expectation = cls.made(parameters)
    _check_metrics(path, expectation, problems, audited)
    return ExpectationUse(name, expectation, where, number)


def _check_metrics(path: Path, expectation: Any, problems: Problems, audited: Audited) -> None:
    named = getattr(expectation.parameters, "metric", None)
    if named is not None and not metrics.is_metric(named):
        hint = did_you_mean(named, metrics.METRICS)
        problems.add((*path, "metric"), f"is not a known metric: {named!r}{hint}")
        return
    for metric in {*expectation.needs_metrics, *filter(None, [named])}:
        measure = metrics.measured_by(metric)
        if measure is not None and measure not in audited.measures:
            remedy = REMEDIES.get(measure, "is not measured; add it under `measures:`")
            problems.add(path, f"needs {measure}, which {remedy}")


def _resolved(
    path: Path, where: dict[str, Any], problems: Problems, audited: Audited
) -> dict[str, Any]:
    resolved = dict(where)
    if where.get("coalition") is not None:
        problems.attempt((*path, "coalition"), parse_coalitions, where["coalition"])
    if where.get("knowledge") is not None:
        items = where["knowledge"] if isinstance(where["knowledge"], list) else [where["knowledge"]]
        place = (*path, "knowledge")
        resolved["knowledge"] = [problems.attempt(place, _label, item) or "" for item in items]
    for field, known in audited.names.items():
        wanted = resolved.get(field)
        kinds = [name.partition("(")[0] for name in known or () if field == "knowledge"]
        for name in wanted if isinstance(wanted, list) else [wanted]:
            if name and known and name not in known and name not in kinds:
                hint = did_you_mean(name, known)
                message = f"names no {field} of this scenario: {shown(name)}{hint}"
                problems.add((*path, field), message)
    swept = where.get("sweep")
    for key, value in swept.items() if isinstance(swept, dict) else ():
        place = (*path, "sweep", key)
        if key not in audited.sweep:
            hint = did_you_mean(key, audited.sweep)
            problems.add(place, f"is not swept in this scenario{hint}", key=True)
        elif value not in audited.sweep[key]:
            problems.add(place, f"is not among the values swept: {shown(value)}")
    return resolved


def _label(item: Any) -> str:
    if isinstance(item, str) and item.partition("(")[0] in KINDS:
        return item
    return parse_knowledge(item).label
