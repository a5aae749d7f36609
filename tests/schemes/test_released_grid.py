"""The public grid of released numbers: last digits rule no original out, Theorem 4 and every figure hold, and what is stated is so."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import auditor
from auditor import AuditorError
from auditor.data.formats.readers import _exact_floats
from auditor.data.microdata import as_table
from auditor.registry import get
from auditor.runs.copy_files import read_release, write_copies
from auditor.schemes.base.grid import COARSEST, DOUBLE_BITS, FINENESS, SINGLE_BITS, grid_of, snap
from auditor.schemes.base.plans import ORIGINAL
from auditor.schemes.base.scheme import Key, table_moments
from auditor.schemes.corner_wave import CornerWave
from tests.schemes.low_order_bits import determined

BINARY = np.random.default_rng(1).integers(0, 2, (20_000, 1)).astype(float)


def deviation(level):
    return np.sqrt(level) * np.sqrt(table_moments(as_table(BINARY)).covariance[0, 0])


# -- the attack on last digits


def test_last_digits_gave_a_quarter_of_the_records_away():
    """Copies as audits draw them: noise of ten times the data's variance hides nothing of these, and no guess is wrong."""
    scheme, copy, sigma = get("scheme", "independent")(), np.empty_like(BINARY), deviation(10.0)
    scheme.sampler((10.0,), table_moments(as_table(BINARY)), Key(5, "independent")).block(
        0, BINARY, [copy]
    )
    found = determined(copy[:, 0], [0.0, 1.0], sigma, lambda x, g: x + sigma * g)
    certain = np.isfinite(found)
    assert certain.mean() > 0.25
    np.testing.assert_array_equal(found[certain], BINARY[certain, 0])


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("scheme", ["independent", "corner-wave"])
def test_last_digits_of_released_copies_rule_nobody_out(scheme, precision, tmp_path):
    source, sigma = tmp_path / "table.parquet", deviation(10.0)
    pd.DataFrame(BINARY, columns=["hiv"]).to_parquet(source)
    write_copies(str(source), scheme, [10.0], None, tmp_path / "out", precision=precision)
    y = pd.read_parquet(tmp_path / "out" / "copy-1.parquet")["hiv"].to_numpy(dtype=float)
    grid = np.array([json.loads((tmp_path / "out" / "release.json").read_text())["grid"]["hiv"]])

    def released(x, g):
        value = (x + sigma * g).reshape(-1, 1)
        snap(value, grid)
        return value[:, 0]

    assert np.isnan(determined(y, [0.0, 1.0], sigma, released)).all()
    # nor do the sampler's own numbers: of its 2⁶⁴ words thousands lead into each copy's cell, from
    # either original
    for x in (0.0, 1.0):
        far = np.abs(y - x)  # by symmetry; the upper tail keeps its digits
        chance = stats.norm.sf((far - grid / 2) / sigma) - stats.norm.sf((far + grid / 2) / sigma)
        assert (chance * 2.0**64).min() > 2**10


# -- Theorem 4


@given(levels=st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0, 3.0]), min_size=1, max_size=8))
def test_every_copy_but_the_least_perturbed_is_drawn_without_the_original(levels):
    """So Theorem 4 is exact however sums are rounded: what is a function of Y_b and fresh coins says no more of X than Y_b does."""
    steps = CornerWave().released_plan(levels)
    assert sorted(step.copy for step in steps) == list(range(1, len(levels) + 1))
    lowest = min((level for level in levels if level > 0), default=0.0)
    drawn = {0.0: ORIGINAL}
    for step in steps:
        ((parent, weight),) = step.parents
        level = levels[step.copy - 1]
        assert weight == 1.0
        assert (parent == ORIGINAL) == (level == 0.0 or (level == lowest and lowest not in drawn))
        drawn.setdefault(level, step.copy)


# -- what is stated


@given(
    noise=st.floats(1e-12, 1e12),
    spread=st.floats(1.0, 1e4),
    size=st.floats(0.0, 1e9),
    bits=st.sampled_from([DOUBLE_BITS, SINGLE_BITS]),
)
def test_the_grid_is_below_the_noise_and_above_the_last_digits(noise, spread, size, bits):
    (g,) = grid_of(np.array([[noise], [noise * spread], [0.0]]), np.array([size * noise]), bits)
    reach = noise * (size + 16 * spread)
    if np.isnan(g):
        assert reach > noise * COARSEST * 2 ** (bits - 1)
        return
    assert np.log2(g) % 1 == 0
    assert reach <= g * 2**bits
    assert g <= COARSEST * noise
    assert g <= FINENESS * noise or g < reach * 2.0 ** (1 - bits)  # no coarser than need be


