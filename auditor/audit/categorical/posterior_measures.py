"""What a posterior leaks: per record, summed over records with error bars, and in closed form.

| measure | of one record, truth x, posterior P, prior q | source |
| --- | --- | --- |
| reconstruction probability | ``P(x)`` | xiao2009, Appendix 2 |
| posterior maximum | ``max_z P(z)`` | |
| accuracy | ``[argmax P = x]`` | |
| mutual information | ``log₂ P(x)/q(x)``; its mean is ``I(X; Y)`` when q is the true prior | |
| squared error | ``(Σ_z P(z)·score(z) − score(x))²`` | |
| | of values without an order ``Σ_z (P(z) − [z = x])²``, of their indicators | |
| | of one attribute of several the same with ``P(x_j = v)``, and its accuracy ``[argmax_v P(x_j = v) = x_j]`` | |
| δ-growth | ``max_z (P(z) − q(z))`` | xiao2009, section 3 |
| ρ1-to-ρ2 breach | some z with ``q < ρ1`` and ``P > ρ2``, or ``q > ρ2`` and ``P < ρ1`` | xiao2009, section 3 |

The noise is what varies: records of one value are independent and alike in law, so the variance of
a mean over n records is ``Σ_x n_x Var(v | x) / n²``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.audit.categorical.told import Told
from auditor.types import Array

Mask = NDArray[np.bool_]
FEWEST = 20
"""Records of a value from which on it is told how far belief in it rises."""


@dataclass(frozen=True)
class Frame:
    """What posteriors are measured against.

    Attributes
    ----------
    prior : ndarray of shape (s,)
        The adversary's own, before it sees a record's copies.
    prior_is_exact : bool
        Whether it is the table's: only then is the mean gain of ``log P(x)`` the mutual
        information.
    scores : ndarray of shape (s,) or None
        A number for each value; None: errors are those of the values' indicators.
    rho : tuple of float or None
        ``(ρ1, ρ2)``.
    predicates : dict
        Statements, masks of shape (s,) by name.
    known : ndarray of shape (s,) or None
        Which combination of the known attributes' values each value of the domain has, where the
        adversary knows some of every record: it then tells apart only values that have the true
        ones, and is measured by how well it does that.
    parts : dict of str to ndarray of shape (s,)
        Of a domain of several attributes, which value of each a value of the domain has: one may be
        given away where all together are not.
    """

    prior: Array
    prior_is_exact: bool = True
    scores: Array | None = None
    rho: tuple[float, float] | None = None
    predicates: Mapping[str, Mask] = field(default_factory=dict)
    known: NDArray[np.intp] | None = field(default=None, repr=False)
    parts: Mapping[str, NDArray[np.intp]] = field(default_factory=dict, repr=False)


Lookup = Callable[[NDArray[np.intp], NDArray[np.intp]], Array]


class Quantities(NamedTuple):
    """Quantities of posteriors, some as a function of the truth: ``of(name, places, x)`` looks them up."""

    lookups: dict[str, Lookup]
    growth: dict[str, Array]


def quantities(P: Array, frame: Frame) -> Quantities:
    """Return what is measured of posteriors ``P``, shape (u, s): look-ups by (row of P, true value), and δ-growth by row.

    What an adversary knows of a record is its true value's combination of known attributes, so a
    look-up finds that by the truth, too.
    """
    told = Told(frame.known)
    P, prior = told.posterior(P), told.posterior(frame.prior[None])[0]
    best, highest = told.best(P), told.reduced(np.maximum, P)
    lookups: dict[str, Lookup] = {
        "reconstruction_probability": lambda u, x: P[u, x],
        "posterior_max": lambda u, x: highest[u, told.of(x)],
        "accuracy": lambda u, x: (best[u, told.of(x)] == x).astype(np.float64),
    }
    if frame.prior_is_exact:
        lookups["mutual_information"] = lambda u, x: _information(P[u, x], prior[x])
    if frame.scores is not None:
        scores = frame.scores
        guess: Array = np.asarray(P @ frame.scores, dtype=np.float64)
        lookups["squared_error"] = lambda u, x: (guess[u] - scores[x]) ** 2
    else:
        squares = told.reduced(np.add, P * P)
        lookups["squared_error"] = lambda u, x: np.maximum(
            squares[u, told.of(x)] - 2.0 * P[u, x] + 1.0, 0.0
        )
    growth = {"*": (P - prior).max(axis=1)}
    if frame.rho is not None:
        breach: Array = told.reduced(np.logical_or, breaches(P, prior, *frame.rho)).astype(
            np.float64
        )
        lookups["rho_breach"] = lambda u, x: breach[u, told.of(x)]
    for name, part in frame.parts.items():
        _add_part(lookups, name, part, P)
    for name, holds in frame.predicates.items():
        _add_predicate(lookups, growth, name, holds, P, prior, frame.rho, told)
    return Quantities(lookups, growth)


def error_without_copies(prior: Array, frame: Frame) -> float:
    """Return the squared error of guesses of records drawn from ``prior``, shape (s,), by the adversary's prior and what it was given."""
    of_prior = quantities(frame.prior[None], frame).lookups["squared_error"]
    return float(prior @ of_prior(np.zeros(prior.size, dtype=np.intp), np.arange(prior.size)))


