"""Schemes that multiply every record by a secret matrix: what draws the matrices, and what applies them.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``M_i`` | the matrix of copy i, the same for every record | (n', N) | liu2008, (12.4) |
| ``t_i`` | its translation, 0 unless asked for | (n',) | |
| ``y`` | ``M_i x + t_i`` | (n',) | |

A copy has a matrix of its own, or all copies share the first's. Rows are records here; the survey has them as columns.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from auditor.errors import AuditorError
from auditor.numerics.random_streams import Rng, stream
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw
from auditor.schemes.base.scheme import Key, Scheme, TableMoments
from auditor.schemes.base.transform import Transform, Transformed
from auditor.types import Array


class TransformScheme(Scheme):
    """Base of the schemes ``y = M_i x + t_i``. They have no noise, and so no law of it and no levels: every copy is at level 0."""

    needs_levels = False
    has_matrices = True

    @abstractmethod
    def draw(self, table: TableMoments, rng: Rng) -> Transform:
        """Return the transform of one copy, from that copy's own stream."""

    def default_levels(self) -> tuple[float, ...]:
        """Return level 0 for each copy."""
        return (0.0,) * int(self.parameters.copies)

    def check_levels(self, levels: Sequence[float]) -> None:
        """Refuse levels above 0 of a scheme without noise."""
        super().check_levels(levels)
        if not self.needs_levels and any(levels):
            raise AuditorError(f"{self.name} adds no noise, so its copies are all at level 0; got {max(levels):g}")

    def law(self, levels: Sequence[float], table: TableMoments) -> None:
        """Return None: copies are not the original plus noise, which is all that a noise law can say."""

    def transformed(self, levels: Sequence[float], table: TableMoments, key: Key) -> Transformed | None:
        """Return the matrices and the law of what they were applied to, for the audit alone; None unless they are square."""
        if self.output_width(table.mean.size) != table.mean.size:
            return None
        return Transformed(tuple(self.transforms(len(levels), table, key)), self.law_before(levels, table))

    def law_before(self, levels: Sequence[float], table: TableMoments) -> NoiseLaw:
        """Return the law of the noise that rows were given before the matrix was applied: there is none, unless a scheme says otherwise."""
        return KroneckerNoise(np.zeros((len(levels),) * 2), np.eye(table.mean.size))

    def sampler(self, levels: Sequence[float], table: TableMoments, key: Key, existing: int = 0) -> TransformSampler:
        """Return what transforms the rows into copies ``existing + 1 … M``."""
        return TransformSampler(self.transforms(len(levels), table, key))

    def transforms(self, copies: int, table: TableMoments, key: Key) -> list[Transform]:
        """Return each copy's transform; a function of the key and the copy's number alone."""
        seed = key.seed if key.matrices is None else key.matrices
        return [self.draw(table, stream(seed, "transform", key.scheme, key.replicate, copy)) for copy in range(1, copies + 1)]


class TransformSampler:
    """Applies one transform a copy, block by block."""

    def __init__(self, transforms: Sequence[Transform]) -> None:
        self._transforms = transforms

    def block(self, index: int, x: Array, out: Sequence[Array], existing: int = 0) -> None:
        """Write the copies of one block of rows; see ``Sampler``."""
        for copy in range(existing, len(self._transforms)):
            self._transforms[copy].apply(x, out[copy])
