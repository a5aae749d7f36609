"""Attacks fitted to coalitions, one pass over categories, closed forms.

A posterior is computed once for each outcome in a block. If outcomes are few, records are counted
by outcome for a whole stripe first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.attack import CategoricalAttack, CategoricalView, Inference, probabilities
from auditor.adversary.knowledge import Estimated, Knowledge, KnownRecords, Perfect, PublishedRules
from auditor.adversary.published import cells_of, published_prior
from auditor.adversary.view import NOTHING, Given, Prior, SampleCounts
from auditor.audit.base.session import made_attack
from auditor.audit.categorical.first_pass import Counted
from auditor.audit.categorical.outcome_counts import CodeBlock, Counts, Packing, different
from auditor.audit.categorical.posterior_measures import (
    Expected,
    Frame,
    Sums,
    expected,
    group_of,
    quantities,
)
from auditor.audit.categorical.release import Half, UniformRelease
from auditor.audit.numeric.moment_pass import Draw, key_of
from auditor.base.errors import NotApplicable, PluginError
from auditor.base.types import Array, Coalition, Flags, Indices
from auditor.data.columns.categorical_table import CategoricalTable
from auditor.numerics.blocks import Job, readable, seal
from auditor.process.containment import contained
from auditor.scenario.model import AttackUse
from auditor.schemes.replacement.base import code_type
from auditor.schemes.replacement.law import UniformLaw

Fit = Callable[[CategoricalView, Coalition], tuple[Inference, Frame]]
"""Fits an attack to a view of all copies and a coalition."""
Try = tuple[str, str]
"""An attack's id and a state of knowledge's label."""

BLOCK_NUMBERS = 2**18
"""Numbers in a block of posteriors, which fits the cache."""
MOST_OUTCOMES = 2**18
"""Outcomes times values up to which closed forms are summed, and records counted by stripe."""


@dataclass(frozen=True, repr=False)
class Fitted:
    """One attack with one state of knowledge, fitted to every coalition.

    Attributes
    ----------
    hidden : str or None
        Name of the known rows, which are not attacked; None if there are none.
    """

    fits: Mapping[Coalition, tuple[Inference, Frame]]
    hidden: str | None = None

    @property
    def serial(self) -> bool:
        """Whether posteriors depend on neighbouring records, not on the outcome alone."""
        return any(inference.serial for inference, _ in self.fits.values())


@dataclass(repr=False)
class Found:
    """Sums by attack, knowledge and coalition; reasons of failures; counts of the stripe."""

    sums: dict[Try, dict[Coalition, Sums]] = field(default_factory=dict)
    failed: dict[Try, tuple[str, str]] = field(default_factory=dict)
    waiting: dict[tuple[Coalition, str | None], Counts] = field(default_factory=dict)

    def add(self, other: Found) -> None:
        """Add the results of later stripes."""
        for name, why in other.failed.items():
            self.failed.setdefault(name, why)
        for name, parts in other.sums.items():
            mine = self.sums.setdefault(name, {})
            for coalition, sums in parts.items():
                mine.setdefault(coalition, Sums(sums.counts.size, sums.sizes.size)).join(sums)


@dataclass(frozen=True, repr=False)
class MeasureJob(Job[Found]):
    """Sums of every attack's posteriors on every coalition.

    Attributes
    ----------
    size : int
        ``s``.
    groups : list of lists of (int, int, int)
        By block, ``(group, start, stop)`` of the row groups for the jackknife.
    draws : dict
        Rows that are known, or that a law was estimated from.
    """

    size: int
    groups: Sequence[Sequence[tuple[int, int, int]]]
    fitted: Mapping[Try, Fitted]
    draws: Mapping[str, Draw]

    def begin(self) -> Found:
        """Return an empty result."""
        return Found()

    def take(self, block: CodeBlock, into: Found) -> None:
        """Process one block."""
        groups = group_of(self.groups[block.index])
        for name, fitted in self.fitted.items():
            if fitted.serial:
                self._in_order(name, fitted, block, groups, into)
        by_outcome = [fitted for fitted in self.fitted.values() if not fitted.serial]
        for hidden in dict.fromkeys(fitted.hidden for fitted in by_outcome):
            left = slice(None) if hidden is None else self._left(hidden, block)
            x, group = block.x[left], groups[left]
            for coalition in dict.fromkeys(
                c for fitted in by_outcome if fitted.hidden == hidden for c in fitted.fits
            ):
                packing = self._packing(coalition)
                columns = [*(block.copy(number)[left] for number in coalition), x, group]
                if self.size ** (len(coalition) + 1) <= MOST_OUTCOMES:
                    counts = into.waiting.setdefault((coalition, hidden), Counts(packing.dtype))
                    counts.take(packing.pack(columns))
                elif packing.wide:  # hardly any two records have equal outcomes
                    self._measure(coalition, hidden, columns, np.ones(x.size), into)
                else:
                    keys, number = different(packing.pack(columns))
                    self._measure(coalition, hidden, packing.unpack(keys), number, into)

    def end(self, into: Found) -> None:
        """Measure the records that were counted for the stripe."""
        for (coalition, hidden), counts in into.waiting.items():
            keys, number = counts.all()
            self._measure(coalition, hidden, self._packing(coalition).unpack(keys), number, into)
        into.waiting = {}

    def _in_order(
        self, name: Try, fitted: Fitted, block: CodeBlock, groups: Indices, into: Found
    ) -> None:
        x, weight = block.x.astype(np.intp), None
        if fitted.hidden is not None:
            weight = self._left(fitted.hidden, block).astype(np.float64)
        with contained() as failure:
            for coalition, (inference, frame) in (
                fitted.fits.items() if name not in into.failed else ()
            ):
                P = inference.checked(readable([block.copy(number) for number in coalition]))
                found = quantities(P, frame)
                sums = self._sums(name, coalition, into)
                sums.add(found, np.arange(x.size), x, groups, weight)
        if failure.error is not None:
            into.failed[name] = (failure.status, failure.reason)

    def _left(self, hidden: str, block: CodeBlock) -> Flags:
        left = np.ones(block.x.size, dtype=bool)
        left[self.draws[hidden].within(block.first, block.first + block.x.size)[0]] = False
        return left

    def _packing(self, coalition: Coalition) -> Packing:
        return Packing([*[self.size] * (len(coalition) + 1), self._count])

    @property
    def _count(self) -> int:
        return self.groups[-1][-1][0] + 1

    def _sums(self, name: Try, coalition: Coalition, into: Found) -> Sums:
        return into.sums.setdefault(name, {}).setdefault(coalition, Sums(self.size, self._count))

    def _measure(
        self,
        coalition: Coalition,
        hidden: str | None,
        columns: Sequence[NDArray[np.integer[Any]]],
        number: NDArray[Any],
        into: Found,
    ) -> None:
        if not number.size:
            return
        weight, shown = number.astype(np.float64), columns[:-2]
        x, group = columns[-2].astype(np.intp), columns[-1].astype(np.intp)
        new = np.ones(weight.size, dtype=bool)
        new[1:] = np.any([copy[1:] != copy[:-1] for copy in shown], axis=0)
        first, place = np.flatnonzero(new), np.cumsum(new) - 1
        table = [copy[first].astype(code_type(self.size)) for copy in shown]
        seal(*table)
        rows = max(64, BLOCK_NUMBERS // self.size)
        for name, fitted in self.fitted.items():
            if fitted.serial or fitted.hidden != hidden or name in into.failed:
                continue
            sums, (inference, frame) = self._sums(name, coalition, into), fitted.fits[coalition]
            with contained() as failure:
                for a in range(0, first.size, rows):
                    P = inference.checked([part[a : a + rows] for part in table])
                    found = quantities(P, frame)
                    some = slice(*np.searchsorted(place, (a, a + rows)))
                    sums.add(found, place[some] - a, x[some], group[some], weight[some])
            if failure.error is not None:
                into.failed[name] = (failure.status, failure.reason)


def closed_forms(
    law: UniformLaw, data: CategoricalTable, inference: Inference, frame: Frame
) -> dict[str, Expected] | None:
    """Sum over every outcome that a coalition's law allows.

    For multilevel copies, over the best copy's outcomes (``best_is_sufficient``). None if there are
    too many, or if the best copy is not sufficient.
    """
    if law.multilevel and not law.best_is_sufficient():
        return None
    copies = len(law.levels)
    members = [law.best] if law.multilevel else list(range(1, copies + 1))
    s, k = data.size, len(members)
    if s ** (k + 1) > MOST_OUTCOMES:
        return None
    given = law.of(members).given_original().reshape(s, -1)
    # no record shows an outcome that only absent values lead to
    possible = np.flatnonzero(given[data.prior > 0].any(axis=0))
    outcome = np.unravel_index(possible, (s,) * k)
    # all copies equal to the best one: as likely as any outcome with an equal posterior
    if law.multilevel:
        outcome = outcome * copies
    found = quantities(
        inference.checked([np.asarray(part, dtype=data.code_type) for part in outcome]), frame
    )
    return expected(given[:, possible], data.prior, found, data.rows)


def view_of(release: UniformRelease, counted: Counted, knowledge: Knowledge) -> CategoricalView:
    """Return the view of an adversary with every copy that some coalition holds."""
    members, data = tuple(release.singles), release.data
    given: Given = NOTHING
    if isinstance(knowledge, Perfect):
        given = Prior(data.prior)
    elif isinstance(knowledge, PublishedRules):
        given = Prior(published_prior(knowledge, data.attributes, data.prior))
    elif isinstance(knowledge, Estimated):
        given = SampleCounts(tuple(counted.samples[key_of(knowledge)].astype(np.float64)))
    elif isinstance(knowledge, KnownRecords):
        if knowledge.count == data.rows:
            raise NotApplicable("every record is known in clear: none is left to attack")
        given = counted.pairs_of(key_of(knowledge))
    return CategoricalView(members, release.law.of(members), knowledge, data.labels, given)


def fit_of(release: UniformRelease, use: AttackUse, knowledge: Knowledge) -> Fit:
    """Return the function that fits an attack to a view and a coalition.

    Raises
    ------
    NotApplicable
        The attack does not apply to categories, or to this knowledge.
    """
    attack, data = made_attack(use), release.data
    attack.check(release.scheme.family, knowledge)
    if not isinstance(attack, CategoricalAttack):
        raise NotApplicable(f"{use.name} does not attack categories")
    rho = release.scenario.measure("rho-breach")
    bounds = None if rho is None else (float(rho.options["rho1"]), float(rho.options["rho2"]))
    predicates = attack.predicates(data.labels)
    known = cells_of(knowledge.in_clear, data.attributes) if knowledge.in_clear else None
    parts = parts_of(data, knowledge)

    def fit(view: CategoricalView, coalition: Coalition) -> tuple[Inference, Frame]:
        inference = attack.infer(view.coalition(coalition))
        check_inference(inference, predicates, data.size)
        exact = inference.fixed and np.array_equal(inference.prior, data.prior)
        frame = Frame(inference.prior, exact, data.scores, bounds, predicates, known, parts)
        return inference, frame

    return fit


def fitted_parts(
    release: UniformRelease,
    view: CategoricalView,
    fit: Fit,
    use: AttackUse,
    halves: tuple[Half, ...],
) -> dict[Try, Fitted]:
    """Return an attack fitted once, or with the estimated law of each half of the records."""
    knowledge, needed = view.knowledge, release.needed
    # one pass per coalition for serial attacks
    if made_attack(use).serial:
        M = release.context.copies
        needed = [one for one in needed if len(one) == 1 or use.tries(one, M)]

    def fitted(seen: CategoricalView, hidden: str | None) -> Fitted:
        return Fitted({coalition: fit(seen, coalition) for coalition in needed}, hidden)

    # known records are the source of the estimates themselves
    if isinstance(knowledge, KnownRecords):
        return {(use.id, knowledge.label): fitted(view, key_of(knowledge))}
    if not halves:
        return {(use.id, knowledge.label): fitted(view, None)}
    return {
        (use.id, f"{knowledge.label}, {half.name}"): fitted(replace(view, law=half.law), half.name)
        for half in halves
    }


def check_inference(inference: Any, predicates: Mapping[str, Any], size: int) -> None:
    """Refuse an invalid inference of a plugin.

    Raises
    ------
    PluginError
        With the expected form.
    """
    if not isinstance(inference, Inference) or not isinstance(inference.fixed, bool):
        raise PluginError("the attack returned no Inference")
    probabilities(inference.prior, (size,), "a prior")
    for holds in predicates.values():
        if np.shape(holds) != (size,) or np.asarray(holds).dtype != np.bool_:
            raise PluginError("a statement about values must be a mask over the domain")


def parts_of(data: CategoricalTable, knowledge: Knowledge) -> dict[str, Indices]:
    """Return the value of each attribute by value of the domain.

    None for a single attribute, and if some attributes are known.
    """
    if len(data.attributes) == 1 or knowledge.in_clear:
        return {}
    return {one.name: cells_of([one.name], data.attributes) for one in data.attributes}


def shares_of(part: Indices, prior: Array) -> Array:
    """Return the shares of an attribute's values."""
    return np.asarray(np.bincount(part, prior), dtype=np.float64)


def unknown_shares(data: CategoricalTable, knowledge: Knowledge) -> Array:
    """Return the shares of the combinations of attributes that are not known."""
    if not knowledge.in_clear:
        return data.prior
    hidden = [one.name for one in data.attributes if one.name not in knowledge.in_clear]
    return shares_of(cells_of(hidden, data.attributes), data.prior)