def _add_part(lookups: dict[str, Lookup], name: str, part: NDArray[np.intp], P: Array) -> None:
    """One attribute of several: the error of its values' indicators, and whether its likeliest value is the true one."""
    # P(x_j = v), summed over all values of the domain that have v
    own = P @ np.eye(part.max() + 1)[part]
    squares, best = (own**2).sum(axis=1), own.argmax(axis=1)
    lookups[f"squared_error/{name}"] = lambda u, x: np.maximum(
        squares[u] - 2.0 * own[u, part[x]] + 1.0, 0.0
    )
    lookups[f"accuracy/{name}"] = lambda u, x: (best[u] == part[x]).astype(np.float64)


def _add_predicate(
    lookups: dict[str, Lookup],
    growth: dict[str, Array],
    name: str,
    holds: Mask,
    P: Array,
    prior: Array,
    rho: tuple[float, float] | None,
    told: Told,
) -> None:
    """A statement Q(X): belief in what is true of the record, growth of belief in Q, and breaches of Q."""
    if told.known is None:
        belief, before = (
            P[:, holds].sum(axis=1, keepdims=True),
            prior[holds].sum(keepdims=True)[None],
        )
    else:
        belief, before = (
            told.reduced(np.add, np.where(holds, chances, 0.0)) for chances in (P, prior[None])
        )
    lookups[f"reconstruction_probability/{name}"] = lambda u, x: np.where(
        holds[x], belief[u, told.of(x)], 1.0 - belief[u, told.of(x)]
    )
    growth[name] = (belief - before).max(axis=1)
    if rho is not None:
        breach = breaches(belief, before, *rho).astype(np.float64)
        lookups[f"rho_breach/{name}"] = lambda u, x: breach[u, told.of(x)]


