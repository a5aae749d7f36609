"""Matrix transforms of copies: of one copy, and of a whole release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from auditor.numerics.moments import Moments
from auditor.process.deferred import scipy
from auditor.schemes.base.noise_law import NoiseLaw
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
