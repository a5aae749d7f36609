"""Schemes that multiply every record by a secret matrix.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``M_i`` | the matrix of copy i, equal for all records | (n', N) | liu2008, (12.4) |
| ``t_i`` | its translation, 0 by default | (n',) | |
| ``y`` | ``M_i x + t_i`` | (n',) | |

Each copy has its own matrix, or all copies share the first's. Records are rows; in liu2008 they are
columns.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from auditor.base.errors import AuditorError
from auditor.base.types import Array
from auditor.numerics.random_streams import Rng, stream
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw, Transform, Transformed
from auditor.schemes.base.scheme import Key, Scheme, TableMoments


class TransformScheme(Scheme):
    """Base of the schemes ``y = M_i x + t_i``, without noise, at level 0."""

    needs_levels = False
    has_matrices = True

    @abstractmethod
    def draw(self, table: TableMoments, rng: Rng) -> Transform:
        """Return the transform of one copy, from that copy's own stream."""

    def default_levels(self) -> tuple[float, ...]:
        return (0.0,) * int(self.parameters.copies)

    def check_levels(self, levels: Sequence[float]) -> None:
        super().check_levels(levels)
        if not self.needs_levels and any(levels):
            raise AuditorError(
                f"{self.name} adds no noise, so its copies are all at level 0; got {max(levels):g}"
            )

    def law(self, levels: Sequence[float], table: TableMoments) -> None:
        """Return None: a noise law cannot describe a transform."""

    def transformed(
        self, levels: Sequence[float], table: TableMoments, key: Key
    ) -> Transformed | None:
        """Return the matrices and the law before them; None unless square.

        For the audit only.
        """
        if self.output_width(table.mean.size) != table.mean.size:
            return None
        return Transformed(
            tuple(self.transforms(len(levels), table, key)), self.law_before(levels, table)
        )

    def law_before(self, levels: Sequence[float], table: TableMoments) -> NoiseLaw:
        """Return the law of noise added before the matrix; zero by default."""
        return KroneckerNoise(np.zeros((len(levels),) * 2), np.eye(table.mean.size))

    def sampler(
        self, levels: Sequence[float], table: TableMoments, key: Key, existing: int = 0
    ) -> TransformSampler:
        return TransformSampler(self.transforms(len(levels), table, key))

    def transforms(self, copies: int, table: TableMoments, key: Key) -> list[Transform]:
        """Return each copy's transform, from the key and the copy's number alone."""
        seed = key.seed if key.matrices is None else key.matrices
        return [
            self.draw(table, stream(seed, "transform", key.scheme, key.replicate, copy))
            for copy in range(1, copies + 1)
        ]


class TransformSampler(NamedTuple):
    """Multiplies rows by every copy's matrix; draws nothing."""

    transforms: Sequence[Transform]

    def block(self, index: int, x: Array, out: Sequence[Array], existing: int = 0) -> None:
        for copy in range(existing, len(self.transforms)):
            self.transforms[copy].apply(x, out[copy])
