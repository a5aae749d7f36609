"""Detection of faulty noise and false alarms of `noise-follows-law`.

`python -m benchmarks.law_detection > docs/evidence/faults.md` writes the page. `--honest 2000`,
`--jobs 2` and `--only TEXT` choose the cases.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.special import ndtr, ndtri

import auditor
from auditor import registry
from auditor.audit import numeric_evidence
from auditor.audit.law_tests.numeric import law_tests as numeric_law_tests
from auditor.base import DataError
from auditor.results.records import LawTest
from auditor.schemes.replacement.law import UniformLaw
from tests.audit import law_faults, planted_coins
from tests.audit.categorical_law import law_tests

HEADING = """# Planted faults

<!-- Written by `python -m benchmarks.law_detection > docs/evidence/faults.md`; do not edit. -->

p-values of faulty noise after Holm's correction, with the test that finds it. In italics: not found at 10⁻⁴. The last column is the
smallest number of rows, of {ladder}, at which {needed} of {releases} releases are found. Faults called *new* were
invented when the tests were finished. [The method](../method.md) explains the tests,
[self-test](selftest.md) lists more faults, [mistakes](mistakes.md) copies without a law, [mended](mended.md) faults of the program.
"""
MISSES = """
## Faults that are missed

The third column is the p-value at {few:,} rows of a test that knows the one comparison by which the fault is found at {many:,} rows.
It is not corrected for other comparisons. Above {level:g}, not even a test of this comparison alone would find the fault.

