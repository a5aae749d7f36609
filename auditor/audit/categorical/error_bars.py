"""Error bars of attacks on categories without closed forms, by redraws.

A figure V depends on the noise of the attacked records, and on the adversary's estimates. The
audit draws the adversary's data again, fits the attack, and measures V.

| symbol | meaning | shape |
| --- | --- | --- |
| ``v(x, y)`` | the figure of one record, given the estimates of one redraw | |
| ``n_x`` | attacked records by value, ``N`` in total | (s,) |
| ``m`` | ``Σ_x n_x E[v|x] / N``: mean of V given the estimates | scalar |
| ``w`` | ``Σ_x n_x Var[v|x] / N²``: variance of V given the estimates | scalar |
| ``c, f`` | counts of each value among r rows to estimate from, and probability: ``E c = r·f`` | (s,) |
| ``C`` | covariance of such a row's indicators: ``diag f − f fᵀ − g (diag q − q qᵀ)`` | (s, s) |
| ``g`` | ``p²(r − 1)/(n − 1)`` | scalar |
| ``a`` | covariance of a row's ``v − E[v|x]`` with its indicators | (s,) |

Rows to estimate from are attacked too, so c and V share noise. The best linear prediction of V from
c is ``β·(c − r f)/n`` with ``Cβ = a``; it explains ``r a·β/n²`` of w. Known rows are not attacked.

By the law of total variance ``Var V = Var m + E w``. Given the estimates V is normal about m, as N
is large. So V is a mixture of normals. The interval extends from V as far as ``0.95 (R + 1)/R`` of
the mixture from its mean. V and the R redraws are exchangeable, so it contains the redraws' mean 95
times in 100. If nine in ten redraws agree, the interval extends to the furthest one, as rarer events
cannot be counted.

``E[v|x]`` and ``Var[v|x]`` are over a panel of simulated records, equal in every redraw. Attacks
that use neighbouring records have no such panel: the whole release is drawn again. Files without a
law cannot be drawn again: a jackknife over row groups.

Assumed, *not checked*: copies follow their law, and an attack learns most from the least perturbed
copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from auditor.adversary.categorical_attack import CategoricalView, Inference
from auditor.adversary.given import KnownPairs, SampleCounts
from auditor.adversary.knowledge import Estimated, KnownRecords
from auditor.audit.categorical.cell_records import Bar, Bars
from auditor.audit.categorical.posterior_measures import Frame, Sums, quantities
from auditor.audit.categorical.posterior_pass import BLOCK_NUMBERS, Fitted, MeasureJob, Try
from auditor.audit.categorical.release import UniformRelease
from auditor.audit.counts.outcome_counts import Packing
from auditor.audit.numeric.error_bars import reaches
from auditor.audit.numeric.redraws import seed_of
from auditor.data.columns.categorical_table import CategoricalTable
from auditor.errors import NotApplicable
from auditor.numerics.statistics import jackknife_error
from auditor.process.containment import contained
from auditor.process.deferred import scipy
from auditor.results.evidence import ROW_REDRAWS
from auditor.results.records import FEWEST_REPLICATES
from auditor.schemes.replacement.draws import code_type, replacements, sent_through
from auditor.schemes.replacement.law import UniformLaw, fresh_chances, step
from auditor.types import Array, Coalition, Codes, Indices

Fit = Callable[[CategoricalView, Coalition], tuple[Inference, Frame]]
"""Fits an attack to a view of all copies and a coalition."""

REDRAWS = 59
"""``0.95·60/59`` of 59 are the 57 nearest to their mean."""
PANEL, FEWEST, PANEL_NUMBERS = 2048, 256, 2**21
"""Most and fewest simulated records, and numbers in their posteriors: a variance from 2,048 records
has an error of 3 %."""
HALVINGS = 50
MOSTLY, SAME = 0.9, 1e-9
"""Share of redraws with equal m from which the others are too few to estimate their frequency; and
largest relative difference of equal m."""
MOST_RECORDS = 2**16
"""Most records of a release that is drawn again; for more, replicates are needed."""


def jackknifed(sums: Mapping[Coalition, Sums]) -> dict[Coalition, Bars]:
    """Return jackknife error bars of every mean, over row groups, with estimates held fixed."""
    return {coalition: _jackknife(each) for coalition, each in sums.items()}


def _jackknife(sums: Sums) -> Bars:
    sizes, some, bars = sums.sizes, sums.sizes > 0, dict[str, Bar]()
    for name, groups in sums.by_group.items() if some.sum() > 1 else ():
        left_out = (groups.sum() - groups[some]) / (sizes.sum() - sizes[some])
        bars[name] = Bar.normal(float(jackknife_error(left_out)), "jackknife", int(some.sum()) - 1)
    return bars


def release_bars(
    release: UniformRelease, name: Try, fitted: Fitted, sums: Mapping[Coalition, Sums]
) -> dict[Coalition, Bars]:
    """Return error bars from redraws of the whole release.

    None for long tables and files, and if there are replicates.
    """
    if (
        not release.scheme.makes_copies
        or release.data.rows > MOST_RECORDS
        or release.scenario.replicates >= FEWEST_REPLICATES
    ):
        return {}
    again, key = [], release.key
    starts = {one: each.for_redraws() for one, each in fitted.inferences.items()}
    fitted = replace(fitted, inferences=starts)
    with contained() as failure:
        for number in range(ROW_REDRAWS):
            seed = seed_of(key.audit_seed, key.scheme, key.replicate, number)
            other = replace(release, key=replace(key, seed=seed), share=None, _kept={})
            job = MeasureJob(release.data.size, release.groups, {name: fitted}, {})
            again.append(_figures(other.go_through(job).sums[name]))
    if failure.error is not None:
        return {}
    bars: dict[Coalition, Bars] = {}
    for coalition, figures in _figures(sums).items():
        others = {
            metric: np.array([draw[coalition][metric] for draw in again]) for metric in figures
        }
        bars[coalition] = {
            metric: Bar(
                float(others[metric].std(ddof=1)),
                float(np.maximum(*reaches(np.asarray(figure), others[metric]))),
                "redraws",
            )
            for metric, figure in figures.items()
        }
    return bars


def _figures(sums: Mapping[Coalition, Sums]) -> dict[Coalition, dict[str, float]]:
    left = {coalition: float(each.errors.sum()) for coalition, each in sums.items()}
    found = {}
    for coalition, each in sums.items():
        best = min(left[(copy,)] for copy in coalition)
        gain = 1.0 - left[coalition] / best if best > 0 else 0.0
        found[coalition] = {name: each.mean(name) for name in each.means} | {"collusion_gain": gain}
    return found


class Redraw(NamedTuple):
    """Data of one redraw: view, attacked records by value, and rows to estimate from."""

    view: CategoricalView
    attacked: Array
    rows: int


def redrawn(
    view: CategoricalView, data: CategoricalTable, rng: np.random.Generator
) -> Iterator[Redraw]:
    """Yield views in other draws of rows and noise; a single one without estimates."""
    counts, known = np.rint(data.prior * data.rows).astype(np.int64), view.knowledge
    if not isinstance(known, Estimated | KnownRecords):
        yield Redraw(view, counts.astype(np.float64), 0)
        return
    rows = known.rows if isinstance(known, Estimated) else known.count
    for _ in range(REDRAWS):
        chosen = rng.multivariate_hypergeometric(counts, rows, method="marginals")
        x = rng.permutation(np.repeat(np.arange(view.size), chosen)).astype(code_type(view.size))
        copies = simulated(view.law, x, rng)
        if isinstance(known, KnownRecords):
            yield Redraw(
                replace(view, given=KnownPairs(x, tuple(copies))),
                (counts - chosen).astype(np.float64),
                0,
            )
        else:
            sample = tuple(
                np.bincount(copy, minlength=view.size).astype(np.float64) for copy in copies
            )
            yield Redraw(replace(view, given=SampleCounts(sample)), counts.astype(np.float64), rows)


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


class Panel:
    """Simulated records, in proportion to the table, with two of each value at least.

    Parameters
    ----------
    law : UniformLaw
        Of the copies ``numbers``.
    """

    def __init__(
        self,
        data: CategoricalTable,
        law: UniformLaw,
        numbers: Sequence[int],
        rng: np.random.Generator,
    ) -> None:
        half = int(np.clip(PANEL_NUMBERS // law.size, FEWEST, PANEL)) // 2
        values, present = (
            np.searchsorted(np.cumsum(data.prior), (np.arange(half) + 0.5) / half),
            np.flatnonzero(data.prior),
        )
        values = np.concatenate([present, values]) if present.size <= half else values
        self.x, self.size = np.repeat(np.minimum(values, law.size - 1), 2), law.size
        self.copies = dict(
            zip(numbers, simulated(law, self.x.astype(code_type(law.size)), rng), strict=True)
        )
        self._seen: dict[Coalition, Seen] = {}

    def seen(self, coalition: Coalition) -> Seen:
        """Return the panel in one coalition's view."""
        if coalition not in self._seen:
            self._seen[coalition] = Seen(
                self.x, [self.copies[number] for number in coalition], self.size
            )
        return self._seen[coalition]


