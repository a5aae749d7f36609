"""The report as one HTML file that needs no network, and cannot use one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, ClassVar

from auditor.registry import register
from auditor.rendering import Renderer
from auditor.results import AuditResult

if TYPE_CHECKING:
    from jinja2 import Environment

    from auditor.comparison import Comparison
    from reports._page import Page

DIFFERENCES = 500
"""Differences of one kind that the page of a comparison lists."""

CHART_ROWS, FEWEST_ROWS = 8000, 100
"""Rows that one chart may hold, shared between the audits of a page; where it would become too large fewer, down to the second number."""
LARGEST = 2_480_000
"""Bytes of a page: room is made in the charts, as the results file has every row."""


@register
class Html(Renderer):
    """One self-contained page: verdict, comparison, charts, method, scenario, provenance."""

    name = "html"
    suffix: ClassVar[str] = ".html"
    media_type: ClassVar[str] = "text/html"

    @classmethod
    def warm_up(cls) -> None:
        """Begin to make the charts' script."""
        _bundling()

    def render(self, results: Sequence[AuditResult]) -> str:
        """Return the page, one article an audit, and a summary over all when there are several."""
        from reports._page import page

        def pages(limit: int) -> list[Page]:
            return [page(result, number, limit) for number, result in enumerate(results, start=1)]

        limit = max(500, CHART_ROWS // max(1, len(results)))
        shown = pages(limit)
        text = self._written(results, shown)
        excess = len(text.encode("utf-8", "backslashreplace")) - LARGEST
        return text if excess <= 0 else self._written(results, pages(_room(shown, limit, excess)))

    def _written(self, results: Sequence[AuditResult], pages: list[Page]) -> str:
        from reports._chart_style import CONFIG
        from reports._inert import content_policy, json_block, script
        from reports._severity import SCALE

        style, ours = script(_text("report.css")), script(_text("report.js"))
        charts = script(_bundling().result()) if any(shown.charts for shown in pages) else script("")
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


def _room(pages: Sequence[Page], limit: int, excess: int) -> int:
    """Return how many rows each chart may hold for a page to be smaller by so many bytes: the longest charts give most."""
    from reports._inert import json_block

    charts = [(len(json_block(chart.block).encode()), chart.rows) for shown in pages for chart in shown.charts]

    def saved(rows: int) -> float:
        return sum(size * (1 - rows / held) for size, held in charts if held > rows)

    while limit > FEWEST_ROWS and saved(limit) < 1.03 * excess:
        limit = limit * 19 // 20
    return max(FEWEST_ROWS, limit)


@cache
def environment() -> Environment:
    """Return the template environment: everything is escaped, and an unknown name is an error."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    from auditor import rendering
    from reports import _detail, _differences, _figures, _gaps, _reading, _sentences, _words
    from reports._chart_data import attribute_text
    from reports._inert import json_block

    made = Environment(
        loader=FunctionLoader(_text), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    filters = (
        rendering.clean, _figures.number, _figures.plus_minus, _figures.with_error, _figures.percent, _figures.copies, _figures.braces,
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
def _bundling() -> Future[str]:
    """Return Vega, Vega-Lite and Vega-Embed as one script, in the making: it takes a second, so once a process and beside other work."""
    pool = ThreadPoolExecutor(1)
    made = pool.submit(_bundle)
    pool.shutdown(wait=False)
    return made


BUNDLE = "import sys, vl_convert; sys.stdout.buffer.write(vl_convert.javascript_bundle(sys.argv[1]).encode())"


def _bundle() -> str:
    """Make the script in a process of its own, as ``javascript_bundle`` keeps Python's lock: nothing else would go on here meanwhile."""
    exposed = "window.vegaEmbed = vegaEmbed;"
    command = [sys.executable, "-P", "-c", BUNDLE, exposed]
    try:
        # In a session of its own a terminal's Ctrl-C does not reach it.
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, start_new_session=True, check=True)
    except (OSError, subprocess.CalledProcessError):  # no interpreter to start, as in a program that embeds Python
        import vl_convert

        return str(vl_convert.javascript_bundle(exposed))
    return done.stdout.decode()
