"""Fits to coalitions, and the pass that measures their posteriors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from auditor.adversary.attack import CategoricalAttack, CategoricalView, Inference, probabilities
from auditor.adversary.knowledge import Knowledge, KnownRecords, Perfect, PublishedRules
from auditor.adversary.published import cells_of, check_knowledge, published_prior
from auditor.adversary.view import NOTHING, Given, KnownPairs, Prior, SampleCounts
from auditor.audit.base.session import made_attack
from auditor.audit.categorical.first_pass import Counted
from auditor.audit.categorical.release import (
    CERTAIN,
    CodeBlock,
    Expected,
    Frame,
    Measured,
    Sums,
    UniformRelease,
    distinct,
    expected,
    marginals,
    measured,
)
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
from auditor.scenario.model import AttackUse
from auditor.schemes.replacement.law import UniformLaw

# --------------------------------------------------------------------------------------------------


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
        rows = np.arange(stop - first)
        return rows if self.hidden is None else np.delete(rows, self.hidden.within(first, stop)[0])


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
                all_of, some = measures(fit, block.x, copies, rows)
                sums = all_of, x[some], group[some], fit[1].prior.size, self.groups[-1][-1][0] + 1
                into.add(Found({each: Sums.of(*sums) for each in every}))


def measures(
    fit: Fit, x: Codes, copies: Sequence[Codes], rows: Indices
) -> tuple[Measured, Indices]:
    """Measures of a block's attacked records, and their places in ``rows``."""
    (inference, frame), truth = fit, x[rows].astype(int)
    mixed = inference.mixture([copy[rows] for copy in copies])
    if mixed is not None and frame.known is None and frame.rho is None:
        return mixture_measures(*mixed, frame, truth), np.arange(rows.size)
    found, places = list[Measured](), list[Indices]()
    for P, possible, some, u in posteriors(fit, x, copies, rows):
        found.append(measured(P, frame, u, truth[some], possible))
        places.append(some)
    return Measured.joined(found), np.concatenate(places)


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
    order = np.argsort(place, kind="stable")
    ordered, possible = place[order], None
    for a in range(0, first.size, step):
        here = first[a : a + step]
        some = order[slice(*np.searchsorted(ordered, (a, a + step)))]
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
