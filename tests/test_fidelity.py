from __future__ import annotations

import re
from pathlib import Path

import pytest

from auditor.results.model import AuditResult, Partial, Provenance
from auditor.results.records import AttributeSummary, DataSummary, ExpectationRecord, Measurement
from docs.evidence import make_fidelity
from docs.evidence.fidelity_rows import Paper, Row, Selector, is_test, papers

PAGE = Path(__file__).parents[1] / "docs/evidence/fidelity.md"
DECLARED = papers()


@pytest.mark.parametrize("paper", DECLARED, ids=lambda paper: paper.key)
def test_every_numbered_thing_has_a_row_and_every_row_leads_somewhere(paper: Paper) -> None:
    assert paper.problems == []


@pytest.mark.parametrize("paper", DECLARED, ids=lambda paper: paper.key)
def test_the_page_was_written_from_the_list_as_it_is(paper: Paper) -> None:
    lines = [
        line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")
    ]
    for row in paper.rows:
        assert any(
            line.startswith(f"| {make_fidelity.places(row.at)} | {make_fidelity.safe(row.claim)} |")
            for line in lines
        ), row.name
    assert not [line for line in lines if re.search(r"\|\s*\|", line)]


def test_the_page_says_when_every_scenario_was_measured_and_by_which_version() -> None:
    told = re.findall(
        r"^\| `([\w.-]+)` \| \d{4}-\d\d-\d\d \| \d+\.\d+",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert told == sorted(
        {selector.scenario for paper in DECLARED for row in paper.rows for selector in row.measured}
    )


ROW = Row(
    "li2012",
    ("Theorem 4",),
    "A claim.",
    "0.5",
    ("attacks/llse.py",),
    (Selector("quickstart", "Age", metric="rmse"),),
)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (ROW, []),
        (Row("li2012", ("Theorem 4",), "", "0.5", ("attacks/llse.py",), todo="nobody did"), ["claim is empty"]),
        (Row("li2012", ("Theorem 4",), "A claim.", "0.5", ("attacks/llse.py",)), ["nothing measures it, and no todo says why"]),
        (Row("li2012", ("Theorem 4",), "A claim.", "0.5", ("attacks/no.py",), todo="later"), ["attacks/no.py: no such file"]),
        (Row("li2012", ("Theorem 4",), "A claim.", "0.5", ("attacks/llse.py",), page="times.md"), []),
        (Row("li2012", ("Theorem 4",), "A claim.", "0.5", ("attacks/llse.py",), page="no.md"), ["no.md: no such page"]),
        (Row("li2012", ("Theorem 4",), "A claim.", "0.5", ("attacks/llse.py",), tests=("tests/test_docs.py::test_no",)), ["tests/test_docs.py::test_no: no such test"]),
        (Row("li2012", ("Theorem 4",), "A claim.", "0.5", ("attacks/llse.py",), (Selector("no", "Age", metric="rmse"),)), ["Age: there is no scenario no"]),
        (Row("li2012", ("Theorem 4",), "A claim.", "0.5", ("attacks/llse.py",), (Selector("quickstart", "Age"),)),
         ["Age: must name one of metric, expectation and column"]),
    ],
)  # fmt: skip
def test_a_row_that_is_not_complete_is_told(row: Row, told: list[str]) -> None:
    assert row.problems == [f"li2012, Theorem 4: {problem}" for problem in told]


def test_what_a_paper_numbers_and_no_row_has_is_told_and_so_is_a_scenario_that_none_uses() -> None:
    paper = Paper("li2012", "L", "li2012-fig3", {"Theorem": ("4", "5")}, (ROW,))
    assert paper.problems == [
        "li2012, Theorem 5: no row",
        "li2012: no row is measured by the scenario li2012-fig3",
    ]


def test_a_test_is_one_by_its_file_and_name() -> None:
    assert is_test("tests/test_fidelity.py::test_a_test_is_one_by_its_file_and_name")
    assert not is_test("tests/test_fidelity.py::test_a_test")
    assert not is_test("tests/test_no.py::test_a_test_is_one_by_its_file_and_name")


def cell(
    scheme: str, coalition: tuple[int, ...], value: float, replicate: int = 1, **fields: object
) -> Measurement:
    levels = (0.5,) * len(coalition)
    record = Measurement({"data.rows": 10}, scheme, "perfect", "llse", coalition, levels, replicate, "*", "rmse", value, 0.1, value - 0.2, value + 0.2,
                         0.5, "ok", None, "closed-form")  # fmt: skip
    return record._replace(**fields)


