"""Collection of a scenario's errors, each with its field's path."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from auditor.errors import did_you_mean
from auditor.parameters import explain, kind_of, shown

Path = tuple[str | int, ...]
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


@dataclass
class Problems:
    """Errors so far: (path, message, whether the *key* is wrong)."""

    found: list[tuple[Path, str, bool]] = field(default_factory=list)

    def add(self, path: Path, message: str, key: bool = False) -> None:
        """Add an error; ``key`` places it at the key instead of the value."""
        self.found.append((path, message, key))

    def attempt(self, path: Path, parse: Callable[[Any], T], value: Any) -> T | None:
        """Return ``parse(value)``, or add the ValueError that it raises."""
        try:
            return parse(value)
        except ValueError as error:
            self.add(path, str(error))
            return None

    def mapping(
        self, path: Path, value: Any, allowed: Iterable[str], required: Iterable[str] = ()
    ) -> dict[str, Any]:
        """Return a mapping's known keys; report unknown and missing keys.

        Other types are reported and give an empty mapping.
        """
        if not isinstance(value, dict):
            self.add(path, f"must be a mapping; got {shown(value) if path else kind_of(value)}")
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
        """Return a list; a single item becomes a list, and emptiness is an error."""
        if isinstance(value, (str, dict)):
            return [value]
        if not isinstance(value, (list, tuple)):
            self.add(path, f"must be a list; got {shown(value)}")
            return []
        if not value:
            self.add(path, "must name at least one")
        return list(value)

    def unique(self, path: Path, names: Iterable[str | None], what: str) -> None:
        """Report repeated names; None is an unreadable name."""
        seen: set[str] = set()
        remedy = "; give one of them an id of its own" if what in ("scheme", "attack") else ""
        for place, name in enumerate(names):
            if name is None:
                continue
            if name in seen:
                self.add((*path, place), f"repeats {what} {name!r}{remedy}")
            seen.add(name)

    def model(self, path: Path, value: dict[str, Any], model: type[M]) -> M | None:
        """Return the validated model, or report all errors of pydantic."""
        try:
            return model.model_validate(value)
        except ValidationError as error:
            for relative, message, key in explain(error, model, value):
                self.add((*path, *relative), message, key)
            return None
