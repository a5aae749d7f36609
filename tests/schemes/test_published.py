"""Published copies: gaps, keys and categories."""

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.base import AuditorError
from tests.audited import NO_LEARNER, cells


@pytest.fixture
def folder(tmp_path):
    X = pd.DataFrame(
        np.random.default_rng(0).normal(size=(100, 2)) * [1.0, 50.0], columns=["a", "b"]
    )
    X.to_csv(tmp_path / "original.csv", index=False)
    copy = auditor.perturb(X, "correlated", [0.5], seed=1).copies[0]
    copy.to_csv(tmp_path / "copy.csv", index=False)
    copy[["b", "a"]].to_csv(tmp_path / "turned.csv", index=False)
    copy.assign(a=1.0).to_csv(tmp_path / "suppressed.csv", index=False)
    np.savetxt(tmp_path / "law.csv", 0.5 * np.cov(X.T, bias=True), delimiter=",")
    return tmp_path


def measured(folder, *copies, **fields):
    scheme = {"name": "published", "copies": [str(folder / copy) for copy in copies]} | fields
    result = auditor.run({
        "data": {"source": str(folder / "original.csv")}, "schemes": [scheme], "attacks": ["ndr"], "coalitions": ["subsets"], "knowledge": NO_LEARNER,
    })  # fmt: skip
    return {(r.coalition, r.attribute): r for r in cells(result, metric="distortion", attack="ndr")}


def test_columns_are_found_by_name(folder):
    straight, transformed = measured(folder, "copy.csv"), measured(folder, "turned.csv")
    assert [r.value for r in straight.values()] == [r.value for r in transformed.values()]


def test_a_copy_may_have_suppressed_a_column(folder):
    X = pd.read_csv(folder / "original.csv")
    found = measured(folder, "suppressed.csv", "copy.csv")
    assert found[(1,), "a"].value == pytest.approx(((X["a"] - 1.0) ** 2).mean())
    assert {r.status for r in found.values()} == {"ok"}


def test_a_complete_copy_of_a_table_that_left_records_out_is_told_the_cause(folder):
    X = pd.read_csv(folder / "original.csv")
    X.loc[3, "a"] = np.nan
    X.to_csv(folder / "holes.csv", index=False)
    data, scheme = (
        {"source": str(folder / "holes.csv"), "missing": "drop"},
        {"name": "published", "copies": [str(folder / "copy.csv")]},
    )
    with pytest.raises(
        auditor.AuditorError,
        match=r"100 rows where the original has 99; .*`missing: drop` left records of the original out",
    ):
        auditor.run({"data": data, "schemes": [scheme], "attacks": ["ndr"]})


ROWS = 300
QUIETLY = pytest.mark.filterwarnings("ignore::auditor.base.AuditorWarning")


@pytest.fixture
def copies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    X = pd.DataFrame(
        rng.normal(size=(ROWS, 3)) @ [[1.0, 20.0, 0.0], [0.0, 40.0, 3.0], [0.0, 0.0, 5.0]],
        columns=["a", "b", "c"],
    )
    frames = [X, *auditor.perturb(X, "corner-wave", [0.3, 0.6], seed=1).copies]
    for name, frame in zip(("x", "y1", "y2"), frames, strict=True):
        frame.to_csv(f"{name}.csv", index=False)
    return frames


def audited(*names, source="x.csv", columns=None, **more):
    scheme = {
        "name": "published",
        "copies": [f"{name}.csv" for name in names],
        "levels": [0.3, 0.6][: len(names)],
    } | more
    return auditor.run({
        "data": {"source": source, "columns": columns}, "attacks": ["ndr", "llse"], "coalitions": ["subsets"], "schemes": [scheme], "knowledge": NO_LEARNER,
    })  # fmt: skip


def figures(result):
    return {
        (r.attack, r.coalition, r.attribute, r.metric): (r.value, r.theory)
        for r in result.measurements
    }


def notes(result):
    return "\n".join(result.releases[0].notes)


def suppressed(frame, share, column, seed):
    return frame.assign(
        **{column: frame[column].where(np.random.default_rng(seed).random(len(frame)) >= share)}
    )


