"""Planted leaks in categorical copies are found at 20,000 records, honest ones are left alone, and p-values are no smaller than they say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from lying import _OwnCopies, shares, threes_only
from lying import scheme as lying_scheme
from scipy.stats import binom

import auditor
from auditor import registry
from auditor.audit.counts.code_blocks import CodeBlock
from auditor.audit.drawn_law.categorical import MOST_WAITING, LawCounts, LawJob, _Tests, chain, fingerprints, law_tests, segment_length
from auditor.expectations.noise_follows_law import NoiseFollowsLaw
from auditor.results.evidence import Evidence, ReleaseEvidence
from auditor.runs.perturb import make_plugin
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import UniformScheme
from auditor.schemes.replacement.law import UniformLaw

ROWS, LEVELS = 20_000, (0.5, 0.25, 0.125)
LEVEL = 1e-4


def column(size, rows=ROWS):
    return np.minimum(np.random.default_rng(14).geometric(0.3, rows) - 1, size - 1)


def found(x, size, law, copies, block=65_536):
    job, counted = LawJob(size, tuple(chain(law, range(1, len(copies) + 1))), len(x)), LawCounts()
    for index, start in enumerate(range(0, len(x), block)):
        rows, part = slice(start, start + block), LawCounts()
        job.take(CodeBlock(index, start, x[rows], lambda number, rows=rows: copies[number - 1][rows]), part)
        counted.add(part)
    return law_tests(job, counted)


def made(x, size, scheme, levels, seed, **parameters):
    plugin = make_plugin("scheme", scheme, parameters)
    copies = plugin.blocked(x, size, Key(seed, scheme))
    return [copies.ask(level) for level in levels], plugin.channel(levels, size)


def least(tests):
    """The least p-value over all statistics, by Bonferroni."""
    return min(test.p for test in tests) * len(tests)


# -- leaks: each returns copies that claim the multilevel law --------------------------------------------------------------


def perturbed(x, size, p, rng):
    return np.where(rng.random(x.size) < p, x, rng.integers(0, size, x.size))


def history_ignored(x, size, rng):
    """Each copy is a fresh draw: right alone, and more to whoever holds several."""
    return [perturbed(x, size, p, rng) for p in LEVELS]


def kept_too_often(x, size, rng):
    first = perturbed(x, size, 0.52, rng)
    return [first, second := perturbed(first, size, 0.5, rng), perturbed(second, size, 0.5, rng)]


def one_value_kept_too_often(x, size, rng):
    """The rarest value of all is kept three times out of four."""
    first = np.where(x == size - 1, perturbed(x, size, 0.75, rng), perturbed(x, size, 0.5, rng))
    return [first, second := perturbed(first, size, 0.5, rng), perturbed(second, size, 0.5, rng)]


def neighbours_replace(x, size, rng):
    """What replaces a value is near it."""
    near = (x + rng.integers(-1, 2, x.size)) % size
    first = np.where(rng.random(x.size) < 0.5 + 0.5 / size - 0.5 / 3, x, near)
    return [first, second := perturbed(first, size, 0.5, rng), perturbed(second, size, 0.5, rng)]


def from_the_original_again(x, size, rng):
    """The third copy draws from the original where the second one was replaced."""
    first = perturbed(x, size, 0.5, rng)
    second = perturbed(first, size, 0.5, rng)
    third = np.where(rng.random(x.size) < 0.5, second, np.where(rng.random(x.size) < 0.1, x, rng.integers(0, size, x.size)))
    return [first, second, third]


def a_period(x, size, rng):
    """The coins and what they draw come again after 4,001 records, as differences from the value before."""
    n, copies, before = 4001, [], x
    for _ in LEVELS:
        kept, other = rng.random(n) < 0.5, rng.integers(0, size, n)
        change = np.where(kept, 0, other)
        before = (before + np.resize(change, x.size)) % size
        copies.append(before)
    return copies


def hangs_on_the_row_before(x, size, rng):
    """Whether a value is kept goes with the row before, one time in eight."""
    keep = rng.random(x.size) < 0.5
    keep = np.where(rng.random(x.size) < 0.125, np.roll(keep, 1), keep)
    first = np.where(keep, x, rng.integers(0, size, x.size))
    return [first, second := perturbed(first, size, 0.5, rng), perturbed(second, size, 0.5, rng)]


def one_in_a_hundred_as_it_is(x, size, rng):
    first = perturbed(x, size, 0.5, rng)
    second = perturbed(first, size, 0.5, rng)
    third = perturbed(second, size, 0.5, rng)
    return [first, second, np.where(rng.random(x.size) < 0.02, x, third)]


def more_kept_further_on(x, size, rng):
    """Retention rises along the rows, and is right on average."""
    first = perturbed(x, size, np.linspace(0.4, 0.6, x.size), rng)
    return [first, second := perturbed(first, size, 0.5, rng), perturbed(second, size, 0.5, rng)]


LEAKS = [
    more_kept_further_on, history_ignored, kept_too_often, one_value_kept_too_often, neighbours_replace, from_the_original_again, a_period,
    hangs_on_the_row_before, one_in_a_hundred_as_it_is, threes_only, shares,
]  # fmt: skip


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.__name__)
def test_a_planted_leak_is_found(leak):
    x = column(6)
    copies = leak(x, 6, np.random.default_rng(1))
    assert least(found(x, 6, UniformLaw(LEVELS, 6, True), copies)) <= LEVEL


# -- rows that share their coins: each tells which row's coins every row takes ----------------------------------------------


def sharing(rows_of, coins=True, values=True, copies=(0, 1, 2)):
    """Return a leak in which rows take the coins, or the replacements, of other rows, in some copies; each cell alone follows the law."""

    def leak(x, size, rng):
        found, before = [], x
        for copy in range(len(LEVELS)):
            taken = rows_of(x) if copy in copies else np.arange(x.size)
            keep, other = rng.random(x.size) < 0.5, rng.integers(0, size, x.size)
            before = np.where(keep[taken] if coins else keep, before, other[taken] if values else other)
            found.append(before)
        return found

    return leak


def two_by_two(x):
    """Rows 1 and 2, 3 and 4 and so on: no two that the pairs 0 and 1, 2 and 3 hold."""
    return np.maximum((np.arange(x.size) - 1) // 2 * 2 + 1, 0)


def five_by_five(x):
    return np.arange(x.size) // 5 * 5


def third_before(x):
    """Every other row takes the coins of the third one before it."""
    rows = np.arange(x.size)
    return np.where((rows >= 3) & (rows % 6 >= 3), rows - 3, rows)


def again(x):
    """A generator that starts again after 4,001 rows."""
    return np.arange(x.size) % 4001


def differences_by_row_number(x, size, rng):
    """What replaces a value is the row's number further on: whoever knows that has the value, kept or not."""
    first = np.where(rng.random(x.size) < 0.5, x, (x + np.arange(x.size)) % size)
    return [first, second := perturbed(first, size, 0.5, rng), perturbed(second, size, 0.5, rng)]


