"""Sections ``data`` and ``knowledge`` of a scenario."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema as Schema, model_validator

from auditor import registry
from auditor.adversary.knowledge import KINDS, Knowledge
from auditor.base import AuditorError, did_you_mean, shortened
from auditor.base.types import Plain
from auditor.data.columns.categorical_table import MOST_VALUES, hierarchy_of, parse_domains
from auditor.data.columns.checks import LARGEST_VARIANCE, parse_dates
from auditor.data.formats.file_kinds import SAID, SUFFIXES
from auditor.data.table import DataUse
from auditor.registry.parameters import (
    NAMES_SCHEMA,
    FieldError,
    Form,
    Names,
    Path,
    Whole,
    format_path,
    is_number,
    kind_of,
    shown,
)
from auditor.results.files import located, split_name, with_reading
from auditor.scenario.problems import FormError, Problems, read_entry

MOST_ROWS = 10**9
"""Limit against typing errors: two columns would need 16 GB."""
LARGEST_SPAN = math.sqrt(LARGEST_VARIANCE)
"""Limit because squared spans are divided by noise variances up to `LARGEST_VARIANCE`."""

_ENDS = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
_COLUMNS = {"anyOf": [NAMES_SCHEMA, {"type": ["object", "string", "null"]}]}


Bins = Annotated[Whole, Field(ge=1, le=MOST_VALUES)]


def _or_empty(parse: Callable[[Any], Any]) -> BeforeValidator:
    def parsed(value: Any) -> Any:
        try:
            return parse({} if value is None else value)
        except ValueError as error:
            raise FieldError(str(error), *getattr(error, "place", ())) from None

    return BeforeValidator(parsed)


def _mapping_of(items: Plain) -> Schema:
    return Schema({"type": ["object", "null"], "additionalProperties": items})


def parse_hierarchies(hierarchies: Any) -> Any:
    """Hierarchies by column: nested mappings with lists of values.

    Raises
    ------
    FieldError
        A part is of another type, or values are repeated, mixed or unequally deep.
    """
    if not isinstance(hierarchies, dict):
        raise ValueError("must map columns to their hierarchies")
    for name, declared in hierarchies.items():
        seen: dict[Any, Path] = {}
        _check_node((name,), declared, seen, inner=False)
        depths = {len(chain) for chain in hierarchy_of(declared).nodes}
        if len(depths) > 1:
            between = f"some values are under {min(depths)} nodes and some under {max(depths)}"
            raise FieldError(f"must be as deep in every branch; {between}", name)
        if len(seen) < 2:
            raise FieldError("must list at least two values", name)
        if len({isinstance(leaf, str) for leaf in seen}) > 1:
            raise FieldError("must list numbers or text, and not both", name)
    return hierarchies


def _check_node(at: Path, part: Any, seen: dict[Any, Path], inner: bool = True) -> None:
    if isinstance(part, dict) and part:
        for name, below in part.items():
            _check_node((*at, name), below, seen)
        return
    if not inner or not isinstance(part, list) or not part:
        wanted = "must map a common property of values to a list of them, or to a mapping"
        raise FieldError(f"{wanted}; got {kind_of(part)}", *at)
    for place, leaf in enumerate(part):
        if isinstance(leaf, bool) or not isinstance(leaf, (str, int, float)):
            raise FieldError(f"must be text or a number; got {kind_of(leaf)}", *at, place)
        if leaf in seen:
            first = format_path(("data", "hierarchies", *seen[leaf]))
            raise FieldError(
                f"repeats a value of this hierarchy, first given at {first}", *at, place
            )
        seen[leaf] = (*at, place)


def parse_bounds(bounds: Any) -> dict[str, tuple[float, float]]:
    """[low, high] by column.

    Raises
    ------
    FieldError
        Bounds are not two finite numbers, or too far apart.
    """
    if not isinstance(bounds, dict):
        raise ValueError("must map columns to [low, high]")
    for name, ends in bounds.items():
        two = isinstance(ends, (list, tuple)) and len(ends) == 2
        if not two or not all(is_number(end) and -1e300 <= end <= 1e300 for end in ends):
            raise FieldError(f"must be [low, high], two finite numbers; got {shown(ends)}", name)
        if not 0 < float(ends[1]) - float(ends[0]) <= LARGEST_SPAN:
            wanted = f"needs low < high, at most {LARGEST_SPAN:g} apart"
            raise FieldError(f"{wanted}; got {shown(ends)}", name)
    return {name: (float(low), float(high)) for name, (low, high) in bounds.items()}


class Relative(Form):
    """Tolerance as a share of the true value."""

    relative: float = Field(gt=0, le=1e9)
    """share of the true value"""


class Bin(Form):
    """Borders of one column's bins: one of three rules."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})
    equal_width: Bins | None = None
    """number of bins of one width"""
    quantile: Bins | None = None
    """number of bins of as many records each"""
    edges: list[float] | None = Field(None, min_length=2)
    """borders, rising"""

    @model_validator(mode="after")
    def _one_rule(self) -> Bin:
        if len(self.model_dump(exclude_none=True)) != 1:
            raise ValueError("must give one of equal-width, quantile and edges")
        if self.edges and not (np.diff(self.edges) > 0).all():
            raise FieldError("must be rising", "edges")
        return self


