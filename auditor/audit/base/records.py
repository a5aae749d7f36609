"""Flat records of results, from figures and arrays of errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from auditor.audit.numeric.error_bars import Errors, Figure, with_total
from auditor.audit.numeric.error_tally import Tally, spread_shares
from auditor.base.types import Array, Coalition
from auditor.numerics.statistics import quantile
from auditor.results.measurements import Coded, Measurements
from auditor.results.records import Distribution, ErrorBar, Measurement, Status

ALL = "*"
"""The attribute of figures over all attributes."""
UNBOUNDED = -math.inf, math.inf


class Bar(NamedTuple):
    """Error bar: standard error, half-width of the 95 % interval, and source."""

    std_error: float
    reach: float
    source: ErrorBar

    @classmethod
    def normal(cls, std_error: float, source: ErrorBar, degrees: float = math.inf) -> Bar:
        """Bar of a normal figure, or by Student's t."""
        return cls(std_error, quantile(0.975, degrees) * std_error, source)

    def times(self, factor: float) -> Bar:
        """Bar of a multiple of the figure."""
        return Bar(self.std_error * factor, self.reach * factor, self.source)


@dataclass(frozen=True, repr=False)
class CellContext:
    """Common part of the records of one release.

    Attributes
    ----------
    variances : ndarray of shape (N,)
        Each attribute's variance in the table, divisor n.
    copies : int
        Number of released copies; 0 if unknown.
    attack, knowledge : str or None
        None for figures of the release itself.
    """

    sweep: dict[str, Any]
    scheme: str
    levels: tuple[float, ...]
    replicate: int
    attributes: tuple[str, ...]
    variances: Array
    copies: int
    attack: str | None = None
    knowledge: str | None = None

    def __post_init__(self) -> None:
        names = tuple("'*'" if name == ALL else name for name in self.attributes)
        object.__setattr__(self, "attributes", names)

    def levels_of(self, coalition: Coalition) -> tuple[float, ...]:
        """Levels of a coalition's copies; empty if unknown."""
        return tuple(self.levels[copy - 1] for copy in coalition) if self.levels else ()

    def of_columns(self, attributes: tuple[str, ...], variances: Array) -> CellContext:
        """Context for other columns."""
        return replace(self, attributes=attributes, variances=variances)

    def under(self, attack: str | None, knowledge: str | None) -> CellContext:
        """Context for one attack with one state of knowledge."""
        return replace(self, attack=attack, knowledge=knowledge)

    @property
    def everybody(self) -> Coalition:
        """All copies."""
        return tuple(range(1, self.copies + 1))

    def empty(self, coalition: Coalition | None, status: str, reason: str) -> Measurement:
        """Record of a cell without a measurement; by default for all copies."""
        members = self.everybody if coalition is None else coalition
        return self.record("distortion", members, status=cast(Status, status), reason=reason)

    def record(
        self,
        metric: str,
        coalition: Coalition,
        value: float | None = None,
        std_error: float | None = None,
        interval: tuple[float | None, float | None] = (None, None),
        theory: float | None = None,
        *,
        attribute: str = ALL,
        status: Status = "ok",
        reason: str | None = None,
        error_bar: ErrorBar = "none",
    ) -> Measurement:
        """One record."""
        low, high = interval
        return Measurement(
            sweep=self.sweep,
            scheme=self.scheme,
            knowledge=self.knowledge,
            attack=self.attack,
            coalition=coalition,
            levels=self.levels_of(coalition),
            replicate=self.replicate,
            attribute=attribute,
            metric=metric,
            value=value,
            std_error=std_error,
            ci_low=low,
            ci_high=high,
            theory=theory,
            status=status,
            reason=reason,
            error_bar=error_bar,
        )

    def figure(
        self,
        metric: str,
        coalition: Coalition,
        value: float,
        bar: Bar | None = None,
        theory: float | None = None,
        *,
        attribute: str = ALL,
        bounds: tuple[float, float] = UNBOUNDED,
        unknown: str | None = None,
    ) -> Measurement:
        """One record, with its 95 % interval cut at the metric's bounds.

        ``unknown`` is the reason for a missing error bar. A theory of NaN is none.
        """
        interval: tuple[float | None, float | None] = None, None
        if bar is not None:
            interval = max(bounds[0], value - bar.reach), min(bounds[1], value + bar.reach)
        return self.record(
            metric,
            coalition,
            value,
            bar and bar.std_error,
            interval,
            None if theory is None else number(theory),
            attribute=attribute,
            reason=unknown if bar is None else None,
            error_bar=bar.source if bar else "none",
        )

    def estimate(
        self,
        metric: str,
        coalition: Coalition,
        value: float,
        std_error: float,
        theory: float | None = None,
        *,
        bounds: tuple[float, float] = UNBOUNDED,
        degrees: float = math.inf,
        attribute: str = ALL,
        error_bar: ErrorBar = "sampling",
    ) -> Measurement:
        """One record with an interval by Student's t."""
        bar = Bar.normal(std_error, error_bar, degrees)
        return self.figure(
            metric, coalition, value, bar, theory, attribute=attribute, bounds=bounds
        )


