"""Levels of perturbation: parsing and resolution to numbers."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from auditor.errors import AuditorError, did_you_mean
from auditor.numerics.random_streams import stream
from auditor.parameters import is_whole, whole

MOST_COPIES = 10_000
"""Limit against typing errors: a million copies would need terabytes for their covariance."""

RANGES = ("uniform", "log-uniform", "linear")
DRAWN = ("uniform", "log-uniform")
CURRENCIES = {"scale": {"variance": 1.0}, "epsilon": "bounds", "gaussian-dp": "bounds"}
"""Other units of levels, and the noise at level 1 (``auditor.scenario.stated_levels``)."""
ORDERS = ("ascending", "descending")

LARGEST = sys.float_info.max


@dataclass(frozen=True)
class Levels:
    """A list of levels in order of release, or a range with ``count`` levels.

    Attributes
    ----------
    values : tuple of float or None
        The list.
    kind : 'uniform', 'log-uniform', 'linear' or None
        Uniform draws, draws uniform in the logarithm, or even spacing with both ends.
    low, high : float
        Ends of the range.
    count : int
        Number of levels.
    order : 'ascending', 'descending' or None
        Order of release; None keeps the draws' order, or low to high.
    out_of : int
        With an order: draw and sort this many, and release the first ``count``; 0 means ``count``.
    each_replicate : bool
        Whether every replicate draws new levels, so that figures are means over levels and noise.
    currency : 'scale', 'epsilon', 'gaussian-dp' or None
        Unit of stated levels other than noise multiples; ``values`` is then None until resolved.
    stated : tuple of float
        The levels in this unit.
    """

    values: tuple[float, ...] | None = None
    kind: str | None = None
    low: float = 0.0
    high: float = 0.0
    count: int = 0
    order: str | None = None
    out_of: int = 0
    each_replicate: bool = False
    currency: str | None = None
    stated: tuple[float, ...] = ()

    def spec(self) -> Any:
        """Return the levels in scenario form."""
        if self.currency is not None:
            return {self.currency: list(self.stated)}
        if self.values is not None:
            return list(self.values)
        extra: dict[str, Any] = {"order": self.order} if self.order else {}
        extra |= {"out-of": self.out_of} if self.out_of else {}
        extra |= {"each-replicate": True} if self.each_replicate else {}
        return {str(self.kind): [self.low, self.high], "count": self.count, **extra}

    def resolve(self, seed: int, replicate: int = 1) -> tuple[float, ...]:
        """Return the levels in order of release.

        Random levels depend only on seed and range, and on the replicate if ``each_replicate``.
        Schemes with equal ranges get equal draws. A larger count extends the draws of a smaller
        one.
        """
        if self.values is not None:
            return self.values
        if self.currency is not None:
            raise AuditorError(f"levels by {self.currency} need the data's bounds")
        if self.order is not None:
            every = replace(self, count=max(self.count, self.out_of), order=None, out_of=0).resolve(
                seed, replicate
            )
            return tuple(sorted(every, reverse=self.order == "descending")[: self.count])
        if self.kind == "linear":
            return tuple(float(level) for level in np.linspace(self.low, self.high, self.count))
        # the first replicate keeps the common draws
        again = (replicate,) if self.each_replicate and replicate > 1 else ()
        rng = stream(seed, "levels", self.kind, self.low, self.high, *again)
        if self.kind == "uniform":
            return tuple(float(level) for level in rng.uniform(self.low, self.high, self.count))
        exponents = rng.uniform(np.log(self.low), np.log(self.high), self.count)
        return tuple(float(level) for level in np.exp(exponents))


def parse_levels(value: Any) -> Levels:
    """Parse levels from a scenario or a Python call.

    Raises
    ------
    ValueError
        Invalid levels; the message states the expected form.
    """
    if isinstance(value, Levels):
        return value
    if isinstance(value, dict) and not value.keys().isdisjoint(CURRENCIES):
        return _parse_stated(value)
    if isinstance(value, dict):
        return _parse_range(value)
    if not isinstance(value, (list, tuple, np.ndarray)) or len(value) == 0:
        forms = "{uniform|log-uniform|linear: [low, high], count: m} or {scale|epsilon|gaussian-dp: [first, …]}"
        raise ValueError(f"must be a list of levels, {forms}; got {_short(value)}")
    if len(value) > MOST_COPIES:
        raise ValueError(f"must name at most {MOST_COPIES:,} copies; got {len(value):,}")
    for number, level in enumerate(value, start=1):
        if not _is_number(level):
            raise ValueError(f"must hold numbers only; level {number} is {_short(level)}")
    return Levels(values=tuple(float(level) for level in value))


def _parse_stated(value: dict[Any, Any]) -> Levels:
    (currency, stated), *others = value.items()
    if others or not isinstance(stated, (list, tuple)) or not 0 < len(stated) <= MOST_COPIES:
        raise ValueError(f"must be a list alone, as {{epsilon: [1, 0.5]}}; got {_short(value)}")
    for number, one in enumerate(stated, start=1):
        if not _is_number(one) or not one > 0:
            raise ValueError(
                f"must hold numbers above 0; {currency} of copy {number} is {_short(one)}"
            )
    return Levels(currency=currency, stated=tuple(float(one) for one in stated))


def _parse_range(value: dict[Any, Any]) -> Levels:
    kinds = [key for key in value if key in RANGES]
    unknown = [
        key for key in value if key not in (*RANGES, "count", "order", "out-of", "each-replicate")
    ]
    if len(kinds) != 1 or unknown:
        meant = did_you_mean(str(unknown[0]), (*RANGES, *CURRENCIES)) if unknown else ""
        found = ", ".join(map(str, value)) or "nothing"
        raise ValueError(
            f"must have one of uniform, log-uniform or linear, and count; got {found}{meant}"
        )
    kind, ends, count = kinds[0], value[kinds[0]], whole(value.get("count"))
    if not isinstance(ends, (list, tuple)) or len(ends) != 2 or not all(map(_is_number, ends)):
        raise ValueError(f"needs two numbers, {kind}: [low, high]; got {_short(ends)}")
    low, high = map(float, ends)
    if low > high:
        raise ValueError(f"needs low ≤ high in {kind}: [low, high]; got [{low:g}, {high:g}]")
    if kind == "log-uniform" and low <= 0:
        raise ValueError(f"needs low > 0 for log-uniform; got {low:g}")
    if not is_whole(count, 1, MOST_COPIES):
        raise ValueError(f"needs count, an integer from 1 to {MOST_COPIES:,}; got {_short(count)}")
    order, out_of = value.get("order"), value.get("out-of", 0)
    if order is not None and order not in ORDERS:
        raise ValueError(f"needs order: ascending or descending; got {_short(order)}")
    if (
        isinstance(out_of, bool)
        or not isinstance(out_of, int)
        or (out_of and (order is None or not count <= out_of <= MOST_COPIES))
    ):
        raise ValueError(
            f"needs out-of, with an order, an integer from count to {MOST_COPIES:,}; got {_short(out_of)}"
        )
    each = value.get("each-replicate", False)
    if not isinstance(each, bool) or (each and kind not in DRAWN):
        given = "evenly spaced levels, which are not drawn" if each is True else _short(each)
        raise ValueError(
            f"needs each-replicate, true or false, with uniform or log-uniform levels; got {given}"
        )
    return Levels(
        kind=kind, low=low, high=high, count=count, order=order, out_of=out_of, each_replicate=each
    )


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    # false for NaN; integers beyond a double's range compare correctly
    return bool(-LARGEST <= value <= LARGEST)


def _short(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
