"""No collusion gain (Theorem 4): by law, theory, guarantees and data.

The claim holds only if all four agree.

1. *Law.* In every coalition some copy b has ``Cov(Z_b, Z_j) = Var(Z_b)`` for all j. For jointly
   Gaussian noise no attack then gains (li2012, Theorem 4 and Corollary 1). The claim is undecided
   if the insider learner gains, or ``noise-follows-law`` contradicts independent noise. A law
   stated for files is no proof. Copies of classes have no law: their classes and ranges are
   compared.
2. *Theory.* The gain that an attack's closed form predicts must be 0.
3. *Data.* Two one-sided tests compare each gain with ± a margin, at 5 % over all (Holm). The gains
   are of attacks over the copy of least noise by law, of the drawn noise, and of the insider
   learner. Where a law is proved the learner can only refute. Elsewhere it must show no gain. For
   files, an attack's gain up to the margin can only refute, and the learner decides.
4. *Guarantees.* If bounds of the data are stated, a coalition's guarantee must equal its best
   copy's.

Without significance either way the verdict is undecided and names the rows that decide. Attacks
surely worse than the mean are not tested.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from auditor.base.types import Coalition
from auditor.expectations.base import Expectation, Filter, Judgement, Share, identity, place, worst
from auditor.expectations.noise_follows_law import by_guarantees, contradiction
from auditor.numerics.statistics import (
    Z_95,
    holm,
    observations_needed,
    one_sided,
    quantile,
    rows_needed,
    share_tests,
)
from auditor.registry import register
from auditor.results.records import (
    FEWEST_REPLICATES,
    FITTED,
    ROW_REDRAWS,
    SAME,
    Evidence,
    InsiderGain,
    Measurement,
    NoiseGain,
    Pooling,
    ReleaseEvidence,
    Verdict,
    cells,
    describe,
    grouped,
    pooled,
    uncertainty,
)
from auditor.scenario.read_plugins import parse_coalitions

# -- Gains that `no-collusion-gain` tests ----------------------------------------------------------


POWER = 0.8


CoalitionCell = tuple[str, str, Coalition]
"""Sweep point, scheme and copies."""


class PooledCopies(NamedTuple):
    """Evidence on one coalition."""

    cell: CoalitionCell
    pooling: Pooling
    rows: int
    replicate: int = 1


class Gain(NamedTuple):
    """One gain to be tested.

    Attributes
    ----------
    who : str
        The adversary, for messages.
    guard : bool
        Whether it can only refute.
    noise : tuple of NoiseGain
        Measured shares of noise by replicate, tested exactly.
    estimated : bool
        Whether it is the insider learner's.
    insider : InsiderGain or None
    flattered : float
        Largest bias of a gain by an estimated law.
    from_files : bool
        Whether the copies were read from files.
    covered : bool
        Whether the claim covers these copies. Other gains cannot refute it.
    """

    who: str
    coalition: Coalition
    gain: float
    std_error: float
    degrees: float
    rows: int
    guard: bool = False
    noise: tuple[NoiseGain, ...] = ()
    estimated: bool = False
    insider: InsiderGain | None = None
    flattered: float = 0.0
    from_files: bool = False
    covered: bool = True

    def p_values(self, margin: float) -> tuple[float, float]:
        """P-values against a gain of at least, and at most, the margin."""
        if self.noise:
            below, above = share_tests(self.noise, margin)
        elif self.insider:
            places = range(len(self.insider.gain))
            below = max(self.insider.p_values(place, margin)[0] for place in places)
            above = self.insider.p_value(margin)
        else:
            spread = self.std_error, self.degrees
            below = one_sided(self.gain, margin, *spread)
            above = one_sided(self.flattered - self.gain, -margin, *spread)
        return 0.0 if self.guard else below, above if self.covered else 1.0

    def rows_to_decide(self, margin: float, level: float) -> int | None:
        """Rows that would exclude the margin if the true gain is 0."""
        if self.noise:
            _, regressors, observations = map(sum, zip(*self.noise, strict=True))
            needed = observations_needed(regressors, margin, level, POWER)
            return math.ceil(self.rows * needed / observations)
        distance = math.sqrt(margin) if self.insider else margin
        error = max(self.insider.std_error) if self.insider else self.std_error
        return rows_needed(self.rows, error, distance, quantile(1 - level) + quantile(POWER))

    @property
    def beyond(self) -> float:
        """Gain excluded with 97.5 % confidence."""
        if self.insider:
            return max(
                (max(r, 0.0) + Z_95 * e) ** 2
                for r, e in zip(self.insider.correlation, self.insider.std_error, strict=True)
            )
        return max(self.gain, 0.0) + Z_95 * self.std_error

    @property
    def cell(self) -> str:
        """Adversary and coalition in words."""
        return f"{self.who}, copies {describe(self.coalition)}"

    @property
    def measured(self) -> bool:
        """Whether the gain and its error bar are known."""
        return math.isfinite(self.gain) and not math.isnan(self.std_error)


DEGREES = {
    "closed-form": math.inf,
    "redraws": ROW_REDRAWS - 1,
    "jackknife": 31,
    "sampling": math.inf,
    "replicates-needed": math.inf,
}
"""Degrees of freedom by where an error bar comes from; at least, for redraws."""


def attack_gains(
    records: Sequence[Measurement], releases: Iterable[ReleaseEvidence]
) -> Iterator[Gain]:
    """Yield gains over the copy of least noise, or the best measured one.

    Errors of paired gains are the replicates' own, or their spread, infinite for too few.
    """
    by_place = {(place(release), release.replicate): release for release in releases}
    for group in cells(records).values():
        first = group[0]
        cell = (first.knowledge or "", first.attack or "", first.coalition, first.attribute)
        here = [by_place[place(record), record.replicate] for record in group]
        paired = [release.paired[cell] for release in here if cell in release.paired]
        (mean, error), bar, R = pooled(group), first.error_bar, len(group)
        degrees = DEGREES.get(bar, R - 1.0)
        if len(paired) == R:
            gains, errors, known = np.transpose(np.array(paired, dtype=float))
            mean, error, degrees = float(gains.mean()), math.inf, math.inf
            if not np.isnan(errors).any():
                error, degrees = float(np.sqrt((errors**2).sum())) / R, float(known.sum())
            elif R >= FEWEST_REPLICATES:
                error, degrees = float(gains.std(ddof=1)) / math.sqrt(R), R - 1.0
        elif bar == "replicates-needed":
            error = uncertainty(group)
        yield Gain(
            f"{first.attack} ({first.knowledge}, {first.attribute}) on {first.scheme}",
            first.coalition,
            mean,
            math.nan if error is None else error,
            degrees,
            sum(release.rows for release in here),
            flattered=max(release.facts.get("fitted", 0.0) for release in here),
            from_files=any(release.from_files for release in here),
        )


def noise_gains(pooling: Iterable[PooledCopies]) -> Iterator[Gain]:
    """Yield the removable shares of the best copy's noise."""
    groups = grouped((copies.cell, copies) for copies in pooling)
    for (_, scheme, coalition), parts in groups.items():
        noise = tuple(part.pooling.noise for part in parts if part.pooling.noise is not None)
        rows = sum(part.rows for part in parts)
        if noise:
            _, regressors, observations = map(sum, zip(*noise, strict=True))
            share = math.fsum(part.share * part.observations for part in noise) / observations
            gain = share - regressors / observations
            error = math.sqrt(2.0 * regressors + 4.0 * observations * max(gain, 0.0)) / observations
            yield Gain(
                f"the noise drawn in {scheme}", coalition, gain, error, math.inf, rows, noise=noise
            )


