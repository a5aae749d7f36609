"""Whole numbers in, whole numbers out: units, what is refused, tables of all kinds, extensions, and the files that are written."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor import registry
from auditor.data.bounds import recorded
from auditor.data.microdata import as_table
from auditor.data.table import Table
from auditor.errors import AuditorError, AuditorWarning
from auditor.runs.copy_files import write_copies
from auditor.runs.finished_copies import Treatment
from auditor.schemes.base.scheme import Key, TableMoments, table_moments
from auditor.schemes.draw import released_grid
from auditor.schemes.geometric import GeometricMultilevel
from auditor.schemes.increments.lattice import EXACT
from auditor.schemes.increments.process import as_fraction

MULTILEVEL, SCHEMES = (
    ("geometric-multilevel", "skellam-multilevel"),
    ("geometric-multilevel", "skellam-multilevel", "geometric", "skellam"),
)


def people(rows=3000, seed=1):
    """Whole years, tenths as a spreadsheet writes them, thousands, and a skewed count of mostly nothing."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, rows)
    return pd.DataFrame({
        "age": age, "hours": np.round(rng.normal(38, 6, rows), 1), "income": 1000 * np.rint(np.exp(rng.normal(3.5, 0.8, rows))),
        "children": rng.poisson(0.3, rows),
    })  # fmt: skip


@pytest.mark.parametrize("scheme", SCHEMES)
def test_copies_are_on_the_original_s_lattice_with_the_stated_covariance(scheme):
    """In any order of release; five standard errors, with the kurtosis that the law states: one false alarm in 10⁴ runs of this test."""
    X = people()
    release = auditor.perturb(X, scheme, [1.0, 0.25, 4.0], seed=3).extend([0.5, 2.0], seed=4)
    for copy in release.copies:
        assert list(copy.dtypes.astype(str)) == ["int64", "float64", "float64", "int64"]
        assert (copy["hours"] == copy["hours"].round(1)).all()
        assert (copy["income"] % 1000 == 0).all()
    Z = np.hstack([copy.to_numpy() - X.to_numpy() for copy in release.copies])
    drawn, stated = Z.T @ Z / len(X), release.noise_covariance()
    own = np.diag(stated)
    kurtosis = np.maximum(release.law.excess_kurtosis, 0.0).max() + 3.0
    assert (np.abs(drawn - stated) < 5.5 * np.sqrt(kurtosis * np.outer(own, own) / len(X))).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_copies_of_an_array_of_whole_numbers_are_whole_numbers(scheme):
    whole = people()["age"]
    assert auditor.perturb(whole, scheme, [1.0]).copies[0].dtype == np.int64
    assert auditor.perturb(whole.to_numpy(), scheme, [1.0]).copies[0].dtype == np.int64
    assert (
        auditor.perturb(whole.astype(float).to_numpy(), scheme, [1.0]).copies[0].dtype == np.float64
    )


@pytest.mark.parametrize("scheme", MULTILEVEL)
@pytest.mark.parametrize("level", [1e-6, 1e6])
def test_extreme_levels_and_a_copy_between_them(scheme, level):
    """From next to no noise to a thousand deviations; the same level twice is the same copy."""
    X = people(500)
    release = auditor.perturb(X, scheme, [level, 1.0], seed=1).extend([1.0, 1e-3, 1e3], seed=2)
    first, second = release.copies[1], release.copies[2]
    pd.testing.assert_frame_equal(first, second)
    assert (release.copies[0]["income"] % 1000 == 0).all()
    spread = (release.copies[0] - X).std() / X.std()
    assert (spread < 1.5 * np.sqrt(level) + 1e-9).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_singular_and_constant_columns(scheme):
    """Columns that are equal, or of one value, which gets no noise: of pi, which lies on no lattice, as of 0."""
    age = people(300)["age"].to_numpy(dtype=float)
    X, out = (
        np.column_stack([age, age, np.full(300, np.pi), np.zeros(300)]),
        [np.full((300, 4), np.nan)],
    )
    sampler = registry.get("scheme", scheme)().sampler(
        (1.0,), table_moments(Table(("a", "b", "c", "d"), X)), Key(1, scheme)
    )
    sampler.block(0, X, out)
    assert (out[0][:, 2:] == [np.pi, 0.0]).all()
    assert (out[0][:, :2] == np.rint(out[0][:, :2])).all()
    assert (out[0][:, 0] != out[0][:, 1]).any()


def test_a_coarser_and_a_finer_unit():
    X = people(400)[["age", "income"]]
    fine = auditor.perturb(X, "geometric-multilevel", [0.01], seed=1, unit={"income": 10.0}).copies[
        0
    ]
    assert (fine["income"] % 10 == 0).all()
    assert (fine["income"] % 1000 != 0).any()
    assert (fine["age"] == fine["age"].round()).all()


@pytest.mark.parametrize(
    ("columns", "parameters", "said"),
    [
        ({"age": [1.0, 2.0, 4.0], "pay": [1.5, np.pi, 2.0]}, {}, r"column 'pay' is not recorded .* round the column"),
        ({"age": [1.0, 2.0, 4.0]}, {"unit": 2.0}, r"column 'age' is recorded in steps of 1, .* no whole multiple of its unit, 2"),
        ({"age": [1.0, 2.0, 4.0]}, {"unit": 0.3}, r"column 'age' is recorded in steps of 1, .* unit that divides it"),
        ({"age": [1.0, 2.0, 4.0]}, {"unit": {"agee": 1.0}}, r"there is no column 'agee'.*'age'"),
        ({"age": [1.0, 2.0, 4.0]}, {"unit": 1e-20}, r"column 'age': .* beyond 2\^50 units"),
        ({"age": [1.0, 2.0, 4.0]}, {"unit": 0.0}, r"unit"),
    ],
)  # fmt: skip
def test_what_lies_on_no_lattice_is_refused_by_name(columns, parameters, said):
    for scheme in ("geometric-multilevel", "skellam"):
        with pytest.raises(AuditorError, match=said):
            auditor.perturb(pd.DataFrame(columns), scheme, [1.0], **parameters)


