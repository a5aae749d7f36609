"""Error bars and tests: intervals, jackknife, equivalence and the control of many tests at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from auditor.process.deferred import scipy
from auditor.types import Array

Z_95 = 1.959963984540054
"""``ndtri(0.975)``: half a 95 % interval, in standard errors; written out for start-up, which SciPy's functions would make longer."""


BY_CHANCE = 1e-4
"""Chance that anything is said to tell of an attribute, or of where a copy's rows stand, where nothing does."""


def beyond_chance(looks: float) -> float:
    """Return how many standard errors none of so many looks at nothing is off, on either side, but for ``BY_CHANCE``."""
    return float(-scipy.special.ndtri(BY_CHANCE / (2.0 * looks)))


def convolved(rows: Array, kernel: Array) -> Array:
    """Return rows, shape (…, n), convolved with a kernel, shape (k,), at all n + k − 1 places: by Fourier transforms, so to rounding.

    ``scipy.signal`` does the same, and takes half a second and 45 MB to import.

    Examples
    --------
    >>> convolved(np.array([[1.0, 2.0, 0.0]]), np.array([1.0, 10.0])).round(9).tolist()
    [[1.0, 12.0, 20.0, 0.0]]
    """
    length = rows.shape[-1] + len(kernel) - 1
    size = scipy.fft.next_fast_len(length, real=True)
    return np.asarray(scipy.fft.irfft(scipy.fft.rfft(rows, size) * scipy.fft.rfft(kernel, size), size)[..., :length])


def quantile(probability: float, degrees: float = math.inf) -> float:
    """Return the quantile of Student's t, or of the normal when ``degrees`` is infinite."""
    return float(scipy.special.ndtri(probability) if math.isinf(degrees) else scipy.special.stdtrit(degrees, probability))


def noncentral_quantile(probability: float, degrees: float, mean: float) -> float:
    """Return the quantile of ``(mean + Z)/S``, noncentral t: Z is standard normal, and S estimates its standard deviation."""
    return mean + quantile(probability) if math.isinf(degrees) else float(scipy.special.nctdtrit(degrees, mean, probability))


def quantiles(probability: float, degrees: Array) -> Array:
    """Return ``quantile`` for an array of degrees of freedom, infinite ones among them."""
    finite = np.isfinite(degrees)
    by_t = scipy.special.stdtrit(np.where(finite, degrees, 1.0), probability)
    return np.asarray(np.where(finite, by_t, scipy.special.ndtri(probability)))


def ranks(values: Array) -> Array:
    """Return each value's rank among n, as a share of n; equal ones have the mean of their ranks.

    Examples
    --------
    >>> ranks(np.array([5.0, 1.0, 1.0, 9.0])).tolist()
    [0.75, 0.375, 0.375, 1.0]
    """
    order = values.argsort()
    ascending = values[order]
    first = np.flatnonzero(np.concatenate([[True], ascending[1:] != ascending[:-1]]))  # of each run of equal values
    times = np.concatenate([first[1:], [len(values)]]) - first
    found = np.empty(len(values))
    found[order] = np.repeat((first + (times + 1) / 2.0) / len(values), times)
    return found


def column_ranks(X: Array) -> Array:
    """Return ``ranks`` of each column, shape (n, N)."""
    return np.column_stack([ranks(column) for column in X.T])


def standardised(X: Array, least: float = 0.0) -> Array:
    """Return each column with mean 0 and variance 1, shape (n, N); of one with a deviation up to ``least`` what it is off its mean."""
    X = X - X.mean(axis=0)
    deviation = X.std(axis=0)
    return np.asarray(X / np.where(deviation > least, deviation, 1.0))


def standard_ranks(X: Array) -> Array:
    """Return the ranks of each column, equal for equal values, with mean 0 and variance 1; zeros where all are equal."""
    return standard(column_ranks(X))


def standard(shares: Array) -> Array:
    """Return columns of ranks, from 0 to 1, with mean 0 and variance 1; as good as zeros where all are equal but for rounding."""
    return standardised(shares, 1e-9)


def tail(statistic: float, degrees: float = math.inf) -> float:
    """Return ``P(T > statistic)`` for Student's t, or for the normal when ``degrees`` is infinite."""
    return float(scipy.special.ndtr(-statistic) if math.isinf(degrees) else scipy.special.stdtr(degrees, -statistic))


def correlation_tail(r: float, n: int) -> float:
    """Return the chance that a correlation about known means, of n independent pairs of normal values, is r > 0 or more."""
    return tail(r * math.sqrt((n - 1) / (1.0 - r**2)), n - 1)


def wave_tail(t: float) -> float:
    """Return the bound ``t e^{1−t}`` on the chance of so large a ``|Σ w exp(iθ)|² / Σ |w|²``, of uniform phases θ and any weights.

    Of a phase θ and any complex λ, ``E exp(Re λ e^{iθ}) = I_0(|λ|) ≤ exp(|λ|²/4)``; integrated over λ from a normal distribution this is
    ``E exp(b t) ≤ 1/(1 − b)`` for b < 1, and Markov's inequality at the best b is the bound, at any number of phases.
    """
    return t * math.exp(1.0 - t) if t > 1.0 else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p-values: rejecting where they are ≤ α keeps the family-wise error at α.

    Parameters
    ----------
    p_values : sequence of float
        One per hypothesis, in [0, 1]; any dependence between the tests is allowed.

    Notes
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
    """Return the p-value against ``H0: truth ≥ bound``; with no error at all the estimate itself decides.

    Small when the estimate lies well below the bound.
    """
    if std_error == 0.0:
        return 0.0 if estimate < bound else 1.0
    return tail((bound - estimate) / std_error, degrees)


