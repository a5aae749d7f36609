"""Guarantees of a law: as drawn, and for coalitions as for copies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from auditor.expectations.base import Filter, Judgement, copies_released, selector
from auditor.expectations.noise_follows_law import NoiseFollowsLaw
from auditor.results.records import Evidence, Measurement, describe

SYMBOL = {"epsilon": "ε", "gaussian_dp": "μ", "concentrated_dp": "ρ"}
"""Figures that are compared: the first that is exact for the noise."""
COMPARED = tuple(SYMBOL)
ROUNDING = 1e-9
BY_GUARANTEE = "by guarantee: "


def as_drawn(
    judged: Judgement, metric: str, high: float | None, filters: Filter, evidence: Evidence
) -> Judgement:
    """Verdict that holds by law, revised by the noise that was drawn.

    An audited lower bound above the allowed value refutes the guarantee. If the noise does not follow
    the law (``noise-follows-law``), the guarantee is undecided.
    """
    selected = selector(filters, f"empirical_{metric}", copies_released(evidence))
    beyond = [
        r
        for r in evidence.measurements
        if selected(r) and r.value is not None and high is not None and r.value > high
    ]
    if beyond:
        most = max(beyond, key=lambda record: record.value or 0.0)
        why = f"the law states less, but copies that were drawn tell records apart: {most.metric} {most.value:.4g} ({most.scheme})"
        return Judgement("fails", why, most.value, judged.bound)
    law = NoiseFollowsLaw(scheme=filters.scheme, sweep=filters.sweep).judge(evidence)
    if law.status != "fails":
        return judged
    why = f"the law would hold to it, but the noise that was drawn does not follow that law: {law.why}"
    return Judgement("undecided", why, judged.observed, judged.bound)


def by_guarantees(records: Iterable[Measurement]) -> Judgement | None:
    """Verdict on records of ``COMPARED``, or None without pairs.

    Figures that are only upper bounds (their ``reason`` says so) are left out, since a coalition's
    bound may be looser than one copy's. So are single copies without a guarantee.
    """
    found = {
        (str(r.sweep), r.scheme, r.replicate, r.metric, r.coalition): r
        for r in records
        if r.status == "ok" and r.value is not None
    }
    pairs: dict[tuple[object, ...], tuple[Measurement, Measurement]] = {}
    for (point, scheme, replicate, metric, coalition), pooled in sorted(
        found.items(), key=lambda item: COMPARED.index(item[0][3])
    ):
        alone = [found.get((point, scheme, replicate, metric, (copy,))) for copy in coalition]
        if (
            len(coalition) > 1
            and not _bound(pooled)
            and all(one is not None and not _bound(one) for one in alone)
        ):
            best = max((one for one in alone if one is not None), key=lambda one: one.value or 0.0)
            if math.isfinite(best.value or 0.0):
                pairs.setdefault((point, scheme, replicate, coalition), (pooled, best))
    return _judged(list(pairs.values())) if pairs else None


def _bound(record: Measurement) -> bool:
    return record.reason is not None and not math.isinf(record.value or 0.0)


def _judged(pairs: Sequence[tuple[Measurement, Measurement]]) -> Judgement:
    worse = [
        (pooled, best)
        for pooled, best in pairs
        if (pooled.value or 0.0) > (best.value or 0.0) * (1.0 + ROUNDING)
    ]
    if not worse:
        which = (
            "the one coalition's is" if len(pairs) == 1 else f"each of {len(pairs)} coalitions' is"
        )
        return Judgement("holds", f"{BY_GUARANTEE}{which} that of its best copy alone")
    pooled, best = max(
        worse, key=lambda pair: (pair[0].value or 0.0) / max(pair[1].value or 0.0, ROUNDING)
    )
    symbol, more = (
        SYMBOL[pooled.metric],
        f", and so in {len(worse) - 1} more" if len(worse) > 1 else "",
    )
    held = (
        f"{symbol} is {_number(pooled)} for copies {describe(pooled.coalition)} of {pooled.scheme}"
    )
    return Judgement(
        "fails",
        f"{BY_GUARANTEE}{held}, and {_number(best)} for copy {describe(best.coalition)} alone{more}",
    )


def _number(record: Measurement) -> str:
    return "infinite" if math.isinf(record.value or 0.0) else f"{record.value:.4g}"