def insider_gains(pooling: Sequence[PooledCopies]) -> Iterator[Gain]:
    """Yield gains of the insider learner, guards where a law is proved."""
    named = {copies.cell for copies in pooling}
    first = dict[CoalitionCell, PooledCopies]()
    for copies in pooling:
        (point, scheme, held), found = copies.cell, copies.pooling.insider
        wanted = copies.replicate == 1 and not copies.pooling.by_classes
        if wanted and (found or not copies.pooling.proof):
            first.setdefault((point, scheme, found.copies if found else held), copies)
    for cell, copies in first.items():
        found, gain, error, rows = copies.pooling.insider, math.nan, math.nan, copies.rows
        if found is not None:
            reach, r = max(
                (max(r, 0.0) + 1.96 * e, max(r, 0.0))
                for r, e in zip(found.correlation, found.std_error, strict=True)
            )
            gain, error, rows = r**2, (reach**2 - r**2) / 1.96, found.rows
        who, covered = f"the insider learner, fitted to the originals, on {cell[1]}", cell in named
        measured = (who, cell[2], gain, error, math.inf, rows, copies.pooling.proof)
        yield Gain(*measured, estimated=True, insider=found, covered=covered)


# --------------------------------------------------------------------------------------------------


SEEN = 0.0025
"""Least sure gain of the learner from which noise counts as drawn by another law. A false alarm
costs an honest verdict."""

