"""Error bars of attacks that estimated a prior or a channel: what they would have yielded in other draws, which the audit simulates.

A figure V varies with the noise of the records that are attacked, and with what the adversary
estimated. The second has no derivative to go by: maximum likelihood puts rare values at exactly 0,
and a best guess jumps when two beliefs cross. But the audit knows the table and the law. So it
draws again what the adversary is given, has the attack learn from that, and sees where V goes.

| symbol | meaning | shape |
| --- | --- | --- |
| ``v(x, y)`` | the figure of one record, under what was estimated in one redraw | |
| ``n_x`` | attacked records by value, ``N`` in all | (s,) |
| ``m`` | ``Σ_x n_x E[v|x] / N``: mean of V given what was estimated | scalar |
| ``w`` | ``Σ_x n_x Var[v|x] / N²``: its variance | scalar |
| ``c, f`` | how often each value occurs among r released rows that were estimated from, and its chance: ``E c = r·f`` | (s,) |
| ``C`` | one such row's covariance of indicators, ``diag f − f fᵀ − g (diag q − q qᵀ)``, ``g = p²(r − 1)/(n − 1)`` | (s, s) |
| ``a`` | covariance of a row's ``v − E[v|x]`` with its indicators | (s,) |

Rows that an adversary learns from without their originals are attacked too, so the same noise is in
c and in V. The best linear prediction of what they add to V is ``β·(c − r f)/n`` with ``Cβ = a``;
it explains ``r a·β/n²`` of w. Rows in clear are not attacked, and add nothing.

By the law of total variance ``Var V = Var m + E w``. In each redraw V is normal about m, as N is
large; so over all it is a mixture of normals, and the interval reaches as far from V as ``0.95 (R +
1)/R`` of the mixture do from its mean. The measured V and R redraws are exchangeable: the interval
holds the redraws' mean 95 times in 100 whatever the distribution, skewed or in two heaps. The mean
of V is near that unless it hangs on an event too rare to be counted in R redraws: a gain from
copies of which the best suffices is 0, but in the one release of twenty in which a worse copy
happens to give the better prior. Where nine redraws in ten agree, the interval therefore reaches to
the furthest of the others.

``E[v|x]`` and ``Var[v|x]`` are taken over a panel of simulated records, the same in every redraw.
Assumed, *not checked*: copies follow their law, and an attack learns most from the released rows of
the least perturbed copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.categorical_attack import CategoricalView, Inference
from auditor.adversary.given import KnownPairs, SampleCounts
from auditor.adversary.knowledge import Estimated, KnownRecords
from auditor.audit.categorical.cell_records import Bar, Bars
from auditor.audit.categorical.posterior_measures import Frame, quantities
from auditor.audit.counts.outcome_counts import Packing
from auditor.data.columns.categorical_table import CategoricalTable
from auditor.errors import NotApplicable
from auditor.process.deferred import scipy
from auditor.schemes.replacement.draws import code_type, replacements, sent_through
from auditor.schemes.replacement.law import UniformLaw, fresh_chances, step
from auditor.types import Array, Coalition, Codes

Fit = Callable[[CategoricalView, Coalition], tuple[Inference, Frame]]

REDRAWS = 59
"""``0.95·60/59`` of 59 are the 57 nearest to their mean."""
PANEL, FEWEST, PANEL_NUMBERS = 2048, 256, 2**21
"""Simulated records, at most and at least, and numbers of their posteriors: a variance from 2,048
is right to 3 %."""
BLOCK_NUMBERS = 2**18
HALVINGS = 50
MOSTLY, SAME = 0.9, 1e-9
"""Share of redraws with one and the same m from which the others are too few to tell how often they happen; and up to what share of the
largest two m are the same."""


class Redraw(NamedTuple):
    """What an adversary was given in one redraw: its view, attacked records by value, and how many of these it learns from."""

    view: CategoricalView
    attacked: Array
    rows: int


def redrawn(
    view: CategoricalView, data: CategoricalTable, rng: np.random.Generator
) -> Iterator[Redraw]:
    """Yield views of the same state of knowledge in other draws of the rows and of the noise; of one that learns nothing itself, once."""
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
    """Return copies of values x, shape (b,), drawn by a law, in its order."""
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
    """Simulated records of a table: every value in proportion, and each twice at least, so that its figures have a variance.

    Parameters
    ----------
    data : CategoricalTable
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
        """Return the panel as one coalition sees it."""
        if coalition not in self._seen:
            self._seen[coalition] = Seen(
                self.x, [self.copies[number] for number in coalition], self.size
            )
        return self._seen[coalition]


