"""Records of one attack on categories, and gaps between beliefs.

The squared gap between beliefs of a coalition and of its best copy is xiao2009, eq. 15. For an outcome
o of all copies with n_o records, of which ``c(x)`` have the value x, and best-copy posterior ``f``
there,

    ``G_o = Σ_x c(c − 1) / (n_o (n_o − 1)) − 2 Σ_x (c/n_o) f(x) + Σ_x f(x)²``

has mean ``‖f_o − f‖²`` for any law of the copies, with ``f_o`` the coalition's true posterior. It is
averaged over records whose outcome was met twice or more. The computed gap is the distance of the
posteriors, averaged over these records. The largest over all possible outcomes is the paper's plot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from auditor.adversary.attack import CategoricalView, Inference
from auditor.adversary.knowledge import Estimated, Knowledge, KnownRecords, Perfect
from auditor.audit.categorical.error_bars import (
    FILES,
    MOST_IN_ORDER,
    ONE_RELEASE,
    REDRAWS,
    Bar,
    Bars,
    Cell,
    belief_record,
    cell_records,
    closed_bars,
    gain_record,
    jackknifed,
    redrawn_bars,
    variance,
)
from auditor.audit.categorical.outcome_counts import MOST_CELLS, CodeBlock, Counts, Packing
from auditor.audit.categorical.posterior_measures import Expected, Sums, error_without_copies
from auditor.audit.categorical.posterior_pass import (
    Fit,
    Fitted,
    Try,
    closed_forms,
    parts_of,
    shares_of,
    unknown_shares,
)
from auditor.audit.categorical.release import UniformRelease
from auditor.audit.measures.privacy import METRIC
from auditor.base.types import Array, Coalition, Codes
from auditor.numerics.blocks import Job
from auditor.numerics.random_streams import stream
from auditor.process.containment import contained
from auditor.results.evidence import ROW_REDRAWS
from auditor.results.records import FEWEST_REPLICATES, Measurement
from auditor.schemes.replacement.base import code_type
from auditor.schemes.replacement.law import UniformLaw

AT_ONCE = 4096
MOST_OUTCOMES = 2**18
"""Outcomes up to which the largest gap is sought among all that can be; beyond, among those met."""


class Gap(NamedTuple):
    """Mean squared gap over records, its standard error, the computed gap, and the largest distance.

    The first three are None if no outcome was met twice. Estimated beliefs have no standard error.
    """

    measured: float | None
    std_error: float | None
    computed: float | None
    largest: float


@dataclass
class Gaps:
    """Counts of outcomes with original values, by coalition."""

    counts: dict[Coalition, Counts]

    def add(self, other: Gaps) -> None:
        """Add what others counted."""
        for coalition, counts in other.counts.items():
            self.counts[coalition].add(counts)


@dataclass(frozen=True)
class GapJob(Job[Gaps]):
    """Counts of outcomes among the first ``MOST_CELLS`` records; ``size`` is s."""

    size: int
    coalitions: tuple[Coalition, ...]
    exact = True

    def begin(self) -> Gaps:
        """Return empty counts."""
        return Gaps({c: Counts(packing_of(c, self.size).dtype) for c in self.coalitions})

    def take(self, block: CodeBlock, into: Gaps) -> None:
        """Count one block."""
        for coalition, counts in into.counts.items() if block.first < MOST_CELLS else ():
            columns = [*(block.copy(number) for number in coalition), block.x]
            counts.take(packing_of(coalition, self.size).pack(columns))


def packing_of(coalition: Coalition, size: int) -> Packing:
    """Return the keys of a coalition's values and the original one."""
    return Packing([size] * (len(coalition) + 1))


def belief_gap(
    counted: Counts, coalition: Coalition, law: UniformLaw, together: Inference, alone: Inference
) -> Gap:
    """Return the gap.

    Parameters
    ----------
    counted : Counts
        By outcome and original value.
    law : UniformLaw
        As it is stated of these copies.
    together, alone : Inference
        Bayes' rule with all copies, and with the best one.
    """
    s, best = together.prior.size, law.best - 1
    keys, number = counted.all()
    *columns, x = packing_of(coalition, s).unpack(keys)
    c = number.astype(np.float64)
    new = np.any([np.diff(column, prepend=-1) != 0 for column in columns], axis=0)
    copies, outcome = [column[new] for column in columns], np.cumsum(new) - 1
    counts = np.asarray(np.bincount(outcome, c), dtype=np.float64)
    shown, kind = copies[best], code_type(s)
    f = np.zeros((s, s))
    # A value without records is never shown at retention 1, nor where it is never drawn.
    possible = (
        np.arange(s) if law.levels[best] < 1 and math.isfinite(law.rarity) else np.unique(shown)
    )
    f[possible] = alone.checked([possible.astype(kind)])
    met = counts >= 2
    distances = _distances(together, [copy.astype(kind) for copy in copies], f, best)
    largest = float(np.sqrt(distances.max()))
    every = _every_outcome(law, kind)
    if every is not None:
        largest = max(largest, float(np.sqrt(_distances(together, every, f, best).max())))
    if not met.any():
        return Gap(None, None, None, largest)
    pairs = np.bincount(outcome, c * (c - 1.0), counts.size)
    cross = np.bincount(outcome, c * f[shown[outcome], x], counts.size)
    n = counts[met]
    G = pairs[met] / (n * (n - 1)) - 2 * cross[met] / n + (f**2).sum(axis=1)[shown[met]]
    mean = float(n @ G / n.sum())
    error = float(np.sqrt((n**2) @ (G - mean) ** 2) / n.sum())
    return Gap(
        mean, error if together.fixed else None, float(n @ distances[met]) / float(n.sum()), largest
    )


