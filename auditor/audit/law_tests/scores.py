"""Rosenblatt transforms: uniform scores of noise under its stated law.

| law | score of a value |
| --- | --- |
| Gaussian, any ``K_Z`` | ``Φ(e)``, ``e = W z`` the whitened part of a copy's noise that copies of less noise do not determine |
| ``uniform`` | ``½ + t/√12``, t the independent components: the root of ``K_0`` undone |
| Laplace, geometric, Skellam | ``F(d−) + V (F(d) − F(d−))`` of the increment d from the copy of next less noise, V uniform |
| serial noise | the autoregression's innovations in place of the noise (``auditor.schemes.corner_wave.whitened``) |
| ``unstated`` | the scheme's own innovations, if stated (``Scheme.drawn_apart``) |

The transform is rosenblatt1952's. Copies that are functions of the table have none: rotations
without noise, and k-anonymity. If a copy lies on a grid of spacing h, its noise is spread over the
grid's cells at random, which adds ``h²/6`` to its variance.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from auditor.audit.law_tests.battery import Scores, spread
from auditor.base import scipy
from auditor.base.types import Array, Arrays, Flags, Indices, Names
from auditor.numerics.linear_algebra import deviations
from auditor.numerics.random_streams import stream
from auditor.numerics.statistics import grid_of_digits
from auditor.schemes.base.noise_law import (
    KroneckerNoise,
    NoiseLaw,
    increment_density,
    is_process,
    undo_root,
)

# -- Rows that are tested one by one, and the precision of their values ----------------------------


EPS, EPS_SINGLE = float(np.finfo(np.float64).eps), float(np.finfo(np.float32).eps)
ROUNDING = 8 * EPS
"""Rounding of a value of the noise, relative to the largest value of the data and the copies."""
VALUES_AT_MOST, SQUARES_AT_MOST = 2**17, 2**20
"""Values of noise that are tested row by row, some 0.2 seconds, and rows times the squared number
of values in each."""
FEWEST_ROWS = 2**12
MOST_COORDINATES = 256
"""Copies times attributes that are looked at row by row."""
MOST_DIGITS = 12
RUN, RUNS = 64, 8
"""Fewest rows that are tested in one run, so that neighbours are among them, and runs of a block,
so that distant rows are, too."""
GRID_ROWS = 256
"""Rows that the grid of copies is found from."""
FRACTIONS = np.concatenate([np.arange(1.0, 10_001.0), 10.0 ** np.arange(5, 10)])
"""Numbers of parts of 1 that a grid may have."""


class Rows(NamedTuple):
    """Rows that are tested, best in column-major order.

    Attributes
    ----------
    x : ndarray of shape (n, N)
    noise : ndarray of shape (n, M, N)
    grain : ndarray of shape (M, N)
        Precision of noise values.
    names : sequence of str
        The N attributes.
    chosen : sequence of int
        Numbers of the M copies.
    """

    x: Array
    noise: Array
    grain: Array
    names: Names
    chosen: Sequence[int]

    def coordinate(self, copy: int, attribute: int, new: bool = False) -> str:
        """Name a coordinate of the noise; −1 is a direction in all attributes."""
        column = f" ({self.names[attribute]!r})" if attribute >= 0 else " (one direction)"
        return f"{'new noise' if new else 'noise'} of copy {self.chosen[copy]}{column}"


def some_copies(copies: int, width: int, coordinates: int) -> list[int]:
    """Numbers of the copies that are tested, evenly spread."""
    return [1 + place for place in spread(copies, max(1, coordinates // width))]


def rows_wanted(rows: int, values: int) -> int:
    """Number of rows that are tested, by values in a row."""
    return min(rows, max(FEWEST_ROWS, min(VALUES_AT_MOST // values, SQUARES_AT_MOST // values**2)))


def runs(length: int, wanted: int) -> Indices:
    """Rows of a block that are tested: evenly spread runs."""
    if wanted >= length:
        return np.arange(length)
    run = min(length, max(RUN, wanted // RUNS))
    starts = np.linspace(0, length - run, max(2, round(wanted / run))).astype(int)
    return np.unique(starts[:, None] + np.arange(run))


def rows_of(x: Array, copies: Arrays, names: Names, chosen: Sequence[int], on_grid: bool) -> Rows:
    """Rows, shape (n, N), of some copies.

    Parameters
    ----------
    chosen : sequence of int
        Numbers of the copies.
    on_grid : bool
        Whether copies may be on a grid; not after a transformation.
    """
    x, y = np.ascontiguousarray(x.T), np.array([copies[copy - 1].T for copy in chosen])
    largest = np.maximum(*(np.maximum(v.max(axis=-1), -v.min(axis=-1)) for v in (x, y)))
    grain = np.broadcast_to(ROUNDING * len(x) * largest.max(), largest.shape)
    if on_grid:
        flat = y.reshape(largest.size, -1)
        some = flat[:, spread(flat.shape[1], GRID_ROWS)]
        # a sorted column's last digits are worth more at its end
        some[:, 0] = flat[np.arange(largest.size), np.abs(flat).argmax(axis=1)]
        grain = np.maximum(ROUNDING * largest, grids(some.T).reshape(largest.shape))
    y -= x
    return Rows(x.T, y.transpose(2, 0, 1), grain, names, chosen)


def grids(values: Array) -> Array:
    """Spacing of each column's grid, 0 for 0 alone.

    Grids are binary fractions, and multiples of 1/q for whole q up to 10,000 and powers of ten up
    to 10⁹. Single precision and significant digits count as the largest value's grid.
    """
    # few rows may look coarser, never finer
    return np.array([_spacing(column) for column in values[:GRID_ROWS].T])


def _spacing(column: Array) -> float:
    largest = float(np.abs(column).max())
    if not largest:
        return 0.0
    single = (np.ldexp(np.frexp(column)[0], 24) % 1.0 == 0.0).all()
    eps = EPS_SINGLE if single else EPS
    return max(
        grid_of_digits(column), eps / 2.0 * largest, _last_digit(column), _parts(column, eps)
    )


def _parts(column: Array, eps: float) -> float:
    """Spacing of multiples of 1/q with the least q, else 0.

    Values with a last bit near 1/q are passed over.
    """
    some = column[:: max(1, len(column) // 4)]
    for q in FRACTIONS[_multiples(some, FRACTIONS, eps, column)]:
        if _multiples(column, q[None], eps, column)[0]:
            steps = np.rint(column * q)
            return float(np.gcd.reduce(steps[np.abs(steps) < 2.0**62].astype(np.int64)) / q)
    return 0.0


def _multiples(values: Array, q: Array, eps: float, column: Array) -> Flags:
    scaled = values[:, None] * q
    rounding = 4.0 * eps * np.abs(scaled) + 64.0 * EPS * np.abs(column).max() * q
    known = rounding < 2.0**-5
    return ((np.abs(scaled - np.rint(scaled)) <= rounding) | ~known).all(axis=0) & (
        2 * known.sum(axis=0) >= len(values)
    )


def _last_digit(column: Array) -> float:
    size = np.abs(column)
    decade = np.floor(np.log10(np.where(size > 0, size, 1.0)))
    for digits in range(1, MOST_DIGITS + 1):
        scaled = size / 10.0 ** np.clip(decade - digits + 1, -300, 300)
        if (np.abs(scaled - np.rint(scaled)) <= 8.0 * EPS * scaled).all():
            return float(10.0 ** np.clip(decade.max() - digits + 1, -300, 300))
    return 0.0


# --------------------------------------------------------------------------------------------------


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
    places : sequence of (copy, attribute, new)
        By row. The attribute is −1 if the copy has fewer independent directions than attributes.
        New noise is of copies whose noise is partly determined by copies of less noise.
    deviation : ndarray of shape (M, N)
        Of the noise given copies of less noise.
    null : ndarray of shape (r, MN)
        Combinations of the noise, in deviations of one copy, that are 0.
    """

    W: Array
    places: Sequence[tuple[int, int, bool]]
    deviation: Array
    null: Array


