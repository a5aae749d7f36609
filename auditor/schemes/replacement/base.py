"""Base of uniform schemes, the replacement process, and replacements.

Replacements from ``π`` arrive at rate 1 per tuple in time ``t = −ln p``. The value at ``p`` is the
last one before ``−ln p``, or the original (xiao2009, Lemma 1). Segments of equal length start with
a snapshot up to ``exp(−HORIZON)``. At p = 0 the copy is independent.

| ``replacement`` | ``π`` |
| --- | --- |
| ``uniform`` | ``1/s`` each |
| ``prior`` | table's shares; of several columns the product |
| ``[0.5, 0.3, 0.2]`` | one column's, in order |
| ``{column: [...], ...}`` | several columns, replaced independently |

Between neighbours ``p_l ≥ p ≥ p_r`` the new value is ``y_l`` with probability u, ``y_r`` with v,
else a replacement (xiao2009, eqs. 3 and 4):

    ``u = p/p_l``, ``v = (1 − p/p_l)·(1 − (1 − p_r/p)·π_c / (ρ + (1 − ρ)·π_c))``  where both are c,
    ``u = (p − p_r)/(p_l − p_r)``, ``v = p_r·(p_l − p) / (p·(p_l − p_r))``  elsewhere,

with ``ρ = p_r/p_l``, and ``p_r = 0`` without a right neighbour.
"""

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from copy import copy
from functools import reduce
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from auditor.base import AuditorError, counted, did_you_mean, quoted
from auditor.base.types import Array, Codes, Indices, Integers, Levels, unprinted
from auditor.data.columns.categorical_table import CategoricalTable, code_type
from auditor.data.table import DataUse, Table
from auditor.numerics.linear_algebra import quotient
from auditor.numerics.random_streams import Rng, stream
from auditor.results.records import Drawn
from auditor.schemes.base.scheme import Key, LevelRange, Sampler, Scheme, TableMoments
from auditor.schemes.replacement.law import UniformLaw, step

__all__ = ["Coin", "Draws", "UniformLaw", "code_type", "coins", "replacements", "sent_through"]


class Coin(NamedTuple):
    """Probabilities of the left and right value."""

    left: float
    right: float | Array
    """One number, or one per shared value, (s,)."""


def coins(
    high: float, level: float, low: float | None, size: int, pi: Array | None = None
) -> tuple[Coin, Coin]:
    """Coins for ``y_l = y_r`` and for ``y_l ≠ y_r``.

    Levels ``high > level > low``; without a right neighbour both are ``(p/p_l, 0)``.

    Examples
    --------
    >>> equal, _ = coins(1.0, 0.8, 0.4, 10)
    >>> round(equal.left, 4), round(float(equal.right), 4)
    (0.8, 0.1783)
    """
    if low is None:
        alone = Coin(step(high, level), 0.0)
        return alone, alone
    u, rho, pi = level / high, low / high, np.asarray(1.0 / size if pi is None else pi)
    fresh = (1 - low / level) * quotient(pi, rho + (1 - rho) * pi, where=pi > 0)
    return Coin(u, (1 - u) * (1 - fresh)), Coin(
        (level - low) / (high - low), low * (high - level) / (level * (high - low))
    )


def replacements(
    rng: Rng, n: int, size: int, pi: Array | None, kind: np.dtype[Any] | None = None
) -> Codes:
    """``n`` values drawn uniformly from a domain, or from π, shape (n,).

    From π by inversion at multiples of 2⁻⁵³.
    """
    kind = code_type(size) if kind is None else kind
    if pi is None or (pi == pi[0]).all():
        return rng.integers(0, size, n, dtype=kind)
    return inverse(rng.random(n), pi).astype(kind)


def inverse(u: Array, pi: Array) -> Indices:
    """``π`` quantiles of [0, 1) numbers, shape (n,)."""
    sums = np.cumsum(pi)
    return np.searchsorted(sums / sums[-1], u, side="right")


