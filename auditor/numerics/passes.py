"""A pass over the rows of a table, which need not fit into memory: a job is done block by block, and stripes are added up in order.

Floating-point sums depend on their order, so those of a stripe are taken by one process, whichever it is, and those of all stripes are
added up in order: results are the same bytes for any number of workers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from auditor.numerics.blocks import row_blocks, stripes


class Part(Protocol):
    """What a pass found in some stripes."""

    def add(self, other: Any) -> None:
        """Add what was found in the records that follow."""


P = TypeVar("P", bound=Part)


class Job(ABC, Generic[P]):
    """What is to be found in a pass; it travels to whoever goes through the rows, and holds none.

    Attributes
    ----------
    exact : bool
        Whether parts are whole numbers only, which may be added up in any order.
    drawn : bool
        Whether what makes the copies is looked at, and not only the copies.
    """

    exact: ClassVar[bool] = False
    drawn: ClassVar[bool] = False

    @abstractmethod
    def weight(self, records: int) -> int:
        """Return about how many bytes a part may have that was found in so many records."""

    @abstractmethod
    def begin(self) -> P:
        """Return what was found in no stripe yet."""

    @abstractmethod
    def take(self, block: Any, into: P) -> None:
        """Take one block."""

    def end(self, into: P) -> None:
        """Take note that a stripe ends."""

    def looks_at(self, start: int, stop: int) -> bool:
        """Return whether there is anything to find in rows ``start`` to ``stop`` (exclusive)."""
        return True

    def storable(self, parts: Sequence[P]) -> Any:
        """Return what may be written to disk of some parts, as JSON values; None when nothing may."""
        return None

    def restored(self, kept: Any) -> list[P]:
        """Return the parts that this was kept of; none where nothing was, or nothing that makes sense."""
        return []

    @property
    def rest(self) -> Job[P] | None:
        """The job that finds what is not written to disk, to be added to what was; None when there is nothing."""
        return None


def added_up(job: Job[P], parts: Iterable[P]) -> P:
    """Return what a job found in the whole table, from its parts in order."""
    whole = job.begin()
    for part in parts:
        whole.add(part)
    return whole


def walk(
    job: Job[P], block: Callable[[int, bool], Any], rows: int, width: int, first: int = 0, stop: int | None = None
) -> Iterator[list[P]]:
    """Go through some stripes of a table of that many rows and attributes; all of them by default.

    ``block`` makes a block of its number, and of whether what makes its copies is wanted. Yields a list of parts after every block, empty
    but where a stripe ends; of a job that is exact one part, when all has been gone through.
    """
    bounds, into = row_blocks(rows, width), None
    for a, b in stripes(rows, width)[first:stop]:
        into = job.begin() if into is None or not job.exact else into
        for index in range(a, b):
            if job.looks_at(*bounds[index]):
                job.take(block(index, job.drawn), into)
            yield []
        job.end(into)
        if not job.exact:
            yield [into]
    if job.exact and into is not None:
        yield [into]
