"""Error bars of attacks on categories without closed forms.

A figure depends on the noise of the attacked records, and on the adversary's estimates. The audit
draws both again by the law, fits the attack, and measures the figure. Large tables are represented
by a sample. With ``s²`` the variance of R redraws, ``w`` the jackknife's variance within one, and
``f`` the sample's share of the records, the figure's variance is ``s² − (1 − f) w``, at least
``f s²``. Files without a law cannot be drawn again: a jackknife over row groups.

Assumed, *not checked*: copies follow their law; in a sample, the rows to estimate from are others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from auditor.adversary.categorical_attack import CategoricalView, Inference
from auditor.adversary.given import KnownPairs, SampleCounts
from auditor.adversary.knowledge import Estimated, KnownRecords
from auditor.audit.categorical.cell_records import Bar, Bars
from auditor.audit.categorical.posterior_measures import Frame, Sums
from auditor.audit.categorical.posterior_pass import Fitted, MeasureJob
from auditor.audit.counts.outcome_counts import CodeBlock
from auditor.audit.numeric.error_bars import redraw_bars
from auditor.data.columns.categorical_table import CategoricalTable
from auditor.numerics.statistics import jackknife_error
from auditor.schemes.replacement.draws import code_type, replacements, sent_through
from auditor.schemes.replacement.law import UniformLaw, step
from auditor.types import Array, Coalition, Codes

Fit = Callable[[CategoricalView, Coalition], tuple[Inference, Frame]]
"""Fits an attack to a view of all copies and a coalition."""

REDRAWS = 59
"""Redraws that all miss an event of probability 1/20 in 5 % of audits."""
MOST_RECORDS, FEWEST, MOST_NUMBERS = 2**16, 2**11, 2**21
"""Most and fewest records of a redraw, and numbers in their posteriors."""
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
    most = min(MOST_RECORDS, max(FEWEST, MOST_NUMBERS // view.size))
    share = min(1.0, most / data.rows)
    again = [_figures(_redrawn(view, data, sums, fit, rng, most)) for _ in range(many)]
    bars: dict[Coalition, Bars] = {}
    for coalition, figures in _figures(sums).items():
        found = dict[str, Bar]()
        for name, figure in figures.items():
            drawn = np.array([each[coalition][name] for each in again])
            one = drawn[:, 0]
            if share < 1.0 and (spread := one.var(ddof=1)) > 0.0:
                within = float((jackknife_error(drawn[:, 1:].T) ** 2).mean())
                share_left = max(share, 1.0 - (1.0 - share) * within / spread)
            else:
                share_left = 1.0
            error, low, high = redraw_bars(figure[:1], one[:, None], share_left)
            found[name] = Bar(float(error[0]), float(max(low[0], high[0])), "redraws")
        bars[coalition] = found
    return bars


def _redrawn(
    view: CategoricalView,
    data: CategoricalTable,
    coalitions: Mapping[Coalition, Sums],
    fit: Fit,
    rng: np.random.Generator,
    most: int,
) -> Mapping[Coalition, Sums]:
    """Return the sums of one redraw."""
    known, n, whole = view.knowledge, min(data.rows, most), data.rows <= most
    rows = known.rows if isinstance(known, Estimated) else 0
    rows = known.count if isinstance(known, KnownRecords) else rows
    if whole:
        x, places = data.read(0, n), rng.choice(n, rows, replace=False)
    else:  # values in proportion, dealt to the groups; then the rows to estimate from
        dealt = np.argsort(np.arange(n) % GROUPS, kind="stable")
        q = np.append((dealt + 0.5) / n, rng.random(rows))
        x = np.searchsorted(np.cumsum(data.prior), q).clip(max=view.size - 1)
        x, places = x.astype(code_type(view.size)), np.arange(n, n + rows)
    copies = simulated(view.law, x, rng)
    chosen = tuple(copy[places] for copy in copies)
    left = np.ones(x.size, dtype=bool)
    left[places] = whole and not isinstance(known, KnownRecords)
    if isinstance(known, KnownRecords):
        view = replace(view, given=KnownPairs(x[places], chosen))
    elif isinstance(known, Estimated):
        counts = (np.bincount(copy, minlength=view.size).astype(np.float64) for copy in chosen)
        view = replace(view, given=SampleCounts(tuple(counts)))
    fits = {coalition: fit(view, coalition) for coalition in coalitions}
    fitted = Fitted({c: one for c, (one, _) in fits.items()}, {c: f for c, (_, f) in fits.items()})
    ends = np.linspace(0, left.sum(), GROUPS + 1).astype(np.intp).tolist()
    groups = [(place, *ends[place : place + 2]) for place in range(GROUPS)]
    job = MeasureJob(view.size, [groups], {("", ""): fitted}, {})
    shown = dict(zip(view.copies, (copy[left] for copy in copies), strict=True))
    found = job.begin()
    job.take(CodeBlock(0, 0, x[left], shown.__getitem__), found)
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
