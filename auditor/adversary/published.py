"""Knowledge of published results: regressions, trees, margins, rules.

Published figures replace estimates of a normal ``q``.

| symbol | meaning | shape |
| --- | --- | --- |
| ``O, t, U`` | predictors, target, all other attributes | |
| ``a, b, s²`` | published intercept, coefficients and residual variance; with a hat as estimated | scalar, (m,), scalar |
| ``mu_t`` | ``a + b·mu_O`` | scalar |
| ``K_tO, K_tt`` | ``bᵀK_OO``, ``bᵀK_OO b + s²`` | (m,), scalar |
| ``K_tU`` | ``bᵀK_OU + (s/ŝ) Cov(ê, x_U)``, ``Cov(ê, x_U) = K̂_tU − b̂ᵀK̂_OU`` | (u,) |
| ``M`` | ``K_OO^½ (K̂_OO^½)⁺``: for known predictors ``K_UO = K̂_UO Mᵀ`` | (m, m) |
| ``π, μ, v`` | a leaf's share, and the target's mean and variance there | scalars |
| ``E, T`` | mean and covariance of the predictors in the leaf's box; if known, the records' own | (m,), (m, m) |
| ``ρ`` | ``v / (b̂ᵀTb̂ + ŝ²)``, at most 1 | scalar |
| | ``b = ρ b̂``, ``a = μ − b·E``, ``s² = v − bᵀTb``: the leaf's regression | |

Data are normal in a leaf, truncated to its box; ρ is recomputed once. *Not checked*: normal
predictors within a box, and equal slopes up to ρ.

For categories, iterative proportional fitting from a uniform start finds the prior of maximum
entropy:

| symbol | meaning | shape |
| --- | --- | --- |
| ``c_j(x), m_j`` | cell of x in the j-th table, published shares of cells | (s,), (cells,) |
| | ``q(x) ← q(x) · m_j(c_j(x)) / Σ_{x′: c_j(x′) = c_j(x)} q(x′)``, each j in turn | |

A rule ``A ⇒ C`` of support ``σ = P(A, C)`` and confidence ``κ = P(C | A)`` has three cells: both
(σ), A alone (``σ/κ − σ``), and no A (``1 − σ/κ``). A tree has one per leaf and target value, a
marginal table one per combination of values.

Source: huang2005 section 3, liu2008 section 6, kantarcioglu2004; breiman1984, quinlan1986; deming1940,
csiszar1975.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from auditor.adversary.knowledge import (
    Estimated,
    Knowledge,
    KnownAttributes,
    KnownRecords,
    Leaf,
    PublishedModel,
    PublishedRules,
    Rule,
    Split,
    Tree,
)
from auditor.adversary.view import SampleMoments
from auditor.base import AuditorError, DataError, did_you_mean
from auditor.base.types import Array, Flags, Indices, Names, Pair, Plain, unprinted
from auditor.data.columns.categorical_table import Attribute
from auditor.data.table import Table
from auditor.numerics.linear_algebra import quotient, regression, symmetric_root
from auditor.numerics.truncated_normal import Inside, inside


@unprinted
class LinearModel:
    """``x_t = a + b·x_O + residual``, with attributes by index.

    Attributes
    ----------
    on : (m,)
        In the target's units, and their square, ≥ 0.
    """

    target: int
    on: Indices
    coefficients: Array
    intercept: float
    variance: float


def least_squares(mean: Array, covariance: Array, target: int, on: Indices) -> LinearModel:
    """Regression of an attribute on others, from their moments."""
    b = regression(covariance[[target]][:, on], covariance[np.ix_(on, on)])[0]
    s2 = max(0.0, float(covariance[target, target] - b @ covariance[on, target]))
    return LinearModel(target, on, b, float(mean[target] - b @ mean[on]), s2)


@unprinted
class ModelledMoments(SampleMoments):
    """Sample moments and a published regression.

    ``predictors``: their exact mean and covariance, if known.
    """

    model: LinearModel
    predictors: Pair | None = None

    def completed(self, mean: Array, covariance: Array) -> Pair:
        return with_model(mean, covariance, self.model, self.predictors)


def with_model(
    mean: Array, covariance: Array, model: LinearModel, predictors: Pair | None = None
) -> Pair:
    """Mean, (N,), and covariance, (N, N), under a published regression."""
    O, t, b = model.on, model.target, model.coefficients  # noqa: E741 - the symbols above
    own = least_squares(mean, covariance, t, O)
    residual = covariance[t] - own.coefficients @ covariance[O]  # Cov(ê, x)
    mu, K = mean.copy(), covariance.copy()
    if predictors is not None:
        mu[O] = predictors[0]
        K[O] = (
            symmetric_root(predictors[1])
            @ np.linalg.pinv(symmetric_root(K[np.ix_(O, O)]), rcond=1e-7, hermitian=True)
            @ K[O]
        )
        K[:, O] = K[O].T
        K[np.ix_(O, O)] = predictors[1]
    mu[t] = model.intercept + b @ mu[O]
    K[t] = (
        b @ K[O] + (np.sqrt(model.variance / own.variance) if own.variance > 0 else 0.0) * residual
    )
    K[t, O] = b @ K[np.ix_(O, O)]
    K[t, t] = b @ K[t, O] + model.variance
    K[:, t] = K[t]
    return mu, K


LEAST_IN_LEAF = 7
"""Fewest records in a leaf of a grown tree: the default of R's rpart."""
NO_GAIN = 1e-9
"""Least share of the sum of squares that a split must remove."""
RIDGE = 1e-9
"""Least independent share of a predictor's variance."""
POINT = 1e-12
"""Least variance of a predictor, relative to the squared distance to the furthest box end."""


