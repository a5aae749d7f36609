"""The moment engine against row-level reconstruction, and its error bars against brute force.

Monte Carlo tolerances are standard errors times a normal quantile; each test states its false-alarm
rate, and seeds are fixed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

import auditor
from auditor.audit.numeric.linear_errors import audit_linear, squared_errors
from auditor.audit.numeric.linear_maps import Maps, closed_form, crossed, spread
from auditor.numerics.combination import best_unbiased_combination
from auditor.numerics.linear_algebra import Pencil, clip_to_psd, regression
from auditor.numerics.moments import Moments, Stack, centred, of_rows
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor_attacks.llse import llse_weights
from tests.audited import as_audited

properties = settings(max_examples=60, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def covariance(rng, d, rank=None):
    A = rng.normal(size=(d, d + 2 if rank is None else rank))
    return A @ A.T / d


def moments_by_group(X, copies, groups):
    centre = X.mean(axis=0)
    v = centred([X, *copies], centre)
    return [Moments.of(part) for part in np.array_split(v, groups)]


def random_maps(rng, coalitions, N, M):
    weights = np.zeros((len(coalitions), N, M * N))
    for place, coalition in enumerate(coalitions):
        for copy in coalition:
            weights[place][:, (copy - 1) * N : copy * N] = rng.normal(size=(N, N))
    return Maps(weights, rng.normal(size=(len(coalitions), N)), fixed=True)


# -- measurement
# -------------------------------------------------------------------------------------------------------


@given(seed=seeds, N=st.integers(1, 4), M=st.integers(1, 4), groups=st.integers(1, 5))
@properties
def test_errors_from_moments_equal_errors_from_rows(seed, N, M, groups):
    """``Σ (R v − c)²`` from ``P`` and ``t`` against ``x̂ = centre + c + W (y − H centre)`` row by row, to 1e-12."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(size=(40, N)) + rng.normal(scale=100.0, size=N)
    copies = [X + rng.normal(size=X.shape) for _ in range(M)]
    coalitions = [(copy,) for copy in range(1, M + 1)] + [tuple(range(1, M + 1))]
    maps = random_maps(rng, coalitions, N, M)
    from_moments = squared_errors(maps, Moments.merge(moments_by_group(X, copies, groups)))
    y = np.hstack([copy - X.mean(axis=0) for copy in copies])
    for place in range(len(coalitions)):
        estimate = X.mean(axis=0) + maps.offsets[place] + y @ maps.weights[place].T
        np.testing.assert_allclose(
            from_moments[place], ((estimate - X) ** 2).sum(axis=0), rtol=1e-12
        )


@pytest.mark.parametrize(
    "knowledge",
    ["perfect", {"estimated": {"rows": 150}}, {"estimated": {"rows": 150, "structure": "none"}}],
)
@pytest.mark.parametrize("scheme", ["independent", "correlated", "corner-wave"])
def test_an_audit_measures_what_its_attacks_reconstruct(scheme, knowledge):
    """Every coalition of ``auditor.run`` against ``auditor.attack`` on the same copies, all rows known to the estimating adversary."""
    rng = np.random.default_rng(1)
    X = rng.lognormal(size=(150, 2)) @ np.array([[1.0, 0.5], [0.0, 30.0]])
    levels = [0.5, 0.3, 1.0]
    scenario = {
        "schema": 1,
        "title": "t",
        "seed": 9,
        "data": {"source": "inline", "values": {"a": X[:, 0].tolist(), "b": X[:, 1].tolist()}},
        "schemes": [{"name": scheme, "levels": levels}],
        "knowledge": [knowledge],
        "coalitions": ["subsets"],
        "attacks": ["llse", "ndr"],
    }
    records = [
        r
        for r in auditor.run(scenario).measurements
        if r.metric == "distortion" and r.attribute == "*"
    ]
    release = as_audited(X, scheme, levels, 9)
    assert len(records) == 14
    for record in records:
        estimate = auditor.attack(
            record.attack, release, coalition=list(record.coalition), knowledge=knowledge
        )
        assert record.value == pytest.approx(estimate.distortion, rel=1e-11)
        assert record.theory == (
            None if estimate.theory is None else pytest.approx(estimate.theory, rel=1e-11)
        )


