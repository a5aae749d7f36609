"""Known-sample attack."""

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

from auditor.data.sources.gaussian import DRAW
from auditor.runs.estimate import attack
from auditor.runs.perturb import perturb
from auditor_attacks.known_sample import choose_signs, energy, turning


def naive_energy(a, b):
    """2 E‖p − q‖ − E‖p − p'‖ − E‖q − q'‖, pair by pair."""

    def mean(u, v):
        return np.mean([[np.linalg.norm(x - y) for y in v] for x in u])

    return 2 * mean(a, b) - mean(a, a) - mean(b, b)


@given(st.integers(0, 2**32 - 1))
def test_energy_is_its_definition(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((5, 1)), rng.standard_normal((7, 1)) + 1
    assert energy(a[:, 0], b[:, 0]) == pytest.approx(naive_energy(a, b), abs=1e-12)


def test_the_best_of_all_signs_is_found():
    a = np.random.default_rng(1).normal(size=(60, 2)) + np.array([0.15, 0.1])
    a = np.column_stack([a, a.sum(axis=1) ** 2])
    b = a[:50] * [1, -1, 1]
    found = choose_signs(a, b, 3, 60)
    scale = a.std(axis=0)
    best = min(
        itertools.product([1, -1], repeat=found.open.size),
        key=lambda D: naive_energy(signed(a, found, D) / scale, b / scale),
    )
    assert tuple(found.values[found.open]) == best


def signed(a, found, D):
    signs = found.values.copy()
    signs[found.open] = D
    return a * signs


def table(shape, N, rows, ratio, seed, mean=0.0):
    rng = np.random.default_rng(seed)
    return (
        np.column_stack([DRAW[shape](rows, rng) for _ in range(N)]) + mean
    ) * ratio ** np.arange(N)


def test_the_turn_of_axes_is_its_definition():
    """Mean over records of TᵀT, T_ij = z_i z_j / (v_j − v_i) off the diagonal."""
    z = np.random.default_rng(3).exponential(size=(40, 3)) - 1
    variances, naive = np.array([9.0, 4.0, 1.0]), np.zeros((3, 3))
    gap = variances - variances[:, None] + np.eye(3)
    for record in z:
        T = np.outer(record, record) / gap * (1 - np.eye(3))
        naive += T.T @ T / len(z)
    np.testing.assert_allclose(turning(z, variances, 50), naive / 50, atol=1e-15)


@pytest.mark.slow
def test_signs_of_symmetric_data_cannot_be_told():
    """Twelve centred normal attributes, 8 tries: by chance all signs are right in 8/4096."""
    knows = {"known-sample": 1000}
    errors = [attack("known-sample", perturb(table("normal", 12, 2500, 1.5, seed), "rotation", [0], seed=seed), knowledge=knows,
                     coalition=[1]).normalized_error for seed in range(8)]  # fmt: skip
    assert np.mean(errors) > 0.5


def test_the_sample_is_not_among_the_rows_that_are_attacked():
    X = table("exponential", 3, 500, 1.5, 6)
    changed = X.copy()
    release = perturb(X, "rotation", [0], seed=5)
    from auditor.adversary.knowledge import KnownSample
    from auditor.audit.numeric.moment_pass import chosen_rows

    rows = chosen_rows(KnownSample(100), 500, 0, 1)
    changed[rows] += 0.0
    poisoned = release.copies[0].copy()
    poisoned[rows] = 1e3  # visible only to an adversary who reads these rows
    other = type(release)(X, (poisoned,), release.levels, release.scheme)
    one = attack("known-sample", release, knowledge={"known-sample": 100}, coalition=[1])
    two = attack("known-sample", other, knowledge={"known-sample": 100}, coalition=[1])
    assert one.distortion == two.distortion


@pytest.mark.parametrize(("scheme", "levels", "options"), [
    ("rotation", [0], {}), pytest.param("rotation", [0], {"translation": True}, marks=pytest.mark.slow), pytest.param("rotation-noise", [0.1], {}, marks=pytest.mark.slow),
])  # fmt: skip
def test_the_error_is_first_order_theory(scheme, levels, options):
    X = (table("exponential", 4, 3000, 1.7, 1, mean=1.0) @ np.linalg.qr(np.random.default_rng(5).standard_normal((4, 4)))[0])  # fmt: skip
    found = [attack("known-sample", perturb(X, scheme, levels, seed=seed, **options), knowledge={"known-sample": 1500}, coalition=[1], seed=seed)
             for seed in range(80)]  # fmt: skip
    error, theory = (np.array([e.distortion for e in found]), np.array([e.theory for e in found], dtype=float))  # fmt: skip
    assert np.isfinite(theory).all()
    assert abs(error.mean() - theory.mean()) < 4 * error.std() / np.sqrt(80) + 0.1 * theory.mean()
    assert theory.std() < 0.3 * theory.mean()


def rebuilt(ratio, projected, seed):
    X = table("exponential", 6, 4000, ratio, seed) - ratio ** np.arange(6)
    release = perturb(X, "rotation", [0], seed=seed)
    if projected:
        M = np.random.default_rng(1000 + seed).normal(size=(6, 6)) / np.sqrt(6)
        release = type(release)(X, (X @ M.T,), release.levels, release.scheme)
    found = attack(
        "known-sample", release, knowledge={"known-sample": 2000}, coalition=[1], rows=400
    )
    near = np.linalg.norm(found.values - X, axis=1) <= 0.2 * np.linalg.norm(X, axis=1)
    return found.normalized_error, near.mean()


def test_it_rebuilds_a_rotation_and_fails_on_a_random_projection():
    turned, projected = (
        np.array([rebuilt(1.2, how, seed) for seed in range(10)]) for how in (False, True)
    )
    assert (turned[:, 0] < 0.05).all()
    assert (turned[:, 1] > 0.85).all()
    assert projected[:, 0].mean() > 1.0
    assert (projected[:, 0] > 10 * turned[:, 0]).all()
    assert projected[:, 1].mean() < 0.05


def test_averaged_over_matrices_a_projected_covariance_is_isotropic():
    """``E[M K Mᵀ] = tr K · I / n'``: entries within 4.5 standard errors over 2,000 releases."""
    K = np.diag([9.0, 4.0, 1.0]) + 0.5
    X = np.linalg.cholesky(K).T * np.sqrt(3)  # XᵀX / 3 = K
    Y = np.array([perturb(X, "random-projection", [0], seed=seed, dimensions=4).copies[0] for seed in range(2000)])  # fmt: skip
    S = Y.swapaxes(1, 2) @ Y / 3
    gap = np.abs(S.mean(axis=0) - np.trace(K) / 4 * np.eye(4))
    assert (gap < 4.5 * S.std(axis=0) / np.sqrt(len(S))).all()


def test_of_very_uneven_data_one_matrix_keeps_the_widest_axis():
    """ERRATA: Σ_Y = γI on average over matrices; one matrix leaves the widest axis widest."""
    errors = np.array([rebuilt(1.5, True, seed)[0] for seed in range(10)])
    assert np.median(errors) < 0.6
    assert errors.max() > 1.0
