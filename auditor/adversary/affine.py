"""Affine maps from copies to estimates, one or stacked by coalition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from auditor.numerics.blocks import CHUNK_VALUES, evenly
from auditor.types import Array, Coalition


@dataclass(frozen=True, eq=False, repr=False)
class Affine:
    """The estimate ``centre + offset + W (y − H·centre) + V (x − centre)``.

    Attributes
    ----------
    weights : ndarray of shape (N, kN)
        ``W``, on the coalition's stacked copies.
    offset : ndarray of shape (N,)
        0 if the attack centres on the true mean.
    fixed : bool
        Whether W and the offset depend on the law alone. Then theory and error bars have closed
        forms.
    known : ndarray of shape (N, N) or None
        ``V``, on known true values: 0 outside the known columns (``View.known_columns``).
    apart : bool
        Whether a map that is not fixed was fitted to known records alone (``Records``). It is
        judged on other records, with a closed form for the fitted map
        (``auditor.audit.numeric.linear_maps``).
    """

    weights: Array
    offset: Array
    fixed: bool = True
    known: Array | None = None
    apart: bool = False

    def apply(self, copies: Sequence[Array], centre: Array, out: Array) -> Array:
        """Write ``centre + offset + Σ W_i (y_i − centre)`` to ``out``.

        Parameters
        ----------
        copies : sequence of k ndarrays of shape (n, N)
        centre : ndarray of shape (N,)
            The view's.
        out : ndarray of shape (n, N)
            Overwritten and returned. No other memory grows with n.
        """
        blocks = np.split(self.weights, len(copies), axis=1)
        constant = centre + self.offset - sum(W @ centre for W in blocks)
        # pieces fit the cache
        for a, b in evenly(0, len(out), out.shape[1], CHUNK_VALUES):
            out[a:b] = constant
            for W, copy in zip(blocks, copies, strict=True):
                if W.any():  # under corner-wave noise all copies but one have weight 0
                    out[a:b] += copy[a:b] @ W.T
        return out


@dataclass(frozen=True, eq=False, repr=False)
class AffineStack(Sequence[Affine]):
    """Maps of several coalitions in one array, unpacked on access.

    Attributes
    ----------
    weights : ndarray of shape (B, N, kN), or (B, N, MN)
        For coalitions of one size; or for any, on all M copies of the view, with 0 outside the
        coalition.
    offsets : ndarray of shape (B, N)
    fixed : bool
        As for ``Affine``. No map uses true values.
    held : sequence of B tuples of int, or None
        Indices from 0 of each coalition's copies, if weights are on all.
    """

    weights: Array
    offsets: Array
    fixed: bool = True
    held: Sequence[Coalition] | None = None

    def __len__(self) -> int:
        return len(self.weights)

    @overload
    def __getitem__(self, place: int) -> Affine: ...
    @overload
    def __getitem__(self, place: slice) -> AffineStack: ...
    def __getitem__(self, place: int | slice) -> Affine | AffineStack:
        if isinstance(place, slice):
            held = None if self.held is None else self.held[place]
            return AffineStack(self.weights[place], self.offsets[place], self.fixed, held)
        weights, N = self.weights[place], self.offsets.shape[1]
        if self.held is not None:
            weights = weights.reshape(N, -1, N)[:, self.held[place]].reshape(N, -1)
        return Affine(weights, self.offsets[place], self.fixed)
