"""What pooling buys, from records that look alike: unbiased, at its stated rate, and blind to no coalition."""

import itertools

import numpy as np
import pytest
from lying import LEVELS, scheme, shares, threes_only, threes_only_law

import auditor
from auditor.audit.counts.outcome_counts import CodeBlock
from auditor.audit.pooling.categorical import CELL_OF, KINDS, CoalitionMatching, gains_of
from auditor.audit.pooling.matching_records import PatternCounts, ValueCounts, patterns
from auditor.expectations.collusion_gains import matching_tests
from auditor.registry import _plugins, get, register
from auditor.results.evidence import MatchingGain
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.law import UniformLaw

PRIOR = np.array([0.4, 0.3, 0.2, 0.1])


def drawn(name, levels, n, seed, prior=PRIOR):
    x = np.random.default_rng(seed).choice(prior.size, n, p=prior).astype(np.uint8)
    copies = get("scheme", name)().copies(x, prior.size, Key(seed, "u"))
    return x, [copies.ask(level) for level in levels]


def by_patterns(x, copies, size, groups):
    counts = PatternCounts(len(copies), int(groups.max()) + 1)
    counts.take(x, copies, groups)
    return counts.gain(size)


def by_values(x, copies, size, groups):
    counts = ValueCounts(x.size, size, len(copies), int(groups.max()) + 1)
    counts.take(x, copies, groups)
    return counts.gain()


def in_one_block(x, copies):
    """What does a job on a release of one block."""

    def gains(job):
        into = job.begin()
        job.take(CodeBlock(0, 0, x, lambda k: copies[k - 1]), into)
        job.end(into)
        return gains_of(job, into)

    return gains


def exact_gain(given, prior):
    """Gain of all copies over the first, ``(E‖f_o‖² − E‖f_b‖²) / (1 − E‖f_b‖²)``, from the whole joint law."""
    joint = prior.reshape(-1, *(1,) * (given.ndim - 1)) * given
    right = lambda j: (j**2 / j.sum(axis=0)).sum()  # noqa: E731
    alone = right(joint.sum(axis=tuple(range(2, joint.ndim))))
    return (right(joint) - alone) / (1 - alone)


# -- the estimate
# ----------------------------------------------------------------------------------------------------------


def naive_gain(x, copies, alike, beside):
    """The formula of the module's first lines, pair by pair: the chance that two records of one outcome (``alike``), or of which only the
    best copy is compared (``beside``), have one original."""
    n, best = len(x), list(zip(*copies[:1], strict=True))
    shown = list(zip(*copies, strict=True))
    mean = lambda chance, pairs: np.mean([chance(i, j) for i, j in pairs])  # noqa: E731
    total = met = error = 0.0
    for b in set(best):
        here = [i for i in range(n) if best[i] == b]
        error += len(here) * (1 - mean(beside, itertools.permutations(here, 2)))
        for o in {shown[i] for i in here}:
            these, others = [i for i in here if shown[i] == o], [i for i in here if shown[i] != o]
            if len(these) < 2:
                continue
            met += len(these)
            within = list(itertools.permutations(these, 2))
            total += len(these) * (mean(alike, within) - mean(beside, within))
            if len(others) >= 2:
                across, there = (
                    mean(beside, itertools.product(these, others)),
                    mean(beside, itertools.permutations(others, 2)),
                )
                total += (
                    len(these)
                    * (len(others) / len(here)) ** 2
                    * (mean(beside, within) - 2 * across + there)
                )
    return total / met / (error / n)


def test_by_values_equals_the_formula_pair_by_pair():
    x, copies = drawn("uniform", (0.5, 0.4, 0.3), 150, 1)
    found = by_values(x, copies, 4, np.arange(x.size) % 8)
    same = lambda i, j: float(x[i] == x[j])  # noqa: E731
    assert found.gain == pytest.approx(naive_gain(x, copies, same, same), abs=1e-12)
    shown = [tuple(row) for row in np.stack(copies).T]
    assert found.blind == (sum(shown.count(o) == 1 for o in shown) + 3) / 150