class DataForm(Form):
    """Fields of ``data`` for every source."""

    source: str
    """a registered source, or a path to a file of data"""
    columns: Names | None = None
    order: str | None = None
    """column that orders the records; not audited"""
    key: str | None = None
    """column that identifies records, to join copies; not audited"""
    unit: str | None = None
    """column that identifies protected units, as households; not audited"""
    weight: str | None = None
    """column of weights of records in weighted figures; not audited"""
    shown: Names = Field([])
    """columns that every copy shows unperturbed, as a place; not audited"""
    rows: Annotated[Whole, Field(ge=2, le=MOST_ROWS)] | None = None
    first_batch: Annotated[Whole, Field(ge=2)] | None = None
    """records of the first batch, to which noise is scaled"""
    missing: Literal["refuse", "drop", "mean", "value"] = "refuse"
    blank: list[str | int | float] | None = None
    """words and numbers of a file that mean no value; default NA, None …"""
    sheet: str | None = None
    """sheet of an Excel workbook; default the first"""
    standardize: bool = False
    # `moments` and `figures` of earlier scenarios are read as `rounded`
    disclosure: Literal["rounded", "public", "moments", "figures"] = "rounded"
    bin: dict[str, Bin] | None = None
    """columns cut into classes, for uniform schemes"""
    categorical: Annotated[Any, _or_empty(parse_domains), Schema(_COLUMNS)] = Field({})
    """columns of categories: names, or names with their domains"""
    dates: Annotated[Any, _or_empty(parse_dates), Schema(_COLUMNS)] = Field({})
    """columns of dates: names, or names with the format of their text"""
    bounds: Annotated[Any, _or_empty(parse_bounds), _mapping_of(_ENDS)] = Field({})
    """range of each column's possible values, [low, high], for guarantees"""
    tolerance: dict[str, Annotated[float, Field(gt=0, le=1e300)] | Relative] = Field({})
    """largest close error by column, or {relative: share}; default IQR/10"""
    hierarchies: Annotated[
        Any, _or_empty(parse_hierarchies), _mapping_of({"type": "object", "minProperties": 1})
    ] = Field({})
    """nested mappings with lists of values at the ends, by column"""

    @model_validator(mode="after")
    def _compatible(self) -> DataForm:
        for name in self.dates:
            if name in self.categorical:
                raise FieldError("cannot be taken as categories as well", "dates", name)
        bins = self.bin or {}
        for name in self.hierarchies:
            if self.standardize or name in {**bins, **self.categorical, **self.dates}:
                why = "cannot be binned, standardized or taken as categories or dates as well"
                raise FieldError(why, "hierarchies", name)
        beside = (*self.dates, *self.hierarchies, *self.categorical)
        audited = (*(self.columns or ()), *beside)
        for field in ("bounds", "tolerance") if self.columns is not None else ():
            for name in getattr(self, field):
                if name not in audited:
                    hint = did_you_mean(name, audited)
                    raise FieldError(f"names a column that is not audited{hint}", field, name)
        if self.bounds and self.standardize:
            why = (
                "are stated in the data's own units, which `standardize` takes away; leave one out"
            )
            raise FieldError(why, "bounds")
        for field, why in NOT_AUDITED.items():
            value = getattr(self, field)
            for name in value if isinstance(value, list) else [value]:
                if name in (*audited, *bins):
                    raise FieldError(f"names column {name!r}, which is audited{why}", field)
        return self


