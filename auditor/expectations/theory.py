"""Errors against closed forms, Theorem 3 and proved bounds."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from auditor.base.types import Array, Levels
from auditor.expectations.base import (
    Cell,
    Expectation,
    Filter,
    Judgement,
    Share,
    identity,
    listed,
    place,
)
from auditor.expectations.metric import ERRORS, LEVEL, ROUNDING, measured_at
from auditor.numerics.statistics import Z_95, holm, one_sided, quantile, two_sided
from auditor.registry import declaring, register
from auditor.results.records import (
    Evidence,
    cells,
    describe,
    in_clear,
    mean_theory,
    pooled,
    uncertainty,
)

FALSE_ALARM = 0.01
"""Chance that a true theory is refuted, over everything an expectation covers."""

FEWEST = 8
"""Replicates from which sign flips can refute at that rate: 2⁻⁷ < 0.01."""

MOST_FLIPPED = 16


@register
class MatchesTheory(Expectation):
    """Every error agrees with its closed form (two-sided, Holm, 1 %)."""

    name = "matches-theory"
    reference = "holm1979"

    class Parameters(Filter):
        """The filter, the metric, and the resolution of the measurement."""

        metric: str = "distortion"
        """metric to compare"""
        resolution: Share = 0.5
        """error bars wider than this share of theory leave it undecided"""

    def judge(self, evidence: Evidence) -> Judgement:
        found = self.chosen(evidence, self.parameters.metric)
        groups = list(cells([r for r in found if r.theory is not None]).values())
        if not groups:
            return Judgement("undecided", "no selected cell has a closed form")
        return compare(
            groups, [mean_theory(group) or 0.0 for group in groups], self.parameters.resolution
        )


def compare(groups: Sequence[Cell], expected: Sequence[float], resolution: float) -> Judgement:
    """Verdict on cells, compared with their theory.

    Parameters
    ----------
    groups : sequence of cells
        Each the records of its replicates.
    resolution : float
        Intervals wider than ± this share of theory leave the verdict undecided.
    """
    found = [agreement(group, truth) for group, truth in zip(groups, expected, strict=True)]
    p = holm([each.p for each in found])
    order = range(len(groups))
    at = min(order, key=lambda k: (p[k], found[k].p, -abs(found[k].value - expected[k])))
    value, truth = found[at].value, expected[at]
    bar, where = f" ± {found[at].half:.2g}", measured_at(groups[at][0])
    if bad := sum(q <= FALSE_ALARM for q in p):
        why = f"{bad} of {len(groups)} cells differ from theory; the worst is {value:.6g}{bar} where theory has {truth:.6g} ({where})"
        return Judgement("fails", why, value, truth)
    if few := sum(each.few for each in found):
        why = f"in {few} of {len(groups)} cells theory is of draws that all records share; at least {FEWEST} replicates can tell"
        return Judgement("undecided", why)
    # An exact rebuild's error bar may be rounding.
    coarse = sum(
        each.half > max(resolution * abs(t), ROUNDING * _scale(group))
        for each, t, group in zip(found, expected, groups, strict=True)
    )
    if coarse:
        why = f"{coarse} of {len(groups)} cells are measured too coarsely to tell; add rows or replicates"
        return Judgement("undecided", why)
    widest = max(
        (each.half / abs(t) for each, t in zip(found, expected, strict=True) if t), default=0.0
    )
    least = f"the one furthest from it in error bars: {value:.6g}{bar} against {truth:.6g}"
    why = f"{len(groups)} cells agree with theory; intervals of ± {widest:.1%} or finer; {least}"
    return Judgement("holds", why, value, truth)


class Agreement(NamedTuple):
    """One cell compared with its theory.

    Attributes
    ----------
    value : float
        Measured, replicates pooled.
    half : float
        Half of the 95 % interval of measurement minus theory.
    p : float
        Of «they are equal».
    few : bool
        Whether too few draws, which all records share, were made to refute theory.
    """

    value: float
    half: float
    p: float
    few: bool = False


def agreement(group: Cell, truth: float) -> Agreement:
    """Agreement of one cell's replicates with theory.

    Secret matrices and guesses are drawn once for all records, which one release's error bar omits.
    So replicates are compared with their own theory, in pairs, by Student's t. Sign flips must
    refute errors too.
    """
    value, error = pooled(group)
    scale, half, differences = _scale(group), Z_95 * (error or 0.0), _differences(group, truth)
    if (np.abs(differences[-1]) <= ROUNDING * scale).all():
        return Agreement(value, half, 1.0)
    drawn, R, bar = group[0].metric in ERRORS, len(group), group[0].error_bar
    if bar == "replicates":
        tests = [_paired(off, truth, scale) for off in differences]
        half = quantile(0.975, R - 1) * tests[0][1]
        if not drawn:
            return Agreement(value, half, tests[0][0])
        p, flips = max(p for p, _ in tests), sign_flips(differences[0])
        return Agreement(value, half, p if flips <= FALSE_ALARM else max(p, flips), R < FEWEST)
    if drawn and bar in ("redraws", "jackknife", "replicates-needed"):
        return Agreement(value, half, 1.0, few=True)
    return Agreement(value, half, two_sided(value - truth, error or 0.0, scale))


def _paired(off: Array, truth: float, scale: float) -> tuple[float, float]:
    mean, R = float(off.mean()), off.size
    # Few draws of a skewed error are mostly too small, with too small a spread: take it relative to
    # size.
    lucky = truth / (truth + mean) if 0.0 < truth + mean < truth else 1.0
    spread = float(off.std(ddof=1)) / math.sqrt(R) * lucky
    return two_sided(mean, spread, scale, R - 1), spread


def _differences(group: Cell, truth: float) -> list[Array]:
    """Relative differences, if no theory is 0, and differences."""
    values = np.array([r.value or 0.0 for r in group])
    theory = np.array([truth if r.theory is None else r.theory for r in group])
    shares = [(values / theory - 1.0) * truth] if (theory > ROUNDING * _scale(group)).all() else []
    return [*shares, values - theory]


def sign_flips(differences: Array) -> float:
    """Share of sign choices with a sum at least as far from 0.

    The p-value is exact for symmetric differences, and 0 for more than ``MOST_FLIPPED``.

    Examples
    --------
    >>> sign_flips(np.array([1.0, 2.0, 1.5]))
    0.25
    """
    if differences.size > MOST_FLIPPED:
        return 0.0
    sums = np.zeros(1)
    for difference in np.abs(differences):
        sums = np.concatenate([sums + difference, sums - difference])
    return float(np.mean(np.abs(sums) >= abs(differences.sum()) * (1.0 - 1e-12)))


def _scale(group: Cell) -> float:
    record = group[0]
    # Below 1e-12 of the variance an error is reported as 0, perhaps on one side only.
    rounded = any(each.value == 0.0 or each.theory == 0.0 for each in group)
    return max(abs(record.value or 0.0), abs(record.theory or 0.0), 1e-2 if rounded else 1e-6)


@register
class Theorem3(Expectation):
    """Independent copies pool to (1 + Σ 1/σ_i²)⁻¹ (li2012, Theorem 3)."""

    name = "theorem-3"
    reference = "li2012, Theorem 3"

    class Parameters(Filter):
        """The filter, for schemes with independent noise shaped like the data."""

        resolution: Share = 0.5
        """error bars wider than this share of theory leave it undecided"""

    def judge(self, evidence: Evidence) -> Judgement:
        filters = self.parameters
        fitting = declaring("scheme", "fresh_shaped_noise")
        best = declaring("attack", "best_linear")
        plugins = {place(release): release.plugin for release in evidence.releases}
        records = [
            r
            for r in self.chosen(evidence, "normalized_error")
            if r.theory is not None
            and (filters.scheme is not None or plugins[place(r)] in fitting)
            and (filters.attack is not None or r.attack in best)
        ]
        groups = list(cells(records).values())
        if not groups:
            names = ", ".join(map(str, listed(filters.scheme) or fitting))
            return Judgement(
                "undecided", f"no joint LLSE with perfect knowledge on {names} was measured"
            )
        # replicates may draw other levels
        expected = [float(np.mean([theorem_3(r.levels) for r in group])) for group in groups]
        for group, value in zip(groups, expected, strict=True):
            stated = mean_theory(group) or 0.0
            if abs(stated - value) > 1e-9:
                return Judgement(
                    "fails",
                    f"the stated law gives {stated:.6g} where Theorem 3 has {value:.6g} (copies {describe(group[0].coalition)})",
                    stated,
                    value,
                )
        return compare(groups, expected, filters.resolution)


def theorem_3(levels: Levels) -> float:
    """``(1 + Σ 1/σ_i²)⁻¹``, the error for independent noise.

    Source: li2012, Theorem 3, for noise ``σ_i² K_X``. 0 for a copy without noise. Tends to 0 only
    if ``Σ 1/σ_i²`` is unbounded.

    Examples
    --------
    >>> round(theorem_3([1.0, 4.0]), 4)
    0.4444
    """
    return 0.0 if min(levels) == 0 else 1.0 / (1.0 + sum(1.0 / level for level in levels))


ERROR, FLOOR = "normalized_error", "error_floor"
BOUNDS = {FLOOR: (1.0, "least"), "error_ceiling": (-1.0, "most")}
"""Side of an allowed error, and word, by metric."""
COARSE = 0.5
"""Half an interval, as a share of the bound, from which a cell that is above it shows nothing."""


@register
class AboveBound(Expectation):
    """No error lies outside the bounds that are proved for its attack.

    | bound | applies to | tolerance |
    | --- | --- | --- |
    | least error that the copies permit | attacks that are given no true values | error bar, and chance |
    | a theorem's bounds on one attack | that attack | rounding |

    The first holds on average over tables of the declared law. In one table of n records the best
    attack's mean squared error has a relative standard error of √(2/n) if errors are normal, added
    to the cell's own. Attacks that know true values, or the table's distribution, are left out.
    Below its bound a cell refutes the stated law.
    """

    name = "above-bound"
    reference = "cover2006, chapter 8"
    needs_metrics = (FLOOR,)

    def judge(self, evidence: Evidence) -> Judgement:
        proved = (r for r in evidence.measurements if r.metric in BOUNDS and r.status == "ok")
        bounds = {
            (group[0].metric, identity(group[0])): pooled(group)[0]
            for group in cells(proved).values()
        }
        rows = {place(release): release.rows for release in evidence.releases}
        told = {
            (*place(release), *who)
            for release in evidence.releases
            for who in release.facts.get("told", ())
        }
        found = list[tuple[float, float, float, float, str]]()

        def add(cell: Cell, bound: float, sign: float, error: float, what: str) -> None:
            value, bar = pooled(cell)[0], f" ± {Z_95 * error:.2g}" if error else ""
            found.append(
                (
                    sign * (value - bound),
                    error,
                    value,
                    bound,
                    f"{value:.4g}{bar} where {what} {bound:.4g} ({measured_at(cell[0])})",
                )
            )

        for cell in self.measured(evidence, ERROR):
            first, where = cell[0], place(cell[0])
            knows = (*where, first.attack, first.knowledge) in told or in_clear(first.knowledge)
            floor = bounds.get((FLOOR, identity(first._replace(attack=None, knowledge=None))))
            if floor is not None and not knows:
                error = math.hypot(uncertainty(cell), floor * math.sqrt(2.0 / rows[where]))
                add(cell, floor, 1.0, error, "from copies alone no attack can leave less than")
            for metric, (sign, most) in BOUNDS.items():
                bound = bounds.get((metric, identity(first)))
                if bound is not None:
                    add(cell, bound, sign, 0.0, f"a theorem says at {most}")
        if not found:
            return Judgement("undecided", "no selected cell has a bound")
        p = holm([one_sided(slack, -ROUNDING, error) for slack, error, *_ in found])
        wrong = sum(each <= LEVEL for each in p)
        coarse = sum(
            slack < Z_95 * error and Z_95 * error > COARSE * bound + ROUNDING
            for slack, error, _, bound, _ in found
        )
        nearest = min(range(len(p)), key=lambda k: (p[k], found[k][0] / (found[k][1] or ROUNDING)))
        *_, value, bound, nearest_to = found[nearest]
        counted = f"{len(found)} {'bound' if len(found) == 1 else 'bounds'} on errors"
        if wrong:
            are = "is" if wrong == 1 else "are"
            return Judgement(
                "fails", f"{wrong} of {counted} {are} broken; the worst: {nearest_to}", value, bound
            )
        if coarse:
            return Judgement(
                "undecided",
                f"{coarse} of {counted} are of cells measured too coarsely to tell; add rows or replicates",
                value,
                bound,
            )
        return Judgement("holds", f"{counted} kept; the nearest: {nearest_to}", value, bound)
