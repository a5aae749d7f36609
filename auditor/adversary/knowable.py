"""Check that a table can provide the stated knowledge."""

from __future__ import annotations

from auditor.adversary.knowledge import (
    Estimated,
    Knowledge,
    KnownAttributes,
    KnownRecords,
    Leaf,
    PublishedModel,
    PublishedRules,
    Split,
)
from auditor.adversary.published_rules import published_prior
from auditor.data.table import Table
from auditor.errors import AuditorError, DataError, did_you_mean


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
