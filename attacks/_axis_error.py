"""First-order error of principal axes estimated from a sample.

A sample's axes are rotated by ``Ω`` relative to the population's. ``z`` is a centred record along
the axes, ``λ`` their variances.

| symbol | meaning | source |
| --- | --- | --- |
| ``Ω_ij`` | ``mean z_i z_j / (λ_j − λ_i)`` over the sample: antisymmetric | Anderson 1963, for any distribution |
| ``T`` | contribution of one record, ``z_i z_j / (λ_j − λ_i)``; 0 on the diagonal | |
| ``Q`` | ``E ΩᵀΩ = (E TᵀT) / s`` for one sample; ``Q`` adds up over two independent samples | |
| error | ``xᵀ Q x`` for a record x that is rotated by one sample's axes and back by the other's | |

``(1/s + 1/m)`` also holds exactly for a sample and the rest of its table, with the table's moments.
Valid for small rotations: variances must differ by more than their sampling error.
"""

from __future__ import annotations

import numpy as np

from auditor.plugin import Array


def turning(z: Array, variances: Array, size: int) -> Array:
    """Return ``Q = E ΩᵀΩ`` of a sample's axes, shape (N, N).

    Parameters
    ----------
    z : ndarray of shape (m, N)
        Centred records of the population along its axes.
    variances : ndarray of shape (N,)
        ``λ``, all different.
    size : int
        Records in the sample.
    """
    gaps = variances - variances[:, None]  # λ_j − λ_i
    G = np.divide(1.0, gaps, out=np.zeros_like(gaps), where=gaps != 0)
    Q = np.zeros_like(G)
    for i, row in enumerate(G):  # Σ_i G_ij G_ik E z_i² z_j z_k
        weighted = z * z[:, i : i + 1]
        Q += np.outer(row, row) * (weighted.T @ weighted)
    return np.asarray(Q / len(z) / size)
