"""Checked scenario with all defaults resolved, and levels of perturbation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, WithJsonSchema, model_validator

from auditor import registry
from auditor.adversary.attack import Coalitions
from auditor.adversary.knowledge import Knowledge
from auditor.base import AuditorError, did_you_mean
from auditor.base.types import Coalition, Plain, frozen
from auditor.data.table import DataUse as DataUse
from auditor.numerics.random_streams import stream
from auditor.registry import PluginParameters
from auditor.registry.parameters import FieldError, Form, FormError, Problems, Whole, plain, shown
from auditor.scenario.yaml_document import Places

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
    def given(self) -> tuple[str, tuple[float, float]]:
        """Kind of range, and the lowest and the highest level."""
        fields = self.model_dump(by_alias=True)
        return next((kind, tuple(fields[kind])) for kind in RANGES if fields[kind])

    @model_validator(mode="after")
    def _drawable(self) -> Range:
        kind, (low, high) = self.given
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
        (kind, (low, high)), count = self.given, max(self.count, self.out_of)
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


# -- The scenario ----------------------------------------------------------------------------------


SCENARIO_VERSION = 1
FIELDS = (
    "schema title cite seed data schemes knowledge coalitions attacks "
    "measures utility sweep replicates budget expect"
).split()
"""Sections in documented order."""


@frozen
class PluginUse:
    """One use of a plugin, with a unique id and checked parameters."""

    name: str
    id: str
    parameters: PluginParameters

    def spec(self) -> Plain:
        """Use in scenario form, with defaults."""
        return {
            "name": self.name,
            "id": self.id,
            **self.parameters.model_dump(mode="json", by_alias=True),
        }


@frozen
class AttackUse(PluginUse):
    """One use of an attack, by default on all coalitions."""

    coalitions: tuple[Coalitions, ...] = ()

    def tries(self, coalition: Coalition, M: int) -> bool:
        """Whether the attack runs on a coalition among M copies."""
        return not self.coalitions or any(entry.matches(coalition, M) for entry in self.coalitions)

    def spec(self) -> Plain:
        return super().spec() | (
            {"coalitions": [entry.spec() for entry in self.coalitions]} if self.coalitions else {}
        )


@frozen
class SchemeUse(PluginUse):
    """One use of a scheme.

    ``already_out`` copies, or their share (below 1, rounded down), precede the last request, which
    ``seconds`` measures. ``public_grid``: copies are on the grid of copies for release
    (docs/release.md). ``per_unit``: all records of a unit have one noise.
    """

    levels: Levels | None = None
    already_out: float | int = 0
    public_grid: bool = False
    per_unit: bool = False

    def spec(self) -> Plain:
        extra: Plain = {} if self.levels is None else {"levels": self.levels.spec()}
        extra |= {"already-out": self.already_out} if self.already_out else {}
        extra |= {"per-unit": True} if self.per_unit else {}
        return super().spec() | extra | ({"public-grid": True} if self.public_grid else {})


@frozen
class Measure:
    """An additional measure, with a name from ``auditor.scenario.read_expectations.MEASURES``."""

    name: str
    options: Plain = field(default_factory=dict)

    def spec(self) -> Any:
        """Measure in scenario form."""
        return {self.name: dict(self.options)} if self.options else self.name


class Utility(Form):
    """Utility of the copies; without a target only two moments are compared.

    ``test`` has the held-out records.
    """

    target: str | None = None
    """column to predict, or label"""
    models: list[Literal["decision-tree", "svm-rbf", "logistic", "ridge"]] = Field(
        ["decision-tree"], min_length=1
    )
    folds: Whole = Field(10, ge=2, le=1000)
    test: Literal["original", "copy"] = "original"

    @model_validator(mode="after")
    def _predicts(self) -> Utility:
        for name in self.model_fields_set if self.target is None else ():
            raise FieldError("needs a `target` to predict", name)
        for place, model in enumerate(self.models):
            if model in self.models[:place]:
                raise FieldError(f"repeats model {model!r}", "models", place)
        return self

    def spec(self) -> Plain:
        """Section in scenario form, with defaults."""
        return {} if self.target is None else self.model_dump()


class ExpectationUse(NamedTuple):
    """A statement to judge; ``place`` is its index under ``expect``."""

    name: str
    expectation: Any
    where: Plain
    place: int = 0

    def spec(self) -> Plain:
        """Expectation in scenario form, with defaults."""
        given = {key.replace("_", "-") for key in self.where}
        if self.name not in (self.expectation.name, *getattr(self.expectation, "aliases", ())):
            given.add("metric")
        parameters = self.expectation.parameters
        defaults = parameters.model_dump(mode="json", by_alias=True, exclude_none=True)
        more = {key: value for key, value in defaults.items() if key not in given}
        return {self.name: self.where | more}


def _spec_of(value: Any) -> Any:
    if hasattr(value, "spec"):
        return value.spec()
    return [_spec_of(one) for one in value] if isinstance(value, tuple) else value


@frozen
class Scenario:
    """A checked audit; ``auditor.run`` accepts it.

    ``budget`` is work in nominal seconds; ``left_out`` lists its omissions. ``document`` has plain
    values before defaults, for sweeps. ``point`` has the swept values at a sweep point, ``swept``
    the scenario at every point. ``places`` maps fields to file positions.
    """

    title: str
    seed: int
    data: DataUse
    schemes: tuple[SchemeUse, ...]
    knowledge: tuple[Knowledge, ...]
    coalitions: tuple[Coalitions, ...]
    attacks: tuple[AttackUse, ...]
    measures: tuple[Measure, ...]
    sweep: dict[str, list[Any]]
    replicates: int
    expect: tuple[ExpectationUse, ...]
    cite: tuple[str, ...] = ()
    utility: Utility | None = None
    budget: float | None = None
    left_out: tuple[str, ...] = ()
    base: Path | None = None
    name: str = "audit"
    document: Plain = field(default_factory=dict, repr=False)
    point: Plain = field(default_factory=dict, repr=False)
    swept: tuple[Scenario, ...] = field(default=(), repr=False, compare=False)
    places: Places = field(default_factory=Places, repr=False, compare=False)

    def spec(self) -> Plain:
        """Scenario with every default; it reads back equal."""
        found = {name: _spec_of(getattr(self, name)) for name in FIELDS[1:]}
        return {"schema": SCENARIO_VERSION} | {k: v for k, v in found.items() if v is not None}

    @property
    def points(self) -> Sequence[Scenario]:
        """Scenario at every combination of swept values; itself without a sweep."""
        return self.swept or (self,)

    def asks_pooling(self, scheme: str) -> bool:
        """Whether an expectation needs a scheme's pooling gain (slow)."""
        asked = (use.expectation for use in self.expect)
        return any(one.needs_pooling and one.covers(scheme, self.point) for one in asked)

    def replicates_of(self, use: SchemeUse) -> int:
        """Scheme's number of audits: 1 for copies from files.

        Repeats of identical files would narrow intervals.
        """
        return self.replicates if registry.get("scheme", use.name).makes_copies else 1

    def measure(self, name: str) -> Measure | None:
        """Measure with a name, or None."""
        return next((measure for measure in self.measures if measure.name == name), None)

    @property
    def grouped_by(self) -> list[str]:
        """Columns that an expectation groups records by."""
        asked = [use.expectation.grouped_by for use in self.expect]
        return list(dict.fromkeys(column for column in asked if column is not None))

    @property
    def asks_closeness(self) -> bool:
        """Whether close guesses and median errors are needed."""
        return self.measure("closeness") is not None or any(
            use.expectation.needs_closeness for use in self.expect
        )
