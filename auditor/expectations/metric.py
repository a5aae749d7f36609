"""Bounds on any metric, measured and in theory, and on exposure.

A cell *holds* if its interval, pooled over replicates, and its closed form lie within the bound. It
*fails* if either lies wholly outside; else it is undecided (Holm over cells).

``exposure`` bounds knowledge of the worst attribute.

| bound | figure of one attribute | exposed |
| --- | --- | --- |
| ``unknown`` | the smaller of the normalized error and the squared ratio of median errors | 0 |
| ``close`` | share of records estimated within the tolerance, minus the share without copies | 1 |

Categories are close where a belief of at least 0.7 is right.

Every attribute, attack and coalition that the filter selects must meet the bounds. Attributes known
in clear are not judged.

- ``by``: also errors and close guesses in every group of records.
- Units of different sizes: also with equal weights of all units.
- ``data: {weight: …}``: also with these weights.
- Classes of records: ``unknown`` is also the share of sensitive values without a right claim.
- Copies without a law: ``unknown`` is also the share of values that no copy shows exactly. Exact
  values among others: undecided instead of «holds».
- Several categorical columns: ``unknown`` is also the doubt left of the most disclosed value.
- Copies from files with columns that no attack could use, or too few records to find a leak of the
  bound's size or of a group: undecided.
- Copies from files that lack records, cells or columns: undecided if the rest carries less noise.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar, Self

from pydantic import Field, model_validator

from auditor import registry
from auditor.base import scipy
from auditor.expectations.base import (
    Cell,
    Expectation,
    Filter,
    Judgement,
    Place,
    copies_released,
    identity,
    place,
    selector,
    worst,
)
from auditor.expectations.noise_follows_law import as_drawn
from auditor.numerics.statistics import Z_95, holm, one_sided, quantile
from auditor.registry import PluginParameters, register
from auditor.results.metrics import GUARANTEES, base, causes, measured_by, unused_columns
from auditor.results.records import (
    BELIEVED,
    FEWEST_REPLICATES,
    FITTED,
    KEPT,
    SHOWN,
    UNSEARCHED,
    VERDICTS,
    Evidence,
    Measurement,
    ReleaseEvidence,
    Verdict,
    cells,
    describe,
    in_clear,
    mean_theory,
    pooled,
    uncertainty,
)

LEVEL = 0.05
"""Probability of a false verdict. «Holds» takes a 95 % interval on the right side of the bound."""
ROUNDING = 1e-9

SKEWED = frozenset({"normalized_error", "median_error_ratio", "close", "distortion"})
SHARES_LEFT = frozenset({"normalized_error", "median_error_ratio"})
ERRORS = frozenset({"distortion", "rmse", "normalized_error", "median_error_ratio"})
"""Figures that an attack has one of in each release, however many records it holds."""


COARSE = 0.1
"""Standard error of a gain that is known too coarsely to be taken for a normal number: two rows
gave 0.93 ± 0.95 where 0.29 is true."""


class Limits(PluginParameters):
    """At least one bound, in the metric's unit."""

    at_least: float | None = None
    """smallest value allowed"""
    at_most: float | None = None
    """largest value allowed"""
    ways: ClassVar[str] = "at-least or at-most"

    @model_validator(mode="after")
    def _some_bound(self) -> Self:
        low, high = self.limits()
        if low is None and high is None:
            raise ValueError(f"needs a bound: {self.ways}")
        if low is not None and high is not None and low > high:
            raise ValueError("has a lower bound above its upper bound")
        return self

    def limits(self) -> tuple[float | None, float | None]:
        """Lower and upper bound."""
        return self.at_least, self.at_most

    @property
    def bound(self) -> float | list[float]:
        """The one bound, or both."""
        limits = [one for one in self.limits() if one is not None]
        return limits if len(limits) > 1 else limits[0]


