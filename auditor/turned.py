"""Copies that were multiplied by a square matrix, seen from where they were before it: there they are the original plus noise.

| symbol | meaning | shape |
| --- | --- | --- |
| ``M_i, t_i`` | matrix and translation of copy i | (N, N), (N,) |
| ``u_i`` | ``M_i⁻¹ (y_i − t_i) = x + Z_i`` | (N,) |
| ``T`` | ``diag(I, M_1 … M_M)``: moments of ``[x, u_1 …]`` become those of ``[x, y_1 …]`` about their own means | (d, d) |

The audit has the matrices and gathers moments of ``u``, about the table's mean: far from the origin ``M_i μ`` is another point than ``μ``,
and moments of ``y`` about ``μ`` are rounding and little else. An adversary is given ``T P Tᵀ``, which says of ``y`` what it can see; the
map ``W`` it returns is ``W_i M_i`` to the audit, and everything about additive noise holds for it: closed forms, error bars, and all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from auditor.attack import Affine
from auditor.gathering import Blocks
from auditor.moments import Moments
from auditor.noise import NoiseLaw
from auditor.transforms import Transform

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Turned:
    """What was done to the copies of one release, and the law of the noise before it was.

    Attributes
    ----------
    transforms : tuple of M Transform
        Square, of the table's width; that they can be inverted is *not checked*.
    law : NoiseLaw
        Of ``Z``.
    """

    transforms: tuple[Transform, ...] = field(repr=False)
    law: NoiseLaw

    def undo(self, copies: Sequence[Array]) -> list[Array]:
        """Return ``u_i`` of some rows of all copies, each of shape (b, N)."""
        return [transform.inverse(copy) for transform, copy in zip(self.transforms, copies, strict=True)]

    @property
    def rigid(self) -> bool:
        """Whether every copy was turned and moved only: other matrices blow rounding up when they are undone."""
        return all(transform.orthogonal for transform in self.transforms)

    def undone(self, blocks: Blocks) -> Blocks:
        """Return the same blocks with ``u_i`` for copies."""
        return lambda: ((index, x, self.undo(copies)) for index, x, copies in blocks())

    def as_seen(self, moments: Moments) -> Moments:
        """Return moments of ``[x, y_1 … y_M]``, of ``y`` about ``M_i μ + t_i``, given those of ``[x, u_1 … u_M]``."""
        return Moments(moments.count, self._all @ moments.total, self._all @ moments.products @ self._all.T)

    def back(self, affine: Affine, copies: Sequence[int]) -> Affine:
        """Return a coalition's map of ``y`` as one of ``u``; copy numbers count from 1."""
        return replace(affine, weights=affine.weights @ block_diag(*(self.transforms[copy - 1].matrix for copy in copies)))

    @cached_property
    def _all(self) -> Array:
        N = self.transforms[0].shift.size
        return np.asarray(block_diag(np.eye(N), *(transform.matrix for transform in self.transforms)))


def seen(turned: Turned | None, moments: Moments) -> Moments:
    """Return moments as an adversary has them: the same, unless copies were turned."""
    return moments if turned is None or moments.size == 0 else turned.as_seen(moments)


def backs(turned: Turned | None, batch: Sequence[Affine], coalitions: Sequence[Sequence[int]]) -> Sequence[Affine]:
    """Return maps as the audit needs them: the same, unless copies were turned."""
    return batch if turned is None else [turned.back(affine, copies) for affine, copies in zip(batch, coalitions, strict=True)]
