"""An audit of serially correlated noise."""

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.data.sources.series import autoregression


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
