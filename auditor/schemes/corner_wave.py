"""Additive schemes: corner-wave noise (Brownian motion at σ²), and others.

``Y_i = X + Z_i``, on a public grid.

| symbol | meaning | shape |
| --- | --- | --- |
| ``σ_j`` | smallest noise deviation in attribute j, above level 0 | (N,) |
| ``g_j`` | power of two that divides every released value of attribute j | (N,) |
| ``R`` | ``r_{|t−u|}``, correlation between records under ``serial`` | (n, n) |
| ``K_Z`` | ``R ⊗ Sigma ⊗ K_0`` | (nMN, nMN) |

The last bits of a double ``x + z`` depend on ``x``; multiples of ``g`` do not. Rounding adds
``g²/12`` to the variance: a share of 8·10⁻¹⁴ with ``g ≤ 2⁻²⁰ σ``.

Under ``serial`` li2012, Theorem 4, holds with R ⊗ K_0 for K_0. A block's last p rows have a stream
of their own, on which the block is conditioned.

| scheme | ``Sigma`` | ``K_0`` by default | source |
| --- | --- | --- | --- |
| ``corner-wave`` | ``min(σ_i², σ_j²)`` | ``K_X`` | li2011 (19); li2012 (15) is misprinted |
| ``independent`` | ``diag(σ_1² … σ_M²)`` | ``(tr K_X / N)·I``: white noise | li2012, Theorem 3; huang2005, section 4 |
| ``correlated`` | ``diag(σ_1² … σ_M²)`` | ``K_X``: no filter separates noise and data | huang2005, section 8 |
| ``linearly-dependent`` | ``s sᵀ``, ``s = (σ_1 … σ_M)`` | ``K_X`` | li2012, section 4.2.2 |

The least perturbed corner-wave copy is sufficient. With levels ``a < s < b``, ``X`` as level 0, a
new copy is

    ``Y_s = Y_a + (s−a)/(b−a)·(Y_b − Y_a) + sqrt((s−a)(b−s)/(b−a))·g``,
    ``Y_s = Y_a + sqrt(s−a)·g``  beyond the last,

the paper's conditional Gaussian (li2012 (17) and (18)). A repeated level returns its copy.
``distribution: uniform`` draws ``Z_i = σ_i K_0^½ u``, u uniform on ±√3 (agrawal2000).

Reference: li2012, section 5. Fails if noise is not *jointly* Gaussian.
"""

import math
from abc import abstractmethod
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field

from auditor.base import AuditorError, PluginError, counted, scipy
from auditor.base.types import Array, Arrays, Levels, Pair, Shape, unprinted
from auditor.numerics.blocks import block_rows
from auditor.numerics.combination import best_unbiased_combination
from auditor.numerics.linear_algebra import (
    Autoregression,
    correlation,
    deviations,
    is_diagonal,
    yule_walker,
)
from auditor.numerics.random_streams import Rng, stream as stream
from auditor.registry import PluginParameters, register
from auditor.schemes.base.noise_density import (
    AlongTheData,
    Distribution,
    NoiseShape,
    correlation_dissimilarity,
    noise_shape,
)
from auditor.schemes.base.noise_law import KroneckerNoise, psd_root
from auditor.schemes.base.scheme import MOST_LAGS, Key, Sampler, Scheme, TableMoments

ORIGINAL = 0
"""Number of ``X`` among a step's parents (level 0)."""


@dataclass(frozen=True)
class Step:
    """Draw of one copy from earlier copies and fresh innovations.

    ``Y_copy = Σ weight_j · Y_j + Σ scale_k · g_k``, with ``Y_0 = X`` and ``g_k ~ N(0, K_0)``.

    Attributes
    ----------
    copy
        Number of the copy drawn.
    parents : tuple of (int, float)
        Earlier copies (0: the original) and weights, sum 1.
    fresh : tuple of (int, float)
        Innovation streams, by copy number, and their deviations.
    """

    copy: int
    parents: tuple[tuple[int, float], ...]
    fresh: tuple[tuple[int, float], ...] = ()


