"""The report as one self-contained HTML page."""

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from auditor.base import clean
from auditor.registry import register

from .audit_document import data_table
from .chart import CONFIG, content_policy, inflated, json_block, script
from .document import Document, cut, overview, shown
from .figures import SCALE, clipped, number, percent, share, template, unbroken
from .renderer import DocumentRenderer
from .sentences import capital


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
        bundle = Markup(template("bundle.html") if charts else "")  # auditor_reports.chart
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
    from jinja2 import Environment, FileSystemBytecodeCache, FunctionLoader, StrictUndefined

    class Compiled(FileSystemBytecodeCache):
        def dump_bytecode(self, bucket: Any) -> None:
            with suppress(OSError):  # a read-only folder, or a full disk
                super().dump_bytecode(bucket)

    made = Environment(
        loader=FunctionLoader(template),
        # compilation: 0.07 s
        bytecode_cache=Compiled(str(Path(__file__).with_name("__pycache__"))),
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
