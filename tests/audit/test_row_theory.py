"""Theory that needs the true rows."""

import numpy as np
import pytest

import auditor
from auditor.audit.numeric.moment_pass import Originals
from auditor.data.table import Table
from auditor.numerics.blocks import row_blocks

NONE = np.empty(0, dtype=np.intp)
SCENARIO = {
    "schema": 1, "seed": 3,
    "data": {"source": "components", "shapes": ["exponential", "uniform", "laplace"], "rows": 3000, "mean": 2, "ratio": 1.2},
    "schemes": ["rotation", {"name": "random-projection", "dimensions": 4}],
    "knowledge": [{"known-records": 30}, {"known-sample": 800}, {"unmatched-records": 800}],
    # so that nothing is drawn again for error bars
    "coalitions": ["all"], "attacks": ["ica", {"id": "guo-wu", "name": "ica", "components": "latent"}], "replicates": 5,
}  # fmt: skip


def numbered(rows, width=2):
    return Table(
        tuple(f"x{k}" for k in range(width)),
        np.arange(rows * width, dtype=float).reshape(rows, width),
        source="array",
    )


def test_originals_cannot_be_written_to():
    for without in (NONE, np.array([3])):
        x = next(iter(Originals(numbered(50), without)))
        with pytest.raises(ValueError, match="read-only"):
            x[0] = 0.0


def test_the_original_is_shown_after_every_estimate_has_been_made(monkeypatch):
    from auditor_attacks import ica

    calls = []
    rows, row_theory = ica.Unmixed.rows, ica.Unmixed.row_theory
    monkeypatch.setattr(
        ica.Unmixed, "rows", lambda self, copies: calls.append("rows") or rows(self, copies)
    )
    monkeypatch.setattr(
        ica.Unmixed,
        "row_theory",
        lambda self, seen: calls.append("row_theory") or row_theory(self, seen),
    )
    document = SCENARIO | {"data": SCENARIO["data"] | {"rows": 200_000}, "attacks": ["ica"], "knowledge": [{"known-records": 30}],
                           "schemes": ["rotation"], "replicates": 1}  # fmt: skip
    auditor.run(document)
    assert calls[: calls.index("row_theory")].count("rows") == len(row_blocks(200_000, 3))
