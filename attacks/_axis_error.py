"""How far principal axes of two samples of one population lie apart, to first order: what theory says of matching them.

The axes of a sample turn by ``Ω`` against the population's. With ``z`` a centred record along the axes and ``λ`` their variances,

| symbol | meaning | source |
| --- | --- | --- |
| ``Ω_ij`` | ``mean z_i z_j / (λ_j − λ_i)`` over the sample: antisymmetric | Anderson 1963, in its form for any distribution |
| ``T`` | one record's part, ``z_i z_j / (λ_j − λ_i)``; 0 on the diagonal | |
| ``Q`` | ``E ΩᵀΩ = (E TᵀT) / s`` for one sample; of two independent samples the turns subtract, so their ``Q`` add | |
| error | ``xᵀ Q x`` for a record x along the axes that is rotated by one sample's axes and back by the other's | |

A sample and the rest of one table are drawn without replacement: ``(1/s + 1/m)`` holds exactly then too, the moments being the table's.
Good while turns are small, so where variances lie well apart for the size of the samples.
"""

from __future__ import annotations

import numpy as np

from auditor.plugin import Array


def turning(z: Array, variances: Array, size: int) -> Array:
    """Return ``Q = E ΩᵀΩ`` of the axes of a sample, shape (N, N).

    Parameters
    ----------
    z : ndarray of shape (m, N)
        Records of the population along its axes, centred.
    variances : ndarray of shape (N,)
        ``λ``, all different.
    size : int
        Of the sample that the axes come from.
    """
    gaps = variances - variances[:, None]  # λ_j − λ_i
    G = np.divide(1.0, gaps, out=np.zeros_like(gaps), where=gaps != 0)
    Q = np.zeros_like(G)
    for i, row in enumerate(G):  # Σ_i G_ij G_ik E z_i² z_j z_k
        weighted = z * z[:, i : i + 1]
        Q += np.outer(row, row) * (weighted.T @ weighted)
    return np.asarray(Q / len(z) / size)
