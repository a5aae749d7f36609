"""Measures of posteriors, fits to coalitions, and the pass that adds them up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from auditor.adversary.attack import CategoricalAttack, CategoricalView, Inference, probabilities
from auditor.adversary.knowledge import Knowledge, KnownRecords, Perfect, PublishedRules
from auditor.adversary.published import cells_of, check_knowledge, published_prior
from auditor.adversary.view import NOTHING, Given, KnownPairs, Prior, SampleCounts
from auditor.audit.base.session import made_attack
from auditor.audit.categorical.release import CodeBlock, Counted, UniformRelease, distinct
from auditor.audit.numeric.moment_pass import Added, Draw, key_of
from auditor.base import NotApplicable, PluginError
from auditor.base.types import (
    Array,
    Arrays,
    Coalition,
    Coalitions,
    Codes,
    Flags,
    Indices,
    unprinted,
)
from auditor.data.columns.categorical_table import CategoricalTable
from auditor.numerics.blocks import Job, readable
from auditor.numerics.linear_algebra import quotient
from auditor.scenario.model import AttackUse
from auditor.schemes.replacement.law import UniformLaw

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


def marginals(P: Array, sizes: Sequence[int]) -> list[Array]:
    """Distributions of each attribute, shapes (u, s_a), of joint ones, (u, s).

    Examples
    --------
    >>> [part.tolist() for part in marginals(np.array([[0.5, 0.25, 0.0, 0.25]]), (2, 2))]
    [[[0.75, 0.25]], [[0.5, 0.5]]]
    """
    places = range(1, len(sizes) + 1)
    others = (tuple(place for place in places if place != own) for own in places)
    return [P.reshape(len(P), *sizes).sum(axis=axes) for axes in others]


class Measured(NamedTuple):
    """Measures by name, and growth of belief by statement, shapes (m,)."""

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
    growth = {"*": (P - prior).max(axis=1)[u]}
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


# -- Fits and their measures -----------------------------------------------------------------------


Fit = tuple[Inference, Frame]
"""An attack fitted to one coalition, and its reference."""

BLOCK_NUMBERS = 2**17
"""Numbers in a block of posteriors, to fit the cache."""
MOST_OUTCOMES = 2**18
"""Most outcomes times values for closed forms."""


@unprinted
class Attacker:
    """An attack with its knowledge and its view of all copies."""

    release: UniformRelease
    use: AttackUse
    view: CategoricalView
    attack: CategoricalAttack
    draw: Draw | None
    """Rows that the knowledge chooses."""

    @classmethod
    def of(
        cls, release: UniformRelease, counted: Counted, use: AttackUse, knowledge: Knowledge
    ) -> Attacker:
        """Attacker who sees every copy that some coalition holds.

        Raises
        ------
        NotApplicable
            The attack does not apply to categories, or to this knowledge.
        """
        members, data = tuple(release.singles), release.data
        check_knowledge(knowledge, release.table)
        rows = counted.rows.get(key_of(knowledge), [])
        given = given_by(knowledge, data, map(np.concatenate, zip(*rows, strict=True)))
        attack = made_attack(use)
        attack.check(release.scheme.family, knowledge)
        if not isinstance(attack, CategoricalAttack):
            raise NotApplicable(f"{use.name} does not attack categories")
        view = CategoricalView(members, release.law.of(members), knowledge, data.labels, given)
        return cls(release, use, view, attack, counted.draws.get(key_of(knowledge)))

    @property
    def knowledge(self) -> Knowledge:
        """State of knowledge."""
        return self.view.knowledge

    @property
    def name(self) -> tuple[str, str]:
        """Ids of attack and knowledge."""
        return self.use.id, self.knowledge.label

    def fit(self, view: CategoricalView, coalition: Coalition) -> Fit:
        """Attack fitted to a coalition of a view.

        Raises
        ------
        PluginError
            The inference is invalid.
        """
        data, known = self.release.data, self.knowledge.in_clear
        inference = self.attack.infer(view.coalition(coalition))
        if not isinstance(inference, Inference) or not isinstance(inference.fixed, bool):
            raise PluginError("the attack returned no Inference")
        probabilities(inference.prior, (data.size,), "a prior")
        predicates = self.attack.predicates(data.labels)
        for holds in predicates.values():
            if np.shape(holds) != (data.size,) or np.asarray(holds).dtype != np.bool_:
                raise PluginError("a statement about values must be a mask over the domain")
        rho = self.release.scenario.measure("rho-breach")
        return inference, Frame(
            inference.prior,
            inference.fixed and np.array_equal(inference.prior, data.prior),
            data.scores,
            None if rho is None else (float(rho.options["rho1"]), float(rho.options["rho2"])),
            predicates,
            cells_of(known, data.attributes) if known else None,
            parts_of(data, self.knowledge),
            self.release.scenario.asks_closeness,
        )

    def fitted(self, coalitions: Coalitions) -> list[Fitted]:
        """Attack fitted once, or with the estimated law of either half."""

        def one(view: CategoricalView, hidden: Draw | None) -> Fitted:
            return Fitted({each: self.fit(view, each) for each in coalitions}, hidden)

        known, halves = isinstance(self.knowledge, KnownRecords), self.release.halves()
        # known records are the source of the estimates themselves
        if known or not halves:
            return [one(self.view, self.draw if known else None)]
        return [one(replace(self.view, law=law), rows) for rows, law in halves]


def given_by(knowledge: Knowledge, data: CategoricalTable, rows: Iterable[Codes] = ()) -> Given:
    """Data of an adversary, who may have some rows: originals and copies."""
    if isinstance(knowledge, PublishedRules):
        return Prior(published_prior(knowledge, data.attributes, data.prior))
    x, *copies = (*rows,) or (None,)
    if x is None:
        return Prior(data.prior) if isinstance(knowledge, Perfect) else NOTHING
    if isinstance(knowledge, KnownRecords):
        return KnownPairs(x, tuple(copies))
    counts = (np.bincount(copy, minlength=data.size).astype(float) for copy in copies)
    return SampleCounts(tuple(counts))


@unprinted
class Fitted:
    """One attack with one state of knowledge, fitted to every coalition.

    Attributes
    ----------
    hidden : Draw or None
        Known rows, not attacked.
    """

    fits: Mapping[Coalition, Fit]
    hidden: Draw | None = None

    @property
    def serial(self) -> bool:
        """Whether posteriors depend on neighbouring records."""
        return any(inference.serial for inference, _ in self.fits.values())

    def judged(self, first: int, stop: int) -> Indices:
        """Attacked rows in ``[first, stop)``, counted from ``first``."""
        return np.arange(stop - first) if self.hidden is None else self.hidden.others(first, stop)


@dataclass
class Found(Added):
    """Sums of an attack's measures by coalition."""

    sums: dict[Coalition, Sums] = field(default_factory=dict)


