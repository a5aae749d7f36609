"""Knowledge of an adversary besides its copies, as scenarios state it.

Each state of knowledge is a model: ``{known-records: 10}`` is ``KnownRecords(10)``.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    NonNegativeFloat,
    Tag,
    model_validator,
)

from auditor.base.types import Plain
from auditor.registry.parameters import FieldError, Form, Names, Whole, as_list, shown

MOST_SPLITS = 8
"""Largest depth: 256 leaves, each with a law of its own."""
SHARES_OFF = 0.01
"""Tolerance for the sum of rounded shares."""

Listed = BeforeValidator(as_list)
Share = Annotated[float, Field(gt=0, le=1)]


class Part(Form):
    """A model that also accepts values in the order of its fields."""

    def __init__(self, *values: Any, **named: Any) -> None:
        fields = [*type(self).model_fields][: len(values)]
        super().__init__(**dict(zip(fields, values, strict=True)), **named)

    # validation need not call it
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


class Knowledge(Part):
    """Base of states of knowledge."""

    name: ClassVar[str]

    @property
    def label(self) -> str:
        """Unique text in results, reports and filters."""
        return self.name

    def __hash__(self) -> int:
        return hash(self.label)

    @property
    def in_clear(self) -> tuple[str, ...]:
        """Attributes with true values known for every record."""
        return ()

    @property
    def row_count(self) -> int:
        """Number of rows that are known or estimated from."""
        return 0

    def spec(self) -> Any:
        """Scenario's spelling."""
        stated = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        stated = {field: value for field, value in stated.items() if value != []}
        return {self.name: stated.get(self.alone, stated)} if stated else self.name


class Perfect(Knowledge):
    """Exact mean and covariance, or prior, and the exact noise law."""

    name = "perfect"


class UniformPrior(Knowledge):
    """A uniform prior of categorical data."""

    name = "uniform-prior"


class Estimated(Knowledge):
    """The noise law, and moments estimated from released rows (li2012, 6.1).

    ``structure: none`` is the unstructured NM×NM sample covariance (Fig. 2, ERRATA).
    """

    name = "estimated"
    rows: Whole = Field(ge=2)
    """number of released rows"""
    structure: Literal["scheme", "none"] = "scheme"

    @property
    def row_count(self) -> int:
        return self.rows

    @property
    def label(self) -> str:
        unstructured = ", structure=none" if self.structure == "none" else ""
        return f"{self.name}(rows={self.rows}{unstructured})"


class KnownRecords(Knowledge):
    """Original records matched to their copies, and the noise law."""

    name = "known-records"
    alone = "count"
    count: Whole = Field(ge=1)
    """number of records"""

    @property
    def row_count(self) -> int:
        return self.count

    @property
    def label(self) -> str:
        return f"{self.name}({self.count})"


class UnmatchedRecords(KnownRecords):
    """Original records, not matched to released rows."""

    name = "unmatched-records"


class KnownSample(KnownRecords):
    """Other draws from the table's population."""

    name = "known-sample"


class KnownAttributes(Knowledge):
    """``perfect`` knowledge and true values of some attributes of all records."""

    name = "known-attributes"
    alone = "attributes"
    attributes: Names
    """column names"""

    @property
    def in_clear(self) -> tuple[str, ...]:
        return tuple(self.attributes)

    @property
    def label(self) -> str:
        return f"{self.name}({', '.join(self.attributes)})"


class Leaf(Part):
    """A leaf's mean and variance of the target, and share of records."""

    mean: float
    variance: NonNegativeFloat
    share: Share | None = None
    """share of the records"""

    def __str__(self) -> str:
        return f"({', '.join(f'{number:g}' for _, number in self if number is not None)})"


class Split(Part):
    """A tree node: ``split ≤ at`` leads to ``below``, else ``above``."""

    split: str
    """a column name"""
    at: float
    below: Node
    above: Node

    def __str__(self) -> str:
        return f"[{self.split} ≤ {self.at:g}: {self.below}, else {self.above}]"


