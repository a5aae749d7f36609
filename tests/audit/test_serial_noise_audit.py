"""An audit of noise that follows on from record to record: the law it is held to, its error bars, and the adversaries it is shown to."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.data.sources.series import autoregression
from auditor.errors import AuditorError


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    X = pd.DataFrame(
        autoregression(np.random.default_rng(0).normal(size=(4000, 2)), 0.9), columns=["a", "b"]
    )
    X.to_csv(folder / "x.csv", index=False)
    for name, serial in (("follows", "data"), ("afresh", "none")):
        auditor.perturb(X, "corner-wave", [0.5], seed=1, serial=serial).copies[0].to_csv(
            folder / f"{name}.csv", index=False
        )
    return folder


@pytest.mark.parametrize(("copy", "serial", "status"), [
    ("follows", "data", "holds"), ("follows", "none", "fails"), ("afresh", "data", "fails"), ("follows", [0.3], "fails"),
])  # fmt: skip
def test_copies_in_files_are_held_to_the_memory_that_is_stated_of_their_noise(
    files, copy, serial, status
):
    law = {"scheme": "corner-wave", "serial": serial}
    result = auditor.run({
        "schema": 1, "seed": 1, "data": {"source": str(files / "x.csv")}, "attacks": ["llse"], "coalitions": ["singles"],
        "schemes": [{"name": "published", "copies": [str(files / f"{copy}.csv")], "levels": [0.5], "law": law}],
        "expect": ["noise-follows-law"],
    })  # fmt: skip
    assert result.expectations[0].status == status


def test_copies_that_lack_records_between_others_are_not_held_to_a_law_from_record_to_record(files):
    """What looks like the noise before a record is that of another: honest copies would be said to break their law."""
    x, y = (
        pd.read_csv(files / f"{name}.csv").rename_axis("id").reset_index().astype({"id": str})
        for name in ("x", "follows")
    )
    x.to_csv(files / "x-id.csv", index=False)

    def audited(some):
        y[some].to_csv(files / "some.csv", index=False)
        return auditor.run({
            "schema": 1, "data": {"source": str(files / "x-id.csv"), "columns": ["a", "b"]}, "attacks": ["llse"], "schemes": [{
                "name": "published", "copies": [str(files / "some.csv")], "levels": [0.5], "key": "id",
                "law": {"scheme": "corner-wave", "serial": "data"},
            }],
            "expect": ["noise-follows-law"],
        }).expectations[0].status  # fmt: skip

    assert audited(x.index < 3900) == "holds"
    with pytest.raises(AuditorError, match=r"`serial` noise follows on .* some are missing"):
        audited(x.index % 10 > 0)


def test_intervals_of_a_linear_attack_hold_its_theory():
    held = []
    for seed in range(12):
        result = auditor.run({
            "schema": 1, "seed": seed, "data": {"source": "autoregressive", "attributes": 1, "rows": 600, "autocorrelation": 0.9},
            "schemes": [{"name": "corner-wave", "levels": [0.5], "serial": [0.9]}], "coalitions": ["singles"], "attacks": ["llse"],
        })  # fmt: skip
        (one,) = [
            m for m in result.measurements if m.metric == "normalized_error" and m.attribute == "*"
        ]
        # of whole releases, and not the closed form, which is a third as wide
        assert one.error_bar == "redraws"
        assert one.theory == pytest.approx(1 / 3)
        held.append(one.ci_low <= one.theory <= one.ci_high)
    assert sum(held) >= 9  # of 12 at 95 in 100: fewer once in 400 runs
