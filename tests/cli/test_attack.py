import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import auditor

ROWS = 300
ROUNDED = math.sqrt(2 / ROWS) / 4


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(5)
    age = rng.normal(50, 12, ROWS)
    return pd.DataFrame({"age": age, "pay": 900 * age + rng.normal(0, 9000, ROWS)})


@pytest.fixture
def files(here, people):
    release = auditor.perturb(people, "corner-wave", [0.25, 1.0], seed=3)
    people.assign(name=[f"n{row}" for row in range(ROWS)], shoe=np.arange(ROWS) % 7).to_csv(
        "people.csv", index=False
    )
    for number, copy in enumerate(release.copies, start=1):
        copy.assign(name="x").to_csv(f"copy-{number}.csv", index=False)
    return release


STATED = ("--original", "people.csv", "--scheme", "corner-wave", "--levels", "0.25,1")


def figure(out, name):
    found = re.search(rf"^{name}: ([\d.e+-]+)", out, re.MULTILINE)
    assert found is not None, out
    return float(found[1])


def test_it_prints_the_error_and_the_closed_form_that_python_has(files, people, command):
    status, out, err = command("attack", "llse", "copy-1.csv", "copy-2.csv", *STATED)
    assert (status, err) == (0, "")
    wanted = auditor.attack("llse", files)
    assert figure(out, "normalized error") == pytest.approx(wanted.normalized_error, rel=ROUNDED)
    assert figure(out, "mean squared error") == pytest.approx(wanted.distortion, rel=ROUNDED)
    assert figure(out, "closed form") == pytest.approx(wanted.theory, rel=ROUNDED)
    assert out.startswith(f"llse, knows means and correlations exactly, 2 copies, {ROWS} records\n")
    assert sorted(path.name for path in Path().iterdir()) == [
        "copy-1.csv", "copy-2.csv", "people.csv",
    ]  # fmt: skip


def test_the_reconstruction_is_written_to_the_named_file_for_its_owner_alone(files, command):
    status, out, err = command(
        "attack", "llse", "copy-1.csv", "copy-2.csv", *STATED, "--output", "rebuilt.csv"
    )
    assert (status, err) == (0, "written: rebuilt.csv\n")
    wanted = auditor.attack("llse", files).values
    pd.testing.assert_frame_equal(pd.read_csv("rebuilt.csv"), wanted, check_exact=False, rtol=1e-9)
    assert Path("rebuilt.csv").stat().st_mode & 0o777 == 0o600
    assert not any(f"{value:.4f}" in out for value in wanted.to_numpy().ravel())
    for taken in ("people.csv", "copy-2.csv"):
        before = Path(taken).read_bytes()
        status, _, err = command("attack", "llse", "copy-1.csv", "copy-2.csv", *STATED, "-o", taken)
        assert (status, "is one of the files that were read" in err) == (2, True)
        assert Path(taken).read_bytes() == before


def test_knowledge_parameters_and_columns_are_as_in_a_scenario(files, command):
    status, out, _ = command(
        "attack", "llse", "copy-1.csv", *STATED[:4], "--levels", 0.25, "--knowledge",
        "{estimated: {rows: 100}}", "--seed", 4,
    )  # fmt: skip
    assert status == 0
    wanted = auditor.attack(
        "llse", files, coalition=[1], knowledge={"estimated": {"rows": 100}}, seed=4
    )
    assert figure(out, "normalized error") == pytest.approx(wanted.normalized_error, rel=ROUNDED)
    status, out, _ = command(
        "attack", "pca-filter", "copy-1.csv", *STATED[:4],
        *"--levels 0.25 --param components=1 --columns pay,age".split(),
    )  # fmt: skip
    assert (status, "over 2 attributes" in out) == (0, True)


@pytest.mark.parametrize(("arguments", "shown"), [
    (("lsse", "copy-1.csv"), "did you mean 'llse'"),
    (("llse", "nothere.csv"), "there is no file 'nothere.csv'"),
    (("llse", "copy-1.csv", "--scheme", "corner-wave"), "a scheme needs the level of each of 1 copies; got 0"),
    (("llse", "copy-1.csv", "--knowledge", "perfekt"), "knowledge"),
    (("llse", "copy-1.csv", "--columns", "agee"), "did you mean 'age'"),
    (("llse", "shuffled.csv"), "the copy's rows"),
    (("llse", "short.csv"), "short.csv: has 100 rows where the original has 300"),
    (("llse", "blank.csv"), "blank.csv: has missing cells"),
    (("llse", "copy-1.csv", "-o", "x.xlsx"), "a reconstruction is written as .csv or .parquet"),
    (("known-io-rotation", "copy-1.csv", "--scheme", "rotation", "--levels", "0"), "attacked from Python, or by a scenario"),
])  # fmt: skip
def test_what_cannot_be_is_one_message(files, command, arguments, shown):
    copy = files.copies[0]
    copy.sample(frac=1, random_state=1).to_csv("shuffled.csv", index=False)
    copy.head(100).to_csv("short.csv", index=False)
    copy.assign(pay=copy.pay.where(copy.index != 7)).to_csv("blank.csv", index=False)
    copy.set_axis(["a", "b"], axis=1).to_csv("other.csv", index=False)
    status, _, err = command("attack", *arguments, "--original", "people.csv")
    assert (status, shown in err) == (2, True), err
    assert "Traceback" not in err
    assert err.startswith("error: ") or err.startswith("warning: ")


def test_no_figure_is_told_of_a_few_private_records(here, command):
    X = pd.DataFrame({"a": [1.0, 2.0, 4.0, 9.0], "b": [3.0, 1.0, 4.0, 1.0]})
    X.to_csv("few.csv", index=False)
    auditor.perturb(X, "correlated", [0.5], seed=1).copies[0].to_csv("copy.csv", index=False)
    status, out, err = command("attack", "ndr", "copy.csv", "--original", "few.csv")
    assert (status, out) == (2, "")
    assert "has 4 records, and no figure is told" in err
