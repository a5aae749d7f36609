"""Messages of pydantic's errors: field, expected value, nearest name."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeGuard

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from auditor.errors import did_you_mean

Path = tuple[str | int, ...]

_KINDS = {
    str: "text",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


def is_whole(value: Any, low: float = -math.inf, high: float = math.inf) -> TypeGuard[int]:
    """Whether a value is an integer in a range; booleans are not."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a value is a number; booleans are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def whole(value: Any) -> Any:
    """Convert a double with an integer value, for counts like ``1e5``.

    Examples
    --------
    >>> whole(1e5), whole(2.5), whole(True), whole("1")
    (100000, 2.5, True, '1')
    """
    return (
        int(value)
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**53
        else value
    )


def kind_of(value: object) -> str:
    """Name a value's kind for a message: ``an integer``, ``a list``."""
    return _KINDS.get(type(value), "a list" if isinstance(value, list) else "a mapping")


class _Finding(NamedTuple):
    """One pydantic error with its field and its union branches."""

    place: Path
    branches: tuple[tuple[Path, str | int], ...]
    item: ErrorDetails

    @property
    def kind(self) -> str:
        return self.item["type"]

    def within(self, place: Path) -> str | int | None:
        return next((branch for at, branch in self.branches if at == place), None)


def explain(
    error: ValidationError, model: type[BaseModel], value: Any
) -> list[tuple[Path, str, bool]]:
    """Return pydantic's errors as (relative path, message, key at fault).

    Pydantic reports every branch of a union. This function selects the intended branch: the value
    fits except for its content, or has the branch's fields. Without a closest branch, one message
    lists all alternatives.
    """
    tell: Callable[[Any], str] = kind_of if getattr(model, "holds_cells", False) else shown
    findings = [_finding(item, value) for item in error.errors()]
    problems: list[tuple[Path, str, bool]] = []
    for place in sorted({at for finding in findings for at, _ in finding.branches}, key=len):
        inside = [finding for finding in findings if finding.within(place) is not None]
        if inside:
            kept, summary = _meant(place, inside, tell)
            findings = [
                finding for finding in findings if finding.within(place) is None or finding in kept
            ]
            problems += summary
    by_place: dict[Path, list[_Finding]] = {}
    for finding in findings:
        by_place.setdefault(finding.place, []).append(finding)
    missing = [place for place, items in by_place.items() if items[0].kind == "missing"]
    found = [
        _problem(place, items, _siblings(place, model, missing), tell)
        for place, items in by_place.items()
    ]
    return problems + [
        _with_description(*problem, by_place[problem[0]], model) for problem in found
    ]


def _with_description(
    place: Path, message: str, key: bool, findings: list[_Finding], model: type[BaseModel]
) -> tuple[Path, str, bool]:
    inner: Any = model
    for part in place[:-1]:
        inner = _fields(inner).get(str(part), inner)
    meant = {
        field.alias or name: field.description
        for name, field in getattr(inner, "model_fields", {}).items()
    }
    if (
        {finding.kind for finding in findings} <= {"missing", *_MAPPINGS}
        and place
        and meant.get(str(place[-1]))
    ):
        return place, f"{message}: {meant[str(place[-1])]}", key
    return place, message, key


def _fields(model: Any) -> dict[str, Any]:
    return {
        field.alias or name: field.annotation
        for name, field in getattr(model, "model_fields", {}).items()
    }


def _finding(item: ErrorDetails, value: Any) -> _Finding:
    """Separate fields from union branches in an error's location."""
    place: list[str | int] = []
    branches: list[tuple[Path, str | int]] = []
    for step, part in enumerate(item["loc"]):
        absent = item["type"] == "missing" and step == len(item["loc"]) - 1
        if isinstance(value, dict) and isinstance(part, str) and (part in value or absent):
            place.append(part)
            value = value.get(part)
        elif isinstance(value, (list, tuple)) and isinstance(part, int) and part < len(value):
            place.append(part)
            value = value[part]
        else:
            branches.append((tuple(place), part))
    return _Finding(tuple(place), tuple(branches), item)


