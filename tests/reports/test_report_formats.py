"""Formats other than the page: partial audits, LaTeX, notebooks, terminal, CSV, Markdown."""

import csv
import html
import io
import json
import re
import unicodedata
from xml.etree import ElementTree

import pytest
import report_cases
import yaml
from hypothesis import given, strategies as st

from auditor import registry
from auditor.base import AuditorError
from auditor.results.comparison import compare_results
from auditor.results.model import AuditResult, Partial
from auditor_reports.data_files import Csv, cell
from auditor_reports.figures import clean
from auditor_reports.headline import headline
from auditor_reports.latex import Latex, safe
from auditor_reports.pages import Html, Markdown
from auditor_reports.reading import Reading
from auditor_reports.sentences import reproduce
from auditor_reports.terminal import Terminal
from auditor_reports.verdict import verdicts
from tests.tiers import each_once

TOLD = "Partial: 3 of 8 tasks finished; interrupted by SIGINT."


@pytest.fixture
def stopped(quickstart):
    records = [
        quickstart.expectations[0].model_copy(update={"status": "undecided", "why": "tasks are missing"}),
    ]  # fmt: skip
    part = Partial(finished=3, tasks=8, why="interrupted by SIGINT", signal="SIGINT")
    return quickstart.model_copy(
        update={"partial": part, "expectations": [*records, *quickstart.expectations[1:]]}
    )


def rendered(form, *results):
    return registry.get("renderer", form)().render(results)


@pytest.mark.parametrize("form", ["table", "html", "markdown", "notebook", "junit"])
def test_every_report_says_that_it_is_partial_and_a_whole_one_does_not(form, stopped, quickstart):
    assert TOLD in " ".join(rendered(form, stopped).split())
    assert "Partial" not in rendered(form, quickstart)


def test_junit_has_an_error_and_skips_what_is_undecided(stopped):
    suite = ElementTree.fromstring(rendered("junit", stopped)).find("testsuite")
    undecided = sum(record.status == "undecided" for record in stopped.expectations)
    assert (suite.get("errors"), suite.get("skipped")) == ("1", str(undecided))
    assert (
        int(suite.get("tests")) == len(suite.findall("testcase")) == len(stopped.expectations) + 1
    )
    assert [
        case.get("name") for case in suite.findall("testcase") if case.find("error") is not None
    ] == ["the audit is whole"]
    assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))


def test_what_stopped_it_is_escaped(stopped):
    part = stopped.partial.model_copy(update={"why": "<script>alert(1)</script>"})
    hostile = stopped.model_copy(update={"partial": part})
    for form in ("html", "notebook", "markdown"):
        assert "<script>alert" not in rendered(form, hostile)
    ElementTree.fromstring(rendered("junit", hostile))


@pytest.mark.parametrize(("signal", "status"), [("SIGINT", 130), ("SIGTERM", 143), (None, 3)])
def test_its_exit_status_is_the_signal_s(stopped, signal, status):
    part = stopped.partial.model_copy(update={"signal": signal})
    assert stopped.model_copy(update={"partial": part}).exit_status == status


WORDS = "textbackslash textasciicircum textasciitilde textless textgreater textbar textsuperscript textsubscript dots"
SIGNS = "ll gg pm cdot surd le ge ne approx propto to Vert int otimes ell times star diamond"
ESCAPED = re.compile(
    rf"\\(?:{'|'.join(WORDS.split())})(?![a-z])|\\[{{}}$&#%_]|\$\\(?:{'|'.join(SIGNS.split())})\$|\$-\$|\$\\(?:hat|bar)\{{[A-Za-z]\}}\$"
    r"|\$\\[A-Za-z]+\$"
)


def markup(text):
    return set(ESCAPED.sub("", text)) & set("\\$&#%_^~")


@pytest.mark.parametrize(("written", "spelt"), [(r"\input{x}", r"\textbackslash{}input\{x\}"), ("a_b & 5 % of $x^2 ~ #1", r"a\_b \& 5 \% of \$x\textasciicircum{}2 \textasciitilde{} \#1"), ("--x, ,,", "{-}{-}x, {,}{,}"), ("σ² = 10⁻⁷ ± ½", r"$\sigma$\textsuperscript{2} = 10\textsuperscript{$-$}\textsuperscript{7} $\pm$ 1/2"), ("Größe\n%", r"Größe \%")])  # fmt: skip
def test_text_is_spelt_as_tex_sets_it(written, spelt):
    assert safe(written) == spelt


@given(st.text(st.sampled_from("\\{}$&#^_~%<>|\"'`[]*-,a0 σΣς²⁻₂Ῥἀ\u0302\n\x1b\u202e")))
def test_nothing_in_a_name_is_read_as_markup(text):
    spelt = safe(text)
    assert not markup(spelt), spelt
    plain = re.sub(r"\\[{}]", "", spelt)
    assert plain.count("{") == plain.count("}")
    assert spelt.isprintable()


def tables(text):
    return re.findall(r"\\begin\{table\}.*?\\end\{table\}", text, re.DOTALL)


