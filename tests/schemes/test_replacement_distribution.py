"""Replacements that are not uniform: one law, exactly, by all implementations; what it tells, by enumeration; and what is refused."""

import itertools

import numpy as np
import pandas as pd
import pytest
from bridge_oracle import Bridge
from enumeration import enumerate_process, enumerate_requests
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import auditor
from auditor.data.microdata import as_categories
from auditor.errors import AuditorError, AuditorWarning, ScenarioError
from auditor.numerics.cipher import ReleaseKey
from auditor.registry import PluginParameters, get
from auditor.runs.advice.candidates import Retention, share_loss
from auditor.runs.perturb import make_plugin
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.distribution import never_drawn
from auditor.schemes.replacement.draws import coins, replacements
from auditor.schemes.replacement.estimated_law import estimated_retention
from auditor.schemes.replacement.law import (
    UniformLaw,
    history_size,
    left_by_retention,
    transition_matrix,
)
from auditor.schemes.replacement.multi_pert import MultiPertCopies
from auditor.schemes.replacement.neighbour_coins import between, drawn_between
from auditor.schemes.uniform import UniformMultilevel
from auditor.testing.schemes import check_scheme

LEVELS = (0.7, 0.5, 0.3, 0.05)
PI = {2: np.array([0.9, 0.1]), 3: np.array([0.7, 0.25, 0.05])}
WITH_ZERO = np.array([0.6, 0.0, 0.4])
MAKERS = [
    ("uniform", {}),
    *(("uniform-multilevel", {"implementation": name}) for name in ("process", "multi-pert")),
]


def naive(retention, pi):
    """Every entry by the words of the definition: kept, or replaced."""
    return np.array(
        [
            [retention * (x == y) + (1 - retention) * pi[y] for y in range(len(pi))]
            for x in range(len(pi))
        ]
    )


def law_of(levels, pi, multilevel=True):
    return UniformLaw(tuple(levels), len(pi), multilevel, tuple(pi))


def exact(levels, pi):
    return law_of(levels, pi).joint(np.full(len(pi), 1 / len(pi)))


def brute_force(levels, pi, multilevel):
    """``P(y_1 … y_k | x)`` outcome by outcome, levels descending."""
    s, k = len(pi), len(levels)
    found = np.empty((s,) * (k + 1))
    for outcome in np.ndindex(*found.shape):
        steps = zip((1.0, *levels), levels, strict=False)
        found[outcome] = np.prod([
            naive(level / high, pi)[outcome[j], outcome[j + 1]] if multilevel else naive(level, pi)[outcome[0], outcome[j + 1]]
            for j, (high, level) in enumerate(steps)
        ])  # fmt: skip
    return found


def table_of(values, labels):
    return as_categories(pd.Series(pd.Categorical.from_codes(values, labels), name="a"))


# -- the law
# ---------------------------------------------------------------------------------------------------------------


def test_a_coin_by_hand():
    """Levels 1, 1/2 and 1/4 of two values, π = (3/4, 1/4): ρ are 1/2, 1/2 and 1/4. Both neighbours 0: T(1/4)[0, 0] = 13/16, and
    v = 1/2·(1 − 1/2·3/4·16/13) = 7/26; both 1: T(1/4)[1, 1] = 7/16, v = 1/2·(1 − 1/2·1/4·16/7) = 5/14."""
    equal, differ = coins(1.0, 0.5, 0.25, 2, np.array([0.75, 0.25]))
    assert equal.left == 0.5
    np.testing.assert_allclose(equal.right, [7 / 26, 5 / 14], atol=1e-15)
    assert (differ.left, differ.right) == (pytest.approx(1 / 3), pytest.approx(1 / 3))


@pytest.mark.parametrize("pi", [*PI.values(), WITH_ZERO, np.array([0.0, 1.0]), np.array([1.0])])
def test_a_draw_between_neighbours_is_bayes_rule_on_the_chain(pi):
    for high, level, low in [
        *np.sort(np.random.default_rng(1).random((60, 3)))[:, ::-1],
        (1.0, 0.5, 0.0),
        (0.3, 0.3 - 1e-12, 0.1),
    ]:
        left, right = naive(level / high, pi), naive(low / level, pi)
        equal, differ = coins(high, level, low, len(pi), pi)
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


def test_joint_law_with_a_value_that_is_never_drawn():
    for make, order in itertools.product(
        (Bridge, MultiPertCopies), itertools.permutations((0.6, 0.3, 0.0))
    ):
        law, *_ = enumerate_requests(make, order, 3, WITH_ZERO)
        np.testing.assert_allclose(law, exact(order, WITH_ZERO), rtol=0, atol=1e-12)


