"""Privacy in entropies (Agrawal and Aggarwal), and bounds on errors.

| symbol | meaning | unit | source |
| --- | --- | --- | --- |
| ``h(X)`` | differential entropy of an attribute, ``−∫ f log₂ f``, f the table's histogram | bits | agrawal2001 |
| ``2^h(X)`` | its privacy: the length of an interval with equal entropy | data units | |
| ``I(X; Y)`` | ``h(Y) − h(Z)``: information in the coalition's copies of the attribute | bits | |
| ``2^{h(X) − I}`` | privacy left, ``entropy_privacy`` | std | |
| ``1 − 2^{−I}`` | share of the privacy lost, ``privacy_loss`` | share | |
| ``e^{2h(X|Y)}/(2πe)`` | entropy power, the least mean squared error; ``h`` in nats | squared data units | cover2006, ch. 8 |
| ``K, r`` | variance of a value, and of its noise, each given all other attributes | squared data units | |
| ``J`` | ``½ ln 2πe r − h(Z)``: entropy that the noise lacks to normal noise | nats | |

Under noise on a lattice of unit u, ``h`` is ``−Σ p log₂(p/u)``. Bounds need declared laws of records and
noise. For jointly normal ones, the bound is the error of the best linear estimate (li2012 (7)). Otherwise
``h(X|Y) ≥ h(X) − I`` given all other attributes. For one copy, normal noise and one process, I is a
convolution. For other fresh copies, I is at most the sum over single copies, and at most
``½ ln(1 + K Σ 1/r_i) + Σ J_i``. Bounds hold on average over tables, without other leaks.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

import numpy as np

from auditor.adversary.attack import LinearAttack, check_real
from auditor.adversary.knowledge import Knowledge
from auditor.audit.base.request import CellContext, Cells
from auditor.audit.numeric.error_bars import Figure, with_total
from auditor.audit.numeric.views import Gathered
from auditor.base import NotApplicable, PluginError, scipy
from auditor.base.types import Array, Coalition, Coalitions, Names, Pair
from auditor.data.source import NORMAL, RecordLaw, RecordShape, law_of
from auditor.data.table import DataUse, Table
from auditor.numerics.combination import best_unbiased_combination
from auditor.numerics.linear_algebra import EPS, Pencil, in_own_units, is_diagonal, regression
from auditor.process.containment import contained
from auditor.results.records import Measurement
from auditor.schemes.base.noise_density import NoiseDensity
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw

MOST_CELLS = 2**20
FAR = 20.0
"""Standard deviations or lattice units beyond which exponential tails have some 1e-12."""
BINS = (10, 1000)
"""Fewest and most bins of an attribute's histogram."""


def attribute_histogram(values: Array) -> Pair:
    """Edges, shape (B + 1,), and masses, shape (B,).

    Freedman–Diaconis bins, but at least one in fifty records, up to 100. Never narrower than the
    smallest gap between two values.
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


def lattice_histogram(values: Array, unit: float) -> Pair:
    """Edges, (B + 1,), and masses, (B,), of bins about the points of a lattice.

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
    counts = np.bincount((points - first).astype(int))
    return values[0] + unit * (first - 0.5 + np.arange(len(counts) + 1)), counts / len(values)


def entropy(mass: Array, width: float | Array) -> float:
    """Entropy ``−Σ p log₂(p/width)`` of a piecewise constant density, in bits."""
    held = mass > 0
    p, w = mass[held], np.broadcast_to(width, mass.shape)[held]
    return float(-(p * np.log2(p / w)).sum())


