"""SVD filtering: keep the directions in which the copy varies at least twice as much as the noise.

Keeping a direction gains the data's variance there and costs the noise's; ``λ̂ ≥ 2σ²`` says that it gains more than it costs.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``λ̂_j, v̂_j`` | eigenvalues, falling, and eigenvectors of the copy's sample covariance | scalar, (N,) | liu2008, section 3.3 |
| ``k`` | ``min{j : λ̂_j < 2σ²} − 1``; N when no eigenvalue is below | scalar | liu2008, section 3.3, with ERRATA |
| ``x̂`` | ``m + Σ_{j≤k} v̂_j v̂_jᵀ (y − m)``, m the copy's mean | (N,) | liu2008, section 3.3 |

The right singular vectors of the centred copy are those eigenvectors, and its singular values ``√(n λ̂_j)``: the two routes are one.
A coalition's copies are first combined with the weights of least noise that the law of the noise gives
(``auditor.adversary.single_copy``). Noise that
is not white is treated as if it were, with its mean variance. ``estimated`` knowledge limits the filter to its rows; otherwise it
uses all released. ``shrinkage: optimal`` shrinks the directions kept (and drops those that noise alone explains), and
``noise-variance: unknown`` estimates ``σ²`` from the spectrum.

Reference: guo2006; liu2008, section 3.3. Near the best choice of k when rows are many. Fails when they are few beside the attributes: from
``Q`` below ``1/(√2 − 1)² ≈ 5.8`` noise alone crosses ``2σ²``.
"""

from __future__ import annotations

from auditor.adversary.single_copy import SampleFilter
from auditor.plugin import Array, register


@register
class SVDFilter(SampleFilter):
    """Keeps the directions whose variance is at least twice the noise's (Guo, Wu and Li)."""

    name = "svd-filter"
    reference = "guo2006; liu2008, section 3.3"
    wins = (
        "Picks near the best number of directions when rows are many; with fewer than about six rows an attribute it keeps "
        "pure noise, and it loses to bayes-estimate wherever components are comparable to the noise, and to the copy as it is "
        "under noise shaped like the data."
    )

    def kept(self, values: Array, variance: float, rows: int) -> int:
        """Return how many are worth their noise, however many rows there are."""
        return worth_keeping(values, variance)


def worth_keeping(values: Array, variance: float) -> int:
    """Return ``k = min{j : λ̂_j < 2σ²} − 1``, or N when no eigenvalue is below.

    Examples
    --------
    >>> import numpy as np
    >>> worth_keeping(np.array([400.0, 50.0, 49.0]), 25.0), worth_keeping(np.array([400.0, 60.0]), 25.0)
    (2, 2)
    """
    return int((values >= 2.0 * variance).sum())
