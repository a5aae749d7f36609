"""Reading of a `Scenario` from a file, a mapping or a shipped name."""

import math
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema as Schema

from auditor.base import (
    AuditorError,
    Problem,
    ScenarioError,
    clean,
    did_you_mean,
    listed,
    seconds,
    shortened,
)
from auditor.base.types import Options, Plain
from auditor.data.formats import file_kinds
from auditor.process.environment import shipped_scenarios
from auditor.registry.parameters import (
    FieldError,
    Form,
    Found,
    Path,
    Problems,
    Whole,
    format_path,
    is_number,
    parse_path,
    plain,
    shown,
)
from auditor.results.files import located
from auditor.results.metrics import WORKS
from auditor.scenario.model import FIELDS, SCENARIO_VERSION, DataUse, Scenario, SchemeUse
from auditor.scenario.read_expectations import (
    Audited,
    parse_utility,
    read_expectations,
    read_measures,
)
from auditor.scenario.read_plugins import (
    EVERY,
    every_attack,
    none_applies,
    parse_knowledge,
    read_attacks,
    read_coalitions,
    read_data,
    read_schemes,
)
from auditor.scenario.yaml_document import Places, load_file, put

Source = str | os.PathLike[str] | Options | Scenario


def read_scenario(
    source: Source, overrides: Iterable[tuple[str, Any]] = (), seed: int | None = None
) -> Scenario:
    """Checked scenario of a YAML file, a shipped name, a mapping or a Scenario.

    ``overrides`` are changes before any check, as ``("data.rows", 1000)``.

    Raises
    ------
    ScenarioError
        All errors, each with file, line, column and field.
    AuditorError
        The file does not exist, or an override's path is invalid.
    """
    value, name, base, places = _open(source)
    changes = [*overrides, *([("seed", seed)] if seed is not None else [])]
    value, changed = put(value, [(parse_path(path), plain(new)) for path, new in changes])
    places = replace(places, changed=(*places.changed, *changed))
    problems = Problems()
    scenario = assemble(value, problems, base, name)
    check_points(scenario, problems)
    if problems.found:
        raise ScenarioError(places.located(problems.found))
    scenario = replace(scenario, places=places)
    return replace(scenario, swept=_swept_points(scenario) if scenario.sweep else ())


def _open(source: Source) -> tuple[Any, str, FilePath | None, Places]:
    if isinstance(source, Scenario):
        return source.document, source.name, source.base, source.places
    if isinstance(source, Mapping):
        return plain(source), "audit", None, Places()
    if not isinstance(source, str | os.PathLike):
        raise AuditorError(
            f"a scenario is a path, a name, a mapping or a Scenario; got {type(source).__name__}"
        )
    path = find_scenario(source)
    if path.stem in (".", ".."):
        raise AuditorError(
            f"{path}: results go to a folder named after the file, which must not be {path.stem!r}; rename the file"
        )
    check_no_table(path)
    document = load_file(path)
    return document.value, path.stem, path.parent, Places(document)


def find_scenario(name: str | os.PathLike[str]) -> FilePath:
    """Path of a scenario file, or of a shipped scenario.

    Raises
    ------
    AuditorError
        Neither exists.
    """
    path = FilePath(name)
    if there := located(str(name)):
        return there[0]
    shipped = {item.stem: item for item in shipped_scenarios()}
    if (
        path.parent in (FilePath(), FilePath("scenarios"))
        and path.name.removesuffix(".yaml") in shipped
    ):
        return shipped[path.name.removesuffix(".yaml")]
    raise AuditorError(
        f"{shortened(clean(path), 100)}: no such scenario file{did_you_mean(path.stem, shipped)}"
    )


LOOKED_AT = 2**20
"""Bytes at the start of a file, larger than scenarios."""

_NAMES = "|".join(FIELDS)
_FIELD = re.compile(
    rf"""^[\s{{,]*["']?({_NAMES})["']?\s*:(?!\S)|\A\s*{{.*["']({_NAMES})["']\s*:""",
    re.MULTILINE | re.DOTALL,
)
"""A scenario field at the start of a line, or anywhere in a line of JSON."""


def check_no_table(path: FilePath) -> None:
    """Refuse a file without scenario fields, with advice.

    The message has no quotation. The reader reports unreadable files and other encodings.

    Raises
    ------
    AuditorError
        The file is not a scenario.
    """
    file = shortened(str(path), 100)
    try:
        inside = [path] if path.is_file() else [each for each in path.iterdir() if each.is_file()]
        if any(each.suffix.lower() in file_kinds.SUFFIXES for each in inside):
            table = shlex.quote(f"{path}{'/' * path.is_dir()}")
            raise AuditorError(
                f"{file}: is a table, not a scenario; `auditor new audit.yaml --data {table}` makes a scenario of it"
            )
        with path.open("rb") as stream:
            start = stream.read(LOOKED_AT)
    except (OSError, ValueError):
        return
    text = re.sub(r"^\s*#.*$", "", start.decode("utf-8-sig", "replace"), flags=re.MULTILINE)
    utf16 = start.startswith((b"\xff\xfe", b"\xfe\xff"))
    if text.strip() and not utf16 and not _FIELD.search(text):
        raise AuditorError(
            f"{file}: is no scenario: none of its lines begins with a field of one, as `data:` or `schemes:`; "
            "`auditor new audit.yaml` writes a scenario to start from, and its data: source names the table"
        )


