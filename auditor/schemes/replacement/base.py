"""What a uniform scheme is: retention probabilities and a column of categories in, copies out, and beside that their exact law."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from auditor.data.columns.categorical_table import BLOCK_WIDTH, CategoricalTable
from auditor.data.request import DataUse
from auditor.data.table import Table
from auditor.errors import AuditorError
from auditor.numerics.blocks import row_blocks
from auditor.numerics.random_streams import Rng, stream
from auditor.schemes.base.level_checks import check_each
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.schemes.base.scheme import Key, Sampler, Scheme, TableMoments
from auditor.schemes.replacement.bridge import Bridge
from auditor.schemes.replacement.draws import Draws, code_type, kept_or_replaced
from auditor.schemes.replacement.law import UniformLaw
from auditor.schemes.replacement.multi_pert import History, MultiPert
from auditor.schemes.replacement.process import ReplacementProcess
from auditor.types import Array, Codes


def categories_of(table: Table) -> CategoricalTable:
    """Return a table's categories.

    Raises
    ------
    AuditorError
        It has none.
    """
    if table.categorical is None:
        raise AuditorError("uniform schemes perturb categories: name columns under data.categorical, or cut numbers under data.bin")
    return table.categorical


class Copies(ABC):
    """The copies of one release: asked for one by one, and looked up again at will; ``pi`` is what replacements are drawn from."""

    def __init__(self, original: Codes, size: int, key: Key, pi: Array | None = None) -> None:
        self.original = np.ascontiguousarray(original, dtype=code_type(size))
        self.size, self.pi = size, pi
        self.key = key
        self.levels: list[float] = []

    def ask(self, level: float, key: Key | None = None) -> Codes:
        """Return a new copy at a level, shape (n,), drawn from the release's own key or another one."""
        self.levels.append(level)
        return self._draw(level, key or self.key)

    def skip(self, level: float) -> None:
        """Register a copy that nobody looks at now; drawn all the same where later ones hang on it."""
        self.ask(level)

    def warm(self, levels: Sequence[float]) -> None:
        """Do whatever a first request at these levels sets up, so that one more can be timed."""
        return

    def _rng(self, key: Key) -> Rng:
        return _stream(key, len(self.levels))

    @abstractmethod
    def _draw(self, level: float, key: Key) -> Codes: ...

    @abstractmethod
    def copy(self, number: int) -> Codes:
        """Return copy ``number`` (from 1) again, shape (n,)."""

    def history_sizes(self) -> NDArray[np.integer[Any]]:
        """Return the elements of each tuple's compressed history, shape (n,): 1, and 1 for each change of its value by falling level."""
        order = sorted(range(len(self.levels)), key=lambda place: (-self.levels[place], place))
        before = self.copy(order[0] + 1)
        sizes = np.ones(before.size, dtype=np.uint16)
        for place in order[1:]:
            after = self.copy(place + 1)
            sizes += before != after
            before = after
        return sizes


def _stream(key: Key, number: int) -> Rng:
    """Return the stream that belongs to one copy of one block; the first block's is that of a table which has no other."""
    return stream(key.seed, key.scheme, key.replicate, "copy", number, *((key.block,) if key.block else ()))


T = TypeVar("T")


def fork(made: T) -> T:
    """Return the same copies, to go on from on their own: lists are copied, arrays and processes (which never change) shared."""
    twin = copy.copy(made)
    for name, value in vars(made).items():
        if isinstance(value, list):
            setattr(twin, name, [fork(part) if isinstance(part, Copies) else part for part in value])
        elif isinstance(value, (Bridge, MultiPert, History)):
            setattr(twin, name, fork(value))
    return twin


class FreshCopies(Copies):
    """Conventional retention-replacement, anew for every copy; a copy is drawn again rather than kept."""

    def __init__(self, original: Codes, size: int, key: Key, pi: Array | None = None) -> None:
        super().__init__(original, size, key, pi)
        self._keys: list[Key] = []

    def skip(self, level: float) -> None:
        """Register a copy; it is drawn when it is looked at."""
        self.levels.append(level)
        self._keys.append(self.key)

    def _draw(self, level: float, key: Key) -> Codes:
        self._keys.append(key)
        return self.copy(len(self._keys))

    def copy(self, number: int) -> Codes:
        """Return copy ``number`` again."""
        return self._drawn(self.levels[number - 1], _stream(self._keys[number - 1], number))

    def _drawn(self, level: float, rng: Rng) -> Codes:
        draws = Draws(rng, self.size, self.pi)
        fresh = np.flatnonzero(draws.uniforms(self.original.size) >= level)
        values = self.original.copy()
        values[fresh] = draws.values(fresh.size)
        return values