@given(
    seed=seeds,
    N=st.sampled_from([1, 2, 4, 5, 7, 8, 15, 16, 20]),
    tables=st.integers(1, 4),
    off=st.sampled_from([0.0, 1.0, 1e6]),
)
@properties
def test_moments_of_stacked_rows_are_those_of_centred_rows(seed, N, tables, off):
    """``t = Σ v``, ``P = Σ v vᵀ``, ``off`` deviations from 0."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-3, 3, N)
    X = rng.normal(size=(50, N)) * scale + off * scale
    parts = [X, *(X + scale * rng.normal(size=X.shape) for _ in range(tables - 1))]
    if seed % 3 == 0:
        parts[-1] = np.asfortranarray(parts[-1])
    centre, deviation = X.mean(axis=0), X.std(axis=0)
    v = np.hstack(parts) - np.tile(centre, tables)
    size = np.tile(deviation, tables)
    stack, other = Stack(centre, tables), Stack(np.zeros(3), 2)
    for _ in range(2):  # sums start anew
        total, products = np.zeros(v.shape[1]), np.zeros((v.shape[1],) * 2)
        for a, b in ((0, 20), (20, 50), (7, 8)):
            if rng.integers(2):
                other.add([np.full((b - a, 3), 7.0)] * 2)  # in the same memory
            stack.add([part[a:b] for part in parts])
            total, products = total + v[a:b].sum(axis=0), products + v[a:b].T @ v[a:b]
            chosen = rng.permutation(b - a)[:3]
            np.testing.assert_allclose(
                stack.rows(chosen) / size, v[a:b][chosen] / size, atol=1e-14 * (1 + off)
            )
        found = stack.moments()
        assert found.count == 51
        assert (found.products == found.products.T).all()
        np.testing.assert_allclose(found.total / size, total / size, atol=51e-15 * (1 + off))
        np.testing.assert_allclose(
            found.products / np.outer(size, size),
            products / np.outer(size, size),
            rtol=1e-12,
            atol=51e-14,
        )
    whole = of_rows(parts, centre)
    np.testing.assert_allclose(
        whole.products / np.outer(size, size),
        v.T @ v / np.outer(size, size),
        rtol=1e-12,
        atol=50e-14,
    )


def test_far_from_the_origin_the_centre_is_taken_off_every_row():
    """At 10⁷ deviations uncentred products are noise."""
    X = np.random.default_rng(3).normal(size=(1000, 6)) + 1e7
    found = of_rows([X], X.mean(axis=0)).covariance()
    np.testing.assert_allclose(found, np.cov(X.T, bias=True), atol=1e-9)


# -- the closed forms and their spread
# ---------------------------------------------------------------------------------

TABLES = {
    "correlated": np.random.default_rng(1).normal(size=(30, 2))
    @ np.array([[1.0, 0.9], [0.0, 0.3]]),
    "skewed": np.random.default_rng(2).lognormal(sigma=1.5, size=(30, 2)),
    "singular": np.outer(np.random.default_rng(3).lognormal(size=30), [1.0, -2.0]),
}
SIGMA = np.array([[0.5, 0.2], [0.2, 1.0]])


def draw_squared_errors(X, maps, law, draws, rng):
    """Brute force: mean squared errors by attribute, shape (draws, B, N), over draws of the noise on one fixed table."""
    n, N = X.shape
    root = np.linalg.cholesky(law.level_covariance)
    values, Q = np.linalg.eigh(law.shape)
    shape_root = (Q * np.sqrt(np.clip(values, 0, None))) @ Q.T
    v = X - X.mean(axis=0)
    found = np.empty((draws, len(maps.offsets), N))
    for k in range(draws):
        Z = np.einsum("ij,jrn,nm->irm", root, rng.normal(size=(len(root), n, N)), shape_root)
        y = np.hstack([v + z for z in Z])
        errors = np.einsum("bnd,rd->brn", maps.weights, y) + maps.offsets[:, None, :] - v
        found[k] = (errors**2).mean(axis=1)
    return found


def covariance_and_error(a, b):
    """Return the sample covariance of two samples and its standard error."""
    products = (a - a.mean()) * (b - b.mean())
    return products.mean(), products.std() / np.sqrt(len(a))


@pytest.mark.parametrize("name", TABLES)
def test_closed_forms_agree_with_brute_force(name):
    """Means, variances ``(2 tr S² + 4 tr S A)/n`` and covariances, of attributes and their sum, for arbitrary affine maps.

    14 comparisons a table at 4.5 standard errors, 7e-6 each: false alarm 1e-4 a table.
    """
    X, rng, draws = TABLES[name], np.random.default_rng(4), 4000
    K_X, law = (
        np.cov(X.T, bias=True),
        KroneckerNoise(SIGMA, np.cov(X.T, bias=True) + 0.2 * np.eye(2)),
    )
    maps = random_maps(rng, [(1,), (1, 2)], 2, 2)
    theory = closed_form(maps, K_X, law, len(X))
    found = draw_squared_errors(X, maps, law, draws, rng)
    each, total = np.split(theory.variance(), [2], axis=1)
    total = 4 * total[:, 0]  # of the sum, not of the mean
    swapped = Maps(maps.weights[::-1], maps.offsets[::-1], True)
    cross = crossed(maps, swapped, K_X, law, len(X))
    cross_each, cross_total = spread(cross.passed, cross.lost, len(X))
    expected, measured = [], []
    for b in range(2):
        columns = [found[:, b, 0], found[:, b, 1], found[:, b].sum(axis=1)]
        others = [found[:, 1 - b, 0], found[:, 1 - b, 1], found[:, 1 - b].sum(axis=1)]
        for column, value in zip(
            columns, [*theory.expected[b], theory.expected[b].sum()], strict=True
        ):
            expected.append(value)
            measured.append((column.mean(), column.std() / np.sqrt(draws)))
        for column, value in zip(columns, [*each[b], total[b]], strict=True):
            expected.append(value)
            measured.append(covariance_and_error(column, column))
        expected.append(cross_total[b])
        measured.append(covariance_and_error(columns[2], others[2]))
        expected.append(cross_each[b][0])
        measured.append(covariance_and_error(columns[0], others[0]))
    z = [(value - truth) / error for truth, (value, error) in zip(expected, measured, strict=True)]
    assert np.abs(z).max() < 4.5


@given(seed=seeds, N=st.integers(1, 3), M=st.integers(1, 3))
@properties
def test_closed_form_of_the_best_weights_is_equation_7(seed, N, M):
    """``diag(A + S)`` for the LLSE's weights is the diagonal of ``K_X − K_X Hᵀ K_Y⁺ H K_X``."""
    rng = np.random.default_rng(seed)
    K_X, law = covariance(rng, N), KroneckerNoise(covariance(rng, M), covariance(rng, N))
    W = llse_weights(K_X, law)
    H = np.tile(np.eye(N), (M, 1))
    expected = closed_form(Maps(W[None], np.zeros((1, N)), True), K_X, law, 10).expected[0]
    np.testing.assert_allclose(expected, np.diag(K_X - W @ H @ K_X), atol=1e-8 * np.trace(K_X))


