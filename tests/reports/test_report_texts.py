"""The renderers that make text: terminal, Markdown, JSON, CSV, JUnit."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
import xml.etree.ElementTree as ElementTree

import pytest
import report_cases

from auditor import registry
from auditor.comparison import compare_results
from auditor.results import AuditResult
from reports._figures import braces, clean, number, with_error
from reports._matrix import matrix
from reports._method import error_bars, metric_definitions
from reports._plot import Line, plot
from reports._reading import Reading, Setting
from reports._terminal_tables import folded
from reports._verdict import verdicts
from reports.csv_table import Csv, cell
from reports.json_results import Json
from reports.junit import Junit
from reports.markdown import Markdown
from reports.terminal import Terminal

CASES = ("quickstart", "prefixes", "failed", "swept", "hostile")


def columns(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line)


def unwrapped(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("width", [40, 80, 160])
def test_the_terminal_report_fits_and_is_plain(case: str, width: int, request: pytest.FixtureRequest) -> None:
    text = Terminal(width=width).render([request.getfixturevalue(case)])
    assert max(map(columns, text.splitlines())) <= width
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text)


def test_colour_only_when_asked(quickstart: AuditResult) -> None:
    coloured = Terminal(width=100, color=True).render([quickstart])
    assert "\x1b[" in coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert unwrapped(plain) == unwrapped(Terminal(width=100).render([quickstart]))


def test_the_order_is_verdict_comparison_curve_expectations_notes_provenance(failed: AuditResult) -> None:
    text = Terminal(width=120).render([failed])
    parts = ["Verdict", "Comparison", "Collusion curve", "Coalition map", "Error distributions", "Expectations", "Notes", "Method"]
    places = [text.index(f"\n{part}") for part in [*parts, "Attacks and schemes", "References", "auditor 0.1.0"]]
    assert places == sorted(places)
    assert text.rstrip().splitlines()[-1] == "✗ A part of the audit failed: 1 of 3 holds, 1 fails, 1 undecided"


def test_the_terminal_explains_its_figures_as_the_page_does(quickstart: AuditResult) -> None:
    text = unwrapped(Terminal(width=160).render([quickstart]))
    reading = Reading(quickstart)
    assert all(one.meaning in text for one in metric_definitions(reading))
    assert all(meaning in text for _, meaning in error_bars(reading))
    for plugin in quickstart.plugins:
        assert plugin.summary in text
        assert plugin.assumes in text
    assert quickstart.references[0].text in text


def test_the_coalition_map_tells_the_worst_of_each_size_and_the_highest(quickstart: AuditResult) -> None:
    text = Terminal(width=160).render([quickstart]).partition("\nCoalition map")[2].partition("\n\n")[0]
    errors = Reading(quickstart).figures(Setting(0, "independent", "perfect", "llse"))
    pairs = {coalition: shown for coalition, shown in errors.items() if len(coalition) == 2}
    worst = min(pairs.values(), key=lambda shown: shown.theory or 0)
    highest = max(shown.value for shown in pairs.values())
    assert with_error(worst) in text
    assert f"{braces(worst.coalition)} to {number(highest, worst.half)}" in text
    assert "Coalition map" not in Terminal(width=160).render([report_cases.prefixes_only()])


@pytest.mark.parametrize("width", [80, 160])
def test_the_terminal_shows_what_was_read(failed: AuditResult, width: int) -> None:
    text = unwrapped(Terminal(width=width).render([failed]))
    reading = Reading(failed)
    for verdict in verdicts(reading):
        assert verdict.sentence in text
    for row in matrix(reading):
        for shown in row.cells:
            assert shown.worst is None or with_error(shown.worst) in text
            assert shown.single is None or with_error(shown.single) in text
    for record in failed.expectations:
        assert record.why in text
    assert "SVD did not converge" in text
    assert report_cases.UNSUITED in text


def test_several_audits_end_in_a_summary(quickstart: AuditResult, failed: AuditResult) -> None:
    text = Terminal(width=120).render([quickstart, failed])
    assert "Summary of 2 audits" in text
    assert "does not hold" in text
    assert Terminal(width=80).render([]) == "\n"


def test_a_release_without_attacks_still_reports_its_measures(swept: AuditResult) -> None:
    timings = [record for record in swept.measurements if record.metric == "seconds"]
    only = swept.model_copy(update={"measurements": timings, "distributions": [], "expectations": []})
    text = Terminal(width=120).render([only])
    assert "Sweep of seconds" in text
    assert re.search(r"^64000 ", text, re.MULTILINE)
    assert "data.rows" in text


def test_the_plot_marks_every_point_and_keeps_its_size() -> None:
    lines = [Line("a", [(1, 0.4), (2, 0.2), (3, 0.1)]), Line("b", [(1, 0.4), (2, 0.4), (3, 0.4)])]
    rows = [row.plain for row in plot(lines, 60, 12)]
    assert len(rows) == 12
    assert max(map(len, rows)) <= 60
    drawn = "".join(rows)
    assert (drawn.count("A"), drawn.count("B"), drawn.count("+")) == (2, 2, 1)
    assert rows[0].lstrip().startswith("0.4")
    assert plot([Line("one", [(1, 0.0)])], 40, 8)


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


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (" =cmd()", "' =cmd()"), ("＝1+1", "'＝1+1"), ("\x1b[31mred", "\\u001b[31mred"), ("\x9b2J", "\\u009b2J"),
        ("safe\u202eevil", "safe\\u202eevil"), ("گ\u200cش", "گ\u200cش"), ("גיל ושכר", "גיל ושכר"), ("\ud800", "\\ud800"),
    ],
)  # fmt: skip
def test_csv_steers_neither_spreadsheet_nor_terminal(text: str, written: str) -> None:
    assert cell(text) == written


STEERING = "\x1b[31m\x9b2J\u202eevil\u2066\x07"


def test_no_format_steers_a_terminal_or_turns_a_line_around(quickstart: AuditResult) -> None:
    plain = report_cases.Case(
        attributes=(STEERING, "גיל"), schemes=(f"s{STEERING}", "b", "c", "d"), coalitions="prefixes", replicates=1
    ).result(title=STEERING, name=STEERING)
    records = [r._replace(reason=STEERING) if r.status != "ok" else r for r in plain.measurements]
    hostile = plain.model_copy(update={"measurements": records})
    changed = compare_results(hostile, quickstart)
    for form in ("table", "markdown", "json", "csv", "junit", "html"):
        renderer = registry.get("renderer", form)()
        texts = [renderer.render([hostile]), renderer.render([hostile, hostile])]
        texts += [renderer.render_comparison(changed)] if form not in ("csv", "junit") else []
        for text in texts:
            # what a page holds compressed is text of it, too; the charts' script has such characters in its own tables of letters
            parts = [text, report_cases.unpacked(re.sub(r'<script[^>]*id="bundle".*?</script>', "", text))]
            assert not {"\x1b", "\x9b", "\u202e", "\u2066", "\x07"} & set("".join(parts)), form
    assert AuditResult.model_validate_json(hostile.to_json()).title == STEERING
    assert all("גיל" in registry.get("renderer", form)().render([hostile]) for form in ("json", "csv", "html"))


def test_csv_of_hostile_names_starts_no_formula(hostile: AuditResult) -> None:
    rows = list(csv.reader(io.StringIO(Csv().render([hostile]))))
    assert {len(row) for row in rows} == {18}
    numbers = re.compile(r"-?[\d.]+(e[-+]?\d+)?$")
    assert not [text for row in rows for text in row if text.startswith(tuple("=+-@\t\r")) and not numbers.match(text)]


@pytest.mark.parametrize("case", CASES)
def test_junit_has_an_item_for_each_expectation(case: str, request: pytest.FixtureRequest) -> None:
    result = request.getfixturevalue(case)
    root = ElementTree.fromstring(Junit().render([result]))
    items = root.findall("./testsuite/testcase")
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
    assert widths == {4, 7, 6}


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


def test_no_head_of_a_table_breaks_inside_a_word(quickstart: AuditResult) -> None:
    text = Terminal(width=80).render([quickstart])
    assert "linearly-depen" not in text.replace("linearly-dependent", "")
