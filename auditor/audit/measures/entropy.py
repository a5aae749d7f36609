"""Privacy in entropies (Agrawal and Aggarwal), and the share revealed.

| symbol | meaning | unit | source |
| --- | --- | --- | --- |
| ``h(X)`` | differential entropy of an attribute, ``−∫ f log₂ f`` | bits | agrawal2001 |
| ``2^h(X)`` | its privacy: the length of an interval with equal entropy | data units | |
| ``I(X; Y)`` | ``h(Y) − h(Z)``: information in the coalition's copies | bits | |
| ``2^{h(X) − I}`` | privacy left, ``entropy_privacy`` | std | |
| ``1 − 2^{−I}`` | share of the privacy lost, ``privacy_loss`` | share | |

``f`` is the table's histogram. Under noise on a lattice of unit u, it is the frequency of each
lattice point, and ``h`` is ``−Σ p log₂(p/u)``. A property of the data and the coalition's copies,
whatever the attack; each attribute's own copies only. Entropy weighs all values equally, squared
error mostly distant ones, so the two may disagree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from auditor.audit.base.records import CellContext, Cells
from auditor.audit.numeric.error_bars import Figure, with_total
from auditor.data.table import Table
from auditor.errors import NotApplicable
from auditor.numerics.combination import best_unbiased_combination
from auditor.numerics.linear_algebra import is_diagonal
from auditor.process.deferred import scipy
from auditor.results.records import Measurement
from auditor.schemes.base.noise_density import NoiseDensity
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw
from auditor.types import Array, Coalition

MOST_CELLS = 2**20
FAR = 20.0
"""Standard deviations or lattice units beyond which exponential tails have some 1e-12."""
BINS = (10, 1000)
"""Fewest and most bins of an attribute's histogram."""


