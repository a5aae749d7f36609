"""Independent component analysis against a matrix: unmix the copy into independent components, then find out which is which attribute.

Whatever the matrix, the copy is a mixture of the attributes; if they are independent and at most one is Gaussian the mixture can be undone
up to order, sign and scale. Those three are taken from what the adversary knows, and from nothing else.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``y`` | ``A s``, s independent components of variance 1 | (n',) | hyvarinen2000 |
| ``ŝ`` | ``B (y − ȳ)`` by FastICA, ``log cosh`` contrast, symmetric | (N,) | hyvarinen2000 |
| ``π, D`` | which component, with which sign, is which attribute | | liu2008, section 4.3 |
| ``x̂_j`` | ``mu_j + σ_j D_j ŝ_π(j)`` (``components: attributes``) | (N,) | |
| ``A_X`` | mixing matrix that ICA finds in the adversary's own records | (N, N) | guo2007 |
| ``x̂`` | ``x̄ + A_X D ŝ_π`` (``components: latent``) | (N,) | guo2007 |

| knowledge | what settles order, sign and scale |
| --- | --- |
| ``known-records`` | correlation of components and attributes over the known pairs; mean and scale by regression on them |
| ``known-sample``, ``unmatched-records`` | likeness of distributions (Wasserstein distance at variance 1); mean and scale of the sample |

Distributions are compared with their means, which a matrix does not hide; only a translation does, and they are centred then.

``components: attributes`` takes the attributes themselves for the independent components. ``latent`` is Guo and Wu's variant: attributes
may be mixtures; ICA of the known records and ICA of the copy find the same components, and matching those carries the copy back.

No theory is given: what is found in a table does not depend on the matrix, so that its error is one number and not an expectation. Over
*tables* of n independent records the share of component l left in the estimate of component k has the variance
``(γ_k + γ_l + τ_l²) / (τ_k + τ_l)² / n`` for large n, with ``γ = E g² − (E s g)²``, ``τ = |E s g − E g'|`` and ``g = tanh`` of a component
(Tichavský, Koldovský and Oja 2006, symmetric FastICA): the attack is as good as that (tests/attacks/test_ica.py), and no better.

Wins on independent attributes that are not Gaussian, through any matrix with n' ≥ N, orthogonal or not. Fails with two Gaussian components:
any rotation of the two is as independent; with fewer columns than attributes; where two attributes have one distribution, no likeness
tells them apart (known pairs do); and ``latent`` with few known records, whose own components are then a guess. That the components found
are independent is *not checked*.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.optimize import linear_sum_assignment

from auditor.attack import Reconstruction, RowAttack, View
from auditor.errors import NotApplicable
from auditor.knowledge import KnownRecords, KnownSample, UnmatchedRecords
from auditor.registry import PluginParameters, register
from auditor.streams import stream

Array = NDArray[np.float64]

MOST_ROWS = 20_000
"""Rows that components are learnt from."""

QUANTILES = (np.arange(200) + 0.5) / 200


@register
class IndependentComponents(RowAttack):
    """Unmixes the copy into independent components, and tells which is which attribute by what the adversary knows."""

    name = "ica"
    reference = "liu2008, section 4.3"
    families = frozenset({"rotation", "random-projection", "rotation-noise"})
    knowledge = (KnownRecords.name, KnownSample.name, UnmatchedRecords.name)
    assumes = "Attributes (or latent components) are independent, at most one of them Gaussian; a copy has as many columns as attributes."
    wins = "Wins on independent non-Gaussian attributes through any matrix; fails with two Gaussian ones, and with n' below N."

    class Parameters(PluginParameters):
        """What the independent components are."""

        components: Literal["attributes", "latent"] = Field(
            "attributes", description="the attributes themselves, or hidden ones that known records share with the copy (Guo and Wu)"
        )

    def fit(self, view: View, blocks: Iterable[list[Array]]) -> Reconstruction:
        """Return the unmixing and the map from components to attributes."""
        rng = stream(view.seed, self.name)
        y = _some_rows(blocks, rng)
        if y.shape[1] < view.width:
            raise NotApplicable(f"{y.shape[1]} columns cannot be unmixed into {view.width} attributes")
        unmixing = Unmixing.of(y, view.width, rng)
        if view.records is not None:
            return self._by_pairs(view, unmixing)
        known = view.population if view.population is not None else view.unmatched
        if known is None or len(known) < 2:
            raise NotApplicable("needs at least two records of the population to tell components apart")
        moved = bool(view.scheme.get("translation", False))
        found = y @ unmixing.matrix.T
        if self.parameters.components == "latent":
            return _latent(known, found, unmixing, moved, rng)
        mean, scale = known.mean(axis=0), known.std(axis=0)
        order, sign = match(standard(known, moved), standard(found, moved))
        return Unmixed(unmixing, mean, np.diag(scale * sign)[:, np.argsort(order)])

    def _by_pairs(self, view: View, unmixing: Unmixing) -> Reconstruction:
        if self.parameters.components == "latent":
            raise NotApplicable("known pairs settle the map by regression; Guo and Wu's variant is for records without their rows")
        assert view.records is not None
        X_p, s_p = view.records.original, unmixing.apply(np.hstack(view.records.copies))
        if len(X_p) < 2:
            raise NotApplicable("needs at least two known records to tell scale from mean")
        x_c, s_c = X_p - X_p.mean(axis=0), s_p - s_p.mean(axis=0)
        size = np.sqrt(np.outer((x_c**2).sum(axis=0), (s_c**2).sum(axis=0)))
        correlation = np.divide(x_c.T @ s_c, size, out=np.zeros_like(size), where=size > 0)
        attributes, order = linear_sum_assignment(-np.abs(correlation))
        power = (s_c[:, order] ** 2).sum(axis=0)
        slope = np.divide((x_c[:, attributes] * s_c[:, order]).sum(axis=0), power, out=np.zeros_like(power), where=power > 0)
        A = np.zeros((view.width, view.width))
        A[attributes, order] = slope
        return Unmixed(unmixing, X_p.mean(axis=0) - A @ s_p.mean(axis=0), A)


@dataclass(frozen=True)
class Unmixing:
    """``ŝ = B (y − ȳ)``, components of variance 1 over the rows learnt from.

    Attributes
    ----------
    matrix : ndarray of shape (N, n')
    mean : ndarray of shape (n',)
    """

    matrix: Array = field(repr=False)
    mean: Array = field(repr=False)

    @classmethod
    def of(cls, y: Array, components: int, rng: np.random.Generator) -> Unmixing:
        """Learn it from rows of shape (m, n')."""
        from sklearn.decomposition import FastICA  # here, since importing it takes a second and attacks are all imported
        from sklearn.exceptions import ConvergenceWarning

        mean = y.mean(axis=0)
        singular = np.linalg.svd(y - mean, full_matrices=False)[1]
        if len(y) <= components or singular[components - 1] <= 1e-9 * singular[0]:
            raise NotApplicable(f"the rows do not vary in {components} directions, so they cannot be unmixed into as many components")

        ica = FastICA(components, whiten="unit-variance", max_iter=1000, tol=1e-6, random_state=int(rng.integers(2**31)))
        with warnings.catch_warnings():
            # Gaussian components have no maximum to converge to; the estimate is as good as any, and is judged by its error.
            warnings.simplefilter("ignore", ConvergenceWarning)
            ica.fit(y)
        return cls(np.asarray(ica.components_, dtype=np.float64), mean)

    def apply(self, y: Array) -> Array:
        """Return components, shape (b, N)."""
        return np.asarray((y - self.mean) @ self.matrix.T)


class Unmixed(Reconstruction):
    """``x̂ = mean + A ŝ``."""

    def __init__(self, unmixing: Unmixing, mean: Array, A: Array) -> None:
        self._unmixing, self._mean, self._A = unmixing, mean, A

    def rows(self, copies: Sequence[Array]) -> Array:
        """Return the components of the stacked copies, put in their places."""
        return np.asarray(self._mean + self._unmixing.apply(np.hstack(list(copies))) @ self._A.T)


def _latent(known: Array, found: Array, unmixing: Unmixing, moved: bool, rng: np.random.Generator) -> Reconstruction:
    """Match components found in the known records to those found in the copy (guo2007)."""
    own = Unmixing.of(known, known.shape[1], rng)
    order, sign = match(standard(known @ own.matrix.T, moved), standard(found, moved))
    A_X = np.linalg.pinv(own.matrix)  # from components of variance 1 to attributes
    return Unmixed(unmixing, known.mean(axis=0), (A_X * sign)[:, np.argsort(order)])


def _some_rows(blocks: Iterable[list[Array]], rng: np.random.Generator) -> Array:
    """Return at most ``MOST_ROWS`` rows of the stacked copies, chosen at random."""
    y = np.concatenate([np.hstack(copies) for copies in blocks])
    return y if len(y) <= MOST_ROWS else y[np.sort(rng.choice(len(y), MOST_ROWS, replace=False))]


def standard(values: Array, centred: bool) -> Array:
    """Return 200 quantiles of each column over its standard deviation, and less its mean if asked for, shape (N, 200)."""
    scale = values.std(axis=0)
    z = values - values.mean(axis=0) if centred else values
    return np.asarray(np.quantile(z / np.where(scale > 0, scale, 1.0), QUANTILES, axis=0).T)


def match(targets: Array, components: Array) -> tuple[NDArray[np.intp], Array]:
    """Return which component is like each target, and with which sign, by the least total Wasserstein distance (Hungarian method).

    Parameters
    ----------
    targets, components : ndarrays of shape (N, q)
        Quantiles at variance 1.

    Returns
    -------
    order : ndarray of shape (N,)
        Component of each target.
    sign : ndarray of shape (N,)
    """
    plain = np.abs(targets[:, None] - components[None]).mean(axis=2)
    turned = np.abs(targets[:, None] + components[None, :, ::-1]).mean(axis=2)
    rows, order = linear_sum_assignment(np.minimum(plain, turned))
    sign = np.where(plain[rows, order] <= turned[rows, order], 1.0, -1.0)
    return np.asarray(order, dtype=np.intp), sign