| fault | missed at | p of the right comparison at {few:,} rows | reason |
| --- | --- | --- | --- |"""
PERIOD = "the generator repeats after 4,001 rows or more: no row comes again in so few"
REASONS = {
    "a record far before": "the rows tested of a long table lie in runs, and no run holds rows 4,321 apart",
    "in order of a column": "runs of a long table are tested, which hold few next records in order of a column",
    "categories: a period": PERIOD,
    "categories: a generator restarts": PERIOD,
    "a function of the record": "the function wraps 1,000 times: in so few rows it is not smooth anywhere",
}
UNEXPLAINED = (
    "the comparison needs more rows to be made at all, or outweighs the number of comparisons later"
)
LEVEL = 1e-4
"""Chance of a false «fails» at which `noise-follows-law` decides."""
ROWS, LADDER = (1_000, 10_000, 100_000), (300, 1_000, 3_000, 10_000, 30_000)
RELEASES, MISSED = 20, 1
"""Releases of each number of rows, and how many of them may be missed."""
ALARM_LEVELS = (0.05, 0.01, 1e-4)
ROWS_OF_HONEST = (3, 4, 7, 10, 25, 50, 100, 300, 1000, 3000)
TIMED_ROWS = 20_000
COALITIONS: dict[str, Any] = {
    "schema": 1,
    "title": "all coalitions of ten copies",
    "data": {"source": "census-like", "rows": 100_000, "columns": ["age", "income"]},
    "schemes": [{"name": "corner-wave", "levels": {"linear": [0.25, 1.0], "count": 10}}],
    "coalitions": "subsets",
    "attacks": ["llse"],
    "expect": ["noise-follows-law"],
}
"""A release that is tested within a run of 1,023 coalitions."""
WIDEST, BATCH, VALUES = 1000, 50, 6
"""Rows of tables with 24 columns, honest releases of one job, and values of a category."""

Make = Callable[[int, int], list[LawTest]]
"""Tests of one release, given rows and seed."""


def of_categories(
    change: Callable[..., Sequence[np.ndarray]], rows: int, seed: int
) -> list[LawTest]:
    """Return the tests of three categorical copies of a skewed column."""
    rng = np.random.default_rng(seed)
    x = np.minimum(rng.geometric(0.3, rows) - 1, VALUES - 1)
    law = UniformLaw(planted_coins.LEVELS, VALUES, True)
    return law_tests(x, law, change(x, VALUES, rng), seed)


def invented() -> dict[str, law_faults.Fault]:
    """Return faults that were invented when the tests were finished."""

    def by_two_rows_before(z, x, rng):
        sign = np.sign(np.roll(z, 1, axis=0) * np.roll(z, 2, axis=0))
        return np.where(rng.random(z.shape) < 0.3, np.abs(z) * sign, z)

    def by_week(z, x, rng):
        return z * (1.0 + 0.15 * np.sin(2.0 * np.pi * np.arange(len(z)) / 168.0))[:, None]

    def drifting(z, x, rng):
        return z + 0.12 * z.std(axis=0) * np.sin(3.0 * np.pi * np.arange(len(z)) / len(z))[:, None]

    def every_fiftieth(z, x, rng):
        rows = np.arange(len(z))
        return z[np.where(rows % 50 == 49, rows - 49, rows)]

    def winsorised(z, x, rng):
        return np.clip(z, -2.5 * z.std(axis=0), 2.5 * z.std(axis=0))

    def in_eighths(z, x, rng):
        step = z.std(axis=0) / 8.0
        return np.rint(z / step) * step

    def inwards(z, x, rng):
        far = x > np.quantile(x, 0.95, axis=0)
        return np.where(far & (rng.random(z.shape) < 0.5), -np.abs(z), z)

    def mirrored(z, x, rng):
        pairs = rng.random((len(z), 1)) < 0.1
        pairs[len(z) // 2 :] = pairs[: len(z) - len(z) // 2][::-1]
        return np.where(pairs & (np.arange(len(z)) >= len(z) // 2)[:, None], -z[::-1], z)

    def by_tenths(g, x, rng):
        number = np.floor(law_faults.scores(x, rng) * 10.0)
        return np.sin(12.9898 * number + 78.233 * number**2) * math.sqrt(2.0)

    def crossed(first, z, x, rng):
        return math.sqrt(1.0 - 0.15**2) * z + 0.15 * first[:, ::-1] * (
            z.std(axis=0) / first[:, ::-1].std(axis=0)
        )

    def one_radius(z, x, rng):
        radius = np.sqrt(2.0 * rng.exponential(size=(len(z), 1)))
        return z.std(axis=0) * radius * np.cos(rng.uniform(0.0, 2.0 * math.pi, z.shape))

    def latin(z, x, rng):
        strata = rng.permuted(np.tile(np.arange(len(z))[:, None], z.shape[1]), axis=0)
        return z.std(axis=0) * ndtri((strata + rng.random(z.shape)) / len(z))

    def odd_hundredths(z, x, rng):
        odd = np.floor(ndtr(law_faults.scores(x, rng)) * 100.0) % 2 == 1
        return z * np.sqrt(np.where(odd, 1.3, 0.7))

    def swapped(first, z, x, rng):
        other = -first[:, ::-1] * z.std(axis=0) / first[:, ::-1].std(axis=0)
        return np.where(rng.random((len(z), 1)) < 0.05, other, z)

    def next_in_order(z, x, rng):
        order = x[:, 1].argsort()
        found = np.empty_like(z)
        found[order] = math.sqrt(1.0 - 0.15**2) * z[order] + 0.15 * np.roll(z[order], 1, axis=0)
        return found

    def quiet_far_out(z, x, rng):
        return np.where(x > np.quantile(x, 0.99, axis=0), 0.5, 1.0) * z

    def a_batch_again(z, x, rng):
        again = z.copy()
        again[40:60] = z[20:40]
        return again

    def skewed(rng, shape):
        return (rng.gamma(44.0, size=shape) - 44.0) / math.sqrt(44.0)  # skewness 0.3

    changes = {
        "a sign by the two rows before, three in ten": law_faults.of_noise(by_two_rows_before, 0),
        "15 % louder by week": law_faults.of_noise(by_week), "12 % of a slow wave": law_faults.of_noise(drifting, 0),
        "every fiftieth row from the row 49 before": law_faults.of_noise(every_fiftieth),
        "clipped at 2.5 deviations": law_faults.of_noise(winsorised), "in steps of an eighth": law_faults.of_noise(in_eighths),
        "inwards for half of the largest twentieth": law_faults.of_noise(inwards, 0),
        "one row in ten mirrored at the middle": law_faults.of_noise(mirrored),
        "30 % by a hash of tenths": law_faults.of_noise(law_faults.mixed(0.3, by_tenths), 0),
        "15 % of another column of another copy": law_faults.second_from_first(crossed),
        "one Box-Muller radius for all columns": law_faults.of_noise(one_radius, 0),
        "sums of twelve uniform numbers": law_faults.as_innovations(
            lambda rng, shape: rng.random((12, *shape)).sum(axis=0) - 6.0),
        "in half precision": law_faults.of_noise(lambda z, x, rng: z.astype(np.float16).astype(float)),
        "stratified, a Latin hypercube": law_faults.of_noise(latin, 0),
        "30 % louder in odd hundredths": law_faults.of_noise(odd_hundredths, 0),
        "minus another copy's other column in a twentieth": law_faults.second_from_first(swapped),
        "15 % of the next record in order of a column": law_faults.of_noise(next_in_order, 0),
        "half as loud in the largest hundredth": law_faults.of_noise(quiet_far_out),
        "twenty rows repeat twenty": law_faults.of_noise(a_batch_again),
        "skewed by 0.3": law_faults.as_innovations(skewed),
    }  # fmt: skip
    return {f"new: {name}": law_faults.Fault(change) for name, change in changes.items()}


def faults() -> dict[str, Make]:
    """Return all faults by name, without the self-test's, which have a page."""
    coins = {
        f"categories: {name}": partial(of_categories, fault)
        for name, fault in planted_coins.FAULTS.items()
    }
    every = law_faults.FAULTS | invented()
    own = {name: fault.tests for name, fault in every.items() if fault.change is not None}
    return own | coins