REPLICATES = "five replicates or more would tell"
FILES = (
    "copies from files are one release, which gives this attack no error bar: audit the scheme that made them by its own name, with five "
    "replicates or more, or claim it of attacks that have one with `attack:`"
)
"""Remedies for a gain without an error bar."""


@register
class NoCollusionGain(Expectation):
    """No coalition does better than its best copy alone (Theorem 4)."""

    name = "no-collusion-gain"
    aliases = ("theorem-4",)
    reference = "li2012, Theorem 4"
    needs_pooling = True

    class Parameters(Filter):
        """The filter, the margin and the level of the test."""

        margin: Share = 0.01
        """largest gain that counts as none, as a share of the best copy's error"""
        level: Share = 0.05
        """chance of one false «no gain» over everything covered"""

    def judge(self, evidence: Evidence) -> Judgement:
        margin, level = self.parameters.margin, self.parameters.level
        pooling = list(self._pooling(evidence))
        # The insider's test is finer than its attack's errors.
        learnt_of = {copies.cell for copies in pooling if copies.pooling.insider is not None}
        chosen = self.chosen(evidence, "collusion_gain", pooled_only=True, each_attribute=True)
        records = [
            record
            for record in chosen
            if record.attack != FITTED or (*place(record), record.coalition) not in learnt_of
        ]
        proved = bool(pooling) and all(copies.pooling.proof for copies in pooling)
        blind = mere_guesses(evidence.measurements)
        measured = []
        for gain in attack_gains(
            [record for record in records if identity(record) not in blind], evidence.releases
        ):
            # of one release, a proved law decides instead, or for files the insider learner
            one_release = gain.from_files or (proved and math.isinf(gain.std_error))
            measured.append(gain._replace(guard=one_release and gain.gain <= margin))
        gains = *measured, *noise_gains(pooling), *insider_gains(pooling)
        lawful = [
            release
            for release in self.covered(evidence)
            if any(pooling.proof for pooling in release.pooling.values())
        ]
        parts = [
            by_law(pooling, level, contradiction(lawful)),
            by_theory(records),
            on_data(gains, margin, level),
            *filter(None, [by_guarantees(self.chosen(evidence, None))]),
        ]
        status = worst([part.status for part in parts])
        decisive = [part for part in parts if part.status == status] if status != "holds" else parts
        observed = parts[2].observed if parts[2].observed is not None else parts[1].observed
        return Judgement(status, "; ".join(part.why for part in decisive), observed, margin)

    def _pooling(self, evidence: Evidence) -> Iterator[PooledCopies]:
        asked = self.parameters.coalition
        wanted = None if asked is None else parse_coalitions(asked)
        for release in self.covered(evidence):
            for held, pooling in release.pooling.items():
                if wanted is None or wanted.matches(held, release.copies):
                    cell = (*place(release), held)
                    yield PooledCopies(cell, pooling, release.rows, release.replicate)