def check_plan(steps: Sequence[Step], copies: int, existing: int) -> None:
    """Refuse a plan that omits a new copy or uses an unavailable input.

    ``ValueError`` names the step.
    """
    if sorted(step.copy for step in steps) != list(range(existing + 1, copies + 1)):
        raise ValueError("`plan` must draw every new copy once")
    drawn, new = set(range(existing + 1)), range(existing + 1, copies + 1)
    for step in steps:
        lacking = [f"copy {parent}" for parent, _ in step.parents if parent not in drawn]
        lacking += [f"the innovation of copy {of}" for of, _ in step.fresh if of not in new]
        if lacking:
            raise ValueError(
                f"`plan` draws copy {step.copy} from {lacking[0]}, which it has not then"
            )
        drawn.add(step.copy)


def implied_level_covariance(
    steps: Sequence[Step], copies: int, before: Array | None = None
) -> Array:
    """Exact ``Sigma`` of a plan, shape (M, M).

    ``Z = A Z + B g`` with weights A and scales B: ``Sigma = C Cᵀ`` of ``Z = C g``. ``before``, (m,
    m), is ``Sigma`` of existing copies.
    """
    C = np.zeros((copies + 1, copies + 1))
    if before is not None:
        C[1 : len(before) + 1, 1 : len(before) + 1] = psd_root(before)
    for step in steps:
        for parent, weight in step.parents:
            C[step.copy] += weight * C[parent]
        for innovation, scale in step.fresh:
            C[step.copy, innovation] += scale
    return C[1:, 1:] @ C[1:, 1:].T


def min_covariance(levels: Levels) -> Array:
    """``Sigma_ij = min(σ_i², σ_j²)``, shape (M, M) (li2011 (19))."""
    return np.minimum.outer(levels, levels).astype(float)


def upward_plan(levels: Levels, existing: int = 0) -> list[Step]:
    """Bridge's steps from the lowest new level up."""
    return bridge_plan(
        levels,
        existing,
        sorted(range(existing + 1, len(levels) + 1), key=lambda copy: (levels[copy - 1], copy)),
    )


def bridge_plan(levels: Levels, existing: int = 0, order: Sequence[int] = ()) -> list[Step]:
    """One step per copy, from its two neighbouring levels only.

    The Brownian bridge, equal to li2012 (17)–(18).
    """
    holder, steps = {0.0: ORIGINAL}, list[Step]()
    for copy, level in enumerate(levels[:existing], start=1):
        holder.setdefault(level, copy)
    ordered = sorted(holder)
    for copy in order or range(existing + 1, len(levels) + 1):
        s = float(levels[copy - 1])
        if s in holder:
            steps.append(Step(copy, ((holder[s], 1.0),)))
            continue
        place = bisect_left(ordered, s)
        a, *above = ordered[place - 1 : place + 1]
        if above:
            (b,), t = above, (s - a) / (above[0] - a)
            # (s−a)(b−s)/(b−a) without underflow
            fresh = ((copy, math.sqrt(t * (b - s))),)
            steps.append(Step(copy, ((holder[a], 1.0 - t), (holder[b], t)), fresh))
        else:
            steps.append(Step(copy, ((holder[a], 1.0),), ((copy, math.sqrt(s - a)),)))
        ordered.insert(place, s)
        holder[s] = copy
    return steps


FORGOTTEN = 1e-6
"""Correlation over a block that counts as zero."""


Memory = Literal["none", "data"] | list[float]


def _stationary(serial: Memory) -> Memory:
    if not isinstance(serial, str):
        if not 1 <= len(serial) <= MOST_LAGS:
            raise ValueError(f"must have 1 to {MOST_LAGS} coefficients; got {len(serial)}")
        Autoregression(tuple(serial))
    return serial


Serial = Annotated[
    Memory,
    AfterValidator(_stationary),
    Field(
        description="dependence of noise between consecutive records: none, like the data's (data), or stated coefficients of an "
        "autoregression"
    ),
]


def serial_law(serial: Memory, table: TableMoments) -> Autoregression | None:
    """Autoregression of the noise, or None if independent.

    ``AuditorError`` if its memory is longer than a block of records.
    """
    if serial == "none":
        return None
    coefficients = yule_walker(*table.autocorrelations) if serial == "data" else tuple(serial)
    if not any(coefficients):
        return None
    width = len(table.mean)
    found, rows = Autoregression(coefficients), block_rows(width)
    if found.memory**rows > FORGOTTEN:
        # no stationary series has a root of 1
        longest = math.floor(FORGOTTEN ** (1 / rows) * 1e6) / 1e6
        raise AuditorError(
            f"serial: noise that fades by a factor of {found.memory:.6g} a record still shows after {rows:,} records, as many as are drawn "
            f"at once of {width} attributes; state some of less memory, as [{longest:g}], or perturb fewer columns"
        )
    return found


