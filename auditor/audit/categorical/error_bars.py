"""Error bars of categorical figures.

A panel with one draw of copies represents a share ``f`` of the records, with values in proportion.
The adversary's data are drawn again by the law, with variance ``s²`` of the panel's figures. The
noise of the records adds ``f w``, with ``w`` the jackknife's variance within the panel. If records
depend on their neighbours, the whole release is drawn again. Without a law, a jackknife over row
groups.

Assumed, *not checked*: copies follow their law; rows to estimate from are not among the panel's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from auditor.audit.base.request import Bar
from auditor.audit.categorical.posterior_pass import Attacker, Fitted, MeasureJob, given_by
from auditor.audit.categorical.release import CodeBlock, Sums
from auditor.base.types import Array, Coalition, Codes, Indices
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
    """Jackknife error bars over row groups, with estimates held fixed."""
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
    known, kind = view.knowledge, code_type(view.size)
    most = min(data.rows, max(FEWEST, min(MOST_RECORDS, MOST_NUMBERS // view.size)))
    if serial:
        x = data.read(0, data.rows)
    else:  # values in proportion, dealt to the groups
        place = (np.argsort(np.arange(most) % GROUPS, kind="stable") + 0.5) / most
        x = _by_share(place, data.prior).astype(kind)
    ends = np.linspace(0, x.size, GROUPS + 1).astype(np.intp).tolist()
    groups = [(place, *ends[place : place + 2]) for place in range(GROUPS)]
    copies, rows, again = simulated(view.law, x, rng), known.row_count, []
    fits = {} if rows else {one: attacker.fit(view, one) for one in sums}
    fits = {one: (inference.for_redraws(), frame) for one, (inference, frame) in fits.items()}
    # with equal fits every redraw has an equal panel
    draws = 1 if fits and not serial else ROW_REDRAWS if serial else REDRAWS
    for _ in range(draws):
        if rows:
            drawn = _by_share(rng.random(rows), data.prior).astype(kind)
            given = given_by(known, data, [drawn, *simulated(view.law, drawn, rng)])
            view = replace(view, given=given)
            fits = {one: attacker.fit(view, one) for one in sums}
        if serial:
            copies = simulated(view.law, x, rng)
        job = MeasureJob([groups], [Fitted(fits)])
        shown, part = dict(zip(view.copies, copies, strict=True)), job.begin()
        job.take(CodeBlock(0, 0, x, shown.__getitem__), part)
        again.append(_figures(part.sums))
    bars: dict[Coalition, Bars] = {}
    for coalition, figures in _figures(sums).items():
        found = dict[str, Bar]()
        for name in figures:
            drawn = np.array([each[coalition][name] for each in again])
            noise = 0.0 if serial else (jackknife_error(drawn[:, 1:].T) ** 2).mean()
            spread = drawn[:, 0].var(ddof=1) if draws > 1 else 0.0
            error = np.sqrt(spread + noise * x.size / sums[coalition].sizes.sum())
            degrees = GROUPS - 1 if draws == 1 else draws - 1
            found[name] = Bar.normal(float(error), "redraws", degrees)
        bars[coalition] = found
    return bars


def _by_share(place: Array, prior: Array) -> Indices:
    """Values at shares in [0, 1) of the table in their order."""
    return np.searchsorted(np.cumsum(prior), place).clip(max=prior.size - 1)


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
