"""Error bars of categorical figures.

The noise of attacked records and the adversary's estimates are drawn again by the law. A panel
represents large tables: a share ``f`` of the records with one draw of copies. Then only the
adversary's data are drawn again, with variance ``s²``, and the noise adds ``f w``, with ``w`` the
jackknife's variance within the panel. Without a law, a jackknife over row groups.

Assumed, *not checked*: copies follow their law; for a panel, the rows to estimate from are others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from auditor.adversary.knowledge import Estimated, KnownRecords
from auditor.audit.base.request import Bar
from auditor.audit.categorical.posterior_pass import Attacker, Fit, Fitted, MeasureJob, given_rows
from auditor.audit.categorical.release import CodeBlock, Sums
from auditor.audit.numeric.error_bars import redraw_bars
from auditor.base.types import Array, Coalition, Codes
from auditor.numerics.random_streams import stream
from auditor.numerics.statistics import jackknife_error
from auditor.results.records import ROW_REDRAWS
from auditor.schemes.replacement.base import code_type, replacements, sent_through
from auditor.schemes.replacement.law import UniformLaw, step

Bars = Mapping[str, Bar]
"""Error bars by measure."""

REDRAWS = 59
"""Redraws that all miss an event of probability 1/20 in 5 % of audits."""
MOST_RECORDS, FEWEST, MOST_NUMBERS = 2**10, 2**8, 2**20
"""Most and fewest records of a panel, and numbers in their posteriors: a variance is known to 4 %.
"""
GROUPS = 32
"""Row groups of a redraw."""


def jackknifed(sums: Mapping[Coalition, Sums]) -> dict[Coalition, Bars]:
    """Jackknife error bars of every mean over row groups, estimates held fixed."""
    return {
        coalition: {
            name: Bar.normal(float(jackknife_error(each[1:])), "jackknife", each.size - 2)
            for name, each in figures.items()
            if each.size > 2
        }
        for coalition, figures in _figures(sums).items()
    }


def _figures(sums: Mapping[Coalition, Sums]) -> dict[Coalition, dict[str, Array]]:
    def left_out(each: Sums, groups: Array) -> Array:
        return groups.sum() - np.append(0.0, groups[each.sizes > 0])

    found = {}
    for coalition, each in sums.items():
        rows = left_out(each, each.sizes)
        with np.errstate(invalid="ignore", divide="ignore"):
            found[coalition] = {
                name: left_out(each, groups) / rows for name, groups in each.by_group.items()
            }
        singles = [sums[copy,] for copy in coalition]
        best = min(singles, key=lambda one: float(one.errors.sum()))
        together, alone = left_out(each, each.errors), left_out(best, best.errors)
        ratio = np.divide(together, alone, out=np.ones_like(alone), where=alone > 0)
        found[coalition]["collusion_gain"] = 1.0 - ratio
    return found


def redrawn_bars(
    attacker: Attacker, sums: Mapping[Coalition, Sums], serial: bool
) -> dict[Coalition, Bars]:
    """Error bars of all figures of an attack, by coalition.

    Parameters
    ----------
    sums : dict of tuple of int to Sums
        Sums for coalitions and their single copies.
    serial : bool
        Whether records depend on their neighbours and need no panel.
    """
    view, data, key = attacker.view, attacker.release.data, attacker.release.key
    rng = stream(key.audit_seed, key.scheme, key.replicate, "redraws", *attacker.name)
    many = ROW_REDRAWS if serial else REDRAWS
    most = data.rows if serial else min(MOST_RECORDS, max(FEWEST, MOST_NUMBERS // view.size))
    panel, share = None, min(1.0, most / data.rows)
    if share < 1.0:  # values in proportion, dealt to the groups
        place = (np.argsort(np.arange(most) % GROUPS, kind="stable") + 0.5) / most
        x = np.searchsorted(np.cumsum(data.prior), place).clip(max=view.size - 1)
        panel = x.astype(code_type(view.size)), simulated(view.law, x, rng)
    fits = None
    if not isinstance(view.knowledge, Estimated | KnownRecords):  # the fit to redraws is equal
        fits = {coalition: attacker.fit(view, coalition) for coalition in sums}
        fits = {one: (inference.for_redraws(), frame) for one, (inference, frame) in fits.items()}
    # equal fits make an equal panel in every redraw
    draws = many if panel is None or fits is None else 1
    again = [_figures(_redrawn(attacker, list(sums), fits, rng, panel)) for _ in range(draws)]
    again *= many // draws
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
    attacker: Attacker,
    coalitions: Sequence[Coalition],
    fits: Mapping[Coalition, Fit] | None,
    rng: np.random.Generator,
    panel: tuple[Codes, list[Codes]] | None,
) -> Mapping[Coalition, Sums]:
    view, data, rows = attacker.view, attacker.release.data, 0
    known = view.knowledge
    if isinstance(known, Estimated | KnownRecords):
        rows = known.rows if isinstance(known, Estimated) else known.count
    if panel is None:
        x, places = data.read(0, data.rows), rng.choice(data.rows, rows, replace=False)
    else:
        drawn = rng.choice(view.size, rows, p=data.prior)
        x, places = drawn.astype(code_type(view.size)), np.arange(rows)
    copies = simulated(view.law, x, rng)
    if rows:
        chosen = [part[places] for part in (x, *copies)]
        view = replace(view, given=given_rows(known, view.size, *chosen))
    if panel is not None:
        x, copies = panel
    elif isinstance(known, KnownRecords):
        x, copies = np.delete(x, places), [np.delete(copy, places) for copy in copies]
    fits = {one: attacker.fit(view, one) for one in coalitions} if fits is None else fits
    ends = np.linspace(0, x.size, GROUPS + 1).astype(np.intp).tolist()
    groups = [(place, *ends[place : place + 2]) for place in range(GROUPS)]
    job = MeasureJob(view.size, [groups], [Fitted(fits)])
    shown, found = dict(zip(view.copies, copies, strict=True)), job.begin()
    job.take(CodeBlock(0, 0, x, shown.__getitem__), found)
    return found


def simulated(law: UniformLaw, x: Codes, rng: np.random.Generator) -> list[Codes]:
    """Copies of values x, shape (b,), drawn by a law."""
    if not law.by_retention:
        matrices = (law.transition_matrix(None, copy + 1) for copy in range(len(law.levels)))
        return [sent_through(x, T, rng) for T in matrices]
    copies, before, high = [x] * len(law.levels), x, 1.0
    for place in law.descending:
        kept = rng.random(x.size) < step(high, law.levels[place])
        copies[place] = np.where(kept, before, replacements(rng, x.size, law.size, law.pi, x.dtype))
        if law.multilevel:
            before, high = copies[place], law.levels[place]
    return copies
