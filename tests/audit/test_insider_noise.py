"""An insider who knows the noise: shared values, its density and its generator are found, and honest noise is left alone."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.audit.insider_noise.coincidences import coincidences, one_to_one, solve
from auditor.audit.insider_noise.density import conditional_density, fitted_density
from auditor.audit.insider_noise.equal_noise import Arrangement, arrangement, resolutions
from auditor.audit.insider_noise.finding import line_squares
from auditor.audit.insider_noise.generators import (
    STREAMS,
    _standard,
    all_seeds,
    first_draws,
    known_generators,
)
from auditor.audit.insider_noise.noise_density import dependent_attributes, noise_density

RNG = np.random.default_rng
ROWS = 1_500
FRESH = 2**40
"""Added to seeds that are not to be found."""


def table(seed=0, rows=ROWS):
    rng = RNG(FRESH + seed)
    mixed = rng.normal(size=(rows, 3)) @ np.array(
        [[1.0, 0.5, 0.2], [0.0, 1.0, 0.3], [0.0, 0.0, 1.0]]
    )
    return np.column_stack(
        [np.exp(0.5 * mixed[:, 0]), 40.0 + 12.0 * mixed[:, 1], np.round(30.0 + 10.0 * mixed[:, 2])]
    )


def audit(folder, X, copies):
    """Audit copies in files, vouching that they are the table's."""
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame.to_csv(folder / "original.csv", index=False)
    for number, copy in enumerate(copies):
        pd.DataFrame(copy, columns=["a", "b"]).to_csv(folder / f"copy-{number}.csv", index=False)
    scheme = {
        "name": "published",
        "copies": [str(folder / f"copy-{number}.csv") for number in range(len(copies))],
        "aligned": True,
    }
    return auditor.run({
        "data": {"source": str(folder / "original.csv")}, "schemes": [scheme], "attacks": ["ndr", "llse"], "coalitions": "subsets",
        "knowledge": ["perfect"], "expect": [{"exposure": {"unknown": {"at-least": 0.5}}}],
    })  # fmt: skip


def by_coalition(findings):
    return {found.coalition: found for found in findings}


def test_the_solution_is_the_constrained_least_squares_of_a_dense_solver():
    """x and u minimise both priors subject to y = x + r u (KKT equations)."""
    rng, (k, n, N, U) = RNG(1), (2, 12, 2, 9)
    value, sign = rng.integers(0, U, (k, n, N)), rng.choice([-1.0, 1.0], (k, n, N))
    value.ravel()[:U] = np.arange(U)
    multiple, K = sign * np.array([1.0, 2.0])[:, None, None], np.array([[1.0, 0.4], [0.4, 1.0]])
    x, u = rng.normal(size=(n, N)) @ np.linalg.cholesky(K).T, rng.normal(size=U)
    Z = multiple * u[value]
    Y, spread = x + Z, Z / multiple
    size, edges = n * N + U, k * n * N
    A = np.zeros((edges, size))
    A[np.arange(edges), np.tile(np.arange(n * N), k)] = 1.0
    A[np.arange(edges), n * N + value.ravel()] = multiple.ravel()
    H = np.zeros((size, size))
    H[: n * N, : n * N], H[n * N :, n * N :] = (
        np.kron(np.eye(n), np.linalg.inv(K)),
        np.eye(U) / spread.var(),
    )
    right = np.concatenate([np.zeros(n * N), np.full(U, spread.mean() / spread.var())])
    kkt = np.block([[H, A.T], [A, np.zeros((edges, edges))]])
    expected = np.linalg.lstsq(kkt, np.concatenate([right, Y.ravel()]))[0][: n * N].reshape(n, N)
    assert solve(Y, Arrangement(value, multiple, 1e-15), Z, K) == pytest.approx(expected, abs=1e-5)


def test_cells_without_shared_noise_are_estimated_as_by_the_best_line():
    rng, n = RNG(2), 300
    x = rng.normal(size=(n, 2))
    Z = rng.normal(size=(1, n, 2)) * 0.7
    Z = (Z - Z.mean()) / Z.std() * 0.7
    value = np.arange(2 * n).reshape(1, n, 2)
    found = solve(x + Z, Arrangement(value, np.ones(Z.shape), 1e-15), Z, np.eye(2))
    assert found == pytest.approx((x + Z)[0] / (1.0 + 0.7**2), abs=1e-6)


