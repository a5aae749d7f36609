"""Coincidences: the originals given which cells share one noise value.

| symbol | meaning | shape |
| --- | --- | --- |
| ``Y`` | the coalition's k copies, standardised by the originals' means and deviations | (k, n, N) |
| ``x`` | originals, standardised; prior normal with their covariance ``K`` | (n, N) |
| ``u`` | distinct noise values; prior normal with their mean and variance | (U,) |
| equation | each cell of a copy is exactly ``x_tj + r · u_v = y_ctj`` | k·n·N |

The first copy's equations eliminate ``x``. Sparse least squares of the priors and of other copies'
equations determine u. No original value enters the solution.

Cells that share one noise value, up to sign and scale (``equal_noise``):

| symbol | meaning | shape |
| --- | --- | --- |
| ``Z`` | noise of k copies | (k, n, N) |
| ``s_c`` | scale of noise column c: deviation, or ratio to a column with the same noise | (k, N) |
| ``v`` | number of the distinct value that a cell's noise is a multiple of | (k, n, N) |
| ``r`` | the multiple: noise = ``r · u_v`` | (k, n, N) |
| ``g`` | resolution of a copy's column: its lattice step, or its floating-point spacing | (k, N) |

On lattices values repeat by chance, so whole rows are compared, and columns at every lag, forwards
and in reverse. A value in more than ``ATOM`` of all cells links nothing.
"""

from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np

from auditor.audit.insider.features.other_rows import distances
from auditor.audit.law_tests.scores import ROUNDING, grids
from auditor.audit.measures.every_cell import Finding, line_squares
from auditor.base import scipy
from auditor.base.types import Array, Coalition, Indices
from auditor.numerics.statistics import standard_ranks

MOST_CELLS = 2**20
"""Cells of a coalition."""
GAIN = 0.02
"""Share of the line's error by which shared noise must lower it. Means of pairs are shared noise
without a gain."""
RESOLVED = 1e-6
"""Share left that counts as nothing."""
EXACT = 1e4
"""Largest weight of an equation, against priors of unit variance."""


def coincidences(
    X: Array, copies: Sequence[Array], coalitions: Sequence[Coalition]
) -> list[Finding]:
    """Finding for each coalition if copies share noise values.

    X and each copy have shape (n, N).
    """
    deviation = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    x, Y = (X - X.mean(axis=0)) / deviation, (np.array(copies) - X.mean(axis=0)) / deviation
    steps = [np.maximum(ROUNDING * np.abs(copy).max(axis=0), grids(copy)) for copy in copies]
    rounding = np.array(steps) / deviation
    findings = []
    for one in coalitions:
        held = np.array(one) - 1
        shared = arrangement(Y[held] - x, rounding[held]) if Y[held].size <= MOST_CELLS else None
        squares, why = line_squares(X, [copies[copy] for copy in held]), ""
        if shared is not None:
            K = np.atleast_2d(np.cov(x.T, bias=True))
            estimate = solve(Y[held], *shared, Y[held] - x, K)
            found = ((estimate - x) * deviation) ** 2
            better = found.mean(axis=0) < np.maximum(
                (1.0 - GAIN) * squares.mean(axis=0), RESOLVED * X.var(axis=0)
            )
            squares[:, better] = found[:, better]
            why = cause(*shared, one) if better.any() else ""
        findings.append(Finding(one, squares, why))
    return findings if any(found.cause for found in findings) else []


