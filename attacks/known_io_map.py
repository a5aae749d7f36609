"""Linear map from pooled copies to originals, fitted to known records.

| symbol | meaning | shape |
| --- | --- | --- |
| ``C_xx, C_xy, C_yy`` | covariances over the known records, copies side by side | (N, N), (N, d), (d, d) |
| ``W`` | the map; each attack fits its own | (N, d) |
| ``x̂`` | ``x̄_p + W (y − ȳ_p)`` | (N,) |
"""

from abc import abstractmethod
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from pydantic import NonNegativeFloat

from auditor.numerics.linear_algebra import deviations, in_own_units, regression
from auditor.plugin import (
    Affine,
    Array,
    Arrays,
    CopyBlocks,
    Cost,
    LinearAttack,
    NotApplicable,
    PluginParameters,
    Reconstruction,
    Records,
    RowAttack,
    View,
    register,
    stream,
    unprinted,
)

SPANNED = 1e-8
"""Directions with less than this share of the largest singular value count as not spanned."""


class FittedMap(LinearAttack):
    """Base of attacks that fit ``W`` to known records."""

    attack_kind = "with records"
    families = frozenset({"additive", "rotation", "rotation-noise", "random-projection"})
    knowledge = ("known-records",)
    assumes = "The adversary has some records in clear and knows which released rows are theirs; nothing else."

    @property
    def undoes_a_matrix(self) -> bool:
        """Whether spanning records undo a noise-free matrix exactly."""
        return True

    @abstractmethod
    def weights(self, C_xx: Array, C_xy: Array, C_yy: Array, records: int) -> Array:
        """``W`` from covariances over ``records`` known records."""

    def affine(self, view: View) -> Affine:
        known = view.need(Records).moments
        if known is None:
            raise NotApplicable(
                "learns from moments, which copies need as many columns for as the original has"
            )
        C, N, mean = known.covariance(), view.width, known.mean
        W = self.weights(C[:N, :N], C[:N, N:], C[N:, N:], known.count)
        return Affine(W, mean[:N] - W @ mean[N:], fixed=False, apart=True)

    def over_rows(self) -> RowAttack:
        return MapOverRows(self)


class MapOverRows(RowAttack):
    """The map fitted to the known records' rows, for copies of any width."""

    name = "fitted-map"
    families = FittedMap.families
    knowledge = FittedMap.knowledge

    def __init__(self, attack: FittedMap) -> None:
        super().__init__(attack.parameters)
        self._attack = attack

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        records = view.need(Records)
        x, y = records.original, np.hstack(records.copies)
        mean_x, mean_y, p = x.mean(axis=0), y.mean(axis=0), len(x)
        x, y = x - mean_x, y - mean_y
        undone = self._attack.undoes_a_matrix and not any(view.levels)
        exact = undone and _rank(x) == _rank(y) == view.width
        W = self._attack.weights(x.T @ x / p, x.T @ y / p, y.T @ y / p, p)
        return LinearMap(mean_x, mean_y, W, exact)


@unprinted
class LinearMap(Reconstruction):
    """``x̂ = m_x + W (y − m_y)`` of copies side by side; ``exact`` without error."""

    mean_x: Array
    mean_y: Array
    W: Array
    exact: bool = False

    def rows(self, copies: Arrays) -> Array:
        return self.mean_x + (np.hstack(list(copies)) - self.mean_y) @ self.W.T

    def expected(self, x: Array) -> Array | None:
        return np.zeros(len(x)) if self.exact else None


def _rank(centred: Array) -> int:
    s = np.linalg.svd(centred, compute_uv=False)
    return int((s > SPANNED * s[0]).sum()) if s.size and s[0] > 0 else 0


RANK = 1e-12
"""Share of the largest singular value of the scaled ``M̂`` below which a value is rounding
error."""


@register
class KnownInputOutputInverse(FittedMap):
    """Estimate the matrix from known records by regression, and invert it.

    Least squares of copies on originals. Noise is ignored.

    | symbol | meaning | shape | source |
    | --- | --- | --- | --- |
    | ``y`` | ``M x + t + R``, pooled copies side by side, d = kn' | (d,) | chen2007; liu2008, section 4.1 |
    | ``M̂`` | ``C_yx C_xx⁺`` over the known records: regression of copies on originals | (d, N) | |
    | ``M̂⁺`` | ``M̂⁻¹`` if square; else the pseudo-inverse, copies and attributes in units of their deviation | (N, d) | |
    | ``x̂`` | ``x̄_p + M̂⁺ (y − ȳ_p)`` | (N,) | liu2008, section 4.1 |
    | error | ``M⁺ K_R M⁺ᵀ``, as p grows | (N, N) | |

    The survey has ``M̂⁻¹ y`` for at least N independent known records; the intercept covers the
    translation of chen2007. With fewer records or columns the minimum-norm estimate is used. For large
    p all noise remains: ``σ²`` under added noise, where known-io-regression leaves ``σ²/(1 + σ²)``.

    Theory is the closed form for the fitted map. If ``M̂`` is nearly singular, one draw of records does
    not predict the next.
    """

    name = "known-io-inverse"
    reference = "chen2007; liu2008, section 4.1"
    wins = (
        "Exact on a matrix without noise once N + 1 independent records are known; with noise it leaves all of it, and loses to "
        "known-io-regression, unless p is near kN."
    )

    def weights(self, C_xx: Array, C_xy: Array, C_yy: Array, records: int) -> Array:
        return inverse_map(C_xx, C_xy, deviations(C_yy))


