r"""The least error that any attack can have, from what the copies leave uncertain: where the laws of records and noise are declared.

| symbol | meaning | unit | source |
| --- | --- | --- | --- |
| ``h(X|Y)`` | entropy of an attribute's value given all of a coalition's copies | nats | cover2006, chapter 8 |
| ``e^{2h(X|Y)}/(2πe)`` | entropy power: the least mean squared error | squared data units | cover2006, chapter 8 |
| ``I(X; Y)`` | ``h(X) − h(X|Y) = h(Y) − h(Y|X)`` | nats | |
| ``K, r`` | variance of a value, and of its noise, each given all other attributes' | squared data units | |
| ``J`` | ``½ ln 2πe r − h(Z)``: what the noise's entropy lacks to normal noise of its variance | nats | |

Jointly normal records under normal noise: the bound is the error of the best linear estimate
(li2012 (7)), which meets it.

Else attribute by attribute. Whoever is told all other attributes, and so their noise, knows no
less, and an attribute's own copies are all that is left to learn from: ``h(X|Y)`` is at least
``h(X) − I`` of a value of variance K under noise of variance r. Of one copy I is a convolution
(``auditor.audit.measures.entropy``), as it is of normal noise, whose best combination says all, and
of one process, whose least perturbed copy does. Fresh copies of other noise tell no more than the
sum of what each tells, and no more than ``½ ln(1 + K Σ 1/r_i) + Σ J_i``, as of all copies with
their covariance normal ones have the most entropy; the lesser of the two is taken.

It holds on average over tables: the error in one table goes up and down about its expectation. An
adversary who knows true values of some attributes sees more than the copies, and may go below; so
may one who reads a leak that the stated laws do not have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from auditor.audit.measures.entropy import entropy, information, noise_entropy
from auditor.data.source import NORMAL, RecordLaw, RecordShape
from auditor.errors import NotApplicable
from auditor.numerics.combination import best_unbiased_combination
from auditor.numerics.linear_algebra import EPS, Pencil, in_own_units, is_diagonal, regression
from auditor.schemes.base.noise_density import NoiseDensity
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw
from auditor.types import Array, Coalition

CELLS = (64, 4096)
"""Fewest and most cells of an attribute's law when it is seen through noise: as many as make them a
32nd of the noise's deviation."""
FINEST = 2**16
"""Cells in which a law's own entropy is summed: right to 1e-4 where a density jumps, and to 1e-8
where it does not."""


def entropy_power(nats: Array | float) -> Array:
    """Return ``e^{2h}/(2πe)``, in squared units of what has entropy h: the variance of a normal, and less than that of any other law.

    Source: cover2006, chapter 8: the error of an estimate is at least this, with ``h = h(X|Y)``.

    Examples
    --------
    A normal's variance is its entropy power; of uniform values on [0, 1] it is 0.059, where their
    variance is 0.083.

    >>> round(float(entropy_power(0.5 * np.log(2 * np.pi * np.e * 9.0))), 12), round(float(entropy_power(0.0)), 3)
    (9.0, 0.059)
    """
    return np.asarray(np.exp(2.0 * np.asarray(nats)) / (2.0 * np.pi * np.e))


def least_errors(
    records: RecordLaw,
    attributes: Sequence[str],
    K_X: Array,
    law: NoiseLaw,
    coalitions: Sequence[Coalition],
) -> Array:
    """Return the least mean squared error of each attribute from each coalition's copies, shape (B, N), in squared data units.

    Parameters
    ----------
    records : RecordLaw
        Of the attributes that noise is added to.
    attributes : sequence of str
        Their names, N of them.
    K_X : ndarray of shape (N, N)
        The data's covariance.
    law : NoiseLaw
        Of the noise in all copies, drawn afresh for every record, *not checked*.

    Raises
    ------
    NotApplicable
        The entropy is not known: of noise without a stated distribution or on a lattice, of uniform
        noise that is correlated between attributes, and of records that are not normal under noise
        that mixes shapes.
    """
    if records.normal and law.distribution == "gaussian":
        return _normal_errors(K_X, law, coalitions)
    if not isinstance(law, KroneckerNoise):
        raise NotApplicable(
            "noise that mixes shapes across copies has no entropy that is known but under normal records"
        )
    noises = [law.density_at(1.0, j) for j in range(len(attributes))]
    if any(noise.on_lattice for noise in noises):
        raise NotApplicable(
            "noise on a lattice tells what lies below its unit of values that are on none"
        )
    if law.distribution != "gaussian" and not is_diagonal(law.shape):
        raise NotApplicable(
            f"{law.distribution} noise that is correlated between attributes is not {law.distribution} in any one of them"
        )
    K, r = given_others(K_X) if records.normal else np.diag(K_X), given_others(law.shape)
    found = np.empty((len(coalitions), len(attributes)))
    for j, name in enumerate(attributes):
        told = _Told(NORMAL if records.normal else records.shapes[name], noises[j])
        for b, coalition in enumerate(coalitions):
            found[b, j] = K[j] * told.power_left(
                [
                    math.sqrt(level * r[j] / K[j]) if K[j] > 0 else 0.0
                    for level in levels(law, coalition)
                ]
            )
    return found


