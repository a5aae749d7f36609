"""Pictures of the gallery that no report draws.

Distributions of the data, the comparison as a table, and the semicircle law.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair as alt
import numpy as np

from auditor.data.load import load_table
from auditor.data.table import DataUse
from auditor.results.model import AuditResult
from auditor_reports.notebook import CONFIG, _coloured

SEED = 2012
P = 500
"""Size of the random matrix."""


def census(_: AuditResult | None) -> Any:
    """Draw the distribution of Age and Income in the replacement of the census extract (li2012, Fig. 1)."""
    asked = DataUse(source="census-like", columns=["age", "income"], rows=100_000)
    table = load_table(asked, np.random.default_rng(SEED))
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
        asked = DataUse(source=source, rows=600_000)
        drawn = load_table(asked, np.random.default_rng(SEED)).values[:, 0]
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
}


def drawing(name: str, result: AuditResult | None) -> Any:
    """Return one picture as an Altair chart in the reports' colours."""
    import json

    made = DRAWINGS[name](result).to_dict()
    made["config"] = CONFIG | {"background": "#ffffff"}
    return alt.Chart.from_dict(json.loads(_coloured(json.dumps(made))))