def whitening(K: Array, N: int, grain: Array) -> Whitening:
    """Whitening of a covariance K, shape (MN, MN).

    Blocks are copies, whitened by the root that schemes draw with. Directions without variance, or
    coarser than ``COARSEST`` deviations at this ``grain``, shape (MN,), are left out.

    With V of the copies before, and B = K_k· Vᵀ, the rest of copy k is ``E_k − B V``, of covariance
    ``C = K_kk − B Bᵀ`` (Cholesky by blocks; C singular by its rank).
    """
    own = deviations(K)
    W = V = null = np.empty((0, len(K)))
    places, left = list[tuple[int, int, bool]](), np.zeros(len(K))
    for copy in np.argsort((own**2).reshape(-1, N).sum(axis=1), kind="stable").tolist():
        k = slice(copy * N, copy * N + N)
        loud, B = np.flatnonzero(own[k] > 0), K[k] @ V.T
        rest, C = np.eye(len(K))[k] - B @ V, K[k, k] - B @ B.T
        left[k], unit = deviations(C), own[k][loud]
        values, vectors = np.linalg.eigh(C[np.ix_(loud, loud)] / np.outer(unit, unit))
        rows, size = vectors.T @ (rest[loud] / unit[:, None]), np.sqrt(np.clip(values, 0.0, None))
        kept = (values > HARDLY_ANY * len(K)) & (np.abs(rows) @ grain <= COARSEST * size)
        null = np.vstack([null, rows[values <= HARDLY_ANY * len(K)]])
        rows = rows[kept] / size[kept, None]
        # undo the root that schemes draw with: its rows are nearest to the attributes
        full = bool(kept.all())
        V, W = np.vstack([V, rows]), np.vstack([W, undo_root(C)[loud] @ rest if full else rows])
        new = bool(np.abs(left[k][loud] ** 2 / unit**2 - 1.0).max(initial=0.0) > 1e-9)
        places += [(copy, a if full else -1, new) for a in loud[kept].tolist()]
    return Whitening(W, places, left.reshape(-1, N), null)


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


