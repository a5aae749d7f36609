"""Posterior of a numeric column's bin, from copies with additive noise.

Under jointly Gaussian noise ``Sigma ⊗ K_0`` the least-variance combination ``T = Σ w_i Y_i`` of one
attribute's copies is sufficient: X plus noise of variance ``v k_0``. With the table's distribution
of X, the posterior of bin C is

    ``P(c | t) ∝ Σ_{x in c} φ((t − x) / √(v k_0))``

Values and combinations are rounded to a sixteenth of the noise's standard deviation. *Not used*:
copies of other attributes.
"""

import math
from collections.abc import Iterator

import numpy as np

from auditor.adversary.knowledge import Knowledge, Perfect
from auditor.audit.base.request import CellContext
from auditor.audit.categorical.attack_records import coalition_records, jackknifed
from auditor.audit.categorical.posterior_pass import (
    Expected,
    Frame,
    Sums,
    expected,
    group_of,
    measured,
)
from auditor.audit.numeric.moment_pass import together
from auditor.audit.numeric.release import Release
from auditor.base import NotApplicable, scipy
from auditor.base.types import Array, Coalition, Coalitions, Indices
from auditor.numerics.blocks import moment_groups
from auditor.numerics.combination import best_unbiased_combination
from auditor.numerics.linear_algebra import quotient
from auditor.results.records import Measurement
from auditor.schemes.base.noise_law import KroneckerNoise

# --------------------------------------------------------------------------------------------------


FINENESS = 16
REACH = 7.0
"""Standard deviations at which noise is cut off: probability 3e-12."""
MOST_CELLS = 2**15


def binned_records(
    release: Release,
    needed: Coalitions,
    wanted: Coalitions,
    context: CellContext,
    knowledge: Knowledge,
) -> list[Measurement]:
    """Records of the exact posterior of the bins.

    Parameters
    ----------
    needed, wanted : sequences of tuple of int
        Coalitions with every single member; coalitions to report.

    Raises
    ------
    NotApplicable
        No binned column or several, the law is not jointly Gaussian of one shape, knowledge is not
        perfect, or the grid is too coarse.
    """
    table, law = release.table, release.law
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
    if not isinstance(knowledge, Perfect):
        raise NotApplicable(
            f"the posterior of bins given additive copies needs the exact distribution, not {knowledge.label} knowledge"
        )
    if not isinstance(law, KroneckerNoise) or law.distribution != "gaussian":
        raise NotApplicable(
            "the posterior of bins given additive copies needs jointly Gaussian noise of one shape"
        )
    column, frame = table.attributes.index(data.names[0]), Frame(data.prior, scores=data.scores)
    groups = moment_groups(table.rows, table.width)
    sums, closed = dict[Coalition, Sums](), dict[Coalition, dict[str, Expected]]()

    def originals() -> Iterator[tuple[Array, Indices]]:
        for a, b in release.bounds:
            yield table.read(a, b)[:, column], data.read(a, b).astype(int)

    ends = table.scan.low[column], table.scan.high[column]
    for one in needed:
        w, v = best_unbiased_combination(law.of(one).level_covariance)
        grid = _Grid(math.sqrt(max(0.0, float(v)) * law.shape[column, column]), *ends)
        counts = np.zeros((data.size, grid.cells))
        for x, codes in originals():
            np.add.at(counts, (codes, grid.place(x)), 1.0)
        given = grid.likelihood(counts)
        joint = data.prior[:, None] * given
        met = joint.sum(axis=0)
        P = quotient(joint, met, data.prior[:, None]).T
        closed[one] = expected(given, data.prior, P, frame, data.rows)
        reached = np.flatnonzero(met > 0)  # combinations out of range get the nearest such cell
        for (_, codes), (index, _, copies) in zip(originals(), release.blocks(), strict=True):
            shown = w @ np.array([copies[copy - 1][:, column] for copy in one])
            found = measured(P, frame, np.clip(grid.place(shown), *reached[[0, -1]]), codes)
            parts = codes, group_of(groups[index]), data.size, groups[-1][-1][0] + 1
            sums = together(sums, {one: Sums.of(found, *parts)})
    bars, beliefs = jackknifed(sums), (data.prior, data.scores)
    return [
        record
        for one in wanted
        for record in coalition_records(context, one, sums, closed, bars[one], *beliefs)
    ]


class _Grid:
    def __init__(self, std: float, low: float, high: float) -> None:
        reach = REACH * std
        span = high - low + 2 * reach
        if std <= 0 or span * FINENESS / std > MOST_CELLS:
            raise NotApplicable(
                "the copies' noise is too small beside the column's range for the posterior of its bins"
            )
        self._low, self._std = low - reach, std
        self._width = max(min(std / FINENESS, (high - low) / 512), span / MOST_CELLS)
        self.cells = int(np.ceil(span / self._width)) + 1

    def place(self, values: Array) -> Indices:
        return np.rint((values - self._low) / self._width).astype(int)

    def likelihood(self, counts: Array) -> Array:
        """Chance of each combination by bin, from counts by bin and cell."""
        # values are ``REACH`` deviations from either end, so a periodic convolution will do
        blur = 0.0, self._std / self._width
        spread = scipy.ndimage.fourier_gaussian(np.fft.rfft(counts), blur, self.cells)
        spread = np.fft.irfft(spread, self.cells)
        spread = np.where(spread > 1e-9, spread, 0.0)  # rounding of the transform
        return quotient(spread, spread.sum(axis=1, keepdims=True))
