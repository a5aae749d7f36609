"""Method in sentences, common to all reports."""

from __future__ import annotations

_PARAGRAPHS = [
    (
        "",
        "The owner of a table releases several perturbed copies of it, each to a recipient trusted to a different degree. "
        "Recipients may pool their copies: a coalition is the set of copies that one adversary holds. Each attack turns what "
        "an adversary holds and knows into an estimate of the original records, and the audit compares that estimate with the "
        "records themselves. Only aggregates of the comparison are kept.",
    ),
    (
        "±",
        "is half of a 95 % interval: in repetitions of the audit, the interval covers the true value 95 times in 100. What "
        "moves the figures between repetitions is the noise of the copies; the table stays the same.",
    ),
    (
        "Theory",
        "is the closed form of the same quantity, computed from the law of the noise and the table's own second moments, "
        "without looking at the copies. A figure that theory and measurement both give is proved twice.",
    ),
]
_SPEAKS = "speaks of the strongest attack measured against a scheme; an adversary with attributes in clear has a separate sentence."
_DECIDES = (
    "Pooling endangers the records when the whole interval of a coalition's gain lies above 0 and the gain exceeds 1 %; it buys "
    "nothing when the intervals of all coalitions end below 1 %; otherwise the question is undecided. The intervals are widened for the "
    "number of coalitions (Bonferroni). An expectation of the scenario that was decided for the same attack has the last word."
)
_GUESSED = (
    "For categories the gain is one of 1 − the probability that the attacker gives to the true value, and the sentence also "
    "says how many records the best guess gets right."
)
_NUMBERS = (
    "A normalized error is the share of the data's variance that the attacker still does not know: 0 is exact, 1 no better "
    "than guessing the mean."
)
_CATEGORIES = (
    "The share of wrong guesses left is counted against the mistakes of who has no copy and always names the most frequent "
    "value: 0 is always right, 1 no better than that."
)
_POOLING = (
    "± is half of a 95 % interval. A verdict says first how exposed the worst attribute is to the strongest attack measured, on a single "
    "copy or on several, and then whether pooling copies adds to it. A tick means that both are fine: at least half stays unknown, and "
    "pooling adds nothing."
)
REPLICATES = "Over replicates, values are averaged and standard errors combined as √(Σ se²)/R."
"""Rule for combining replicates."""
GUESSES = (
    "Guesses of categories have the same bounds for the share of wrong guesses left, (1 − accuracy) / (1 − accuracy without "
    "any copy). The word is that of the worse of the two."
)
"""Severity scale for guesses of categories."""


def prose(*, categories: bool) -> list[tuple[str, str]]:
    """Return the method's paragraphs as pairs of term and text."""
    verdict = [_SPEAKS, *([_GUESSED] if categories else []), _DECIDES]
    return [*_PARAGRAPHS, ("The verdict", " ".join(verdict))]


def terms(*, numbers: bool, categories: bool) -> str:
    """Explain the verdicts' figures for numbers, categories or both."""
    return " ".join(
        [*([_NUMBERS] if numbers else []), *([_CATEGORIES] if categories else []), _POOLING]
    )
