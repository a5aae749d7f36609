"""One release of categories under audit, drawn block by block."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audit.base.records import CellContext
from auditor.audit.base.request import (
    ReleaseRequest,
    already_out,
    done_in_steps,
    make_scheme,
    with_singles,
)
from auditor.audit.numeric.moment_pass import Draw
from auditor.base.errors import PluginError
from auditor.base.types import Codes, Indices
from auditor.data.columns.categorical_table import BLOCK_WIDTH
from auditor.data.source import noise_seed
from auditor.numerics.blocks import Job, P, added_up, moment_groups, readable, row_blocks, walk
from auditor.numerics.random_streams import stream
from auditor.schemes.base.scheme import Key
from auditor.schemes.published import PublishedCategories
from auditor.schemes.replacement.base import Copies, UniformScheme, categories_of
from auditor.schemes.replacement.law import EstimatedLaw, UniformLaw

KEEP_BYTES = 2**29
"""Most bytes of copies that stay in memory; others are drawn again."""
LARGEST_KEY, DENSE = 2**62, 4
"""Largest key of a combination; largest ratio of keys to records without a sort."""


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
        Values of a copy by number, shape (b,).
    made : Copies or None
        Generators, unless copies are kept.
    seconds : float
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
    """First record of each distinct combination, in order, and each record's place.

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


def context_of(request: ReleaseRequest, levels: tuple[float, ...], copies: int) -> CellContext:
    """Common part of the records of a release."""
    names = categories_of(request.table).names
    return request.context(levels, copies, names, np.ones(len(names)))


class UniformRelease:
    """One release of categories; no copy is drawn yet.

    Attributes
    ----------
    data : CategoricalTable
    law : UniformLaw
        Without a stated law, an ``EstimatedLaw``.
    coalitions, needed : list of tuple of int
        As requested; and with single members, by size.
    bounds, groups : lists
        First and last rows of the blocks, and their row groups.
    """

    def __init__(self, request: ReleaseRequest) -> None:
        self.scenario, self.table = request.scenario, request.table
        self.data, here, self._share = categories_of(self.table), self.scenario, None
        self.context = context_of(request, request.levels, request.copies)
        if request.share is not None and self.data.streamed:
            self._share = partial(done_in_steps, request, UniformRelease, BLOCK_WIDTH)
        seed = noise_seed(here.data.source, here.seed, self.table.fingerprint())
        self.key = Key(seed, request.use.id, request.replicate)
        scheme, M = make_scheme(request.use, here.base, self.table), request.copies
        if not isinstance(scheme, UniformScheme):
            raise PluginError(
                "the scheme names the categorical engine and states no law of categories"
            )
        self.scheme, size = scheme.over(self.data), self.data.size
        self.law = self.scheme.channel(request.levels, size)
        shape = M, size
        if not isinstance(self.law, UniformLaw) or (len(self.law.levels), self.law.size) != shape:
            raise PluginError(f"the scheme stated no law of {M} copies over {size} values")
        self.coalitions = request.coalitions
        self.needed = with_singles(self.coalitions)
        self._early = already_out(request.use, M)
        self.bounds = row_blocks(self.data.rows, BLOCK_WIDTH)
        self.groups = moment_groups(self.data.rows, BLOCK_WIDTH)
        room = self.data.rows * len(self.singles) * self.data.code_type.itemsize
        self._keep, self._kept = (
            not self.data.streamed and room <= KEEP_BYTES,
            dict[int, dict[int, Codes]](),
        )

    @property
    def estimated(self) -> bool:
        """Whether the law is estimated from the copies."""
        return isinstance(self.law, EstimatedLaw)

    @property
    def singles(self) -> list[int]:
        """Copies that some coalition holds."""
        return [coalition[0] for coalition in self.needed if len(coalition) == 1]

    def halves(self) -> list[tuple[Draw, EstimatedLaw]]:
        """Two random halves of the records with their estimated laws, if any.

        Each half's law attacks the other, as attacks on its own records would be flattered.
        """
        if not isinstance(self.scheme, PublishedCategories) or not self.estimated:
            return []
        rng = stream(self.scenario.seed, "halves", self.key.replicate)
        return [
            (Draw.of(rows, clear=True), self.scheme.estimated(np.sort(rows)).of(self.singles))
            for rows in np.array_split(rng.permutation(self.data.rows), 2)
        ]

    def go_through(self, job: Job[P]) -> P:
        """Result of a job for the whole table."""
        if self._share is not None:
            return self._share(job)
        return added_up(job, walk(job, self.block, self.data.rows, BLOCK_WIDTH))

    def heads(
        self, numbers: Sequence[int], blocks: Sequence[int], rows: int
    ) -> tuple[Codes, dict[int, Codes]]:
        """First records of some blocks: originals, and copies by number."""
        read = [self.block(index) for index in blocks]
        copies = {k: np.concatenate([block.copy(k)[:rows] for block in read]) for k in numbers}
        return np.concatenate([block.x[:rows] for block in read]), copies

    def block(self, index: int, drawn: bool = False) -> CodeBlock:
        """One block with its copies, and their generators if ``drawn``."""
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
            copies.warm(levels)
        start = time.thread_time()
        for level in levels:
            copies.ask(level) if timed else copies.skip(level)
        return copies, time.thread_time() - start


def checked_codes(codes: Any, rows: int, size: int) -> Codes:
    """Copy's values, checked.

    Raises
    ------
    PluginError
        Not one code of the domain for each record.
    """
    found = np.asarray(codes)
    if found.dtype.kind not in "iu" or found.shape != (rows,):
        raise PluginError("the scheme drew no column of codes, one for each record")
    if rows and not (0 <= found.min() and found.max() < size):
        raise PluginError(f"the scheme drew codes outside the domain of {size} values")
    return found
