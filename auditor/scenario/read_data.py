"""Sections ``data`` and ``knowledge`` of a scenario."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema as Schema,
    model_validator,
)

from auditor import registry
from auditor.adversary.view import (
    Estimated,
    Knowledge,
    KnownAttributes,
    KnownRecords,
    KnownSample,
    Leaf,
    Perfect,
    PublishedModel,
    PublishedRules,
    Regression,
    Rule,
    Split,
    Tree,
    UniformPrior,
    UnmatchedRecords,
)
from auditor.base import AuditorError, did_you_mean, shortened
from auditor.data.columns.categorical_table import hierarchy_of, parse_bins, parse_domains
from auditor.data.columns.checks import LARGEST_VARIANCE, parse_dates
from auditor.data.formats.file_kinds import SAID, SUFFIXES
from auditor.data.table import DataUse
from auditor.registry.parameters import (
    FieldError,
    Path,
    Whole,
    format_path,
    is_number,
    kind_of,
    shown,
)
from auditor.results.files import located, split_name, with_reading
from auditor.scenario.problems import NAMES_SCHEMA, Form, FormError, Names, Problems, read_entry

MOST_ROWS = 10**9
"""Limit against typing errors: two columns would need 16 GB."""
LARGEST_SPAN = math.sqrt(LARGEST_VARIANCE)
"""Limit because squared spans are divided by noise variances up to `LARGEST_VARIANCE`."""

_COUNT = {"type": "integer", "minimum": 1}
_EDGES = {"type": "array", "items": {"type": "number"}, "minItems": 2}
_RULES = {"equal-width": _COUNT, "quantile": _COUNT, "edges": _EDGES}
_BINS = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": False,
    "properties": _RULES,
}
_ENDS = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
_COLUMNS = {"anyOf": [NAMES_SCHEMA, {"type": ["object", "string", "null"]}]}


def _or_empty(parse: Callable[[Any], Any]) -> BeforeValidator:
    def parsed(value: Any) -> Any:
        try:
            return parse({} if value is None else value)
        except ValueError as error:
            raise FieldError(str(error), *getattr(error, "place", ())) from None

    return BeforeValidator(parsed)


def _mapping_of(items: dict[str, Any]) -> Schema:
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

    relative: float = Field(gt=0, le=1e9, description="share of the true value")


class DataForm(Form):
    """Fields of ``data`` for every source."""

    source: str = Field(description="a registered source, or a path to a file of data")
    columns: Names | None = None
    order: str | None = Field(None, description="column that orders the records; not audited")
    key: str | None = Field(
        None, description="column that identifies records, to join copies; not audited"
    )
    unit: str | None = Field(
        None, description="column that identifies protected units, as households; not audited"
    )
    weight: str | None = Field(
        None, description="column of weights of records in weighted figures; not audited"
    )
    rows: Annotated[Whole, Field(ge=2, le=MOST_ROWS)] | None = None
    first_batch: Annotated[Whole, Field(ge=2)] | None = Field(
        None, description="records of the first batch, to which noise is scaled"
    )
    missing: Literal["refuse", "drop", "mean", "value"] = "refuse"
    blank: list[str | int | float] | None = Field(
        None, description="words and numbers of a file that mean no value; default NA, None …"
    )
    sheet: str | None = Field(None, description="sheet of an Excel workbook; default the first")
    standardize: bool = False
    # `moments` and `figures` of earlier scenarios are read as `rounded`
    disclosure: Literal["rounded", "public", "moments", "figures"] = "rounded"
    bin: Annotated[Any, _or_empty(parse_bins), _mapping_of(_BINS)] = Field(
        {}, description="columns cut into classes, for uniform schemes"
    )
    categorical: Annotated[Any, _or_empty(parse_domains), Schema(_COLUMNS)] = Field(
        {}, description="columns of categories: names, or names with their domains"
    )
    dates: Annotated[Any, _or_empty(parse_dates), Schema(_COLUMNS)] = Field(
        {}, description="columns of dates: names, or names with the format of their text"
    )
    bounds: Annotated[Any, _or_empty(parse_bounds), _mapping_of(_ENDS)] = Field(
        {}, description="range of each column's possible values, [low, high], for guarantees"
    )
    tolerance: dict[str, Annotated[float, Field(gt=0, le=1e300)] | Relative] = Field(
        {}, description="largest close error by column, or {relative: share}; default IQR/10"
    )
    hierarchies: Annotated[
        Any, _or_empty(parse_hierarchies), _mapping_of({"type": "object", "minProperties": 1})
    ] = Field({}, description="nested mappings with lists of values at the ends, by column")

    @model_validator(mode="after")
    def _compatible(self) -> DataForm:
        for name in self.dates:
            if name in self.categorical:
                raise FieldError("cannot be taken as categories as well", "dates", name)
        for name in self.hierarchies:
            if self.standardize or name in {**self.bin, **self.categorical, **self.dates}:
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
        if self.order in (*audited, *self.bin):
            why = "records are put in the order of a column that is not"
            raise FieldError(f"names column {self.order!r}, which is audited: {why}", "order")
        for field, why in (("unit", "units are named"), ("weight", "records are weighed")):
            if (name := getattr(self, field)) in (*audited, *self.bin):
                why = f"names column {name!r}, which is audited: {why} by a column that is not"
                raise FieldError(why, field)
        return self


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
    same: dict[str, Any] = {
        field.name: getattr(form, field.name, None) for field in fields(DataUse)
    }
    return DataUse(
        **same
        | {
            "source": source,
            "disclosure": "public" if form.disclosure == "public" else "rounded",
            "parameters": parameters,
            "bins": form.bin,
            "tolerance": form.model_dump()["tolerance"],
        }
    )


def _source_parameters(
    source: str, own: dict[str, Any], problems: Problems, base: FilePath | None
) -> dict[str, Any]:
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
MOST_SPLITS = 8
"""Largest depth: 256 leaves, each with a law of its own."""
SHARES_OFF = 0.01
"""Tolerance for the sum of rounded shares."""

Share = Annotated[float, Field(gt=0, le=1)]


class _Nothing(Form):
    """No parameters."""


class _Rows(Form):
    rows: Whole = Field(ge=2, description="number of released rows")
    structure: Literal["scheme", "none"] = "scheme"


class _Records(Form):
    alone = "count"
    count: Whole = Field(ge=1, description="number of records")


class _Attributes(Form):
    alone = "attributes"
    attributes: Names = Field(description="column names")


class _Leaf(Form):
    mean: float
    variance: float = Field(ge=0)
    share: Share | None = Field(None, description="share of the records")

    def built(self) -> Leaf:
        return Leaf(self.mean, self.variance, self.share)


class _Split(Form):
    split: str = Field(description="a column name")
    at: float
    below: _Node
    above: _Node

    def built(self) -> Split:
        return Split(self.split, self.at, self.below.built(), self.above.built())


def _kind_of_node(node: Any) -> str:
    branch = isinstance(node, _Split) or (
        isinstance(node, dict) and not node.keys().isdisjoint(_Split.model_fields)
    )
    return "Split" if branch else "Leaf"


_Node = Annotated[
    Annotated[_Split, Tag("Split")] | Annotated[_Leaf, Tag("Leaf")], Discriminator(_kind_of_node)
]


def _distinct_from(target: str, names: list[str], field: str) -> None:
    if target in names:
        raise FieldError(f"names the target; got {shown(names)}", field)


class _Model(Form):
    target: str = Field(description="a column name")
    rows: Whole = Field(ge=2, description="number of released rows")
    known: bool = False
    predictors: Names | None = None
    depth: Annotated[Whole, Field(ge=1, le=MOST_SPLITS)] | None = Field(
        None, description="number of splits above a leaf"
    )
    coefficients: dict[str, float] | None = Field(None, min_length=1)
    intercept: float | None = None
    residual_variance: float | None = Field(None, ge=0)
    tree: _Node | None = None

    @model_validator(mode="after")
    def _one_form(self) -> _Model:
        figures = ("coefficients", "intercept", "residual-variance")
        given = {field.replace("_", "-") for field in self.model_fields_set}
        form = "tree" if "tree" in given else "coefficients" if given & {*figures} else "predictors"
        needed = figures if form == "coefficients" else (form,)
        allowed = {
            "predictors": {"predictors", "depth"},
            "tree": {"tree"},
            "coefficients": {*figures},
        }
        for field in sorted(given - allowed[form] - {"target", "rows", "known"}):
            raise FieldError(f"cannot be given with {form}; leave one of them out", field)
        for field in needed:
            if getattr(self, field.replace("-", "_")) is None:
                raise FieldError("is required", field)
        on = self.on
        if form == "tree":
            _check_tree(self.tree)
            if self.target in on:
                raise FieldError(f"splits on the target, {shown(self.target)}", "tree")
            if self.known and not on:
                raise FieldError("has nothing to give: the tree has no predictors", "known")
        _distinct_from(self.target, on, form)
        return self

    @property
    def on(self) -> list[str]:
        return list(self.predictors or self.coefficients or predictors_of(self.tree))

    def built(self) -> PublishedModel:
        figures = self.coefficients and Regression(
            tuple(self.coefficients.values()), self.intercept or 0.0, self.residual_variance or 0.0
        )
        return PublishedModel(
            self.rows,
            target=self.target,
            on=tuple(self.on),
            known=self.known,
            regression=figures or None,
            depth=self.depth,
            tree=None if self.tree is None else self.tree.built(),
        )


def predictors_of(node: _Split | _Leaf | None) -> dict[str, None]:
    """Attributes of a tree's splits, in order of first use."""
    if not isinstance(node, _Split):
        return {}
    return {node.split: None} | predictors_of(node.below) | predictors_of(node.above)


