"""Measures of privacy from counts record by record.

| measure | metric | meaning |
| --- | --- | --- |
| ``within`` | ``within``, or ``within(0.1 relative)`` with several | share of estimates close to the truth |
| ``exact`` | ``exact``, ``exact_gain`` | share that rounds to the true value; beyond chance |
| ``error-quantiles`` | ``error_quantile(0.5)`` | quantile of absolute errors |
| ``interval-privacy`` | ``interval_privacy``, ``localised_width``, ``localised_share`` | width of intervals with the truth |
| ``candidates-left`` | ``candidates_left`` | number of values that an attack considers possible |
| | ``error_without_copies`` | error that known attributes leave in the others |
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from auditor.adversary.knowledge import Knowledge
from auditor.audit.base.request import ALL, CellContext, Cells
from auditor.audit.numeric.error_bars import Figure, with_total
from auditor.audit.numeric.error_tally import Rounding, Tally, Tolerance, reportable, size_quantile
from auditor.base.types import Array, Indices
from auditor.data.columns.scan import Resolution
from auditor.data.table import Table
from auditor.numerics.blocks import block_head
from auditor.numerics.linear_algebra import regression
from auditor.numerics.statistics import Z_95, share_error
from auditor.results.records import ErrorBar, Measurement
from auditor.scenario.model import Scenario

CONTINUOUS = "a continuous column has no resolution at which a value could be recovered exactly"


def tolerances(scenario: Scenario) -> tuple[Tolerance, ...]:
    """Tolerances of a scenario's measure ``within``."""
    measure = scenario.measure("within")
    if measure is None:
        return ()
    entries = measure.options.get("tolerances", [measure.options])
    return tuple(Tolerance(float(entry["tolerance"]), entry.get("of", "std")) for entry in entries)


def wanted_tally(scenario: Scenario, scale: Array, table: Table) -> Tally:
    """Empty tally for a scenario's measures; ``exact`` is last."""
    spread, intervals = scenario.measure("error-distribution"), scenario.measure("interval-privacy")
    exact = scenario.measure("exact") is not None
    tally = Tally(
        scale,
        (*tolerances(scenario), *([Rounding(table.resolution.steps)] if exact else [])),
        sizes=intervals is not None or scenario.measure("error-quantiles") is not None,
        confidence=None if intervals is None else float(intervals.options["confidence"]),
        candidates=scenario.measure("candidates-left") is not None,
    )
    if spread is not None:
        tally.bins, tally.reach = int(spread.options["bins"]), float(spread.options["reach"])
        tally.head = block_head(table.rows, len(scale), int(spread.options["records"]))
    return tally


def tally_records(
    scenario: Scenario, cells: Cells, tally: Tally, table: Table
) -> list[Measurement]:
    """Records of all counts; ``*`` is over all attributes."""
    records, asked, share = list[Measurement](), tolerances(scenario), (0.0, 1.0)
    for place, tolerance in enumerate(asked):
        parts, bar = shares(tally, place)
        name = "within" if len(asked) == 1 else f"within({tolerance.label})"
        value, error, theory = map(with_total, parts)
        records += cells.records(name, Figure.symmetric(value, error, Z_95, theory), bar, share)
    if scenario.measure("exact") is not None:
        records += _exact(cells, tally, table.resolution)
    quantiles = scenario.measure("error-quantiles")
    for probability in () if quantiles is None else quantiles.options["probabilities"]:
        records += _quantile(cells, f"error_quantile({probability:g})", tally, probability, 1.0)
    if tally.confidence is not None:
        records += _quantile(cells, "interval_privacy", tally, tally.confidence, 2.0)
    for metric, name, bounds in (
        ("localised_width", "width", (0.0, math.inf)),
        ("localised_share", "inside", share),
        ("candidates_left", "left", (1.0, math.inf)),
    ):
        if name in tally.sums:
            mean, square = (tally.sums[of] / tally.rows for of in (name, f"{name}_square"))
            spread = np.sqrt(np.clip(square - mean**2, 0.0, None) / tally.rows)
            figure = Figure.symmetric(with_total(mean), with_total(spread), Z_95)
            records += cells.records(metric, figure, "sampling", bounds)
    return records


def shares(tally: Tally, place: int) -> tuple[tuple[Array, Array, Array], ErrorBar]:
    """Share recovered, standard error and theory, shapes (B, N).

    With exact probabilities p the standard error is ``sqrt(Σ p(1−p))/n``, otherwise binomial. As a
    record's hits are dependent, the mean of errors bounds the error of the mean.
    """
    n, share = tally.rows, tally.sums["hits"][place] / tally.rows
    if "expected_hits" not in tally.sums:
        return (share, share_error(share, n), np.full_like(share, np.nan)), "sampling"
    error = np.sqrt(tally.sums["hit_variance"][place]) / n
    return (share, error, tally.sums["expected_hits"][place] / n), "closed-form"