MOST_POINTS = 10_000


def read_sweep(fields: Plain, problems: Problems) -> dict[str, list[Any]]:
    """Return the section ``sweep`` without invalid entries, and report errors."""
    value = {} if fields.get("sweep") is None else fields["sweep"]
    if not isinstance(value, dict):
        problems.add(
            ("sweep",), f"must map paths of this file to lists of values; got {shown(value)}"
        )
        return {}
    sweep, points = {}, 1
    for path, values in value.items():
        if not isinstance(values, list) or not values:
            problems.add(("sweep", path), f"must be a list of values to try; got {shown(values)}")
            continue
        if why := _refused(path):
            problems.add(("sweep", path), why, key=True)
            continue
        # 1 and 1.0 are equal, and would look like replicates
        texts = [repr(float(v) if type(v) is int and abs(v) < 2**53 else v) for v in values]
        for number, text in enumerate(texts):
            if text in texts[:number]:
                problems.add(
                    ("sweep", path, number),
                    f"repeats a value of this path: {shown(values[number])}",
                )
        points *= len(values)
        sweep[path] = values
    if points > MOST_POINTS:
        problems.add(("sweep",), f"has {points:,} combinations; at most {MOST_POINTS:,}")
    return sweep


def _refused(path: str) -> str:
    try:
        head = (*parse_path(path), "")[0]
    except AuditorError as error:
        return f"is not a path of this file: {error}"
    if head in ("sweep", "expect"):
        return "cannot be swept; any section except sweep and expect can"
    return "" if head in FIELDS else f"is not a path of this file{did_you_mean(head, FIELDS)}"


MOST_SEED = 2**128
_VALUES = {"type": "array", "minItems": 1}
_DURATION = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "string", "pattern": r"^\s*\d+\.?\d*\s*(s|min|h)?\s*$"},
    ]
}
_SWEEP = {"type": ["object", "null"], "additionalProperties": _VALUES}


def _version(value: Any) -> Any:
    if type(value) is not int or value != SCENARIO_VERSION:
        raise FieldError(
            f"must be {SCENARIO_VERSION}, the version that this program reads; got {shown(value)}"
        )
    return value


def _duration(value: Any) -> Any:
    found = seconds(value) if isinstance(value, str) else value
    if not is_number(found) or not 0 < found < math.inf:
        raise FieldError(f"must be a duration above 0, as 30s, 5min or 1h; got {shown(value)}")
    return float(found)


def _cited(keys: list[str]) -> list[str]:
    for place, key in enumerate(keys):
        if key not in WORKS:
            hint = did_you_mean(key, WORKS)
            raise FieldError(f"is not in the bibliography: {shown(key)}{hint}", place)
    return keys


def _several(value: Any) -> Any:
    return [] if value is None else [value] if isinstance(value, str) else value


class Document(Form):
    """A scenario's sections; other functions read sections without a type."""

    schema_: Annotated[Literal[1], BeforeValidator(_version)] = Field(1, alias="schema")
    """version of this format"""
    title: str = ""
    cite: Annotated[list[str], BeforeValidator(_several), AfterValidator(_cited)] = Field([])
    seed: Whole = Field(0, ge=0, le=MOST_SEED)
    """with scenario and data, it determines the whole run"""
    data: Any
    schemes: Any
    knowledge: Any = "perfect"
    coalitions: Any = ("singles", "all")
    attacks: Any = None
    measures: Any = None
    utility: Any = None
    sweep: Annotated[Any, Schema(_SWEEP)] = None
    replicates: Whole = Field(1, ge=1, le=100_000)
    budget: Annotated[float | None, BeforeValidator(_duration), Schema(_DURATION)] = None
    """work of the whole audit, in seconds of a nominal core, as 30s or 5min"""
    expect: Any = None


