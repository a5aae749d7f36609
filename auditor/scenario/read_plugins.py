"""Sections ``schemes`` and ``attacks``: plugin uses with parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from auditor import registry
from auditor.adversary.attack import Attack, RowAttack
from auditor.adversary.categorical_attack import CategoricalAttack
from auditor.adversary.coalitions import Coalitions
from auditor.adversary.knowledge import Knowledge
from auditor.errors import NotApplicable, PluginError, PluginFailed, did_you_mean
from auditor.parameters import is_number, shown
from auditor.process.containment import contained
from auditor.registry import PluginParameters
from auditor.scenario.levels import CURRENCIES, Levels, parse_levels
from auditor.scenario.model import AttackUse, PluginUse, Scenario, SchemeUse
from auditor.scenario.problems import Path, Problems
from auditor.scenario.read_coalitions import parse_coalitions
from auditor.schemes.base.additive import AdditiveScheme

SCHEME_FIELDS = ("name", "id", "levels", "already-out", "public-grid")
ATTACK_FIELDS = ("name", "id", "coalitions")
EVERY = "all"
"""Name for all applicable attacks."""
DECIDING = ("singles", "prefixes", "all")
"""Deciding coalitions: each recipient, growing prefixes, and all copies."""


def read_schemes(
    fields: dict[str, Any], problems: Problems, base: FilePath | None
) -> tuple[SchemeUse, ...]:
    """Return the section ``schemes`` without invalid entries; report errors.

    Paths in parameters are relative to the folder ``base``.
    """
    items = problems.sequence(("schemes",), fields["schemes"]) if "schemes" in fields else []
    items = [_of_categories(item, fields.get("data")) for item in items]
    problems.unique(("schemes",), map(id_of, items), "scheme")
    uses = [_scheme(("schemes", place), item, problems, base) for place, item in enumerate(items)]
    return tuple(use for use in uses if use is not None)


def _of_categories(use: Any, data: Any) -> Any:
    """Return `published` as `published-categories` if the data are categories.

    The entry must not state added noise.
    """
    named = (
        isinstance(use, Mapping) and use.get("name") == "published" and isinstance(data, Mapping)
    )
    if not named or not (data.get("categorical") or data.get("bin")) or _adds_noise(use.get("law")):
        return use
    return {**use, "name": "published-categories", "id": use.get("id", "published")}


def _adds_noise(law: Any) -> bool:
    if not isinstance(law, Mapping):
        return False
    name = law.get("scheme")
    return "covariance" in law or (
        name in registry.names("scheme") and bool(registry.get("scheme", name).adds_noise)
    )


def every_attack(
    schemes: Iterable[PluginUse], knowledge: Sequence[Knowledge], *, categories: bool
) -> list[dict[str, Any]]:
    """Return an entry of ``attacks`` for every applicable attack.

    An attack applies if it can use some of the knowledge against some of the schemes. Row attacks
    get only the deciding coalitions. With ``categories``, categorical attacks also apply to copies
    with added noise, unless serial. Attacks without usable defaults are excluded.
    """
    families, entries = {registry.get("scheme", use.name).family for use in schemes}, []
    for name in registry.names("attack"):
        with contained():
            cls: type[Attack] = registry.get("attack", name)
            if not (categories or cls.families & families or cls.form is not Attack.form):
                continue  # saves the slow construction of parameters
            attack = cls(cls.Parameters()).form()
            binned = categories and isinstance(attack, CategoricalAttack) and not attack.serial
            if binned or any(applies(attack, f, k) for f in families for k in knowledge):
                by_rows = isinstance(attack, RowAttack) or attack.serial
                entries.append(
                    {"name": name, "coalitions": list(DECIDING)} if by_rows else {"name": name}
                )
    return entries


def none_applies(schemes: Sequence[PluginUse], knowledge: Sequence[Knowledge]) -> str:
    """Explain why `all` finds no attack, and name useful knowledge."""
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
    """Return applicable attacks outside a scenario that has attacks."""
    every = every_attack(
        scenario.schemes,
        scenario.knowledge,
        categories=bool(scenario.data.bins or scenario.data.categorical),
    )
    used = {use.name for use in scenario.attacks}
    return [entry["name"] for entry in every if used and entry["name"] not in used]


def applies(attack: Attack, family: str, knowledge: Knowledge) -> bool:
    """Whether an attack can use knowledge against a family of schemes."""
    try:
        attack.check(family, knowledge)
    except NotApplicable:
        return False
    return True


def read_attacks(fields: dict[str, Any], problems: Problems) -> tuple[AttackUse, ...]:
    """Return the section ``attacks`` without invalid entries; report errors."""
    uses = []
    items = problems.sequence(("attacks",), fields["attacks"]) if "attacks" in fields else []
    problems.unique(("attacks",), map(id_of, items), "attack")
    for place, item in enumerate(items):
        found = _named("attack", ("attacks", place), item, problems)
        if found is None:
            continue
        cls, given = found
        own = {key: value for key, value in given.items() if key not in ATTACK_FIELDS}
        parameters = plugin_parameters(
            ("attacks", place), own, cls.Parameters, ATTACK_FIELDS, problems
        )
        tried = (
            read_coalitions(("attacks", place, "coalitions"), given["coalitions"], problems)
            if "coalitions" in given
            else ()
        )
        if parameters is not None:
            uses.append(AttackUse(cls.name, str(given.get("id", cls.name)), parameters, tried))
    return tuple(uses)


def read_coalitions(path: Path, value: Any, problems: Problems) -> tuple[Coalitions, ...]:
    """Return a list of coalition entries and report errors."""
    parsed = [
        problems.attempt((*path, place), parse_coalitions, item)
        for place, item in enumerate(problems.sequence(path, value))
    ]
    return tuple(entry for entry in parsed if entry is not None)


def id_of(item: Any) -> str | None:
    """Return the id of a plugin use, even of an invalid one."""
    name = item.get("id", item.get("name")) if isinstance(item, dict) else item
    return name if isinstance(name, str) else None


def plugin_parameters(
    path: Path,
    own: dict[str, Any],
    model: type[PluginParameters],
    reserved: Iterable[str],
    problems: Problems,
) -> PluginParameters | None:
    """Return validated parameters; a reserved field may be misspelt."""
    known = [field.alias or name for name, field in model.model_fields.items()]
    spelt = {
        key.replace("_", "-") if key.replace("_", "-") in known else key: value
        for key, value in own.items()
    }
    unknown = [key for key in spelt if key not in known]
    for key in unknown:
        problems.add(
            (*path, key), f"is not a known field{did_you_mean(key, [*known, *reserved])}", key=True
        )
    before = len(problems.found)
    checked = problems.model(
        path, {key: value for key, value in spelt.items() if key in known}, model
    )
    if unknown:  # a misspelt field may cause further errors at this place
        problems.found[before:] = [
            problem for problem in problems.found[before:] if problem[0] != path
        ]
        return None
    return checked


def _named(
    kind: str, path: Path, item: Any, problems: Problems
) -> tuple[Any, dict[str, Any]] | None:
    given = {"name": item} if isinstance(item, str) else item
    if not isinstance(given, dict):
        problems.add(
            path, f"must be a name, or a mapping with `name` and parameters; got {shown(item)}"
        )
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


def _scheme(path: Path, item: Any, problems: Problems, base: FilePath | None) -> SchemeUse | None:
    found = _named("scheme", path, item, problems)
    if found is None:
        return None
    cls, given = found
    own = {key: value for key, value in given.items() if key not in SCHEME_FIELDS}
    levels = (
        problems.attempt((*path, "levels"), parse_levels, given["levels"])
        if "levels" in given
        else None
    )
    if levels is not None and levels.currency is not None and issubclass(cls, AdditiveScheme):
        size = CURRENCIES[levels.currency]
        if own.setdefault("noise", size) != size:
            problems.add(
                (*path, "noise"),
                f"must be left out where levels are by {levels.currency}, which says how large the noise is",
            )
    parameters = plugin_parameters(path, own, cls.Parameters, SCHEME_FIELDS, problems)
    if "levels" not in given and cls.needs_levels:
        problems.add(
            (*path, "levels"),
            "is required: a list in order of release, or a range, as {uniform: [0.25, 1.0], count: 5}",
        )
    already = _already_out((*path, "already-out"), given.get("already-out", 0), problems)
    grid = given.get("public-grid", False)
    if not isinstance(grid, bool) or (grid and not cls.on_grid):
        lies = (
            f"left out: {cls.name} draws no noise onto a grid"
            if grid is True
            else f"true or false; got {shown(grid)}"
        )
        problems.add((*path, "public-grid"), f"must be {lies}")
    with contained():  # an unusable scheme fails in the run
        _check_levels(
            (*path, "levels"), cls() if parameters is None else cls(parameters), levels, problems
        )
    if parameters is None:
        return None
    return SchemeUse(
        cls.name, str(given.get("id", cls.name)), parameters, levels, already, grid is True
    )


def _check_levels(path: Path, scheme: Any, levels: Levels | None, problems: Problems) -> None:
    # stated levels are resolved and checked later with the data
    if levels is None or levels.currency is not None:
        return
    ends = levels.values if levels.values is not None else (levels.low, levels.high)
    message = _refusal(scheme, ends)
    if message is not None:
        # the wrong level is the last one of the shortest prefix with this message
        culprit = next(
            (k for k in range(len(ends)) if _refusal(scheme, ends[: k + 1]) == message), None
        )
        exact = levels.values is not None and culprit is not None and len(ends) > 1
        problems.add(
            (*path, culprit) if exact and culprit is not None else path,
            f"cannot be used: {message}",
        )


def _refusal(scheme: Any, levels: tuple[float, ...]) -> str | None:
    with contained() as failure:
        scheme.check_levels(levels)
    if isinstance(failure.error, PluginFailed):
        return f"{scheme.name} broke while checking them: {failure.reason}"
    return failure.reason or None


def _already_out(path: Path, value: Any, problems: Problems) -> float | int:
    if not is_number(value) or not (0 <= value < 1 or isinstance(value, int)) or value < 0:
        problems.add(
            path, f"must be a number of copies, or a share of them below 1; got {shown(value)}"
        )
        return 0
    return value