def test_by_patterns_is_by_values_when_every_renaming_of_the_values_is_as_likely():
    # two records may be compared after renaming the values of one so that its copies (or its best
    # copy alone) are the other's
    x, copies = drawn("uniform", (0.5, 0.4), 40, 2, np.full(3, 1 / 3))
    names = list(itertools.permutations(range(3)))

    def renamed(compared):
        def chance(i, j):
            return np.mean(
                [name[x[i]] == x[j] for name in names if all(name[y[i]] == y[j] for y in compared)]
            )

        return chance

    pattern, _ = patterns(x, copies)
    expected = naive_gain(
        x, [np.zeros(40, np.uint8), pattern], renamed(copies), renamed(copies[:1])
    )
    assert by_patterns(x, copies, 3, np.arange(40) % 8).gain == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "levels"),
    [
        ("uniform", (0.5, 0.3)),
        ("uniform", (0.5, 0.4, 0.1)),
        ("uniform-multilevel", (0.5, 0.3, 0.1)),
    ],
)
def test_the_estimate_is_the_exact_gain_on_average(name, levels):
    # 60 releases: the mean within 4 of its standard errors; patterns see a uniform prior, values
    # the table's own
    given = UniformLaw(levels, 4, name != "uniform").given_original()
    found = {"values": [], "patterns": []}
    for seed in range(60):
        x, copies = drawn(name, levels, 3000, seed)
        groups = np.arange(x.size) % 32
        found["values"].append(by_values(x, copies, 4, groups).gain)
        found["patterns"].append(by_patterns(x, copies, 4, groups).gain)
    for how, prior in (("values", PRIOR), ("patterns", np.full(4, 0.25))):
        gains = np.array(found[how])
        assert (
            abs(gains.mean() - exact_gain(given, prior))
            < 4 * gains.std(ddof=1) / np.sqrt(60) + 1e-6
        )


def test_standard_errors_are_right_where_there_is_a_gain_and_not_too_small_where_there_is_none():
    # the spread over 100 releases has a relative error of 1/sqrt(200) = 7 %: 4 of them
    for name, levels in (("uniform", (0.5, 0.3, 0.2)), ("uniform-multilevel", (0.5, 0.3, 0.2))):
        for look in (by_values, by_patterns):
            made = [
                look(*drawn(name, levels, 4000, seed), 4, np.arange(4000) % 32)
                for seed in range(100)
            ]
            ratio = np.mean([m.std_error for m in made]) / np.std([m.gain for m in made])
            # without a gain the estimate is a square of something near 0, of which a jackknife
            # counts up to twice the variance
            assert 0.72 < ratio < (1.4 if name == "uniform" else 2.3), (name, look)


def test_three_copies_by_bits_are_the_same_patterns():
    x, copies = drawn("uniform", (0.5, 0.4, 0.3), 5000, 3)
    matching = CoalitionMatching(x.size, 4, (0.5, 0.4, 0.3), in_one_block(x, copies))
    assert matching._threes([(1, 2, 3)])[1, 2, 3] == by_patterns(x, copies, 4, np.arange(5000) % 32)
    assert KINDS.size == 5
    assert CELL_OF.sum(axis=1).max() == 1


# -- rates
# ------------------------------------------------------------------------------------------------------------------


def looks_at(x, copies, levels, coalition):
    return (
        CoalitionMatching(x.size, 4, levels, in_one_block(x, copies))
        .evidence({coalition: True})[coalition]
        .matching
    )


@pytest.mark.parametrize("k", [3, *(pytest.param(k, marks=pytest.mark.slow) for k in (2, 4))])
def test_false_verdicts_come_at_the_stated_rate_for_coalitions_of_any_size(k):
    # A scheme whose true gain is the margin itself: «no gain» and «a gain» are both wrong, each 5
    # times in 100. 400 releases: 4 standard errors.
    leak, runs, wrong = 0.15, 400, np.zeros(2)
    levels = (*LEVELS, 0.0625)[:k] if k > 2 else (0.5, 0.1)
    uniform = np.full(4, 0.25)
    margin = exact_gain(
        threes_only_law(4, leak) if k > 2 else UniformLaw(levels, 4, False).given_original(),
        uniform,
    )
    for seed in range(runs):
        rng = np.random.default_rng([k, seed])
        x = rng.integers(0, 4, 4000).astype(np.uint8)
        if k == 2:
            copies = [
                np.where(rng.random(4000) < p, x, rng.integers(0, 4, 4000)).astype(np.uint8)
                for p in levels
            ]
        else:
            copies = threes_only(x, 4, rng, leak)
            copies.append(
                np.where(rng.random(4000) < 0.5, copies[-1], rng.integers(0, 4, 4000)).astype(
                    np.uint8
                )
            )
        look = next(
            look
            for look in looks_at(x, copies, levels, tuple(range(1, k + 1)))
            if look.how == "patterns"
        )
        wrong += np.array(matching_tests([look], margin)) <= 0.05
    error = np.sqrt(0.05 * 0.95 / runs)
    assert (np.abs(wrong / runs - 0.05) < 4 * error).all(), wrong / runs


