"""Error bars and tests: intervals, jackknife, equivalence, multiple tests."""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np

from auditor.base import scipy
from auditor.base.types import Array, Indices

Z_95 = 1.959963984540054
"""``ndtri(0.975)``, without SciPy.
"""


STEPS = 2**52
BY_CHANCE = 1e-4
"""False-alarm probability of statements on attributes or row order."""


@cache
def quantile(probability: float, degrees: float = math.inf) -> float:
    """Quantile of Student's t; normal for infinite degrees."""
    return float(scipy.special.stdtrit(degrees, probability))


def share_error(share: Any, rows: float) -> Any:
    """Binomial standard error of a share of independent records."""
    return np.sqrt(np.clip(share * (1.0 - share), 0.0, None) / rows)


def noncentral_quantile(probability: float, degrees: float, mean: float) -> float:
    """Quantile of noncentral t, ``(mean + Z)/S``."""
    return (
        mean + quantile(probability)
        if math.isinf(degrees)
        else float(scipy.special.nctdtrit(degrees, mean, probability))
    )


def root(f: Callable[[float], float], low: float, high: float) -> float:
    """Root of a monotone function between two numbers, by bisection.

    The nearer end if the function has no root.

    Importing ``scipy.optimize`` takes as long as drawing a million numbers.

    Examples
    --------
    >>> root(lambda x: 9.0 - x * x, 0.0, 8.0)
    3.0
    """
    step, sign = (high - low) / STEPS, math.copysign(1.0, f(high) - f(low))
    return low + step * bisect_left(range(STEPS), 0.0, key=lambda k: sign * f(low + step * k))


def column_ranks(values: Array) -> Array:
    """Each value's rank in its column, over n; ties share their mean."""
    # twice as fast as `scipy.stats.rankdata`
    return np.apply_along_axis(_mean_ranks, 0, values) / len(values)


def _mean_ranks(x: Array) -> Array:
    _, which, counts = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[which]


def rows_by_value(x: Array | Indices) -> list[Indices]:
    """Rows of each distinct value of a column, ascending.

    Examples
    --------
    >>> [rows.tolist() for rows in rows_by_value(np.array([3.0, 1.0, 3.0]))]
    [[1], [0, 2]]
    """
    ends = np.cumsum(np.unique(x, return_counts=True)[1])
    return np.split(np.argsort(x, kind="stable"), ends[:-1])


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


def tail(statistic: float, degrees: float) -> float:
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


# -- Possible originals of a released double, given its noise generator ----------------------------


Kind = Literal["sum", "product", "laplace", "uniform"]
MANY = 4.0
"""Generator numbers per double from which every original is possible.
"""
BESIDE = np.arange(-5.0, 6.0)
"""Numbers tried around the nearest."""
STRAY = 2.0**-8
"""Share of values that no generator explains."""
LAST_DIGITS = np.arange(-2, 3)
"""Last digits by which a stated scale may differ."""


class Generator(NamedTuple):
    """Generator of the noise of one attribute in one copy.

    Attributes
    ----------
    kind : 'sum', 'product', 'laplace' or 'uniform'
    scale
        1, σ, b or a.
    """

    kind: Kind
    scale: float = 1.0


def generators(distribution: str, std: float) -> list[Generator]:
    """Possible generators of noise of one law and deviation."""
    kind: Kind = distribution if distribution in ("laplace", "uniform") else "product"  # type: ignore[assignment]
    scale = std * {"laplace": np.sqrt(0.5), "uniform": np.sqrt(3.0)}.get(distribution, 1.0)
    scales = (scale + LAST_DIGITS * np.spacing(scale)).tolist()
    return [
        Generator("sum"),
        *(Generator("product", std) for _ in [0] if kind != "product"),
        *(Generator(kind, each) for each in scales),
    ]


def grid_of_digits(y: Array) -> float:
    """Largest power of two that divides all values; 0 if all are 0.

    Examples
    --------
    >>> grid_of_digits(np.array([1.5, -8.25, 0.0]))
    0.25
    """
    mantissa, exponent = np.frexp(y[y != 0])
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = np.ldexp((whole & -whole).astype(float), exponent - 53)
    return float(lowest.min()) if whole.size else 0.0


