"""Levels of perturbation: parsing and resolution to numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, WithJsonSchema, model_validator

from auditor.base.errors import AuditorError, did_you_mean
from auditor.numerics.random_streams import stream
from auditor.registry.parameters import FieldError, Whole, shown
from auditor.scenario.problems import Form, FormError, Problems, plain

MOST_COPIES = 10_000
"""Limit against typing errors: a million copies would need terabytes for their covariance."""

RANGES = ("uniform", "log-uniform", "linear")
DRAWN = ("uniform", "log-uniform")
CURRENCIES = {"scale": {"variance": 1.0}, "epsilon": "bounds", "gaussian-dp": "bounds"}
"""Other units of levels, and the noise at level 1 (``auditor.scenario.stated_levels``)."""


@dataclass(frozen=True)
class Levels:
    """A list of levels in order of release, or a range with ``count`` levels.

    Attributes
    ----------
    kind : 'uniform', 'log-uniform', 'linear' or None
        Uniform draws, draws uniform in the logarithm, or even spacing with both ends.
    order : 'ascending', 'descending' or None
        Order of release; None keeps the draws' order, or low to high.
    out_of : int
        With an order: draw and sort this many, and release the first ``count``; 0 means ``count``.
    each_replicate : bool
        Whether every replicate draws new levels, so that figures are means over levels and noise.
    currency : 'scale', 'epsilon', 'gaussian-dp' or None
        Unit of ``stated`` levels; ``values`` is then None until resolved.
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


Count = Annotated[Whole, Field(ge=1, le=MOST_COPIES)]
Ends = Annotated[list[float], Field(min_length=2, max_length=2)]
Stated = Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1, max_length=MOST_COPIES)]


class Listed(Form):
    """Levels as noise multiples or probabilities."""

    # schemes refuse negative levels with their own reasons
    levels: list[Annotated[float, WithJsonSchema({"type": "number", "minimum": 0})]] = Field(
        min_length=1, max_length=MOST_COPIES
    )


class ByGuarantee(Form):
    """Levels in one of the units of ``CURRENCIES``."""

    scale: Stated | None = Field(None, description="in data units")
    epsilon: Stated | None = None
    gaussian_dp: Stated | None = None


class Range(Form):
    """A range of levels."""

    uniform: Ends | None = Field(None, description="[low, high] of uniform draws")
    log_uniform: Ends | None = Field(None, description="[low, high] of draws uniform in the log")
    linear: Ends | None = Field(None, description="[low, high] of even spacing")
    count: Count = Field(description="number of levels")
    order: Literal["ascending", "descending"] | None = None
    out_of: Whole = Field(
        0,
        ge=0,
        le=MOST_COPIES,
        description="with an order: draw so many and release the first `count`",
    )
    each_replicate: bool = Field(False, description="whether every replicate draws levels anew")

    @property
    def ends(self) -> dict[str, list[float]]:
        """The given ranges by kind."""
        given = self.model_dump(by_alias=True, exclude_none=True)
        return {kind: given[kind] for kind in RANGES if kind in given}

    @model_validator(mode="after")
    def _drawable(self) -> Range:
        kind, (low, high) = next(iter(self.ends.items()))
        if low > high:
            raise FieldError(f"needs low ≤ high; got [{low:g}, {high:g}]", kind)
        if kind == "log-uniform" and low <= 0:
            raise FieldError(f"needs low > 0; got {low:g}", kind)
        if self.out_of and (self.order is None or self.out_of < self.count):
            raise FieldError(f"needs an order, and at least count; got {self.out_of}", "out-of")
        if self.each_replicate and kind not in DRAWN:
            raise FieldError(
                "needs levels that are drawn: uniform or log-uniform", "each-replicate"
            )
        return self


def parse_levels(value: Any) -> Levels:
    """Parse levels from a scenario or a Python call.

    Raises
    ------
    FormError
        Invalid levels; the messages state the expected form.
    """
    if isinstance(value, Levels):
        return value
    given = plain(value)
    problems = Problems()
    if isinstance(given, list):
        listed = problems.model((), {"levels": given}, Listed)
        if listed is not None:
            return Levels(values=tuple(listed.levels))
        raise FormError((path[1:], message, key) for path, message, key in problems.found)
    known = (*RANGES, *CURRENCIES)
    kinds = [key for key in given if key in known] if isinstance(given, dict) else []
    if len(kinds) != 1:
        keys = [key for key in given if key not in known] if isinstance(given, dict) else []
        wanted = f"a list of levels, or a mapping with one of {', '.join(known)}"
        hint = did_you_mean(keys[0], known) if keys else ""
        raise FormError([((), f"must be {wanted}; got {shown(given)}{hint}", False)])
    (kind,) = kinds
    if kind in CURRENCIES:
        form = problems.model((), given, ByGuarantee)
        stated = form and getattr(form, kind.replace("-", "_"))
        if stated:
            return Levels(currency=kind, stated=tuple(stated))
    elif drawn := problems.model((), given, Range):
        low, high = drawn.ends[kind]
        drawing = (drawn.count, drawn.order, drawn.out_of, drawn.each_replicate)
        return Levels(None, kind, low, high, *drawing)
    raise FormError(problems.found)
