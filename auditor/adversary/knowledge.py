"""An adversary's knowledge besides its copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal


@dataclass(frozen=True)
class Knowledge:
    """Base of states of knowledge."""

    name: ClassVar[str]

    @property
    def label(self) -> str:
        """Unique text in results, reports and filters."""
        return self.name

    @property
    def in_clear(self) -> tuple[str, ...]:
        """Attributes whose true values are known for every record."""
        return ()

    def spec(self) -> Any:
        """Scenario's spelling."""
        return self.name


class Perfect(Knowledge):
    """Exact mean and covariance, or prior, and the exact noise law."""

    name = "perfect"


class UniformPrior(Knowledge):
    """A uniform prior of categorical data."""

    name = "uniform-prior"


@dataclass(frozen=True)
class Estimated(Knowledge):
    """The noise law, and moments estimated from released rows (li2012, 6.1).

    Attributes
    ----------
    rows
        Number of rows, drawn from the seed, ≥ 2.
    structure : 'scheme' or 'none'
        ``none``: the unstructured NM×NM sample covariance (Fig. 2, ERRATA).
    """

    name = "estimated"
    rows: int
    structure: Literal["scheme", "none"] = "scheme"

    @property
    def label(self) -> str:
        """``estimated(rows=400)`` or ``estimated(rows=400, structure=none)``."""
        return (
            f"estimated(rows={self.rows}{', structure=none' if self.structure == 'none' else ''})"
        )

    def spec(self) -> Any:
        """Scenario's spelling."""
        return {"estimated": {"rows": self.rows, "structure": self.structure}}


@dataclass(frozen=True)
class KnownRecords(Knowledge):
    """Original records matched to their copies, and the noise law."""

    name = "known-records"
    count: int

    @property
    def label(self) -> str:
        """``known-records(10)``."""
        return f"{self.name}({self.count})"

    def spec(self) -> Any:
        """Scenario's spelling."""
        return {self.name: self.count}


class UnmatchedRecords(KnownRecords):
    """Original records, not matched to released rows."""

    name = "unmatched-records"


class KnownSample(KnownRecords):
    """Other draws from the table's population."""

    name = "known-sample"


@dataclass(frozen=True)
class KnownAttributes(Knowledge):
    """``perfect`` knowledge and true values of some attributes of all records."""

    name = "known-attributes"
    attributes: tuple[str, ...]

    @property
    def in_clear(self) -> tuple[str, ...]:
        """The known attributes."""
        return self.attributes

    @property
    def label(self) -> str:
        """``known-attributes(age, income)``."""
        return f"{self.name}({', '.join(self.attributes)})"

    def spec(self) -> Any:
        """Scenario's spelling."""
        return {self.name: list(self.attributes)}


@dataclass(frozen=True)
class Regression:
    """Published coefficients, intercept and residual variance (≥ 0)."""

    coefficients: tuple[float, ...]
    intercept: float
    variance: float


@dataclass(frozen=True)
class Leaf:
    """A leaf's mean and variance (≥ 0) of the target, and share of records."""

    mean: float
    variance: float
    share: float | None = None

    def __str__(self) -> str:
        return f"({', '.join(f'{number:g}' for number in (self.mean, self.variance, self.share) if number is not None)})"


@dataclass(frozen=True)
class Split:
    """A tree node: ``on ≤ at`` leads to ``below``, else ``above``."""

    on: str
    at: float
    below: Leaf | Split
    above: Leaf | Split

    def __str__(self) -> str:
        return f"[{self.on} ≤ {self.at:g}: {self.below}, else {self.above}]"


