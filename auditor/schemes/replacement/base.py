"""Base of uniform schemes: categorical copies and their exact law."""

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
        raise AuditorError(
            "uniform schemes perturb categories: name columns under data.categorical, or cut numbers under data.bin"
        )
    return table.categorical


class Copies(ABC):
    """The copies of one release, drawn one by one and read again at will.

    ``pi`` is the distribution of replacements.
    """

    def __init__(self, original: Codes, size: int, key: Key, pi: Array | None = None) -> None:
        self.original = np.ascontiguousarray(original, dtype=code_type(size))
        self.size, self.pi = size, pi
        self.key = key
        self.levels: list[float] = []

    def ask(self, level: float, key: Key | None = None) -> Codes:
        """Return a new copy at a level, shape (n,).

        Drawn from ``key``, or the release's own key.
        """
        self.levels.append(level)
        return self._draw(level, key or self.key)

    def skip(self, level: float) -> None:
        """Register a copy without reading it; drawn if later copies depend on it."""
        self.ask(level)

    def warm(self, levels: Sequence[float]) -> None:
        """Do the set-up of a first request at these levels, for timing."""
        return

    def _rng(self, key: Key) -> Rng:
        return _stream(key, len(self.levels))

    @abstractmethod
    def _draw(self, level: float, key: Key) -> Codes: ...

    @abstractmethod
    def copy(self, number: int) -> Codes:
        """Return copy ``number`` (from 1) again, shape (n,)."""

    def history_sizes(self) -> NDArray[np.integer[Any]]:
        """Return the size of each tuple's compressed history, shape (n,).

        1, plus 1 for each change of its value by falling level.
        """
        order = sorted(range(len(self.levels)), key=lambda place: (-self.levels[place], place))
        before = self.copy(order[0] + 1)
        sizes = np.ones(before.size, dtype=np.uint16)
        for place in order[1:]:
            after = self.copy(place + 1)
            sizes += before != after
            before = after
        return sizes


def _stream(key: Key, number: int) -> Rng:
    """Return the random stream of one copy of one block.

    The first block's stream is also the stream of an unblocked table.
    """
    return stream(
        key.seed, key.scheme, key.replicate, "copy", number, *((key.block,) if key.block else ())
    )


T = TypeVar("T")


def fork(made: T) -> T:
    """Return independent copies of a state: lists copied, arrays shared.

    Processes, which never change, are shared too.
    """
    twin = copy.copy(made)
    for name, value in vars(made).items():
        if isinstance(value, list):
            setattr(
                twin, name, [fork(part) if isinstance(part, Copies) else part for part in value]
            )
        elif isinstance(value, (Bridge, MultiPert, History)):
            setattr(twin, name, fork(value))
    return twin


class FreshCopies(Copies):
    """Independent retention-replacement per copy; redrawn, not stored."""

    def __init__(self, original: Codes, size: int, key: Key, pi: Array | None = None) -> None:
        super().__init__(original, size, key, pi)
        self._keys: list[Key] = []

    def skip(self, level: float) -> None:
        """Register a copy; it is drawn when read."""
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
    """The replacement process: a copy is a look-up."""

    def __init__(self, original: Codes, size: int, key: Key, pi: Array | None = None) -> None:
        super().__init__(original, size, key, pi)
        self._bounds = row_blocks(self.original.size, BLOCK_WIDTH)
        self.blocks = [
            ReplacementProcess(
                self.original[a:b], size, key.seed, (key.scheme, key.replicate, block), pi
            )
            for block, (a, b) in enumerate(self._bounds, start=key.block)
        ]

    def skip(self, level: float) -> None:
        """Register a copy; it is looked up when read."""
        self.levels.append(level)

    def warm(self, levels: Sequence[float]) -> None:
        """Draw the events down to the lowest level, once."""
        for block in self.blocks:
            block.release(min(levels))

    def _draw(self, level: float, key: Key) -> Codes:
        return self.copy(len(self.levels))

    def copy(self, number: int) -> Codes:
        """Look up copy ``number``."""
        values = np.empty_like(self.original)
        for (a, b), block in zip(self._bounds, self.blocks, strict=True):
            values[a:b] = block.release(self.levels[number - 1])
        return values

    def history_sizes(self) -> NDArray[np.integer[Any]]:
        """Return the size of each tuple's compressed history, shape (n,).

        From the events between the levels.
        """
        levels = sorted(self.levels, reverse=True)
        return np.concatenate([block.history_sizes(levels) for block in self.blocks])


