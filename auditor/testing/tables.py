"""Test tables for plugins: numbers, categories and corner cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from auditor import registry
from auditor.data.table import Table
from auditor.process.deferred import pd
from auditor.schemes.base.scheme import Scheme
from auditor.types import Array

NAMES = ("a", "b", "c")
SEED = 20_120_629
"""Different from the schemes' seed, whose noise could otherwise equal the table's numbers."""


def people(rows: int, own: float) -> Array:
    """Return correlated attributes, shape (rows, 3), mean 100, std about 10.

    ``own`` is the relative size of each attribute's independent part.
    """
    rng = np.random.default_rng(SEED)
    return 100.0 + 10.0 * (rng.standard_normal((rows, 1)) + own * rng.standard_normal((rows, 3)))


def as_numbers(values: Array) -> Table:
    """Return an audit's table, with one record or constants allowed."""
    values = np.ascontiguousarray(values)
    values.flags.writeable = False
    return Table(NAMES[: values.shape[1]], values)


def answers(rows: int, values: int = 3) -> pd.Series[Any]:
    """Return one column of categories with unequal frequencies."""
    chosen = np.random.default_rng(SEED).choice(3, rows, p=[0.5, 0.3, 0.2]) % values
    return pd.Series([f"v{place}" for place in chosen], name="a").astype(
        pd.CategoricalDtype(["v0", "v1", "v2"])
    )


def schemes_of(families: Sequence[str]) -> list[Scheme]:
    """Return a scheme per family that makes copies, for each trial.

    Built-in schemes that state their noise have priority, then names in order.
    """
    found: dict[str, type[Scheme]] = {}
    known: list[type[Scheme]] = [registry.get("scheme", name) for name in registry.names("scheme")]
    # a third-party scheme may break its law
    for cls in sorted(
        known, key=lambda cls: (not cls.__module__.startswith("auditor."), not cls.adds_noise)
    ):
        if cls.makes_copies and cls.family in families:
            found.setdefault(cls.family, cls)
    return [
        cls(cls.Parameters.model_validate(dict(trial)))
        for cls in found.values()
        for trial in (cls.trial, *cls.other_trials)
    ]


def levels_of(scheme: Scheme) -> tuple[float, ...]:
    """Return a scheme's default levels, or three trial levels."""
    return scheme.default_levels() or scheme.trial_levels
