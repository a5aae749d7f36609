from __future__ import annotations

import re
from pathlib import Path

import pytest

from auditor.results.model import AuditResult, Provenance
from auditor.results.records import AttributeSummary, DataSummary, ExpectationRecord, Measurement
from docs.evidence import make_fidelity
from docs.evidence.fidelity_rows import Paper, Row, Selector, papers

PAGE = Path(__file__).parents[1] / "docs/evidence/fidelity.md"
DECLARED = papers()


def test_every_numbered_thing_has_a_row_and_every_row_leads_somewhere():
    for paper in DECLARED:
        assert paper.problems == []


def test_the_page_was_written_from_the_list_as_it_is():
    for paper in DECLARED:
        lines = [
            line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")
        ]
        for row in paper.rows:
            assert any(
                line.startswith(
                    f"| {make_fidelity.places(row.at)} | {make_fidelity.safe(row.claim)} |"
                )
                for line in lines
            ), row.name
        assert not [line for line in lines if re.search(r"\|\s*\|", line)]


ROW = Row(
    "li2012",
    ("Theorem 4",),
    "A claim.",
    "0.5",
    ("attacks/llse.py",),
    (Selector("quickstart", "Age", metric="rmse"),),
)


def test_a_row_that_is_not_complete_is_told():
    for row, told in [
        (ROW, []),
        (
            Row("li2012", ("Theorem 4",), "", "0.5", ("attacks/llse.py",), todo="nobody did"),
            ["claim is empty"],
        ),
        (
            Row("li2012", ("Theorem 4",), "A claim.", "0.5", ("attacks/llse.py",)),
            ["nothing measures it, and no todo says why"],
        ),
        (
            Row("li2012", ("Theorem 4",), "A claim.", "0.5", ("attacks/no.py",), todo="later"),
            ["attacks/no.py: no such file"],
        ),
        (
            Row(
                "li2012",
                ("Theorem 4",),
                "A claim.",
                "0.5",
                ("attacks/llse.py",),
                tests=("tests/test_docs.py::test_no",),
            ),
            ["tests/test_docs.py::test_no: no such test"],
        ),
        (
            Row(
                "li2012",
                ("Theorem 4",),
                "A claim.",
                "0.5",
                ("attacks/llse.py",),
                (Selector("no", "Age", metric="rmse"),),
            ),
            ["Age: there is no scenario no"],
        ),
    ]:
        assert row.problems == [f"li2012, Theorem 4: {problem}" for problem in told]


def test_what_a_paper_numbers_and_no_row_has_is_told_and_so_is_a_scenario_that_none_uses() -> None:
    paper = Paper("li2012", "L", "li2012-fig3", {"Theorem": ("4", "5")}, (ROW,))
    assert paper.problems == [
        "li2012, Theorem 5: no row",
        "li2012: no row is measured by the scenario li2012-fig3",
    ]


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


def test_a_selector_finds_one_figure_or_one_line():
    for selector, told in [
        (Selector("x", "x", metric="rmse", scheme="a", coalition=[1]), "0.50 ±0.14 (theory 0.50)"),
        (
            Selector("x", "x", metric="rmse", along="coalition"),
            "1 copy: 0.50 ±0.14 (theory 0.50); 2 copies: 0.30 ±0.20 (theory 0.50)",
        ),
        (
            Selector("x", "x", metric="rmse", along="coalition", only=(2,)),
            "2 copies: 0.30 ±0.20 (theory 0.50)",
        ),
        (
            Selector("x", "x", metric="rmse", of="smallest"),
            "0.30 ±0.20 (theory 0.50), the smallest of 2",
        ),
        (Selector("x", "x", expectation="exposure"), "fails: too \\| much"),
        (Selector("x", "x", column="age", figure="variance"), "303.03"),
    ]:
        assert make_fidelity.measured(selector, RESULT) == told


def test_a_selector_that_finds_nothing_or_too_much_is_refused():
    for selector, told in [
        (Selector("x", "x", metric="rmse", scheme="c"), "matches nothing"),
        (Selector("x", "x", metric="rmse", scheme="a"), "matches 2 cells"),
        (
            Selector("x", "x", metric="rmse", along="coalition", only=(1, 3)),
            "1 of 2 values of coalition are there",
        ),
        (Selector("x", "x", expectation="ranking"), "there is no expectation ranking"),
    ]:
        with pytest.raises(make_fidelity.Missing, match=told):
            make_fidelity.measured(selector, RESULT)
