"""One release of categories under audit, drawn block by block."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from auditor.audit.base.request import ReleaseRequest, with_singles
from auditor.audit.numeric.moment_pass import Added, Draw
from auditor.audit.numeric.release import Drawn, already_out, make_scheme
from auditor.base import PluginError
from auditor.base.types import Array, Codes, Flags, Indices, Integers, unprinted
from auditor.data.columns.categorical_table import BLOCK_WIDTH
from auditor.data.source import noise_seed
from auditor.numerics.blocks import moment_groups, readable
from auditor.numerics.linear_algebra import quotient
from auditor.numerics.random_streams import stream
from auditor.schemes.base.scheme import Key
from auditor.schemes.published_categories import PublishedCategories
from auditor.schemes.replacement.base import Copies, UniformScheme, categories_of
from auditor.schemes.replacement.law import EstimatedLaw, UniformLaw

LARGEST_KEY, DENSE = 2**62, 4
"""Largest key of a combination; largest ratio of keys to records without a sort."""


@dataclass(repr=False)
class CodeBlock:
    """One block of records, with copies made on request.

    Attributes
    ----------
    index, first : int
        Numbers of the block and of its first record.
    x : ndarray of shape (b,)
        Originals.
    copy : callable
        Values of a copy by number, shape (b,); 0: the originals.
    made : Copies or None
        Generators, unless copies are kept.
    seconds : float
    """

    index: int
    first: int
    x: Codes
    copy: Callable[[int], Codes]
    made: Copies | None = None
    seconds: float = 0.0


def distinct(columns: Sequence[Integers], sizes: Sequence[int]) -> tuple[Indices, Indices]:
    """First record of each distinct combination, and each record's place.

    Parameters
    ----------
    columns : sequence of ndarrays of shape (b,)
    sizes : sequence of int
        One more than each column's largest number.

    Examples
    --------
    >>> [part.tolist() for part in distinct([np.array([2, 0, 2]), np.array([7, 9, 7])], [3, 10])]
    [[1, 0], [1, 0, 1]]
    """
    key, keys = np.zeros(columns[0].size, dtype=np.int64), 1
    for column, size in zip(columns, sizes, strict=True):
        if keys * size > LARGEST_KEY:
            key, keys = np.unique(key, return_inverse=True)[1].ravel(), key.size
        key, keys = key * size + column, keys * size
    if keys > DENSE * key.size:
        _, first, place = np.unique(key, return_index=True, return_inverse=True)
        return first, place.ravel()
    met = np.zeros(keys, dtype=bool)
    met[key] = True
    place = (np.cumsum(met) - 1)[key]
    first = np.empty(np.count_nonzero(met), dtype=int)
    first[place[::-1]] = np.arange(key.size)[::-1]
    return first, place


class UniformRelease(Drawn):
    """One release of categories; no copy is drawn yet.

    Attributes
    ----------
    data : CategoricalTable
    law : UniformLaw
        Without a stated law, an ``EstimatedLaw``.
    coalitions, needed : list of tuple of int
        As requested; and with single members, by size.
    groups : list
        Row groups of the blocks.
    """

    width = BLOCK_WIDTH

    def __init__(self, request: ReleaseRequest) -> None:
        self.scenario, self.table = request.scenario, request.table
        self.data, here = categories_of(self.table), self.scenario
        self.context = request.context(request.levels, request.copies)
        if self.data.streamed:
            self.share = request.in_steps(UniformRelease, BLOCK_WIDTH)
        seed = noise_seed(here.data.source, here.seed, self.table.fingerprint())
        self.key = Key(seed, request.use.id, request.replicate)
        scheme, M = make_scheme(request.use, here.base, self.table), request.copies
        if not isinstance(scheme, UniformScheme):
            raise PluginError(
                "the scheme names the categorical engine and states no law of categories"
            )
        self.scheme, size = scheme.over(self.data), self.data.size
        self.law = self.scheme.channel(request.levels, size)
        shape = M, size
        if not isinstance(self.law, UniformLaw) or (len(self.law.levels), self.law.size) != shape:
            raise PluginError(f"the scheme stated no law of {M} copies over {size} values")
        self.coalitions = request.coalitions
        self.needed = with_singles(self.coalitions)
        self._early = already_out(request.use, M)
        self.groups = moment_groups(self.data.rows, BLOCK_WIDTH)
        room = self.data.rows * len(self.singles) * self.data.code_type.itemsize
        self._keep, self._kept = self.fits(room), dict[int, dict[int, Codes]]()

    @property
    def estimated(self) -> bool:
        """Whether the law is estimated from the copies."""
        return isinstance(self.law, EstimatedLaw)

    @property
    def singles(self) -> list[int]:
        """Copies that some coalition holds."""
        return [coalition[0] for coalition in self.needed if len(coalition) == 1]

    def halves(self) -> list[tuple[Draw, EstimatedLaw]]:
        """Two random halves of the records with their estimated laws, if any.

        Each half's law attacks the other, as attacks on its own records would be flattered.
        """
        if not isinstance(self.scheme, PublishedCategories) or not self.estimated:
            return []
        rng = stream(self.scenario.seed, "halves", self.key.replicate)
        return [
            (Draw.of(rows, clear=True), self.scheme.estimated(np.sort(rows)).of(self.singles))
            for rows in np.array_split(rng.permutation(self.data.rows), 2)
        ]

    def rows(self, numbers: Sequence[int], runs: Sequence[tuple[int, int]]) -> list[Codes]:
        """Originals and copies of runs of records in order, ``(first, stop)``."""
        parts, size = list[list[Codes]](), self.bounds[0][1]
        for first, stop in runs:
            for index in range(first // size, -(-min(stop, self.data.rows) // size)):
                block = self.block(index)
                cut = slice(max(0, first - block.first), stop - block.first)
                parts.append([block.copy(number)[cut] for number in (0, *numbers)])
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def block(self, index: int, drawn: bool = False) -> CodeBlock:
        a, b = self.bounds[index]
        (x,) = readable([self.data.read(a, b)])
        if index in self._kept and not drawn:
            return CodeBlock(index, a, x, self._kept[index].__getitem__)
        timed = drawn and self.scenario.measure("seconds") is not None
        made, seconds = self._request(x, index, timed)
        held = {0: x}

        def copy(number: int) -> Codes:
            if number not in held:
                held[number] = checked_codes(made.copy(number), x.size, self.data.size)
            return held[number]

        if self._keep:
            for number in self.singles:
                copy(number)
            self._kept[index] = held
        return CodeBlock(index, a, x, copy, made, seconds)

    def _request(self, x: Codes, index: int, timed: bool) -> tuple[Copies, float]:
        early, levels = self.law.levels[: self._early], self.law.levels[self._early :]
        copies = self.scheme.copies(x, self.data.size, replace(self.key, block=index))
        for level in early:
            copies.skip(level)
        if timed and early:
            copies.warm(levels)
        start = time.thread_time()
        for level in levels:
            copies.ask(level) if timed else copies.skip(level)
        return copies, time.thread_time() - start


def checked_codes(codes: Any, rows: int, size: int) -> Codes:
    """Copy's values, checked.

    Raises
    ------
    PluginError
        Not one code of the domain for each record.
    """
    found = np.asarray(codes)
    if found.dtype.kind not in "iu" or found.shape != (rows,):
        raise PluginError("the scheme drew no column of codes, one for each record")
    if rows and not (0 <= found.min() and found.max() < size):
        raise PluginError(f"the scheme drew codes outside the domain of {size} values")
    return found


# -- Leakage measures of posteriors ----------------------------------------------------------------


FEWEST = 20
"""Fewest records of a value for its growth of belief."""
CERTAIN = 0.7
"""Belief of a close guess."""


@unprinted
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
    parts : dict of str to int
        Sizes of several attributes, whose product is the domain.
    closeness : bool
        Whether close guesses are counted: right ones with a belief of at least ``CERTAIN``.
    """

    prior: Array
    prior_is_exact: bool = True
    scores: Array | None = None
    rho: tuple[float, float] | None = None
    predicates: Mapping[str, Flags] = field(default_factory=dict)
    known: Indices | None = None
    parts: Mapping[str, int] = field(default_factory=dict)
    closeness: bool = False

    def combinations(self) -> list[Flags | None]:
        """Values of each combination of known attributes; None for all values."""
        if self.known is None:
            return [None]
        return [self.known == c for c in np.unique(self.known)]


