"""A regression tree that was published of the data, and what it makes of an adversary's moments and of its idea of where records lie.

Each leaf says of the records in a box of the predictors what mean and variance the target has there, and perhaps what share of all they
are. The adversary's own estimate is a normal ``q``. It leaves ``q``'s predictors in each box as they are, and puts a regression in the
place of its own there, which gives the target the mean and variance that were published and is less steep than the estimate by as much as
it varies less:

| symbol | meaning | shape |
| --- | --- | --- |
| ``O, t`` | predictors and target | (m,) |
| ``π, μ, v`` | a leaf's share, and the target's mean and variance there, as published | scalars |
| ``E, T`` | mean and covariance of the predictors in the leaf's box under ``q``; where they are known, the records' own | (m,), (m, m) |
| ``b̂, ŝ²`` | coefficients and residual variance of the target on the predictors, as estimated | (m,), scalar |
| ``ρ`` | ``v / (b̂ᵀTb̂ + ŝ²)``, at most 1: published over estimated variance in the leaf | scalar |
| ``b, a, s²`` | ``ρ b̂``, ``μ − b·E`` and ``v − bᵀTb``: the leaf's regression, of which ``with_model`` makes moments of all attributes | |

In a leaf the data are then ``N(m_l, K_l)`` cut to its box, and together a mixture of these, of weights π or, where shares are not stated,
of what ``q`` has in each box. How steep the target is between leaves the tree says itself: so the regression of that mixture takes the
place of the estimated one, and ρ is found once more. It need not be found a third time (errors change by 0.001 at most).

A tree that says what the estimate said already changes nothing. Of a step ρ is small, and leaves nearly flat. However poor the estimate
is, whoever knows the predictors is left what the leaves' variances leave or little more: noise of ten variances, moments from 400 rows,
a step, and 0.115 of the variance is left where leaves have 0.104. The law nearest to ``q`` in relative entropy that has the leaf's mean
and variance is another: by ``ρ² b̂ᵀTb̂ + ρ ŝ² = v`` it is steepest where ŝ² was estimated too small, and 0.156 is left.

Moments of that mixture are what linear attacks go by; ``tree-estimate`` has its posterior mean.

Source: that results of data mining may breach privacy, huang2005 section 3, liu2008 section 6, kantarcioglu2004; trees, breiman1984. Not
checked: that predictors are normal within a box, or slopes within leaves those of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.given import SampleMoments
from auditor.adversary.knowledge import Leaf, Split
from auditor.adversary.published_model import LinearModel, least_squares, with_model
from auditor.numerics.linear_algebra import regression
from auditor.numerics.truncated_normal import Inside, inside
from auditor.types import Array

LEAST_IN_LEAF = 7
"""Records in each leaf of a tree that is grown: what R's rpart has for a default."""
NO_GAIN = 1e-9
"""Share of the squares about a leaf's mean that a split must take away to be one."""
RIDGE = 1e-9
"""Share of its variance that a predictor is taken to have beside the others: a box may be where an estimate of few rows leaves nothing."""
POINT = 1e-12
"""Of the squared distance from the mean to the furthest end of a box, what variance a predictor is taken to have at least."""


class RegressionTree(NamedTuple):
    """A tree's leaves, attributes by their places in the table.

    Attributes
    ----------
    target : int
    on : ndarray of shape (m,)
        Places of the predictors.
    low, high : ndarrays of shape (L, m)
        Each leaf's box, ``low < x_O ≤ high``; infinite where it has no end. Together they are the whole space.
    mean, variance : ndarrays of shape (L,)
        Of the target in each leaf, in its units and their square, variances ≥ 0.
    share : ndarray of shape (L,)
        Of all records, sum 1; NaN where no shares are stated.
    """

    target: int
    on: NDArray[np.intp]
    low: Array
    high: Array
    mean: Array
    variance: Array
    share: Array

    def leaf_of(self, x: Array) -> NDArray[np.intp]:
        """Return which leaf each record is in, shape (n,), by its predictors, shape (n, m)."""
        there = ((self.low[:, None] < x) & (x <= self.high[:, None])).all(axis=2)
        return np.asarray(there.argmax(axis=0))


def stated(node: Split | Leaf, target: int, on: NDArray[np.intp], names: tuple[str, ...]) -> RegressionTree:
    """Return a tree as its figures were stated, its predictors being ``names`` at the places ``on``."""
    leaves: list[tuple[Array, Array, Leaf]] = []

    def walk(node: Split | Leaf, low: Array, high: Array) -> None:
        if isinstance(node, Leaf):
            leaves.append((low, high, node))
            return
        j = np.arange(len(names)) == names.index(node.on)
        walk(node.below, low, np.where(j, node.at, high))
        walk(node.above, np.where(j, node.at, low), high)

    walk(node, np.full(len(names), -np.inf), np.full(len(names), np.inf))
    low, high, found = zip(*leaves, strict=True)
    share = np.array([np.nan if leaf.share is None else leaf.share for leaf in found])
    mean, variance = np.array([[leaf.mean, leaf.variance] for leaf in found]).T
    return RegressionTree(target, on, np.array(low), np.array(high), mean, variance, share / share.sum())


