"""Reports as pages: HTML, canary values, edits and SARIF."""

import base64
import hashlib
import json
import random
import re
from html.parser import HTMLParser

import altair as alt
import jsonschema
import pytest
import report_cases
from jsonschema import ValidationError

import auditor
from auditor.base import AuditorError
from auditor.results.comparison import compare_results
from auditor.results.model import AuditResult, Partial
from auditor_reports.charts import TEMPLATES, bundle, charts, inflated, json_block, script
from auditor_reports.data_files import Csv, Json, Junit, Sarif
from auditor_reports.pages import Html, Markdown
from auditor_reports.reading import Reading
from auditor_reports.terminal import Terminal

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


ODD = (
    None, "", "abc", "\x1b[31m", -1, 0, 1e308, -1e308, 1e-320, 1e200, 10**400, True, [], [1], ["a"], {}, {"a": 1}, [[1]], [None], [0], [2, 1],
    [1e308], 2**63, "nan", "ok", "failed", "not-applicable", float("nan"), float("inf"),
)  # fmt: skip


def places(value, path=()):
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for index in sorted({0, 1, len(value) - 1} & set(range(len(value)))):
            yield from places(value[index], (*path, index))


def edited(text, path, odd):
    document = json.loads(text)
    part = document
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = odd
    return json.dumps(document)


@pytest.fixture(scope="module")
def small():
    return report_cases.Case(
        coalitions="prefixes", schemes=("independent", "correlated", "corner-wave"),
        levels=(0.5, 1.0), replicates=1,
    ).result()  # fmt: skip


@pytest.mark.parametrize(("seed", "count"), [(6, 25), pytest.param(7, 80, marks=pytest.mark.slow)])
def test_what_stands_in_an_edited_file_is_refused_or_reported(small, tmp_path, seed, count):
    text = small.to_json()
    jobs = [(path, odd) for path in places(json.loads(text)) for odd in ODD]
    refused = []
    for number, (path, odd) in enumerate(random.Random(seed).sample(jobs, count)):
        (tmp_path / "results.json").write_text(edited(text, path, odd), encoding="utf-8")
        try:
            read = AuditResult.load(tmp_path)
        except AuditorError as error:
            refused.append(str(error))
            continue
        for renderer in (Terminal(width=80), Markdown(), Junit(), Csv(), Json()):
            renderer.render([read])
        if number % 10 == 0:
            charts(Reading(read), "audit-1")
        for changed in (compare_results(small, read), compare_results(read, small)):
            Terminal(width=80).render_comparison(changed)
    assert 0.2 * count < len(refused) < 0.9 * count
    assert all(told.startswith(str(tmp_path)) and told.isprintable() for told in refused)


TEXT = {
    "type": "object", "required": ["text"],
    "properties": {"text": {"type": "string", "minLength": 1}}, "additionalProperties": False,
}  # fmt: skip
PLACE = {"physicalLocation": {
    "type": "object", "required": ["artifactLocation"], "additionalProperties": False, "properties": {
        "artifactLocation": {"type": "object", "properties": {"uri": {"type": "string", "pattern": r"^[\w./%~-]+$"}}, "additionalProperties": False},
        "region": {"type": "object", "properties": {"startLine": {"type": "integer", "minimum": 1}}, "additionalProperties": False},
    },
}}  # fmt: skip
STRUCTURE = {
    "type": "object", "required": ["version", "runs"], "additionalProperties": False, "properties": {
        "$schema": {"type": "string", "format": "uri"}, "version": {"const": "2.1.0"},
        "runs": {"type": "array", "minItems": 1, "maxItems": 1, "items": {
            "type": "object", "required": ["tool", "results"], "additionalProperties": False, "properties": {
                "tool": {"type": "object", "required": ["driver"], "additionalProperties": False, "properties": {"driver": {
                    "type": "object", "required": ["name"], "additionalProperties": False, "properties": {
                        "name": {"type": "string"}, "version": {"type": "string"}, "rules": {"type": "array", "uniqueItems": True, "items": {
                            "type": "object", "required": ["id"], "additionalProperties": False,
                            "properties": {"id": {"type": "string"}, "shortDescription": TEXT},
                        }},
                    },
                }}},
                "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                "invocations": {"type": "array", "items": {
                    "type": "object", "required": ["executionSuccessful"], "additionalProperties": False, "properties": {
                        "commandLine": {"type": "string"}, "exitCode": {"type": "integer"}, "executionSuccessful": {"type": "boolean"},
                    },
                }},
                "results": {"type": "array", "items": {
                    "type": "object", "required": ["message"], "additionalProperties": False, "properties": {
                        "ruleId": {"type": "string"}, "ruleIndex": {"type": "integer", "minimum": 0},
                        "level": {"enum": ["none", "note", "warning", "error"]}, "message": TEXT,
                        "locations": {"type": "array", "items": {"type": "object", "properties": PLACE, "additionalProperties": False}},
                    },
                }},
            },
        }},
    },
}  # fmt: skip


