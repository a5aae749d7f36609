"""Linear maps over many rows, in the cheapest form, in constant memory.

| symbol | meaning | shape |
| --- | --- | --- |
| ``W_i`` | the map's matrix for copy i | (N, N) |
| ``w, F`` | ``W_i = w_i·F`` for every i, if the map has that form | (k,), (N, N) |
| ``c`` | offset of every row | (N,) |

Under noise ``Sigma ⊗ K_0`` every linear estimate has the form ``w, F`` (``W = wᵀ ⊗ G(v)``,
auditor.numerics.combination). Copies are then combined first, with one N×N product instead of k. A
copy of weight 0 is not read: under corner-wave noise all but one. A filter that keeps r directions
has rank r, and one that removes r is the identity less a matrix of rank r.

The work is bound by memory: the cost is the number of reads and writes per row, and the length of
runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.numerics.blocks import chunks, evenly
from auditor.numerics.moments import SMALL_OUTPUT, SMALL_WORK, by_run, subtract_row, whole_runs
from auditor.process.deferred import scipy
from auditor.types import Array

ROUNDING = 16 * np.finfo(float).eps
"""Tolerance of proportional weight blocks, relative to the largest weight."""

LONG_ROW = 8
"""Least values per multiplied row: eight need a fifth of BLAS's time for rows of two."""

COMBINED_VALUES = 2**18
"""Values of one copy summed with others' at a time: memory is fastest in long runs, even beyond a
core's own cache.
"""


def write_estimates(
    weights: Array, offset: Array, centre: Array, copies: Sequence[Array], out: Array
) -> Array:
    """Write ``centre + offset + Σ W_i (y_i − centre)`` for every row.

    Returns ``out``.

    Parameters
    ----------
    weights : ndarray of shape (N, kN)
    offset, centre : ndarrays of shape (N,)
    copies : sequence of k ndarrays of shape (n, N)
    out : ndarray of shape (n, N), C-contiguous
        Overwritten; no other memory grows with n.

    Raises
    ------
    ValueError
        ``out`` is not C-contiguous.

    Notes
    -----
    Copies are not centred; the constant includes the centre. The rounding is relative to each
    value, as in the stored copy.
    """
    if not out.flags.c_contiguous:
        raise ValueError("estimates are written to rows that are contiguous, in C order")
    N = out.shape[1]
    blocks = [weights[:, place * N : (place + 1) * N] for place in range(len(copies))]
    held = [place for place, W in enumerate(blocks) if W.any()]
    if not held:
        out[...] = centre + offset
        return out
    used, blocks = [copies[place] for place in held], [blocks[place] for place in held]
    factors = factored(blocks)
    if factors is None:
        _mixed(blocks, offset, centre, used, out)
        return out
    _combined(*factors, offset, centre, used, out)
    return out


def factored(blocks: Sequence[Array]) -> tuple[Array, Array] | None:
    """Return ``w``, (k,), and ``F``, (N, N), with ``W_i = w_i·F``, or None.

    Up to rounding.

    Examples
    --------
    >>> factored([np.eye(2), 3 * np.eye(2)])[0]
    array([0.33333333, 1.        ])
    """
    F = max(blocks, key=lambda W: float(np.abs(W).max()))
    place = np.unravel_index(int(np.abs(F).argmax()), F.shape)
    w = np.array([W[place] / F[place] for W in blocks])
    largest = float(np.abs(F).max())
    same = all(
        np.abs(W - w_i * F).max() <= ROUNDING * largest * abs(w_i)
        for W, w_i in zip(blocks, w, strict=True)
    )
    return (w, F) if same else None


def _combined(
    w: Array, F: Array, offset: Array, centre: Array, copies: Sequence[Array], out: Array
) -> None:
    n, N = out.shape
    several = len(copies) > 1
    # μ + c + F Σ w_i (y_i − μ) = F Σ w_i y_i + [μ + c − (Σ w_i) F μ]: the centre is subtracted
    # once, not from every row.
    constant = centre + offset - w.sum() * (F @ centre)
    # With one copy a piece and its estimates fit the cache together.
    cuts = evenly(0, n, N, COMBINED_VALUES) if several else chunks(n, 2 * N)
    # noise of the data's own shape: no product, the sum is the estimate
    if several and not (F - F[0, 0] * np.eye(N)).any():
        for a, b in cuts:
            _fill(constant, out[a:b])
            for weight, copy in zip(w * F[0, 0], copies, strict=True):
                add_scaled(np.ascontiguousarray(copy[a:b]), weight, out[a:b])
        return
    product = RowProduct(F)
    scratch = np.empty((max(b - a for a, b in cuts), N))
    for a, b in cuts:
        y = scratch[: b - a]
        if several:
            np.multiply(copies[0][a:b], w[0], out=y)
            for weight, copy in zip(w[1:], copies[1:], strict=True):
                add_scaled(np.ascontiguousarray(copy[a:b]), weight, y)
        else:
            # copying rows into the cache and a product cost less than a product in memory
            np.copyto(y, copies[0][a:b])
        product.shifted(y, constant, out[a:b])


