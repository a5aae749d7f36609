"""Tables to attack."""

import numpy as np


def table(n, eigenvalues, seed=1, mean=0.0):
    """Rows with exactly these eigenvalues of the covariance (divisor n)."""
    rng = np.random.default_rng(seed)
    N = len(eigenvalues)
    scores = rng.standard_normal((n, N))
    scores -= scores.mean(axis=0)
    V = np.linalg.qr(rng.standard_normal((N, N)))[0]
    return mean + (np.linalg.qr(scores)[0] * np.sqrt(n) * np.sqrt(eigenvalues)) @ V.T
