"""Records of one attack on categories, and gaps between beliefs.

The squared gap between beliefs of a coalition and of its best copy is xiao2009, eq. 15. For an
outcome o of all copies, n_o records, of which ``c(x)`` have the value x, and the best copy's
posterior ``f``,

    ``G_o = Σ_x c(c − 1) / (n_o (n_o − 1)) − 2 Σ_x (c/n_o) f(x) + Σ_x f(x)²``

has mean ``‖f_o − f‖²`` for any law of the copies, with ``f_o`` the coalition's true posterior. It
is averaged over records of outcomes with at least two. The computed gap is the posteriors' distance
over these records. The largest over possible outcomes is the paper's plot.

Error bars come from closed forms, else from redraws, else from a jackknife over row groups. For
redraws a panel with one draw of copies represents a share ``f`` of the records, with values in
proportion. The adversary's data are drawn again by the law, with variance ``s²`` of the panel's
figures. The noise of the records adds ``f w``, with ``w`` the jackknife's variance within the
panel. If records depend on their neighbours, the whole release is drawn again.

Assumed, *not checked*: copies follow their law; rows to estimate from are not among the panel's.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from auditor.adversary.attack import Inference
from auditor.adversary.knowledge import Perfect
from auditor.audit.base.request import ALL, UNBOUNDED, Bar, CellContext
from auditor.audit.categorical.posterior_pass import (
    CERTAIN,
    Attacker,
    Expected,
    Fitted,
    MeasureJob,
    Sums,
    closed_forms,
    error_without_copies,
    given_by,
    marginals,
    parts_of,
    unknown_shares,
    worst_growth,
)
from auditor.audit.categorical.release import CodeBlock, distinct
from auditor.audit.measures.privacy import METRIC
from auditor.base.types import Array, Coalition, Coalitions, Codes
from auditor.data.columns.categorical_table import CategoricalTable
from auditor.numerics.linear_algebra import quotient
from auditor.numerics.random_streams import stream
from auditor.numerics.statistics import jackknife_error
from auditor.process.containment import contained
from auditor.results.records import BELIEVED, FEWEST_REPLICATES, ROW_REDRAWS, ErrorBar, Measurement
from auditor.schemes.replacement.base import code_type, replacements, sent_through
from auditor.schemes.replacement.law import UniformLaw, step

BOUNDS = (
    dict.fromkeys(
        ("reconstruction_probability", "posterior_max", "accuracy", "rho_breach"), (0.0, 1.0)
    )
    | dict.fromkeys(("distortion", "normalized_error"), (0.0, math.inf))
    | {"close": (-1.0, 1.0)}
)
MOST_IN_ORDER = 2**16
"""Most records of a release that is redrawn for attacks on neighbouring records."""
MOST_OUTCOMES = 2**18
"""Most outcomes for the largest gap over all; otherwise over the outcomes met."""
MOST_COUNTED, AT_ONCE = 2**22, 4096
"""First records that are counted for gaps; outcomes compared at a time."""

Forms = Mapping[str, Expected]
Bars = Mapping[str, Bar]
"""Error bars by measure."""

MISSING: ErrorBar = "replicates-needed"
REDRAWS = 59
"""Redraws that all miss an event of probability 1/20 in 5 % of audits."""
MOST_RECORDS, FEWEST, MOST_NUMBERS = 2**10, 2**8, 2**20
"""Most and fewest records of a panel, and numbers in their posteriors: a variance is known to 4 %.
"""
GROUPS = 32
"""Row groups of a redraw."""


def attack_records(
    attacker: Attacker, fitted: Fitted, sums: Mapping[Coalition, Sums], coalitions: Coalitions
) -> Iterator[Measurement]:
    """Yield the records of some coalitions under one attack."""
    release, knowledge, data = attacker.release, attacker.knowledge, attacker.release.data
    context, by_outcome = release.context.under(*attacker.name), not fitted.serial
    by_outcome &= fitted.hidden is None
    closed = dict[Coalition, Forms]()
    for one, fit in fitted.fits.items():
        if by_outcome and fit[0].fixed and (found := closed_forms(release.law.of(one), data, fit)):
            closed[one] = found
    bars, fixed = jackknifed(sums), release.scenario.replicates >= FEWEST_REPLICATES
    fixed |= release.estimated or (fitted.serial and data.rows > MOST_IN_ORDER)
    if len(closed) < len(sums) and not fixed:
        again = dict[Coalition, Bars]()
        with contained():
            again = redrawn_bars(attacker, sums, fitted.serial)
        bars = again | {one: bars[one] for one in closed}
    unknown = unknown_shares(data, knowledge)
    sizes = parts_of(data, knowledge)
    each = (part[0] for part in marginals(data.prior[None], tuple(sizes.values())))
    shares = dict(zip(sizes, each, strict=True))
    stated = isinstance(knowledge, Perfect) and release.law.by_retention
    gaps = release.scenario.measure("belief-gap") and by_outcome and not release.estimated
    for one in coalitions:
        worst = worst_growth(unknown, release.law.of(one).odds_by_value()) if stated else None
        beliefs = unknown, data.scores, shares
        own = bars.get(one, {})
        yield from coalition_records(context, one, sums, closed, own, *beliefs, worst)
        if "mutual_information" in sums[one].by_group and unknown.size == data.size:
            believed = sums[one].most_believed(unknown)
            if believed is not None:
                bar = Bar.normal(believed[1], "sampling")
                yield context.record(BELIEVED, one, believed[0], bar, bounds=(0.0, 1.0))
        if gaps and len(one) > 1:
            law = release.law.of(one)
            alone = fitted.fits[(one[law.best - 1],)][0]
            x, *copies = release.rows(one, [(0, MOST_COUNTED)])
            gap = belief_gap(x, copies, law, fitted.fits[one][0], alone)
            if gap.measured is not None:
                gap_bar = None if gap.std_error is None else Bar.normal(gap.std_error, "jackknife")
                yield context.record(
                    "belief_gap", one, gap.measured, gap_bar, gap.computed, missing=MISSING
                )
            yield context.record("largest_belief_gap", one, gap.largest, theory=gap.largest)
    _, frame = next(iter(fitted.fits.values()))
    spread = variance(unknown, data.scores)
    if frame.known is not None and spread > 0:
        share = error_without_copies(data.prior, frame) / spread
        yield context.record(METRIC, context.everybody, share)


def variance(prior: Array, scores: Array | None) -> float:
    """Variance of scores, or total variance of indicators, by shares (s,)."""
    return float(1.0 - prior @ prior if scores is None else prior @ (scores - prior @ scores) ** 2)


def coalition_records(
    context: CellContext,
    coalition: Coalition,
    sums: Mapping[Coalition, Sums],
    closed: Mapping[Coalition, Forms],
    bars: Bars,
    prior: Array,
    scores: Array | None,
    parts: Mapping[str, Array] = MappingProxyType({}),
    worst: float | None = None,
) -> Iterator[Measurement]:
    """Yield the records of every measure, of growth, and of the gain.

    Parameters
    ----------
    bars : mapping
        Of the gain, and of measures without closed forms.
    prior : ndarray of shape (s,)
        The table's own.
    scores : ndarray of shape (s,) or None
        A number for each value; None: indicators, with total variance ``1 − Σ q²``.
    parts : dict of str to ndarray
        Shares of the values of several attributes.
    worst : float or None
        Largest possible growth.
    """
    figures_here, forms = figures_of(coalition, sums), closed.get(coalition)
    (gain, *_), lawful = figures_here.pop("collusion_gain"), None
    for measure, (value, *_) in figures_here.items():
        metric, _, about = measure.partition("/")
        whole, about = not about, about or ALL
        bar, shares = bars.get(measure), parts.get(about, prior)
        theory = math.nan
        if forms:
            theory, error = forms[measure]
            bar = Bar.normal(error, "closed-form")
        figures = {metric: (1.0, 0.0)}  # slope and shift
        if metric == "accuracy":
            figures["accuracy_gain"] = 1.0, -float(shares.max())
        elif metric == "close":
            figures["close"] = 1.0, -float(shares.max(where=shares >= CERTAIN, initial=0.0))
        elif metric == "squared_error":
            size = prior.size if scores is None else 1
            figures = {"distortion": (1.0 / size, 0.0)} if whole else {}
            if (spread := variance(shares, scores if whole else None)) > 0:
                figures["normalized_error"] = 1.0 / spread, 0.0
        for name, (slope, shift) in figures.items():
            found = slope * value + shift, bar and bar.times(slope), slope * theory + shift
            bounds = BOUNDS.get(name, UNBOUNDED)
            yield context.record(
                name, coalition, *found, attribute=about, bounds=bounds, missing=MISSING
            )
        if "distortion" in figures:
            root, of_law = (math.sqrt(each / size) for each in (value, theory))
            bar = bar and bar.times(0.5 / (root * size) if root > 0 else 0.0)
            bounds = 0.0, math.inf
            yield context.record(
                "rmse", coalition, root, bar, of_law, bounds=bounds, missing=MISSING
            )
    for name, growth in sums[coalition].growth.items():
        limit = worst if name == ALL else None
        yield context.record("delta_growth", coalition, growth, None, limit, attribute=name)
    singles, bar = [(copy,) for copy in coalition], bars.get("collusion_gain")
    if not all(sums[one].errors.any() for one in singles):  # the best copy is the original
        bar = Bar.normal(0.0, "jackknife")
    if all(one in closed for one in (coalition, *singles)):
        error, *each = (
            1.0 - closed[one]["reconstruction_probability"].value for one in (coalition, *singles)
        )
        lawful = 1.0 - error / min(each) if min(each) > 0 else 0.0
    yield context.record("collusion_gain", coalition, gain, bar, lawful, missing=MISSING)


class Gap(NamedTuple):
    """Mean squared gap, standard error, computed gap and largest distance.

    The first three are None if no outcome was met twice. Estimated beliefs have no standard error.
    """

    measured: float | None
    std_error: float | None
    computed: float | None
    largest: float


def belief_gap(
    x: Codes, copies: Sequence[Codes], law: UniformLaw, together: Inference, alone: Inference
) -> Gap:
    """Gap between beliefs with all copies and with the best one.

    Parameters
    ----------
    x, copies : ndarrays of shape (n,)
    law : UniformLaw
        Stated for these copies.
    together, alone : Inference
        Bayes' rule with all copies, and with the best one.
    """
    s, best, kind = law.size, law.best - 1, code_type(law.size)
    first, outcome = distinct(copies, [s] * len(copies))
    shown, counts = [copy[first].astype(kind) for copy in copies], np.bincount(outcome)
    f, y = np.zeros((s, s)), shown[best]
    possible = np.arange(s) if law.levels[best] < 1 and math.isfinite(law.rarity) else np.unique(y)
    f[possible] = alone.checked([possible.astype(kind)])
    met, distances = counts >= 2, _distances(together, shown, f, best)
    largest = float(np.sqrt(distances.max()))
    every = _every_outcome(law, kind)
    if every is not None:
        largest = max(largest, float(np.sqrt(_distances(together, every, f, best).max())))
    if not met.any():
        return Gap(None, None, None, largest)
    cell, number = distinct([outcome, x], [counts.size, s])
    c, o = np.bincount(number).astype(float), outcome[cell]
    pairs = np.bincount(o, c * (c - 1.0), counts.size)
    cross = np.bincount(o, c * f[y[o], x[cell]], counts.size)
    n = counts[met].astype(float)
    G = pairs[met] / (n * (n - 1)) - 2 * cross[met] / n + (f**2).sum(axis=1)[y[met]]
    mean = float(n @ G / n.sum())
    error = float(np.sqrt((n**2) @ (G - mean) ** 2) / n.sum()) if together.fixed else None
    return Gap(mean, error, float(n @ distances[met] / n.sum()), largest)


def _every_outcome(law: UniformLaw, kind: np.dtype[Any]) -> list[Codes] | None:
    k, s = len(law.levels), law.size
    tied = max(law.levels) >= 1 or (law.multilevel and len(set(law.levels)) < k)
    if s**k > MOST_OUTCOMES or tied or math.isinf(law.rarity):
        return None
    return [np.asarray(part, dtype=kind) for part in np.unravel_index(np.arange(s**k), (s,) * k)]


def _distances(together: Inference, copies: Sequence[Codes], f: Array, best: int) -> Array:
    found = np.empty(copies[0].size)
    for a in range(0, found.size, AT_ONCE):
        part = [copy[a : a + AT_ONCE] for copy in copies]
        found[a : a + AT_ONCE] = ((together.checked(part) - f[part[best]]) ** 2).sum(axis=1)
    return found


# -- Error bars --------------------------------------------------------------------------------------


def jackknifed(sums: Mapping[Coalition, Sums]) -> dict[Coalition, Bars]:
    """Jackknife error bars over row groups, with estimates held fixed."""
    return {
        one: {
            name: Bar.normal(float(jackknife_error(each[1:])), "jackknife", each.size - 2)
            for name, each in figures_of(one, sums).items()
            if each.size > 2
        }
        for one in sums
    }


def figures_of(coalition: Coalition, sums: Mapping[Coalition, Sums]) -> dict[str, Array]:
    """Means of measures, and the gain: of all records, and without each row group.

    The gain is ``1 − Σ(1 − P_C(x)) / Σ(1 − P_b(x))``, with b the best copy.
    """
    own = sums[coalition]
    best = min((sums[copy,] for copy in coalition), key=lambda one: float(one.errors.sum()))

    def left_out(groups: Array) -> Array:
        return groups.sum() - np.append(0.0, groups[own.sizes > 0])

    rows = left_out(own.sizes)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = {name: left_out(groups) / rows for name, groups in own.by_group.items()}
    gain = 1.0 - quotient(left_out(own.errors), left_out(best.errors), 1.0)
    return found | {"collusion_gain": gain}


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
    known = view.knowledge
    most = min(data.rows, max(FEWEST, min(MOST_RECORDS, MOST_NUMBERS // view.size)))
    if serial:
        x = data.read(0, data.rows)
    else:  # values in proportion, dealt to the groups
        place = (np.argsort(np.arange(most) % GROUPS, kind="stable") + 0.5) / most
        x = _by_share(place, data)
    ends = np.linspace(0, x.size, GROUPS + 1).astype(int).tolist()
    groups = [(place, *ends[place : place + 2]) for place in range(GROUPS)]
    copies, rows, again = simulated(view.law, x, rng), known.row_count, []
    fits = {} if rows else {one: attacker.fit(view, one) for one in sums}
    fits = {one: (inference.for_redraws(), frame) for one, (inference, frame) in fits.items()}
    # with equal fits every redraw has an equal panel
    draws = 1 if fits and not serial else ROW_REDRAWS if serial else REDRAWS
    for _ in range(draws):
        if rows:
            drawn = _by_share(rng.random(rows), data)
            given = given_by(known, data, [drawn, *simulated(view.law, drawn, rng)])
            view = replace(view, given=given)
            fits = {one: attacker.fit(view, one) for one in sums}
        if serial:
            copies = simulated(view.law, x, rng)
        job = MeasureJob([groups], [Fitted(fits)])
        shown, part = dict(zip(view.copies, copies, strict=True)), job.begin()
        job.take(CodeBlock(0, 0, x, shown.__getitem__), part)
        again.append({one: figures_of(one, part.sums) for one in sums})

    def bar(one: Coalition, name: str) -> Bar:
        drawn = np.array([each[one][name] for each in again])
        noise = 0.0 if serial else (jackknife_error(drawn[:, 1:].T) ** 2).mean()
        spread = drawn[:, 0].var(ddof=1) if draws > 1 else 0.0
        error = np.sqrt(spread + noise * x.size / sums[one].sizes.sum())
        return Bar.normal(float(error), "redraws", (GROUPS if draws == 1 else draws) - 1)

    return {one: {name: bar(one, name) for name in each} for one, each in again[0].items()}


def _by_share(place: Array, data: CategoricalTable) -> Codes:
    """Values at shares in [0, 1) of the table in their order."""
    found = np.searchsorted(np.cumsum(data.prior), place).clip(max=data.size - 1)
    return found.astype(data.code_type)


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
