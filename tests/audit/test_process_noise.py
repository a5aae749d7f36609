"""Audits of noise that is one process."""

import numpy as np
import pytest

import auditor
from auditor.audit.numeric.linear_errors import Maps, closed_form
from auditor.registry import _plugins, register
from auditor.schemes.base.scheme import Key, TableMoments
from auditor.schemes.divisible_noise import Laplace, LaplaceMultilevel, laplace_increment

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
    theory = closed_form(
        Maps(weights[None], np.zeros((1, 2)), True), K, scheme.law(levels, moments), n
    )
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
                    [
                        laplace_increment(rng, levels[0] * each, levels[1] * each, len(x))
                        for each in v
                    ]
                )
                ranked = np.empty_like(step)
                np.put_along_axis(
                    ranked,
                    np.abs(out[0] - x).argsort(axis=0),
                    np.take_along_axis(step, np.abs(step).argsort(axis=0), 0),
                    axis=0,
                )
                out[1][:] = np.where(rng.random(x.shape) < 0.25, out[0] + ranked, out[1])

        return Sampler()


@pytest.fixture
def lying():
    for cls in (Lying, Sized):
        register(cls)
    yield
    for cls in (Lying, Sized):
        del _plugins["scheme"][cls.name]


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
