from __future__ import annotations

import pytest

import auditor
from auditor import registry
from auditor.results.model import AuditResult
from auditor_reports.figures.matrix import MatrixRow, matrix
from auditor_reports.figures.reading import Reading
from auditor_reports.wording.detail import facts


@pytest.fixture(scope="module")
def bounded() -> AuditResult:
    return auditor.run({
        "seed": 4, "data": {"source": "gaussian", "rows": 400, "covariance": [[4.0, 0.0], [0.0, 4.0]], "exact": True},
        "schemes": [{"name": "independent", "id": "a<b>", "levels": [1.0, 3.0], "noise": {"variance": 4.0}}, {"name": "rotation"}],
        "knowledge": ["perfect", {"known-attributes": ["x1"]}], "coalitions": ["singles", "all"],
        "attacks": ["llse", "spectral-filter", "partial-disclosure"], "measures": ["error-bounds"],
    })  # fmt: skip


def proved(reading: Reading, row: MatrixRow, place: int) -> dict[str, str]:
    found = facts(reading, row.knowledge, row.cells[place])
    return {one.term: one.text for one in found if one.term.startswith(("From copies", "By a"))}


def test_a_cell_s_detail_has_what_is_proved_of_it(bounded: AuditResult) -> None:
    reading = Reading(bounded)
    found = {(row.attack, row.knowledge): proved(reading, row, 0) for row in matrix(reading)}
    everybody, own = "From copies alone no attack leaves less than", "By a theorem on this attack"
    assert found["llse", "perfect"] == {everybody: "0.429"}
    assert set(found["spectral-filter", "perfect"]) == {everybody, own}
    low, to, high = found["spectral-filter", "perfect"][own].split()
    assert to == "to"
    assert float(low) <= float(high)
    # it sees more than the copies
    assert everybody not in found["partial-disclosure", "known-attributes(x1)"]
    assert not any(proved(reading, row, 1) for row in matrix(reading))


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_every_report_says_so(bounded: AuditResult, quickstart: AuditResult, form: str) -> None:
    renderer = registry.get("renderer", form)()
    said = " ".join(renderer.render([bounded]).split()).replace("\u00a0", " ")
    assert (
        "Proved: from copies alone, no attack leaves less of the variance unknown on average than 42.9 %"
        in said
    )
    assert "42.9 % from both copies" in said
    assert "From copies alone no attack leaves less than" in said
    assert form != "html" or "a<b>" not in said.replace("<bdi>", "")
    assert "Proved:" not in renderer.render([quickstart])