class Bounds(Limits, Filter):
    """A filter and at least one bound."""

    between: list[float] | None = Field(None, min_length=2, max_length=2)
    """[smallest, largest]"""
    ways: ClassVar[str] = "at-least, at-most or between"

    def limits(self) -> tuple[float | None, float | None]:
        """Tightest lower and upper bound."""
        low, high = self.between or (None, None)
        lows = [bound for bound in (self.at_least, low) if bound is not None]
        highs = [bound for bound in (self.at_most, high) if bound is not None]
        return max(lows, default=None), min(highs, default=None)


@register
class MetricBound(Expectation):
    """Every selected cell of a metric meets a bound, measured and in theory."""

    name = "metric"
    reference = "holm1979"
    pooled_only = False

    class Parameters(Bounds):
        """The metric, its bounds, and the filter."""

        metric: str
        """the metric's name"""

    @property
    def metric(self) -> str:
        return str(self.parameters.metric)

    @property
    def needs_closeness(self) -> bool:  # type: ignore[override]
        """Whether the metric is measured on sampled records."""
        return measured_by(self.metric) == "closeness"

    def judge(self, evidence: Evidence) -> Judgement:
        groups = self.measured(evidence, self.metric, pooled_only=self.pooled_only)
        asked = self.parameters
        if not groups:
            return Judgement(
                "undecided",
                f"no measured cell of {self.metric} matches the filter",
                None,
                asked.bound,
            )
        judged = judge_bounds(groups, asked, self.metric)
        if judged.status != "holds" or base(self.metric) not in GUARANTEES:
            return judged
        return as_drawn(judged, self.metric, asked.limits()[1], asked, evidence)


def judge_bounds(groups: Sequence[Cell], asked: Limits, metric: str) -> Judgement:
    """Verdict on cells, each a list of its replicates' records."""
    sides = [
        (cell, limit, sign)
        for cell in groups
        for limit, sign in zip(asked.limits(), (1.0, -1.0), strict=True)
        if limit is not None
    ]
    # holds: reject «truth is outside»; fails: reject «truth is inside». Each family is held to 5 %.
    cut = ((cut_off(cell, limit) if sign > 0 else cell, limit, sign) for cell, limit, sign in sides)
    outside = holm([_p_beyond(cell, limit, -sign, ROUNDING) for cell, limit, sign in cut])
    inside = holm([_p_beyond(cell, limit, sign, -ROUNDING) for cell, limit, sign in sides])
    verdicts = [
        _verdict(*side, p_out, p_in)
        for side, p_out, p_in in zip(sides, outside, inside, strict=True)
    ]
    worst_first = [
        (VERDICTS.index(verdict), sign * (pooled(cell)[0] - limit))
        for verdict, (cell, limit, sign) in zip(verdicts, sides, strict=True)
    ]
    cell, limit, sign = sides[worst_first.index(min(worst_first))]
    record, expected, (value, error) = cell[0], mean_theory(cell), pooled(cell)
    bar = "" if error is None else f" ± {1.96 * error:.2g}"
    theory = "" if expected is None else f", theory {expected:.4g}"
    where = measured_at(record) + (f", {record.attribute}" if record.attribute != "*" else "")
    if record.metric.startswith("group_"):
        where += f"; {record.reason}"
    over = "1 cell" if len(groups) == 1 else f"{len(groups)} cells"
    counted = "one cell"
    if len(verdicts) > 1:
        counted = f"{verdicts.count('holds')} of {len(verdicts)} comparisons over {over} hold"
    wanted = f"wanted {'at least' if sign > 0 else 'at most'} {limit:g} ({where})"
    status = worst(verdicts)
    near = "beyond" if status == "fails" else "closest to"
    why = f"{near} the bound: {metric} {value:.4g}{bar}{theory}, {wanted}; {counted}"
    bare = sum(
        verdict == "undecided" and math.isinf(uncertainty(cell))
        for (cell, _, _), verdict in zip(sides, verdicts, strict=True)
    )
    if bare:
        why += (
            f"; {bare} without an error bar; of copies made here five replicates or more give one"
        )
    return Judgement(status, why, value, asked.bound)