def test_blind_records_count_as_given_away():
    look = MatchingGain("patterns", (1, 2), 0.0, 0.0001, 31, 0.0, False)
    assert matching_tests([look], 0.01)[0] < 1e-6
    assert matching_tests([look._replace(blind=0.0101)], 0.01)[0] > 0.5
    assert matching_tests([look._replace(guard=True)], 0.01)[0] == 1.0  # nothing may decide
    assert matching_tests([look, look._replace(gain=0.03)], 0.01)[1] < 1e-6


# -- whole audits
# ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def lying():
    """Register lying schemes for one test."""
    for cls in (scheme("threes-only", threes_only), scheme("shares", shares)):
        register(cls)
    yield
    for name in ("threes-only", "shares"):
        del _plugins["scheme"][name]


def audit(name, levels=LEVELS, coalitions=("subsets",), rows=60_000, **changes):
    document = {
        "data": {"source": "salary-like", "rows": rows},
        "seed": 5,
        "schemes": [{"name": name, "levels": list(levels)}],
        "coalitions": list(coalitions),
        "attacks": ["posterior"],
        "expect": ["no-collusion-gain", "marginal-is-uniform"],
    }
    return auditor.run(document | changes)


def test_a_leak_to_three_and_to_no_two_is_caught(lying):
    gain, marginal, *_ = audit("threes-only").expectations
    assert (gain.status, marginal.status) == ("fails", "holds")
    assert "copies 1–3" in gain.why
    pairs = audit("threes-only", coalitions=["pairs"]).expectations[0]
    assert pairs.status == "holds", pairs.why
    assert audit("threes-only", coalitions=["all"]).expectations[0].status == "fails"


def test_the_lying_scheme_is_lawful_in_every_pair():
    true, law = UniformLaw(LEVELS, 4, True).given_original(), threes_only_law(4, 0.5)
    for axis in (1, 2, 3):
        np.testing.assert_allclose(law.sum(axis=axis), true.sum(axis=axis), atol=1e-15)
    assert exact_gain(law, np.full(4, 0.25)) > 0.05
    assert exact_gain(true, np.full(4, 0.25)) == pytest.approx(0.0, abs=1e-15)


def test_a_leak_that_no_pattern_shows_is_caught_by_values(lying):
    data = {"source": "uniform-values", "values": 5, "rows": 60_000}
    gain, marginal, *_ = audit("shares", data=data).expectations
    assert (gain.status, marginal.status) == ("fails", "holds")
    x = np.random.default_rng(0).integers(0, 5, 60_000).astype(np.uint8)
    copies = shares(x, 5, np.random.default_rng(1))
    by = {
        look.how: look
        for look in CoalitionMatching(x.size, 5, LEVELS, in_one_block(x, copies))
        .evidence({(2, 3): True})[2, 3]
        .matching
    }
    assert by["values"].gain > 0.1
    assert abs(by["patterns"].gain) < 0.01


def test_a_coalition_too_wide_is_judged_by_threes_and_says_so(lying):
    levels = (*LEVELS, *np.geomspace(0.12, 0.001, 13))
    caught = audit("threes-only", levels, ["all"]).expectations[0]
    assert caught.status == "fails", caught.why
    honest = audit("uniform-multilevel", levels, ["all"]).expectations[0]
    assert honest.status == "holds"
    assert "one coalition is too wide" in honest.why


def test_three_records_acquit_nobody():
    x = np.zeros(3, np.uint8)
    assert all(look.blind == 1.0 for look in looks_at(x, [x, x], (0.5, 0.3), (1, 2)))
    assert matching_tests(looks_at(x, [x, x], (0.5, 0.3), (1, 2)), 0.01)[0] > 0.5


def test_too_few_records_leave_it_undecided_and_say_how_many_would_do():
    few = audit("uniform-multilevel", (0.3, 0.1, 0.5), ["all"], rows=40)
    gain = few.expectations[0]
    assert gain.status == "undecided"
    assert "would settle it" in gain.why


@pytest.mark.slow
def test_family_of_coalitions_of_a_lawful_release_is_not_accused():
    # 57 coalitions of 6 copies, 12 releases: 5 in 100 families may be accused
    result = audit("uniform-multilevel", (0.6, 0.5, 0.4, 0.3, 0.2, 0.1), rows=3000, replicates=12,
                   data={"source": "uniform-values", "values": 4, "rows": 3000})  # fmt: skip
    assert result.expectations[0].status != "fails"
