import re
from functools import cache
from pathlib import Path

from docs.evidence import make_fidelity
from docs.evidence.fidelity_rows import Paper, Row, Selector, papers

PAGE = Path(__file__).parents[1] / "docs/evidence/fidelity.md"
declared = cache(papers)


def test_every_numbered_thing_has_a_row_and_every_row_leads_somewhere():
    for paper in declared():
        assert paper.problems == []


def test_the_page_was_written_from_the_list_as_it_is():
    page = PAGE.read_text(encoding="utf-8")
    for row in (row for paper in declared() for row in paper.rows):
        line = f"\n| {make_fidelity.places(row.at)} | {make_fidelity.safe(row.claim)} |"
        assert line in page, row.name
    assert not re.search(r"\|[ ]*\|", page)


ROW = Row(
    "li2012", ("Theorem 4",), "A claim.", "0.5", ("attacks/llse.py",),
    (Selector("quickstart", "Age", metric="rmse"),),
)  # fmt: skip


def test_what_a_paper_numbers_and_no_row_has_is_told_and_so_is_a_scenario_that_none_uses():
    paper = Paper("li2012", "L", "li2012-fig3", {"Theorem": ("4", "5")}, (ROW,))
    assert paper.problems == [
        "li2012, Theorem 5: no row",
        "li2012: no row is measured by the scenario li2012-fig3",
    ]