class Seen:
    """The panel's records, grouped by value and outcome.

    Attributes
    ----------
    first, cell : ndarrays of shape (c,) and (m,)
        A record of each cell, and the cell of each record; cells are ordered by value.
    """

    def __init__(self, x: Indices, copies: Sequence[Codes], size: int) -> None:
        self.size = size
        _, first, outcome = np.unique(
            Packing([size] * len(copies)).pack(copies), return_index=True, return_inverse=True
        )
        self._table = [copy[first] for copy in copies]
        found = np.unique(
            x * first.size + outcome, return_index=True, return_inverse=True, return_counts=True
        )
        _, self.first, self.cell, self._many = found
        self._x, self._outcome = x[self.first], outcome[self.first]
        self._starts = np.flatnonzero(np.diff(self._x, prepend=-1))
        self._lengths = np.diff(self._starts, append=self._x.size)
        self._counts = np.add.reduceat(self._many, self._starts)

    def figures(self, inference: Inference, frame: Frame) -> dict[str, Array]:
        """Return every figure of each cell, shape (c,)."""
        rows = max(64, BLOCK_NUMBERS // self.size)
        found: dict[str, Array] = {}
        for a in range(0, self._table[0].size, rows):
            some = np.flatnonzero((self._outcome >= a) & (self._outcome < a + rows))
            measured = quantities(
                inference.checked([part[a : a + rows] for part in self._table]), frame
            )
            for name, lookup in measured.lookups.items():
                found.setdefault(name, np.empty(self._x.size))[some] = lookup(
                    self._outcome[some] - a, self._x[some]
                )
        return found

    def spread(self, v: Array, attacked: Array) -> tuple[Array, Array, Array]:
        """Return m and w, shape (F,), of figures (F, c), and weighted ``v − E[v|x]``."""
        share = attacked[self._x[self._starts]]
        share = share / share.sum()
        mean = np.add.reduceat(v * self._many, self._starts, axis=1) / self._counts
        off = v - np.repeat(mean, self._lengths, axis=1)
        variance = np.add.reduceat(off**2 * self._many, self._starts, axis=1) / (self._counts - 1)
        return (
            mean @ share,
            variance @ share / attacked.sum(),
            off * np.repeat(share / self._counts, self._lengths) * self._many,
        )

    def by_value(self, off: Array, place: int) -> Array:
        """Return ``a``, shape (F, s): sums of weighted figures by one copy's value."""
        shown = self._table[place][self._outcome]
        return np.stack([np.bincount(shown, row, self.size) for row in off])


@dataclass
class Redraws:
    """m and w of every figure, by redraw."""

    panel: Panel
    data: CategoricalTable
    drawn: dict[Coalition, dict[str, list[tuple[float, float]]]] = field(default_factory=dict)

    def add(self, redraw: Redraw, fit: Fit, coalitions: Sequence[Coalition]) -> None:
        """Add one redraw; members alone come before their coalitions."""
        alone = {}
        for coalition in coalitions:
            seen = self.panel.seen(coalition)
            figures = seen.figures(*fit(redraw.view, coalition))
            error = 1.0 - figures["reconstruction_probability"]
            total = float(seen.spread(error[None], redraw.attacked)[0][0])
            if len(coalition) == 1:
                alone[coalition[0]] = error, total
            number = min(coalition, key=lambda one: alone[one][1])
            best, least = alone[number]
            if least > 0:  # 1 − Σ(1 − P_C)/Σ(1 − P_b), to first order in the records' noise
                best = best[self.panel.seen((number,)).cell[seen.first]]
                figures["collusion_gain"] = (
                    1.0 - total / least - (error - total / least * best) / least
                )
            m, w = self._given(redraw, coalition, seen, np.stack(list(figures.values())))
            for name, pair in zip(figures, zip(m.tolist(), w.tolist(), strict=True), strict=True):
                self.drawn.setdefault(coalition, {}).setdefault(name, []).append(pair)

    def _given(
        self, redraw: Redraw, coalition: Coalition, seen: Seen, v: Array
    ) -> tuple[Array, Array]:
        m, w, off = seen.spread(v, redraw.attacked)
        sample = redraw.view.given
        if not redraw.rows or not isinstance(sample, SampleCounts):
            return m, w
        if not redraw.view.law.by_retention:
            raise NotApplicable(
                "the prediction from a sample of copies is known for retention-replacement alone"
            )
        best = redraw.view.coalition(coalition).law.best - 1
        place = redraw.view.copies.index(coalition[best])
        a = seen.by_value(off, best)
        n, r, p = self.data.rows, redraw.rows, redraw.view.law.levels[place]
        fresh = fresh_chances(p, seen.size, redraw.view.law.pi)
        beta = prediction(a, self.data.prior, p, p * p * (r - 1) / max(1, n - 1), fresh)
        f = p * self.data.prior + fresh
        return m + beta @ (sample.counts[place] - r * f) / n, np.maximum(
            0.0, w - r * (a * beta).sum(axis=1) / n**2
        )

    def bars(self) -> dict[Coalition, Bars]:
        """Return the bar of every figure of every coalition."""
        return {
            c: {name: mixture_bar(*np.array(found).T) for name, found in figures.items()}
            for c, figures in self.drawn.items()
        }


def prediction(a: Array, q: Array, p: float, g: float, fresh: float | Array) -> Array:
    """Return ``β`` with ``Cβ = a``, for a of shape (F, s) with rows that sum to 0.

    ``f = p q + fresh``. With ``D = f − g q``, ``(diag D + g q qᵀ) β = a`` gives ``f·β = Σ a = 0``, so
    ``f fᵀ`` drops out; Sherman–Morrison solves it.
    """
    D = p * q + fresh - g * q
    # 0: a copy without noise
    over_D = np.divide(1.0, D, out=np.zeros_like(D), where=D > 1e-12)
    beta = a * over_D
    return beta - np.outer(beta @ q, g * q * over_D / (1.0 + g * float(q @ (q * over_D))))


def mixture_bar(m: Array, w: Array) -> Bar:
    """Return the bar of a mixture of R normals with means m and variances w, shape (R,).

    If nearly all means agree, it extends to the furthest one.
    """
    R = m.size
    if R == 1:
        return Bar.normal(float(np.sqrt(w[0])), "redraws")
    off, std = m - m.mean(), np.maximum(np.sqrt(w), 1e-300)
    share, low, high = 0.95 * (R + 1) / R, 0.0, float((np.abs(off) + 10.0 * std).max())
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        inside = float(
            (
                scipy.special.ndtr((middle - off) / std) - scipy.special.ndtr((-middle - off) / std)
            ).mean()
        )
        low, high = (low, middle) if inside >= share - 1e-12 else (middle, high)
    if (np.abs(m - np.median(m)) <= SAME * np.abs(m).max()).mean() >= MOSTLY:
        high = max(high, float(np.abs(off).max()))
    return Bar(float(np.sqrt(off @ off / (R - 1) + w.mean())), high, "redraws")


def bars_of(
    release_view: CategoricalView,
    data: CategoricalTable,
    coalitions: Sequence[Coalition],
    fit: Fit,
    rng: np.random.Generator,
) -> dict[Coalition, Bars]:
    """Return error bars of all figures of an attack, by coalition.

    Parameters
    ----------
    release_view : CategoricalView
        Of all copies, in the release itself.
    coalitions : sequence of tuple of int
        By size, with every member alone.
    """
    found = Redraws(Panel(data, release_view.law, release_view.copies, rng), data)
    for redraw in redrawn(release_view, data, rng):
        found.add(redraw, fit, coalitions)
    return found.bars()
