"""Changes that would reduce an exposure, one line per scheme."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.results.model import SchemeSummary
from auditor.results.remedies import Remedy

from ..figures.figures import clipped
from ..figures.reading import Reading
from .card import Verdict

MEASURE = "Estimates scale the closed form by what the attack left here; `auditor advise` measures what all attacks leave."


def remedies(reading: Reading, found: Sequence[Verdict]) -> list[str]:
    """Return remedies for schemes that leave less than half unknown."""
    lines = []
    for verdict in found:
        point = reading.points[verdict.setting.point] if verdict.setting else {}
        release = next(
            (
                one
                for one in reading.result.releases
                if (one.scheme, one.sweep) == (verdict.scheme, point)
            ),
            None,
        )
        lines += (
            [remedy_text(release, release.remedy)]
            if release is not None and release.remedy is not None
            else []
        )
    return [*lines, MEASURE] if lines else []


def remedy_text(release: SchemeSummary, remedy: Remedy) -> str:
    """State the levels that would leave half unknown.

    Example: ``correlated: at σ² ≥ 1.5, 3 half of age would stay unknown (llse, closed form)``.
    An estimate is the closed form scaled to the measured error (`auditor.runs.remedies`).
    """
    what = "the categories" if remedy.attribute == "*" else clipped(remedy.attribute, 40)
    basis = "estimate" if remedy.estimated else f"{clipped(remedy.attack, 40)}, closed form"
    name, other = clipped(release.scheme, 60), _other(remedy)
    if not remedy.levels and not other:
        who = "one who knows the other attributes"
        return f"{name}: no level leaves half of {what} unknown to {who}; publish less about their dependence."
    if not remedy.levels:
        return f"{name}: no level is known to help; {other} would leave half of {what} unknown (attacks with a closed form)."
    instead = f"; or {other}, which pooling does not weaken" if other else ""
    return f"{name}: at {_levels(remedy.kind, remedy.levels)} half of {what} would stay unknown ({basis}){instead}."


def _levels(kind: str, levels: Sequence[float]) -> str:
    shown = [f"{level:g}" for level in levels]
    text = ", ".join(shown) if len(shown) <= 2 else f"{shown[0]} … {shown[-1]}"
    return f"retention of at most {text}" if kind == "retention" else f"σ² ≥ {text}"


def _other(remedy: Remedy) -> str:
    if remedy.lossless is None:
        return ""
    scheme = "uniform-multilevel" if remedy.kind == "retention" else "corner-wave"
    return f"{scheme} at {_levels(remedy.kind, [remedy.lossless])}"
