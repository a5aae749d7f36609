"""Measures of privacy from counts record by record.

| measure | metric | meaning |
| --- | --- | --- |
| ``within`` | ``within``, or ``within(0.1 relative)`` with several | share of estimates close to the truth |
| ``exact`` | ``exact``, ``exact_gain`` | share that rounds to the true value; beyond chance |
| ``error-quantiles`` | ``error_quantile(0.5)`` | quantile of absolute errors |
| ``interval-privacy`` | ``interval_privacy``, ``localised_width``, ``localised_share`` | width of intervals with the truth |
| ``candidates-left`` | ``candidates_left`` | number of values that an attack considers possible |
| | ``error_without_copies`` | error that known attributes leave in the others |

Close guesses and median errors are over all records and by group.

| metric | value | without help from the copies |
| --- | --- | --- |
| ``close`` | share of records estimated within the tolerance, minus that of one constant | 0 |
| ``median_error_ratio`` | median absolute error, at least half a recording step, over the smallest one of a constant | 1 |
| ``group_error(COLUMN, k of G)`` | squared error over the group's own variance | 1 |
| ``group_close(COLUMN, k of G)`` | ``close`` in the group | 0 |

The first two are computed on some ``ROWS`` records, evenly spaced in every block. They show
exposure that a long tail's squared error hides.

``unit_error`` and ``unit_close`` weight all units equally; ``weighted_error`` and
``weighted_close`` use a column's weights.

Groups are numbered by size, never named by value. Groups below ``FEWEST`` sampled records have no
figure.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from auditor.adversary.knowledge import Knowledge
from auditor.audit.base.request import ALL, UNBOUNDED, CellContext, Cells
from auditor.audit.measures.utility import column_of
from auditor.audit.numeric.error_bars import Figure, redraw_bars, with_total
from auditor.audit.numeric.error_tally import FLOOR, Tally, Tolerance, reportable, size_quantile
from auditor.base.types import Array, Indices, Names, Pair
from auditor.data.columns.scan import Resolution, resolution
from auditor.data.table import Table
from auditor.numerics.blocks import block_head, row_blocks
from auditor.numerics.linear_algebra import quotient, regression
from auditor.numerics.statistics import Z_95, share_error
from auditor.results.records import ErrorBar, Measurement
from auditor.scenario.model import Scenario

CONTINUOUS = "a continuous column has no resolution at which a value could be recovered exactly"


def tolerances(scenario: Scenario) -> list[tuple[float, str]]:
    """Tolerances of a scenario's measure ``within``, each with its unit."""
    measure = scenario.measure("within")
    if measure is None:
        return []
    entries = measure.options.get("tolerances", [measure.options])
    return [(float(entry["tolerance"]), entry.get("of", "std")) for entry in entries]