def _kind_of_node(node: Any) -> str:
    branch = isinstance(node, Split) or (
        isinstance(node, dict) and not node.keys().isdisjoint(Split.model_fields)
    )
    return "Split" if branch else "Leaf"


Node = Annotated[
    Annotated[Split, Tag("Split")] | Annotated[Leaf, Tag("Leaf")], Discriminator(_kind_of_node)
]


def _distinct_from(target: str, names: Names, field: str) -> None:
    if target in names:
        raise FieldError(f"names the target; got {shown(names)}", field)


class PublishedModel(Estimated):
    """``estimated`` knowledge and a published regression or regression tree.

    Figures are computed from the table unless ``coefficients`` or a ``tree`` states them.
    """

    name = "model"
    structure: ClassVar[Literal["scheme"]] = "scheme"  # type: ignore[misc]
    target: str
    """a column name"""
    known: bool = False
    predictors: Names | None = None
    depth: Annotated[Whole, Field(ge=1, le=MOST_SPLITS)] | None = None
    """number of splits above a leaf"""
    coefficients: dict[str, float] | None = Field(default=None, min_length=1)
    intercept: float | None = None
    residual_variance: NonNegativeFloat | None = None
    tree: Node | None = None

    @model_validator(mode="after")
    def _one_form(self) -> PublishedModel:
        figures = ("coefficients", "intercept", "residual-variance")
        given = {field.replace("_", "-") for field in self.model_fields_set}
        form = "tree" if "tree" in given else "coefficients" if given & {*figures} else "predictors"
        needed = figures if form == "coefficients" else (form,)
        allowed = {*needed, "depth"} if form == "predictors" else {*needed}
        for field in sorted(given - allowed - {"target", "rows", "known"}):
            raise FieldError(f"cannot be given with {form}; leave one of them out", field)
        for field in needed:
            if getattr(self, field.replace("-", "_")) is None:
                raise FieldError("is required", field)
        if form == "tree":
            _check_tree(self.tree)
            if self.target in self.on:
                raise FieldError(f"splits on the target, {shown(self.target)}", "tree")
            if self.known and not self.on:
                raise FieldError("has nothing to give: the tree has no predictors", "known")
        _distinct_from(self.target, self.on, form)
        return self

    @property
    def on(self) -> list[str]:
        """The predictors."""
        return list(self.predictors or self.coefficients or _splits(self.tree))

    @property
    def is_tree(self) -> bool:
        """Whether a tree was published."""
        return self.depth is not None or self.tree is not None

    @property
    def in_clear(self) -> tuple[str, ...]:
        return tuple(self.on) if self.known else ()

    @property
    def label(self) -> str:
        """``model(salary on age, years, rows=50)``, with stated figures."""
        figures = "" if self.tree is None else f" by {self.tree}"
        if self.depth is not None:
            figures = f" by a tree to depth {self.depth}"
        if self.coefficients is not None:
            numbers = (*self.coefficients.values(), self.intercept, self.residual_variance)
            figures = f" by {', '.join(f'{number:g}' for number in numbers)}"
        on = f" on {', '.join(self.on)}" if self.on else ""
        return f"{self.name}({self.target}{on}{figures}, rows={self.rows}{_known(self.in_clear)})"


def _known(names: tuple[str, ...]) -> str:
    return f"; known: {', '.join(names)}" if names else ""


def _splits(node: Split | Leaf | None) -> dict[str, None]:
    """Attributes of a tree's splits, in order of first use."""
    if not isinstance(node, Split):
        return {}
    return {node.split: None} | _splits(node.below) | _splits(node.above)


