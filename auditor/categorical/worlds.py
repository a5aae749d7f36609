"""Additive copies of a column that is also cut into bins: the exact posterior of its bin, so that both worlds share their axes.

Given the copies of one attribute with jointly Gaussian noise ``Sigma ⊗ K_0``, their least-variance combination ``T = Σ w_i Y_i``, X
plus noise of variance ``v k_0``, says all they do of it. With the table's own distribution of X the posterior of the bin C is

    ``P(c | t) ∝ Σ_{x in c} φ((t − x) / √(v k_0))``

which is what ``posterior`` gives for uniform copies; accuracy of the best guess, reconstruction probability, mutual information of bin and
copies, and the error of the posterior mean of the bins' middles are then one measure for both. Values and combinations are put on a grid of
a sixteenth of the noise's standard deviation. Not used: the other attributes' copies, which may say more through correlation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.blocks import JACKKNIFE_GROUPS
from auditor.categorical.measures import Expected, Frame, Sums, expected, quantities
from auditor.categorical.records import Cell, cell_records, gain_record
from auditor.data.categorical import CategoricalTable
from auditor.data.table import Table
from auditor.errors import NotApplicable
from auditor.knowledge import Knowledge, Perfect
from auditor.linear_algebra import best_unbiased_combination
from auditor.noise import GaussianNoise, NoiseLaw
from auditor.records import CellContext
from auditor.results import Measurement
from auditor.scenario.coalitions import Coalition

Array = NDArray[np.float64]

FINENESS = 16
REACH = 7.0
"""Standard deviations of noise beyond which nothing is counted: a chance of 3e-12."""
MOST_CELLS = 2**15


@dataclass(frozen=True)
class Binned:
    """One numeric column of a table, and its bins."""

    values: Array
    data: CategoricalTable
    column: int


def binned_column(table: Table) -> Binned:
    """Return the column that is there as numbers and in bins.

    Raises
    ------
    NotApplicable
        There is none, or more than one.
    """
    data = table.categorical
    if data is None or len(data.attributes) != 1 or data.scores is None or data.names[0] not in table.attributes:
        raise NotApplicable("attacks additive copies only of one numeric column that data.bin cuts into classes")
    column = table.attributes.index(data.names[0])
    return Binned(table.read(0, table.rows)[:, column], data, column)


def binned_records(
    table: Table, copies: Sequence[Array], law: NoiseLaw | None, needed: Sequence[Coalition], wanted: Sequence[Coalition],
    context: CellContext, attack: str, knowledge: Knowledge,
) -> list[Measurement]:  # fmt: skip
    """Return the records of the exact posterior of the bins.

    Parameters
    ----------
    table : Table
    copies : sequence of M ndarrays of shape (n, N)
    law : NoiseLaw or None
    needed, wanted : sequences of tuple of int
        Coalitions to infer from, every member alone among them, and those to tell of.
    context, attack, knowledge
        For the records.

    Raises
    ------
    NotApplicable
        The law is not jointly Gaussian of one shape, knowledge is not perfect, or a coalition's noise is too small for the grid.
    """
    binned = binned_column(table)
    if not isinstance(knowledge, Perfect):
        raise NotApplicable(f"the posterior of bins given additive copies needs the exact distribution, not {knowledge.label} knowledge")
    if not isinstance(law, GaussianNoise) or law.distribution != "gaussian":
        raise NotApplicable("the posterior of bins given additive copies needs jointly Gaussian noise of one shape")
    columns = [copy[:, binned.column] for copy in copies]
    k_0 = float(law.shape[binned.column, binned.column])
    found = {}
    for coalition in needed:
        w, v = best_unbiased_combination(law.of(coalition).level_covariance)
        T = np.asarray(sum(weight * columns[copy - 1] for weight, copy in zip(w, coalition, strict=True)))
        found[coalition] = _infer(binned, T, float(np.sqrt(max(0.0, float(v)) * k_0)))
    records = []
    for coalition in wanted:
        cell, (sums, closed) = Cell(context, attack, knowledge.label, coalition), found[coalition]
        cell_records(cell, sums, closed, binned.data.prior, binned.data.scores, None)
        best = min(coalition, key=lambda copy: found[(copy,)][0].groups.sum())
        error = {c: 1.0 - found[c][1]["reconstruction_probability"].value for c in (coalition, *((copy,) for copy in coalition))}
        gain = 1.0 - error[coalition] / min(error[(copy,)] for copy in coalition)
        gain_record(cell, sums, found[(best,)][0], gain)
        records += cell.records
    return records


def _infer(binned: Binned, T: Array, std: float) -> tuple[Sums, dict[str, Expected]]:
    """Return measured sums and closed forms for one combination of copies with noise of that standard deviation."""
    x, data = binned.values, binned.data
    low, width, cells = _grid(x, std)
    given = _likelihood(x, data, low, width, cells, std)
    joint = data.prior[:, None] * given
    met = joint.sum(axis=0)
    # a combination beyond every value that was counted gets the nearest cell that some value reaches
    reached = np.flatnonzero(met > 0)
    P = np.divide(joint, met, out=np.tile(data.prior[:, None], (1, cells)), where=met > 0).T
    place = np.clip(np.rint((T - low) / width).astype(np.intp), reached[0], reached[-1])
    quantity = quantities(P, Frame(data.prior, scores=data.scores))
    groups = np.arange(x.size) * min(JACKKNIFE_GROUPS, x.size) // x.size
    sums = Sums(data.size, int(groups[-1]) + 1)
    sums.add(quantity, place, data.codes.astype(np.intp), groups)
    return sums, expected(given, data.prior, quantity, x.size)


def _grid(x: Array, std: float) -> tuple[float, float, int]:
    span = float(np.ptp(x))
    if std <= 0 or (span + 2 * REACH * std) * FINENESS / std > MOST_CELLS:
        raise NotApplicable("the copies' noise is too small beside the column's range for the posterior of its bins")
    width = min(std / FINENESS, span / 512)
    cells = int(np.ceil((span + 2 * REACH * std) / width)) + 1
    return float(x.min()) - REACH * std, width, cells


def _likelihood(x: Array, data: CategoricalTable, low: float, width: float, cells: int, std: float) -> Array:
    """Return ``P(T in cell | bin)``, shape (s, cells)."""
    from scipy.signal import fftconvolve  # half a second to import, which every other audit would pay for

    place = np.rint((x - low) / width).astype(np.intp)
    counts = np.bincount(data.codes.astype(np.intp) * cells + place, minlength=data.size * cells).reshape(data.size, cells)
    reach = int(np.ceil(REACH * std / width))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * width / std) ** 2)

    spread = fftconvolve(counts, (kernel / kernel.sum())[None, :], mode="same", axes=1)
    spread = np.where(spread > 1e-9, spread, 0.0)  # what is below is rounding of the transform
    total = spread.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(spread, total, out=np.zeros_like(spread), where=total > 0))
