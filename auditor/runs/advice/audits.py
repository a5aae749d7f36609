"""Audits that advice measures: one scenario per release."""

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf, sqrt
from typing import Any

import numpy as np

from auditor import registry
from auditor.base import AuditorError, quoted
from auditor.base.types import Levels, Names, Options, Plain, frozen
from auditor.expectations.metric import (
    ERRORS,
    LEVEL,
    Exposure,
    Limits,
    cut_off,
    judge_bounds,
    shares_unknown,
)
from auditor.numerics.statistics import Z_95, noncentral_quantile, quantile
from auditor.process.containment import Interrupted
from auditor.results.model import AuditResult
from auditor.results.records import (
    FITTED,
    ROW_REDRAWS,
    Exposed,
    Measurement,
    Tried,
    Verdict,
    cells,
    mean_theory,
    pooled,
)
from auditor.runs.advice.candidates import STEPS, Candidate, weakest, within
from auditor.runs.advice.columns import MODEL, SURE
from auditor.runs.check import check_data
from auditor.runs.run_scenario import run_scenario
from auditor.scenario.read import read_scenario

MOST_SUBSETS = 10
"""Most copies of which every coalition is audited."""
SAMPLE_DRAWS = 5
"""Draws per audit of a sample, whose error exceeds the draws'."""
NEAR = 1.1
"""Attacks that leave at most this multiple of the strongest one's share are measured again."""
FEWEST_DRAWS, MOST_DRAWS = 10, 25
"""Draws of the noise per audit. Their spread, the error bar, is known to a quarter by ten."""
DRAWN = 50_000
"""Records in all draws together."""
CHANCE = 0.995
"""Chance that the audit of one new release agrees with the advice."""