def whitened(law: Autoregression, x: Array, copies: Arrays) -> list[Array]:
    """Copies with innovations ``Sigma ⊗ K_0`` in place of serial noise."""
    return [x + law.innovations(copy - x) for copy in copies]


class AdditiveScheme(Scheme):
    """Base of additive schemes: noise with covariance ``Sigma ⊗ K_0``."""

    family = "additive"
    on_grid = True
    adds_noise = True
    level_of_original = 0.0

    class Parameters(PluginParameters):
        """Parameters of every additive scheme; a subclass may redefine ``noise``."""

        noise: NoiseShape = "data"
        """shape of the noise across attributes, K_0"""

    @property
    def distribution(self) -> Distribution:
        return "gaussian"

    @abstractmethod
    def level_covariance(self, levels: Levels) -> Array:
        """``Sigma``, shape (M, M), of levels ``σ_i²``."""

    def pooled_level(self, levels: Levels) -> float:
        """``v``, the noise multiple of all copies together; 0 if their noise cancels."""
        return float(best_unbiased_combination(self.level_covariance(levels))[1])

    @abstractmethod
    def plan(self, levels: Levels, existing: int = 0) -> list[Step]:
        """Steps that draw copies ``existing + 1 … M``, in order."""

    def released_plan(self, levels: Levels, existing: int = 0) -> list[Step]:
        """Steps for copies that are rounded to a grid when drawn."""
        return self.plan(levels, existing)

    def law(self, levels: Levels, table: TableMoments) -> KroneckerNoise:
        follows_data = self.parameters.noise == "data" and not table.of_first_batch
        return KroneckerNoise(
            self.level_covariance(levels),
            self.shape(table),
            follows_data,
            self.distribution,
            serial=self.serial(table),
        )

    def serial(self, table: TableMoments) -> Autoregression | None:
        """Noise's autoregression, or None if independent, as without the parameter."""
        return serial_law(getattr(self.parameters, "serial", "none"), table)

    def shape(self, table: TableMoments) -> Array:
        """``K_0``, the covariance of level-1 noise, shape (N, N)."""
        noise = self.parameters.noise
        of_population = isinstance(noise, AlongTheData) and noise.of == "population"
        return noise_shape(
            noise,
            table.population_covariance if of_population else table.covariance,
            self.base,
            table.spans,
        )

    def facts(self, levels: Levels, table: TableMoments) -> dict[str, float]:
        """Correlation dissimilarity (huang2005, Definition 8.1)."""
        if table.covariance.shape[0] < 2:
            return {}
        return {
            "dissimilarity": correlation_dissimilarity(
                correlation(table.covariance), correlation(self.shape(table.scale))
            )
        }

    def sampler(self, levels: Levels, table: TableMoments, key: Key, existing: int = 0) -> Sampler:
        steps = self.checked_plan(levels, key, existing)
        return AdditiveSampler(
            steps, self.shape(table), levels, key, self.distribution, self.serial(table)
        )

    def checked_plan(self, levels: Levels, key: Key, existing: int) -> list[Step]:
        """Plan, for a grid if the key has one, after ``check_plan``."""
        steps = self.released_plan(levels, existing) if key.grid else self.plan(levels, existing)
        try:
            check_plan(steps, len(levels), existing)
        except ValueError as error:
            raise PluginError(f"scheme {self.name!r} broke its contract: {error}") from None
        return steps


class FreshNoise(AdditiveScheme):
    """Base of schemes that draw independent noise for every copy."""

    claims = "Nothing under collusion: the error falls with every copy pooled (li2012, Theorem 3)."
    reference = "li2012, section 5.1.1"

    def level_covariance(self, levels: Levels) -> Array:
        return np.diag(np.asarray(levels, dtype=float))

    def plan(self, levels: Levels, existing: int = 0) -> list[Step]:
        return [
            Step(copy, ((ORIGINAL, 1.0),), ((copy, float(np.sqrt(level))),) if level > 0 else ())
            for copy, level in enumerate(levels, start=1)
            if copy > existing
        ]


