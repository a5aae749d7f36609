"""Blank cells: words that mean none, guarantees of filled cells, guesses of blanks."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.audit.measures.released_as_is import guessed
from auditor.base import AuditorWarning
from auditor.data.columns.checks import missing_codes
from auditor.data.load import file_notes
from auditor.schemes.base.guarantees import Filled, Guarantees
from auditor.schemes.base.noise_law import KroneckerNoise
from tests.audited import audited_files
from tests.loading import load_table

RNG = np.random.default_rng(2**40 + 39)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cover = RNG.choice(["None", "Basic", "Full", "NA"], 400)
    pay = RNG.normal(40, 9, 400).round(1)
    pay[RNG.random(400) < 0.5] = np.nan
    pd.DataFrame({"cover": cover, "pay": pay}).to_csv("t.csv", index=False)
    return tmp_path


def load(source, **options):
    return load_table(source, rng=np.random.default_rng(0), **options)


def filled(x, low, high):
    """Largest sum of all changes, if one record has any value or none; NaN in x means none."""
    most = 0.0
    for i, new in itertools.product(range(len(x)), (low, high, math.nan)):
        y = x.copy()
        y[i] = new
        if np.isfinite(y).any():
            before, after = (np.where(np.isnan(z), np.nanmean(z), z) for z in (x, y))
            most = max(most, float(np.abs(after - before).sum()))
    return most


def test_epsilon_of_filled_cells_is_reached_by_the_worst_change_of_one_record():
    x = np.array([0.0, 0.0, 1.0, 0.0, math.nan, math.nan, math.nan])
    blanks = np.isnan(x)[:, None]
    law = KroneckerNoise(np.array([[2.0]]), np.eye(1), distribution="laplace")  # scale 1
    stated = Guarantees(law, np.ones(1), 1e-5, filled=Filled.of(blanks)).of([1])["epsilon"].value
    assert stated == pytest.approx(1 + 3 / 4)
    assert filled(np.zeros(7) + 0 * x, 0.0, 1.0) == pytest.approx(stated)
    for start in itertools.product((0.0, 1.0, math.nan), repeat=5):
        x = np.array(start)
        if 0 < (k := np.isfinite(x).sum()) < len(x):
            assert filled(x, 0.0, 1.0) <= 1 + (len(x) - k) / k + 1e-12


@pytest.mark.parametrize("records", [1, 2])
def test_mu_of_filled_cells_is_the_length_of_the_worst_change(records):
    blanks = RNG.random((12, 2)) < 0.4
    blanks[:records] = False
    K, spans = np.array([[2.0, 0.7], [0.7, 1.0]]), np.array([3.0, 2.0])
    law = KroneckerNoise(np.array([[0.5]]), K)
    stated = Guarantees(law, spans, 1e-5, records, Filled.of(blanks)).of([1])["gaussian_dp"].value
    present, longest = (~blanks).sum(axis=0), 0.0
    for signs in itertools.product((-1, 1), repeat=2):
        moved = np.where(blanks, records * np.array(signs) * spans / present, 0.0)
        moved[:records] = np.array(signs) * spans
        inverse = np.linalg.inv(0.5 * K)
        longest = max(longest, math.sqrt(np.einsum("ij,jk,ik->", moved, inverse, moved)))
    assert stated == pytest.approx(longest)


def test_a_guarantee_counts_the_cells_that_one_record_moves(folder, command):
    audit = {
        "schema": 1,
        "data": {"source": "t.csv", "columns": ["pay"], "missing": "mean", "bounds": {"pay": [0, 90]}},
        "schemes": [{"name": "laplace", "levels": {"epsilon": [1]}}], "attacks": ["ndr"],
    }  # fmt: skip
    blank = load("t.csv", columns=["pay"], missing="mean").blanks.sum()
    for data, expected in ((audit["data"], 1 + blank / (400 - blank)), ({"missing": "drop"}, 1.0)):
        frame = auditor.run(audit | {"data": audit["data"] | data}).frame()
        assert frame[frame.metric == "epsilon"].value.item() == pytest.approx(expected, abs=0.006)
    asked = "perturb t.csv --scheme laplace --epsilon 1 --bounds pay=0:90 --missing mean --output o"
    status, _, said = command(*asked.split())
    assert status == 2
    assert f"moves each of {blank} filled cells" in said


def test_blanks_are_guessed_by_closeness_to_the_mean_and_not_where_noise_hides_them():
    x = RNG.normal(0, 1, 20_000)
    blank = RNG.random(20_000) < 0.5
    filled = np.where(blank, 0.0, x)
    right, usual = guessed(filled, filled[:, None] + RNG.normal(0, 0.1, (20_000, 1)), blank)
    z = np.linspace(0, 5, 5001)  # the best distance: blank N(0, 0.01), present N(0, 1.01)
    within = [np.vectorize(math.erf)(z / math.sqrt(2 * v)) for v in (0.01, 1.01)]
    best = 0.5 * (1 + (within[0] - within[1]).max())
    assert abs(right - best) < 4 * math.sqrt(0.25 / 20_000)
    assert usual == pytest.approx(max(blank.mean(), 1 - blank.mean()))
    right, usual = guessed(filled, filled[:, None] + RNG.normal(0, 50, (20_000, 1)), blank)
    assert abs(right - usual) < 0.02


def test_words_read_as_blank_are_counted_and_kept_by_one_option(folder, command):
    (note,) = file_notes("t.csv")
    cells = pd.read_csv("t.csv", keep_default_na=False).cover
    assert f"'None' ({(cells == 'None').sum()} times)" in note
    assert f"'NA' ({(cells == 'NA').sum()} times)" in note
    assert file_notes("t.csv#blank=") == []
    data = {"source": "t.csv", "columns": ["cover"], "categorical": ["cover"], "blank": []}
    schemes = [{"name": "uniform-multilevel", "levels": [0.5]}]
    audit = {"schema": 1, "data": data, "schemes": schemes, "attacks": ["bayes-estimate"]}
    assert auditor.run(audit).data[0].rows == 400
    asked = "perturb t.csv --scheme uniform --levels 0.5 --columns cover --output o --blank"
    assert command(*asked.split(), "")[0] == 0
    copy = pd.read_csv("o/copy-1.csv", keep_default_na=False)
    assert set(copy.cover) == {"None", "Basic", "Full", "NA"}
    # a copy is read with the blanks of its original
    audit["schemes"] = [{"name": "published", "copies": ["o/copy-1.csv"]}]
    with warnings.catch_warnings():
        warnings.simplefilter("error", AuditorWarning)
        auditor.run(audit)


def test_a_number_can_mean_blank_in_every_kind_of_file(folder):
    frame = pd.DataFrame({"pay": [10.0, 9999999.0, 12.5, 11.0], "age": [1, 2, 9999999, 4]})
    frame.to_csv("n.csv", index=False)
    frame.to_parquet("n.parquet")
    frame.to_excel("n.xlsx", index=False)
    for name in ("n.csv", "n.parquet", "n.xlsx"):
        table = load(f"{name}#blank=9999999", missing="drop")
        assert table.values.tolist() == [[10.0, 1.0], [11.0, 4.0]]


def test_a_sheet_is_chosen_by_name(folder, command):
    with pd.ExcelWriter("book.xlsx") as book:
        pd.DataFrame({"pay": [1, 2, 3]}).to_excel(book, sheet_name="Pay", index=False)
        pd.DataFrame({"wage": [4, 5, 6]}).to_excel(book, sheet_name="Old wages", index=False)
    assert load("book.xlsx#Old wages").values.ravel().tolist() == [4, 5, 6]
    data = {"source": "book.xlsx", "sheet": "Old wages"}
    schemes = [{"name": "independent", "levels": [1.0]}]
    found = auditor.run({"schema": 1, "data": data, "schemes": schemes, "attacks": ["ndr"]})
    assert set(found.frame().attribute) >= {"wage"}
    asked = "perturb book.xlsx --scheme independent --levels 1 --output o --sheet"
    assert command(*asked.split(), "Old wages")[0] == 0
    assert pd.read_csv("o/copy-1.csv").columns.tolist() == ["wage"]
    with pytest.raises(auditor.AuditorError, match="has no sheet 'Old wage'; did you mean"):
        load("book.xlsx#sheet=Old wage")
    with pytest.raises(auditor.AuditorError, match="has no sheets"):
        load("t.csv#Pay")
    with pytest.raises(auditor.AuditorError, match="no option 'pages'"):
        load("book.xlsx#pages=2")


def test_a_far_repeated_extreme_is_asked_about_and_tails_are_not():
    pay = np.exp(RNG.normal(7, 1, 3_000)).round()
    coded = np.where(RNG.random(3_000) < 0.03, 9999999, pay)
    private = np.where(RNG.random(3_000) < 0.03, 8234567, pay)
    negative = np.where(RNG.random(3_000) < 0.03, -99999.0, pay)
    capped = np.minimum(pay, 20_000)
    found = missing_codes(["a", "b", "c", "d", "e"], np.c_[coded, pay, private, negative, capped])
    said = ("a': is 9999999", "c': is its most extreme value", "d': is -99999")
    assert [note.split(" a missing code?")[0] for note in found] == [
        f"column '{one}" for one in said
    ]
    assert not any("8234567" in note for note in found)


def test_a_blank_can_be_a_value_of_its_own_in_classes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    age, ill = RNG.integers(20, 80, 400).astype(float), RNG.integers(0, 5, 400)
    table = pd.DataFrame({"age": age, "ill": ill})
    table["town"] = RNG.choice(["x", "y", None], 400)
    table.loc[::10, "age"] = np.nan
    table.to_csv("t.csv", index=False)
    quasi, hierarchies = ["age", "town"], {"town": {"none": [""], "a": ["x", "y"]}}
    loaded = load("t.csv", missing="value", hierarchies=hierarchies)
    assert loaded.rows == 400
    low, high = table.age.min(), table.age.max()
    assert set(loaded.values[::10, 0]) == {2 * low - high}
    assert (loaded.values[:, 2] == 0).sum() == table.town.isna().sum()
    scheme = {"name": "k-anonymity", "levels": [5], "quasi": quasi, "sensitive": "ill"}
    data = {"source": "t.csv", "columns": [*quasi, "ill"], "hierarchies": hierarchies}
    audit = {
        "attacks": "all", "measures": ["anonymity"], "knowledge": [{"known-attributes": quasi}],
        "data": data | {"missing": "value"}, "schemes": [scheme],
    }  # fmt: skip
    frame = auditor.run(audit).frame()
    assert frame[frame.metric == "anonymity_k"].value.min() >= 5


@pytest.mark.parametrize("leaks", [True, False])
def test_blanks_of_categories_are_guessed_as_a_value_of_their_own(tmp_path, leaks):
    rng = np.random.default_rng(2**41 + 3)
    answer = np.array(["a", "b", "c", "d", None], dtype=object)[rng.integers(0, 5, 600)]
    given, copy = np.flatnonzero(pd.notna(answer)), answer.copy()
    copy[given] = rng.permutation(answer[given])  # blanks stay where they are
    if not leaks:
        copy = np.where(rng.random(600) < 0.2, answer, rng.permutation(answer))
    result = audited_files(
        tmp_path, pd.DataFrame({"answer": answer}), [pd.DataFrame({"answer": copy})],
        {"categorical": ["answer"], "missing": "value"},
        {"name": "published-categories", "aligned": True}, attacks="all",
    )  # fmt: skip
    frame = result.frame()
    assert result.expectations[0].status == ("fails" if leaks else "holds")
    assert (frame[frame.metric == "value_belief"].value.max() > 0.9) == leaks