def _every_outcome(law: UniformLaw, kind: np.dtype[Any]) -> list[Codes] | None:
    """Return every outcome there can be; None where they are too many, or where some combinations of values are impossible."""
    k, s = len(law.levels), law.size
    tied = max(law.levels) >= 1 or (law.multilevel and len(set(law.levels)) < k)
    if s**k > MOST_OUTCOMES or tied or math.isinf(law.rarity):
        return None
    return [np.asarray(part, dtype=kind) for part in np.unravel_index(np.arange(s**k), (s,) * k)]


def _distances(together: Inference, copies: Sequence[Codes], f: Array, best: int) -> Array:
    """Return the squared distance of the two posteriors for each outcome, shape (u,)."""
    found = np.empty(copies[0].size)
    for a in range(0, found.size, AT_ONCE):
        part = [copy[a : a + AT_ONCE] for copy in copies]
        found[a : a + AT_ONCE] = ((together.checked(part) - f[part[best]]) ** 2).sum(axis=1)
    return found


@dataclass(repr=False)
class AttackRecords:
    """Figures of one attack with one state of knowledge, by coalition.

    Attributes
    ----------
    name : (str, str)
        The attack's id and the label of its knowledge.
    view : CategoricalView
        Of all copies.
    gaps : dict
        Belief gaps, if requested.
    """

    release: UniformRelease
    name: Try
    view: CategoricalView
    fit: Fit
    fitted: Fitted
    sums: Mapping[Coalition, Sums]
    gaps: Mapping[Coalition, Gap]

    def __post_init__(self) -> None:
        """Compute closed forms, and error bars for coalitions without them."""
        release, fitted = self.release, self.fitted
        self.context = release.context.under(*self.name)
        self._closed: dict[Coalition, dict[str, Expected]] = {}
        for coalition, (inference, frame) in fitted.fits.items():
            if inference.fixed and fitted.hidden is None and not fitted.serial:
                law = release.law.of(coalition)
                if (forms := closed_forms(law, release.data, inference, frame)) is not None:
                    self._closed[coalition] = forms
        some = len(self._closed) < len(fitted.fits)
        self._bars: Mapping[Coalition, Bars] = self._error_bars() if some else {}

    @property
    def knowledge(self) -> Knowledge:
        """The state of knowledge."""
        return self.view.knowledge

    @property
    def _repeatable(self) -> bool:
        return not isinstance(self.knowledge, Estimated | KnownRecords)

    def _error_bars(self) -> Mapping[Coalition, Bars]:
        release, key, serial = self.release, self.release.key, self.fitted.serial
        if release.estimated:
            return self._jackknife if self._repeatable else {}
        replicated = release.scenario.replicates >= FEWEST_REPLICATES
        if not replicated and not (serial and release.data.rows > MOST_IN_ORDER):
            rng = stream(key.audit_seed, key.scheme, key.replicate, "redraws", *self.name)
            many = ROW_REDRAWS if serial else REDRAWS
            with contained():
                return redrawn_bars(self.view, release.data, self.sums, self.fit, rng, many)
        return self._jackknife if serial else {}

    @cached_property
    def _jackknife(self) -> Mapping[Coalition, Bars]:
        return jackknifed(self.sums)

    def records(self, coalitions: Sequence[Coalition]) -> list[Measurement]:
        """Return the records of the coalitions that the attack tries."""
        return [record for one in coalitions for record in self._cell(one)] + self._known_alone()

    def _cell(self, coalition: Coalition) -> list[Measurement]:
        release, data, sums = self.release, self.release.data, self.sums[coalition]
        why = ONE_RELEASE if release.scheme.makes_copies else FILES
        cell, closed = (Cell(self.context, coalition, why), self._closed.get(coalition))
        bars = closed_bars(closed) if closed is not None else self._bars.get(coalition, {})
        stated = isinstance(self.knowledge, Perfect) and release.law.by_retention
        odds = release.law.of(coalition).odds_by_value() if stated else None
        unknown = unknown_shares(data, self.knowledge)
        parts = parts_of(data, self.knowledge)
        shares = {name: shares_of(part, data.prior) for name, part in parts.items()}
        cell_records(cell, sums, closed, bars, unknown, data.scores, odds, shares)
        belief_record(cell, sums, unknown)
        best = min(coalition, key=lambda copy: self.sums[(copy,)].errors.sum())
        if (gap := self.gaps.get(coalition)) is not None:
            if gap.measured is not None:
                bar = None if gap.std_error is None else Bar.normal(gap.std_error, "jackknife")
                cell.add("belief_gap", gap.measured, bar, gap.computed, varies=True)
            cell.add("largest_belief_gap", gap.largest, theory=gap.largest)
        if closed is not None:
            bars = self._jackknife[coalition]
        gain_record(cell, sums, self.sums[(best,)], self._gain_in_theory(coalition), bars)
        return cell.records

    def _gain_in_theory(self, coalition: Coalition) -> float | None:
        """Return the closed-form collusion gain in reconstruction error, if any."""
        forms = [self._closed.get(c) for c in [coalition, *((copy,) for copy in coalition)]]
        errors = [1.0 - form["reconstruction_probability"].value for form in forms if form]
        if len(errors) < len(forms):
            return None
        alone = min(errors[1:])
        return 0.0 if alone <= 0 else 1.0 - errors[0] / alone

    def _known_alone(self) -> list[Measurement]:
        data, context = self.release.data, self.context
        _, frame = next(iter(self.fitted.fits.values()))
        unknown = variance(unknown_shares(data, self.knowledge), data.scores)
        if frame.known is None or unknown <= 0:
            return []
        share = error_without_copies(data.prior, frame) / unknown
        return [context.record(METRIC, context.everybody, share)]