def test_sums_beyond_exact_numbers_are_refused():
    with pytest.raises(
        AuditorError, match=r"column 'x1': values and noise at these levels go beyond 2\^50 units"
    ):
        auditor.perturb(np.arange(10.0), "skellam-multilevel", [1.0, 1e16])
    assert np.isfinite(
        auditor.perturb(np.arange(10.0), "skellam-multilevel", [1e14]).copies[0]
    ).all()


def test_a_blank_filled_with_the_mean_is_passed_over():
    """0, 2 and 4 with a blank: the mean of the others fits no step; where every value but the mean is whole, the mean is a blank."""
    values = np.array([0.0, 2.0, 5.0, 7 / 3])
    assert recorded(as_table(values)).steps.tolist() == [1.0]
    assert np.isnan(recorded(as_table(np.array([0.0, 2.0, 5.1234567, 4.2]))).steps).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_noise_on_a_filled_blank_is_whole_in_audits_and_its_sum_in_releases(scheme):
    """An audit's noise follows its law in every cell; a recipient cannot tell which cells were blank."""
    X = np.append(np.arange(60.0) ** 2 % 17, np.arange(60.0) ** 2 % 17)
    X[::10] = np.delete(X, np.s_[::10]).mean()
    assert X[0] % 1 != 0
    made, table, audited = (
        registry.get("scheme", scheme)(),
        table_moments(as_table(X)),
        [np.empty((120, 1)) for _ in range(3)],
    )
    levels = (0.5, 2.0, 1.0)
    made.sampler(levels[:2], table, Key(1, scheme)).block(0, X[:, None], audited[:2])
    made.sampler(levels, table, Key(1, scheme), 2).block(0, X[:, None], audited, 2)
    for copy in audited:
        noise = copy[:, 0] - X
        assert np.abs(noise - np.rint(noise)).max() < 1e-9
    assert all((copy == np.rint(copy)).all() for copy in auditor.perturb(X, scheme, levels).copies)


@pytest.mark.parametrize(
    ("unit", "fraction"),
    [
        (0.25, (0.25, 1)),
        (0.1, (1, 10)),
        (5.0, (5, 1)),
        (1e-6, (1, 1e6)),
        (1 / 3, (1 / 3, 1)),
        (1e9, (1e9, 1)),
    ],
)
def test_units_as_fractions(unit, fraction):
    steps, power = as_fraction(np.array([unit]))
    assert (steps[0], power[0]) == fraction


@pytest.mark.parametrize("unit", [0.1, 0.01, 1e-6, 0.7, 3.0, 1000.0, 1 / 3])
def test_the_largest_multiples_are_found_again(unit):
    k = EXACT - np.random.default_rng(1).integers(0, 2**40, 10_000)
    steps, power = as_fraction(np.array([unit]))
    assert (np.rint(k * steps / power / unit) == k).all()


def test_released_values_carry_no_last_bits_of_the_original():
    """Of an original that was added up in tenths, 0.1 + 0.2 and all, a copy has the double next to each decimal."""
    X = np.cumsum(np.full(200, 0.1))
    assert (X != np.round(X, 1)).any()
    copy = auditor.perturb(X, "geometric-multilevel", [0.5]).copies[0]
    assert (copy == np.round(copy, 1)).all()


def test_the_released_grid_is_the_unit():
    X = people(300)
    release = auditor.perturb(X, "skellam-multilevel", [0.5, 1.0])
    assert released_grid(release.scheme, as_table(X), release.levels) == (1.0, 0.1, 1000.0, 1.0)


def test_files_hold_whole_numbers_and_can_be_extended(tmp_path):
    X, out = people(200), tmp_path / "out"
    X.to_csv(tmp_path / "people.csv", index=False)
    write_copies(str(tmp_path / "people.csv"), "geometric-multilevel", [0.5, 1.0], None, out)
    text = (out / "copy-1.csv").read_text().splitlines()
    age, hours, _, children = text[1].split(",")
    assert int(age) == float(age)
    assert int(children) == float(children)
    assert float(hours) == round(float(hours), 1)
    manifest = json.loads((out / "release.json").read_text())
    assert manifest["grid"] == {"age": 1.0, "hours": 0.1, "income": 1000.0, "children": 1.0}
    assert manifest["law"] == "geometric"
    longer = auditor.read_release(X, out).extend([0.7])
    assert longer.copies[2]["age"].dtype == np.int64


def test_files_keep_their_blanks(tmp_path):
    X = people(200)[["age", "children"]].astype("Int64")
    X.loc[3, "children"] = pd.NA
    X.to_parquet(tmp_path / "people.parquet")
    with pytest.warns(AuditorWarning, match="kept blank"):
        write_copies(
            str(tmp_path / "people.parquet"),
            "skellam-multilevel",
            [0.5],
            None,
            tmp_path / "out",
            treatment=Treatment("keep"),
        )
    copy = pd.read_parquet(tmp_path / "out" / "copy-1.parquet")
    assert copy["children"].isna().tolist() == X["children"].isna().tolist()
    assert str(copy["age"].dtype) in ("int64", "Int64")
    assert (copy["children"].dropna() % 1 == 0).all()


def test_the_moments_of_an_unknown_table_state_no_steps():
    with pytest.raises(AuditorError, match="column 'x1' is not recorded"):
        GeometricMultilevel().law([1.0], TableMoments(np.zeros(1), np.eye(1), 10))