def test_error_bar_of_a_gain_agrees_with_brute_force():
    """Standard error of ``1 − D_C/D_1`` by the delta method with the covariance, against 1500 draws on a skewed table of 400 rows.

    The spread of 1500 draws is known to 1/sqrt(2·1500) = 1.8 %; the delta method to O(1/n) = 1 %: 4
    · 1.8 % + 2 %."""
    rng = np.random.default_rng(5)
    X = rng.lognormal(size=(400, 2))
    K_X = np.cov(X.T, bias=True)
    law = KroneckerNoise(np.diag([0.4, 0.8]), K_X)
    coalitions = [(1,), (2,), (1, 2)]
    weights = np.zeros((3, 2, 4))
    weights[0][:, :2], weights[1][:, 2:] = (
        llse_weights(K_X, law.of([1])),
        llse_weights(K_X, law.of([2])),
    )
    weights[2] = llse_weights(K_X, law)
    maps = Maps(weights, np.zeros((3, 2)), True)
    found = draw_squared_errors(X, maps, law, 1500, rng).mean(axis=2)
    gains = 1 - found[:, 2] / found[:, 0]
    copies = [
        X + z
        for z in np.einsum(
            "ij,jrn,nm->irm",
            np.diag(np.sqrt([0.4, 0.8])),
            rng.normal(size=(2, 400, 2)),
            psd_root(K_X),
        )
    ]
    errors = audit_linear(coalitions, maps, moments_by_group(X, copies, 4), K_X, law)
    assert errors.gain.std_error[2, -1] == pytest.approx(gains.std(), rel=0.09)
    # precisions 2.5 and 1.25: 1/(1 + 3.75) over 1/3.5
    assert errors.gain.theory[2, -1] == pytest.approx(1 - (1 / 4.75) * 3.5, rel=1e-9)


