"""Align copies with different rotations by orthogonal Procrustes.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``C_i`` | ``Σ (y_i − ȳ_i)(y_1 − ȳ_1)ᵀ`` over rows | (N, N) | |
| ``T_i`` | the orthogonal matrix nearest to C_i: ``U Vᵀ`` of its singular value decomposition | (N, N) | Schönemann 1966 |
| ``ȳ`` | ``Σ w_i T_iᵀ (y_i − ȳ_i) + ȳ_1``, weights of least noise | (N,) | |

Further copies without noise add no information. Independent noise is averaged with weights 1/σ_i².
Of nested noise only the least noisy copy is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from auditor.plugin import Array, View


@dataclass(frozen=True, eq=False)
class Alignment:
    """Rotations and weights that pool a coalition's copies.

    Attributes
    ----------
    turns : tuple of k ndarrays of shape (N, N)
        ``T_i``, applied from the right.
    means : tuple of k ndarrays of shape (N,)
    weights : ndarray of shape (k,)
        Sum 1.
    """

    turns: tuple[Array, ...] = field(repr=False)
    means: tuple[Array, ...] = field(repr=False)
    weights: Array = field(repr=False)

    def pooled(self, copies: Sequence[Array]) -> Array:
        """Return the pooled copy, shape (b, N), in the first used copy's axes."""
        target = int(np.argmax(self.weights > 0))
        used = [k for k in range(len(copies)) if self.weights[k] > 0]
        parts = [self.weights[k] * (copies[k] - self.means[k]) @ self.turns[k] for k in used]
        return np.asarray(self.means[target] + np.sum(parts, axis=0))


def pooling_weights(view: View) -> Array:
    """Return minimum-variance weights of the copies, shape (k,)."""
    levels = np.array(view.levels or np.zeros(len(view.copies)))
    least = int(np.argmin(levels))
    if levels[least] == 0.0 or view.scheme.get("noise") == "corner-wave":
        return np.asarray(np.eye(len(levels))[least])
    return np.asarray((1.0 / levels) / (1.0 / levels).sum())


def align(view: View, blocks: Iterable[list[Array]]) -> Alignment:
    """Fit the alignment of copies of the original's width, in two passes."""
    weights = pooling_weights(view)
    k, N, target = len(weights), view.width, int(np.argmax(weights > 0))
    means, count = [np.zeros(N) for _ in range(k)], 0
    for copies in blocks:
        count += len(copies[0])
        for mean, copy in zip(means, copies, strict=True):
            mean += copy.sum(axis=0)
    means = [mean / count for mean in means]
    turns: list[Array] = [np.eye(N) for _ in range(k)]
    others = [i for i in range(k) if weights[i] > 0 and i != target]
    if others:
        crossed = {i: np.zeros((N, N)) for i in others}
        for copies in blocks:
            for i in others:
                crossed[i] += (copies[i] - means[i]).T @ (copies[target] - means[target])
        for i in others:
            U, _, Vt = np.linalg.svd(crossed[i])
            turns[i] = U @ Vt
    return Alignment(tuple(turns), tuple(means), weights)
