"""Li et al. 2012, with errata: section 4, Theorems 3 and 4, equation 7."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import auditor
from auditor.schemes.base.noise_law import KroneckerNoise, makes_useless, one_suffices
from auditor.schemes.corner_wave import CornerWave, implied_level_covariance
from auditor_attacks.llse import llse_weights
from tests.llse_error import llse_error

ALGORITHMS = ("bridge", "parallel", "sequential", "on-demand")
positive = st.floats(0.01, 100.0)
properties = settings(max_examples=60, deadline=None, derandomize=True)

REGULAR = np.array([[4.0, 1.5, 0.2], [1.5, 2.0, -0.4], [0.2, -0.4, 1.0]])
PARTS = np.array([[1.0, 0.3], [0.3, 2.0]])
TOTAL = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
SINGULAR = TOTAL @ PARTS @ TOTAL.T  # a total and its parts
SCALE = np.diag([1e-3, 1.0, 1e5])
ILL_CONDITIONED = (
    SCALE @ np.array([[1.0, 0.999999, 0.2], [0.999999, 1.0, 0.2], [0.2, 0.2, 1.0]]) @ SCALE
)
TABLES = {"regular": REGULAR, "singular": SINGULAR, "ill-conditioned": ILL_CONDITIONED}


PAIR = np.array([9.0, 11.0])  # mean 10, variance 1


def example(scheme, coalition):
    return auditor.attack(
        "llse", auditor.perturb(PAIR, scheme=scheme, levels=[1.0, 4.0], seed=1), coalition=coalition
    )


@pytest.mark.parametrize(
    ("scheme", "coalition", "error"),
    [
        ("correlated", [1], 0.5),  # Alice
        ("correlated", [2], 0.8),  # Bob
        ("correlated", [1, 2], 4 / 9),  # together, noise drawn independently
        ("linearly-dependent", [1, 2], 0.0),  # 4.2.2
        ("corner-wave", [1, 2], 0.5),  # 4.3: no better than Alice alone
    ],
)
def test_section_4_average_estimation_errors(scheme, coalition, error):
    assert example(scheme, coalition).theory == pytest.approx(error, abs=1e-15)


def test_section_4_estimates_of_alice_and_bob():
    """``X̂(Y_1) = [9.5, 10.5] + 0.5 Z_1`` and ``X̂(Y_2) = [9.8, 10.2] + 0.2 Z_2``."""
    release = auditor.perturb(PAIR, scheme="correlated", levels=[1.0, 4.0], seed=1)
    for copy, mean, weight in ((1, [9.5, 10.5], 0.5), (2, [9.8, 10.2], 0.2)):
        np.testing.assert_allclose(
            auditor.attack("llse", release, coalition=[copy]).values,
            mean + weight * (release.copies[copy - 1] - PAIR),
        )


def test_section_4_joint_estimate_under_corner_wave_is_alice_s():
    release = auditor.perturb(PAIR, scheme="corner-wave", levels=[1.0, 4.0], seed=1)
    alone = auditor.attack("llse", release, coalition=[1]).values
    np.testing.assert_allclose(auditor.attack("llse", release).values, alone, rtol=1e-13)


def test_section_4_joint_estimate():
    """``X̂(Y_1, Y_2) = [85, 95]/9 + 4 Z_1/9 + Z_2/9``."""
    release = auditor.perturb(PAIR, scheme="correlated", levels=[1.0, 4.0], seed=1)
    Z_1, Z_2 = (copy - PAIR for copy in release.copies)
    expected = np.array([85.0, 95.0]) / 9 + 4 * Z_1 / 9 + Z_2 / 9
    np.testing.assert_allclose(auditor.attack("llse", release).values, expected)


@pytest.mark.parametrize("K_X", TABLES.values(), ids=TABLES)
@given(levels=st.lists(positive, min_size=1, max_size=12))
@properties
def test_theorem_3_error_of_independent_copies(K_X, levels):
    """``(1 + Σ 1/σ_i²)⁻¹ K_X``."""
    scale = np.sqrt(np.outer(np.diag(K_X), np.diag(K_X)))
    error = llse_error(K_X, KroneckerNoise(np.diag(levels), K_X)) / scale
    np.testing.assert_allclose(
        error, K_X / scale / (1 + sum(1 / s for s in levels)), rtol=1e-9, atol=1e-12
    )


def test_theorem_3_error_goes_to_zero_when_the_precisions_have_no_limit():
    """1000 copies at level 1: 1/1001."""
    error = llse_error(np.eye(1), KroneckerNoise(np.eye(1000), np.eye(1)))
    assert error[0, 0] == pytest.approx(1 / 1001)


def test_errata_theorem_3_error_stays_away_from_zero_when_the_precisions_have_a_limit():
    levels = [2.0**i for i in range(1, 41)]
    error = llse_error(np.eye(1), KroneckerNoise(np.diag(levels), np.eye(1)))
    assert error[0, 0] == pytest.approx(0.5, abs=1e-11)


MISSION_LEVELS = [0.6, 0.25, 1.0, 0.25, 0.0625, 0.6, 2.5]  # out of order, two levels repeated


def drawn_after_requests(algorithm, levels, cuts):
    scheme = CornerWave(algorithm=algorithm)
    steps = [
        step
        for a, b in itertools.pairwise([0, *cuts, len(levels)])
        for step in scheme.plan(levels[:b], a)
    ]
    return implied_level_covariance(steps, len(levels))


def subsets(M):
    return [c for size in range(1, M + 1) for c in itertools.combinations(range(1, M + 1), size)]


@pytest.mark.parametrize("K_X", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("cuts", [[], [1, 2, 4]], ids=lambda cuts: f"{len(cuts) + 1}-requests")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.slow_after_first
def test_mission_theorem_4_and_corollary_1_hold_exactly_for_every_subset(algorithm, cuts, K_X):
    law = KroneckerNoise(drawn_after_requests(algorithm, MISSION_LEVELS, cuts), K_X)
    deviations = np.sqrt(np.diag(K_X))
    for copies in subsets(len(MISSION_LEVELS)):
        least = min(MISSION_LEVELS[copy - 1] for copy in copies)
        error = llse_error(K_X, law.of(copies)) / np.outer(deviations, deviations)
        np.testing.assert_allclose(
            error, least / (1 + least) * K_X / np.outer(deviations, deviations), rtol=0, atol=1e-12
        )
        assert one_suffices(makes_useless(law), copies)


def mission_scenario(algorithm, K_X, already_out):
    return {
        "schema": 1, "title": "Theorem 4 over every subset", "seed": 2012,
        "data": {"source": "gaussian", "covariance": K_X.tolist(), "mean": 50.0, "rows": 3_000},
        "schemes": [{"name": "corner-wave", "levels": [0.6, 0.25, 1.0, 0.25], "algorithm": algorithm, "already-out": already_out}],
        "knowledge": ["perfect", {"estimated": {"rows": 400}}], "coalitions": ["subsets"], "attacks": ["llse", "ndr"],
        "expect": [{"no-collusion-gain": {}}, {"matches-theory": {"attack": "llse", "knowledge": "perfect"}}],
    }  # fmt: skip


@pytest.mark.parametrize(("algorithm", "table"), list(zip(ALGORITHMS, itertools.cycle(TABLES))))
@pytest.mark.slow
def test_mission_no_collusion_gain_holds_as_measured_for_every_subset(algorithm, table):
    result = auditor.run(mission_scenario(algorithm, TABLES[table], already_out=2))
    assert [
        (record.status, record.why) for record in result.expectations if record.status != "holds"
    ] == []


@given(levels=st.lists(positive, min_size=1, max_size=8), data=st.data())
@properties
def test_errata_corollary_1_every_principal_sub_block_is_corner_wave(levels, data):
    members = sorted(
        data.draw(st.sets(st.integers(1, len(levels)), min_size=1)),
        key=lambda copy: levels[copy - 1],
    )
    law = KroneckerNoise(CornerWave().level_covariance(levels), np.eye(1)).of(members)
    for i in range(len(members)):
        assert (law.level_covariance[i, i:] == law.level_covariance[i, i]).all()
        assert (law.level_covariance[i:, i] == law.level_covariance[i, i]).all()


@given(low=positive, high=positive)
@properties
def test_theorem_2_second_copy_gets_no_weight(low, high):
    """(11)."""
    low, high = sorted((low, high * 1.01 + low))
    W = llse_weights(REGULAR, KroneckerNoise(CornerWave().level_covariance([low, high]), REGULAR))
    np.testing.assert_allclose(W[:, :3], np.eye(3) / (1 + low), atol=1e-10)
    np.testing.assert_allclose(W[:, 3:], 0.0, atol=1e-10)


def first_form(K_X, K_Z):
    H = np.tile(np.eye(len(K_X)), (len(K_Z) // len(K_X), 1))
    return K_X - K_X @ H.T @ np.linalg.pinv(H @ K_X @ H.T + K_Z, hermitian=True) @ H @ K_X


def second_form(K_X, K_Z):
    """``(K_X⁻¹ + Hᵀ K_Z⁻¹ H)⁻¹``."""
    H = np.tile(np.eye(len(K_X)), (len(K_Z) // len(K_X), 1))
    return np.linalg.inv(np.linalg.inv(K_X) + H.T @ np.linalg.inv(K_Z) @ H)


@pytest.mark.parametrize(
    "Sigma", [np.diag([0.5, 1.0, 2.0]), np.minimum.outer([0.5, 1.0, 2.0], [0.5, 1.0, 2.0])]
)
@pytest.mark.parametrize("K_0", [REGULAR, np.eye(3), np.diag([3.0, 0.1, 1.0])])
def test_equation_7_both_forms_agree_with_ours_when_regular(Sigma, K_0):
    ours, K_Z = llse_error(REGULAR, KroneckerNoise(Sigma, K_0)), np.kron(Sigma, K_0)
    np.testing.assert_allclose(ours, first_form(REGULAR, K_Z), atol=1e-12)
    np.testing.assert_allclose(ours, second_form(REGULAR, K_Z), atol=1e-12)


@pytest.mark.parametrize(
    "Sigma",
    [np.minimum.outer([0.5, 0.5, 2.0], [0.5, 0.5, 2.0]), np.ones((2, 2)), np.diag([0.5, 1.0])],
)
def test_errata_14_equation_7_first_form_stands_singular_laws(Sigma):
    ours = llse_error(SINGULAR, KroneckerNoise(Sigma, SINGULAR))
    np.testing.assert_allclose(ours, first_form(SINGULAR, np.kron(Sigma, SINGULAR)), atol=1e-12)
