"""Drawn noise and replacements follow their law, and so its guarantees."""

import math
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter

from pydantic import Field, PositiveFloat

from auditor.base import scipy
from auditor.expectations.base import (
    Expectation,
    Filter,
    Judgement,
    Share,
    copies_released,
    selector,
    worst,
)
from auditor.numerics.statistics import holm
from auditor.registry import register
from auditor.results.records import (
    LAST_DIGITS,
    Evidence,
    LawTest,
    Measurement,
    ReleaseEvidence,
    Verdict,
    describe,
)

LEVEL = 1e-4
"""Chance of one false contradiction: a false alarm costs an honest release its verdict."""
OF_ONE_COLUMN = ("distribution", "moments", "sizes near 0", "periods")
"""Statistics of numbers that compare no column with another one."""
COUNTS = ("retention", "transitions")
"""Statistics of categories that count values of single copies."""
FALSE_ALARM = 0.01
SYMBOL = {"epsilon": "ε", "gaussian_dp": "μ"}
"""Guarantees that are compared: the first that is exact for the noise."""
ROUNDING = 1e-9

Tests = Sequence[tuple[ReleaseEvidence, LawTest]]


@register
class NoiseFollowsLaw(Expectation):
    """The drawn noise follows its stated law, by all law tests (Holm).

    Part of every audit. The tests are `auditor.audit.law_tests`, for numbers and categories. Each
    has one p-value for all its comparisons. Holm's step-down over all tests keeps the chance of one
    false «fails» at ``level``.
    """

    name = "noise-follows-law"
    reference = "rosenblatt1952; holm1979; laurent2000; massart1990"

    class Parameters(Filter):
        """The filter (scheme and sweep count), the level and the resolution."""

        level: Share = LEVEL
        """chance of one false «fails», over everything it tests"""
        resolution: Share = 0.1
        """undecided while a correlation, or a share kept of what is to be redrawn, could hide"""
        last_digits: bool = True
        """whether doubles in files may not tell of originals by how they were rounded; false: that they do is accepted"""

    def judge(self, evidence: Evidence) -> Judgement:
        """Verdict over every release that the filter covers.

        Observed and bounded is the least p-value after Holm's correction.
        """
        covered, p = self.covered(evidence), self.parameters
        tests = _tests(covered, self.tested)
        if not tests:
            return Judgement(
                "undecided",
                "no release covered states a law of its noise, or none has rows enough to test",
            )
        least, wrong, finding = _least_likely(tests, p.level)
        if wrong:
            return Judgement(
                "fails",
                f"{wrong} of {len(tests)} statistics contradict the stated law; {finding}",
                least,
                p.level,
            )
        silent = sum(not release.law for release in covered if release.replicate == 1)
        if silent:
            why = f"{silent} of {len(covered)} releases covered state no law, or have too few rows to test it"
            return Judgement("undecided", why, least, p.level)
        count = sum(test.tests for _, test in tests)
        hidden, departure = max(
            ((_could_hide(test, p.level / len(tests)), test.departure) for _, test in tests),
            key=itemgetter(0),
        )
        if hidden > p.resolution:
            why = f"{departure} of {hidden:.2g} could hide in so few rows ({min(test.rows for _, test in tests):,}); add rows"
            return Judgement("undecided", why, least, p.level)
        why = f"{len(tests)} statistics ({count:,} tests) agree with the stated law; {departure} of {hidden:.2g} would show"
        return Judgement("holds", f"{why}; the least likely is {finding}", least, p.level)

    def tested(self, statistic: str) -> bool:
        """Whether a statistic matters."""
        return statistic != LAST_DIGITS or bool(self.parameters.last_digits)


def contradiction(releases: Sequence[ReleaseEvidence]) -> str:
    """Finding against independent noise at ``LEVEL``, else "".

    Independent increments of any distribution protect, so tests of single columns do not count.
    """
    tests = _tests(releases, lambda statistic: statistic not in OF_ONE_COLUMN)
    _, wrong, finding = _least_likely(tests, LEVEL) if tests else (1.0, 0, "")
    return finding if wrong else ""


def _tests(releases: Iterable[ReleaseEvidence], tested: Callable[[str], bool]) -> Tests:
    return [
        (release, test) for release in releases for test in release.law if tested(test.statistic)
    ]


def _least_likely(tests: Tests, level: float) -> tuple[float, int, str]:
    """Least adjusted p-value, number of refuted laws, and the finding."""
    adjusted = holm([test.p for _, test in tests])
    place = min(range(len(tests)), key=lambda k: (adjusted[k], tests[k][1].p))
    release, test = tests[place]
    figure = f"{test.where} {test.observed:.4g}, by law {test.expected:.4g}"
    finding = (
        f"{test.statistic} of {release.scheme}: {figure} (p = {test.p:.2g}, {test.rows:,} rows)"
    )
    return adjusted[place], sum(p <= level for p in adjusted), finding


def _could_hide(test: LawTest, level: float) -> float:
    reach = -float(scipy.special.ndtri(level / (2.0 * max(test.tests, 1))))
    return reach / (test.telling * math.sqrt(test.rows))


