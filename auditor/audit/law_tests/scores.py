"""Rosenblatt transforms: uniform scores of noise under its stated law.

| law | score of a value |
| --- | --- |
| Gaussian, any ``K_Z`` | ``Φ(e)``, ``e = W z`` the whitened part of a copy's noise that copies of less noise do not determine |
| ``uniform`` | ``½ + t/√12``, t the independent components: the root of ``K_0`` undone |
| Laplace, geometric, Skellam | ``F(d−) + V (F(d) − F(d−))`` of the increment d from the copy of next less noise, V uniform |
| serial noise | the autoregression's innovations in place of the noise (``auditor.schemes.base.additive.whitened``) |
| ``unstated`` | the scheme's own innovations, if stated (``Scheme.drawn_apart``) |

The transform is rosenblatt1952's. Copies that are functions of the table have none: rotations
without noise, and k-anonymity. If a copy lies on a grid of spacing h, its noise is spread over the
grid's cells at random, which adds ``h²/6`` to its variance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from auditor.audit.law_tests.battery import Scores
from auditor.audit.law_tests.chosen_rows import Rows
from auditor.base.types import Array, Flags, Indices
from auditor.numerics.random_streams import stream
from auditor.process.deferred import scipy
from auditor.schemes.base.noise_law import (
    IncrementDensity,
    KroneckerNoise,
    NoiseLaw,
    increment_density,
    is_process,
    psd_root,
    undo_root,
)

HARDLY_ANY = 1e-10
"""Directions with a smaller share of a copy's own noise variance count as having no noise."""
COARSEST, COARSEST_OF_EDGES = 0.5, 2.0**-10
"""Largest spacing of a grid, in deviations of the noise, that is tested: of Gaussian noise, and of
laws with edges or atoms."""
MOST_PAIRS, MOST_PAIRED = 6, 12
"""Pairs of copies that are compared, evenly spread, and columns up to which digits of sums are
tested."""
SLOWEST, FINEST = 1.5, 0.125
"""Frequencies of digits: the least per deviation, and the largest per spacing of the grid."""
DENSITY = {
    "gaussian": 1.0 / math.sqrt(2.0 * math.pi),
    "uniform": 1.0 / math.sqrt(12.0),
    "laplace": math.sqrt(0.5),
}
"""The largest density of noise of variance 1."""


class Whitening(NamedTuple):
    """Independent coordinates of variance 1 of Gaussian noise, copy by copy.

    Attributes
    ----------
    W : ndarray of shape (d, MN)
        ``W K_Z Wᵀ = I``, with copies in order of their noise. A copy's rows depend on it and on
        copies of less noise.
    copy, attribute : ndarrays of shape (d,)
        Places of a row. The attribute is −1 if the copy has fewer independent directions than
        attributes.
    new : ndarray of shape (d,)
        Whether copies of less noise determine part of the copy's noise.
    deviation : ndarray of shape (M, N)
        Of the noise given copies of less noise.
    """

    W: Array
    copy: Indices
    attribute: Indices
    new: Flags
    deviation: Array