def restricted(P: Array, possible: Flags) -> Array:
    """Probabilities given that a value is possible, shape (u, s).

    Possible values are equally likely if all have probability 0.
    """
    within = np.where(possible, P, 0.0)
    share = within.sum(axis=-1, keepdims=True)
    uniform = possible / possible.sum(axis=-1, keepdims=True)
    return quotient(within, share, uniform)


def largest(P: Array) -> Array:
    """Largest value of each row; on rows of 8 a fourth of the time of ``max``."""
    return P[np.arange(len(P)), P.argmax(axis=1)]


def marginals(P: Array, sizes: Sequence[int]) -> list[Array]:
    """Distributions of each attribute, shapes (u, s_a), of joint ones, (u, s).

    By halves: a product with the indicators of all values takes ten times as long.

    Examples
    --------
    >>> [part.tolist() for part in marginals(np.array([[0.5, 0.25, 0.0, 0.25]]), (2, 2))]
    [[[0.75, 0.25]], [[0.5, 0.5]]]
    """
    if len(sizes) < 2:
        return [P] * len(sizes)
    half = len(sizes) // 2
    joint = P.reshape(len(P), math.prod(sizes[:half]), -1)
    return [
        *marginals(joint @ np.ones(joint.shape[2]), sizes[:half]),
        *marginals(np.ones(joint.shape[1]) @ joint, sizes[half:]),
    ]


