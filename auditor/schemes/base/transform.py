"""Matrix transforms of copies, and schemes that multiply by secret matrices.

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
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from auditor.errors import AuditorError
from auditor.numerics.moments import Moments
from auditor.numerics.random_streams import Rng, stream
from auditor.process.deferred import scipy
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw
from auditor.schemes.base.scheme import Key, Scheme, TableMoments
from auditor.types import Array


@dataclass(frozen=True, eq=False)
class Transform:
    """``x ↦ M x + t``.

    Attributes
    ----------
    matrix : ndarray of shape (n', N)
    shift : ndarray of shape (n',)
    """

    matrix: Array = field(repr=False)
    shift: Array = field(repr=False)

    def apply(self, x: Array, out: Array) -> None:
        """Write ``x Mᵀ + t``, shape (b, n')."""
        np.matmul(x, self.matrix.T, out=out)
        out += self.shift

    def undo(self, y: Array) -> Array:
        """Return ``(y − t) M``, shape (b, N): the original if M is orthogonal."""
        return (y - self.shift) @ self.matrix

    def inverse(self, y: Array) -> Array:
        """Return ``M⁻¹ (y − t)``, shape (b, N), of a square matrix.

        Raises
        ------
        LinAlgError
            The matrix is exactly singular; near-singularity is *not checked*.
        """
        if self.orthogonal:
            return self.undo(y)
        return np.asarray(np.linalg.solve(self.matrix, (y - self.shift).T).T)

    @cached_property
    def orthogonal(self) -> bool:
        """Whether the matrix is orthogonal, up to rounding."""
        return bool(
            np.allclose(self.matrix @ self.matrix.T, np.eye(len(self.matrix)), rtol=0.0, atol=1e-13)
        )


def haar(N: int, rng: Rng, *count: int) -> Array:
    """Return uniformly random orthogonal matrices, shape (*count, N, N).

    QR of a normal matrix, with R's diagonal positive, is Haar distributed (Mezzadri 2007).
    """
    Q, R = np.linalg.qr(rng.standard_normal((*count, N, N)))
    return Q * np.where(np.einsum("...ii->...i", R) < 0, -1.0, 1.0)[..., None, :]


@dataclass(frozen=True)
class Transformed:
    """Transforms of one release's copies, and the noise law before them.

    Attributes
    ----------
    transforms : tuple of M Transform
        Square, of the table's width; invertibility is *not checked*.
    law : NoiseLaw
        Of ``Z``.
    """

    transforms: tuple[Transform, ...] = field(repr=False)
    law: NoiseLaw

    def undo(self, copies: Sequence[Array]) -> list[Array]:
        """Return ``u_i`` of some rows of all copies, each of shape (b, N)."""
        return [
            transform.inverse(copy) for transform, copy in zip(self.transforms, copies, strict=True)
        ]

    @property
    def rigid(self) -> bool:
        """Whether every transform is rigid: others amplify rounding if undone."""
        return all(transform.orthogonal for transform in self.transforms)

    def as_seen(self, moments: Moments) -> Moments:
        """Return moments of ``[x, y_1 … y_M]`` from those of ``[x, u_1 … u_M]``.

        ``y`` is centred at ``M_i μ + t_i``.
        """
        return Moments(
            moments.count, self._all @ moments.total, self._all @ moments.products @ self._all.T
        )

    @cached_property
    def _all(self) -> Array:
        N = self.transforms[0].shift.size
        return np.asarray(
            scipy.linalg.block_diag(np.eye(N), *(transform.matrix for transform in self.transforms))
        )


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