def noise_entropy(noise: NoiseDensity) -> float:
    """``h(Z)`` in bits.

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
    """``I(X; X + Z)`` in bits for a histogram and independent noise.

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
    context: CellContext, table: Table, law: NoiseLaw | None, coalitions: Coalitions
) -> list[Measurement]:
    """Entropy privacy and its loss for every coalition."""
    known = list[Coalition]()
    if not isinstance(law, KroneckerNoise):
        reason = "needs the law of the noise, of one shape across the copies"
    elif law.distribution == "uniform" and not is_diagonal(law.shape):
        reason = "uniform noise that is correlated between attributes is not uniform in any one"
    else:
        summed = law.distribution == "gaussian" or law.one_process
        known = [one for one in coalitions if summed or len(one) == 1]
        reason = f"pooled {law.distribution} noise has no density of its own; ask for single copies"

    def withheld(some: Coalitions, reason: str) -> list[Measurement]:
        cells = Cells.all(context, some)
        return [*cells.withheld("entropy_privacy", reason), *cells.withheld("privacy_loss", reason)]

    records = withheld([one for one in coalitions if one not in set(known)], reason)
    if not known or not isinstance(law, KroneckerNoise):
        return records
    left, lost = np.empty((2, len(known), table.width))
    levels = [best_unbiased_combination(law.of(one).level_covariance)[1] for one in known]
    try:
        for j in range(table.width):
            noise, values = law.density_at(1.0, j), table.values[:, j]
            edges, mass = (
                lattice_histogram(values, noise.unit)
                if noise.on_lattice
                else attribute_histogram(values)
            )
            whole = 2.0 ** entropy(mass, float(edges[1] - edges[0]))
            stds = [float(f"{math.sqrt(float(v) * law.shape[j, j]):.12g}") for v in levels]
            kept = {
                std: 2.0 ** -information(edges, mass, replace(noise, std=std)) if std > 0 else 0.0
                for std in set(stds)
            }
            share = np.array([kept[std] for std in stds])
            left[:, j], lost[:, j] = whole / math.sqrt(context.variances[j]) * share, 1.0 - share
    except NotApplicable as why:
        return [*withheld(known, str(why)), *records]
    cells = Cells.all(context, known)
    for metric, each in (("entropy_privacy", left), ("privacy_loss", lost)):
        records += cells.records(metric, Figure.normal(with_total(each)), "none")
    return records


CELLS = (64, 4096)
"""Fewest and most cells of a law under noise; by default 32 per standard deviation of the noise."""
FINEST = 2**16
"""Cells for a law's own entropy: errors of 1e-4 if the density jumps, otherwise 1e-8."""


def entropy_power(nats: Array | float) -> Array:
    """``e^{2h}/(2πe)``: a normal law's variance, and less than any other law's.

    Least error of an estimate, with ``h = h(X|Y)`` (cover2006, chapter 8).

    Examples
    --------
    >>> round(float(entropy_power(0.5 * np.log(2 * np.pi * np.e * 9.0))), 12), round(float(entropy_power(0.0)), 3)
    (9.0, 0.059)
    """
    return np.exp(2.0 * np.asarray(nats)) / (2.0 * math.pi * math.e)


def least_errors(
    records: RecordLaw, attributes: Names, K_X: Array, law: NoiseLaw, coalitions: Coalitions
) -> Array:
    """Each attribute's least mean squared error by coalition, shape (B, N).

    Parameters
    ----------
    records : RecordLaw
        Of the attributes with noise.
    attributes : sequence of str
        N names.
    K_X : ndarray of shape (N, N)
        The data's covariance.
    law : NoiseLaw
        Of the noise in all copies, independent between records; *not checked*.

    Raises
    ------
    NotApplicable
        For noise without a stated distribution or on a lattice, correlated uniform noise, and
        non-normal records under noise that mixes shapes.
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
        shape = NORMAL if records.normal else records.shapes[name]
        own = entropy(*_cells(shape, FINEST)[1:])
        for b, coalition in enumerate(coalitions):
            scaled = np.sqrt(np.array(levels(law, coalition)) * r[j] / (K[j] or np.inf))
            found[b, j] = K[j] * _power_left(shape, own, noises[j], scaled.tolist())
    return found


def _normal_errors(K_X: Array, law: NoiseLaw, coalitions: Coalitions) -> Array:
    """``diag(K_X − K_XY K_Y⁻¹ K_YX)`` by coalition, shape (B, N): li2012 (7)."""
    if isinstance(law, KroneckerNoise):
        pencil = Pencil.of(K_X, law.shape)
        return np.array(
            [np.diag(pencil.error(np.array(levels(law, one)[0]))) for one in coalitions]
        )
    found = []
    for held in map(law.of, coalitions):
        K_XY = np.tile(K_X, held.copies)
        K_Y = np.tile(K_XY, (held.copies, 1)) + held.covariance
        found.append(np.clip(np.diag(K_X - regression(K_XY, K_Y) @ K_XY.T), 0.0, None))
    return np.array(found)


def levels(law: KroneckerNoise, coalition: Coalition) -> list[float]:
    """Levels of sufficient independent copies."""
    Sigma = law.of(coalition).level_covariance
    if law.distribution == "gaussian":
        return [float(best_unbiased_combination(Sigma)[1])]
    return [float(np.diag(Sigma).min())] if law.one_process else np.diag(Sigma).tolist()


def given_others(K: Array) -> Array:
    """Variance of each attribute given all others, ``1/(K⁻¹)_jj``, shape (N,).

    Nearly 0 for singular K, still a lower bound.

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
    return np.where(np.diag(K) > 0, size**2 / precision, 0.0)