def release_scores(law: NoiseLaw, rows: Rows) -> tuple[Scores, Scores | None, Sequence[Value]]:
    """Independent scores, scores in natural coordinates, and values with low digits.

    Parameters
    ----------
    law : NoiseLaw
        Of the M copies chosen; not ``unstated``.
    """
    if is_process(law):
        own = process_scores(law, rows, False)
        return (process_scores(law, rows, True), own, ()) if law.one_process else (own, None, ())
    if law.distribution == "uniform" and isinstance(law, KroneckerNoise):
        return uniform_scores(law, rows), None, ()
    return gaussian_scores(law.covariance, rows)


def gaussian_scores(K: Array, rows: Rows) -> tuple[Scores, Scores, list[Value]]:
    """``Φ(W z)``, ``Φ(c z)`` of natural coordinates, and values, of noise with covariance K.

    Natural coordinates are noise and differences of two copies' noise, raw and in deviations.
    """
    n, M, N = rows.noise.shape
    z, grain = spread_over_cells(rows).reshape(n, M * N), rows.grain.ravel()
    own = np.diag(K)
    K = K + np.diag(np.where(own > 0, grain**2 / 6.0, 0.0))
    white = whitening(K, N, grain)
    places = [(rows.coordinate(*place), place[0]) for place in white.places]
    scores = _normal_scores(white.W, z, grain, places)
    unit, loud = np.eye(M * N), np.flatnonzero(own > 0).tolist()
    combined = [(unit[k], rows.coordinate(k // N, k % N)) for k in loud]
    pairs = list(combinations(range(M), 2))
    for a, b in (pairs[place] for place in spread(len(pairs), MOST_PAIRS)):
        for j in range(N):
            first, second = own[a * N + j], own[b * N + j]
            for factor in {1.0, math.sqrt(second / first)} if min(first, second) > 0 else ():
                c = unit[b * N + j] - factor * unit[a * N + j]
                if c @ K @ c > HARDLY_ANY * (factor**2 * first + second):
                    name = f"the difference of noise of copies {rows.chosen[a]} and {rows.chosen[b]} ({rows.names[j]!r})"
                    combined.append((c, name))
    C = np.array([c / math.sqrt(c @ K @ c) for c, _ in combined]).reshape(-1, M * N)
    own_scores = _normal_scores(C, z, grain, [(name, 0) for _, name in combined])
    return scores, own_scores, list(_values(scores, white.deviation, rows))


def _values(scores: Scores, deviation: Array, rows: Rows) -> Iterator[Value]:
    known = scores.grain / DENSITY["gaussian"]
    fine, copies = np.flatnonzero(known < 2.0**-6).tolist(), scores.groups.tolist()
    for k in fine:
        name, finest = f"{scores.names[k]} in deviations", FINEST / max(known[k], 1e-300)
        yield Value(copies[k], name, scores.g[:, k], SLOWEST, finest, True)
    for k, other in combinations(fine, 2) if len(fine) <= MOST_PAIRED else ():
        if copies[k] == copies[other]:
            name = f"a sum of noise of copy {rows.chosen[copies[k]]}"
            finest = FINEST / max(known[k] + known[other], 1e-300)
            for sign in (1.0, -1.0):
                values = scores.g[:, k] + sign * scores.g[:, other]
                yield Value(copies[k], name, values, SLOWEST, finest)
    for copy, a in np.argwhere(deviation > 64.0 * rows.grain).tolist():
        values = rows.x[:, a] + rows.noise[:, copy, a]
        slowest = SLOWEST / float(deviation[copy, a])
        finest = FINEST / max(float(rows.grain[copy, a]), 1e-300)
        yield Value(copy, f"{rows.names[a]!r} in copy {rows.chosen[copy]}", values, slowest, finest)


def _normal_scores(W: Array, z: Array, grain: Array, places: Sequence[tuple[str, int]]) -> Scores:
    known = np.abs(W) @ grain
    parts = [
        (scipy.special.ndtr(z @ W[k]), name, float(known[k]), copy)
        for k, (name, copy) in enumerate(places)
        if known[k] <= COARSEST
    ]
    return _of_columns(parts, len(z), DENSITY["gaussian"])


def spread_over_cells(rows: Rows) -> Array:
    """Noise, spread over the cells of the grid at random."""
    V = stream(0, "where in a cell of the grid a value lies").random(rows.noise.shape)
    return rows.noise + (V - 0.5) * rows.grain


def uniform_scores(law: KroneckerNoise, rows: Rows) -> Scores:
    """``½ + t/√12``, ``t = K_0^(−½) z/σ``; none if K_0 is singular."""
    sigma = deviations(law.level_covariance)
    undo, parts = undo_root(law.shape), []
    full = np.linalg.matrix_rank(undo, tol=1e-9 * float(np.abs(undo).max())) == law.width
    for copy in np.flatnonzero(sigma > 0).tolist() if full else ():
        known = np.abs(undo) @ rows.grain[copy] / sigma[copy]
        fine = np.flatnonzero(known <= COARSEST_OF_EDGES)
        u = 0.5 + spread_over_cells(rows)[:, copy] @ undo[fine].T / (sigma[copy] * math.sqrt(12.0))
        # values beyond the edges by rounding are folded back
        edge = 2.0 * DENSITY["uniform"] * known[fine]
        beyond = np.abs(u - 0.5) - 0.5
        folded = np.where((beyond > 0.0) & (beyond < edge), beyond, 0.0)
        u = np.clip(u - 2.0 * np.copysign(folded, u - 0.5), 0.0, 1.0)
        parts += [
            (u[:, k], rows.coordinate(copy, a), float(known[a]), copy)
            for k, a in enumerate(fine.tolist())
        ]
    return _of_columns(parts, len(rows.noise), DENSITY["uniform"])


def _of_columns(parts: Sequence[tuple[Array, str, float, int]], n: int, density: float) -> Scores:
    values = np.stack([u for u, *_ in parts], axis=1) if parts else np.empty((n, 0))
    grain = np.minimum(1.0, density * np.array([known for _, _, known, _ in parts]))
    copies = np.array([copy for *_, copy in parts], dtype=int)
    return Scores(values, [name for _, name, *_ in parts], grain, copies)


def process_scores(law: KroneckerNoise, rows: Rows, nested: bool) -> Scores:
    """Randomised distribution functions ``F(d−) + V (F(d) − F(d−))``.

    Of each copy's noise, or if ``nested`` of its increment from the copy of next less noise. Values
    on a lattice, or at rest, are spread over their atoms.
    """
    levels, variances = np.diag(law.level_covariance), np.diag(law.shape).tolist()
    order, parts = np.argsort(levels, kind="stable").tolist(), []
    for below, place in pairwise([-1, *order]) if nested else ((-1, place) for place in order):
        low, high = 0.0 if below < 0 else float(levels[below]), float(levels[place])
        less = "" if below < 0 else f" less copy {rows.chosen[below]}"
        for j, variance in enumerate(variances):
            if variance == 0 or high <= low:
                continue
            density = increment_density(law, low, high, j)
            moving, d, known = density.moving, rows.noise[:, place, j], float(rows.grain[place, j])
            if below >= 0:
                d, known = d - rows.noise[:, below, j], known + float(rows.grain[below, j])
            if moving.on_lattice:
                points, which = np.unique(np.rint(d / moving.unit), return_inverse=True)
                middle, jump = (each[which] for each in density.distribution(points * moving.unit))
                known = math.inf
            elif known <= COARSEST_OF_EDGES * moving.std:
                rest = (density.rest > 0) & (np.abs(d) <= known)
                middle, jump = density.distribution(np.where(rest, 0.0, d))
            else:
                continue
            rng = stream(0, "where in an atom a value lies", below, place, j)
            u = middle + (rng.random(len(d)) - 0.5) * jump
            name = f"noise of copy {rows.chosen[place]}{less} ({rows.names[j]!r})"
            parts.append((u, name, known / moving.std, place))
    return _of_columns(parts, len(rows.noise), DENSITY["laplace"])
