"""What a pass has found of stretches of a table, in a form that may be kept on disk until the pass is whole: sums over many records.

Nothing of what adversaries were given is among it: of few rows a sum is those rows, so whoever goes on with a pass goes through them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from auditor.audit.numeric.gather import Stripe
from auditor.numerics.moments import Moments
from auditor.runs.codec import CodecError, codec

FEWEST_RECORDS = 1_000
"""Records that a sum which is kept is taken over, at least, and ten times as many as it has columns."""
MOST_NUMBERS = 2**14
"""Numbers in what is kept of a stretch: 300 kB of text. The sums of more columns (180, or fewer in several groups) are taken again."""

_FORM = list[tuple[list[tuple[int, int, list[float], list[float]]], bool, float]]
"""Of each stripe: group, records, totals and upper triangle of the products of each group; whether all was finite; seconds."""


def plain(stripes: Sequence[Stripe]) -> Any:
    """Return the sums of some stripes as JSON values; None when they must not be kept, or are too many."""
    moments = [part for stripe in stripes for part in stripe.groups.values()]
    if not moments or sum(part.size * (part.size + 1) // 2 for part in moments) > MOST_NUMBERS:
        return None
    if any(part.count < max(FEWEST_RECORDS, 10 * part.size) for part in moments):
        return None
    encode, _ = codec(_FORM)
    sums = [[(number, *_numbers(part)) for number, part in stripe.groups.items()] for stripe in stripes]
    return encode([(groups, stripe.finite, stripe.seconds) for groups, stripe in zip(sums, stripes, strict=True)])


def _numbers(part: Moments) -> tuple[int, list[float], list[float]]:
    return part.count, part.total.tolist(), part.products[np.triu_indices(part.size)].tolist()


def stripes_of(kept: Any) -> list[Stripe] | None:
    """Return the stripes whose sums were kept, without what was chosen of them; None where nothing was, or nothing that makes sense."""
    _, decode = codec(_FORM)
    try:
        return [Stripe({number: _moments(*sums) for number, *sums in groups}, finite=finite, seconds=seconds)
                for groups, finite, seconds in decode(kept)]  # fmt: skip
    except (CodecError, TypeError, ValueError):
        return None


def _moments(count: int, total: list[float], upper: list[float]) -> Moments:
    d = len(total)
    if len(upper) != d * (d + 1) // 2:
        raise ValueError(f"{len(upper)} products of {d} columns")
    products = np.empty((d, d))
    products[np.triu_indices(d)] = upper
    products.T[np.triu_indices(d)] = upper
    return Moments(count, np.array(total, dtype=np.float64), products)


def rejoined(sums: Sequence[Stripe], chosen: Sequence[Stripe]) -> list[Stripe]:
    """Return stripes with the sums of some and what was chosen of others, which are the same stripes."""
    return [Stripe(kept.groups, found.chosen, kept.finite, kept.seconds) for kept, found in zip(sums, chosen, strict=True)]