def detected(name: str) -> tuple[str, list[bool], str]:
    """Return a fault's line, whether it is found at each of ``ROWS``, and a reason if not."""
    warnings.simplefilter("ignore")
    make = faults()[name]
    found = [holm_least(make(rows, 1)) for rows in ROWS]
    cells = [f"{p:.0e} {test.statistic}" if p <= LEVEL else f"*{p:.0e}*" for p, test in found]
    least = next((f"{rows:,}" for rows in LADDER if usually_found(make, rows)), "more")
    at = [p <= LEVEL for p, _ in found]
    return f"| {name} | {' | '.join(cells)} | {least} |", at, missed(name, found, at)


def missed(name: str, found: Sequence[tuple[float, LawTest]], at: Sequence[bool]) -> str:
    """Return a line on the power that the best test could have; "" if all are found.

    Exponents of p-values grow in proportion to rows. The exponent of the one comparison that finds the
    fault at 10,000 rows, uncorrected, has the p-value of a test that knows this comparison.
    """
    if all(at):
        return ""
    test = found[1][1]
    exponent = math.inf if test.p == 0.0 else -math.log(test.p / test.tests)
    p = math.exp(-exponent * ROWS[0] / ROWS[1])
    own = next((why for part, why in REASONS.items() if part in name), "")
    weak = "the departure is too small for so few rows" if p > LEVEL else UNEXPLAINED
    rows = ", ".join(f"{rows:,}" for rows, hit in zip(ROWS, at, strict=True) if not hit)
    return f"| {name} | {rows} | {p:.0e} | {own or weak} |"


def usually_found(make: Make, rows: int) -> bool:
    """Return whether at most ``MISSED`` of the releases are missed."""
    missed = 0
    for seed in range(1, RELEASES + 1):
        missed += holm_least(make(rows, seed))[0] > LEVEL
        if missed > MISSED:
            return False
    return True


def honest_batch(seed: int) -> tuple[list[dict[str, float]], int]:
    """Return p-values of ``BATCH`` honest releases, and the number of refusals."""
    warnings.simplefilter("ignore")
    rng, found, refused = np.random.default_rng(seed), list[dict[str, float]](), 0
    for k in range(BATCH):
        law, kind = rng.integers(len(law_faults.HONEST) + 1), rng.choice(law_faults.KINDS)
        n = min(int(rng.choice(ROWS_OF_HONEST)), WIDEST if kind == "wide" else 10**9)
        grid, release = rng.choice(list(law_faults.GRIDS)), seed * BATCH + k
        if law == len(law_faults.HONEST):
            tests = of_categories(planted_coins.honest, n, release)
        else:
            scheme, levels, parameters = law_faults.HONEST[law]
            # no grid is looked for in these
            exact = registry.get("scheme", scheme).on_lattice or scheme == "multiplicative-noise"
            grid = "none" if exact else grid
            try:
                tests = law_faults.honest(scheme, levels, parameters, kind, n, release, grid)
            except DataError:  # a column that is constant in so few rows
                refused += 1
                continue
        if tests:
            found.append(
                {short(test): test.p for test in tests}
                | {"all together (Holm)": holm_least(tests)[0]}
            )
    return found, refused