def inverse_map(C_xx: Array, C_xy: Array, spread: Array) -> Array:
    """``M̂⁺``, shape (N, d), of ``M̂ = C_yx C_xx⁺``.

    Parameters
    ----------
    C_xx, C_xy : ndarrays of shape (N, N), (N, d)
        Covariances over the known records; ``C_xx`` may be singular.
    spread : ndarray of shape (d,)
        Of the copies.

    Examples
    --------
    >>> inverse_map(np.array([[2.0]]), np.array([[1.0]]), np.array([3.0]))
    array([[2.]])
    """
    x, y = (np.where(size > 0, size, 1.0) for size in (deviations(C_xx), spread))
    M = regression(C_xy.T, C_xx)
    return x[:, None] * np.linalg.pinv(M * x / y[:, None], rcond=RANK) / y


RIDGES = np.concatenate([[0.0], np.logspace(-6, 3, 46)])
"""Ridges tried by cross-validation, relative to the copies' variance."""


@register
class KnownInputOutputRegression(FittedMap):
    """Least-squares map from pooled copies to originals by known records.

    | symbol | meaning | shape | source |
    | --- | --- | --- | --- |
    | ``p`` | number of known records | scalar | |
    | ``C_xy, C_yy`` | covariances over the known records | (N, kN), (kN, kN) | |
    | ``W`` | ``C_xy (C_yy + λ diag C_yy)⁺`` | (N, kN) | least squares for λ = 0 |
    | ``x̂`` | ``x̄_p + W (y − ȳ_p)`` | (N,) | |
    | ``RSS(λ)`` | ``tr(C_xx − 2 W C_yx + W C_yy Wᵀ)``, attributes in units of their variance | scalar | |
    | ``df(λ)`` | ``1 + Σ s/(s + λ)``, s the eigenvalues of the copies' correlations | scalar | |
    | ``GCV(λ)`` | ``RSS / (1 − df/p)²`` | scalar | Golub, Heath and Wahba 1979 |

    As p grows, ``W`` tends to the joint LLSE's; the error is larger by a factor of about ``1 + kN/p``
    (on normal rows ``(1 + 1/p)(p − 2)/(p − kN − 2)``, averaged over known records). For ``p ≤ kN`` the
    map has minimum norm, with copies scaled to variance 1. Near ``p = kN + 1`` plain least squares is
    worse than the mean; use ``ridge: gcv``.

    Theory is the fitted map's closed form over the other records, in original coordinates. For copies
    of another width it is 0 if the known records undo the matrix, else unknown.
    """

    name = "known-io-regression"
    reference = "li2012, eq. 6, with moments of known pairs (liu2008, section 4.1)"
    wins = "Wins with a few hundred records and an unknown law; loses to llse by about 1 + kN/p, and with p near kN to guessing the mean."

    class Parameters(PluginParameters):
        """Regularisation of the map."""

        ridge: NonNegativeFloat | Literal["gcv"] = 0.0
        """share of the copies' variance added to it; 'gcv': chosen by generalised cross-validation"""

    @property
    def undoes_a_matrix(self) -> bool:
        return bool(self.parameters.ridge == 0)

    def weights(self, C_xx: Array, C_xy: Array, C_yy: Array, records: int) -> Array:
        return ridge_map(C_xx, C_xy, C_yy, records, self.parameters.ridge)


def ridge_map(C_xx: Array, C_xy: Array, C_yy: Array, records: int, ridge: float | str) -> Array:
    """``W = C_xy (C_yy + λ diag C_yy)⁺``, shape (N, d).

    Parameters
    ----------
    C_xx, C_xy, C_yy : ndarrays of shape (N, N), (N, d), (d, d)
        Covariances over the known records; ``C_yy`` may be singular.
    records : int
        ``p``.
    ridge : float or 'gcv'
        ``λ``, relative to each copy's variance; ``gcv`` minimises generalised cross-validation over
        ``RIDGES``.

    Notes
    -----
    With λ = 0 and a singular ``C_yy``, the map has minimum norm in units of standard deviations.
    """
    correlations, scale = in_own_units(C_yy)
    s, Q = np.linalg.eigh(correlations)
    keep = s > len(s) * np.finfo(float).eps * max(float(s[-1]), 0.0)
    s, Q = s[keep], Q[:, keep]
    B = (C_xy / scale) @ Q
    lam = _least_gcv(np.diag(C_xx), B, s, records) if ridge == "gcv" else float(ridge)
    return (B / (s + lam)) @ Q.T / scale


def _least_gcv(variances: Array, B: Array, s: Array, records: int) -> float:
    unit = np.where(variances > 0, variances, 1.0)
    explained = (B**2 / unit[:, None]).sum(axis=0)
    total = float((variances / unit).sum())
    shrunk = s + RIDGES[:, None]
    rss = total - 2.0 * (explained / shrunk).sum(axis=1) + (explained * s / shrunk**2).sum(axis=1)
    df = 1.0 + (s / shrunk).sum(axis=1)
    gcv = np.where(
        df < records - 1e-9, rss / (1.0 - np.minimum(df / records, 1.0 - 1e-12)) ** 2, np.inf
    )
    return float(RIDGES[int(np.argmin(gcv))]) if np.isfinite(gcv).any() else float(RIDGES[-1])


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
    """Ridge regression on known records, and boosted trees on its residuals.

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
