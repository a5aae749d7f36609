"""Noise that follows on from record to record: its law over blocks, batches and levels, what it guarantees, and what an audit says of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import toeplitz

import auditor
from auditor.data.sources.series import autoregression
from auditor.errors import AuditorError, ScenarioError
from auditor.numerics import blocks
from auditor.numerics.autoregression import Autoregression
from auditor.runs.copy_files import append_copies, write_copies
from auditor.schemes.base.guarantees import Guarantees
from auditor.schemes.base.noise_law import KroneckerNoise, makes_useless
from auditor.schemes.base.serial import FORGOTTEN
from auditor.schemes.corner_wave import CornerWave
from auditor.schemes.independent import Correlated
from auditor.testing import check_scheme
from auditor.testing.contract import ContractError

N = 400
"""Attributes of noise that is independent between them: as many draws of one series."""
LAW = (0.5, 0.2)
LEVELS = (1.0, 0.25, 0.5)
WIDE = np.random.default_rng(0).normal(size=(170, N))


@pytest.fixture
def short_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_VALUES", 1)
    assert blocks.block_rows(N) == 64


def series(rows, a=0.9, seed=0):
    return autoregression(np.random.default_rng(seed).normal(size=(rows, 2)), a) @ [
        [1.0, 0.5],
        [0.0, 2.0],
    ]


def holds_its_law(release, rows):
    """Assert that noise at these rows, of all copies, has ``R ⊗ Sigma``, by N independent draws of it: 6 deviations, once in 10⁵ runs."""
    Z = np.array([copy[rows] - release.original[rows] for copy in release.copies])
    found = np.einsum("ain,bjn->aibj", Z, Z) / N
    R = toeplitz(Autoregression(LAW).autocorrelations(len(WIDE)))[np.ix_(rows, rows)]
    expected = np.einsum("ab,ij->aibj", np.minimum.outer(release.levels, release.levels), R)
    own = np.einsum("aiai->ai", expected)
    spread = np.sqrt((expected**2 + own[:, :, None, None] * own) / N)
    assert (np.abs(found - expected) < 6 * spread).all()


@pytest.mark.parametrize("algorithm", ["bridge", "parallel"])
def test_it_has_its_law_within_blocks_across_them_and_over_levels(algorithm, short_blocks):
    release = auditor.perturb(
        WIDE,
        "corner-wave",
        LEVELS[:2],
        seed=1,
        serial=list(LAW),
        noise={"variance": 1.0},
        algorithm=algorithm,
    )
    release = release.extend(LEVELS[2:], seed=2)
    holds_its_law(release, np.r_[0:3, 30, 58:70, 120:130, 167:170])


def test_a_later_batch_goes_on_where_the_one_before_ended_one_record_or_many(short_blocks, recwarn):
    release = auditor.perturb(
        WIDE[:20], "corner-wave", LEVELS, seed=1, serial=list(LAW), noise={"variance": 1.0}
    )
    for stop in (21, 22, 30, 120):  # the last of more than a block
        release = release.append(WIDE[len(release.original) : stop], seed=stop)
    holds_its_law(release.extend([2.0], seed=3), np.r_[15:32, 90:100])


@pytest.mark.slow_after_first
@pytest.mark.parametrize(("cls", "serial"), [(CornerWave, list(LAW)), (Correlated, [0.8])])
def test_it_keeps_the_contract_of_schemes(cls, serial):
    check_scheme(cls, {"serial": serial})


def test_noise_that_is_not_as_it_is_said_to_follow_on_is_found():
    class Afresh(CornerWave):
        """States that noise follows on, and draws it afresh for every record."""

        def sampler(self, levels, table, key, existing=0):
            return CornerWave().sampler(levels, table, key, existing)

    class Silent(CornerWave):
        """Draws noise that follows on, and does not say so."""

        def law(self, levels, table):
            return CornerWave().law(levels, table)

    for cls in (Afresh, Silent):
        with pytest.raises(ContractError, match="follows its law"):
            check_scheme(cls, {"serial": [0.3]})


def test_copies_hold_no_more_together_than_the_best_of_them_over_all_records():
    """Theorem 4 by exact posteriors of six records that follow one another, as their noise does."""
    K_X = toeplitz(0.8 ** np.arange(6))
    for Sigma, gains in ((np.minimum.outer(LEVELS, LEVELS), False), (np.diag(LEVELS), True)):
        K_Z = np.kron(Sigma, toeplitz(Autoregression(LAW).autocorrelations(6)))
        H = np.tile(np.eye(6), (3, 1))
        best = K_Z[6:12, 6:12]
        together = np.linalg.inv(np.linalg.inv(K_X) + H.T @ np.linalg.inv(K_Z) @ H)
        alone = np.linalg.inv(np.linalg.inv(K_X) + np.linalg.inv(best))
        assert np.allclose(together, alone, atol=1e-10) != gains
        assert (
            makes_useless(KroneckerNoise(Sigma, np.eye(1), serial=Autoregression(LAW)))[1].all()
            != gains
        )


def test_a_guarantee_is_made_of_what_the_noise_of_all_other_records_leaves_of_one_s():
    law = KroneckerNoise(np.array([[2.0]]), np.diag([1.0, 4.0]), serial=Autoregression((0.95,)))
    found = Guarantees(law, np.array([1.0, 2.0]), 1e-6).of([1])["gaussian_dp"].value
    assert found == pytest.approx(1.0 * np.sqrt((1 + 0.95**2) / (1 - 0.95**2)))
    # the whole table's noise, and a change of the record in its middle
    R = toeplitz(0.95 ** np.arange(41))
    change = np.outer(np.arange(41) == 20, [1.0, 2.0]).ravel()
    assert found == pytest.approx(
        np.sqrt(change @ np.linalg.solve(np.kron(R, 2.0 * law.shape), change))
    )
    with pytest.raises(ScenarioError, match="not found for noise that follows on"):
        auditor.run({"schema": 1, "data": {"source": "autoregressive", "rows": 50, "attributes": 1, "bounds": {"x1": [-9, 9]}},
                     "schemes": [{"name": "corner-wave", "levels": {"gaussian-dp": [1.0]}, "serial": [0.5]}], "attacks": ["llse"]})  # fmt: skip


def test_it_follows_the_data_and_is_drawn_afresh_beside_data_in_no_order():
    X = series(4000)
    law = auditor.perturb(X, "corner-wave", [1.0], seed=1, serial="data").law
    (a,) = law.serial.coefficients
    assert abs(a - 0.9) < 5 * np.sqrt((1 - 0.9**2) / 8000)
    same, mixed = series(3000, 0.0), {}
    for serial in ("none", "data"):
        mixed[serial] = auditor.perturb(same, "corner-wave", [1.0], seed=1, serial=serial)
    assert mixed["data"].law.serial is None
    np.testing.assert_array_equal(*(mixed[serial].copies[0] for serial in mixed))
    # singular, in other units: the same directions
    names = {"a": 2 * X[:, 0], "b": X[:, 1] - 2 * X[:, 0], "total": X[:, 1]}
    assert auditor.perturb(
        pd.DataFrame(names), "correlated", [1.0], seed=1, serial="data"
    ).law.serial.coefficients == pytest.approx((a,))


def test_a_batch_in_files_goes_on_as_in_memory(tmp_path):
    X = pd.DataFrame(series(260), columns=["a", "b"])
    for name, part in (("first", X[:200]), ("second", X[200:])):
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    write_copies(
        str(tmp_path / "first.csv"),
        "corner-wave",
        [0.5, 1.0],
        1,
        tmp_path / "out",
        parameters={"serial": "data"},
    )
    append_copies(
        str(tmp_path / "second.csv"), tmp_path / "out", [str(tmp_path / "first.csv")], seed=2
    )
    written = pd.read_csv(tmp_path / "out" / "copy-1-batch-2.csv")
    memory = auditor.perturb(X[:200], "corner-wave", [0.5, 1.0], seed=1, serial="data").append(
        X[200:].reset_index(drop=True), seed=2
    )
    np.testing.assert_allclose(written, memory.copies[0][200:], rtol=1e-12)


@pytest.mark.parametrize(("serial", "why"), [
    ([1.0], "stationary"), ([], "1 to 12 coefficients"), ([0.1] * 13, "1 to 12 coefficients"), ("yes", "none"), (["a"], "number"),
])  # fmt: skip
def test_what_is_no_autoregression_is_refused_where_it_stands(serial, why):
    with pytest.raises(ScenarioError, match=why) as caught:
        auditor.run({"schema": 1, "data": {"source": "autoregressive", "rows": 50},
                     "schemes": [{"name": "corner-wave", "levels": [1.0], "serial": serial}], "attacks": ["llse"]})  # fmt: skip
    assert "schemes[0].serial" in str(caught.value)


def test_the_coefficient_that_a_refusal_names_is_accepted():
    """Of two columns a block is so long that the largest one would be rounded up to 1."""
    with pytest.raises(AuditorError, match=r"of less memory, as \[0\.999894\]"):
        auditor.perturb(series(50), "corner-wave", [1.0], serial=[1 - 1e-6])
    auditor.perturb(series(50), "corner-wave", [1.0], serial=[0.999894])


def test_noise_that_remembers_more_than_a_block_is_refused_and_so_is_a_batch_after_too_few_records(
    short_blocks,
):
    longest = FORGOTTEN ** (1 / 64)
    with pytest.raises(AuditorError, match="still shows after 64 records"):
        auditor.perturb(WIDE, "corner-wave", [1.0], seed=1, serial=[longest + 1e-6])
    auditor.perturb(WIDE[:3], "corner-wave", [1.0], seed=1, serial=[longest - 1e-6])
    few = auditor.perturb(WIDE[:2], "corner-wave", [1.0], seed=1, serial=[0.1, 0.1, 0.1])
    with pytest.raises(AuditorError, match="needs as many before a batch; got 2 records"):
        few.append(WIDE[2:3], seed=2)
