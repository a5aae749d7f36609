"""The releases that advice considers: searched scheme by scheme, each audited once, and what is known of each noted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from auditor.results.advice import Tried
from auditor.results.model import AuditResult
from auditor.results.records import Verdict
from auditor.runs.advice.audits import Asked, pooling_gain
from auditor.runs.advice.candidates import Candidate, within
from auditor.runs.advice.search import STEPS, weakest

AROUND = STEPS // 3
"""Places on either side of the recommended one that are measured besides, to show what more or less
noise would do."""
MODEL = "decision-tree"


@dataclass
class Trials:
    """The releases that were considered; what is audited is audited once."""

    asked: Asked
    utility: str
    most_epsilon: float | None = None
    tried: dict[tuple[str, tuple[float, ...]], Tried] = field(default_factory=dict)
    audits: dict[tuple[str, tuple[float, ...]], AuditResult] = field(default_factory=dict)

    def lowest(self, candidate: Candidate, best: float) -> int | None:
        """Return the first place of a scheme's grid where its whole release meets the target; None where none does.

        Nor is one looked for where the closed form alone asks for levels that lose more of the use
        than ``best``.
        """
        place = candidate.start(self.asked.target, self.most_epsilon)
        if place is None:
            return None
        on_paper = self._noted(candidate, candidate.levels(place), None)
        if on_paper.loss > best:  # never where losses are measured, and NaN here
            return None
        if candidate.curve:
            found = weakest(lambda at: self.single(candidate, at).met, place, candidate.places)
            if found is None:
                return None
            place = found
        return weakest(lambda at: self.whole(candidate, at).met, place, candidate.places)

    def single(self, candidate: Candidate, place: int) -> Tried:
        """Return what one copy shows that tells as much as the whole release; schemes of one curve share it."""
        key = (candidate.curve, candidate.alone(place))
        if key not in self.audits:
            self.audits[key] = self.asked.audit(candidate.name, candidate.alone(place))
        return self._noted(candidate, candidate.levels(place), self.audits[key])

    def whole(self, candidate: Candidate, place: int) -> Tried:
        """Return what the whole release shows."""
        levels = candidate.levels(place)
        key = (candidate.name, levels)
        if key not in self.audits:
            self.audits[key] = self.asked.audit(candidate.name, levels)
        return self._noted(candidate, levels, self.audits[key], in_full=True)

    def draw_out(self, candidates: Sequence[Candidate], best: Candidate, place: int) -> None:
        """Measure around the recommended place too, and note what is known of it for every scheme on the same curve."""
        alike = [one for one in candidates if one.curve and one.curve == best.curve]
        near = [at for at in (place - AROUND, place + AROUND) if 0 <= at < best.places]
        for one in alike:
            for at in range(one.places):
                if at in near or (one.curve, one.alone(at)) in self.audits:
                    self.single(one, at)

    def _noted(
        self,
        candidate: Candidate,
        levels: tuple[float, ...],
        audit: AuditResult | None,
        *,
        in_full: bool = False,
    ) -> Tried:
        """Note what is known of a release; an audit in full takes the place of one copy's, and that of what paper says."""
        pooled, alone = candidate.unknown(levels), candidate.unknown(levels[:1])
        losses, pooling = candidate.losses(levels), max(0.0, 1.0 - pooled / alone)
        exposed = None if audit is None else self.asked.exposed(audit)
        verdict: Verdict = "undecided" if audit is None else self.asked.verdict(audit)
        epsilon = candidate.epsilon(levels)
        if not within(epsilon, self.most_epsilon):
            verdict = "fails"
        if audit is not None and exposed is not None and in_full:
            losses = (
                _measured_losses(audit, len(levels)) if self.utility == "classifier" else losses
            )
            pooling = pooling if candidate.curve else pooling_gain(audit, exposed)
        made = Tried(
            candidate.name, levels, pooled, exposed, verdict, in_full, pooling, losses, epsilon
        )
        known = self.tried.get((candidate.name, levels))
        if known is None or (known.exposed is None, in_full) >= (
            made.exposed is None,
            known.in_full,
        ):
            self.tried[candidate.name, levels] = made
        return made

    def refusal(self, candidate: Candidate) -> str:
        """Say that no level meets the target, and which the largest is that is met."""
        shown = self.whole(candidate, candidate.places - 1)
        assert shown.exposed is not None
        audit = self.audits[shown.scheme, shown.levels]
        most = next(
            (
                share / 100
                for share in range(99, 0, -1)
                if self.asked.verdict(audit, share / 100) == "holds"
            ),
            0.0,
        )
        instead = f"; the largest that is met is --unknown {most:g}" if most > 0 else ""
        release = f"{candidate.name} with its least perturbed copy at {shown.levels[0]:g}"
        return (
            f"no level leaves {self.asked.target:g} of every attribute unknown for sure: of the most perturbed release that was tried, "
            f"{release}, {self.asked.rows:,} records show {shown.exposed.unknown:.3f} ± {shown.exposed.half:.3f}{instead}"
        )


def _measured_losses(result: AuditResult, copies: int) -> tuple[float, ...]:
    """Return what a model that is trained on each copy loses, averaged over the draws of the noise."""
    name = f"utility_loss_{MODEL.replace('-', '_')}"
    values = [
        [r.value for r in result.measurements if r.metric == name and r.coalition == (copy,)]
        for copy in range(1, copies + 1)
    ]
    return tuple(float(np.mean([value for value in one if value is not None])) for one in values)