def written_shorter(y: Array) -> bool:
    """Whether all values are single precision or have two digits fewer."""
    places = int(np.floor(-np.log10(64.0 * np.spacing(np.abs(y).max(initial=0.0) or 1.0))))
    with np.errstate(over="ignore", invalid="ignore"):
        return bool((np.round(y, places) == y).all() or (y.astype(np.float32) == y).all())


def ratio(y: Array, x: Array, generator: Generator, grid: float = 0.0) -> Array:
    """``δ·#{k: fl(x + z(k)) = y} / u``, in the shape of y and x.

    1 where y is 0 (a cut-off). ``grid``: known divisor of the copy, or 0.
    """
    with np.errstate(all="ignore"):
        doubles = np.spacing(np.abs(y))
        expected = doubles / spacing(y - x, generator)
        found, few = np.ones(y.shape), (expected <= MANY) & (y != 0)
        if few.any():
            found[few] = _count(y[few], x[few], generator) / expected[few]
    return np.where(y == 0, 1.0, found * (doubles / np.maximum(doubles, grid)))


def spacing(z: Array, generator: Generator) -> Array:
    """``δ``, the mean distance of neighbouring ``z(k)`` at z."""
    kind, s = generator
    if kind == "laplace":
        return s * 2.0**-52 * np.exp(np.abs(z) / s)
    return np.full(z.shape, s * 2.0**-52) if kind == "uniform" else s * np.spacing(np.abs(z / s))


def _count(y: Array, x: Array, generator: Generator) -> Array:
    (kind, s), z = generator, y - x
    if kind in ("laplace", "uniform"):
        # the probability below z, from the nearer end
        near = 0.5 * np.exp(-np.abs(z) / s) if kind == "laplace" else (z + s) / (2.0 * s)
        k = (
            np.rint(near * 2.0**53)
            if kind == "uniform"
            else np.where(z < 0, np.rint(near * 2.0**53), 2.0**53 - np.rint(near * 2.0**53))
        )
        made = [
            (numpy_laplace if kind == "laplace" else numpy_uniform)((k + step) * 2.0**-53, s)
            for step in BESIDE
        ]
    else:
        g = z / s
        made = [s * (g + step * np.spacing(np.abs(g))) for step in BESIDE]
    return np.sum([x + each == y for each in made], axis=0, dtype=float)


def numpy_laplace(U: Array, b: float) -> Array:
    """Numpy's ``Generator.laplace`` of uniform numbers; NaN at 0."""
    upper = U >= 0.5
    size = b * np.log(np.where(upper, 2.0 - U - U, U + U))
    return np.where((U > 0) & (U < 1), np.where(upper, -size, size), np.nan)


def numpy_uniform(U: Array, a: float) -> Array:
    """Numpy's ``Generator.uniform(-a, a)`` of uniform numbers."""
    return np.where((U >= 0) & (U < 1), 2.0 * a * U - a, np.nan)


def likeliest(
    y: Array, x: Array, weights: Array, tried: Sequence[Generator], grid: float
) -> Generator | None:
    """Likeliest generator; None if a rounded smooth law fits too.

    Parameters
    ----------
    y : (b,)
    x : (C,)
        Candidates.
    weights : (b, C)
        Probabilities without last digits; rows sum to 1, or 0.
    """
    if written_shorter(y):
        return None
    held = weights > 1e-9
    row, column = np.nonzero(held)
    # the best of so many gains more than this in one copy of 150
    best, gain = None, np.log(len(tried)) + 5.0
    for generator in tried:
        parts = weights[row, column] * (
            STRAY + (1.0 - STRAY) * ratio(y[row], x[column], generator, grid)
        )
        total = np.bincount(row, parts, len(y))
        found = float(np.log(total[total > 0]).sum())
        if found > gain:
            best, gain = generator, found
    return best