def shared(kind, X, rng):
    """Return noise in units of deviations, shape (k, n, N), and a word of the cause."""
    n, N = X.shape
    e, stream = rng.normal(size=X.shape), rng.normal(size=n + 500)
    return {
        "scaled": ([e, 2.0 * e], "copies 1 and 2 carry the same noise, scaled by 2"),
        "later": ([e, 1.5 * np.vstack([e[1:], rng.normal(size=(1, N))])], "1 rows earlier"),
        "pool": ([rng.normal(size=300)[rng.integers(0, 300, X.shape)]], "noise repeats 300 values in 4,500 cells"),
        "stream": ([np.stack([stream[50 * j : 50 * j + n] for j in range(N)], axis=1)], "50 rows"),
        "reversed": ([e, e[::-1]], "copies 1 and 2 carry the same noise, rows in reverse"),
        "antithetic": ([np.vstack([e[: n // 2], -e[: n // 2]])], "750 rows later"),
    }[kind]  # fmt: skip


@pytest.mark.parametrize("kind", ["scaled", "later", "pool", "stream", "reversed", "antithetic"])
def test_shared_noise_is_found_and_leaves_less_than_a_line(kind):
    X = table()
    noise, words = shared(kind, X, RNG(FRESH + 3))
    copies = [X + X.std(axis=0) * z for z in noise]
    everybody = tuple(range(1, len(copies) + 1))
    found = by_coalition(coincidences(X, copies, [everybody]))[everybody]
    assert (found.left < 0.85 * line_squares(X, copies).mean(axis=0) / X.var(axis=0) + 1e-9).all()
    assert words in found.cause


def test_noise_that_is_a_function_of_repeated_values_leaves_nothing():
    X = table()
    levels, place = np.unique(X[:, 2], return_inverse=True)
    noise = RNG(FRESH + 13).normal(size=X.shape)
    noise[:, 2] = RNG(FRESH + 14).normal(size=len(levels))[place]
    found = coincidences(X, [X + X.std(axis=0) * noise], [(1,)])[0]
    assert found.left[2] == 0.0
    assert found.left[0] > 0.3
    assert found.cause.startswith(
        "the noise of column 3 of copy 1 is a function of the original value"
    )
    # cut off: equal cells have different originals
    assert not one_to_one(X[:, 2], np.minimum(X[:, 2], 30.0))


def degenerate(kind):
    rng, n = RNG(FRESH + 16), 1_500
    X = np.column_stack([np.resize(np.arange(10.0, 70.0), n), rng.normal(size=n)])
    Z = rng.normal(size=X.shape)
    return {
        "cut off": (X, [np.column_stack([np.minimum(X[:, 0], 39.0), X[:, 1]])]),
        "constant copy": (X[rng.permutation(n)], [np.column_stack([np.ones(n), Z[:, 1]])]),
        "equal copies": (X, [X, X]),
        "constant noise": (X, [X + 5.0]),
        "constant original": (np.column_stack([np.full(n, 3.0), X[:, 1]]), [X + Z]),
        "binary": (np.round(rng.random(X.shape)), [np.round(rng.random(X.shape))]),
        "huge": (1e8 * Z, [1e8 * (Z + rng.normal(size=X.shape))]),
        "Cauchy": (rng.standard_cauchy(X.shape), [rng.standard_cauchy(X.shape)]),
        "one column": (X[:, 1:], [(X + Z)[:, 1:]]),
        "dependent columns": (np.column_stack([X, X.sum(axis=1)]), [np.column_stack([X + Z, Z.sum(axis=1)])]),
        "few rows": (X[:20], [(X + Z)[:20]]),
    }[kind]  # fmt: skip


DEGENERATE = (
    "cut off", "constant copy", "equal copies", "constant noise", "constant original", "binary", "huge", "Cauchy", "one column",
    "dependent columns", "few rows",
)  # fmt: skip


@pytest.mark.parametrize("kind", DEGENERATE)
@pytest.mark.parametrize("attack", [coincidences, noise_density, known_generators])
def test_degenerate_tables_are_finite_and_never_worse_than_a_line(attack, kind):
    X, copies = degenerate(kind)
    for found in attack(X, copies, [(1,)]):
        line = line_squares(X, copies[:1]).mean(axis=0)
        assert (found.squares.mean(axis=0) <= 1.1 * line + 1e-9 * X.var(axis=0)).all()


def test_means_of_pairs_share_noise_without_a_gain():
    X = RNG(FRESH + 15).normal(size=(ROWS, 2))
    means = np.repeat((X[::2] + X[1::2]) / 2.0, 2, axis=0)
    assert coincidences(X, [means], [(1,)]) == []


def test_an_arrangement_does_not_tell_the_signs_of_noise():
    """Opposite noise in pairs of independent normal rows: their sum is known, and a line estimates their difference."""
    rng = RNG(FRESH + 12)
    X, e = rng.normal(size=(6_000, 1)), rng.normal(size=(3_000, 1))
    found = coincidences(
        X, [X + np.repeat(e, 2, axis=0) * np.resize([[1.0], [-1.0]], X.shape)], [(1,)]
    )[0]
    assert found.left == pytest.approx((0.0 + 2.0 / 3.0) / 2.0, abs=0.02)


def test_noise_of_all_columns_leaves_nothing_of_a_pool_but_its_own_share():
    X = table(rows=4_000)
    rng = RNG(FRESH + 4)
    copy = X + X.std(axis=0) * rng.normal(size=20)[rng.integers(0, 20, X.shape)]
    # each value is in 5 % of all cells: a discrete law, not an arrangement
    assert coincidences(X, [copy], [(1,)]) == []
    copy = X + X.std(axis=0) * rng.normal(size=400)[rng.integers(0, 400, X.shape)]
    assert coincidences(X, [copy], [(1,)])[0].left == pytest.approx(400 / X.size, abs=0.03)


def test_rounded_copies_of_shared_noise_are_found_at_their_lag():
    X = table()
    e = RNG(FRESH + 5).normal(size=X.shape)
    copies = [
        np.round(X + X.std(axis=0) * e, 1),
        np.round(X + 2.0 * X.std(axis=0) * np.roll(e, 7, axis=0), 1),
    ]
    found = by_coalition(coincidences(np.round(X, 1), copies, [(1,), (2,), (1, 2)]))
    assert (found[1, 2].left < 0.05).all()
    assert "7 rows later, scaled by 2" in found[1, 2].cause
    assert not found[1,].cause
    assert not found[2,].cause


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("law", ["normal", "laplace", "standard_cauchy", "geometric"])
@pytest.mark.parametrize("decimals", [None, 2, 0])
def test_honest_releases_share_nothing(law, decimals, seed):
    rng, X = RNG(FRESH + 100 + seed), table(seed)
    X = X if decimals is None else np.round(X, decimals)
    copies = []
    for level in (0.5, 1.0):
        noise = (
            rng.geometric(0.1, X.shape) - rng.geometric(0.1, X.shape)
            if law == "geometric"
            else getattr(rng, law)(size=X.shape) * X.std(axis=0)
        )
        copies.append(
            X + level * noise if decimals is None else np.round(X + level * noise, decimals)
        )
    assert coincidences(X, copies, [(1,), (2,), (1, 2)]) == []
    assert known_generators(X, copies, [(1,), (2,), (1, 2)]) == []


def test_resolutions_by_hand():
    Y = np.array([[[0.1, 0.25], [0.3, np.pi], [1.2, 7.0]]])
    assert resolutions(Y)[0, 1] == pytest.approx(8 * np.finfo(float).eps * 7.0)
    assert resolutions(np.round(RNG(0).normal(size=(1, 500, 1)), 2)) == pytest.approx(0.01)


def test_no_arrangement_of_distinct_values():
    assert arrangement(RNG(0).normal(size=(2, 500, 2)), np.full((2, 2), 1e-15)) is None


@pytest.mark.parametrize("stream", STREAMS)
def test_first_draws_are_the_generators_own(stream):
    for place in (0, 42, 65_535, 65_540, len(all_seeds()) - 1):
        expected = _standard(STREAMS[stream](int(all_seeds()[place]), 24)[None])[0]
        assert first_draws()[stream][place] == pytest.approx(expected, abs=1e-6)


def python_noise(X):
    draw = random.Random(7)
    return np.array([[draw.gauss(0, 1) for _ in range(X.shape[1])] for _ in range(len(X))])


DRAWN = {
    "numpy's RandomState(42).normal, drawn row by row": lambda X: np.random.RandomState(42).normal(
        3.0, 2.0, X.shape
    ),
    "numpy's default_rng(3735928559).laplace, drawn column by column": lambda X: (
        RNG(0xDEADBEEF).laplace(size=X.T.shape).T
    ),
    "numpy's default_rng(20240229).uniform, drawn from the seed anew for each column": lambda X: (
        RNG(20240229).uniform(-1, 1, (len(X), 1))
    ),
    "Python's random.Random(7).gauss, drawn row by row": python_noise,
}


@pytest.mark.parametrize("words", DRAWN)
def test_a_guessable_seed_is_named_and_leaves_nothing(words):
    X = table()
    found = known_generators(X, [X + X.std(axis=0) * DRAWN[words](X)], [(1,)])[0]
    assert found.left == pytest.approx(0.0, abs=1e-12)
    assert found.cause == f"the noise of copy 1 is {words}"


def test_a_seed_is_found_behind_rounding():
    X = np.round(table(), 1)
    found = known_generators(
        X, [np.round(X + X.std(axis=0) * RNG(12345).normal(size=X.shape), 1)], [(1,)]
    )[0]
    assert "default_rng(12345)" in found.cause
    assert (found.left < 0.01).all()


def test_a_density_follows_peaks_and_long_tails():
    rng = RNG(6)
    peaks = (rng.choice([-1.0, 1.0], 4_000) + 0.02 * rng.normal(size=4_000))[:, None]
    density = fitted_density(peaks)
    assert density(np.array([[1.0]]))[0] - density(np.array([[0.0]]))[0] > 5.0
    tails = rng.standard_t(2, size=8_000)[:, None]
    assert fitted_density(tails)(np.array([[0.0]]))[0] == pytest.approx(np.log(0.3536), abs=0.2)


def test_noise_that_grows_with_the_original_has_a_conditional_density():
    rng = RNG(7)
    x = rng.uniform(1.0, 10.0, (4_000, 1))
    given = conditional_density(x * rng.normal(size=x.shape), x)
    assert given(np.array([[0.0]]), np.array([1.5]))[0] - given(np.array([[0.0]]), np.array([9.0]))[
        0
    ] == pytest.approx(np.log(6.0), abs=0.5)


def test_bayes_rule_of_two_points_with_jitter_beats_a_line():
    rng = RNG(FRESH + 8)
    X = rng.normal(size=(4_000, 2))
    copies = [
        X + rng.choice([-1.0, 1.0], X.shape) + 0.05 * rng.normal(size=X.shape) for _ in range(2)
    ]
    found = by_coalition(noise_density(X, copies, [(1,), (1, 2)]))
    # Equal signs, in half of the rows, leave what one copy leaves; other signs leave the jitter.
    one = 4.0 * 0.5 * expected_product()
    assert found[1,].left == pytest.approx(one, abs=0.04)
    assert found[1, 2].left == pytest.approx(one / 2.0, abs=0.04)


def expected_product():
    """Return 2 E[p (1 − p)] of a normal x and noise ±1, where p is the posterior of +1."""
    x, sign = RNG(9).normal(size=100_000), RNG(10).choice([-1.0, 1.0], 100_000)
    p = 1.0 / (1.0 + np.exp(-2.0 * (x + sign)))
    return 2.0 * float((p * (1.0 - p)).mean())


def test_rings_in_two_columns_are_one_density():
    """Two copies leave the two points where circles meet; column by column much more is left."""
    rng = RNG(FRESH + 11)
    X = rng.normal(size=(4_000, 2))
    copies = []
    for _ in range(2):
        angle, size = rng.uniform(0, 2 * np.pi, 4_000), rng.uniform(1.5, 1.6, 4_000)
        copies.append(X + np.column_stack([size * np.cos(angle), size * np.sin(angle)]))
    assert [0, 1] in dependent_attributes(X, np.array(copies))
    found = by_coalition(noise_density(X, copies, [(1, 2)]))[1, 2]
    assert (found.left < 0.6 * line_squares(X, copies).mean(axis=0) / X.var(axis=0)).all()


def test_a_column_that_repeats_another_one_is_no_more_copies():
    """Its guess was taken for one more copy, so that pooling nested copies gained 7 %."""
    rng = np.random.default_rng(2**40 + 3)
    X = np.exp(rng.normal(size=(4_000, 1)))
    first = X + rng.normal(size=X.shape)
    copies = [np.hstack([y, y]) for y in (first, first + rng.normal(size=X.shape))]
    one, both = noise_density(np.hstack([X, X]), copies, [(1,), (1, 2)])
    assert both.left == pytest.approx(one.left, rel=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_normal_noise_on_normal_data_leaves_what_a_line_leaves(seed):
    rng = RNG(FRESH + seed)
    X = rng.normal(size=(2_000, 2))
    assert (
        noise_density(
            X, [X + rng.normal(size=X.shape), X + rng.normal(size=X.shape)], [(1,), (2,), (1, 2)]
        )
        == []
    )


def test_an_audit_names_the_cause_and_no_value(tmp_path):
    X = table()[:, :2]
    e = RNG(42).normal(size=X.shape)
    result = audit(tmp_path, X, [X + X.std(axis=0) * e, X + 2.0 * X.std(axis=0) * e[::-1]])
    left = {
        (r.attack, r.coalition): r
        for r in result.measurements
        if r.metric == "normalized_error" and r.attribute == "*"
    }
    assert left["known-generator", (1,)].value == pytest.approx(0.0, abs=1e-9)
    assert left["coincidences", (1, 2)].value == pytest.approx(0.0, abs=1e-6)
    assert "default_rng(42).normal, drawn row by row" in result.expectations[0].why
    assert result.expectations[0].status == "fails"