@pytest.mark.parametrize("case", ["swept", "hostile"])
@pytest.mark.slow_after_first
def test_every_row_has_as_many_cells_as_the_table_has_columns(case, request):
    found = tables(Latex().render([request.getfixturevalue(case)]))
    assert len(found) >= 4
    for table in found:
        columns = re.search(r"\\begin\{tabular\}\{@\{\}(.*)@\{\}\}", table)
        assert columns is not None
        many = len(re.sub(r"p\{[^}]*\}", "l", columns[1]))
        lines = [line for line in table.splitlines() if line.endswith(r"\\")]
        assert [len(re.findall(r"(?<!\\)&", line)) + 1 for line in lines] == [many] * len(lines)
        for line in lines:
            assert not markup(re.sub(r"(?<!\\)&|\\\\$", "", line)), line
        for part in (r"\toprule", r"\midrule", r"\bottomrule", r"\caption{", r"\label{tab:"):
            assert table.count(part) == 1


def test_results_show_their_verdicts_and_comparison(quickstart):
    text = quickstart._repr_html_()
    assert headline(Reading(quickstart), verdicts(Reading(quickstart))).gate in text
    assert all(scheme in text for scheme in report_cases.SCHEMES)
    assert "<script" not in text
    assert text.count("<table>") == 1


def test_a_wrong_choice_names_the_right_ones(quickstart):
    with pytest.raises(AuditorError, match="adversary must be one of"):
        quickstart.plot.collusion(adversary="nobody")
    with pytest.raises(AuditorError, match="unknown choice 'colour'"):
        quickstart.plot.collusion(colour="red")
    with pytest.raises(AuditorError, match="no runtime chart"):
        quickstart.plot.runtime()


CASES = ("quickstart", "prefixes", "failed", "swept", "hostile")


def columns(line):
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line)


@pytest.mark.parametrize(("case", "width"), each_once(CASES, [40, 80, 160]))
def test_the_terminal_report_fits_and_is_plain(case, width, request):
    text = Terminal(width=width).render([request.getfixturevalue(case)])
    before, command, rest = re.split(r"\nReproduce in one line:\n(.*)\n", text)
    middle, rest = rest.split("\nScenario as run\n")
    assert (
        max(
            map(
                columns,
                [*before.splitlines(), *middle.splitlines(), *rest.partition("\nReferences\n")[2].splitlines()],
            )
        )
        <= width
    )  # fmt: skip
    assert command == clean(reproduce(request.getfixturevalue(case)))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text)


HOSTILE_TEXTS = [
    "</script><script>alert(1)</script>", "a < b & c > d", "```", "~~~~\n````\n# no heading", "\u202egnp.exe", "\x1b[31mred\x07", "tab\tand\r\nline",
    " leading", "trailing ", "- dash", "yes", "012", "1e3", "null", "~", "", "a: b # c", "'", '"', "\\<b>\\", "גיל ושכר", "😀", "\ufeff", "x" * 400,
    "word " * 90, "<!--", "?><!DOCTYPE", "[red]rich[/red]", "{{7*7}}", "\u2028\u2029\x85", "-->",
]  # fmt: skip


def hostile_scenario(quickstart):
    odd = {f"{place} {text}": text for place, text in enumerate(HOSTILE_TEXTS)} | {
        "none": None, "yes": True, "1": 1e-9, "big": 10**30, "deep": [[{}], []],
    }  # fmt: skip
    return quickstart.model_copy(
        update={"scenario": quickstart.scenario | {"title": "\n".join(HOSTILE_TEXTS), "data": odd}}
    )


@pytest.mark.parametrize(("case", "width"), each_once(["odd", *CASES], [40, 80, 160]))
@pytest.mark.slow_after_first
def test_the_scenario_is_printed_as_the_page_has_it_and_reads_back(case, width, request):
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
    printed = Terminal(width=width, color=width == 80).render([result])
    printed = printed.partition("Scenario as run")[2].partition("\n")[2]
    assert printed.startswith(page + "\n\n")
    fence, held = re.findall(
        r"^#{3,4} Scenario as run\n\n(`{3,})yaml\n(.*?)\n\1$",
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


def test_csv_parses_back(swept):
    rows = list(csv.DictReader(io.StringIO(Csv().render([swept]))))
    assert len(rows) == len(swept.measurements)
    for row, record in zip(rows[:200], swept.measurements[:200], strict=True):
        assert json.loads(row["sweep"]) == record.sweep
        assert tuple(map(int, row["coalition"].split())) == record.coalition
        assert (float(row["value"]) if row["value"] else None) == record.value
        assert row["scheme"] == record.scheme


def test_csv_disarms_formulas():
    for text in ("=cmd()", "+1", "-1", "@x", "\tx", "\rx"):
        assert cell(text) == f"'{text}"


STEERING = "\x1b[31m\x9b2J\u202eevil\u2066\x07"


@pytest.mark.slow
def test_no_format_steers_a_terminal_or_turns_a_line_around(quickstart):
    plain = report_cases.Case(
        attributes=(STEERING, "גיל"), schemes=(f"s{STEERING}", "b", "c", "d"),
        coalitions="prefixes", replicates=1,
    ).result(title=STEERING, name=STEERING)  # fmt: skip
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


def test_markdown_tables_stay_tables_and_markup_stays_text(hostile):
    text = Markdown().render([hostile, hostile])
    assert "<script" not in text
    assert "<img" not in text
    assert "# 2 audits" in text
    table = [line for line in text.splitlines() if line.startswith("| ")]
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table}
    assert len(widths) <= 4
    assert "\n```yaml\n" in text
