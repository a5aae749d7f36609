"""Gains that `no-collusion-gain` tests.

A gain is the share of its best copy's error that a coalition removes.

Sources: two one-sided tests (Schuirmann 1987); shares of noise by their exact law
(``auditor.numerics.statistics.share_tests``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from auditor.base.types import Coalition
from auditor.expectations.base import Cell, place
from auditor.numerics.statistics import (
    Z_95,
    observations_needed,
    one_sided,
    quantile,
    rows_needed,
    share_tests,
)
from auditor.results.records import (
    FEWEST_REPLICATES,
    ROW_REDRAWS,
    InsiderGain,
    Measurement,
    NoiseGain,
    PairedGain,
    Pooling,
    ReleaseEvidence,
    cells,
    describe,
    grouped,
    pooled,
    uncertainty,
)

POWER = 0.8


class PooledCopies(NamedTuple):
    """Evidence on one coalition; ``point`` is the sweep point as text."""

    point: str
    scheme: str
    coalition: Coalition
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
        Whether the copies come from files.
    covered : bool
        Whether the claim covers these copies; else the gain refutes nothing.
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
            return share_tests(self.noise, margin)
        if self.insider:
            tests = [
                self.insider.p_values(place, margin) for place in range(len(self.insider.gain))
            ]
            above = min(1.0, len(tests) * min(above for _, above in tests)) if self.covered else 1.0
            return 0.0 if self.guard else max(below for below, _ in tests), above
        above = one_sided(self.flattered - self.gain, -margin, self.std_error, self.degrees)
        return 0.0 if self.guard else one_sided(
            self.gain, margin, self.std_error, self.degrees
        ), above

    def rows_to_decide(self, margin: float, level: float) -> int | None:
        """Rows that would exclude the margin if there is no gain."""
        if self.noise:
            regressors = sum(part.regressors for part in self.noise)
            observations = sum(part.observations for part in self.noise)
            return math.ceil(
                self.rows * observations_needed(regressors, margin, level, POWER) / observations
            )
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
        """Whether there is a gain and an error bar."""
        return math.isfinite(self.gain) and not math.isnan(self.std_error)


DEGREES = {
    "closed-form": math.inf,
    "redraws": ROW_REDRAWS - 1,
    "jackknife": 31,
    "replicates-needed": math.inf,
}
"""Degrees of freedom by where an error bar comes from; at least, for redraws."""


def averaged_pairs(paired: Sequence[PairedGain]) -> tuple[float, float, float]:
    """Mean, standard error and degrees of freedom over replicates.

    Errors are the replicates' own, or their spread, infinite for too few.
    """
    gains, errors, degrees = (
        np.array(part, dtype=np.float64) for part in zip(*paired, strict=True)
    )
    R = gains.size
    if not np.isnan(errors).any():
        return float(gains.mean()), float(np.sqrt((errors**2).sum())) / R, float(degrees.sum())
    if R < FEWEST_REPLICATES:
        return float(gains.mean()), math.inf, math.inf
    return float(gains.mean()), float(gains.std(ddof=1)) / math.sqrt(R), R - 1.0


def attack_gains(
    records: Sequence[Measurement], releases: Iterable[ReleaseEvidence]
) -> Iterator[Gain]:
    """Yield gains over the copy of least noise, or the best measured one."""
    by_place = {(place(release), release.replicate): release for release in releases}
    for group in cells(records).values():
        first = group[0]
        cell = (first.knowledge or "", first.attack or "", first.coalition, first.attribute)
        here = [by_place[place(record), record.replicate] for record in group]
        paired = [release.paired[cell] for release in here if cell in release.paired]
        yield Gain(
            f"{first.attack} ({first.knowledge}, {first.attribute}) on {first.scheme}",
            first.coalition,
            *(averaged_pairs(paired) if len(paired) == len(group) else unpaired(group)),
            sum(release.rows for release in here),
            flattered=max(release.facts.get("fitted", 0.0) for release in here),
            from_files=any(release.from_files for release in here),
        )


def unpaired(group: Cell) -> tuple[float, float, float]:
    """Mean, standard error and degrees of freedom of gains as measured."""
    (mean, error), bar = pooled(group), group[0].error_bar
    if bar == "replicates-needed":
        error = uncertainty(group)
    return mean, math.nan if error is None else error, DEGREES.get(bar, len(group) - 1)


def noise_gains(pooling: Iterable[PooledCopies]) -> Iterator[Gain]:
    """Yield the removable shares of the best copy's noise."""
    groups = grouped(
        ((copies.point, copies.scheme, copies.coalition), copies) for copies in pooling
    )
    for (_, scheme, coalition), parts in groups.items():
        noise = tuple(part.pooling.noise for part in parts if part.pooling.noise is not None)
        rows = sum(part.rows for part in parts)
        if noise:
            observations = sum(part.observations for part in noise)
            share = math.fsum(part.share * part.observations for part in noise) / observations
            regressors = sum(part.regressors for part in noise)
            gain = share - regressors / observations
            error = math.sqrt(2.0 * regressors + 4.0 * observations * max(gain, 0.0)) / observations
            yield Gain(
                f"the noise drawn in {scheme}", coalition, gain, error, math.inf, rows, noise=noise
            )


def insider_gains(pooling: Sequence[PooledCopies]) -> Iterator[Gain]:
    """Yield gains of the insider learner, guards where a law is proved."""
    named = {(copies.point, copies.scheme, copies.coalition) for copies in pooling}
    seen = set()
    for copies in pooling:
        found, guard = copies.pooling.insider, copies.pooling.proof
        cell = copies.point, copies.scheme, copies.coalition if found is None else found.copies
        if (
            copies.pooling.by_classes
            or copies.replicate > 1
            or cell in seen
            or (guard and found is None)
        ):
            continue
        seen.add(cell)
        who = f"the insider learner, fitted to the originals, on {copies.scheme}"
        gain, error, rows = math.nan, math.nan, copies.rows
        if found is not None:
            pairs = zip(found.correlation, found.std_error, strict=True)
            reach, gain = max(
                zip((max(r, 0.0) + e for r, e in pairs), found.gain, strict=True),
                key=lambda one: one[0],
            )
            error, rows = reach**2 - gain, found.rows
        yield Gain(
            who,
            cell[2],
            gain,
            error,
            math.inf,
            rows,
            guard,
            estimated=True,
            insider=found,
            covered=cell in named,
        )