class RegressionTree(NamedTuple):
    """A tree's leaves, with attributes by index.

    Attributes
    ----------
    on : (m,)
    low, high : (L, m)
        Boxes ``low < x_O ≤ high``.
    mean, variance : (L,)
        Of the target.
    share : (L,)
        Of all records; NaN if not stated.
    """

    target: int
    on: Indices
    low: Array
    high: Array
    mean: Array
    variance: Array
    share: Array

    def leaf_of(self, x: Array) -> Indices:
        """Each record's leaf, shape (n,), from predictors, shape (n, m)."""
        return ((self.low[:, None] < x) & (x <= self.high[:, None])).all(axis=2).argmax(axis=0)


def stated(node: Split | Leaf, target: int, on: Indices, names: Names) -> RegressionTree:
    """Tree from stated figures, with predictors ``names`` at ``on``."""
    leaves: list[tuple[Array, Array, Leaf]] = []

    def walk(node: Split | Leaf, low: Array, high: Array) -> None:
        if isinstance(node, Leaf):
            leaves.append((low, high, node))
            return
        j = np.arange(len(names)) == names.index(node.split)
        walk(node.below, low, np.where(j, node.at, high))
        walk(node.above, np.where(j, node.at, low), high)

    walk(node, np.full(len(names), -np.inf), np.full(len(names), np.inf))
    low, high, found = zip(*leaves, strict=True)
    share = np.array([np.nan if leaf.share is None else leaf.share for leaf in found])
    mean, variance = np.array([[leaf.mean, leaf.variance] for leaf in found]).T
    return RegressionTree(
        target, on, np.array(low), np.array(high), mean, variance, share / share.sum()
    )


def grown(x: Array, y: Array, depth: int, target: int, on: Indices) -> RegressionTree:
    """Tree that an owner would publish, by CART (breiman1984).

    Predictors (n, m), target (n,); at most ``depth`` splits above a leaf.
    """
    from sklearn.tree import DecisionTreeRegressor

    middle, least = x.mean(axis=0), NO_GAIN * float(y.var())
    fitted = DecisionTreeRegressor(
        max_depth=depth, min_samples_leaf=LEAST_IN_LEAF, min_impurity_decrease=least, random_state=0
    ).fit(x - middle, y)
    tree, number = fitted.tree_, fitted.apply(x - middle)

    def node(place: int) -> Split | Leaf:
        if tree.children_left[place] < 0:
            inside = y[number == place]
            share = inside.size / y.size
            return Leaf(mean=float(inside.mean()), variance=float(inside.var()), share=share)
        below, above = (
            node(children[place]) for children in (tree.children_left, tree.children_right)
        )
        feature = int(tree.feature[place])
        at = float(tree.threshold[place] + middle[feature])
        return Split(split=str(feature), at=at, below=below, above=above)

    return stated(node(0), target, on, [*map(str, range(len(on)))])


