"""Sections ``data``, ``schemes``, ``knowledge``, ``attacks`` and ``coalitions``."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path as FilePath
from typing import Annotated, Any, TypeVar

from pydantic import Field, field_validator

from auditor import registry
from auditor.adversary.attack import (
    MOST_COALITIONS,
    NAMED,
    Attack,
    CategoricalAttack,
    Coalitions,
    RowAttack,
)
from auditor.adversary.knowledge import KINDS, Knowledge
from auditor.base import (
    AuditorError,
    NotApplicable,
    PluginError,
    PluginFailed,
    did_you_mean,
    shortened,
)
from auditor.base.types import Plain
from auditor.data.formats.file_kinds import SAID, SUFFIXES
from auditor.data.table import DataUse, is_file
from auditor.process.containment import contained
from auditor.registry.parameters import FieldError, Form, Path, Problems, Whole, read_entry, shown
from auditor.results.files import located, split_name, with_reading
from auditor.scenario.model import (
    CURRENCIES,
    AttackUse,
    Levels,
    PluginUse,
    Range,
    Scenario,
    SchemeUse,
    parse_levels,
)
from auditor.schemes.corner_wave import AdditiveScheme


class Copies(Form):
    """A list of copies."""

    alone = "copies"
    copies: list[Annotated[int, Field(ge=1)]] = Field(min_length=1)
    """copy numbers from 1, as [1, 3]"""

    @field_validator("copies")
    @classmethod
    def _distinct(cls, copies: list[int]) -> list[int]:
        if len(set(copies)) < len(copies):
            raise ValueError("names a copy twice")
        return copies


class Count(Form):
    """A number of copies or of random coalitions."""

    alone = "count"
    count: Whole = Field(ge=1, le=MOST_COALITIONS)
    """how many, as 100"""


COALITIONS: dict[str, type[Form]] = {
    **dict.fromkeys(NAMED, Form),
    "copies": Copies,
    "first": Count,
    "random": Count,
}


def parse_coalitions(value: Any) -> Coalitions:
    """Parse one entry of ``coalitions``, or a filter's ``coalition``.

    Raises
    ------
    FormError
        Invalid entry; the message states the expected form.
    """
    entry = {"copies": list(value)} if isinstance(value, (list, tuple)) else value
    name, form = read_entry(entry, COALITIONS, "copy numbers or a set of coalitions")
    copies = tuple(sorted(form.copies)) if name == "copies" else ()
    return Coalitions(name, copies, getattr(form, "count", 0))


EVERY = "all"
"""Name of all applicable attacks."""
DECIDING = ("singles", "prefixes", "all")
"""Deciding coalitions: each recipient, growing prefixes, and all copies."""


class UseForm(Form):
    """Fields of every use of a plugin."""

    name: str
    id: str | None = Field(None, min_length=1)


F = TypeVar("F", bound=UseForm)


class AttackForm(UseForm):
    """Fields of every attack."""

    coalitions: Any = None


class SchemeForm(UseForm):
    """Fields of every scheme."""

    levels: Any = None
    already_out: float = Field(0, ge=0)
    """copies, or their share below 1, that are out before the last request"""
    public_grid: bool = False
    """whether copies are on the grid of copies for release"""
    per_unit: bool = False
    """whether all records of one `data: {unit: …}` have one noise"""

    @field_validator("already_out", mode="before")
    @classmethod
    def _copies_or_share(cls, value: Any) -> Any:
        if isinstance(value, float) and value >= 1:
            raise FieldError(f"must be a number of copies, or a share of them below 1; got {value}")
        return value


def read_schemes(fields: Plain, problems: Problems) -> tuple[SchemeUse, ...]:
    """Return the section ``schemes`` without invalid entries; report errors."""
    items = problems.sequence(("schemes",), fields["schemes"]) if "schemes" in fields else []
    items = [_of_categories(item, fields.get("data")) for item in items]
    problems.unique(("schemes",), map(id_of, items), "scheme")
    uses = [_scheme(("schemes", place), item, problems) for place, item in enumerate(items)]
    return tuple(use for use in uses if use is not None)


def _of_categories(use: Any, data: Any) -> Any:
    named = (
        isinstance(use, Mapping) and use.get("name") == "published" and isinstance(data, Mapping)
    )
    if not named or not (data.get("categorical") or data.get("bin")) or _adds_noise(use.get("law")):
        return use
    return {**use, "name": "published-categories", "id": use.get("id", "published")}


def _adds_noise(law: Any) -> bool:
    return isinstance(law, Mapping) and ("covariance" in law or _is_additive(law.get("scheme")))


def _is_additive(name: Any) -> bool:
    known = name in registry.names("scheme")
    return known and issubclass(registry.get("scheme", name), AdditiveScheme)


def every_attack(
    schemes: Iterable[PluginUse], knowledge: Sequence[Knowledge], *, categories: bool
) -> list[Plain]:
    """Entry of ``attacks`` for every applicable attack that is ``in_all``.

    It can use some knowledge against some scheme. Row attacks get only the deciding coalitions.
    With
    ``categories``, categorical attacks also apply to copies with added noise, unless serial.
    """
    families, entries = {registry.get("scheme", use.name).family for use in schemes}, []
    for name in registry.names("attack"):
        with contained():
            cls: type[Attack] = registry.get("attack", name)
            applying = categories or cls.families & families or cls.form is not Attack.form
            if not (cls.in_all and applying):
                continue  # saves slow construction
            attack = cls(cls.Parameters()).form()
            binned = categories and isinstance(attack, CategoricalAttack) and not attack.serial
            if binned or any(applies(attack, f, k) for f in families for k in knowledge):
                by_rows = isinstance(attack, RowAttack) or attack.serial
                entries.append(
                    {"name": name, "coalitions": list(DECIDING)} if by_rows else {"name": name}
                )
    return entries


def none_applies(schemes: Sequence[PluginUse], knowledge: Sequence[Knowledge]) -> str:
    """Explanation why `all` finds no attack, with useful knowledge."""
    families = {registry.get("scheme", use.name).family for use in schemes}
    attacks: list[type[Attack]] = [
        registry.get("attack", name) for name in registry.names("attack")
    ]
    needed = sorted(
        {known for attack in attacks if attack.families & families for known in attack.knowledge}
    )
    stated, against = (
        " or ".join(dict.fromkeys(item.name for item in items)) for items in (knowledge, schemes)
    )
    use = f", whose attacks use {' or '.join(needed)}" if needed else ""
    return f"must include one that applies: none can use {stated} knowledge against {against}{use}"


def untried(scenario: Scenario) -> list[str]:
    """Attacks of `all` outside a scenario that has attacks."""
    every = every_attack(
        scenario.schemes,
        scenario.knowledge,
        categories=bool(scenario.data.bin or scenario.data.categorical),
    )
    used = {use.name for use in scenario.attacks}
    return [entry["name"] for entry in every if used and entry["name"] not in used]


def applies(attack: Attack, family: str, knowledge: Knowledge) -> bool:
    """Whether an attack can use knowledge against a family."""
    try:
        attack.check(family, knowledge)
    except NotApplicable:
        return False
    return True


def read_attacks(fields: Plain, problems: Problems) -> tuple[AttackUse, ...]:
    """Return the section ``attacks`` without invalid entries; report errors."""
    uses = []
    items = problems.sequence(("attacks",), fields["attacks"]) if "attacks" in fields else []
    problems.unique(("attacks",), map(id_of, items), "attack")
    for place, item in enumerate(items):
        path = ("attacks", place)
        cls, form, parameters = _use("attack", AttackForm, path, item, problems)
        tried: tuple[Coalitions, ...] = ()
        if form is not None and form.coalitions is not None:
            tried = read_coalitions((*path, "coalitions"), form.coalitions, problems)
        if form is not None and parameters is not None:
            uses.append(AttackUse(cls.name, form.id or cls.name, parameters, tried))
    return tuple(uses)


def read_coalitions(path: Path, value: Any, problems: Problems) -> tuple[Coalitions, ...]:
    """Return a list of coalition entries and report errors."""
    return tuple(filter(None, problems.each(path, parse_coalitions, value)))


def id_of(item: Any) -> str | None:
    """Id of a use, even of an invalid one."""
    name = item.get("id", item.get("name")) if isinstance(item, dict) else item
    return name if isinstance(name, str) else None


def _use(
    kind: str, form: type[F], path: Path, item: Any, problems: Problems
) -> tuple[Any, F | None, Any]:
    given = {"name": item} if isinstance(item, str) else item
    if not isinstance(given, dict):
        problems.add(
            path, f"must be a name, or a mapping with `name` and parameters; got {shown(item)}"
        )
        return None, None, None
    shared = {field.alias or name for name, field in form.model_fields.items()}
    common = {key: value for key, value in given.items() if key.replace("_", "-") in shared}
    read = problems.model(path, common, form)
    name = given.get("name")
    if not isinstance(name, str):
        return None, None, None
    try:
        cls = registry.get(kind, name)
    except PluginError as error:
        where = path if isinstance(item, str) else (*path, "name")
        problems.add(where, f"names an {error}" if str(error).startswith("unknown") else str(error))
        return None, None, None
    own = {key: value for key, value in given.items() if key not in common}
    return cls, read, problems.model(path, own, cls.Parameters, tuple(shared))


def _scheme(path: Path, item: Any, problems: Problems) -> SchemeUse | None:
    levels: Levels | None = None
    if isinstance(item, dict) and "levels" in item:
        levels = problems.attempt((*path, "levels"), parse_levels, item["levels"])
        if levels is not None and levels.currency is not None and _is_additive(item.get("name")):
            size = CURRENCIES[levels.currency]
            if item.get("noise", size) != size:
                why = f"levels are by {levels.currency}, which says how large the noise is"
                problems.add((*path, "noise"), f"must be left out where {why}")
            item = {"noise": size} | item
    cls, form, parameters = _use("scheme", SchemeForm, path, item, problems)
    if cls is None:
        return None
    if cls.needs_levels and not (isinstance(item, dict) and "levels" in item):
        problems.add(
            (*path, "levels"),
            "is required: a list in order of release, or a range, as {uniform: [0.25, 1.0], count: 5}",
        )
    if form is not None and form.public_grid and not cls.on_grid:
        why = f"left out: {cls.name} draws no noise onto a grid"
        problems.add((*path, "public-grid"), f"must be {why}")
    if form is not None and form.per_unit and not cls.makes_copies:
        problems.add((*path, "per-unit"), f"must be left out: {cls.name} draws no copies")
    with contained():  # an unusable scheme fails in the run
        scheme = cls() if parameters is None else cls(parameters)
        _check_levels((*path, "levels"), scheme, levels, problems)
    if form is None or parameters is None:
        return None
    already = int(form.already_out) if form.already_out >= 1 else form.already_out
    flags = form.public_grid, form.per_unit
    return SchemeUse(cls.name, form.id or cls.name, parameters, levels, already, *flags)


def _check_levels(path: Path, scheme: Any, levels: Levels | None, problems: Problems) -> None:
    # stated levels are checked with the data
    if levels is None or levels.currency is not None:
        return
    ends = levels.given[1] if isinstance(levels, Range) else levels.values or ()
    message = _refusal(scheme, ends)
    if message is not None:
        # the last level of the shortest prefix with this message is wrong
        place = next(k for k in range(len(ends)) if _refusal(scheme, ends[: k + 1]) == message)
        exact = levels.values is not None and len(ends) > 1
        problems.add((*path, place) if exact else path, f"cannot be used: {message}")


def _refusal(scheme: Any, levels: Sequence[float]) -> str | None:
    with contained() as failure:
        scheme.check_levels(levels)
    if isinstance(failure.error, PluginFailed):
        return f"{scheme.name} broke while checking them: {failure.reason}"
    return failure.reason or None


# -- Sections ``data`` and ``knowledge`` -----------------------------------------------------------


DATA_FIELDS = tuple(
    field.alias or name for name, field in DataUse.model_fields.items() if name != "parameters"
)


def read_data(value: Any, problems: Problems, base: FilePath | None) -> DataUse | None:
    """Return the section ``data`` or None, and report its errors.

    A file is searched in ``base``, then in the working directory. It is not opened.
    """
    given = {"source": value} if isinstance(value, str) else value
    if not isinstance(given, dict):
        problems.add(
            ("data",),
            f"must be a source's name, a path or a mapping with `source`; got {shown(value)}",
        )
        return None
    common = {key: item for key, item in given.items() if key.replace("_", "-") in DATA_FIELDS}
    form = problems.model(("data",), common, DataUse)
    source = given.get("source")
    if not isinstance(source, str):
        return None
    own = {key: item for key, item in given.items() if key not in common}
    parameters = _source_parameters(source, own, problems, base)
    if form is None:
        return None
    if is_file(source):
        with suppress(AuditorError):  # reported before
            source = with_reading(source, form.sheet, form.blank)
    elif registry.has("source", source):
        for name in ("sheet", "blank"):
            if getattr(form, name) is not None:
                problems.add(("data", name), "is of a file; a registered source has none", True)
    read = {"source": source, "sheet": None, "blank": None, "parameters": parameters}
    return form.model_copy(update=read)


def _source_parameters(source: str, own: Plain, problems: Problems, base: FilePath | None) -> Plain:
    if registry.has("source", source):
        parameters = registry.get("source", source).Parameters
        model = problems.model(("data",), own, parameters, DATA_FIELDS)
        return {} if model is None else model.model_dump(mode="json", by_alias=True)
    problems.model(("data",), own, Form, DATA_FIELDS)
    try:
        there = located(source, base)
    except AuditorError as error:
        problems.add(("data", "source"), f"cannot be used: {error}")
        return {}
    folder = any(path.is_dir() for path in there)
    given = shortened(repr(source), 120)
    bare = split_name(source)[0]
    if not bare.lower().endswith(SUFFIXES) and not (folder and ("/" in bare or "\\" in bare)):
        hint = did_you_mean(source, registry.names("source"))
        if folder:
            hint = f"; write {source + '/'!r} for the folder of that name"
        problems.add(
            ("data", "source"),
            f"must be a registered source or a path to {SAID}; got {given}{hint}",
        )
    elif not there:
        problems.add(("data", "source"), f"names a file that is not there: {given}")
    return {}


def parse_knowledge(value: Any) -> Knowledge:
    """Parse a state of knowledge from a scenario or a Python call.

    Raises
    ------
    FormError
        Invalid knowledge, with the place and the expected form.
    """
    if isinstance(value, Knowledge):
        return value
    knowledge: Knowledge = read_entry(value, KINDS, "a state of knowledge")[1]
    return knowledge