def grown(x: Array, y: Array, depth: int, target: int, on: NDArray[np.intp]) -> RegressionTree:
    """Return the tree that an owner would publish: split by split what takes most squares away (breiman1984).

    Parameters
    ----------
    x, y : ndarrays of shapes (n, m) and (n,)
        Predictors and target of all records.
    depth : int
        Splits on the way to a leaf, at most.
    """
    leaves: list[tuple[Array, Array, Array]] = []

    def grow(rows: NDArray[np.intp], low: Array, high: Array, depth: int) -> None:
        """Split a node, the records in it by number, or make a leaf of it."""
        found = best_split(x[rows], y[rows]) if depth else None
        if found is None:
            leaves.append((low, high, y[rows]))
            return
        j, at = found
        here, below = np.arange(len(on)) == j, x[rows, j] <= at
        grow(rows[below], low, np.where(here, at, high), depth - 1)
        grow(rows[~below], np.where(here, at, low), high, depth - 1)

    grow(np.arange(len(y)), np.full(len(on), -np.inf), np.full(len(on), np.inf), depth)
    low, high, inside = zip(*leaves, strict=True)
    mean, variance, share = np.array([[part.mean(), part.var(), part.size / y.size] for part in inside]).T
    return RegressionTree(target, on, np.array(low), np.array(high), mean, variance, share)


def best_split(x: Array, y: Array) -> tuple[int, float] | None:
    """Return which predictor to split at which value, halfway between two records; None where no split tells anything.

    Of predictors, shape (n, m), that do equally well it is the first.
    """
    n, d = len(y), y - y.mean()
    best, found = NO_GAIN * float(d @ d), None
    left = np.arange(1, n)
    for j in range(x.shape[1]):
        order = np.argsort(x[:, j], kind="stable")
        v = x[order, j]
        possible = (v[1:] > v[:-1]) & (left >= LEAST_IN_LEAF) & (n - left >= LEAST_IN_LEAF)
        # Σ_left d = −Σ_right d, so squares taken away are S²/n_left + S²/n_right
        gain = np.where(possible, np.cumsum(d[order])[:-1] ** 2 * (1.0 / left + 1.0 / (n - left)), 0.0)
        k = int(gain.argmax()) if n > 1 else 0
        if n > 1 and gain[k] > best:
            best, found = float(gain[k]), (j, float(v[k] + (v[k + 1] - v[k]) / 2.0))
    return found


class Leaves(NamedTuple):
    """What the tree makes of an estimate: in leaf l the data are ``N(mean_l, covariance_l)``, cut to its box.

    Attributes
    ----------
    weight : ndarray of shape (L,)
        π, sum 1.
    mean, covariance : ndarrays of shapes (L, N) and (L, N, N)
        Before they are cut.
    box : Inside
        What of the predictors lies in each box: L log-masses, means and covariances.
    """

    weight: Array
    mean: Array
    covariance: Array
    box: Inside


@dataclass(frozen=True, eq=False)
class TreeMoments(SampleMoments):
    """Moments of the copies that are estimated from, and a regression tree that was published.

    Attributes
    ----------
    tree : RegressionTree
    predictors : tuple of ndarrays of shapes (L, m), (L, m, m) and (L,), or None
        Mean and covariance of the predictors in each leaf, and its share of the records, where their true values are known; else None.
    """

    what = "a regression tree that was published"
    tree: RegressionTree = field(repr=False)
    predictors: tuple[Array, Array, Array] | None = field(default=None, repr=False)

    def leaves(self, mean: Array, covariance: Array) -> Leaves:
        """Return the law in each leaf, from the data's moments as estimated, shapes (N,) and (N, N); the covariance may be singular."""
        tree, O = self.tree, self.tree.on  # noqa: E741 - the symbols above
        covariance = wide_enough(mean, covariance, tree)
        box = in_boxes(mean[O], covariance[np.ix_(O, O)], tree)
        weight = np.exp(box.log_mass) if np.isnan(tree.share).any() else tree.share
        overall = None
        if self.predictors is not None:
            centres, spreads, weight = self.predictors
            box = Inside(box.log_mass, centres, spreads)
            overall = mixed(weight, centres, spreads)
        weight = weight / weight.sum()
        estimated = leaf_models(least_squares(mean, covariance, tree.target, O), tree, box)
        models = leaf_models(implied(estimated, tree, weight, box), tree, box)
        laws = [with_model(mean, covariance, model, overall) for model in models]
        means, covariances = (np.array(part) for part in zip(*laws, strict=True))
        return Leaves(weight, means, covariances, box)

    def completed(self, mean: Array, covariance: Array) -> tuple[Array, Array]:
        """Return the moments of the mixture of all leaves."""
        O, (weight, means, K, box) = self.tree.on, self.leaves(mean, covariance)  # noqa: E741 - the symbols above
        moved = []
        for m, C, E, T in zip(means, K, box.mean, box.covariance, strict=True):
            R = regression(C[:, O], C[np.ix_(O, O)])
            moved.append((m + R @ (E - m[O]), C - R @ (C[np.ix_(O, O)] - T) @ R.T))
        return mixed(weight, *(np.array(part) for part in zip(*moved, strict=True)))