def _check_tree(tree: _Split | _Leaf | None) -> None:
    shares: list[float | None] = []

    def walk(node: Any, within: dict[str, tuple[float, float]], place: tuple[str, ...]) -> None:
        if isinstance(node, _Leaf):
            shares.append(node.share)
            return
        low, high = within.get(node.split, (-math.inf, math.inf))
        if not low < node.at < high:
            why = f"must be above {low:g} and below {high:g}, as the splits above it are"
            raise FieldError(f"{why}; got {node.at:g}", *place, "at")
        walk(node.below, within | {node.split: (low, node.at)}, (*place, "below"))
        walk(node.above, within | {node.split: (node.at, high)}, (*place, "above"))

    walk(tree, {}, ("tree",))
    stated = [share for share in shares if share is not None]
    if stated and len(stated) < len(shares):
        have = f"{len(stated)} of {len(shares)} have one"
        raise FieldError(f"must state the share of every leaf or of none; {have}", "tree")
    if stated and abs(sum(stated) - 1.0) > SHARES_OFF:
        raise FieldError(f"must have shares that sum to 1; got {sum(stated):g}", "tree")


def _by_column(values: dict[str, Any]) -> dict[str, Any]:
    if not all(isinstance(value, str | int | float) for value in values.values()):
        raise ValueError("must be {column: value}")
    return values