class ProcessCopies(Copies):
    """The replacement process: a copy is a look-up, whatever was released before."""

    def __init__(self, original: Codes, size: int, key: Key, pi: Array | None = None) -> None:
        super().__init__(original, size, key, pi)
        self._bounds = row_blocks(self.original.size, BLOCK_WIDTH)
        self.blocks = [
            ReplacementProcess(self.original[a:b], size, key.seed, (key.scheme, key.replicate, block), pi)
            for block, (a, b) in enumerate(self._bounds, start=key.block)
        ]

    def skip(self, level: float) -> None:
        """Register a copy; it is looked up when it is looked at."""
        self.levels.append(level)

    def warm(self, levels: Sequence[float]) -> None:
        """Draw the events down to the lowest level, once."""
        for block in self.blocks:
            block.release(min(levels))

    def _draw(self, level: float, key: Key) -> Codes:
        return self.copy(len(self.levels))

    def copy(self, number: int) -> Codes:
        """Look copy ``number`` up."""
        values = np.empty_like(self.original)
        for (a, b), block in zip(self._bounds, self.blocks, strict=True):
            values[a:b] = block.release(self.levels[number - 1])
        return values

    def history_sizes(self) -> NDArray[np.integer[Any]]:
        """Return the elements of each tuple's compressed history, shape (n,), from the events between the levels."""
        levels = sorted(self.levels, reverse=True)
        return np.concatenate([block.history_sizes(levels) for block in self.blocks])


class BridgedCopies(Copies):
    """Each copy from its two neighbours; all are kept."""

    def __init__(
        self, original: Codes, size: int, key: Key, pi: Array | None = None, levels: Sequence[float] = (), copies: Sequence[Codes] = ()
    ) -> None:
        super().__init__(original, size, key, pi)
        self.levels = list(levels)
        self._kept = list(copies)
        self._bridge = Bridge(self.original, size, levels, copies, pi)

    def _draw(self, level: float, key: Key) -> Codes:
        self._kept.append(self._bridge.release(level, Draws(self._rng(key), self.size, self.pi)))
        return self._kept[-1]

    def copy(self, number: int) -> Codes:
        """Return copy ``number`` again."""
        return self._kept[number - 1]


class SingleFresh(FreshCopies):
    """Conventional retention-replacement by one number a tuple, for a release that starts with one copy."""

    def _drawn(self, level: float, rng: Rng) -> Codes:
        return kept_or_replaced(self.original, level, rng, self.size, self.pi)


class SingleBridged(BridgedCopies):
    """The same of a multilevel release: later copies come from their neighbours, as they may however these were drawn."""

    def _draw(self, level: float, key: Key) -> Codes:
        if len(self.levels) > 1:
            return super()._draw(level, key)
        self._kept.append(kept_or_replaced(self.original, level, self._rng(key), self.size, self.pi))
        self._bridge.keep(level, self._kept[-1])
        return self._kept[-1]


class MultiPertCopies(Copies):
    """The paper's algorithm on its compressed history."""

    def __init__(self, original: Codes, size: int, key: Key, pi: Array | None = None) -> None:
        super().__init__(original, size, key, pi)
        self.algorithm = MultiPert(self.original, size, pi)

    def _draw(self, level: float, key: Key) -> Codes:
        return self.algorithm.release(level, Draws(self._rng(key), self.size, self.pi))

    def copy(self, number: int) -> Codes:
        """Return copy ``number`` again, from the history."""
        return self.algorithm.history.value(self.levels[number - 1])

    def history_sizes(self) -> NDArray[np.integer[Any]]:
        """Return how many elements the algorithm holds of each tuple, shape (n,)."""
        return self.algorithm.history.sizes


def code_blocks(codes: Codes) -> list[Codes]:
    """Return a column's blocks, in order."""
    return [codes[a:b] for a, b in row_blocks(codes.size, BLOCK_WIDTH)]


