"""The posterior attack against naive Bayes."""

import itertools

import numpy as np
import pytest

from auditor.adversary.attack import CategoricalView
from auditor.adversary.knowledge import Estimated, UniformPrior
from auditor.adversary.view import Prior, SampleCounts
from auditor.audit.categorical.posterior_pass import (
    Frame,
    breaches,
    expected,
    growth_bound,
    largest_retention_for_breach,
    largest_retention_for_growth,
    worst_growth,
)
from auditor.base import AuditorError
from auditor.schemes.replacement.law import MatrixLaw, UniformLaw, transition_matrix
from auditor_attacks.posterior import Bayes, Posterior, prior_by_likelihood, prior_of_chances
from auditor_attacks.serial_posterior import SerialBayes

PRIOR = np.array([0.5, 0.3, 0.15, 0.05])


def outcomes(size, copies):
    grid = np.array(list(itertools.product(range(size), repeat=copies)), dtype=np.uint8)
    return [np.ascontiguousarray(column) for column in grid.T]


@pytest.mark.parametrize("multilevel", [True, False])
@pytest.mark.parametrize("levels", [(0.3, 0.1, 0.5), (0.2, 0.0, 0.9)])
def test_posterior_equals_bayes_over_the_whole_joint_law(multilevel, levels):
    law = UniformLaw(levels, 4, multilevel)
    joint = law.joint(PRIOR).reshape(4, -1)
    np.testing.assert_allclose(Bayes(PRIOR, law).posterior(outcomes(4, len(levels))), (joint / joint.sum(axis=0)).T, atol=1e-14)  # fmt: skip


@pytest.mark.parametrize("multilevel", [True, False])
def test_a_copy_at_retention_one_is_the_original_and_one_at_zero_says_nothing(multilevel):
    y = np.arange(4, dtype=np.uint8)
    np.testing.assert_allclose(
        Bayes(PRIOR, UniformLaw((1.0, 0.0), 4, multilevel)).posterior([y, y]), np.eye(4)
    )
    nothing = Bayes(PRIOR, UniformLaw((0.0,), 4, multilevel)).posterior([y])
    np.testing.assert_allclose(nothing, np.tile(PRIOR, (4, 1)))


@pytest.mark.parametrize("kind", [Bayes, SerialBayes])
@pytest.mark.parametrize(
    ("levels", "multilevel", "pi", "counting"),
    [
        ((0.3, 0.6, 0.5), True, None, [1]),
        ((0.3, 0.6), False, None, [0, 1]),
        ((0.6, 0.6), True, None, [0, 1]),  # copies of one level that differ are impossible
        ((0.3, 0.6), True, (0.5, 0.5, 0.0, 0.0), [0, 1]),
    ],
)
def test_a_posterior_depends_on_the_copies_that_it_names(kind, levels, multilevel, pi, counting):
    found = kind(PRIOR, UniformLaw(levels, 4, multilevel, pi))
    assert list(found.counting(len(levels))) == counting
    shown = outcomes(4, len(levels))
    if pi is None and len(counting) < len(levels):
        P, best = found.posterior(shown), shown[counting[0]]
        alone = kind(PRIOR, UniformLaw((levels[counting[0]],), 4, True)).posterior([best])
        np.testing.assert_allclose(P, alone, atol=1e-14)


def test_thousands_of_fresh_copies_do_not_overflow():
    y = np.zeros(3, np.uint8)
    P = Bayes(PRIOR, UniformLaw((0.9,) * 2000, 4, False)).posterior([y] * 2000)
    np.testing.assert_allclose(P[:, 0], 1.0)


@pytest.mark.parametrize("prior", ["em", "inversion"])
def test_estimated_knowledge_recovers_the_prior_from_the_best_copy(prior):
    given = SampleCounts((np.ones(4), transition_matrix(0.6, 4).T @ PRIOR * 1000))
    law = UniformLaw((0.1, 0.6), 4, True)
    view = CategoricalView((1, 2), law, Estimated(1000), tuple("abcd"), given)
    np.testing.assert_allclose(Posterior(prior=prior).infer(view).prior, PRIOR, atol=1e-6)


@pytest.mark.parametrize("prior", ["em", "inversion"])
def test_estimated_knowledge_recovers_the_prior_through_any_matrix(prior):
    T = np.array([[0.8, 0.1, 0.1, 0.0], [0.3, 0.5, 0.1, 0.1], [0.0, 0.2, 0.7, 0.1], [0.1, 0.1, 0.2, 0.6]])  # fmt: skip
    given = SampleCounts((np.ones(4), T.T @ PRIOR * 1000))
    law = MatrixLaw((0.1, 0.6), 4, False, transitions=(np.full((4, 4), 0.25), T))
    view = CategoricalView((1, 2), law, Estimated(1000), tuple("abcd"), given)
    np.testing.assert_allclose(Posterior(prior=prior).infer(view).prior, PRIOR, atol=1e-4)


