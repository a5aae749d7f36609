"""Additive schemes: copies drawn step by step from earlier copies.

``Y_i = X + Z_i``. A scheme states ``Sigma`` (``level_covariance``) and a plan that draws from
exactly that law. Tests compare the two without sampling (``implied_level_covariance``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from pydantic import Field

from auditor.errors import AuditorError, PluginError
from auditor.numerics.autoregression import Autoregression
from auditor.numerics.blocks import block_rows
from auditor.numerics.linear_algebra import correlation, is_diagonal, widely_scaled
from auditor.numerics.random_streams import Rng, stream
from auditor.numerics.row_kernels import SumOfProducts, add_scaled
from auditor.registry import PluginParameters
from auditor.schemes.base.grid import snap
from auditor.schemes.base.noise_density import Distribution
from auditor.schemes.base.noise_law import KroneckerNoise, psd_root
from auditor.schemes.base.noise_shapes import (
    AlongTheData,
    NoiseShape,
    correlation_dissimilarity,
    noise_shape,
)
from auditor.schemes.base.scheme import Key, Sampler, Scheme, TableMoments
from auditor.schemes.base.serial import SerialRows
from auditor.text.column_names import counted
from auditor.types import Array

Parents = Sequence[tuple[Array, float]]
Normals: TypeAlias = "Rng | SerialRows"
"""Source of rows of standard normals."""

CHUNK_VALUES = 2**15
"""Values (rows × attributes) per chunk: 256 KB per copy, so that a copy and a parent fit a core's
cache.
"""

ORIGINAL = 0
"""Number of ``X`` among a step's parents (level 0)."""


@dataclass(frozen=True)
class Step:
    """Draw of one copy from earlier copies and fresh innovations.

    ``Y_copy = Σ weight_j · Y_j + Σ scale_k · g_k``, with ``Y_0 = X`` and ``g_k ~ N(0, K_0)``.

    Attributes
    ----------
    copy : int
        Number of the copy drawn.
    parents : tuple of (int, float)
        Copies drawn before (0 is the original) and their weights, which sum to 1.
    fresh : tuple of (int, float)
        Innovation streams, named by copy number, and their scales (standard deviations, in
        multiples of ``K_0``'s root).
    """

    copy: int
    parents: tuple[tuple[int, float], ...]
    fresh: tuple[tuple[int, float], ...] = ()


class AdditiveScheme(Scheme):
    """Base of additive schemes: noise with covariance ``Sigma ⊗ K_0``.

    The noise is jointly Gaussian unless ``distribution`` is overridden.
    """

    family = "additive"
    on_grid = True
    adds_noise = True
    level_of_original = 0.0

    class Parameters(PluginParameters):
        """Parameters of every additive scheme; a subclass may redefine ``noise``."""

        noise: NoiseShape = Field("data", description="shape of the noise across attributes, K_0")

    @property
    def distribution(self) -> Distribution:
        """Distribution of the noise."""
        return "gaussian"

    @abstractmethod
    def level_covariance(self, levels: Sequence[float]) -> Array:
        """Return ``Sigma``, shape (M, M), for copies at these levels ``σ_i²``."""

    @abstractmethod
    def plan(self, levels: Sequence[float], existing: int = 0) -> list[Step]:
        """Return the steps that draw copies ``existing + 1 … M``, in order."""

    def released_plan(self, levels: Sequence[float], existing: int = 0) -> list[Step]:
        """Return the steps for copies that are rounded to a grid when drawn."""
        return self.plan(levels, existing)

    def law(self, levels: Sequence[float], table: TableMoments) -> KroneckerNoise:
        """Return the exact law of the noise, ``K_Z = Sigma ⊗ K_0``."""
        follows_data = self.parameters.noise == "data" and not table.of_first_batch
        return KroneckerNoise(
            self.level_covariance(levels),
            self.shape(table),
            follows_data,
            self.distribution,
            serial=self.serial(table),
        )

    def serial(self, table: TableMoments) -> Autoregression | None:
        """Return the noise's autoregression over records, or None if independent."""
        return None

    def shape(self, table: TableMoments) -> Array:
        """Return ``K_0``, the covariance of level-1 noise, shape (N, N)."""
        noise = self.parameters.noise
        of_population = isinstance(noise, AlongTheData) and noise.of == "population"
        return noise_shape(
            noise,
            table.population_covariance if of_population else table.covariance,
            self.base,
            table.spans,
        )

    def facts(self, levels: Sequence[float], table: TableMoments) -> dict[str, float]:
        """Return the correlation dissimilarity (huang2005, Definition 8.1)."""
        if table.covariance.shape[0] < 2:
            return {}
        return {
            "dissimilarity": correlation_dissimilarity(
                correlation(table.covariance), correlation(self.shape(table.scale))
            )
        }

    def sampler(
        self, levels: Sequence[float], table: TableMoments, key: Key, existing: int = 0
    ) -> Sampler:
        """Return the sampler of copies ``existing + 1 … M``."""
        steps = self.checked_plan(levels, key, existing)
        return AdditiveSampler(
            steps, self.shape(table), levels, key, self.distribution, self.serial(table)
        )

    def checked_plan(self, levels: Sequence[float], key: Key, existing: int) -> list[Step]:
        """Return the checked steps; for a grid if the key has one.

        Raises
        ------
        PluginError
            The plan breaks its contract (``check_plan``).
        """
        steps = self.released_plan(levels, existing) if key.grid else self.plan(levels, existing)
        try:
            check_plan(steps, len(levels), existing)
        except ValueError as error:
            raise PluginError(f"scheme {self.name!r} broke its contract: {error}") from None
        return steps