def _meant(
    place: Path, inside: list[_Finding], tell: Callable[[Any], str]
) -> tuple[list[_Finding], list[tuple[Path, str, bool]]]:
    """Return the errors of the intended branch, or one message for all."""
    groups: dict[str | int, list[_Finding]] = {}
    for finding in inside:
        groups.setdefault(finding.within(place) or "", []).append(finding)
    fits = [
        group for group in groups.values() if not any(_misfit(finding, place) for finding in group)
    ]
    if fits:
        return fits[0], []
    if len(groups) == 1:
        return inside, []
    entered = {
        branch: group
        for branch, group in groups.items()
        if any(finding.place != place for finding in group)
    }
    unknown = {
        branch: {f.place for f in group if f.kind == "extra_forbidden"}
        for branch, group in entered.items()
    }
    written = set.union(set(), *unknown.values())
    named = [branch for branch in entered if len(unknown[branch]) < len(written)]
    if len(named) == 1:
        return entered[named[0]], []
    if len(named) > 1:
        alien = {path for path in written if all(path in fields for fields in unknown.values())}
        mixed = ", ".join(sorted(str(path[-1]) for path in written - alien))
        return [], [(place, f"mixes fields that do not go together: {mixed}", False)]
    wanted = [
        f.place
        for group in entered.values()
        for f in group
        if f.kind == "missing" and len(f.place) == len(place) + 1
    ]
    return [], [_none_fits(place, inside, written, [str(path[-1]) for path in wanted], tell)]


def _misfit(finding: _Finding, place: Path) -> bool:
    """Whether an error excludes the branch, rather than its content."""
    if finding.place == place:
        return finding.kind != "value_error"
    return len(finding.place) == len(place) + 1 and finding.kind in ("missing", "extra_forbidden")


def _none_fits(
    place: Path,
    inside: list[_Finding],
    written: set[Path],
    wanted: list[str],
    tell: Callable[[Any], str],
) -> tuple[Path, str, bool]:
    for path in sorted(written, key=str):
        close = did_you_mean(path[-1], wanted)
        if close.startswith("; did"):
            return path, f"is not a known field{close}", True
    whole = [finding for finding in inside if finding.place == place]
    choices = [_expected(finding.item).removeprefix("must be ") for finding in whole]
    choices += [f"{{{name}: …}}" for name in wanted]
    value = whole[0].item["input"] if whole else None
    return (
        place,
        f"must be {' or '.join(dict.fromkeys(choices))}; got {tell(value)}{_nearest(whole)}",
        False,
    )


def _nearest(findings: list[_Finding]) -> str:
    words = [
        word
        for f in findings
        if f.kind == "literal_error"
        for word in re.findall(r"'([^']*)'", f.item["ctx"]["expected"])
    ]
    hint = did_you_mean(findings[0].item["input"], words) if words else ""
    return hint if hint.startswith("; did") else ""


def _siblings(place: Path, model: type[BaseModel], missing: list[Path]) -> list[str]:
    """Return a field's siblings: of its model, or missing fields in a union."""
    inner: Any = model
    for part in place[:-1]:
        inner = _fields(inner).get(str(part))
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return [str(other[-1]) for other in missing if other[:-1] == place[:-1]]
    return [field.alias or name for name, field in inner.model_fields.items()]


def _problem(
    place: Path, findings: list[_Finding], known: list[str], tell: Callable[[Any], str]
) -> tuple[Path, str, bool]:
    kinds = {finding.kind for finding in findings}
    if kinds == {"extra_forbidden"}:
        return place, f"is not a known field{did_you_mean(place[-1], known)}", True
    if "missing" in kinds:
        return place, "is required", False
    expected = " or ".join(dict.fromkeys(_expected(finding.item) for finding in findings))
    if not place and kinds == {"value_error"}:  # incompatible fields, each shown elsewhere
        return place, expected, False
    got = "" if "; got" in expected else f"; got {tell(findings[0].item['input'])}"
    return place, f"{expected}{got}{_nearest(findings)}", False


_MAPPINGS = ("dict_type", "model_type", "model_attributes_type")
_WORDS = {
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    **dict.fromkeys(_MAPPINGS, "must be a mapping"),
}
_BOUNDS = {
    "greater_than": ("must be greater than", "gt"),
    "greater_than_equal": ("must be at least", "ge"),
    "less_than": ("must be less than", "lt"),
    "less_than_equal": ("must be at most", "le"),
    "too_short": ("must have this many entries or more:", "min_length"),
    "too_long": ("must have this many entries or fewer:", "max_length"),
}


def _expected(item: ErrorDetails) -> str:
    kind, context = item["type"], item.get("ctx", {})
    if kind in _WORDS:
        return _WORDS[kind]
    if kind in _BOUNDS:
        words, name = _BOUNDS[kind]
        return f"{words} {context[name]:g}"
    if kind == "literal_error":
        return f"must be {context['expected']}"
    if kind == "value_error":
        return str(context["error"])
    return item["msg"][:1].lower() + item["msg"][1:]


def shown(value: Any) -> str:
    """Format a scenario's value for a message: short, without table content."""
    if isinstance(value, (list, tuple, dict)) and len(value) > 4:
        return f"a {'mapping' if isinstance(value, dict) else 'list'} of {len(value)}"
    try:
        text = "nothing" if value is None else repr(value)
    except ValueError:  # an integer too long for Python to print
        text = "a huge integer"
    return text if len(text) <= 60 else text[:57] + "…"