class Leaves(NamedTuple):
    """Leaf distributions: ``N(mean_l, covariance_l)`` truncated to the box.

    Attributes
    ----------
    weight : (L,)
    mean, covariance : (L, N) and (L, N, N)
        Before truncation.
    box
        Of the predictors.
    """

    weight: Array
    mean: Array
    covariance: Array
    box: Inside


@unprinted
class TreeMoments(SampleMoments):
    """Sample moments and a published regression tree.

    ``predictors``: mean, (L, m), and covariance, (L, m, m), in each leaf, and its share, if known.
    """

    what = "a regression tree that was published"
    tree: RegressionTree
    predictors: tuple[Array, Array, Array] | None = None

    def leaves(self, mean: Array, covariance: Array) -> Leaves:
        """Leaf distributions from estimated moments."""
        tree, O = self.tree, self.tree.on  # noqa: E741 - the symbols above
        # no box is impossible with some independent variance of each predictor
        least = np.zeros(len(mean))
        own, borders = np.diag(covariance)[O], np.vstack([tree.low, tree.high]) - mean[O]
        far = np.where(np.isfinite(borders), borders**2, 1.0).max(axis=0)
        least[O] = RIDGE * own + np.maximum(POINT * far - own, 0.0)
        covariance = covariance + np.diag(least)
        K = covariance[np.ix_(O, O)]
        ends = zip(tree.low, tree.high, strict=True)
        parts = zip(*(inside(mean[O][None], K, *each) for each in ends), strict=True)
        box = Inside(*map(np.concatenate, parts))
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

    def completed(self, mean: Array, covariance: Array) -> Pair:
        """Moments of the mixture of all leaves."""
        O, (weight, means, K, box) = self.tree.on, self.leaves(mean, covariance)  # noqa: E741 - the symbols above
        moved = []
        for m, C, E, T in zip(means, K, box.mean, box.covariance, strict=True):
            R = regression(C[:, O], C[np.ix_(O, O)])
            moved.append((m + R @ (E - m[O]), C - R @ (C[np.ix_(O, O)] - T) @ R.T))
        return mixed(weight, *(np.array(part) for part in zip(*moved, strict=True)))


def of_records(tree: RegressionTree, x: Array) -> tuple[Array, Array, Array]:
    """Predictors' mean and covariance per leaf, and its share."""
    leaf, L = tree.leaf_of(x), len(tree.mean)
    share = np.bincount(leaf, minlength=L) / len(x)
    parts = [
        x[leaf == number] if share[number] else np.zeros((1, x.shape[1])) for number in range(L)
    ]
    return (
        np.array([part.mean(axis=0) for part in parts]),
        np.array([np.atleast_2d(np.cov(part.T, bias=True)) for part in parts]),
        share,
    )


def mixed(weight: Array, means: Array, covariances: Array) -> Pair:
    """Mean, (N,), and covariance, (N, N), of a mixture."""
    mean = weight @ means
    d = means - mean
    return mean, np.einsum("l,lij->ij", weight, covariances) + (weight[:, None] * d).T @ d


def leaf_models(own: LinearModel, tree: RegressionTree, box: Inside) -> list[LinearModel]:
    """Regression in each leaf, with the published mean and variance."""
    explained = np.einsum("i,lij,j->l", own.coefficients, box.covariance, own.coefficients)
    explained = np.maximum(explained, 0.0)
    rho = quotient(tree.variance, explained + own.variance).clip(max=1.0)
    b = rho[:, None] * own.coefficients
    a = tree.mean - np.einsum("li,li->l", b, box.mean)
    left = np.maximum(0.0, tree.variance - rho**2 * explained)
    return [
        replace(own, coefficients=b_l, intercept=float(a_l), variance=float(s_l))
        for b_l, a_l, s_l in zip(b, a, left, strict=True)
    ]


def implied(
    models: Sequence[LinearModel], tree: RegressionTree, weight: Array, box: Inside
) -> LinearModel:
    """Overall regression of the target implied by the leaves'."""
    within = np.array(
        [T @ model.coefficients for T, model in zip(box.covariance, models, strict=True)]
    )
    joint = np.block(
        [[box.covariance, within[:, :, None]], [within[:, None, :], tree.variance[:, None, None]]]
    )
    m = len(tree.on)
    found = least_squares(
        *mixed(weight, np.column_stack([box.mean, tree.mean]), joint), m, np.arange(m)
    )
    return replace(found, target=tree.target, on=tree.on)