def check_plan(steps: Sequence[Step], copies: int, existing: int) -> None:
    """Refuse a plan that omits a new copy or uses an unavailable input.

    Copies of one request may share innovations. Innovations of earlier requests are not kept, so a
    step cannot reuse one.

    Raises
    ------
    ValueError
        Naming the step and the missing input.
    """
    # memory would be released as found
    if sorted(step.copy for step in steps) != list(range(existing + 1, copies + 1)):
        raise ValueError("`plan` must draw every new copy once")
    drawn: set[int] = set()
    for step in steps:
        early = [
            parent
            for parent, _ in step.parents
            if parent not in drawn and not 0 <= parent <= existing
        ]
        if early:  # memory as found, again
            raise ValueError(
                f"`plan` draws copy {step.copy} from copy {early[0]}, which is not drawn by then"
            )
        drawn.add(step.copy)
        gone = [innovation for innovation, _ in step.fresh if not existing < innovation <= copies]
        if gone:
            why = (
                "which is out already and whose noise is not kept"
                if 0 < gone[0] <= existing
                else "which is not among the new ones"
            )
            raise ValueError(
                f"`plan` draws copy {step.copy} with the innovation of copy {gone[0]}, {why}"
            )


def implied_level_covariance(
    steps: Sequence[Step], copies: int, before: Array | None = None
) -> Array:
    """Return the exact ``Sigma`` of a plan, shape (M, M).

    ``Z = A Z + B g`` with A the weights on earlier copies and B the scales. Substitution gives ``Z
    = C g`` and ``Sigma = C Cᵀ``.

    Parameters
    ----------
    steps : sequence of Step
    copies : int
        ``M``.
    before : ndarray of shape (m, m), optional
        ``Sigma`` of the m existing copies; the steps draw the others.
    """
    existing = 0 if before is None else len(before)
    C = np.zeros((copies + 1, copies + 1))
    if before is not None:  # any root will do: no step may use its innovations
        C[1 : existing + 1, 1 : existing + 1] = psd_root(before)
    for step in steps:
        for parent, weight in step.parents:
            C[step.copy] += weight * C[parent]
        for innovation, scale in step.fresh:
            C[step.copy, innovation] += scale
    return C[1:, 1:] @ C[1:, 1:].T


