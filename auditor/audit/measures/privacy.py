"""Measures of privacy record by record, and in entropies, as flat records of results.

| measure | metric | what it asks |
| --- | --- | --- |
| ``within`` | ``within``, or ``within(0.1 relative)`` when there are several | for how many records is the estimate close enough |
| ``exact`` | ``exact``, ``exact_gain`` | for how many records does it round to the true value, and how many beyond chance |
| ``error-quantiles`` | ``error_quantile(0.5)`` | how far off is it for the record in the middle |
| ``interval-privacy`` | ``interval_privacy``, ``localised_width``, ``localised_share`` | how wide must an interval be to hold the truth |
| ``candidates-left`` | ``candidates_left`` | between how many values does an attack still waver |
| ``entropy-privacy`` | ``entropy_privacy``, ``privacy_loss`` | how uncertain is a value still, whatever the attack |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from auditor.audit.base.records import ALL, CellContext, number
from auditor.audit.measures.entropy import (
    attribute_histogram,
    entropy,
    information,
    lattice_histogram,
)
from auditor.audit.numeric.error_bars import with_total
from auditor.audit.numeric.error_tally import Rounding, Tally, Tolerance, reportable, size_quantile
from auditor.data.columns.resolution import Resolution
from auditor.data.table import Table
from auditor.errors import NotApplicable
from auditor.numerics.blocks import block_head
from auditor.numerics.combination import best_unbiased_combination
from auditor.numerics.linear_algebra import is_diagonal
from auditor.numerics.statistics import Z_95
from auditor.results.records import ErrorBar, Measurement
from auditor.scenario.model import Scenario
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw
from auditor.types import Array, Coalition


def tolerances(scenario: Scenario) -> tuple[Tolerance, ...]:
    """Return the tolerances a scenario asks for."""
    measure = scenario.measure("within")
    if measure is None:
        return ()
    entries = measure.options.get("tolerances", [measure.options])
    return tuple(Tolerance(float(entry["tolerance"]), entry.get("of", "std")) for entry in entries)


def wanted_tally(scenario: Scenario, scale: Array, table: Table) -> Tally:
    """Return an empty tally of what a scenario asks to be measured row by row of a table; ``exact`` stands last."""
    spread, intervals = scenario.measure("error-distribution"), scenario.measure("interval-privacy")
    return Tally(
        scale,
        (
            *tolerances(scenario),
            *([] if scenario.measure("exact") is None else [Rounding(table.resolution.steps)]),
        ),
        bins=0 if spread is None else int(spread.options["bins"]),
        reach=3.0 if spread is None else float(spread.options["reach"]),
        sizes=intervals is not None or scenario.measure("error-quantiles") is not None,
        confidence=None if intervals is None else float(intervals.options["confidence"]),
        candidates=scenario.measure("candidates-left") is not None,
        head=None
        if spread is None
        else block_head(table.rows, len(scale), int(spread.options["records"])),
    )


class _Cells:
    """Makes the records of one attack's cells."""

    def __init__(
        self,
        context: CellContext,
        attack: str | None,
        knowledge: str | None,
        coalitions: Sequence[Coalition],
        wanted: Sequence[int],
    ) -> None:
        self._context, self._attack, self._knowledge = context, attack, knowledge
        self._coalitions, self._wanted = coalitions, wanted

    def records(
        self,
        metric: str,
        columns: Sequence[Array],
        bar: ErrorBar,
        highest: float = math.inf,
        lowest: float = 0.0,
    ) -> list[Measurement]:
        """Return a metric's records from value, standard error, both ends of the interval and theory, each of shape (B, N + 1)."""
        value, error, low, high, theory = columns
        return [
            self._context.record(
                metric,
                self._coalitions[b],
                float(value[b, j]),
                number(float(error[b, j])),
                (
                    number(float(np.maximum(low[b, j], lowest))),
                    number(float(np.minimum(high[b, j], highest))),
                ),
                number(float(theory[b, j])),
                attack=self._attack,
                knowledge=self._knowledge,
                attribute=name,
                error_bar=bar if not math.isnan(error[b, j]) else "none",
            )
            for b in self._wanted
            for j, name in enumerate((*self._context.attributes, ALL))
            if not math.isnan(value[b, j])
        ]

    def withheld(
        self, metric: str, reason: str, attributes: Sequence[str] = (ALL,)
    ) -> list[Measurement]:
        """Return records that say why a metric is not measured."""
        return [
            self._context.record(
                metric,
                self._coalitions[b],
                attack=self._attack,
                knowledge=self._knowledge,
                attribute=name,
                status="not-applicable",
                reason=reason,
            )
            for b in self._wanted
            for name in attributes
        ]


