"""Boosted trees on pooled copies, fitted to known records.

No law of the noise is used.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``p`` | number of known records | scalar | |
| ``f_0(y)`` | ridge regression of known-io-regression, its ridge by generalised cross-validation | (N,) | |
| ``z`` | ``[f_0(y), y_1, y_2 − y_1, …, y_k − y_{k−1}]``: features of the trees | (N + kn',) | |
| ``h_t`` | tree fitted to the residuals of t − 1 trees, least squares | scalar | friedman2001 |
| ``x̂_j`` | ``f_0j(y) + ν Σ_{t ≤ T_j} h_tj(z)`` | scalar | friedman2001 |
| ``T_j`` | trees of attribute j: 0, 10, … 60, by least squared error in three-fold cross-validation | scalar | |

Trees fit straight lines badly, so the linear estimate is a feature. With 0 trees, as on normal data
or with fewer than 60 records, the attack is linear.

At most 20,000 random known records are used; a fit then needs about a second per attribute and
coalition. It has no theory.

Reference: ke2017 for histograms (scikit-learn's ``HistGradientBoostingRegressor``).
"""

from itertools import pairwise
from typing import Any

import numpy as np

from auditor.plugin import (
    Array,
    Arrays,
    CopyBlocks,
    Cost,
    Reconstruction,
    Records,
    RowAttack,
    View,
    register,
    stream,
    unprinted,
)

from .known_io_regression import KnownInputOutputRegression

MOST_RECORDS = 20_000
"""Most known records used."""
FOLDS = 3
STEP, MOST_TREES = 10, 60
LEAST_IN_LEAF = 20
TREE: dict[str, Any] = {
    "learning_rate": 0.1,
    "max_leaf_nodes": 16,
    "min_samples_leaf": LEAST_IN_LEAF,
}
"""``ν``, and the size of a tree: 16 leaves combine about four columns."""
FEWEST_RECORDS = 2 * LEAST_IN_LEAF * FOLDS // (FOLDS - 1)
"""With fewer records no tree of a fold has two leaves."""

ROUNDING = 1e-12
"""Share of an attribute's largest value below which residuals are rounding error."""


@register
class KnownInputOutputBoosting(RowAttack):
    """Ridge regression on known records, and boosted trees on its residuals."""

    name = "known-io-boosting"
    attack_kind = "with records"
    cost = Cost(0.03, 7e-6, 100 * 2**20)
    reference = "friedman2001; liu2008, section 4.1"
    families = KnownInputOutputRegression.families
    knowledge = ("known-records",)
    assumes = "The adversary has some records in clear and knows which released rows are theirs; nothing else."
    wins = (
        "Wins over every linear attack on skewed, clustered or curved data from some hundred records on; equals known-io-regression on "
        "normal data and with fewer than 60 records; gains nothing from more corner-wave copies."
    )

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        records = view.need(Records)
        linear = (
            KnownInputOutputRegression(KnownInputOutputRegression.Parameters(ridge="gcv"))
            .over_rows()
            .fit(view, blocks)
        )
        rng = stream(view.seed, self.name)
        # in random order, for random folds
        chosen = rng.permutation(len(records.original))[:MOST_RECORDS]
        copies = [copy[chosen] for copy in records.copies]
        estimate = linear.rows(copies)
        x, z = records.original[chosen], features(estimate, copies)
        rounding = ROUNDING * np.abs(x).max(axis=0)
        left = np.where(np.abs(x - estimate).max(axis=0) > rounding, x - estimate, 0.0)
        return Boosted(linear, tuple(boosted_trees(z, left[:, j]) for j in range(view.width)))


@unprinted
class Boosted(Reconstruction):
    """``f_0(y)`` plus trees for each attribute, or None without a gain.

    Attributes
    ----------
    linear : Reconstruction
        ``f_0``.
    trees : tuple of N regressors or None
    """

    linear: Reconstruction
    trees: tuple[Any, ...]

    def rows(self, copies: Arrays) -> Array:
        estimate = self.linear.rows(copies)
        if not len(estimate) or not any(self.trees):
            return estimate
        z = features(estimate, copies)
        return np.stack(
            [
                x if trees is None else x + trees.predict(z)
                for x, trees in zip(estimate.T, self.trees, strict=True)
            ],
            axis=1,
        )


def features(estimate: Array, copies: Arrays) -> Array:
    """``z``, shape (b, N + kn')."""
    differences = [later - earlier for earlier, later in pairwise(copies)]
    return np.hstack([estimate, copies[0], *differences])


def boosted_trees(z: Array, left: Array) -> Any:
    """Trees that predict ``left``, (p,), from ``z``, (p, d).

    None if they do not lower the cross-validated error.
    """
    count = best_count(z, left) if len(z) >= FEWEST_RECORDS and left.any() else 0
    return grower(max_iter=count).fit(z, left) if count else None


def best_count(z: Array, left: Array) -> int:
    """Number of trees of least cross-validated error, in tens.

    Records must be in random order.
    """
    folds = [np.arange(len(z)) % FOLDS == fold for fold in range(FOLDS)]
    grown = [grower(warm_start=True) for _ in folds]
    best, least = 0, float((left**2).sum())
    for count in range(STEP, MOST_TREES + 1, STEP):
        gaps = [
            left[fold]
            - trees.set_params(max_iter=count).fit(z[~fold], left[~fold]).predict(z[fold])
            for fold, trees in zip(folds, grown, strict=True)
        ]
        loss = float(sum((gap**2).sum() for gap in gaps))
        if loss >= least:
            break
        best, least = count, loss
    return best


def grower(**more: Any) -> Any:
    """Untrained trees, equal for any number of threads."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    # a random state keeps numpy's global generator unused
    return HistGradientBoostingRegressor(**TREE, early_stopping=False, random_state=0, **more)
