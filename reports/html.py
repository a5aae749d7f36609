"""The report as one self-contained HTML page; slow imports are local."""

from __future__ import annotations

from collections.abc import Sequence
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

    from .layout.document import Document


@register
class Html(Renderer):
    """Self-contained page: first screen, pictures, then folded sections."""

    name = "html"
    suffix: ClassVar[str] = ".html"

    def render(self, results: Sequence[AuditResult]) -> str:
        """Return the page: one article per audit, and a summary of several."""
        from .layout.audit import audit_document

        return _written([audit_document(*pair[::-1]) for pair in enumerate(results, start=1)])

    def render_comparison(self, *comparisons: Comparison) -> str:
        """Return the page of one or more comparisons of two audits."""
        from .layout.changes import changes_document

        return _written([changes_document(*pair[::-1]) for pair in enumerate(comparisons, start=1)])

    def render_advice(self, advice: Advice) -> str:
        """Return the page that recommends a release, with its frontier."""
        from .layout.advice import advice_document

        return _written([advice_document(advice)])


def _written(documents: Sequence[Document]) -> str:
    from markupsafe import Markup

    from .charts.inert import content_policy, inflated, json_block, script
    from .charts.spec import CONFIG
    from .figures.figures import SCALE
    from .layout.document import overview

    style, ours = script(_text("report.css")), script(_text("inflate.js") + _text("report.js"))
    charts = any(document.charts for document in documents)
    bundle = Markup(_text("bundle.html") if charts else "")  # auditor_reports.charts.inert
    sources = [inflated(bundle), ours] if charts else [ours]
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            documents=documents,
            overview=overview(documents),
            charts=charts,
            steps=SCALE,
            style=style,
            script=ours,
            bundle=bundle,
            config=json_block(CONFIG),
            policy=content_policy(sources, [style]),
        )
    )


@cache
def environment() -> Environment:
    """Return the template environment, with escaping and strict names."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    from auditor.results.renderer import clean

    from .figures.figures import clipped, number, percent
    from .layout import page
    from .layout.audit import data_table
    from .layout.document import cut
    from .wording.sentences import capital, share

    made = Environment(
        loader=FunctionLoader(_text),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (
        *(capital, clean, clipped, cut, data_table, number, percent, share),
        *(page.grouped, page.inline, page.parted, page.place, page.schemes, page.shown),
    )
    made.filters.update({function.__name__: function for function in filters})
    return made


@cache
def _text(name: str) -> str:
    return Path(__file__).with_name("templates").joinpath(name).read_text(encoding="utf-8")