@unprinted
class Draws:
    """Random coins and fresh draws for n tuples at once."""

    rng: Rng
    size: int
    pi: Array | None = None

    def uniforms(self, n: int) -> Array:
        """Uniform numbers on [0, 1)."""
        return self.rng.random(n)

    def values(self, n: int) -> Codes:
        """``n`` replacements."""
        return replacements(self.rng, n, self.size, self.pi)

    def pick(self, left: Codes, right: Codes | None, equal: Coin, differ: Coin) -> Codes:
        """``left``, ``right`` or a fresh value, by the coins."""
        coin = self.uniforms(left.size)
        out = np.array(left, copy=True)
        if right is None:
            stands = np.flatnonzero(coin >= equal.left)
        else:
            same, kept = left == right, np.asarray(equal.left + equal.right)
            np.copyto(out, right, where=coin >= np.where(same, equal.left, differ.left))
            stands = np.flatnonzero(
                coin
                >= np.where(same, kept[left] if kept.ndim else kept, differ.left + differ.right)
            )
        out[stands] = self.values(stands.size)
        return out


def sent_through(x: Codes, T: Array, rng: Rng) -> Codes:
    """Categories drawn by their rows of a matrix, shape (n,)."""
    u, y = rng.random(x.size), np.empty_like(x)
    for value, chances in enumerate(T):
        rows = np.flatnonzero(x == value)
        if rows.size:
            y[rows] = np.minimum(
                np.searchsorted(np.cumsum(chances), u[rows], side="right"),
                np.flatnonzero(chances)[-1],
            )
    return y


MOST_COPIES = 50


class Between(NamedTuple):
    """A copy and its neighbours by level; left 0 is the original."""

    copy: int
    left: int
    right: int


def between(levels: Levels) -> list[Between]:
    """Copies with a more perturbed copy before them."""
    found = []
    for number, level in enumerate(levels[:MOST_COPIES], start=1):
        before = sorted((other, k) for k, other in enumerate(levels[: number - 1], start=1))
        place = bisect_left(before, (level, 0))
        if place and not any(other == level for other, _ in before):
            found.append(
                Between(
                    number, before[place][1] if place < len(before) else 0, before[place - 1][1]
                )
            )
    return found


def drawn_between(
    law: UniformLaw, prior: Array, copies: Sequence[Between], counts: NDArray[Any]
) -> list[Drawn]:
    """Each copy's coin with its observed frequencies.

    ``counts``, shape (d, 2), are the records where the neighbours agree and where all three do.
    Neighbours agree on c with probability ``(p_l q_c + (1 − p_l)π_c)·T(p_r/p_l)[c, c]``, q the
    prior.
    """
    found, levels, pi = [], law.levels, law.pi
    for three, (agreeing, same) in zip(copies, counts.tolist(), strict=True):
        high = 1.0 if three.left == 0 else levels[three.left - 1]
        level, low = levels[three.copy - 1], levels[three.right - 1]
        equal, _ = coins(high, level, low, law.size, law.pi)
        fresh, rho = 1.0 - equal.left - equal.right, step(high, low)
        agree = (high * prior + (1.0 - high) * pi) * (rho + (1.0 - rho) * pi)
        tails, kept = (
            float((agree * part).sum() / agree.sum())
            for part in (equal.right, 1.0 - fresh * (1.0 - pi))
        )
        found.append(Drawn(three.copy, step(high, level), tails, kept, agreeing, same))
    return found


def categories_of(table: Table) -> CategoricalTable:
    """Return a table's categories, or raise ``AuditorError``."""
    if table.categorical is None:
        raise AuditorError(
            "uniform schemes perturb categories: name columns under data.categorical, or cut numbers under data.bin"
        )
    return table.categorical


class Copies(ABC):
    """Copies of one block of records."""

    def __init__(self, original: Codes, size: int, key: Key, pi: Array | None = None) -> None:
        self.original = np.ascontiguousarray(original, dtype=code_type(size))
        self.size, self.pi, self.key = size, pi, key
        self.levels: list[float] = []

    def ask(self, level: float) -> Codes:
        """New copy at a level, shape (n,)."""
        self.skip(level)
        return self.copy(len(self.levels))

    def skip(self, level: float) -> None:
        """Register a copy without reading it."""
        self.levels.append(level)

    def warm(self, levels: Levels) -> None:
        """Do the set-up of a first request, for timing."""
        return

    @abstractmethod
    def copy(self, number: int) -> Codes:
        """Copy ``number`` (from 1), shape (n,)."""

    def history_sizes(self) -> Integers:
        """Each tuple's changes of value by falling level, plus 1, (n,)."""
        order = np.argsort(-np.array(self.levels), kind="stable") + 1
        copies = map(self.copy, order.tolist())
        sizes = np.ones(self.original.size, dtype=np.int64)
        for before, after in pairwise(copies):
            sizes += before != after
        return sizes


