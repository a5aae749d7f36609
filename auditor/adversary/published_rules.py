"""Maximum-entropy prior of published results; a table's fit to knowledge.

Each published result states the cell shares of a partition of the domain. The prior has maximum
entropy among all that agree. Iterative proportional fitting finds it from a uniform start.

| symbol | meaning | shape |
| --- | --- | --- |
| ``q`` | the prior | (s,) |
| ``c_j(x), m_j`` | the cell of value x in the j-th table, and the published shares of its cells | (s,), (cells,) |
| | ``q(x) ← q(x) · m_j(c_j(x)) / Σ_{x′: c_j(x′) = c_j(x)} q(x′)``, for one j after the other | |

A marginal table has a cell per combination of values. A rule ``A ⇒ C`` of support ``σ = P(A, C)``
and confidence ``κ = P(C | A)`` has three: both (σ), A alone (``σ/κ − σ``), and no A (``1 − σ/κ``).
A tree has a cell per leaf and target value. It splits by the attribute of least conditional
entropy, into all of its values.

Source: deming1940 for the iteration; csiszar1975 for its limit, the I-projection; quinlan1986 for
the tree.

Check that a table can provide the stated knowledge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.knowledge import (
    Estimated,
    Knowledge,
    KnownAttributes,
    KnownRecords,
    Leaf,
    PublishedModel,
    PublishedRules,
    Rule,
    Split,
    Tree,
)
from auditor.base.errors import AuditorError, DataError, did_you_mean
from auditor.base.types import Array
from auditor.data.columns.categorical_table import Attribute
from auditor.data.table import Table

CLOSE, SLACK, MOST_SWEEPS = 1e-10, 1e-3, 1000
"""The iteration stops at the first error of shares; after the most sweeps the second is allowed,
for figures of three digits."""

NO_GAIN = 1e-12
"""Least reduction of entropy by a split."""


class PublishedTable(NamedTuple):
    """Cell of each domain value, shape (s,), and shares; NaN: the table's own."""

    cells: NDArray[np.intp]
    shares: Array


def published_prior(
    knowledge: PublishedRules, attributes: Sequence[Attribute], own: Array
) -> Array:
    """Return the maximum-entropy prior given published results, shape (s,).

    Parameters
    ----------
    knowledge : PublishedRules
    attributes : sequence of Attribute
        Of the product domain.
    own : ndarray of shape (s,)
        The table's shares, for figures that are not stated.

    Raises
    ------
    DataError
        Unknown names or contradictory figures; with the path of the field at fault.
    """
    tables = [
        marginal(names, attributes, ("margins", place))
        for place, names in enumerate(knowledge.margins)
    ]
    tables += [
        ruled(rule, attributes, ("if-then", place)) for place, rule in enumerate(knowledge.rules)
    ]
    tables += [] if knowledge.tree is None else [grown(knowledge.tree, attributes, own, ("tree",))]
    cells_of(knowledge.known, attributes, ("known",))
    if set(knowledge.known) == {attribute.name for attribute in attributes}:
        raise DataError("names every attribute and leaves none to attack", ("known",))
    return maximum_entropy([filled(table, own) for table in tables], own.size)


def filled(table: PublishedTable, own: Array) -> PublishedTable:
    """Fill in shares that are not stated from the table's own."""
    if np.isfinite(table.shares).all():
        return table
    return table._replace(
        shares=np.asarray(np.bincount(table.cells, own, table.shares.size), dtype=np.float64)
    )


def maximum_entropy(tables: Sequence[PublishedTable], size: int) -> Array:
    """Return the maximum-entropy distribution given published tables, (s,).

    Raises
    ------
    DataError
        No distribution agrees with all tables.
    """
    q, off = np.full(size, 1.0 / size), np.inf
    for _ in range(MOST_SWEEPS):
        for cells, shares in tables:
            now = np.bincount(cells, q, shares.size)
            q *= np.divide(shares, now, out=np.zeros_like(shares), where=now > 0)[cells]
        off = max(
            (
                float(np.abs(np.bincount(cells, q, shares.size) - shares).max())
                for cells, shares in tables
            ),
            default=0.0,
        )
        if off <= CLOSE:
            break
    if not off <= SLACK:
        raise DataError("states figures that cannot all be true: no distribution has them")
    return q / q.sum()


def marginal(
    names: Sequence[str], attributes: Sequence[Attribute], path: tuple[str | int, ...]
) -> PublishedTable:
    """Return the marginal table of some attributes, shares not stated."""
    cells = cells_of(names, attributes, path)
    return PublishedTable(cells, np.full(int(cells.max()) + 1, np.nan))


def ruled(
    rule: Rule, attributes: Sequence[Attribute], path: tuple[str | int, ...]
) -> PublishedTable:
    """Return a rule's cells: antecedent with and without consequent, rest."""
    when, then = (
        _holds(dict(part), attributes, (*path, key))
        for key, part in (("if", rule.when), ("then", rule.then))
    )
    shares = np.full(3, np.nan)
    if rule.support is not None and rule.confidence is not None:
        covered = rule.support / rule.confidence
        shares = np.array([rule.support, covered - rule.support, 1.0 - covered])
    return PublishedTable(np.where(when, np.where(then, 0, 1), 2), shares)


