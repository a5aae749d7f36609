"""Multiplicative noise: every value times a random factor of mean 1.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| level | ``v_i``, variance of the factor of copy i; ``logs``: of its logarithm | scalar | kim2003 |
| ``f`` | ``1 + √v g``; ``logs``: ``exp(√v g − v/2)``, whose mean is 1 exactly; g standard normal for every value and copy | (n, N) | |
| ``y`` | ``x·f`` | (N,) | |
| ``K_Z`` | ``diag(w_1, …, w_M) ⊗ diag(E[x_j²])``, w the variance of f: v, or ``e^v − 1`` | (MN, MN) | |

Given the table, ``Z = X(f − 1)`` has mean 0 in every row, is uncorrelated with X, and has
covariance ``K_Z`` exactly. That suffices for linear attacks and their closed forms. Z depends on X,
since its size grows with the value. So attacks by densities do not apply, and error bars use
redraws of the release. A column far from 0 gets noise out of proportion to its spread, and one
around 0 too little; zeros are unperturbed. With ``logs`` every sign is released; without it normal
factors may be negative, which kim2003 truncates. Fails under collusion, like all fresh noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from pydantic import Field

from auditor.base.types import Array
from auditor.numerics.random_streams import Rng
from auditor.registry import PluginParameters, register
from auditor.schemes.base.additive import noise_stream, snap
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor.schemes.base.scheme import Key, Scheme, TableMoments

FAR_FROM_ZERO = 1e-3
"""Share of a column's size above which a value determines its factor accurately."""


@register
class MultiplicativeNoise(Scheme):
    """Values times random factors of mean 1. Broken under collusion.

    Fresh in every copy; level = the factor's variance.
    """

    name = "multiplicative-noise"
    family = "additive"
    claims = "Nothing under collusion: the error falls with every copy pooled. One copy's errors are in proportion to the values."
    reference = "kim2003; hundepool2012, chapter 3"
    assumes = "Values are above 0 and spread over orders of magnitude, and recipients never pool their copies."
    on_grid = True
    level_of_original = 0.0

    class Parameters(PluginParameters):
        """Distribution of the factors."""

        logs: bool = Field(
            False,
            description="whether normal noise is added to the logarithms; unbiased on the original scale",
        )

    def factor_variances(self, levels: Sequence[float]) -> Array:
        """Return the variance of each copy's factors, shape (M,)."""
        v = np.asarray(levels, dtype=np.float64)
        return np.expm1(v) if self.parameters.logs else v

    def law(self, levels: Sequence[float], table: TableMoments) -> KroneckerNoise:
        squares = np.diag(table.covariance) + table.mean**2
        return KroneckerNoise(
            np.diag(self.factor_variances(levels)), np.diag(squares), distribution="unstated"
        )

    def drawn_apart(
        self, levels: Sequence[float], x: Array, copies: Sequence[Array]
    ) -> tuple[Array, list[Array], KroneckerNoise]:
        """Return rows in column units, their sum with ``√v g``, and its law.

        Rows with values near 0 are excluded. The noise is Gaussian and independent of all else.
        """
        unit = np.sqrt(np.square(x).mean(axis=0))
        rows = (np.abs(x) > FAR_FROM_ZERO * unit).all(axis=1)
        ratios = [copy[rows] / x[rows] for copy in copies]
        if self.parameters.logs:
            drawn = [
                np.log(ratio) + level / 2.0 for ratio, level in zip(ratios, levels, strict=True)
            ]
        else:
            drawn = [ratio - 1.0 for ratio in ratios]
        points = x[rows] / unit
        return (
            points,
            [points + noise for noise in drawn],
            KroneckerNoise(np.diag(levels), np.eye(x.shape[1])),
        )

    def sampler(
        self, levels: Sequence[float], table: TableMoments, key: Key, existing: int = 0
    ) -> FactorSampler:
        return FactorSampler(levels, key, self.parameters.logs)


class FactorSampler(NamedTuple):
    """Multiplies rows by factors, one stream per copy and block."""

    levels: Sequence[float]
    key: Key
    logs: bool
    in_order: bool = True

    def block(self, index: int, x: Array, out: Sequence[Array], existing: int = 0) -> None:
        for copy, level in enumerate(self.levels[existing:], start=existing + 1):
            y, rng = out[copy - 1], noise_stream(self.key, index, copy, level)
            np.multiply(x, factors(level, x.shape, rng, self.logs), out=y)
            if self.key.grid and level > 0:
                snap(y, np.array(self.key.grid))


def factors(level: float, shape: tuple[int, ...], rng: Rng, logs: bool) -> Array:
    """Return factors of mean 1; exactly 1 at level 0.

    ``1 + √v g``, or ``exp(√v g − v/2)`` with ``logs``.
    """
    noise = np.sqrt(level) * rng.standard_normal(shape)
    return np.asarray(np.exp(noise - level / 2.0) if logs else 1.0 + noise)
