"""Pictures of the gallery that are no chart of a report: distributions of the data, the comparison as a table, the semicircle law."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair as alt
import numpy as np

from auditor.data.load import load_table
from auditor.results.model import AuditResult
from auditor_reports.charts.plots import CONFIG, _coloured
from auditor_reports.figures.figures import SCALE, clean, clipped, number
from auditor_reports.figures.matrix import matrix
from auditor_reports.figures.reading import Reading, unique
from auditor_reports.wording.sentences import share

SEED = 2012
P = 500
"""Size of the random matrix."""


def census(_: AuditResult | None) -> Any:
    """Draw the distribution of Age and Income in the stand-in for the census extract (li2012, Fig. 1)."""
    table = load_table(
        "census-like", columns=["age", "income"], rows=100_000, rng=np.random.default_rng(SEED)
    )
    age, income = (
        (values, name) for values, name in zip(table.values.T, ("age", "income"), strict=True)
    )
    return alt.hconcat(
        _histogram(*age, "age (data units)"), _histogram(*income, "income (data units)")
    )


def values(_: AuditResult | None) -> Any:
    """Draw the four distributions of sensitive values (xiao2009, Fig. 4)."""
    rows = []
    for source in ("uniform-values", "discretised-gaussian", "salary-like", "occupation-like"):
        drawn = load_table(source, rows=600_000, rng=np.random.default_rng(SEED)).values[:, 0]
        seen, counts = np.unique(drawn, return_counts=True)
        rows += [
            {"source": source, "value": float(v), "share": float(c / drawn.size)}
            for v, c in zip(seen, counts, strict=True)
        ]
    bars = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(color="var(--c1)")
        .encode(
            x=alt.X("value:Q", title="value", axis=alt.Axis(grid=False)),
            y=alt.Y("share:Q", title="share of records", axis=alt.Axis(format="~%")),
        )
    )
    return bars.properties(width=260, height=140).facet(
        facet=alt.Facet("source:N", title=None, sort=None), columns=2
    )


def wigner(_: AuditResult | None) -> Any:
    """Draw the eigenvalues of a symmetrised random matrix and the semicircle (liu2008, Fig. 12.1)."""
    a = np.random.default_rng(SEED).standard_normal((P, P))
    # (A + Aᵀ)/(2√(2p)): off the diagonal the entries have variance 1/(4p), so the semicircle has
    # radius 1
    eigenvalues = np.linalg.eigvalsh((a + a.T) / (2 * np.sqrt(2 * P)))
    x = np.linspace(-1, 1, 101)
    circle = [{"x": float(at), "density": float(2 / np.pi * np.sqrt(1 - at**2))} for at in x]
    steps = _bars(eigenvalues, 30, "eigenvalue", "density")
    line = (
        alt.Chart(alt.Data(values=circle))
        .mark_line(color="var(--ink)", strokeDash=[3, 4])
        .encode(x="x:Q", y="density:Q")
    )
    return alt.layer(steps, line).properties(width=520, height=260)


def table(result: AuditResult | None) -> Any:
    """Draw the comparison: adversaries down, schemes across, the worst normalized error as text, its severity as colour."""
    assert result is not None
    reading = Reading(result)
    rows = [row for row in matrix(reading) if row.reported]
    cells = [
        {
            "who": f"{row.attack} · {clipped(row.knowledge, 34)}",
            "scheme": clean(cell.scheme),
            "text": _cell_text(cell),
            "rank": _rank(cell),
        }
        for row in rows
        for cell in row.cells
    ]
    return _table(
        cells, unique(cell["who"] for cell in cells), [clean(name) for name in reading.schemes], 112
    )


def disclosed(result: AuditResult | None) -> Any:
    """Draw the share of records whose sensitive value is disclosed: attacks down, schemes across."""
    assert result is not None
    reading, cells = Reading(result), []
    for setting, metric, attribute in reading.keys():
        if metric == "disclosed" and attribute != "*" and "," in str(setting.knowledge):
            shown = max(
                reading.figures(setting, metric, attribute).values(), key=lambda one: one.value
            )
            rank = (
                0
                if shown.value == 0
                else 5
                if shown.value >= 0.5
                else 4
                if shown.value >= 0.05
                else 3
            )
            text = f"{number(shown.value, shown.half)}"
            cells.append(
                {
                    "who": clean(setting.attack),
                    "scheme": clean(setting.scheme),
                    "text": text,
                    "rank": rank,
                }
            )
    return _table(
        cells, unique(cell["who"] for cell in cells), [clean(name) for name in reading.schemes], 112
    )


def _table(cells: list[dict[str, Any]], down: list[str], across: list[str], wide: int) -> Any:
    ranks = list(range(len(SCALE) + 1))
    fills = ["var(--soft)", *(f"var(--v{rank})" for rank in ranks[1:])]
    base = alt.Chart(alt.Data(values=cells)).encode(
        x=alt.X(
            "scheme:N",
            sort=across,
            title=None,
            axis=alt.Axis(orient="top", labelAngle=0, labelLimit=wide, domain=False, ticks=False),
        ),
        y=alt.Y(
            "who:N", sort=down, title=None, axis=alt.Axis(labelLimit=330, domain=False, ticks=False)
        ),
    )
    boxes = base.mark_rect(stroke="white", strokeWidth=2).encode(
        color=alt.Color("rank:O", scale=alt.Scale(domain=ranks, range=fills), legend=None)
    )
    words = base.mark_text(fontSize=11, color="var(--ink)").encode(text="text:N")
    return alt.layer(boxes, words).properties(width=wide * len(across), height=20 * len(down))


def _cell_text(cell: Any) -> str:
    if cell.worst is None and cell.guesses is not None:
        return f"{share(cell.guesses.right)} right"
    if cell.worst is None:
        return {"not-applicable": "n/a", "failed": "✗ failed"}.get(cell.status, "–")
    return f"{number(cell.worst.value, cell.worst.half)}"


def _rank(cell: Any) -> int:
    return 0 if cell.whole is None else int(cell.whole.rank)


def _histogram(drawn: Any, name: str, title: str) -> Any:
    return _bars(drawn, 40, title, "share of records").properties(width=270, height=200, title=name)


def _bars(drawn: Any, bins: int, x: str, y: str) -> Any:
    density = y == "density"
    heights, edges = np.histogram(drawn, bins=bins, density=density)
    sizes = heights if density else heights / len(drawn)
    rows = [
        {"a": float(a), "b": float(b), "h": float(h), "z": 0.0}
        for a, b, h in zip(edges, edges[1:], sizes, strict=False)
    ]
    axis = alt.Axis() if density else alt.Axis(format="~%")
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_rect(color="var(--c1)", fillOpacity=0.75, stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X("a:Q", title=x, axis=alt.Axis(grid=False)),
            x2="b:Q",
            y=alt.Y("h:Q", title=y, axis=axis),
            y2="z:Q",
        )
    )


DRAWINGS: dict[str, Callable[[AuditResult | None], Any]] = {
    "census": census,
    "values": values,
    "wigner": wigner,
    "matrix": table,
    "disclosed": disclosed,
}


def drawing(name: str, result: AuditResult | None) -> Any:
    """Return one of the gallery's own pictures as an Altair chart in the colours of the reports."""
    import json

    made = DRAWINGS[name](result).to_dict()
    made["config"] = CONFIG | {"background": "#ffffff"}
    return alt.Chart.from_dict(json.loads(_coloured(json.dumps(made))))
