"""Collects everything that is wrong with a scenario, each with the path of its field, in words a user can act on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from auditor.errors import did_you_mean

Path = tuple[str | int, ...]
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


@dataclass
class Problems:
    """What was found wrong so far: (path, message, whether the *key* is at fault)."""

    found: list[tuple[Path, str, bool]] = field(default_factory=list)

    def add(self, path: Path, message: str, key: bool = False) -> None:
        """Note one problem; ``key`` says that the position is the key's and not the value's."""
        self.found.append((path, message, key))

    def attempt(self, path: Path, parse: Callable[[Any], T], value: Any) -> T | None:
        """Return ``parse(value)``, or note the ValueError it raises."""
        try:
            return parse(value)
        except ValueError as error:
            self.add(path, str(error))
            return None

    def mapping(self, path: Path, value: Any, allowed: Iterable[str], required: Iterable[str] = ()) -> dict[str, Any]:
        """Return a mapping's known keys, noting unknown and missing ones; an empty one if it is no mapping."""
        if not isinstance(value, dict):
            self.add(path, f"must be a mapping; got {shown(value)}")
            return {}
        known = list(allowed)
        for key in value:
            if key not in known:
                self.add((*path, key), f"is not a known field{did_you_mean(key, known)}", key=True)
        for key in required:
            if key not in value:
                self.add((*path, key), "is required")
        return {key: item for key, item in value.items() if key in known}

    def sequence(self, path: Path, value: Any) -> list[Any]:
        """Return a list; a lone item counts as a list of one, and an empty or missing list is noted."""
        if isinstance(value, (str, dict)):
            return [value]
        if not isinstance(value, (list, tuple)):
            self.add(path, f"must be a list; got {shown(value)}")
            return []
        if not value:
            self.add(path, "must name at least one")
        return list(value)

    def unique(self, path: Path, names: Iterable[str | None], what: str) -> None:
        """Note names that stand twice; None is a name that could not be read."""
        seen: set[str] = set()
        remedy = "; give one of them an id of its own" if what in ("scheme", "attack") else ""
        for place, name in enumerate(names):
            if name is None:
                continue
            if name in seen:
                self.add((*path, place), f"repeats {what} {name!r}{remedy}")
            seen.add(name)

    def model(self, path: Path, value: dict[str, Any], model: type[M]) -> M | None:
        """Return the validated model, or note every error pydantic finds in it."""
        try:
            return model.model_validate(value)
        except ValidationError as error:
            for relative, message, key in explain(error, model):
                self.add((*path, *relative), message, key)
            return None


def explain(error: ValidationError, model: type[BaseModel]) -> list[tuple[Path, str, bool]]:
    """Return pydantic's findings as (relative path, message, key at fault), one for each place."""
    by_place: dict[Path, list[ErrorDetails]] = {}
    for item in error.errors():
        by_place.setdefault(_place(item["loc"]), []).append(item)
    return [_explain_place(place, items, model) for place, items in _innermost(by_place)]


def _place(location: tuple[int | str, ...]) -> Path:
    """Drop the branch names that pydantic adds for unions: ``('noise', 'VarianceShape', 'variance')``."""
    return tuple(part for part in location if isinstance(part, int) or not _is_branch(part))


def _is_branch(part: str) -> bool:
    return part[:1].isupper() or any(mark in part for mark in "[({,") or part in ("float", "int", "str", "bool", "none", "date")


def _innermost(by_place: dict[Path, list[ErrorDetails]]) -> list[tuple[Path, list[ErrorDetails]]]:
    """Keep the deepest findings: a union reports its every branch, of which the one that got furthest was meant."""
    kept = []
    for place, items in by_place.items():
        deeper = [other for other in by_place if len(other) > len(place) and other[: len(place)] == place]
        told = any(item["type"] not in ("missing", "extra_forbidden") for other in deeper for item in by_place[other])
        if not (deeper and told):
            kept.append((place, items))
    return kept


def _explain_place(place: Path, items: list[ErrorDetails], model: type[BaseModel]) -> tuple[Path, str, bool]:
    kinds = {item["type"] for item in items}
    if kinds == {"extra_forbidden"}:
        known = [field.alias or name for name, field in model.model_fields.items()]
        return place, f"is not a known field{did_you_mean(place[-1], known)}", True
    if "missing" in kinds:
        return place, "is required", False
    expected = list(dict.fromkeys(_expected(item) for item in items))
    if not place and kinds == {"value_error"}:  # the fields do not fit together; each is shown where it stands
        return place, " or ".join(expected), False
    return place, f"{' or '.join(expected)}; got {shown(items[0]['input'])}", False


_WORDS = {
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
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
    """Return a value of a scenario as an error message may show it: short, and never a table's content."""
    if isinstance(value, (list, tuple, dict)) and len(value) > 4:
        return f"a {'mapping' if isinstance(value, dict) else 'list'} of {len(value)}"
    try:
        text = "nothing" if value is None else repr(value)
    except ValueError:  # an integer that Python refuses to print
        text = "a huge integer"
    return text if len(text) <= 60 else text[:57] + "…"