@unprinted
class AdditiveSampler:
    """Executes a plan block by block on the copies, with ``X`` as level 0."""

    steps: Sequence[Step]
    shape: Array
    levels: Levels
    key: Key
    distribution: Distribution
    serial: Autoregression | None

    @property
    def in_order(self) -> bool:
        """Whether every stream is read row by row."""
        return self.serial is None

    @cached_property
    def _root(self) -> Array | None:
        return None if is_diagonal(self.shape) else psd_root(self.shape).T.copy()

    @cached_property
    def _size(self) -> Array:
        return deviations(self.shape) if self._root is None else np.ones(len(self.shape))

    def block(self, index: int, x: Array, out: Arrays, existing: int = 0) -> None:
        uses = Counter(innovation for step in self.steps for innovation, _ in step.fresh)
        ahead = self._continued(x) if index == 0 and self.key.past and self.serial else {}
        drawn: dict[int, Array] = {}
        for step in self.steps:
            y = out[step.copy - 1]
            y[...] = ahead.get(step.copy, 0.0)
            for parent, weight in step.parents:
                y += weight * (x if parent == ORIGINAL else out[parent - 1])
            for innovation, scale in step.fresh:
                if innovation not in drawn:
                    drawn[innovation] = self._innovation(index, innovation, x.shape)
                y += scale * self._size * drawn[innovation]
                if uses[innovation] == 1:
                    del drawn[innovation]
            # later copies are drawn from the released values
            if self.key.grid and step.fresh:
                snap(y, np.array(self.key.grid))

    def _innovation(self, index: int, copy: int, shape: Shape) -> Array:
        rng = noise_stream(self.key, index, copy, self.levels[copy - 1])
        if self.distribution == "uniform":
            g = np.sqrt(12.0) * (rng.random(shape) - 0.5)
        else:
            g = rng.standard_normal(shape)
        if self.serial is not None:
            g = self._following(self.serial, index, copy, g)
        return g if self._root is None else g @ self._root

    def _following(self, law: Autoregression, index: int, copy: int, g: Array) -> Array:
        """Rows of one block that follow on from the block before."""
        rows, N = g.shape

        def joint(block: int) -> Array:
            if block == 0 and self.key.past:
                return np.zeros((law.order, N))
            before = noise_stream(self.key, block, copy, self.levels[copy - 1], "before")
            return law.stationary(before.standard_normal((law.order, N)))

        drawn = law.continued(joint(index), g)
        if rows == block_rows(N):  # only a whole block has a successor
            law.lead(drawn, joint(index + 1))
        return drawn

    def _continued(self, x: Array) -> dict[int, Array]:
        assert self.serial is not None
        (before, *copies), p, ahead = self.key.past, self.serial.order, np.zeros_like(x)
        if len(before) < p:
            raise AuditorError(
                f"noise that follows on from {p} records needs as many before a batch; got {counted(len(before), 'record')}"
            )
        found = {}
        for step in self.steps:
            noise = copies[step.copy - 1] - sum(
                weight * (before if parent == ORIGINAL else copies[parent - 1])
                for parent, weight in step.parents
            )
            found[step.copy] = self.serial.continued(noise[-p:], ahead)
        return found


def noise_stream(key: Key, block: int, copy: int, level: float, *part: str) -> Rng:
    """Random stream of one copy's noise in one block of rows."""
    return stream(key.seed, "noise", key.scheme, key.replicate, copy, float(level), block, *part)


FINENESS = 2.0**-20
"""Grid relative to the smallest noise."""
COARSEST = 2.0**-8
"""Coarsest grid, for numbers with few bits: ``g²/12`` is a millionth of the variance."""
DOUBLE_BITS, SINGLE_BITS = 51, 23
"""Bits of exact grid multiples in 64-bit and 32-bit numbers.
"""
FARTHEST, FARTHEST_OF_LONG_TAILS = 16.0, 64.0
"""Deviations beyond which no draw lies: Gaussian or bounded, and exponential tails (``e^{−90}``).
"""


