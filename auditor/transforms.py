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
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from auditor.errors import AuditorError
from auditor.noise import GaussianNoise, NoiseLaw
from auditor.scheme import Key, Scheme, TableMoments
from auditor.streams import Rng, stream

if TYPE_CHECKING:
    from auditor.turned import Turned

Array = NDArray[np.float64]


@dataclass(frozen=True)
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
        """Return ``(y − t) M``, shape (b, N): the original rows when ``M`` is orthogonal."""
        return np.asarray((y - self.shift) @ self.matrix)

    def inverse(self, y: Array) -> Array:
        """Return ``M⁻¹ (y − t)``, shape (b, N), of a square matrix.

        Raises
        ------
        LinAlgError
            It is singular, to the last bit; one that nearly is gives rounding back, and is *not checked* for.
        """
        if self.orthogonal:
            return self.undo(y)
        return np.asarray(np.linalg.solve(self.matrix, (y - self.shift).T).T)

    @cached_property
    def orthogonal(self) -> bool:
        """Whether the matrix keeps lengths, to the last digits."""
        return bool(np.allclose(self.matrix @ self.matrix.T, np.eye(len(self.matrix)), rtol=0.0, atol=1e-13))


def haar(N: int, rng: Rng) -> Array:
    """Return a uniformly random orthogonal matrix, shape (N, N), of either determinant.

    QR of a normal matrix; with R's diagonal made positive Q is unique, and Haar (Mezzadri 2007, section 5).
    """
    Q, R = np.linalg.qr(rng.standard_normal((N, N)))
    return np.asarray(Q * np.where(np.diag(R) < 0, -1.0, 1.0))


class TransformScheme(Scheme):
    """Base of the schemes ``y = M_i x + t_i``. They have no noise, and so no law of it and no levels: every copy is at level 0."""

    needs_levels = False

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

    def turned(self, levels: Sequence[float], table: TableMoments, key: Key) -> Turned | None:
        """Return the matrices and the law of what they were applied to, for the audit alone; None unless they are square."""
        from auditor.turned import Turned

        if self.output_width(table.mean.size) != table.mean.size:
            return None
        return Turned(tuple(self.transforms(len(levels), table, key)), self.law_before(levels, table))

    def law_before(self, levels: Sequence[float], table: TableMoments) -> NoiseLaw:
        """Return the law of the noise that rows were given before the matrix was applied: there is none, unless a scheme says otherwise."""
        return GaussianNoise(np.zeros((len(levels),) * 2), np.eye(table.mean.size))

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