def solve(Y: Array, value: Indices, multiple: Array, Z: Array, K: Array) -> Array:
    """Least-squares originals, shape (n, N).

    Parameters
    ----------
    Y : ndarray of shape (k, n, N)
        Standardised copies.
    value, multiple : ndarrays of shape (k, n, N)
        As of ``arrangement``.
    Z : ndarray of shape (k, n, N)
        Noise, for its prior's mean and variance.
    K : ndarray of shape (N, N)
        Covariance of the originals.
    """
    k, n, N = Y.shape
    v, r, U = value.ravel(), multiple.ravel(), int(value.max()) + 1
    noise = Z.ravel() / r
    sigma, mean = max(float(noise.std()), 1e-6), float(noise.mean())
    apart = noise - (np.bincount(v, noise) / np.bincount(v))[v]
    weight = 1.0 / (1.0 / EXACT + float((r * apart).std()))
    # each copy's noise is σ r u_v, with u in deviations from 0
    rows = scipy.sparse.csr_array((sigma * r, (np.arange(v.size), v)), (v.size, U))
    first, others, y = rows[: n * N], rows[n * N :], Y.reshape(k, -1)
    # priors: R x_t with Rᵀ R = K⁻¹ and x = y_1 − σ r u, then u; equations of further copies
    eigenvalues, vectors = np.linalg.eigh(K)
    root = (vectors / np.sqrt(np.maximum(eigenvalues, 1e-9))).T
    R = scipy.sparse.kron(scipy.sparse.identity(n), root).tocsr()
    again = scipy.sparse.vstack([first] * (k - 1)) if k > 1 else others
    A = scipy.sparse.vstack(
        [R @ first, scipy.sparse.identity(U), weight * (others - again)]
    ).tocsr()
    b = np.concatenate([R @ y[0], np.full(U, mean / sigma), weight * (y[1:] - y[0]).ravel()])
    A = A @ scipy.sparse.diags_array(scale := 1.0 / np.sqrt((A * A).sum(axis=0)))
    normal = (A.T @ A).tocsc()
    near = scipy.sparse.linalg.LinearOperator((U, U), scipy.sparse.linalg.spilu(normal).solve)
    found = scipy.sparse.linalg.cg(normal, A.T @ b, rtol=1e-12, maxiter=200, M=near)[0]
    return (y[0] - first @ (scale * found)).reshape(n, N)


def cause(value: Indices, multiple: Array, coalition: Coalition) -> str:
    """Commonest kind of shared noise in words."""
    n = value.shape[1]
    order = np.argsort(value.ravel(), kind="stable")
    again = np.flatnonzero(np.diff(value.ravel()[order]) == 0)
    (c, t, j), (d, s, i) = (np.unravel_index(order[again + step], value.shape) for step in (0, 1))
    said = ""
    for offset, words in ((s - t, " {rows} rows {way}"), (s + t, ", rows in reverse")):
        kinds, counts = np.unique(
            np.stack([c, j, d, i, offset], axis=1), axis=0, return_counts=True
        )
        c0, j0, d0, i0, lag = kinds[counts.argmax()].tolist()
        if counts.max() >= 0.2 * n:
            said = (
                words.format(rows=abs(lag), way="later" if lag > 0 else "earlier")
                if lag
                else " in each row"
            )
            break
    if not said:
        return f"noise repeats {int(value.max()) + 1:,} values in {value.size:,} cells"
    later = "" if said == " in each row" else said
    ratio = float(abs(multiple[d0, 0, i0]) / abs(multiple[c0, 0, j0]))
    scaled = "" if abs(ratio - 1.0) < 1e-6 else f", scaled by {ratio:.3g}"
    share = len(again) / value.size
    if c0 != d0 and i0 == j0:
        return f"copies {coalition[c0]} and {coalition[d0]} carry the same noise{later}{scaled}"
    where = f"columns {j0 + 1} and {i0 + 1}" if i0 != j0 else f"column {j0 + 1}"
    held = (
        f"of copy {coalition[c0]}" if c0 == d0 else f"of copies {coalition[c0]} and {coalition[d0]}"
    )
    verb = "carry the same noise" if i0 != j0 else "repeats its noise"
    return f"{where} {held} {verb}{later}{scaled} ({share:.0%} of all noise values repeat)"


ATOM = 0.01
FEWEST_LINKS = 8
"""Links without which nothing is reported. Fewer change no share by more than a thousandth."""
CHANCE = 0.01
"""Expected links by chance from which on single values are not compared."""
SAME, SHORTEST = 0.95, 64
"""Correlation and share of equal rows of columns with one noise, and fewest such rows."""


def arrangement(Z: Array, resolution: Array) -> tuple[Indices, Array] | None:
    """Number v of each cell's noise value, from 0, and the multiple r, or None if none is shared.

    ``noise = r · u_v`` up to rounding, shapes (k, n, N); ``|r|`` is the column's scale.

    Parameters
    ----------
    Z : ndarray of shape (k, n, N)
        Noise, in units of each attribute's standard deviation.
    resolution : ndarray of shape (k, N)
        Largest rounding error of Z.
    """
    links, scale = equal_columns(Z, resolution)
    tried = [(scale, np.hstack([links, equal_rows(Z, resolution)]))]
    for each in (scale, np.ones_like(scale)):
        U, error = Z / each[:, None], float((resolution / each).max())
        if Z.size**2 * error < CHANCE * float(np.median(np.abs(U))):
            tried.append((each, equal_values(U, 2.0 * error)))
    scale, links = max(tried, key=lambda one: one[1].shape[1])
    if links.shape[1] < FEWEST_LINKS:
        return None
    graph = scipy.sparse.coo_array((np.ones(links.shape[1]), tuple(links)), shape=(Z.size, Z.size))
    value = scipy.sparse.csgraph.connected_components(graph, directed=False)[1].reshape(Z.shape)
    sign = np.where(Z < 0, -1.0, 1.0)
    first = np.unique(value, return_index=True)[1]
    # relative to the value's first cell: the sign of u itself stays unknown
    sign *= sign.ravel()[first][value]
    return value, sign * scale[:, None]