def psd_root(K):
    values, Q = np.linalg.eigh(K)
    return (Q * np.sqrt(np.clip(values, 0, None))) @ Q.T


# -- coverage
# ----------------------------------------------------------------------------------------------------------

REPLICATES = 300


def coverage_table(name):
    rng = np.random.default_rng(7)
    if name == "correlated":
        return rng.multivariate_normal([50.0, 1000.0], [[1.0, 27.0], [27.0, 900.0]], size=200)
    skewed = np.column_stack([rng.lognormal(sigma=1.3, size=200), rng.exponential(size=200)])
    return skewed if name == "skewed" else np.column_stack([skewed, skewed.sum(axis=1)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("skewed", "corner-wave"),
        ("skewed", "independent"),
        ("correlated", "corner-wave"),
        ("singular", "correlated"),
    ],
)
def test_intervals_cover_theory_95_times_in_100(name, scheme):
    """Hits in 300 replicates lie in the exact binomial band of Bin(300, 0.95); coverage of 0.87 would lie outside 4 times in 5.

    Two attacks, two coalitions, distortion of the first attribute and of all; the band leaves out
    1e-4 / 8 each side, so the false alarm is 2e-4 a table and scheme."""
    X = coverage_table(name)
    scenario = {
        "schema": 1,
        "title": "coverage",
        "seed": 77,
        "replicates": REPLICATES,
        "data": {
            "source": "inline",
            "values": {f"x{j}": X[:, j].tolist() for j in range(X.shape[1])},
        },
        "schemes": [{"name": scheme, "levels": [0.5, 1.0]}],
        "coalitions": [{"copies": [1]}, "all"],
        "attacks": ["llse", "ndr"],
    }
    low, high = stats.binom.ppf([1e-4 / 8, 1 - 1e-4 / 8], REPLICATES, 0.95)
    hits = {}
    for r in auditor.run(scenario).measurements:
        if r.metric == "distortion" and r.attribute in ("x0", "*"):
            key = (r.attack, r.coalition, r.attribute)
            hits[key] = hits.get(key, 0) + (r.ci_low <= r.theory <= r.ci_high)
    assert len(hits) == 8
    assert all(low <= count <= high for count in hits.values()), hits


# -- the linear algebra below
# ------------------------------------------------------------------------------------------