def _power_left(
    shape: RecordShape, own: float, noise: NoiseDensity, deviations: Sequence[float]
) -> float:
    """``e^{2(h(X) − I)}/(2πe)`` for independent copies; ``own`` is h(X) in bits.

    ``I ≤ ½ log₂(1 + Σ 1/r_i) + Σ J_i``, and at most its sum over single copies.
    """
    if min(deviations) <= 0.0:
        return 0.0
    noises = [replace(noise, std=float(f"{std:.12g}")) for std in deviations]
    lacking = (
        0.5 * math.log2(2.0 * math.pi * math.e * one.std**2) - noise_entropy(one) for one in noises
    )
    most = 0.5 * math.log2(1.0 + math.fsum(one.std**-2.0 for one in noises)) + math.fsum(lacking)
    bits = min(most, math.fsum(_by_one(shape, one) for one in noises))
    return float(entropy_power((own - bits) * math.log(2.0)))


@lru_cache(maxsize=2**10)
def _by_one(shape: RecordShape, noise: NoiseDensity) -> float:
    """``I(X; X + Z)`` in bits; infinite if no grid fits."""
    with suppress(NotApplicable):
        count = int(np.clip(32.0 * (shape.high - shape.low) / noise.std, *CELLS))
        return information(*_cells(shape, count)[:2], noise)
    return math.inf


def _cells(shape: RecordShape, cells: int) -> tuple[Array, Array, float]:
    edges = np.linspace(shape.low, shape.high, cells + 1)
    mass = np.clip(np.diff(shape.cdf(edges)), 0.0, None)
    return edges, mass / mass.sum(), float(edges[1] - edges[0])


def floor_records(
    context: CellContext, data: DataUse, K_X: Array, law: NoiseLaw | None, coalitions: Coalitions
) -> list[Measurement]:
    """Least error of any attack on each coalition, or the reason if unknown.

    Parameters
    ----------
    data : DataUse
        Its source may declare the records' law.
    K_X : ndarray of shape (N, N)
    law : NoiseLaw or None
        Of the noise in all copies.
    """
    with contained() as failure:
        if (records := law_of(data)) is None:
            raise NotApplicable(
                "nobody declares the law that these records were drawn from, as nobody can of a file's"
            )
        if law is None:
            raise NotApplicable("needs the law of the noise")
        if law.serial is not None:
            raise NotApplicable(
                "noise that follows on from record to record is told by the copies of other records, too"
            )
        least = least_errors(records, context.attributes, K_X, law, coalitions)
        floors = Figure.normal(with_total(least) / with_total(context.variances))
        return Cells.all(context, coalitions).records("error_floor", floors, "none")
    return [
        context.record("error_floor", coalition, status=failure.status, reason=failure.reason)
        for coalition in coalitions
    ]


def attack_bound_records(
    context: CellContext,
    attack: LinearAttack,
    knowledge: Knowledge,
    gathered: Gathered,
    coalitions: Coalitions,
) -> list[Measurement]:
    """Theorems' bounds on one attack's error over all attributes, by coalition.

    Raises
    ------
    PluginError
        The attack returned no range.
    """
    view, joint = gathered.view(knowledge), gathered.all_judged(knowledge)
    whole = float(context.variances.sum())
    records = []
    for coalition in coalitions:
        held = view.coalition(coalition)
        found = attack.error_bounds(
            held, joint.parts([1, *(copy + 1 for copy in coalition)], held.width)
        )
        if found is None:
            continue
        check_real(*found)
        if len(found) != 2 or not found[0] <= found[1]:
            raise PluginError("the attack returned bounds on its error that are no range")
        for metric, bound in zip(("error_floor", "error_ceiling"), found, strict=True):
            if math.isfinite(bound):
                records.append(context.record(metric, coalition, bound / whole))
    return records