def of_records(tree: RegressionTree, x: Array) -> tuple[Array, Array, Array]:
    """Return mean and covariance of the predictors, shape (n, m), in each leaf, and its share of the records; of none 0, and 0 of them."""
    leaf, L = tree.leaf_of(x), len(tree.mean)
    share = np.bincount(leaf, minlength=L) / len(x)
    parts = [x[leaf == number] if share[number] else np.zeros((1, x.shape[1])) for number in range(L)]
    return np.array([part.mean(axis=0) for part in parts]), np.array([np.atleast_2d(np.cov(part.T, bias=True)) for part in parts]), share


def mixed(weight: Array, means: Array, covariances: Array) -> tuple[Array, Array]:
    """Return mean, shape (N,), and covariance, shape (N, N), of a mixture of L laws, of weights that sum to 1."""
    mean = weight @ means
    d = means - mean
    return mean, np.einsum("l,lij->ij", weight, covariances) + (weight[:, None] * d).T @ d


def wide_enough(mean: Array, covariance: Array, tree: RegressionTree) -> Array:
    """Return the covariance, shape (N, N), with some variance of each predictor beside the others: with none of it boxes have no mass."""
    O = tree.on  # noqa: E741 - the symbols above
    ends = [np.where(np.isfinite(end), end - mean[O], 0.0) ** 2 for end in (*tree.low, *tree.high)]
    least = np.zeros(len(mean))
    own = np.diag(covariance)[O]
    least[O] = RIDGE * own + np.maximum(POINT * np.max(ends, axis=0) + np.finfo(float).tiny - own, 0.0)
    return np.asarray(covariance + np.diag(least))


def in_boxes(mean: Array, covariance: Array, tree: RegressionTree) -> Inside:
    """Return what a normal has in each leaf's box: L log-masses, means and covariances of the predictors."""
    found = [inside(mean[None], covariance, low, high) for low, high in zip(tree.low, tree.high, strict=True)]
    return Inside(*(np.concatenate(part) for part in zip(*found, strict=True)))


def leaf_models(own: LinearModel, tree: RegressionTree, box: Inside) -> list[LinearModel]:
    """Return the regression in each leaf, ``own`` being that of all records."""
    return [leaf_model(own, *leaf) for leaf in zip(box.mean, box.covariance, tree.mean, tree.variance, strict=True)]


def implied(models: Sequence[LinearModel], tree: RegressionTree, weight: Array, box: Inside) -> LinearModel:
    """Return the regression of the target on the predictors, over all records, if these are its regressions in the leaves."""
    within = np.array([T @ model.coefficients for T, model in zip(box.covariance, models, strict=True)])
    joint = np.block([[box.covariance, within[:, :, None]], [within[:, None, :], tree.variance[:, None, None]]])
    m = len(tree.on)
    found = least_squares(*mixed(weight, np.column_stack([box.mean, tree.mean]), joint), m, np.arange(m))
    return replace(found, target=tree.target, on=tree.on)


def leaf_model(own: LinearModel, E: Array, T: Array, mean: float, variance: float) -> LinearModel:
    """Return a leaf's regression: as steep as the estimated one allows for the target's published mean and variance there.

    Parameters
    ----------
    own : LinearModel
        As estimated.
    E, T : ndarrays of shapes (m,) and (m, m)
        Mean and covariance of the predictors in the leaf.
    mean, variance : float
        Of the target there.
    """
    explained = max(0.0, float(own.coefficients @ T @ own.coefficients))
    estimated = explained + own.variance
    rho = min(1.0, variance / estimated) if estimated > 0 else 0.0
    b = rho * own.coefficients
    return LinearModel(own.target, own.on, b, float(mean - b @ E), max(0.0, variance - rho**2 * explained))
