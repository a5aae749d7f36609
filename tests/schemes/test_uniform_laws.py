"""One exact law of all implementations of uniform replacement."""

import itertools

import numpy as np
import pytest
from bridge_oracle import Bridge
from enumeration import enumerate_requests

from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import ProcessCopies, coins
from auditor.schemes.replacement.law import UniformLaw, history_size, transition_matrix
from auditor.schemes.uniform import History, MultiPertCopies

LEVELS = (0.7, 0.5, 0.3, 0.05)
ORDERS = list(itertools.permutations(LEVELS))


class NextOnly(Bridge):
    """Broken: draws from the next less perturbed copy alone."""

    def release(self, level, draws):
        high = min((other for other in self.released if other >= level), default=1.0)
        left = self.released.get(high, self.original)
        self.released[level] = draws.pick(left, None, *coins(high, level, None, self.size))
        return self.released[level]


class PrintedHistory(History):
    """Broken: the printed update never makes an implicit right neighbour explicit."""

    def explicit(self, values, right, low):
        return np.intersect1d(super().explicit(values, right, low), self.rows[self.p == low])


class PrintedMultiPert(MultiPertCopies):
    history_class = PrintedHistory


def exact(levels, size):
    return UniformLaw(tuple(levels), size, True).joint(np.full(size, 1 / size))


def test_examples_1_and_2_of_xiao2009():
    assert transition_matrix(0.2, 10)[0, 0] == pytest.approx(0.28, abs=1e-15)
    equal, _ = coins(1.0, 0.8, 0.4, 10)
    assert equal.left == pytest.approx(0.8)
    assert equal.right == pytest.approx(0.178, abs=5e-4)
    # ERRATA: u + v = 97.8 %; Bob's value is HIV with 98.04 %, as the fresh draw may be HIV too
    assert equal.left + equal.right == pytest.approx(0.978, abs=5e-4)
    assert equal.left + equal.right + (1 - equal.left - equal.right) / 10 == pytest.approx(
        0.9804, abs=5e-5
    )


def test_figure_1_chance_that_both_values_are_random():
    # ERRATA: 48 % is the prior chance; given that both recipients see the value it is 0.593 %
    s, a, b = 1000, 0.4, 0.2
    both_random = (1 - a) * (1 - b) / s**2
    seen = UniformLaw((a, b), s, False).of([1, 2])
    given = [transition_matrix(level, s)[:, 0] for level in seen.levels]
    assert both_random / (given[0] * given[1]).mean() == pytest.approx(0.00593, abs=5e-6)


def test_equation_7_by_the_corrected_form():
    s, a, b = 4, 0.4, 0.8
    law = UniformLaw((b, a), s, True).given_original()  # x, y_b, y_a
    third = (1 - b) / (1 - a) * (a / b + (1 - a / b) / s)
    assert law[0, 1, 1] / law[0, :, 1].sum() == pytest.approx(third, abs=1e-15)


def test_transition_between_levels():
    law = UniformLaw((0.8, 0.4), 5, True)
    steps = law.transition_matrix(None, 1) @ law.transition_matrix(1, 2)
    np.testing.assert_allclose(steps, transition_matrix(0.4, 5))
    np.testing.assert_allclose(law.transition_matrix(1, 2), transition_matrix(0.5, 5))


REPEATED = [*itertools.permutations((1.0, 0.4, 0.0)), (0.4, 0.6, 0.4)]


@pytest.mark.parametrize("make", [Bridge, MultiPertCopies])
def test_requests_have_the_exact_joint_law_and_return_what_was_released(make):
    for order, size in [*((o, s) for o in ORDERS for s in (2, 3)), *((o, 2) for o in REPEATED)]:
        law, copies, algorithm, _, weight = enumerate_requests(make, order, size)
        np.testing.assert_allclose(law, exact(order, size), rtol=0, atol=1e-12)
        for level, copy in zip(order, copies, strict=True):
            assert np.array_equal(algorithm.release(level, None)[weight > 0], copy[weight > 0])


def test_printed_history_rule_returns_values_never_released():
    """ERRATA: .5 A, .3 A, then .4 B; the look-up at .3 returns B."""
    _, copies, algorithm, _, weight = enumerate_requests(PrintedMultiPert, (0.5, 0.3, 0.4), 2)
    wrong = algorithm.history.value(0.3) != copies[1]
    assert ((copies[0] == copies[1]) & (copies[2] != copies[0]))[wrong & (weight > 0)].all()
    assert weight[wrong].sum() > 0.01


def test_history_bound_of_lemma_2():
    levels = np.random.default_rng(0).uniform(0.001, 0.5, 10_000)
    assert 6.0 < history_size(levels, np.full(50, 0.02)) < 1 + np.log(500)


def test_process_is_small_and_stays_so():
    """Theorem 3: at most 160 bytes a tuple, for any number of copies."""
    copies = ProcessCopies(np.zeros(20_000, np.uint8), 50, Key(1, "u"))
    held = []
    for level in [0.001, *np.linspace(0.001, 0.9, 200), 1e-9]:
        copies.ask(float(level))
        arrays = [*copies._snapshots, *(part for each in copies._segments for part in each)]
        held.append(sum(array.nbytes for array in arrays))
    assert max(held) == held[0] <= 160 * 20_000


@pytest.mark.parametrize("pi", [None, (0.7, 0.25, 0.05), (0.6, 0.0, 0.4)])
def test_posterior_of_every_coalition_equals_that_of_its_best_copy(pi):
    prior = np.array([0.6, 0.3, 0.1])
    joint = UniformLaw(LEVELS, 3, True, pi).joint(prior)
    for size in range(1, 5):
        for coalition in itertools.combinations(range(4), size):
            others = tuple(k + 1 for k in range(4) if k not in coalition)
            held = joint.sum(axis=others, keepdims=True)
            best = joint.sum(
                axis=tuple(k + 1 for k in range(4) if k != coalition[0]), keepdims=True
            )
            with np.errstate(invalid="ignore"):
                gap = np.nanmax(np.abs(held / held.sum(axis=0) - best / best.sum(axis=0)))
            assert gap < 1e-14


def test_next_less_perturbed_copy_alone_has_another_law():
    # .05 is out before .5 is drawn: without looking at it the two are two looks at the copy at .7
    law, *_ = enumerate_requests(NextOnly, (0.7, 0.05, 0.5, 0.3), 3)
    assert np.abs(law - exact((0.7, 0.05, 0.5, 0.3), 3)).max() > 1e-3
    descending, *_ = enumerate_requests(NextOnly, LEVELS, 3)
    # ascending noise needs no right neighbour
    np.testing.assert_allclose(descending, exact(LEVELS, 3), atol=1e-12)


@pytest.mark.parametrize("multilevel", [True, False])
def test_sufficiency_by_pairs_is_sufficiency_of_all_together(multilevel):
    # against the whole joint law: P(x | y_1 … y_k) must be P(x | y_b), for coalitions of up to four copies
    choices = (0.0, 0.2, 0.2, 0.6, 1.0)
    for levels in {pick for k in (2, 3, 4) for pick in itertools.permutations(choices, k)}:
        law = UniformLaw(levels, 3, multilevel)
        joint = law.joint(np.array([0.5, 0.3, 0.2]))
        others = tuple(k for k in range(1, len(levels) + 1) if k != law.best)
        alone, seen = joint.sum(axis=others, keepdims=True), joint.sum(axis=0, keepdims=True)
        with np.errstate(invalid="ignore"):
            gap = np.nanmax(np.abs(joint / seen - alone / alone.sum(axis=0)))
        assert law.best_is_sufficient() == (gap < 1e-12), levels
