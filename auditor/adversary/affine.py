"""A linear attack's estimate: one affine map, or the maps of several coalitions solved together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import overload

from auditor.numerics.row_kernels import write_estimates
from auditor.types import Array, Coalition


@dataclass(frozen=True, eq=False)
class Affine:
    """A linear attack's estimate ``x̂ = centre + offset + W (y − H·centre) + V (x − centre)``.

    Attributes
    ----------
    weights : ndarray of shape (N, kN)
        ``W``, on the coalition's stacked copies.
    offset : ndarray of shape (N,)
        ``x̂ = centre + offset + W·(y − H·centre)``; 0 for an attack that centres on the true mean.
    fixed : bool
        Whether W and the offset depend on the law alone and not on the noise drawn; only then is there a theory. Error bars have a
        closed form then; else they count what another draw would have taught the attack, too.
    known : ndarray of shape (N, N) or None
        ``V``, on the record's own true values: 0 outside the columns the adversary knows (``View.known_columns``).
    apart : bool
        Of a map that is not fixed: whether it was fitted to records given in clear (``Records``) and to no other row. It is
        judged on the others, and there is a theory then, the map taken as it is (``auditor.audit.numeric.closed_form``).
    """

    weights: Array = field(repr=False)
    offset: Array = field(repr=False)
    fixed: bool = True
    known: Array | None = field(repr=False, default=None)
    apart: bool = False

    def apply(self, copies: Sequence[Array], centre: Array, out: Array) -> Array:
        """Write ``centre + offset + Σ W_i (y_i − centre)`` for every row, block by block, and return it.

        Parameters
        ----------
        copies : sequence of k ndarrays of shape (n, N)
        centre : ndarray of shape (N,)
            The view's.
        out : ndarray of shape (n, N)
            Overwritten; the only memory used that grows with n.
        """
        return write_estimates(self.weights, self.offset, centre, copies, out)


@dataclass(frozen=True, eq=False)
class AffineStack(Sequence[Affine]):
    """Maps of several coalitions, solved together and kept together: unpacked only for who asks for one of them.

    Attributes
    ----------
    weights : ndarray of shape (B, N, kN), or (B, N, MN)
        Of coalitions of one size; or, of any, on all M copies that the view holds, 0 for those outside the coalition.
    offsets : ndarray of shape (B, N)
    fixed : bool
        As for each ``Affine``; none uses true values.
    held : sequence of B tuples of int, or None
        Places from 0 of each coalition's copies, where weights are on all.
    """

    weights: Array = field(repr=False)
    offsets: Array = field(repr=False)
    fixed: bool = True
    held: Sequence[Coalition] | None = field(repr=False, default=None)

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
