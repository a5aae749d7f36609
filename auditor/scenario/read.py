"""From a file, a mapping or a shipped scenario's name to a checked `Scenario`, with every problem told at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path as FilePath
from typing import Any

from auditor import bibliography, metrics, registry
from auditor.errors import AuditorError, PluginError, Problem, ScenarioError, did_you_mean
from auditor.knowledge import EXPECTED, KINDS, Estimated, Knowledge, KnownAttributes, KnownRecords, Perfect, UniformPrior
from auditor.registry import PluginParameters
from auditor.scenario.coalitions import Coalitions, parse_coalitions
from auditor.scenario.levels import Levels, parse_levels
from auditor.scenario.model import SCENARIO_VERSION, DataUse, ExpectationUse, Measure, PluginUse, Scenario, SchemeUse
from auditor.scenario.problems import Path, Problems, shown
from auditor.scenario.yaml12 import Document, format_path, load_file, parse_path, set_at

FIELDS = (
    "schema", "title", "cite", "seed", "data", "schemes", "knowledge", "coalitions", "attacks",
    "measures", "sweep", "replicates", "expect",
)  # fmt: skip
DATA_FIELDS = ("source", "columns", "rows", "missing", "standardize")
MISSING = ("refuse", "drop", "mean")
SCHEME_FIELDS = ("name", "id", "levels", "already-out")
MEASURES = {
    "within": ("tolerance",),
    "records-within": ("tolerance",),
    "error-distribution": ("bins", "reach"),
    "seconds": (),
    "geometry": (),
}
MEASURED_BY = {
    "records_within": "records-within",
    "most_exposed": "records-within",
    "geometry_distances": "geometry",
    "geometry_neighbours": "geometry",
    "geometry_clusters": "geometry",
}
"""Metrics that a measure of another name yields."""
EVERY = "*"
MOST_REPLICATES = 100_000
MOST_POINTS = 10_000
MOST_SEED = 2**128

Source = str | os.PathLike[str] | Mapping[str, Any] | Scenario


def read_scenario(source: Source, overrides: Iterable[tuple[str, Any]] = (), seed: int | None = None) -> Scenario:
    """Return the checked scenario.

    Parameters
    ----------
    source : path, mapping or Scenario
        A YAML file, the name of a scenario that ships with the package (with or without ``.yaml``), or plain values.
    overrides : iterable of (str, value)
        Places to change before anything is checked, as ``("data.rows", 1000)``.
    seed : int, optional
        Instead of the scenario's own.

    Raises
    ------
    ScenarioError
        Everything that is wrong, each with file, line, column and field.
    AuditorError
        There is no such file, or an override's path leads nowhere.
    """
    document, value, name, base = _open(source)
    changes = [*overrides, *([("seed", seed)] if seed is not None else [])]
    changed: list[Path] = []
    for path, new in changes:
        changed.append(parse_path(path))
        value = set_at(value, changed[-1], new)
    problems = Problems()
    scenario = build(value, problems, base, name)
    if problems.found or scenario is None:
        raise ScenarioError(_located(problems, document, changed))
    return scenario


def _open(source: Source) -> tuple[Document | None, Any, str, FilePath | None]:
    if isinstance(source, Scenario):
        return None, source.document, source.name, source.base
    if isinstance(source, Mapping):
        return None, plain(source), "audit", None
    path = find_scenario(source)
    document = load_file(path)
    return document, document.value, path.stem, path.parent


def plain(value: Any) -> Any:
    """Return a value as YAML would have given it: numpy scalars, arrays and tuples become Python's own."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def rebuild(document: dict[str, Any], base: FilePath | None, name: str) -> Scenario:
    """Return a scenario from the document of one that was checked before, as a worker receives it.

    Raises
    ------
    ScenarioError
        It is no longer valid here: a plugin or a file is missing on the worker's machine.
    """
    problems = Problems()
    scenario = build(document, problems, base, name)
    if scenario is None:
        raise ScenarioError(_located(problems, None, []))
    return scenario


def find_scenario(name: str | os.PathLike[str]) -> FilePath:
    """Return the path of a scenario file, or of the one of that name that ships with the package.

    Raises
    ------
    AuditorError
        There is neither.
    """
    path = FilePath(name)
    if path.exists():
        return path
    shipped = {item.stem: item for item in shipped_scenarios()}
    if path.parent in (FilePath(), FilePath("scenarios")) and path.name.removesuffix(".yaml") in shipped:
        return shipped[path.name.removesuffix(".yaml")]
    raise AuditorError(f"{path}: no such scenario file{did_you_mean(path.stem, shipped)}")


