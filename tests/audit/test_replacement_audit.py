"""Audits of replacements that are not uniform: exact Bayes, tests of the law that find other replacements and leave honest ones alone."""

import numpy as np
import pandas as pd
import pytest
from categorical_law import law_tests, least
from scipy.stats import binom

import auditor
from auditor import registry
from auditor.adversary.categorical_attack import CategoricalView
from auditor.adversary.given import KnownPairs
from auditor.adversary.knowledge import KnownRecords
from auditor.audit.categorical.copy_figures import gap_of_chances, share_gap
from auditor.audit.categorical.copy_figures import test_of_chances as chi_square
from auditor.audit.categorical.posterior_measures import (
    growth_bound,
    largest_retention_for_growth,
    worst_growth,
)
from auditor.audit.measures.empirical_epsilon import Trials
from auditor.data.columns.categorical_table import Attribute, product
from auditor.errors import AuditorWarning, ScenarioError
from auditor.runs.perturb import make_plugin
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import Copies, FreshCopies, stream_of
from auditor.schemes.replacement.draws import Draws
from auditor.schemes.replacement.law import UniformLaw, transition_matrix
from auditor.schemes.replacement.multi_pert import MultiPertCopies
from auditor.schemes.uniform import UniformMultilevel
from auditor_attacks.posterior import (
    Bayes,
    Posterior,
    prior_by_inversion,
    prior_by_likelihood,
    prior_of_chances,
)
from auditor_attacks.serial_posterior import likelihood

PRIOR, PI, WITH_ZERO = (
    np.array([0.5, 0.3, 0.15, 0.05]),
    np.array([0.1, 0.2, 0.3, 0.4]),
    np.array([0.5, 0.0, 0.3, 0.2]),
)
LEVELS = (0.3, 0.6, 0.15)


def law_of(levels, pi, multilevel=True):
    return UniformLaw(tuple(levels), len(pi), multilevel, tuple(pi))


def column(size, rows, seed=14):
    return np.minimum(np.random.default_rng(seed).geometric(0.4, rows) - 1, size - 1)


def pair_counts(x, y, size):
    """Return how many records show each pair of values, shape (s, s)."""
    return np.bincount(x.astype(np.intp) * size + y, minlength=size * size).reshape(size, size)


def drawn(x, size, levels, seed, scheme="uniform-multilevel", replacement="prior", **parameters):
    """Return the scheme for a column, and copies."""
    table = product([Attribute("a", tuple(range(size)))], [x])
    plugin = make_plugin("scheme", scheme, {"replacement": replacement, **parameters}).over(table)
    made = plugin.blocked(x, size, Key(seed, "u"))
    return plugin, [np.array(made.ask(level)) for level in levels]


# -- exact Bayes
# -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("multilevel", [True, False])
@pytest.mark.parametrize("pi", [PI, WITH_ZERO])
@pytest.mark.parametrize("levels", [(0.5,), (0.3, 0.1, 0.5), (0.2, 0.0, 0.9), (1.0, 0.4)])
def test_posterior_equals_bayes_over_the_whole_joint_law(multilevel, pi, levels):
    law = law_of(levels, pi, multilevel)
    joint = law.joint(PRIOR).reshape(4, -1)
    possible = np.flatnonzero(joint.any(axis=0))
    copies = [np.asarray(part, np.uint8) for part in np.unravel_index(possible, (4,) * len(levels))]
    np.testing.assert_allclose(
        Bayes(PRIOR, law).posterior(copies),
        (joint[:, possible] / joint[:, possible].sum(axis=0)).T,
        atol=1e-13,
    )


def test_likelihoods_along_the_rows_are_those_of_the_law():
    y = np.arange(4, dtype=np.uint8)
    for pi in (PI, WITH_ZERO):
        T = transition_matrix(0.4, 4, pi)
        np.testing.assert_allclose(
            likelihood(law_of((0.4,), pi), [y]), (T / T.max(axis=0)).T, atol=1e-15
        )
        np.testing.assert_allclose(
            likelihood(law_of((0.4,), pi, False), [y]), (T / T.max(axis=0)).T, atol=1e-15
        )


