"""From a file, a mapping or a shipped scenario's name to a checked `Scenario`, with every problem told at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from auditor import bibliography, metrics, registry
from auditor.data.categories import parse_bins, parse_domains
from auditor.errors import AuditorError, PluginError, Problem, ScenarioError, did_you_mean
from auditor.knowledge import EXPECTED, KINDS, Estimated, Knowledge, KnownAttributes, KnownRecords, Perfect, UniformPrior
from auditor.registry import PluginParameters
from auditor.scenario.coalitions import Coalitions, parse_coalitions
from auditor.scenario.hierarchies import parse_hierarchies
from auditor.scenario.levels import Levels, parse_levels
from auditor.scenario.measures import MEASURES, measure_options, parse_utility
from auditor.scenario.model import SCENARIO_VERSION, DataUse, ExpectationUse, Measure, PluginUse, Scenario, SchemeUse, UtilityUse
from auditor.scenario.places import Places, put
from auditor.scenario.problems import Path, Problems, shown
from auditor.scenario.yaml12 import format_path, load_file, parse_path

FIELDS = (
    "schema", "title", "cite", "seed", "data", "schemes", "knowledge", "coalitions", "attacks",
    "measures", "utility", "sweep", "replicates", "expect",
)  # fmt: skip
DATA_FIELDS = ("source", "columns", "rows", "missing", "standardize", "bin", "categorical", "hierarchies")
MISSING = ("refuse", "drop", "mean")
SCHEME_FIELDS = ("name", "id", "levels", "already-out")
MOST_REPLICATES = 100_000
MOST_ROWS = 10**9
"""More is a slip of the pen: a table of two columns would take 16 GB."""
MOST_POINTS = 10_000
MOST_SEED = 2**128
MOST_DIGITS = 1000
DEEPEST = 50

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
    value, name, base, places = _open(source)
    changes = [*overrides, *([("seed", seed)] if seed is not None else [])]
    value, changed = put(value, [(parse_path(path), plain(new)) for path, new in changes])
    places = replace(places, changed=(*places.changed, *changed))
    problems = Problems()
    scenario = build(value, problems, base, name)
    if scenario is None:
        raise ScenarioError(places.located(problems.found))
    return replace(scenario, places=places)


def _open(source: Source) -> tuple[Any, str, FilePath | None, Places]:
    if isinstance(source, Scenario):
        return source.document, source.name, source.base, source.places
    if isinstance(source, Mapping):
        return plain(source), "audit", None, Places()
    if not isinstance(source, (str, os.PathLike)):
        raise AuditorError(f"a scenario is a path, a name, a mapping or a Scenario; got {type(source).__name__}")
    path = find_scenario(source)
    document = load_file(path)
    return document.value, path.stem, path.parent, Places(document)


def plain(value: Any, path: Path = ()) -> Any:
    """Return a value as YAML would have given it: numpy scalars, arrays and tuples become Python's own.

    Raises
    ------
    ScenarioError
        Something in it could not stand in a scenario file: an object, a huge integer, bottomless nesting.
    """
    if len(path) > DEEPEST:
        raise ScenarioError([Problem(format_path(path[:3]), f"is nested too deeply: over {DEEPEST} lists and mappings in one another")])
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item, (*path, str(key))) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, (*path, place)) for place, item in enumerate(value)]
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, int) and abs(value) >= 10**MOST_DIGITS:
        raise ScenarioError([Problem(format_path(path), f"is an integer of more than {MOST_DIGITS} digits")])
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ScenarioError([Problem(format_path(path), f"holds a {type(value).__name__}, which no scenario can")])


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
        raise ScenarioError(Places().located(problems.found))
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


def build(value: Any, problems: Problems, base: FilePath | None = None, name: str = "audit") -> Scenario | None:
    """Return the scenario that plain values describe, noting every problem; None when there are any."""
    fields = problems.mapping((), value, FIELDS, required=("data", "schemes"))
    if "attacks" not in fields and "utility" not in fields:
        problems.add(("attacks",), "is required, unless the scenario measures `utility`")
    if type(fields.get("schema", SCENARIO_VERSION)) is not int or fields.get("schema", SCENARIO_VERSION) != SCENARIO_VERSION:
        problems.add(("schema",), f"must be {SCENARIO_VERSION}, the version this program reads; got {shown(fields['schema'])}")
    schemes = _schemes(fields, problems, base)
    attacks = _plugins("attack", "attacks", fields, problems)
    data = _data(fields.get("data"), problems, base) if "data" in fields else None
    knowledge = _knowledge(fields, problems)
    measures = _measures(fields, problems)
    utility = parse_utility(fields["utility"], problems) if "utility" in fields else None
    sweep = _sweep(fields, problems)
    scenario = Scenario(
        title=_text(fields, "title", name, problems),
        seed=_integer(fields, "seed", 0, 0, MOST_SEED, problems),
        data=data or DataUse("gaussian"),
        schemes=schemes,
        knowledge=knowledge,
        coalitions=_coalitions(fields, problems),
        attacks=attacks,
        measures=measures,
        sweep=sweep,
        replicates=_integer(fields, "replicates", 1, 1, MOST_REPLICATES, problems),
        expect=_expectations(fields, problems, Audited.of(fields, knowledge, measures, utility, sweep)),
        cite=_cite(fields, problems),
        utility=utility,
        base=base,
        name=name,
        document=value if isinstance(value, dict) else {},
    )
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


def _optional(fields: dict[str, Any], name: str, problems: Problems) -> list[Any]:
    """Return a section that may be left out, left empty, or hold nothing but comments."""
    value = fields.get(name)
    return [] if value is None or value == [] else problems.sequence((name,), value)


def _cite(fields: dict[str, Any], problems: Problems) -> tuple[str, ...]:
    keys = _optional(fields, "cite", problems)
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
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or not 2 <= rows <= MOST_ROWS):
        problems.add(("data", "rows"), f"must be an integer from 2 to {MOST_ROWS:,}; got {shown(rows)}")
    missing = value.get("missing", "refuse")
    if missing not in MISSING:
        problems.add(("data", "missing"), f"must be one of {', '.join(MISSING)}; got {shown(missing)}{did_you_mean(missing, MISSING)}")
    standardize = value.get("standardize", False)
    if not isinstance(standardize, bool):
        problems.add(("data", "standardize"), f"must be true or false; got {shown(standardize)}")
    own = {key: item for key, item in value.items() if key not in DATA_FIELDS}
    parameters = _source_parameters(source, own, problems, base)
    bins = problems.attempt(("data", "bin"), parse_bins, value.get("bin") or {}) or {}
    categorical = problems.attempt(("data", "categorical"), parse_domains, value.get("categorical") or {}) or {}
    hierarchies = parse_hierarchies(value.get("hierarchies"), problems)
    for name in hierarchies:
        if name in bins or name in categorical or standardize is True:
            problems.add(("data", "hierarchies", name), "cannot be binned, standardized or taken as categories as well", key=True)
    return DataUse(source, columns, rows, str(missing), bool(standardize), parameters, bins, categorical, hierarchies)


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
        model = _parameters(("data",), own, registry.get("source", source).Parameters, DATA_FIELDS, problems)
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
    items = problems.sequence(("schemes",), fields["schemes"]) if "schemes" in fields else []
    problems.unique(("schemes",), map(_id, items), "scheme")
    uses = [_scheme(("schemes", place), item, problems, base) for place, item in enumerate(items)]
    return tuple(use for use in uses if use is not None)


def _id(item: Any) -> str | None:
    """Return the id that a use of a plugin goes by, whether or not the rest of it is right."""
    name = item.get("id", item.get("name")) if isinstance(item, dict) else item
    return name if isinstance(name, str) else None


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
    scheme = cls(parameters) if parameters is not None else _with_defaults(cls)
    if scheme is not None:
        _check_levels((*path, "levels"), scheme, levels, problems)
    if parameters is None:
        return None
    return SchemeUse(cls.name, str(given.get("id", cls.name)), parameters, levels, already)


def _with_defaults(cls: Any) -> Any:
    """Return the scheme as it is without parameters, if it can be: wrong ones should not hide wrong levels."""
    try:
        return cls()
    except ValidationError:
        return None


def _check_levels(path: Path, scheme: Any, levels: Levels | None, problems: Problems) -> None:
    """Check a list of levels, or both ends of a range, against what the scheme can use."""
    if levels is None:
        return
    ends = levels.values if levels.values is not None else (levels.low, levels.high)
    message = _refusal(scheme, ends)
    if message is not None:
        # The level at fault is the first without which the complaint would be another, or none.
        culprit = next((k for k in range(len(ends)) if _refusal(scheme, ends[: k + 1]) == message), None)
        exact = levels.values is not None and culprit is not None and len(ends) > 1
        problems.add((*path, culprit) if exact and culprit is not None else path, f"cannot be used: {message}")


def _refusal(scheme: Any, levels: tuple[float, ...]) -> str | None:
    try:
        scheme.check_levels(levels)
    except AuditorError as error:
        return str(error)
    except Exception as error:  # a third party's slip; its text may hold anything
        return f"{scheme.name} broke while checking them ({type(error).__name__})"
    return None


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
    if "id" in given and (not isinstance(given["id"], str) or not given["id"]):
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
    before = len(problems.found)
    checked = problems.model(path, {key: value for key, value in spelt.items() if key in known}, model)
    if unknown:  # what a misspelt field leaves open as a whole is no second mistake
        problems.found[before:] = [problem for problem in problems.found[before:] if problem[0] != path]
        return None
    return checked


def _plugins(kind: str, section: str, fields: dict[str, Any], problems: Problems) -> tuple[PluginUse, ...]:
    uses = []
    items = problems.sequence((section,), fields[section]) if section in fields else []
    problems.unique((section,), map(_id, items), kind)
    for place, item in enumerate(items):
        found = _named(kind, (section, place), item, problems)
        if found is None:
            continue
        cls, given = found
        own = {key: value for key, value in given.items() if key not in ("name", "id")}
        parameters = _parameters((section, place), own, cls.Parameters, ("name", "id"), problems)
        if parameters is not None:
            uses.append(PluginUse(cls.name, str(given.get("id", cls.name)), parameters))
    return tuple(uses)


def _knowledge(fields: dict[str, Any], problems: Problems) -> tuple[Knowledge, ...]:
    found: list[Knowledge | None] = []
    for place, item in enumerate(problems.sequence(("knowledge",), fields.get("knowledge", ["perfect"]))):
        try:
            found.append(parse_knowledge(item))
        except KnowledgeError as error:
            found.append(None)
            for path, message in error.problems:
                problems.add(("knowledge", place, *path), message, key=message.startswith("is not a known field"))
    problems.unique(("knowledge",), [None if knowledge is None else knowledge.label for knowledge in found], "knowledge")
    return tuple(knowledge for knowledge in found if knowledge is not None)


class KnowledgeError(ValueError):
    """A state of knowledge is not spelt right; ``problems`` are the places below it, and what is wrong there."""

    def __init__(self, problems: Iterable[tuple[Path, str]]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{format_path(path)} {message}".lstrip() for path, message in self.problems))


def parse_knowledge(value: Any) -> Knowledge:
    """Read a state of knowledge from a scenario or a Python call.

    Raises
    ------
    KnowledgeError
        Saying what was expected, and where.
    """
    if isinstance(value, Knowledge):
        return value
    name, argument = split(value)
    if name not in KINDS:
        hint = did_you_mean(name, KINDS) if isinstance(name, str) else ""
        raise KnowledgeError([((), f"must be one of {EXPECTED}; got {shown(value)}{hint}")])
    if name in (Perfect.name, UniformPrior.name):
        if argument is not None:
            raise KnowledgeError([((name,), f"takes no parameters; got {shown(argument)}")])
        return Perfect() if name == Perfect.name else UniformPrior()
    # {name: known-records, count: 10} says the same as {known-records: 10}
    path: Path = () if isinstance(value, dict) and "name" in value else (name,)
    if name == Estimated.name:
        return _parse_estimated(argument, path)
    kind = KINDS[name]
    if isinstance(argument, dict) and len(argument) == 1 and not path:
        argument = next(iter(argument.values()))
    if kind is KnownAttributes:
        return _parse_known_attributes(argument, path)
    if isinstance(argument, bool) or not isinstance(argument, int) or argument < 1:
        raise KnowledgeError([(path, f"must be a number of records, at least 1; got {shown(argument)}")])
    assert issubclass(kind, KnownRecords)
    return kind(argument)


def _parse_estimated(argument: Any, path: Path) -> Estimated:
    if not isinstance(argument, dict):
        raise KnowledgeError([(path, f"must be {{rows: r}}; got {shown(argument)}")])
    rows, structure = argument.get("rows"), argument.get("structure", "scheme")
    wrong: list[tuple[Path, str]] = [
        ((*path, key), f"is not a known field{did_you_mean(key, ('rows', 'structure'))}")
        for key in argument if key not in ("rows", "structure")
    ]  # fmt: skip
    if "rows" not in argument and not wrong:
        wrong.append((path, "must be {rows: r}; rows is required"))
    if "rows" in argument and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 2):
        wrong.append(((*path, "rows"), f"must be a number of released rows, at least 2; got {shown(rows)}"))
    if structure not in ("scheme", "none"):
        wrong.append(((*path, "structure"), f"must be scheme or none; got {shown(structure)}"))
    if wrong:
        raise KnowledgeError(wrong)
    return Estimated(int(argument["rows"]), structure)


def _parse_known_attributes(argument: Any, path: Path) -> KnownAttributes:
    names = [argument] if isinstance(argument, str) else argument
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise KnowledgeError([(path, f"must be a list of column names; got {shown(argument)}")])
    if len(set(names)) < len(names):
        raise KnowledgeError([(path, f"names a column twice; got {shown(argument)}")])
    return KnownAttributes(tuple(names))


def _coalitions(fields: dict[str, Any], problems: Problems) -> tuple[Coalitions, ...]:
    items = problems.sequence(("coalitions",), fields.get("coalitions", ["singles", "all"]))
    parsed = [problems.attempt(("coalitions", place), parse_coalitions, item) for place, item in enumerate(items)]
    return tuple(entry for entry in parsed if entry is not None)


def _measures(fields: dict[str, Any], problems: Problems) -> tuple[Measure, ...]:
    items = _optional(fields, "measures", problems)
    names = [split(item)[0] for item in items]
    problems.unique(("measures",), [name if isinstance(name, str) else None for name in names], "measure")
    measures = [_measure(("measures", place), item, problems) for place, item in enumerate(items)]
    return tuple(measure for measure in measures if measure is not None)


def _measure(path: Path, item: Any, problems: Problems) -> Measure | None:
    name, options = split(item)
    if isinstance(name, str) and metrics.canonical(name) in metrics.ALWAYS:
        return None
    if name not in MEASURES:
        problems.add(path, f"must be one of {', '.join(MEASURES)}; got {shown(item)}{did_you_mean(name, MEASURES)}")
        return None
    place = path if isinstance(item, dict) and "name" in item else (*path, name)
    return Measure(name, measure_options(place, name, options, problems))


def split(item: Any) -> tuple[Any, Any]:
    """Return name and argument of an entry: ``perfect``, ``{estimated: {rows: 400}}`` or ``{name: estimated, rows: 400}``."""
    if isinstance(item, str):
        return item, None
    if isinstance(item, dict) and isinstance(item.get("name"), str):
        return item["name"], {key: value for key, value in item.items() if key != "name"} or None
    if isinstance(item, dict) and len(item) == 1:
        return next(iter(item.items()))
    return None, None


def _sweep(fields: dict[str, Any], problems: Problems) -> dict[str, list[Any]]:
    value = {} if fields.get("sweep") is None else fields["sweep"]
    if not isinstance(value, dict):
        problems.add(("sweep",), f"must map paths of this file to lists of values; got {shown(value)}")
        return {}
    sweep, points = {}, 1
    for path, values in value.items():
        if not isinstance(values, list) or not values:
            problems.add(("sweep", path), f"must be a list of values to try; got {shown(values)}")
            continue
        try:
            head = (*parse_path(path), "")[0]
        except AuditorError as error:
            problems.add(("sweep", path), f"is not a path of this file: {error}", key=True)
            continue
        if head in ("sweep", "expect", "schema", "replicates", "title", "cite"):
            problems.add(("sweep", path), "cannot be swept; sweep data, schemes, knowledge, attacks, coalitions or seed", key=True)
            continue
        if head not in FIELDS:
            problems.add(("sweep", path), f"is not a path of this file{did_you_mean(head, FIELDS)}", key=True)
            continue
        points *= len(values)
        sweep[path] = values
    if points > MOST_POINTS:
        problems.add(("sweep",), f"has {points:,} combinations; at most {MOST_POINTS:,}")
    return sweep


def _check_points(scenario: Scenario, problems: Problems) -> None:
    """Check the scenario at every swept value, so that nothing is refused halfway through a run."""
    anyway = {(path, message) for path, message, _ in problems.found}
    for path, values in scenario.sweep.items():
        for number, value in enumerate(values):
            found = Problems()
            try:
                changed, _ = put(_unswept(scenario.document), [(parse_path(path), value)])
            except AuditorError as error:
                problems.add(("sweep", path), f"is not a path of this file: {error}", key=True)
                break
            build(changed, found, scenario.base, scenario.name)
            new = [Problem(format_path(place), message) for place, message, _ in found.found if (place, message) not in anyway]
            if new:
                problems.add(("sweep", path, number), f"makes an invalid scenario: {new[0]}")


def _unswept(document: dict[str, Any]) -> dict[str, Any]:
    """Return what is left at one sweep point; expectations speak of all points together."""
    return {key: item for key, item in document.items() if key not in ("sweep", "expect")}


def at_point(scenario: Scenario, point: Mapping[str, Any]) -> Scenario:
    """Return the scenario at one sweep point.

    Raises
    ------
    ScenarioError
        The swept values make it invalid.
    """
    if not point:
        return scenario
    value: Any = _unswept(scenario.document)
    swept: list[tuple[Path, Path]] = []
    for path, item in point.items():
        value, places = put(value, [(parse_path(path), item)])
        number = next((place for place, other in enumerate(scenario.sweep.get(path, [])) if other == item), 0)
        origin = ("sweep", path, number)
        swept += [(place, origin) for place in places]
    here = replace(scenario.places, swept=tuple(swept))
    problems = Problems()
    built = build(value, problems, scenario.base, scenario.name)
    if built is None:
        raise ScenarioError(here.located(problems.found))
    return replace(built, places=here)


@dataclass(frozen=True)
class Audited:
    """What filters of an expectation may name; None where a sweep makes it another thing at every point.

    Attributes
    ----------
    ids : dict
        Ids of schemes and of attacks, as written, whether or not the rest of them is right.
    knowledge : list of str or None
        Labels.
    measures : set of str
        Measures and sections asked for.
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
        """Return what a scenario's sections name."""
        swept = [parse_path(path) for path in sweep]
        ids: dict[str, list[str] | None] = {}
        for field in ("scheme", "attack"):
            items = fields.get(f"{field}s")
            named = [_id(item) for item in (items if isinstance(items, list) else [items])]
            moving = any(path[0] == f"{field}s" and (len(path) <= 2 or path[-1] in ("id", "name")) for path in swept)
            ids[field] = None if moving else [name for name in named if name is not None]
        labels = None if any(path[0] == "knowledge" for path in swept) else [state.label for state in knowledge]
        measured = {measure.name for measure in measures} | ({"utility"} if utility is not None else set())
        return cls(ids, labels, measured, sweep)