def whitening(K: Array, N: int, grain: Array | None = None) -> Whitening:
    """Whitening of a covariance K, shape (MN, MN).

    Blocks are copies, whitened by the root that schemes draw with. Directions without variance, or
    coarser than ``COARSEST`` deviations at this ``grain``, shape (MN,), are left out.

    With R the covariance given the copies before, ``C = R_kk``, ``W_k = C^(−½) E_k`` and, for all
    later rows, ``R ← R − R_·k C⁻¹ R_k·``, ``E ← E − R_·k C⁻¹ E_k`` (Cholesky by blocks; C singular
    by its rank).
    """
    variance = np.clip(np.diag(K), 0.0, None)
    unit = np.sqrt(np.where(variance > 0, variance, 1.0))
    R, E = K / np.outer(unit, unit), np.eye(len(K))
    rows, copies, attributes, new, left = [], [], [], [], np.zeros(len(K))
    for copy in np.argsort(variance.reshape(-1, N).sum(axis=1), kind="stable").tolist():
        k = slice(copy * N, copy * N + N)
        loud = np.flatnonzero(variance[k] > 0)
        left[k] = np.sqrt(np.clip(np.diag(R[k, k]), 0.0, None)) * unit[k]
        values, vectors = np.linalg.eigh(R[k, k][np.ix_(loud, loud)])
        known = 0.0 if grain is None else np.abs(vectors.T @ E[k][loud]) @ (grain / unit)
        kept = (values > HARDLY_ANY * len(K)) & (
            known <= COARSEST * np.sqrt(np.clip(values, 0.0, None))
        )
        V = np.zeros((N, int(kept.sum())))
        V[loud] = vectors[:, kept] / np.sqrt(values[kept])
        # undo the root that schemes draw with: its rows are nearest to the attributes
        full = len(V.T) == len(loud)
        C = R[k, k] * np.outer(unit[k], unit[k])
        rows.append((undo_root(C)[loud] * unit[k] if full else V.T) @ E[k])
        copies += [copy] * len(V.T)
        attributes += loud.tolist() if full else [-1] * len(V.T)
        new += [bool(np.abs(np.diag(R[k, k])[loud] - 1.0).max(initial=0.0) > 1e-9)] * len(V.T)
        slope = (R[:, k] @ V) @ V.T
        slope[k] = 0.0
        R, E = R - slope @ R[k], E - slope @ E[k]
    places = (
        np.array(copies, dtype=np.intp),
        np.array(attributes, dtype=np.intp),
        np.array(new, dtype=bool),
    )
    return Whitening(np.vstack(rows) / unit, *places, left.reshape(-1, N))


class Value(NamedTuple):
    """Values of Gaussian noise, or of a copy with uniform low digits.

    Attributes
    ----------
    group : int
        Copy number.
    slowest, finest : float
        Range of frequencies.
    whitened : bool
        Whether the noise is in deviations.
    """

    group: int
    name: str
    values: Array
    slowest: float
    finest: float
    whitened: bool = False


def release_scores(
    law: NoiseLaw, rows: Rows, names: Sequence[str], chosen: Sequence[int]
) -> tuple[Scores, Scores | None, Sequence[Value]]:
    """Independent scores, scores in natural coordinates, and values with low digits.

    Parameters
    ----------
    law : NoiseLaw
        Of the M copies chosen; not ``unstated``.
    names : sequence of str
        The N attributes.
    chosen : sequence of int
        Numbers of the copies.
    """
    if is_process(law):
        steps, own = (
            process_scores(increments(law, nested), rows, names, chosen)
            for nested in (law.one_process, False)
        )
        return steps, own if law.one_process else None, ()
    if law.distribution == "uniform" and isinstance(law, KroneckerNoise):
        return uniform_scores(law, rows, names, chosen), None, ()
    return gaussian_scores(law.covariance, rows, names, chosen)


