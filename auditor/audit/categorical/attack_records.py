"""Records of one attack on categories, with one state of knowledge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from auditor.adversary.categorical_attack import CategoricalView
from auditor.adversary.knowledge import Estimated, Knowledge, KnownRecords, Perfect
from auditor.audit.categorical.belief_gap import Gap
from auditor.audit.categorical.cell_records import (
    FILES,
    ONE_RELEASE,
    Bar,
    Bars,
    Cell,
    belief_record,
    cell_records,
    closed_bars,
    gain_record,
    variance,
)
from auditor.audit.categorical.error_bars import (
    MOST_RECORDS,
    REDRAWS,
    Fit,
    jackknifed,
    redrawn_bars,
)
from auditor.audit.categorical.fitting import parts_of, shares_of, unknown_shares
from auditor.audit.categorical.posterior_measures import Expected, Sums, error_without_copies
from auditor.audit.categorical.posterior_pass import Fitted, Try, closed_forms
from auditor.audit.categorical.release import UniformRelease
from auditor.audit.measures.known_alone import METRIC
from auditor.numerics.random_streams import stream
from auditor.process.containment import contained
from auditor.results.evidence import ROW_REDRAWS
from auditor.results.records import FEWEST_REPLICATES, Measurement
from auditor.types import Coalition


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
        for coalition, inference in fitted.inferences.items():
            if inference.fixed and fitted.hidden is None and not fitted.serial:
                law, frame = release.law.of(coalition), fitted.frames[coalition]
                if (forms := closed_forms(law, release.data, inference, frame)) is not None:
                    self._closed[coalition] = forms
        some = len(self._closed) < len(fitted.inferences)
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
            return jackknifed(self.sums) if self._repeatable else {}
        replicated = release.scenario.replicates >= FEWEST_REPLICATES
        if not replicated and not (serial and release.data.rows > MOST_RECORDS):
            rng = stream(key.audit_seed, key.scheme, key.replicate, "redraws", *self.name)
            many = ROW_REDRAWS if serial else REDRAWS
            with contained():
                return redrawn_bars(self.view, release.data, self.sums, self.fit, rng, many)
        return jackknifed(self.sums) if serial else {}

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
        own = closed is not None or (release.estimated and self._repeatable)
        theory = self._gain_in_theory(coalition)
        gain_record(cell, sums, self.sums[(best,)], theory, None if own else bars)
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
        frame = next(iter(self.fitted.frames.values()))
        unknown = variance(unknown_shares(data, self.knowledge), data.scores)
        if frame.known is None or unknown <= 0:
            return []
        share = error_without_copies(data.prior, frame) / unknown
        return [context.record(METRIC, context.everybody, share)]
