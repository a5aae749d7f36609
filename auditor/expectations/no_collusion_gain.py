"""No collusion gain (Theorem 4), decided three ways at once; it holds only when all three say so.

1. *Exactly, from the law.* In every coalition one copy must make the others useless: ``Cov(Z_b, Z_j) = Var(Z_b)`` for all j, which for
   jointly Gaussian noise settles it for every attack (li2012, Theorem 4 and Corollary 1).
   What another copy adds must then foretell neither the best copy's noise nor the record, in sizes as little as in signs: where ranks show
   that it does (``auditor.audit.pooling.noise_dependence``), the noise is no such noise, nothing follows from its covariance, and the
   claim is undecided.
2. *By the theory of each attack.* Where an attack's error has a closed form, the gain that it predicts must be zero.
3. *On the data*, by an equivalence test on paired differences: for every coalition and attack, and for the best linear attack that
   the originals themselves teach (which trusts no law), two one-sided tests of the gain against ± a margin. Holm's step-down over all
   of them keeps the chance of one false «no gain» at 5 %. «Not significant» is not «no gain»: too little data leaves it undecided,
   and the number of rows that would settle it is given. An attack is paired with the coalition's copy of least noise by law, for the
   copy measured best is the luckiest. Attacks that use the law may be blind to the copies by law, so the noise that was drawn must show
   it too: the auditor has ``Y_i − X``, and the share of its best copy's noise that a coalition can take off is tested exactly against the
   margin. Beside that test the best linear attack is a guard that can only refute; where no law is stated it must show no gain itself.
   Of categorical copies the best attack of any kind is judged instead, by the originals of records that look alike to a coalition.

Only a gain refutes the claim. A coalition that does *worse* than its best copy, as one does that estimates too much from too few rows,
is no leak, and is told in the reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from auditor.expectations.base import Expectation, Filter, Judgement, Selector, Share, copies_released, selector, worst
from auditor.numerics.statistics import holm, observations_needed, one_sided, quantile, rows_needed, share_tests
from auditor.registry import register
from auditor.results.comparison import describe
from auditor.results.evidence import ROW_REDRAWS, SAME, Evidence, Look, NoiseGain, PairedGain, Pooling, averaged
from auditor.results.records import FEWEST_REPLICATES, Measurement, Verdict, cells, pooled, uncertainty
from auditor.scenario.read_coalitions import parse_coalitions

POWER = 0.8


@dataclass(frozen=True)
class Gain:
    """One gain to be tested: whose, by how much, how surely."""

    who: str
    coalition: tuple[int, ...]
    gain: float
    std_error: float
    degrees: float
    rows: int
    guard: bool = False
    """Whether it can only refute: the best linear attack where the noise itself can be measured, which is the finer test."""
    noise: tuple[NoiseGain, ...] = ()
    """Measured shares of noise taken off, one a replicate; they are tested exactly."""
    looks: tuple[Look, ...] = ()
    """What records that look alike say: all that may decide must show no gain, and any one may refute."""
    learnt: bool = False
    """Whether it is of the best linear attack, which is learnt from the originals."""

    def p_values(self, margin: float) -> tuple[float, float]:
        """Return p-values against «the gain is at least the margin» and «the gain is at most the margin»."""
        if self.noise:
            return share_tests(self.noise, margin)
        if self.looks:
            return look_tests(self.looks, margin)
        above = one_sided(-self.gain, -margin, self.std_error, self.degrees)
        return (0.0 if self.guard else one_sided(self.gain, margin, self.std_error, self.degrees)), above

    def rows_to_decide(self, margin: float, level: float) -> int | None:
        """Return how many rows would rule the margin out, if there is no gain."""
        if self.noise:
            regressors = sum(part.regressors for part in self.noise)
            looks = sum(part.observations for part in self.noise)
            return math.ceil(self.rows * observations_needed(regressors, margin, level, POWER) / looks)
        if self.looks:
            blind = max(look.blind for look in deciding(self.looks))
            # half the margin for either; the share of records like no other falls as fast as their number grows
            distinct = math.ceil(2.0 * self.rows * blind / margin)
            return max(distinct, rows_needed(self.rows, self.std_error, margin / 2.0, quantile(1 - level) + quantile(POWER)) or 0)
        return rows_needed(self.rows, self.std_error, margin, quantile(1 - level) + quantile(POWER))

    @property
    def measured(self) -> bool:
        """Whether there is anything to test."""
        return math.isfinite(self.gain) and not math.isnan(self.std_error)


DEGREES = {"closed-form": math.inf, "redraws": ROW_REDRAWS - 1, "jackknife": 31, "replicates-needed": math.inf}
"""Degrees of freedom by where an error bar comes from; at least, for redraws."""


def averaged_pairs(paired: Sequence[PairedGain]) -> tuple[float, float, float]:
    """Return mean, standard error and degrees of freedom of the same gain in several replicates.

    By each one's own error or, where one release does not tell, by the spread between replicates; infinite when they are too few for that.
    """
    gains, errors, degrees = (np.array(part, dtype=np.float64) for part in zip(*paired, strict=True))
    R = gains.size
    if not np.isnan(errors).any():
        return float(gains.mean()), float(np.sqrt((errors**2).sum())) / R, float(degrees.sum())
    if R < FEWEST_REPLICATES:
        return float(gains.mean()), math.inf, math.inf
    return float(gains.mean()), float(gains.std(ddof=1)) / math.sqrt(R), R - 1.0


def deciding(looks: Sequence[Look]) -> list[Look]:
    """Return the looks that may say «no gain»; all of them if none may."""
    return [look for look in looks if not look.guard] or list(looks)


def look_tests(looks: Sequence[Look], margin: float) -> tuple[float, float]:
    """Return p-values against «some look gains at least the margin» and «every look gains at most the margin».

    The first is the largest of those looks that may decide, records like no other counted as given away (an intersection of claims needs
    no correction); the second Bonferroni's over all of them.
    """
    below = [one_sided(look.gain + look.blind, margin, look.std_error, look.degrees) for look in looks if not look.guard]
    above = [one_sided(-look.gain, -margin, look.std_error, look.degrees) for look in looks]
    return max(below, default=1.0), min(1.0, len(above) * min(above))


@register
class NoCollusionGain(Expectation):
    """No coalition does better than its best copy alone (Theorem 4): by law, by theory, and by an equivalence test on the data."""

    name = "no-collusion-gain"
    aliases = ("theorem-4",)
    reference = "li2012, Theorem 4"
    needs_pooling = True

    class Parameters(Filter):
        """The filter, the margin and the level of the test."""

        margin: Share = Field(0.01, description="largest gain that counts as none, as a share of the best copy's error")
        level: Share = Field(0.05, description="chance of one false «no gain» over everything covered")

    def judge(self, evidence: Evidence) -> Judgement:
        """Return the verdict of the three ways together."""
        parts = [self._by_law(evidence), self._by_theory(evidence), self._on_data(evidence)]
        status = worst([part.status for part in parts])
        decisive = [part for part in parts if part.status == status] if status != "holds" else parts
        observed = parts[2].observed if parts[2].observed is not None else parts[1].observed
        return Judgement(status, "; ".join(part.why for part in decisive), observed, self.parameters.margin)

    def _selected(self, evidence: Evidence) -> Selector:
        return selector(self.parameters, "collusion_gain", copies_released(evidence), pooled_only=True, each_attribute=True)

    def _releases(self, evidence: Evidence) -> Iterable[tuple[str, str, tuple[int, ...], Pooling, int]]:
        """Yield sweep point as text, scheme, coalition, what pooling buys it, and rows, for all the filter covers."""
        wanted = None if self.parameters.coalition is None else parse_coalitions(self.parameters.coalition)
        schemes, sweep = self.parameters.scheme, self.parameters.sweep
        names = [schemes] if isinstance(schemes, str) else schemes
        for release in evidence.releases:
            if names is not None and release.scheme not in names:
                continue
            if sweep is not None and any(release.sweep.get(path) != value for path, value in sweep.items()):
                continue
            for coalition, pooling in release.pooling.items():
                if wanted is None or wanted.matches(coalition, len(release.levels)):
                    yield str(release.sweep), release.scheme, coalition, pooling, release.rows

    def _by_law(self, evidence: Evidence) -> Judgement:
        stated = {(point, scheme, coalition): pooling.sufficient for point, scheme, coalition, pooling, _ in self._releases(evidence)}
        known = {cell: sufficient for cell, sufficient in stated.items() if sufficient is not None}
        broken = [cell for cell, sufficient in known.items() if not sufficient]
        if broken:
            _, scheme, coalition = broken[0]
            more = f", and so in {len(broken) - 1} more coalitions" if len(broken) > 1 else ""
            return Judgement("fails", f"by law: in {scheme}, no copy of {describe(coalition)} makes the others useless{more}")
        if not stated:
            return Judgement("undecided", "no coalition of two copies or more was audited")
        foretold = self._foretold(evidence)
        if foretold:
            return Judgement("undecided", foretold)
        if not known:
            return Judgement("holds", "by law: none is stated, so the data alone decide")
        which = "the one coalition" if len(known) == 1 else f"each of {len(known)} coalitions"
        return Judgement("holds", f"by law: one copy says all there is in {which}")

    def _foretold(self, evidence: Evidence) -> str:
        """Return why second moments settle nothing here: what a copy adds depends on the best one's noise or the data; or nothing."""
        cells = [(scheme, pooling.dependence) for _, scheme, _, pooling, _ in self._releases(evidence) if pooling.dependence is not None]
        distinct = list(dict.fromkeys(cells))
        p_values = [sign.p_value(self.parameters.margin) for _, sign in distinct]
        found = [cell for cell, p in zip(distinct, holm(p_values), strict=True) if p <= self.parameters.level]
        if not found:
            return ""
        scheme, sign = max(found, key=lambda cell: abs(cell[1].correlation))
        told = "the record is" if sign.of_record else "that one's noise is"
        return (
            f"by law: nothing follows, for the noise in {scheme} is no independent Gaussian noise: what copy {sign.other} adds to copy "
            f"{sign.best} foretells how large {told}, or which way (rank correlation {sign.correlation:+.2f} in {sign.rows:,} rows); an "
            "attack that is not linear may gain, and second moments cannot tell how much"
        )

    def _by_theory(self, evidence: Evidence) -> Judgement:
        selected = self._selected(evidence)
        predicted = [r for r in self._records(evidence, selected) if r.theory is not None]
        if not predicted:
            return Judgement("holds", "by theory: no attack here has a closed form")
        largest = max(predicted, key=lambda record: record.theory or 0.0)
        gain = largest.theory or 0.0
        if gain > SAME:  # what rounding may have made of nothing is 0 by then (auditor.audit.numeric.linear_errors.collusion_gain)
            cell = f"{largest.attack} on {largest.scheme}, copies {describe(largest.coalition)}"
            return Judgement("fails", f"by theory: {cell} gains {_share(gain)}", gain)
        return Judgement("holds", f"by theory: no gain in {len(predicted)} cells", gain)

    def _records(self, evidence: Evidence, selected: Selector) -> list[Measurement]:
        return [record for record in evidence.measurements if record.status == "ok" and selected(record)]

    def _on_data(self, evidence: Evidence) -> Judgement:
        everything = (
            *self._attack_gains(evidence), *self._noise_gains(evidence), *self._best_linear_gains(evidence), *self._best_gains(evidence)
        )  # fmt: skip
        tested = [gain for gain in everything if gain.measured]
        if not tested:
            why = "too few rows to test anything" if everything else "nothing to test"
            return Judgement("undecided", f"on the data: {why}")
        margin, level = self.parameters.margin, self.parameters.level
        p_values = [gain.p_values(margin) for gain in tested]
        none, some = holm([none for none, _ in p_values]), holm([some for _, some in p_values])
        verdicts: list[Verdict] = ["fails" if q <= level else "holds" if p <= level or g.guard else "undecided"
                                   for p, q, g in zip(none, some, tested, strict=True)]  # fmt: skip
        # Without a law of one shape the best linear attack is what decides, so that where it cannot be learnt nothing does.
        unlearnt = [gain for gain in everything if gain.learnt and not gain.guard and not gain.measured]
        status = worst([*verdicts, "undecided"] if unlearnt else verdicts)
        if unlearnt and status == "undecided" and "undecided" not in verdicts:
            return Judgement(status, f"on the data: too few rows to learn {unlearnt[0].who}, copies {describe(unlearnt[0].coalition)}")
        # A guard that refutes nothing decides nothing, so it is not what a verdict is explained by, unless it is all there is.
        telling = [k for k, v in enumerate(verdicts) if v == status and not (status == "holds" and tested[k].guard)]
        place = max(telling or range(len(tested)), key=lambda k: tested[k].gain + 2.0 * tested[k].std_error)
        return Judgement(status, self._data_reason(tested, verdicts, tested[place], status), tested[place].gain)

    def _attack_gains(self, evidence: Evidence) -> Iterable[Gain]:
        """Gains over the copy with least noise by law, replicates pooled; over the best measured one where there is no law."""
        releases = {(str(release.sweep), release.scheme, release.replicate): release for release in evidence.releases}
        for group in cells(self._records(evidence, self._selected(evidence))).values():
            first = group[0]
            cell = (first.knowledge or "", first.attack or "", first.coalition, first.attribute)
            here = [releases[str(record.sweep), record.scheme, record.replicate] for record in group]
            paired = [release.paired[cell] for release in here if cell in release.paired]
            rows = sum(release.rows for release in here)
            who = f"{first.attack} ({first.knowledge}, {first.attribute}) on {first.scheme}"
            if len(paired) == len(group):
                value, error, degrees = averaged_pairs(paired)
                yield Gain(who, first.coalition, value, error, degrees, rows)
            else:
                value, pooled_error = pooled(group)
                degrees = DEGREES.get(first.error_bar, len(group) - 1)
                error = uncertainty(group) if first.error_bar == "replicates-needed" else math.nan if pooled_error is None else pooled_error
                yield Gain(who, first.coalition, value, error, degrees, rows)

    def _noise_gains(self, evidence: Evidence) -> Iterable[Gain]:
        """What the measured noise of the copies lets a coalition take off its best copy's."""
        for (_, scheme, coalition), parts in self._pooled(evidence).items():
            noise = tuple(pooling.noise for pooling, _ in parts if pooling.noise is not None)
            if noise:
                looks = sum(part.observations for part in noise)
                share = math.fsum(part.share * part.observations for part in noise) / looks
                regressors = sum(part.regressors for part in noise)
                # What chance alone takes off is no gain.
                gain = share - regressors / looks
                error = math.sqrt(2.0 * regressors + 4.0 * looks * max(gain, 0.0)) / looks
                rows = sum(rows for _, rows in parts)
                yield Gain(f"the noise drawn in {scheme}", coalition, gain, error, math.inf, rows, noise=noise)

    def _pooled(self, evidence: Evidence) -> dict[tuple[str, str, tuple[int, ...]], list[tuple[Pooling, int]]]:
        """Return what pooling buys and rows, replicates together, by sweep point, scheme and coalition."""
        groups: dict[tuple[str, str, tuple[int, ...]], list[tuple[Pooling, int]]] = {}
        for point, scheme, coalition, pooling, rows in self._releases(evidence):
            groups.setdefault((point, scheme, coalition), []).append((pooling, rows))
        return groups

    def _best_linear_gains(self, evidence: Evidence) -> Iterable[Gain]:
        """Replicates are separate noise, so their evidence is averaged."""
        for (_, scheme, coalition), parts in self._pooled(evidence).items():
            for column in range(len(parts[0][0].gain)):
                values = [pooling.gain[column] for pooling, _ in parts]
                error = math.sqrt(math.fsum(pooling.std_error[column] ** 2 for pooling, _ in parts)) / len(parts)
                degrees = sum(pooling.degrees for pooling, _ in parts)
                who = f"the best linear attack, learnt from the originals, on {scheme}"
                guard = all(pooling.noise is not None for pooling, _ in parts)
                mean, rows = math.fsum(values) / len(values), sum(rows for _, rows in parts)
                yield Gain(who, coalition, mean, error, degrees, rows, guard, learnt=True)

    def _best_gains(self, evidence: Evidence) -> Iterable[Gain]:
        """Gains of the best attack of any kind on categorical copies, replicates averaged look by look."""
        for (_, scheme, coalition), parts in self._pooled(evidence).items():
            same: dict[tuple[str, tuple[int, ...]], list[Look]] = {}
            for pooling, _ in parts:
                for look in pooling.looks:
                    same.setdefault((look.how, look.copies), []).append(look)
            if same:
                looks = tuple(averaged(group) for group in same.values())
                worst_look = max(looks, key=lambda look: look.gain - 3.0 * look.std_error)
                largest = max(deciding(looks), key=lambda look: look.gain + look.blind + 2.0 * look.std_error)
                told = worst_look if worst_look.gain - 3.0 * worst_look.std_error > self.parameters.margin else largest
                who = f"the best attack of any kind, learnt from the originals, on {scheme}"
                yield Gain(who, coalition, told.gain, told.std_error, told.degrees, sum(rows for _, rows in parts), looks=looks)

    def _data_reason(self, tested: list[Gain], verdicts: list[Verdict], gain: Gain, status: Verdict) -> str:
        margin = self.parameters.margin
        bar = f"{_share(gain.gain, signed=True)} ± {_share(1.96 * gain.std_error)}"
        cell = f"{gain.who}, copies {describe(gain.coalition)}"
        hurt = sum(g.gain + 3.0 * g.std_error < -margin for g in tested)
        worse = f" (pooling does harm in {hurt} of them)" if hurt else ""
        if status == "holds":
            threes = sum(any(look.copies != g.coalition for look in g.looks) for g in tested)
            if threes:
                which = f"{threes} coalitions are" if threes > 1 else "one coalition is"
                worse += f"; {which} too wide for these rows and judged by threes of copies, the best among them"
            guards = [g for g in tested if g.guard]
            if guards:
                widest = max(1.96 * g.std_error for g in guards)
                worse += f"; nor does the best linear attack learnt from the originals gain, to ± {_share(widest)} or finer"
            return f"on the data: {len(tested) - len(guards)} gains are all below {_percent(margin)}, the largest {bar} ({cell}){worse}"
        if status == "fails":
            count = verdicts.count("fails")
            return f"on the data: {cell} gains {bar}, more than {_percent(margin)}; so do {count} of {len(tested)} tested"
        # For the claim, a true gain of nothing: the estimate itself is too uncertain here to plan with.
        needed = gain.rows_to_decide(margin, self.parameters.level / len(tested))
        rows = f"about {needed:,} rows would settle it if there is no gain" if needed else "five replicates or more would tell"
        blind = max((look.blind for look in deciding(gain.looks)), default=0.0) if gain.looks else 0.0
        bar += f" and {blind:.2%} of records like no other" if blind > 0 else ""
        return f"on the data: cannot tell {bar} from the margin of {_percent(margin)} ({cell}, {gain.rows:,} rows); {rows}"


def _share(value: float, *, signed: bool = False) -> str:
    """Write a share with two decimals, or as many significant digits where that would read as exactly nothing."""
    percent = 100 * value
    form = ".2f" if percent == 0 or abs(percent) >= 0.01 else ".1g"
    return f"{percent:{'+' if signed else ''}{form}}%"


def _percent(margin: float) -> str:
    """Write a margin with the digits it has: ``1.0%``, ``0.01%``."""
    return f"{margin:.1%}" if margin >= 0.0095 else f"{100 * margin:.3g}%"