def _expectations(fields: dict[str, Any], problems: Problems, audited: Audited) -> tuple[ExpectationUse, ...]:
    uses = [_expectation(("expect", place), item, problems, audited) for place, item in enumerate(_optional(fields, "expect", problems))]
    return tuple(use for use in uses if use is not None)


def _expectation(path: Path, item: Any, problems: Problems, audited: Audited) -> ExpectationUse | None:
    name, where = split(item)
    if not isinstance(name, str):
        problems.add(path, f"must be one expectation, as `no-collusion-gain: {{scheme: corner-wave}}`; got {shown(item)}")
        return None
    place = path if isinstance(item, str) or "name" in item else (*path, name)
    cls, fixed = _expectation_class(name)
    if cls is None:
        known = [*registry.spellings("expectation"), *metrics.METRICS]
        problems.add(place, f"is not a known expectation or metric{_got(item)}{did_you_mean(name, known)}", key=True)
        return None
    where = {} if where is None else where
    if not isinstance(where, dict):
        problems.add(place, f"must be a mapping of filters and bounds; got {shown(where)}")
        return None
    before = len(problems.found)
    _check_filters(place, where, problems, audited)
    resolved = _resolve_filters(place, where, problems, audited)
    parameters = _parameters(place, resolved | fixed, cls.Parameters, (), problems)
    if parameters is not None and len(problems.found) == before:
        expectation = cls(parameters)
        _check_metrics(place, where, expectation, problems, audited)
        return ExpectationUse(name, expectation, where)
    return None


