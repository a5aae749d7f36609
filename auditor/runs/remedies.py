"""Remedies for an exposure, by closed forms.

| symbol | meaning | source |
| --- | --- | --- |
| ``v`` | noise multiple of the best combination of the copies held | li2012, section 3.2 |
| ``u_j(v)`` | ``[K_X − G(v) K_X]_jj / K_jj``, the share of attribute j that the best linear attack leaves | li2012 (7) |
| ``v_e`` | where the best linear attack leaves the strongest attack's share ``u_j(v_e)`` | |
| ``v_h`` | where it leaves half: ``u_j(v_h) = 1/2`` | |

Levels times ``v_h/v_e`` leave half if the strongest attack stays equal to a linear one at ``v_e/v``
times the noise. This is exact for the best linear attack, with ``v_e = v``, and else an estimate.
Under corner-wave noise of the data's shape ``v_h`` is 1. For retention, exact Bayes replaces the
best linear attack, and ``1 − p`` the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from auditor.audit.base.request import ReleaseRequest
from auditor.audit.numeric.release import make_scheme
from auditor.base.types import Array, Levels, Names
from auditor.data.table import Table
from auditor.numerics.linear_algebra import Pencil, clip_to_psd, regression
from auditor.numerics.statistics import root
from auditor.results.disclosure import FEWEST_RECORDS
from auditor.results.measurements import Measurements
from auditor.results.records import (
    FITTED,
    Measurement,
    Remedy,
    cells,
    in_clear,
    mean_theory,
    pooled,
)
from auditor.schemes.base.scheme import Scheme
from auditor.schemes.corner_wave import AdditiveScheme
from auditor.schemes.replacement.base import UniformScheme
from auditor.schemes.replacement.law import left_by_retention

HALF = 0.5
NOTHING = 1e-6
"""Largest share that is an exact reconstruction up to rounding."""
FURTHEST = 1e6
"""Largest noise multiple considered; the smallest is its inverse."""


class Cell(NamedTuple):
    """An exposed cell: its share left, and whether no closed form states it.

    ``clear`` attributes are known.
    """

    record: Measurement
    left: float
    estimated: bool
    clear: list[str]

    @classmethod
    def of(cls, records: Sequence[Measurement]) -> Cell:
        """Cell of all replicates."""
        one, theory = records[0], mean_theory(records)
        left = pooled(records)[0] if theory is None else theory
        return cls(one, left, theory is None, in_clear(one.knowledge))


def remedy_of(measurements: Measurements, release: ReleaseRequest) -> Remedy | None:
    """Remedy that leaves half of every attribute unknown, or None.

    None also for a table with too few records for a figure.

    ``measurements`` are of this release. Attributes known in clear do not count.
    """
    table, levels = release.table, release.levels
    if table.rows < FEWEST_RECORDS:
        return None
    scheme = make_scheme(release.use, release.scenario.base, table)
    exposed = [cell for cell in _strongest(measurements) if cell.left < HALF]
    if isinstance(scheme, UniformScheme):
        # published data expose others, which retention cannot change
        exposed = [cell for cell in exposed if not cell.clear]
        return _replaced(exposed[0], scheme, levels, table) if exposed else None
    if not exposed:
        return None
    K_X = release.moments.covariance

    @cache
    def pencil(known: tuple[int, ...]) -> Pencil:
        law: Any = scheme.law(levels, release.moments.scale)
        return Pencil.of(_beyond(K_X, known), law.shape)

    found = [_added(cell, scheme, levels, table.attributes, K_X, pencil) for cell in exposed]
    return max(found, key=lambda one: (not one.levels, one.levels or [-one.unknown]))


def _strongest(measurements: Measurements) -> list[Cell]:
    """Each attribute's cell that leaves least, or the cell of all together.

    Among cells of equal four digits one with a closed form is preferred.
    """
    known = ~np.isnan(measurements.columns["value"]) & ~measurements.where(attack=None)
    errors = measurements.taken(measurements.where(metric="normalized_error", status="ok") & known)
    strongest: dict[str, list[Measurement]] = {}

    def rank(cell: list[Measurement]) -> tuple[float, bool]:
        return float(f"{pooled(cell)[0]:.4g}"), mean_theory(cell) is None

    for cell in cells(errors).values():
        name = cell[0].attribute
        if name not in in_clear(cell[0].knowledge):
            strongest[name] = min(strongest.get(name, cell), cell, key=rank)
    return [Cell.of(cell) for name, cell in strongest.items() if name != "*" or len(strongest) == 1]


def _added(
    cell: Cell,
    scheme: Scheme,
    levels: Levels,
    attributes: Names,
    K_X: Array,
    pencil: Callable[[tuple[int, ...]], Pencil],
) -> Remedy:
    one, left, estimated, clear = cell
    remedy = Remedy(
        attack=str(one.attack),
        attribute=one.attribute,
        unknown=left,
        lossless=1.0,
        estimated=estimated,
    )
    if one.attack == FITTED or left < NOTHING:  # shown columns disclose at any level
        return remedy
    if not isinstance(scheme, AdditiveScheme) or one.attribute not in attributes:
        return remedy
    j = attributes.index(one.attribute)
    known = tuple(place for place, name in enumerate(attributes) if name in clear)
    errors = pencil(known)

    def multiple(share: float) -> float | None:
        def excess(log_v: float) -> float:
            return float(errors.error_of(j, np.exp(log_v)) / K_X[j, j]) - share

        limit = math.log(FURTHEST)
        log_v = root(excess, -limit, limit)
        return math.exp(log_v) if abs(log_v) < limit else None

    if float(errors.error_of(j, np.asarray(FURTHEST)) / K_X[j, j]) <= HALF:
        # known without any copy, so noise cannot hide it
        return remedy.model_copy(update={"lossless": None})
    held = scheme.pooled_level([levels[copy - 1] for copy in one.coalition])
    every = scheme.pooled_level(levels)
    worth, half = multiple(left), multiple(HALF)
    if worth is None or half is None or held <= 0.0:
        return remedy
    # no remedy by data-shaped noise is stated for known attributes
    lossless = bool(known) or every >= min(levels) * (1.0 - 1e-9)
    update = {
        "levels": [_three_digits(level * half / worth) for level in levels],
        "lossless": None if lossless else _three_digits(max(1.0, held / worth)),
    }
    return remedy.model_copy(update=update)


def _three_digits(number: float) -> float:
    return float(f"{number:.3g}")


def _beyond(K_X: Array, known: Sequence[int]) -> Array:
    if not known:
        return K_X
    at = np.array(known)
    return clip_to_psd(K_X - regression(K_X[:, at], K_X[np.ix_(at, at)]) @ K_X[at], K_X)


def _replaced(cell: Cell, scheme: UniformScheme, levels: Levels, table: Table) -> Remedy | None:
    if table.categorical is None or cell.record.attribute != "*":
        return None
    prior, left = table.categorical.prior, cell.left
    if prior.size < 2 or not prior.all():
        return None
    # of schemes without levels in common, uniform-multilevel is advised
    pi = scheme.over(table.categorical).replaced_by(prior.size) if scheme.multilevel else None

    def retention(share: float) -> float:
        return root(lambda p: left_by_retention(prior, p, pi) - share, 0.0, 1.0)

    half, worth = retention(HALF), retention(max(left, NOTHING))
    shown = cell.record.attack == FITTED  # columns disclose at any level
    multilevel, wanted = scheme.multilevel, half / worth
    return Remedy(
        attack=str(cell.record.attack),
        attribute="*",
        unknown=left,
        levels=[_three_digits(x * wanted) for x in levels if multilevel and not shown],
        lossless=None if multilevel or shown else _three_digits(half),
        kind="retention",
        estimated=cell.estimated,
    )