CLOSE, SLACK, MOST_SWEEPS = 1e-10, 1e-3, 1000
"""Error of shares at which the iteration stops, and allowed after the most sweeps."""

LEAST_GAIN = 1e-12
"""Least reduction of entropy by a split."""


class PublishedTable(NamedTuple):
    """Cell of each domain value, shape (s,), and published shares of the cells."""

    cells: Indices
    shares: Array


def published_prior(
    knowledge: PublishedRules, attributes: Sequence[Attribute], own: Array
) -> Array:
    """Maximum-entropy prior given published results, shape (s,).

    ``own``, (s,), has the table's shares for unstated figures. ``DataError`` with the field's path
    for unknown names or contradictions.
    """
    tables = [
        measured(cells_of(names, attributes, ("margins", place)), own)
        for place, names in enumerate(knowledge.margins)
    ]
    tables += [
        ruled(rule, attributes, own, ("if-then", place))
        for place, rule in enumerate(knowledge.if_then)
    ]
    if knowledge.tree is not None:
        tables.append(grown_tree(knowledge.tree, attributes, own, ("tree",)))
    cells_of(knowledge.known, attributes, ("known",))
    if set(knowledge.known) == {attribute.name for attribute in attributes}:
        raise DataError("names every attribute and leaves none to attack", ("known",))
    return maximum_entropy(tables, own.size)


def measured(cells: Indices, own: Array, count: int = 0) -> PublishedTable:
    """Cells with the table's own shares, (s,); at least ``count`` cells."""
    return PublishedTable(cells, np.bincount(cells, own, count).astype(float))


def maximum_entropy(tables: Sequence[PublishedTable], size: int) -> Array:
    """Maximum-entropy distribution given tables, shape (s,).

    ``DataError`` if none agrees.
    """
    q, off = np.full(size, 1.0 / size), np.inf
    for _ in range(MOST_SWEEPS):
        for cells, shares in tables:
            q *= quotient(shares, np.bincount(cells, q, shares.size))[cells]
        off = max(
            (
                float(np.abs(np.bincount(cells, q, shares.size) - shares).max())
                for cells, shares in tables
            ),
            default=0.0,
        )
        if off <= CLOSE:
            break
    if not off <= SLACK:
        raise DataError("states figures that cannot all be true: no distribution has them")
    return q / q.sum()


def ruled(
    rule: Rule, attributes: Sequence[Attribute], own: Array, path: tuple[str | int, ...]
) -> PublishedTable:
    """Rule's cells: antecedent with and without consequent, rest."""
    when, then = (
        _holds(part, attributes, (*path, key))
        for key, part in (("if", rule.when), ("then", rule.then))
    )
    cells = np.where(when, np.where(then, 0, 1), 2)
    if rule.support is None or rule.confidence is None:
        return measured(cells, own, 3)
    covered = rule.support / rule.confidence
    return PublishedTable(cells, np.array([rule.support, covered - rule.support, 1.0 - covered]))


def grown_tree(
    tree: Tree, attributes: Sequence[Attribute], own: Array, path: tuple[str | int, ...]
) -> PublishedTable:
    """Cells of a tree grown from the table's shares."""
    _place(tree.target, attributes, (*path, "target"))
    y = cells_of([tree.target], attributes)
    cells_of(tree.predictors, attributes, (*path, "predictors"))
    splits, values = (
        {name: cells_of([name], attributes) for name in tree.predictors},
        int(y.max()) + 1,
    )
    leaf = np.zeros(own.size, dtype=int)

    def grow(inside: Indices, left: frozenset[str], depth: int) -> None:
        entropies = {
            name: conditional_entropy(own[inside], splits[name][inside], y[inside])
            for name in tree.predictors
            if name in left
        }
        name = min(entropies, key=lambda name: entropies[name], default="")
        if (
            not depth
            or not name
            or entropies[name]
            >= conditional_entropy(own[inside], np.zeros_like(inside), y[inside]) - LEAST_GAIN
        ):
            leaf[inside] = leaf.max() + 1
            return
        for value in np.unique(splits[name][inside]):
            grow(inside[splits[name][inside] == value], left - {name}, depth - 1)

    grow(np.arange(own.size), frozenset(tree.predictors), tree.depth)
    return measured((leaf - 1) * values + y, own, int(leaf.max()) * values)


