"""The report from templates: a self-contained HTML page, or Markdown."""

import re
from abc import abstractmethod
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from operator import attrgetter
from typing import Any

from markupsafe import Markup, escape

from auditor.base import clean
from auditor.registry import register
from auditor.results.comparison import Comparison, Renderer
from auditor.results.model import AuditResult
from auditor.results.records import Advice

from .advice import advice_document
from .audit_document import audit_document, data_table
from .changes import changes_document
from .charts import CONFIG, content_policy, inflated, json_block, script
from .document import Document, cut, overview, shown
from .figures import SCALE, clipped, number, percent, said, share, template, unbroken
from .sentences import capital


class DocumentRenderer(Renderer):
    """Base of renderers that write the document tree."""

    brief = False

    @abstractmethod
    def written(self, documents: Sequence[Document]) -> str:
        """Write one or several documents."""

    def render(self, results: Sequence[AuditResult]) -> str:
        """Report: one part per audit, and a summary of several."""
        found = enumerate(results, start=1)
        return self.written([audit_document(one, n, brief=self.brief) for n, one in found])

    def render_comparison(self, *comparisons: Comparison) -> str:
        """Differences between two audits, worst first."""
        return self.written([*map(changes_document, comparisons, range(1, len(comparisons) + 1))])

    def render_advice(self, advice: Advice) -> str:
        """Recommended release, its frontier and its reasons."""
        return self.written([advice_document(advice)])


def inline(text: str) -> Markup:
    """Escape a text, isolate names and hide bars from screen readers."""
    pieces = re.split("\u2068(.*?)\u2069", text)
    named = Markup("<bdi>{}</bdi>").format
    return Markup("").join(
        named(clean(one)) if place % 2 else _words(one) for place, one in enumerate(pieces)
    )


def _words(text: str) -> Markup:
    # Markup would escape the joined safe parts again
    escaped = str(escape(unbroken(clean(text))))
    escaped = re.sub("[■□]+", r'<span aria-hidden="true">\g<0></span>', escaped)
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", escaped))


def place(share: float, least: float = 0.0, most: float = 100.0) -> float:
    """Share as a position on a scale of 100."""
    return round(min(most, max(least, 100.0 * share)), 2)


def grouped(rows: Sequence[Any], field: str) -> list[tuple[str, list[Any]]]:
    """Consecutive rows by the value of a field."""
    return [(name, list(held)) for name, held in groupby(rows, key=attrgetter(field))]


@register
class Html(DocumentRenderer):
    """Self-contained page: first screen, pictures, then folded sections."""

    name = "html"

    def written(self, documents: Sequence[Document]) -> str:
        style = script(template("report.css"))
        ours = script(template("inflate.js") + template("report.js"))
        charts = any(document.charts for document in documents)
        bundle = Markup(template("bundle.html") if charts else "")  # auditor_reports.charts
        sources = [inflated(bundle), ours] if charts else [ours]
        return filled(
            "page.html.j2",
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


def filled(name: str, escape: bool = True, **values: Any) -> str:
    """Text of a template."""
    return str(environment(escape=escape).get_template(name).render(values))


@cache
def environment(escape: bool = True) -> Any:
    """Template environment with strict names; ``escape`` is for HTML."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    made = Environment(
        loader=FunctionLoader(template),
        autoescape=escape,
        keep_trailing_newline=not escape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (
        *(capital, clean, clipped, cut, data_table, number, percent, share),
        *(grouped, inline, place, shown),
    )
    made.filters.update({function.__name__: function for function in filters})
    return made


@register
class Markdown(DocumentRenderer):
    """The page as Markdown, with tables for charts and the scenario as code."""

    name = "markdown"

    def written(self, documents: Sequence[Document]) -> str:
        environment(escape=False).filters |= {"safe_text": safe, "fence": fence}
        return filled(
            "report.md.j2", escape=False, documents=documents, overview=overview(documents)
        )


def safe(text: str) -> str:
    """Escape Markdown and HTML markup, table separators and links."""
    escaped = re.sub(r"([\\`*_{}\[\]#|~$])", r"\\\1", said(text))
    swaps = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "://": ":&#8203;//", "@": "&#64;"}
    for sign, entity in swaps.items():
        escaped = escaped.replace(sign, entity)
    return escaped


def fence(text: str) -> str:
    """Line of backticks that the text does not contain."""
    return "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