RESULT = AuditResult(
    scenario={},
    provenance=Provenance(
        versions={"auditor": "0.2.0"},
        seed=1,
        fingerprint="",
        platform="",
        start="2026-11-23T00:00:00",
        duration=1.0,
    ),
    data=[
        DataSummary(
            source="x",
            rows=10,
            attributes=[AttributeSummary(name="age", mean=50.06, variance=303.03)],
            correlation=[[1.0]],
        )
    ],
    expectations=[
        ExpectationRecord(
            expectation="exposure",
            where={"scheme": "a"},
            status="fails",
            observed=1.0,
            bound=2.0,
            why="too | much",
        )
    ],
    measurements=[
        cell("a", (1,), 0.4),
        cell("a", (1,), 0.6, replicate=2),
        cell("a", (1, 2), 0.3),
        cell("b", (1,), 0.2, attribute="age"),
    ],
)


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        # ± 1.96 · √(0.1² + 0.1²) / 2
        (Selector("x", "x", metric="rmse", scheme="a", coalition=[1]), "0.50 ±0.14 (theory 0.50)"),
        (Selector("x", "x", metric="rmse", scheme="a", coalition={"first": 2}), "0.30 ±0.20 (theory 0.50)"),
        (Selector("x", "x", metric="rmse", along="coalition"), "1 copy: 0.50 ±0.14 (theory 0.50); 2 copies: 0.30 ±0.20 (theory 0.50)"),
        (Selector("x", "x", metric="rmse", along="coalition", only=(2,)), "2 copies: 0.30 ±0.20 (theory 0.50)"),
        (Selector("x", "x", metric="rmse", coalition=[1], scheme="a", along="level"), "0.5: 0.50 ±0.14 (theory 0.50)"),
        (Selector("x", "x", metric="rmse", of="smallest"), "0.30 ±0.20 (theory 0.50), the smallest of 2"),
        (Selector("x", "x", metric="rmse", scheme="b", attribute="age", sweep={"data.rows": 10}), "0.20 ±0.20 (theory 0.50)"),
        (Selector("x", "x", expectation="exposure"), "fails: too \\| much"),
        (Selector("x", "x", column="age", figure="variance"), "303.03"),
    ],
)  # fmt: skip
def test_a_selector_finds_one_figure_or_one_line(selector: Selector, told: str) -> None:
    assert make_fidelity.measured(selector, RESULT) == told


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        (Selector("x", "x", metric="rmse", scheme="c"), "matches nothing"),
        (Selector("x", "x", metric="rmse", scheme="a", sweep={"data.rows": 20}), "matches nothing"),
        (Selector("x", "x", metric="rmse", scheme="a"), "matches 2 cells"),
        (Selector("x", "x", metric="rmse", along="scheme"), "2 cells, 1 of which differ in scheme"),
        (
            Selector("x", "x", metric="rmse", along="coalition", only=(1, 3)),
            "1 of 2 values of coalition are there",
        ),
        (Selector("x", "x", expectation="ranking"), "there is no expectation ranking"),
        (Selector("x", "x", column="income", figure="mean"), "there is no column income"),
    ],
)
def test_a_selector_that_finds_nothing_or_too_much_is_refused(
    selector: Selector, told: str
) -> None:
    with pytest.raises(make_fidelity.Missing, match=told):
        make_fidelity.measured(selector, RESULT)


def test_places_of_one_kind_stand_together() -> None:
    assert (
        make_fidelity.places(["Theorem 4", "Equation 14", "Equation 15", "Section 5.1, remark"])
        == "Theorem 4; Equations 14, 15; Section 5.1, remark"
    )
    assert make_fidelity.places(["Appendix A", "Appendix B"]) == "Appendices A, B"


def test_a_row_is_one_line_of_five_columns() -> None:
    row = Row("li2012", ("Theorem 4",), "a | b", "0.5", ("attacks/llse.py",), (Selector("x", "Age", metric="rmse", of="smallest"),), ("tests/a.py::test_b_c",),
              erratum="not 0.5", todo="later")  # fmt: skip
    told = {id(row.measured[0]): make_fidelity.measured(row.measured[0], RESULT)}
    page = make_fidelity.page(
        [Paper("li2012", "L", "", {}, (row,))], told, {"x": RESULT}, "1 of them, passed"
    )
    assert (
        "| Theorem 4 | a \\| b | 0.5<br>*Erratum*: not 0.5 | Age: **0.30 ±0.20 (theory 0.50), the smallest of 2** (`x`)<br>held: b c (`tests/a.py`)"
        "<br>*not measured*: later | `attacks/llse.py` |\n" in page
    )
    assert (
        "1 rows: 1 measured by 1 scenarios, 1 held by tests (1 of them, passed), 1 with an erratum, 1 not measured or not wholly."
        in page
    )
    assert "| `x` | 2026-11-23 | 0.2.0 | 1 of 1 do not hold |" in page


def test_a_run_that_was_stopped_is_not_whole(tmp_path: Path) -> None:
    stopped = RESULT.model_copy(update={"partial": Partial(finished=1, tasks=2, why="Ctrl-C")})
    stopped.save(tmp_path / "quickstart")
    assert make_fidelity.Results(tmp_path).fill([Selector("quickstart", "Age", metric="rmse")])[
        2
    ] == ["quickstart: 1 of 2 tasks are finished"]


def test_a_scenario_that_was_not_run_is_missing(tmp_path: Path) -> None:
    texts, runs, missing = make_fidelity.Results(tmp_path).fill(
        [Selector("quickstart", "Age", metric="rmse")]
    )
    assert (texts, runs, missing) == ({}, {}, [f"quickstart: not in {tmp_path}"])


def test_nothing_is_written_where_something_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    assert make_fidelity.main([str(tmp_path), "--no-tests", "--write", str(page)]) == 1
    assert "li2012-fig2: not in" in capsys.readouterr().err
    assert not page.exists()
