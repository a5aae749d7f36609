"""The public grid of released numbers."""

import os
import secrets
import stat

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

import auditor
from auditor import AuditorError
from auditor.registry import get
from auditor.runs.copy_files.read import read_release
from auditor.runs.copy_files.write import write_copies
from auditor.runs.perturb import as_table
from auditor.schemes.base.scheme import Key, table_moments
from auditor.schemes.corner_wave import ORIGINAL, CornerWave
from auditor.schemes.draw import released_grid
from tests.schemes.low_order_bits import determined

BINARY = np.random.default_rng(1).integers(0, 2, (20_000, 1)).astype(float)
LEVELS = [2.0, 0.5, 1.0, 0.0, 1.0]


def deviation(level):
    return np.sqrt(level) * np.sqrt(table_moments(as_table(BINARY)).covariance[0, 0])


def test_last_digits_gave_a_quarter_of_the_records_away():
    scheme, copy, sigma = get("scheme", "independent")(), np.empty_like(BINARY), deviation(10.0)
    scheme.sampler((10.0,), table_moments(as_table(BINARY)), Key(5, "independent")).block(
        0, BINARY, [copy]
    )
    found = determined(copy[:, 0], [0.0, 1.0], sigma, lambda x, g: x + sigma * g)
    certain = np.isfinite(found)
    assert certain.mean() > 0.25
    np.testing.assert_array_equal(found[certain], BINARY[certain, 0])


@given(levels=st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0, 3.0]), min_size=1, max_size=8))
def test_every_copy_but_the_least_perturbed_is_drawn_without_the_original(levels):
    """So Theorem 4 is exact however sums are rounded."""
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


def test_a_noisier_copy_is_the_same_whatever_the_original_was():
    moments, grid = (
        table_moments(as_table(BINARY)),
        released_grid(CornerWave(), as_table(BINARY), (0.5, 2.0)),
    )
    first = auditor.perturb(BINARY, "corner-wave", [0.5], seed=1).copies[0]
    drawn = []
    for x in (BINARY, np.full_like(BINARY, np.nan)):
        second = np.empty_like(BINARY)
        CornerWave().sampler((0.5, 2.0), moments, Key(2, "corner-wave", grid=grid), 1).block(
            0, x, [first, second], 1
        )
        drawn.append(second)
    np.testing.assert_array_equal(*drawn)


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.slow
def test_files_of_a_release_keep_theorem_4_and_every_figure(tmp_path, monkeypatch, precision):
    monkeypatch.setattr(secrets, "token_bytes", lambda count: bytes(range(7, 7 + count)))
    rng = np.random.default_rng(3)
    hiv = BINARY[:5_000, 0]
    frame = pd.DataFrame({"hiv": hiv, "income": np.exp(10 + hiv + rng.standard_normal(5_000))})
    frame.to_parquet(tmp_path / "table.parquet")
    levels = [1.0, 0.25, 0.5]
    *files, _ = write_copies(
        str(tmp_path / "table.parquet"), "corner-wave", levels, None, tmp_path / "out",
        precision=precision,
    )  # fmt: skip
    result = auditor.run({
        "schema": 1, "title": "a release", "seed": 1, "data": {"source": str(tmp_path / "table.parquet")},
        "schemes": [{"name": "published", "levels": levels, "copies": [str(path) for path in files], "law": {"scheme": "corner-wave"}}],
        "knowledge": ["perfect"], "coalitions": ["subsets"], "attacks": ["llse", "ndr"], "expect": ["no-collusion-gain", "matches-theory"],
    })  # fmt: skip
    assert [record.status for record in result.expectations] == ["holds", "holds"]


@pytest.mark.parametrize(("algorithm", "seed"), [("bridge", None), ("bridge", 3), ("on-demand", 3)])
def test_every_copy_lies_on_the_grid_but_the_original_itself(algorithm, seed):
    X = np.hstack([BINARY + np.pi, 1e5 * np.random.default_rng(0).random(BINARY.shape)])
    release = auditor.perturb(X, "corner-wave", LEVELS, seed=seed, algorithm=algorithm).extend(
        [0.3, 1.0, 0.0], seed=seed
    )
    grid = np.array(released_grid(release.scheme, as_table(X), release.levels))
    assert (np.log2(grid) % 1 == 0).all()
    for level, copy in zip(release.levels, release.copies, strict=True):
        if level == 0:
            np.testing.assert_array_equal(copy, X)
        else:
            assert not ((copy / grid) % 1).any()
    np.testing.assert_array_equal(release.copies[2], release.copies[4])
    np.testing.assert_array_equal(release.copies[2], release.copies[6])


def test_noise_that_a_double_cannot_hold_beside_its_values_is_refused_by_name():
    frame = pd.DataFrame({"small": BINARY[:, 0], "far": BINARY[:, 0] + 87_654e8})
    with pytest.raises(AuditorError) as caught:
        auditor.perturb(frame, "corner-wave", [1e-6])
    assert str(caught.value).startswith(
        "column 'far': its noise is lost in the last digits of 64-bit numbers of its values' size"
    )
    assert "8765" not in str(caught.value)


@pytest.fixture(params=[0o022, 0o077], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_copies_are_their_owner_s_alone_and_the_manifest_follows_the_umask(
    tmp_path, monkeypatch, umask
):
    from auditor.runs.copy_files import write as writing

    modes, append = [], writing._File.append

    def watched(self, frame):
        append(self, frame)
        modes.extend(stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "out").iterdir())

    monkeypatch.setattr(writing._File, "append", watched)
    source, out = tmp_path / "table.csv", tmp_path / "out"
    pd.DataFrame({"a": [1.0, 2.0, 5.0]}).to_csv(source, index=False)
    out.mkdir()
    (out / "copy-1.csv").touch()
    (out / "copy-1.csv").chmod(0o640)  # an existing copy is replaced, with its permissions
    for _ in range(2):
        write_copies(str(source), "corner-wave", [0.5], None, out, force=True)
    assert {stat.S_IMODE(path.stat().st_mode) for path in out.glob("copy-*")} == {0o600}
    shared = 0o666 & ~umask
    # the earlier file, unfinished files, a copy, the manifest
    assert sorted(modes) == sorted([0o640, 0o600, 0o600, 0o600, shared])
    assert stat.S_IMODE((out / "release.json").stat().st_mode) == shared


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