def _mixed(
    blocks: Sequence[Array], offset: Array, centre: Array, copies: Sequence[Array], out: Array
) -> None:
    """Apply unrelated matrices to the copies: one product per copy."""
    cuts = chunks(*out.shape)
    scratch = np.empty((2, cuts[0][1] - cuts[0][0], out.shape[1]))
    products = [RowProduct(W) for W in blocks]
    for a, b in cuts:
        centred, other = scratch[0, : b - a], scratch[1, : b - a]
        out[a:b] = centre + offset
        for product, copy in zip(products, copies, strict=True):
            subtract_row(copy[a:b], centre, centred)
            out[a:b] += product.of(centred, other)


def add_scaled(x: Array, weight: float, y: Array) -> None:
    """Add ``weight · x`` to ``y`` in place; both C-contiguous, equal shapes."""
    scipy.linalg.blas.daxpy(x.reshape(-1), y.reshape(-1), a=weight)


class RowProduct:
    """Multiplies rows by a matrix, ``y ↦ W y``.

    Two products of n×N×k cost less than one of n×N×N for k < N/2, so low ranks of ``W`` and ``I −
    W`` are used.
    """

    def __init__(self, W: Array) -> None:
        N = len(W)
        diagonal = np.diag(W)
        self._scale: Array | None = diagonal.copy() if not (W - np.diag(diagonal)).any() else None
        self._one = self._scale is not None and bool((self._scale == 1.0).all())
        kept, dropped = _low_rank(W, 0.0), _low_rank(np.eye(N) - W, 1.0)
        self._dropped = dropped is not None and (
            kept is None or dropped[0].shape[1] < kept[0].shape[1]
        )
        self._thin = dropped if self._dropped else kept
        self._sum = SumOfProducts(np.ascontiguousarray(W.T))

    def of(self, rows: Array, out: Array) -> Array:
        """Return ``rows · Wᵀ``, shape (b, N), in ``out``.

        For the identity, the rows themselves.
        """
        if self._one:
            return rows
        if self._scale is not None:
            return multiply_row(rows, self._scale, out)
        if self._thin is None:
            out.fill(0.0)
            self._sum.add(rows, out)
            return out
        first, second = self._thin
        if self._dropped and first.shape[1] == 0:
            return rows
        np.matmul(rows @ first, second, out=out)
        return np.subtract(rows, out, out=out) if self._dropped else out

    def shifted(self, rows: Array, row: Array, out: Array) -> None:
        """Write ``row + rows · Wᵀ``, shape (b, N), to ``out``.

        Both C-contiguous, without overlap.
        """
        if self._one or self._scale is not None:
            subtract_row(self.of(rows, out), -row, out)
        elif self._thin is None:
            _fill(row, out)
            self._sum.add(rows, out)
        elif self._dropped:
            subtract_row(rows, -row, out)
            _add_product(-1.0, rows @ self._thin[0], self._thin[1], out)
        else:
            _fill(row, out)
            _add_product(1.0, rows @ self._thin[0], self._thin[1], out)


class SumOfProducts:
    """Adds rows times a matrix to other rows, in one pass.

    Parameters
    ----------
    matrix : ndarray of shape (N, N)
    """

    def __init__(self, matrix: Array) -> None:
        self._run = -(-LONG_ROW // len(matrix))
        # k rows of N values are one row of kN, mapped by diag(W, …, W): a product with 0 changes no
        # sum.
        self._matrix: Array = np.kron(np.eye(self._run), matrix).astype(np.float64)

    def add(self, rows: Array, out: Array, factor: float = 1.0) -> None:
        """Add ``factor · rows · matrix`` to ``out``, shapes (b, N), C-contiguous."""
        b, N = rows.shape
        whole, k = b - b % self._run, len(self._matrix)
        long, summed = rows[:whole].reshape(-1, k), out[:whole].reshape(-1, k)
        # Few enough rows for BLAS to multiply in place; a wide matrix is better copied to its own
        # order.
        step = SMALL_WORK // k**2 if k**2 <= SMALL_OUTPUT else max(1, len(long))
        for first in range(0, len(long), step):
            _add_product(
                factor, long[first : first + step], self._matrix, summed[first : first + step]
            )
        if whole < b:
            _add_product(factor, rows[whole:], self._matrix[:N, :N], out[whole:])


def multiply_row(rows: Array, row: Array, out: Array) -> Array:
    """Write rows times one row, elementwise, shape (b, N), to ``out``.

    Several rows at a time; both C-contiguous.
    """
    if (row == row[0]).all():
        return np.multiply(rows, float(row[0]), out=out)
    by_run(np.multiply, rows, row, out)
    return out


def _fill(row: Array, out: Array) -> None:
    b, N = out.shape
    whole, run = whole_runs(b, N)
    out[:whole].reshape(-1, run * N)[...] = np.tile(row, run)
    out[whole:] = row


def _add_product(factor: float, rows: Array, matrix: Array, out: Array) -> None:
    """Add ``factor · rows · matrix`` to C-contiguous ``out``, by BLAS."""
    if rows.size:
        scipy.linalg.blas.dgemm(factor, matrix.T, rows.T, beta=1.0, c=out.T, overwrite_c=True)


def _low_rank(W: Array, size: float) -> tuple[Array, Array] | None:
    """Return factors, (N, r) and (r, N), of ``Wᵀ``; None for r ≥ N/2."""
    N = len(W)
    U, s, Vt = np.linalg.svd(W)
    rank = int((s > N * np.finfo(float).eps * max(size, float(s[0]))).sum())
    if 2 * rank >= N:
        return None
    return np.ascontiguousarray(Vt[:rank].T), np.ascontiguousarray((U[:, :rank] * s[:rank]).T)
