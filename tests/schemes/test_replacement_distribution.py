"""Replacements by any distribution."""

import itertools

import numpy as np
import pandas as pd
import pytest
from bridge_oracle import Bridge
from enumeration import enumerate_process, enumerate_requests
from scipy.stats import chi2

import auditor
from auditor.base import ScenarioError
from auditor.numerics.random_streams import ReleaseKey
from auditor.runs.perturb import as_categories
from auditor.scenario.arguments import make_plugin
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import coins
from auditor.schemes.replacement.law import UniformLaw
from auditor.schemes.uniform import MultiPertCopies

LEVELS = (0.7, 0.5, 0.3, 0.05)
ORDERS = list(itertools.permutations(LEVELS))
PI = {2: np.array([0.9, 0.1]), 3: np.array([0.7, 0.25, 0.05])}
EVEN = {size: np.full(size, 1 / size) for size in (1, 2, 3, 7)}
WITH_ZERO = np.array([0.6, 0.0, 0.4])
MAKERS = [
    ("uniform", {}),
    *(("uniform-multilevel", {"implementation": name}) for name in ("process", "multi-pert")),
]


def naive(retention, pi):
    """Every entry by the words of the definition: kept, or replaced."""
    return np.array(
        [[retention * (x == y) + (1 - retention) * pi[y] for y in range(len(pi))] for x in range(len(pi))],
    )  # fmt: skip


def law_of(levels, pi, multilevel=True):
    return UniformLaw(tuple(levels), len(pi), multilevel, tuple(pi))


def exact(levels, pi):
    return law_of(levels, pi).joint(np.full(len(pi), 1 / len(pi)))


def table_of(values, labels):
    return as_categories(pd.Series(pd.Categorical.from_codes(values, labels), name="a"))


def test_a_coin_by_hand():
    """Levels 1, 1/2 and 1/4 of two values, π = (3/4, 1/4)."""
    equal, differ = coins(1.0, 0.5, 0.25, 2, np.array([0.75, 0.25]))
    assert equal.left == 0.5
    np.testing.assert_allclose(equal.right, [7 / 26, 5 / 14], atol=1e-15)
    assert (differ.left, differ.right) == (pytest.approx(1 / 3), pytest.approx(1 / 3))


@pytest.mark.parametrize("pi", [*PI.values(), WITH_ZERO, np.array([0.0, 1.0]), EVEN[1], EVEN[7]])
def test_a_draw_between_neighbours_is_bayes_rule_on_the_chain(pi):
    # Induction for any number of copies in any order: if released copies are the chain of the
    # law, a draw from its two neighbours by the chain's own P(y | y_l, y_r) extends the chain. So
    # three levels at a time prove the joint law of any set.
    draws = np.sort(np.random.default_rng(1).random((60, 3)))[:, ::-1]
    edges = [(1.0, 0.5, 0.0), (1.0, 0.999, 0.998), (0.3, 0.3 - 1e-12, 0.1), (1.0, 1e-9, 1e-12)]
    for high, level, low in [*draws, *edges]:
        left, right = naive(level / high, pi), naive(low / level, pi)
        (equal, differ), (alone, _) = (coins(high, level, end, len(pi), pi) for end in (low, None))
        np.testing.assert_allclose(naive(alone.left, pi), left, rtol=0, atol=1e-15)
        if (pi == pi[0]).all():
            even = coins(high, level, low, len(pi))
            assert np.allclose(np.hstack(even[0]), np.hstack([equal.left, equal.right[0]]))
            assert even[1] == pytest.approx(differ)
        for y_l, y_r in np.ndindex(len(pi), len(pi)):
            chain = left[y_l] * right[:, y_r]
            if chain.sum() > 1e-300:
                u, v = (equal.left, equal.right[y_l]) if y_l == y_r else differ
                drawn = (1 - u - v) * pi
                drawn[y_l] += u
                drawn[y_r] += v
                np.testing.assert_allclose(drawn, chain / chain.sum(), rtol=0, atol=1e-11)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("make", [Bridge, MultiPertCopies])
