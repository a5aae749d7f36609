"""Noise of a process with independent increments against its law: columns of uniform numbers, and cells in which copies are equal.

| symbol | meaning | law |
| --- | --- | --- |
| ``d`` | an increment of one attribute's noise, from one copy to the next in order of levels; the first from 0 | F |
| ``v`` | ``F(d−) + W·(F(d) − F(d−))``, W uniform and independent of all else | uniform on (0, 1) |
| ``g`` | ``Φ⁻¹(v)`` | N(0, 1), independent from row to row and from increment to increment |

Where F jumps, at every number of a lattice and where an increment may be at rest, W says where in the jump a value ranks: v is uniform
exactly, so that what holds of noise without atoms holds of it. Of copies that are independent of each other the increments are their noise.

Equal values are lawful where the law has atoms: two copies of one process share a cell with probability ``v_low/v_high`` (Laplace,
geometric), no more and no less. A lattice repeats its values all the time: there a run of rows must come again, row by row, to be a period.
*Not checked*: a lattice's sizes that come again with other signs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from auditor.audit.drawn_law.chosen_rows import Rows
from auditor.audit.drawn_law.column_tests import SMALL, at_least
from auditor.audit.drawn_law.columns import FINE, Columns, scores, sizes
from auditor.audit.drawn_law.segments import LONGEST, NEVER, fingerprints
from auditor.numerics.random_streams import stream
from auditor.results.evidence import LawTest
from auditor.schemes.base.increment_density import IncrementDensity, increment_density
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor.types import Array

MOST_PAIRS = 64
"""Pairs of copies that are looked at, evenly among all."""


class Increment(NamedTuple):
    """Noise of one attribute at the place of a copy, less that at the place ``below``; all of it where that is −1."""

    below: int
    place: int
    attribute: int
    density: IncrementDensity


def own_increments(law: KroneckerNoise) -> list[Increment]:
    """Return all of each copy's noise, attribute by attribute, where there is any."""
    levels, variances = np.diag(law.level_covariance).tolist(), np.diag(law.shape).tolist()
    return [
        Increment(-1, place, j, increment_density(law, 0.0, level, j))
        for place, level in enumerate(levels) if level > 0 for j, variance in enumerate(variances) if variance > 0
    ]  # fmt: skip


def independent_increments(law: KroneckerNoise) -> list[Increment]:
    """Return increments that are independent of one another: of one process from level to level, of independent copies all of each."""
    if not law.one_process:
        return own_increments(law)
    levels, variances = np.diag(law.level_covariance), np.diag(law.shape).tolist()
    order = [-1, *np.argsort(levels, kind="stable").tolist()]
    found = []
    for below, place in pairwise(order):
        low, high = 0.0 if below < 0 else float(levels[below]), float(levels[place])
        found += [Increment(below, place, j, increment_density(law, low, high, j))
                  for j, variance in enumerate(variances) if variance > 0 and high > low]  # fmt: skip
    return found


def columns_of(
    increments: Sequence[Increment], rows: Rows, names: Sequence[str], chosen: Sequence[int], most: int | None = None
) -> Columns:
    """Return increments as columns: all that are known well enough, or at most so many, evenly among them."""
    fine = [one for one in increments if _known(one, rows) <= FINE * one.density.moving.std]
    kept = [fine[k] for k in sorted({round(k) for k in np.linspace(0, len(fine) - 1, min(len(fine), most or len(fine))).tolist()})]
    n = len(rows.noise)
    v = np.array([_uniform(one, rows) for one in kept]).reshape(len(kept), n).T
    grain = np.array([_known(one, rows) / one.density.moving.std for one in kept])
    g = scores(v)
    return Columns(g, v, sizes(v), g, grain, [f"{names[one.attribute]!r} in {_copies(one, chosen)}" for one in kept])


def _copies(one: Increment, chosen: Sequence[int]) -> str:
    return f"copy {chosen[one.place]}" + (f" less copy {chosen[one.below]}" if one.below >= 0 else "")


def _known(one: Increment, rows: Rows) -> float:
    """Return how well an increment is known; on a lattice exactly."""
    if one.density.moving.on_lattice:
        return 0.0
    return float(rows.grain[one.place, one.attribute] + (rows.grain[one.below, one.attribute] if one.below >= 0 else 0.0))


def _difference(one: Increment, rows: Rows) -> Array:
    """Return ``d``, shape (n,): on a lattice the nearest point of it, elsewhere 0 where copies are equal but for rounding."""
    d = rows.noise[:, one.place, one.attribute] - (rows.noise[:, one.below, one.attribute] if one.below >= 0 else 0.0)
    if one.density.moving.on_lattice:
        return np.asarray(np.rint(d / one.density.moving.unit) * one.density.moving.unit)
    return np.asarray(np.where(np.abs(d) <= _known(one, rows), 0.0, d) if one.density.rest > 0 else d)


def _uniform(one: Increment, rows: Rows) -> Array:
    """Return ``v``, shape (n,)."""
    d = _difference(one, rows)
    if one.density.moving.on_lattice:
        points, place = np.unique(d, return_inverse=True)
        middle, jump = (part[place] for part in one.density.distribution(points))
    else:
        middle, jump = one.density.distribution(d)
    W = stream(0, "where in a jump a value ranks", one.below, one.place, one.attribute).random(len(d))
    return np.asarray(middle + (W - 0.5) * jump)


