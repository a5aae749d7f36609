"""The battery of law tests and its scores."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import ndtri

import auditor
from auditor import registry
from auditor.audit.law_tests.battery import Scores, battery, chaos_exponent
from auditor.audit.law_tests.scores import release_scores, rows_of
from auditor.audit.numeric.linear_errors import Maps, crossed
from auditor.data.sources.built_in import autoregression
from auditor.schemes.base.scheme import Key, TableMoments
from auditor.schemes.divisible_noise import Laplace, LaplaceMultilevel, laplace_increment
from tests.audit.law_faults import HONEST, drawn, table


def scores_of(u, grain=1e-14):
    d = u.shape[1]
    names = [f"noise of copy {k + 1} ('age')" for k in range(d)]
    return Scores(u, names, np.full(d, grain), np.arange(d))


def found(u, X=None, own=None, **options):
    X = np.random.default_rng(99).normal(size=(len(u), 1)) if X is None else X
    return {
        test.statistic: test
        for test in battery(scores_of(u, **options), X, [f"x{j}" for j in range(X.shape[1])], own)
    }


def tables(rng, n):
    x = np.exp(2.0 * rng.normal(size=n))
    return [
        x[:, None], np.sort(x)[:, None], np.column_stack([np.full(n, 3.0), x, x]),
        rng.standard_t(1.0, (n, 2)), np.zeros((n, 1)),
    ]  # fmt: skip


@pytest.mark.slow_after_first
@pytest.mark.parametrize("n", [3, 10, 100, 600])
def test_p_values_are_no_smaller_than_they_say(n):
    rng, every, least = np.random.default_rng(n), {}, []
    for k in range(250):
        u = rng.random((n, 1 + k % 7))
        own = scores_of(u[:, :1]) if k % 2 else None
        tests = found(u, tables(rng, n)[k % 5], own, grain=1e-14 if k % 3 else 1.0)
        least.append(min(1.0, len(tests) * min(test.p for test in tests.values())))
        for statistic, test in tests.items():
            assert math.isfinite(test.p), statistic
            assert math.isfinite(test.observed), statistic
            every.setdefault(statistic, []).append(test.p)
    for statistic, p in {**every, "all": least}.items():
        for level in (0.05, 0.01):
            assert np.mean(np.array(p) <= level) <= level + 3.0 * math.sqrt(level / len(p)), (
                statistic,
                level,
            )


def test_a_message_says_which_noise_is_correlated_with_which_row():
    g = np.random.default_rng(1).normal(size=(20_000, 2))
    g[:, 0] = math.sqrt(1 - 0.09**2) * g[:, 0] + 0.09 * np.roll(g[:, 0], 37)
    test = found(stats.norm.cdf(g))["other rows"]
    said = "noise of copy 1 ('age') is correlated with its own value 37 rows earlier: r ="
    assert test.where == said
    assert test.observed == pytest.approx(0.09, abs=0.02)
    assert test.p < 1e-20
    g = np.random.default_rng(2).normal(size=(5000, 2))
    g[5:, 1] = math.sqrt(0.75) * g[5:, 1] + 0.5 * g[:-5, 0]
    assert found(stats.norm.cdf(g))["other rows"].where == (
        "noise of copy 2 ('age') is correlated with noise of copy 1 ('age') 5 rows earlier: r ="
    )
    X = np.random.default_rng(3).normal(size=(5000, 1))
    g[:, 0] = math.sqrt(0.75) * g[:, 0] + 0.5 * np.roll(X[:, 0], -7)
    test = found(stats.norm.cdf(g), X)["other rows"]
    assert test.where == "noise of copy 1 ('age') is correlated with 'x0' 7 rows later: r ="


def test_less_noise_in_the_largest_hundredth_is_found():
    """Records far out are known best; a rank and 24 bins of it do not show them."""
    rng = np.random.default_rng(2**40)
    X, g = rng.normal(size=(10_000, 1)), rng.normal(size=(10_000, 2))
    g *= np.where(X > np.quantile(X, 0.99), 0.5, 1.0)
    test = found(stats.norm.cdf(g), X)["correlations"]
    assert test.where.endswith("is correlated with 'x0' in its highest 1%: r =")
    assert test.p < 1e-4


def test_correlations_with_other_rows_are_those_of_every_distance_as_written():
    """Two columns of 30 rows on a circle."""
    n, rng = 30, np.random.default_rng(5)
    u, X = rng.random((n, 2)), rng.normal(size=(n, 1))
    g, w = ndtri(u), ndtri(np.abs(2 * u - 1))
    ranks = (stats.rankdata(X, axis=0) - 0.5) / n
    exponents, count = [], 0

    def weight(k):
        return math.log(n / 16) if min(k, n - k) <= 4 else -math.log(2.0)

    for order in (np.arange(n), X[:, 0].argsort()):
        in_file = (order == np.arange(n)).all()
        for v in (g[order], w[order]):
            for a, b in ((0, 0), (0, 1), (1, 1)) if in_file else ((0, 0), (1, 1)):
                for k in range(n):
                    S = sum(v[i, a] * v[(i + k) % n, b] for i in range(n))
                    S /= 2.0 if a == b and k == 15 else 1.0
                    if 0 < k and (a != b or k <= 15):
                        exponents.append(chaos_exponent(np.float64(S), n / 2) + weight(k))
                    count += 1
                    if in_file:
                        S = sum(v[i, a] * v[(k - i) % n, b] for i in range(n))
                        squares = n if a == b else n / 2
                        exponents.append(chaos_exponent(np.float64(max(abs(S) - 2, 0)), squares))
                        count += 1
    for data, v in ((ndtri(ranks), g), (np.abs(2 * ranks - 1), w)):
        a = data[:, 0] - data.mean()
        for column in range(2):
            count += n
            for k in range(1, n):
                z = sum(a[(i - k) % n] * v[i, column] for i in range(n)) / np.linalg.norm(a)
                exponents.append(-math.log(2 * stats.norm.sf(abs(z))) + weight(k))
    test = found(u, X)["other rows"]
    assert test.tests == count
    assert test.p == pytest.approx(min(1.0, count * math.exp(-max(exponents))), rel=1e-3)


@pytest.mark.parametrize(
    ("scheme", "levels", "parameters"),
    [case for case in HONEST if case[0] not in ("rotation", "multiplicative-noise")],
)
def test_scores_of_honest_releases_are_uniform_and_independent(scheme, levels, parameters):
    plugin = registry.get("scheme", scheme)(**parameters)
    X = table("skewed", 4000)
    release = drawn(np.rint(10 * X) if plugin.on_lattice else X, plugin, levels, 3)
    if scheme == "rotation-noise":
        release.copies = release.release.undone(release.copies)
    chosen = range(1, len(levels) + 1)
    data = release.release.table
    rows = rows_of(data.values, release.copies, data.attributes, chosen, True)
    scores, *_ = release_scores(release.law, rows)
    assert (
        len(scores.names) == len(scores.grain) == len(scores.groups) == scores.values.shape[1] > 0
    )
    assert min(stats.kstest(u, "uniform").pvalue for u in scores.values.T) > 1e-5
    r = np.corrcoef(ndtri(scores.values), rowvar=False) if scores.values.shape[1] > 1 else np.eye(1)
    assert np.abs(r - np.eye(len(r))).max() < 5.0 / np.sqrt(4000)


LEVELS = (0.5, 1.0)


def skewed(rows, seed=4):
    rng = np.random.default_rng(seed)
    x = rng.lognormal(size=rows)
    return np.column_stack([x, 0.5 * x + rng.normal(size=rows)])


@pytest.mark.parametrize("scheme", [LaplaceMultilevel(), Laplace()])
def test_error_bars_are_the_spread_over_draws_of_the_noise(scheme):
    releases, n, levels = 4000, 25, (0.5, 0.25, 1.0)
    X = skewed(n)
    K, many = np.cov(X.T, bias=True), np.tile(X, (releases, 1))
    moments = TableMoments(X.mean(axis=0), K, n)
    copies = [np.empty_like(many) for _ in levels]
    scheme.sampler(levels, moments, Key(1, "laplace")).block(0, many, copies)
    weights = np.hstack([w * np.eye(2) for w in (0.3, 0.1, 0.4)])
    centre = X.mean(axis=0)
    errors = (np.hstack([y - centre for y in copies]) @ weights.T - (many - centre)) ** 2
    found = errors.reshape(releases, n, 2).mean(axis=1)
    maps = Maps(weights[None], np.zeros((1, 2)), True)
    theory = crossed(maps, maps, K, scheme.law(levels, moments), n)
    means = np.column_stack([found, found.mean(axis=1)])
    theirs = [*theory.expected[0], theory.expected[0].mean()]
    for measured, expected, variance in zip(means.T, theirs, theory.variance()[0], strict=True):
        assert abs(measured.mean() - expected) < 4 * np.sqrt(variance / releases)
        fourth = ((measured - measured.mean()) ** 4).mean() / measured.var() ** 2
        assert abs(measured.var() / variance - 1) < 4 * np.sqrt((fourth - 1) / releases)


class Lying(LaplaceMultilevel):
    """States one process and draws independent noise."""

    name = "lying-laplace"

    def sampler(self, levels, table, key, existing=0):
        return Laplace(Laplace.Parameters()).sampler(levels, table, key, existing)


class Sized(LaplaceMultilevel):
    """States one process; in one cell of four the increment is lawful by itself, and as large as the noise that it is added to."""

    name = "sized-laplace"

    def sampler(self, levels, table, key, existing=0):
        own, v = super().sampler(levels, table, key, existing), np.diag(self.shape(table))

        class Sampler:
            def block(self, index, x, out, existing=0):
                own.block(index, x, out, existing)
                rng = np.random.default_rng(index)
                step = np.column_stack(
                    [laplace_increment(rng, levels[0] * each, levels[1] * each, len(x)) for each in v],
                )  # fmt: skip
                ranked = np.empty_like(step)
                np.put_along_axis(
                    ranked, np.abs(out[0] - x).argsort(axis=0),
                    np.take_along_axis(step, np.abs(step).argsort(axis=0), 0), axis=0,
                )  # fmt: skip
                out[1][:] = np.where(rng.random(x.shape) < 0.25, out[0] + ranked, out[1])

        return Sampler()


@pytest.fixture
def lying():
    with registry.lent("scheme", Lying, Sized):
        yield


def verdicts(scheme):
    result = auditor.run({
        "data": {"source": "cps", "columns": ["age", "salary"], "rows": 6000}, "seed": 3,
        "schemes": [{"name": scheme, "levels": list(LEVELS)}], "coalitions": ["all"], "attacks": ["llse"],
        "expect": ["no-collusion-gain", "noise-follows-law"],
    })  # fmt: skip
    return [(verdict.status, verdict.why) for verdict in result.expectations]


@pytest.mark.slow
def test_the_law_of_one_process_holds_against_every_attack():
    (gain, why), (law, _) = verdicts("laplace-multilevel")
    assert (gain, law) == ("holds", "holds")
    assert why.startswith("by law, for every attack")


@pytest.mark.slow
def test_independent_copies_and_copies_that_lie_are_not_acquitted(lying):
    assert [status for status, _ in verdicts("laplace")] == ["fails", "holds"]
    assert [status for status, _ in verdicts("lying-laplace")] == ["fails", "fails"]
    gain, law = (status for status, _ in verdicts("sized-laplace"))
    assert (gain != "holds", law) == (True, "fails")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    X = pd.DataFrame(
        autoregression(np.random.default_rng(0).normal(size=(4000, 2)), 0.9), columns=["a", "b"]
    )
    X.to_csv(folder / "x.csv", index=False)
    for name, serial in (("follows", "data"), ("afresh", "none")):
        auditor.perturb(X, "corner-wave", [0.5], seed=1, serial=serial).copies[0].to_csv(
            folder / f"{name}.csv", index=False
        )
    return folder


@pytest.mark.parametrize(("copy", "serial", "status"), [
    ("follows", "data", "holds"), ("follows", "none", "fails"), ("afresh", "data", "fails"), ("follows", [0.3], "fails"),
])  # fmt: skip
def test_copies_in_files_are_held_to_the_stated_memory_of_their_noise(files, copy, serial, status):
    law = {"scheme": "corner-wave", "serial": serial}
    result = auditor.run({
        "schema": 1, "seed": 1, "data": {"source": str(files / "x.csv")}, "attacks": ["llse"], "coalitions": ["singles"],
        "schemes": [{"name": "published", "copies": [str(files / f"{copy}.csv")], "levels": [0.5], "law": law}],
        "expect": ["noise-follows-law"],
    })  # fmt: skip
    assert result.expectations[0].status == status
