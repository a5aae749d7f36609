"""Tests of cells: silent by law, off a lattice, or shared by copies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from auditor.audit.law_tests.battery import NO_SIZE, Largest
from auditor.audit.law_tests.chosen_rows import Rows
from auditor.audit.law_tests.scores import COARSEST_OF_EDGES, HARDLY_ANY, increments
from auditor.process.deferred import scipy
from auditor.results.evidence import LawTest
from auditor.schemes.base.noise_density import LATTICE
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw, is_process
from auditor.types import Array

MOST_PAIRS = 16
"""Pairs of copies that are compared, evenly spread."""
NEARNESS = (2.0**-7, 2.0**-14, 2.0**-21, 2.0**-28)
DIFFERENCE = 1.0 / math.sqrt(6.0)
"""The largest density of a difference of variance 1 of two values that are both Gaussian, both
uniform or both Laplace."""


def no_noise_test(law: NoiseLaw, rows: Rows) -> LawTest | None:
    """Check that noise is 0 where the law says so, and on its lattice."""
    n, M, N = rows.noise.shape
    deviation = np.sqrt(np.clip(np.diag(law.covariance), 0.0, None)).reshape(M, N)
    silent, unit = deviation == 0, np.where(deviation > 0, deviation, 1.0)
    excess, tests = [0.0], int(silent.sum())
    excess.append(
        float(
            (np.abs(rows.noise[:, silent]) / (8.0 * rows.grain[silent] + 1e-300)).max(initial=0.0)
        )
    )
    slack, z, known = 20.0 * math.sqrt(HARDLY_ANY * M * N), rows.noise / unit, rows.grain / unit
    if isinstance(law, KroneckerNoise):  # copies, then attributes
        parts = [(z.transpose(0, 2, 1), known.T, _levels(law)), (z, known, law.shape)]
    else:
        parts = [(z.reshape(n, -1), known.ravel(), law.covariance)]
    for values, off, K in parts:
        null = null_combinations(K)
        reach = off @ np.abs(null).T
        excess.append(float((np.abs(values @ null.T) / (slack + 8.0 * reach)).max(initial=0.0)))
        tests += reach.size
    if isinstance(law, KroneckerNoise) and law.distribution in LATTICE:
        loud = np.flatnonzero(np.diag(law.shape) > 0)
        units = np.array([law.density_at(1.0, j).unit for j in loud.tolist()])
        k = rows.noise[:, :, loud] / units
        rounding = 2.0**-40 + 2.0**-44 * (np.abs(rows.x[:, None, loud]) / units + np.abs(k))
        excess.append(float((np.abs(k - np.rint(k)) / rounding).max(initial=0.0)))
        tests += M * loud.size
    if not tests:
        return None
    where = "noise where the law has none, or off its lattice, relative to the largest rounding, is"
    return LawTest(
        "no noise by law", 0.0 if max(excess) > 1.0 else 1.0, tests, n, max(excess), 1.0, where
    )


def null_combinations(K: Array) -> Array:
    """Return combinations without variance, of standardised coordinates."""
    own = np.sqrt(np.clip(np.diag(K), 0.0, None))
    loud = np.flatnonzero(own > 0)
    values, vectors = np.linalg.eigh(K[np.ix_(loud, loud)] / np.outer(own[loud], own[loud]))
    null = np.zeros((int((values <= HARDLY_ANY * len(K)).sum()), len(K)))
    null[:, loud] = vectors[:, values <= HARDLY_ANY * len(K)].T
    return null


def _levels(law: KroneckerNoise) -> Array:
    """Return ``Sigma``, or for a process a matrix with the same ties.

    At levels that are nearly equal a process moves in few rows, but there by all of its noise.
    """
    if not is_process(law):
        return law.level_covariance
    levels = np.diag(law.level_covariance)
    return np.where(levels[:, None] == levels, levels, 0.0) if law.one_process else np.diag(levels)


def shared_cells_test(
    law: NoiseLaw, rows: Rows, names: Sequence[str], chosen: Sequence[int]
) -> LawTest | None:
    """Test the number of cells in which two copies share their noise.

    Noise is compared as it is and over its deviations. Of one process, the number of increments at
    rest is tested.

    The chance of a difference within ``w`` deviations of 0 is at most ``2 w DIFFERENCE``. The count
    is binomial.
    """
    found = (
        _at_rest(law, rows, names, chosen)
        if is_process(law) and law.one_process
        else _near_zero(law, rows, names, chosen)
    )
    return min(found).as_test("equal copies", len(found), len(rows.x), NO_SIZE) if found else None


def _near_zero(
    law: NoiseLaw, rows: Rows, names: Sequence[str], chosen: Sequence[int]
) -> list[Largest]:
    n, M, N = rows.noise.shape
    K, found = law.covariance.reshape(M, N, M, N), []
    pairs = list(combinations(range(M), 2)) if law.distribution not in LATTICE else []
    for a, b in pairs[:: max(1, math.ceil(len(pairs) / MOST_PAIRS))]:
        for j in range(N):
            own, other, both = float(K[a, j, a, j]), float(K[b, j, b, j]), float(K[a, j, b, j])
            for factor in {1.0, math.sqrt(other / own)} if min(own, other) > 0 else ():
                variance = factor**2 * own - 2.0 * factor * both + other
                known = factor * float(rows.grain[a, j]) + float(rows.grain[b, j])
                if variance <= HARDLY_ANY * (
                    factor**2 * own + other
                ) or known > COARSEST_OF_EDGES * math.sqrt(variance):
                    continue
                d, blur = (
                    np.abs(rows.noise[:, b, j] - factor * rows.noise[:, a, j])
                    / math.sqrt(variance),
                    known / math.sqrt(variance),
                )
                where = f"the share of rows with the same noise in copies {chosen[a]} and {chosen[b]}, of {names[j]!r}, is"
                found += [
                    _at_least(int((d < w).sum()), n, 2.0 * DIFFERENCE * (w + blur), where)
                    for w in NEARNESS
                ]
    return found


def _at_rest(
    law: KroneckerNoise, rows: Rows, names: Sequence[str], chosen: Sequence[int]
) -> list[Largest]:
    n, found = len(rows.x), []
    for one in increments(law, True):
        on_lattice, std = one.density.moving.on_lattice, one.density.moving.std
        known = (
            0.0
            if on_lattice or one.below < 0
            else float(rows.grain[[one.place, one.below], one.attribute].sum())
        )
        if one.below >= 0 and known <= COARSEST_OF_EDGES * std:
            d = np.abs(
                rows.noise[:, one.place, one.attribute] - rows.noise[:, one.below, one.attribute]
            )
            met = (
                int((d < 0.5 * one.density.moving.unit).sum())
                if on_lattice
                else int((d <= known).sum())
            )
            where = f"the share of rows with the same {names[one.attribute]!r} in copies {chosen[one.below]} and {chosen[one.place]} is"
            more = _at_least(met, n, one.density.near_zero(2.0 * known), where)
            fewer = _at_least(n - met, n, 1.0 - one.density.near_zero(0.0), where)
            found.append(more._replace(p=min(1.0, 2.0 * min(more.p, fewer.p))))
    return found


def _at_least(met: int, n: int, chance: float, where: str) -> Largest:
    """Return the chance of so many or more out of n."""
    p = float(scipy.special.betainc(met, n - met + 1, min(1.0, chance))) if 0 < met else 1.0
    return Largest(p, met / n, chance, where)
