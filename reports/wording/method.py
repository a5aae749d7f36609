"""Method in words: definitions of metrics, error bars and theory."""

from __future__ import annotations

from typing import NamedTuple

from auditor.results.metrics import METRICS as KNOWN
from auditor.results.metrics import base

from ..figures.labels import utility_meaning
from ..figures.reading import Reading, unique


class Definition(NamedTuple):
    """A term, its formula if any, and its meaning."""

    term: str
    formula: str
    meaning: str


METRICS = {
    "distortion": (
        "D = (1/nN) Σ (x̂ − x)²",
        "mean squared error of the reconstruction over records and attributes, in squared data units",
    ),
    "rmse": ("√D", "square root of the distortion, in data units"),
    "normalized_error": (
        "N·D / tr K_X",
        "squared error over the data's variance, both summed over attributes: 0 is exact, 1 no better than the mean",
    ),
    "collusion_gain": (
        "1 − D(coalition) / min D(one member alone)",
        "what pooling bought: 0 is nothing; 0.5 halves the squared error: 2 times more accurate, in the verdict. For categories D is "
        "1 − the probability given to the true value",
    ),
    "within": ("", "share of the records reconstructed within a tolerance"),
    "exact": (
        "|x̂ − x| < s/2",
        "share of the records whose value is recovered exactly at its column's resolution s, the greatest step of which all its values are "
        "multiples; where a copy is top-coded or suppressed, squared error hides it",
    ),
    "reconstruction_probability": (
        "",
        "probability that an attacker gives to a record's true value, averaged over records; the best guess is judged by accuracy",
    ),
    "posterior_max": (
        "",
        "largest posterior probability that an attacker gives to one value, averaged over records",
    ),
    "delta_growth": (
        "",
        "largest growth from prior to posterior probability of any property of one record",
    ),
    "rho_breach": (
        "",
        "share of the records where a belief below ρ₁ became one above ρ₂, or the other way round",
    ),
    "seconds": (
        "",
        "processor time of the step; it depends on the machine and is no part of the reproducible figures",
    ),
}

ERROR_BARS = {
    "closed-form": "from the closed form of the spread over noise draws, for linear attacks with known weights: "
    "Var = (2 tr S² + 4 tr SA)/n, with A = (I − WH) K_X (I − WH)ᵀ and S = W K_Z Wᵀ",
    "redraws": (
        "from the spread between additional draws of the release: of the noise, and of the adversary's records"
    ),
    "jackknife": "from a jackknife: blocks of rows are left out in turn, the attack held, and the spread measured",
    "sampling": "as if the records, or the folds of a cross-validation, were independent draws",
    "replicates": "from the spread between replicates, each of which draws the noise anew",
    "replicates-needed": (
        "without an error bar: one release does not show the spread of a draw common to all its records (an estimated distribution, a "
        "matrix, known records), nor of a gain over a copy with an unstable error; five `replicates` or more do"
    ),
    "none": "without an error bar: the figure is exact, or no spread could be stated for it",
}


def metric_definitions(reading: Reading) -> list[Definition]:
    """Define the metrics in the results, each in a sentence."""
    found = [_definition(name) for name in reading.metrics]
    return [
        one._replace(meaning=f"{one.meaning[:1].upper()}{one.meaning[1:].rstrip('.')}.")
        for one in found
    ]


def _definition(name: str) -> Definition:
    if name in METRICS:
        return Definition(name, *METRICS[name])
    if name.startswith("utility_"):
        return Definition(name, "", utility_meaning(name))
    known = KNOWN.get(base(name))
    return Definition(name, "", known.meaning if known else "as its plugin defines it")


def error_bars(reading: Reading) -> list[tuple[str, str]]:
    """Describe the error bars in the results."""
    kinds = unique(
        record.error_bar for record in reading.result.measurements if record.status == "ok"
    )
    return [
        (
            kind,
            f"{meaning[:1].upper()}{meaning[1:]}." if (meaning := ERROR_BARS.get(kind, "")) else "",
        )
        for kind in kinds
    ]


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
    "copy or on several, and then whether pooling copies adds to it. A tick means that the whole interval of every exposure is at or above "
    "the target: half stays unknown, or the share that the scenario's `exposure` states."
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
