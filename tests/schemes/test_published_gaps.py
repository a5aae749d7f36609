"""Cells and columns that copies lack: what is complete is audited, the rest is counted, and compared with what was audited."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor import registry
from auditor.errors import AuditorError

ROWS = 300
QUIETLY = pytest.mark.filterwarnings("ignore::auditor.errors.AuditorWarning")


@pytest.fixture
def copies(tmp_path, monkeypatch):
    """An original and two copies of it, as files; returned as frames."""
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
        "data": {"source": source, "columns": columns}, "attacks": ["ndr", "llse"], "coalitions": ["subsets"], "schemes": [scheme],
        "expect": [{"exposure": {"unknown": {"at-least": 0.1}}}],
    })  # fmt: skip


def figures(result):
    return {
        (r.attack, r.coalition, r.attribute, r.metric): (r.value, r.theory)
        for r in result.measurements
    }


def notes(result):
    return "\n".join(result.releases[0].notes)


def suppressed(frame, share, column, seed):
    """Return a copy in which a share of one column's cells is missing, at random."""
    return frame.assign(
        **{column: frame[column].where(np.random.default_rng(seed).random(len(frame)) >= share)}
    )


@QUIETLY
@pytest.mark.parametrize("key", [None, "id"])
def test_audited_are_the_records_that_are_complete_in_every_copy(copies, key):
    """The naive way beside it: incomplete rows deleted from every file by hand."""
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
    assert (
        f"'g1.csv': {count} of its cells are missing ({count / (3 * ROWS):.1%}), in {count} records, most in column 'a'"
        in notes(found)
    )


@QUIETLY
def test_gaps_at_random_change_no_figure_by_more_than_chance(copies):
    """Filled in by a mean a tenth of the cells would add a tenth of the variance to each error; left out they add nothing."""
    suppressed(copies[1], 0.3, "b", 7).to_csv("gaps.csv", index=False)
    whole, found = (audited(name, law={"scheme": "corner-wave"}) for name in ("y1", "gaps"))
    value, error = next(
        (r.value, r.std_error)
        for r in whole.measurements
        if (r.attack, r.attribute, r.metric) == ("ndr", "b", "normalized_error")
    )
    again = figures(found)["ndr", (1,), "b", "normalized_error"][0]
    # a subsample of 70 %: its mean varies about the whole one's by √(0.3/0.7) errors
    assert abs(again - value) < 5 * error * np.sqrt(0.3 / 0.7)
    assert again < value + 0.5 * 0.3  # what filling in would have added is 0.3 · (1 − 0.3)


@QUIETLY
def test_records_that_had_a_cell_suppressed_and_the_rest_left_bare_are_told(copies):
    """The leak that complete records cannot show: whoever has a cell suppressed has the others released as they are."""
    X, copy, _ = copies
    honest = suppressed(copy, 0.1, "a", 2)
    honest.to_csv("honest.csv", index=False)
    honest.where(honest["a"].notna(), X.assign(a=np.nan)).to_csv("bare.csv", index=False)
    fine, leak = audited("honest"), audited("bare")
    assert "less perturbed" not in notes(fine)
    assert (
        "'bare.csv': cells of records that are not audited differ from the original by 0 of the variance (mean square, column 'b')"
        in notes(leak)
    )
    assert (
        "it is less perturbed than what was audited, and more exposed than the figures say"
        in notes(leak)
    )
    assert [result.releases[0].understated for result in (fine, leak)] == [False, True]
    assert [result.expectations[0].status for result in (fine, leak)] == ["holds", "undecided"]
    assert leak.expectations[0].why.endswith(
        "what was left out of published is less perturbed than that"
    )
    shown = registry.get("renderer", "markdown")().render([leak])
    assert "what was left out is more exposed" in shown


@pytest.mark.slow
@QUIETLY
def test_honest_gaps_are_not_called_less_perturbed(copies):
    """300 honest suppressions: at a level of 1e-4 one false alarm is a chance of 3 %."""
    from auditor.data.common_records import common_part
    from auditor.data.copies import Copy
    from auditor.data.table import Table

    table, rng = Table(("a", "b", "c"), copies[0].to_numpy()), np.random.default_rng(11)
    told = 0
    for _ in range(300):
        values = copies[1].to_numpy(copy=True)
        values[rng.random(ROWS) < rng.choice([0.04, 0.1, 0.5]), rng.integers(3)] = np.nan
        found = common_part(
            table, [Copy("y", values, np.ones(ROWS, dtype=bool), np.ones(3, dtype=bool))]
        )
        told += found.understated
    assert told <= 1


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
def test_copies_that_stay_in_large_files_are_joined_and_cut_too(copies, monkeypatch):
    suppressed(copies[1], 0.1, "b", 7).assign(id=range(ROWS)).sample(
        frac=0.9, random_state=1
    ).to_csv("gaps.csv", index=False)
    suppressed(copies[1], 0.1, "b", 7).to_csv("rows.csv", index=False)
    copies[0].assign(id=range(ROWS)).to_csv("x.csv", index=False)
    small = [audited("gaps", key="id"), audited("rows", columns=["a", "b", "c"])]
    monkeypatch.setattr("auditor.data.file_rows.HELD_BYTES", 2**10)
    auditor.runs.tables._table.cache_clear()
    large = [audited("gaps", key="id"), audited("rows", columns=["a", "b", "c"])]
    auditor.runs.tables._table.cache_clear()
    assert [figures(result) for result in large] == [figures(result) for result in small]


