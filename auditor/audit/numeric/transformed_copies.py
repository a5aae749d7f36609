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
from dataclasses import replace

from scipy.linalg import block_diag

from auditor.adversary.affine import Affine
from auditor.numerics.moments import Moments
from auditor.schemes.base.transform import Turned
from auditor.types import Blocks


def seen(turned: Turned | None, moments: Moments) -> Moments:
    """Return moments as an adversary has them: the same, unless copies were turned."""
    return moments if turned is None or moments.size == 0 else turned.as_seen(moments)


def backs(turned: Turned | None, batch: Sequence[Affine], coalitions: Sequence[Sequence[int]]) -> Sequence[Affine]:
    """Return maps as the audit needs them: the same, unless copies were turned."""
    if turned is None:
        return batch
    matrices = [transform.matrix for transform in turned.transforms]
    return [replace(affine, weights=affine.weights @ block_diag(*(matrices[copy - 1] for copy in copies)))
            for affine, copies in zip(batch, coalitions, strict=True)]  # fmt: skip


def undone(turned: Turned | None, blocks: Blocks) -> Blocks:
    """Return the same blocks with ``u_i`` for copies: the same, unless copies were turned."""
    return blocks if turned is None else lambda: ((index, x, turned.undo(copies)) for index, x, copies in blocks())
