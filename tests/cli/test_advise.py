"""``auditor advise`` from the command line."""

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def folder(here):
    rng = np.random.default_rng(0)
    pd.DataFrame({"id": range(1, 61), "age": rng.normal(45, 12, 60).round(1)}).to_csv(
        "staff.csv", index=False
    )
    return here


def test_a_wrong_request_is_one_line_and_status_2(folder, command):
    for arguments, words in (
        (("--unknown", "1.0"), "below 1, as 0.5 for half; got 1"),
        (("--copies", "0"), "--copies must be from 1 to 50"),
        (("--columns", "agee"), "did you mean 'age'?"),
        (("--scheme", "corner-waves"), "corner-wave"),
    ):
        status, out, err = command("advise", "staff.csv", *arguments)
        assert (status, out) == (2, "")
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert words in err


@pytest.mark.slow
def test_advice_is_run_and_made_without_an_edit(folder, command, quick_advice):
    status, out, _ = command(
        *"advise staff.csv --copies 2 --unknown 0.4 --scheme corner-wave --output out".split()
    )
    assert status == 0
    assert "'id' left out" in out
    assert command("run", "out/advice.yaml", "--quiet")[0] == 0
    (line,) = [line for line in out.splitlines() if line.startswith("auditor perturb")]
    assert command(*shlex.split(line)[1:])[0] == 0
    assert sorted(path.name for path in Path("copies").iterdir()) == [
        "copy-1.csv", "copy-2.csv", "release.json",
    ]  # fmt: skip
    assert list(pd.read_csv("copies/copy-1.csv")) == ["age"]
