"""Bounds on errors: no attack is better than is proved to be possible.

| bound | applies to | tolerance |
| --- | --- | --- |
| least error that the copies permit | attacks that are given no true values | error bar, and chance |
| a theorem's bounds on one attack | that attack | rounding |

The first holds on average over tables of the declared law. In one table of n records the best
attack's mean squared error has a relative standard error of √(2/n) if errors are normal, added to
the cell's own. Attacks that know true values, or the table's distribution, are left out. Below its
bound a cell refutes the stated law.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from auditor.expectations.base import Cell, Expectation, Judgement, place
from auditor.expectations.metric import LEVEL, ROUNDING, measured_at
from auditor.numerics.statistics import Z_95, holm, one_sided
from auditor.registry import register
from auditor.results.records import Evidence, Measurement, cells, in_clear, pooled, uncertainty

ERROR, FLOOR, CEILING = "normalized_error", "error_floor", "error_ceiling"
COARSE = 0.5
"""Half an interval, as a share of the bound, from which a cell that is above it shows nothing."""


@register
class AboveBound(Expectation):
    """No error lies outside the bounds that are proved for its attack."""

    name = "above-bound"
    reference = "cover2006, chapter 8"
    needs_metrics = (FLOOR,)

    def judge(self, evidence: Evidence) -> Judgement:
        bounds = {
            _key(group[0]): pooled(group)[0]
            for metric in (FLOOR, CEILING)
            for group in cells(
                r for r in evidence.measurements if r.metric == metric and r.status == "ok"
            ).values()
        }
        rows = {place(release): release.rows for release in evidence.releases}
        told = {
            (*place(release), *who)
            for release in evidence.releases
            for who in release.facts.get("told", ())
        }
        found = []
        for cell in self.measured(evidence, ERROR):
            first, where = cell[0], place(cell[0])
            knows = (*where, first.attack, first.knowledge) in told or in_clear(first.knowledge)
            found += _sides(cell, bounds, rows[where], not knows)
        return _judged(found)


class Side(NamedTuple):
    """A cell and one of its bounds.

    ``sign`` is 1 for a lower bound and −1 for an upper one; ``error`` is of the difference.
    """

    cell: Cell
    bound: float
    sign: float
    error: float
    what: str

    @property
    def slack(self) -> float:
        return self.sign * (pooled(self.cell)[0] - self.bound)

    @property
    def coarse(self) -> bool:
        return self.slack < Z_95 * self.error and Z_95 * self.error > COARSE * self.bound + ROUNDING


def _sides(
    cell: Cell, bounds: dict[tuple[object, ...], float], rows: int, copies_alone: bool
) -> list[Side]:
    """Cell with each bound; ``copies_alone``: without true values."""
    first, found = cell[0], list[Side]()
    floor = bounds.get(_key(first._replace(metric=FLOOR, attack=None, knowledge=None)))
    if floor is not None and copies_alone:
        error = math.hypot(uncertainty(cell), floor * math.sqrt(2.0 / rows))
        what = "from copies alone no attack can leave less than"
        found.append(Side(cell, floor, 1.0, error, what))
    for metric, sign, most in ((FLOOR, 1.0, "least"), (CEILING, -1.0, "most")):
        bound = bounds.get(_key(first._replace(metric=metric)))
        if bound is not None:
            found.append(Side(cell, bound, sign, 0.0, f"a theorem says at {most}"))
    return found


def _key(record: Measurement) -> tuple[object, ...]:
    return (str(record.sweep), *record[1:5], record.attribute, record.metric)


def _judged(found: Sequence[Side]) -> Judgement:
    if not found:
        return Judgement("undecided", "no selected cell has a bound")
    p = holm([one_sided(side.slack, -ROUNDING, side.error) for side in found])
    wrong = sum(each <= LEVEL for each in p)
    coarse = [side for side in found if side.coarse]
    order = [(q, side.slack / (side.error or ROUNDING)) for q, side in zip(p, found, strict=True)]
    side = found[order.index(min(order))]
    value, bound = pooled(side.cell)[0], side.bound
    bar = f" ± {Z_95 * side.error:.2g}" if side.error else ""
    where = f"{value:.4g}{bar} where {side.what} {bound:.4g} ({measured_at(side.cell[0])})"
    counted = f"{len(found)} {'bound' if len(found) == 1 else 'bounds'} on errors"
    if wrong:
        are = "is" if wrong == 1 else "are"
        why = f"{wrong} of {counted} {are} broken; the worst: {where}"
        return Judgement("fails", why, value, bound)
    if coarse:
        why = f"{len(coarse)} of {counted} are of cells measured too coarsely to tell; add rows or replicates"
        return Judgement("undecided", why, value, bound)
    return Judgement("holds", f"{counted} kept; the nearest: {where}", value, bound)