def shipped_scenarios() -> list[FilePath]:
    """Return the scenario files that come with the package, by name."""
    return sorted(FilePath(str(files("scenarios"))).glob("*.yaml"))


def _located(problems: Problems, document: Document | None, changed: list[Path]) -> list[Problem]:
    """Return problems with their places; a field given on the command line has none in the file."""
    located = []
    for path, message, key in problems.found:
        if document is None or any(path[: len(place)] == place for place in changed):
            located.append(Problem(format_path(path), message))
            continue
        line, column = document.key_position(path) if key else document.position(path)
        located.append(Problem(format_path(path), message, document.file, line, column))
    return sorted(located, key=lambda problem: (problem.line or 0, problem.column or 0))


def build(value: Any, problems: Problems, base: FilePath | None = None, name: str = "audit") -> Scenario | None:
    """Return the scenario that plain values describe, noting every problem; None when there are any."""
    fields = problems.mapping((), value, FIELDS, required=("data", "schemes", "attacks"))
    if fields.get("schema", SCENARIO_VERSION) != SCENARIO_VERSION:
        problems.add(("schema",), f"must be {SCENARIO_VERSION}, the version this program reads; got {shown(fields['schema'])}")
    schemes = _schemes(fields, problems, base)
    attacks = _plugins("attack", "attacks", fields, problems)
    data = _data(fields.get("data"), problems, base) if "data" in fields else None
    knowledge = _knowledge(fields, problems)
    measures = _measures(fields, problems)
    scenario = Scenario(
        title=_text(fields, "title", name, problems),
        seed=_integer(fields, "seed", 0, 0, MOST_SEED, problems),
        data=data or DataUse("gaussian"),
        schemes=schemes,
        knowledge=knowledge,
        coalitions=_coalitions(fields, problems),
        attacks=attacks,
        measures=measures,
        sweep=_sweep(fields, problems),
        replicates=_integer(fields, "replicates", 1, 1, MOST_REPLICATES, problems),
        expect=_expectations(fields, problems, schemes, attacks, knowledge, measures),
        cite=_cite(fields, problems),
        base=base,
        name=name,
        document=value if isinstance(value, dict) else {},
    )
    if not problems.found:
        _check_points(scenario, problems)
    return None if problems.found else scenario


def _text(fields: dict[str, Any], name: str, default: str, problems: Problems) -> str:
    value = fields.get(name, default)
    if not isinstance(value, str):
        problems.add((name,), f"must be text; got {shown(value)}")
        return default
    return value


def _integer(fields: dict[str, Any], name: str, default: int, low: int, high: int, problems: Problems) -> int:
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        limit = f"{high:,}" if high < 2**64 else "2¹²⁸"
        problems.add((name,), f"must be an integer from {low} to {limit}; got {shown(value)}")
        return default
    return value


def _cite(fields: dict[str, Any], problems: Problems) -> tuple[str, ...]:
    keys = problems.sequence(("cite",), fields["cite"]) if fields.get("cite") else []
    known = bibliography.keys()
    for place, key in enumerate(keys):
        if key not in known:
            problems.add(("cite", place), f"is not in the bibliography: {shown(key)}{did_you_mean(key, known)}")
    return tuple(key for key in keys if key in known)


def _data(value: Any, problems: Problems, base: FilePath | None) -> DataUse | None:
    if isinstance(value, str):
        value = {"source": value}
    if not isinstance(value, dict):
        problems.add(("data",), f"must be a source's name, a path or a mapping with `source`; got {shown(value)}")
        return None
    source = value.get("source")
    if not isinstance(source, str):
        problems.add(("data", "source"), "is required: a registered source, or a path to .csv or .parquet")
        return None
    columns = _columns(value.get("columns"), problems)
    rows = value.get("rows")
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
        problems.add(("data", "rows"), f"must be an integer of at least 1; got {shown(rows)}")
    missing = value.get("missing", "refuse")
    if missing not in MISSING:
        problems.add(("data", "missing"), f"must be one of {', '.join(MISSING)}; got {shown(missing)}{did_you_mean(missing, MISSING)}")
    standardize = value.get("standardize", False)
    if not isinstance(standardize, bool):
        problems.add(("data", "standardize"), f"must be true or false; got {shown(standardize)}")
    own = {key: item for key, item in value.items() if key not in DATA_FIELDS}
    parameters = _source_parameters(source, own, problems, base)
    return DataUse(source, columns, rows, str(missing), bool(standardize), parameters)