def wanted_tally(scenario: Scenario, scale: Array, table: Table) -> Tally:
    """Empty tally for a scenario's measures; ``exact`` is last."""
    spread, intervals = scenario.measure("error-distribution"), scenario.measure("interval-privacy")
    wanted = [
        Tolerance(0.0, size)
        if of == "relative"
        else Tolerance(size * (scale if of == "std" else 1))
        for size, of in tolerances(scenario)
    ]
    if scenario.measure("exact") is not None:  # half-way fails
        wanted.append(Tolerance((0.5 - 1e-9) * table.resolution.steps))
    tally = Tally(
        scale,
        tuple(wanted),
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
    for place, (size, of) in enumerate(asked):
        parts, bar = shares(tally, place)
        name = "within" if len(asked) == 1 else f"within({size:g} {of})"
        value, error, theory = map(with_total, parts)
        records += cells.records(name, Figure.normal(value, error, theory), bar, share)
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
            figure = Figure.normal(with_total(mean), with_total(spread))
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
    exact = Figure.normal(value, error, theory)
    gain = Figure.normal(value - chance, error, theory - chance)
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


# --------------------------------------------------------------------------------------------------


ROWS = 20_000
"""Sampled records: the standard error of a share is at most 0.4 %."""
SHARE_OF_SPREAD = 0.1
"""Default tolerance as a share of the interquartile range."""

Tolerances = Mapping[str, float | Mapping[str, float]]
"""Largest errors of close guesses, by column: absolute, or ``{"relative": p}``."""


class Baseline(NamedTuple):
    """Tolerances, and the success of the best guess without copies.

    Attributes
    ----------
    tolerance : Tolerance
        Of close estimates.
    close : ndarray of shape (N,)
        Largest share of records close to one constant.
    median : ndarray of shape (N,)
        Smallest median absolute error of a constant guess.
    least : ndarray of shape (N,)
        Half a recording step, or 0.
    stride : int
        Every ``stride``-th record of a block is sampled.
    groups : sequence of (column, ndarray of shape (n,))
        Group of each sampled record, by column (``worst_groups``).
    units, weights : ndarray of shape (n,), optional
        Unit and weight of each sampled record.
    """

    tolerance: Tolerance
    close: Array
    median: Array
    least: Array
    stride: int
    groups: Sequence[tuple[str, Indices]] = ()
    units: Indices | None = None
    weights: Array | None = None


def baseline_of(scenario: Scenario, table: Table) -> Baseline | None:
    """Success of guesses without copies, if closeness is requested."""
    if not scenario.asks_closeness:
        return None
    stride, blocks = max(1, table.rows // ROWS), row_blocks(table.rows, table.width)
    X = np.concatenate([table.read(a, b)[::stride] for a, b in blocks])

    def sampled(values: Any) -> Any:
        return np.concatenate([values[a:b][::stride] for a, b in blocks])

    base = of_records(X, table.attributes, scenario.data.tolerance, stride)
    return with_weights(base, scenario, table, sampled)


def with_weights(
    base: Baseline, scenario: Scenario, table: Table, sampled: Callable[[Any], Any]
) -> Baseline:
    """Baseline with requested groups, units and weights; ``sampled`` takes its records."""

    def column(name: str) -> Any:
        return sampled(column_of(scenario, table, name))

    weight = scenario.data.weight
    return base._replace(
        groups=[(name, group_codes(column(name))) for name in scenario.grouped_by],
        units=None if table.units is None else sampled(table.units),
        weights=None if weight is None else column(weight),
    )


def of_records(X: Array, attributes: Names, tolerances: Tolerances, stride: int = 1) -> Baseline:
    """Tolerances of every column, and the success of constant guesses.

    Parameters
    ----------
    X : ndarray of shape (n, N)
        Sampled records.
    tolerances : mapping
        By column: in its units, or ``{"relative": p}``. By default a tenth of the interquartile
        range, or of 1.35 standard deviations if that is 0.
    """
    low, high = np.quantile(X, (0.25, 0.75), axis=0)
    spread = np.where(high > low, high - low, 1.35 * X.std(axis=0))
    absolute, relative = SHARE_OF_SPREAD * spread, np.zeros(X.shape[1])
    for name, asked in tolerances.items():
        if name in attributes:
            j = attributes.index(name)
            absolute[j], relative[j] = (
                (0.0, asked["relative"]) if isinstance(asked, Mapping) else (asked, 0.0)
            )
    tolerance, columns = Tolerance(absolute, relative), range(X.shape[1])
    reach = tolerance.reach(X)[:, 0]
    return Baseline(
        tolerance,
        np.array([best_constant_share(X[:, j], reach[:, j]) for j in columns]),
        np.array([least_median_error(X[:, j]) for j in columns]),
        np.nan_to_num(resolution(lambda: [X], *X.shape).steps) / 2.0,
        stride,
    )


def best_constant_share(x: Array, reach: Array, weights: Array | None = None) -> float:
    """Largest share of records x within ``reach`` of one constant.

    Records may have ``weights`` that sum to 1.

    Examples
    --------
    >>> best_constant_share(np.array([1.0, 2.0, 3.0, 9.0]), np.full(4, 1.0))
    0.75
    """
    w = np.full(len(x), 1.0 / len(x)) if weights is None else weights
    first, last = np.argsort(x - reach), np.argsort(x + reach)
    starts, ends = (x - reach)[first], (x + reach)[last]
    over = np.concatenate([[0.0], np.cumsum(w[last])])
    covered = np.cumsum(w[first]) - over[np.searchsorted(ends, starts)]
    return float(covered.max())


def least_median_error(x: Array) -> float:
    """Half the length of the shortest interval that holds half of the records.

    Examples
    --------
    >>> least_median_error(np.array([1.0, 2.0, 3.0, 9.0]))
    0.5
    """
    ordered, half = np.sort(x), math.ceil(len(x) / 2)
    return float((ordered[half - 1 :] - ordered[: len(x) - half + 1]).min()) / 2


def sampled(scale: Array, base: Baseline) -> Tally:
    """Empty tally for ``closeness_records``; ``scale``: deviations, (N,)."""
    weighted = base.groups or base.units is not None or base.weights is not None
    least = np.maximum(quotient(base.least, scale), FLOOR)
    return Tally(scale, (base.tolerance,), sizes=True, least=least, kept=[] if weighted else None)


def closeness_records(cells: Cells, tally: Tally, base: Baseline) -> list[Measurement]:
    """Both metrics of every coalition and attribute, with 95 % intervals.

    ``tally`` is of the sampled records, with hits within the tolerance first.
    """
    n, redrawn = tally.rows, tally.redrawn is not None
    (share, error, expected), method = shares(tally, 0)
    centre = share
    bar: ErrorBar = "redraws" if redrawn else "sampling"
    if method == "sampling" or base.stride > 1 or redrawn:
        (centre, error), method = wilson(share, n), bar
    off, reach = centre - share, Z_95 * error
    close = Figure(share - base.close, error, reach - off, reach + off, expected - base.close)
    scale = quotient(tally.scale, base.median, math.nan)
    ratio = quantile_figure(tally.sums["size_counts"], 0.5, n, scale)
    if tally.redrawn is not None:
        (near, ratios), part = tally.redrawn
        close = Figure(close.value, *redraw_bars(share, near, part), close.theory)
        again = redraw_bars(ratio.value, ratios * scale, part, most=1.0)
        ratio = Figure(ratio.value, *again, ratio.theory)
    records = list(weighted_records(cells, tally, base)) if tally.kept else []
    records += cells.records("close", close, method, UNBOUNDED)
    if reportable(0.5, n):
        records += cells.records("median_error_ratio", ratio, bar, UNBOUNDED)
    return records


def wilson(share: Any, n: float) -> Pair:
    """Centre and standard error of Wilson's interval of a share of n records."""
    z = Z_95
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    error = np.hypot(share_error(share, n), z / (2 * n)) / (1 + z**2 / n)
    return centre, error


FEWEST, MOST_VALUES, PARTS = 50, 50, 10
"""Fewest records of a group, most values of a column of numbers that are groups of their own, and
parts of equal size for more."""


def weighted_records(cells: Cells, tally: Tally, base: Baseline) -> Iterator[Measurement]:
    """Yield both metrics of groups, equal units, and a column's weights.

    None if some records were left out. Standard errors are over independent units. Shares are
    widened as by Agresti and Coull.
    """
    errors, x = (np.concatenate(part) for part in zip(*tally.kept or (), strict=True))
    errors = np.abs(errors)
    reach = base.tolerance.reach(x)[:, 0]
    every = np.arange(len(x))
    units = every if base.units is None else np.unique(base.units, return_inverse=True)[1].ravel()
    # metric, with a place for "error" or "close"; weights, which sum to 1; independent units; size
    asked = list[tuple[str, Array, Indices, str | None]]()
    for column, codes in base.groups:
        name = f"({column}, ".replace("{", "{{").replace("}", "}}")
        for g, size in enumerate(np.bincount(codes[codes >= 0]).tolist()):
            metric = f"group_{{}}{name}{g + 1} of {codes.max() + 1})"
            reason = f"the group by {column!r} has {size:,} records"
            asked.append((metric, (codes == g) / size, every, reason))
    sizes = np.bincount(units)[units]
    if np.ptp(sizes) > 0:
        asked.append(("unit_{}", 1.0 / sizes / (units.max() + 1), units, None))
    if base.weights is not None:
        asked.append(("weighted_{}", base.weights / base.weights.sum(), units, None))
    for kind, weights, independent, why in asked:
        if len(weights) != len(x):
            continue
        rows = np.flatnonzero(weights)
        w, units = weights[rows], independent[rows]
        n = 1.0 / float(np.square(np.bincount(units, w)).sum())
        for j, name in enumerate(cells.context.attributes):
            own, near = x[rows, j], reach[rows, j]
            variance = float(w @ (own - w @ own) ** 2)
            constant = best_constant_share(own, near, w)
            for b in cells.wanted:
                e = errors[rows, b, j].astype(float)
                counted = {"close": e <= near}
                if variance > 0:
                    counted["error"] = e**2 / variance
                for metric, each in counted.items():
                    value = float(w @ each)
                    spread = float(np.square(np.bincount(units, w * (each - value))).sum())
                    if metric == "close":
                        z = float(wilson(value, n)[0])
                        spread += (z * (1 - z) - value * (1 - value)) / n
                        value -= constant
                    figures = kind.format(metric), cells.coalitions[b], value, spread**0.5
                    record = cells.context.estimate(*figures, attribute=name)
                    yield record._replace(reason=why)


def parts_of_equal_size(values: Any, parts: int) -> Indices:
    """Part of each number, by quantiles."""
    return np.searchsorted(np.quantile(values, np.arange(1, parts) / parts), values)


def group_codes(values: Any) -> Indices:
    """Each record's group, numbered by size; −1 for groups below ``FEWEST``.

    Examples
    --------
    >>> group_codes(np.repeat(["a", "b", "c"], [60, 3, 90])).tolist()[::60]
    [1, -1, 0]
    """
    values = np.asarray(values)
    if values.dtype.kind == "f" and len(np.unique(values)) > MOST_VALUES:
        values = parts_of_equal_size(values, PARTS)
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    rank = np.argsort(np.argsort(-counts, kind="stable"))
    return np.where(counts < FEWEST, -1, rank)[codes.ravel()]
