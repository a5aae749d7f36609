"""Laws of uniform copies: single copies, and the coin between two.

A chi-square test compares every copy, given the original, with ``T(p)`` (xiao2009, eq. 1 and
Theorem 2), or with the stated replacements. Holm's step-down covers all copies of all releases.

For a copy between two others, u and v are of xiao2009, equations 3 and 4, for records on which the
neighbours agree. The share of these whose new value is the neighbours' is ``u + v + (1 − u − v)/s``,
by an exact binomial test.
"""

from __future__ import annotations

from pydantic import Field

from auditor.base import scipy
from auditor.expectations.base import Expectation, Filter, Judgement, Share, worst
from auditor.numerics.statistics import holm
from auditor.registry import register
from auditor.results.records import Evidence, Verdict

FALSE_ALARM = 0.01


@register
class NeighbourCoin(Expectation):
    """A middle copy keeps its neighbours' value as xiao2009, eqs. 3 and 4."""

    name = "neighbour-coin"
    aliases = ("multi-pert-coin",)
    reference = "xiao2009, eqs. 3 and 4"

    class Parameters(Filter):
        """The filter (scheme and sweep count), the copy, and the chances."""

        copy_number: int = Field(alias="copy", ge=1, description="the copy's number")
        heads: float = Field(
            ge=0, le=1, description="u: chance to keep the less perturbed neighbour's value"
        )
        tails: float = Field(
            ge=0, le=1, description="v: chance to take the more perturbed neighbour's"
        )
        tolerance: float = Field(
            0.0005, gt=0, description="how far heads and tails may be off, as they are rounded"
        )

    def judge(self, evidence: Evidence) -> Judgement:
        p = self.parameters
        drawn = [
            coin
            for release in self.covered(evidence)
            for coin in release.facts.get("drawn", ())
            if coin.copy == p.copy_number
        ]
        if not drawn:
            return Judgement(
                "undecided",
                f"copy {p.copy_number} is not drawn between two others in any release covered",
            )
        tests = holm([_two_sided(coin.same, coin.agreeing, coin.kept) for coin in drawn])
        verdicts: list[Verdict] = []
        for coin, q in zip(drawn, tests, strict=True):
            off = max(abs(coin.heads - p.heads), abs(coin.tails - p.tails))
            wrong = off > p.tolerance or q <= FALSE_ALARM
            verdicts.append("fails" if wrong else "holds" if coin.agreeing else "undecided")
        coin = drawn[0]
        share = coin.same / max(1, coin.agreeing)
        why = (
            f"u = {coin.heads:.4g}, v = {coin.tails:.4g}; of {coin.agreeing:,} records on which the neighbours agree {share:.4f} keep "
            f"their value, theory {coin.kept:.4f} (p = {min(tests):.2g})"
        )
        return Judgement(worst(verdicts), why, share, coin.kept)


def _two_sided(same: int, n: int, chance: float) -> float:
    if n == 0:
        return 1.0
    below, above = (
        float(scipy.special.bdtr(same, n, chance)),
        float(scipy.special.bdtrc(same - 1, n, chance)) if same > 0 else 1.0,
    )
    return min(1.0, 2.0 * min(below, above))


@register
class MarginalIsUniform(Expectation):
    """Every copy follows uniform perturbation at its level (χ², Holm)."""

    name = "marginal-is-uniform"
    reference = "xiao2009, Theorem 2"

    class Parameters(Filter):
        """The filter (scheme and sweep count), and the level of the test."""

        level: Share = Field(
            0.01, description="chance that a true claim is refuted, over everything covered"
        )

    def judge(self, evidence: Evidence) -> Judgement:
        """Verdict over every copy of the covered uniform releases.

        Observed and bounded is the least p-value after Holm's correction.
        """
        tests = [
            (release.scheme, *test)
            for release in self.covered(evidence)
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
