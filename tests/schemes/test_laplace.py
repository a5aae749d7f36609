"""Laplace noise as a process: exact laws and draws."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

import auditor
from auditor.audit.law_tests.numeric import row_tests
from auditor.schemes.base.scheme import Key, TableMoments
from auditor.schemes.divisible_noise import LAPLACE, Laplace, LaplaceMultilevel, laplace_increment

FALSE_ALARM = 1e-4


class Quantiles:
    """Uniform and exponential numbers at the midpoints of a grid."""

    def __init__(self, uniform=1500, exponential=400):
        self.u = np.repeat((np.arange(uniform) + 0.5) / uniform, exponential)
        self.E = np.tile(-np.log1p(-(np.arange(exponential) + 0.5) / exponential), uniform)

    def random(self, size):
        return self.u[:size].copy()

    def standard_exponential(self, size):
        return self.E[:size].copy()


def density(v):
    return lambda t: np.exp(-np.abs(t) / np.sqrt(v / 2)) / (2 * np.sqrt(v / 2))


@pytest.mark.parametrize(("low", "high"), [(0.0, 2.0), (0.5, 2.0), (1.9, 2.0)])
def test_an_increment_has_the_characteristic_function_of_the_law(low, high):
    Z = laplace_increment(Quantiles(), low, high, Quantiles().u.size)
    for u in (0.3, 1.0, 3.0):
        assert abs(np.cos(u * Z).mean() - (1 + low * u**2 / 2) / (1 + high * u**2 / 2)) < 2e-3
    assert abs((Z == 0).mean() - low / high) < 1e-3
    assert abs(Z.mean()) < 2e-3


def naive_bridge(D, a, b, c):
    r1, r2, beta, gamma = a / b, b / c, np.sqrt(b / 2), np.sqrt(c / 2)
    at_0, at_D = r1 * (1 - r2) * density(c)(D), (1 - r1) * r2 * density(b)(D)

    def rest(u):
        return (
            (1 - r1) * (1 - r2) * np.exp(-abs(u) / beta - abs(D - u) / gamma) / (4 * beta * gamma)
        )

    return at_0, at_D, rest


@pytest.mark.parametrize(
    ("a", "b", "c"), [(0.5, 1.0, 4.0), (0.0, 1.0, 3.0), (1.0, 1.9, 2.0), (1e-3, 1.0, 50.0)]
)
@pytest.mark.parametrize("D", [-1.5, 6.0])
def test_the_bridge_is_the_conditional_law(a, b, c, D):
    at_0, at_D, rest = naive_bridge(D, a, b, c)

    def below(t):
        return integrate.quad(
            rest, -60.0, t, points=sorted({p for p in (0.0, D) if p < t} or {t}), limit=200
        )[0]

    whole = at_0 + at_D + below(60.0)
    U = LAPLACE.between(Quantiles(), np.full(Quantiles().u.size, D), a, b, c)
    assert abs((U == 0).mean() - at_0 / whole) < 1e-3
    assert abs((U == D).mean() - at_D / whole) < 2e-3
    for t in (-1.0, -0.1, D / 3, D + 0.5):
        expected = (below(t) + at_0 * (t >= 0) + at_D * (t >= D)) / whole
        assert abs((U <= t).mean() - expected) < 2e-3


def table(rows=300, seed=1):
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [rng.lognormal(size=rows), 100 + 10 * rng.normal(size=rows), np.full(rows, 7.0)]
    )


def copies_of(scheme, X, levels, seed=1, cuts=(), grid=()):
    moments = TableMoments(X.mean(axis=0), np.cov(X.T, bias=True).reshape(X.shape[1], -1), len(X))
    out = [np.full_like(X, np.nan) for _ in levels]
    for existing, stop in itertools.pairwise([0, *cuts, len(levels)]):
        scheme.sampler(
            levels[:stop], moments, Key(seed + existing, "laplace", grid=grid), existing
        ).block(0, X, out[:stop], existing)
    return out, scheme.law(levels, moments)


def test_a_level_asked_for_twice_gives_the_same_copy_and_level_0_the_original():
    X = table()
    copies, _ = copies_of(LaplaceMultilevel(), X, [0.5, 0.0, 1.0, 0.5], cuts=(2,))
    np.testing.assert_array_equal(copies[3], copies[0])
    np.testing.assert_array_equal(copies[1], X)
    fresh, _ = copies_of(Laplace(), X, [0.5, 0.5])
    assert (fresh[0][:, :2] != fresh[1][:, :2]).all()


def law_p_values(copies, X, law):
    names = [f"x{j}" for j in range(X.shape[1])]
    return [(test.statistic, test.p) for test in row_tests(X, copies, law, names, True)]


ORDERS = list(itertools.permutations([0.25, 0.5, 1.0, 2.0]))


@pytest.mark.parametrize("levels", [list(order) for order in ORDERS[::9]])
def test_any_order_of_release_gives_the_same_joint_law(levels):
    X = table(rows=6000)[:, :2]
    copies, law = copies_of(LaplaceMultilevel(), X, levels, seed=10, cuts=(1, 2, 3))
    p = law_p_values(copies, X, law)
    assert {"distribution", "correlations", "moments"} <= {statistic for statistic, _ in p}
    assert min(value for _, value in p) > FALSE_ALARM / len(p)


def test_released_copies_lie_on_a_grid_and_share_as_many_cells_as_the_law_says():
    X = np.random.default_rng(5).normal(size=(4000, 1))
    release = auditor.perturb(X, "laplace-multilevel", [1.0, 0.25]).extend([0.5])
    grid = 2.0**-25
    values = [np.asarray(copy) for copy in release.copies]
    assert all((copy / grid % 1.0 == 0).all() for copy in values)
    for (i, k), share in {(0, 1): 0.25, (1, 2): 0.5, (0, 2): 0.5}.items():
        met = int((values[i] == values[k]).sum())
        assert stats.binomtest(met, 4000, share).pvalue > FALSE_ALARM
