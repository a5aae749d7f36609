"""From sums over records and closed forms to flat records of categorical cells."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from auditor.audit.base.records import ALL, CellContext
from auditor.audit.categorical.posterior_measures import Expected, Sums, worst_growth
from auditor.numerics.statistics import jackknife_error, quantile
from auditor.results.in_clear import BELIEVED
from auditor.results.records import ErrorBar, Measurement
from auditor.types import Array, Coalition

PROBABILITIES = ("reconstruction_probability", "posterior_max", "accuracy", "rho_breach")


class Bar(NamedTuple):
    """The error bar of one figure: a standard error, how far its 95 % interval reaches, and where they come from."""

    std_error: float
    reach: float
    source: ErrorBar

    @classmethod
    def normal(cls, std_error: float, source: ErrorBar, degrees: float = math.inf) -> Bar:
        """Return the bar of a normal figure, or by Student's t."""
        return cls(std_error, quantile(0.975, degrees) * std_error, source)

    def times(self, factor: float) -> Bar:
        """Return the bar of a figure that is so many times as large."""
        return Bar(self.std_error * factor, self.reach * factor, self.source)


Bars = Mapping[str, Bar]
"""By quantity, or metric."""

ONE_RELEASE = "one release does not tell how far this would vary: ask for five replicates or more"
FILES = "copies from files do not tell how far this would vary: what the adversary learnt or was given would be other the next time"
"""Why a figure has no interval, where noise moves it and its spread is not known."""


class Cell:
    """Writes the records of one coalition under one attack."""

    def __init__(
        self,
        context: CellContext,
        attack: str | None,
        knowledge: str | None,
        coalition: Coalition,
        unknown: str = ONE_RELEASE,
    ) -> None:
        self._context, self._attack, self._knowledge, self._coalition = (
            context,
            attack,
            knowledge,
            coalition,
        )
        self._unknown = unknown
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
        """Add one record, whose interval is cut at the bounds of what the metric can be; ``varies``: it needs one, and says so without."""
        interval = (
            (None, None)
            if bar is None
            else (max(bounds[0], value - bar.reach), min(bounds[1], value + bar.reach))
        )
        self.records.append(
            self._context.record(
                metric,
                self._coalition,
                value,
                bar and bar.std_error,
                interval,
                theory,
                attack=self._attack,
                knowledge=self._knowledge,
                attribute=attribute,
                reason=self._unknown if varies and bar is None else None,
                error_bar=bar.source if bar else "none",
            )
        )


def closed_bars(closed: Mapping[str, Expected]) -> Bars:
    """Return the error bars that closed forms give."""
    return {name: Bar.normal(form.std_error, "closed-form") for name, form in closed.items()}


def variance(prior: Array, scores: Array | None) -> float:
    """Return the variance of values drawn from shares of shape (s,): of their scores, or without any the sum of their indicators'."""
    return float(1.0 - prior @ prior if scores is None else prior @ (scores - prior @ scores) ** 2)


def cell_records(
    cell: Cell,
    sums: Sums,
    closed: Mapping[str, Expected] | None,
    bars: Bars,
    prior: Any,
    scores: Any,
    odds: Array | None,
    parts: Mapping[str, Array] = MappingProxyType({}),
) -> None:
    """Add every mean, the growth of belief, and what follows from them.

    Parameters
    ----------
    cell : Cell
    sums : Sums
    closed : dict or None
        Closed forms by quantity, where there are any.
    bars : dict
        Error bars by quantity; a figure that has none there gets no interval.
    prior : ndarray of shape (s,)
        The table's own.
    scores : ndarray of shape (s,) or None
        A number for each value; without it the normalized error is that of the values' indicators,
        whose variances sum to ``1 − Σ q²``.
    odds : ndarray of shape (s,) or None
        By how much the coalition multiplies the odds of a value that all its copies show, when the
        adversary's prior is the table's own.
    parts : dict of str to ndarray
        Of a domain of several attributes, the shares of the values of each.
    """
    whole = variance(prior, scores)
    for name in sums.means:
        value, bar = sums.mean(name), bars.get(name)
        theory = None if closed is None else closed[name].value
        metric, _, predicate = name.partition("/")
        if predicate in parts and metric in ("squared_error", "accuracy"):
            _add_part(cell, metric, predicate, value, bar, theory, parts[predicate])
            continue
        if metric == "squared_error":
            _add_errors(cell, value, bar, theory, 1 if scores is not None else prior.size)
            _add_share(cell, value, bar, theory, whole)
            continue
        bounds = (0.0, 1.0) if metric in PROBABILITIES else (-math.inf, math.inf)
        cell.add(metric, value, bar, theory, predicate or ALL, bounds, True)
        if metric == "accuracy":
            _add_beyond(cell, value, bar, theory, prior)
    for name, growth in sums.growth.items():
        theory = worst_growth(prior, odds) if odds is not None and name == "*" else None
        cell.add("delta_growth", growth, None, theory, name)