def grid_of(
    deviations: Array, largest: Array, bits: int, units: Array | None, farthest: float
) -> Array:
    """Grid ``g`` of each attribute, shape (N,).

    0 without noise; NaN where these bits cannot hold noise and value.

    Parameters
    ----------
    deviations : (M, N)
        Of the noise.
    largest : (N,)
        Of absolute originals.
    bits
        ``DOUBLE_BITS`` or ``SINGLE_BITS``.
    units : (N,)
        Lattice units, then the grid.
    farthest
        In deviations.

    Examples
    --------
    >>> grid_of(np.array([[1.0, 0.0]]), np.array([100.0, 1.0]), SINGLE_BITS, None, FARTHEST)
    array([1.52587891e-05, 0.00000000e+00])
    """
    smallest = np.where(deviations > 0, deviations, np.inf).min(axis=0)
    noisy = np.isfinite(smallest)
    smallest = np.where(noisy, smallest, 1.0)
    reach = largest + farthest * deviations.max(axis=0)
    fine = np.floor(np.log2(FINENESS * smallest))
    held = np.ceil(np.log2(np.where(noisy, reach, 1.0))) - bits
    if units is not None:
        return np.where(noisy, np.where(np.log2(units) >= held, units, np.nan), 0.0)
    grid = np.exp2(np.maximum(fine, held))
    return np.where(noisy, np.where(grid <= COARSEST * smallest, grid, np.nan), 0.0)


def snap(rows: Array, grid: Array) -> None:
    """Round rows, shape (b, N), to the grid in place; grid 0 changes no value.

    Half to even: at ``1.5·2⁵²·g`` doubles lie ``g`` apart.
    """
    shift = 1.5 * 2.0**52 * grid
    rows += shift
    rows -= shift


# -- Gaussian schemes of li2012 --------------------------------------------------------------------


@register
class Independent(FreshNoise):
    """Fresh white noise in every copy. Broken under collusion, and by filters.

    Gaussian or uniform, with covariance σ²·(tr K_X / N)·I.
    """

    name = "independent"
    held_against = True
    reference = "li2012, section 5.1.1; huang2005, sections 4 and 6.1"
    assumes = "Recipients never pool their copies, and the attributes are uncorrelated."

    class Parameters(PluginParameters):
        """Covariance of the noise across attributes, and its distribution."""

        noise: NoiseShape = "white"
        """shape of the noise across attributes, K_0"""
        distribution: Literal["gaussian", "uniform"] = "gaussian"
        """gaussian, or uniform with the same covariance"""

    @property
    def distribution(self) -> Literal["gaussian", "uniform"]:
        return self.parameters.distribution


@register
class Correlated(FreshNoise):
    """Fresh noise with the data's covariance. Broken under collusion.

    Gaussian, with covariance σ²·K_X.
    """

    name = "correlated"
    held_against = True
    fresh_shaped_noise = True
    assumes = "Recipients never pool their copies."

    class Parameters(AdditiveScheme.Parameters):
        """Covariance of the noise across attributes, and along the records."""

        serial: Serial = "none"


@register
class LinearlyDependent(AdditiveScheme):
    """One noise draw scaled to every level. Broken: two copies disclose all.

    ``X = (σ_2 Y_1 − σ_1 Y_2) / (σ_2 − σ_1)`` exactly, for any two different levels.
    """

    name = "linearly-dependent"
    held_against = True
    claims = "Nothing under collusion: two copies at different levels give the table exactly (li2012, section 4.2.2)."
    reference = "li2012, section 4.2.2"
    assumes = "Recipients never pool their copies."
    on_grid = False

    def level_covariance(self, levels: Levels) -> Array:
        s = np.sqrt(np.asarray(levels, dtype=float))
        return np.outer(s, s)

    def plan(self, levels: Levels, existing: int = 0) -> list[Step]:
        # b is the noisiest copy; a fresh draw only if no copy exists
        steps = []
        for copy in range(existing + 1, len(levels) + 1):
            sigma = float(np.sqrt(levels[copy - 1]))
            before = max(range(1, copy), key=lambda c: levels[c - 1], default=0)
            if before and levels[before - 1] > 0:
                ratio = sigma / float(np.sqrt(levels[before - 1]))
                steps.append(Step(copy, ((ORIGINAL, 1.0 - ratio), (before, ratio))))
            else:
                steps.append(Step(copy, ((ORIGINAL, 1.0),), ((copy, sigma),) if sigma > 0 else ()))
        return steps