def test_hand_worked_grid_and_rounding():
    # 2⁻²⁰ of a deviation of 3 is 2^(−18.4…), so 2⁻¹⁹; an attribute without noise has none; noise at
    # 10²⁰ is lost
    grid = grid_of(
        np.array([[3.0, 0.0, 1.0], [5.0, 0.0, 1.0]]), np.array([100.0, 1.0, 1e20]), DOUBLE_BITS
    )
    np.testing.assert_array_equal(grid, [2.0**-19, 0.0, np.nan])
    rows = np.array([[1.3, 0.1], [-2.5, 0.2], [0.75, 0.3]] * 40)
    snap(rows, np.array([0.5, 0.0]))
    np.testing.assert_array_equal(rows, [[1.5, 0.1], [-2.5, 0.2], [1.0, 0.3]] * 40)


def test_noise_that_a_double_cannot_hold_beside_its_values_is_refused_by_name():
    frame = pd.DataFrame({"small": BINARY[:, 0], "far": BINARY[:, 0] + 87_654e8})
    with pytest.raises(AuditorError) as caught:
        auditor.perturb(frame, "corner-wave", [1e-6])
    assert str(caught.value).startswith(
        "column 'far': its noise is lost in the last digits of 64-bit numbers of its values' size"
    )
    assert "8765" not in str(caught.value)


@pytest.mark.parametrize(("seed", "study"), [(None, False), (11, True)])
def test_the_manifest_states_what_is_public(tmp_path, seed, study):
    source = tmp_path / "table.csv"
    pd.DataFrame({"a": BINARY[:60, 0], "b": 9 * BINARY[:60, 0] + np.arange(60)}).to_csv(
        source, index=False
    )
    write_copies(str(source), "corner-wave", [0.5, 1.0], seed, tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "release.json").read_text())
    assert {key: manifest[key] for key in ("scheme", "levels", "law", "attributes", "rows", "for_study_only")} == {
        "scheme": "corner-wave", "levels": [0.5, 1.0], "law": "gaussian", "attributes": ["a", "b"], "rows": 60, "for_study_only": study,
    }  # fmt: skip
    assert list(manifest["grid"]) == ["a", "b"]
    for path in (tmp_path / "out").glob("copy-*"):
        assert not (
            (pd.read_csv(path, **_exact_floats()) / list(manifest["grid"].values())) % 1
        ).any(axis=None)
    write_copies(str(source), "uniform", [0.5], seed, tmp_path / "categories", columns=["a"])
    manifest = json.loads((tmp_path / "categories" / "release.json").read_text())
    assert (manifest["law"], manifest["grid"]) == ("replacement", None)


@pytest.mark.parametrize(("scheme", "levels", "form"), [("corner-wave", [1.0, 0.25], "csv"), ("corner-wave", [1.0, 0.25], "parquet"),
                                                        ("uniform-multilevel", [0.3, 0.9], "csv")])  # fmt: skip
def test_a_release_in_files_can_be_extended(tmp_path, scheme, levels, form):
    source = tmp_path / "table.csv"
    frame = pd.DataFrame({"a": BINARY[:4_000, 0].astype(int), "b": np.arange(4_000) % 7})
    frame.to_csv(source, index=False)
    write_copies(str(source), scheme, levels, None, tmp_path / "out", columns=["a", "b"], form=form)
    release = read_release(frame, tmp_path / "out").extend([0.5])
    assert release.levels == (*levels, 0.5)
    if scheme == "corner-wave":
        Z = [(copy - frame)["b"].to_numpy() / frame["b"].std(ddof=0) for copy in release.copies]
        np.testing.assert_allclose(
            np.cov(Z), np.minimum.outer(release.levels, release.levels), atol=5 * np.sqrt(2 / 4_000)
        )
    else:  # a value kept at 0.3 and at 0.9 was kept in between
        kept = (release.copies[0] == release.copies[1]).all(axis=1)
        assert (release.copies[2] == release.copies[1]).all(axis=1)[kept].mean() > 0.9


def test_a_folder_that_holds_no_release_of_the_table_is_refused(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 5.0, 7.0]})
    with pytest.raises(AuditorError, match="holds no whole release"):
        read_release(frame, tmp_path)
    frame.to_csv(tmp_path / "table.csv", index=False)
    write_copies(str(tmp_path / "table.csv"), "corner-wave", [0.5], None, tmp_path / "out")
    with pytest.raises(AuditorError, match="not as many records"):
        read_release(frame[:3], tmp_path / "out")
    with pytest.raises(AuditorError, match="holds no whole release of these columns"):
        read_release(frame.rename(columns={"a": "b"}), tmp_path / "out")
    (tmp_path / "out" / "copy-1.csv").unlink()
    with pytest.raises(AuditorError, match="holds no whole release"):
        read_release(frame, tmp_path / "out")