NOT_AUDITED = {
    "order": ": records are put in the order of a column that is not",
    "unit": ": units are named by a column that is not",
    "weight": ": records are weighed by a column that is not",
    "shown": "",
}
DATA_FIELDS = tuple(field.alias or name for name, field in DataForm.model_fields.items())


def read_data(value: Any, problems: Problems, base: FilePath | None) -> DataUse | None:
    """Return the section ``data`` or None, and report its errors.

    A file is searched in ``base``, then in the working directory. It is not opened.
    """
    given = {"source": value} if isinstance(value, str) else value
    if not isinstance(given, dict):
        wanted = "a source's name, a path or a mapping with `source`"
        problems.add(("data",), f"must be {wanted}; got {shown(value)}")
        return None
    common = {key: item for key, item in given.items() if key.replace("_", "-") in DATA_FIELDS}
    form = problems.model(("data",), common, DataForm)
    source = given.get("source")
    if not isinstance(source, str):
        return None
    own = {key: item for key, item in given.items() if key not in common}
    if form is not None:
        source = with_reading(source, form.sheet, form.blank)
    parameters = _source_parameters(source, own, problems, base)
    if form is None:
        return None
    same: Plain = {field.name: getattr(form, field.name, None) for field in fields(DataUse)}
    return DataUse(
        **same
        | {
            "source": source,
            "disclosure": "public" if form.disclosure == "public" else "rounded",
            "parameters": parameters,
            "bins": form.model_dump(by_alias=True, exclude_none=True).get("bin", {}),
            "shown": tuple(form.shown),
            "tolerance": form.model_dump()["tolerance"],
        }
    )


def _source_parameters(source: str, own: Plain, problems: Problems, base: FilePath | None) -> Plain:
    if registry.has("source", source):
        parameters = registry.get("source", source).Parameters
        model = problems.model(("data",), own, parameters, DATA_FIELDS)
        return {} if model is None else model.model_dump(mode="json", by_alias=True)
    problems.model(("data",), own, Form, DATA_FIELDS)
    try:
        there = located(source, base)
    except AuditorError as error:
        problems.add(("data", "source"), f"cannot be used: {error}")
        return {}
    folder = any(path.is_dir() for path in there)
    given = shortened(repr(source), 120)
    bare = split_name(source)[0]
    if not bare.lower().endswith(SUFFIXES) and not (folder and ("/" in bare or "\\" in bare)):
        hint = did_you_mean(source, registry.names("source"))
        if folder:
            hint = f"; write {source + '/'!r} for the folder of that name"
        wanted = f"must be a registered source or a path to {SAID}"
        problems.add(("data", "source"), f"{wanted}; got {given}{hint}")
    elif not there:
        problems.add(("data", "source"), f"names a file that is not there: {given}")
    return {}


# -- Section ``knowledge``: the adversary's knowledge, from YAML or Python -------------------------


KnowledgeError = FormError
"""Invalid knowledge; ``found`` has relative places and messages."""


def parse_knowledge(value: Any) -> Knowledge:
    """Parse a state of knowledge from a scenario or a Python call.

    Raises
    ------
    KnowledgeError
        Invalid knowledge, with the place and the expected form.
    """
    if isinstance(value, Knowledge):
        return value
    knowledge: Knowledge = read_entry(value, KINDS, "a state of knowledge")[1]
    return knowledge