def _exact(cells: Cells, tally: Tally, resolution: Resolution) -> list[Measurement]:
    """Shares recovered exactly, and beyond the commonest value's share.

    ``*`` is over columns with a resolution.
    """
    has = ~np.isnan(resolution.steps)
    asked = zip((*cells.context.attributes, ALL), (*has, has.any()), strict=True)
    names = [name for name, found in asked if not found]
    withheld = [
        record
        for metric in ("exact", "exact_gain")
        for record in cells.withheld(metric, CONTINUOUS, names)
    ]
    if not has.any():
        return withheld

    def columns(each: Array) -> Array:
        total = each[:, has].mean(axis=1, keepdims=True)
        return np.concatenate([np.where(has, each, np.nan), total], axis=1)

    parts, bar = shares(tally, len(tally.tolerances) - 1)
    value, error, theory = map(columns, parts)
    chance = columns(resolution.commonest[None, :])
    exact = Figure.symmetric(value, error, Z_95, theory)
    gain = Figure.symmetric(value - chance, error, Z_95, theory - chance)
    return [
        *cells.records("exact", exact, bar, (0.0, 1.0)),
        *cells.records("exact_gain", gain, bar, (-1.0, 1.0)),
        *withheld,
    ]


def _quantile(
    cells: Cells, metric: str, tally: Tally, probability: float, times: float
) -> list[Measurement]:
    """Records of a quantile of absolute errors."""
    if not reportable(probability, tally.rows):
        reason = (
            f"{tally.rows} records are too few to tell this quantile without telling of single ones"
        )
        return cells.withheld(metric, reason)
    sizes = tally.sums["size_counts"]
    counts = np.concatenate([sizes, sizes.sum(axis=1, keepdims=True)], axis=1)
    figure = quantile_figure(counts, probability, tally.rows, times)
    return cells.records(metric, figure, "sampling")


def quantile_figure(counts: Any, probability: float, rows: int, times: Any) -> Figure:
    """A multiple of the quantile of counted errors.

    Its interval is distribution-free: the quantiles at ``± z·sqrt(p(1−p)/n)``.
    """
    reach = Z_95 * share_error(probability, rows)
    value, low, high = (
        times * size_quantile(counts, probability + off) for off in (0.0, -reach, reach)
    )
    error, nothing = (high - low) / (2.0 * Z_95), np.full_like(value, np.nan)
    return Figure(value, error, value - low, high - value, nothing)


METRIC = "error_without_copies"


def errors_alone(K_X: Array, known: Sequence[int]) -> Array:
    """``diag(K_X − K_XK K_KK⁺ K_KX)``, shape (N,): errors of the best linear guess.

    Parameters
    ----------
    K_X : ndarray of shape (N, N)
        The data's covariance; it may be singular.
    known : sequence of int
        Places of the known attributes, with error 0.

    Examples
    --------
    >>> errors_alone(np.array([[1.0, 0.6], [0.6, 1.0]]), [0])
    array([0.  , 0.64])
    """
    places = np.array(known, dtype=int)
    told = regression(K_X[:, places], K_X[np.ix_(places, places)]) @ K_X[places]
    errors = np.clip(np.diag(K_X - told), 0.0, None)
    errors[places] = 0.0
    return errors


def errors_in_leaves(X: Array, leaf: Indices, known: Sequence[int]) -> Array:
    """Errors of regressions in each leaf of a published tree, shape (N,).

    0 in small leaves.

    Parameters
    ----------
    X : ndarray of shape (n, N)
    leaf : ndarray of shape (n,)
        By record.
    """
    errors = np.zeros(X.shape[1])
    for number in np.unique(leaf):
        rows = X[leaf == number]
        spare = len(rows) - len(known) - 1  # degrees of freedom
        if spare > 0:
            errors += errors_alone(np.cov(rows.T, ddof=0), known) * len(rows) / spare * len(rows)
    return errors / len(X)


def number_records(
    context: CellContext, knowledge: Knowledge, errors: Array
) -> Iterator[Measurement]:
    """Yield the variance share that known attributes leave unknown.

    ``errors`` are squared, shape (N,).
    """
    given = np.isin(context.attributes, knowledge.in_clear)
    parts = [(name, [place]) for place, name in enumerate(context.attributes) if not given[place]]
    for name, places in [*parts, (ALL, np.flatnonzero(~given).tolist())]:
        variance = float(context.variances[places].sum())
        if variance > 0:
            share = float(errors[places].sum()) / variance
            yield context.record(METRIC, context.everybody, share, attribute=name)