def test_thousands_of_fresh_copies_in_logarithms():
    y = np.array([0, 1, 3], np.uint8)
    for pi in (PI, WITH_ZERO):
        np.testing.assert_allclose(
            Bayes(PRIOR, law_of((0.5,) * 1000, pi, False)).posterior([y] * 1000), np.eye(4)[y]
        )


@pytest.mark.parametrize("pi", [PI, WITH_ZERO])
def test_priors_are_estimated_through_the_replacements(pi):
    shown = transition_matrix(0.3, 4, pi).T @ PRIOR * 1000
    np.testing.assert_allclose(prior_by_inversion(shown, 0.3, pi), PRIOR, atol=1e-12)
    np.testing.assert_allclose(prior_by_likelihood(shown, 0.3, pi), PRIOR, atol=1e-12)
    # few records: some value is shown less often than replacements alone would, and its share is 0
    for seed in range(5):
        counts = (
            np.random.default_rng(seed)
            .multinomial(20, transition_matrix(0.2, 4, pi).T @ PRIOR)
            .astype(float)
        )
        found, by_steps = (
            prior_by_likelihood(counts, 0.2, pi),
            prior_of_chances(counts, transition_matrix(0.2, 4, pi), True),
        )
        score = [
            counts[counts > 0] @ np.log((transition_matrix(0.2, 4, pi).T @ q)[counts > 0])
            for q in (found, by_steps)
        ]
        assert found.sum() == pytest.approx(1.0)
        assert score[0] >= score[1] - 1e-9


def test_known_records_teach_retention_under_the_replacements_there_are():
    x = np.random.default_rng(1).choice(4, 20_000, p=PRIOR)
    plugin, (y,) = drawn(x, 4, (0.4,), 1, replacement=PI.tolist())
    law = plugin.channel((0.4,), 4)
    view = CategoricalView((1,), law, KnownRecords(x.size), tuple("abcd"), KnownPairs(x, (y,)))
    found = Posterior().infer(view)
    assert found.law.levels[0] == pytest.approx(0.4, abs=5 * 0.5 / np.sqrt(x.size) / 0.8)
    assert found.law.pi.tolist() == pytest.approx(PI.tolist())


@pytest.mark.parametrize("multilevel", [True, False])
def test_growth_is_that_of_the_value_that_all_copies_show(multilevel):
    law = law_of((0.5, 0.2), PI, multilevel)
    joint = law.joint(PRIOR).reshape(4, -1)
    assert worst_growth(PRIOR, law.odds_by_value()) == pytest.approx(
        (joint / joint.sum(axis=0) - PRIOR[:, None]).max()
    )
    p = largest_retention_for_growth(0.5, law_of((0.5,), PI).rarity)
    assert growth_bound(law_of((p,), PI).odds()) == pytest.approx(0.5)
    assert largest_retention_for_growth(0.5, law_of((0.5,), WITH_ZERO).rarity) == 0.0


# -- what was drawn against what is said
# -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [3, 6, 40, 200])
@pytest.mark.slow_after_first
def test_uniform_replacements_said_to_be_the_table_s_own_are_found(size):
    x = column(size, 20_000)
    plugin, _ = drawn(x, size, (), 1)
    _, copies = drawn(x, size, LEVELS, 1, replacement="uniform")
    law = plugin.channel(LEVELS, size)
    assert least(law_tests(x, law, copies)) <= 1e-6
    assert (
        chi_square(pair_counts(x, copies[0], size), transition_matrix(LEVELS[0], size, law.pi))[0]
        <= 1e-6
    )
    _, own = drawn(x, size, LEVELS, 1)  # and the other way round
    assert least(law_tests(x, UniformLaw(LEVELS, size, True), own)) <= 1e-6


