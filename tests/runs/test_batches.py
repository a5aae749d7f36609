"""Records in batches."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import block_diag

import auditor
from auditor import AuditorError, read_release
from auditor.base import AuditorWarning
from auditor.runs.copy_files.read import append_copies
from auditor.runs.copy_files.write import write_copies
from auditor.runs.perturb import as_table
from auditor.schemes.base.scheme import table_moments
from auditor.schemes.corner_wave import CornerWave, implied_level_covariance

RNG = np.random.default_rng(0)
FIRST = RNG.normal(size=(12_000, 2)) @ [[1.0, 0.5], [0.0, 2.0]] + [40.0, 900.0]
SECOND = RNG.normal(size=(8_000, 2)) @ [[0.9, 0.5], [0.0, 2.2]] + [45.0, 880.0]
PEOPLE = pd.DataFrame(
    {"age": [30.0, 41.0, 52.0, 63.0], "pay": [1.0, 2.5, 2.0, 4.0]},
    index=["ann", "bob", "cyd", "dee"],
)


def refusal(call, *args, **kwargs):
    with pytest.raises(AuditorError) as caught:
        call(*args, **kwargs)
    return str(caught.value)


@pytest.mark.parametrize("scheme", ["corner-wave", "linearly-dependent", "laplace-multilevel"])
def test_old_records_are_left_alone_and_new_ones_have_the_first_batch_s_noise(scheme):
    levels = (1.0, 0.25)
    before = auditor.perturb(FIRST, scheme, levels, seed=1)
    release = before.append(SECOND, seed=1)
    for old, new in zip(before.copies, release.copies, strict=True):
        np.testing.assert_array_equal(new[: len(FIRST)], old)
    np.testing.assert_array_equal(release.law.covariance, before.law.covariance)
    assert not release.law.follows_data  # who must estimate K_X has no estimate of K_0
    Z = np.hstack([copy - release.original for copy in release.copies])[len(FIRST) :]
    K, n = release.law.covariance, len(SECOND)
    # E Z⁴/σ⁴ − 1, which is 2 of Gaussian noise and 5 of Laplace's
    tails = 2.5 if "laplace" in scheme else 1.0
    # no less than that of any of its covariances
    spread = np.sqrt(tails * (K**2 + np.outer(np.diag(K), np.diag(K))) / n)
    assert (np.abs(Z.T @ Z / n - K) < 5 * spread).all()  # 16 entries: once in 10⁵


def test_noise_is_independent_between_batches_even_from_one_seed_and_of_the_same_records():
    levels = [0.5, 1.0]
    before = auditor.perturb(FIRST, "corner-wave", levels, seed=1)
    with pytest.warns(AuditorWarning, match="equal one that is out already"):
        release = before.append(FIRST, seed=1)
    n = len(FIRST)
    Z = [(copy - release.original) / np.sqrt(np.diag(release.law.shape)) for copy in release.copies]
    for a, first in zip(levels, Z, strict=True):
        for b, second in zip(levels, Z, strict=True):
            met = (first[:n] * second[n:]).mean(axis=0) / np.sqrt(a * b)
            assert (np.abs(met) < 5 / np.sqrt(n)).all()


def joint(prior, held, noise):
    H = np.kron(np.eye(2)[[batch for batch, _ in held]], np.eye(len(prior) // 2))
    return prior - prior @ H.T @ np.linalg.solve(H @ prior @ H.T + noise, H @ prior)


def noise_of(held, Sigma, records, same=False):
    whole = np.kron(np.ones((2, 2)), Sigma) if same else block_diag(Sigma, Sigma)
    places = [2 * batch + level for batch, level in held]
    return np.kron(whole[np.ix_(places, places)], np.eye(records))


def test_theorem_4_over_batches_and_levels_by_exact_posteriors_of_records_that_depend_on_each_other():
    levels = [0.25, 1.0]
    Sigma = implied_level_covariance(CornerWave().plan(levels), 2)
    t = np.arange(6)
    prior = 0.9 ** np.abs(t[:, None] - t)  # six records in order of time, three a batch
    every, best = [(0, 0), (0, 1), (1, 0), (1, 1)], [(0, 0), (1, 0)]
    # batch 1 at both levels, batch 2 at the second
    mixed, sufficient = [(0, 0), (0, 1), (1, 1)], [(0, 0), (1, 1)]
    for held, least in ((every, best), (mixed, sufficient)):
        np.testing.assert_allclose(
            joint(prior, held, noise_of(held, Sigma, 3)),
            joint(prior, least, noise_of(least, Sigma, 3)),
            atol=1e-12,
        )
    alone = joint(prior, sufficient, noise_of(sufficient, Sigma, 3, same=True))
    assert np.trace(joint(prior, mixed, noise_of(mixed, Sigma, 3, same=True))) < 0.99 * np.trace(
        alone
    )


def test_records_that_are_out_are_refused_by_their_labels_and_counted():
    release = auditor.perturb(PEOPLE, "corner-wave", [0.5], seed=1)
    batch = PEOPLE.iloc[[1, 3]].rename(index={"dee": "eve"}) + 1.0
    said = refusal(release.append, batch)
    assert "1 of 2 records of the batch has the label of a record that is out already" in said
    assert "bob" not in said
    with pytest.warns(AuditorWarning, match="1 of 2 records"):
        assert len(release.append(batch, repeats="allow").copies[0]) == 6
    assert list(release.append(batch.rename(index={"bob": "fay", "eve": "gil"})).copies[0].index)[
        -2:
    ] == ["fay", "gil"]


@pytest.mark.parametrize(("batch", "why"), [(PEOPLE[["age"]], "must have the columns of the records before it"), (PEOPLE.assign(age=np.nan), "missing values"), (PEOPLE.iloc[:0], "at least 1 row; got 0")])  # fmt: skip
def test_what_is_no_batch_is_refused(batch, why):
    batch = batch.set_axis(list("wxyz")[: len(batch)]) if isinstance(batch, pd.DataFrame) else batch
    assert why in refusal(auditor.perturb(PEOPLE, "corner-wave", [0.5], seed=1).append, batch)


def written(tmp_path, form="csv", scheme="corner-wave", precision="double", **more):
    rng = np.random.default_rng(3)
    for number, month in enumerate(("january", "february", "march")):
        ids = 1_000 * number + np.arange(500)
        people = {
            "id": ids, "age": rng.integers(18, 80, 500), "pay": rng.normal(3e3, 4e2, 500),
            "job": rng.choice(list("abc"), 500),
        }  # fmt: skip
        pd.DataFrame(people).to_csv(tmp_path / f"{month}.csv", index=False)
    columns = ["job"] if scheme.startswith("uniform") else ["age", "pay"]
    levels = [0.3, 0.9] if scheme.startswith("uniform") else [1.0, 0.25]
    write_copies(
        str(tmp_path / "january.csv"), scheme, levels, None, tmp_path / "out", columns, form=form,
        precision=precision, **more,
    )  # fmt: skip
    return [str(tmp_path / f"{month}.csv") for month in ("january", "february", "march")]


@pytest.mark.parametrize(("form", "scheme", "precision"), [
    ("csv", "corner-wave", "double"), ("parquet", "corner-wave", "single"), ("csv", "uniform-multilevel", "double"),
])  # fmt: skip
def test_a_batch_is_written_beside_what_is_out_and_read_with_it(tmp_path, form, scheme, precision):
    january, february, march = written(tmp_path, form, scheme, precision, keep=["id"])
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").glob("copy-*")}
    append_copies(february, tmp_path / "out", [january])
    append_copies(march, tmp_path / "out", [january, february], key="id")
    assert {name: (tmp_path / "out" / name).read_bytes() for name in before} == before
    manifest = json.loads((tmp_path / "out" / "release.json").read_text())
    assert [part["copies"] for part in manifest["later_batches"]] == [
        [f"copy-{k}-batch-{b}.{form}" for k in (1, 2)] for b in (2, 3)
    ]
    assert [part["kept"] for part in manifest["later_batches"]] == [["id"], ["id"]]
    frames = [pd.read_csv(path) for path in (january, february, march)]
    release = read_release(frames, tmp_path / "out")
    assert [len(copy) for copy in release.copies] == [1_500, 1_500]
    assert release.extend([0.5]).levels == (*manifest["levels"], 0.5)
    if scheme == "corner-wave":
        assert release.first_batch == 500
        np.testing.assert_array_equal(
            release.law.shape, table_moments(as_table(frames[0][["age", "pay"]])).covariance
        )
        later = np.stack(
            [(copy - release.original)["pay"][500:] for copy in release.copies]
        ) / frames[0]["pay"].std(ddof=0)
        np.testing.assert_allclose(
            np.cov(later),
            np.minimum.outer(release.levels, release.levels),
            atol=5 * np.sqrt(2 / 1_000),
        )


def test_nothing_that_the_first_batch_s_moments_could_be_read_from_is_in_a_file(tmp_path):
    january, february, _ = written(tmp_path)
    append_copies(february, tmp_path / "out", [january])
    manifest = json.loads((tmp_path / "out" / "release.json").read_text())
    assert set(manifest["later_batches"][0]) == {
        *"rows grid missing for_study_only copies fingerprint fingerprint_key".split()
    }
    assert manifest["parameters"] == {"noise": "data", "algorithm": "bridge", "serial": "none"}


def test_what_is_no_release_or_not_what_was_released_is_refused(tmp_path):
    january, february, march = written(tmp_path)
    assert "holds no whole release" in refusal(append_copies, february, tmp_path, [january])
    sentence = (
        "name the originals of each batch that is out, in order, each by --earlier FILE: 1; got 0"
    )
    assert sentence in refusal(append_copies, february, tmp_path / "out", [])
    pd.read_csv(january)[:400].to_csv(march, index=False)
    assert "has 400 records, and 500 of its batch are out" in refusal(
        append_copies, february, tmp_path / "out", [march]
    )
    # as many records, but others
    said = refusal(append_copies, march, tmp_path / "out", [february])
    assert "february.csv: cannot be what copy-1.csv is of" in said
    assert "have the key of a record that is out already" in refusal(
        append_copies, march, tmp_path / "out", [january], key="id"
    )
    with pytest.warns(AuditorWarning, match="400 of 400 records"):
        append_copies(march, tmp_path / "out", [january], key="id", repeats=True)
    assert "holds a release of 500 records" in refusal(
        write_copies, january, "corner-wave", [1.0, 0.25], None, tmp_path / "out", ["age", "pay"]
    )
    (tmp_path / "out" / "copy-2.csv").unlink()  # an old copy is not needed
    (tmp_path / "out" / "copy-2-batch-3.csv").touch()
    assert "holds copy-2-batch-3.csv, which release.json does not name" in refusal(
        append_copies, february, tmp_path / "out", [january, march]
    )


@pytest.mark.slow
@pytest.mark.parametrize("leak", [False, True])
def test_an_audit_of_all_batches_finds_noise_drawn_twice_from_one_key(tmp_path, monkeypatch, leak):
    n = 4_000
    for month, rows in (("1", FIRST[:n]), ("2", 1.1 * SECOND[:n])):
        pd.DataFrame(rows, columns=["a", "b"]).to_csv(tmp_path / f"{month}.csv", index=False)
    if leak:
        monkeypatch.setattr("auditor.schemes.draw.secret_of", lambda seed, fingerprint: 7)
    first, second = str(tmp_path / "1.csv"), str(tmp_path / "2.csv")
    write_copies(first, "corner-wave", [0.5, 1.0], 7, tmp_path / "out")
    append_copies(second, tmp_path / "out", [first], 7)
    monkeypatch.undo()
    frames = [pd.read_csv(first), pd.read_csv(second)]
    release = read_release(frames, tmp_path / "out")
    pd.concat(frames).to_csv(tmp_path / "all.csv", index=False)
    for k, copy in enumerate(release.copies, start=1):
        copy.to_csv(tmp_path / f"copy-{k}.csv", index=False)
    shown = release.copies[1][n:].to_numpy() - release.copies[1][:n].to_numpy()
    # Y_2 − Y_1 = X_2 − X_1
    assert np.allclose(shown, (frames[1] - frames[0]).to_numpy(), atol=1e-3) == leak
    copies = [str(tmp_path / "copy-1.csv"), str(tmp_path / "copy-2.csv")]
    published = {
        "name": "published", "copies": copies, "levels": [0.5, 1.0],
        "law": {"scheme": "corner-wave"},
    }  # fmt: skip
    result = auditor.run({
        "schema": 1, "title": "All batches", "data": {"source": str(tmp_path / "all.csv"), "first-batch": n}, "schemes": [published],
        "attacks": ["llse"], "coalitions": ["singles", "all"], "expect": ["noise-follows-law", "no-collusion-gain", "matches-theory"],
    })  # fmt: skip
    assert result.expectations[0].status == ("fails" if leak else "holds"), result.expectations[
        0
    ].why
    assert leak or {found.status for found in result.expectations} == {"holds"}
