"""The table of guarantees."""

import pytest

import auditor
from auditor_reports.audit_document import guarantees
from auditor_reports.document import Paragraph, Table
from auditor_reports.reading import Reading
from auditor_reports.verdict import verdicts
from tests.audited import cells

DATA = {"source": "gaussian", "covariance": [[1.0, 0.5], [0.5, 2.0]], "rows": 200}
BOUNDS = {"x1": [-5, 5], "x2": [-8, 8]}


def audited(**data):
    schemes = [{"name": name, "levels": [50, 100], **more} for name, more in (
        ("corner-wave", {}), ("linearly-dependent", {}), ("laplace", {"noise": {"variance": 9.0}})
    )]  # fmt: skip
    return auditor.run({
        "data": DATA | data, "schemes": schemes, "attacks": ["llse"], "coalitions": ["singles", "all"], "replicates": 2,
        "measures": [{"empirical-epsilon": {"trials": 2000}}],
    })  # fmt: skip


@pytest.fixture(scope="module")
def bounded():
    return audited(bounds=BOUNDS)


def test_it_has_a_row_for_each_coalition_with_every_figure(bounded):
    lead, table, *why = guarantees(Reading(bounded))
    assert isinstance(lead, Paragraph)
    assert isinstance(table, Table)
    assert "δ = 1e-05" in str(lead.text)
    rows = {(row.group, row.name): row.cells for row in table.rows}
    assert len(rows) == 9
    best, both = rows["corner-wave", "{1}"], rows["corner-wave", "{1, 2}"]
    assert best == both
    assert best[1] == "∞"
    assert best[3].startswith("≥ ")
    assert rows["linearly-dependent", "{1, 2}"][:3] == ("∞",) * 3
    assert rows["laplace", "{1}"][0].startswith("≤ ")
    assert not rows["laplace", "{1}"][1].startswith("≤ ")
    assert any("free of noise" in str(block) for block in why)


def test_a_verdict_names_a_guarantee_that_pooling_weakens_though_no_error_shows_it():
    schemes = [
        {"name": name, "levels": [1000, 1000], "noise": {"variance": 9.0}}
        for name in ("laplace", "laplace-multilevel")
    ]
    result = auditor.run({
        "data": DATA | {"bounds": BOUNDS}, "schemes": schemes, "attacks": ["llse"],
        "coalitions": ["singles", "all"],
    })  # fmt: skip
    fresh, nested = verdicts(Reading(result))
    assert (fresh.finding, nested.finding) == ("gain", "no-gain")
    found = {
        r.coalition: r.value
        for r in cells(result, metric="epsilon", scheme="laplace", attribute="*")
    }
    assert found[1, 2] == pytest.approx(2 * found[1,])
    assert fresh.sentence.startswith("Pooling both copies weakens what they guarantee: ε ")


def test_without_bounds_there_is_none():
    assert guarantees(Reading(audited())) == []
