"""The report as one self-contained HTML page without network access.

Slow imports are local: every command loads this module to register it, and few render.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from auditor.registry import register
from auditor.results.model import AuditResult
from auditor.results.renderer import Renderer

if TYPE_CHECKING:
    from jinja2 import Environment

    from auditor.results.advice import Advice
    from auditor.results.comparison import Comparison

    from .charts.listing import Chart
    from .layout.document import Document

CHART_ROWS, FEWEST_ROWS = 8000, 100
"""Default and least limit of rows per chart; too large a page lowers the limit."""
LARGEST = 2_480_000
"""Largest page in bytes."""


@register
class Html(Renderer):
    """Self-contained page: verdict, comparison, charts, method, scenario."""

    name = "html"
    suffix: ClassVar[str] = ".html"

    def render(self, results: Sequence[AuditResult]) -> str:
        """Return the page: one article per audit, and a summary of several.

        A page above the size limit first compresses its folded parts: details of cells, chart data
        and the scenario. Reading them then needs the page's script. If this is not enough, charts
        hold fewer rows.
        """
        from .layout.audit import audit_document

        documents = [
            audit_document(result, number) for number, result in enumerate(results, start=1)
        ]
        charts = _charts(documents, CHART_ROWS)
        text = _written(documents, charts)
        if _excess(text) > 0:
            text = _written(documents, charts, folded=True)
        if _excess(text) > 0:
            text = _written(
                documents, _charts(documents, _room(charts.values(), _excess(text))), folded=True
            )
        return text

    def render_comparison(self, *comparisons: Comparison) -> str:
        """Return the page of one or more comparisons of two audits."""
        from .layout.changes import changes_document

        return _written(
            [changes_document(one, number) for number, one in enumerate(comparisons, start=1)], {}
        )

    def render_advice(self, advice: Advice) -> str:
        """Return the page that recommends a release, with its frontier."""
        from .charts.advice import frontier_of_advice
        from .layout.advice import advice_document

        document = advice_document(advice)
        return _written(
            [document],
            {f"{document.id}-frontier": frontier_of_advice(advice, f"{document.id}-frontier")},
        )


def _charts(documents: Sequence[Document], rows: int) -> dict[str, Chart]:
    from .charts.listing import charts

    return {
        chart.id: chart
        for one in documents
        if one.reading
        for chart in charts(one.reading, one.id, rows)
    }


def _written(
    documents: Sequence[Document], charts: Mapping[str, Chart], *, folded: bool = False
) -> str:
    from markupsafe import Markup

    from .charts.inert import content_policy, inflated, json_block, script
    from .charts.style import CONFIG
    from .figures.severity import SCALE
    from .layout.document import overview

    style, ours = script(_text("report.css")), script(_text("inflate.js") + _text("report.js"))
    bundle = Markup(_text("bundle.html") if charts else "")  # auditor_reports.charts.bundle
    sources = [inflated(bundle), ours] if charts else [ours]
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            documents=documents,
            overview=overview(documents),
            charts=charts,
            steps=SCALE,
            folded=folded,
            style=style,
            script=ours,
            bundle=bundle,
            config=json_block(CONFIG),
            policy=content_policy(sources, [style]),
        )
    )


def _excess(text: str) -> int:
    return len(text.encode("utf-8", "backslashreplace")) - LARGEST


def _room(charts: Iterable[Chart], excess: int) -> int:
    sizes = [(len(chart.packed), chart.rows) for chart in charts]

    def saved(rows: int) -> float:
        return sum(size * (1 - rows / held) for size, held in sizes if held > rows)

    limit = CHART_ROWS
    # 1.1: compressed size falls less than the number of rows
    while limit > FEWEST_ROWS and saved(limit) < 1.1 * excess:
        limit = limit * 19 // 20
    return max(FEWEST_ROWS, limit)


@cache
def environment() -> Environment:
    """Return the template environment, with escaping and strict names."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    from auditor.results.renderer import clean

    from .charts.inert import foldable
    from .figures.figures import clipped, number, with_error
    from .layout import page
    from .layout.document import cut
    from .wording.sentences import capital

    made = Environment(
        loader=FunctionLoader(_text),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (
        capital,
        clean,
        clipped,
        cut,
        foldable,
        number,
        with_error,
        page.grouped,
        page.inline,
        page.parted,
        page.reasons,
        page.shown,
    )
    made.filters.update({function.__name__: function for function in filters})
    return made


@cache
def _text(name: str) -> str:
    return Path(__file__).with_name("templates").joinpath(name).read_text(encoding="utf-8")