def _check_tree(tree: Split | Leaf | None) -> None:
    shares: list[float | None] = []

    def walk(node: Any, within: dict[str, tuple[float, float]], place: tuple[str, ...]) -> None:
        if isinstance(node, Leaf):
            shares.append(node.share)
            return
        low, high = within.get(node.split, (-math.inf, math.inf))
        if not low < node.at < high:
            raise FieldError(
                f"must be above {low:g} and below {high:g}, as the splits above it are; got {node.at:g}",
                *place,
                "at",
            )
        walk(node.below, within | {node.split: (low, node.at)}, (*place, "below"))
        walk(node.above, within | {node.split: (node.at, high)}, (*place, "above"))

    walk(tree, {}, ("tree",))
    stated = [share for share in shares if share is not None]
    if stated and len(stated) < len(shares):
        raise FieldError(
            f"must state the share of every leaf or of none; {len(stated)} of {len(shares)} have one",
            "tree",
        )
    if stated and abs(sum(stated) - 1.0) > SHARES_OFF:
        raise FieldError(f"must have shares that sum to 1; got {sum(stated):g}", "tree")


def _by_column(values: Plain) -> Plain:
    if not all(isinstance(value, str | int | float) for value in values.values()):
        raise ValueError("must be {column: value}")
    return values


Values = Annotated[Plain, AfterValidator(_by_column)]


class Rule(Part):
    """An association rule, ``when ⇒ then``, of attributes with values.

    ``confidence`` is ``P(then | when)`` and ``support`` is ``P(when, then)``; the table's own by
    default.
    """

    when: Values = Field({}, alias="if")
    then: Values = Field(min_length=1)
    """{column: value}"""
    confidence: Share | None = None
    support: Share | None = None

    @model_validator(mode="after")
    def _together(self) -> Rule:
        for name in self.then:
            if name in self.when:
                raise FieldError("is under if, too", "then", name)
        confidence, support = self.confidence, self.support
        if (confidence is None) != (support is None):
            missing = "support" if support is None else "confidence"
            raise FieldError("is required with the other of confidence and support", missing)
        if confidence is not None and support is not None and support > confidence:
            raise FieldError(
                f"must be at most the confidence, {confidence:g}; got {support:g}", "support"
            )
        return self

    def __str__(self) -> str:
        when, then = (
            " and ".join(f"{name} = {value}" for name, value in part.items())
            for part in (self.when, self.then)
        )
        figures = "" if self.confidence is None else f" ({self.confidence:g}, {self.support:g})"
        return f"{f'if {when} then ' if when else ''}{then}{figures}"


class Tree(Part):
    """A decision tree of ``target`` on ``predictors``."""

    target: str
    """a column name"""
    predictors: Names
    """column names"""
    depth: Whole = Field(ge=1)
    """number of splits above a leaf"""

    @model_validator(mode="after")
    def _columns(self) -> Tree:
        _distinct_from(self.target, self.predictors, "predictors")
        return self

    def __str__(self) -> str:
        return f"tree of {self.target} on {', '.join(self.predictors)} to depth {self.depth}"


class PublishedRules(Knowledge):
    """Published marginal tables, association rules and a decision tree.

    ``known`` names the attributes with true values known for every record.
    """

    name = "rules"
    margins: Annotated[list[Names], Listed] = Field(default=[], min_length=1)
    if_then: Annotated[list[Rule], Listed] = Field(default=[], min_length=1)
    known: Names = Field(default=[])
    tree: Tree | None = None

    @model_validator(mode="after")
    def _something(self) -> PublishedRules:
        if not (self.margins or self.if_then or self.tree):
            raise FieldError(
                "must name what was published: margins, rules under if-then, or a tree"
            )
        return self

    @property
    def in_clear(self) -> tuple[str, ...]:
        return tuple(self.known)

    @property
    def label(self) -> str:
        """``rules(age × sex, sex × pay; known: age)``."""
        tables = (" × ".join(names) for names in self.margins)
        published = (*tables, *map(str, self.if_then), *([str(self.tree)] if self.tree else ()))
        return f"{self.name}({', '.join(published)}{_known(self.in_clear)})"


KINDS: dict[str, type[Knowledge]] = {
    cls.name: cls
    for cls in (
        Perfect,
        UniformPrior,
        Estimated,
        KnownRecords,
        UnmatchedRecords,
        KnownSample,
        KnownAttributes,
        PublishedModel,
        PublishedRules,
    )
}
