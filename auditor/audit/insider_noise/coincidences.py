"""Coincidences: the originals given which cells share one noise value.

| symbol | meaning | shape |
| --- | --- | --- |
| ``Y`` | the coalition's k copies, standardised by the originals' means and deviations | (k, n, N) |
| ``x`` | originals, standardised; prior normal with their covariance ``K`` | (n, N) |
| ``u`` | distinct noise values; prior normal with their mean and variance | (U,) |
| edge | each cell of a copy is an exact equation ``x_tj + r · u_v = y_ctj`` | k·n·N |

Every equation has two unknowns, so the equations are edges of a graph. A spanning tree writes each
connected part as ``a + b · w``, with one unknown w. Edges beyond the tree are further equations,
with a weight. The priors then determine w by one sparse least squares. The adversary knows the
copies, the arrangement of shared noise, and both priors. No original value enters the solution.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.audit.insider_noise.equal_noise import (
    FEWEST_LINKS,
    Arrangement,
    arrangement,
    resolutions,
)
from auditor.audit.insider_noise.finding import Finding, line_squares
from auditor.process.deferred import scipy
from auditor.types import Array, Coalition, Indices

NAME = "coincidences"
MOST_CELLS = 2**20
"""Cells of a coalition: the tree of so many takes some ten seconds."""
STEEPEST = 1e3
"""Ratio of coefficients along a branch from which on a tree is cut: rounding errors grow as
much."""
LONGEST = 64
"""Edges of a branch on lattices, where each edge adds a rounding error."""
GAIN = 0.02
"""Share of the line's error by which shared noise must lower it. Means of pairs are shared noise
without a gain."""
RESOLVED = 1e-6
"""Share left that counts as nothing."""
EXACT = 1e4
"""Weight of an equation without rounding error, against priors of unit variance."""


def coincidences(
    X: Array, copies: Sequence[Array], coalitions: Sequence[Coalition]
) -> list[Finding]:
    """Return a finding for each coalition if copies share noise values.

    Parameters
    ----------
    X : ndarray of shape (n, N)
    copies : sequence of M ndarrays of shape (n, N)
    coalitions : sequence of tuple of int
        Copy numbers, from 1.
    """
    deviation = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    x, Y = (X - X.mean(axis=0)) / deviation, (np.array(copies) - X.mean(axis=0)) / deviation
    rounding = resolutions(np.array(copies)) / deviation
    known = np.array(
        [[one_to_one(*columns) for columns in zip(X.T, copy.T, strict=True)] for copy in copies]
    )
    findings = []
    for one in coalitions:
        held = np.array(one) - 1
        shared = arrangement(Y[held] - x, rounding[held]) if Y[held].size <= MOST_CELLS else None
        squares, why = line_squares(X, [copies[copy] for copy in held]), ""
        if shared is not None:
            estimate = solve(
                Y[held], shared, Y[held] - x, np.cov(x.T, bias=True).reshape(len(deviation), -1)
            )
            found = ((estimate - x) * deviation) ** 2
            better = found.mean(axis=0) < np.maximum(
                (1.0 - GAIN) * squares.mean(axis=0), RESOLVED * X.var(axis=0)
            )
            squares[:, better] = found[:, better]
            why = cause(shared.value, shared.multiple, one) if better.any() else ""
        squares[:, known[held].any(axis=0)] = 0.0
        if known[held].any():
            copy, column = np.argwhere(known[held])[0].tolist()
            why = f"the noise of column {column + 1} of copy {one[copy]} is a function of the original value: equal values have equal noise"
        findings.append(Finding(NAME, one, squares, X.var(axis=0), why))
    return findings if any(found.cause for found in findings) else []


def one_to_one(x: Array, y: Array) -> bool:
    """Return whether cells are a one-to-one function of repeated originals."""
    values, which = np.unique(x, return_inverse=True)
    cells, place = np.unique(y, return_inverse=True)
    pairs = np.unique(which.ravel() * len(cells) + place.ravel())
    return bool(
        len(values) == len(cells) == len(pairs) and 1 < len(values) <= len(x) - FEWEST_LINKS
    )


def solve(Y: Array, shared: Arrangement, Z: Array, K: Array) -> Array:
    """Return the least-squares originals, shape (n, N).

    Parameters
    ----------
    Y : ndarray of shape (k, n, N)
        Standardised copies.
    shared : Arrangement
    Z : ndarray of shape (k, n, N)
        Noise, for the mean and the variance of its prior alone.
    K : ndarray of shape (N, N)
        Covariance of the originals.
    """
    k, n, N = Y.shape
    cells, values = n * N, int(shared.value.max()) + 1
    x, u = np.tile(np.arange(cells), k), cells + shared.value.ravel()
    r, y = shared.multiple.ravel(), Y.ravel()
    a, b, w, tree = spanning_tree(
        x, u, r, y, cells + values, LONGEST if shared.error > 1e-9 else cells + values
    )
    unknowns = int(w.max()) + 1
    part = scipy.sparse.csr_array(
        (b, (np.arange(cells + values), w)), shape=(cells + values, unknowns)
    )
    # Priors: R x_t with Rᵀ R = K⁻¹, and (u − m) / σ
    eigenvalues, vectors = np.linalg.eigh(K)
    R = scipy.sparse.kron(
        scipy.sparse.identity(n), (vectors / np.sqrt(np.maximum(eigenvalues, 1e-9))).T
    ).tocsr()
    noise = (Z / shared.multiple).ravel()
    sigma, mean = max(float(noise.std()), 1e-6), float(noise.mean())
    rest = np.flatnonzero(~tree)
    beyond = part[x[rest]] + scipy.sparse.diags_array(r[rest]) @ part[u[rest]]
    weight = min(EXACT, 1.0 / (shared.error * np.abs(shared.multiple).max()))
    system = scipy.sparse.vstack([R @ part[:cells], part[cells:] / sigma, weight * beyond]).tocsr()
    right = np.concatenate(
        [-(R @ a[:cells]), (mean - a[cells:]) / sigma, weight * (y - a[x] - r * a[u])[rest]]
    )
    system.data[np.abs(system.data) < 1e-9] = 0.0  # an edge within one part has no unknown
    length = np.sqrt(np.asarray(system.multiply(system).sum(axis=0)).ravel())
    length[length == 0] = 1.0
    found = scipy.sparse.linalg.lsqr(
        system @ scipy.sparse.diags_array(1.0 / length), right, atol=1e-9, btol=1e-9, iter_lim=2000
    )[0]
    return (a + part @ (found / length))[:cells].reshape(n, N)


def spanning_tree(
    x: Indices, u: Indices, r: Array, y: Array, nodes: int, longest: int
) -> tuple[Array, Array, Indices, Indices]:
    """Return ``a``, ``b`` and the unknown of each node, and the tree's edges.

    Edges are ``v_x + r · v_u = y``. A branch is cut where it is long, or where ``b`` is far from 1;
    its edge is then beyond the tree.
    """
    order = np.argsort(np.concatenate([x, u]), kind="stable")
    ends = np.concatenate(
        [[0], np.cumsum(np.bincount(np.concatenate([x, u]), minlength=nodes))]
    ).tolist()
    edges, x_of, u_of, r_of, y_of = (
        (order % len(x)).tolist(),
        x.tolist(),
        u.tolist(),
        r.tolist(),
        y.tolist(),
    )
    a, b, w, depth, used = (
        [0.0] * nodes,
        [1.0] * nodes,
        [-1] * nodes,
        [0] * nodes,
        np.zeros(len(x), dtype=bool),
    )
    roots, unknowns = iter(range(nodes - 1, -1, -1)), 0
    for root in roots:
        if w[root] >= 0:
            continue
        w[root], unknowns, queue = unknowns, unknowns + 1, [root]
        for node in queue:
            for edge in edges[ends[node] : ends[node + 1]]:
                other = u_of[edge] if x_of[edge] == node else x_of[edge]
                if w[other] >= 0:
                    continue
                scale = r_of[edge]
                # v_u = (y − v_x) / r, or v_x = y − r v_u
                new_a, new_b = (
                    (y_of[edge] - a[node], -b[node])
                    if other == u_of[edge]
                    else (y_of[edge] - scale * a[node], -scale * b[node])
                )
                if other == u_of[edge]:
                    new_a, new_b = new_a / scale, new_b / scale
                if depth[node] >= longest or not 1.0 / STEEPEST < abs(new_b) < STEEPEST:
                    w[other], unknowns = unknowns, unknowns + 1
                else:
                    a[other], b[other], w[other], depth[other], used[edge] = (
                        new_a,
                        new_b,
                        w[node],
                        depth[node] + 1,
                        True,
                    )
                queue.append(other)
    return np.array(a), np.array(b), np.array(w), used


def cause(value: Indices, multiple: Array, coalition: Coalition) -> str:
    """Return the commonest kind of shared noise in words."""
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