def _p_beyond(cell: Cell, limit: float, side: float, slack: float) -> float:
    """P-value against a truth at the limit or beyond, above (side 1) or below (−1).

    An error is a mean of squares: for a limit above the estimate a gamma law with its relative
    standard error is taken.
    """
    value, error = pooled(cell)[0], towards(cell, side)
    size = max(value, mean_theory(cell) or 0.0)
    if side > 0 and cell[0].metric in ERRORS and 0.0 < size < limit and 0.0 < error < math.inf:
        shape = (size / error) ** 2
        return float(scipy.special.gammainc(shape, shape * value / limit))
    slack *= max(1.0, abs(limit))
    return one_sided(side * value, side * limit + slack, error * at_bound(cell, limit))


def towards(cell: Cell, side: float) -> float:
    """Standard error upwards (side 1) or downwards (−1)."""
    record = cell[0]
    end = record.ci_high if side > 0 else record.ci_low
    if len(cell) > 1 or record.metric not in SKEWED or not end or record.value is None:
        return uncertainty(cell)
    return max(0.0, side * (end - record.value)) / Z_95


def cut_off(cell: Cell, limit: float) -> Cell:
    """Draws of an error, cut off at twice a lower bound; a share of variance or of errors at 1.

    The mean does not grow: if it exceeds the bound, so does the truth. Lower ends of shares are of
    draws cut off at 1.
    """
    if cell[0].metric in SHARES_LEFT and len(cell) == 1 and (cell[0].value or 0.0) > 1.0 > limit:
        return [cell[0]._replace(value=1.0)]
    if cell[0].metric not in ERRORS or cell[0].error_bar != "replicates" or pooled(cell)[1] is None:
        return cell
    values = [min(one.value, 2.0 * limit) for one in cell if one.value is not None]
    if len(values) < FEWEST_REPLICATES or values == [one.value for one in cell]:
        return cell
    spread = statistics.stdev(values)
    return [
        one._replace(value=value, std_error=spread) for one, value in zip(cell, values, strict=True)
    ]


def at_bound(cell: Cell, limit: float) -> float:
    """Factor of an error bar if the truth were at the bound.

    A mean of squares spreads in proportion: 0.6 ± 0.6 from two rows does not exclude 1.5. A gain's
    spread is unknown for very few rows.
    """
    if cell[0].metric == "collusion_gain" and uncertainty(cell) > COARSE:
        return math.inf
    found = max(pooled(cell)[0], mean_theory(cell) or 0.0)
    return max(1.0, limit / found) if cell[0].metric in ERRORS and found > 0.0 else 1.0


def _verdict(cell: Cell, limit: float, sign: float, p_outside: float, p_inside: float) -> Verdict:
    theory = mean_theory(cell)
    beyond = theory is not None and sign * (theory - limit) < -ROUNDING * max(1.0, abs(limit))
    if beyond or p_inside <= LEVEL:
        return "fails"
    return "holds" if p_outside <= LEVEL / 2 else "undecided"


def measured_at(record: Measurement) -> str:
    """Place, for example ``corner-wave, llse, copies 1–5``."""
    return ", ".join(
        filter(
            None,
            (
                record.scheme,
                record.attack,
                record.knowledge,
                f"{'copy' if len(record.coalition) == 1 else 'copies'} {describe(record.coalition)}",
            ),
        )
    )


@register
class CollusionGain(MetricBound):
    """Pooling gains at least, or at most, so much over the best copy alone."""

    name = "collusion-gain"
    trial = MappingProxyType({"at-least": 0.5})
    pooled_only = True

    @property
    def metric(self) -> str:
        return "collusion_gain"

    class Parameters(Bounds):
        """Bounds on the gain, and the filter; by default all pooled copies."""


