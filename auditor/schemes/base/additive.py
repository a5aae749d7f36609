"""Additive schemes: copies drawn step by step from earlier copies.

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

from auditor.base import AuditorError, PluginError, counted
from auditor.base.types import Array, Arrays, Levels, Shape, unprinted
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
from auditor.registry import PluginParameters
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
