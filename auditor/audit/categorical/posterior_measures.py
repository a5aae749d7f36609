"""Leakage measures of posteriors: per record, summed, and in closed form.

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

Only the noise is random: records with equal values are independent and identically distributed. So
the variance of a mean over n records is ``Σ_x n_x Var(v | x) / n²``.

Known attributes are a function of the record's value. So one array holds the posteriors for every
possible record: for each value z ``P(z | y, z's own combination of known attributes)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.base.types import Array, Flags, Indices

FEWEST = 20
"""Fewest records of a value for a figure on the growth of belief in it."""


@dataclass(frozen=True, repr=False)
class Frame:
    """Reference that posteriors are measured against.

    Attributes
    ----------
    prior : ndarray of shape (s,)
        The adversary's own, before it sees a record's copies.
    prior_is_exact : bool
        Whether it is the table's. Only then is the mean gain of ``log P(x)`` the mutual information.
    scores : ndarray of shape (s,) or None
        A number for each value; None: errors are over indicators.
    rho : tuple of float or None
        ``(ρ1, ρ2)``.
    predicates : dict
        Statements, masks of shape (s,) by name.
    known : ndarray of shape (s,) or None
        Combination of the known attributes' values for each value (``KnownPart``).
    parts : dict of str to ndarray of shape (s,)
        In a domain of several attributes, the value of each attribute for each value.
    """

    prior: Array
    prior_is_exact: bool = True
    scores: Array | None = None
    rho: tuple[float, float] | None = None
    predicates: Mapping[str, Flags] = field(default_factory=dict)
    known: Indices | None = None
    parts: Mapping[str, Indices] = field(default_factory=dict)

    @cached_property
    def indicators(self) -> dict[str, Array]:
        """Indicators of each attribute's values, shape (s, v), by name."""
        return {name: np.eye(values.max() + 1)[values] for name, values in self.parts.items()}


Lookup = Callable[[Indices, Indices], Array]


class Quantities(NamedTuple):
    """Look-ups by (row of the posterior table, true value), and δ-growth by row."""

    lookups: dict[str, Lookup]
    growth: dict[str, Array]


def quantities(P: Array, frame: Frame) -> Quantities:
    """Return all measures of posteriors ``P``, shape (u, s)."""
    part = KnownPart(frame.known)
    P, prior = part.posterior(P), part.posterior(frame.prior[None])[0]
    best, highest = part.best(P), part.reduced(np.maximum, P)
    lookups: dict[str, Lookup] = {
        "reconstruction_probability": lambda u, x: P[u, x],
        "posterior_max": lambda u, x: highest[u, part.of(x)],
        "accuracy": lambda u, x: (best[u, part.of(x)] == x).astype(np.float64),
    }
    if frame.prior_is_exact:
        lookups["mutual_information"] = lambda u, x: _information(P[u, x], prior[x])
    if frame.scores is not None:
        scores = frame.scores
        guess: Array = np.asarray(P @ frame.scores, dtype=np.float64)
        lookups["squared_error"] = lambda u, x: (guess[u] - scores[x]) ** 2
    else:
        squares = part.reduced(np.add, P * P)
        lookups["squared_error"] = lambda u, x: np.maximum(
            squares[u, part.of(x)] - 2.0 * P[u, x] + 1.0, 0.0
        )
    growth = {"*": (P - prior).max(axis=1)}
    if frame.rho is not None:
        crossed = part.reduced(np.logical_or, breaches(P, prior, *frame.rho))
        breach: Array = crossed.astype(np.float64)
        lookups["rho_breach"] = lambda u, x: breach[u, part.of(x)]
    for name, values in frame.parts.items():
        _add_attribute(lookups, name, values, P @ frame.indicators[name])
    for name, holds in frame.predicates.items():
        _add_predicate(lookups, growth, name, holds, (P, prior), frame.rho, part)
    return Quantities(lookups, growth)


def error_without_copies(prior: Array, frame: Frame) -> float:
    """Return the mean squared error from the adversary's prior and known attributes alone.

    Records are drawn from ``prior``, shape (s,).
    """
    of_prior = quantities(frame.prior[None], frame).lookups["squared_error"]
    return float(prior @ of_prior(np.zeros(prior.size, dtype=np.intp), np.arange(prior.size)))


def _add_attribute(lookups: dict[str, Lookup], name: str, values: Indices, own: Array) -> None:
    # own: P(x_j = v)
    squares, best = (own**2).sum(axis=1), own.argmax(axis=1)
    lookups[f"squared_error/{name}"] = lambda u, x: np.maximum(
        squares[u] - 2.0 * own[u, values[x]] + 1.0, 0.0
    )
    lookups[f"accuracy/{name}"] = lambda u, x: (best[u] == values[x]).astype(np.float64)