def gaussian_scores(
    K: Array, rows: Rows, names: Sequence[str], chosen: Sequence[int]
) -> tuple[Scores, Scores, list[Value]]:
    """``Φ(W z)``, ``Φ(c z)`` of natural coordinates, and values, of noise with covariance K.

    Natural coordinates are noise and differences of two copies' noise, raw and in deviations.
    """
    n, M, N = rows.noise.shape
    z, grain = spread_over_cells(rows).reshape(n, M * N), rows.grain.ravel()
    own = np.diag(K)
    K = K + np.diag(np.where(own > 0, grain**2 / 6.0, 0.0))
    white = whitening(K, N, grain)
    places = zip(white.copy.tolist(), white.attribute.tolist(), white.new.tolist(), strict=True)
    labels = [coordinate_name(names, chosen, *place) for place in places]
    scores = _normal_scores(white.W, z, grain, labels, white.copy)
    loud = np.flatnonzero(own > 0).tolist()
    combined = [
        (np.eye(M * N)[k], coordinate_name(names, chosen, k // N, k % N, False)) for k in loud
    ]
    pairs = list(combinations(range(M), 2))
    for a, b in pairs[:: math.ceil(len(pairs) / MOST_PAIRS) or 1]:
        for j in range(N):
            first, second = own[a * N + j], own[b * N + j]
            for factor in {1.0, math.sqrt(second / first)} if min(first, second) > 0 else ():
                c = np.eye(M * N)[b * N + j] - factor * np.eye(M * N)[a * N + j]
                if c @ K @ c > HARDLY_ANY * (factor**2 * first + second):
                    name = f"the difference of noise of copies {chosen[a]} and {chosen[b]} ({names[j]!r})"
                    combined.append((c, name))
    C = np.array([c / math.sqrt(c @ K @ c) for c, _ in combined]).reshape(-1, M * N)
    own_scores = _normal_scores(
        C, z, grain, [name for _, name in combined], np.zeros(len(C), np.intp)
    )
    return scores, own_scores, list(_values(scores, white, rows, names, chosen))


def _values(
    scores: Scores, white: Whitening, rows: Rows, names: Sequence[str], chosen: Sequence[int]
) -> Iterator[Value]:
    known = scores.grain / DENSITY["gaussian"]
    fine, copies = np.flatnonzero(known < 2.0**-6).tolist(), scores.groups.tolist()
    for k in fine:
        name, finest = f"{scores.names[k]} in deviations", FINEST / max(known[k], 1e-300)
        yield Value(copies[k], name, scores.g[:, k], SLOWEST, finest, True)
    for k, other in combinations(fine, 2) if len(fine) <= MOST_PAIRED else ():
        if copies[k] == copies[other]:
            name = f"a sum of noise of copy {chosen[copies[k]]}"
            finest = FINEST / max(known[k] + known[other], 1e-300)
            for sign in (1.0, -1.0):
                values = scores.g[:, k] + sign * scores.g[:, other]
                yield Value(copies[k], name, values, SLOWEST, finest)
    for copy, a in np.argwhere(white.deviation > 64.0 * rows.grain).tolist():
        values = rows.x[:, a] + rows.noise[:, copy, a]
        slowest = SLOWEST / float(white.deviation[copy, a])
        finest = FINEST / max(float(rows.grain[copy, a]), 1e-300)
        yield Value(copy, f"{names[a]!r} in copy {chosen[copy]}", values, slowest, finest)


def _normal_scores(
    W: Array, z: Array, grain: Array, labels: Sequence[str], copy: Indices
) -> Scores:
    known = np.abs(W) @ grain
    fine = np.flatnonzero(known <= COARSEST)
    values, blur = scipy.special.ndtr(z @ W[fine].T), DENSITY["gaussian"] * known[fine]
    return Scores(values, [labels[k] for k in fine.tolist()], np.minimum(1.0, blur), copy[fine])


def coordinate_name(
    names: Sequence[str], chosen: Sequence[int], copy: int, attribute: int, new: bool
) -> str:
    """Name a coordinate of the noise; −1 is a direction in all attributes."""
    column = f" ({names[attribute]!r})" if attribute >= 0 else " (one direction)"
    return f"{'new noise' if new else 'noise'} of copy {chosen[copy]}{column}"


def spread_over_cells(rows: Rows) -> Array:
    """Noise, spread over the cells of the grid at random."""
    V = stream(0, "where in a cell of the grid a value lies").random(rows.noise.shape)
    return rows.noise + (V - 0.5) * rows.grain


def uniform_scores(
    law: KroneckerNoise, rows: Rows, names: Sequence[str], chosen: Sequence[int]
) -> Scores:
    """``½ + t/√12``, ``t = K_0^(−½) z/σ``; none if K_0 is singular."""
    sigma = np.sqrt(np.clip(np.diag(law.level_covariance), 0.0, None))
    N, root = law.width, psd_root(law.shape)
    undo = (
        np.linalg.inv(root)
        if np.linalg.matrix_rank(root, tol=1e-5 * float(np.abs(root).max())) == N
        else np.full((N, N), np.inf)
    )
    parts = []
    for copy in np.flatnonzero(sigma > 0).tolist():
        known = np.abs(undo) @ rows.grain[copy] / sigma[copy]
        fine = np.flatnonzero(known <= COARSEST_OF_EDGES)
        u = 0.5 + spread_over_cells(rows)[:, copy] @ undo[fine].T / (sigma[copy] * math.sqrt(12.0))
        # values beyond the edges by rounding are folded back
        edge = 2.0 * DENSITY["uniform"] * known[fine]
        u = np.where(
            (u > 1.0) & (u < 1.0 + edge),
            2.0 - u,
            np.where((u < 0.0) & (u > -edge), -u, np.clip(u, 0.0, 1.0)),
        )
        parts += [
            (u[:, k], coordinate_name(names, chosen, copy, a, False), float(known[a]), copy)
            for k, a in enumerate(fine.tolist())
        ]
    return _of_columns(parts, len(rows.noise), DENSITY["uniform"])


def _of_columns(parts: Sequence[tuple[Array, str, float, int]], n: int, density: float) -> Scores:
    values = np.stack([u for u, *_ in parts], axis=1) if parts else np.empty((n, 0))
    grain = np.minimum(1.0, density * np.array([known for _, _, known, _ in parts]))
    return Scores(
        values,
        [name for _, name, *_ in parts],
        grain,
        np.array([copy for *_, copy in parts], dtype=np.intp),
    )


class Increment(NamedTuple):
    """Noise of an attribute in one copy less that in ``below``, if not −1."""

    below: int
    place: int
    attribute: int
    density: IncrementDensity


def increments(law: KroneckerNoise, nested: bool) -> list[Increment]:
    """Noise of each copy and attribute, or its increments.

    ``nested``: independent increments of one process.
    """
    levels, variances, found = np.diag(law.level_covariance), np.diag(law.shape).tolist(), []
    order = np.argsort(levels, kind="stable").tolist()
    for below, place in pairwise([-1, *order]) if nested else ((-1, place) for place in order):
        low, high = 0.0 if below < 0 else float(levels[below]), float(levels[place])
        found += [
            Increment(below, place, j, increment_density(law, low, high, j))
            for j, variance in enumerate(variances)
            if variance > 0 and high > low
        ]
    return found


def process_scores(
    steps: Sequence[Increment], rows: Rows, names: Sequence[str], chosen: Sequence[int]
) -> Scores:
    """Randomised distribution functions of increments.

    A value on a lattice, or at rest, is spread over its atom.
    """
    parts = []
    for one in steps:
        known = _known(one, rows) / one.density.moving.std
        if known <= COARSEST_OF_EDGES:
            which = f"copy {chosen[one.place]}" + (
                f" less copy {chosen[one.below]}" if one.below >= 0 else ""
            )
            parts.append(
                (
                    increment_scores(one, rows),
                    f"noise of {which} ({names[one.attribute]!r})",
                    known,
                    one.place,
                )
            )
    lattice = any(one.density.moving.on_lattice for one in steps)
    scores = _of_columns(parts, len(rows.noise), DENSITY["laplace"])
    return (
        Scores(scores.values, scores.names, np.ones_like(scores.grain), scores.groups)
        if lattice
        else scores
    )


def increment_scores(one: Increment, rows: Rows) -> Array:
    """``F(d−) + V (F(d) − F(d−))``, shape (n,)."""
    d = rows.noise[:, one.place, one.attribute] - (
        rows.noise[:, one.below, one.attribute] if one.below >= 0 else 0.0
    )
    if one.density.moving.on_lattice:
        points, place = np.unique(np.rint(d / one.density.moving.unit), return_inverse=True)
        middle, jump = (
            part[place] for part in one.density.distribution(points * one.density.moving.unit)
        )
    else:
        middle, jump = one.density.distribution(
            np.where(np.abs(d) <= _known(one, rows), 0.0, d) if one.density.rest > 0 else d
        )
    V = stream(0, "where in an atom a value lies", one.below, one.place, one.attribute).random(
        len(d)
    )
    return middle + (V - 0.5) * jump


def _known(one: Increment, rows: Rows) -> float:
    if one.density.moving.on_lattice:
        return 0.0
    return float(
        rows.grain[one.place, one.attribute]
        + (rows.grain[one.below, one.attribute] if one.below >= 0 else 0.0)
    )
