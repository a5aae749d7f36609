"""Disclosure of sensitive values: an attack's claims and gains.

| metric | meaning | theory |
| --- | --- | --- |
| ``claimed`` | share of records with a claimed value | |
| ``disclosed`` | share of records with a correct claim | ``mean P(claim)`` |
| ``disclosed_beyond_chance`` | ``Σ (right − prior of the claim) / Σ (1 − prior of the truth)`` | likewise |
| ``accuracy`` | share of records whose likeliest value is true | ``mean max P`` |
| ``reconstruction_probability`` | mean probability of the true value | ``mean Σ P²`` |
| ``posterior_max`` | mean of the largest probability | |
| ``learning_gain`` | accuracy less that of the table's commonest value | ``mean max P − max prior`` |
| ``delta_growth`` | largest growth of a probability, over records and values | |
| ``linkage`` | mean probability of naming the record's own row | |

Error bars are binomial, of ratios by the delta method.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.attack import Inferred
from auditor.adversary.categorical_attack import ROUNDING, probabilities
from auditor.adversary.handed_back import check_real
from auditor.audit.base.records import CellContext
from auditor.errors import PluginError
from auditor.results.records import Measurement
from auditor.types import Array, Coalition, Indices


@dataclass
class Inferences:
    """Sums over records for one coalition, by metric."""

    rows: int = 0
    attribute: int = -1
    growth: float = 0.0
    prior_max: float = 0.0
    sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, found: Inferred | None, x: Array) -> None:
        """Count one block's records, with true values ``x``, shape (b, N)."""
        if found is None or not len(x):
            return
        check_inferred(found, *x.shape)
        P, claims, at = found.posterior, found.claims, np.arange(len(x))
        true = true_groups(found, x[:, found.attribute])
        likeliest = P.argmax(axis=1)
        right, claimed, possible = likeliest == true, claims >= 0, true >= 0
        counted: dict[str, NDArray[Any]] = {
            "claimed": claimed,
            "disclosed": claimed & (claims == true),
            "claim": P[at[claimed], claims[claimed]],
            "chance": found.prior[claims[claimed]],
            "doubt": 1.0 - np.where(possible, found.prior[true], 0.0),
            "accuracy": right,
            "reconstruction_probability": P[at[possible], true[possible]],
            "square": np.einsum("bv,bv->b", P, P),
            "learning_gain": right.astype(np.intp) - (true == found.prior.argmax()),
            "posterior_max": P[at, likeliest],
            "linkage": found.linked,
        }
        news = counted["disclosed"] - np.where(claimed, found.prior[claims], 0.0)
        counted |= {
            "news²": news**2,
            "news·doubt": news * counted["doubt"],
            "doubt²": counted["doubt"] ** 2,
        }
        for name, each in counted.items():
            self.sums[name] += float(each.sum())
        self.attribute, self.rows = found.attribute, self.rows + len(x)
        self.growth, self.prior_max = (
            max(self.growth, float((P.max(axis=0) - found.prior).max())),
            float(found.prior.max()),
        )


def check_inferred(found: Inferred, rows: int, width: int) -> None:
    """Refuse an invalid inference of a plugin.

    Raises
    ------
    PluginError
        With the expected form.
    """
    if (
        not isinstance(found, Inferred)
        or not isinstance(found.attribute, (int, np.integer))
        or not 0 <= found.attribute < width
    ):
        raise PluginError("the attack inferred nothing about an attribute of the table")
    check_real(found.values, found.groups, found.claims, found.linked)
    G = np.size(found.prior)
    probabilities(found.prior, (G,), "a prior")
    probabilities(found.posterior, (rows, G), "a posterior")
    for codes, shape, low in (
        (found.groups, np.shape(found.values), 0),
        (found.claims, (rows,), -1),
    ):
        if (
            np.shape(codes) != shape
            or codes.dtype.kind not in "iu"
            or not ((codes >= low) & (codes < G)).all()
        ):
            raise PluginError(
                f"groups must be whole numbers from {low} to {G - 1}, one for each value and each record"
            )
    if (
        np.ndim(found.values) != 1
        or not np.isfinite(found.values).all()
        or (np.diff(found.values) <= 0).any()
    ):
        raise PluginError("the values thought possible must be finite and rise")
    if (
        np.shape(found.linked) != (rows,)
        or not ((found.linked >= 0) & (found.linked <= 1 + ROUNDING)).all()
    ):
        raise PluginError("chances of naming a record's row must lie from 0 to 1")


def true_groups(found: Inferred, values: Array) -> Indices:
    """Return the group of each true value, shape (b,); −2 for an impossible value."""
    place = np.minimum(np.searchsorted(found.values, values), len(found.values) - 1)
    return np.where(found.values[place] == values, found.groups[place], -2)


def inference_records(
    context: CellContext, coalition: Coalition, counted: Inferences
) -> list[Measurement]:
    """Return the records of one coalition; none if the attack infers nothing."""
    n = counted.rows
    if not n:
        return []
    mean = {name: total / n for name, total in counted.sums.items()}
    mean |= {"delta_growth": counted.growth, "linkage": mean.pop("linkage")}
    chance, doubt, squares = (
        mean.pop("chance"),
        mean.pop("doubt"),
        [mean.pop(name) for name in ("news²", "news·doubt", "doubt²")],
    )
    mean["disclosed_beyond_chance"] = beyond = (
        (mean["disclosed"] - chance) / doubt if doubt else 0.0
    )
    # of news − beyond · doubt, whose mean is 0
    spread = squares[0] - 2.0 * beyond * squares[1] + beyond**2 * squares[2]
    errors = {"disclosed_beyond_chance": math.sqrt(max(0.0, spread) / n) / doubt if doubt else 0.0}
    theory = {
        "disclosed": mean["claim"],
        "disclosed_beyond_chance": (mean.pop("claim") - chance) / doubt if doubt else 0.0,
        "accuracy": mean["posterior_max"],
        "reconstruction_probability": mean.pop("square"),
        "learning_gain": mean["posterior_max"] - counted.prior_max,
    }
    records = []
    for metric, value in mean.items():
        share = min(1.0, max(0.0, abs(value)))
        binomial = math.sqrt(share * (1.0 - share) / n) if metric in theory else 0.0
        for attribute in (context.attributes[counted.attribute], "*"):
            records.append(
                context.estimate(
                    metric,
                    coalition,
                    value,
                    errors.get(metric, binomial),
                    theory.get(metric),
                    attribute=attribute,
                    error_bar="closed-form",
                )
            )
    return records