def grown(
    tree: Tree, attributes: Sequence[Attribute], own: Array, path: tuple[str | int, ...]
) -> PublishedTable:
    """Return the cells of a tree grown from the table's shares."""
    _place(tree.target, attributes, (*path, "target"))
    y = cells_of([tree.target], attributes)
    cells_of(tree.on, attributes, (*path, "predictors"))
    splits, values = {name: cells_of([name], attributes) for name in tree.on}, int(y.max()) + 1
    leaf = np.zeros(own.size, dtype=np.intp)

    def grow(inside: NDArray[np.intp], left: frozenset[str], depth: int) -> None:
        entropies = {
            name: conditional_entropy(own[inside], splits[name][inside], y[inside])
            for name in tree.on
            if name in left
        }
        name = min(entropies, key=lambda name: entropies[name], default="")
        if (
            not depth
            or not name
            or entropies[name]
            >= conditional_entropy(own[inside], np.zeros_like(inside), y[inside]) - NO_GAIN
        ):
            leaf[inside] = leaf.max() + 1
            return
        for value in np.unique(splits[name][inside]):
            grow(inside[splits[name][inside] == value], left - {name}, depth - 1)

    grow(np.arange(own.size), frozenset(tree.on), tree.depth)
    return PublishedTable((leaf - 1) * values + y, np.full(int(leaf.max()) * values, np.nan))


def conditional_entropy(share: Array, x: NDArray[np.intp], y: NDArray[np.intp]) -> float:
    """Return ``−Σ P(x, y) ln P(y | x)``, for codes x, y with shares P."""
    Y = int(y.max()) + 1
    joint = np.bincount(x * Y + y, share, (int(x.max()) + 1) * Y).reshape(-1, Y)
    given = np.divide(
        joint, joint.sum(axis=1, keepdims=True), out=np.ones_like(joint), where=joint > 0
    )
    return float(-(joint * np.log(given)).sum())


def cells_of(
    names: Sequence[str], attributes: Sequence[Attribute], path: tuple[str | int, ...] = ()
) -> NDArray[np.intp]:
    """Return each domain value's combination of some attributes, shape (s,).

    Raises
    ------
    DataError
        An attribute does not exist.
    """
    places = [_place(name, attributes, (*path, number)) for number, name in enumerate(names)]
    sizes = tuple(attribute.size for attribute in attributes)
    parts = np.unravel_index(np.arange(int(np.prod(sizes, dtype=np.int64))), sizes)
    cells = np.zeros(parts[0].size, dtype=np.intp)
    for place in places:
        cells = cells * sizes[place] + parts[place]
    return cells


def _place(name: str, attributes: Sequence[Attribute], path: tuple[str | int, ...]) -> int:
    known = [attribute.name for attribute in attributes]
    if name not in known:
        raise DataError(
            f"names no attribute of categories: {name!r}{did_you_mean(name, known)}", path
        )
    return known.index(name)


def _holds(
    values: dict[str, Any], attributes: Sequence[Attribute], path: tuple[str | int, ...]
) -> NDArray[np.bool_]:
    """Mask of domain values with the given attribute values, shape (s,)."""
    holds: NDArray[np.bool_] = np.ones(
        int(np.prod([attribute.size for attribute in attributes], dtype=np.int64)), dtype=bool
    )
    for name, value in values.items():
        labels = [
            str(label) for label in attributes[_place(name, attributes, (*path, name))].labels
        ]
        if str(value) not in labels:
            raise DataError(
                f"states a value that is not in the column's domain, which has {len(labels)}",
                (*path, name),
            )
        holds &= cells_of([name], attributes) == labels.index(str(value))
    return holds


def check_knowledge(knowledge: Knowledge, table: Table) -> None:
    """Refuse knowledge that the table cannot provide.

    Raises
    ------
    AuditorError
        Too many rows, nothing left to attack, or an unknown attribute. A ``DataError`` has the path
        of the field below the knowledge.
    """
    if isinstance(knowledge, Estimated) and knowledge.rows > table.rows:
        raise DataError(
            f"needs {knowledge.rows:,} released rows; the table has {table.rows:,}", ("rows",)
        )
    if isinstance(knowledge, KnownRecords) and knowledge.count > table.rows:
        raise AuditorError(f"needs {knowledge.count:,} records; the table has {table.rows:,}")
    if isinstance(knowledge, KnownRecords) and knowledge.count == table.rows:
        raise AuditorError(
            f"leaves no record to attack: the table has {table.rows:,}, all of them known"
        )
    if isinstance(knowledge, PublishedModel):
        predictors = "predictors" if knowledge.regression is None else "coefficients"
        for place, name in enumerate(knowledge.on if knowledge.tree is None else ()):
            _check_column(
                name, table, (predictors, place if knowledge.regression is None else name)
            )
        _check_splits(knowledge.tree, table, ("tree",))
        _check_column(knowledge.target, table, ("target",))
    if isinstance(knowledge, PublishedRules):
        if table.categorical is None:
            raise DataError(
                "is of categories, and the table has none: name columns under data.categorical or data.bin"
            )
        published_prior(knowledge, table.categorical.attributes, table.categorical.prior)
    if isinstance(knowledge, KnownAttributes):
        for name in knowledge.attributes:
            _check_column(name, table)
        if set(knowledge.attributes) == set(table.attributes):
            raise AuditorError("names every column that is audited and leaves none to attack")


def _check_column(name: str, table: Table, path: tuple[str | int, ...] = ()) -> None:
    if name not in table.attributes:
        raise DataError(
            f"names no column that is audited: {name!r}{did_you_mean(name, table.attributes)}", path
        )


def _check_splits(node: Split | Leaf | None, table: Table, path: tuple[str | int, ...]) -> None:
    if isinstance(node, Split):
        _check_column(node.on, table, (*path, "split"))
        _check_splits(node.below, table, (*path, "below"))
        _check_splits(node.above, table, (*path, "above"))