@dataclass(frozen=True, kw_only=True)
class PublishedModel(Estimated):
    """``estimated`` knowledge and a published regression or regression tree.

    Attributes
    ----------
    on
        The predictors.
    known
        Whether the predictors' true values are known for every record.
    regression
        None: computed from the table.
    depth
        Most splits (≥ 1) above a leaf, if grown from the table.
    tree : Split, Leaf or None
        Stated figures.
    """

    name = "model"
    target: str
    on: tuple[str, ...]
    known: bool = False
    regression: Regression | None = None
    depth: int | None = None
    tree: Split | Leaf | None = None

    @property
    def is_tree(self) -> bool:
        """Whether a tree was published."""
        return self.depth is not None or self.tree is not None

    @property
    def in_clear(self) -> tuple[str, ...]:
        """The predictors, if known."""
        return self.on if self.known else ()

    @property
    def label(self) -> str:
        """``model(salary on age, years, rows=50)``, with stated figures."""
        figures = (
            f" by a tree to depth {self.depth}"
            if self.depth is not None
            else ""
            if self.tree is None
            else f" by {self.tree}"
        )
        if self.regression is not None:
            numbers = (
                *self.regression.coefficients,
                self.regression.intercept,
                self.regression.variance,
            )
            figures = f" by {', '.join(f'{number:g}' for number in numbers)}"
        known = f"; known: {', '.join(self.on)}" if self.known else ""
        on = f" on {', '.join(self.on)}" if self.on else ""
        return f"{self.name}({self.target}{on}{figures}, rows={self.rows}{known})"

    def spec(self) -> Any:
        """Scenario's spelling."""
        spec: dict[str, Any] = {
            "target": self.target,
            "predictors": list(self.on),
            "rows": self.rows,
            "known": self.known,
        }
        if self.regression is not None:
            del spec["predictors"]
            spec["coefficients"] = dict(zip(self.on, self.regression.coefficients, strict=True))
            spec |= {
                "intercept": self.regression.intercept,
                "residual-variance": self.regression.variance,
            }
        if self.depth is not None:
            spec["depth"] = self.depth
        if self.tree is not None:
            del spec["predictors"]
            spec["tree"] = _node_spec(self.tree)
        return {self.name: spec}


def _node_spec(node: Split | Leaf) -> dict[str, Any]:
    if isinstance(node, Split):
        return {
            "split": node.on,
            "at": node.at,
            "below": _node_spec(node.below),
            "above": _node_spec(node.above),
        }
    return {"mean": node.mean, "variance": node.variance} | (
        {} if node.share is None else {"share": node.share}
    )


@dataclass(frozen=True)
class Rule:
    """An association rule, ``when ⇒ then``, of attributes with values.

    Attributes
    ----------
    when, then : tuples of (str, value)
        ``when`` may be empty.
    confidence
        ``P(then | when)``, in (0, 1]; None: the table's own.
    support
        ``P(when, then)``, in (0, confidence].
    """

    when: tuple[tuple[str, Any], ...]
    then: tuple[tuple[str, Any], ...]
    confidence: float | None = None
    support: float | None = None

    def __str__(self) -> str:
        when, then = (
            " and ".join(f"{name} = {value}" for name, value in part)
            for part in (self.when, self.then)
        )
        figures = "" if self.confidence is None else f" ({self.confidence:g}, {self.support:g})"
        return f"{f'if {when} then ' if when else ''}{then}{figures}"


@dataclass(frozen=True)
class Tree:
    """A decision tree of ``target`` on attributes ``on``, of ``depth`` ≥ 1."""

    target: str
    on: tuple[str, ...]
    depth: int


@dataclass(frozen=True)
class PublishedRules(Knowledge):
    """Published marginal tables, association rules and a decision tree.

    Attributes
    ----------
    margins : tuple of tuples of str
        Attributes of each table.
    tree
        Grown from the table.
    known
        Attributes whose true values are known for every record.
    """

    name = "rules"
    margins: tuple[tuple[str, ...], ...] = ()
    rules: tuple[Rule, ...] = ()
    tree: Tree | None = None
    known: tuple[str, ...] = ()

    @property
    def in_clear(self) -> tuple[str, ...]:
        """The known attributes."""
        return self.known

    @property
    def label(self) -> str:
        """``rules(age × sex, sex × pay; known: age)``."""
        tree = (
            []
            if self.tree is None
            else [
                f"tree of {self.tree.target} on {', '.join(self.tree.on)} to depth {self.tree.depth}"
            ]
        )
        published = ", ".join(
            [*(" × ".join(names) for names in self.margins), *map(str, self.rules), *tree]
        )
        known = f"; known: {', '.join(self.known)}" if self.known else ""
        return f"{self.name}({published}{known})"

    def spec(self) -> Any:
        """Scenario's spelling."""
        spec: dict[str, Any] = {}
        if self.margins:
            spec["margins"] = [list(names) for names in self.margins]
        if self.rules:
            spec["if-then"] = [
                {"if": dict(rule.when), "then": dict(rule.then)}
                | (
                    {}
                    if rule.confidence is None
                    else {"confidence": rule.confidence, "support": rule.support}
                )
                for rule in self.rules
            ]
        if self.tree is not None:
            spec["tree"] = {
                "target": self.tree.target,
                "predictors": list(self.tree.on),
                "depth": self.tree.depth,
            }
        return {self.name: spec | ({"known": list(self.known)} if self.known else {})}


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

EXPECTED = (
    "'perfect', 'uniform-prior', {estimated: {rows: r}}, {known-records: p}, {unmatched-records: p}, {known-sample: size}, "
    "{known-attributes: [names]}, {model: {target: name, predictors: [names], rows: r}} or {rules: {margins: [[names]]}}"
)
