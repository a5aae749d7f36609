"""Conversion of Python values to the values that YAML would give."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from auditor.errors import Problem, ScenarioError
from auditor.field_paths import Path, format_path

MOST_DIGITS = 1000
DEEPEST = 50


def plain(value: Any, path: Path = ()) -> Any:
    """Convert numpy scalars, arrays, tuples and paths to plain values.

    Raises
    ------
    ScenarioError
        A value has no YAML form: an object, a huge integer, or deep nesting.
    """
    if len(path) > DEEPEST:
        raise ScenarioError(
            [
                Problem(
                    format_path(path[:3]),
                    f"is nested too deeply: over {DEEPEST} lists and mappings in one another",
                )
            ]
        )
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item, (*path, str(key))) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, (*path, place)) for place, item in enumerate(value)]
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, int) and abs(value) >= 10**MOST_DIGITS:
        raise ScenarioError(
            [Problem(format_path(path), f"is an integer of more than {MOST_DIGITS} digits")]
        )
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ScenarioError(
        [Problem(format_path(path), f"holds a {type(value).__name__}, which no scenario can")]
    )