@unprinted
class MeasureJob(Job[Found]):
    """Sums of one attack's measures on every coalition.

    Posteriors are computed by distinct outcome of a block, once for coalitions with one best copy.

    Attributes
    ----------
    groups : list of lists of (int, int, int)
        By block, ``(group, start, stop)`` of jackknife groups.
    parts : sequence of Fitted
        Fits that attack different rows.
    """

    groups: Sequence[Sequence[tuple[int, int, int]]]
    parts: Sequence[Fitted]

    def begin(self) -> Found:
        return Found()

    def take(self, block: CodeBlock, into: Found) -> None:
        for part in self.parts:
            rows = part.judged(block.first, block.first + block.x.size)
            x, group = block.x[rows].astype(int), group_of(self.groups[block.index])[rows]
            alike = dict[Coalition, list[Coalition]]()
            for one, (inference, _) in part.fits.items() if rows.size else ():
                counting = tuple(one[place] for place in inference.counting(len(one)))
                alike.setdefault(counting if counting in part.fits else one, []).append(one)
            for one, every in alike.items():
                fit, copies = part.fits[one], [block.copy(number) for number in one]
                shape = fit[1].prior.size, self.groups[-1][-1][0] + 1
                for found, some in measures(fit, block.x, copies, rows):
                    sums = found, x[some], group[some], *shape
                    into.add(Found({each: Sums.of(*sums) for each in every}))


def measures(
    fit: Fit, x: Codes, copies: Sequence[Codes], rows: Indices
) -> Iterator[tuple[Measured, Indices]]:
    """Yield measures of a block's attacked records, and their places in ``rows``."""
    (inference, frame), truth = fit, x[rows].astype(int)
    mixed = inference.mixture([copy[rows] for copy in copies])
    if mixed is not None and frame.known is None and frame.rho is None:
        yield mixture_measures(*mixed, frame, truth), np.arange(rows.size)
        return
    for P, possible, some, u in posteriors(fit, x, copies, rows):
        yield measured(P, frame, u, truth[some], possible), some


