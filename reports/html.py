"""The report as one HTML file that needs no network, and cannot use one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, ClassVar

from auditor.registry import register
from auditor.rendering import Renderer
from auditor.results import AuditResult

if TYPE_CHECKING:
    from jinja2 import Environment

    from auditor.comparison import Comparison

DIFFERENCES = 500
"""Differences of one kind that the page of a comparison lists."""

CHART_ROWS = 8000
"""Rows that one chart may hold, shared between the audits of a page, which keeps it under 2.5 MB."""


@register
class Html(Renderer):
    """One self-contained page: verdict, comparison, charts, method, scenario, provenance."""

    name = "html"
    suffix: ClassVar[str] = ".html"
    media_type: ClassVar[str] = "text/html"

    def render(self, results: Sequence[AuditResult]) -> str:
        """Return the page, one article an audit, and a summary over all when there are several."""
        from reports._chart_style import CONFIG
        from reports._inert import content_policy, json_block, script
        from reports._page import page
        from reports._severity import SCALE

        limit = max(500, CHART_ROWS // max(1, len(results)))
        pages = [page(result, number, limit) for number, result in enumerate(results, start=1)]
        style, ours = script(_text("report.css")), script(_text("report.js"))
        charts = script(_bundle()) if any(shown.charts for shown in pages) else script("")
        return environment().get_template("report.html.j2").render(
            pages=pages, style=style, script=ours, bundle=charts, policy=content_policy([charts, ours], [style]),
            config=json_block(CONFIG), scale=SCALE, title=" · ".join(result.title for result in results) or "Audit",
        )  # fmt: skip

    def render_comparison(self, comparison: Comparison) -> str:
        """Return the page on what changed between two audits."""
        from reports._differences import basis, headline, parts
        from reports._inert import content_policy, script

        style, ours = script(_text("report.css")), script(_text("report.js"))
        return environment().get_template("compare.html.j2").render(
            comparison=comparison, headline=headline(comparison), basis=basis(comparison), parts=parts(comparison),
            style=style, script=ours, policy=content_policy([ours], [style]), shown=DIFFERENCES,
        )  # fmt: skip


@cache
def environment() -> Environment:
    """Return the template environment: everything is escaped, and an unknown name is an error."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    from auditor import printing
    from reports import _detail, _differences, _figures, _gaps, _reading, _sentences, _words
    from reports._chart_data import attribute_text
    from reports._inert import json_block

    made = Environment(
        loader=FunctionLoader(_text), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    filters = (
        printing.clean, _figures.number, _figures.plus_minus, _figures.with_error, _figures.percent, _figures.copies, _figures.braces,
        _figures.clipped, _figures.unbroken, _words.where_text, _words.bound_text, _words.observed_text, _words.counts,
        _words.partial_text, _gaps.gap_text, _gaps.untold_text, _gaps.unsuited_text, _sentences.share, _reading.plain,
        _detail.agreement, _detail.assumptions, _differences.more_text, attribute_text, json_block,
    )  # fmt: skip
    made.filters.update({function.__name__: function for function in filters})
    made.globals |= {"marks": _words.STATUS_MARKS, "outcomes": _words.OUTCOMES}
    return made


@cache
def _text(name: str) -> str:
    return resources.files("reports").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script; building it takes a second, so once a process."""
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
