"""Masking as official statistics do it: each scheme one pure function of the table, most of them without a law of noise.

Uses ``auditor.schemes.base``, and ``auditor.schemes.replacement`` where categories are masked. ``masked`` is what most of them have in
common; how a copy without a law is attacked is not known here: see ``auditor.adversary``.
"""

from auditor.schemes.masking import (
    condensation,
    data_swapping,
    micro_aggregation,
    multiplicative_noise,
    pram,
    rank_swapping,
    resampling,
    rounding,
    sampling,
    top_coding,
)

__all__ = [
    "condensation",
    "data_swapping",
    "micro_aggregation",
    "multiplicative_noise",
    "pram",
    "rank_swapping",
    "resampling",
    "rounding",
    "sampling",
    "top_coding",
]