@register
class NeighbourCoin(Expectation):
    """A middle copy keeps its neighbours' value as xiao2009, eqs. 3 and 4.

    On records where the neighbours agree, the new copy has their value with probability
    ``u + v + (1 − u − v)/s``, by an exact binomial test.
    """

    name = "neighbour-coin"
    aliases = ("multi-pert-coin",)
    reference = "xiao2009, eqs. 3 and 4"

    class Parameters(Filter):
        """The filter (scheme and sweep count), the copy, and the chances."""

        copy_number: int = Field(alias="copy", ge=1)
        """the copy's number"""
        heads: float = Field(ge=0, le=1)
        """u: chance to keep the less perturbed neighbour's value"""
        tails: float = Field(ge=0, le=1)
        """v: chance to take the more perturbed neighbour's"""
        tolerance: PositiveFloat = 0.0005
        """how far heads and tails may be off, as they are rounded"""

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
        exact = scipy.stats.binomtest  # takes a second to import
        tests = holm(
            [
                exact(one.same, one.agreeing, one.kept).pvalue if one.agreeing else 1.0
                for one in drawn
            ]
        )
        verdicts: list[Verdict] = []
        for coin, q in zip(drawn, tests, strict=True):
            off = max(abs(coin.heads - p.heads), abs(coin.tails - p.tails))
            wrong = off > p.tolerance or q <= FALSE_ALARM
            verdicts.append("fails" if wrong else "holds" if coin.agreeing else "undecided")
        coin = drawn[0]
        share = coin.same / max(1, coin.agreeing)
        return Judgement(
            worst(verdicts),
            f"u = {coin.heads:.4g}, v = {coin.tails:.4g}; of {coin.agreeing:,} records on which the neighbours agree {share:.4f} keep "
            f"their value, theory {coin.kept:.4f} (p = {min(tests):.2g})",
            share,
            coin.kept,
        )


@register
class MarginalIsUniform(NoiseFollowsLaw):
    """Every copy follows uniform perturbation at its level (exact counts, Holm).

    Every copy, given the original, is compared with ``T(p)`` (xiao2009, eq. 1 and Theorem 2), or
    with the stated replacements.
    """

    name = "marginal-is-uniform"
    reference = "xiao2009, Theorem 2; hoeffding1956"

    class Parameters(Filter):
        """The filter (scheme and sweep count), the level and the resolution."""

        level: Share = 0.01
        """chance that a true claim is refuted, over everything covered"""
        resolution: Share = 0.5
        """undecided while a larger share kept of what is to be redrawn could hide"""

    def covered(self, evidence: Evidence) -> list[ReleaseEvidence]:
        """Covered releases of categories with a law."""
        return [each for each in super().covered(evidence) if _tests([each], self.tested)]

    def tested(self, statistic: str) -> bool:
        """Whether a statistic counts values that are kept or replaced."""
        return statistic in COUNTS


def as_drawn(
    judged: Judgement, metric: str, high: float | None, filters: Filter, evidence: Evidence
) -> Judgement:
    """Verdict that holds by law, revised by the noise that was drawn.

    An audited lower bound above the allowed value refutes the guarantee. If the noise does not follow
    the law (``noise-follows-law``), the guarantee is undecided.
    """
    selected = selector(filters, f"empirical_{metric}", copies_released(evidence))
    found = [(r.value or 0.0, r) for r in evidence.measurements if selected(r)]
    value, most = max(found, key=itemgetter(0), default=(0.0, None))
    if most is not None and high is not None and value > high:
        why = f"the law states less, but copies that were drawn tell records apart: {most.metric} {value:.4g} ({most.scheme})"
        return Judgement("fails", why, value, judged.bound)
    law = NoiseFollowsLaw(scheme=filters.scheme, sweep=filters.sweep).judge(evidence)
    if law.status != "fails":
        return judged
    why = f"the law would hold to it, but the noise that was drawn does not follow that law: {law.why}"
    return Judgement("undecided", why, judged.observed, judged.bound)


def by_guarantees(records: Iterable[Measurement]) -> Judgement | None:
    """Verdict on the guarantees of coalitions, or None without pairs.

    Figures that are only upper bounds (their ``reason`` says so) are left out, since a coalition's
    bound may be looser than one copy's. So are single copies without a guarantee.
    """
    found = {
        (r.metric, str(r.sweep), r.scheme, r.replicate, r.coalition): r.value
        for r in records
        if r.metric in SYMBOL and r.status == "ok" and r.value is not None
        if r.reason is None or math.isinf(r.value)
    }
    pairs: dict[tuple[object, ...], tuple[float, str]] = {}
    for metric, symbol in SYMBOL.items():
        for (name, *where, copies), pooled in found.items():
            alone = [
                (found[key], copy) for copy in copies if (key := (name, *where, (copy,))) in found
            ]
            if name != metric or not len(alone) == len(copies) > 1:
                continue
            best, copy = max(alone, key=itemgetter(0))
            if math.isfinite(best):
                held = f"{symbol} is {_number(pooled)} for copies {describe(copies)} of {where[1]}"
                worse = pooled / max(best, ROUNDING) if pooled > best * (1.0 + ROUNDING) else 0.0
                pairs.setdefault(
                    (*where, copies), (worse, f"{held}, and {_number(best)} for copy {copy} alone")
                )
    if not pairs:
        return None
    worst_first = sorted(pairs.values(), key=itemgetter(0), reverse=True)
    if count := sum(ratio > 0.0 for ratio, _ in worst_first):
        more = f", and so in {count - 1} more" if count > 1 else ""
        return Judgement("fails", f"by guarantee: {worst_first[0][1]}{more}")
    which = "the one coalition's is" if len(pairs) == 1 else f"each of {len(pairs)} coalitions' is"
    return Judgement("holds", f"by guarantee: {which} that of its best copy alone")


def _number(value: float) -> str:
    return "infinite" if math.isinf(value) else f"{value:.4g}"
