"""Spectral filtering: keep the directions in which the copy varies more than noise alone ever could.

Projects the released rows on those eigenvectors of their sample covariance whose eigenvalues random-matrix theory cannot explain by noise.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``λ̂_j, v̂_j`` | eigenvalues and eigenvectors of the copy's sample covariance | scalar, (N,) | liu2008, Protocol 2 |
| ``Q`` | records / attributes | scalar | liu2008, section 3.2 |
| ``λ_max`` | ``σ²(1 + 1/√Q)²`` | scalar | liu2008, section 3.2 |
| ``k`` | number of ``λ̂_j > λ_max``; 0 when none is | scalar | liu2008, Protocol 2, with ERRATA |
| ``x̂`` | ``m + Σ_{j≤k} v̂_j v̂_jᵀ (y − m)``, m the copy's mean | (N,) | liu2008, Protocol 2, with ERRATA |

A coalition's copies are first combined with the weights of least noise that the law of the noise gives
(``auditor.adversary.single_copy``). Noise that
is not white is treated as if it were, with its mean variance, as huang2005 does in Experiment 4. ``estimated`` knowledge limits
the filter to its rows; otherwise it uses all released. ``shrinkage: optimal`` puts Gavish and Donoho's factor in place of 1 on the
directions kept (the bounds are the same), and ``noise-variance: unknown`` estimates ``σ²`` from the spectrum.

Reference: kargupta2003; liu2008, section 3.2. Fails when the data's small components are not small beside the noise: their
eigenvalues then cross the bound one by one and bring their noise along, or stay below it and are lost; and under coloured noise.
"""

from __future__ import annotations

from auditor.adversary.single_copy import SampleFilter
from auditor.numerics.random_matrix import noise_edge
from auditor.plugin import Array, register


@register
class SpectralFilter(SampleFilter):
    """Keeps the directions whose variance exceeds what random-matrix theory allows noise (Kargupta et al.)."""

    name = "spectral-filter"
    reference = "kargupta2003; liu2008, section 3.2, Protocol 2"
    wins = (
        "Wins without knowing the data when a few strong components stand clear of the noise and the rest is negligible; "
        "loses to pca-filter and bayes-estimate when weak components reach the bound, and under coloured noise."
    )

    def kept(self, values: Array, variance: float, rows: int) -> int:
        """Return the number of ``λ̂_j > λ_max``, shape of the values (N,)."""
        return int((values > noise_edge(rows, len(values), variance)).sum())
