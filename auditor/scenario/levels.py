"""Levels of perturbation: parsing and resolution to numbers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, WithJsonSchema, model_validator

from auditor.base import AuditorError, did_you_mean
from auditor.numerics.random_streams import stream
from auditor.registry.parameters import FieldError, Form, Whole, shown
from auditor.scenario.problems import FormError, Problems, plain

MOST_COPIES = 10_000
"""Limit against typing errors: the covariance of a million copies has terabytes."""

RANGES = ("uniform", "log-uniform", "linear")
DRAWN = ("uniform", "log-uniform")
CURRENCIES = {"scale": {"variance": 1.0}, "epsilon": "bounds", "gaussian-dp": "bounds"}
"""Other units of levels, and the noise at level 1 (``stated_levels``)."""


Count = Annotated[Whole, Field(ge=1, le=MOST_COPIES)]
Ends = Annotated[list[float], Field(min_length=2, max_length=2)]
Stated = Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1, max_length=MOST_COPIES)]


class Levels(Form):
    """Levels of a scheme, as stated, in one of three forms."""

    @property
    def currency(self) -> str | None:
        """Unit of levels by a guarantee or in data units, else None."""
        return None

    @property
    def values(self) -> tuple[float, ...] | None:
        """Levels, if they are known without a seed."""
        return None

    def spec(self) -> Any:
        """Levels in scenario form."""
        return self.model_dump(by_alias=True, exclude_defaults=True)

    def resolve(self, seed: int, replicate: int = 1) -> tuple[float, ...]:
        """Levels in order of release."""
        if self.values is None:
            raise AuditorError(f"levels by {self.currency} need the data's bounds")
        return self.values


class Listed(Levels):
    """Levels as noise multiples or probabilities."""

    # schemes refuse negative levels with their own reasons
    levels: list[Annotated[float, WithJsonSchema({"type": "number", "minimum": 0})]] = Field(
        min_length=1, max_length=MOST_COPIES
    )

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(self.levels)

    def spec(self) -> list[float]:
        return self.levels


class ByGuarantee(Levels):
    """Levels in one of the units of ``CURRENCIES``."""

    scale: Stated | None = None
    """in data units"""
    epsilon: Stated | None = None
    gaussian_dp: Stated | None = None
    _values: tuple[float, ...] | None = None

    @property
    def stated(self) -> tuple[str, list[float]]:
        """The unit and the levels."""
        return next(iter(self.model_dump(by_alias=True, exclude_none=True).items()))

    @property
    def currency(self) -> str:
        return self.stated[0]

    @property
    def values(self) -> tuple[float, ...] | None:
        return self._values

    def known(self, values: tuple[float, ...]) -> ByGuarantee:
        """Levels with their noise multiples, found by the data's bounds."""
        made = self.model_copy()
        made._values = values
        return made


class Range(Levels):
    """A range of levels."""

    uniform: Ends | None = None
    """[low, high] of uniform draws"""
    log_uniform: Ends | None = None
    """[low, high] of draws uniform in the log"""
    linear: Ends | None = None
    """[low, high] of even spacing"""
    count: Count
    """number of levels"""
    order: Literal["ascending", "descending"] | None = None
    out_of: Whole = Field(0, ge=0, le=MOST_COPIES)
    """with an order: draw so many and release the first `count`"""
    each_replicate: bool = False
    """whether every replicate draws levels anew"""

    @property
    def kind(self) -> str:
        """The given kind of range."""
        return next(kind for kind in RANGES if getattr(self, kind.replace("-", "_")) is not None)

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest level."""
        low, high = getattr(self, self.kind.replace("-", "_"))
        return low, high

    @model_validator(mode="after")
    def _drawable(self) -> Range:
        kind, (low, high) = self.kind, self.ends
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

    def resolve(self, seed: int, replicate: int = 1) -> tuple[float, ...]:
        """Levels in order of release.

        Random levels depend only on seed and range, and on the replicate if ``each_replicate``. A
        larger count extends the draws of a smaller one.
        """
        kind, (low, high), count = self.kind, self.ends, max(self.count, self.out_of)
        # the first replicate keeps the common draws
        again = (replicate,) if self.each_replicate and replicate > 1 else ()
        rng = stream(seed, "levels", kind, low, high, *again)
        if kind == "linear":
            drawn = np.linspace(low, high, count)
        elif kind == "uniform":
            drawn = rng.uniform(low, high, count)
        else:
            drawn = np.exp(rng.uniform(np.log(low), np.log(high), count))
        if self.order is not None:
            drawn = np.sort(drawn)[:: -1 if self.order == "descending" else 1]
        return tuple(drawn[: self.count].tolist())


def parse_levels(value: Any) -> Levels:
    """Parse levels from a scenario or a Python call.

    Raises
    ------
    FormError
        Invalid levels; the messages state the expected form.
    """
    if isinstance(value, Levels):
        return value
    given, known = plain(value), (*RANGES, *CURRENCIES)
    listed, keys = isinstance(given, list), list(given) if isinstance(given, dict) else []
    kinds = [key for key in keys if key in known and given[key] is not None]
    if not listed and len(kinds) != 1:
        others = [key for key in keys if key not in known]
        wanted = f"a list of levels, or a mapping with one of {', '.join(known)}"
        hint = did_you_mean(others[0], known) if others else ""
        raise FormError([((), f"must be {wanted}; got {shown(given)}{hint}", False)])
    problems = Problems()
    cls = Listed if listed else ByGuarantee if kinds[0] in CURRENCIES else Range
    form: Levels | None = problems.model((), {"levels": given} if listed else given, cls)
    if form is None:
        raise FormError((path[listed:], message, key) for path, message, key in problems.found)
    return form
