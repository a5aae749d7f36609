"""Sensitive values disclosed: what an attack claims of them, how often it is right, and what it gained over the table's own shares.

| metric | meaning | theory |
| --- | --- | --- |
| ``claimed`` | share of the records of which a value is claimed | |
| ``disclosed`` | share of the records of which it is claimed rightly | ``mean P(claim)`` |
| ``accuracy`` | share of the records whose likeliest value is theirs | ``mean max P`` |
| ``reconstruction_probability`` | the mean probability of the true value | ``mean Σ P²`` |
| ``posterior_max`` | the mean of the largest probability | |
| ``learning_gain`` | right guesses less those that always name the table's commonest value | ``mean max P − max prior`` |
| ``delta_growth`` | largest growth of a probability from prior to posterior, over records and values | |
| ``linkage`` | mean chance of naming the record's own row | |

The error bars are binomial; where classes are read off exactly, measurement and theory are equal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.attack import Inferred
from auditor.adversary.categorical_attack import ROUNDING, probabilities
from auditor.adversary.handed_back import check_real
from auditor.audit.base.records import CellContext
from auditor.errors import PluginError
from auditor.numerics.statistics import quantile
from auditor.results.records import Measurement
from auditor.types import Array, Coalition


@dataclass
class Inferences:
    """Sums over records for one coalition."""

    rows: int = 0
    attribute: int = -1
    claimed: float = 0.0
    disclosed: float = 0.0
    disclosed_expected: float = 0.0
    right: float = 0.0
    truth: float = 0.0
    truth_expected: float = 0.0
    right_by_prior: float = 0.0
    largest: float = 0.0
    linked: float = 0.0
    growth: float = 0.0
    prior_max: float = 0.0

    def add(self, found: Inferred | None, x: Array) -> None:
        """Count one block's records, ``x`` their true values, shape (b, N)."""
        if found is None or not len(x):
            return
        check_inferred(found, *x.shape)
        true = true_groups(found, x[:, found.attribute])
        guess, claimed = found.posterior.argmax(axis=1), found.claims >= 0
        at = np.arange(len(x))
        self.attribute, self.rows = found.attribute, self.rows + len(x)
        self.claimed += int(claimed.sum())
        self.disclosed += int((claimed & (found.claims == true)).sum())
        self.disclosed_expected += float(found.posterior[at[claimed], found.claims[claimed]].sum())
        self.right += int((guess == true).sum())
        possible = true >= 0
        self.truth += float(found.posterior[at[possible], true[possible]].sum())
        self.truth_expected += float((found.posterior**2).sum())
        self.right_by_prior += int((true == found.prior.argmax()).sum())
        self.largest += float(found.posterior.max(axis=1).sum())
        self.linked += float(found.linked.sum())
        self.growth = max(self.growth, float((found.posterior - found.prior).max()))
        self.prior_max = float(found.prior.max())


def check_inferred(found: Inferred, rows: int, width: int) -> None:
    """Refuse what is no inference about so many records; the harness does not trust what a plugin returns.

    Raises
    ------
    PluginError
        Saying what was expected.
    """
    if not isinstance(found, Inferred) or not isinstance(found.attribute, (int, np.integer)) or not 0 <= found.attribute < width:
        raise PluginError("the attack inferred nothing about an attribute of the table")
    check_real(found.values, found.groups, found.claims, found.linked)
    G = np.size(found.prior)
    probabilities(found.prior, (G,), "a prior")
    probabilities(found.posterior, (rows, G), "a posterior")
    for codes, shape, low in ((found.groups, np.shape(found.values), 0), (found.claims, (rows,), -1)):
        if np.shape(codes) != shape or codes.dtype.kind not in "iu" or not ((codes >= low) & (codes < G)).all():
            raise PluginError(f"groups must be whole numbers from {low} to {G - 1}, one for each value and each record")
    if np.ndim(found.values) != 1 or not np.isfinite(found.values).all() or (np.diff(found.values) <= 0).any():
        raise PluginError("the values thought possible must be finite and rise")
    if np.shape(found.linked) != (rows,) or not ((found.linked >= 0) & (found.linked <= 1 + ROUNDING)).all():
        raise PluginError("chances of naming a record's row must lie from 0 to 1")


def true_groups(found: Inferred, values: Array) -> NDArray[np.intp]:
    """Return the group of each true value, shape (b,); −2 for a value that was not thought possible."""
    place = np.minimum(np.searchsorted(found.values, values), len(found.values) - 1)
    return np.where(found.values[place] == values, found.groups[place], -2)


def inference_records(
    context: CellContext, attack: str, knowledge: str, coalition: Coalition, counted: Inferences, attributes: tuple[str, ...]
) -> list[Measurement]:
    """Return the records of one coalition, under the attribute they are about; none when the attack infers nothing."""
    n = counted.rows
    if not n:
        return []
    figures: dict[str, tuple[float, float | None, bool]] = {
        "claimed": (counted.claimed / n, None, False),
        "disclosed": (counted.disclosed / n, counted.disclosed_expected / n, True),
        "accuracy": (counted.right / n, counted.largest / n, True),
        "reconstruction_probability": (counted.truth / n, counted.truth_expected / n, True),
        "learning_gain": ((counted.right - counted.right_by_prior) / n, counted.largest / n - counted.prior_max, True),
        "posterior_max": (counted.largest / n, None, False),
        "delta_growth": (counted.growth, None, False),
        "linkage": (counted.linked / n, None, False),
    }
    records = []
    for metric, (value, theory, drawn) in figures.items():
        share = min(1.0, max(0.0, abs(value)))
        error = math.sqrt(share * (1.0 - share) / n) if drawn else 0.0
        reach = quantile(0.975) * error
        for attribute in (attributes[counted.attribute], "*"):
            records.append(context.record(
                metric, coalition, value, error, (value - reach, value + reach), theory,
                attack=attack, knowledge=knowledge, attribute=attribute, error_bar="closed-form",
            ))  # fmt: skip
    return records
