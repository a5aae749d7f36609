"""Published copies joined to the original by a key."""

import html

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor import registry
from auditor.base import AuditorError, AuditorWarning

ROWS = 120
SECRET = "K4N4RY"
QUIETLY = pytest.mark.filterwarnings("ignore::auditor.base.AuditorWarning")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(16)
    X = pd.DataFrame(rng.normal(size=(ROWS, 2)) @ [[1.0, 20.0], [0.0, 40.0]], columns=["a", "b"])
    keys = pd.Series([f"{SECRET}{i:03d}" for i in range(ROWS)], name="id")
    X.assign(id=keys).to_csv("x.csv", index=False)
    for number, copy in enumerate(
        auditor.perturb(X, "corner-wave", [0.3, 0.6], seed=1).copies, start=1
    ):
        kept = copy.assign(id=keys).sample(n=ROWS - 10 * number, random_state=number)
        foreign = kept.head(3).assign(id=[f"{SECRET}-{i}" for i in range(3)])
        pd.concat([kept, foreign] if number == 2 else [kept]).to_csv(f"y{number}.csv", index=False)
    return tmp_path


def scenario(*copies, data=None, **scheme):
    return {
        "data": {"source": "x.csv"} | (data or {}), "attacks": ["ndr"], "coalitions": ["subsets"],
        "schemes": [{"name": "published", "copies": list(copies)} | scheme],
    }  # fmt: skip


def figures(result):
    return {
        (r.attack, r.coalition, r.attribute, r.metric): f"{r.value:.9g} ± {r.std_error or 0.0:.9g}"
        for r in result.measurements
        if r.attack != "every-cell" and r.value is not None
    }


def write_joined():
    X, *copies = (pd.read_csv(name).set_index("id") for name in ("x.csv", "y1.csv", "y2.csv"))
    common = [key for key in X.index if all(key in copy.index for copy in copies)]
    for name, frame in zip(("x", "y1", "y2"), (X, *copies), strict=True):
        frame.loc[common, ["a", "b"]].to_csv(f"{name}-joined.csv", index=False)
    return len(common)


@QUIETLY
def test_what_is_audited_is_what_a_join_leaves(folder, monkeypatch):
    monkeypatch.setattr("auditor.audit.insider.fitted.FOLDED", 4_500)  # halves depend on the key
    rows = write_joined()
    joined = auditor.run(scenario("y1.csv", "y2.csv", key="id"))
    by_row = auditor.run(
        scenario("y1-joined.csv", "y2-joined.csv", data={"source": "x-joined.csv"})
    )
    assert figures(by_row).items() <= figures(joined).items()
    assert joined.releases[0].notes[:4] == [
        "'y1.csv': lacks 10 of the original's 120 records", "'y2.csv': lacks 20 of the original's 120 records",
        "'y2.csv': has 3 records that the original has not, which are left out",
        f"audited are {rows} of 120 records, those that the original and all copies have in full",
    ]  # fmt: skip
    assert [one.name for one in joined.data[0].attributes] == ["a", "b"]


def test_what_copies_lack_is_told_beforehand_and_in_the_report(folder):
    for name in ("x.csv", "y2.csv"):
        pd.read_csv(name).rename(columns={"id": "<script>id"}).to_csv(name, index=False)
    with pytest.warns(AuditorWarning) as warned:
        result = auditor.run(scenario("y2.csv", key="<script>id"))
    notes = (
        "'y2.csv': lacks 20 of the original's 120 records",
        "audited are 100 of 120 records, those that the original and all copies have in full",
    )
    assert set(notes) <= {str(each.message) for each in warned}
    for form in ("table", "markdown", "html"):
        text = registry.get("renderer", form)().render([result])
        shown = " ".join(html.unescape(text).split())
        assert all(note in shown for note in notes)
        assert SECRET not in text
        assert form != "html" or "<script>id" not in text
    assert SECRET not in result.model_dump_json()


def test_keys_of_other_records_are_refused_though_they_match(folder):
    copy = pd.read_csv("x.csv")
    copy.assign(id=copy["id"].sample(frac=1, random_state=3).to_numpy()).to_csv(
        "wrong.csv", index=False
    )
    with pytest.raises(AuditorError, match="although joined by their keys"):
        auditor.run(scenario("wrong.csv", key="id"))


WRONG = [
    ("y", lambda frame: frame.rename(columns={"id": "<script>"}), "there is no key column 'id'"),
    ("y", lambda frame: frame.assign(id=frame["id"].where(frame.index != 7, frame["id"][3])), "repeats: it has 1 record, in data row 8"),
    ("y", lambda frame: frame.assign(id=frame["id"].where(frame.index > 1, " ")), "has 2 blank cells, the first in data row 1"),
    ("x", lambda frame: frame.assign(id=frame["id"].where(frame.index != 4)), "has 1 blank cell, in data row 5"),
    ("x", lambda frame: frame.assign(id=SECRET), "repeats: it has 119 records, the first in data row 2"),
    ("x", lambda frame: frame.drop(columns="id"), "data.key cannot be used: there is no column 'id'|no column 'id'"),
    ("y", lambda frame: frame.assign(id=range(len(frame))), r"have 0 records in common and in full.*'y.csv' has none of the original's"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "message"), WRONG)
def test_a_key_that_is_none_is_refused_without_being_shown(folder, name, change, message):
    frame = pd.read_csv("x.csv")
    frame.to_csv("y.csv", index=False)
    change(frame).to_csv(f"{name}.csv", index=False)
    with pytest.raises(AuditorError, match=message) as caught:
        auditor.run(scenario("y.csv", key="id"))
    assert SECRET not in str(caught.value)