@pytest.mark.parametrize("scheme", ["uniform", "uniform-multilevel"])
@pytest.mark.parametrize("size", [2, 6, 40])
@pytest.mark.slow_after_first
def test_honest_replacements_are_left_alone(scheme, size):
    """False alarms: 6 cases of 20 seeds at one in ten thousand, one run of this in 83; the marginals' 8 of 10,000 likewise."""
    x = column(size, 4000)
    for seed in range(20):
        plugin, copies = drawn(x, size, (0.5, 0.2, 0.5, 0.9, 0.0, 1.0), seed, scheme)
        law = plugin.channel((0.5, 0.2, 0.5, 0.9, 0.0, 1.0), size)
        assert least(law_tests(x, law, copies)) > 1e-4
        assert (
            chi_square(pair_counts(x, copies[1], size), transition_matrix(0.2, size, law.pi))[0]
            > 1e-4
        )


def test_honest_copies_with_values_that_are_never_drawn_are_left_alone_and_others_found():
    x = np.random.default_rng(3).choice(4, 4000, p=PRIOR)
    plugin, copies = drawn(x, 4, LEVELS, 3, replacement=WITH_ZERO.tolist())
    law = plugin.channel(LEVELS, 4)
    assert least(law_tests(x, law, copies)) > 1e-4
    copies[1][np.flatnonzero(x != 1)[0]] = 1
    assert least(law_tests(x, law, copies)) == 0.0


@pytest.mark.slow
def test_p_values_are_no_smaller_than_they_say():
    """A sum of binomials of different chances is tested as one of their mean chance, whose tails are longer."""
    x, p = column(6, 1000), {}
    for seed in range(100):
        plugin, copies = drawn(x, 6, (0.5, 0.2), 100 + seed)
        for test in law_tests(x, plugin.channel((0.5, 0.2), 6), copies, seed):
            p.setdefault(test.statistic, []).append(test.p)
    for statistic, values in p.items():
        for q in (0.05, 0.2, 0.5):
            assert np.mean(np.array(values) <= q) <= q + 4 * np.sqrt(q * (1 - q) / len(values)), (
                statistic,
                q,
            )


def test_the_share_kept_by_hand():
    """Retention 1/2, π = (3/4, 1/4); of 6 records 4 have the first value: kept by 4·7/8 + 2·5/8 = 19/4 of 6, on average."""
    x, y = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 0, 1, 1, 0])
    test = next(
        test
        for test in law_tests(x, law_of((0.5,), np.array([0.75, 0.25])), [y])
        if test.statistic == "retention"
    )
    assert (test.observed, test.expected) == (pytest.approx(4 / 6), pytest.approx(19 / 24))
    assert test.p == pytest.approx(min(1.0, 2 * binom.cdf(4, 6, 19 / 24)))


def test_distance_from_the_law_has_mean_0():
    x = column(5, 500)
    pi = np.bincount(x, minlength=5) / 500
    made = [
        gap_of_chances(
            pair_counts(x, drawn(x, 5, (0.4,), seed)[1][0], 5), transition_matrix(0.4, 5, pi)
        )
        for seed in range(100)
    ]
    gaps, errors = np.array(made).T
    assert abs(gaps.mean()) < 4 * errors.mean() / 10


# -- what pooling buys
# -----------------------------------------------------------------------------------------------------


def test_trials_tell_the_rarest_replacements_apart():
    """ε = ln(1 + 0.5/(0.5·0.1)) = ln 11 by the rarest; by the commonest value it would be ln 3.5."""
    plugin = make_plugin("scheme", "uniform-multilevel", {"replacement": PI.tolist()}).over(
        product([Attribute("a", (0, 1, 2, 3))], [np.arange(4)])
    )
    found = Trials(plugin, (0.5, 0.2), 4, 40_000, Key(1, "trials")).audit((1, 2))
    assert 0.95 * np.log(11) < found.epsilon < np.log(11)


# -- in an audit
# -----------------------------------------------------------------------------------------------------------


class OtherReplacements(UniformMultilevel):
    """States the table's own shares, and draws uniformly."""

    name = "lie-other-replacements"

    def copies(self, original, size, key):
        return UniformMultilevel().copies(original, size, key)


