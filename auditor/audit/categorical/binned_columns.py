"""Posterior of a numeric column's bin, from copies with additive noise.

Under jointly Gaussian noise ``Sigma ⊗ K_0`` the least-variance combination ``T = Σ w_i Y_i`` of one
attribute's copies is sufficient: X plus noise of variance ``v k_0``. With the table's distribution
of X, the posterior of bin C is

    ``P(c | t) ∝ Σ_{x in c} φ((t − x) / √(v k_0))``

Values and combinations are rounded to a sixteenth of the noise's standard deviation. *Not used*:
copies of other attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from auditor.adversary.knowledge import Knowledge, Perfect
from auditor.audit.base.request import CellContext
from auditor.audit.categorical.attack_records import cell_records, closed_bars, gain_record
from auditor.audit.categorical.error_bars import jackknifed
from auditor.audit.categorical.posterior_pass import Found, group_of
from auditor.audit.categorical.release import Expected, Frame, Sums, expected, measured
from auditor.base import NotApplicable, scipy
from auditor.base.types import Array, Blocks, Coalition, Codes, Indices
from auditor.data.columns.categorical_table import CategoricalTable
from auditor.data.table import Table
from auditor.numerics.blocks import moment_groups, row_blocks
from auditor.numerics.combination import best_unbiased_combination
from auditor.results.records import Measurement
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw

FINENESS = 16
REACH = 7.0
"""Standard deviations at which noise is cut off: probability 3e-12."""
MOST_CELLS = 2**15
AT_ONCE = 2**22
"""Numbers of coalitions in one pass: 32 MB."""


@dataclass(frozen=True)
class Binned:
    """One numeric column of a table, and its bins."""

    table: Table
    data: CategoricalTable
    column: int

    @classmethod
    def of(cls, table: Table) -> Binned:
        """Column that exists as numbers and in bins.

        Raises
        ------
        NotApplicable
            No column, or several.
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
    """Records of the exact posterior of the bins.

    Parameters
    ----------
    blocks : callable
        Yields rows of table and copies block by block.
    law : NoiseLaw or None
    needed, wanted : sequences of tuple of int
        Coalitions with every single member; coalitions to report.

    Raises
    ------
    NotApplicable
        The law is not jointly Gaussian of one shape, knowledge is not perfect, or the grid is too
        coarse.
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
    (sums, closed), data = infer(binned, blocks, law, needed), binned.data
    bars, records = jackknifed(sums), list[Measurement]()
    for one in wanted:
        forms = closed[one]
        records += cell_records(
            context, one, sums[one], forms, closed_bars(forms), data.prior, data.scores
        )
        records.append(gain_record(context, one, sums, closed, bars[one]))
    return records


def infer(
    binned: Binned, blocks: Blocks, law: KroneckerNoise, needed: Sequence[Coalition]
) -> tuple[Found, dict[Coalition, dict[str, Expected]]]:
    """Sums and closed forms for every coalition's best combination.

    Coalitions whose posteriors fit into memory share two passes.
    """
    low = min(float(x.min()) for x, _ in binned.blocks())
    high = max(float(x.max()) for x, _ in binned.blocks())
    k_0, grids = float(law.shape[binned.column, binned.column]), dict[Coalition, _Grid]()
    for coalition in needed:
        w, v = best_unbiased_combination(law.of(coalition).level_covariance)
        std = float(np.sqrt(max(0.0, float(v)) * k_0))
        grids[coalition] = _Grid(w, std, low, high, binned.data)
    groups, sums = moment_groups(binned.table.rows, binned.table.width), Found()
    closed = dict[Coalition, dict[str, Expected]]()
    together = max(1, AT_ONCE // max(grid.numbers for grid in grids.values()))
    for start in range(0, len(needed), together):
        some = {one: grids.pop(one) for one in needed[start : start + together]}
        for x, codes in binned.blocks():
            for grid in some.values():
                grid.count(x, codes)
        closed |= {one: grid.learn() for one, grid in some.items()}
        for (_, codes), (index, _, copies) in zip(binned.blocks(), blocks(), strict=True):
            group, size = group_of(groups[index]), groups[-1][-1][0] + 1
            for one, grid in some.items():
                shown = np.array([copies[copy - 1][:, binned.column] for copy in one])
                sums.add({one: grid.measure(shown, codes.astype(np.intp), group, size)})
    return sums, closed


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
        return 4 * self._counts.size

    def _place(self, values: Array) -> Indices:
        return np.rint((values - self._low) / self._width).astype(np.intp)

    def count(self, x: Array, codes: Codes) -> None:
        np.add.at(self._counts, (codes.astype(np.intp), self._place(x)), 1.0)

    def learn(self) -> dict[str, Expected]:
        prior, given = self._data.prior, self._likelihood()
        joint = prior[:, None] * given
        met = joint.sum(axis=0)
        # combinations out of range get the nearest possible cell
        reached = np.flatnonzero(met > 0)
        self._reached = int(reached[0]), int(reached[-1])
        outside = np.tile(prior[:, None], (1, met.size))
        self._posterior = np.divide(joint, met, out=outside, where=met > 0).T
        self._frame = Frame(prior, scores=self._data.scores)
        return expected(given, prior, self._posterior, self._frame, self._data.rows)

    def measure(self, copies: Array, codes: Indices, group: Indices, groups: int) -> Sums:
        place = np.clip(self._place(self._weights @ copies), *self._reached)
        found = measured(self._posterior, self._frame, place, codes)
        return Sums.of(found, codes, group, self._data.size, groups)

    def _likelihood(self) -> Array:
        reach = int(np.ceil(REACH * self._std / self._width))
        kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * self._width / self._std) ** 2)
        spread = scipy.signal.fftconvolve(self._counts, kernel[None] / kernel.sum(), axes=1)
        spread = spread[:, reach : reach + self._counts.shape[1]]
        spread = np.where(spread > 1e-9, spread, 0.0)  # rounding of the transform
        total = spread.sum(axis=1, keepdims=True)
        return np.divide(spread, total, out=np.zeros_like(spread), where=total > 0)
