"""Spectral filtering: keep directions of more variance than pure noise.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``λ̂_j, v̂_j`` | eigenvalues and eigenvectors of the copy's sample covariance | scalar, (N,) | liu2008, Protocol 2 |
| ``Q`` | records / attributes | scalar | liu2008, section 3.2 |
| ``λ_max`` | random-matrix bound ``σ²(1 + 1/√Q)²`` of noise | scalar | liu2008, section 3.2 |
| ``k`` | number of ``λ̂_j > λ_max``; 0 when none is | scalar | liu2008, Protocol 2, with ERRATA |
| ``x̂`` | ``m + Σ_{j≤k} v̂_j v̂_jᵀ (y − m)``, m the copy's mean | (N,) | liu2008, Protocol 2, with ERRATA |

Copies are averaged with minimum-variance weights (``auditor.adversary.single_copy``). Coloured noise
is treated as white with its mean variance, as in huang2005, Experiment 4. ``estimated`` knowledge
limits the filter to its rows.
"""

from auditor.adversary.single_copy import SampleFilter
from auditor.numerics.linear_algebra import noise_edge
from auditor.plugin import Array, register


@register
class SpectralFilter(SampleFilter):
    """Keep directions above the random-matrix bound of noise."""

    name = "spectral-filter"
    in_all = False
    reference = "kargupta2003; liu2008, section 3.2, Protocol 2"
    wins = (
        "Wins without knowing the data when a few strong components stand clear of the noise and the rest is negligible; "
        "loses to pca-filter and bayes-estimate when weak components reach the bound, and under coloured noise."
    )

    def kept(self, values: Array, variance: float, rows: int) -> int:
        return int((values > noise_edge(rows, len(values), variance)).sum())