@given(seed=seeds, k=st.integers(1, 7))
@properties
def test_best_combination_of_a_regular_law(seed, k):
    """``w = Sigma⁻¹1/(1ᵀSigma⁻¹1)``, ``v = 1/(1ᵀSigma⁻¹1)``."""
    Sigma = covariance(np.random.default_rng(seed), k)
    w, v = best_unbiased_combination(Sigma)
    precision = np.linalg.inv(Sigma).sum()
    assert v == pytest.approx(1 / precision, rel=1e-7)
    np.testing.assert_allclose(
        w, np.linalg.inv(Sigma).sum(axis=1) / precision, atol=1e-6 * np.abs(w).max()
    )


@given(seed=seeds, k=st.integers(2, 7), rank=st.integers(1, 6))
@properties
def test_best_combination_is_unbiased_and_has_the_variance_it_says(seed, k, rank):
    """``1ᵀw = 1`` and ``wᵀ Sigma w = v``, for singular laws too."""
    Sigma = covariance(np.random.default_rng(seed), k, rank)
    w, v = best_unbiased_combination(Sigma)
    assert w.sum() == pytest.approx(1.0, abs=1e-6)
    assert w @ Sigma @ w == pytest.approx(v, abs=1e-9 * np.trace(Sigma) * (w @ w))


@given(seed=seeds, k=st.integers(2, 6))
@properties
def test_no_other_unbiased_combination_has_less_variance(seed, k):
    rng = np.random.default_rng(seed)
    Sigma = covariance(rng, k, rng.integers(1, k + 2))
    _, v = best_unbiased_combination(Sigma)
    other = rng.normal(size=(50, k))
    assume(np.abs(other.sum(axis=1)).min() > 1e-3)
    other /= other.sum(axis=1, keepdims=True)
    assert np.einsum("ri,ij,rj->r", other, Sigma, other).min() >= v * (1 - 1e-9)


@given(levels=st.lists(st.one_of(st.just(0.0), st.floats(1e-30, 1e30)), min_size=1, max_size=8))
@properties
def test_best_of_corner_wave_copies_is_the_quietest_to_its_own_last_digits(levels):
    """``v = min σ²`` relative to itself, not to the loudest: 1e-9 beside 1 once came out 4e-5 wrong, a gain where there is none."""
    _, v = best_unbiased_combination(np.minimum.outer(levels, levels))
    assert v == pytest.approx(min(levels), rel=1e-12)


@given(levels=st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=8))
@properties
def test_best_of_fresh_copies_adds_precisions(levels):
    """``v = 1/Σ(1/σ_i²)``, ``w_i = v/σ_i²`` (Theorem 3)."""
    w, v = best_unbiased_combination(np.diag(levels))
    assert v == pytest.approx(1 / sum(1 / s for s in levels), rel=1e-12)
    np.testing.assert_allclose(w, v / np.array(levels), rtol=1e-10)


@given(levels=st.lists(st.integers(1, 10**6), min_size=2, max_size=6, unique=True))
@properties
def test_best_of_linearly_dependent_copies_is_free_of_noise(levels):
    s = np.sqrt(np.array(levels, dtype=float))
    w, v = best_unbiased_combination(np.outer(s, s))
    assert v == 0.0
    assert w.sum() == pytest.approx(1.0, abs=1e-6)
    assert w @ s == pytest.approx(0.0, abs=1e-6 * s.max())


@given(seed=seeds, M=st.integers(2, 6))
@properties
def test_many_coalitions_at_once_equal_one_by_one(seed, M):
    rng = np.random.default_rng(seed)
    batch = np.array(
        [
            covariance(rng, M),
            np.minimum.outer(*[rng.integers(0, 3, M) / 2] * 2),
            np.ones((M, M)),
            np.zeros((M, M)),
        ]
    )
    w, v = best_unbiased_combination(batch)
    for Sigma, weights, variance in zip(batch, w, v, strict=True):
        one_w, one_v = best_unbiased_combination(Sigma)
        np.testing.assert_allclose(weights, one_w, atol=1e-9)
        assert variance == pytest.approx(float(one_v), rel=1e-9, abs=1e-12)