def _got(item: Any) -> str:
    return f": {shown(item)}" if isinstance(item, str) else ""


def _expectation_class(name: str) -> tuple[Any, dict[str, Any]]:
    if name in registry.spellings("expectation"):
        return registry.get("expectation", name), {}
    if metrics.is_metric(metrics.canonical(name)):
        return registry.get("expectation", "metric"), {"metric": metrics.canonical(name)}
    return None, {}


def _check_metrics(path: Path, where: dict[str, Any], expectation: Any, problems: Problems, audited: Audited) -> None:
    named = where.get("metric")
    if isinstance(named, str) and not metrics.is_metric(named):
        problems.add((*path, "metric"), f"is not a known metric: {named!r}{did_you_mean(named, metrics.METRICS)}")
        return
    for metric in {*expectation.needs_metrics, *([named] if isinstance(named, str) else [])}:
        measure = metrics.measured_by(metric)
        if measure is not None and measure not in audited.measures:
            remedy = "give the section `utility:`" if measure == "utility" else "add it under `measures:`"
            problems.add(path, f"needs {measure}, which is not measured; {remedy}")


def _check_filters(path: Path, where: dict[str, Any], problems: Problems, audited: Audited) -> None:
    for field, known in audited.ids.items():
        wanted = where.get(field)
        for name in wanted if isinstance(wanted, list) else [wanted]:
            if name is not None and known and name not in known:
                hint = did_you_mean(name, set(known))
                problems.add((*path, field), f"names no {field} of this scenario: {shown(name)}{hint}")
    swept = where.get("sweep")
    for key, value in swept.items() if isinstance(swept, dict) else ():
        if key not in audited.sweep:
            problems.add((*path, "sweep", key), f"is not swept in this scenario{did_you_mean(key, audited.sweep)}", key=True)
        elif value not in audited.sweep[key]:
            problems.add((*path, "sweep", key), f"is not among the values swept: {shown(value)}")


def _resolve_filters(path: Path, where: dict[str, Any], problems: Problems, audited: Audited) -> dict[str, Any]:
    """Return filters with knowledge as labels, and the coalition checked."""
    resolved = dict(where)
    if where.get("coalition") is not None:
        problems.attempt((*path, "coalition"), parse_coalitions, where["coalition"])
    if where.get("knowledge") is not None:
        items = where["knowledge"] if isinstance(where["knowledge"], list) else [where["knowledge"]]
        resolved["knowledge"] = [_knowledge_label((*path, "knowledge"), item, problems, audited.knowledge) for item in items]
    return resolved


def _knowledge_label(path: Path, item: Any, problems: Problems, known: list[str] | None) -> str:
    """A filter may give a label, a kind's bare name, or what a scenario would write."""
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
        problems.add(path, f"names no knowledge of this scenario: {shown(label)}{did_you_mean(label, known)}")
    return label