# --------------------------------------------------------------------------------------------------


LEAK = 94
"""Records of a leak that the search finds 95 times in 100, 75 of them among the training rows of five
folds: λ in ``∛(1 + λ/31) = 1 − 2/279 + (4.5 + 1.6)·√(2/279)``, of the deviate that divides rows by 32
values.
"""
CLOSE_GUESSES = "close guesses"
METRIC, MEDIAN, CLOSE = "normalized_error", "median_error_ratio", "close"
GIVEN_AWAY = "disclosed_beyond_chance"
WITHIN = "coalition", "attribute"
"""Fields that differ within the figures of one attack."""


class Shares(Limits):
    """Bounds on a share."""

    at_least: float | None = Field(None, ge=0, le=1)
    """smallest share allowed: 0.5 is half"""
    at_most: float | None = Field(None, ge=0, le=1)
    """largest share allowed"""


@register
class Exposure(Expectation):
    """Every attribute stays partly unknown to every adversary (Holm)."""

    name = "exposure"
    needs_closeness = True
    reference = "holm1979"
    trial = MappingProxyType({"unknown": {"at-least": 0.5}})

    class Parameters(Filter):
        """The bounds and the filter; by default every attribute by itself."""

        unknown: Shares | None = None
        """{at-least: share} of an attribute that stays unknown"""
        close: Shares | None = None
        """{at-most: share} of records with a close guess thanks to the copies"""

        by: str | None = None
        """a column of the data: no group of 50 records or more may be worse than the bounds"""

        @model_validator(mode="after")
        def _some_figure(self) -> Exposure.Parameters:
            if self.unknown is None and self.close is None:
                raise ValueError("needs a bound: unknown or close")
            return self

    @property
    def grouped_by(self) -> str | None:  # type: ignore[override]
        return self.parameters.by if isinstance(self.parameters, Exposure.Parameters) else None

    def judge(self, evidence: Evidence) -> Judgement:
        unknown, close = self.parameters.unknown, self.parameters.close
        judged, unused = list[Judgement](), ""
        if unknown is not None:
            judged.append(self._unknown(evidence, unknown))
        if close is not None:
            admits = self.admits(evidence, CLOSE, each_attribute=True)
            found = _not_in_clear(filter(admits, evidence.measurements))
            found += self._by_group("group_close", evidence)
            why = "no attack that the filter admits gave close guesses"
            none = Judgement("undecided", why, None, close.bound)
            judged.append(_bounded(found, close, CLOSE_GUESSES, evidence) if found else none)
        if unknown is None or unknown.at_least is not None:
            any_attack = dict.fromkeys(("attack", "knowledge", "coalition", "attribute"))
            filters = self.parameters.model_copy(update=any_attack)
            admits = selector(filters, None, copies_released(evidence), each_attribute=True)
            unused = unused_columns(filter(admits, evidence.measurements))
        if unused:
            judged.append(replace(judged[0], status="undecided", why=unused))
        status = worst([one.status for one in judged])
        because = causes(evidence.measurements)[:3] if status != "holds" else []
        first = next(one for one in judged if one.status == status)
        why = "; ".join([*(one.why for one in judged if one.status == status), *because])
        return replace(first, why=why)

    def _by_group(self, metric: str, evidence: Evidence) -> list[Measurement]:
        names = [metric.replace("group", each) for each in ("unit", "weighted")]
        if self.parameters.by is not None:
            names.append(f"{metric}({self.parameters.by}, ")
        admits = self.admits(evidence, None, each_attribute=True)
        found = [
            r for r in evidence.measurements if r.metric.startswith(tuple(names)) and admits(r)
        ]
        return _not_in_clear(found)

    def _unknown(self, evidence: Evidence, asked: Shares) -> Judgement:
        copies = copies_released(evidence)
        found = shares_unknown(evidence.measurements, self.parameters, asked, copies)
        found += self._by_group("group_error", evidence)
        if not found:
            return Judgement(
                "undecided",
                "no attack that the filter admits gave an error of an attribute",
                None,
                asked.bound,
            )
        grouped = any(r.metric.startswith("group_error(") for r in found)
        lacking = f"no group of 50 records by {self.parameters.by!r} was measured; "
        lacking *= bool(self.parameters.by and not grouped)
        judged = _bounded(found, asked, "share unknown", evidence, lacking)
        attacks = len({record.attack for record in found if record.attack})
        why = f"{judged.why}; {attacks} attack{'s' * (attacks > 1)} tried"
        limit = asked.at_least or 0.0
        explained = [r for r in found if r.reason and r.value is not None and r.value < limit]
        if judged.status == "fails" and explained:
            plainest = min(explained, key=lambda r: (round(r.value or 0.0, 6), len(r.coalition)))
            why = f"{why}; {plainest.reason}"
        judged = replace(judged, why=why)
        if judged.status != "holds" or asked.at_least is None:
            return judged
        here = {*map(place, found)}
        worse = (r.scheme for r in evidence.releases if r.understated and place(r) in here)
        barer = [*dict.fromkeys(worse)]
        kept = self.admits(evidence, KEPT, each_attribute=True)
        bare = max(filter(kept, evidence.measurements), key=lambda r: r.value or 0.0, default=None)
        if barer:
            why = f"of the part that copies have in common {why}; the rest of {', '.join(barer)} carries less noise"
        elif bare is not None:
            why = f"on average {why}; {bare.value:.2g} of the values of {bare.attribute!r} are known exactly, more than by chance"
        else:
            return judged
        return replace(judged, status="undecided", why=why)