def tally_records(
    scenario: Scenario,
    context: CellContext,
    attack: str,
    knowledge: str,
    coalitions: Sequence[Coalition],
    wanted: Sequence[int],
    tally: Tally,
    table: Table,
) -> list[Measurement]:
    """Return the records of everything that was counted row by row; ``*`` is over all attributes' values."""
    cells = _Cells(context, attack, knowledge, coalitions, wanted)
    records: list[Measurement] = []
    asked = tolerances(scenario)
    for place, tolerance in enumerate(asked):
        value, error, theory, bar = _shares(tally, place)
        name = "within" if len(asked) == 1 else f"within({tolerance.label})"
        records += cells.records(
            name, (*_interval(*map(with_total, (value, error))), with_total(theory)), bar, 1.0
        )
    if scenario.measure("exact") is not None:
        records += _exact(cells, tally, table.resolution, context.attributes)
    quantiles = scenario.measure("error-quantiles")
    for probability in () if quantiles is None else quantiles.options["probabilities"]:
        records += _quantile(cells, f"error_quantile({probability:g})", tally, probability, 1.0)
    if tally.confidence is not None:
        records += _quantile(cells, "interval_privacy", tally, tally.confidence, 2.0)
        records += _localised(cells, tally)
    return records + _left(cells, tally)


def _interval(value: Array, error: Array) -> tuple[Array, Array, Array, Array]:
    return value, error, value - Z_95 * error, value + Z_95 * error


def _shares(tally: Tally, place: int) -> tuple[Array, Array, Array, ErrorBar]:
    """Share of values recovered, its standard error and theory, shapes (B, N).

    With exact chances p of a hit the standard error is ``sqrt(Σ p(1−p))/n``, else the binomial one.
    """
    n, known = tally.rows, bool(tally.expected_hits)
    share = tally.hits[place] / n
    theory = tally.expected_hits[place] / n if known else np.full_like(share, np.nan)
    each = tally.hit_variance[place] / n**2 if known else share * (1 - share) / n
    # Hits of one record's attributes are dependent; (Σ se)² bounds the variance of their sum, which
    # a mean of errors is.
    return share, np.sqrt(each), theory, "closed-form" if known else "sampling"


def _exact(
    cells: _Cells, tally: Tally, resolution: Resolution, attributes: Sequence[str]
) -> list[Measurement]:
    """Share of values recovered exactly, and what of it is beyond guessing the commonest value; ``*`` over columns with a resolution."""
    has = ~np.isnan(resolution.steps)
    names = [name for name, found in zip(attributes, has, strict=True) if not found] + (
        [] if has.any() else [ALL]
    )
    reason = "a continuous column has no resolution at which a value could be recovered exactly"
    withheld = [
        record
        for metric in ("exact", "exact_gain")
        for record in cells.withheld(metric, reason, names)
    ]
    if not has.any():
        return withheld
    *parts, bar = _shares(tally, len(tally.tolerances) - 1)

    def columns(each: Array) -> Array:
        return np.concatenate(
            [np.where(has, each, np.nan), each[:, has].mean(axis=1, keepdims=True)], axis=1
        )

    value, error, theory = (columns(part) for part in parts)
    chance = columns(resolution.commonest[None, :])
    return [
        *cells.records("exact", (*_interval(value, error), theory), bar, 1.0),
        *cells.records(
            "exact_gain",
            (*_interval(value - chance, error), theory - chance),
            bar,
            1.0,
            lowest=-1.0,
        ),
        *withheld,
    ]


def _quantile(
    cells: _Cells, metric: str, tally: Tally, probability: float, times: float
) -> list[Measurement]:
    """A quantile of absolute errors, its interval from the quantiles ``± z·sqrt(p(1−p)/n)`` away, whatever the distribution."""
    if not reportable(probability, tally.rows):
        return cells.withheld(
            metric,
            f"{tally.rows} records are too few to tell this quantile without telling of single ones",
        )
    assert tally.size_counts is not None
    counts = np.concatenate(
        [tally.size_counts, tally.size_counts.sum(axis=1, keepdims=True)], axis=1
    )
    reach = Z_95 * math.sqrt(probability * (1.0 - probability) / tally.rows)
    value, low, high = (
        times * size_quantile(counts, p)
        for p in (probability, probability - reach, probability + reach)
    )
    return cells.records(
        metric,
        (value, (high - low) / (2.0 * Z_95), low, high, np.full_like(value, np.nan)),
        "sampling",
    )


