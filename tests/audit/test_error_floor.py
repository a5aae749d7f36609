"""The least error there can be, beside errors that were measured: on the right side in every cell of a sweep, and absent where it is not known."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import auditor
from auditor import registry
from auditor.audit.attempts import linear, opened
from auditor.registry import lent
from auditor.results.records import Measurement

Cell = tuple[Any, ...]

NORMAL: dict[str, Any] = {
    "seed": 8,
    "data": {
        "source": "gaussian",
        "rows": 1500,
        "spectrum": {"large": 9.0, "count": 1, "small": 0.5, "attributes": 3},
        "mean": 5.0,
    },
    "schemes": [
        {"name": "corner-wave", "levels": [0.1, 0.5, 1.0]},
        {"name": "independent", "levels": [0.1, 0.5, 1.0]},
        {"name": "laplace", "levels": [0.1, 0.5, 1.0]},
        {"name": "laplace-multilevel", "levels": [0.1, 0.5, 1.0]},
        {"name": "linearly-dependent", "levels": [0.1, 0.5, 1.0]},
    ],
    "coalitions": ["singles", "prefixes"],
    "attacks": ["llse", "udr"],
    "measures": ["error-bounds"],
    "sweep": {
        "data.spectrum.large": [0.6, 9.0],
        "schemes[1].levels": [[0.1, 0.5, 1.0], [2.0, 5.0, 9.0]],
    },
}
SHAPED: dict[str, Any] = NORMAL | {
    "data": {"source": "components", "rows": 600, "shapes": ["exponential", "uniform", "bimodal"]},
    "schemes": NORMAL["schemes"][:4],
    "attacks": ["llse", {"name": "udr", "prior": "reconstructed"}],
    "sweep": {"schemes[1].levels": [[0.1, 0.5, 1.0], [2.0, 5.0, 9.0]]},
    "coalitions": [[1], [1, 2]],
}


@lru_cache(maxsize=2)
def cells(kind: str) -> list[tuple[Measurement, float]]:
    """Return every measured normalized error beside the least that its coalition's copies leave possible."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear, "REDRAWS", 2)  # error bars of what is learnt are not looked at
        patch.setattr(opened, "ROW_REDRAWS", 2)
        found = auditor.run({"normal": NORMAL, "shaped": SHAPED}[kind]).measurements
    floors = {key(r): r.value for r in found if r.metric == "error_floor" and r.attack is None}
    errors = [r for r in found if r.metric == "normalized_error"]
    assert errors
    assert {key(r) for r in errors} == set(floors)
    return [(r, floors[key(r)] or 0.0) for r in errors]


def key(record: Measurement) -> Cell:
    return (str(record.sweep), record.scheme, record.coalition, record.attribute)


def test_no_cell_of_a_sweep_is_below_its_bound_by_more_than_chance() -> None:
    """Levels × spectrum × copies, by attribute and together: five standard errors of normal errors in 1,500 records, and rounding."""
    assert len(cells("normal")) == 4 * 5 * 2 * 5 * 4
    for record, floor in cells("normal"):
        assert record.value is not None
        assert record.value > floor * (1 - 5 * np.sqrt(2 / 1500)) - 1e-9, record


def test_of_records_that_are_not_normal_every_cell_is_above_without_allowance() -> None:
    """What no attack reaches is so far below what these do that chance need not be allowed for."""
    assert len(cells("shaped")) == 2 * 4 * 2 * 2 * 4
    assert all(
        record.value is not None and record.value > floor for record, floor in cells("shaped")
    )


def test_for_normal_records_and_noise_the_best_linear_attack_meets_it_exactly() -> None:
    met = 0
    for record, floor in cells("normal"):
        if record.attack == "llse" and not record.scheme.startswith("laplace"):
            assert record.theory == pytest.approx(floor, rel=1e-7, abs=1e-7)
            met += 1
        elif record.theory is not None:
            assert record.theory >= floor * (1 - 1e-7) - 1e-9
    assert met == 4 * 3 * 5 * 4


def test_it_is_no_empty_word_elsewhere() -> None:
    """All attributes together: within a factor of 2.5 of the better of two attacks, from copies alone and together; half of them within 1.8."""
    best: dict[Cell, tuple[float, float]] = {}
    for record, floor in cells("shaped"):
        if record.attribute == "*":
            assert record.value is not None
            best[key(record)] = floor, min(record.value, best.get(key(record), (0.0, np.inf))[1])
    ratios = {cell: value / floor for cell, (floor, value) in best.items()}
    assert max(ratios.values()) < 2.5, ratios
    assert np.median(list(ratios.values())) < 1.8


# -- where it is not known
# ---------------------------------------------------------------------------------------------


def floors(data: Any, **more: Any) -> list[Measurement]:
    scenario = {
        "seed": 2,
        "data": data,
        "schemes": [{"name": "corner-wave", "levels": [0.5]}],
        "attacks": ["ndr"],
        "measures": ["error-bounds"],
    }
    return [r for r in auditor.run(scenario | more).measurements if r.metric == "error_floor"]


GAUSSIAN = {"source": "gaussian", "rows": 200, "covariance": [[4.0, 1.0], [1.0, 2.0]]}


def absent(found: list[Measurement], why: str) -> bool:
    return [(r.status, r.value) for r in found] == [("not-applicable", None)] and why in str(
        found[0].reason
    )


def test_of_records_whose_law_nobody_declares_there_is_none(tmp_path: Any) -> None:
    rows = np.random.default_rng(1).normal(size=(50, 2))
    np.savetxt(tmp_path / "t.csv", rows, delimiter=",", header="a,b", comments="")
    why = "nobody declares the law"
    assert absent(floors(str(tmp_path / "t.csv")), why)  # normal, as it happens; nobody knows
    assert absent(floors({"source": "inline", "values": {"a": rows[:, 0].tolist()}}), why)
    assert absent(floors({"source": "iris"}), why)
    # a record's neighbours tell of it
    assert absent(floors({"source": "autoregressive", "rows": 100}), why)
    assert absent(floors(GAUSSIAN | {"order": "x1"}), why)  # ranks tell of what they were made from
    mixed = {
        "source": "components",
        "rows": 100,
        "shapes": ["normal", "uniform"],
        "mixing": [[1, 1], [1, -1]],
    }
    assert absent(floors(mixed), why)


def test_of_noise_whose_law_is_not_known_record_by_record_there_is_none() -> None:
    assert absent(floors(GAUSSIAN, schemes=[{"name": "rotation"}]), "law of the noise")
    serial = [{"name": "corner-wave", "levels": [0.5], "serial": [0.5]}]
    assert absent(floors(GAUSSIAN, schemes=serial), "from record to record")


def test_a_source_that_fails_to_state_a_law_loses_the_figure_and_no_other() -> None:
    class Broken(registry.get("source", "intervals")):  # type: ignore[misc]
        """States what is no law."""

        name = "broken"

        def law(self) -> Any:
            """Return a number."""
            return 1.0

    with lent("source", Broken):
        found = floors({"source": "broken", "rows": 100})
    assert [r.status for r in found] == ["failed"]
    assert "RecordLaw" in str(found[0].reason)
