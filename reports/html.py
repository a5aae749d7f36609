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
from auditor.results.model import AuditResult
from auditor.results.renderer import Renderer

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from auditor.results.comparison import Comparison
    from reports.layout.page import Page

DIFFERENCES = 500
"""Differences of one kind that the page of a comparison lists."""

CHART_ROWS, FEWEST_ROWS = 8000, 100
"""Rows that one chart may hold; where the page would become too large fewer, down to the second number."""
LARGEST = 2_480_000
"""Bytes of a page."""


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
        """Return the page, one article an audit, and a summary over all when there are several.

        A page that would be too large makes room. First it folds what opens on demand, the details of cells, the data behind charts and the
        scenario as JSON, into compressed text, which loses nothing and needs the page's script to be read. Then its charts hold fewer rows.
        """
        from reports.layout.page import page

        shown = [page(result, number, CHART_ROWS) for number, result in enumerate(results, start=1)]
        text = self._written(results, shown)
        if _excess(text) > 0:
            text = self._written(results, shown, folded=True)
        if _excess(text) > 0:
            limit = _room(shown, _excess(text))
            text = self._written(results, [one.within(limit) for one in shown], folded=True)
        return text

    def _written(self, results: Sequence[AuditResult], pages: list[Page], *, folded: bool = False) -> str:
        from reports.charts.inert import content_policy, json_block, script
        from reports.charts.style import CONFIG
        from reports.figures.severity import SCALE

        style, ours = script(_text("report.css")), script(_text("inflate.js") + _text("report.js"))
        bundle, packed = _bundling().result() if any(shown.charts for shown in pages) else ("", "")
        return environment().get_template("report.html.j2").render(
            pages=pages, style=style, script=ours, bundle=packed, policy=content_policy([*filter(None, [bundle]), ours], [style]),
            config=json_block(CONFIG), scale=SCALE, title=" · ".join(result.title for result in results) or "Audit", folded=folded,
        )  # fmt: skip

    def render_comparison(self, comparison: Comparison) -> str:
        """Return the page on what changed between two audits."""
        from reports.charts.inert import content_policy, script
        from reports.wording.differences import basis, headline, parts

        style, ours = script(_text("report.css")), script(_text("report.js"))
        return environment().get_template("compare.html.j2").render(
            comparison=comparison, headline=headline(comparison), basis=basis(comparison), parts=parts(comparison),
            style=style, script=ours, policy=content_policy([ours], [style]), shown=DIFFERENCES,
        )  # fmt: skip


def _excess(text: str) -> int:
    return len(text.encode("utf-8", "backslashreplace")) - LARGEST


def _room(pages: Sequence[Page], excess: int) -> int:
    """Return how many rows each chart may hold for a page to be smaller by so many bytes: the longest charts give most."""
    charts = [(len(chart.packed), chart.rows) for shown in pages for chart in shown.charts]

    def saved(rows: int) -> float:
        return sum(size * (1 - rows / held) for size, held in charts if held > rows)

    limit = CHART_ROWS
    # compressed, what is left weighs somewhat more than its share of the rows
    while limit > FEWEST_ROWS and saved(limit) < 1.1 * excess:
        limit = limit * 19 // 20
    return max(FEWEST_ROWS, limit)


@cache
def environment() -> Environment:
    """Return the template environment: everything is escaped, and an unknown name is an error."""
    # For start-up: every command loads this module to register it, and few render.
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    from auditor.results import renderer as rendering
    from reports.charts.inert import foldable
    from reports.figures import figures as _figures
    from reports.figures import gaps as _gaps
    from reports.figures import reading as _reading
    from reports.figures.series import attribute_text
    from reports.wording import detail as _detail
    from reports.wording import differences as _differences
    from reports.wording import prose as _prose
    from reports.wording import sentences as _sentences
    from reports.wording import words as _words

    made = Environment(
        loader=FunctionLoader(_text), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    filters = (
        rendering.clean, _figures.number, _figures.plus_minus, _figures.with_error, _figures.percent, _figures.copies, _figures.braces,
        _figures.clipped, _figures.unbroken, _words.where_text, _words.bound_text, _words.observed_text, _words.counts,
        _words.partial_text, _gaps.gap_text, _gaps.untold_text, _gaps.unsuited_text, _sentences.share, _reading.plain,
        _detail.facts, _detail.assumptions, _gaps.given_text, _words.provenance_terms, _differences.more_text, attribute_text, foldable,
    )  # fmt: skip
    made.filters.update({function.__name__: function for function in filters})
    made.globals |= {"marks": _words.STATUS_MARKS, "outcomes": _words.OUTCOMES}
    made.globals |= {"replicates": _prose.REPLICATES, "severity_of_guesses": _prose.GUESSES}
    return made


@cache
def _text(name: str) -> str:
    return resources.files("reports").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _bundling() -> Future[tuple[Markup, Markup]]:
    """Return the charts' script and the element that holds it, in the making: it takes a second, so once a process, beside other work."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="auditor-bundle")
    made = pool.submit(_packed_bundle)
    pool.shutdown(wait=False)
    return made


def _packed_bundle() -> tuple[Markup, Markup]:
    from reports.charts.inert import deflated, script

    source = script(_bundle())
    return source, deflated(source, id="bundle")


BUNDLE = "import sys, vl_convert; sys.stdout.buffer.write(vl_convert.javascript_bundle(sys.argv[1]).encode())"


def _bundle() -> str:
    """Make Vega, Vega-Lite and Vega-Embed one script.

    It is made in a process of its own, as ``javascript_bundle`` keeps Python's lock: nothing else would go on here meanwhile.
    """
    exposed = "window.vegaEmbed = vegaEmbed;"
    command = [sys.executable, "-P", "-c", BUNDLE, exposed]
    try:
        # In a session of its own a terminal's Ctrl-C does not reach it.
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, start_new_session=True, check=True)
    except (OSError, subprocess.CalledProcessError):  # no interpreter to start, as in a program that embeds Python
        import vl_convert

        return str(vl_convert.javascript_bundle(exposed))
    return done.stdout.decode()