def _information(posterior: Array, prior: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = np.log2(posterior / prior)
    # a value the adversary thought impossible is counted as no news
    return np.where(np.isfinite(bits), bits, 0.0)


def breaches(P: Array, prior: Array, rho_1: float, rho_2: float) -> Mask:
    """Return where belief crosses both bounds, upward or downward (xiao2009, section 3), shape of P."""
    return np.asarray(((prior < rho_1) & (P > rho_2)) | ((prior > rho_2) & (P < rho_1)))


class Sums:
    """Sums over records of one coalition's quantities, by true value and by row group.

    Attributes
    ----------
    means : dict
        By quantity, sums over the records of each value, shape (s,).
    squares : ndarray of shape (s,)
        Sum of ``P(x)²`` over the records of each value.
    groups : ndarray of shape (G,)
        Sum of ``1 − P(x)`` over each row group: the reconstruction error, for collusion gains.
    growth : dict
        Largest δ-growth met, by statement.
    by_group, sizes : dict, ndarray of shape (G,)
        Where ``apart``: by quantity, sums over each row group, shape (G,); and the records in each.
    """

    def __init__(self, size: int, groups: int, apart: bool = False) -> None:
        self.size, self.apart = size, apart
        self.by_group: dict[str, Array] = {}
        self.sizes = np.zeros(groups)
        self.means: dict[str, Array] = {}
        self.counts = np.zeros(size)
        self.squares = np.zeros(size)
        self.groups = np.zeros(groups)
        self.growth: dict[str, float] = {}

    def add(
        self,
        found: Quantities,
        places: NDArray[np.intp],
        x: NDArray[np.intp],
        group: NDArray[np.intp],
        weight: Array | None = None,
    ) -> None:
        """Take in records: their rows of the posterior table, true values and row groups, each of shape (b,), and how many are alike."""
        w = np.ones(x.size) if weight is None else weight
        for name, lookup in found.lookups.items():
            v = lookup(places, x)
            sums = np.asarray(np.bincount(x, w * v, self.size), dtype=np.float64)
            self.means[name] = self.means[name] + sums if name in self.means else sums
            if name == "reconstruction_probability":
                self.groups += np.bincount(group, w * (1.0 - v), self.groups.size)
                self.squares = self.squares + np.bincount(x, w * v * v, self.size)
            if self.apart:
                self.by_group[name] = np.asarray(
                    self.by_group.get(name, 0.0) + np.bincount(group, w * v, self.sizes.size)
                )
        self.counts = self.counts + np.bincount(x, w, self.size)
        self.sizes = self.sizes + (np.bincount(group, w, self.sizes.size) if self.apart else 0.0)
        for name, values in found.growth.items():
            self.growth[name] = max(self.growth.get(name, -1.0), float(values[places].max()))

    def join(self, other: Sums) -> None:
        """Add the sums over the records that follow."""
        for name, sums in other.means.items():
            self.means[name] = self.means[name] + sums if name in self.means else sums
        for name, groups in other.by_group.items():
            self.by_group[name] = self.by_group.get(name, 0.0) + groups
        self.counts, self.squares = self.counts + other.counts, self.squares + other.squares
        self.groups, self.sizes = self.groups + other.groups, self.sizes + other.sizes
        for name, growth in other.growth.items():
            self.growth[name] = max(self.growth.get(name, -1.0), growth)

    def mean(self, name: str) -> float:
        """Return the mean over records."""
        return float(self.means[name].sum() / self.counts.sum())

    def most_believed(self, prior: Array) -> tuple[float, float] | None:
        """Return how far belief in a value rises where it is true, of the value of which it rises most, and its standard error.

        ``(E[P(v)|v] − q_v)/(1 − q_v)``, from its share to certainty, of values of ``FEWEST``
        records or more; None of none. By Bayes it is the share of the variance of v's indicator
        that is known, of which a normalized error is a mean that hardly counts rare values.
        """
        many = np.flatnonzero((self.counts >= FEWEST) & (prior < 1.0))
        if not many.size:
            return None
        m, q = self.means["reconstruction_probability"][many] / self.counts[many], prior[many]
        best = int(((m - q) / (1.0 - q)).argmax())
        error = np.sqrt(
            max(0.0, self.squares[many][best] / self.counts[many][best] - m[best] ** 2)
            / self.counts[many][best]
        )
        return max(0.0, float((m[best] - q[best]) / (1.0 - q[best]))), float(
            error / (1.0 - q[best])
        )


def group_of(groups: Sequence[tuple[int, int, int]]) -> NDArray[np.intp]:
    """Return the row group of each record of a block, shape (b,), from ``(group, start, stop)`` of each."""
    return np.repeat([number for number, _, _ in groups], [b - a for _, a, b in groups])


class Expected(NamedTuple):
    """A closed form: the mean over the noise, and the standard error of a measured mean over n records."""

    value: float
    std_error: float


def expected(given: Array, prior: Array, found: Quantities, rows: int) -> dict[str, Expected]:
    """Return the exact mean and standard error of every quantity.

    Parameters
    ----------
    given : ndarray of shape (s, u)
        ``P(outcome | x)`` for every outcome; the quantities' posterior table has a row for each.
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


# -- bounds
# --------------------------------------------------------------------------------------------------------------


def worst_growth(prior: Array, odds: float | Array) -> float:
    """Return the exact δ-growth of any single value: all copies show it, which multiplies its odds by ``odds``, one or shape (s,)."""
    met = prior > 0
    q, R = prior[met], np.broadcast_to(odds, prior.shape)[met]
    finite = np.where(np.isinf(R), 1.0, R)
    after = np.where(np.isinf(R), 1.0, q * finite / (q * finite + 1.0 - q))
    return float((after - q).max())


def growth_bound(odds: float) -> float:
    """Return the largest growth of any statement under any prior: ``(√R − 1)/(√R + 1)``, reached at prior ``1/(1 + √R)``.

    Examples
    --------
    >>> round(growth_bound(9.0), 12)
    0.5
    """
    return 1.0 if math.isinf(odds) else (math.sqrt(odds) - 1.0) / (math.sqrt(odds) + 1.0)


def largest_retention_for_growth(delta: float, size: float) -> float:
    """Return the largest retention at which no belief grows by ``delta`` or more: ``R = ((1 + δ)/(1 − δ))²`` solved for p.

    Here and below ``size`` is s, or ``1/min π`` where replacements are not uniform
    (``UniformLaw.rarity``).
    """
    return _retention(((1.0 + delta) / (1.0 - delta)) ** 2 if delta < 1 else math.inf, size)


def largest_retention_for_breach(rho_1: float, rho_2: float, size: float) -> float:
    """Return the largest retention without a ρ1-to-ρ2 breach under any prior: ``R = ρ2·(1 − ρ1) / (ρ1·(1 − ρ2))`` solved for p."""
    return _retention(
        rho_2 * (1.0 - rho_1) / (rho_1 * (1.0 - rho_2)) if rho_2 < 1 else math.inf, size
    )


def _retention(odds: float, size: float) -> float:
    return 1.0 if math.isinf(odds) or size == 1 else (odds - 1.0) / (odds - 1.0 + size)
