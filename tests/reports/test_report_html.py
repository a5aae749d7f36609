"""The HTML report."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import altair as alt
import pytest
import report_cases
from jsonschema import ValidationError

from auditor_reports.charts.audit_charts import charts
from auditor_reports.charts.chart import TEMPLATES, bundle, inflated, json_block, script
from auditor_reports.figures.reading import Reading
from auditor_reports.html import Html

CASES = ("quickstart", "swept", "hostile")


class Page(HTMLParser):
    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.source = source
        self.elements = []
        self.scripts = []
        self.styles = []
        self.words = []
        self._inside = ""
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else self._inside

    def handle_endtag(self, tag):
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts.append((self.elements[-1][1], data))
        elif self._inside == "style":
            self.styles.append(data)
        else:
            self.words.append(data)

    @property
    def text(self):
        return " ".join("".join(self.words).split())

    def blocks(self):
        packed = {name: text for name, text in self.packed().items() if name.endswith("-data")}
        plain = {
            str(a["id"]): text for a, text in self.scripts if a.get("type") == "application/json"
        }
        return {name: json.loads(text) for name, text in (packed | plain).items()}

    def packed(self):
        return {
            name: inflated(element)
            for element, name in re.findall(
                r'(<script [^>]*id="([\w-]+)"[^>]*>[\w+/=]+</script>)', self.source
            )
        }

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def pages(request):
    return {case: Page(Html().render([request.getfixturevalue(case)])) for case in CASES}


@pytest.mark.parametrize(
    "case",
    [case if case == "hostile" else pytest.param(case, marks=pytest.mark.slow) for case in CASES],
)
def test_every_chart_is_what_the_schema_allows(case, request):
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
def test_the_policy_lists_exactly_the_scripts_and_the_style(case, pages):
    page = pages[case]
    policy = next(
        m["content"] or ""
        for m in page.all("meta")
        if m.get("http-equiv") == "Content-Security-Policy"
    )

    def hashed(text):
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
def test_nothing_is_loaded_and_nothing_is_inline(case, pages):
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


def test_hostile_names_stay_text(pages):
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


def test_json_cannot_leave_its_block():
    value = {"</script>": ["<!--", "&", "\u2028", "]]>", '"']}
    text = str(json_block(value))
    assert not re.search("[<>&\u2028]", text)
    assert json.loads(text) == value
    assert "</script" not in script("a = '</script>'")


@pytest.mark.parametrize("case", CASES)
def test_structure_for_keyboard_and_screen_reader(case, pages):
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


@pytest.mark.slow
def test_what_is_shipped_is_what_the_command_makes():
    assert inflated((TEMPLATES / "bundle.html").read_text(encoding="utf-8")) == inflated(bundle())
