"""Posterior of a numeric column's bin, from copies with additive noise.

Given the copies of one attribute with jointly Gaussian noise ``Sigma ⊗ K_0``, their
least-variance combination ``T = Σ w_i Y_i`` is sufficient: X
plus noise of variance ``v k_0``. With the table's distribution of X, the posterior of bin C is

    ``P(c | t) ∝ Σ_{x in c} φ((t − x) / √(v k_0))``

Values and combinations are rounded to a sixteenth of the noise's standard deviation. *Not used*:
copies of other attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from auditor.adversary.knowledge import Knowledge, Perfect
from auditor.audit.base.records import CellContext
from auditor.audit.categorical.error_bars import (
    Cell,
    cell_records,
    closed_bars,
    gain_record,
    jackknifed,
)
from auditor.audit.categorical.outcome_counts import batches
from auditor.audit.categorical.posterior_measures import (
    Expected,
    Frame,
    Sums,
    expected,
    group_of,
    quantities,
)
from auditor.base.errors import NotApplicable
from auditor.base.types import Array, Blocks, Coalition, Codes, Indices
from auditor.data.columns.categorical_table import CategoricalTable
from auditor.data.table import Table
from auditor.numerics.blocks import moment_groups, row_blocks
from auditor.numerics.combination import best_unbiased_combination
from auditor.process.deferred import scipy
from auditor.results.records import Measurement
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw

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

    @classmethod
    def of(cls, table: Table) -> Binned:
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
        return cls(table, data, table.attributes.index(data.names[0]))

    def blocks(self) -> Iterator[tuple[Array, Codes]]:
        """Yield values and bins of every block."""
        for start, stop in row_blocks(self.table.rows, self.table.width):
            yield self.table.read(start, stop)[:, self.column], self.data.read(start, stop)


def binned_records(
    table: Table,
    blocks: Blocks,
    law: NoiseLaw | None,
    needed: Sequence[Coalition],
    wanted: Sequence[Coalition],
    context: CellContext,
    knowledge: Knowledge,
) -> list[Measurement]:
    """Return the records of the exact posterior of the bins.

    Parameters
    ----------
    blocks : callable
        Yields the table's rows and its copies' block by block.
    law : NoiseLaw or None
    needed, wanted : sequences of tuple of int
        Coalitions with every member alone, and those to report.

    Raises
    ------
    NotApplicable
        The law is not jointly Gaussian of one shape, knowledge is not perfect, or the noise is too
        small for the grid.
    """
    binned = Binned.of(table)
    if not isinstance(knowledge, Perfect):
        raise NotApplicable(
            f"the posterior of bins given additive copies needs the exact distribution, not {knowledge.label} knowledge"
        )
    if not isinstance(law, KroneckerNoise) or law.distribution != "gaussian":
        raise NotApplicable(
            "the posterior of bins given additive copies needs jointly Gaussian noise of one shape"
        )
    found, data, records = infer(binned, blocks, law, needed), binned.data, list[Measurement]()
    errors = {c: 1.0 - forms["reconstruction_probability"].value for c, (_, forms) in found.items()}
    bars = jackknifed({coalition: sums for coalition, (sums, _) in found.items()})
    for coalition in wanted:
        cell, (sums, closed) = Cell(context, coalition), found[coalition]
        cell_records(cell, sums, closed, closed_bars(closed), data.prior, data.scores, None)
        singles = [(copy,) for copy in coalition]
        best = min(singles, key=lambda one: found[one][0].errors.sum())
        gain = 1.0 - errors[coalition] / min(errors[one] for one in singles)
        gain_record(cell, sums, found[best][0], gain, bars[coalition])
        records += cell.records
    return records


def infer(
    binned: Binned, blocks: Blocks, law: KroneckerNoise, needed: Sequence[Coalition]
) -> dict[Coalition, tuple[Sums, dict[str, Expected]]]:
    """Return measured sums and closed forms for every coalition's best combination.

    Coalitions whose posteriors fit into memory together share two passes.
    """
    low = min(float(x.min()) for x, _ in binned.blocks())
    high = max(float(x.max()) for x, _ in binned.blocks())
    k_0 = float(law.shape[binned.column, binned.column])
    grids = {}
    for coalition in needed:
        w, v = best_unbiased_combination(law.of(coalition).level_covariance)
        std = float(np.sqrt(max(0.0, float(v)) * k_0))
        grids[coalition] = _Grid(w, std, low, high, binned.data)
    found = {}
    for batch in batches([(coalition, grid.numbers) for coalition, grid in grids.items()]):
        some = {coalition: grids.pop(coalition) for coalition in batch}
        _go_through(binned, blocks, some)
        found.update({coalition: (grid.sums, grid.closed) for coalition, grid in some.items()})
    return found


def _go_through(binned: Binned, blocks: Blocks, grids: Mapping[Coalition, _Grid]) -> None:
    for x, codes in binned.blocks():
        for grid in grids.values():
            grid.count(x, codes)
    groups = moment_groups(binned.table.rows, binned.table.width)
    for grid in grids.values():
        grid.learn(groups[-1][-1][0] + 1)
    for (_, codes), (index, _, copies) in zip(binned.blocks(), blocks(), strict=True):
        for coalition, grid in grids.items():
            shown = np.array([copies[copy - 1][:, binned.column] for copy in coalition])
            grid.measure(shown, codes.astype(np.intp), group_of(groups[index]))


class _Grid:
    def __init__(
        self, weights: Array, std: float, low: float, high: float, data: CategoricalTable
    ) -> None:
        span, reach = high - low, REACH * std
        if std <= 0 or (span + 2 * reach) * FINENESS / std > MOST_CELLS:
            raise NotApplicable(
                "the copies' noise is too small beside the column's range for the posterior of its bins"
            )
        self._weights, self._std, self._data, self._low = weights, std, data, low - reach
        finest = (span + 2 * reach) / MOST_CELLS
        self._width = max(min(std / FINENESS, span / 512), finest)
        cells = int(np.ceil((span + 2 * reach) / self._width)) + 1
        self._counts = np.zeros((data.size, cells))

    @property
    def numbers(self) -> int:
        """Numbers in memory: counts, probabilities and posteriors."""
        return 4 * self._counts.size

    def _place(self, values: Array) -> Indices:
        return np.rint((values - self._low) / self._width).astype(np.intp)

    def count(self, x: Array, codes: Codes) -> None:
        """Count the values of each bin by cell."""
        np.add.at(self._counts, (codes.astype(np.intp), self._place(x)), 1.0)

    def learn(self, groups: int) -> None:
        """Compute the posterior of every cell, and the closed forms."""
        data, given = self._data, self._likelihood()
        joint = data.prior[:, None] * given
        met = joint.sum(axis=0)
        # a combination outside the range gets the nearest cell of positive probability
        reached = np.flatnonzero(met > 0)
        self._reached = int(reached[0]), int(reached[-1])
        outside = np.tile(data.prior[:, None], (1, met.size))
        P = np.divide(joint, met, out=outside, where=met > 0).T
        self._quantities = quantities(P, Frame(data.prior, scores=data.scores))
        self.sums = Sums(data.size, groups)
        self.closed = expected(given, data.prior, self._quantities, data.rows)

    def measure(self, copies: Array, codes: Indices, group: Indices) -> None:
        """Measure the records of one block, with copies of shape (k, b)."""
        place = np.clip(self._place(self._weights @ copies), *self._reached)
        self.sums.add(self._quantities, place, codes, group)

    def _likelihood(self) -> Array:
        """Return ``P(T in cell | bin)``, shape (s, cells)."""
        reach = int(np.ceil(REACH * self._std / self._width))
        kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * self._width / self._std) ** 2)
        counts = self._counts.astype(np.float64)
        spread = scipy.signal.fftconvolve(counts, kernel[None] / kernel.sum(), axes=1)
        spread = spread[:, reach : reach + self._counts.shape[1]]
        spread = np.where(spread > 1e-9, spread, 0.0)  # below: rounding of the transform
        total = spread.sum(axis=1, keepdims=True)
        return np.divide(spread, total, out=np.zeros_like(spread), where=total > 0)