class BridgedCopies(Copies):
    """Each copy from its two neighbours; all are stored."""

    def __init__(
        self,
        original: Codes,
        size: int,
        key: Key,
        pi: Array | None = None,
        levels: Sequence[float] = (),
        copies: Sequence[Codes] = (),
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
    """Fresh copies by one number per tuple, for a release of one copy."""

    def _drawn(self, level: float, rng: Rng) -> Codes:
        return kept_or_replaced(self.original, level, rng, self.size, self.pi)


class SingleBridged(BridgedCopies):
    """Multilevel copies after one such copy: later copies use the bridge."""

    def _draw(self, level: float, key: Key) -> Codes:
        if len(self.levels) > 1:
            return super()._draw(level, key)
        self._kept.append(
            kept_or_replaced(self.original, level, self._rng(key), self.size, self.pi)
        )
        self._bridge.keep(level, self._kept[-1])
        return self._kept[-1]


class MultiPertCopies(Copies):
    """The paper's algorithm with its compressed history."""

    def __init__(self, original: Codes, size: int, key: Key, pi: Array | None = None) -> None:
        super().__init__(original, size, key, pi)
        self.algorithm = MultiPert(self.original, size, pi)

    def _draw(self, level: float, key: Key) -> Codes:
        return self.algorithm.release(level, Draws(self._rng(key), self.size, self.pi))

    def copy(self, number: int) -> Codes:
        """Return copy ``number`` again, from the history."""
        return self.algorithm.history.value(self.levels[number - 1])

    def history_sizes(self) -> NDArray[np.integer[Any]]:
        """Return the number of history elements of each tuple, shape (n,)."""
        return self.algorithm.history.sizes


def code_blocks(codes: Codes) -> list[Codes]:
    """Return a column's blocks, in order."""
    return [codes[a:b] for a, b in row_blocks(codes.size, BLOCK_WIDTH)]


class BlockedCopies(Copies):
    """Copies of a column drawn block by block.

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
        """Set up every block."""
        for block in self.blocks:
            block.warm(levels)

    def _draw(self, level: float, key: Key) -> Codes:
        return np.concatenate(
            [block.ask(level, replace(key, block=k)) for k, block in enumerate(self.blocks)]
        )

    def copy(self, number: int) -> Codes:
        """Return copy ``number`` again."""
        return np.concatenate([block.copy(number) for block in self.blocks])

    def history_sizes(self) -> NDArray[np.integer[Any]]:
        """Return the history sizes of all blocks."""
        return np.concatenate([block.history_sizes() for block in self.blocks])


class UniformScheme(Scheme):
    """Base of schemes that keep or redraw categories.

    Levels are retention probabilities.
    """

    family = "uniform"
    engine = "categorical"
    level_of_original = 1.0
    multilevel: ClassVar[bool]
    by_retention: ClassVar[bool] = True
    """Whether a level is a retention probability, with replacements from one distribution."""

    def check_levels(self, levels: Sequence[float]) -> None:
        """Refuse levels that are no probabilities.

        Raises
        ------
        AuditorError
            Naming the level.
        """
        check_each(levels, lambda level: 0 <= level <= 1, "a retention probability from 0 to 1")

    def check_table(self, table: Table, asked: DataUse) -> None:
        """Refuse a table without categories.

        Raises
        ------
        AuditorError
            Saying how to declare categories.
        """
        categories_of(table)

    def channel(self, levels: Sequence[float], size: int) -> UniformLaw:
        """Return the exact law of copies at these levels over ``size`` values."""
        pi = self.replaced_by(size)
        return UniformLaw(
            tuple(levels), size, self.multilevel, None if pi is None else tuple(pi.tolist())
        )

    def over(self, table: CategoricalTable) -> Self:
        """Return the scheme fitted to a table's domain; unchanged by default.

        Raises
        ------
        AuditorError
            The scheme's parameters do not fit the table.
        """
        return self

    def replaced_by(self, size: int) -> Array | None:
        """Return ``π``, the distribution of replacements, shape (s,).

        None if uniform.
        """
        return None

    @abstractmethod
    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        """Return the generator of a column's copies, from codes of shape (n,).

        Audits and releases draw one block of 65,536 records at a time, each with its own key
        (``blocked``). So any block's copies can be drawn separately.
        """

    def started(self, levels: Sequence[float]) -> Self:
        """Return the scheme for a release that starts at these levels.

        Itself, unless a cheaper sampler of its law exists.
        """
        return self

    def blocked(self, original: Codes, size: int, key: Key) -> Copies:
        """Return the generator of a whole column's copies, drawn per block."""
        return BlockedCopies(
            [
                self.copies(part, size, replace(key, block=k))
                for k, part in enumerate(code_blocks(original))
            ],
            key,
        )

    def law(self, levels: Sequence[float], table: TableMoments) -> NoiseLaw | None:
        """Return None: categories have no noise law, see ``channel``."""
        return None

    def sampler(
        self, levels: Sequence[float], table: TableMoments, key: Key, existing: int = 0
    ) -> Sampler:
        """Refuse: numbers are not categories.

        Raises
        ------
        AuditorError
            Always.
        """
        raise AuditorError(f"scheme {self.name!r} perturbs categories, not numbers")