def _columns(value: Any, problems: Problems) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = problems.sequence(("data", "columns"), value)
    for place, name in enumerate(names):
        if not isinstance(name, str):
            problems.add(("data", "columns", place), f"must be a column's name; got {shown(name)}")
        elif name in names[:place]:
            problems.add(("data", "columns", place), f"repeats column {name!r}")
    return tuple(name for name in names if isinstance(name, str))


def _source_parameters(source: str, own: dict[str, Any], problems: Problems, base: FilePath | None) -> dict[str, Any]:
    if source in registry.spellings("source"):
        model = problems.model(("data",), own, registry.get("source", source).Parameters)
        return {} if model is None else model.model_dump(mode="json", by_alias=True)
    for key in own:
        problems.add(("data", key), f"is not a known field{did_you_mean(key, DATA_FIELDS)}", key=True)
    if not source.lower().endswith((".csv", ".parquet")):
        hint = did_you_mean(source, registry.names("source"))
        problems.add(("data", "source"), f"must be a registered source or a path to .csv or .parquet; got {source!r}{hint}")
    elif not any((folder / source).exists() for folder in (base or FilePath(), FilePath())):
        problems.add(("data", "source"), f"names a file that is not there: {source!r}")
    return {}


def _schemes(fields: dict[str, Any], problems: Problems, base: FilePath | None) -> tuple[SchemeUse, ...]:
    uses = []
    for place, item in enumerate(problems.sequence(("schemes",), fields["schemes"]) if "schemes" in fields else []):
        use = _scheme(("schemes", place), item, problems, base)
        if use is not None:
            uses.append(use)
    problems.unique(("schemes",), [use.id for use in uses], "scheme")
    return tuple(uses)


def _scheme(path: Path, item: Any, problems: Problems, base: FilePath | None) -> SchemeUse | None:
    found = _named("scheme", path, item, problems)
    if found is None:
        return None
    cls, given = found
    own = {key: value for key, value in given.items() if key not in SCHEME_FIELDS}
    parameters = _parameters(path, own, cls.Parameters, SCHEME_FIELDS, problems)
    levels = None
    if "levels" in given:
        levels = problems.attempt((*path, "levels"), parse_levels, given["levels"])
    elif cls.needs_levels:
        problems.add((*path, "levels"), "is required: a list in order of release, or a range, as {uniform: [0.25, 1.0], count: 5}")
    already = _already_out((*path, "already-out"), given.get("already-out", 0), problems)
    if parameters is None:
        return None
    _check_scheme(path, cls(parameters), levels, problems)
    return SchemeUse(cls.name, str(given.get("id", cls.name)), parameters, levels, already)


def _check_scheme(path: Path, scheme: Any, levels: Levels | None, problems: Problems) -> None:
    """Check a list of levels, or both ends of a range, against what the scheme can use."""
    if levels is None:
        return
    try:
        scheme.check_levels(levels.values if levels.values is not None else (levels.low, levels.high))
    except AuditorError as error:
        problems.add((*path, "levels"), f"cannot be used: {error}")


def _already_out(path: Path, value: Any, problems: Problems) -> float | int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not (0 <= value < 1 or isinstance(value, int)) or value < 0:
        problems.add(path, f"must be a number of copies, or a share of them below 1; got {shown(value)}")
        return 0
    return value


def _named(kind: str, path: Path, item: Any, problems: Problems) -> tuple[Any, dict[str, Any]] | None:
    """Return the plugin class and what was given for it, noting a name that is missing or unknown."""
    given = {"name": item} if isinstance(item, str) else item
    if not isinstance(given, dict):
        problems.add(path, f"must be a name, or a mapping with `name` and parameters; got {shown(item)}")
        return None
    name = given.get("name")
    if not isinstance(name, str):
        problems.add((*path, "name"), f"is required: the {kind}'s name")
        return None
    if not isinstance(given.get("id", name), str) or not given.get("id", name):
        problems.add((*path, "id"), f"must be text; got {shown(given['id'])}")
    try:
        return registry.get(kind, name), given
    except PluginError as error:
        where = path if isinstance(item, str) else (*path, "name")
        problems.add(where, f"names an {error}" if str(error).startswith("unknown") else str(error))
        return None