class Seen:
    """The panel's cells, of one value and one outcome each: alike records are looked at once.

    Attributes
    ----------
    first, cell : ndarrays of shape (c,) and (m,)
        A record of each cell, and the cell of each record; cells are in the order of their values.
    """

    def __init__(self, x: NDArray[np.intp], copies: Sequence[Codes], size: int) -> None:
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
        """Return m and w, shape (F,), of figures v, shape (F, c), and ``v − E[v|x]`` weighed as the attacked records are."""
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
        """Return ``a``, shape (F, s): sums of weighed figures by the value that one copy shows."""
        shown = self._table[place][self._outcome]
        return np.stack([np.bincount(shown, row, self.size) for row in off])


@dataclass
class Redraws:
    """m and w of every figure, redraw by redraw."""

    panel: Panel
    data: CategoricalTable
    drawn: dict[Coalition, dict[str, list[tuple[float, float]]]] = field(default_factory=dict)

    def add(self, redraw: Redraw, fit: Fit, coalitions: Sequence[Coalition]) -> None:
        """Have an attack infer in one redraw; coalitions come with every member alone before them."""
        alone: dict[int, tuple[Array, float]] = {}
        for coalition in coalitions:
            seen = self.panel.seen(coalition)
            figures = seen.figures(*fit(redraw.view, coalition))
            error = 1.0 - figures["reconstruction_probability"]
            total = float(seen.spread(error[None], redraw.attacked)[0][0])
            if len(coalition) == 1:
                alone[coalition[0]] = error, total
            number = min(coalition, key=lambda one: alone[one][1])
            best, least = alone[number]
            if least > 0:  # 1 − Σ(1 − P_C)/Σ(1 − P_b), to first order in the noise of the records
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
        """Return m and w given what was estimated, and what the rows it was estimated from add."""
        m, w, off = seen.spread(v, redraw.attacked)
        sample = redraw.view.given
        if not redraw.rows or not isinstance(sample, SampleCounts):
            return m, w
        if not redraw.view.law.by_retention:
            raise NotApplicable(
                "how a sample of copies foretells the others is known of retention-replacement alone"
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
    """Return ``β`` with ``(diag f − f fᵀ − g (diag q − q qᵀ)) β = a`` for a of shape (F, s), rows summing to 0.

    ``f = p q + (1 − p)π``, of which ``fresh`` is the second part. With ``D = f − g q``, ``(diag D +
    g q qᵀ) β = a`` gives ``f·β = Σ a = 0``, so that ``f fᵀ`` drops out, and Sherman–Morrison solves
    it.
    """
    D = p * q + fresh - g * q
    # 0: the copy is the original, without noise
    over_D = np.divide(1.0, D, out=np.zeros_like(D), where=D > 1e-12)
    beta = a * over_D
    return np.asarray(
        beta - np.outer(beta @ q, g * q * over_D / (1.0 + g * float(q @ (q * over_D))))
    )


def mixture_bar(m: Array, w: Array) -> Bar:
    """Return the bar of a mixture of R normals of means m and variances w, shape (R,); of one alone that of a normal.

    Where nearly all means agree it reaches to the furthest at least: what is rare moves the mean
    further than a quantile shows.
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
    """Return error bars of everything that an attack yields on some coalitions.

    Parameters
    ----------
    release_view : CategoricalView
        Of all copies, as the adversary has it in the release itself.
    data : CategoricalTable
    coalitions : sequence of tuple of int
        By size, every member alone among them.
    fit : callable
        From a view of all copies and a coalition to what is inferred, and what that is measured
        against.
    rng : Generator
    """
    found = Redraws(Panel(data, release_view.law, release_view.copies, rng), data)
    for redraw in redrawn(release_view, data, rng):
        found.add(redraw, fit, coalitions)
    return found.bars()
