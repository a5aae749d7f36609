"""Check an attack's results: real, finite, of the right shape, permitted."""

from __future__ import annotations

from typing import Any

import numpy as np

from auditor.adversary.affine import Affine
from auditor.adversary.view import View
from auditor.errors import PluginError
from auditor.process.containment import known
from auditor.types import Array


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
