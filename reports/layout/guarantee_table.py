"""Table of each coalition's differential privacy, stated and audited."""

from __future__ import annotations

import math
from collections.abc import Sequence

from auditor.results.metrics import EMPIRICAL, GUARANTEES, base
from auditor.results.records import Measurement

from ..figures.figures import braces, number
from ..figures.matrix import reference_point
from ..figures.reading import EVERYTHING, Reading
from .document import MARKDOWN, PAGE, TERMINAL, Block, Name, Paragraph, Row, Table

LEAD = (
    "Guarantees for every record under the law of the noise, against every attack. The record may be any other within the stated bounds. "
    "The columns are μ of Gaussian differential privacy, ρ of zero-concentrated, ε, and ε of (ε, δ) at {}. ≤ marks an upper bound. "
    "Audited: a lower bound on μ or ε from copies of two extreme records. Noise scaled to the table's moments is assumed public."
)
HEADS = ("μ", "ρ", "ε", "ε at δ", "audited")
MOST = {TERMINAL: 24, MARKDOWN: 60, PAGE: 300}


def guarantees(reading: Reading) -> list[Block]:
    """Return the table at the comparison's sweep point; empty without bounds."""
    asked = reading.result.scenario.get("data")
    if not (isinstance(asked, dict) and asked.get("bounds")):
        return []
    point, found = (
        reference_point(reading),
        dict[tuple[str, tuple[int, ...]], dict[str, Measurement]](),
    )
    deltas = []
    for record in reading.result.measurements:
        metric = base(record.metric)
        if (
            record.attack is None
            and metric in (*GUARANTEES, *EMPIRICAL)
            and record.attribute == EVERYTHING
        ):
            if metric == "epsilon_at_delta" and record.metric not in deltas:
                deltas.append(record.metric)
            if reading.point_of(record.sweep) == point:
                found.setdefault((record.scheme, record.coalition), {}).setdefault(metric, record)
    order = {scheme: place for place, scheme in enumerate(reading.schemes)}
    cells = sorted(found, key=lambda cell: (order.get(cell[0], 0), len(cell[1]), cell[1]))
    rows = [
        Row(braces(coalition), _cells(found[scheme, coalition]), group=scheme)
        for scheme, coalition in cells
    ]
    delta = (
        ", ".join(f"δ = {metric.partition('(')[2].rstrip(')')}" for metric in deltas)
        or "the stated δ"
    )
    table = Table("copies", HEADS, rows, "plain", group="scheme", most=MOST)
    return [Paragraph(LEAD.format(delta), "lead"), table, *_why(found)] if rows else []


def _cells(figures: dict[str, Measurement]) -> tuple[str, ...]:
    audited = next((_text(figures[metric]) for metric in EMPIRICAL if metric in figures), "–")
    return (
        *(_text(figures.get(metric)) for metric in GUARANTEES),
        audited if audited == "–" else f"≥ {audited}",
    )


def _text(record: Measurement | None) -> str:
    """Format one figure; saved results store infinity as None."""
    if record is None or record.status != "ok":
        return "–"
    if record.value is None or math.isinf(record.value):
        return "∞"
    return f"{'≤ ' if (record.reason or '').startswith('an upper bound') else ''}{number(record.value)}"


def _why(found: dict[tuple[str, tuple[int, ...]], dict[str, Measurement]]) -> Sequence[Block]:
    """Return the reason for each scheme with an infinite ε at δ."""
    reasons: dict[tuple[str, str], None] = {}
    for (scheme, coalition), figures in found.items():
        record = figures.get("epsilon_at_delta")
        if (
            record is not None
            and _text(record) == "∞"
            and record.reason
            and not any(known == scheme for known, _ in reasons)
        ):
            reasons[scheme, f"{braces(coalition)}: {record.reason}"] = None
    return [Paragraph((Name(scheme), f", copies {why}."), "note") for scheme, why in reasons]
