"""From arrays of errors to flat records: one place that knows how a metric follows from a squared error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from auditor.blocks import JACKKNIFE_GROUPS
from auditor.linear import Errors, with_total
from auditor.results import Distribution, ErrorBar, Measurement, Status
from auditor.rows import Tally
from auditor.scenario.coalitions import Coalition
from auditor.statistics import quantile

Array = NDArray[np.float64]

ALL = "*"


@dataclass(frozen=True)
class CellContext:
    """What every record of one release shares.

    Attributes
    ----------
    variances : ndarray of shape (N,)
        Each attribute's variance in the table, divisor n.
    """

    sweep: dict[str, Any]
    scheme: str
    levels: tuple[float, ...]
    replicate: int
    attributes: tuple[str, ...]
    variances: Array = field(repr=False)

    def levels_of(self, coalition: Coalition) -> tuple[float, ...]:
        """Return the levels of a coalition's copies; none when nobody has said what they are, as of published copies."""
        levels = tuple(self.levels[copy - 1] for copy in coalition) if self.levels else ()
        return () if any(map(math.isnan, levels)) else levels

    def empty(self, attack: str, knowledge: str, coalition: Coalition | None, status: str, reason: str) -> Measurement:
        """Return the record of a cell that was not measured; without a coalition it stands for all copies."""
        members = coalition if coalition is not None else tuple(range(1, len(self.levels) + 1))
        return Measurement(
            self.sweep, self.scheme, knowledge, attack, members, self.levels_of(members), self.replicate, ALL, "distortion",
            None, None, None, None, None, cast(Status, status), reason, "none",
        )  # fmt: skip


def scheme_record(context: CellContext, metric: str, value: float) -> Measurement:
    """Return a figure of the release itself, which no attack has a part in."""
    everybody = tuple(range(1, len(context.levels) + 1))
    return Measurement(
        context.sweep, context.scheme, None, None, everybody, context.levels_of(everybody), context.replicate, ALL, metric,
        value, None, None, None, None, "ok", None, "none",
    )  # fmt: skip


def error_records(
    context: CellContext, attack: str, knowledge: str, coalitions: Sequence[Coalition], wanted: Sequence[int], errors: Errors
) -> list[Measurement]:
    """Return distortion, rmse, normalized error and collusion gain of every wanted coalition, by attribute and together."""
    names = (*context.attributes, ALL)
    scale = with_total(context.variances)
    bar: ErrorBar = "closed-form" if errors.closed else "jackknife"
    t = quantile(0.975) if errors.closed else quantile(0.975, JACKKNIFE_GROUPS - 1)
    rmse, rmse_error = _root(errors.distortion, errors.std_error)
    columns = (
        ("distortion", errors.distortion, errors.std_error, errors.theory, True),
        ("rmse", rmse, rmse_error, np.sqrt(errors.theory), True),
        ("normalized_error", errors.distortion / scale, errors.std_error / scale, errors.theory / scale, True),
        ("collusion_gain", errors.gain, errors.gain_error, errors.gain_theory, False),
    )
    tables = [(metric, *_bounded(value, error, t, positive), theory.tolist()) for metric, value, error, theory, positive in columns]
    records = []
    for place in wanted:
        coalition, levels = coalitions[place], context.levels_of(coalitions[place])
        for column, attribute in enumerate(names):
            for metric, value, error, low, high, theory in tables:
                records.append(Measurement(
                    context.sweep, context.scheme, knowledge, attack, coalition, levels, context.replicate, attribute, metric,
                    value[place][column], _number(error[place][column]), _number(low[place][column]), _number(high[place][column]),
                    _number(theory[place][column]), "ok", None, bar if not math.isnan(error[place][column]) else "none",
                ))  # fmt: skip
    return records


def _root(value: Array, error: Array) -> tuple[Array, Array]:
    """Return the square root and its standard error by the delta method; an exact rebuild has none."""
    root = np.sqrt(value)
    slope = np.divide(0.5, root, out=np.zeros_like(root), where=root > 0)
    return root, error * slope


def _bounded(value: Array, error: Array, t: float, positive: bool) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    low = value - t * error
    low = np.clip(low, 0.0, None) if positive else low
    return value.tolist(), error.tolist(), low.tolist(), (value + t * error).tolist()


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def within_records(
    context: CellContext, attack: str, knowledge: str, coalitions: Sequence[Coalition], wanted: Sequence[int], tally: Tally
) -> list[Measurement]:
    """Return the share of values recovered within the tolerance; ``*`` is over all attributes' values.

    With exact chances p of a hit the share's standard error is ``sqrt(Σ p(1−p))/n``; without, the binomial one, which is a little
    wide because records differ.
    """
    if tally.hits is None:
        return []
    n, N = tally.rows, len(context.attributes)
    share = with_total(tally.hits / n)
    known = tally.expected_hits is not None and tally.hit_variance is not None
    theory = with_total(tally.expected_hits / n) if tally.expected_hits is not None else np.full_like(share, np.nan)
    each = tally.hit_variance / n**2 if tally.hit_variance is not None else share[:, :N] * (1 - share[:, :N]) / n
    # Hits of one record's attributes are dependent; (Σ se)² bounds the variance of their sum.
    error = np.concatenate([np.sqrt(each), np.sqrt(each).mean(axis=1, keepdims=True)], axis=1)
    bar: ErrorBar = "closed-form" if known else "jackknife"
    records = []
    for place in wanted:
        coalition = coalitions[place]
        for column, attribute in enumerate((*context.attributes, ALL)):
            value, std = float(share[place, column]), float(error[place, column])
            low, high = max(0.0, value - quantile(0.975) * std), min(1.0, value + quantile(0.975) * std)
            records.append(Measurement(
                context.sweep, context.scheme, knowledge, attack, coalition, context.levels_of(coalition), context.replicate,
                attribute, "within", value, std, low, high, _number(float(theory[place, column])), "ok", None, bar,
            ))  # fmt: skip
    return records


def distribution_records(
    context: CellContext, attack: str, knowledge: str, coalitions: Sequence[Coalition], wanted: Sequence[int], tally: Tally
) -> list[Distribution]:
    """Return the spread of absolute errors over the records, by attribute."""
    if tally.counts is None:
        return []
    shares = tally.counts / tally.rows
    spreads = []
    for place in wanted:
        for column, attribute in enumerate(context.attributes):
            edges = np.linspace(0.0, tally.reach * tally.scale[column], tally.bins + 1)
            spreads.append(Distribution(
                context.sweep, context.scheme, knowledge, attack, coalitions[place], context.replicate, attribute,
                tuple(edges.tolist()), tuple(shares[place, column, :-1].tolist()), float(shares[place, column, -1]),
            ))  # fmt: skip
    return spreads