def document(**more):
    return {
        "schema": 1, "title": "test", "seed": 1, "attacks": ["posterior"], "coalitions": ["subsets"], "expect": ["marginal-is-uniform"],
        "data": {"source": "occupation-like", "rows": 8000},
        "schemes": [{"name": name, "replacement": "prior", "levels": [0.3, 0.6]} for name in ("lie-other-replacements", "uniform-multilevel")],
    } | more  # fmt: skip


def test_an_audit_finds_other_replacements_and_leaves_honest_ones_alone():
    registry.discover()
    registry.register(OtherReplacements)
    try:
        expect = [
            {"marginal-is-uniform": {"scheme": name}}
            for name in ("lie-other-replacements", "uniform-multilevel")
        ]
        result = auditor.run(
            document(
                expect=[
                    *expect,
                    "noise-follows-law",
                    {"no-collusion-gain": {"scheme": "uniform-multilevel"}},
                ]
            )
        )
    finally:
        del registry._plugins["scheme"]["lie-other-replacements"]
    assert [r.status for r in result.expectations] == ["fails", "holds", "fails", "holds"], [
        r.why for r in result.expectations
    ]
    frame = result.frame().query("scheme == 'uniform-multilevel' and metric == 'epsilon'")
    share = 1 / (np.exp(frame.value.max()) - 1) * 0.6 / 0.4  # the rarest occupation's
    assert 0.01 < share < 0.02


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "replacement", "prior"),
    [("uniform-multilevel", "prior", "em"), ("uniform", [0.5, 0.5] + [0.0] * 25, "inversion")],
)
def test_values_that_nobody_has_or_none_is_replaced_by(name, replacement, prior):
    schemes = [{"name": name, "replacement": replacement, "levels": [0.3, 0.0, 1.0]}]
    knowledge = ["perfect", "uniform-prior", {"estimated": {"rows": 5}}, {"known-records": 5}]
    measures = [
        "rho-breach",
        "delta-growth",
        "belief-gap",
        "marginal-gap",
        "history-size",
        {"empirical-epsilon": {"trials": 2000}},
    ]
    with pytest.warns(AuditorWarning, match="of 27 values are never drawn"):
        result = auditor.run(document(data={"source": "occupation-like", "rows": 60}, schemes=schemes, knowledge=knowledge, measures=measures,
                                      attacks=[{"name": "posterior", "prior": prior}]))  # fmt: skip
    assert set(result.frame().status) == {"ok"}
    # elsewhere infinite
    assert [
        (one.coalition, one.value) for one in result.measurements if one.metric == "epsilon"
    ] == [((2,), 0.0)]
    assert "fails" not in {r.status for r in result.expectations}


class UniformCoins(MultiPertCopies):
    """Draws replacements by π, and throws the coins of uniform ones between two neighbours."""

    def skip(self, level, key=None):
        Copies.skip(self, level, key)
        pi, self.pi = self.pi, None
        self.release(level, Draws(stream_of(self.key, len(self.levels)), self.size, pi))
        self.pi = pi


class ForgetfulReplacements(UniformMultilevel):
    """States the multilevel law with the table's own shares, and draws every copy anew."""

    name = "lie-forgetful-replacements"

    def copies(self, original, size, key):
        return FreshCopies(original, size, key, self.replaced_by(size))


def test_the_coins_of_uniform_replacements_are_found_between_two_neighbours():
    """Where both neighbours are a common value the coin keeps it too often: 0.958 in place of 0.9375 of these (π = 1/2), seen in 100,000 records."""
    x = np.random.default_rng(4).choice(4, 100_000, p=PRIOR)
    plugin, honest = drawn(x, 4, (0.9, 0.3, 0.6), 4, implementation="multi-pert")
    law = plugin.channel((0.9, 0.3, 0.6), 4)
    lying = UniformCoins(x, 4, Key(4, "u"), law.pi)
    assert least(law_tests(x, law, [lying.ask(level) for level in law.levels])) <= 1e-4
    assert least(law_tests(x, law, honest)) > 1e-4


