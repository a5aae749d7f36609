"""The drawn noise follows the stated law: part of every audit.

The tests are ``auditor.audit.law_tests``, for numbers and categories. Each has one p-value for all its
comparisons. Holm's step-down over all tests keeps the chance of one false «fails» at ``level``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import Field

from auditor.base import scipy
from auditor.expectations.base import Expectation, Filter, Judgement, Share
from auditor.numerics.statistics import holm
from auditor.registry import register
from auditor.results.records import LAST_DIGITS, Evidence, LawTest, ReleaseEvidence

LEVEL = 1e-4
"""Chance of one false contradiction: a false alarm costs an honest release its verdict."""
OF_ONE_COLUMN = ("distribution", "moments", "sizes near 0", "periods")
"""Statistics of numbers that compare no column with another one."""


@register
class NoiseFollowsLaw(Expectation):
    """The drawn noise follows its stated law, by all law tests (Holm)."""

    name = "noise-follows-law"
    reference = "rosenblatt1952; holm1979; laurent2000; massart1990"

    class Parameters(Filter):
        """The filter (scheme and sweep count), the level and the resolution."""

        level: Share = Field(
            LEVEL, description="chance of one false «fails», over everything it tests"
        )
        resolution: Share = Field(
            0.1,
            description="undecided while a correlation, or a share kept of what is to be redrawn, could hide",
        )
        last_digits: bool = Field(
            True,
            description="whether doubles in files may not tell of originals by how they were rounded; false: that they do is accepted",
        )

    def judge(self, evidence: Evidence) -> Judgement:
        """Verdict over every release that the filter covers.

        Observed and bounded is the least p-value after Holm's correction.
        """
        covered = self.covered(evidence)
        passed_over = () if self.parameters.last_digits else (LAST_DIGITS,)
        tests = [
            (release, test)
            for release in covered
            for test in release.law
            if test.statistic not in passed_over
        ]
        if not tests:
            return Judgement(
                "undecided",
                "no release covered states a law of its noise, or none has rows enough to test",
            )
        adjusted, level = holm([test.p for _, test in tests]), self.parameters.level
        least, finding = _least_likely(tests, adjusted)
        if least <= level:
            wrong = sum(p <= level for p in adjusted)
            return Judgement(
                "fails",
                f"{wrong} of {len(tests)} statistics contradict the stated law; {finding}",
                least,
                level,
            )
        silent = sum(not release.law for release in covered if release.replicate == 1)
        if silent:
            why = f"{silent} of {len(covered)} releases covered state no law, or have too few rows to test it"
            return Judgement("undecided", why, least, level)
        count = sum(test.tests for _, test in tests)
        hidden, coarsest = max(
            ((_could_hide(test, level / len(tests)), test) for _, test in tests),
            key=lambda one: one[0],
        )
        if hidden > self.parameters.resolution:
            why = f"{coarsest.departure} of {hidden:.2g} could hide in so few rows ({min(test.rows for _, test in tests):,}); add rows"
            return Judgement("undecided", why, least, level)
        why = f"{len(tests)} statistics ({count:,} tests) agree with the stated law; {coarsest.departure} of {hidden:.2g} would show"
        return Judgement("holds", f"{why}; the least likely is {finding}", least, level)


def contradiction(releases: Sequence[ReleaseEvidence]) -> str:
    """Finding against independent noise at ``LEVEL``, else "".

    Independent increments of any distribution protect, so tests of single columns do not count.
    """
    tests = [
        (release, test)
        for release in releases
        for test in release.law
        if test.statistic not in OF_ONE_COLUMN
    ]
    if not tests:
        return ""
    least, finding = _least_likely(tests, holm([test.p for _, test in tests]))
    return finding if least <= LEVEL else ""


def _least_likely(
    tests: Sequence[tuple[ReleaseEvidence, LawTest]], adjusted: Sequence[float]
) -> tuple[float, str]:
    place = min(range(len(tests)), key=lambda k: (adjusted[k], tests[k][1].p))
    return adjusted[place], _finding(*tests[place])


def _finding(release: ReleaseEvidence, test: LawTest) -> str:
    figure = f"{test.where} {test.observed:.4g}, by law {test.expected:.4g}"
    return f"{test.statistic} of {release.scheme}: {figure} (p = {test.p:.2g}, {test.rows:,} rows)"


def _could_hide(test: LawTest, level: float) -> float:
    return float(-scipy.special.ndtri(level / (2.0 * max(test.tests, 1)))) / (
        test.telling * math.sqrt(test.rows)
    )