class BlockedCopies(Copies):
    """Copies of a column that are made block by block, as they are of a column that is read block by block.

    Parameters
    ----------
    blocks : sequence of Copies
        Of each block of records, in order; at least one.
    key : Key
        Of the whole.
    """

    def __init__(self, blocks: Sequence[Copies], key: Key) -> None:
        self.blocks = list(blocks)
        self.size, self.pi, self.key = blocks[0].size, blocks[0].pi, key
        self.levels = list(blocks[0].levels)

    @property
    def original(self) -> Codes:  # type: ignore[override]
        """The whole column."""
        return np.concatenate([block.original for block in self.blocks])

    def skip(self, level: float) -> None:
        """Register a copy in every block."""
        self.levels.append(level)
        for block in self.blocks:
            block.skip(level)

    def warm(self, levels: Sequence[float]) -> None:
        """Set every block up."""
        for block in self.blocks:
            block.warm(levels)

    def _draw(self, level: float, key: Key) -> Codes:
        return np.concatenate([block.ask(level, replace(key, block=k)) for k, block in enumerate(self.blocks)])

    def copy(self, number: int) -> Codes:
        """Return copy ``number`` again."""
        return np.concatenate([block.copy(number) for block in self.blocks])

    def history_sizes(self) -> NDArray[np.integer[Any]]:
        """Return every block's."""
        return np.concatenate([block.history_sizes() for block in self.blocks])


class UniformScheme(Scheme):
    """Base of the schemes that keep categories or replace them by draws; levels are retention probabilities."""

    family = "uniform"
    engine = "categorical"
    level_of_original = 1.0
    multilevel: ClassVar[bool]
    by_retention: ClassVar[bool] = True
    """Whether a level is the chance to keep a value, and what is not kept is drawn from one distribution."""

    def check_levels(self, levels: Sequence[float]) -> None:
        """Refuse levels that are no probabilities.

        Raises
        ------
        AuditorError
            Saying which.
        """
        check_each(levels, lambda level: 0 <= level <= 1, "a retention probability from 0 to 1")

    def check_table(self, table: Table, asked: DataUse) -> None:
        """Refuse a table without categories.

        Raises
        ------
        AuditorError
            Saying how to name them.
        """
        categories_of(table)

    def channel(self, levels: Sequence[float], size: int) -> UniformLaw:
        """Return the exact law of the copies at these levels over a domain of ``size`` values."""
        pi = self.replaced_by(size)
        return UniformLaw(tuple(levels), size, self.multilevel, None if pi is None else tuple(pi.tolist()))

    def over(self, table: CategoricalTable) -> Self:
        """Return the scheme with what it takes from the table that it perturbs: nothing, unless a scheme knows better.

        Raises
        ------
        AuditorError
            What was asked of the scheme does not fit the table.
        """
        return self

    def replaced_by(self, size: int) -> Array | None:
        """Return ``π``, the chances of the values that replace others in a domain of ``size``, shape (s,); None: all are alike."""
        return None

    @abstractmethod
    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        """Return what makes the copies of a column of codes, shape (n,), none of them asked for yet.

        Audits and releases ask for one block of 65,536 records at a time, each with a key of its own (``blocked``): so that any
        block's copies can be made without the others.
        """

    def started(self, levels: Sequence[float]) -> Self:
        """Return what makes a release whose first copies are at these levels: itself, unless another way to its law is cheaper for them."""
        return self

    def blocked(self, original: Codes, size: int, key: Key) -> Copies:
        """Return what makes the copies of a whole column, shape (n,), each block of records a release of its own."""
        return BlockedCopies([self.copies(part, size, replace(key, block=k)) for k, part in enumerate(code_blocks(original))], key)

    def law(self, levels: Sequence[float], table: TableMoments) -> NoiseLaw | None:
        """Return None: nothing is added to a number here. ``channel`` is the law."""
        return None

    def sampler(self, levels: Sequence[float], table: TableMoments, key: Key, existing: int = 0) -> Sampler:
        """Refuse: numbers are not categories.

        Raises
        ------
        AuditorError
            Always.
        """
        raise AuditorError(f"scheme {self.name!r} perturbs categories, not numbers")
