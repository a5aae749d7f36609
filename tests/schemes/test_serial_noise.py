"""Serially correlated noise."""

import numpy as np
import pytest
from scipy.linalg import toeplitz

import auditor
from auditor.base import ScenarioError
from auditor.numerics import blocks
from auditor.numerics.linear_algebra import Autoregression
from auditor.schemes.base.guarantees import Guarantees
from auditor.schemes.base.noise_law import KroneckerNoise, makes_useless
from auditor.schemes.corner_wave import CornerWave
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


def holds_its_law(release, rows):
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
        WIDE, "corner-wave", LEVELS[:2], seed=1, serial=list(LAW), noise={"variance": 1.0},
        algorithm=algorithm,
    )  # fmt: skip
    release = release.extend(LEVELS[2:], seed=2)
    holds_its_law(release, np.r_[0:3, 30, 58:70, 120:130, 167:170])


def test_a_later_batch_goes_on_where_the_one_before_ended_one_record_or_many(short_blocks, recwarn):
    release = auditor.perturb(
        WIDE[:20], "corner-wave", LEVELS, seed=1, serial=list(LAW), noise={"variance": 1.0}
    )
    for stop in (21, 22, 30, 120):  # the last of more than a block
        release = release.append(WIDE[len(release.original) : stop], seed=stop)
    holds_its_law(release.extend([2.0], seed=3), np.r_[15:32, 90:100])


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


@pytest.mark.parametrize(("serial", "why"), [
    ([1.0], "stationary"), ([], "1 to 12 coefficients"), ([0.1] * 13, "1 to 12 coefficients"), ("yes", "none"), (["a"], "number"),
])  # fmt: skip
def test_what_is_no_autoregression_is_refused_where_it_stands(serial, why):
    with pytest.raises(ScenarioError, match=why) as caught:
        auditor.run({"schema": 1, "data": {"source": "autoregressive", "rows": 50},
                     "schemes": [{"name": "corner-wave", "levels": [1.0], "serial": serial}], "attacks": ["llse"]})  # fmt: skip
    assert "schemes[0].serial" in str(caught.value)