def two_sided(difference: float, std_error: float, scale: float, degrees: float = math.inf) -> float:
    """Return the p-value against ``H0: no difference``.

    Parameters
    ----------
    difference, std_error : float
        Same unit.
    scale : float
        Size of the things compared: a difference below 1e-9 of it is rounding, whatever the error bar.
    """
    if abs(difference) <= 1e-9 * scale:
        return 1.0
    if std_error == 0.0:
        return 0.0
    return 2.0 * tail(abs(difference) / std_error, degrees)


def jackknife_error(left_out: Array) -> Array:
    """Return the jackknife standard error of estimates that each leave out one of G row groups.

    Parameters
    ----------
    left_out : ndarray of shape (G, ...)
        The estimate without group g.

    Returns
    -------
    ndarray of shape (...)
        ``sqrt((G−1)/G · Σ (θ_(g) − θ̄)²)``.
    """
    G = left_out.shape[0]
    spread = left_out - left_out.mean(axis=0)
    return np.asarray(np.sqrt((G - 1) / G * np.einsum("g...,g...->...", spread, spread)))


def share_tests(shares: Sequence[tuple[float, int, int]], margin: float) -> tuple[float, float]:
    """Return p-values against «the true share is at least the margin» and «… at most the margin».

    Parameters
    ----------
    shares : sequence of (share, regressors, observations)
        Squared multiple correlations of independent normal samples with one true value.
    margin : float
        In (0, 1).

    Notes
    -----
    The first is the probability of so small a share if the margin is the truth, *over* that if there is none (CLs, read2002): in five rows
    one null release in twenty shows next to none of a margin of 1 %, and just as many do of a true one, which proves nothing.

    ``F = Σ (n−p) R²/(1−R²) / Σ p`` is noncentral F with Σ p and Σ (n−p) degrees of freedom and noncentrality ``Σ n ρ²/(1−ρ²)``: for
    one sample and ρ = 0 exactly so, else as n grows.
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
    below, as_small = noncentral_f(F, degrees, rest, noncentrality), float(scipy.special.fdtr(degrees, rest, F))
    return (min(1.0, below / as_small) if as_small > 0.0 else 1.0), 1.0 - below


def noncentral_f(F: float, degrees: int, rest: int, noncentrality: float) -> float:
    """Return the distribution function of noncentral F; where its value is too small for SciPy's, a bound on it that is below 1e-30.

    SciPy gives NaN for one in 200 sets of arguments whose value is below some 1e-100, as of 100,000 rows without a gain of 1 %. There
    noncentral F is what it is by definition: central with ``degrees + 2 j`` for Poisson j of mean ``noncentrality / 2``. Of j beyond 12
    standard deviations only their chance is counted.
    """
    found = float(scipy.special.ncfdtr(degrees, rest, noncentrality, F))
    if math.isfinite(found):
        return found
    mean = noncentrality / 2.0
    reach = 12.0 * math.sqrt(mean) + 60.0
    first, last = max(0, math.floor(mean - reach)), math.ceil(mean + reach)
    j = np.arange(first, last + 1)
    chance = np.exp(scipy.special.xlogy(j, mean) - mean - scipy.special.gammaln(j + 1.0))
    among = float(chance @ scipy.special.betainc(degrees / 2.0 + j, rest / 2.0, degrees * F / (degrees * F + rest)))
    fewer = float(scipy.special.pdtr(first - 1, mean)) if first else 0.0
    return min(1.0, among + fewer + float(scipy.special.pdtrc(last, mean)))


def observations_needed(regressors: int, margin: float, level: float, power: float) -> int:
    """Return how many observations let ``share_tests`` rule out the margin with this power, if the true share is 0."""
    likely = float(scipy.special.chdtri(regressors, 1.0 - power))
    level = level * power  # share_tests divides by the chance of as small a share under no gain, which is the power here
    n = 16
    while scipy.special.chndtr(likely, regressors, n * margin / (1.0 - margin)) > level:
        n *= 2
    low = n // 2
    while n - low > max(1, low // 100):
        middle = (low + n) // 2
        low, n = (middle, n) if scipy.special.chndtr(likely, regressors, middle * margin / (1.0 - margin)) > level else (low, middle)
    return n


def rows_needed(rows: int, std_error: float, distance: float, quantiles: float) -> int | None:
    """Return how many rows would settle a test that this many left open, or None if none would.

    The standard error shrinks with the root of the rows, so ``n' = n·(quantiles·se/distance)²``, where ``distance`` is how far the
    estimate is from the bound, and ``quantiles`` the sum of those for the test's level and its power.
    """
    if distance <= 0 or not math.isfinite(std_error):
        return None
    return max(rows + 1, math.ceil(rows * (quantiles * std_error / distance) ** 2))
