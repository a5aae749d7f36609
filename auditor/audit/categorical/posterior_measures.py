"""Leakage measures of posteriors.

| measure | for one record with true value x, posterior P, prior q | source |
| --- | --- | --- |
| reconstruction probability | ``P(x)`` | xiao2009, Appendix 2 |
| posterior maximum | ``max_z P(z)`` | |
| accuracy | ``[argmax P = x]`` | |
| mutual information | ``log₂ P(x)/q(x)``, with mean ``I(X; Y)`` if q is the true prior | |
| squared error | ``(Σ_z P(z)·score(z) − score(x))²`` | |
| | without scores ``Σ_z (P(z) − [z = x])²``, over indicators | |
| | one attribute of several: both with ``P(x_j = v)`` | |
| δ-growth | ``max_z (P(z) − q(z))`` | xiao2009, section 3 |
| ρ1-to-ρ2 breach | some z with ``q < ρ1, P > ρ2`` or ``q > ρ2, P < ρ1`` | xiao2009, section 3 |

Only the noise is random, so a mean over n records has the variance ``Σ_x n_x Var(v | x) / n²``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from auditor.base.types import Array, Flags, Indices

FEWEST = 20
"""Fewest records of a value for its growth of belief."""


@dataclass(frozen=True, repr=False)
class Frame:
    """Reference of posteriors.

    Attributes
    ----------
    prior : ndarray of shape (s,)
        The adversary's own.
    prior_is_exact : bool
        Whether it is the table's, as mutual information requires.
    scores : ndarray of shape (s,) or None
        A number for each value; None: errors are over indicators.
    rho : tuple of float or None
        ``(ρ1, ρ2)``.
    predicates : dict
        Statements: masks, (s,), by name.
    known : ndarray of shape (s,) or None
        Number of each value's combination of known attributes.
    parts : dict of str to ndarray of shape (s,)
        Of several attributes, each one's value by value of the domain.
    """

    prior: Array
    prior_is_exact: bool = True
    scores: Array | None = None
    rho: tuple[float, float] | None = None
    predicates: Mapping[str, Flags] = field(default_factory=dict)
    known: Indices | None = None
    parts: Mapping[str, Indices] = field(default_factory=dict)

    def combinations(self) -> list[Flags | None]:
        """Values of each combination of known attributes; None for all values."""
        if self.known is None:
            return [None]
        return [np.asarray(self.known == c) for c in np.unique(self.known)]


def restricted(P: Array, possible: Flags) -> Array:
    """Probabilities given that a value is possible; shapes (u, s) that broadcast.

    Possible values are equally likely if all have probability 0.
    """
    within = np.where(possible, P, 0.0)
    share = within.sum(axis=-1, keepdims=True)
    uniform = possible / possible.sum(axis=-1, keepdims=True)
    return np.divide(within, share, out=np.where(share > 0, 0.0, uniform), where=share > 0)


class Measured(NamedTuple):
    """Measures of m records by name, and growth of belief by statement, shapes (m,)."""

    values: dict[str, Array]
    growth: dict[str, Array]


def measured(
    P: Array, frame: Frame, u: Indices, x: Indices, possible: Flags | None = None
) -> Measured:
    """Measures of records.

    Parameters
    ----------
    P : ndarray of shape (v, s)
        Posteriors.
    u, x : ndarrays of shape (m,)
        Row of P and true value, by record.
    possible : ndarray of shape (s,) or (v, s), optional
        Values that the known attributes allow.
    """
    prior = frame.prior
    if possible is not None:
        P, prior = restricted(P, possible), restricted(prior, possible)
    prior = np.broadcast_to(prior, P.shape)
    own = P[u, x]

    def error(guess: Array, truth: Indices) -> Array:
        return np.maximum((guess**2).sum(axis=1)[u] - 2.0 * guess[u, truth] + 1.0, 0.0)

    found = {
        "reconstruction_probability": own,
        "posterior_max": P.max(axis=1)[u],
        "accuracy": (P.argmax(axis=1)[u] == x).astype(np.float64),
    }
    if frame.prior_is_exact:
        with np.errstate(divide="ignore", invalid="ignore"):
            bits = np.log2(own / prior[u, x])
        # no information from values that the adversary thought impossible
        found["mutual_information"] = np.where(np.isfinite(bits), bits, 0.0)
    scores = frame.scores
    found["squared_error"] = error(P, x) if scores is None else ((P @ scores)[u] - scores[x]) ** 2
    growth = {"*": (P - prior).max(axis=1)[u]}
    if frame.rho is not None:
        crossed = np.asarray(breaches(P, prior, *frame.rho).any(axis=1))
        found["rho_breach"] = crossed[u].astype(np.float64)
    for name, values in frame.parts.items():
        part = P @ np.eye(values.max() + 1)[values]
        found[f"squared_error/{name}"] = error(part, values[x])
        found[f"accuracy/{name}"] = (part.argmax(axis=1)[u] == values[x]).astype(np.float64)
    for name, holds in frame.predicates.items():
        belief, before = (np.where(holds, each, 0.0).sum(axis=1)[u] for each in (P, prior))
        found[f"reconstruction_probability/{name}"] = np.where(holds[x], belief, 1.0 - belief)
        growth[name] = belief - before
        if frame.rho is not None:
            crossed = breaches(belief, before, *frame.rho)
            found[f"rho_breach/{name}"] = crossed.astype(np.float64)
    return Measured(found, growth)


def error_without_copies(prior: Array, frame: Frame) -> float:
    """Mean squared error from prior, shape (s,), and known attributes alone."""
    certain = np.ones((1, prior.size))
    return expected(certain.T, prior, frame.prior[None], frame, 1)["squared_error"].value


def breaches(P: Array, prior: Array, rho_1: float, rho_2: float) -> Flags:
    """Where belief crosses both bounds, upward or downward (xiao2009, section 3)."""
    return ((prior < rho_1) & (P > rho_2)) | ((prior > rho_2) & (P < rho_1))


@dataclass(repr=False)
class Sums:
    """Sums of one coalition's measures.

    Attributes
    ----------
    by_group : dict
        By measure, the sums of row groups, shape (G,).
    sizes : ndarray of shape (G,)
        Records of each row group.
    by_value : ndarray of shape (3, s)
        By true value: records, and sums of ``P(x)`` and ``P(x)²``.
    growth : dict
        Largest δ-growth by statement.
    """

    by_group: dict[str, Array]
    sizes: Array
    by_value: Array
    growth: dict[str, float]

    @classmethod
    def of(cls, found: Measured, x: Indices, group: Indices, size: int, groups: int) -> Sums:
        """Sums over records with true values x and row groups, shape (m,)."""

        def total(index: Indices, values: Array | None, length: int) -> Array:
            return np.bincount(index, values, length).astype(np.float64)

        P = found.values["reconstruction_probability"]
        return cls(
            {name: total(group, values, groups) for name, values in found.values.items()},
            total(group, None, groups),
            np.stack([total(x, values, size) for values in (None, P, P * P)]),
            {name: float(values.max()) for name, values in found.growth.items()},
        )

    def add(self, other: Sums) -> None:
        """Add the sums over later records."""
        for name, sums in other.by_group.items():
            self.by_group[name] += sums
            self.growth |= {
                name: max(self.growth[name], growth) for name, growth in other.growth.items()
            }
        self.sizes += other.sizes
        self.by_value += other.by_value

    @property
    def errors(self) -> Array:
        """Sum of ``1 − P(x)`` by row group."""
        return self.sizes - self.by_group["reconstruction_probability"]

    def mean(self, name: str) -> float:
        """Mean over records."""
        return float(self.by_group[name].sum() / self.sizes.sum())

    def most_believed(self, prior: Array) -> tuple[float, float] | None:
        """Largest growth of belief in a true value, with its standard error.

        Maximum of ``(E[P(v)|v] − q_v)/(1 − q_v)`` over values v with at least ``FEWEST`` records.
        """
        many = np.flatnonzero((self.by_value[0] >= FEWEST) & (prior < 1.0))
        if not many.size:
            return None
        (n, believed, squares), q = self.by_value[:, many], prior[many]
        m = believed / n
        best = int(((m - q) / (1.0 - q)).argmax())
        error = math.sqrt(max(0.0, squares[best] / n[best] - m[best] ** 2) / n[best])
        left = 1.0 - float(q[best])
        return max(0.0, float(m[best] - q[best]) / left), error / left


class Expected(NamedTuple):
    """Mean over the noise, and standard error of a measured mean."""

    value: float
    std_error: float


def expected(given: Array, prior: Array, P: Array, frame: Frame, rows: int) -> dict[str, Expected]:
    """Exact mean and standard error of every measure.

    Parameters
    ----------
    given : ndarray of shape (s, u)
        ``P(outcome | x)`` for every outcome, in the order of the rows of P.
    prior : ndarray of shape (s,)
        The table's own.
    P : ndarray of shape (u, s)
    rows : int
        ``n``.
    """
    moments, outcomes = dict[str, Array](), np.arange(given.shape[1])
    for possible in frame.combinations():
        values = np.flatnonzero(np.ones(prior.size) if possible is None else possible)
        x, u = (part.ravel() for part in np.meshgrid(values, outcomes, indexing="ij"))
        chance = given[values]
        for name, found in measured(P, frame, u, x, possible).values.items():
            v = found.reshape(chance.shape)
            mean = (chance * v).sum(axis=1)
            variance = np.clip((chance * v * v).sum(axis=1) - mean**2, 0.0, None)
            sums = prior[values] @ np.column_stack([mean, variance])
            moments[name] = moments.get(name, 0.0) + sums
    return {
        name: Expected(float(mean), math.sqrt(variance / rows))
        for name, (mean, variance) in moments.items()
    }


def worst_growth(prior: Array, odds: float | Array) -> float:
    """Exact δ-growth of any single value.

    All copies show the value, multiplying its odds by ``odds``, a number or shape (s,).
    """
    met = prior > 0
    q, R = prior[met], np.broadcast_to(odds, prior.shape)[met]
    finite = np.where(np.isinf(R), 1.0, R)
    after = np.where(np.isinf(R), 1.0, q * finite / (q * finite + 1.0 - q))
    return float((after - q).max())


def growth_bound(odds: float) -> float:
    """Largest growth of any statement under any prior.

    ``(√R − 1)/(√R + 1)``, attained at prior ``1/(1 + √R)``.

    Examples
    --------
    >>> round(growth_bound(9.0), 12)
    0.5
    """
    return 1.0 if math.isinf(odds) else (math.sqrt(odds) - 1.0) / (math.sqrt(odds) + 1.0)


def largest_retention_for_growth(delta: float, size: float) -> float:
    """Largest retention at which no belief grows by ``delta`` or more.

    ``R = ((1 + δ)/(1 − δ))²`` solved for p. ``size`` is s, or ``1/min π`` (``UniformLaw.rarity``).
    """
    return _retention(((1.0 + delta) / (1.0 - delta)) ** 2 if delta < 1 else math.inf, size)


def largest_retention_for_breach(rho_1: float, rho_2: float, size: float) -> float:
    """Largest retention without a ρ1-to-ρ2 breach under any prior.

    ``R = ρ2·(1 − ρ1) / (ρ1·(1 − ρ2))`` solved for p; ``size`` as above.
    """
    odds = rho_2 * (1.0 - rho_1) / (rho_1 * (1.0 - rho_2)) if rho_2 < 1 else math.inf
    return _retention(odds, size)


def _retention(odds: float, size: float) -> float:
    return 1.0 if math.isinf(odds) or size == 1 else (odds - 1.0) / (odds - 1.0 + size)