@dataclass(frozen=True)
class Cells:
    """Coalitions under one attack, or of a release; some are wanted.

    Attributes
    ----------
    wanted : sequence of int
        Places of coalitions.
    """

    context: CellContext
    coalitions: Sequence[Coalition]
    wanted: Sequence[int]

    @classmethod
    def all(cls, context: CellContext, coalitions: Sequence[Coalition]) -> Cells:
        """Cells that are all wanted."""
        return cls(context, coalitions, range(len(coalitions)))

    def records(
        self,
        metric: str,
        figure: Figure,
        bar: ErrorBar,
        bounds: tuple[float, float] = (0.0, math.inf),
    ) -> list[Measurement]:
        """A metric's records, see ``table``."""
        return list(self.table({metric: (figure, bounds)}, bar))

    def table(
        self,
        figures: Mapping[str, tuple[Figure, tuple[float, float]]],
        bar: ErrorBar,
        missing: ErrorBar = "none",
    ) -> Measurements:
        """Records of metrics, each with its bounds.

        Arrays have shape (B, N), or (B, N + 1) with ``*`` last; NaN for none. ``missing`` replaces
        the source of an absent error bar.
        """
        context, places = self.context, np.asarray(self.wanted, dtype=np.intp)

        def stacked(of: Callable[[Figure, float, float], Array]) -> Array:
            return np.stack([of(one, *ends)[places] for one, ends in figures.values()], axis=-1)

        value = stacked(lambda one, low, high: one.value)
        coalition, attribute, metric = found = np.nonzero(~np.isnan(value))
        numbers = {
            "value": value,
            "std_error": stacked(lambda one, low, high: one.std_error),
            "ci_low": stacked(lambda one, low, high: np.maximum(one.value - one.below, low)),
            "ci_high": stacked(lambda one, low, high: np.minimum(one.value + one.above, high)),
            "theory": stacked(lambda one, low, high: one.theory),
        }
        numbers = {field: column[found] for field, column in numbers.items()}
        held = [self.coalitions[place] for place in self.wanted]
        shared = {
            "sweep": context.sweep,
            "scheme": context.scheme,
            "knowledge": context.knowledge,
            "attack": context.attack,
            "replicate": context.replicate,
            "status": "ok",
            "reason": None,
        }
        return Measurements(
            numbers
            | {field: Coded(np.zeros_like(metric), [one]) for field, one in shared.items()}
            | {
                "coalition": Coded(coalition, held),
                "levels": Coded(coalition, [context.levels_of(one) for one in held]),
                "attribute": Coded(attribute, [*context.attributes, ALL]),
                "metric": Coded(metric, list(figures)),
                "error_bar": Coded(np.isnan(numbers["std_error"]).astype(np.intp), [bar, missing]),
            }
        )

    def withheld(
        self, metric: str, reason: str, attributes: Sequence[str] = (ALL,)
    ) -> list[Measurement]:
        """Records with the reason for no measurement."""
        return [
            self.context.record(
                metric, self.coalitions[b], attribute=name, status="not-applicable", reason=reason
            )
            for b in self.wanted
            for name in attributes
        ]


def scheme_record(context: CellContext, metric: str, value: float) -> Measurement:
    """Figure of the whole release."""
    return context.record(metric, context.everybody, value)


def promise_records(
    context: CellContext, promises: Mapping[Coalition, Mapping[str, float]]
) -> list[Measurement]:
    """Kept promises of a scheme, by coalition and metric."""
    return [
        context.record(metric, coalition, value)
        for coalition, kept in promises.items()
        for metric, value in kept.items()
    ]


def error_records(cells: Cells, errors: Errors) -> Measurements:
    """Distortion, rmse, normalized error and gain of wanted coalitions."""
    positive, distortion = (0.0, math.inf), errors.distortion
    redrawn = errors.bar in ("redraws", "sampling", "replicates-needed")
    return cells.table(
        {
            "distortion": (distortion, positive),
            "rmse": (distortion.root(), positive),
            "normalized_error": (distortion.over(with_total(cells.context.variances)), positive),
            "collusion_gain": (errors.gain, UNBOUNDED),
        },
        errors.bar,
        "replicates-needed" if redrawn else "none",
    )


def number(value: float) -> float | None:
    """Number, or None for NaN."""
    return None if math.isnan(value) else value


def distribution_records(cells: Cells, tally: Tally) -> list[Distribution]:
    """Distribution of absolute errors over the records, by attribute."""
    if "counts" not in tally.sums:
        return []
    context = cells.context
    shares = spread_shares(tally.sums["counts"], tally.spread_rows)
    edges = np.linspace(0.0, tally.reach, tally.bins + 1)[:, None] * tally.scale
    return [
        Distribution(
            sweep=context.sweep,
            scheme=context.scheme,
            knowledge=str(context.knowledge),
            attack=str(context.attack),
            coalition=cells.coalitions[place],
            replicate=context.replicate,
            attribute=attribute,
            edges=tuple(edges[:, column].tolist()),
            shares=tuple(shares[place, column, :-1].tolist()),
            above=float(shares[place, column, -1]),
        )
        for place in cells.wanted
        for column, attribute in enumerate(context.attributes)
    ]