def mere_guesses(measurements: Iterable[Measurement]) -> set[tuple[str, ...]]:
    """Cells surely worse than the mean, in every replicate.

    Their gain is averaged noise.
    """
    least = [
        (identity(record), record.value if record.ci_low is None else record.ci_low)
        for record in measurements
        if record.metric == "normalized_error" and record.status == "ok"
    ]
    better = {cell for cell, error in least if error is None or error < 1.0}
    return {cell for cell, _ in least} - better


def by_law(pooling: Sequence[PooledCopies], level: float, contradiction: str = "") -> Judgement:
    """Decide by second moments, or classes, unless the law is contradicted."""
    stated = {copies.cell: copies.pooling.sufficient for copies in pooling}
    known = {cell: sufficient for cell, sufficient in stated.items() if sufficient is not None}
    broken = [cell for cell, sufficient in known.items() if not sufficient]
    if broken:
        _, scheme, coalition = broken[0]
        more = f", and so in {len(broken) - 1} more coalitions" if len(broken) > 1 else ""
        why = (
            f"by law: in {scheme}, no copy of {describe(coalition)} makes the others useless{more}"
        )
        return Judgement("fails", why)
    if not stated:
        return Judgement("undecided", "no coalition of two copies or more was audited")
    if predicted := _predicted(pooling, level):
        return Judgement("undecided", predicted)
    if contradiction:
        return Judgement(
            "undecided",
            f"by law: nothing follows, for the noise does not follow its law: {contradiction}",
        )
    if lost := [copies.cell for copies in pooling if copies.pooling.unresolved]:
        _, scheme, coalition = lost[0]
        why = f"a combination of {describe(coalition)} in {scheme} is so small that double precision loses what it may give away"
        return Judgement("undecided", f"by law: {why}")
    if not known:
        return Judgement("holds", "by law: none is stated, so the data alone decide")
    which = "the one coalition" if len(known) == 1 else f"each of {len(known)} coalitions"
    if not all(copies.pooling.proved for copies in pooling):
        why = "if the copies follow the law that is stated for them, which is no proof, so the data decide"
        return Judgement("holds", f"by law: one copy says all there is in {which}, {why}")
    basis = "by law, for every attack"
    if any(copies.pooling.by_classes for copies in pooling):
        basis = "by classes and ranges, for every attack that reads these"
    return Judgement("holds", f"{basis}: one copy says all there is in {which}")


def _predicted(pooling: Sequence[PooledCopies], level: float) -> str:
    found = (
        (copies.cell[1], copies.pooling.insider)
        for copies in pooling
        if copies.pooling.proof and copies.pooling.insider is not None
    )
    distinct = list(dict.fromkeys(found))
    p_values = holm([gain.p_value(SEEN) for _, gain in distinct])
    beyond = [cell for cell, p in zip(distinct, p_values, strict=True) if p <= level]
    if not beyond:
        return ""
    scheme, gain = max(beyond, key=lambda cell: max(cell[1].correlation))
    r, error = max(zip(gain.correlation, gain.std_error, strict=True))
    return (
        f"by law: nothing follows, for the noise in {scheme} does not follow its law: the insider learner predicts what copy {gain.best} "
        f"leaves unknown from copies {describe(gain.copies)} (r = {r:.2f} ± {1.96 * error:.2f} in {gain.rows:,} rows, a gain of "
        f"{_share(r**2)})"
    )


def by_theory(records: Sequence[Measurement]) -> Judgement:
    """Decide by the gains that closed forms predict."""
    predicted = [record for record in records if record.theory is not None]
    if not predicted:
        return Judgement("holds", "by theory: no attack here has a closed form")
    largest = max(predicted, key=lambda record: record.theory or 0.0)
    gain = largest.theory or 0.0
    # rounding is 0 by then (auditor.audit.numeric.error_bars.collusion_gain)
    if gain > SAME:
        return Judgement(
            "fails",
            f"by theory: {largest.attack} on {largest.scheme}, copies {describe(largest.coalition)} gains "
            f"{_share(gain)}",
            gain,
        )
    return Judgement("holds", f"by theory: no gain in {len(predicted)} cells", gain)


