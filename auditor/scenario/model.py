"""Checked scenario with all defaults resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field, model_validator

from auditor import registry
from auditor.adversary.attack import Coalitions
from auditor.adversary.knowledge import Knowledge
from auditor.base.types import Coalition, Plain, frozen
from auditor.data.table import DataUse as DataUse
from auditor.registry import PluginParameters
from auditor.registry.parameters import FieldError, Form, Whole
from auditor.scenario.levels import Levels
from auditor.scenario.yaml_document import Places

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