def test_a_prior_by_em_is_the_likeliest_where_inversion_is_negative():
    counts, T = np.array([500.0, 300.0, 190.0, 10.0]), transition_matrix(0.6, 4)
    likeliest = prior_by_likelihood(counts, 0.6, np.full(counts.size, 1.0 / counts.size))
    assert likeliest[3] == 0
    np.testing.assert_allclose(prior_of_chances(counts, T, True), likeliest, atol=1e-4)
    assert np.abs(prior_of_chances(counts, T, False) - likeliest).max() > 0.01


def test_uniform_prior_and_predicates():
    law = UniformLaw((0.5,), 4, True)
    view = CategoricalView((1,), law, UniformPrior(), tuple("abcd"), Prior(PRIOR))
    np.testing.assert_allclose(Posterior().infer(view).prior, 0.25)
    holds = Posterior(predicates={"q": ["b", "d"]}).predicates(view.labels)["q"]
    assert holds.tolist() == [False, True, False, True]
    with pytest.raises(AuditorError, match="not in the domain"):
        Posterior(predicates={"q": ["x"]}).predicates(view.labels)


def test_copies_that_contradict_the_stated_law_are_refused():
    law = UniformLaw((1.0, 1.0), 4, True)
    with pytest.raises(AuditorError, match="impossible"):
        Bayes(PRIOR, law).posterior([np.array([0], np.uint8), np.array([1], np.uint8)])


def test_growth_bound_is_reached_and_never_passed():
    R = UniformLaw((0.4,), 2, True).odds()
    priors = np.linspace(0.001, 0.999, 999)
    grown = [worst_growth(np.array([q, 1 - q]), R) for q in priors]
    assert max(grown) <= growth_bound(R) + 1e-15
    assert max(grown) == pytest.approx(growth_bound(R), abs=1e-5)
    assert worst_growth(np.array([1 / (1 + np.sqrt(R))] * 1), R) == pytest.approx(growth_bound(R))


def test_worst_growth_equals_the_largest_over_all_outcomes():
    for multilevel in (True, False):
        law = UniformLaw((0.5, 0.3), 4, multilevel)
        P = Bayes(PRIOR, law).posterior(outcomes(4, 2))
        assert worst_growth(PRIOR, law.odds()) == pytest.approx((P - PRIOR).max(), abs=1e-14)


def test_breaches_go_up_and_down():
    P, prior = np.array([[0.6, 0.4], [0.05, 0.95]]), np.array([0.05, 0.95])
    assert breaches(P, prior, 0.1, 0.5).tolist() == [[True, False], [False, False]]
    down = breaches(np.array([[0.95, 0.05]]), np.array([0.3, 0.7]), 0.1, 0.5)
    assert down.tolist() == [[False, True]]


def test_largest_admissible_retention_meets_its_bound():
    for delta in (0.1, 0.5, 0.9):
        p = largest_retention_for_growth(delta, 50)
        assert growth_bound(UniformLaw((p,), 50, True).odds()) == pytest.approx(delta)
    p, rho_1, rho_2 = largest_retention_for_breach(0.1, 0.5, 50), 0.1, 0.5
    R = UniformLaw((p,), 50, True).odds()
    assert rho_1 * R / (rho_1 * R + 1 - rho_1) == pytest.approx(rho_2)


def test_reconstruction_probability_by_hand():
    # s = 2, equal priors, p = 1/2: P(x|y) = 3/4 where y = x; E = 3/4·3/4 + 1/4·1/4 = 5/8; I = 1 −
    # H(1/4) bits
    law = UniformLaw((0.5,), 2, True)
    prior = np.full(2, 0.5)
    P, frame = Bayes(prior, law).posterior(outcomes(2, 1)), Frame(prior, scores=np.arange(2.0))
    closed = expected(law.given_original(), prior, P, frame, 100)
    assert closed["reconstruction_probability"].value == pytest.approx(5 / 8)
    assert closed["accuracy"].value == pytest.approx(3 / 4)
    assert closed["mutual_information"].value == pytest.approx(
        1 + 0.25 * np.log2(0.25) + 0.75 * np.log2(0.75)
    )
    assert closed["squared_error"].value == pytest.approx(0.75 * 0.25**2 + 0.25 * 0.75**2)
    # variance over the noise: P(x) is 3/4 or 1/4 with chances 3/4, 1/4
    assert closed["reconstruction_probability"].std_error == pytest.approx(
        np.sqrt(0.25 * 0.1875 / 100)
    )