def attribute_histogram(values: Array) -> tuple[Array, Array]:
    """Return edges, shape (B + 1,), and masses, shape (B,).

    Freedman–Diaconis bins, but at least one in fifty records, up to 100, for clusters. Never
    narrower than the smallest gap between two values, for whole numbers.
    """
    low, high = float(values.min()), float(values.max())
    quarter, three = np.quantile(values, [0.25, 0.75])
    width = 2.0 * (three - quarter) / len(values) ** (1.0 / 3.0)
    fewest = int(np.clip(len(values) // 50, BINS[0], 100))
    bins = int(np.clip(np.ceil((high - low) / width) if width > 0 else fewest, fewest, BINS[1]))
    gap = float(np.diff(np.unique(values)).min())
    if (high - low) / bins < gap:
        low, high = low - gap / 2.0, high + gap / 2.0
        bins = max(1, round((high - low) / gap))
    counts, edges = np.histogram(values, bins=bins, range=(low, high))
    return edges, counts / len(values)


def lattice_histogram(values: Array, unit: float) -> tuple[Array, Array]:
    """Return edges, (B + 1,), and masses, (B,), of bins about the points of a lattice.

    Raises
    ------
    NotApplicable
        The values are on no lattice of this unit, or too far apart.
    """
    steps = (values - values[0]) / unit
    points = np.rint(steps)
    if (np.abs(steps - points) > 1e-6 * np.maximum(1.0, np.abs(points))).any():
        raise NotApplicable(
            "values that are not whole multiples of the noise's unit apart keep what is below it in every copy"
        )
    first, last = float(points.min()), float(points.max())
    if last - first >= MOST_CELLS:
        raise NotApplicable(
            "the noise's unit is too small beside the attribute's range for its entropy to be computed"
        )
    counts = np.bincount((points - first).astype(np.intp))
    return values[0] + unit * (first - 0.5 + np.arange(len(counts) + 1)), counts / len(values)


def entropy(mass: Array, width: float | Array) -> float:
    """Return ``−Σ p log₂(p/width)``, the entropy in bits of a piecewise constant density."""
    held = mass > 0
    p, w = mass[held], np.broadcast_to(width, mass.shape)[held]
    return float(-(p * np.log2(p / w)).sum())


def noise_entropy(noise: NoiseDensity) -> float:
    """Return ``h(Z)`` in bits.

    ``½ log₂(2πe s²)``; ``log₂(2a)`` for uniform and ``log₂(2eb)`` for Laplace noise; a sum on a
    lattice.
    """
    if noise.distribution == "uniform":
        return float(np.log2(2.0 * noise.reach))
    if noise.distribution == "laplace":
        return float(np.log2(math.sqrt(2.0) * math.e * noise.std))
    if noise.on_lattice:
        reach = np.ceil(_reach(noise) / noise.unit)
        return entropy(noise.pdf(noise.unit * np.arange(-reach, reach + 1.0)), noise.unit)
    return float(0.5 * np.log2(2.0 * math.pi * math.e * noise.std**2))


def information(edges: Array, mass: Array, noise: NoiseDensity) -> float:
    """Return ``I(X; X + Z)`` in bits for a histogram and independent noise.

    ``h(X + Z)`` by convolution on cells of at most an eighth of the noise and half a bin; exactly
    on a lattice (``lattice_histogram``).

    Raises
    ------
    NotApplicable
        The noise, or its unit, is too small for a grid over the range.
    """
    width = float(edges[1] - edges[0])
    per_bin = 1 if noise.on_lattice else int(np.ceil(max(2.0, 8.0 * width / noise.std)))
    cell = width / per_bin
    reach = int(np.ceil(_reach(noise) / cell)) + 1
    if len(mass) * per_bin + 2 * reach > MOST_CELLS:
        grain = "the noise's unit" if noise.on_lattice else "the noise"
        raise NotApplicable(
            f"{grain} is too small beside the range of the copies for their entropy to be computed"
        )
    fine = np.repeat(mass / per_bin, per_bin)
    offsets: Array = np.arange(-reach, reach + 1) * np.float64(cell)
    kernel = (
        noise.pdf(offsets)
        if noise.on_lattice
        else noise.cdf(offsets + cell / 2.0) - noise.cdf(offsets - cell / 2.0)
    )
    released = np.clip(scipy.signal.fftconvolve(fine, kernel), 0.0, None)
    return max(0.0, entropy(released / released.sum(), cell) - noise_entropy(noise))


def _reach(noise: NoiseDensity) -> float:
    if noise.distribution == "uniform":
        return noise.reach
    if noise.distribution == "gaussian":
        return 7.0 * noise.std
    return FAR * (noise.std + (noise.unit if noise.on_lattice else 0.0))


def entropy_records(
    context: CellContext, table: Table, law: NoiseLaw | None, coalitions: Sequence[Coalition]
) -> list[Measurement]:
    """Return entropy privacy and its loss for every coalition."""

    def withheld(some: Sequence[Coalition], reason: str) -> list[Measurement]:
        cells = Cells.all(context, some)
        return [*cells.withheld("entropy_privacy", reason), *cells.withheld("privacy_loss", reason)]

    if not isinstance(law, KroneckerNoise):
        reason = "needs the law of the noise, of one shape across the copies"
        return withheld(coalitions, reason)
    if law.distribution == "uniform" and not is_diagonal(law.shape):
        reason = (
            "uniform noise that is correlated between attributes is not uniform in any one of them"
        )
        return withheld(coalitions, reason)
    summed = law.distribution == "gaussian" or law.one_process
    known = [one for one in coalitions if summed or len(one) == 1]
    reason = f"pooled {law.distribution} noise has no density of its own; ask for single copies"
    records = withheld([one for one in coalitions if one not in set(known)], reason)
    if not known:
        return records
    try:
        left, lost = _entropies(context, table, law, known)
    except NotApplicable as why:
        return [*withheld(known, str(why)), *records]
    cells, nothing = (Cells.all(context, known), np.full_like(lost, np.nan))
    return [
        *cells.records("entropy_privacy", Figure.symmetric(left, nothing, 0.0), "none"),
        *cells.records("privacy_loss", Figure.symmetric(lost, nothing, 0.0), "none"),
        *records,
    ]


def _entropies(
    context: CellContext, table: Table, law: KroneckerNoise, coalitions: Sequence[Coalition]
) -> tuple[Array, Array]:
    """Return ``2^{h(X|Y)}`` in standard deviations and ``1 − 2^{−I}``, shapes (B, N + 1)."""
    left, lost = np.empty((len(coalitions), table.width)), np.empty((len(coalitions), table.width))
    levels = [best_unbiased_combination(law.of(one).level_covariance)[1] for one in coalitions]
    for j in range(table.width):
        noise, values = law.density_at(1.0, j), table.values[:, j]
        edges, mass = (
            lattice_histogram(values, noise.unit)
            if noise.on_lattice
            else attribute_histogram(values)
        )
        whole = 2.0 ** entropy(mass, float(edges[1] - edges[0])) / math.sqrt(context.variances[j])
        # coalitions with equal least noise are computed once
        deviations = [float(f"{math.sqrt(float(v) * law.shape[j, j]):.12g}") for v in levels]
        kept = {
            std: 2.0 ** -information(edges, mass, replace(noise, std=std)) if std > 0 else 0.0
            for std in set(deviations)
        }
        share = np.array([kept[std] for std in deviations])
        left[:, j], lost[:, j] = whole * share, 1.0 - share
    return with_total(left), with_total(lost)
