"""One release of categories under audit, drawn block by block."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.coalitions import expand_all
from auditor.audit.base.records import CellContext
from auditor.audit.base.request import already_out, make_scheme, with_singles
from auditor.audit.numeric.moment_pass import Draw
from auditor.base.errors import PluginError
from auditor.base.types import Codes, Indices
from auditor.data.columns.categorical_table import BLOCK_WIDTH, CategoricalTable
from auditor.data.table import Table
from auditor.numerics.blocks import Job, P, added_up, moment_groups, readable, row_blocks, walk
from auditor.numerics.random_streams import stream
from auditor.scenario.model import Scenario, SchemeUse
from auditor.schemes.base.scheme import Key
from auditor.schemes.published import PublishedCategories
from auditor.schemes.replacement.base import Copies, UniformScheme
from auditor.schemes.replacement.law import EstimatedLaw, UniformLaw

KEEP_BYTES = 2**29
"""Copies up to this size stay in memory for the next pass; others are drawn again."""
LARGEST_KEY, DENSE = 2**62, 4
"""Largest key of a combination; a table of all keys replaces a sort up to this ratio of keys to
records."""


@dataclass(repr=False)
class CodeBlock:
    """One block of records, with copies made on request.

    Attributes
    ----------
    index, first : int
        Numbers of the block and of its first record.
    x : ndarray of shape (b,)
        Originals.
    copy : callable
        Returns the values of a copy by number, shape (b,).
    made : Copies or None
        Generators of the copies; None if the copies were kept from an earlier pass.
    seconds : float
        Time of the requests.
    """

    index: int
    first: int
    x: Codes
    copy: Callable[[int], Codes]
    made: Copies | None = None
    seconds: float = 0.0


def distinct(
    columns: Sequence[NDArray[np.integer[Any]]], sizes: Sequence[int]
) -> tuple[Indices, Indices]:
    """Return the first record of each distinct combination, in order, and each record's place.

    Parameters
    ----------
    columns : sequence of ndarrays of shape (b,)
    sizes : sequence of int
        One more than each column's largest number.

    Examples
    --------
    >>> [part.tolist() for part in distinct([np.array([2, 0, 2]), np.array([7, 9, 7])], [3, 10])]
    [[1, 0], [1, 0, 1]]
    """
    key, keys = np.zeros(columns[0].size, dtype=np.int64), 1
    for column, size in zip(columns, sizes, strict=True):
        if keys * size > LARGEST_KEY:
            key, keys = np.unique(key, return_inverse=True)[1].ravel(), key.size
        key, keys = key * size + column, keys * size
    if keys > DENSE * key.size:
        _, first, place = np.unique(key, return_index=True, return_inverse=True)
        return first, place.ravel()
    met = np.zeros(keys, dtype=bool)
    met[key] = True
    place = (np.cumsum(met) - 1)[key]
    first = np.empty(np.count_nonzero(met), dtype=np.intp)
    first[place[::-1]] = np.arange(key.size)[::-1]
    return first, place


@dataclass(repr=False)
class UniformRelease:
    """One release of categories.

    Attributes
    ----------
    law : UniformLaw
        As stated by the scheme; for files without a law, an ``EstimatedLaw``.
    coalitions, needed : list of tuple of int
        As requested; and with all members alone, by size.
    share : callable or None
        Has a job done for all stripes, perhaps in other processes, and yields its parts in order.
    table : Table, optional
        For schemes of copies from files.
    """

    scenario: Scenario
    data: CategoricalTable
    use: SchemeUse
    context: CellContext
    key: Key
    share: Callable[[Job[Any]], Iterator[Any]] | None = None
    table: Table | None = None
    _kept: dict[int, dict[int, Codes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        scheme, M = make_scheme(self.use, self.scenario.base, self.table), self.context.copies
        if not isinstance(scheme, UniformScheme):
            raise PluginError(
                "the scheme names the categorical engine and states no law of categories"
            )
        self.scheme, size = scheme.over(self.data), self.data.size
        self.law = self.scheme.channel(self.context.levels, size)
        if not isinstance(self.law, UniformLaw) or (len(self.law.levels), self.law.size) != (
            M,
            size,
        ):
            raise PluginError(f"the scheme stated no law of {M} copies over {size} values")
        self.coalitions = expand_all(self.scenario.coalitions, M, self.scenario.seed)
        self.needed = with_singles(self.coalitions)
        self._early = already_out(self.use, M)
        self.bounds = row_blocks(self.data.rows, BLOCK_WIDTH)
        self.groups = moment_groups(self.data.rows, BLOCK_WIDTH)
        room = self.data.rows * len(self.singles) * self.data.code_type.itemsize
        self._keep = not self.data.streamed and room <= KEEP_BYTES

    @property
    def estimated(self) -> bool:
        """Whether the law is estimated from the copies."""
        return isinstance(self.law, EstimatedLaw)

    @property
    def singles(self) -> list[int]:
        """Copies that some coalition holds."""
        return [coalition[0] for coalition in self.needed if len(coalition) == 1]

    def halves(self) -> list[tuple[Draw, EstimatedLaw]]:
        """Return two random halves of the records, each with its law; none for a stated law.

        A law that was estimated from a record knows its noise and flatters an attack on it. So the
        law of one half is used to attack the other.
        """
        if not isinstance(self.scheme, PublishedCategories) or not self.estimated:
            return []
        rng = stream(self.scenario.seed, "halves", self.key.replicate)
        return [
            (Draw.of(rows, clear=True), self.scheme.estimated(np.sort(rows)).of(self.singles))
            for rows in np.array_split(rng.permutation(self.data.rows), 2)
        ]

    def go_through(self, job: Job[P]) -> P:
        """Return the result of a job for the whole table."""
        here = walk(job, self.block, self.data.rows, BLOCK_WIDTH)
        parts: Iterator[P] = here if self.share is None else self.share(job)
        return added_up(job, parts)

    def heads(
        self, numbers: Sequence[int], blocks: Sequence[int], rows: int
    ) -> tuple[Codes, dict[int, Codes]]:
        """Return the first records of some blocks: originals, and copies by number."""
        read = [self.block(index) for index in blocks]
        copies = {k: np.concatenate([block.copy(k)[:rows] for block in read]) for k in numbers}
        return np.concatenate([block.x[:rows] for block in read]), copies

    def block(self, index: int, drawn: bool = False) -> CodeBlock:
        """Return one block with its copies, and their generators if ``drawn``."""
        a, b = self.bounds[index]
        (x,) = readable([self.data.read(a, b)])
        if index in self._kept and not drawn:
            return CodeBlock(index, a, x, self._kept[index].__getitem__)
        timed = drawn and self.scenario.measure("seconds") is not None
        made, seconds = self._request(x, index, timed)
        held = {}

        def copy(number: int) -> Codes:
            if number not in held:
                held[number] = checked_codes(made.copy(number), x.size, self.data.size)
            return held[number]

        if self._keep:
            for number in self.singles:
                copy(number)
            self._kept[index] = held
        return CodeBlock(index, a, x, copy, made, seconds)

    def _request(self, x: Codes, index: int, timed: bool) -> tuple[Copies, float]:
        early, levels = self.law.levels[: self._early], self.law.levels[self._early :]
        copies = self.scheme.copies(x, self.data.size, replace(self.key, block=index))
        for level in early:
            copies.skip(level)
        if timed and early:
            copies.warm(levels)  # set-up belongs to the first request
        start = time.thread_time()
        for level in levels:
            copies.ask(level) if timed else copies.skip(level)
        return copies, time.thread_time() - start


def checked_codes(codes: Any, rows: int, size: int) -> Codes:
    """Return a copy's values, checked.

    Raises
    ------
    PluginError
        They are not one code of the domain for each record.
    """
    found = np.asarray(codes)
    if found.dtype.kind not in "iu" or found.shape != (rows,):
        raise PluginError("the scheme drew no column of codes, one for each record")
    if rows and not (0 <= found.min() and found.max() < size):
        raise PluginError(f"the scheme drew codes outside the domain of {size} values")
    return found