def _normal_errors(K_X: Array, law: NoiseLaw, coalitions: Sequence[Coalition]) -> Array:
    """Return ``diag(K_X − K_XY K_Y⁻¹ K_YX)`` of each coalition, shape (B, N): li2012 (7)."""
    if isinstance(law, KroneckerNoise):
        pencil = Pencil.of(K_X, law.shape)
        return np.array(
            [np.diag(pencil.error(np.array(levels(law, coalition)[0]))) for coalition in coalitions]
        )
    found = np.empty((len(coalitions), len(K_X)))
    for b, held in enumerate(map(law.of, coalitions)):
        K_XY, K_Y = (
            np.tile(K_X, held.copies),
            np.tile(K_X, (held.copies, held.copies)) + held.covariance,
        )
        found[b] = np.clip(np.diag(K_X - regression(K_XY, K_Y) @ K_XY.T), 0.0, None)
    return found


def levels(law: KroneckerNoise, coalition: Coalition) -> list[float]:
    """Return the noise multiples of independent copies that say all that a coalition's do."""
    Sigma = law.of(coalition).level_covariance
    if law.distribution == "gaussian":
        return [float(best_unbiased_combination(Sigma)[1])]
    return [float(np.diag(Sigma).min())] if law.one_process else np.diag(Sigma).tolist()


def given_others(K: Array) -> Array:
    """Return the variance of each attribute given all others, ``1/(K⁻¹)_jj``, shape (N,); of uncorrelated ones their own.

    Where K is singular, nearly 0 in what others tell: a lower bound still.

    Examples
    --------
    >>> given_others(np.array([[1.0, 0.6], [0.6, 1.0]])).round(12)
    array([0.64, 0.64])
    """
    if is_diagonal(K):
        return np.diag(K)
    C, size = in_own_units(K)
    values, vectors = np.linalg.eigh(C)
    precision = (vectors**2 / np.clip(values, len(K) * EPS, None)).sum(axis=1)
    return np.asarray(np.where(np.diag(K) > 0, size**2 / precision, 0.0))


class _Told:
    """What copies tell of one attribute, in units of its deviation; each size of noise is worked out once."""

    def __init__(self, shape: RecordShape, noise: NoiseDensity) -> None:
        self._shape, self._noise = shape, noise
        self._entropy = entropy(*_cells(shape, FINEST)[1:])
        self._known: dict[float, float] = {}

    def power_left(self, deviations: Sequence[float]) -> float:
        """Return ``e^{2(h(X) − I)}/(2πe)`` under independent copies with noise of these deviations."""
        if min(deviations) <= 0.0:
            return 0.0
        bits = min(math.fsum(map(self._by_one, deviations)), self._at_most(deviations))
        return float(entropy_power((self._entropy - bits) * math.log(2.0)))

    def _by_one(self, std: float) -> float:
        """Return ``I(X; X + Z)`` in bits; infinite where noise is too small or too large beside X for a grid."""
        key = float(f"{std:.12g}")
        if key not in self._known:
            self._known[key] = math.inf
            span = self._shape.high - self._shape.low
            with suppress(NotApplicable):
                edges, mass, _ = _cells(self._shape, int(np.clip(32.0 * span / key, *CELLS)))
                self._known[key] = information(edges, mass, replace(self._noise, std=key))
        return self._known[key]

    def _at_most(self, deviations: Sequence[float]) -> float:
        """Return ``½ log₂(1 + Σ 1/r_i) + Σ J_i``: what normal copies of these variances would tell, and what noises lack in entropy."""
        lacking = (
            0.5 * math.log2(2.0 * math.pi * math.e * std**2)
            - noise_entropy(replace(self._noise, std=std))
            for std in deviations
        )
        return 0.5 * math.log2(1.0 + math.fsum(std**-2.0 for std in deviations)) + math.fsum(
            lacking
        )


def _cells(shape: RecordShape, cells: int) -> tuple[Array, Array, float]:
    """Return edges, shape (B + 1,), masses, shape (B,), and the width of equal cells over a law's support."""
    edges = np.linspace(shape.low, shape.high, cells + 1)
    mass = np.clip(np.diff(shape.cdf(edges)), 0.0, None)
    return edges, mass / mass.sum(), float(edges[1] - edges[0])
