"""Records of categorical cells and their error bars.

A figure depends on the noise of the attacked records, and on the adversary's estimates. The audit
draws both again by the law, fits the attack, and measures the figure. A panel represents large
tables: a share ``f`` of the records with one draw of copies. Then only the adversary's data are
drawn again, with variance ``s²``, and the noise adds ``f w``, with ``w`` the jackknife's variance
within the panel. Files without a law cannot be drawn again: a jackknife over row groups.

Assumed, *not checked*: copies follow their law; for a panel, the rows to estimate from are others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from auditor.adversary.attack import CategoricalView, Inference
from auditor.adversary.knowledge import Estimated, KnownRecords
from auditor.adversary.view import KnownPairs, SampleCounts
from auditor.audit.base.records import ALL, CellContext, number
from auditor.audit.categorical.outcome_counts import CodeBlock
from auditor.audit.categorical.posterior_measures import Expected, Frame, Sums, worst_growth
from auditor.audit.categorical.posterior_pass import Fit, Fitted, MeasureJob
from auditor.audit.numeric.error_bars import redraw_bars
from auditor.base.types import Array, Coalition, Codes
from auditor.data.columns.categorical_table import CategoricalTable
from auditor.numerics.statistics import jackknife_error, quantile
from auditor.results.records import BELIEVED, ErrorBar, Measurement
from auditor.schemes.replacement.base import code_type, replacements, sent_through
from auditor.schemes.replacement.law import UniformLaw, step

PROBABILITIES = ("reconstruction_probability", "posterior_max", "accuracy", "rho_breach")

ONE_RELEASE = "one release does not tell how far this would vary: ask for five replicates or more"
FILES = "copies from files do not tell how far this would vary: what the adversary learnt or was given would be other the next time"
"""Reasons for a figure without an interval."""


class Bar(NamedTuple):
    """Error bar: standard error, half-width of the 95 % interval, and source."""

    std_error: float
    reach: float
    source: ErrorBar

    @classmethod
    def normal(cls, std_error: float, source: ErrorBar, degrees: float = math.inf) -> Bar:
        """Return the bar of a normal figure, or by Student's t."""
        return cls(std_error, quantile(0.975, degrees) * std_error, source)

    def times(self, factor: float) -> Bar:
        """Return the bar of a multiple of the figure."""
        return Bar(self.std_error * factor, self.reach * factor, self.source)


Bars = Mapping[str, Bar]
"""By quantity, or metric."""


class Cell:
    """The records of one coalition under one attack.

    ``unknown`` is the reason for figures without an interval.
    """

    def __init__(
        self, context: CellContext, coalition: Coalition, unknown: str = ONE_RELEASE
    ) -> None:
        self._context, self._coalition, self._unknown = context, coalition, unknown
        self.records: list[Measurement] = []

    def add(
        self,
        metric: str,
        value: float,
        bar: Bar | None = None,
        theory: float | None = None,
        attribute: str = ALL,
        bounds: tuple[float, float] = (-math.inf, math.inf),
        varies: bool = False,
    ) -> None:
        """Add one record, with its interval cut at the metric's bounds.

        ``varies``: without an error bar, the record states the reason.
        """
        interval: tuple[float | None, float | None] = None, None
        if bar is not None:
            interval = max(bounds[0], value - bar.reach), min(bounds[1], value + bar.reach)
        self.records.append(
            self._context.record(
                metric,
                self._coalition,
                value,
                bar and bar.std_error,
                interval,
                None if theory is None else number(theory),
                attribute=attribute,
                reason=self._unknown if varies and bar is None else None,
                error_bar=bar.source if bar else "none",
            )
        )


def closed_bars(closed: Mapping[str, Expected]) -> Bars:
    """Return the error bars from closed forms."""
    return {name: Bar.normal(form.std_error, "closed-form") for name, form in closed.items()}


def variance(prior: Array, scores: Array | None) -> float:
    """Return the variance of scores under shares of shape (s,), or of indicators in total."""
    return float(1.0 - prior @ prior if scores is None else prior @ (scores - prior @ scores) ** 2)