def _parameters(
    path: Path, own: dict[str, Any], model: type[PluginParameters], reserved: Iterable[str], problems: Problems
) -> PluginParameters | None:
    """Return validated parameters; an unknown one may also be a misspelt reserved field."""
    known = [field.alias or name for name, field in model.model_fields.items()]
    spelt = {key.replace("_", "-") if key.replace("_", "-") in known else key: value for key, value in own.items()}
    unknown = [key for key in spelt if key not in known]
    for key in unknown:
        problems.add((*path, key), f"is not a known field{did_you_mean(key, [*known, *reserved])}", key=True)
    checked = problems.model(path, {key: value for key, value in spelt.items() if key in known}, model)
    return None if unknown else checked


def _plugins(kind: str, section: str, fields: dict[str, Any], problems: Problems) -> tuple[PluginUse, ...]:
    uses = []
    for place, item in enumerate(problems.sequence((section,), fields[section]) if section in fields else []):
        found = _named(kind, (section, place), item, problems)
        if found is None:
            continue
        cls, given = found
        own = {key: value for key, value in given.items() if key not in ("name", "id")}
        parameters = _parameters((section, place), own, cls.Parameters, ("name", "id"), problems)
        if parameters is not None:
            uses.append(PluginUse(cls.name, str(given.get("id", cls.name)), parameters))
    problems.unique((section,), [use.id for use in uses], kind)
    return tuple(uses)


def _knowledge(fields: dict[str, Any], problems: Problems) -> tuple[Knowledge, ...]:
    found = []
    for place, item in enumerate(problems.sequence(("knowledge",), fields.get("knowledge", ["perfect"]))):
        try:
            found.append(parse_knowledge(item))
        except KnowledgeError as error:
            problems.add(("knowledge", place, *error.path), str(error))
    problems.unique(("knowledge",), [knowledge.label for knowledge in found], "knowledge")
    return tuple(found)


class KnowledgeError(ValueError):
    """A state of knowledge is not spelt right; ``path`` is the place below it."""

    def __init__(self, message: str, path: Path = ()) -> None:
        super().__init__(message)
        self.path = path


def parse_knowledge(value: Any) -> Knowledge:
    """Read a state of knowledge from a scenario or a Python call.

    Raises
    ------
    KnowledgeError
        Saying what was expected, and where.
    """
    if isinstance(value, Knowledge):
        return value
    if value == Perfect.name:
        return Perfect()
    if value == UniformPrior.name:
        return UniformPrior()
    name = value if isinstance(value, str) else next(iter(value)) if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(name, str) or name not in KINDS:
        hint = did_you_mean(name, KINDS) if isinstance(name, str) else ""
        raise KnowledgeError(f"must be one of {EXPECTED}; got {shown(value)}{hint}")
    if isinstance(value, str) or name in (Perfect.name, UniformPrior.name):
        raise KnowledgeError(f"must be one of {EXPECTED}; got {shown(value)}")
    argument = value[name]
    if name == Estimated.name:
        return _parse_estimated(argument)
    if name == KnownAttributes.name:
        return _parse_known_attributes(argument)
    if isinstance(argument, bool) or not isinstance(argument, int) or argument < 1:
        raise KnowledgeError(f"must be a number of records, at least 1; got {shown(argument)}", (name,))
    kind = KINDS[name]
    assert issubclass(kind, KnownRecords)
    return kind(argument)


def _parse_estimated(argument: Any) -> Estimated:
    path: Path = (Estimated.name,)
    if not isinstance(argument, dict):
        raise KnowledgeError(f"must be {{rows: r}}; got {shown(argument)}", path)
    for key in argument:
        if key not in ("rows", "structure"):
            raise KnowledgeError(f"is not a known field{did_you_mean(key, ('rows', 'structure'))}", (*path, key))
    rows, structure = argument.get("rows"), argument.get("structure", "scheme")
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 2:
        raise KnowledgeError(f"must be a number of released rows, at least 2; got {shown(rows)}", (*path, "rows"))
    if structure not in ("scheme", "none"):
        raise KnowledgeError(f"must be scheme or none; got {shown(structure)}", (*path, "structure"))
    return Estimated(rows, structure)


def _parse_known_attributes(argument: Any) -> KnownAttributes:
    names = [argument] if isinstance(argument, str) else argument
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise KnowledgeError(f"must be a list of column names; got {shown(argument)}", (KnownAttributes.name,))
    return KnownAttributes(tuple(names))