def equal_copies_test(law: KroneckerNoise, rows: Rows, names: Sequence[str], chosen: Sequence[int]) -> LawTest | None:
    """Return the test of how many cells two copies share, or nearly so, against the law's chance or a bound of it."""
    n, M, _ = rows.noise.shape
    pairs = [(k, i) for i in range(M) for k in range(i)]
    found = [one for k, i in pairs[:: max(1, math.ceil(len(pairs) / MOST_PAIRS))] for one in _near(law, rows, k, i)]
    if not found:
        return None
    p, met, chance, k, i, j = min(found)
    where = f"the share of rows with the same noise in copies {chosen[k]} and {chosen[i]}, of {names[j]!r}, is"
    return LawTest("equal copies", min(1.0, len(found) * p), len(found), n, met / n, chance, where)


def _near(law: KroneckerNoise, rows: Rows, k: int, i: int) -> Iterator[tuple[float, int, float, int, int, int]]:
    """Yield p-values, counts, chances and places of tests of two copies' differences."""
    levels, n = np.diag(law.level_covariance), len(rows.noise)
    low, high = (k, i) if levels[k] <= levels[i] else (i, k)
    for j in np.flatnonzero(np.diag(law.shape) > 0).tolist():
        if levels[high] == 0 or (law.one_process and levels[low] == levels[high]):
            continue
        one = Increment(low, high, j, increment_density(law, float(levels[low]) if law.one_process else 0.0, float(levels[high]), j))
        d, std, known = np.abs(_difference(one, rows)), one.density.moving.std, _known(one, rows)
        if law.one_process:
            equal, rest = int((d == 0.0).sum()), one.density.near_zero(0.0)
            more = at_least(np.array([equal]), n, np.array([one.density.near_zero(2.0 * known)]))[0]
            fewer = 1.0 - at_least(np.array([equal + 1]), n, np.array([rest]))[0]
            yield min(1.0, 2.0 * float(min(more, fewer))), equal, rest, k, i, j
        if known <= FINE * std:
            # Of independent copies the chance is no larger than that of the one of more noise to lie in an interval of that length.
            for share in (0.0,) if one.density.moving.on_lattice else SMALL[:4]:
                met, chance = int((d <= share * std).sum()), one.density.near_zero(share * std + known)
                yield float(at_least(np.array([met]), n, np.array([min(1.0, chance)]))[0]), met, chance, k, i, j


def periods_test(law: KroneckerNoise, rows: Rows, chosen: Sequence[int]) -> LawTest | None:
    """Return the test that no run of rows of a copy's noise on a lattice comes again; None where runs would be too long."""
    n, loud, found = len(rows.noise), np.flatnonzero(np.diag(law.shape) > 0), []
    factors = stream(0, "codes of rows").integers(1, 2**31, loud.size)
    for place, level in enumerate(np.diag(law.level_covariance).tolist()):
        densities = [law.density_at(level, j) for j in loud.tolist()] if level > 0 else []
        # Two rows agree with no more than the chance of the likeliest row, the one without noise.
        length = _run_length(float(np.prod([density.pdf(np.array(0.0)) for density in densities])), n)
        if length is not None:
            k = np.rint(rows.noise[:, place, loud] / [density.unit for density in densities]).astype(np.int64)
            prints = fingerprints((k @ factors).astype(np.uint64), length)
            found.append((1.0 - len(np.unique(prints)) / len(prints), chosen[place]))
    if not found:
        return None
    again, copy = max(found)
    where = f"the share of runs of rows whose noise comes again in copy {copy} is"
    return LawTest("repeats", min(1.0, len(found) * NEVER) if again else 1.0, len(found), n, again, 0.0, where)


def _run_length(most: float, n: int) -> int | None:
    """Return a length of runs of which none comes again in n rows, that agree with chance ``most`` at most; None where it would be long."""
    length = 8
    while length <= LONGEST and n**2 * most**length > NEVER:
        length *= 2
    return length if length <= min(LONGEST, n) else None


def zero_rows_test(law: KroneckerNoise, rows: Rows, chosen: Sequence[int]) -> LawTest | None:
    """Return the test of how many rows of a copy have no noise on a lattice in any attribute, some of which the law has."""
    n, found = len(rows.noise), []
    for place, level in enumerate(np.diag(law.level_covariance).tolist()):
        loud = np.flatnonzero(np.diag(law.shape) > 0).tolist()
        if level > 0 and loud:
            chance = float(np.prod([law.density_at(level, j).pdf(np.array(0.0)) for j in loud]))
            units = np.array([law.density_at(level, j).unit for j in loud])
            met = int((np.abs(rows.noise[:, place, loud]) < 0.5 * units).all(axis=1).sum())
            found.append((float(at_least(np.array([met]), n, np.array([chance]))[0]), met, chance, chosen[place]))
    if not found:
        return None
    p, met, chance, copy = min(found)
    where = f"the share of rows of copy {copy} without noise is"
    return LawTest("rows without noise", min(1.0, len(found) * p), len(found), n, met / n, chance, where)


def lattice_test(law: KroneckerNoise, rows: Rows) -> LawTest | None:
    """Return the test that noise on a lattice is whole multiples of its unit, but for rounding."""
    loud = np.flatnonzero(np.diag(law.shape) > 0)
    if not loud.size:
        return None
    units = np.array([law.density_at(1.0, j).unit for j in loud.tolist()])
    k = rows.noise[:, :, loud] / units
    rounding = 2.0**-40 + 2.0**-44 * (np.abs(rows.x[:, None, loud]) / units + np.abs(k))
    worst = float((np.abs(k - np.rint(k)) / rounding).max())
    where = "noise off its lattice, beside what rounding can leave, is"
    return LawTest("lattice", 0.0 if worst > 1.0 else 1.0, k[0].size, len(k), worst, 1.0, where)
