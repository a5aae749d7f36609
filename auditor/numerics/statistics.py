"""Error bars and tests: intervals, jackknife, equivalence, multiple tests."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from auditor.base.types import Array
from auditor.process.deferred import scipy

Z_95 = 1.959963984540054
"""``ndtri(0.975)``, without SciPy.
"""


BY_CHANCE = 1e-4
"""False-alarm probability of statements on attributes or row order."""


def quantile(probability: float, degrees: float = math.inf) -> float:
    """Quantile of Student's t; normal for infinite degrees."""
    return float(scipy.special.stdtrit(degrees, probability))


def noncentral_quantile(probability: float, degrees: float, mean: float) -> float:
    """Quantile of noncentral t, ``(mean + Z)/S``."""
    return (
        mean + quantile(probability)
        if math.isinf(degrees)
        else float(scipy.special.nctdtrit(degrees, mean, probability))
    )


def column_ranks(values: Array) -> Array:
    """Each value's rank in its column, over n; ties share their mean."""
    # importing scipy.stats takes half of the time to a first verdict
    return np.apply_along_axis(_mean_ranks, 0, values) / len(values)


def _mean_ranks(x: Array) -> Array:
    _, which, counts = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[which]


def standardised(X: Array, least: float = 0.0) -> Array:
    """Each column with mean 0 and variance 1, shape (n, N).

    Deviations up to ``least`` are only centred.
    """
    X = X - X.mean(axis=0)
    deviation = X.std(axis=0)
    return X / np.where(deviation > least, deviation, 1.0)


def standard_ranks(X: Array) -> Array:
    """Ranks of each column, standardised; zeros if all tie."""
    return standardised(column_ranks(X), 1e-9)


def tail(statistic: float, degrees: float = math.inf) -> float:
    """``P(T > statistic)`` for Student's t; normal if infinite."""
    return float(scipy.special.stdtr(degrees, -statistic))


def wave_tail(t: float) -> float:
    """Bound ``t e^{1−t}`` on ``P(|Σ w exp(iθ)|² ≥ t Σ |w|²)``.

    Phases θ are independent and uniform. For complex λ, ``E exp(Re λ e^{iθ}) = I_0(|λ|) ≤
    exp(|λ|²/4)``. Over normal λ this is ``E exp(b t) ≤ 1/(1 − b)``, b < 1. Then Markov's
    inequality.
    """
    return t * math.exp(1.0 - t) if t > 1.0 else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, for family-wise error control.

    In [0, 1]; tests may be dependent.
    -----
    Source: holm1979. ``p̃_(i) = max_{j ≤ i} min(1, (m − j + 1) p_(j))`` over ascending p.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    m = len(p_values)
    adjusted, largest = [0.0] * m, 0.0
    for rank, place in enumerate(sorted(range(m), key=lambda place: p_values[place])):
        largest = max(largest, min(1.0, (m - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted


def one_sided(estimate: float, bound: float, std_error: float, degrees: float = math.inf) -> float:
    """P-value against ``H0: truth ≥ bound``.

    Without an error the estimate itself decides.
    """
    if std_error == 0.0:
        return 0.0 if estimate < bound else 1.0
    return tail((bound - estimate) / std_error, degrees)


def two_sided(
    difference: float, std_error: float, scale: float, degrees: float = math.inf
) -> float:
    """P-value against ``H0: no difference``.

    Below 1e-9 of ``scale`` it is rounding.
    """
    if abs(difference) <= 1e-9 * scale:
        return 1.0
    if std_error == 0.0:
        return 0.0
    return 2.0 * tail(abs(difference) / std_error, degrees)


def jackknife_error(left_out: Array) -> Array:
    """``sqrt((G−1)/G · Σ (θ_(g) − θ̄)²)`` of left-out groups, (G, ...)."""
    G = left_out.shape[0]
    spread = left_out - left_out.mean(axis=0)
    return np.sqrt((G - 1) / G * np.einsum("g...,g...->...", spread, spread))


def share_tests(shares: Sequence[tuple[float, int, int]], margin: float) -> tuple[float, float]:
    """P-values against «true share ≥ margin» and «true share ≤ margin».

    Parameters
    ----------
    shares : sequence of (share, regressors, observations)
        Squared multiple correlations of independent normal samples.
    margin
        In (0, 1).

    Notes
    -----
    The first is divided by its probability at 0 (CLs, read2002), so that no small sample rules out
    the margin.

    ``F = Σ (n−p) R²/(1−R²) / Σ p`` is noncentral F with Σ p and Σ (n−p) degrees of freedom and
    noncentrality ``Σ n ρ²/(1−ρ²)``: exact for one sample and ρ = 0, else asymptotic.
    """
    degrees = sum(regressors for _, regressors, _ in shares)
    rest = sum(n - regressors for _, regressors, n in shares)
    if degrees == 0:
        return 0.0, 1.0
    if any(n <= regressors for _, regressors, n in shares):
        return 1.0, 1.0
    if any(share >= 1.0 for share, _, _ in shares):
        return 1.0, 0.0
    F = math.fsum((n - p) * share / (1.0 - share) for share, p, n in shares) / degrees
    noncentrality = sum(n for _, _, n in shares) * margin / (1.0 - margin)
    below = float(np.nan_to_num(scipy.special.ncfdtr(degrees, rest, noncentrality, F)))
    as_small = float(scipy.special.fdtr(degrees, rest, F))
    return (min(1.0, below / as_small) if as_small > 0.0 else 1.0), 1.0 - below


def observations_needed(regressors: int, margin: float, level: float, power: float) -> int:
    """Observations for ``share_tests`` to rule out the margin.

    Power ``power`` at share 0.
    """
    likely = float(scipy.special.chdtri(regressors, 1.0 - power))
    noncentrality = float(scipy.special.chndtrinc(likely, regressors, level * power))
    return max(16, math.ceil(noncentrality * (1.0 - margin) / margin))


def rows_needed(rows: int, std_error: float, distance: float, quantiles: float) -> int | None:
    """Rows that would decide an open test, or None.

    ``n' = n·(quantiles·se/distance)²``, distance of estimate and bound, sum of normal quantiles for
    level and power.
    """
    if distance <= 0 or not math.isfinite(std_error):
        return None
    return max(rows + 1, math.ceil(rows * (quantiles * std_error / distance) ** 2))