def stream_of(key: Key, number: int) -> Rng:
    """Random stream of one copy of one block."""
    block = (key.block,) if key.block else ()
    return stream(key.seed, key.scheme, key.replicate, "copy", number, *block)


class FreshCopies(Copies):
    """Independent retention-replacement per copy, redrawn on request."""

    def copy(self, number: int) -> Codes:
        return self._drawn(self.levels[number - 1], stream_of(self.key, number))

    def _drawn(self, level: float, rng: Rng) -> Codes:
        values = self.original.copy()
        fresh = np.flatnonzero(rng.random(values.size) >= level)
        values[fresh] = replacements(rng, fresh.size, self.size, self.pi)
        return values


class UniformScheme(Scheme):
    """Base of schemes that keep or redraw categories."""

    family = "uniform"
    engine = "categorical"
    level_range = LevelRange("a retention probability from 0 to 1", high=1.0)
    level_of_original = 1.0
    multilevel: ClassVar[bool]
    by_retention: ClassVar[bool] = True
    """Whether levels are retention probabilities, replacements of one distribution."""

    def check_table(self, table: Table, asked: DataUse) -> None:
        categories_of(table)

    def channel(self, levels: Levels, size: int) -> UniformLaw:
        """Exact law of copies at these levels over ``size`` values."""
        pi = self.replaced_by(size)
        return UniformLaw(
            tuple(levels), size, self.multilevel, None if pi is None else tuple(pi.tolist())
        )

    _fitted: Array | None = None

    def over(self, table: CategoricalTable) -> Self:
        """Return the scheme fitted to a table's domain, or raise ``AuditorError``."""
        made = copy(self)
        made._fitted = self._fit(table) if self._fitted is None else self._fitted
        return made

    def _fit(self, table: CategoricalTable) -> Array | None:
        """Distribution or matrix over a table's domain, if stated by column."""
        return None

    def fitted(self, size: int) -> Array:
        """What ``over`` found for ``size`` values, or ``AuditorError``."""
        if self._fitted is None or len(self._fitted) != size:
            raise AuditorError(
                f"{self.name} is of a table's categories: ask `scheme.over(table)` for copies and law"
            )
        return self._fitted

    def replaced_by(self, size: int) -> Array | None:
        """``π``, shape (s,); None if uniform."""
        return None

    @abstractmethod
    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        """Generator of a column's copies, from codes of shape (n,)."""

    def sampler(self, levels: Levels, table: TableMoments, key: Key, existing: int = 0) -> Sampler:
        raise AuditorError(f"scheme {self.name!r} perturbs categories, not numbers")


SEGMENTS = 32
"""Number of snapshots: twice as many halve the replay, for 32 bytes per tuple."""
HORIZON = 7.0
"""Largest stored time: retention 0.0009."""
STEP = HORIZON / SEGMENTS


class Segment(NamedTuple):
    """Events of one interval of time, in order: times, tuples, new values."""

    times: Array
    tuples: NDArray[np.unsignedinteger]
    values: Codes

    def replay(self, values: Codes, time: float = math.inf) -> Codes:
        """Values after the events before a time, in place."""
        stop = np.searchsorted(self.times, time)
        values[self.tuples[:stop]] = self.values[:stop]
        return values