@frozen
class Asked:
    """Common parts of the audits of one advice.

    Attributes
    ----------
    data, utility, measures
        The scenario's sections.
    target : float
        Share that must stay unknown.
    rows : int
        Records that are measured.
    seed : int
    categories : bool
        Whether the data are categories, together one attribute.
    parameters : mapping
        Of the schemes.
    all_rows : int
        Records of the release; 0 if all are measured.
    """

    data: Options
    target: float
    rows: int
    seed: int
    categories: bool
    utility: Options
    parameters: Options = field(default_factory=dict)
    measures: Sequence[Options] = ()
    all_rows: int = 0

    @property
    def draws(self) -> int:
        """Most draws per audit."""
        fewest = SAMPLE_DRAWS if self.sampled else FEWEST_DRAWS
        return min(MOST_DRAWS, max(fewest, DRAWN // self.rows))

    @property
    def sampled(self) -> bool:
        """Whether a sample of the records is measured."""
        return self.all_rows > self.rows

    @property
    def part(self) -> float:
        """Share of the records that are measured."""
        return self.rows / self.all_rows if self.sampled else 1.0

    def scenario(
        self,
        scheme: str,
        levels: Levels,
        title: str = "",
        attacks: Names = (),
        draws: int | None = None,
    ) -> Plain:
        """Scenario of a release; against some attacks, its deciding coalitions."""
        return {
            "schema": 1,
            "title": title or f"{scheme}, {len(levels)} copies",
            "seed": self.seed,
            "data": dict(self.data),
            "schemes": [{"name": scheme, "levels": list(levels), **self.parameters}],
            "knowledge": ["perfect"],
            "coalitions": [{"copies": [1]}, "all"] if attacks else coalitions(len(levels)),
            "attacks": list(attacks) or "all",
            **({"utility": dict(self.utility)} if len(levels) > 1 or self.utility else {}),
            **({"measures": list(self.measures)} if self.measures else {}),
            "replicates": draws or self.draws,
            "expect": [
                {
                    "exposure": {
                        "scheme": scheme,
                        **self._whole,
                        "unknown": {"at-least": self.target},
                    }
                }
            ],
        }

    def audit(
        self, scheme: str, levels: Levels, attacks: Names = (), draws: int | None = None
    ) -> AuditResult:
        """Audit of a release, against all attacks or some.

        Raises
        ------
        AuditorError
            The data or the levels cannot be used, or an attack or the scheme failed.
        Interrupted
            By a signal.
        """
        checked = read_scenario(self.scenario(scheme, levels, "", attacks, draws))
        check_data(checked)
        result = run_scenario(checked)
        if result.partial is not None and result.partial.signal is not None:
            raise Interrupted(signal.Signals[result.partial.signal])
        broken = next((record for record in result.measurements if record.status == "failed"), None)
        if broken is not None:
            raise AuditorError(
                f"a part of the audit failed, and nothing can be advised on the rest: {broken.reason}"
            )
        return result

    def verdict(
        self, result: AuditResult, target: float | None = None, draws: int | None = None
    ) -> Verdict:
        """Verdict of `exposure` on one new release; undecided if its draw decides.

        ``draws`` as if the audit had so many with the mean and spread of its own.

        With the spread ``s`` of one release, the target is met if every draw leaves it and the mean
        is ``ds`` above it, and missed if the mean is as far below. By ten draws d is 6.4 to hold,
        and over a hundred cells 10.2 to fail (`astray`, Holm). Errors of n records spread by
        ``s ≤ t·√(2/n)`` at a target t. If a trend is found in some draws only, errors are far from
        normal: a new release leaves less than R draws with probability ``1/(R + 1)``.
        """
        target, draws = target or self.target, draws or result.scenario["replicates"]
        judged, cells = self._cells(result, target)
        expected: tuple[tuple[Verdict, float, float], ...] = (
            ("holds", -1.0, LEVEL),
            ("fails", 1.0, LEVEL / len(cells)),
        )
        if any((one.value or 0.0) < target for one in judged):
            expected = expected[1:]
        for verdict, sign, level in expected:
            z = quantile(1.0 - level)
            # a sample's mean may also be off the mean of all records
            off = SURE * sqrt(1.0 / self.part - 1.0)
            unlucky = []
            for one in cells:
                reach = astray(one, draws, z) + off * (one.std_error or 0.0)
                unlucky.append([one._replace(value=(one.value or 0.0) + sign * reach)])
            if (
                judge_bounds(unlucky, Limits(at_least=target, at_most=None), "share unknown").status
                == verdict
            ):
                return verdict
        return "undecided"

    def guess(
        self, candidate: Candidate, place: int, result: AuditResult, side: float = 1.0
    ) -> int:
        """Place of the first verdict `holds`, or of the last `fails` with side −1.

        Where the mean meets the target with side 0. From an audit at one place, if attacks change
        the odds by one factor.
        """
        _, shares = self._cells(result, self.target)
        one = min(shares, key=lambda each: each.value or 0.0)
        z = quantile(1.0 - LEVEL / (1 if side > 0.0 else len(shares)))
        off = z + SURE * sqrt(1.0 / self.part - 1.0)
        margin = astray(one, self.draws, z) + off * (one.std_error or 0.0)
        return by_closed_form(candidate, place, one.value or 0.0, self.target + side * margin)

    def strongest(self, result: AuditResult, near: float = NEAR) -> dict[str, float]:
        """Attacks with the least shares that they leave, up to a multiple of the least."""
        left: dict[str, float] = {}
        for one in self._cells(result, self.target)[1]:
            if one.value is not None:
                left[str(one.attack)] = min(left.get(str(one.attack), inf), one.value)
        least = min(left.values())
        return {name: share for name, share in left.items() if share <= near * least}

    def exposed(self, result: AuditResult) -> Exposed:
        """Cell that may end lowest in one release."""
        _, every = self._cells(result, self.target)
        found = [
            Exposed(
                one.value or 0.0,
                Z_95 * (one.std_error or 0.0),
                str(one.attack),
                one.attribute,
                one.coalition,
            )
            for one in every
        ]
        return min(found, key=lambda one: (one.unknown - one.half, len(one.coalition)))

    @property
    def _whole(self) -> dict[str, str]:
        return {"attribute": "*"} if self.categories else {}

    def _cells(
        self, result: AuditResult, target: float
    ) -> tuple[list[Measurement], list[Measurement]]:
        """Shares unknown in every draw, and each cell's in one new release of all records."""
        unknown = {"at-least": target}
        expected = Exposure.Parameters.model_validate({"unknown": unknown, **self._whole})
        assert expected.unknown is not None
        # the insider learns from originals, and no recipient has these
        attacks = [one for one in result.measurements if one.attack != FITTED]
        judged = shares_unknown(attacks, expected, expected.unknown, {})
        found = [of_one_release(cell, target) for cell in cells(judged).values()]
        return judged, [
            one._replace(std_error=one.std_error and one.std_error * sqrt(self.part))
            for one in found
        ]


def odds(share: float) -> float:
    """``share/(1 − share)``, in proportion to the noise for linear attacks."""
    return max(share, 1e-9) / max(1.0 - share, 1e-9)


def by_closed_form(candidate: Candidate, place: int, share: float, target: float) -> int:
    """Place that leaves the target if odds keep their ratio to the closed form's."""
    gain = odds(share) / odds(candidate.unknown(candidate.levels(place)))
    for at in range(candidate.places):
        if gain * odds(candidate.unknown(candidate.levels(at))) >= odds(target):
            return at
    return candidate.places - 1


def pooling_gain(result: AuditResult, exposed: Exposed) -> float:
    """Measured gain of pooling over the best single copy, at least 0."""
    same = ("normalized_error", exposed.attack, exposed.attribute, "ok")
    told = ((cell, cell[0]) for cell in cells(result.measurements).values())
    left = {
        one.coalition: pooled(cell)[0]
        for cell, one in told
        if (one.metric, one.attack, one.attribute, one.status) == same
    }
    return max(
        0.0,
        1.0
        - left[exposed.coalition]
        / min(share for coalition, share in left.items() if len(coalition) == 1),
    )


def of_one_release(drawn: Sequence[Measurement], target: float) -> Measurement:
    """A cell's mean over draws, with the error bar of one release.

    The error bar at the target is ``√R · se · target/mean``.

    A mean of squares spreads in proportion to its size, so an error above the original's variance
    is cut off as the expectation does. Below the target this widens the error bar.
    """
    mean, error = pooled(cut_off(drawn, target))
    size = target / max(mean, target) if drawn[0].metric in ERRORS else 1.0
    spread = None if error is None else sqrt(len(drawn)) * error * size
    # ends of the first draw's interval do not belong to the mean
    return drawn[0]._replace(
        value=mean, std_error=spread, ci_low=None, ci_high=None, theory=mean_theory(drawn)
    )


def astray(one: Measurement, draws: int, z: float) -> float:
    """Distance by which one audit may be worse than the mean of draws, at `CHANCE`.

    Parameters
    ----------
    one : Measurement
        A cell's mean, with the spread ``s`` of one release for a standard error.
    draws : int
        ``R``, which know the mean to ``s/√R``, and ``s`` itself with R − 1 degrees of freedom.
    z : float
        Standard errors from the target at which the audit decides.

    Notes
    -----
    The audit finds ``m' − z s'`` above the target t. Its error bar, of nine redraws, is known to ``s/√(2ν)`` with ν = 8. So ``(m − t)/s``
    must be ``d = σ·T(z/σ)``, a quantile of
    noncentral t with ``σ² = 1 + 1/R + z²/2ν``, and ``d − z`` of that is for the draw. A closed form
    knows ``s``: then ν and the degrees are infinite. Errors are taken for normal.
    """
    known = one.error_bar == "closed-form"
    sigma = sqrt(1.0 + 1.0 / draws + (0.0 if known else z * z / (2 * (ROW_REDRAWS - 1))))
    d = sigma * noncentral_quantile(CHANCE, inf if known else draws - 1, z / sigma)
    return (d - z) * (one.std_error or 0.0)


def coalitions(copies: int) -> list[Any]:
    """Coalitions to audit among so many copies.

    Examples
    --------
    >>> coalitions(3), coalitions(12)
    (['subsets'], ['singles', {'first': 2}, {'first': 10}, 'all'])
    """
    return (
        ["subsets"]
        if copies <= MOST_SUBSETS
        else ["singles", {"first": 2}, {"first": MOST_SUBSETS}, "all"]
    )


AROUND = STEPS // 3
"""Distance on the grid of two further releases, with more and less noise."""


@dataclass
class Trials:
    """Considered releases, each audited once."""

    asked: Asked
    utility: str
    most_epsilon: float | None = None
    listener: Callable[[str], None] = lambda words: None
    closed: bool = False
    stopped: str | None = None
    strong: dict[str, dict[str, float]] = field(default_factory=dict)
    reached: dict[str, int] = field(default_factory=dict)
    tried: dict[tuple[str, Levels], Tried] = field(default_factory=dict)
    audits: dict[tuple[str, Levels, bool], AuditResult] = field(default_factory=dict)

    def lowest(self, candidate: Candidate, best: float) -> int | None:
        """First place of a grid whose whole release meets the target, if any.

        None also if its closed form already loses more of the use than ``best``.
        """
        place = candidate.start(self.asked.target, self.most_epsilon)
        if place is not None:
            place = max(place, self.reached.get(candidate.curve, 0))
        if place is None or place == candidate.places:
            return None
        # a loss that must be measured is NaN here
        if self._noted(candidate, candidate.levels(place), None).loss > best:
            return None
        first = place if candidate.curve in self.reached else self._first(candidate, place)
        for audited in (self.single, self.whole):
            if place is None:
                return None

            place = weakest(
                lambda at, audited=audited: audited(candidate, at).met,  # type: ignore[misc]
                place,
                candidate.places,
                first,
                partial(self.guess, candidate),
            )
            first = place or 0
            if candidate.curve:
                self.reached[candidate.curve] = candidate.places if place is None else place
        return place

    def _first(self, candidate: Candidate, place: int) -> int:
        """Place that may suffice; all attacks are tried once."""
        levels = candidate.sufficient(place)
        result = self.asked.audit(candidate.name, levels, draws=1)
        near = self.strong[candidate.curve or candidate.name] = self.asked.strongest(result)
        self.listener(
            f"{candidate.name} at {levels[0]:g}: {', '.join(near)} leave {min(near.values()):.3f}"
        )
        return self.asked.guess(candidate, place, result)

    def guess(self, candidate: Candidate, place: int, side: float = 1.0) -> int:
        """Place of a verdict by the search's audit at a place."""
        return self.asked.guess(candidate, place, self._searched(candidate, place), side)

    def failing(self, candidate: Candidate, place: int) -> Tried | None:
        """Strongest release below a place that was found to fail."""
        below = [candidate.levels(at) for at in reversed(range(place))]
        known = (self.tried.get((candidate.name, levels)) for levels in below)
        return next((one for one in known if one and one.exposed and one.verdict == "fails"), None)

    def best_so_far(self, candidates: Sequence[Candidate]) -> tuple[Tried, Candidate, int] | None:
        """Release of least loss that met the target, audited in full if any was."""
        by_name = {candidate.name: candidate for candidate in candidates}
        met = [one for one in self.tried.values() if one.met and one.exposed is not None]
        if not met:
            return None
        best = min(met, key=lambda one: (not one.in_full, one.loss))
        return best, by_name[best.scheme], by_name[best.scheme].place_of(best.levels)

    def notes(self) -> list[str]:
        """Notes on omitted work."""
        notes = []
        if self.stopped:
            notes.append(f"stopped by {self.stopped}: the best release found so far")
        strong = {name: None for near in self.strong.values() for name in near}
        if strong:
            last = "" if self.asked.sampled else " and on the recommended release"
            notes.append(
                f"every attack was tried once{last}; levels were found by {', '.join(strong)}"
            )
        return notes

    def single(self, candidate: Candidate, place: int) -> Tried:
        """Audit against the strongest attacks.

        Of one sufficient copy, shared by schemes of a curve, or of the release.
        """
        levels, audit = candidate.levels(place), self._searched(candidate, place)
        return self._noted(candidate, levels, audit, in_full=not candidate.curve)

    def _searched(self, candidate: Candidate, place: int) -> AuditResult:
        name = candidate.curve or candidate.name
        return self._audited(name, candidate, candidate.sufficient(place), False)

    def audit(self, candidate: Candidate, place: int, full: bool = True) -> AuditResult:
        """Audit of the whole release, made once."""
        return self._audited(candidate.name, candidate, candidate.levels(place), full)

    def whole(self, candidate: Candidate, place: int, full: bool = True) -> Tried:
        """Audit of the whole release, in ``full`` or against the strongest attacks."""
        audit = self.audit(candidate, place, full)
        return self._noted(candidate, candidate.levels(place), audit, in_full=True)

    def _audited(self, name: str, candidate: Candidate, levels: Levels, full: bool) -> AuditResult:
        if (key := (name, levels, full)) not in self.audits:
            near, every = self.strong.get(candidate.curve or candidate.name, {}), self.asked.draws
            # the search leaves out attacks that coincide with quicker ones
            slow = sorted(near, key=lambda name: -registry.get("attack", name).cost.row)
            apart = {round(near[name], 2): name for name in slow}
            strong = [*apart.values()] if not full else [*near] if self.asked.sampled else []
            # the search draws more only if the verdict may change: half the time on small tables
            few = every if full else min(FEWEST_DRAWS, every)
            found = self.asked.audit(candidate.name, levels, strong, few)
            if few < every and self.asked.verdict(found) != self.asked.verdict(found, None, every):
                found = self.asked.audit(candidate.name, levels, strong, every)
            self.audits[key] = found
        return self.audits[key]

    def draw_out(self, candidates: Sequence[Candidate], best: Candidate, place: int) -> None:
        """Audit around the recommended place; note all audits for every scheme of its curve."""
        if self.asked.sampled:
            self.closed = True
        alike = [one for one in candidates if one.curve and one.curve == best.curve]
        # a sample's search may end before the mean misses the target
        mean = self.guess(best, place, 0.0) - 1
        around = (mean,) if self.closed else (place - AROUND, place + AROUND)
        near = [at for at in around if 0 <= at < best.places]
        for one in alike:
            for at in range(one.places):
                if at in near or (one.curve, one.alone(at), False) in self.audits:
                    self.single(one, at)

    def _noted(
        self,
        candidate: Candidate,
        levels: Levels,
        audit: AuditResult | None,
        *,
        in_full: bool = False,
    ) -> Tried:
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
            if exposed is not None:
                left = f"{exposed.unknown:.3f} ± {exposed.half:.3f} unknown to {exposed.attack}"
                places = ", ".join(f"{level:g}" for level in levels)
                self.listener(f"{candidate.name} at {places}: {left}, target {verdict}")
        return made

    def refusal(self, candidate: Candidate) -> str:
        """Message that no level meets the target, with the largest that is met."""
        shown = self.whole(candidate, candidate.places - 1)
        assert shown.exposed is not None
        audit = self.audit(candidate, candidate.places - 1)
        most = next(
            (
                share / 100
                for share in range(99, 0, -1)
                if self.asked.verdict(audit, share / 100) == "holds"
            ),
            0.0,
        )
        instead = f"; the largest that is met is --unknown {most:g}" if most > 0 else ""
        which = "" if self.asked.categories else f"of {quoted(shown.exposed.attribute)} "
        left = f"{shown.exposed.unknown:.3f} ± {shown.exposed.half:.3f} {which}unknown to {shown.exposed.attack}"
        return (
            f"no level leaves {self.asked.target:g} of every attribute unknown for sure: of the most perturbed release that was tried, "
            f"{candidate.name} with its least perturbed copy at {shown.levels[0]:g}, {self.asked.rows:,} records show {left}{instead}"
        )


def _measured_losses(result: AuditResult, copies: int) -> Levels:
    name = f"utility_loss_{MODEL.replace('-', '_')}"
    values = [
        [r.value for r in result.measurements if r.metric == name and r.coalition == (copy,)]
        for copy in range(1, copies + 1)
    ]
    return tuple(float(np.mean([value for value in one if value is not None])) for one in values)