def test_fresh_copies_said_to_be_one_process_are_found_by_both():
    registry.discover()
    registry.register(ForgetfulReplacements)
    try:
        schemes = [
            {
                "name": "lie-forgetful-replacements",
                "replacement": "prior",
                "levels": [0.3, 0.6, 0.5],
            }
        ]
        result = auditor.run(
            document(
                schemes=schemes,
                expect=["no-collusion-gain", "noise-follows-law", "marginal-is-uniform"],
            )
        )
    finally:
        del registry._plugins["scheme"]["lie-forgetful-replacements"]
    assert [r.status for r in result.expectations] == ["fails", "fails", "holds"], [
        r.why for r in result.expectations
    ]


# -- what it costs
# -----------------------------------------------------------------------------------------------------------


def test_shares_in_a_copy_by_matrices_and_by_draws():
    """Mean and variance against the naive matrices, and over 400 draws: each within 4 standard errors."""
    x, p = column(4, 300), 0.4
    q = np.bincount(x, minlength=4) / x.size
    for pi in (PI, q):
        T = transition_matrix(p, 4, pi)
        C = sum(q[v] * (np.diag(T[v]) - np.outer(T[v], T[v])) for v in range(4)) / x.size
        b = q @ T - q
        gaps = [
            share_gap(
                pair_counts(x, drawn(x, 4, (p,), seed, replacement=pi.tolist())[1][0], 4), p, pi
            )
            for seed in range(400)
        ]
        assert gaps[0].mean == pytest.approx(b @ b + np.trace(C))
        assert gaps[0].std_error == pytest.approx(np.sqrt(4 * b @ C @ b + 2 * np.trace(C @ C)))
        values = np.array([gap.value for gap in gaps])
        assert abs(values.mean() - gaps[0].mean) < 4 * gaps[0].std_error / 20
        assert values.std() == pytest.approx(gaps[0].std_error, rel=4 * np.sqrt(3 / 400))
    assert share_gap(np.diag(np.bincount(x, minlength=4)), 1.0, PI) == (0.0, 0.0, 0.0)


def test_published_copies_may_be_said_to_have_other_replacements(tmp_path):
    """The same files, with what their makers did stated rightly and wrongly; and what cannot be so."""
    x = np.random.default_rng(1).choice(["p", "q", "r"], 12_000, p=[0.7, 0.2, 0.1])
    frame = pd.DataFrame({"a": pd.Categorical(x)})
    release = auditor.perturb(frame, "uniform-multilevel", [0.4, 0.7], seed=1, replacement="prior")
    frame.to_csv(tmp_path / "x.csv", index=False)
    for number, copy in enumerate(release.copies, start=1):
        copy.to_csv(tmp_path / f"{number}.csv", index=False)
    law, files = (
        {"scheme": "uniform-multilevel", "replacement": "prior"},
        [str(tmp_path / f"{k}.csv") for k in (1, 2)],
    )
    schemes = [{"name": "published", "id": name, "copies": files, "levels": [0.4, 0.7], "law": stated}
               for name, stated in (("right", law), ("wrong", {"scheme": "uniform-multilevel"}))]  # fmt: skip
    data = {"source": str(tmp_path / "x.csv"), "categorical": ["a"]}
    expect = [{"marginal-is-uniform": {"scheme": "right"}}, {"noise-follows-law": {"scheme": "right", "resolution": 0.15}},
              {"noise-follows-law": {"scheme": "wrong"}}]  # fmt: skip
    result = auditor.run(document(data=data, schemes=schemes, expect=expect))
    assert [r.status for r in result.expectations] == ["holds", "holds", "fails"], [
        r.why for r in result.expectations
    ]
    for replacement, said in (
        ([0.5, 0.2], "sum to 1"),
        ({"b": [1.0]}, "column 'b'"),
        ("others", "must be uniform, prior"),
        ([1.0], "must have 3 chances"),
    ):
        wrong = [schemes[0] | {"law": law | {"replacement": replacement}}]
        with pytest.raises(ScenarioError, match=said):
            auditor.run(document(data=data, schemes=wrong))
