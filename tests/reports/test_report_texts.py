"""The renderers that make text: terminal, Markdown, JSON, CSV, JUnit."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import unicodedata
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import report_cases
import yaml
from click.testing import CliRunner

from auditor import registry
from auditor.cli import cli
from auditor.results.comparison import compare_results
from auditor.results.model import AuditResult
from auditor.scenario.read import read_scenario
from auditor_reports.charts.sparklines import sparklines
from auditor_reports.ci_formats import Junit
from auditor_reports.data_files import Csv, Json, cell
from auditor_reports.figures.figures import clean
from auditor_reports.html import Html
from auditor_reports.layout.terminal_writer import folded
from auditor_reports.markdown import Markdown
from auditor_reports.terminal import Terminal
from auditor_reports.wording.words import reproduce
from tests.tiers import every_pair

CASES = ("quickstart", "prefixes", "failed", "swept", "hostile")


def columns(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line)


def unwrapped(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(("case", "width"), every_pair(CASES, [40, 80, 160]))
def test_the_terminal_report_fits_and_is_plain(
    case: str, width: int, request: pytest.FixtureRequest
) -> None:
    text = Terminal(width=width).render([request.getfixturevalue(case)])
    # what is there to be copied is never broken by a width
    before, command, rest = re.split(r"\nReproduce in one line:\n(.*)\n", text)
    middle, rest = rest.split("\nScenario as run\n")
    assert (
        max(
            map(
                columns,
                [
                    *before.splitlines(),
                    *middle.splitlines(),
                    *rest.partition("\nReferences\n")[2].splitlines(),
                ],
            )
        )
        <= width
    )
    assert command == clean(reproduce(request.getfixturevalue(case)))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text)


HOSTILE_TEXTS = [
    "</script><script>alert(1)</script>", "a < b & c > d", "```", "~~~~\n````\n# no heading", "\u202egnp.exe", "\x1b[31mred\x07", "tab\tand\r\nline",
    " leading", "trailing ", "- dash", "yes", "012", "1e3", "null", "~", "", "a: b # c", "'", '"', "\\<b>\\", "גיל ושכר", "😀", "\ufeff", "x" * 400,
    "word " * 90, "<!--", "?><!DOCTYPE", "[red]rich[/red]", "{{7*7}}", "\u2028\u2029\x85", "-->",
]  # fmt: skip


def hostile_scenario(quickstart: AuditResult) -> AuditResult:
    odd = {f"{place} {text}": text for place, text in enumerate(HOSTILE_TEXTS)} | {
        "none": None,
        "yes": True,
        "1": 1e-9,
        "big": 10**30,
        "deep": [[{}], []],
    }
    return quickstart.model_copy(
        update={"scenario": quickstart.scenario | {"title": "\n".join(HOSTILE_TEXTS), "data": odd}}
    )


@pytest.mark.parametrize(("case", "width"), every_pair(["odd", *CASES], [40, 80, 160]))
@pytest.mark.slow_after_first
def test_the_scenario_is_printed_as_the_page_has_it_and_reads_back(
    case: str, width: int, request: pytest.FixtureRequest
) -> None:
    result = (
        hostile_scenario(request.getfixturevalue("quickstart"))
        if case == "odd"
        else request.getfixturevalue(case)
    )
    shown = re.search(
        r'<pre id="audit-1-yaml"[^>]*>(.*?)</pre>', Html().render([result]), re.DOTALL
    )
    assert shown
    page = html.unescape(shown[1]).rstrip("\n")
    printed = (
        Terminal(width=width, color=width == 80)
        .render([result])
        .partition("Scenario as run")[2]
        .partition("\n")[2]
    )
    assert printed.startswith(page + "\n\n")
    fence, held = re.findall(
        r"^#### Scenario as run\n\n(`{3,})yaml\n(.*?)\n\1$",
        Markdown().render([result]),
        re.MULTILINE | re.DOTALL,
    )[0]
    assert held == page
    assert fence not in page
    for text in (page, printed.partition("\n\n")[0] if case != "odd" else page, held):
        assert yaml.safe_load(text) == json.loads(json.dumps(result.scenario))
        assert not re.search(
            r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|<[A-Za-z/!?]", text
        )


def test_the_printed_scenario_is_one_that_can_be_run(uniform: AuditResult, tmp_path: Path) -> None:
    """The scenario of a real audit, taken from the terminal, is read as the scenario it was."""
    for name, text in (
        ("table", Terminal(width=80).render([uniform])),
        ("markdown", Markdown().render([uniform])),
    ):
        copied = (
            text.partition("Scenario as run\n")[2]
            .lstrip("\n")
            .removeprefix("```yaml\n")
            .partition("\n```" if name == "markdown" else "\n\n")[0]
        )
        file = tmp_path / f"{name}.yaml"
        file.write_text(copied, encoding="utf-8")
        again = CliRunner().invoke(cli, ["check", str(file)])
        assert again.exit_code == 0, again.output
        assert read_scenario(file).spec() == uniform.scenario


def test_a_release_without_attacks_still_reports_its_measures(swept: AuditResult) -> None:
    timings = [record for record in swept.measurements if record.metric == "seconds"]
    only = swept.model_copy(
        update={"measurements": timings, "distributions": [], "expectations": []}
    )
    text = Terminal(width=120).render([only])
    assert "Runtime against records (data.rows)" in text
    assert "Sweep of" not in text
    assert re.search(r"^64000 ", text, re.MULTILINE)
    assert "data.rows" in text


def test_sparklines_share_a_scale_from_0() -> None:
    assert sparklines([[0.0, 0.5, 1.0], [0.01, 0.25]]) == [" ▄█", "▁▂"]
    assert sparklines([[0.0]]) == [" "]


def test_json_is_the_results_document(quickstart: AuditResult, failed: AuditResult) -> None:
    assert Json().render([quickstart]) == quickstart.to_json()
    assert [document["name"] for document in json.loads(Json().render([quickstart, failed]))] == [
        "quickstart",
        "failed",
    ]
    assert json.loads(Json().render([])) == []


def test_csv_parses_back(swept: AuditResult) -> None:
    rows = list(csv.DictReader(io.StringIO(Csv().render([swept]))))
    assert len(rows) == len(swept.measurements)
    for row, record in zip(rows[:200], swept.measurements[:200], strict=True):
        assert json.loads(row["sweep"]) == record.sweep
        assert tuple(map(int, row["coalition"].split())) == record.coalition
        assert (float(row["value"]) if row["value"] else None) == record.value
        assert row["scheme"] == record.scheme


@pytest.mark.parametrize("text", ["=cmd()", "+1", "-1", "@x", "\tx", "\rx"])
def test_csv_disarms_formulas(text: str) -> None:
    assert cell(text) == f"'{text}"


STEERING = "\x1b[31m\x9b2J\u202eevil\u2066\x07"


@pytest.mark.slow
def test_no_format_steers_a_terminal_or_turns_a_line_around(quickstart: AuditResult) -> None:
    plain = report_cases.Case(
        attributes=(STEERING, "גיל"),
        schemes=(f"s{STEERING}", "b", "c", "d"),
        coalitions="prefixes",
        replicates=1,
    ).result(title=STEERING, name=STEERING)
    records = [r._replace(reason=STEERING) if r.status != "ok" else r for r in plain.measurements]
    hostile = plain.model_copy(update={"measurements": records})
    changed = compare_results(hostile, quickstart)
    for form in ("table", "markdown", "latex", "json", "csv", "junit", "sarif", "html"):
        renderer = registry.get("renderer", form)()
        texts = [renderer.render([hostile]), renderer.render([hostile, hostile])]
        texts += (
            [renderer.render_comparison(changed)]
            if form not in ("latex", "csv", "junit", "sarif")
            else []
        )
        for text in texts:
            # what a page holds compressed is text of it, too; the charts' script has such
            # characters in its own tables of letters
            parts = [
                text,
                report_cases.unpacked(re.sub(r'<script[^>]*id="bundle".*?</script>', "", text)),
            ]
            assert not {"\x1b", "\x9b", "\u202e", "\u2066", "\x07"} & set("".join(parts)), form
    assert AuditResult.model_validate_json(hostile.to_json()).title == STEERING
    assert all(
        "גיל" in registry.get("renderer", form)().render([hostile])
        for form in ("json", "csv", "html")
    )


@pytest.mark.parametrize("case", CASES)
def test_junit_has_an_item_for_each_expectation(case: str, request: pytest.FixtureRequest) -> None:
    result = request.getfixturevalue(case)
    root = ElementTree.fromstring(Junit().render([result]))
    items = root.findall("./testsuite/testcase")
    whole, *items = items
    assert (whole.get("name"), float(whole.get("time", 0))) == (
        "the audit is whole",
        result.provenance.duration,
    )
    assert float(root.get("time", 0)) == sum(
        float(item.get("time", 0)) for item in root.iter("testcase")
    )
    assert len(items) == len(result.expectations) + (case == "failed")
    assert [item.find("failure") is None for item in items[: len(result.expectations)]] == [
        record.status == "holds" for record in result.expectations
    ]
    assert {failure.text for failure in root.iter("failure")} == {
        clean(record.why) for record in result.expectations if record.status != "holds"
    }
    assert root.get("errors") == str(int(case == "failed"))


def test_markdown_tables_stay_tables_and_markup_stays_text(hostile: AuditResult) -> None:
    text = Markdown().render([hostile, hostile])
    assert "<script" not in text
    assert "<img" not in text
    assert "# 2 audits" in text
    table = [line for line in text.splitlines() if line.startswith("| ")]
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table}
    assert len(widths) <= 4
    assert "\n```yaml\n" in text


@pytest.mark.parametrize(
    ("name", "width", "lines"),
    [
        ("linearly-dependent", 14, ["linearly-", "dependent"]),
        ("on-demand L=3M/4", 14, ["on-demand", "L=3M/4"]),
        ("schemes[*].levels.count", 12, ["schemes[*].", "levels.count"]),
        ("plain", 14, ["plain"]),
    ],
)
def test_a_name_breaks_at_its_joints(name: str, width: int, lines: list[str]) -> None:
    assert folded(name, width).split("\n") == lines