@pytest.mark.parametrize("levels", [LEVELS, (0.05, 0.7, 0.3, 0.5), (0.5, 0.002, 1e-6)])
def test_joint_law_of_the_process_is_exact_in_any_order_of_requests(levels):
    np.testing.assert_allclose(
        enumerate_process(levels, 3, PI[3]), exact(levels, PI[3]), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("multilevel", [True, False])
def test_law_is_that_of_its_words(multilevel):
    for pi in (PI[3], WITH_ZERO):
        np.testing.assert_allclose(
            law_of((0.7, 0.3, 0.0), pi, multilevel).given_original(),
            brute_force((0.7, 0.3, 0.0), pi, multilevel),
            atol=1e-15,
        )


@settings(deadline=None, max_examples=20)
@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 6), st.integers(0, 1000))
def test_steps_multiply(a, b, size, seed):
    pi = np.random.default_rng(seed).dirichlet(np.full(size, 0.3))
    T = [transition_matrix(p, size, pi) for p in (a, b, a * b)]
    np.testing.assert_allclose(T[0] @ T[1], T[2], atol=1e-14)
    np.testing.assert_allclose(T[0], naive(a, pi), atol=1e-15)


def test_uniform_chances_are_uniform_replacement_in_law():
    stated, plain = law_of(LEVELS, np.full(3, 1 / 3)), UniformLaw(LEVELS, 3, True)
    np.testing.assert_allclose(stated.given_original(), plain.given_original(), atol=1e-15)
    assert stated.epsilon() == pytest.approx(plain.epsilon())
    assert stated.odds_by_value() == pytest.approx(plain.odds_by_value())
    prior = np.array([0.5, 0.3, 0.2])
    for of in (left_by_retention, share_loss):
        assert of(prior, 0.4, np.full(3, 1 / 3)) == pytest.approx(of(prior, 0.4))
    assert history_size(LEVELS, prior, np.full(3, 1 / 3)) == pytest.approx(
        history_size(LEVELS, prior)
    )
    for part, other in zip(
        coins(0.9, 0.5, 0.2, 3, np.full(3, 1 / 3)), coins(0.9, 0.5, 0.2, 3), strict=True
    ):
        assert (part.left, *np.ravel(part.right)[:1]) == (other.left, pytest.approx(other.right))


