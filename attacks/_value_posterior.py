"""Exact posterior of a value, with the table's value shares as prior.

``P(x | y_1 … y_k) ∝ π_x Π_i f_i(y_i − x)`` over the column's distinct values x with shares ``π_x``.
The noise may follow any law. On a lattice the sum is exact, without bins or grid.
"""

from __future__ import annotations

import numpy as np

from auditor.numerics.blocks import evenly
from auditor.plugin import Array, ExactMoments, NotApplicable, View

from ._channel import Channel
from ._posterior import Estimate, each_once

MOST_VALUES = 10_000
"""Most distinct values of an attribute; a record's posterior covers all of them."""
CHUNK_VALUES = 2**20


def of_values(view: View, channel: Channel, attribute: int, mode: bool) -> Estimate:
    """Return an estimator of one attribute's posterior mode or mean.

    Raises
    ------
    NotApplicable
        This knowledge does not give the attribute's distribution, or it has too many values.
    """
    known = view.given.distribution if isinstance(view.given, ExactMoments) else None
    if known is None:
        raise NotApplicable(
            f"needs the distribution of every attribute's values, which {view.knowledge.label} knowledge does not give"
        )
    values, shares = known(attribute)
    if len(values) > MOST_VALUES:
        reason = f"exact posteriors go over at most {MOST_VALUES:,} values"
        raise NotApplicable(
            f"{view.attributes[attribute]} has {len(values):,} distinct values; {reason}"
        )

    def estimate(copies: Array) -> Array:
        parts = (
            copies[start:stop] for start, stop in evenly(0, len(copies), len(values), CHUNK_VALUES)
        )
        return np.concatenate(
            [posterior_estimate(values, shares, channel, part, mode) for part in parts]
        )

    return (lambda copies: each_once(estimate, copies)) if channel.noise.on_lattice else estimate


def posterior_estimate(
    values: Array, shares: Array, channel: Channel, copies: Array, mode: bool
) -> Array:
    """Return mode or mean of the posterior over values, shape (b,).

    A row that no value explains gets the estimate from its copies alone.

    Parameters
    ----------
    values, shares : ndarrays of shape (V,)
        Distinct values and their shares.
    copies : ndarray of shape (b, k)
    """
    if channel.exact:
        return channel.value(copies)
    log_weights = np.log(shares) + channel.log_likelihood(copies, values)
    top = log_weights.max(axis=1)
    explained = np.isfinite(top)
    if mode:
        found = values[log_weights.argmax(axis=1)]
    else:
        weights = np.exp(log_weights - np.where(explained, top, 0.0)[:, None])
        found = (weights @ values) / np.where(explained, weights.sum(axis=1), 1.0)
    return np.where(explained, found, channel.value(copies))
