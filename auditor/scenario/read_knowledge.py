"""Section ``knowledge``: the adversary's knowledge, from YAML or Python."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from auditor.adversary.knowledge import (
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
from auditor.registry.parameters import FieldError, Whole, shown
from auditor.scenario.problems import Form, FormError, Names, read_entry

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
