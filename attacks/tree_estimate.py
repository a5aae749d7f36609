"""Joint posterior mean given a published regression tree.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``ȳ, S`` | the coalition's least noisy combination, and the covariance of its noise | (N,), (N, N) | ``View.weights`` |
| ``π_l, m_l, K_l, B_l`` | leaf l: its share, and the normal truncated to its box | scalar, (N,), (N, N) | ``adversary.published`` |
| ``F_l`` | ``K_l (K_l + S)⁻¹`` | (N, N) | huang2005, (13) |
| ``b_l, C_l`` | ``m_l + F_l (ȳ − m_l)`` and ``F_l S``: the posterior without the box | (N,), (N, N) | |
| ``P_l, P⁰_l`` | probability of the box under ``N(b_l, C_l)``, and under the prior ``N(m_l, K_l)`` | scalars | |
| ``q_l`` | ``∝ π_l N(ȳ; m_l, K_l + S) P_l / P⁰_l`` | scalar | |
| ``x̂`` | ``Σ q_l (b_l + C_l,XO C_l,OO⁻¹ (E_l − b_l,O))``, with ``E_l`` the mean of the predictors in the box | (N,) | |

Exact if the tree splits on one predictor; otherwise expectation propagation approximates the mass
in a box. Known predictors determine the leaf, and ``S`` and ``ȳ`` are conditional on their noise.

Other noise is treated as Gaussian. *Not checked*: that predictors are normal within a box.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from auditor.adversary.published import Leaves, RegressionTree, TreeMoments
from auditor.numerics.blocks import evenly
from auditor.numerics.linear_algebra import regression
from auditor.numerics.truncated_normal import inside, set_apart
from auditor.plugin import (
    Array,
    Arrays,
    CopyBlocks,
    Cost,
    Indices,
    Pair,
    Reconstruction,
    RowAttack,
    View,
    register,
)

from ._deconvolution import normalised

GRAIN = 1e-12
"""Least relative noise variance: without noise ``K_l + S`` may be singular."""
LEAST_LIKELY = -1e300
"""Floor of a leaf's log-probability, which may be −∞ for a distant box."""
CHUNK_VALUES = 2**15
"""Numbers in the largest array of a piece."""


@register
class TreeEstimate(RowAttack):
    """Joint posterior mean over the leaves of a published regression tree."""

    name = "tree-estimate"
    combines = True
    cost = Cost(1e-3, 4e-6)
    reference = "huang2005, section 3; kantarcioglu2004; breiman1984; minka2001"
    knowledge = ("model",)
    assumes = (
        "The adversary knows the law of the noise, rows to estimate moments from, and a regression tree of one attribute on others; "
        "within a leaf the data are taken for normal."
    )
    wins = (
        "Wins over llse where the target jumps or bends with its predictors and the noise is weaker than the leaves are wide; under "
        "stronger noise it is llse with the tree's moments, unless the predictors are known."
    )

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        found = view.need(TreeMoments)
        S, regressed = view.combined_variance * view.one_shape.shape, None
        if found.predictors is not None:
            S, regressed = conditional_noise(S, found.tree.on)
        leaves = leaf_posteriors(found.leaves(*view.estimated_moments), S)
        return _OverLeaves(view.weights, found.tree, leaves, regressed)


def conditional_noise(S: Array, known: Indices) -> Pair:
    """Noise's covariance given known attributes, and regression.

    Shapes (N, N) and (N, |K|).
    """
    B = regression(S[:, known], S[np.ix_(known, known)])
    left = S - B @ S[known]
    left[known], left[:, known] = 0.0, 0.0
    return left, B