def assemble(
    value: Any, problems: Problems, base: FilePath | None = None, name: str = "audit"
) -> Scenario:
    """Return the scenario of plain values and report every error.

    A scenario with errors must not be run. ``base`` is the first folder for data, ``name`` the
    default title.
    """
    form = problems.model((), value, Document)
    fields: Plain = dict(value) if isinstance(value, dict) else {}
    form = form or Document.model_validate({"data": None, "schemes": None})
    if "attacks" not in fields and "utility" not in fields:
        problems.add(("attacks",), "is required, unless the scenario measures `utility`")
    schemes = read_schemes(fields, problems)
    data = read_data(fields["data"], problems, base) if "data" in fields else None
    data, schemes = with_shared_key(data, schemes, problems)
    if any(use.levels and use.levels.currency for use in schemes):
        # rarely needed, with many imports
        from auditor.scenario.arguments import with_stated_levels

        schemes = with_stated_levels(schemes, data, problems)
    states = problems.each(("knowledge",), parse_knowledge, fields.get("knowledge", "perfect"))
    problems.unique(
        ("knowledge",), [None if state is None else state.label for state in states], "knowledge"
    )
    knowledge = tuple(state for state in states if state is not None)
    asked = fields.get("attacks")
    if asked == EVERY or (isinstance(asked, list) and EVERY in asked):
        categories = data is not None and bool(data.bin or data.categorical)
        every = every_attack(schemes, knowledge, categories=categories)
        items = asked if isinstance(asked, list) else [asked]
        fields["attacks"] = [
            entry for item in items for entry in (every if item == EVERY else [item])
        ]
        if not fields["attacks"]:
            del fields["attacks"]
            if schemes and knowledge:  # else report schemes and knowledge first
                problems.add(("attacks",), none_applies(schemes, knowledge))
    attacks = read_attacks(fields, problems)
    measures = read_measures(fields, problems)
    utility = parse_utility(fields["utility"], problems) if "utility" in fields else None
    sweep = read_sweep(fields, problems)
    audited = Audited.of(fields, knowledge, measures, utility, sweep)
    expect = read_expectations(fields, problems, audited)
    coalitions = fields.get("coalitions", ["singles", "all"])
    return Scenario(
        title=form.title if "title" in fields else name,
        seed=form.seed,
        data=data or DataUse.model_construct(source="gaussian"),
        schemes=schemes,
        knowledge=knowledge,
        coalitions=read_coalitions(("coalitions",), coalitions, problems),
        attacks=attacks,
        measures=measures,
        sweep=sweep,
        replicates=form.replicates,
        budget=form.budget,
        expect=expect,
        cite=tuple(form.cite),
        utility=utility,
        base=base,
        name=name,
        document=value if isinstance(value, dict) else {},
    )


def with_shared_key(
    data: DataUse | None, schemes: Sequence[SchemeUse], problems: Problems
) -> tuple[DataUse | None, tuple[SchemeUse, ...]]:
    """Data without the key column, and schemes joined by it.

    A key of the data joins all copies from files, a scheme's own key its copies.
    """
    joined = [use for use in schemes if "key" in type(use.parameters).model_fields]
    own = data.key if data is not None else None
    keys = list(
        filter(
            None, dict.fromkeys([own, *(getattr(use.parameters, "key", None) for use in joined)])
        )
    )
    if data is None or not keys:
        return data, tuple(schemes)
    where = ("schemes",) if own is None else ("data", "key")
    audited = (*(data.columns or ()), *data.bin, *data.categorical, *data.hierarchies, *data.dates)
    if len(keys) > 1:
        problems.add(
            where, f"must name one key column for the whole scenario; here are {listed(keys)}"
        )
    elif keys[0] in audited:
        problems.add(
            where,
            f"name{'s' * (own is not None)} the key {listed(keys)}, which is audited: a key only identifies records",
        )
    if own is not None:
        schemes = [
            replace(use, parameters=use.parameters.model_copy(update={"key": own}))
            if use in joined
            else use
            for use in schemes
        ]
    return data.model_copy(update={"key": keys[0]}), tuple(schemes)


def check_points(scenario: Scenario, problems: Problems) -> None:
    """Check the scenario at every swept value, before anything runs."""
    anyway = {(path, message) for path, message, _ in problems.found}
    before: dict[Path, str] = {}
    for path, values in scenario.sweep.items():
        places: list[Path] = []
        for number, value in enumerate(values):
            try:
                built, found = _at_point(scenario, {path: value})
            except AuditorError as error:
                problems.add(("sweep", path), f"is not a path of this file: {error}", key=True)
                break
            places = [place for place, _ in built.places.swept]
            if new := [item[:2] for item in found if item[:2] not in anyway]:
                first = Problem(format_path(new[0][0]), new[0][1])
                problems.add(("sweep", path, number), f"makes an invalid scenario: {first}")
        for place, other in before.items():
            if any(place[: len(new_place)] == new_place for new_place in places):
                problems.add(
                    ("sweep", path),
                    f"would overwrite what {other} has set: put it first, or leave one of them out",
                    key=True,
                )
                break
        before |= dict.fromkeys(places, path)


def _swept_points(scenario: Scenario) -> tuple[Scenario, ...]:
    points, problems = [], dict[str, Problem]()
    for values in product(*scenario.sweep.values()):
        built, found = _at_point(scenario, dict(zip(scenario.sweep, values, strict=True)))
        points.append(built)
        problems |= {str(problem): problem for problem in built.places.located(found)}
    if problems:
        raise ScenarioError(problems.values())
    return tuple(points)


def _at_point(scenario: Scenario, point: Plain) -> tuple[Scenario, list[Found]]:
    value: Any = {k: v for k, v in scenario.document.items() if k not in ("sweep", "expect")}
    swept: list[tuple[Path, Path]] = []
    for path, item in point.items():
        value, places = put(value, [(parse_path(path), item)])
        origin = ("sweep", path, scenario.sweep[path].index(item))
        swept += [(place, origin) for place in places]
    here, problems = replace(scenario.places, swept=tuple(swept)), Problems()
    built = assemble(value, problems, scenario.base, scenario.name)
    return replace(built, places=here, expect=scenario.expect, point=point), problems.found
