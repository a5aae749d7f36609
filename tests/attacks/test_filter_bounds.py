"""Error bounds of filters from eigenvalues."""

from collections import defaultdict

import numpy as np

import auditor
from auditor.audit.attempts import linear

SCENARIO = {
    "seed": 17, "data": {"source": "gaussian", "rows": 600, "spectrum": {"large": 400, "count": 2, "small": 10, "attributes": 10}, "mean": 30.0},
    "schemes": [
        {"name": "independent", "id": "white", "levels": [1.0, 2.0], "noise": {"variance": 25}},
        {"name": "corner-wave", "id": "like the data", "levels": [0.1, 0.4]},
        {"name": "linearly-dependent", "levels": [0.1, 0.4]},
    ],
    "knowledge": ["perfect", {"known-records": 30}], "coalitions": ["singles", "all"], "measures": ["error-bounds"],
    "attacks": ["spectral-filter", "svd-filter", {"name": "svd-filter", "id": "shrunk", "shrinkage": "optimal"}],
    "sweep": {"schemes[0].noise.variance": [1, 400], "data.spectrum.count": [1, 10]},
}  # fmt: skip


def test_every_cell_of_a_sweep_is_between_its_bounds(monkeypatch):
    monkeypatch.setattr(linear, "REDRAWS", 2)  # error bars are not tested here
    cells = defaultdict(dict)
    for r in auditor.run(SCENARIO).measurements:
        if r.attribute == "*" and r.attack is not None:
            assert r.status == "ok"
            key = (*r.sweep.values(), r.scheme, r.attack, r.knowledge, r.coalition)
            cells[key][r.metric] = r.value
    bounded = {key: cell for key, cell in cells.items() if "error_floor" in cell}
    # points, schemes, filters that do not shrink, states of knowledge, coalitions
    assert len(bounded) == 4 * 3 * 2 * 2 * 3
    for key, cell in bounded.items():
        assert cell["error_floor"] <= cell["normalized_error"] + 1e-9, key
        assert cell["normalized_error"] <= cell.get("error_ceiling", np.inf) + 1e-9, key