Values = Annotated[dict[str, Any], AfterValidator(_by_column)]


class _Rule(Form):
    when: Values = Field({}, alias="if")
    then: Values = Field(min_length=1, description="{column: value}")
    confidence: Share | None = None
    support: Share | None = None

    @model_validator(mode="after")
    def _together(self) -> _Rule:
        for name in self.then:
            if name in self.when:
                raise FieldError("is under if, too", "then", name)
        if (self.confidence is None) != (self.support is None):
            missing = "support" if self.support is None else "confidence"
            raise FieldError("is required with the other of confidence and support", missing)
        if (
            self.confidence is not None
            and self.support is not None
            and self.support > self.confidence
        ):
            raise FieldError(
                f"must be at most the confidence, {self.confidence:g}; got {self.support:g}",
                "support",
            )
        return self

    def built(self) -> Rule:
        return Rule(
            tuple(self.when.items()), tuple(self.then.items()), self.confidence, self.support
        )


class _Tree(Form):
    target: str = Field(description="a column name")
    predictors: Names = Field(description="column names")
    depth: Whole = Field(ge=1, description="number of splits above a leaf")

    @model_validator(mode="after")
    def _columns(self) -> _Tree:
        _distinct_from(self.target, self.predictors, "predictors")
        return self

    def built(self) -> Tree:
        return Tree(self.target, tuple(self.predictors), self.depth)


class _Rules(Form):
    margins: list[Names] = Field([], min_length=1)
    if_then: list[_Rule] = Field([], min_length=1)
    known: Names = Field([])
    tree: _Tree | None = None

    @model_validator(mode="after")
    def _something(self) -> _Rules:
        if not (self.margins or self.if_then or self.tree):
            raise FieldError(
                "must name what was published: margins, rules under if-then, or a tree"
            )
        return self

    def built(self) -> PublishedRules:
        tree = None if self.tree is None else self.tree.built()
        rules = tuple(rule.built() for rule in self.if_then)
        return PublishedRules(tuple(map(tuple, self.margins)), rules, tree, tuple(self.known))


_COUNTED: dict[str, type[KnownRecords]] = {
    cls.name: cls for cls in (KnownRecords, UnmatchedRecords, KnownSample)
}
KNOWLEDGE: dict[str, type[Form]] = {
    Perfect.name: _Nothing,
    UniformPrior.name: _Nothing,
    Estimated.name: _Rows,
    **dict.fromkeys(_COUNTED, _Records),
    KnownAttributes.name: _Attributes,
    PublishedModel.name: _Model,
    PublishedRules.name: _Rules,
}


def parse_knowledge(value: Any) -> Knowledge:
    """Parse a state of knowledge from a scenario or a Python call.

    Raises
    ------
    KnowledgeError
        Invalid knowledge, with the place and the expected form.
    """
    if isinstance(value, Knowledge):
        return value
    name, form = read_entry(value, KNOWLEDGE, "a state of knowledge")
    if name in _COUNTED:
        return _COUNTED[name](form.count)
    if isinstance(form, _Rows):
        return Estimated(form.rows, form.structure)
    if isinstance(form, _Attributes):
        return KnownAttributes(tuple(form.attributes))
    if isinstance(form, _Model | _Rules):
        return form.built()
    return Perfect() if name == Perfect.name else UniformPrior()
