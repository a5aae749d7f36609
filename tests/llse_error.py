"""The error that the best linear guess leaves, of any law of noise."""

import numpy as np

from auditor.numerics.combination import best_unbiased_combination
from auditor.numerics.linear_algebra import Pencil
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor_attacks.llse import llse_weights


def llse_error(K_X, law):
    if isinstance(law, KroneckerNoise):
        _, v = best_unbiased_combination(law.level_covariance)
        return Pencil.of(K_X, law.shape).error(v)
    W = llse_weights(K_X, law)
    lost = np.eye(len(K_X)) - W @ np.tile(np.eye(len(K_X)), (law.copies, 1))
    V = W @ law.passed_root
    return np.asarray(lost @ K_X @ lost.T + V @ V.T)