def _add_predicate(
    lookups: dict[str, Lookup],
    growth: dict[str, Array],
    name: str,
    holds: Flags,
    chances: tuple[Array, Array],
    rho: tuple[float, float] | None,
    part: KnownPart,
) -> None:
    belief, before = (
        part.reduced(np.add, np.where(holds, np.atleast_2d(each), 0.0)) for each in chances
    )
    lookups[f"reconstruction_probability/{name}"] = lambda u, x: np.where(
        holds[x], belief[u, part.of(x)], 1.0 - belief[u, part.of(x)]
    )
    growth[name] = (belief - before).max(axis=1)
    if rho is not None:
        breach = breaches(belief, before, *rho).astype(np.float64)
        lookups[f"rho_breach/{name}"] = lambda u, x: breach[u, part.of(x)]


def _information(posterior: Array, prior: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = np.log2(posterior / prior)
    # a value that the adversary thought impossible counts as no information
    return np.where(np.isfinite(bits), bits, 0.0)


def breaches(P: Array, prior: Array, rho_1: float, rho_2: float) -> Flags:
    """Return where belief crosses both bounds, upward or downward (xiao2009, section 3)."""
    return ((prior < rho_1) & (P > rho_2)) | ((prior > rho_2) & (P < rho_1))


class Sums:
    """Sums over records of one coalition's quantities.

    Attributes
    ----------
    by_group : dict
        Sums by quantity over the records of each row group, shape (G,).
    sizes : ndarray of shape (G,)
        Records of each row group.
    counts, believed, squares : ndarrays of shape (s,)
        Records of each true value, and their sums of ``P(x)`` and ``P(x)²``.
    growth : dict
        Largest δ-growth by statement.
    """

    def __init__(self, size: int, groups: int) -> None:
        self.by_group: dict[str, Array] = {}
        self.growth: dict[str, float] = {}
        self.sizes = np.zeros(groups)
        self.counts, self.believed, self.squares = np.zeros((3, size))

    @property
    def errors(self) -> Array:
        """Sum of ``1 − P(x)`` over each row group, for collusion gains."""
        return self.sizes - self.by_group["reconstruction_probability"]

    def add(
        self,
        found: Quantities,
        places: Indices,
        x: Indices,
        group: Indices,
        weight: Array | None = None,
    ) -> None:
        """Add records: posterior rows, true values, row groups and multiplicities, shape (b,)."""
        w = np.ones(x.size) if weight is None else weight
        more = Sums(self.counts.size, self.sizes.size)
        values = {name: lookup(places, x) for name, lookup in found.lookups.items()}
        more.by_group = {n: _bincount(group, w * v, self.sizes.size) for n, v in values.items()}
        more.sizes = _bincount(group, w, self.sizes.size)
        P = values["reconstruction_probability"]
        more.counts, more.believed, more.squares = (
            _bincount(x, each, self.counts.size) for each in (w, w * P, w * P * P)
        )
        more.growth = {name: float(each[places].max()) for name, each in found.growth.items()}
        self.join(more)

    def join(self, other: Sums) -> None:
        """Add the sums over later records."""
        for name, sums in other.by_group.items():
            self.by_group[name] = self.by_group.get(name, 0.0) + sums
        for name in ("sizes", "counts", "believed", "squares"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name, growth in other.growth.items():
            self.growth[name] = max(self.growth.get(name, -1.0), growth)

    def mean(self, name: str) -> float:
        """Return the mean over records."""
        return float(self.by_group[name].sum() / self.sizes.sum())

    def most_believed(self, prior: Array) -> tuple[float, float] | None:
        """Return the largest growth of belief in a true value, with its standard error.

        ``(E[P(v)|v] − q_v)/(1 − q_v)``, maximal over values v with ``FEWEST`` records or more; None
        if there are none. By Bayes it is the known share of the variance of v's indicator, which a
        mean over records hides for rare values.
        """
        many = np.flatnonzero((self.counts >= FEWEST) & (prior < 1.0))
        if not many.size:
            return None
        n, q = self.counts[many], prior[many]
        m = self.believed[many] / n
        best = int(((m - q) / (1.0 - q)).argmax())
        error = math.sqrt(max(0.0, self.squares[many][best] / n[best] - m[best] ** 2) / n[best])
        left = 1.0 - float(q[best])
        return max(0.0, float(m[best] - q[best]) / left), error / left


def _bincount(index: Indices, weight: Array, size: int) -> Array:
    return np.asarray(np.bincount(index, weight, size), dtype=np.float64)


def group_of(groups: Sequence[tuple[int, int, int]]) -> Indices:
    """Return the row group of each record of a block, from ``(group, start, stop)``."""
    return np.repeat([number for number, _, _ in groups], [b - a for _, a, b in groups])


class Expected(NamedTuple):
    """Closed form: mean over the noise, and standard error of a measured mean."""

    value: float
    std_error: float


def expected(given: Array, prior: Array, found: Quantities, rows: int) -> dict[str, Expected]:
    """Return the exact mean and standard error of every quantity.

    Parameters
    ----------
    given : ndarray of shape (s, u)
        ``P(outcome | x)`` for every outcome, in the order of the posterior table's rows.
    prior : ndarray of shape (s,)
        The table's own.
    rows : int
        ``n``.
    """
    s, u = given.shape
    x, places = (part.ravel() for part in np.meshgrid(np.arange(s), np.arange(u), indexing="ij"))
    closed = {}
    for name, lookup in found.lookups.items():
        v = lookup(places, x).reshape(s, u)
        mean = (given * v).sum(axis=1)
        variance = np.clip((given * v * v).sum(axis=1) - mean**2, 0.0, None)
        closed[name] = Expected(float(prior @ mean), float(np.sqrt(prior @ variance / rows)))
    return closed


def worst_growth(prior: Array, odds: float | Array) -> float:
    """Return the exact δ-growth of any single value.

    All copies show the value, which multiplies its odds by ``odds``, a number or shape (s,).
    """
    met = prior > 0
    q, R = prior[met], np.broadcast_to(odds, prior.shape)[met]
    finite = np.where(np.isinf(R), 1.0, R)
    after = np.where(np.isinf(R), 1.0, q * finite / (q * finite + 1.0 - q))
    return float((after - q).max())


def growth_bound(odds: float) -> float:
    """Return the largest growth of any statement under any prior.

    ``(√R − 1)/(√R + 1)``, attained at prior ``1/(1 + √R)``.

    Examples
    --------
    >>> round(growth_bound(9.0), 12)
    0.5
    """
    return 1.0 if math.isinf(odds) else (math.sqrt(odds) - 1.0) / (math.sqrt(odds) + 1.0)


def largest_retention_for_growth(delta: float, size: float) -> float:
    """Return the largest retention at which no belief grows by ``delta`` or more.

    ``R = ((1 + δ)/(1 − δ))²`` solved for p. ``size`` is s, or ``1/min π`` if replacements are not
    uniform (``UniformLaw.rarity``).
    """
    return _retention(((1.0 + delta) / (1.0 - delta)) ** 2 if delta < 1 else math.inf, size)


def largest_retention_for_breach(rho_1: float, rho_2: float, size: float) -> float:
    """Return the largest retention without a ρ1-to-ρ2 breach under any prior.

    ``R = ρ2·(1 − ρ1) / (ρ1·(1 − ρ2))`` solved for p; ``size`` as above.
    """
    odds = rho_2 * (1.0 - rho_1) / (rho_1 * (1.0 - rho_2)) if rho_2 < 1 else math.inf
    return _retention(odds, size)


def _retention(odds: float, size: float) -> float:
    return 1.0 if math.isinf(odds) or size == 1 else (odds - 1.0) / (odds - 1.0 + size)


@dataclass(frozen=True)
class KnownPart:
    """Combination of known attributes' values, one of G, for each value of the domain.

    Attributes
    ----------
    known : ndarray of shape (s,) or None
        The combination of each value, 0 … G − 1. None: no attribute is known.
    """

    known: Indices | None

    def of(self, x: Indices) -> Indices | int:
        """Return the combination of values x."""
        return 0 if self.known is None else self.known[x]

    def reduced(self, function: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
        """Reduce values of shape (u, s) within each combination, shape (u, G)."""
        if self.known is None:
            return function.reduce(values, axis=1, keepdims=True)
        order = np.argsort(self.known, kind="stable")
        starts = np.flatnonzero(np.diff(self.known[order], prepend=-1))
        return function.reduceat(values[:, order], starts, axis=1)

    def posterior(self, P: Array) -> Array:
        """Return ``P(z | the combination is z's)``, shape (u, s) as P.

        A combination of probability 0 contradicts the adversary's prior: its values are then
        equally likely.
        """
        if self.known is None:
            return P
        share = self.reduced(np.add, P)[:, self.known]
        uniform = (1.0 / np.bincount(self.known))[self.known]
        return np.where(
            share > 0, np.divide(P, share, out=np.zeros_like(P), where=share > 0), uniform
        )

    def best(self, P: Array) -> Indices:
        """Return the likeliest value of each combination, the first of ties, shape (u, G)."""
        if self.known is None:
            return P.argmax(axis=1)[:, None]
        highest = self.reduced(np.maximum, P)[:, self.known]
        places = np.where(highest == P, np.arange(self.known.size), self.known.size)
        return np.asarray(self.reduced(np.minimum, places), dtype=np.intp)
