"""File positions of scenario fields, with overrides and sweeps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from auditor.errors import Problem
from auditor.field_paths import Path, format_path, set_at
from auditor.scenario.yaml.document import Document

LISTS = ("schemes", "attacks", "knowledge", "coalitions", "measures", "expect", "cite")
"""Sections that accept a single item as a list of one."""


@dataclass(frozen=True)
class Places:
    """Positions of a scenario's fields, for messages.

    Attributes
    ----------
    document : Document or None
        The file; None for plain values.
    changed : tuple of Path
        Fields set from outside, without a position in the file.
    swept : tuple of (Path, Path)
        Swept fields, each with the path of its value under ``sweep``.
    """

    document: Document | None = field(default=None, repr=False)
    changed: tuple[Path, ...] = ()
    swept: tuple[tuple[Path, Path], ...] = ()

    def problem(self, path: Path, message: str, key: bool = False) -> Problem:
        """Return an error with its position; ``key`` selects the key's."""
        for place, origin in self.swept:
            if path[: len(place)] == place:
                return self._at(
                    origin,
                    f"makes an invalid scenario: {Problem(format_path(path), message)}",
                    key=False,
                )
        return self._at(path, message, key)

    def _at(self, path: Path, message: str, key: bool) -> Problem:
        if self.document is None or any(path[: len(place)] == place for place in self.changed):
            return Problem(format_path(path), message)
        written = _as_written(self.document.value, path)
        line, column = self.document.position(written, key)
        return Problem(format_path(path), message, self.document.file, line, column)

    def located(self, found: Iterable[tuple[Path, str, bool]]) -> list[Problem]:
        """Return unique errors in file order."""
        problems = dict.fromkeys(self.problem(*item) for item in found)
        return sorted(problems, key=lambda problem: (problem.line or 0, problem.column or 0))


def _as_written(value: Any, path: Path) -> Path:
    """Return a path in a file that may have single items for lists."""
    lone = (
        isinstance(value, dict)
        and len(path) > 1
        and path[1] == 0
        and not isinstance(value.get(str(path[0])), list)
    )
    return (path[0], *path[2:]) if lone else path


def spelt_out(value: Any) -> Any:
    """Return a document without short forms, so that nested fields can be set."""
    if not isinstance(value, dict):
        return value
    long = {name: [value[name]] for name in LISTS if isinstance(value.get(name), (str, dict))}
    source = {"data": {"source": value["data"]}} if isinstance(value.get("data"), str) else {}
    return value | long | source


def put(value: Any, changes: Iterable[tuple[Path, Any]]) -> tuple[Any, list[Path]]:
    """Return a document with changes applied, and the numbered paths.

    Raises
    ------
    AuditorError
        A path is invalid.
    """
    changed: list[Path] = []
    value = spelt_out(value)
    for path, new in changes:
        value = set_at(value, path, new, changed)
    return value, changed