def cell_records(
    cell: Cell,
    sums: Sums,
    closed: Mapping[str, Expected] | None,
    bars: Bars,
    prior: Any,
    scores: Any,
    odds: Array | None,
    parts: Mapping[str, Array] | None = None,
) -> None:
    """Add the records of every mean, and of the growth of belief.

    Parameters
    ----------
    closed : dict or None
        Closed forms by quantity.
    bars : dict
        Error bars by quantity.
    prior : ndarray of shape (s,)
        The table's own.
    scores : ndarray of shape (s,) or None
        A number for each value; None: the normalized error is over indicators, whose variances sum
        to ``1 − Σ q²``.
    odds : ndarray of shape (s,) or None
        Factor on the odds of a value that all copies show, if the adversary's prior is the table's.
    parts : dict of str to ndarray, optional
        In a domain of several attributes, the shares of each attribute's values.
    """
    positive = (0.0, math.inf)
    for name in sums.by_group:
        theory = math.nan if closed is None else closed[name].value
        value, bar, (metric, _, about) = sums.mean(name), bars.get(name), name.partition("/")
        about = about or ALL
        shares = (parts or {}).get(about, prior)
        if metric == "squared_error":
            own = None if about != ALL else scores
            scales = {"normalized_error": variance(shares, own)}
            if about == ALL:
                # mean over indicators without scores
                size = 1 if scores is not None else prior.size
                scales = {"distortion": size} | scales
                root = math.sqrt(value / size)
                slope = 0.5 / (root * size) if root > 0 else 0.0
            for scaled, scale in scales.items():
                if scale > 0:
                    own_bar = bar and bar.times(1.0 / scale)
                    cell.add(scaled, value / scale, own_bar, theory / scale, about, positive, True)
                if scaled == "distortion":
                    own_bar = bar and bar.times(slope)
                    cell.add("rmse", root, own_bar, math.sqrt(theory / size), ALL, positive, True)
            continue
        bounds = (0.0, 1.0) if metric in PROBABILITIES else (-math.inf, math.inf)
        cell.add(metric, value, bar, theory, about, bounds, True)
        if metric == "accuracy":
            usual = float(shares.max())
            cell.add("accuracy_gain", value - usual, bar, theory - usual, about, varies=True)
    for name, growth in sums.growth.items():
        worst = worst_growth(prior, odds) if odds is not None and name == ALL else None
        cell.add("delta_growth", growth, None, worst, name)


def belief_record(cell: Cell, sums: Sums, prior: Array) -> None:
    """Add the largest growth of belief in a true value, if the prior is the table's."""
    if "mutual_information" in sums.by_group and prior.size == sums.counts.size:
        believed = sums.most_believed(prior)
        if believed is not None:
            cell.add(BELIEVED, believed[0], Bar.normal(believed[1], "sampling"), bounds=(0.0, 1.0))


def gain_record(cell: Cell, sums: Sums, best: Sums, theory: float | None, bars: Bars) -> None:
    """Add the collusion gain in reconstruction error, ``1 − Σ(1 − P_C(x)) / Σ(1 − P_b(x))``."""
    total, gain, bar = float(best.errors.sum()), 0.0, bars.get("collusion_gain")
    if total > 0:
        gain = 1.0 - float(sums.errors.sum()) / total
    else:  # the best copy is the original
        bar = Bar(0.0, 0.0, "jackknife")
    cell.add("collusion_gain", gain, bar, theory, varies=True)


REDRAWS = 59
"""Redraws that all miss an event of probability 1/20 in 5 % of audits."""
MOST_RECORDS, FEWEST, MOST_NUMBERS = 2**10, 2**8, 2**20
"""Most and fewest records of a panel, and numbers in their posteriors: a variance from 1,024 records
has an error of 4 %."""
MOST_IN_ORDER = 2**16
"""Most records of a release that is drawn again for attacks on neighbouring records."""
GROUPS = 32
"""Row groups of a redraw."""


def jackknifed(sums: Mapping[Coalition, Sums]) -> dict[Coalition, Bars]:
    """Return jackknife error bars of every mean, over row groups, with estimates held fixed."""
    return {
        coalition: {
            name: Bar.normal(float(jackknife_error(each[1:])), "jackknife", each.size - 2)
            for name, each in figures.items()
            if each.size > 2
        }
        for coalition, figures in _figures(sums).items()
    }


def _figures(sums: Mapping[Coalition, Sums]) -> dict[Coalition, dict[str, Array]]:
    """Return every mean and the gain: of all records, then without each row group, (1 + G,)."""

    def left_out(each: Sums, groups: Array) -> Array:
        return groups.sum() - np.append(0.0, groups[each.sizes > 0])

    found = {}
    for coalition, each in sums.items():
        rows = left_out(each, each.sizes)
        with np.errstate(invalid="ignore", divide="ignore"):
            found[coalition] = {
                name: left_out(each, groups) / rows for name, groups in each.by_group.items()
            }
        singles = [sums[copy,] for copy in coalition if (copy,) in sums]
        if len(singles) == len(coalition):
            best = min(singles, key=lambda one: float(one.errors.sum()))
            together, alone = left_out(each, each.errors), left_out(best, best.errors)
            ratio = np.divide(together, alone, out=np.ones_like(alone), where=alone > 0)
            found[coalition]["collusion_gain"] = 1.0 - ratio
    return found