def belief_record(cell: Cell, sums: Sums, prior: Array) -> None:
    """Add how far belief in a value rises, of the value of which it does most; nothing where it began elsewhere."""
    believed = (
        sums.most_believed(prior)
        if "mutual_information" in sums.means and prior.size == sums.size
        else None
    )
    if believed is not None:
        cell.add(BELIEVED, believed[0], Bar.normal(believed[1], "sampling"), bounds=(0.0, 1.0))


def _add_part(
    cell: Cell,
    metric: str,
    name: str,
    value: float,
    bar: Bar | None,
    theory: float | None,
    shares: Array,
) -> None:
    """Add the normalized error of one attribute of several, or its right guesses and what of these is beyond its commonest value."""
    if metric == "squared_error":
        _add_share(cell, value, bar, theory, variance(shares, None), name)
        return
    cell.add("accuracy", value, bar, theory, name, (0.0, 1.0), True)
    _add_beyond(cell, value, bar, theory, shares, name)


def _add_share(
    cell: Cell, value: float, bar: Bar | None, theory: float | None, whole: float, name: str = ALL
) -> None:
    """Add an error as a share of what there is to know; nothing where that is nothing."""
    if whole > 0:
        expected = None if theory is None else theory / whole
        cell.add(
            "normalized_error",
            value / whole,
            bar and bar.times(1.0 / whole),
            expected,
            name,
            (0.0, math.inf),
            True,
        )


def _add_beyond(
    cell: Cell, value: float, bar: Bar | None, theory: float | None, shares: Array, name: str = ALL
) -> None:
    """Add what of right guesses is beyond those of the commonest value."""
    mode = float(shares.max())
    cell.add(
        "accuracy_gain",
        value - mode,
        bar,
        None if theory is None else theory - mode,
        name,
        varies=True,
    )


def _add_errors(
    cell: Cell, total: float, bar: Bar | None, expected: float | None, attributes: int
) -> None:
    """Add errors per attribute: indicators are as many as there are values."""
    value, theory = total / attributes, None if expected is None else expected / attributes
    each, root = bar and bar.times(1.0 / attributes), math.sqrt(value)
    cell.add("distortion", value, each, theory, bounds=(0.0, math.inf), varies=True)
    cell.add(
        "rmse",
        root,
        each and each.times(0.5 / root if root > 0 else 0.0),
        None if theory is None else math.sqrt(theory),
        bounds=(0.0, math.inf),
        varies=True,
    )


def gain_record(
    cell: Cell, sums: Sums, best: Sums, theory: float | None, bars: Bars | None = None
) -> None:
    """Add the collusion gain, on the reconstruction error: ``1 − Σ(1 − P_C(x)) / Σ(1 − P_b(x))``; without bars with its jackknife error."""
    together, alone = sums.groups, best.groups
    total = alone.sum()
    if total <= 0:  # the best copy is the original: nothing is left to gain
        cell.add("collusion_gain", 0.0, Bar(0.0, 0.0, "jackknife"), theory)
        return
    gain = 1.0 - together.sum() / total
    if bars is not None:
        cell.add("collusion_gain", float(gain), bars.get("collusion_gain"), theory, varies=True)
        return
    left = total - alone
    left_out = 1.0 - np.divide(
        together.sum() - together, left, out=np.ones_like(left), where=left > 0
    )
    error = float(jackknife_error(left_out)) if left.size > 1 else 0.0
    cell.add(
        "collusion_gain", float(gain), Bar.normal(error, "jackknife", max(1, left.size - 1)), theory
    )
