"""Schemes with whole-number noise: released values are whole multiples.

| symbol | meaning | shape |
| --- | --- | --- |
| ``unit`` | lattice step of each attribute's values and noise: its recording step, or a divisor of it | (N,) |
| ``v`` | variance of the noise in squared units, ``σ²·K_0[j, j]/unit²``: the time of the process | (N,) |

Sums of whole numbers are exact, and values beyond 2⁵⁰ units are refused. So a released value is a
function of whole numbers alone. The unit is public: it is the recording step of a column, visible
in the copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from auditor.data.bounds import Recorded
from auditor.errors import AuditorError
from auditor.schemes.base.increments import MultilevelProcess, ProcessScheme
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor.schemes.base.plans import Step, upward_plan
from auditor.schemes.base.scheme import Key, Sampler, TableMoments
from auditor.text import nearest, quoted
from auditor.types import Array

EXACT = 2.0**50
"""Largest whole number of decimal units that survives two roundings of division."""
MOST_VARIANCE = 2.0**52
"""In squared units, up to which the Poisson numbers of Skellam noise are exact."""
FARTHEST = 64.0
"""Deviations beyond which no draw lies: for two-sided geometric noise, the longest tail, a share of
e^{−90}.
"""

Unit = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class LatticeScheme(ProcessScheme):
    """Base of schemes that add noise in whole multiples of a unit."""

    on_lattice = True

    class Parameters(ProcessScheme.Parameters):
        """Variance of each attribute's noise at level 1, and its unit."""

        unit: Unit | dict[str, Unit] | None = Field(
            None,
            description="step that divides values and noise, for all columns or by column; by default each column's recording step",
        )

    def units(self, table: TableMoments) -> Array:
        """Return the unit of each attribute's noise, shape (N,).

        Raises
        ------
        AuditorError
            A column's values are not whole multiples of it.
        """
        return units_of(self.parameters.unit, table.recorded, np.diag(self.shape(table)))

    def law(self, levels: Sequence[float], table: TableMoments) -> KroneckerNoise:
        self._check_exact(levels, table)
        return super().law(levels, table)

    def sampler(
        self, levels: Sequence[float], table: TableMoments, key: Key, existing: int = 0
    ) -> Sampler:
        self._check_exact(levels[existing:], table)
        return super().sampler(levels, table, key, existing)

    def _check_exact(self, levels: Sequence[float], table: TableMoments) -> None:
        check_exact(
            self.units(table), max(levels, default=0.0) * np.diag(self.shape(table)), table.recorded
        )


class MultilevelLattice(LatticeScheme, MultilevelProcess):
    """One process of whole numbers for all copies of a request."""

    def plan(self, levels: Sequence[float], existing: int = 0) -> list[Step]:
        """Return steps from the lowest new level up.

        Increments are many times faster to draw than bridges, with an equal joint law.
        """
        return upward_plan(levels, existing)


def units_of(
    stated: float | Mapping[str, float] | None, recorded: Recorded, variances: Array
) -> Array:
    """Return the unit of each attribute, shape (N,).

    As stated, else the recording step, else 1. Attributes without noise are not checked.

    Raises
    ------
    AuditorError
        A column with noise has no recording step, or one that is no whole multiple of its unit; or
        a unit names no column.
    """
    by_column = stated or {}
    if not isinstance(by_column, Mapping):
        by_column = dict.fromkeys(recorded.attributes, by_column)
    unknown = [name for name in by_column if name not in recorded.attributes]
    if unknown:
        raise AuditorError(
            f"unit: there is no column {quoted(unknown[0])}{nearest(unknown[0], recorded.attributes)}"
        )
    steps = zip(recorded.attributes, recorded.steps.tolist(), (variances > 0).tolist(), strict=True)
    return np.array([_unit(name, step, by_column.get(name), noisy) for name, step, noisy in steps])


def _unit(name: str, step: float, stated: float | None, noisy: bool) -> float:
    if np.isnan(step) and noisy:
        raise AuditorError(
            f"column {quoted(name)} is not recorded in whole multiples of any step of up to six decimal places, and this noise is whole: "
            "round the column (of a standardised one, before), leave it out, or take another scheme, as `laplace-multilevel`"
        )
    unit = stated if stated is not None else 1.0 if np.isnan(step) else step
    times = step / unit
    if noisy and (round(times) < 1 or abs(times - round(times)) > 1e-6 * times):
        raise AuditorError(
            f"column {quoted(name)} is recorded in steps of {step:g}, which is no whole multiple of its unit, {unit:g}: "
            "state a unit that divides it, or round the column to multiples of the unit"
        )
    return unit


def check_exact(units: Array, variances: Array, recorded: Recorded) -> None:
    """Refuse noise whose sums with values would not be exact.

    ``variances`` are the largest, in squared data units, shape (N,).

    Raises
    ------
    AuditorError
        Naming the first inexact column.
    """
    v = variances / units**2
    beyond = (v > MOST_VARIANCE) | (recorded.largest / units + FARTHEST * np.sqrt(v) > EXACT)
    beyond &= variances > 0
    if beyond.any():
        j = int(beyond.argmax())
        raise AuditorError(
            f"column {quoted(recorded.attributes[j])}: values and noise at these levels go beyond 2^50 units of {units[j]:g}, up to where "
            "whole numbers are exact; lower the levels, or round the column to a coarser unit"
        )