def shares_unknown(
    measurements: Sequence[Measurement], filters: Filter, asked: Shares, copies: dict[Place, int]
) -> list[Measurement]:
    """Judged shares; ``copies`` are the numbers released."""
    # '*' is judged only by request
    whole = filters.attribute is not None
    admits = selector(filters, None, copies, each_attribute=True)
    metrics = (METRIC, GIVEN_AWAY, SHOWN, BELIEVED, KEPT, MEDIAN)
    found = [
        r
        for r in measurements
        if r.metric in metrics and r.status == "ok" and (r.attack or r.metric in (SHOWN, KEPT))
    ]
    apart = {identity(r, *WITHIN) for r in found if r.metric == METRIC and r.attribute != "*"}
    measured = _not_in_clear(
        r
        for r in found
        if (
            whole or r.attribute != "*" or r.metric == BELIEVED or identity(r, *WITHIN) not in apart
        )
        and admits(r)
    )

    def of(*metrics: str) -> Iterator[Measurement]:
        return (r for r in measured if r.metric in metrics)

    judged = [*of(METRIC), *map(_kept, of(GIVEN_AWAY))]
    # shown and disclosed values matter for lower bounds alone
    if asked.at_least is not None and judged:
        judged += map(_kept, of(SHOWN, BELIEVED, KEPT))
        judged += map(_squared, of(MEDIAN))
    return judged


