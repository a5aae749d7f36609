"""What plugins are tried on: one table of numbers and one column of categories, and what is left of them in corners."""

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
"""Not that of schemes: to one that draws by its key's seed alone, the table's own numbers would be its noise."""


def people(rows: int, own: float) -> Array:
    """Return three attributes that share a part, shape (rows, 3), mean 100, std about 10; ``own`` is the size of what each has alone."""
    rng = np.random.default_rng(SEED)
    return 100.0 + 10.0 * (rng.standard_normal((rows, 1)) + own * rng.standard_normal((rows, 3)))


def as_numbers(values: Array) -> Table:
    """Return a table as an audit has it, but for what it refuses: it may have one record, and constant columns."""
    values = np.ascontiguousarray(values)
    values.flags.writeable = False
    return Table(NAMES[: values.shape[1]], values)


def answers(rows: int, values: int = 3) -> pd.Series[Any]:
    """Return one column of categories that are not equally frequent."""
    chosen = np.random.default_rng(SEED).choice(3, rows, p=[0.5, 0.3, 0.2]) % values
    return pd.Series([f"v{place}" for place in chosen], name="a").astype(pd.CategoricalDtype(["v0", "v1", "v2"]))


def schemes_of(families: Sequence[str]) -> list[Scheme]:
    """Return a scheme of each family that makes copies, with each of its trials' parameters.

    It is the first by name, of those that come with the program if there are any, and of these one that states its noise.
    """
    found: dict[str, type[Scheme]] = {}
    known: list[type[Scheme]] = [registry.get("scheme", name) for name in registry.names("scheme")]
    # A third party's may break its law.
    for cls in sorted(known, key=lambda cls: (not cls.__module__.startswith("auditor."), not cls.adds_noise)):
        if cls.makes_copies and cls.family in families:
            found.setdefault(cls.family, cls)
    return [cls(cls.Parameters.model_validate(dict(trial))) for cls in found.values() for trial in (cls.trial, *cls.other_trials)]


def levels_of(scheme: Scheme) -> tuple[float, ...]:
    """Return three levels to try a scheme at: its own, if it has some."""
    return scheme.default_levels() or scheme.trial_levels