@QUIETLY
@pytest.mark.parametrize("key", [None, "id"])
def test_audited_are_the_records_that_are_complete_in_every_copy(copies, key):
    X, *released = copies
    gaps = [
        suppressed(copy, 0.1, column, seed)
        for seed, (copy, column) in enumerate(zip(released, "ab", strict=True))
    ]
    complete = ~pd.concat(gaps, axis=1).isna().any(axis=1)
    for seed, (name, frame, whole) in enumerate(
        zip(("x", "g1", "g2"), (X, *gaps), copies, strict=True)
    ):
        (
            frame if key is None else frame.assign(id=range(ROWS)).sample(frac=1, random_state=seed)
        ).to_csv(f"{name}.csv", index=False)
        whole[complete].to_csv(f"{name}-deleted.csv", index=False)
    found, by_hand = (
        audited("g1", "g2", key=key),
        audited("g1-deleted", "g2-deleted", source="x-deleted.csv"),
    )
    measured, expected = (
        {cell: value for cell, (value, _) in figures(result).items() if cell[0] == "ndr"}
        for result in (found, by_hand)
    )
    assert measured == pytest.approx(expected, rel=1e-9)
    assert f"audited are {complete.sum()} of 300 records" in notes(found)
    count = int(gaps[0]["a"].isna().sum())
    said = f"'g1.csv': {count} of its cells are missing ({count / (3 * ROWS):.1%}), in {count} records, most in column 'a'"
    assert said in notes(found)


@QUIETLY
def test_too_few_complete_records_are_refused_with_a_way_out(copies):
    copies[1].where(np.arange(ROWS)[:, None] < [[9, ROWS, ROWS]]).to_csv("gaps.csv", index=False)
    with pytest.raises(
        AuditorError,
        match=r"9 records in common and in full; an audit of some records needs 10; audit fewer copies",
    ):
        audited("gaps")
    copies[1].assign(a=np.inf).to_csv("infinite.csv", index=False)
    with pytest.raises(AuditorError, match=r"infinite.csv: column 'a' has 300 infinite values"):
        audited("infinite")
    copies[1].assign(a="x").to_csv("text.csv", index=False)
    with pytest.raises(AuditorError, match=r"text.csv: column 'a' holds text"):
        audited("text")
    copies[1].to_csv("copy.txt", index=False)
    with pytest.raises(AuditorError, match=r"a copy is a \.csv, \.tsv or \.tab file"):
        audited("y1", copies=["copy.txt"])


@QUIETLY
def test_a_column_without_a_cell_is_lacking_and_a_misspelt_name_is_told(copies):
    copies[1].assign(a=np.nan).to_csv("empty.csv", index=False)
    assert "'empty.csv': lacks column 'a', which is not audited" in notes(audited("empty"))
    copies[1].rename(columns={"c": "C"}).to_csv("capital.csv", index=False)
    assert "column 'c' is read from 'C', which follows it" in notes(audited("capital"))
    copies[1].rename(columns={"c": "<script>"}).to_csv("odd.csv", index=False)
    assert "column 'c' is read from '<script>'" in notes(audited("odd"))
    shuffled = copies[1].c.sample(frac=1, random_state=2**31 + 5).to_numpy()
    copies[1].assign(C=shuffled).drop(columns="c").to_csv("other.csv", index=False)
    assert "lacks column 'c', which is not audited; is it 'C'?" in notes(audited("other"))


@QUIETLY
def test_copies_without_a_common_column_are_refused(copies):
    copies[1][["a"]].to_csv("a.csv", index=False)
    copies[2][["b"]].to_csv("b.csv", index=False)
    with pytest.raises(
        AuditorError,
        match=r"no column is in all copies; audit those that share some in an entry of `schemes:` of their own",
    ):
        audited("a", "b")
    mixed = copies[1].sample(frac=1, random_state=2**31 + 7)
    mixed.rename(columns=str.upper).to_csv("none.csv", index=False)
    with pytest.raises(
        AuditorError,
        match=r"none.csv: has none of the original's columns, 'a', 'b', 'c'; it has 'A', 'B', 'C'",
    ):
        audited("none")
