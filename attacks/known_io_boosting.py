"""Known input–output boosting: learn from a few records known in clear what pooled copies say of an original, by gradient-boosted trees.

What any data scientist would try who knows nothing of the noise: a regression, linear first, and
trees for what that leaves.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``p`` | records known in clear | scalar | |
| ``f_0(y)`` | the ridge regression of known-io-regression, its ridge chosen by generalised cross-validation | (N,) | |
| ``z`` | ``[f_0(y), y_1, y_2 − y_1, …, y_k − y_{k−1}]``: what the trees split on | (N + kn',) | |
| ``h_t`` | tree grown on what is left after t − 1 trees, least squares | scalar | friedman2001 |
| ``x̂_j`` | ``f_0j(y) + ν Σ_{t ≤ T_j} h_tj(z)`` | scalar | friedman2001 |
| ``T_j`` | trees of attribute j: the number of least squared error on records held out, 0, 10, … 60 | scalar | |

Trees alone are bad at straight lines, which is most of what a copy says: from 1,000 records of the
census they leave half as much again as the linear estimate; on top of it they take a quarter of
what it leaves. Their splits go along axes, so they are shown the linear estimate, and the
differences between copies beside a copy itself: noise that copies share cancels in a difference.

``T_j`` is chosen by three-fold cross-validation, and 0 is among the choices: on normal data, where
nothing is left to learn, the attack is the linear one. Fewer than 60 records cannot be split at all
in a fold, and leave it so, too. A rule that was learnt cannot do better than ``E Var(x | y)``,
whatever the law; it comes near it with some thousand records and few attributes.

At most 20,000 of the known records are learnt from, the choice drawn from the seed; a fit takes
about a second an attribute and coalition there. Theory is not given: how well trees learn has no
closed form.

Reference: friedman2001, with the histograms and leaf-wise trees of ke2017 (scikit-learn's
``HistGradientBoostingRegressor``); known input–output pairs are the setting of liu2008, section
4.1. Wins on skewed, clustered or curved data and under noise that is not what its covariance says.
Fails where rows are few, and to gain from more copies of corner-wave noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from auditor.plugin import (
    Array,
    Cost,
    KnownRecords,
    Reconstruction,
    Records,
    RowAttack,
    View,
    register,
    stream,
)

from .known_io_regression import KnownInputOutputRegression

MOST_RECORDS = 20_000
"""Known records that trees learn from."""
FOLDS = 3
STEP, MOST_TREES = 10, 60
LEAST_IN_LEAF = 20
TREE: dict[str, Any] = {
    "learning_rate": 0.1,
    "max_leaf_nodes": 16,
    "min_samples_leaf": LEAST_IN_LEAF,
}
"""``ν``, and the size of a tree: 16 leaves split on some four columns together."""
FEWEST_RECORDS = 2 * LEAST_IN_LEAF * FOLDS // (FOLDS - 1)
"""With fewer no tree of a fold has two leaves."""

ROUNDING = 1e-12
"""Share of an attribute's largest value below which what the linear estimate leaves is rounding: a
matrix without noise was undone."""


@register
class KnownInputOutputBoosting(RowAttack):
    """Learns from records known in clear by ridge regression, and what that leaves by gradient-boosted trees."""

    name = "known-io-boosting"
    attack_kind = "with records"
    cost = Cost(0.03, 7e-6, 100 * 2**20)
    reference = "friedman2001; liu2008, section 4.1"
    families = KnownInputOutputRegression.families
    knowledge = (KnownRecords.name,)
    assumes = "The adversary has some records in clear and knows which released rows are theirs; nothing else."
    wins = (
        "Wins over every linear attack on skewed, clustered or curved data from some hundred records on; equals known-io-regression on "
        "normal data and with fewer than 60 records; gains nothing from more corner-wave copies."
    )

    def fit(self, view: View, blocks: Iterable[list[Array]]) -> Reconstruction:
        """Return the regression and the trees, learnt from the known records."""
        records = view.need(Records)
        linear = (
            KnownInputOutputRegression(KnownInputOutputRegression.Parameters(ridge="gcv"))
            .over_rows()
            .fit(view, blocks)
        )
        rng = stream(view.seed, self.name)
        # in a random order, so that every third record is a random fold
        chosen = rng.permutation(len(records.original))[:MOST_RECORDS]
        copies = [copy[chosen] for copy in records.copies]
        estimate = linear.rows(copies)
        x, z = records.original[chosen], features(estimate, copies)
        rounding = ROUNDING * np.abs(x).max(axis=0)
        left = np.where(np.abs(x - estimate).max(axis=0) > rounding, x - estimate, 0.0)
        return Boosted(linear, tuple(boosted_trees(z, left[:, j]) for j in range(view.width)))


@dataclass(frozen=True, repr=False)
class Boosted(Reconstruction):
    """``f_0(y)``, and what the trees add to each attribute; None for one that they do not help.

    Attributes
    ----------
    linear : Reconstruction
        ``f_0``.
    trees : tuple of N regressors or None
    """

    linear: Reconstruction
    trees: tuple[Any, ...]

    def rows(self, copies: Sequence[Array]) -> Array:
        """Return the linear estimate and what trees say of its errors."""
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


def features(estimate: Array, copies: Sequence[Array]) -> Array:
    """Return ``z``, shape (b, N + kn'), for linear estimates of shape (b, N) and k copies of shape (b, n')."""
    differences = [later - earlier for earlier, later in pairwise(copies)]
    return np.hstack([estimate, copies[0], *differences])


def boosted_trees(z: Array, left: Array) -> Any:
    """Return trees that predict ``left``, shape (p,), from ``z``, shape (p, d); None where records held out are no better for any."""
    count = best_count(z, left) if len(z) >= FEWEST_RECORDS and left.any() else 0
    return grower(max_iter=count).fit(z, left) if count else None


def best_count(z: Array, left: Array) -> int:
    """Return how many trees leave held-out records the least squared error: ten more at a time, for as long as it falls.

    Folds are every third record, whose order is to be random.
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
    """Return untrained trees; the same for any number of threads."""
    # here, since importing it takes a second
    from sklearn.ensemble import HistGradientBoostingRegressor

    # Early stopping is left to the folds; with a random state given nothing is drawn from numpy's
    # global generator.
    return HistGradientBoostingRegressor(**TREE, early_stopping=False, random_state=0, **more)
