"""A scenario after every check: what to audit, fully spelled out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from auditor import registry
from auditor.adversary.coalitions import Coalitions
from auditor.adversary.knowledge import Knowledge
from auditor.data.request import DataUse
from auditor.registry import PluginParameters
from auditor.results.evidence import Statement
from auditor.scenario.levels import Levels
from auditor.scenario.yaml.positions import Places
from auditor.types import Coalition

SCENARIO_VERSION = 1


@dataclass(frozen=True)
class PluginUse:
    """One use of a plugin: its name, an id that tells two uses apart, and checked parameters."""

    name: str
    id: str
    parameters: PluginParameters

    def spec(self) -> dict[str, Any]:
        """Return it as a scenario would spell it, defaults filled in."""
        return {"name": self.name, "id": self.id, **self.parameters.model_dump(mode="json", by_alias=True)}


@dataclass(frozen=True)
class AttackUse(PluginUse):
    """One use of an attack, on those of the scenario's coalitions that are among its own; on all of them where it has none."""

    coalitions: tuple[Coalitions, ...] = ()

    def tries(self, coalition: Coalition, M: int) -> bool:
        """Whether it is tried on a coalition among M copies."""
        return not self.coalitions or any(entry.matches(coalition, M) for entry in self.coalitions)

    def spec(self) -> dict[str, Any]:
        """Return it as a scenario would spell it, defaults filled in."""
        return super().spec() | ({"coalitions": [entry.spec() for entry in self.coalitions]} if self.coalitions else {})


@dataclass(frozen=True)
class SchemeUse(PluginUse):
    """One use of a scheme.

    Attributes
    ----------
    levels : Levels or None
        What to release; None for schemes that have no levels.
    already_out : float or int
        How many copies (an integer), or what share of them (a number below 1, rounded down), were out before the rest was asked
        for in one request. Changes no law; ``seconds`` then times that last request.
    public_grid : bool
        Whether copies are drawn on the grid that copies for release lie on (docs/release.md), rather than as doubles of any digits.
    """

    levels: Levels | None = None
    already_out: float | int = 0
    public_grid: bool = False

    def spec(self) -> dict[str, Any]:
        """Return it as a scenario would spell it, defaults filled in."""
        extra: dict[str, Any] = {} if self.levels is None else {"levels": self.levels.spec()}
        extra |= {"already-out": self.already_out} if self.already_out else {}
        return super().spec() | extra | ({"public-grid": True} if self.public_grid else {})


@dataclass(frozen=True)
class Measure:
    """Something to measure beyond what every cell gets.

    Attributes
    ----------
    name : str
        ``within``, ``exact``, ``error-distribution``, ``error-quantiles``, ``interval-privacy``, ``entropy-privacy``, ``error-bounds`` or
        ``seconds``.
    options : dict
        Its own.
    """

    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def spec(self) -> Any:
        """Return it as a scenario would spell it."""
        return {self.name: dict(self.options)} if self.options else self.name


class UtilityUse(NamedTuple):
    """What the copies should still be good for.

    Attributes
    ----------
    target : str or None
        Column to predict: a source's class label, any other column of the data, or an attribute of the table; ``label``: the class that
        the source comes with, whatever its name; None: no models.
    models : tuple of str
        Names in ``auditor.scenario.read_measures.MODELS``.
    folds : int
        Of the cross-validation.
    test : 'original' or 'copy'
        Whether a model trained on a copy's training folds is scored on the original's held-out records or on the copy's.
    """

    target: str | None = None
    models: tuple[str, ...] = ()
    folds: int = 10
    test: str = "original"

    def spec(self) -> dict[str, Any]:
        """Return it as a scenario would spell it, defaults filled in."""
        if self.target is None:
            return {}
        return {"target": self.target, "models": list(self.models), "folds": self.folds, "test": self.test}


class ExpectationUse(NamedTuple):
    """A statement that the audit must prove or refute; ``place`` is its number in the section ``expect``, from 0."""

    name: str
    expectation: Statement
    where: dict[str, Any]
    place: int = 0

    def asks_pooling(self, scheme: str, point: Mapping[str, Any]) -> bool:
        """Whether it asks what pooling one scheme's copies buys at a sweep point, which takes long to find out."""
        wanted, sweep = self.where.get("scheme", scheme), self.where.get("sweep") or {}
        covered = scheme in (wanted if isinstance(wanted, list) else [wanted]) and sweep.items() <= point.items()
        return self.expectation.needs_pooling and covered

    def spec(self) -> dict[str, Any]:
        """Return it as a scenario would spell it, defaults filled in."""
        given = {key.replace("_", "-") for key in self.where}
        defaults = self.expectation.parameters.model_dump(mode="json", by_alias=True, exclude_none=True)
        spelt_by_metric = self.name not in (self.expectation.name, *getattr(self.expectation, "aliases", ()))
        return {self.name: self.where | {
            key: value for key, value in defaults.items() if key not in given and not (spelt_by_metric and key == "metric")
        }}  # fmt: skip


@dataclass(frozen=True)
class Scenario:
    """An audit, fully spelled out; ``auditor.run`` takes it.

    ``expect`` are the expectations as written, ``judged`` those that results are asked: more of them where a sweep changes one.
    ``document`` is the scenario as plain values, before defaults: sweeps are applied to it. ``places`` knows where in the file each field
    is written, for messages.
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
    judged: tuple[ExpectationUse, ...] = ()
    cite: tuple[str, ...] = ()
    utility: UtilityUse | None = None
    base: Path | None = None
    name: str = "audit"
    document: dict[str, Any] = field(default_factory=dict, repr=False)
    places: Places = field(default_factory=Places, repr=False, compare=False)

    def spec(self) -> dict[str, Any]:
        """Return the scenario with every default filled in; reading it again gives the same audit."""
        return {
            "schema": SCENARIO_VERSION,
            "title": self.title,
            "cite": list(self.cite),
            "seed": self.seed,
            "data": self.data.spec(),
            "schemes": [use.spec() for use in self.schemes],
            "knowledge": [knowledge.spec() for knowledge in self.knowledge],
            "coalitions": [entry.spec() for entry in self.coalitions],
            "attacks": [use.spec() for use in self.attacks],
            "measures": [measure.spec() for measure in self.measures],
            **({} if self.utility is None else {"utility": self.utility.spec()}),
            "sweep": self.sweep,
            "replicates": self.replicates,
            "expect": [use.spec() for use in self.expect],
        }

    def sweep_points(self) -> list[dict[str, Any]]:
        """Return every combination of swept values, path → value; one empty point when nothing is swept."""
        return [dict(zip(self.sweep, values, strict=True)) for values in product(*self.sweep.values())]

    def replicates_of(self, use: SchemeUse) -> int:
        """Return how often a scheme is audited: copies from files are there once, and to count them again would narrow every interval."""
        return self.replicates if registry.get("scheme", use.name).makes_copies else 1

    def measure(self, name: str) -> Measure | None:
        """Return the measure of that name, if asked for."""
        return next((measure for measure in self.measures if measure.name == name), None)
