"""The HTML report: content, agreement with the other reports, escaping, policy, size."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import altair as alt
import pytest
import report_cases
from jsonschema import ValidationError

from auditor.results.model import AuditResult
from auditor_reports.charts.audit_charts import charts
from auditor_reports.charts.inert import deflated, inflated, json_block, script
from auditor_reports.figures.reading import Reading
from auditor_reports.html import Html

CASES = ("quickstart", "prefixes", "failed", "swept", "hostile")


class Page(HTMLParser):
    """What a browser would find: elements, text outside scripts, scripts."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = source
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self.words: list[str] = []
        self._inside = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else self._inside

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts.append((self.elements[-1][1], data))
        elif self._inside == "style":
            self.styles.append(data)
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())

    def blocks(self) -> dict[str, Any]:
        packed = {name: text for name, text in self.packed().items() if name.endswith("-data")}
        plain = {
            str(a["id"]): text for a, text in self.scripts if a.get("type") == "application/json"
        }
        return {name: json.loads(text) for name, text in (packed | plain).items()}

    def packed(self) -> dict[str, str]:
        """What is held compressed and has a name."""
        return {
            name: inflated(element)
            for element, name in re.findall(
                r'(<script [^>]*id="([\w-]+)"[^>]*>[\w+/=]+</script>)', self.source
            )
        }

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def pages(request: pytest.FixtureRequest) -> dict[str, Page]:
    return {case: Page(Html().render([request.getfixturevalue(case)])) for case in CASES}


@pytest.mark.parametrize(
    "case",
    [
        case if case == "hostile" else pytest.param(case, marks=pytest.mark.slow)
        for case in (*CASES, "six")
    ],
)
def test_every_chart_is_what_the_schema_allows(case: str, request: pytest.FixtureRequest) -> None:
    """Pages do not compare their charts with it: it would take a third of their time."""
    made = charts(Reading(request.getfixturevalue(case)), "a")
    assert made or case == "failed"
    for view in (view for chart in made for view in chart.views):
        alt.Chart.from_dict(view, validate=True)
    with pytest.raises(ValidationError):
        alt.Chart.from_dict(
            made[0].views[0] | {"layer": [{"mark": "no mark"}]} if made else {"mark": "no mark"},
            validate=True,
        )


@pytest.mark.parametrize("case", CASES)
def test_the_policy_lists_exactly_the_scripts_and_the_style(
    case: str, pages: dict[str, Page]
) -> None:
    page = pages[case]
    policy = next(
        m["content"] or ""
        for m in page.all("meta")
        if m.get("http-equiv") == "Content-Security-Policy"
    )

    def hashed(text: str) -> str:
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    run = [*re.findall(r"<script>(.*?)</script>", page.source, re.DOTALL), page.packed()["bundle"]]
    assert len(run) == 2
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives["default-src"] == "'none'"
    assert set(directives["script-src"].split()) == {hashed(text) for text in run}
    assert directives["style-src"].split() == [hashed(text) for text in page.styles]
    assert "unsafe" not in policy
    assert "connect-src" not in directives


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_loaded_and_nothing_is_inline(case: str, pages: dict[str, Page]) -> None:
    for tag, attributes in pages[case].elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "form", "img")
        assert not [
            name
            for name in attributes
            if name.startswith("on") or name in ("src", "style", "srcset", "action")
        ]
        assert (attributes.get("href") or "#").startswith("#")
    outside = re.sub(r"<script.*?</script>", "", pages[case].source, flags=re.DOTALL)
    assert not re.search(r"url\(|@import", outside)


def test_hostile_names_stay_text(pages: dict[str, Page]) -> None:
    page = pages["hostile"]
    for name in report_cases.HOSTILE_COLUMNS[:5]:
        assert name[:30] in page.text
    assert "{{7*7}}" in page.text
    assert "49" not in page.text.split("Exposure")[0]
    assert len([s for s in page.scripts if "type" not in s[0]]) <= 2 + page.source.count("<script>")
    fields = {*"savpkylohtmcwgxfniqz", "lo", "hi", "x2", "xlo", "xhi"}
    for name, block in page.blocks().items():
        if name != "chart-config":
            assert set(block["columns"]) <= fields
            assert "onerror" not in json.dumps(block["views"])


def test_json_cannot_leave_its_block() -> None:
    value = {"</script>": ["<!--", "&", "\u2028", "]]>", '"']}
    text = str(json_block(value))
    assert not re.search("[<>&\u2028]", text)
    assert json.loads(text) == value
    assert "</script" not in script("a = '</script>'")


SCRIPTS = 450_000
"""What the scripts and the style of a page weigh at most: Vega, Vega-Lite and Vega-Embed are
900,000 bytes as they are."""


@pytest.mark.parametrize("case", CASES)
def test_the_page_is_small_enough(case: str, pages: dict[str, Page]) -> None:
    """Far below the 2.5 MB that a page may have: what a page of five copies needs beside the scripts is a fraction of a megabyte."""
    page = pages[case]
    held = len(page.source.encode())
    parts = [
        text
        for attributes, text in page.scripts
        if "type" not in attributes or attributes.get("id") == "bundle"
    ]
    scripts = sum(len(text.encode()) for text in [*parts, *page.styles])
    assert 250_000 < scripts < SCRIPTS
    assert held - scripts < 450_000


@pytest.mark.parametrize(
    "text",
    ["", "a", "</script><!--", "<" * 70_000, "\u202e\ud800 גיל", "".join(map(chr, range(1, 3000)))],
)
def test_what_is_packed_comes_back_and_cannot_end_its_element(text: str) -> None:
    element = deflated(text, id="<x>")
    assert inflated(element) == text.encode("utf-8", "backslashreplace").decode()
    assert element.count("<") == 2
    assert element.count(">") == 2


@pytest.mark.slow
def test_many_copies_stay_under_the_limit() -> None:
    many = report_cases.Case(
        levels=tuple(0.25 + step / 12 for step in range(9)), replicates=1
    ).result()
    assert len(many.measurements) > 50_000
    page = Page(Html().render([many, many]))
    assert len(page.source.encode()) < 2_500_000
    assert "more rows are in the results file" in page.text


@pytest.mark.parametrize("case", CASES)
def test_structure_for_keyboard_and_screen_reader(case: str, pages: dict[str, Page]) -> None:
    page = pages[case]
    assert len(page.all("main")) == 1
    assert len(page.all("h1")) == 1
    assert page.all("html")[0]["lang"] == "en"
    assert all(header.get("scope") for header in page.all("th"))
    identifiers = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    for tag, attributes in page.elements:
        assert tag != "figure" or attributes["data-block"] in identifiers
        for reference in ("aria-labelledby", "popovertarget", "data-copy"):
            assert attributes.get(reference) is None or attributes[reference] in identifiers
        assert attributes.get("role") != "img" or attributes.get("aria-label")


def test_several_audits_share_a_summary_and_one_bundle(
    quickstart: AuditResult, swept: AuditResult
) -> None:
    page = Page(Html().render([quickstart, swept]))
    assert len(page.all("article")) == 2
    assert "2 audits side by side" in page.text
    assert page.source.count('id="bundle"') == 1
    assert page.packed()["bundle"].count("window.vegaEmbed=") == 1


def test_a_sweep_is_compared_at_one_point(pages: dict[str, Page]) -> None:
    text = pages["swept"].text
    assert "Figures are at one sweep point, data.rows = " in text
    assert "Runtime against records (data.rows)" in text