def on_data(gains: Sequence[Gain], margin: float, level: float) -> Judgement:
    """Decide by equivalence tests of the measured gains."""
    tested = [gain for gain in gains if gain.measured]
    if not tested:
        why = "too few rows to test anything" if gains else "nothing to test"
        return Judgement("undecided", f"on the data: {why}")
    p_values = [gain.p_values(margin) for gain in tested]
    none, some = (holm(each) for each in zip(*p_values, strict=True))
    verdicts: list[Verdict] = [
        "fails" if q <= level else "holds" if p <= level or gain.guard else "undecided"
        for p, q, gain in zip(none, some, tested, strict=True)
    ]
    # Without a proved law the insider learner decides, if it can be fitted.
    not_estimated = [
        gain for gain in gains if gain.estimated and not gain.guard and not gain.measured
    ]
    status = worst([*verdicts, "undecided"] if not_estimated else verdicts)
    if not_estimated and status == "undecided" and "undecided" not in verdicts:
        return Judgement(status, f"on the data: too few rows to learn {not_estimated[0].cell}")
    # guards explain a verdict only if they refute the claim, or all gains are guards
    telling = [
        gain
        for gain, v in zip(tested, verdicts, strict=True)
        if v == status and not (status == "holds" and gain.guard)
    ]
    shown = max(telling or tested, key=lambda gain: gain.gain + 2.0 * gain.std_error)
    if status == "holds":
        hurt = sum(gain.gain + 3.0 * gain.std_error < -margin for gain in tested)
        more = f" (pooling does harm in {hurt} of them)" if hurt else ""
        count = sum(not gain.guard for gain in tested)
        why = f"{count} gains are all below {_percent(margin)}, the largest {_bar(shown)} ({shown.cell}){more}{_ruled_out(tested)}"
    elif status == "fails":
        bar, count = _bar(shown), verdicts.count("fails")
        why = f"{shown.cell} gains {bar}, more than {_percent(margin)}; so do {count} of {len(tested)} tested"
    else:
        # for a true gain of 0: the estimate is too uncertain to plan with
        needed, rows = shown.rows_to_decide(margin, level / len(tested)), REPLICATES
        if needed or shown.from_files:
            rows = f"about {needed:,} rows would settle it if there is no gain" if needed else FILES
        together = f" in {len(tested)} tests together" if len(tested) > 1 else ""
        why = f"cannot tell {_bar(shown)} from the margin of {_percent(margin)}{together} ({shown.cell}, {shown.rows:,} rows); {rows}"
    return Judgement(status, f"on the data: {why}", shown.gain)


def _ruled_out(tested: Sequence[Gain]) -> str:
    noise = [gain.beyond for gain in tested if gain.noise]
    learnt = [gain.beyond for gain in tested if gain.insider]
    named = ("linear", noise), ("boosted-tree" if noise else "linear or boosted-tree", learnt)
    parts = [f"no {who} attack beyond {_share(max(found))}" for who, found in named if found]
    return f"; {', '.join(parts)}" if parts else ""


def _bar(gain: Gain) -> str:
    value = _share(gain.gain, signed=True)
    return (
        f"{value} ± {_share(1.96 * gain.std_error)}"
        if math.isfinite(gain.std_error)
        else f"{value}, without an error bar,"
    )


def _share(value: float, *, signed: bool = False) -> str:
    percent = 100 * value
    form = ".2f" if percent == 0 or abs(percent) >= 0.01 else ".1g"
    return f"{percent:{'+' if signed else ''}{form}}%"


def _percent(margin: float) -> str:
    return f"{margin:.1%}" if margin >= 0.0095 else f"{100 * margin:.3g}%"
