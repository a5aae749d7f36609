"""Declared hierarchy of one column's values, for schemes and attacks.

| word | meaning |
| --- | --- |
| leaf | one of the column's values; the table holds its place among the leaves, 0 … L − 1, in the order of the declaration |
| node | a group of neighbouring leaves: an interval of places |
| height | 0 for a leaf, one more per level of grouping; all branches have equal height, and the root has height H |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from auditor.base.errors import DataError
from auditor.base.text import counted, quoted
from auditor.base.types import Array, Indices
from auditor.data.columns.categorical_table import codes_in
from auditor.data.columns.checks import Series, kind_of
from auditor.process.deferred import pd

Leaf = str | int | float
Node = tuple[str, ...]


@dataclass(frozen=True)
class Hierarchy:
    """The values of one column in the order of their hierarchy.

    Attributes
    ----------
    leaves : tuple of str or numbers
        Distinct.
    nodes : tuple of tuples of str
        For each leaf the names of its nodes from the highest below the root down to its parent; H −
        1 for every leaf.
    """

    leaves: tuple[Leaf, ...] = field(repr=False)
    nodes: tuple[Node, ...] = field(repr=False)

    @property
    def height(self) -> int:
        """``H``, the height of the root."""
        return len(self.nodes[0]) + 1

    def groups(self, height: int) -> Indices:
        """Return each leaf's node at a height, shape (L,), ascending from 0.

        Height 0: every leaf its own; H: one for all.

        Examples
        --------
        >>> Hierarchy(("flu", "cough", "ulcer"), (("lungs",), ("lungs",), ("stomach",))).groups(1)
        array([0, 0, 1])
        """
        if height == 0:
            return np.arange(len(self.leaves))
        keys = [chain[: self.height - height] for chain in self.nodes]
        return np.cumsum([0, *(int(a != b) for a, b in pairwise(keys))])

    def borders(self, height: int) -> Array:
        """Return the first place of each node at a height, ascending."""
        return np.flatnonzero(np.diff(self.groups(height), prepend=-1)).astype(np.float64)

    @cached_property
    def ancestors(self) -> dict[int, Node]:
        """For each place its ancestors' names from parent to root.

        The form of ``auditor.schemes.generalisation.classes.earth_mover``.
        """
        # A name may occur in two branches: the path is unique.
        ways = [
            [" > ".join(chain[:depth]) for depth in range(len(chain), -1, -1)]
            for chain in self.nodes
        ]
        return {place: tuple(way) for place, way in enumerate(ways)}

    def code(self, name: str, column: Series) -> Array:
        """Return each record's place among the leaves, shape (n,); NaN if missing.

        Raises
        ------
        DataError
            Some values are no leaves.
        """
        if kind_of(column) == "numbers" and any(isinstance(leaf, str) for leaf in self.leaves):
            raise DataError(
                f"column {quoted(name)} holds numbers, and its hierarchy lists text",
                ("hierarchies", name),
            )
        codes = codes_in(self.leaves, column).astype(np.float64)
        missing = column.isna().to_numpy()
        unknown = int(((codes < 0) & ~missing).sum())
        if unknown:
            problem = f"column {quoted(name)} has {counted(unknown, 'record')} whose value its hierarchy does not list"
            raise DataError(problem, ("hierarchies", name))
        codes[missing] = np.nan
        return codes


def coded(frame: pd.DataFrame, hierarchies: dict[str, Hierarchy], missing: str) -> pd.DataFrame:
    """Return the frame with hierarchical columns as places among leaves.

    Raises
    ------
    DataError
        A column does not exist, holds an undeclared value, or lacks values (no mean can replace
        them).
    """
    changed = {}
    for name, hierarchy in hierarchies.items():
        if name not in frame:
            raise DataError(
                f"there is no column {quoted(name)} to have a hierarchy", ("hierarchies", name)
            )
        codes = hierarchy.code(name, frame[name])
        if missing == "mean" and np.isnan(codes).any():
            problem = f"column {quoted(name)} has missing categories; set `missing: drop` to leave those records out"
            raise DataError(problem, ("hierarchies", name))
        changed[name] = codes
    return frame.assign(**changed)


def hierarchy_of(declared: Any) -> Hierarchy:
    """Return the hierarchy of a checked declaration.

    Nested mappings of nodes, with lists of values at the ends.
    """
    leaves: list[Leaf] = []
    nodes: list[Node] = []

    def walk(part: Any, above: Node) -> None:
        if isinstance(part, dict):
            for name, below in part.items():
                walk(below, (*above, str(name)))
        else:
            leaves.extend(part)
            nodes.extend([above] * len(part))

    walk(declared, ())
    return Hierarchy(tuple(leaves), tuple(nodes))