def redrawn_bars(
    view: CategoricalView,
    data: CategoricalTable,
    sums: Mapping[Coalition, Sums],
    fit: Fit,
    rng: np.random.Generator,
    many: int = REDRAWS,
) -> dict[Coalition, Bars]:
    """Return error bars of all figures of an attack, by coalition.

    Parameters
    ----------
    view : CategoricalView
        Of all copies, in the release itself.
    sums : dict of tuple of int to Sums
        The attack's sums in the release, for every coalition and its single copies.
    many : int
        Redraws.
    """
    most = (
        min(MOST_RECORDS, max(FEWEST, MOST_NUMBERS // view.size)) if many == REDRAWS else data.rows
    )
    panel, share = None, min(1.0, most / data.rows)
    if share < 1.0:  # values in proportion, dealt to the groups
        place = (np.argsort(np.arange(most) % GROUPS, kind="stable") + 0.5) / most
        x = np.searchsorted(np.cumsum(data.prior), place).clip(max=view.size - 1)
        panel = x.astype(code_type(view.size)), simulated(view.law, x, rng)
    refit = fit
    if not isinstance(view.knowledge, Estimated | KnownRecords):  # the fit to redraws is equal
        alike = {coalition: fit(view, coalition) for coalition in sums}
        starts = {
            one: (inference.for_redraws(), facts) for one, (inference, facts) in alike.items()
        }

        def started(_: CategoricalView, coalition: Coalition) -> tuple[Inference, Frame]:
            return starts[coalition]

        refit = started
    again = [_figures(_redrawn(view, data, sums, refit, rng, panel)) for _ in range(many)]
    bars: dict[Coalition, Bars] = {}
    for coalition, figures in _figures(sums).items():
        found = dict[str, Bar]()
        for name, figure in figures.items():
            drawn = np.array([each[coalition][name] for each in again])
            if panel is None:
                error, low, high = redraw_bars(figure[:1], drawn[:, :1], 1.0)
                found[name] = Bar(float(error[0]), float(max(low[0], high[0])), "redraws")
            else:
                noise = share * (jackknife_error(drawn[:, 1:].T) ** 2).mean()
                error = np.sqrt(drawn[:, 0].var(ddof=1) + noise)
                found[name] = Bar.normal(float(error), "redraws", many - 1)
        bars[coalition] = found
    return bars


def _redrawn(
    view: CategoricalView,
    data: CategoricalTable,
    coalitions: Mapping[Coalition, Sums],
    fit: Fit,
    rng: np.random.Generator,
    panel: tuple[Codes, list[Codes]] | None,
) -> Mapping[Coalition, Sums]:
    """Return the sums of one redraw."""
    known, rows = view.knowledge, 0
    if isinstance(known, Estimated | KnownRecords):
        rows = known.rows if isinstance(known, Estimated) else known.count
    if panel is None:
        x, places = data.read(0, data.rows), rng.choice(data.rows, rows, replace=False)
    else:
        drawn = rng.choice(view.size, rows, p=data.prior)
        x, places = drawn.astype(code_type(view.size)), np.arange(rows)
    copies = simulated(view.law, x, rng)
    chosen = tuple(copy[places] for copy in copies)
    if isinstance(known, KnownRecords):
        view = replace(view, given=KnownPairs(x[places], chosen))
    elif isinstance(known, Estimated):
        counts = (np.bincount(copy, minlength=view.size).astype(np.float64) for copy in chosen)
        view = replace(view, given=SampleCounts(tuple(counts)))
    if panel is not None:
        x, copies = panel
    elif isinstance(known, KnownRecords):
        x, copies = np.delete(x, places), [np.delete(copy, places) for copy in copies]
    fitted = Fitted({coalition: fit(view, coalition) for coalition in coalitions})
    ends = np.linspace(0, x.size, GROUPS + 1).astype(np.intp).tolist()
    groups = [(place, *ends[place : place + 2]) for place in range(GROUPS)]
    job = MeasureJob(view.size, [groups], {("", ""): fitted}, {})
    shown = dict(zip(view.copies, copies, strict=True))
    found = job.begin()
    job.take(CodeBlock(0, 0, x, shown.__getitem__), found)
    job.end(found)
    return found.sums["", ""]


def simulated(law: UniformLaw, x: Codes, rng: np.random.Generator) -> list[Codes]:
    """Return copies of values x, shape (b,), drawn by a law."""
    if not law.by_retention:  # fresh copies, each by its own matrix
        return [
            sent_through(x, law.transition_matrix(None, copy), rng)
            for copy in range(1, len(law.levels) + 1)
        ]
    copies, before, high = [x] * len(law.levels), x, 1.0
    for place in law.descending:
        kept = rng.random(x.size) < (
            step(high, law.levels[place]) if law.multilevel else law.levels[place]
        )
        copies[place] = np.where(
            kept,
            before if law.multilevel else x,
            replacements(rng, x.size, law.size, law.pi, x.dtype),
        )
        before, high = copies[place], law.levels[place]
    return copies