class Measured(NamedTuple):
    """Measures by name, and growth of belief by statement, shapes (m,)."""

    values: dict[str, Array]
    growth: dict[str, Array]

    @classmethod
    def joined(cls, parts: Sequence[Measured]) -> Measured:
        """Measures of all records."""
        together = (
            {n: np.concatenate([p[k][n] for p in parts]) for n in parts[0][k]} for k in (0, 1)
        )
        return cls(*together)


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
    own, guessed = P[u, x], P.argmax(axis=1)[u]

    def error(guess: Array, truth: Indices) -> Array:
        return np.maximum(np.vecdot(guess, guess)[u] - 2.0 * guess[u, truth] + 1.0, 0.0)

    found = {
        "reconstruction_probability": own,
        "posterior_max": P[u, guessed],
        "accuracy": (guessed == x).astype(float),
    }
    if frame.closeness and not frame.parts:
        found["close"] = found["accuracy"] * (P[u, guessed] >= CERTAIN)
    if frame.prior_is_exact:
        with np.errstate(divide="ignore", invalid="ignore"):
            bits = np.log2(own / prior[u, x])
        # no information from values that the adversary thought impossible
        found["mutual_information"] = np.where(np.isfinite(bits), bits, 0.0)
    scores = frame.scores
    found["squared_error"] = error(P, x) if scores is None else ((P @ scores)[u] - scores[x]) ** 2
    growth = {"*": largest(P - prior)[u]}
    if frame.rho is not None:
        crossed = np.asarray(breaches(P, prior, *frame.rho).any(axis=1))
        found["rho_breach"] = crossed[u].astype(float)
    sizes = tuple(frame.parts.values())
    values = np.unravel_index(x, sizes) if sizes else ()
    for name, part, truth in zip(frame.parts, marginals(P, sizes), values, strict=True):
        found[f"squared_error/{name}"] = error(part, truth)
        right, belief = part.argmax(axis=1)[u] == truth, part.max(axis=1)[u]
        found[f"accuracy/{name}"] = right.astype(float)
        if frame.closeness:
            found[f"close/{name}"] = 1.0 * (right & (belief >= CERTAIN))
    for name, holds in frame.predicates.items():
        belief, before = (np.where(holds, each, 0.0).sum(axis=1)[u] for each in (P, prior))
        found[f"reconstruction_probability/{name}"] = np.where(holds[x], belief, 1.0 - belief)
        growth[name] = belief - before
        if frame.rho is not None:
            crossed = breaches(belief, before, *frame.rho)
            found[f"rho_breach/{name}"] = crossed.astype(float)
    return Measured(found, growth)


def error_without_copies(prior: Array, frame: Frame) -> float:
    """Mean squared error from prior, shape (s,), and known attributes alone."""
    certain = np.ones((1, prior.size))
    return expected(certain.T, prior, frame.prior[None], frame, 1)["squared_error"].value


def breaches(P: Array, prior: Array, rho_1: float, rho_2: float) -> Flags:
    """Where belief crosses both bounds, up or down (xiao2009, section 3)."""
    return ((prior < rho_1) & (P > rho_2)) | ((prior > rho_2) & (P < rho_1))


@dataclass(repr=False)
class Sums(Added):
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
            return np.bincount(index, values, length).astype(float)

        P = found.values["reconstruction_probability"]
        return cls(
            {name: total(group, values, groups) for name, values in found.values.items()},
            total(group, None, groups),
            np.stack([total(x, values, size) for values in (None, P, P * P)]),
            {name: float(values.max()) for name, values in found.growth.items()},
        )

    def add(self, other: Sums) -> None:
        growth = {name: max(self.growth[name], one) for name, one in other.growth.items()}
        super().add(other)
        self.growth = growth

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