class AdditiveSampler:
    """Executes a plan block by block in preallocated memory.

    Works on the copies with ``X`` as level 0, so noise is never stored (the weights of a step sum
    to 1). A copy costs one draw, one product with the root of ``K_0`` and one scaled addition per
    parent.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        shape: Array,
        levels: Sequence[float],
        key: Key,
        distribution: Distribution = "gaussian",
        serial: Autoregression | None = None,
    ) -> None:
        self.in_order = serial is None
        """Whether the first rows of a block can be had without the rest: every stream is drawn from
        row by row."""
        self._serial = serial
        self._steps = steps
        self._root = _Root(shape, distribution)
        self._levels = levels
        self._key = key
        self._grid = np.array(key.grid)
        self._shared = {innovation for innovation, uses in _uses(steps).items() if uses > 1}
        self._scratch: Array | None = None
        self._followed: dict[int, Array] = {}

    def block(self, index: int, x: Array, out: Sequence[Array], existing: int = 0) -> None:
        """Write the copies of one block of rows; see ``Sampler``.

        Works in chunks that fit the cache.
        """
        names = {innovation for step in self._steps for innovation, _ in step.fresh}
        streams = {innovation: self._stream(index, innovation, x.shape) for innovation in names}
        self._followed = (
            self._going_on(x) if index == 0 and self._key.past and self._serial is not None else {}
        )
        rows = max(1, CHUNK_VALUES // x.shape[1])
        if self._scratch is None:
            self._scratch = np.empty((rows, x.shape[1]))
        for start in range(0, len(x), rows):
            self._chunk(x, out, slice(start, min(start + rows, len(x))), streams)

    def _stream(self, index: int, copy: int, shape: tuple[int, ...]) -> Normals:
        level, law = self._levels[copy - 1], self._serial
        rng = noise_stream(self._key, index, copy, level)
        if law is None:
            return rng
        rows, N = shape

        def joint(block: int) -> Array:
            if block == 0 and self._key.past:
                return np.zeros((law.order, N))
            return law.stationary(
                noise_stream(self._key, block, copy, level, "before").standard_normal(
                    (law.order, N)
                )
            )

        # Only a whole block has a successor, so only a whole block is conditioned on the rows after
        # it.
        return SerialRows.drawn(
            law, (rows, N), rng, joint(index), joint(index + 1) if rows == block_rows(N) else None
        )

    def _going_on(self, x: Array) -> dict[int, Array]:
        """Return, by copy, the mean of the step's noise given earlier records."""
        assert self._serial is not None
        (before, *copies), p, ahead = self._key.past, self._serial.order, np.zeros_like(x)
        if len(before) < p:
            raise AuditorError(
                f"noise that follows on from {p} records needs as many before a batch; got {counted(len(before), 'record')}"
            )
        found = {}
        for step in self._steps:
            parents = sum(
                weight * (before if parent == ORIGINAL else copies[parent - 1])
                for parent, weight in step.parents
            )
            found[step.copy] = self._serial.continued((copies[step.copy - 1] - parents)[-p:], ahead)
        return found

    def _chunk(
        self, x: Array, out: Sequence[Array], rows: slice, streams: dict[int, Normals]
    ) -> None:
        assert self._scratch is not None
        scratch = self._scratch[: rows.stop - rows.start]
        kept: dict[int, Array] = {}
        for step in self._steps:
            y = out[step.copy - 1][rows]
            parents = [
                ((x if parent == ORIGINAL else out[parent - 1])[rows], weight)
                for parent, weight in step.parents
            ]
            parents += [(self._followed[step.copy][rows], 1.0)] if self._followed else []
            if len(step.fresh) == 1 and step.fresh[0][0] not in self._shared:
                innovation, scale = step.fresh[0]
                self._root.draw(streams[innovation], scale, parents, y, scratch)
            else:
                parents += [
                    (self._shared_draw(streams, innovation, kept, scratch), scale)
                    for innovation, scale in step.fresh
                ]
                weighted_sum(parents, y)
            # rounds the process: later copies are drawn from the released values
            if self._grid.size and step.fresh:
                snap(y, self._grid)

    def _shared_draw(
        self, streams: dict[int, Normals], copy: int, kept: dict[int, Array], scratch: Array
    ) -> Array:
        if copy not in kept:
            kept[copy] = np.empty_like(scratch)
            self._root.draw(streams[copy], 1.0, [], kept[copy], scratch)
        return kept[copy]


def noise_stream(key: Key, block: int, copy: int, level: float, *part: str) -> Rng:
    """Return the random stream of one copy's noise in one block of rows.

    The level is part of the name, so alternative extensions of one release never share an
    innovation.
    """
    return stream(key.seed, "noise", key.scheme, key.replicate, copy, float(level), block, *part)


def _uses(steps: Sequence[Step]) -> dict[int, int]:
    return Counter(innovation for step in steps for innovation, _ in step.fresh)


class _Root:
    """Product of standard normals with a root of ``K_0``."""

    def __init__(self, K_0: Array, distribution: Distribution = "gaussian") -> None:
        self._fill = fill_gaussian if distribution == "gaussian" else fill_uniform
        self._scale = np.sqrt(np.clip(np.diag(K_0), 0.0, None))
        self._diagonal = is_diagonal(K_0)
        self._uniform = self._diagonal and bool((self._scale == self._scale[0]).all())
        # Rows are multiplied as g·Rᵀ; the symmetric root is its own transpose.
        self._product = SumOfProducts(
            psd_root(K_0).T.copy() if widely_scaled(K_0) else psd_root(K_0)
        )

    def draw(
        self, rng: Normals, scale: float, parents: Parents, out: Array, scratch: Array
    ) -> None:
        self._fill(rng, out)
        if not self._diagonal:
            weighted_sum(parents, scratch)
            self._product.add(out, scratch, scale)
            np.copyto(out, scratch)
            return
        np.multiply(out, scale * (self._scale[0] if self._uniform else self._scale), out=out)
        for parent, weight in parents:
            add_scaled(parent, weight, out)


def weighted_sum(parts: Parents, out: Array) -> None:
    """Write ``Σ weight · part`` to ``out``; all C-contiguous, of equal shape."""
    if not parts:
        out.fill(0.0)
        return
    (first, weight), *others = parts
    np.multiply(first, weight, out=out)
    for part, weight in others:
        add_scaled(part, weight, out)


def fill_gaussian(rng: Normals, out: Array) -> None:
    """Fill an array with independent draws from N(0, 1)."""
    rng.standard_normal(out=out)


def fill_uniform(rng: Normals, out: Array) -> None:
    """Fill an array with independent uniform draws on ± √3 (variance 1)."""
    assert not isinstance(rng, SerialRows), "only normals follow on"
    rng.random(out=out)
    out -= 0.5
    out *= np.sqrt(12.0)
