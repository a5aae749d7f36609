"""Records of categorical cells, from sums over records and closed forms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from auditor.audit.base.records import ALL, CellContext
from auditor.audit.categorical.posterior_measures import Expected, Sums, worst_growth
from auditor.numerics.statistics import jackknife_error, quantile
from auditor.results.records import BELIEVED, ErrorBar, Measurement
from auditor.types import Array, Coalition

PROBABILITIES = ("reconstruction_probability", "posterior_max", "accuracy", "rho_breach")

ONE_RELEASE = "one release does not tell how far this would vary: ask for five replicates or more"
FILES = "copies from files do not tell how far this would vary: what the adversary learnt or was given would be other the next time"
"""Reasons for a figure without an interval."""


class Bar(NamedTuple):
    """Error bar: standard error, half-width of the 95 % interval, and source."""

    std_error: float
    reach: float
    source: ErrorBar

    @classmethod
    def normal(cls, std_error: float, source: ErrorBar, degrees: float = math.inf) -> Bar:
        """Return the bar of a normal figure, or by Student's t."""
        return cls(std_error, quantile(0.975, degrees) * std_error, source)

    def times(self, factor: float) -> Bar:
        """Return the bar of a multiple of the figure."""
        return Bar(self.std_error * factor, self.reach * factor, self.source)


Bars = Mapping[str, Bar]
"""By quantity, or metric."""


class Value(NamedTuple):
    """A measured value, with its error bar and theory, if any."""

    value: float
    bar: Bar | None = None
    theory: float | None = None

    def over(self, scale: float) -> Value:
        """Return the value divided by a scale."""
        theory = None if self.theory is None else self.theory / scale
        return Value(self.value / scale, self.bar and self.bar.times(1.0 / scale), theory)

    def beyond(self, chance: float) -> Value:
        """Return the difference from a constant."""
        theory = None if self.theory is None else self.theory - chance
        return Value(self.value - chance, self.bar, theory)

    def root(self) -> Value:
        """Return the square root, with a standard error by the delta method."""
        root = math.sqrt(self.value)
        bar = self.bar and self.bar.times(0.5 / root if root > 0 else 0.0)
        return Value(root, bar, None if self.theory is None else math.sqrt(self.theory))


class Cell:
    """The records of one coalition under one attack.

    ``unknown`` is the reason for figures without an interval.
    """

    def __init__(
        self, context: CellContext, coalition: Coalition, unknown: str = ONE_RELEASE
    ) -> None:
        self._context, self._coalition, self._unknown = context, coalition, unknown
        self.records: list[Measurement] = []

    def add(
        self,
        metric: str,
        value: float,
        bar: Bar | None = None,
        theory: float | None = None,
        attribute: str = ALL,
        bounds: tuple[float, float] = (-math.inf, math.inf),
        varies: bool = False,
    ) -> None:
        """Add one record, with its interval cut at the metric's bounds.

        ``varies``: without an error bar, the record states the reason.
        """
        interval: tuple[float | None, float | None] = None, None
        if bar is not None:
            interval = max(bounds[0], value - bar.reach), min(bounds[1], value + bar.reach)
        self.records.append(
            self._context.record(
                metric,
                self._coalition,
                value,
                bar and bar.std_error,
                interval,
                theory,
                attribute=attribute,
                reason=self._unknown if varies and bar is None else None,
                error_bar=bar.source if bar else "none",
            )
        )


def closed_bars(closed: Mapping[str, Expected]) -> Bars:
    """Return the error bars from closed forms."""
    return {name: Bar.normal(form.std_error, "closed-form") for name, form in closed.items()}


def variance(prior: Array, scores: Array | None) -> float:
    """Return the variance of scores under shares of shape (s,), or of indicators in total."""
    return float(1.0 - prior @ prior if scores is None else prior @ (scores - prior @ scores) ** 2)


def cell_records(
    cell: Cell,
    sums: Sums,
    closed: Mapping[str, Expected] | None,
    bars: Bars,
    prior: Any,
    scores: Any,
    odds: Array | None,
    parts: Mapping[str, Array] | None = None,
) -> None:
    """Add the records of every mean, and of the growth of belief.

    Parameters
    ----------
    closed : dict or None
        Closed forms by quantity.
    bars : dict
        Error bars by quantity.
    prior : ndarray of shape (s,)
        The table's own.
    scores : ndarray of shape (s,) or None
        A number for each value; None: the normalized error is over indicators, whose variances sum
        to ``1 − Σ q²``.
    odds : ndarray of shape (s,) or None
        Factor on the odds of a value that all copies show, if the adversary's prior is the table's.
    parts : dict of str to ndarray, optional
        In a domain of several attributes, the shares of each attribute's values.
    """
    positive = (0.0, math.inf)
    for name in sums.means:
        theory = None if closed is None else closed[name].value
        found, (metric, _, about) = (
            Value(sums.mean(name), bars.get(name), theory),
            name.partition("/"),
        )
        about = about or ALL
        shares = (parts or {}).get(about, prior)
        if metric == "squared_error":
            own = None if about != ALL else scores
            if about == ALL:
                # mean over indicators if there are no scores
                each = found.over(1 if scores is not None else prior.size)
                cell.add("distortion", *each, bounds=positive, varies=True)
                cell.add("rmse", *each.root(), bounds=positive, varies=True)
            if (whole := variance(shares, own)) > 0:
                cell.add("normalized_error", *found.over(whole), about, positive, True)
            continue
        bounds = (0.0, 1.0) if metric in PROBABILITIES else (-math.inf, math.inf)
        cell.add(metric, *found, about, bounds, True)
        if metric == "accuracy":
            cell.add("accuracy_gain", *found.beyond(float(shares.max())), about, varies=True)
    for name, growth in sums.growth.items():
        theory = worst_growth(prior, odds) if odds is not None and name == ALL else None
        cell.add("delta_growth", growth, None, theory, name)


def belief_record(cell: Cell, sums: Sums, prior: Array) -> None:
    """Add the largest growth of belief in a true value, if the prior is the table's."""
    if "mutual_information" in sums.means and prior.size == sums.counts.size:
        believed = sums.most_believed(prior)
        if believed is not None:
            cell.add(BELIEVED, believed[0], Bar.normal(believed[1], "sampling"), bounds=(0.0, 1.0))


def gain_record(
    cell: Cell, sums: Sums, best: Sums, theory: float | None, bars: Bars | None = None
) -> None:
    """Add the collusion gain in reconstruction error, ``1 − Σ(1 − P_C(x)) / Σ(1 − P_b(x))``.

    Without ``bars``, with a jackknife error.
    """
    together, alone = sums.errors, best.errors
    total = alone.sum()
    if total <= 0:  # the best copy is the original
        cell.add("collusion_gain", 0.0, Bar(0.0, 0.0, "jackknife"), theory)
        return
    gain = float(1.0 - together.sum() / total)
    if bars is not None:
        cell.add("collusion_gain", gain, bars.get("collusion_gain"), theory, varies=True)
        return
    left = total - alone
    left_out = 1.0 - np.divide(
        together.sum() - together, left, out=np.ones_like(left), where=left > 0
    )
    error = float(jackknife_error(left_out)) if left.size > 1 else 0.0
    bar = Bar.normal(error, "jackknife", max(1, left.size - 1))
    cell.add("collusion_gain", gain, bar, theory)