@st.composite
def pencils(draw):
    """Pairs ``K_X, K_0`` of any rank and scale: salaries of variance 1e10 beside ages."""
    rng = np.random.default_rng(draw(seeds))
    N = draw(st.integers(1, 4))
    K_X, K_0 = (covariance(rng, N, draw(st.integers(1, N + 1))) for _ in range(2))
    T = np.diag(10.0 ** rng.uniform(-2, 5, N))
    return T @ K_X @ T, T @ K_0 @ T


@given(pair=pencils())
@properties
def test_pencil_rebuilds_both_matrices(pair):
    """``K_X = A diag(c) Aᵀ`` and ``K_0 = A diag(1 − c) Aᵀ``, attribute by attribute's own scale."""
    K_X, K_0 = pair
    pencil = Pencil.of(K_X, K_0)
    scale = np.sqrt(np.outer(np.diag(K_X + K_0), np.diag(K_X + K_0)))
    np.testing.assert_allclose(
        (pencil.basis * pencil.share) @ pencil.basis.T / scale, K_X / scale, atol=1e-9
    )
    np.testing.assert_allclose(
        (pencil.basis * (1 - pencil.share)) @ pencil.basis.T / scale, K_0 / scale, atol=1e-9
    )


@given(pair=pencils(), v=st.floats(1e-3, 1e3))
@properties
def test_pencil_gain_and_error_solve_the_normal_equations(pair, v):
    """``G (K_X + v K_0) = K_X`` on its range, and error ``K_X − G K_X``."""
    K_X, K_0 = pair
    pencil = Pencil.of(K_X, K_0)
    G, error = pencil.gain(np.array(v)), pencil.error(np.array(v))
    d = np.sqrt(np.diag(K_X + K_0))
    np.testing.assert_allclose(
        G @ (K_X + v * K_0) / np.outer(d, d), K_X / np.outer(d, d), atol=1e-7 * max(1.0, v)
    )
    np.testing.assert_allclose(error / np.outer(d, d), (K_X - G @ K_X) / np.outer(d, d), atol=1e-7)


@given(pair=pencils(), v=st.floats(0.0, 1e3), more=st.floats(0.0, 1e3))
@properties
def test_pencil_error_is_a_covariance_between_zero_and_the_data_s_and_grows_with_noise(
    pair, v, more
):
    K_X, K_0 = pair
    d = np.sqrt(np.diag(K_X + K_0))
    pencil = Pencil.of(K_X, K_0)
    less, greater = (
        pencil.error(np.array(v)) / np.outer(d, d),
        pencil.error(np.array(v + more)) / np.outer(d, d),
    )
    for difference in (less, greater - less, K_X / np.outer(d, d) - greater):
        assert np.linalg.eigvalsh((difference + difference.T) / 2).min() > -1e-9


@pytest.mark.parametrize("multiple", [0.0, 0.3, 1.0, 7.0])
@pytest.mark.parametrize("unit", [1.0, 1e5, 1e-9])
def test_noise_of_the_data_s_own_shape_shrinks_by_a_number_and_mixes_nothing(multiple, unit):
    """With ``K_0 = a K_X``, ``K_X (K_X + v K_0)⁻¹ = I/(1 + v a)``: an off-diagonal of rounding would read as the other's units."""
    K_X = np.array(
        [[4.0, 1.2 * unit, 0.3], [1.2 * unit, unit**2, 0.1 * unit], [0.3, 0.1 * unit, 1.0]]
    )
    gain = Pencil.of(K_X, multiple * K_X).gain(np.array([0.0, 0.5, 2.0]))
    np.testing.assert_allclose(
        np.einsum("vnn->vn", gain),
        np.repeat(1 / (1 + multiple * np.array([[0.0], [0.5], [2.0]])), 3, axis=1),
        rtol=1e-14,
    )
    assert not gain[:, ~np.eye(3, dtype=bool)].any()