class LeafPosterior(NamedTuple):
    """Posterior in one leaf: ``N(m + F (ȳ − m), C)`` truncated to the box.

    Attributes
    ----------
    log_weight : float
        Logarithm of ``π_l / P⁰_l``, plus the constant of the density of ȳ.
    mean : ndarray of shape (N,)
        ``m``.
    half : ndarray of shape (N, N)
        ``L⁻¹`` of ``K + S = L Lᵀ``.
    gain, covariance : ndarrays of shape (N, N)
        ``F`` and ``C``.
    """

    log_weight: float
    mean: Array
    half: Array
    gain: Array
    covariance: Array


def leaf_posteriors(leaves: Leaves, S: Array) -> list[LeafPosterior]:
    """Each leaf's posterior under noise of covariance S, (N, N)."""
    with np.errstate(divide="ignore"):
        log_weight = np.log(leaves.weight) - leaves.box.log_mass
    found = []
    for l, (m, K) in enumerate(zip(leaves.mean, leaves.covariance, strict=True)):  # noqa: E741 - the symbol above
        own = np.diag(K) + np.diag(S)
        noise = S + np.diag(GRAIN * np.where(own > 0, own, 1.0))
        L = np.linalg.cholesky(K + noise)
        F = np.linalg.solve(K + noise, K).T
        C = F @ noise
        log = float(log_weight[l] - np.log(np.diag(L)).sum())
        found.append(LeafPosterior(log, m, np.linalg.inv(L), F, (C + C.T) / 2.0))
    return found


class _OverLeaves(Reconstruction):
    """Posterior means over the leaves of a tree, row by row.

    ``regressed`` is the noise's regression on known predictors'.
    """

    def __init__(
        self,
        weights: Array,
        tree: RegressionTree,
        leaves: Sequence[LeafPosterior],
        regressed: Array | None,
    ) -> None:
        self._weights, self._tree, self._leaves, self._regressed = weights, tree, leaves, regressed
        self.in_clear = None if regressed is None else tree.on

    def rows(self, copies: Arrays) -> Array:
        k, on = len(self._weights), self._tree.on
        seen = np.einsum("k,kbn->bn", self._weights, np.stack(copies[:k]))
        out = np.empty_like(copies[0])
        for start, stop in evenly(0, len(out), out.shape[1] * len(self._leaves), CHUNK_VALUES):
            y = seen[start:stop]
            if self._regressed is None:
                out[start:stop] = posterior_mean(y, self._leaves, self._tree)
                continue
            x = copies[-1][start:stop]
            y = y - (y[:, on] - x) @ self._regressed.T
            y[:, on] = x
            out[start:stop] = in_known_leaves(y, self._leaves, self._tree)
            out[start:stop, on] = x
        return out


def posterior_mean(y: Array, leaves: Sequence[LeafPosterior], tree: RegressionTree) -> Array:
    """``x̂``, shape (b, N), of combined copies of shape (b, N)."""
    O = tree.on  # noqa: E741 - the symbol above
    logs, means = [], []
    for leaf, low, high in zip(leaves, tree.low, tree.high, strict=True):
        d = y - leaf.mean
        z = d @ leaf.half.T
        b, C = leaf.mean + d @ leaf.gain.T, leaf.covariance
        box = inside(b[:, O], C[np.ix_(O, O)], low, high)
        logs.append(leaf.log_weight - 0.5 * (z * z).sum(axis=1) + box.log_mass)
        means.append(b + (box.mean - b[:, O]) @ regression(C[:, O], set_apart(C[np.ix_(O, O)])).T)
    q, _ = normalised(np.maximum(logs, LEAST_LIKELY))
    return np.einsum("lb,lbn->bn", q, np.array(means))


def in_known_leaves(y: Array, leaves: Sequence[LeafPosterior], tree: RegressionTree) -> Array:
    """``x̂``, shape (b, N), of combined copies with true predictors.

    The predictors determine each record's leaf.
    """
    found, number = np.empty_like(y), tree.leaf_of(y[:, tree.on])
    for l, leaf in enumerate(leaves):  # noqa: E741 - the symbol above
        here = number == l
        found[here] = leaf.mean + (y[here] - leaf.mean) @ leaf.gain.T
    return found
