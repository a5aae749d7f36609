"""A pass over a table's rows, block by block, with ordered sums.

The table need not fit into memory. Each stripe is summed by one process, and stripes are added in
order, so results are identical for any number of workers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from auditor.numerics.blocks import stripes


class Part(Protocol):
    """Result of a pass over some stripes."""

    def add(self, other: Any) -> None:
        """Add the result of later records."""


P = TypeVar("P", bound=Part)


class Job(ABC, Generic[P]):
    """Computation of a pass; sent to the processes that read the rows.

    Attributes
    ----------
    exact : bool
        Whether parts are whole numbers, which may be added in any order.
    drawn : bool
        Whether the generators of the copies are used, not only the copies.
    """

    exact: ClassVar[bool] = False
    drawn: ClassVar[bool] = False

    @abstractmethod
    def begin(self) -> P:
        """Return an empty result."""

    @abstractmethod
    def take(self, block: Any, into: P) -> None:
        """Process one block."""

    def end(self, into: P) -> None:
        """Process the end of a stripe."""


def added_up(job: Job[P], parts: Iterable[P]) -> P:
    """Return a job's result for the whole table, from its parts in order."""
    whole = job.begin()
    for part in parts:
        whole.add(part)
    return whole


def walk(
    job: Job[P],
    block: Callable[[int, bool], Any],
    rows: int,
    width: int,
    first: int = 0,
    stop: int | None = None,
) -> Iterator[P]:
    """Process stripes ``first`` to ``stop`` of a table; all by default.

    ``block`` returns a block by number, with its generators if wanted. Yields the part of each
    stripe; an exact job yields one part at the end.
    """
    into = None
    for a, b in stripes(rows, width)[first:stop]:
        into = job.begin() if into is None or not job.exact else into
        for index in range(a, b):
            job.take(block(index, job.drawn), into)
        job.end(into)
        if not job.exact:
            yield into
    if job.exact and into is not None:
        yield into
