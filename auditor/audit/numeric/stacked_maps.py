"""Affine maps of many coalitions stacked into one array, padded with zeros to all copies, and which copies each coalition holds.

Padding makes a coalition's error ``R P Rᵀ`` a matrix product with the moments of *all* copies: a
thousand coalitions are one product of a (1000·N) × d matrix, in place of a thousand small ones with
submatrices cut out of ``P``.

| symbol | meaning | shape |
| --- | --- | --- |
| ``W`` | weights, 0 for copies outside the coalition | (B, N, MN) |
| ``V`` | weights on true values that the adversary knows, mostly none | (B, N, N) |
| ``R`` | ``[I − V, −W]``: the error is ``R v − c`` for a centred row ``v`` of ``[X, Y_1 … Y_M]`` | (B, N, d) |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, groupby

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.affine import Affine, AffineStack
from auditor.numerics.moments import attribute_index, neighbours
from auditor.types import Array, Coalition

PIECE_WEIGHTS = 2**17
"""Weights of maps that are worked on at a time: a megabyte. Of a thousand copies' prefixes some
thirty, which hold much the same copies."""


def by_size(coalitions: Sequence[Coalition]) -> Iterator[tuple[int, Sequence[Coalition]]]:
    """Yield runs of neighbouring coalitions of one size, each with the place it starts at."""
    start = 0
    for _, run in groupby(map(len, coalitions)):
        stop = start + len(list(run))
        yield start, coalitions[start:stop]
        start = stop


def holding(coalitions: Sequence[Coalition], copies: int) -> NDArray[np.bool_]:
    """Return which of so many copies each coalition holds, shape (B, M)."""
    sizes = np.fromiter(map(len, coalitions), dtype=np.intp, count=len(coalitions))
    held = np.zeros((len(coalitions), copies), dtype=bool)
    held[
        np.repeat(np.arange(len(coalitions)), sizes),
        np.fromiter(chain.from_iterable(coalitions), dtype=np.intp) - 1,
    ] = True
    return held


@dataclass(frozen=True)
class Members:
    """Which coalition holds which copy; every member of a coalition must be there as a coalition of its own.

    Attributes
    ----------
    singles : ndarray of shape (M,)
        Places of the copies alone, by copy number.
    held : ndarray of shape (B, M)
        Whether a coalition holds the copy.
    """

    singles: NDArray[np.intp] = field(repr=False)
    held: NDArray[np.bool_] = field(repr=False)

    @classmethod
    def of(cls, coalitions: Sequence[Coalition]) -> Members:
        """Look through the coalitions once."""
        held = holding(coalitions, max(map(max, coalitions)))
        alone = np.flatnonzero(held.sum(axis=1) == 1)
        numbers = held[alone].argmax(axis=1)
        order = np.argsort(numbers)
        return cls(alone[order], held[:, numbers[order]])

    def best(self, distortion: Array) -> NDArray[np.intp]:
        """Return, by coalition and column, the place of the copy it holds whose own error is least, shape (B, N + 1)."""
        alone = distortion[self.singles]
        least = [np.where(self.held, column, np.inf).argmin(axis=1) for column in alone.T]
        return np.asarray(self.singles[np.stack(least, axis=1)], dtype=np.intp)


@dataclass(frozen=True)
class Maps:
    """Affine maps of several coalitions, padded to all copies.

    Attributes
    ----------
    weights : ndarray of shape (B, N, MN)
    offsets : ndarray of shape (B, N)
    fixed : bool
        Whether none depends on the noise drawn.
    known : ndarray of shape (B, N, N) or None
        ``V``; None for no such weights.
    """

    weights: Array = field(repr=False)
    offsets: Array = field(repr=False)
    fixed: bool
    known: Array | None = field(repr=False, default=None)

    @classmethod
    def pad(
        cls, batches: Sequence[Sequence[Affine]], coalitions: Sequence[Coalition], copies: int
    ) -> Maps:
        """Put each coalition's weights at its copies' places among all copies; batches follow on."""
        parts, begin = list[AffineStack](), 0
        for batch in batches:
            held = coalitions[begin : begin + len(batch)]
            whole = isinstance(batch, AffineStack)  # else maps one by one, maybe of several sizes
            parts += [
                _padded(batch[start : start + len(run)], run, copies)
                for start, run in ([(0, held)] if whole else by_size(held))
            ]
            begin += len(batch)
        if len(parts) == 1:
            weights, offsets = parts[0].weights, parts[0].offsets
        else:
            weights, offsets = (
                np.concatenate(arrays)
                for arrays in zip(*((part.weights, part.offsets) for part in parts), strict=True)
            )
        return cls(
            weights, offsets, all(part.fixed for part in parts), _known(batches, offsets.shape[1])
        )

    def at(self, places: NDArray[np.intp] | slice) -> Maps:
        """Return the maps at some places, in that order."""
        return Maps(
            self.weights[places],
            self.offsets[places],
            self.fixed,
            None if self.known is None else self.known[places],
        )

    def about(self, mean: Array) -> Maps:
        """Return the maps for rows centred on another point, ``mean`` away from this one, shape (N,)."""
        return Maps(self.weights, self.offsets - self.lost @ mean, self.fixed, self.known)

    @property
    def weighed(self) -> NDArray[np.bool_]:
        """Which copies each map has a weight on, shape (B, M)."""
        B, N, MN = self.weights.shape
        return np.asarray(self.weights.any(axis=1).reshape(B, MN // N, N).any(axis=2))

    @cached_property
    def own(self) -> Array:
        """``I − V``, shape (B, N, N)."""
        B, N, _ = self.weights.shape
        identity: Array = np.broadcast_to(np.eye(N), (B, N, N))
        return identity if self.known is None else identity - self.known

    @cached_property
    def lost(self) -> Array:
        """``I − V − W H``, shape (B, N, N)."""
        B, N, MN = self.weights.shape
        H = np.tile(np.eye(N), (MN // N, 1))
        return np.asarray(self.own - (self.weights.reshape(B * N, MN) @ H).reshape(B, N, N))

    def pieces(self) -> list[slice]:
        """Return places of the maps in pieces of ``PIECE_WEIGHTS``: what is worked out of as many numbers as all weights is not held."""
        B, N, MN = self.weights.shape
        step = max(1, PIECE_WEIGHTS // (N * (N + MN)))
        return [slice(start, start + step) for start in range(0, B, step)]

    def residual(self, places: slice) -> tuple[Array, NDArray[np.intp] | slice]:
        """Return ``R = [I − V, −W]`` of some maps, shape (b, N, c), without columns of copies that none of them weighs; and those left."""
        W, N = self.weights[places], self.offsets.shape[1]
        held = np.flatnonzero(W.reshape(-1, W.shape[2]).any(axis=0).reshape(-1, N).any(axis=1))
        some = W.reshape(*W.shape[:2], -1, N)[:, :, neighbours(held)].reshape(*W.shape[:2], -1)
        return np.concatenate([self.own[places], -some], axis=2), neighbours(
            attribute_index([1, *(held + 2)], N)
        )


def _padded(batch: Sequence[Affine], run: Sequence[Coalition], copies: int) -> AffineStack:
    """Return the maps of some coalitions with weights on all copies."""
    if isinstance(batch, AffineStack) and batch.held is not None:
        return batch
    if not isinstance(batch, AffineStack):
        weights, offsets = (
            np.array([affine.weights for affine in batch]),
            np.array([affine.offset for affine in batch]),
        )
        batch = AffineStack(weights, offsets, all(affine.fixed for affine in batch))
    # Scatter: all maps are written at once, weights of the j-th copy held to the place of that copy
    # among all.
    N = batch.offsets.shape[1]
    by_copy = np.zeros((len(run), N, copies, N))
    index = np.fromiter(chain.from_iterable(run), dtype=np.intp).reshape(len(run), -1) - 1
    by_copy[np.arange(len(run))[:, None], :, index] = batch.weights.reshape(
        len(run), N, -1, N
    ).transpose(0, 2, 1, 3)
    return AffineStack(by_copy.reshape(len(run), N, -1), batch.offsets, batch.fixed, run)


def _known(batches: Sequence[Sequence[Affine]], N: int) -> Array | None:
    """Return ``V`` of every map, shape (B, N, N); None when none uses true values."""
    if all(isinstance(batch, AffineStack) for batch in batches):
        return None
    parts = [
        [None] * len(batch)
        if isinstance(batch, AffineStack)
        else [affine.known for affine in batch]
        for batch in batches
    ]
    if all(known is None for part in parts for known in part):
        return None
    return np.array(
        [np.zeros((N, N)) if known is None else known for part in parts for known in part]
    )
