"""Which component is which attribute: what tells an adversary that, and gives components their means and scales.

Known pairs do by correlation and regression; records of the population by the likeness of distributions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from auditor.plugin import Array, scipy

from ._fastica import Unmixing

Order = NDArray[np.intp]

ROUNDING = 1e-9
"""Deviation, of components that have 1 over the table, below which known records do not differ."""

QUANTILES = (np.arange(200) + 0.5) / 200


class Guide(ABC):
    """What an adversary has to put components in their places by."""

    @property
    @abstractmethod
    def directions(self) -> Array:
        """What it takes for the components: one a row, weights on the attributes, of any length, shape (N, N)."""

    @abstractmethod
    def order(self, found: Unmixing, y: Array) -> tuple[Order, Array]:
        """Return which component belongs in each place, and its sign, shapes (N,), given the rows that they were estimated from."""

    @abstractmethod
    def place(self, found: Unmixing, order: Order, signs: Array) -> tuple[Array, Array]:
        """Return mean, shape (N,), and ``A``, shape (N, N), of ``x̂ = mean + A ŝ``."""

    def without_matrix(self) -> Guide:
        """Return the guide of an adversary to whom the table itself was released."""
        return self


@dataclass(frozen=True, eq=False)
class Pairs(Guide):
    """Known pairs: the components are the attributes, and a component is the attribute that it is correlated with.

    Attributes
    ----------
    original : ndarray of shape (p, N)
        Records in clear.
    copies : ndarray of shape (p, n')
        The same rows of the stacked copies.
    """

    original: Array = field(repr=False)
    copies: Array = field(repr=False)

    @property
    def directions(self) -> Array:
        """The attributes."""
        return np.eye(self.original.shape[1])

    def order(self, found: Unmixing, y: Array) -> tuple[Order, Array]:
        """Return the order of the largest correlations over the pairs; signs are left to the regression."""
        x, s = _centred(self.original), _centred(found.apply(self.copies))
        size = np.sqrt(np.outer((x**2).sum(axis=0), (s**2).sum(axis=0)))
        correlation = np.divide(x.T @ s, size, out=np.zeros_like(size), where=size > 0)
        order = scipy.optimize.linear_sum_assignment(-np.abs(correlation))[1]
        return np.asarray(order, dtype=np.intp), np.ones(len(order))

    def place(self, found: Unmixing, order: Order, signs: Array) -> tuple[Array, Array]:
        """Return the regression of each attribute on its component."""
        components = found.apply(self.copies)
        x, s = _centred(self.original), _centred(components)[:, order]
        power = (s**2).sum(axis=0)
        A = np.zeros((len(order), len(order)))
        varied = power > ROUNDING**2 * len(s)  # a component that is the same for all known records says nothing of its attribute
        A[np.arange(len(order)), order] = np.divide((x * s).sum(axis=0), power, out=np.zeros_like(power), where=varied)
        return self.original.mean(axis=0) - A @ components.mean(axis=0), A

    def without_matrix(self) -> Guide:
        """Return pairs whose copies are the records."""
        return replace(self, copies=self.original)


@dataclass(frozen=True, eq=False)
class Likeness(Guide):
    """Records of the population: a component is what is distributed like it.

    Attributes
    ----------
    known : ndarray of shape (s, N)
    own : ndarray of shape (N, N)
        From the records to what the adversary takes for components, of any variance.
    back : ndarray of shape (N, N)
        From those at variance 1 to attributes.
    moved : bool
        Whether copies were translated, so that means say nothing.
    """

    known: Array = field(repr=False)
    own: Array = field(repr=False)
    back: Array = field(repr=False)
    moved: bool

    @property
    def directions(self) -> Array:
        """The attributes, or the adversary's own components."""
        return self.own

    def order(self, found: Unmixing, y: Array) -> tuple[Order, Array]:
        """Return order and signs of the least Wasserstein distance."""
        return match(standard(self.known @ self.own.T, self.moved), standard(y @ found.matrix.T, self.moved))

    def place(self, found: Unmixing, order: Order, signs: Array) -> tuple[Array, Array]:
        """Return the records' mean, and what takes components to attributes."""
        return self.known.mean(axis=0), (self.back * signs)[:, np.argsort(order)]


def _centred(values: Array) -> Array:
    return np.asarray(values - values.mean(axis=0))


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
    transformed = np.abs(targets[:, None] + components[None, :, ::-1]).mean(axis=2)
    rows, order = scipy.optimize.linear_sum_assignment(np.minimum(plain, transformed))
    sign = np.where(plain[rows, order] <= transformed[rows, order], 1.0, -1.0)
    return np.asarray(order, dtype=np.intp), sign
