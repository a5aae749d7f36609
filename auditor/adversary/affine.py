"""Affine maps from copies to estimates, and checks of attacks' results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from auditor.adversary.view import View
from auditor.base.errors import PluginError
from auditor.base.types import Array, Coalition
from auditor.numerics.blocks import CHUNK_VALUES, evenly
from auditor.process.containment import known


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
        (``auditor.audit.numeric.linear_errors``).
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


def check_real(*values: Any) -> None:
    """Refuse complex values, text and objects.

    Raises
    ------
    PluginError
        A value is not real.
    """
    for value in values:
        kind = np.asarray(value).dtype
        if kind.kind not in "fiub":
            raise PluginError(
                f"the attack returned values of type {known(kind.type).__name__}, which are no real numbers"
            )


def checked(estimate: Array, shape: tuple[int, ...]) -> Array:
    """Return finite numbers of a shape.

    Raises
    ------
    PluginError
        With the expectation that failed.
    """
    check_real(estimate)
    estimate = np.asarray(estimate, dtype=np.float64)
    if estimate.shape != shape:
        raise PluginError(
            f"the attack returned an estimate of shape {estimate.shape} for rows of shape {shape}"
        )
    if not np.isfinite(estimate).all():
        raise PluginError("the attack returned values that are not finite")
    return estimate


MOST_WEIGHT = 1e100
"""Its square times any accepted variance is still a double."""


def check_finite_maps(weights: Array, offsets: Array) -> None:
    """Refuse one map or stacked maps that are not finite.

    Raises
    ------
    PluginError
        A weight or offset is not finite, or too large.
    """
    if not (np.isfinite(weights).all() and np.isfinite(offsets).all()):
        raise PluginError("the attack returned weights that are not finite")
    if np.abs(weights).max(initial=0.0) > MOST_WEIGHT:
        raise PluginError("the attack returned weights beyond what double precision can square")


def check_affine(affine: Affine, view: View) -> None:
    """Refuse a map that is not finite, or that ``check_shape`` refuses.

    Raises
    ------
    PluginError
        The map is invalid.
    """
    check_shape(affine, view)
    check_finite_maps(affine.weights, affine.offset)


def check_shape(affine: Affine, view: View) -> None:
    """Refuse a map of the wrong shape, or one that uses unknown true values.

    Raises
    ------
    PluginError
        The map is invalid.
    """
    if not isinstance(affine, Affine):
        raise PluginError(
            f"the attack returned a {known(type(affine)).__name__} where an Affine is expected"
        )
    check_real(affine.weights, affine.offset, *(() if affine.known is None else (affine.known,)))
    N, shape = view.width, np.shape(affine.weights)
    if len(shape) != 2 or shape[0] != N or shape[1] % N or np.shape(affine.offset) != (N,):
        shapes = f"weights of shape {shape} and an offset of shape {np.shape(affine.offset)}"
        raise PluginError(f"the attack returned {shapes} for {N} attributes")
    if affine.known is None:
        return
    unknown = np.setdiff1d(np.arange(N), view.known_columns)
    if (
        affine.known.shape != (N, N)
        or not np.isfinite(affine.known).all()
        or affine.known[:, unknown].any()
    ):
        raise PluginError("the attack weighs true values that its adversary does not know")