def mixture_measures(w: Array, y: Codes, frame: Frame, x: Indices) -> Measured:
    """`measured` of posteriors ``P = (1 − w)·q + w·1_y``, with w, y and x of shape (m,)."""
    q, sizes, rest = frame.prior, tuple(frame.parts.values()), 1.0 - w

    def figures(q: Array, y: Codes, x: Indices) -> Arrays:
        """``P(x)``, ``max P``, squared error, accuracy, and close guesses."""
        top = q.argmax()
        own, shown, most = rest * q[x] + w * (x == y), rest * q[y] + w, rest * q[top]
        # |P|² = (1 − w)² |q|² + w ((1 − w) q_y + P_y)
        square = rest * rest * (q @ q) + w * (rest * q[y] + shown)
        right = (np.where(shown > most, y, top) == x).astype(float)
        largest, error = np.maximum(shown, most), np.maximum(square - 2.0 * own + 1.0, 0.0)
        return own, largest, error, right, right * (largest >= CERTAIN)

    own, largest, error, right, close = figures(q, y, x)
    found = {"reconstruction_probability": own, "posterior_max": largest, "accuracy": right}
    if frame.closeness and not sizes:
        found["close"] = close
    if frame.prior_is_exact:
        found["mutual_information"] = np.log2(own / q[x])
    if frame.scores is not None:
        mean = rest * (q @ frame.scores) + w * frame.scores[y]
        error = (mean - frame.scores[x]) ** 2
    found["squared_error"] = error
    places = (np.unravel_index(codes, sizes) if sizes else () for codes in (y, x))
    for name, part, *pair in zip(frame.parts, marginals(q[None], sizes), *places, strict=True):
        _, _, error, right, close = figures(part[0], *pair)
        found |= {f"squared_error/{name}": error, f"accuracy/{name}": right}
        if frame.closeness:
            found[f"close/{name}"] = close
    growth = {"*": w * (1.0 - q[y])}
    for name, holds in frame.predicates.items():
        before = q @ holds
        growth[name] = w * (holds[y] - before)
        belief = before + growth[name]
        found[f"reconstruction_probability/{name}"] = np.where(holds[x], belief, 1.0 - belief)
    return Measured(found, growth)


def posteriors(
    fit: Fit, x: Codes, copies: Sequence[Codes], rows: Indices
) -> Iterator[tuple[Array, Flags | None, Indices, Indices]]:
    """Yield posteriors of distinct outcomes, and the records that show them.

    Parameters
    ----------
    x, copies : ndarrays of shape (b,)
        A block of records in order.
    rows : ndarray of shape (m,)
        The attacked ones.

    Yields
    ------
    P : ndarray of shape (v, s)
    possible : ndarray of shape (v, s) or None
        Values allowed by known attributes.
    some, u : ndarrays of int
        Places in ``rows``, and their rows of P.
    """
    (inference, frame), size = fit, fit[0].prior.size
    if inference.serial:
        first, place, step = np.arange(x.size), rows, x.size
    else:
        x, copies, step = x[rows], [copy[rows] for copy in copies], max(16, BLOCK_NUMBERS // size)
        outcome = [copies[number] for number in inference.counting(len(copies))]
        outcome += [] if frame.known is None else [frame.known[x].astype(x.dtype)]
        first, place = distinct(outcome, [size] * len(outcome))
    possible = None
    for a in range(0, first.size, step):
        here, some = first[a : a + step], np.flatnonzero((a <= place) & (place < a + step))
        if frame.known is not None:
            possible = frame.known == frame.known[x[here], None]
        P = inference.checked(readable([copy[here] for copy in copies]))
        yield P, possible, some, place[some] - a


def group_of(groups: Sequence[tuple[int, int, int]]) -> Indices:
    """Row group of each record, from ``(group, start, stop)``."""
    return np.repeat([number for number, _, _ in groups], [b - a for _, a, b in groups])


def closed_forms(law: UniformLaw, data: CategoricalTable, fit: Fit) -> dict[str, Expected] | None:
    """Sums over every outcome that matters to a posterior, if not too many."""
    (inference, frame), copies, s = fit, len(law.levels), data.size
    counting = list(inference.counting(copies))
    if s ** (len(counting) + 1) > MOST_OUTCOMES:
        return None
    given = law.of([place + 1 for place in counting]).given_original().reshape(s, -1)
    # no record shows outcomes of absent values
    possible = np.flatnonzero(given[data.prior > 0].any(axis=0))
    shown = np.unravel_index(possible, (s,) * len(counting))
    outcome = [shown[0]] * copies
    for place, values in zip(counting, shown, strict=True):
        outcome[place] = values
    P = inference.checked([np.asarray(part, dtype=data.code_type) for part in outcome])
    return expected(given[:, possible], data.prior, P, frame, data.rows)


def parts_of(data: CategoricalTable, knowledge: Knowledge) -> dict[str, int]:
    """Sizes of the attributes.

    None for a single attribute, and if some attributes are known.
    """
    if len(data.attributes) == 1 or knowledge.in_clear:
        return {}
    return {one.name: one.size for one in data.attributes}


def unknown_shares(data: CategoricalTable, knowledge: Knowledge) -> Array:
    """Shares of the combinations of unknown attributes."""
    if not knowledge.in_clear:
        return data.prior
    hidden = [one.name for one in data.attributes if one.name not in knowledge.in_clear]
    return np.asarray(np.bincount(cells_of(hidden, data.attributes), data.prior))