def spreads(columns: Array) -> Array:
    """Standard deviation of each row, 1 for constant rows."""
    found = columns.std(axis=1)
    return np.where(found > 1e-9 * np.abs(columns).max(axis=1), found, 1.0)


def equal_values(U: Array, tolerance: float) -> Indices:
    """Pairs of cells with equal absolute values, shape (2, L).

    Without 0 and frequent values.
    """
    size = np.abs(U).ravel()
    order = np.argsort(size, kind="stable")
    run = np.cumsum(np.diff(size[order], prepend=-np.inf) > tolerance)
    frequent = np.bincount(run)[run] > max(ATOM * size.size, 2 * FEWEST_LINKS)
    near = (run[1:] == run[:-1]) & ~frequent[1:] & (size[order[1:]] > tolerance)
    return np.stack([order[:-1][near], order[1:][near]])


def equal_rows(Z: Array, resolution: Array) -> Indices:
    """Pairs of cells in equal rows of noise, up to sign, shape (2, L).

    None if as many rows are equal by chance.
    """
    k, n, N = Z.shape
    rows = np.round(Z / np.maximum(resolution.min(axis=0), 1e-300)).reshape(k * n, N)
    first = np.take_along_axis(rows, (rows != 0).argmax(axis=1)[:, None], axis=1)
    rows = rows * np.where(first < 0, -1.0, 1.0)
    alike = np.ones((k, k))
    for column in np.abs(rows).T:
        place = np.unique(column, return_inverse=True)[1].reshape(k, n)
        shares = np.array([np.bincount(each, minlength=place.max() + 1) for each in place]) / n
        alike *= shares @ shares.T  # chance that a cell of copy c equals one of copy d
    _, which, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    which, varied = which.ravel(), rows.any(axis=1)
    if (counts[which] - 1)[varied].sum() < 2 * FEWEST_LINKS + 10.0 * alike.sum() * n**2:
        return np.empty((2, 0), dtype=np.intp)
    order = np.argsort(which, kind="stable")
    again = np.flatnonzero((np.diff(which[order]) == 0) & varied[order[1:]])
    pairs = np.stack([order[again], order[again + 1]])
    return (pairs[:, :, None] * N + np.arange(N)).reshape(2, -1)


def equal_columns(Z: Array, resolution: Array) -> tuple[Indices, Array]:
    """Pairs of cells of columns with one noise at some distance; scales, (k, N).

    Distances run forwards and in reverse.
    """
    k, n, N = Z.shape
    noise, rounding = Z.transpose(0, 2, 1).reshape(k * N, n), resolution.ravel()
    cell = np.arange(Z.size).reshape(Z.shape).transpose(0, 2, 1).reshape(k * N, n)
    scale, links, t = spreads(noise), [np.empty((2, 0), dtype=np.intp)], np.arange(n)
    columns = standard_ranks(noise.T)  # a single huge value would align by itself
    varied = [np.unique(column, return_counts=True)[1].max() < n / 2 for column in columns.T]
    for a, b in combinations_with_replacement(np.flatnonzero(varied).tolist(), 2):
        for step, distance in [(1, 0), *distances(columns[:, [a]], columns[:, [b]])]:
            turn, there = np.divmod(step * (t + distance), n)
            for rows in (np.flatnonzero(turn == once) for once in np.unique(turn)):
                y, z = np.abs(noise[b][there[rows]]), np.abs(noise[a][rows])
                ratio = float(np.linalg.norm(y)) / max(float(np.linalg.norm(z)), 1e-300)
                near = np.abs(y - ratio * z) <= 1.5 * (rounding[b] + ratio * rounding[a])
                product = abs(columns[rows, a] @ columns[there[rows], b]) / len(rows)
                if len(rows) >= SHORTEST and min(near.mean(), product) > SAME:
                    links.append(np.stack([cell[a][rows], cell[b][there[rows]]]))
                    scale[b] = scale[a] * ratio
    pairs = np.hstack(links)
    return pairs[:, pairs[0] != pairs[1]], scale.reshape(k, N)
