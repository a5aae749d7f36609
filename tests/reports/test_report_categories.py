from __future__ import annotations

from typing import Any

import pytest
import report_cases
from report_cases import measurement

from auditor.results.model import AuditResult
from auditor.results.records import Measurement
from auditor_reports.figures.reading import ERROR, Reading
from auditor_reports.wording.verdict import verdict

BLIND = 0.1
ACCURACY = {(1,): 0.5, (2,): 0.3, (1, 2): 0.8}
TRUTH = {(1,): 0.4, (2,): 0.2, (1, 2): 0.7}
GAIN = 1 - 0.3 / 0.6


def guessed(
    scheme: str,
    pooled: dict[tuple[int, ...], tuple[float, float]],
    errors: dict[tuple[int, ...], float] | None = None,
) -> list[Measurement]:
    records = []
    best = max(truth for coalition, (_, truth) in pooled.items() if len(coalition) == 1)
    for coalition, (right, truth) in pooled.items():
        key: dict[str, Any] = {
            "scheme": scheme, "knowledge": "perfect", "attack": "posterior",
            "coalition": coalition, "levels": (0.5,) * len(coalition),
        }  # fmt: skip
        told = {
            "accuracy": right, "accuracy_gain": right - BLIND,
            "reconstruction_probability": truth, "mutual_information": 1.0,
        }  # fmt: skip
        told |= {ERROR: errors[coalition]} if errors else {}
        told |= {"collusion_gain": 1 - (1 - truth) / (1 - best)} if len(coalition) > 1 else {}
        for metric, value in told.items():
            records.append(
                measurement(**key, metric=metric, **report_cases.with_bar(value, 0.001, None))
            )
    return records


def audit(quickstart: AuditResult, records: list[Measurement], **updates: Any) -> AuditResult:
    blank = {"measurements": records, "distributions": [], "releases": [], "expectations": []}
    return quickstart.model_copy(update=blank | updates)


@pytest.fixture
def nominal(quickstart: AuditResult) -> AuditResult:
    fresh = {coalition: (ACCURACY[coalition], TRUTH[coalition]) for coalition in ACCURACY}
    multilevel = {coalition: (0.5, 0.4) if 1 in coalition else (0.3, 0.2) for coalition in ACCURACY}
    return audit(quickstart, [*guessed("fresh", fresh), *guessed("multilevel", multilevel)])


def test_pooling_categories_is_told_by_right_guesses(nominal: AuditResult) -> None:
    found = verdict(Reading(nominal), "fresh")
    assert found.finding == "gain"
    assert found.gain is not None
    assert found.gain.value == pytest.approx(GAIN)
    assert found.sentence == (
        "Pooling both copies, the best guess is right for 80.0 ± 0.2 % of the records instead of 50.0 ± 0.2 % from the most revealing single copy "
        "(without any copy: 10 %), and the probability given to a record's true value rises from 40.0 ± 0.2 % to 70.0 ± 0.2 %."
    )
    assert "variance" not in found.sentence
    assert found.severity is not None
    assert found.severity.word == "severe"  # 2 in 9 of the wrong guesses are left