def _coalitions(fields: dict[str, Any], problems: Problems) -> tuple[Coalitions, ...]:
    items = problems.sequence(("coalitions",), fields.get("coalitions", ["singles", "all"]))
    parsed = [problems.attempt(("coalitions", place), parse_coalitions, item) for place, item in enumerate(items)]
    return tuple(entry for entry in parsed if entry is not None)


def _measures(fields: dict[str, Any], problems: Problems) -> tuple[Measure, ...]:
    measures = []
    for place, item in enumerate(problems.sequence(("measures",), fields["measures"]) if fields.get("measures") else []):
        measure = _measure(("measures", place), item, problems)
        if measure is not None:
            measures.append(measure)
    problems.unique(("measures",), [measure.name for measure in measures], "measure")
    return tuple(measures)


def _measure(path: Path, item: Any, problems: Problems) -> Measure | None:
    name, options = (item, {}) if isinstance(item, str) else _single(item)
    if name in metrics.ALWAYS:
        return None
    if name not in MEASURES:
        problems.add(path, f"must be one of {', '.join(MEASURES)}; got {shown(item)}{did_you_mean(name, MEASURES)}")
        return None
    if name in ("within", "records-within") and not isinstance(options, dict):
        options = {"tolerance": options}
    options = problems.mapping((*path, name), options or {}, MEASURES[name])
    defaults: dict[str, Any] = {
        "within": {"tolerance": 0.1},
        "records-within": {"tolerance": 0.1},
        "error-distribution": {"bins": 40, "reach": 3.0},
    }.get(name, {})
    merged = defaults | options
    for key, value in merged.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 10_000:
            problems.add((*path, name, key), f"must be a number above 0 and at most 10,000; got {shown(value)}")
    if "bins" in merged and not isinstance(merged["bins"], int):
        problems.add((*path, name, "bins"), f"must be an integer; got {shown(merged['bins'])}")
    return Measure(name, merged)


def _single(item: Any) -> tuple[Any, Any]:
    return next(iter(item.items())) if isinstance(item, dict) and len(item) == 1 else (None, {})


def _sweep(fields: dict[str, Any], problems: Problems) -> dict[str, list[Any]]:
    value = fields.get("sweep") or {}
    if not isinstance(value, dict):
        problems.add(("sweep",), f"must map paths of this file to lists of values; got {shown(value)}")
        return {}
    sweep, points = {}, 1
    for path, values in value.items():
        if not isinstance(values, list) or not values:
            problems.add(("sweep", path), f"must be a list of values to try; got {shown(values)}")
            continue
        if path.partition(".")[0] in ("sweep", "expect", "schema", "replicates") or path.partition("[")[0] == "expect":
            problems.add(("sweep", path), "cannot be swept; sweep data, schemes, knowledge, attacks, coalitions or seed", key=True)
        points *= len(values)
        sweep[path] = values
    if points > MOST_POINTS:
        problems.add(("sweep",), f"has {points:,} combinations; at most {MOST_POINTS:,}")
    return sweep


def _check_points(scenario: Scenario, problems: Problems) -> None:
    """Check the scenario at every sweep point, so that nothing is refused halfway through a run."""
    if not scenario.sweep:
        return
    for path, values in scenario.sweep.items():
        for place, value in enumerate(values):
            try:
                point = at_point(scenario, {path: value})
            except ScenarioError as error:
                for problem in error.problems[:1]:
                    problems.add(("sweep", path, place), f"makes an invalid scenario: {problem}")
            except AuditorError as error:
                problems.add(("sweep", path), f"is not a path of this file: {error}", key=True)
                break
            else:
                assert point is not None


def at_point(scenario: Scenario, point: Mapping[str, Any]) -> Scenario:
    """Return the scenario at one sweep point.

    Raises
    ------
    ScenarioError
        The swept values make it invalid.
    """
    if not point:
        return scenario
    value: Any = {key: item for key, item in scenario.document.items() if key not in ("sweep", "expect")}
    for path, item in point.items():
        for place in _places(value, parse_path(path)):
            value = set_at(value, place, item)
    problems = Problems()
    built = build(value, problems, scenario.base, scenario.name)
    if problems.found or built is None:
        raise ScenarioError(Problem(format_path(path), message) for path, message, _ in problems.found)
    return built


