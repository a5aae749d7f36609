"""What eigenvalues alone say of the filters' errors, beside the errors measured: on the right side in every cell of a sweep."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import auditor
from auditor.audit.attempts import linear
from auditor.plugin import Affine, LinearAttack, Moments, View
from auditor.registry import lent

SCENARIO: dict[str, Any] = {
    "seed": 17,
    "data": {
        "source": "gaussian",
        "rows": 600,
        "spectrum": {"large": 400, "count": 2, "small": 10, "attributes": 10},
        "mean": 30.0,
    },
    "schemes": [
        {"name": "independent", "id": "white", "levels": [1.0, 2.0], "noise": {"variance": 25}},
        {"name": "corner-wave", "id": "like the data", "levels": [0.1, 0.4]},
        {"name": "linearly-dependent", "levels": [0.1, 0.4]},
    ],
    "knowledge": ["perfect", {"estimated": {"rows": 200}}, {"known-records": 30}],
    "coalitions": ["singles", "all"],
    "attacks": [
        "spectral-filter",
        "svd-filter",
        {"name": "svd-filter", "id": "shrunk", "shrinkage": "optimal"},
    ],
    "measures": ["error-bounds"],
    "sweep": {"schemes[0].noise.variance": [1, 25, 400], "data.spectrum.count": [1, 10]},
}


@lru_cache(maxsize=1)
def cells() -> dict[tuple[Any, ...], dict[str, float]]:
    found: dict[tuple[Any, ...], dict[str, float]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear, "REDRAWS", 2)  # nobody looks at error bars here
        measurements = auditor.run(SCENARIO).measurements
    for r in measurements:
        if (
            r.attribute == "*"
            and r.metric in ("normalized_error", "error_floor", "error_ceiling")
            and r.attack is not None
        ):
            assert r.status == "ok"
            key = (*r.sweep.values(), r.scheme, r.attack, r.knowledge, r.coalition)
            found.setdefault(key, {})[r.metric] = r.value or 0.0
    return found


def test_every_cell_of_a_sweep_is_between_its_bounds() -> None:
    """The inequalities are sure, not likely: no standard error is allowed for, only rounding."""
    bounded = {key: cell for key, cell in cells().items() if "error_floor" in cell}
    # points, schemes, filters that do not shrink, states of knowledge, coalitions
    assert len(bounded) == 6 * 3 * 2 * 3 * 3
    for key, cell in bounded.items():
        assert cell["error_floor"] <= cell["normalized_error"] + 1e-9, key
        assert cell["normalized_error"] <= cell.get("error_ceiling", np.inf) + 1e-9, key


def test_there_are_none_where_no_theorem_applies() -> None:
    """Of a filter that shrinks there is no bound, and no ceiling where it learnt from other rows than those it is judged on."""
    for key, cell in cells().items():
        assert ("error_floor" in cell) == ("shrunk" not in key)
        assert ("error_ceiling" in cell) == ("shrunk" not in key and "perfect" in key)


def test_the_bounds_are_not_empty_words() -> None:
    """White noise below the large eigenvalues: the range is narrow about the error. Where everything is kept it is the error itself."""
    cell = cells()[25, 1, "white", "svd-filter", "perfect", (1,)]
    assert 0.75 * cell["normalized_error"] < cell["error_floor"]
    assert cell["error_ceiling"] < 1.5 * cell["normalized_error"]
    all_kept = cells()[1, 10, "white", "svd-filter", "perfect", (1,)]
    assert all_kept["error_floor"] > 0.95 * all_kept["normalized_error"]
    assert all_kept["error_ceiling"] < 1.05 * all_kept["normalized_error"]


class Claims(LinearAttack):
    """The copy as it is, and whatever is claimed of its error."""

    name = "claims"
    claimed: Any = (0.0, 1.0)

    def affine(self, view: View) -> Affine:
        """Return the first copy."""
        return Affine(np.eye(view.width, view.width * len(view.copies)), np.zeros(view.width))

    def error_bounds(self, view: View, joint: Moments) -> Any:
        """Return the claim."""
        return self.claimed


@pytest.mark.parametrize("claimed", [(2.0, 1.0), (np.nan, 1.0), (0.0, 1.0, 2.0), (1j, 2.0)])
def test_what_is_no_range_is_refused_and_costs_the_attack_its_cell(
    claimed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Claims, "claimed", claimed)
    with lent("attack", Claims):
        scenario = SCENARIO | {
            "attacks": ["claims", "ndr"],
            "sweep": {},
            "schemes": SCENARIO["schemes"][:1],
        }
        found = {
            r.attack: r.status
            for r in auditor.run(
                scenario | {"knowledge": ["perfect"], "coalitions": [[1]]}
            ).measurements
            if r.attack
        }
    assert found == {"claims": "failed", "ndr": "ok"}