class ProcessCopies(Copies):
    """The replacement process of one block of tuples."""

    def __init__(self, original: Codes, size: int, key: Key, pi: Array | None = None) -> None:
        super().__init__(original, size, key, pi)
        self._snapshots = [self.original]
        self._segments: list[Segment] = []

    def warm(self, levels: Levels) -> None:
        self.release(min(levels))

    def copy(self, number: int) -> Codes:
        return self.release(self.levels[number - 1])

    def release(self, level: float) -> Codes:
        """Copy at a retention probability in [0, 1], shape (b,)."""
        if level >= 1:
            return self.original.copy()
        if level <= 0:
            rng = stream(self.key.seed, *self._name, "never")
            return replacements(rng, self.original.size, self.size, self.pi)
        time = -math.log(level)
        return self._beyond(time) if time > HORIZON else self._forward(time)

    @property
    def _name(self) -> tuple[object, ...]:
        return self.key.scheme, self.key.replicate, self.key.block

    def _forward(self, time: float) -> Codes:
        place = min(int(time / STEP), SEGMENTS - 1)
        while len(self._segments) <= place:
            self._grow()
        return self._segments[place].replay(self._snapshots[place].copy(), time)

    def _grow(self) -> None:
        segment = self._segment(len(self._segments))
        self._segments.append(segment)
        self._snapshots.append(segment.replay(self._snapshots[-1].copy()))

    def _beyond(self, time: float) -> Codes:
        values = self._forward(HORIZON)
        for place in range(SEGMENTS, int(time / STEP) + 1):
            self._segment(place).replay(values, time)
        return values

    def _segment(self, place: int) -> Segment:
        """Events of time ``[place, place + 1)·STEP``, by seed, name and place."""
        rng, n = stream(self.key.seed, *self._name, "segment", place), self.original.size
        count = int(rng.poisson(n * STEP))
        # order statistics: partial sums of exponentials over the total
        sums = np.cumsum(rng.standard_exponential(count + 1))
        times = (place + sums[:count] / sums[count]) * STEP
        tuples = rng.integers(0, n, count, dtype=code_type(n))
        return Segment(times, tuples, replacements(rng, count, self.size, self.pi))


Shares = Annotated[list[float], Field(min_length=1)]
Replacement = Literal["uniform", "prior"] | Shares | dict[str, Shares]

ROUNDING = 1e-9
"""Tolerance of the sum of probabilities."""


def columns_of(stated: Any) -> Iterator[tuple[str, Any]]:
    """Yield the columns of a parameter, as messages name them, and their parts."""
    if isinstance(stated, dict):
        yield from ((f"column {quoted(name)}: ", part) for name, part in stated.items())
    elif isinstance(stated, list):
        yield "", stated


def check_chances(of: str, shares: Sequence[float]) -> None:
    """Raise ``ValueError`` if numbers are no distribution; ``of`` begins the message."""
    least, total = min(shares), sum(shares)
    if least < 0 or abs(total - 1.0) > ROUNDING:
        raise ValueError(
            f"{of}must be chances of at least 0 that sum to 1; got a least of {least:g} and a sum of {total:.10g}"
        )


def distribution(stated: Replacement, table: CategoricalTable) -> Array | None:
    """``π`` over a table's domain, shape (s,); None if uniform.

    ``AuditorError`` if a column has another number of categories.
    """
    if stated == "uniform":
        return None
    whole = table.prior.reshape([attribute.size for attribute in table.attributes])
    axes = set(range(whole.ndim))
    parts = (
        [whole.sum(axis=tuple(axes - {axis})) for axis in axes]
        if stated == "prior"
        else [
            np.asarray(shares) / sum(shares)
            for shares in by_attribute(stated, table, "replacement", "no chances", "chances")
        ]
    )
    return reduce(lambda pi, part: np.outer(pi, part).ravel(), parts)


def by_attribute(
    stated: Any, table: CategoricalTable, what: str, none: str, one: str, remedy: str = ""
) -> list[Any]:
    """A parameter's part for each column, with an item per category (``AuditorError``).

    ``stated`` maps columns to parts, or is the part of the only column.
    """
    names = table.names
    if not isinstance(stated, dict) and len(names) > 1:
        every = ", ".join(map(quoted, names))
        raise AuditorError(
            f"{what} must be {{column: [...]}} for {counted(len(names), 'column')}: {every}"
        )
    held = stated if isinstance(stated, dict) else {names[0]: stated}
    for name in held:
        if name not in names:
            raise AuditorError(
                f"{what} names column {quoted(name)}, which is not perturbed{did_you_mean(name, names)}"
            )
    for attribute in table.attributes:
        which = f"column {quoted(attribute.name)}"
        if attribute.name not in held:
            raise AuditorError(f"{what} has {none} for {which}{remedy}")
        if (found := len(held[attribute.name])) != attribute.size:
            raise AuditorError(
                f"{what} of {which} must have {attribute.size:,} {one}, one for each category in order; got {found:,}"
            )
    return [held[name] for name in names]


def never_drawn(pi: Array | None) -> str:
    """Warning about values that are never drawn, or ""."""
    if pi is None or pi.all():
        return ""
    count = int((pi == 0).sum())
    are = "is" if count == 1 else "are"
    return f"{count:,} of {pi.size:,} values {are} never drawn as replacements: a copy that shows one shows the original, and ε is infinite"