def _bounded(
    found: Sequence[Measurement], asked: Shares, metric: str, evidence: Evidence, lacking: str = ""
) -> Judgement:
    groups = [*cells(found).values()]
    judged = judge_bounds(groups, asked, metric)
    shown = asked.at_most if metric == CLOSE_GUESSES else 1.0 - (asked.at_least or 1.0)
    unproved = [one for one in evidence.releases if not one.law and from_files(one)]
    files = [one.rows for one in unproved]
    holds = judged.status == "holds" and bool(files)
    searched = {place(r) for r in evidence.measurements if r.attack == FITTED and r.status == "ok"}
    if holds and {*map(place, unproved)} & {*map(place, found)} - searched:
        lacking += f"{UNSEARCHED}, which needs `perfect` knowledge and ten records per cell; "
    if holds and shown and (rows := min(files)) * shown < LEAK:
        lacking += (
            f"no leak was found, but one of {min(LEAK, rows)} of the {rows:,} records could escape "
            f"notice; about {_rounded_up(LEAK / shown):,.0f} records would do; "
        )
    stated = (re.search(r"^the group by .* has ([\d,]+) records$", r.reason or "") for r in found)
    smallest = min((int(size[1].replace(",", "")) for size in stated if size), default=LEAK)
    if holds and smallest < LEAK:
        lacking += (
            f"no leak was found, but one of a group's {smallest} records could escape notice; "
            f"{LEAK} in every group would do; "
        )
    if lacking:
        status = worst([judged.status, "undecided"])
        judged = replace(judged, status=status, why=lacking + judged.why)
    return with_remedy(judged, groups, asked, evidence)


def from_files(release: ReleaseEvidence) -> bool:
    """Whether the copies were made elsewhere."""
    return bool(release.plugin) and not registry.get("scheme", release.plugin).makes_copies


def with_remedy(
    judged: Judgement, groups: Sequence[Cell], asked: Shares, evidence: Evidence
) -> Judgement:
    """Add the records, or the level, that would decide the verdict.

    Error bars shrink with the root of the records: all cells must clear the bound, or the first
    beyond it decides. A share unknown is taken as ``s/(s + c)`` at level ``s``, as for normal
    values and noise.
    """
    rows = {place(one): (one.rows, one.plugin) for one in evidence.releases}
    z, level = quantile(1 - LEVEL / (2 * len(groups)), math.inf), (0.0, 0.0)
    clear, beyond = list[int](), list[int]()
    for cell in groups if judged.status == "undecided" else ():
        (value, _), record = pooled(cell), cell[0]
        limit, side = (asked.at_least, -1.0) if asked.at_most is None else (asked.at_most, 1.0)
        n, plugin = rows.get(place(record), (0, ""))
        if limit is None or not n or limit == value:
            continue
        reach = z * towards(cell, side) * at_bound(cell, limit)
        if not math.isfinite(reach):
            continue
        if (times := (reach / (limit - value)) ** 2) <= 1:
            continue
        (clear if side * (limit - value) > 0 else beyond).append(math.ceil(n * times))
        wanted, least = limit - side * reach, min(record.levels, default=0.0)
        multiple = plugin and registry.get("scheme", plugin).level_of_original == 0.0
        if multiple and least and side < 0 < value < 1 and wanted < 1:
            more = least * (1 - value) / value * wanted / (1 - wanted)
            level = max(level, (more, least))
    if not clear + beyond:
        return judged
    needed = min(beyond) if beyond else max(clear)
    why = f"{judged.why}; too few records to decide, about {_rounded_up(needed):,.0f} would do"
    if level[0] > level[1]:
        why += f", or raise the level {level[1]:g} to {_rounded_up(level[0]):g}"
    return replace(judged, why=why)


def _rounded_up(x: float) -> float:
    step = 10.0 ** (math.floor(math.log10(x)) - 1)
    return math.ceil(x / step) * step


def _not_in_clear(measurements: Iterable[Measurement]) -> list[Measurement]:
    return [r for r in measurements if r.attribute not in in_clear(r.knowledge)]


def _squared(record: Measurement) -> Measurement:
    assert record.value is not None
    error = None if record.std_error is None else 2 * record.value * record.std_error
    ends = record.ci_low, record.ci_high
    low, high = (None if end is None else max(end, 0.0) ** 2 for end in ends)
    return record._replace(value=record.value**2, std_error=error, ci_low=low, ci_high=high)


def _kept(record: Measurement) -> Measurement:
    value, low, high, theory = (
        None if each is None else 1 - each
        for each in (record.value, record.ci_high, record.ci_low, record.theory)
    )
    return record._replace(value=value, ci_low=low, ci_high=high, theory=theory)