def log_of(*results):
    log = json.loads(Sarif().render(results))
    jsonschema.validate(log, STRUCTURE)
    run = log["runs"][0]
    assert all(
        run["tool"]["driver"]["rules"][one["ruleIndex"]]["id"] == one["ruleId"]
        for one in run["results"]
    )
    return run


def test_each_expectation_that_does_not_hold_is_a_result_and_no_other(quickstart):
    found = log_of(quickstart)["results"]
    assert [(one["ruleId"], one["level"]) for one in found] == [
        ("collusion-gain", "error"),
        ("ranking", "warning"),
    ]
    assert "observed 0.53 ± 0.002, and 0.9 was asked for" in found[0]["message"]["text"]
    safe = quickstart.model_copy(update={"expectations": quickstart.expectations[:1]})
    assert log_of(safe)["results"] == []


def test_a_failed_cell_and_an_audit_that_was_stopped_are_errors(failed, quickstart):
    stopped = quickstart.model_copy(
        update={"partial": Partial(finished=1, tasks=2, why="stopped by SIGTERM", signal="SIGTERM")}
    )
    run = log_of(failed, stopped)
    assert {one["ruleId"] for one in run["results"]} == {
        "collusion-gain", "ranking", "failed-cell", "partial-audit",
    }  # fmt: skip
    assert [(one["exitCode"], one["executionSuccessful"]) for one in run["invocations"]] == [
        (3, False),
        (143, False),
    ]
    assert "SVD did not converge" in str(run["results"])


@pytest.mark.parametrize("case", ["hostile"])
def test_names_are_no_links_no_arguments_and_steer_nothing(case, request):
    result = request.getfixturevalue(case)
    named = result.expectations[1].model_copy(
        update={"why": r"[click](http://evil) {0} \input{x} <script>" + chr(27) + "[2J"}
    )
    (one,) = log_of(result.model_copy(update={"expectations": [named]}))["results"]
    text = one["message"]["text"]
    assert r"\[click\](http://evil) {{0}} \\input{{x}} <script>�\[2J" in text
    assert not re.search(
        r"(?<!\\)(?:\\\\)*[\[\]]|(?<!\{)(?:\{\{)*\{(?!\{)",
        re.sub(r"\\\\|\{\{|\}\}|\\\[|\\\]", "", text),
    )
    assert "\x1b" not in Sarif().render([result])


def test_results_stand_at_their_line_of_the_scenario_s_file(here):
    folder = here / "our audits"
    folder.mkdir()
    file = folder / "mine.yaml"
    file.write_text(
        "data: {source: gaussian, covariance: [[1.0]], rows: 50}\nschemes: [{name: correlated, levels: [0.5, 1]}]\nattacks: [ndr]\n"
        "expect:\n  - normalized_error: {at-most: 9}\n\n  - normalized_error: {at-least: 9}\n"
    )
    result = auditor.run(file)
    assert [(record.status, record.line) for record in result.expectations] == [
        ("holds", 5),
        ("fails", 7),
    ]
    (one,) = log_of(AuditResult.load(result.save(here / "out")))["results"]
    place = one["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "our%20audits/mine.yaml"},
        "region": {"startLine": 7},
    }
    changed = auditor.run(file, overrides={"expect": [{"normalized_error": {"at-least": 9}}]})
    assert log_of(changed)["results"][0]["locations"] == [
        {"physicalLocation": {"artifactLocation": place["artifactLocation"]}}
    ]