# -- draws
# -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [11, ReleaseKey(bytes(32))])
@pytest.mark.parametrize(("scheme", "parameters"), MAKERS)
def test_every_implementation_draws_from_the_law(scheme, parameters, seed):
    """χ² over all 81 outcomes of value and three copies at a false-alarm rate of 1e-6; 100,000 records; requests in no order."""
    original, levels = (
        np.random.default_rng(0).choice(3, 100_000, p=[0.2, 0.5, 0.3]).astype(np.uint8),
        (0.3, 0.8, 0.5),
    )
    plugin = make_plugin("scheme", scheme, {**parameters, "replacement": PI[3].tolist()}).over(
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


@pytest.mark.parametrize(("scheme", "parameters"), MAKERS)
def test_limits_and_values_never_drawn(scheme, parameters):
    original = np.arange(3000, dtype=np.uint8) % 3
    plugin = make_plugin("scheme", scheme, {**parameters, "replacement": WITH_ZERO.tolist()}).over(
        table_of(original, list("abc"))
    )
    made = plugin.copies(original, 3, Key(5, "u"))
    kept, some, none, late = (np.array(made.ask(level)) for level in (1.0, 0.5, 0.0, 1e-5))
    assert np.array_equal(kept, original)
    assert (original[some == 1] == 1).all()
    assert 400 < (some == 1).sum() < 600  # kept by half: ± 16 of 500
    assert not (none == 1).any()
    assert not ((late == 1) & (original != 1)).any()
    alone = make_plugin("scheme", scheme, {**parameters, "replacement": [1.0]}).over(
        table_of(np.zeros(9, int), ["a"])
    )
    assert not alone.copies(np.zeros(9, np.uint8), 1, Key(5, "u")).ask(0.3).any()
    assert alone.channel((0.3,), 1).epsilon() == 0.0


def test_replacements_by_hand():
    class Told:
        def random(self, n):
            return np.array([0.0, 0.25 - 2**-54, 0.25, 0.75 - 2**-53, 0.75, 1 - 2**-53])

    assert replacements(Told(), 6, 4, np.array([0.25, 0.0, 0.5, 0.25])).tolist() == [
        0,
        0,
        2,
        2,
        3,
        3,
    ]
    assert replacements(Told(), 6, 3, np.array([0.25, 0.75, 0.0])).tolist() == [0, 0, 1, 1, 1, 1]


# -- what it tells
# ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("multilevel", [True, False])
def test_epsilon_and_odds_by_enumeration(multilevel):
    law = law_of((0.6, 0.3), PI[3], multilevel)
    given = law.given_original()
    assert law.epsilon() == pytest.approx(np.log((given.max(axis=0) / given.min(axis=0)).max()))
    by_value = [given[x, x, x] / np.delete(given[:, x, x], x) for x in range(3)]
    np.testing.assert_allclose(law.odds_by_value(), [ratios[0] for ratios in by_value])
    for ratios in by_value:
        assert np.ptp(ratios) < 1e-12


def test_epsilon_by_hand_and_where_a_value_is_never_drawn():
    assert law_of((0.5,), PI[2]).epsilon() == pytest.approx(np.log(11.0))  # 1 + 0.5/(0.5·0.1)
    assert UniformLaw((0.5,), 2, True).epsilon() == pytest.approx(np.log(3.0))
    assert law_of((0.5,), WITH_ZERO).epsilon() == np.inf
    assert law_of((0.0,), WITH_ZERO).epsilon() == 0.0
    assert law_of((0.5,), WITH_ZERO).odds_of(0.5).tolist() == pytest.approx(
        [1 + 1 / 0.6, np.inf, 1 + 1 / 0.4]
    )
    assert never_drawn(PI[3]) == never_drawn(None) == ""
    assert never_drawn(WITH_ZERO).startswith("1 of 3 values is never drawn")


def test_posterior_of_every_coalition_equals_that_of_its_best_copy():
    prior = np.array([0.1, 0.3, 0.6])
    for pi in (PI[3], WITH_ZERO):
        joint = law_of(LEVELS, pi).joint(prior)
        for coalition in itertools.chain.from_iterable(
            itertools.combinations(range(4), size) for size in range(1, 5)
        ):
            held = joint.sum(
                axis=tuple(k + 1 for k in range(4) if k not in coalition), keepdims=True
            )
            best = joint.sum(
                axis=tuple(k + 1 for k in range(4) if k != coalition[0]), keepdims=True
            )
            with np.errstate(invalid="ignore"):
                assert np.nanmax(np.abs(held / held.sum(axis=0) - best / best.sum(axis=0))) < 1e-14


def test_the_merged_domain_decides_as_the_whole_one():
    """Against the definition on five values: ``P(y_j | y_b, x)`` of every possible outcome is the same for all x, or is not."""
    rng = np.random.default_rng(2)
    for pi in [
        *rng.dirichlet(np.full(5, 0.3), 3),
        np.array([0, 0, 1.0, 0, 0]),
        np.array([0.5, 0, 0.5, 0, 0]),
    ]:
        for levels, multilevel in itertools.product(
            [(0.5, 0.3), (0.3, 0.5), (1.0, 0.4), (0.4, 0.0), (0.0, 0.0), (0.5, 0.5)], (True, False)
        ):
            law = law_of(levels, pi, multilevel)
            joint = (
                law.given_original() if law.best == 1 else np.swapaxes(law.given_original(), 1, 2)
            )
            seen = joint.sum(axis=2, keepdims=True)
            spread = [
                np.ptp((joint[some, y] / seen[some, y]), axis=0).max()
                for y in range(5)
                if (some := seen[:, y, 0] > 0).any()
            ]
            assert law.best_is_sufficient() == (max(spread) <= 1e-12), (pi, levels)


def test_history_size_and_neighbours_coin_by_enumeration():
    pi, prior = PI[3], np.full(3, 1 / 3)
    _, copies, algorithm, _, weight = enumerate_requests(MultiPertCopies, (0.3, 0.7, 0.5), 3, pi)
    sizes = np.diff(algorithm.history.start)
    assert (sizes * weight).sum() / 3 == pytest.approx(
        history_size((0.3, 0.7, 0.5), prior, pi), abs=1e-12
    )
    (coin,) = drawn_between(
        law_of((0.3, 0.7, 0.5), pi), prior, between((0.3, 0.7, 0.5))[1:], np.array([[5, 4]])
    )
    agree = copies[0] == copies[1]
    assert coin.kept == pytest.approx(
        (weight * (agree & (copies[2] == copies[0]))).sum() / (weight * agree).sum()
    )
    assert (coin.copy, coin.heads, coin.agreeing, coin.same) == (3, pytest.approx(0.5 / 0.7), 5, 4)


def test_what_a_copy_leaves_and_loses():
    prior, pi, p = np.array([0.5, 0.3, 0.2]), PI[3], 0.4
    joint = prior[:, None] * naive(p, pi)
    known, blind = (joint**2 / joint.sum(axis=0)).sum(), (prior**2).sum()
    assert left_by_retention(prior, p, pi) == pytest.approx(1 - (known - blind) / (1 - blind))
    assert (left_by_retention(prior, 0.0, WITH_ZERO), left_by_retention(prior, 1.0, WITH_ZERO)) == (
        pytest.approx(1.0),
        pytest.approx(0.0),
    )
    # the copy's shares are the table's
    assert share_loss(prior, p, prior) == pytest.approx(1 / p - 1)
    scheme = get("scheme", "uniform-multilevel")()
    assert Retention(2, 2.0, scheme, prior, pi=pi).unknown((0.4, 0.2)) == left_by_retention(
        prior, 0.4, pi
    )


def test_retention_estimated_from_pairs_has_no_bias():
    x = np.random.default_rng(3).choice(3, 200_000, p=[0.2, 0.5, 0.3])
    scheme = make_plugin("scheme", "uniform", {"replacement": PI[3].tolist()}).over(
        table_of(x, list("abc"))
    )
    y = scheme.copies(x, 3, Key(3, "u")).ask(0.4)
    assert estimated_retention(x, y, 3, PI[3]) == pytest.approx(
        0.4, abs=5 * 0.5 / np.sqrt(x.size) / (1 - 0.42)
    )
    assert estimated_retention(x, y, 3) < 0.36


# -- what is said of it
# ----------------------------------------------------------------------------------------------------


def test_prior_is_the_table_s_own():
    frame = pd.DataFrame({"a": list("xxxy"), "b": list("pqqq")}).astype("category")
    pi = (
        make_plugin("scheme", "uniform", {"replacement": "prior"})
        .over(as_categories(frame))
        .replaced_by(4)
    )
    np.testing.assert_allclose(pi, [0.75 * 0.25, 0.75 * 0.75, 0.25 * 0.25, 0.25 * 0.75])
    stated = (
        make_plugin("scheme", "uniform", {"replacement": {"b": [0.25, 0.75], "a": [0.75, 0.25]}})
        .over(as_categories(frame))
        .replaced_by(4)
    )
    np.testing.assert_allclose(stated, pi)


@pytest.mark.parametrize(("replacement", "message"), [
    ([0.5, 0.2], r"must be chances that sum to 1; got a sum of 0\.7"),
    ([1.5, -0.5], r"must be chances of at least 0; got -0\.5"),
    ({"a": [1.0], "b": [0.5]}, "column 'b': must be chances that sum to 1"),
    ([], "one entry or more|this many entries or more: 1"),
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


def test_a_subclass_with_parameters_of_its_own_replaces_uniformly():
    class Own(UniformMultilevel):
        class Parameters(PluginParameters):
            pass

    assert Own().over(table_of(np.arange(3), list("abc"))).channel((0.5,), 3) == UniformLaw(
        (0.5,), 3, True
    )


def test_a_scheme_that_saw_no_table_says_so():
    scheme = make_plugin("scheme", "uniform", {"replacement": "prior"})
    with pytest.raises(AuditorError, match=r"scheme\.over\(table\)"):
        scheme.channel((0.5,), 3)


def test_releases_from_python_are_extended_by_the_same_law():
    """Later copies hang on their neighbours, and a value that is never drawn is in no copy unless it was there."""
    X = pd.Series(pd.Categorical.from_codes(np.arange(30_000) % 3, list("abc")))
    with pytest.warns(AuditorWarning, match="1 of 3 values is never drawn"):
        release = auditor.perturb(
            X, "uniform-multilevel", [0.6, 0.2], seed=1, replacement=WITH_ZERO.tolist()
        )
    release = release.extend([0.4], seed=2)
    x, *copies = (part.cat.codes.to_numpy() for part in (X, *release.copies))
    assert not any(((copy == 1) & (x != 1)).any() for copy in copies)
    expected = law_of(release.levels, WITH_ZERO).given_original() * 10_000
    found = np.zeros_like(expected)
    np.add.at(found, (x, *copies), 1)
    some = expected > 5
    assert (
        chi2.sf(((found - expected)[some] ** 2 / expected[some]).sum(), int(some.sum()) - 3) > 1e-6
    )


@pytest.mark.parametrize("replacement", ["prior", [0.2, 0.3, 0.5]])
def test_the_contract_of_schemes_holds(replacement):
    for name in ("uniform", "uniform-multilevel"):
        check_scheme(get("scheme", name), {"replacement": replacement})