def short(test: LawTest) -> str:
    """Return a statistic's name, for numbers and categories."""
    return test.statistic.removesuffix(" of coins").removesuffix(" of values")


def false_alarms(batches: Sequence[tuple[list[dict[str, float]], int]]) -> Iterator[str]:
    """Yield a table of the shares of small p-values of honest releases."""
    p, releases = (
        defaultdict[str, list[float]](list),
        [one for found, _ in batches for one in found],
    )
    for one in releases:
        for statistic, value in one.items():
            p[statistic].append(value)
    refused = sum(refused for _, refused in batches)
    yield f"{BATCH * len(batches):,} releases, {refused} refused for a constant column."
    yield ""
    yield (
        "| statistic | releases | " + " | ".join(f"p ≤ {level:g}" for level in ALARM_LEVELS) + " |"
    )
    yield "| --- |" + " --- |" * (1 + len(ALARM_LEVELS))
    for statistic, values in sorted(p.items()):
        shares = [f"{np.mean(np.array(values) <= level):.4f}" for level in ALARM_LEVELS]
        yield f"| {statistic} | {len(values):,} | " + " | ".join(shares) + " |"


def holm_least(tests: Sequence[LawTest]) -> tuple[float, LawTest]:
    """Return the least p-value after Holm's correction, and its test."""
    least = min(tests, key=lambda test: test.p)
    return min(1.0, len(tests) * least.p), least


def times() -> Iterator[str]:
    """Yield a table of processor seconds of the tests on one thread, the least of three runs."""
    yield "| release | tests | whole run |"
    yield "| --- | --: | --: |"
    for copies in (1, 2, 3):
        X = law_faults.table("skewed", TIMED_ROWS)[:, :2]
        scheme, levels = registry.get("scheme", "corner-wave")(), np.linspace(0.25, 1.0, copies)
        release = law_faults.drawn(X, scheme, levels.tolist(), 1)
        spent = list[float]()
        for _ in range(3):
            start = time.process_time()
            law_faults.law_tests_of(release)
            spent.append(time.process_time() - start)
        yield f"| {copies} × 2 columns, {TIMED_ROWS:,} rows | {min(spent):.2f} s | |"
    tests, whole = min((one_run() for _ in range(3)), key=lambda both: both[1])
    yield f"| `auditor.run` of 1,023 coalitions, 10 × 2 columns, 100,000 rows | {tests:.2f} s | {whole:.2f} s |"


def one_run() -> tuple[float, float]:
    """Return processor seconds of the tests within a run of all coalitions of ten copies, and of the run."""
    spent = list[float]()

    def timed(*arguments: Any) -> list[LawTest]:
        start = time.process_time()
        found = numeric_law_tests(*arguments)
        spent.append(time.process_time() - start)
        return found

    with patch.object(numeric_evidence, "law_tests", timed):
        start = time.process_time()
        auditor.run(COALITIONS)
        whole = time.process_time() - start
    return sum(spent), whole


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--honest", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    ladder = ", ".join(f"{rows:,}" for rows in LADDER)
    print(HEADING.format(ladder=ladder, needed=RELEASES - MISSED, releases=RELEASES))
    print("| fault | " + " | ".join(f"{n:,} rows" for n in ROWS) + " | rows needed |")
    print("| --- |" + " --- |" * (len(ROWS) + 1))
    names = [name for name in faults() if arguments.only in name]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        batches = pool.map(honest_batch, range(-(-arguments.honest // BATCH)))
        reasons = list[str]()
        for new in (False, True):  # new faults are last
            found = list[list[bool]]()
            some = [name for name in names if name.startswith("new: ") == new]
            for line, at, reason in pool.map(detected, some):
                print(line, flush=True)
                found.append(at)
                reasons += [reason] if reason else []
            counts = (
                [f"{count} of {len(found)}" for count in np.sum(found, axis=0)] if found else []
            )
            print(f"| *{'new ' * new}found* | " + " | ".join(counts) + " | |", flush=True)
        print(MISSES.format(few=ROWS[0], many=ROWS[1], level=LEVEL), *reasons, sep="\n")
        print("\n## False alarms\n")
        print("\n".join(false_alarms(list(batches))))
    print("\n## Time\n\nProcessor seconds on one thread, the least of three runs.\n")
    print("\n".join(times()))


if __name__ == "__main__":
    main()
