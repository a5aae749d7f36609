"""How far the shares that a copy shows are from the original's: what is lost by whoever counts categories in the copy as it is.

| symbol | meaning | shape |
| --- | --- | --- |
| ``q, f`` | shares of the categories among the n originals, and in the copy | (s,) |
| ``a`` | ``(1 − p)π`` | (s,) |
| ``b`` | ``E f − q = a − (1 − p)q``: 0 where replacements have the original's own shares | (s,) |
| ``C`` | covariance of f over the noise, ``(diag d − L)/n`` with ``d = p(1 − p)q + a`` and ``L = p(q aᵀ + a qᵀ) + a aᵀ`` | (s, s) |

``E‖f − q‖² = ‖b‖² + tr C``, and as f is a mean over records its variance is that of a normal f, ``4
bᵀ C b + 2 tr C²``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.schemes.replacement.law import fresh_chances
from auditor.types import Array


class ShareGap(NamedTuple):
    """``‖f − q‖²``, its standard error over the noise, and its mean."""

    value: float
    std_error: float
    mean: float


def share_gap(counts: NDArray[np.integer[Any]], level: float, pi: Array | None = None) -> ShareGap:
    """Return the gap of one copy at retention ``level``, from records by original (row) and released value (column), shape (s, s).

    Examples
    --------
    >>> share_gap(np.array([[1, 1], [0, 0]]), 0.0).value
    0.5
    """
    n, p = int(counts.sum()), level
    q, f = counts.sum(axis=1) / n, counts.sum(axis=0) / n
    a = np.broadcast_to(fresh_chances(p, q.size, pi), q.shape)
    # own: the diagonal of L
    b, d, own = a - (1.0 - p) * q, p * (1.0 - p) * q + a, (2.0 * p * q + a) * a
    aa, qa, qq = a @ a, q @ a, q @ q
    trace = (d - own).sum() / n
    squares = (
        d @ d - 2.0 * d @ own + 2.0 * p**2 * (qq * aa + qa**2) + 4.0 * p * qa * aa + aa**2
    ) / n**2
    along = (d @ b**2 - 2.0 * p * (q @ b) * (a @ b) - (a @ b) ** 2) / n
    return ShareGap(
        float((f - q) @ (f - q)),
        float(np.sqrt(max(0.0, 4.0 * along + 2.0 * squares))),
        float(b @ b + trace),
    )
