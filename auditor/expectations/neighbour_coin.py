"""Chances of the coin for a copy between two others.

*Law*: u and v of xiao2009, equations 3 and 4, for records on which the neighbours agree. *Data*:
the share of those records whose new value is the neighbours', ``u + v + (1 − u − v)/s``, by an
exact binomial test.
"""

from __future__ import annotations

from pydantic import Field

from auditor.expectations.base import Expectation, Filter, Judgement, covers, worst
from auditor.numerics.statistics import holm
from auditor.process.deferred import scipy
from auditor.registry import register
from auditor.results.evidence import Evidence
from auditor.results.records import Verdict

FALSE_ALARM = 0.01


@register
class NeighbourCoin(Expectation):
    """A copy between two others keeps the value they agree on as equations 3 and 4 say: heads u, tails v (xiao2009, Example 2)."""

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
        """Return the verdict over every release the filter covers."""
        p = self.parameters
        drawn = [
            coin
            for release in evidence.releases
            if covers(p, release.scheme, release.sweep)
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
            stated = (
                abs(coin.heads - p.heads) <= p.tolerance
                and abs(coin.tails - p.tails) <= p.tolerance
            )
            verdicts.append(
                "fails"
                if not stated or q <= FALSE_ALARM
                else "undecided"
                if coin.agreeing == 0
                else "holds"
            )
        coin = drawn[0]
        share = coin.same / max(1, coin.agreeing)
        why = (
            f"u = {coin.heads:.4g}, v = {coin.tails:.4g}; of {coin.agreeing:,} records on which the neighbours agree {share:.4f} keep "
            f"their value, theory {coin.kept:.4f} (p = {min(tests):.2g})"
        )
        return Judgement(worst(verdicts), why, share, coin.kept)


def _two_sided(same: int, n: int, chance: float) -> float:
    """Exact binomial p-value, doubled smaller tail."""
    if n == 0:
        return 1.0
    below, above = (
        float(scipy.special.bdtr(same, n, chance)),
        float(scipy.special.bdtrc(same - 1, n, chance)) if same > 0 else 1.0,
    )
    return min(1.0, 2.0 * min(below, above))
