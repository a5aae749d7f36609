"""Joint counts of one attribute's originals, copies and estimates.

Bins are runs of cells. Cells of numbers are a quarter of a standard deviation wide, up to three
standard deviations from the mean; the outermost are open. Categories are ordered by frequency. A
bin has ten records or more, or none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from auditor.audit.base.records import CellContext
from auditor.results.disclosure import FEWEST_RECORDS
from auditor.results.measurements import Measurements
from auditor.results.records import Picture
from auditor.types import Array, Coalition, Indices

CELLS, PER_DEVIATION = 24, 4
RECORDS = 2**16
"""Records that are counted, about, from all over a longer table."""
EXACT = 5e-4
"""Shares unknown below this value are equal."""
Cell = tuple[str, str, Coalition, str]
"""Attack, knowledge, coalition and attribute."""


def most_exposed(
    found: Measurements, tries: Mapping[tuple[str, str], Sequence[str]]
) -> Cell | None:
    """Return the cell with the least share unknown; of equal ones, the smallest coalition.

    ``tries`` has the eligible pairs of attack and knowledge, and the attributes known in clear.
    """
    unknown = dict[Cell, float]()
    for metric, power in (("normalized_error", 1), ("median_error_ratio", 2)):
        for one in found.taken(found.where(metric=metric, status="ok")):
            cell = (str(one.attack), str(one.knowledge), one.coalition, one.attribute)
            known = tries.get(cell[:2], [one.attribute])
            if one.attribute not in known and one.value is not None:
                unknown[cell] = min(unknown.get(cell, np.inf), one.value**power)

    def rank(cell: Cell) -> tuple[bool, bool, float, int, Coalition]:
        least = max(EXACT, unknown[cell])
        return bool(tries[cell[:2]]), cell[3] == "*", least, len(cell[2]), cell[2]

    return min(unknown, key=rank, default=None)


def number_cells(values: Array, mean: float, deviation: float) -> Indices:
    """Return the cells of numbers."""
    place = (values - mean) * (PER_DEVIATION / deviation) + CELLS / 2
    return np.clip(place, 0, CELLS - 1).astype(np.intp)


@dataclass(repr=False)
class JointCounts:
    """Counts of cells: of originals by estimates, and of the members' copies.

    Attributes
    ----------
    joint : ndarray of shape (cells, cells)
    copies : ndarray of shape (members, cells)
    moved : ndarray of shape (members,)
        Sums of distances in cells from the originals.
    """

    cells: int
    members: Coalition
    joint: NDArray[np.int64] = field(init=False)
    copies: NDArray[np.int64] = field(init=False)
    moved: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        """Begin with no record."""
        self.joint = np.zeros((self.cells, self.cells), dtype=np.int64)
        self.copies = np.zeros((len(self.members), self.cells), dtype=np.int64)
        self.moved = np.zeros(len(self.members), dtype=np.int64)

    def add(self, originals: Indices, estimates: Indices) -> None:
        """Count records' originals and estimates."""
        place = originals * self.cells + estimates
        self.joint += np.bincount(place, minlength=self.joint.size).reshape(self.joint.shape)

    def add_copies(self, originals: Indices, copies: Sequence[Indices]) -> None:
        """Count records in the members' copies."""
        for place, shown in enumerate(copies):
            self.copies[place] += np.bincount(shown, minlength=self.cells)
            self.moved[place] += np.abs(shown - originals).sum()

    def picture(self, context: CellContext, cell: Cell, width: float) -> list[Picture]:
        """Return the picture with the nearest copy; none below ten records.

        ``width`` is the width of a cell in standard deviations, 0 for categories.
        """
        (attack, knowledge, coalition, attribute), records = cell, int(self.joint.sum())
        originals, place = self.joint.sum(axis=1), int(self.moved.argmin())

        def shares(counts: NDArray[np.int64]) -> tuple[tuple[int, int, float], ...]:
            return tuple((a, b, held / records) for a, b, held in bins(counts))

        if records < FEWEST_RECORDS:
            return []
        joint = [
            (a, b, *one)
            for a, b, held in bins(originals)
            if held
            for one in shares(self.joint[a:b].sum(axis=0))
            if one[2]
        ]
        shown = shares(self.copies[place])
        return [
            Picture(
                context.sweep,
                context.scheme,
                knowledge,
                attack,
                coalition,
                attribute,
                self.members[place] if shown else 0,
                records,
                self.cells,
                width,
                shares(originals),
                shown,
                shares(self.joint.sum(axis=0)),
                tuple(joint),
            )
        ]


def bins(counts: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Return runs of cells, ``(first, stop, records)``, with ten records or more, or none.

    Empty cells are a run only next to cells of ten records: the extreme records stay hidden.

    Examples
    --------
    >>> bins(np.array([0, 4, 7, 0, 12, 3, 0])), bins(np.array([0, 12, 0])), bins(np.array([9, 0]))
    ([(0, 3, 11), (3, 7, 15)], [(0, 1, 0), (1, 2, 12), (2, 3, 0)], [])
    """
    found, full = list[tuple[int, int, int]](), counts >= FEWEST_RECORDS
    first, held = 0, 0
    for cell, count in enumerate(counts.tolist()):
        if full[cell] and not held and first < cell and (not first or full[first - 1]):
            found.append((first, cell, 0))
            first = cell
        held += count
        if held >= FEWEST_RECORDS:
            found.append((first, cell + 1, held))
            first, held = cell + 1, 0
    if found and first < len(counts):
        merge = held or not full[first - 1]
        start, _, before = found.pop() if merge else (first, 0, 0)
        found.append((start, len(counts), before + held))
    return found
