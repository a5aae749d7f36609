"""Exact posterior of the bin of a numeric column, from copies with additive noise.

So numbers and categories have common measures. Given the copies of one attribute with jointly
Gaussian noise ``Sigma ⊗ K_0``, their least-variance combination ``T = Σ w_i Y_i`` is sufficient: X
plus noise of variance ``v k_0``. With the table's distribution of X, the posterior of bin C is

    ``P(c | t) ∝ Σ_{x in c} φ((t − x) / √(v k_0))``

as ``posterior`` computes for uniform copies. Values and combinations are rounded to a sixteenth of
the noise's standard deviation. Not used: copies of other attributes, which may add information by
correlation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.knowledge import Knowledge, Perfect
from auditor.audit.base.records import CellContext
from auditor.audit.categorical.cell_records import Cell, cell_records, closed_bars, gain_record
from auditor.audit.categorical.posterior_measures import (
    Expected,
    Frame,
    Sums,
    expected,
    group_of,
    quantities,
)
from auditor.audit.counts.outcome_counts import batches
from auditor.data.columns.categorical_table import CategoricalTable
from auditor.data.table import Table
from auditor.errors import NotApplicable
from auditor.numerics.blocks import moment_groups, row_blocks
from auditor.numerics.combination import best_unbiased_combination
from auditor.numerics.statistics import convolved
from auditor.results.records import Measurement
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw
from auditor.types import Array, Blocks, Coalition, Codes

FINENESS = 16
REACH = 7.0
"""Standard deviations at which noise is cut off: a probability of 3e-12."""
MOST_CELLS = 2**15


@dataclass(frozen=True)
class Binned:
    """One numeric column of a table, and its bins."""

    table: Table
    data: CategoricalTable
    column: int

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """First and last (exclusive) record of every block."""
        return row_blocks(self.table.rows, self.table.width)

    def blocks(self) -> Iterator[tuple[Array, Codes]]:
        """Yield values and bins of every block."""
        for start, stop in self.bounds:
            yield self.table.read(start, stop)[:, self.column], self.data.read(start, stop)


def binned_column(table: Table) -> Binned:
    """Return the column that exists as numbers and in bins.

    Raises
    ------
    NotApplicable
        There is none, or more than one.
    """
    data = table.categorical
    if (
        data is None
        or len(data.attributes) != 1
        or data.scores is None
        or data.names[0] not in table.attributes
    ):
        raise NotApplicable(
            "attacks additive copies only of one numeric column that data.bin cuts into classes"
        )
    column = table.attributes.index(data.names[0])
    return Binned(table, data, column)


def binned_records(
    table: Table,
    blocks: Blocks,
    law: NoiseLaw | None,
    needed: Sequence[Coalition],
    wanted: Sequence[Coalition],
    context: CellContext,
    attack: str,
    knowledge: Knowledge,
) -> list[Measurement]:
    """Return the records of the exact posterior of the bins.

    Parameters
    ----------
    table : Table
    blocks : callable
        Yields the table's rows and its copies' block by block.
    law : NoiseLaw or None
    needed, wanted : sequences of tuple of int
        Coalitions with every member alone, and those to report.
    context, attack, knowledge
        For the records.

    Raises
    ------
    NotApplicable
        The law is not jointly Gaussian of one shape, knowledge is not perfect, or the noise is too
        small for the grid.
    """
    binned = binned_column(table)
    if not isinstance(knowledge, Perfect):
        raise NotApplicable(
            f"the posterior of bins given additive copies needs the exact distribution, not {knowledge.label} knowledge"
        )
    if not isinstance(law, KroneckerNoise) or law.distribution != "gaussian":
        raise NotApplicable(
            "the posterior of bins given additive copies needs jointly Gaussian noise of one shape"
        )
    found = infer(binned, blocks, law, needed)
    records = []
    for coalition in wanted:
        cell, (sums, closed) = Cell(context, attack, knowledge.label, coalition), found[coalition]
        cell_records(
            cell, sums, closed, closed_bars(closed), binned.data.prior, binned.data.scores, None
        )
        best = min(coalition, key=lambda copy: found[(copy,)][0].errors.sum())
        error = {
            c: 1.0 - found[c][1]["reconstruction_probability"].value
            for c in (coalition, *((copy,) for copy in coalition))
        }
        gain = 1.0 - error[coalition] / min(error[(copy,)] for copy in coalition)
        gain_record(cell, sums, found[(best,)][0], gain)
        records += cell.records
    return records


def infer(
    binned: Binned, blocks: Blocks, law: KroneckerNoise, needed: Sequence[Coalition]
) -> dict[Coalition, tuple[Sums, dict[str, Expected]]]:
    """Return measured sums and closed forms for every coalition's best combination.

    Coalitions whose posteriors fit into memory together share two passes.
    """
    ranges = [(float(x.min()), float(x.max())) for x, _ in binned.blocks()]
    low, high = min(a for a, _ in ranges), max(b for _, b in ranges)
    k_0 = float(law.shape[binned.column, binned.column])
    sights = {}
    for coalition in needed:
        w, v = best_unbiased_combination(law.of(coalition).level_covariance)
        sights[coalition] = _Sight(
            w, float(np.sqrt(max(0.0, float(v)) * k_0)), low, high, binned.data.size
        )
    found = {}
    for batch in batches([(coalition, sight.numbers) for coalition, sight in sights.items()]):
        some = {coalition: sights.pop(coalition) for coalition in batch}
        _go_through(binned, blocks, some)
        found.update({coalition: (sight.sums, sight.closed) for coalition, sight in some.items()})
    return found


def _go_through(binned: Binned, blocks: Blocks, sights: Mapping[Coalition, _Sight]) -> None:
    for x, codes in binned.blocks():
        for sight in sights.values():
            sight.count(x, codes)
    groups = moment_groups(binned.table.rows, binned.table.width)
    for sight in sights.values():
        sight.learn(binned.data, groups[-1][-1][0] + 1)
    for index, _, copies in blocks():
        places, group = (
            binned.data.read(*binned.bounds[index]).astype(np.intp),
            group_of(groups[index]),
        )
        for coalition, sight in sights.items():
            sight.look([copies[copy - 1][:, binned.column] for copy in coalition], places, group)


class _Sight:
    """Posterior of the bins from one combination of copies, on a grid of its values."""

    def __init__(self, weights: Array, std: float, low: float, high: float, size: int) -> None:
        span = high - low
        if std <= 0 or (span + 2 * REACH * std) * FINENESS / std > MOST_CELLS:
            raise NotApplicable(
                "the copies' noise is too small beside the column's range for the posterior of its bins"
            )
        self._weights, self._std, self._size = weights, std, size
        self._width = max(min(std / FINENESS, span / 512), (span + 2 * REACH * std) / MOST_CELLS)
        self._cells = int(np.ceil((span + 2 * REACH * std) / self._width)) + 1
        self._low = low - REACH * std
        self._counts: NDArray[np.int64] | None = None

    @property
    def numbers(self) -> int:
        """Numbers in memory: counts, probabilities and posteriors."""
        return 4 * self._size * self._cells

    def count(self, x: Array, codes: Codes) -> None:
        """Count the values of each bin by cell."""
        place = np.rint((x - self._low) / self._width).astype(np.intp)
        places = codes.astype(np.intp) * self._cells + place
        found = np.bincount(places, minlength=self._size * self._cells).reshape(
            self._size, self._cells
        )
        self._counts = found if self._counts is None else self._counts + found

    def learn(self, data: CategoricalTable, groups: int) -> None:
        """Compute the posterior of every cell, and the closed forms."""
        given = self._likelihood()
        joint = data.prior[:, None] * given
        met = joint.sum(axis=0)
        # a combination outside the range gets the nearest cell of positive probability
        reached = np.flatnonzero(met > 0)
        self._reached = int(reached[0]), int(reached[-1])
        P = np.divide(
            joint, met, out=np.tile(data.prior[:, None], (1, self._cells)), where=met > 0
        ).T
        self._quantities = quantities(P, Frame(data.prior, scores=data.scores))
        self.sums = Sums(self._size, groups)
        self.closed = expected(given, data.prior, self._quantities, data.rows)

    def look(
        self, copies: Sequence[Array], codes: NDArray[np.intp], group: NDArray[np.intp]
    ) -> None:
        """Measure the records of one block."""
        T = np.asarray(
            sum(weight * copy for weight, copy in zip(self._weights, copies, strict=True))
        )
        place = np.clip(np.rint((T - self._low) / self._width).astype(np.intp), *self._reached)
        self.sums.add(self._quantities, place, codes, group)

    def _likelihood(self) -> Array:
        """Return ``P(T in cell | bin)``, shape (s, cells)."""
        reach = int(np.ceil(REACH * self._std / self._width))
        kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * self._width / self._std) ** 2)
        assert self._counts is not None
        spread = convolved(self._counts.astype(np.float64), kernel / kernel.sum())[
            :, reach : reach + self._counts.shape[1]
        ]
        spread = np.where(spread > 1e-9, spread, 0.0)  # below: rounding of the transform
        total = spread.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(spread, total, out=np.zeros_like(spread), where=total > 0))
