"""Errors of a scenario by field, and models of its sections."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from auditor.base import Problem, ScenarioError, did_you_mean
from auditor.registry.parameters import (
    MAX_DEPTH,
    Form,
    Found,
    Path,
    explain,
    format_path,
    kind_of,
    sentence,
    shown,
)

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


class FormError(ValueError):
    """Errors of one entry; ``found`` has relative paths and messages."""

    def __init__(self, found: Iterable[Found]) -> None:
        self.found = tuple(found)
        super().__init__(sentence(self.found))


def split(item: Any) -> tuple[Any, Any]:
    """Split an entry into name and argument.

    Forms: ``perfect``, ``{estimated: {rows: 400}}`` or ``{name: estimated, rows: 400}``.
    """
    if isinstance(item, str):
        return item, None
    if isinstance(item, dict) and isinstance(item.get("name"), str):
        return item["name"], {key: value for key, value in item.items() if key != "name"} or None
    if isinstance(item, dict) and len(item) == 1:
        return next(iter(item.items()))
    return None, None


def read_entry(item: Any, forms: Mapping[str, type[Form]], what: str) -> tuple[str, Any]:
    """Entry's name and its validated form.

    Raises
    ------
    FormError
        All errors of the entry; ``what`` describes it, as ``a measure``.
    """
    name, argument = split(item)
    if name not in forms:
        hint = did_you_mean(name or "", forms)
        raise FormError([((), f"must be {what}; got {shown(item)}{hint}", False)])
    problems = Problems()
    place = () if isinstance(item, dict) and "name" in item else (name,)
    form = problems.model(place or ("name",), forms[name].spelt_out(argument), forms[name])
    if form is None:
        # a bare value is at its entry's place
        bare = 1 if forms[name].alone and not isinstance(argument, dict) else 0
        raise FormError(
            ((*place, *path[1 + bare :]), message, key) for path, message, key in problems.found
        )
    return name, form


@dataclass
class Problems:
    """Errors so far: (path, message, whether the *key* is wrong)."""

    found: list[Found] = field(default_factory=list)

    def add(self, path: Path, message: str, key: bool = False) -> None:
        """Add an error; ``key`` places it at the key instead of the value."""
        self.found.append((path, message, key))

    def attempt(self, path: Path, parse: Callable[[Any], T], value: Any) -> T | None:
        """Return ``parse(value)``, or add the ValueError that it raises."""
        try:
            return parse(value)
        except FormError as error:
            self.found += [((*path, *place), message, key) for place, message, key in error.found]
        except ValueError as error:
            self.add((*path, *getattr(error, "place", ())), str(error))
        return None

    def each(self, path: Path, parse: Callable[[Any], T], value: Any) -> list[T | None]:
        """Every item of a list by ``parse``; None for invalid items."""
        return [
            self.attempt((*path, place), parse, item)
            for place, item in enumerate(self.sequence(path, value))
        ]

    def sequence(self, path: Path, value: Any, optional: bool = False) -> list[Any]:
        """A list; a single item becomes one. Empty only if ``optional``, and then also null."""
        if optional and value is None:
            return []
        if isinstance(value, str | dict):
            return [value]
        if not isinstance(value, list | tuple):
            self.add(path, f"must be a list; got {shown(value)}")
            return []
        if not value and not optional:
            self.add(path, "must name at least one")
        return list(value)

    def unique(self, path: Path, names: Iterable[str | None], what: str) -> None:
        """Report repeated names; None is unreadable."""
        seen: set[str] = set()
        remedy = "; give one of them an id of its own" if what in ("scheme", "attack") else ""
        for place, name in enumerate(names):
            if name in seen:
                self.add((*path, place), f"repeats {what} {name!r}{remedy}")
            elif name is not None:
                seen.add(name)

    def model(
        self, path: Path, value: Any, model: type[M], beside: tuple[str, ...] = ()
    ) -> M | None:
        """Return the validated model, or report all errors.

        ``beside`` has fields that are read elsewhere, to suggest spellings.
        """
        if not path and not isinstance(value, dict):  # a document may be a table
            self.add(path, f"must be a mapping; got {kind_of(value)}")
            return None
        aliases = {field.alias or name for name, field in model.model_fields.items()}
        spelt = value
        if isinstance(value, dict):
            spelt = {
                key.replace("_", "-") if key.replace("_", "-") in aliases else key: item
                for key, item in value.items()
            }
        try:
            return model.model_validate(spelt)
        except ValidationError as error:
            for relative, message, key in explain(error, model, spelt, beside):
                self.add((*path, *relative), message, key)
            return None


MOST_DIGITS = 1000


def plain(value: Any, path: Path = ()) -> Any:
    """Convert numpy scalars, arrays, tuples and paths to plain values.

    Raises
    ------
    ScenarioError
        A value has no YAML form: an object, a huge integer, or deep nesting.
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    why = f"holds a {type(value).__name__}, which no scenario can"
    if len(path) > MAX_DEPTH:
        why = f"is nested too deeply: over {MAX_DEPTH} lists and mappings in one another"
    elif isinstance(value, Mapping):
        return {str(key): plain(item, (*path, str(key))) for key, item in value.items()}
    elif isinstance(value, list | tuple):
        return [plain(item, (*path, place)) for place, item in enumerate(value)]
    elif isinstance(value, int) and abs(value) >= 10**MOST_DIGITS:
        why = f"is an integer of more than {MOST_DIGITS} digits"
    elif value is None or isinstance(value, bool | int | float | str):
        return value
    raise ScenarioError([Problem(format_path(path), why)])
