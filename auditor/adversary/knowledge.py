"""What an adversary knows besides the copies it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal


@dataclass(frozen=True)
class Knowledge:
    """Base: a state of knowledge has a name, as in YAML, and a label that tells two uses apart in results."""

    name: ClassVar[str]

    @property
    def label(self) -> str:
        """How results, reports and filters write it."""
        return self.name

    @property
    def in_clear(self) -> tuple[str, ...]:
        """Attributes whose true values it gives, of every record."""
        return ()

    def spec(self) -> Any:
        """Return it as a scenario would spell it."""
        return self.name


class Perfect(Knowledge):
    """Exact mean and covariance of the table, and the exact law of the noise; for categorical data the exact prior."""

    name = "perfect"


class UniformPrior(Knowledge):
    """Nothing about categorical data: every value is as likely."""

    name = "uniform-prior"


@dataclass(frozen=True)
class Estimated(Knowledge):
    """The law of the noise, and moments of the data estimated from some released rows (li2012, section 6.1).

    Attributes
    ----------
    rows : int
        How many rows, drawn from the seed, ≥ 2.
    structure : 'scheme' or 'none'
        ``scheme``: one estimate of ``K_X`` and the known levels give every block of the copies' covariance. ``none``: the
        unstructured NM×NM sample covariance of the copies stands for it, as ERRATA says the paper's Fig. 2 must have done.
    """

    name = "estimated"
    rows: int
    structure: Literal["scheme", "none"] = "scheme"

    @property
    def label(self) -> str:
        """``estimated(rows=400)`` or ``estimated(rows=400, structure=none)``."""
        return f"estimated(rows={self.rows}{', structure=none' if self.structure == 'none' else ''})"

    def spec(self) -> Any:
        """Return it as a scenario would spell it."""
        return {"estimated": {"rows": self.rows, "structure": self.structure}}


@dataclass(frozen=True)
class KnownRecords(Knowledge):
    """Some records in clear, matched to their copies, drawn from the seed; and the law of the noise.

    What the adversary was given is no discovery: its errors are measured on the other records only.
    """

    name = "known-records"
    count: int

    @property
    def label(self) -> str:
        """``known-records(10)``."""
        return f"{self.name}({self.count})"

    def spec(self) -> Any:
        """Return it as a scenario would spell it."""
        return {self.name: self.count}


class UnmatchedRecords(KnownRecords):
    """Some records in clear, without knowing which released rows are theirs."""

    name = "unmatched-records"


class KnownSample(KnownRecords):
    """Other draws from the population that the table was drawn from."""

    name = "known-sample"


@dataclass(frozen=True)
class KnownAttributes(Knowledge):
    """True values of some attributes of every record under attack, beside all that ``perfect`` knowledge gives.

    Errors of the known attributes are 0, and count as such in the figures over all attributes.
    """

    name = "known-attributes"
    attributes: tuple[str, ...]

    @property
    def in_clear(self) -> tuple[str, ...]:
        """Those attributes."""
        return self.attributes

    @property
    def label(self) -> str:
        """``known-attributes(age, income)``."""
        return f"{self.name}({', '.join(self.attributes)})"

    def spec(self) -> Any:
        """Return it as a scenario would spell it."""
        return {self.name: list(self.attributes)}


@dataclass(frozen=True)
class Regression:
    """The figures of a linear regression as they were published: coefficients by attribute, intercept and residual variance (≥ 0)."""

    coefficients: tuple[float, ...]
    intercept: float
    variance: float


@dataclass(frozen=True)
class Leaf:
    """What a regression tree says of the records in a leaf: the target's mean and variance (≥ 0), and their share of all if stated."""

    mean: float
    variance: float
    share: float | None = None

    def __str__(self) -> str:
        """``(-0.2, 0.1)``, with the share as a third number."""
        return f"({', '.join(f'{number:g}' for number in (self.mean, self.variance, self.share) if number is not None)})"


@dataclass(frozen=True)
class Split:
    """A node of a regression tree: records with at most ``at`` of attribute ``on`` go to ``below``, the others to ``above``."""

    on: str
    at: float
    below: Leaf | Split
    above: Leaf | Split

    def __str__(self) -> str:
        """``[pay ≤ 3: (-0.2, 0.1), else (1, 0.5)]``."""
        return f"[{self.on} ≤ {self.at:g}: {self.below}, else {self.above}]"


