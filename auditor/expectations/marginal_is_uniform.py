"""Each copy alone has the law of conventional uniform perturbation.

A chi-square test compares every copy, given the original, with ``T(p)`` (xiao2009, eq. 1 and
Theorem 2), or with the stated replacements. Holm's step-down covers all copies of all releases.
"""

from __future__ import annotations

from pydantic import Field

from auditor.expectations.base import Expectation, Filter, Judgement, Share, covers
from auditor.numerics.statistics import holm
from auditor.registry import register
from auditor.results.evidence import Evidence


@register
class MarginalIsUniform(Expectation):
    """Every copy alone is distributed as conventional uniform perturbation of the original at its level (chi-square, Holm)."""

    name = "marginal-is-uniform"
    reference = "xiao2009, Theorem 2"

    class Parameters(Filter):
        """The filter (scheme and sweep count), and the level of the test."""

        level: Share = Field(
            0.01, description="chance that a true claim is refuted, over everything covered"
        )

    def judge(self, evidence: Evidence) -> Judgement:
        """Return the verdict over every copy of the covered uniform releases.

        Observed is the least p-value after Holm's correction; the bound is on it.
        """
        tests = [
            (release.scheme, *test)
            for release in evidence.releases
            if covers(self.parameters, release.scheme, release.sweep)
            for test in release.facts.get("marginal", ())
        ]
        usable = [test for test in tests if test[4] > 0]
        if not usable:
            return Judgement(
                "undecided",
                "no copy of a uniform scheme was audited, or there are too few records to test any",
            )
        adjusted, alpha = holm([p for _, _, _, p, _ in usable]), self.parameters.level
        place = min(range(len(usable)), key=adjusted.__getitem__)
        least = adjusted[place]
        scheme, copy, level, p, degrees = usable[place]
        finding = f"copy {copy} of {scheme} at retention {level:.4g}: p = {p:.2g} on {degrees} degrees of freedom"
        if least <= alpha:
            wrong = sum(q <= alpha for q in adjusted)
            what = "are not what a retention and its replacements make"
            return Judgement(
                "fails", f"{wrong} of {len(usable)} copies {what}; {finding}", least, alpha
            )
        if len(usable) < len(tests):
            return Judgement(
                "undecided",
                f"{len(tests) - len(usable)} of {len(tests)} copies have too few records to test",
                least,
            )
        return Judgement(
            "holds",
            f"{len(usable)} copies agree with their law; the least likely is {finding}",
            least,
            alpha,
        )