@register
class CornerWave(AdditiveScheme):
    """Multilevel Gaussian noise: no coalition gains over its best copy.

    Noise covariance between copies i and j: min(σ_i², σ_j²)·K_X.
    """

    name = "corner-wave"
    held_against = True
    claims = "No collusion gain: a coalition does no better than its least perturbed copy (li2012, Theorem 4)."
    reference = "li2012, Theorem 4"
    assumes = "Noise is jointly Gaussian and independent of the data; holds for every attack and every table."

    class Parameters(AdditiveScheme.Parameters):
        """Noise shape and sampling algorithm; all four algorithms have one law."""

        algorithm: Literal["bridge", "parallel", "sequential", "on-demand"] = "bridge"
        """bridge: from the two neighbouring levels; parallel, sequential, on-demand: the paper's Algorithms 1, 2 and 3"""
        serial: Serial = "none"

    level_covariance = staticmethod(min_covariance)

    def plan(self, levels: Levels, existing: int = 0) -> list[Step]:
        # algorithms 1 and 2 need every level (li2012, 5.2.3); later copies use the bridge
        algorithm = self.parameters.algorithm
        if algorithm == "on-demand":
            return on_demand_plan(levels, existing)
        if algorithm == "parallel" and existing == 0:
            return _joint_plan(levels, 0)
        if algorithm == "sequential" and existing == 0:  # section 5.2.2 and Theorem 5
            return upward_plan(levels)
        return bridge_plan(levels, existing)

    def released_plan(self, levels: Levels, existing: int = 0) -> list[Step]:
        # A copy above the last level is a function of the copy before and of noise independent of X,
        # for any rounding: Theorem 4 holds exactly.
        if self.parameters.algorithm != "bridge":
            return self.plan(levels, existing)
        return upward_plan(levels, existing)


def on_demand_plan(levels: Levels, existing: int) -> list[Step]:
    """Paper's Algorithm 3: new copies given *all* earlier ones.

    Source: li2012 (17) and (18), with ERRATA's transpose.
    """
    if existing > 0:
        return _joint_plan(levels, existing)
    return [
        step for copy in range(1, len(levels) + 1) for step in _joint_plan(levels[:copy], copy - 1)
    ]


def _joint_plan(levels: Levels, existing: int) -> list[Step]:
    """Draw new copies jointly, given the others (or Algorithm 1).

    By one Cholesky factor of ``Sigma`` (li2012, section 5.2.1 and Lemma 1).
    """
    holder, new, repeats = {0.0: ORIGINAL}, dict[float, int](), []
    for copy, s in enumerate(map(float, levels), start=1):
        if copy <= existing:
            holder.setdefault(s, copy)
        elif s in holder:
            repeats.append(Step(copy, ((holder[s], 1.0),)))
        else:
            holder[s] = new[s] = copy
    given = {s: copy for s, copy in holder.items() if s not in new and s > 0}
    if not new:
        return repeats
    try:
        mean, covariance = conditional_gaussian(np.array(list(given)), np.array(list(new)))
        root = scipy.linalg.cholesky(covariance, lower=True)
    except np.linalg.LinAlgError:
        raise AuditorError(
            "levels are too close for dense linear algebra to tell apart; algorithm: bridge has no solve"
        ) from None
    steps = []
    for copy, weights, scales in zip(new.values(), mean.tolist(), root.tolist(), strict=True):
        parents = ((ORIGINAL, 1.0 - sum(weights)), *_used(given, weights))
        steps.append(Step(copy, parents, _used(new, scales)))
    return steps + repeats


def _used(copies: dict[float, int], factors: list[float]) -> tuple[tuple[int, float], ...]:
    every = zip(copies.values(), factors, strict=True)
    return tuple((copy, factor) for copy, factor in every if factor != 0.0)


def conditional_gaussian(s_given: Array, s_new: Array) -> Pair:
    """Weights, (m, L), and covariance, (m, m), of ``Z''`` given ``Z'``.

    ``K_{Z''Z'} K_{Z'}⁻¹`` and ``K_{Z''} − K_{Z''Z'} K_{Z'}⁻¹ K_{Z''Z'}ᵀ`` in units of ``K_0`` (li2012 (17)
    and (18), with ERRATA's last factor), from distinct levels. ``LinAlgError`` if two given levels
    are too close.
    """
    K_new = np.minimum.outer(s_new, s_new)
    if s_given.size == 0:
        return np.zeros((s_new.size, 0)), K_new
    K_cross = np.minimum.outer(s_given, s_new)
    factor = scipy.linalg.cho_factor(np.minimum.outer(s_given, s_given), lower=True)
    weights = scipy.linalg.cho_solve(factor, K_cross).T
    return weights, K_new - weights @ K_cross