def conditional_entropy(share: Array, x: Indices, y: Indices) -> float:
    """``−Σ P(x, y) ln P(y | x)``, for codes x, y with shares P."""
    Y = int(y.max()) + 1
    joint = np.bincount(x * Y + y, share, (int(x.max()) + 1) * Y).reshape(-1, Y)
    given = quotient(joint, joint.sum(axis=1, keepdims=True), 1.0, joint > 0)
    return float(-(joint * np.log(given)).sum())


def cells_of(
    names: Names, attributes: Sequence[Attribute], path: tuple[str | int, ...] = ()
) -> Indices:
    """Each domain value's combination of some attributes, shape (s,).

    ``DataError`` if an attribute does not exist.
    """
    places = [_place(name, attributes, (*path, number)) for number, name in enumerate(names)]
    sizes = tuple(attribute.size for attribute in attributes)
    parts = np.unravel_index(np.arange(int(np.prod(sizes, dtype=np.int64))), sizes)
    cells = np.zeros(parts[0].size, dtype=int)
    for place in places:
        cells = cells * sizes[place] + parts[place]
    return cells


def _place(name: str, attributes: Sequence[Attribute], path: tuple[str | int, ...]) -> int:
    known = [attribute.name for attribute in attributes]
    if name not in known:
        raise DataError(
            f"names no attribute of categories: {name!r}{did_you_mean(name, known)}", path
        )
    return known.index(name)


def _holds(values: Plain, attributes: Sequence[Attribute], path: tuple[str | int, ...]) -> Flags:
    holds: Flags = cells_of((), attributes) == 0
    for name, value in values.items():
        labels = [
            str(label) for label in attributes[_place(name, attributes, (*path, name))].labels
        ]
        if str(value) not in labels:
            raise DataError(
                f"states a value that is not in the column's domain, which has {len(labels)}",
                (*path, name),
            )
        holds &= cells_of([name], attributes) == labels.index(str(value))
    return holds


def check_knowledge(knowledge: Knowledge, table: Table) -> None:
    """Refuse knowledge that the table cannot provide (``AuditorError``)."""
    if isinstance(knowledge, Estimated) and knowledge.rows > table.rows:
        raise DataError(
            f"needs {knowledge.rows:,} released rows; the table has {table.rows:,}", ("rows",)
        )
    if isinstance(knowledge, KnownRecords) and knowledge.count >= table.rows:
        raise AuditorError(
            f"needs {knowledge.count:,} records, and at least one to attack; the table has {table.rows:,}"
        )
    if isinstance(knowledge, PublishedModel):
        for place, name in enumerate(knowledge.predictors or ()):
            _check_column(name, table, ("predictors", place))
        for name in knowledge.coefficients or ():
            _check_column(name, table, ("coefficients", name))
        _check_splits(knowledge.tree, table, ("tree",))
        _check_column(knowledge.target, table, ("target",))
    if isinstance(knowledge, PublishedRules):
        if table.categorical is None:
            raise DataError(
                "is of categories, and the table has none: name columns under data.categorical or data.bin"
            )
        published_prior(knowledge, table.categorical.attributes, table.categorical.prior)
    if isinstance(knowledge, KnownAttributes):
        for name in knowledge.attributes:
            _check_column(name, table)
        if set(knowledge.attributes) == set(table.attributes):
            raise AuditorError("names every column that is audited and leaves none to attack")


def _check_column(name: str, table: Table, path: tuple[str | int, ...] = ()) -> None:
    if name not in table.attributes:
        raise DataError(
            f"names no column that is audited: {name!r}{did_you_mean(name, table.attributes)}", path
        )


def _check_splits(node: Split | Leaf | None, table: Table, path: tuple[str | int, ...]) -> None:
    if isinstance(node, Split):
        _check_column(node.split, table, (*path, "split"))
        _check_splits(node.below, table, (*path, "below"))
        _check_splits(node.above, table, (*path, "above"))
