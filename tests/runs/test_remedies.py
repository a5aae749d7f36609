import numpy as np
import pytest

import auditor
from auditor.results.model import AuditResult
from auditor.schemes.replacement.law import left_by_retention


def audit(schemes, attacks, coalitions=("subsets",), **data):
    table = {"source": "cps", "columns": ["age", "salary"], "rows": 300} | data
    return auditor.run({
        "data": table, "schemes": schemes, "attacks": attacks, "coalitions": list(coalitions),
        "seed": 1,
    })  # fmt: skip


def remedies(result):
    return {release.scheme: release.remedy for release in result.releases}


def test_the_best_linear_attack_is_answered_exactly():
    found = remedies(
        audit(
            [{"name": name, "levels": [0.05, 0.1]} for name in ("corner-wave", "correlated")],
            ["llse"],
        )
    )
    assert found["corner-wave"].levels == [1.0, 2.0]  # σ²/(1 + σ²) is a half at 1
    assert found["corner-wave"].lossless is None
    assert found["correlated"].levels == [1.5, 3.0]  # 1/v = 1/1.5 + 1/3
    assert found["correlated"].lossless == 1.0
    assert not found["correlated"].estimated


def test_levels_that_a_remedy_names_leave_half():
    exposed = audit([{"name": "independent", "levels": [0.05, 0.2]}], ["llse"])
    mended = audit(
        [{"name": "independent", "levels": remedies(exposed)["independent"].levels}],
        ["llse"],
        ["all"],
    )
    theory = [
        one.theory
        for one in mended.measurements
        if one.metric == "normalized_error" and one.attribute != "*"
    ]
    assert min(theory) == pytest.approx(0.5, abs=0.005)


def test_of_retention_exact_bayes_is_answered_exactly_and_survives_saving(here):
    schemes = [{"name": name, "levels": [0.9, 0.8]} for name in ("uniform-multilevel", "uniform")]
    result = auditor.run({
        "data": {"source": "cps", "columns": ["salary"], "bin": {"salary": {"quantile": 4}}, "rows": 300}, "schemes": schemes,
        "attacks": ["posterior"], "coalitions": ["all"], "seed": 1,
    })  # fmt: skip
    result.save(here / "saved")
    found = remedies(AuditResult.load(here / "saved"))
    assert found == remedies(result)
    assert left_by_retention(
        np.full(4, 0.25), found["uniform-multilevel"].levels[0]
    ) == pytest.approx(0.5, abs=0.01)
    assert found["uniform"].levels == []
    assert found["uniform"].lossless == found["uniform-multilevel"].levels[0]


def test_tables_too_small_to_be_told_of_have_no_remedy():
    result = auditor.run({
        "data": {"source": "cps", "columns": ["age"], "rows": 9}, "schemes": [{"name": "corner-wave", "levels": [0.01]}], "attacks": ["llse"],
        "seed": 1,
    })  # fmt: skip
    assert remedies(result)["corner-wave"] is None