def test_joint_law_is_exact_in_every_arrival_order(make, size):
    for order in (
        itertools.permutations(LEVELS)
        if size == 2
        else [LEVELS, LEVELS[::-1], (0.3, 0.7, 0.05, 0.5), (0.5, 0.05, 0.3, 0.7)]
    ):
        law, *_ = enumerate_requests(make, order, size, PI[size])
        np.testing.assert_allclose(law, exact(order, PI[size]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("pi", [PI[3], EVEN[2], EVEN[3]])
def test_joint_law_of_the_process_is_exact_in_any_order_of_requests(pi):
    for levels in (*ORDERS, (0.5, 0.002, 1e-6)):
        found = enumerate_process(levels, len(pi), None if pi[0] == pi[1] else pi)
        np.testing.assert_allclose(found, exact(levels, pi), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("seed", "replacement"),
    [(11, PI[3].tolist()), (ReleaseKey(bytes(32)), PI[3].tolist()), (11, "uniform")],
)
@pytest.mark.parametrize(("scheme", "parameters"), MAKERS)
def test_every_implementation_draws_from_the_law(scheme, parameters, seed, replacement):
    original, levels = (
        np.random.default_rng(0).choice(3, 100_000, p=[0.2, 0.5, 0.3]).astype(np.uint8),
        (0.3, 0.8, 0.5),
    )
    plugin = make_plugin("scheme", scheme, {**parameters, "replacement": replacement}).over(
        table_of(original, list("abc"))
    )
    made = plugin.copies(original, 3, Key(seed, "u"))
    copies = [made.ask(level) for level in levels]
    expected = plugin.channel(levels, 3).given_original() * np.bincount(original).reshape(
        -1, 1, 1, 1
    )
    found = np.zeros_like(expected)
    np.add.at(found, (original, *copies), 1)
    assert chi2.sf(((found - expected) ** 2 / expected).sum(), 78) > 1e-6


@pytest.mark.parametrize("multilevel", [True, False])
def test_epsilon_and_odds_by_enumeration(multilevel):
    law = law_of((0.6, 0.3), PI[3], multilevel)
    given = law.given_original()
    assert law.epsilon() == pytest.approx(np.log((given.max(axis=0) / given.min(axis=0)).max()))
    by_value = [given[x, x, x] / np.delete(given[:, x, x], x) for x in range(3)]
    np.testing.assert_allclose(law.odds_by_value(), [ratios[0] for ratios in by_value])
    for ratios in by_value:
        assert np.ptp(ratios) < 1e-12


@pytest.mark.parametrize(("replacement", "message"), [
    ([0.5, 0.2], r"must be chances of at least 0 that sum to 1; got a least of 0\.2 and a sum of 0\.7"),
    ([1.5, -0.5], r"must be chances of at least 0 that sum to 1; got a least of -0\.5"),
    ({"a": [1.0], "b": [0.5]}, "column 'b': must be chances of at least 0 that sum to 1"),
    ([], "1 or more entries"),
    ("priors", "'uniform' or 'prior'.*did you mean 'prior'"),
    (0.5, "must be 'uniform' or 'prior' or a list or a mapping"),
])  # fmt: skip
def test_what_is_no_distribution_is_refused(replacement, message):
    with pytest.raises(ScenarioError, match=message):
        make_plugin("scheme", "uniform-multilevel", {"replacement": replacement})


@pytest.mark.parametrize(("columns", "replacement", "message"), [
    (["a"], [0.5, 0.3, 0.2], "column 'a' must have 2 chances, one for each category in order; got 3"),
    (["a"], {"c": [0.5, 0.5]}, "names column 'c', which is not perturbed"),
    (["a", "b"], [0.5, 0.5], r"must be \{column: \[...\]\} for 2 columns: 'a', 'b'"),
    (["a", "b"], {"a": [0.5, 0.5]}, "has no chances for column 'b'"),
])  # fmt: skip
def test_what_does_not_fit_the_table_is_refused_with_its_place(columns, replacement, message):
    values = {"a": [1, 2] * 20, "b": [1, 2, 2, 2] * 10}
    scenario = {
        "schema": 1, "title": "t", "data": {"source": "inline", "values": {c: values[c] for c in columns}, "categorical": columns},
        "schemes": [{"name": "uniform-multilevel", "replacement": replacement, "levels": [0.5]}], "attacks": ["posterior"],
    }  # fmt: skip
    with pytest.raises(ScenarioError, match=r"schemes\[0\].*" + message):
        auditor.run(scenario)
