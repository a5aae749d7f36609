"""SVD filtering: keep directions of at least twice the noise's variance.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``λ̂_j, v̂_j`` | eigenvalues, falling, and eigenvectors of the copy's sample covariance | scalar, (N,) | liu2008, section 3.3 |
| ``k`` | ``min{j : λ̂_j < 2σ²} − 1``; N when no eigenvalue is below | scalar | liu2008, section 3.3, with ERRATA |
| ``x̂`` | ``m + Σ_{j≤k} v̂_j v̂_jᵀ (y − m)``, m the copy's mean | (N,) | liu2008, section 3.3 |

Copies and noise are treated as in ``spectral-filter``. Below ``1/(√2 − 1)² ≈ 5.8`` rows per attribute
noise alone crosses ``2σ²``.
"""

from auditor.adversary.single_copy import SampleFilter
from auditor.plugin import Array, register


@register
class SVDFilter(SampleFilter):
    """Keep directions of at least twice the noise's variance."""

    name = "svd-filter"
    reference = "guo2006; liu2008, section 3.3"
    wins = (
        "Picks near the best number of directions when rows are many; with fewer than about six rows an attribute it keeps "
        "pure noise, and it loses to bayes-estimate wherever components are comparable to the noise, and to the copy as it is "
        "under noise shaped like the data."
    )

    def kept(self, values: Array, variance: float, rows: int) -> int:
        return worth_keeping(values, variance)


def worth_keeping(values: Array, variance: float) -> int:
    """``k = min{j : λ̂_j < 2σ²} − 1``, or N if no eigenvalue is below.

    Examples
    --------
    >>> import numpy as np
    >>> worth_keeping(np.array([400.0, 50.0, 49.0]), 25.0), worth_keeping(np.array([400.0, 60.0]), 25.0)
    (2, 2)
    """
    return int((values >= 2.0 * variance).sum())