def _places(value: Any, path: Path) -> list[Path]:
    """Return the places that a swept path names: ``schemes[*].levels.count`` is one in every scheme."""
    if EVERY not in path:
        return [path]
    head, tail = path[: path.index(EVERY)], path[path.index(EVERY) + 1 :]
    items = value
    for element in head:
        items = items.get(element) if isinstance(items, dict) else None
    if not isinstance(items, list):
        raise AuditorError(f"{format_path(head)} is not a list, so [*] names nothing in it")
    return [(*head, place, *rest) for place, item in enumerate(items) for rest in _places(item, tail)]


def _expectations(
    fields: dict[str, Any],
    problems: Problems,
    schemes: tuple[SchemeUse, ...],
    attacks: tuple[PluginUse, ...],
    knowledge: tuple[Knowledge, ...],
    measures: tuple[Measure, ...],
) -> tuple[ExpectationUse, ...]:
    names = {
        "scheme": [use.id for use in schemes],
        "attack": [use.id for use in attacks],
    }
    uses = []
    for place, item in enumerate(problems.sequence(("expect",), fields["expect"]) if fields.get("expect") else []):
        use = _expectation(("expect", place), item, problems, names, knowledge, measures)
        if use is not None:
            uses.append(use)
    return tuple(uses)


def _expectation(
    path: Path,
    item: Any,
    problems: Problems,
    names: dict[str, list[str]],
    knowledge: tuple[Knowledge, ...],
    measures: tuple[Measure, ...],
) -> ExpectationUse | None:
    name, where = (item, {}) if isinstance(item, str) else _single(item)
    if not isinstance(name, str):
        problems.add(path, f"must be one expectation, as `no-collusion-gain: {{scheme: corner-wave}}`; got {shown(item)}")
        return None
    cls, fixed = _expectation_class(name)
    if cls is None:
        known = [*registry.spellings("expectation"), *metrics.METRICS]
        problems.add((*path, name), f"is not a known expectation or metric{did_you_mean(name, known)}", key=True)
        return None
    if where is None:
        where = {}
    if not isinstance(where, dict):
        problems.add((*path, name), f"must be a mapping of filters and bounds; got {shown(where)}")
        return None
    before = len(problems.found)
    _check_filters((*path, name), where, problems, names)
    resolved = _resolve_filters((*path, name), where, problems)
    parameters = _parameters((*path, name), resolved | fixed, cls.Parameters, (), problems)
    if parameters is None or len(problems.found) > before:
        return None
    expectation = cls(parameters)
    measured = {measure.name for measure in measures} | set(metrics.ALWAYS)
    for metric in expectation.needs_metrics:
        measure = MEASURED_BY.get(metric, metric)
        if measure not in measured and measure in MEASURES:
            problems.add((*path, name), f"needs {measure}, which is not measured; add it under `measures:`")
    return ExpectationUse(name, expectation, where)


def _expectation_class(name: str) -> tuple[Any, dict[str, Any]]:
    if name in registry.spellings("expectation"):
        return registry.get("expectation", name), {}
    if metrics.is_metric(metrics.canonical(name)):
        return registry.get("expectation", "metric"), {"metric": metrics.canonical(name)}
    return None, {}


def _check_filters(path: Path, where: dict[str, Any], problems: Problems, names: dict[str, list[str]]) -> None:
    for field, known in names.items():
        wanted = where.get(field)
        for name in wanted if isinstance(wanted, list) else [wanted]:
            if name is not None and known and name not in known:
                problems.add((*path, field), f"names no {field} of this scenario: {shown(name)}{did_you_mean(name, known)}")


def _resolve_filters(path: Path, where: dict[str, Any], problems: Problems) -> dict[str, Any]:
    """Return filters with knowledge as labels, and the coalition checked."""
    resolved = dict(where)
    if where.get("coalition") is not None:
        problems.attempt((*path, "coalition"), parse_coalitions, where["coalition"])
    if where.get("knowledge") is not None:
        items = where["knowledge"] if isinstance(where["knowledge"], list) else [where["knowledge"]]
        labels = [_knowledge_label((*path, "knowledge"), item, problems) for item in items]
        resolved["knowledge"] = labels
    return resolved


def _knowledge_label(path: Path, item: Any, problems: Problems) -> str:
    """A filter may give a label, a kind's bare name, or what a scenario would write."""
    if isinstance(item, str) and item.partition("(")[0] in KINDS:
        return item
    try:
        return parse_knowledge(item).label
    except KnowledgeError as error:
        problems.add((*path, *error.path), str(error))
        return ""
