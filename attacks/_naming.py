"""Assign independent components to attributes, with means and scales."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np

from auditor.numerics.linear_algebra import quotient
from auditor.plugin import Array, Indices, Pair, scipy, unprinted

from ._fastica import Unmixing

ROUNDING = 1e-9
"""Deviation below which known records' components count as equal; over the table it is 1."""

QUANTILES = (np.arange(200) + 0.5) / 200


class Guide(ABC):
    """Knowledge that assigns components to attributes."""

    @property
    @abstractmethod
    def directions(self) -> Array:
        """Expected components as weights on attributes, shape (N, N)."""

    @abstractmethod
    def order(self, found: Unmixing, y: Array) -> tuple[Indices, Array]:
        """Each attribute's component and sign, shapes (N,).

        ``found`` was fitted to ``y``.
        """

    @abstractmethod
    def place(self, found: Unmixing, order: Indices, signs: Array) -> Pair:
        """Mean and ``A``, shape (N, N), of ``x̂ = mean + A ŝ``."""

    def without_matrix(self) -> Guide:
        """Guide for a release of the table itself."""
        return self


@unprinted
class Pairs(Guide):
    """Known pairs: each component is the attribute it correlates with.

    Attributes
    ----------
    original : ndarray of shape (p, N)
        Known originals.
    copies : ndarray of shape (p, n')
        The same rows of the stacked copies.
    """

    original: Array
    copies: Array

    @property
    def directions(self) -> Array:
        return np.eye(self.original.shape[1])

    def order(self, found: Unmixing, y: Array) -> tuple[Indices, Array]:
        x, s = _centred(self.original), _centred(found.apply(self.copies))
        size = np.sqrt(np.outer((x**2).sum(axis=0), (s**2).sum(axis=0)))
        correlation = quotient(x.T @ s, size)
        order = scipy.optimize.linear_sum_assignment(-np.abs(correlation))[1]
        return np.asarray(order, dtype=int), np.ones(len(order))

    def place(self, found: Unmixing, order: Indices, signs: Array) -> Pair:
        components = found.apply(self.copies)
        x, s = _centred(self.original), _centred(components)[:, order]
        power = (s**2).sum(axis=0)
        A = np.zeros((len(order), len(order)))
        varied = power > ROUNDING**2 * len(s)
        A[np.arange(len(order)), order] = quotient((x * s).sum(axis=0), power, where=varied)
        return self.original.mean(axis=0) - A @ components.mean(axis=0), A

    def without_matrix(self) -> Guide:
        return replace(self, copies=self.original)


@unprinted
class Likeness(Guide):
    """Records of the population: components are matched by distribution.

    Attributes
    ----------
    known : ndarray of shape (s, N)
    own : ndarray of shape (N, N)
        From records to expected components, of any variance.
    back : ndarray of shape (N, N)
        From components of variance 1 to attributes.
    moved : bool
        Whether copies were translated, so means carry no information.
    """

    known: Array
    own: Array
    back: Array
    moved: bool

    @property
    def directions(self) -> Array:
        return self.own

    def order(self, found: Unmixing, y: Array) -> tuple[Indices, Array]:
        return match(
            standard(self.known @ self.own.T, self.moved), standard(y @ found.matrix.T, self.moved)
        )

    def place(self, found: Unmixing, order: Indices, signs: Array) -> Pair:
        return self.known.mean(axis=0), (self.back * signs)[:, np.argsort(order)]


def _centred(values: Array) -> Array:
    return values - values.mean(axis=0)


def standard(values: Array, centred: bool) -> Array:
    """200 quantiles of each standardised column, shape (N, 200)."""
    scale = values.std(axis=0)
    z = values - values.mean(axis=0) if centred else values
    return np.quantile(z / np.where(scale > 0, scale, 1.0), QUANTILES, axis=0).T


def match(targets: Array, components: Array) -> tuple[Indices, Array]:
    """Match components to targets by least total Wasserstein distance.

    Quantiles at variance 1, shapes (N, q), give each target's component and sign, (N,).
    """
    plain = np.abs(targets[:, None] - components[None]).mean(axis=2)
    transformed = np.abs(targets[:, None] + components[None, :, ::-1]).mean(axis=2)
    rows, order = scipy.optimize.linear_sum_assignment(np.minimum(plain, transformed))
    sign = np.where(plain[rows, order] <= transformed[rows, order], 1.0, -1.0)
    return np.asarray(order, dtype=int), sign
