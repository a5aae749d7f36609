"""From sums over records and closed forms to flat records of categorical cells."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from auditor.categorical.measures import Expected, Sums, worst_growth
from auditor.records import ALL, CellContext
from auditor.results import ErrorBar, Measurement
from auditor.scenario.coalitions import Coalition
from auditor.statistics import jackknife_error, quantile

PROBABILITIES = ("reconstruction_probability", "posterior_max", "accuracy", "rho_breach")


class Cell:
    """Writes the records of one coalition under one attack."""

    def __init__(self, context: CellContext, attack: str | None, knowledge: str | None, coalition: Coalition) -> None:
        self._context, self._attack, self._knowledge, self._coalition = context, attack, knowledge, coalition
        self.records: list[Measurement] = []

    def add(
        self, metric: str, value: float, error: float | None = None, theory: float | None = None, bar: ErrorBar = "none",
        attribute: str = ALL, bounds: tuple[float, float] = (-math.inf, math.inf), degrees: float = math.inf,
    ) -> None:  # fmt: skip
        """Add one record; its interval is cut at the bounds of what the metric can be."""
        low = high = None
        if error is not None:
            reach = quantile(0.975, degrees) * error
            low, high = max(bounds[0], value - reach), min(bounds[1], value + reach)
        context = self._context
        self.records.append(Measurement(
            context.sweep, context.scheme, self._knowledge, self._attack, self._coalition, context.levels_of(self._coalition),
            context.replicate, attribute, metric, value, error, low, high, theory, "ok", None, bar if error is not None else "none",
        ))  # fmt: skip


def cell_records(
    cell: Cell, sums: Sums, closed: Mapping[str, Expected] | None, prior: Any, scores: Any, odds: float | None
) -> None:
    """Add every mean, the growth of belief, and what follows from them.

    Parameters
    ----------
    cell : Cell
    sums : Sums
    closed : dict or None
        Closed forms by quantity, where there are any.
    prior : ndarray of shape (s,)
        The table's own.
    scores : ndarray of shape (s,) or None
        A number for each value; without it the normalized error is that of the values' indicators, whose variances sum to ``1 − Σ q²``.
    odds : float or None
        ``exp(ε)`` of the coalition, when the adversary's prior is the table's own.
    """
    variance = float(1.0 - prior @ prior if scores is None else prior @ (scores - prior @ scores) ** 2)
    for name in sums.means:
        value, error = sums.mean(name)
        theory = None if closed is None else closed[name].value
        bar: ErrorBar = "jackknife" if closed is None else "closed-form"
        error = error if closed is None else closed[name].std_error
        metric, _, predicate = name.partition("/")
        if metric == "squared_error":
            _add_errors(cell, value, error, theory, bar, 1 if scores is not None else prior.size)
            if variance > 0:
                cell.add("normalized_error", value / variance, error / variance, None if theory is None else theory / variance, bar,
                         bounds=(0.0, math.inf))  # fmt: skip
            continue
        bounds = (0.0, 1.0) if metric in PROBABILITIES else (-math.inf, math.inf)
        cell.add(metric, value, error, theory, bar, predicate or ALL, bounds)
        if metric == "accuracy":
            mode = float(prior.max())
            cell.add("accuracy_gain", value - mode, error, None if theory is None else theory - mode, bar)
    for name, growth in sums.growth.items():
        theory = worst_growth(prior, odds) if odds is not None and name == "*" else None
        cell.add("delta_growth", growth, None, theory, "none", name)


def _add_errors(cell: Cell, total: float, spread: float, expected: float | None, bar: ErrorBar, attributes: int) -> None:
    """Add errors per attribute: indicators are as many as there are values."""
    value, error, theory = total / attributes, spread / attributes, None if expected is None else expected / attributes
    cell.add("distortion", value, error, theory, bar, bounds=(0.0, math.inf))
    root = math.sqrt(value)
    cell.add("rmse", root, error * 0.5 / root if root > 0 else 0.0, None if theory is None else math.sqrt(theory), bar,
             bounds=(0.0, math.inf))  # fmt: skip


def gain_record(cell: Cell, sums: Sums, best: Sums, theory: float | None) -> None:
    """Add the collusion gain, on the reconstruction error: ``1 − Σ(1 − P_C(x)) / Σ(1 − P_b(x))``, with its jackknife error."""
    together, alone = sums.groups, best.groups
    total = alone.sum()
    if total <= 0:  # the best copy is the original: nothing is left to gain
        cell.add("collusion_gain", 0.0, 0.0, theory, "jackknife")
        return
    gain = 1.0 - together.sum() / total
    left = total - alone
    left_out = 1.0 - np.divide(together.sum() - together, left, out=np.ones_like(left), where=left > 0)
    error = float(jackknife_error(left_out)) if left.size > 1 else 0.0
    cell.add("collusion_gain", float(gain), error, theory, "jackknife", degrees=max(1, left.size - 1))