def _localised(cells: _Cells, tally: Tally) -> list[Measurement]:
    """Mean width of the intervals an attack claims, and how many of them hold what they claim; nothing for attacks that claim none."""
    if tally.width is None or tally.width_square is None or tally.inside is None:
        return []
    n, nothing = tally.rows, np.full((tally.width.shape[0], tally.width.shape[1] + 1), np.nan)
    width, share = tally.width / n, tally.inside / n
    spread = np.sqrt(np.clip(tally.width_square / n - width**2, 0.0, None) / n)
    chance = np.sqrt(np.clip(share * (1.0 - share), 0.0, None) / n)
    return [
        *cells.records(
            "localised_width",
            (*_interval(with_total(width), with_total(spread)), nothing),
            "sampling",
        ),
        *cells.records(
            "localised_share",
            (*_interval(with_total(share), with_total(chance)), nothing),
            "sampling",
            1.0,
        ),
    ]


def _left(cells: _Cells, tally: Tally) -> list[Measurement]:
    """Mean number of values left; nothing for attacks that count none."""
    if tally.left is None or tally.left_square is None:
        return []
    left, nothing = (
        tally.left / tally.rows,
        np.full((tally.left.shape[0], tally.left.shape[1] + 1), np.nan),
    )
    spread = np.sqrt(np.clip(tally.left_square / tally.rows - left**2, 0.0, None) / tally.rows)
    return cells.records(
        "candidates_left",
        (*_interval(with_total(left), with_total(spread)), nothing),
        "sampling",
        lowest=1.0,
    )


def entropy_records(
    context: CellContext, table: Table, law: NoiseLaw | None, coalitions: Sequence[Coalition]
) -> list[Measurement]:
    """Return entropy privacy and its loss for every coalition: figures of the copies, whatever attack and knowledge."""
    if not isinstance(law, KroneckerNoise):
        return _withheld_entropies(
            context, coalitions, "needs the law of the noise, of one shape across the copies"
        )
    if law.distribution == "uniform" and not is_diagonal(law.shape):
        reason = (
            "uniform noise that is correlated between attributes is not uniform in any one of them"
        )
        return _withheld_entropies(context, coalitions, reason)
    # What is known of a single copy is not lost with a coalition that has no such figure.
    shown = law.distribution == "gaussian" or law.one_process
    withheld = [coalition for coalition in coalitions if not shown and len(coalition) > 1]
    cached = [coalition for coalition in coalitions if coalition not in set(withheld)]
    records = _withheld_entropies(
        context,
        withheld,
        f"pooled {law.distribution} noise has no density of its own; ask for single copies",
    )
    if not cached:
        return records
    try:
        left, lost = _entropies(context, table, law, cached)
    except NotApplicable as reason:
        return [*_withheld_entropies(context, cached, str(reason)), *records]
    cells, nothing = (
        _Cells(context, None, None, cached, range(len(cached))),
        [np.full_like(lost, np.nan)] * 4,
    )
    return [
        *cells.records("entropy_privacy", (left, *nothing), "none"),
        *cells.records("privacy_loss", (lost, *nothing), "none"),
        *records,
    ]


def _withheld_entropies(
    context: CellContext, coalitions: Sequence[Coalition], reason: str
) -> list[Measurement]:
    cells = _Cells(context, None, None, coalitions, range(len(coalitions)))
    return [*cells.withheld("entropy_privacy", reason), *cells.withheld("privacy_loss", reason)]


def _entropies(
    context: CellContext, table: Table, law: KroneckerNoise, coalitions: Sequence[Coalition]
) -> tuple[Array, Array]:
    """Return ``2^{h(X|Y)}`` in standard deviations and ``1 − 2^{−I}``, shapes (B, N + 1)."""
    left, lost = np.empty((len(coalitions), table.width)), np.empty((len(coalitions), table.width))
    for j in range(table.width):
        noise = law.density_at(1.0, j)
        edges, mass = (
            lattice_histogram(table.values[:, j], noise.unit)
            if noise.on_lattice
            else attribute_histogram(table.values[:, j])
        )
        whole = 2.0 ** entropy(mass, float(edges[1] - edges[0])) / math.sqrt(context.variances[j])
        cached = _remembered(
            lambda std, e=edges, m=mass, z=noise: information(e, m, replace(z, std=std))  # type: ignore[misc]
        )
        for b, coalition in enumerate(coalitions):
            std = math.sqrt(
                float(best_unbiased_combination(law.of(coalition).level_covariance)[1])
                * law.shape[j, j]
            )
            kept = 2.0 ** -cached(std) if std > 0 else 0.0
            left[b, j], lost[b, j] = whole * kept, 1.0 - kept
    return with_total(left), with_total(lost)


def _remembered(function: Callable[[float], float]) -> Callable[[float], float]:
    """Coalitions with the same least noise (all that hold one corner-wave copy) are worked out once."""
    known: dict[float, float] = {}

    def cached(std: float) -> float:
        key = float(f"{std:.12g}")
        if key not in known:
            known[key] = function(std)
        return known[key]

    return cached
