"""Copies that were multiplied by a square matrix, in coordinates from before the product: there they are the original plus noise.

| symbol | meaning | shape |
| --- | --- | --- |
| ``M_i, t_i`` | matrix and translation of copy i | (N, N), (N,) |
| ``u_i`` | ``M_i⁻¹ (y_i − t_i) = x + Z_i`` | (N,) |
| ``T`` | ``diag(I, M_1 … M_M)``: moments of ``[x, u_1 …]`` become those of ``[x, y_1 …]`` about their own means | (d, d) |

The audit has the matrices and gathers moments of ``u`` about the table's mean. Moments of ``y``
about ``μ`` would be mostly rounding where the data are far from the origin, as ``M_i μ`` is another
point than ``μ``. An adversary is given ``T P Tᵀ``, the moments of ``y`` that it can see. The map
``W`` it returns is ``W_i M_i`` in the audit's coordinates, and everything about additive noise
holds for that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from auditor.adversary.affine import Affine
from auditor.numerics.moments import Moments
from auditor.process.deferred import scipy
from auditor.schemes.base.transform import Transformed
from auditor.types import Blocks


def seen(transformed: Transformed | None, moments: Moments) -> Moments:
    """Return moments as an adversary has them: ``T P Tᵀ``, or the same where copies were not transformed."""
    return moments if transformed is None or moments.size == 0 else transformed.as_seen(moments)


def backs(
    transformed: Transformed | None, batch: Sequence[Affine], coalitions: Sequence[Sequence[int]]
) -> Sequence[Affine]:
    """Return maps in the audit's coordinates: ``W_i M_i``, or the same where copies were not transformed."""
    if transformed is None:
        return batch
    matrices = [transform.matrix for transform in transformed.transforms]
    return [
        replace(
            affine,
            weights=affine.weights
            @ scipy.linalg.block_diag(*(matrices[copy - 1] for copy in copies)),
        )
        for affine, copies in zip(batch, coalitions, strict=True)
    ]


def undone(transformed: Transformed | None, blocks: Blocks) -> Blocks:
    """Return the same blocks with ``u_i`` for copies; the same where copies were not transformed."""
    return (
        blocks
        if transformed is None
        else lambda: ((index, x, transformed.undo(copies)) for index, x, copies in blocks())
    )