# -- columns
# -----------------------------------------------------------------------------------------------------------


@QUIETLY
@pytest.mark.parametrize(
    "law", [{"scheme": "corner-wave"}, {"scheme": "independent"}, {"covariance": "K_Z.csv"}]
)
def test_audited_are_the_columns_that_all_copies_have(copies, law):
    """Closed forms by hand: an average of copies errs by the diagonal of the law of the whole original, columns picked out."""
    X, y1, y2 = copies
    K_X = X.cov(ddof=0).to_numpy()
    shape = np.eye(3) * np.trace(K_X) / 3 if law == {"scheme": "independent"} else K_X
    np.savetxt("K_Z.csv", np.kron([[0.3, 0.3], [0.3, 0.6]], K_X), delimiter=",")
    y2[["c", "a"]].to_csv("less.csv", index=False)
    found = audited("y1", "less", law=law)
    theory = {attribute: value for (attack, coalition, attribute, metric), (_, value) in figures(found).items()
              if (attack, coalition, metric) == ("ndr", (2,), "distortion") and attribute != "*"}  # fmt: skip
    assert theory == pytest.approx({"a": 0.6 * shape[0, 0], "c": 0.6 * shape[2, 2]}, rel=1e-12)
    measured = {attribute: value for (attack, coalition, attribute, metric), (value, _) in figures(found).items()
                if (attack, coalition, metric) == ("ndr", (2,), "distortion") and attribute != "*"}  # fmt: skip
    assert measured == pytest.approx(
        {name: ((y2[name] - X[name]) ** 2).mean() for name in "ac"}, rel=1e-9
    )
    off = ((y1["b"] - X["b"]) ** 2).mean() / K_X[1, 1]
    assert found.releases[0].notes == [
        "'less.csv': lacks column 'b', which is not audited",
        "audited are 300 of 300 records, those that the original and all copies have in full, in 'a', 'c', which all copies have",
        "all records and columns are under every-cell: the best linear attack, learnt from the originals, on every cell held",
        "'y1.csv': column 'b' is not audited, as another copy lacks it; audit it in an entry of `schemes:` of its own. "
        f"Cells differ from the original by {off:.2g} of the variance (mean square)",
    ]  # fmt: skip
    assert not found.releases[0].understated


@QUIETLY
def test_a_column_that_stands_bare_in_one_copy_and_lacks_in_another_is_told(copies):
    X, y1, y2 = copies
    y1.assign(b=X["b"]).to_csv("bare.csv", index=False)
    y2[["a", "c"]].to_csv("less.csv", index=False)
    found = audited("bare", "less")
    assert (
        "Cells differ from the original by 0 of the variance (mean square): it is less perturbed than what was audited"
        in notes(found)
    )
    assert found.releases[0].understated


@QUIETLY
def test_a_column_without_a_cell_is_lacking_and_a_misspelt_name_is_told(copies):
    copies[1].assign(a=np.nan).to_csv("empty.csv", index=False)
    assert "'empty.csv': lacks column 'a', which is not audited" in notes(audited("empty"))
    copies[1].rename(columns={"c": "C"}).to_csv("capital.csv", index=False)
    assert "'capital.csv': lacks column 'c', which is not audited; is it 'C'?" in notes(
        audited("capital")
    )
    copies[1].rename(columns={"c": "<script>"}).to_csv("odd.csv", index=False)
    assert "lacks column 'c', which is not audited" in notes(audited("odd"))


@QUIETLY
def test_copies_without_a_common_column_are_refused(copies):
    copies[1][["a"]].to_csv("a.csv", index=False)
    copies[2][["b"]].to_csv("b.csv", index=False)
    with pytest.raises(
        AuditorError,
        match=r"no column is in all copies; audit those that share some in an entry of `schemes:` of their own",
    ):
        audited("a", "b")
    copies[1].rename(columns=str.upper).to_csv("none.csv", index=False)
    with pytest.raises(
        AuditorError,
        match=r"none.csv: has none of the original's columns, 'a', 'b', 'c'; it has 'A', 'B', 'C'",
    ):
        audited("none")


@QUIETLY
def test_what_is_known_of_a_column_that_is_not_audited_is_refused_before_the_run(copies):
    copies[1][["a", "b"]].to_csv("less.csv", index=False)
    scenario = {"data": "x.csv", "attacks": ["ndr"], "knowledge": [{"known-attributes": ["c"]}]}
    with pytest.raises(
        AuditorError,
        match=r"of what published has in common with the data: it names no column that is audited: 'c'",
    ):
        auditor.run(scenario | {"schemes": [{"name": "published", "copies": ["less.csv"]}]})


@QUIETLY
def test_a_single_column_and_one_that_is_categorical_too(copies):
    copies[1][["a"]].to_csv("less.csv", index=False)
    scheme = {
        "name": "published",
        "copies": ["less.csv"],
        "levels": [0.3],
        "law": {"scheme": "corner-wave"},
    }
    for column in "ab":
        data = {"source": "x.csv", "bin": {column: {"equal-width": 4}}}
        result = auditor.run(
            {
                "data": data,
                "schemes": [scheme],
                "attacks": ["ndr", "posterior"],
                "measures": ["exact"],
            }
        )
        assert {r.attribute for r in result.measurements if r.attack == "ndr"} == {"a", "*"}
        assert {r.status for r in result.measurements if r.attack == "posterior"} == {
            "ok" if column == "a" else "not-applicable"
        }