def turned_round(x):
    """The second half has the first one's coins, backwards."""
    return np.minimum(np.arange(x.size), np.arange(x.size)[::-1])


def with_the_same_value(x):
    """Two records in turn of those with the same value."""
    taken = np.empty(x.size, dtype=np.intp)
    order = np.argsort(x, kind="stable")
    taken[order] = order[np.arange(x.size) // 2 * 2]
    return taken


def seven_rows_on(x, size, rng):
    """The second copy has the coins that the first one has seven rows on."""
    keep, other = rng.random(x.size) < 0.5, rng.integers(0, size, x.size)
    first = np.where(keep, x, other)
    second = np.where(np.roll(keep, 7), first, np.roll(other, 7))
    return [first, second, perturbed(second, size, 0.5, rng)]


def by_the_next_row(x, size, rng):
    """The first copy's replacements are the next row's values, which are as many of each."""
    first = np.where(rng.random(x.size) < 0.5, x, np.roll(x, -1))
    return [first, second := perturbed(first, size, 0.5, rng), perturbed(second, size, 0.5, rng)]


def differences_by_the_next_row(x, size, rng):
    """What replaces a value is as far from it as the next row's is from 0: a pad, to whoever knows a row its neighbour's value."""
    first = np.where(rng.random(x.size) < 0.5, x, (x + np.roll(x, -1)) % size)
    return [first, second := perturbed(first, size, 0.5, rng), perturbed(second, size, 0.5, rng)]


def honest(x, size, rng):
    first = perturbed(x, size, 0.5, rng)
    second = perturbed(first, size, 0.5, rng)
    return [first, second, perturbed(second, size, 0.5, rng)]


def kept_by_the_row_before(x, size, rng):
    """The third copy keeps the second's values where the row before has a value in the upper half."""
    first = perturbed(x, size, 0.5, rng)
    second = perturbed(first, size, 0.5, rng)
    return [first, second, np.where(np.roll(x, 1) < size // 2, second, rng.integers(0, size, x.size))]


@pytest.mark.parametrize("size", [4, 6, 16])
@pytest.mark.parametrize("leak", [by_the_next_row, differences_by_the_next_row, kept_by_the_row_before])
def test_coins_set_by_another_row_s_value_are_found(leak, size):
    """Where all values are as many, each count by itself follows the law; half the rows are enough."""
    for rows, share in ((3000, 1.0), (20_000, 0.25)):
        x = np.random.default_rng(20).permutation(np.arange(rows) % size)
        leaking, fair = (make(x, size, np.random.default_rng(21)) for make in (leak, honest))
        copies = [np.where(np.arange(rows) % 1000 < 1000 * share, bad, good) for bad, good in zip(leaking, fair, strict=True)]
        tests = {test.statistic: test for test in found(x, size, UniformLaw(LEVELS, size, True), copies)}
        assert tests["values of other rows"].p * len(tests) <= LEVEL
        assert "rows 1 " in tests["values of other rows"].where


SHARED = {
    "two rows": sharing(two_by_two), "two rows their coins": sharing(two_by_two, values=False),
    "two rows their replacements": sharing(two_by_two, coins=False), "two rows of one copy": sharing(two_by_two, copies=(2,)),
    "five rows their replacements": sharing(five_by_five, coins=False), "the third row before": sharing(third_before),
    "a period": sharing(again), "a period of replacements": sharing(again, coins=False), "a period of one copy": sharing(again, copies=(1,)),
    "turned round": sharing(turned_round), "records with the same value": sharing(with_the_same_value),
    "another copy, seven rows on": seven_rows_on, "differences by row number": differences_by_row_number,
}  # fmt: skip


@pytest.mark.parametrize("size", [2, 6, 40])
@pytest.mark.parametrize("leak", SHARED)
def test_rows_that_share_their_coins_are_found(leak, size):
    x = column(size)
    assert least(found(x, size, UniformLaw(LEVELS, size, True), SHARED[leak](x, size, np.random.default_rng(1)))) <= LEVEL


def test_a_generator_that_starts_again_with_every_block_is_found():
    """Blocks of 4,096 rows, each with the first one's coins; whatever the cut of the passes."""
    x = column(6)
    copies = sharing(lambda x: np.arange(x.size) % 4096)(x, 6, np.random.default_rng(1))
    for block in (4096, 65_536):
        assert least(found(x, 6, UniformLaw(LEVELS, 6, True), copies, block)) <= LEVEL


@pytest.mark.parametrize(("rows", "share"), [(2000, 1.0), (20_000, 0.25)])
def test_what_rows_it_takes(rows, share):
    """Of 2,000 rows all in pairs; of 20,000 a quarter. What is not found is said in docs/evidence/faults.md."""
    x = column(6, rows)

    def some(x):
        return np.where(np.arange(x.size) % 1000 < 1000 * share, two_by_two(x), np.arange(x.size))

    for seed in range(5):
        copies = sharing(some)(x, 6, np.random.default_rng(seed))
        assert least(found(x, 6, UniformLaw(LEVELS, 6, True), copies)) <= LEVEL


def raised(x, p, share, seed):
    """Nested copies of which this share of the values to be redrawn is kept."""
    copies, _ = made(x, 6, "uniform-multilevel", [level + share * (1 - level) for level in p], seed)
    return copies, UniformLaw(p, 6, True)


def test_a_tenth_kept_of_what_should_be_redrawn_is_never_acquitted():
    """Given its source the first copy moves by 5.8 deviations in 5,000 rows and by 8.2 in 10,000; it takes 4.4 (missed once in 10,000 times).

    At 3,000 rows, 4.5: whether it is found is a coin's toss, and where it is not it could hide. Both held before, in every other release.
    """
    verdicts = []
    for rows in (3000, 5000, 10_000):
        for seed in range(5):
            copies, law = raised(column(6, rows), (0.5, 0.8), 0.1, seed)
            release = ReleaseEvidence({}, "s", "s", 2, 1, rows, law=found(column(6, rows), 6, law, copies))
            verdicts.append((rows, NoiseFollowsLaw().judge(Evidence([], [release])).status))
    assert {status for rows, status in verdicts if rows > 5000} == {"fails"}
    assert {status for _, status in verdicts} <= {"fails", "undecided"}


def test_what_could_hide_of_the_retention_by_hand():
    """p = 0.8 of six: k = 5/6, moved by 1/6 for each value to be redrawn that is kept; √(k(1 − k)) = √5/6, so that it tells 1/√5."""
    x = column(6, 2000)
    copies, law = made(x, 6, "uniform-multilevel", (0.8,), 1)
    test = next(test for test in found(x, 6, law, copies) if test.statistic == "retention")
    assert test.telling == pytest.approx(1 / np.sqrt(5))
    assert (test.tests, test.expected) == (1, pytest.approx(5 / 6))
    assert test.observed == (copies[0] == x).mean()
    assert test.p == pytest.approx(min(1.0, 2 * min(binom.cdf((copies[0] == x).sum(), 2000, 5 / 6), binom.sf((copies[0] == x).sum() - 1, 2000, 5 / 6))))
    verdict = NoiseFollowsLaw().judge(Evidence([], [ReleaseEvidence({}, "s", "s", 1, 1, 2000, law=found(x, 6, law, copies))]))
    assert verdict.status == "undecided"
    assert "a share kept of what is to be redrawn of 0.2" in verdict.why


def test_copies_that_are_no_fresh_draws_are_found():
    """A claim of independent copies, made by one process: they agree too often."""
    x = column(6)
    copies, _ = made(x, 6, "uniform-multilevel", LEVELS, 2)
    assert least(found(x, 6, UniformLaw(LEVELS, 6, False), copies)) <= LEVEL


def test_two_copies_at_one_level_must_be_one():
    x, law = column(6), UniformLaw((0.5, 0.5), 6, True)
    copies, _ = made(x, 6, "uniform-multilevel", (0.5, 0.5), 2)
    assert least(found(x, 6, law, copies)) > LEVEL
    copies[1] = copies[1].copy()
    copies[1][17] = (copies[1][17] + 1) % 6
    assert least(found(x, 6, law, copies)) == 0.0


MAKERS = [("uniform", {}), *(("uniform-multilevel", {"implementation": name}) for name in ("process", "bridge", "multi-pert"))]


@pytest.mark.parametrize("size", [1, 2, 6, 16, 40, 300])
@pytest.mark.parametrize(("scheme", "parameters"), MAKERS)
def test_honest_copies_are_left_alone(scheme, parameters, size):
    """False alarms: 24 cases of 5 seeds at one in ten thousand each, so one run of this in 83."""
    x = column(size, 5000)
    for seed in range(5):
        copies, law = made(x, size, scheme, (0.5, 0.2, 0.5, 0.9, 0.05, 0.0, 1.0), seed, **parameters)
        assert least(found(x, size, law, copies)) > LEVEL


def test_p_values_are_no_smaller_than_they_say():
    x, p = column(5, 2000), {}
    for seed in range(100):
        for scheme in ("uniform", "uniform-multilevel"):
            copies, law = made(x, 5, scheme, (0.5, 0.2), 1000 + seed)
            for test in found(x, 5, law, copies):
                p.setdefault(test.statistic, []).append(test.p)
    for statistic, values in p.items():
        for q in (0.05, 0.2, 0.5):
            share = np.mean(np.array(values) <= q)
            assert share <= q + 4 * np.sqrt(q * (1 - q) / len(values)), (statistic, q, share)


def test_blocks_add_up():
    x = column(6, 10_000)
    copies, law = made(x, 6, "uniform-multilevel", LEVELS, 3)
    whole, parts = found(x, 6, law, copies), found(x, 6, law, copies, block=2500)
    assert [test for test in whole if test.statistic in ("values kept", "replacements")] == [
        test for test in parts if test.statistic in ("values kept", "replacements")
    ]


def test_a_chain_by_hand():
    drawn = chain(UniformLaw((0.25, 0.5, 0.125), 6, True), [1, 2, 3])
    assert [(each.copy, each.source, each.retention, each.beside) for each in drawn] == [
        (2, 0, 0.5, (0, 0)), (1, 2, 0.5, (0, 2)), (3, 1, 0.5, (0, 2)),
    ]  # fmt: skip
    fresh = chain(UniformLaw((0.25, 0.5, 0.125), 6, False), [1, 2, 3])
    assert [(each.copy, each.source, each.retention, each.beside) for each in fresh] == [
        (1, 0, 0.25, (0, 0)), (2, 0, 0.5, (1, 0)), (3, 0, 0.125, (2, 1)),
    ]  # fmt: skip


def test_binomial_counts_by_hand():
    tests = _Tests()
    tests.add(np.array([9, 0]), np.array([10, 0]), 0.5, "a share")
    tests.add(np.array([5, 4]), np.array([9, 9]), 0.5, "another share")
    found = tests.as_one_test("values kept", 10)
    assert found.tests == 3
    assert found.p == pytest.approx(3 * 2 * binom.sf(8, 10, 0.5))
    assert (found.observed, found.expected, found.where) == (0.9, 0.5, "a share is")


def test_counts_that_fill_a_megabyte_are_tested_as_all_others():
    tests, many = _Tests(), np.full(MOST_WAITING, 5)
    for where, least in (("a", 2), ("b", 0), ("c", 1)):
        tests.add(np.append(many, least), 10, 0.5, where)
    found = tests.as_one_test("values kept", 10)
    assert (found.tests, found.observed, found.where) == (3 * (MOST_WAITING + 1), 0.0, "b is")
    assert found == tests.as_one_test("values kept", 10)


def test_stretches_that_are_alike_have_one_fingerprint():
    coins = np.random.default_rng(1).integers(0, 3, 1000).astype(np.uint64)
    coins[500:600] = coins[100:200]
    prints = fingerprints(coins, 64)
    assert prints.size == 1000 - 63
    assert np.flatnonzero(prints[500:537] == prints[100:137]).size == 37
    assert np.unique(prints).size == prints.size - 37
    assert segment_length(0.0, 2, 1000) == 64
    assert segment_length(1.0, 6, 1000) is None
    assert segment_length(0.5, 1, 1000) is None


# -- in an audit -----------------------------------------------------------------------------------------------------------


class IgnoresHistory(UniformScheme):
    """Claims the multilevel law, and draws every copy anew."""

    name = "lie-ignores-history"
    multilevel = True

    def copies(self, original, size, key):
        return _OwnCopies(original, size, key, lambda x, s, rng: [y.astype(x.dtype) for y in history_ignored(x, s, rng)])


def test_an_audit_that_asks_for_nothing_tells_it():
    registry.discover()
    registry.register(IgnoresHistory)
    try:
        scenario = {
            "schema": 1, "title": "test", "seed": 1, "attacks": ["posterior"], "coalitions": ["singles"],
            "data": {"source": "occupation-like", "rows": ROWS},
            "schemes": [{"name": name, "levels": list(LEVELS)} for name in ("lie-ignores-history", "uniform-multilevel", "uniform")],
        }  # fmt: skip
        result = auditor.run(scenario)
    finally:
        del registry._plugins["scheme"]["lie-ignores-history"]
    assert [(r.expectation, r.where, r.status) for r in result.expectations] == [
        ("noise-follows-law", {"scheme": "lie-ignores-history"}, "fails")
    ]
    assert result.exit_status == 1


def test_rows_that_share_their_coins_are_told_of_a_plugin_and_of_files_with_a_stated_law(tmp_path):
    """Nobody asks for it."""
    leak, x = SHARED["two rows"], column(6, 5000)
    written = [("x", x), *enumerate(leak(x, 6, np.random.default_rng(3)), start=1)]
    for name, codes in written:
        pd.DataFrame({"a": codes}).to_csv(tmp_path / f"{name}.csv", index=False)
    registry.discover()
    registry.register(lying_scheme("two-rows-share", lambda x, s, rng: [y.astype(x.dtype) for y in leak(x, s, rng)]))
    files = {"name": "published", "copies": [str(tmp_path / f"{copy}.csv") for copy in (1, 2, 3)], "levels": list(LEVELS), "law": {"scheme": "uniform-multilevel"}}
    try:
        scenario = {
            "schema": 1, "title": "test", "seed": 1, "attacks": ["posterior"], "coalitions": ["singles"],
            "data": {"source": str(tmp_path / "x.csv"), "categorical": ["a"]},
            "schemes": [{"name": "two-rows-share", "levels": list(LEVELS)}, files, {"name": "uniform-multilevel", "levels": list(LEVELS)}],
        }  # fmt: skip
        result = auditor.run(scenario)
    finally:
        del registry._plugins["scheme"]["two-rows-share"]
    assert [(r.expectation, r.where, r.status) for r in result.expectations] == [
        ("noise-follows-law", {"scheme": name}, "fails") for name in ("two-rows-share", "published")
    ]
    assert all("shared coins" in r.why and "rows 1 further on" in r.why for r in result.expectations)