@given(pair=pencils())
@properties
def test_regression_of_a_singular_badly_scaled_covariance(pair):
    """``W K_y = K_xy`` when K_xy lies in K_y's range."""
    K, _ = pair
    d = np.sqrt(np.diag(K))
    W = regression(K[:1], K)
    np.testing.assert_allclose(W @ K / d / d[0], K[:1] / d / d[0], atol=1e-7)


@given(seed=seeds, d=st.integers(1, 5))
@properties
def test_clipping_to_psd_keeps_a_covariance_and_mends_another(seed, d):
    rng = np.random.default_rng(seed)
    K = covariance(rng, d)
    np.testing.assert_allclose(clip_to_psd(K), K, atol=1e-12)
    B = rng.normal(size=(d, d))
    assert np.linalg.eigvalsh(clip_to_psd(B + B.T)).min() > -1e-12


def test_a_gain_of_rounding_is_no_gain_and_has_no_error_bar():
    """Under corner-wave noise the coalition's estimate is its best copy's: 0 exactly, measured and in theory, not 2e-16 ± 3e-9."""
    data = {
        "source": "gaussian",
        "covariance": [[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 7.0]],
        "mean": 1e5,
        "rows": 2000,
    }
    schemes = [{"name": "corner-wave", "levels": [0.4, 0.2, 3.0]}]
    result = auditor.run(
        {
            "seed": 1,
            "data": data,
            "schemes": schemes,
            "coalitions": ["subsets"],
            "attacks": ["llse", "ndr"],
        }
    )
    gains = [record for record in result.measurements if record.metric == "collusion_gain"]
    assert {(record.value, record.std_error, record.theory) for record in gains} == {
        (0.0, 0.0, 0.0)
    }


# -- units so far apart that moments cannot tell what is left of a small attribute
# -----------------------------------------


def audited(X, levels, scheme="linearly-dependent"):
    frame = ",".join(f"c{j}" for j in range(X.shape[1]))
    np.savetxt("table.csv", X, delimiter=",", header=frame, comments="")
    result = auditor.run({
        "schema": 1, "title": "units", "seed": 1, "data": {"source": "table.csv"}, "attacks": ["llse", "ndr"],
        "schemes": [{"name": scheme, "levels": levels, "noise": "white"}], "coalitions": ["all"],
    })  # fmt: skip
    found = result.frame().query("metric == 'normalized_error' and attribute == 'c1'")
    return found[found.coalition.map(len) == len(levels)]


@pytest.mark.parametrize("levels", [[0.25, 1.0], [0.25, 0.5, 1.0]])
@pytest.mark.parametrize("ratio", [1e3, 1e5, 1e6, 1e7, 1e8])
def test_an_exact_rebuild_reads_as_one_whatever_the_units(tmp_path, monkeypatch, ratio, levels):
    """The copies hold the small attribute to 10⁻¹⁷ of its variance; second moments to ε·ratio² only, so it is measured on the rows."""
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(1).normal(size=(2_000, 2)) * [ratio, 1.0]
    release = auditor.perturb(X, scheme="linearly-dependent", levels=levels, noise="white", seed=1)
    first, last = np.sqrt(levels[0]), np.sqrt(levels[-1])
    rebuilt = (last * release.copies[0] - first * release.copies[-1]) / (last - first)
    assert np.mean((rebuilt - X)[:, 1] ** 2) < 1e-15
    found = audited(X, levels)
    assert (found.value == 0).all()
    assert (found.theory == 0).all()
    assert (found.std_error <= max(1e-12, 1e3 * (np.finfo(float).eps * ratio) ** 2)).all()


def test_a_safe_attribute_is_not_taken_for_rebuilt_in_units_far_apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(3).normal(size=(500, 2)) * [1e8, 1.0]
    for scheme in ("corner-wave", "independent"):
        found = audited(X, [0.25, 1.0], scheme)
        assert (found.value > 0.9).all()