@dataclass(frozen=True, kw_only=True)
class PublishedModel(Estimated):
    """What ``estimated`` knowledge gives, and a regression of one attribute on others, or a tree, that was published beside the copies.

    Attributes
    ----------
    target : str
    on : tuple of str
        The predictors.
    known : bool
        Whether the adversary has the predictors' true values, of every record.
    regression : Regression or None
        The figures published; None: those of the table itself, which the audit works out.
    depth : int or None
        Splits (≥ 1) on the way to each leaf of a regression tree that is grown from the table; None: a linear regression was published.
    tree : Split, Leaf or None
        A regression tree whose figures are stated.
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
        """The predictors, where they are known."""
        return self.on if self.known else ()

    @property
    def label(self) -> str:
        """``model(salary on age, years, rows=50)``; with ``by 2, 3, 10, 0.5`` where figures are stated, and ``; known: age, years``.

        Of a tree ``by a tree to depth 2``, or ``by [age ≤ 30: (2, 0.5), else (3, 0.8)]``.
        """
        figures = f" by a tree to depth {self.depth}" if self.depth is not None else "" if self.tree is None else f" by {self.tree}"
        if self.regression is not None:
            numbers = *self.regression.coefficients, self.regression.intercept, self.regression.variance
            figures = f" by {', '.join(f'{number:g}' for number in numbers)}"
        known = f"; known: {', '.join(self.on)}" if self.known else ""
        on = f" on {', '.join(self.on)}" if self.on else ""
        return f"{self.name}({self.target}{on}{figures}, rows={self.rows}{known})"

    def spec(self) -> Any:
        """Return it as a scenario would spell it."""
        spec: dict[str, Any] = {"target": self.target, "predictors": list(self.on), "rows": self.rows, "known": self.known}
        if self.regression is not None:
            del spec["predictors"]
            spec["coefficients"] = dict(zip(self.on, self.regression.coefficients, strict=True))
            spec |= {"intercept": self.regression.intercept, "residual-variance": self.regression.variance}
        if self.depth is not None:
            spec["depth"] = self.depth
        if self.tree is not None:
            del spec["predictors"]
            spec["tree"] = _node_spec(self.tree)
        return {self.name: spec}


def _node_spec(node: Split | Leaf) -> dict[str, Any]:
    if isinstance(node, Split):
        return {"split": node.on, "at": node.at, "below": _node_spec(node.below), "above": _node_spec(node.above)}
    return {"mean": node.mean, "variance": node.variance} | ({} if node.share is None else {"share": node.share})


@dataclass(frozen=True)
class Rule:
    """An association rule, ``when ⇒ then``: both some attributes with a value each.

    Attributes
    ----------
    when, then : tuples of (str, value)
        ``when`` may be empty: the rule then states how many have ``then``.
    confidence : float or None
        Share of those with ``when`` that have ``then``, in (0, 1]; None, as support: the table's own.
    support : float or None
        Share of all records that have both, in (0, confidence].
    """

    when: tuple[tuple[str, Any], ...]
    then: tuple[tuple[str, Any], ...]
    confidence: float | None = None
    support: float | None = None

    def __str__(self) -> str:
        """``if age = old then pay = high``, with ``(0.9, 0.1)`` where its figures are stated."""
        when, then = (" and ".join(f"{name} = {value}" for name, value in part) for part in (self.when, self.then))
        figures = "" if self.confidence is None else f" ({self.confidence:g}, {self.support:g})"
        return f"{f'if {when} then ' if when else ''}{then}{figures}"


@dataclass(frozen=True)
class Tree:
    """A decision tree of one attribute's values, by up to ``depth`` (≥ 1) of the attributes ``on`` on the way to each leaf."""

    target: str
    on: tuple[str, ...]
    depth: int


@dataclass(frozen=True)
class PublishedRules(Knowledge):
    """Marginal tables, association rules and a decision tree of categories that were published beside the copies; nothing else of the data.

    Attributes
    ----------
    margins : tuple of tuples of str
        The attributes of each marginal table of the table's own shares.
    rules : tuple of Rule
    tree : Tree or None
        Grown from the table, each leaf with its share of the records and theirs of the target's values.
    known : tuple of str
        Attributes whose true values the adversary has, of every record.
    """

    name = "rules"
    margins: tuple[tuple[str, ...], ...] = ()
    rules: tuple[Rule, ...] = ()
    tree: Tree | None = None
    known: tuple[str, ...] = ()

    @property
    def in_clear(self) -> tuple[str, ...]:
        """Those that are known."""
        return self.known

    @property
    def label(self) -> str:
        """``rules(age × sex, sex × pay; known: age)``."""
        tree = [] if self.tree is None else [f"tree of {self.tree.target} on {', '.join(self.tree.on)} to depth {self.tree.depth}"]
        published = ", ".join([*(" × ".join(names) for names in self.margins), *map(str, self.rules), *tree])
        known = f"; known: {', '.join(self.known)}" if self.known else ""
        return f"{self.name}({published}{known})"

    def spec(self) -> Any:
        """Return it as a scenario would spell it."""
        spec: dict[str, Any] = {}
        if self.margins:
            spec["margins"] = [list(names) for names in self.margins]
        if self.rules:
            spec["if-then"] = [
                {"if": dict(rule.when), "then": dict(rule.then)}
                | ({} if rule.confidence is None else {"confidence": rule.confidence, "support": rule.support})
                for rule in self.rules
            ]
        if self.tree is not None:
            spec["tree"] = {"target": self.tree.target, "predictors": list(self.tree.on), "depth": self.tree.depth}
        return {self.name: spec | ({"known": list(self.known)} if self.known else {})}


KINDS: dict[str, type[Knowledge]] = {
    cls.name: cls
    for cls in (
        Perfect, UniformPrior, Estimated, KnownRecords, UnmatchedRecords, KnownSample, KnownAttributes, PublishedModel, PublishedRules,
    )
}  # fmt: skip

EXPECTED = (
    "'perfect', 'uniform-prior', {estimated: {rows: r}}, {known-records: p}, {unmatched-records: p}, {known-sample: size}, "
    "{known-attributes: [names]}, {model: {target: name, predictors: [names], rows: r}} or {rules: {margins: [[names]]}}"
)
