"""The error floor against measured errors."""

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import auditor
from auditor.audit.attempts import linear, opened

Cell = tuple[Any, ...]

NORMAL = {
    "seed": 8, "data": {"source": "gaussian", "rows": 1500, "spectrum": {"large": 9.0, "count": 1, "small": 0.5, "attributes": 3}, "mean": 5.0},
    "schemes": [{"name": name, "levels": [0.1, 0.5, 1.0]} for name in
                ("corner-wave", "independent", "laplace", "laplace-multilevel", "linearly-dependent")],
    "coalitions": ["singles", "prefixes"], "attacks": ["llse", "udr"], "measures": ["error-bounds"],
    "sweep": {"data.spectrum.large": [0.6, 9.0], "schemes[1].levels": [[0.1, 0.5, 1.0], [2.0, 5.0, 9.0]]},
}  # fmt: skip
SHAPED = NORMAL | {
    "data": {"source": "components", "rows": 600, "shapes": ["exponential", "uniform", "bimodal"]},
    "schemes": NORMAL["schemes"][:4],
    "attacks": ["llse", {"name": "udr", "prior": "reconstructed"}],
    "sweep": {"schemes[1].levels": [[0.1, 0.5, 1.0], [2.0, 5.0, 9.0]]},
    "coalitions": [[1], [1, 2]],
}


@lru_cache(maxsize=2)
def cells(kind):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear, "REDRAWS", 2)  # error bars of what is learnt are not looked at
        patch.setattr(opened, "ROW_REDRAWS", 2)
        found = auditor.run({"normal": NORMAL, "shaped": SHAPED}[kind]).measurements
    floors = {key(r): r.value for r in found if r.metric == "error_floor" and r.attack is None}
    errors = [r for r in found if r.metric == "normalized_error"]
    assert errors
    assert {key(r) for r in errors} == set(floors)
    return [(r, floors[key(r)] or 0.0) for r in errors]


def key(record):
    return (str(record.sweep), record.scheme, record.coalition, record.attribute)


def test_no_cell_of_a_sweep_is_below_its_bound_by_more_than_chance():
    """Levels × spectrum × copies, by attribute and together."""
    assert len(cells("normal")) == 4 * 5 * 2 * 5 * 4
    for record, floor in cells("normal"):
        assert record.value is not None
        assert record.value > floor * (1 - 5 * np.sqrt(2 / 1500)) - 1e-9, record


def test_of_records_that_are_not_normal_every_cell_is_above_without_allowance():
    assert len(cells("shaped")) == 2 * 4 * 2 * 2 * 4
    assert all(
        record.value is not None and record.value > floor for record, floor in cells("shaped")
    )


def test_for_normal_records_and_noise_the_best_linear_attack_meets_it_exactly():
    met = 0
    for record, floor in cells("normal"):
        if record.attack == "llse" and not record.scheme.startswith("laplace"):
            assert record.theory == pytest.approx(floor, rel=1e-7, abs=1e-7)
            met += 1
        elif record.theory is not None:
            assert record.theory >= floor * (1 - 1e-7) - 1e-9
    assert met == 4 * 3 * 5 * 4


def floors(data, **more):
    scenario = {
        "seed": 2,
        "data": data,
        "schemes": [{"name": "corner-wave", "levels": [0.5]}],
        "attacks": ["ndr"],
        "measures": ["error-bounds"],
    }
    return [r for r in auditor.run(scenario | more).measurements if r.metric == "error_floor"]


GAUSSIAN = {"source": "gaussian", "rows": 200, "covariance": [[4.0, 1.0], [1.0, 2.0]]}


def absent(found, why):
    return [(r.status, r.value) for r in found] == [("not-applicable", None)] and why in str(
        found[0].reason
    )


def test_of_records_whose_law_nobody_declares_there_is_none(tmp_path):
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


def test_of_noise_whose_law_is_not_known_record_by_record_there_is_none():
    assert absent(floors(GAUSSIAN, schemes=[{"name": "rotation"}]), "law of the noise")
    serial = [{"name": "corner-wave", "levels": [0.5], "serial": [0.5]}]
    assert absent(floors(GAUSSIAN, schemes=serial), "from record to record")
