"""Tests of replacement laws and counts of pairs."""

import numpy as np
import pandas as pd
import pytest
from categorical_law import law_tests, least
from lying import LEVELS, scheme as lying_scheme
from planted_coins import FAULTS, OF_OTHER_ROWS, history_ignored, in_a_quarter

import auditor
from auditor import registry
from auditor.expectations.noise_follows_law import NoiseFollowsLaw
from auditor.results.records import Evidence, ReleaseEvidence
from auditor.scenario.arguments import make_plugin
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.law import UniformLaw

ROWS, LEVEL = 20_000, 1e-4


def column(size, rows=ROWS):
    return np.minimum(np.random.default_rng(14).geometric(0.3, rows) - 1, size - 1)


def even_column(size, rows):
    return np.random.default_rng(20).permutation(np.arange(rows) % size)


def found(fault, x, size, seed=1):
    return law_tests(x, UniformLaw(LEVELS, size, True), fault(x, size, np.random.default_rng(seed)))


CASES = [(fault, 6) for fault in FAULTS] + [("a period", 40), ("two rows", 40), ("two rows", 2)]


@pytest.mark.parametrize(("fault", "size"), CASES)
def test_a_planted_fault_is_found(fault, size):
    assert least(found(FAULTS[fault], column(size), size)) <= LEVEL


@pytest.mark.parametrize("size", [4])
@pytest.mark.parametrize("fault", OF_OTHER_ROWS)
def test_coins_set_by_another_row_s_value_are_found(fault, size):
    """In 3,000 rows, and in a quarter of 20,000."""
    for make, rows in ((FAULTS[fault], 3000), (in_a_quarter(FAULTS[fault]), ROWS)):
        tests = found(make, even_column(size, rows), size)
        assert least(tests) <= LEVEL
        assert "1 row" in min(tests, key=lambda test: test.p).where


def made(x, size, scheme, levels, seed, **parameters):
    plugin = make_plugin("scheme", scheme, parameters)
    copies = plugin.copies(x, size, Key(seed, scheme))
    return [copies.ask(level) for level in levels], plugin.channel(levels, size)


def test_a_tenth_kept_of_what_should_be_redrawn_is_never_acquitted():
    verdicts = []
    for rows in (3000, 5000, 10_000):
        for seed in range(5):
            x, stated = column(6, rows), (0.5, 0.8)
            copies, _ = made(x, 6, "uniform-multilevel", [p + 0.1 * (1 - p) for p in stated], seed)
            tests = law_tests(x, UniformLaw(stated, 6, True), copies)
            release = ReleaseEvidence({}, "s", "s", 2, 1, rows, law=tests)
            verdicts.append((rows, NoiseFollowsLaw().judge(Evidence([], [release])).status))
    assert {status for rows, status in verdicts if rows > 5000} == {"fails"}
    assert {status for _, status in verdicts} <= {"fails", "undecided"}


def test_copies_that_are_no_fresh_draws_are_found():
    x = column(6)
    copies, _ = made(x, 6, "uniform-multilevel", LEVELS, 2)
    assert least(law_tests(x, UniformLaw(LEVELS, 6, False), copies)) <= LEVEL


def test_fresh_draws_between_the_rows_with_scores_are_found():
    x = column(6, 100_000)
    copies, law = made(x, 6, "uniform-multilevel", LEVELS, 2)
    fresh, _ = made(x, 6, "uniform", LEVELS, 2)
    copies[-1][20_000:50_000] = fresh[-1][20_000:50_000]
    assert least(law_tests(x, law, copies)) <= LEVEL


MAKERS = [
    ("uniform", {}),
    *(("uniform-multilevel", {"implementation": name}) for name in ("process", "multi-pert")),
]


@pytest.mark.parametrize("size", [1, 6, 300])
@pytest.mark.parametrize(("scheme", "parameters"), MAKERS)
def test_honest_copies_are_left_alone(scheme, parameters, size):
    x = column(size, 3000)
    for seed in range(3):
        copies, law = made(
            x, size, scheme, (0.5, 0.2, 0.5, 0.9, 0.05, 0.0, 1.0), seed, **parameters
        )
        assert least(law_tests(x, law, copies)) > LEVEL


@pytest.mark.parametrize("rows", [1, 50])
def test_few_rows_are_no_evidence(rows):
    x = column(6, rows)
    for seed in range(20):
        copies, law = made(x, 6, "uniform-multilevel", (0.5, 0.2), seed)
        assert least(law_tests(x, law, copies)) > LEVEL


def test_p_values_are_no_smaller_than_they_say():
    x, p = column(5, 1000), {}
    for seed in range(60):
        for scheme in ("uniform", "uniform-multilevel"):
            copies, law = made(x, 5, scheme, (0.5, 0.2), 1000 + seed)
            for test in law_tests(x, law, copies, seed):
                p.setdefault(test.statistic, []).append(test.p)
    for statistic, values in p.items():
        for q in (0.05, 0.2, 0.5):
            share = np.mean(np.array(values) <= q)
            assert share <= q + 4 * np.sqrt(q * (1 - q) / len(values)), (statistic, q, share)


@pytest.mark.usefixtures("no_learner")
def test_faults_of_a_plugin_and_of_files_with_a_stated_law_are_found_unasked(tmp_path):
    fault, x = FAULTS["two rows"], column(6, 5000)
    for name, codes in [("x", x), *enumerate(fault(x, 6, np.random.default_rng(3)), start=1)]:
        pd.DataFrame({"a": codes}).to_csv(tmp_path / f"{name}.csv", index=False)
    files = {
        "name": "published", "copies": [str(tmp_path / f"{copy}.csv") for copy in (1, 2, 3)],
        "levels": list(LEVELS), "law": {"scheme": "uniform-multilevel"},
    }  # fmt: skip
    lies = {"two-rows-share": fault, "ignores-history": history_ignored}
    lying = [
        lying_scheme(name, lambda x, s, rng, lie=lie: [y.astype(x.dtype) for y in lie(x, s, rng)])
        for name, lie in lies.items()
    ]
    names = [*lies, "uniform-multilevel", "uniform"]
    scenario = {
        "schema": 1, "title": "test", "seed": 1, "attacks": ["posterior"], "coalitions": ["singles"],
        "data": {"source": str(tmp_path / "x.csv"), "categorical": ["a"]},
        "schemes": [{"name": name, "levels": list(LEVELS)} for name in names],
    }  # fmt: skip
    scenario["schemes"].insert(2, files)
    with registry.lent("scheme", *lying):
        result = auditor.run(scenario)
    verdicts = [(r.expectation, r.where["scheme"], r.status) for r in result.expectations]
    assert verdicts == [
        ("noise-follows-law", name, "fails")
        for name in ("two-rows-share", "ignores-history", "published")
    ]
    why = {r.where["scheme"]: r.why for r in result.expectations}
    assert "is correlated with its own value 1 row earlier: r =" in why["two-rows-share"]
    assert result.exit_status == 1
