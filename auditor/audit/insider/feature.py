"""Base of feature families: columns computed from shown cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import chain, combinations, permutations, product
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from auditor.base import pd, scipy
from auditor.base.types import Array, Flags, Indices, unprinted
from auditor.data.columns.kinds import FEWEST_PER_CODE
from auditor.numerics.statistics import column_ranks, standard_ranks
from auditor.registry import Plugin

One = TypeVar("One")
REACH, FOLLOWED = 8, 20
"""Most rows between records of one rule; fewest records of a rule."""
MOST_SERIES = 32
"""Most columns of ``Shown.series``."""
MOST_PAIRED, FEW, MOST_GROUPED, MOST_LEADING = 8, 4, 8, 16
"""Most columns or copies in pairs; in threes; codes with averaged groups; shown numbers with steps
and linked rows.
"""
MOST_BITS, PLACE_BITS = 14, 2
"""Most signs and sizes multiplied; low bits of the row number, for alternating signs."""
MOST_NAMES = 0.75
"""Largest share of different values of codes."""
ALIKE = 5.0
"""Normal deviate of likeness within a code; of 10,000 by chance all are below 4.5."""
NEAR = 33
"""Nearest rows by shown numbers."""
LINKED = 0.5
"""Least share of a column's values that a reference shows."""
ROUNDING = 2.0**-48
"""Largest relative difference of two copies that is rounding."""


@unprinted
class Shown:
    """Cells that a coalition shows of every record, in file order.

    Attributes
    ----------
    cells : ndarray of shape (n, k, N)
        Of k copies; NaN for blanks.
    unmix : ndarray of shape (N, N), optional
        Transform by which noise of attributes is independent.
    beside : sequence of (name, ndarray of shape (n,))
        Unaudited columns: numbers, codes (integers), or text.
    """

    cells: Array
    unmix: Array | None = None
    beside: Sequence[tuple[str, NDArray[Any]]] = ()

    @cached_property
    def flat(self) -> Array:
        """Cells of one record side by side, blanks filled with column means, shape (n, kN)."""
        flat = self.cells.reshape(len(self.cells), -1)
        blank = np.isnan(flat)
        if not blank.any():
            return flat
        mean = np.where(blank, 0.0, flat).sum(axis=0) / np.maximum((~blank).sum(axis=0), 1)
        return np.where(blank, mean, flat)

    @cached_property
    def filled(self) -> Array:
        """Cells with blanks filled, shape (n, k, N)."""
        return self.flat.reshape(self.cells.shape)

    @cached_property
    def numbers(self) -> Array:
        """Filled cells, shown numbers and numbers in texts, shape (n, kN + q)."""
        numbers = [v for _, v in self.beside if v.dtype.kind == "f"]
        texts = [v for _, v in self.beside if v.dtype.kind == "U"]
        digits = [[int("0" + re.sub(r"\D", "", s)[:15]) for s in v] for v in texts]
        return np.column_stack([self.flat, *numbers, *digits])

    @cached_property
    def number_ranks(self) -> Array:
        """Standardised ranks of the numbers, shape (n, kN + q)."""
        return standard_ranks(self.numbers)

    @cached_property
    def orders(self) -> list[Indices]:
        """Rows in order of the file and of leading columns, in all and by shown code."""
        codes = [np.zeros(len(self.cells)), *(group for _, group in self.groups[:FEW])]
        columns = [np.zeros(len(self.cells)), *self.leading.T]
        return [np.lexsort((column, group)) for group in codes for column in columns]

    @cached_property
    def units(self) -> Indices:
        """``units_of``."""
        return units_of(self.beside, len(self.cells))

    @cached_property
    def near(self) -> list[Indices]:
        """``nearest_rows``."""
        return nearest_rows([v for _, v in self.beside])

    @cached_property
    def leading(self) -> Array:
        """First cells and first shown numbers, shape (n, at most ``FEW + MOST_LEADING``)."""
        width = self.flat.shape[1]
        return np.hstack([self.flat[:, :FEW], self.numbers[:, width : width + MOST_LEADING]])

    @cached_property
    def differences(self) -> Array:
        """Differences of successive copies, then from the first, shape (n, d); 0 for rounding."""
        few = self.filled[:, :MOST_PAIRED]
        pairs = [(c, c - 1) for c in range(1, few.shape[1])] + [
            (c, 0) for c in range(2, few.shape[1])
        ]
        found = [np.empty((len(few), 0))]
        for later, earlier in pairs:
            apart = few[:, later] - few[:, earlier]
            largest = np.abs(few[:, later]).max(axis=0)
            found.append(np.where(apart.std(axis=0) > ROUNDING * largest, apart, 0.0))
        return np.hstack(found)

    @cached_property
    def ranks(self) -> Array:
        """Ranks of the first differences, as shares, shape (n, at most ``MOST_PAIRED``)."""
        few = self.differences[:, :MOST_PAIRED]
        return column_ranks(few) if few.shape[1] else few

    @cached_property
    def bits(self) -> Flags:
        """Bits, shape (n, b): above the median, large, and the row number's."""
        few = MOST_BITS // 2
        d = np.hstack([self.differences[:, : few - 1], self.flat])[:, :few]
        values = np.hstack([d, np.abs(d - np.median(d, axis=0))])
        # Equal values are ranked at random.
        lot = np.random.default_rng(0).permutation(len(values))
        ranks = np.empty(values.shape, dtype=np.intp)
        ranks[lot] = values[lot].argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
        place = (np.arange(len(values))[:, None] >> np.arange(PLACE_BITS) & 1).astype(bool)
        return np.hstack([2 * ranks >= len(values), place])

    @cached_property
    def groups(self) -> list[tuple[str, Indices]]:
        """Shown codes, alone and combined, with their names."""
        return joint_codes(self.beside)

    @cached_property
    def links(self) -> list[Indices]:
        """Rows that shown columns refer to, −1 for none."""
        return linked_rows(self.beside)

    def group_means(self, attribute: int) -> Array:
        """Means of an attribute's first cells by shown code, shape (n, q).

        With and without the record itself.
        """
        cells = self.filled[:, :FEW, attribute].T
        groups = [(codes, y) for _, codes in self.groups[:MOST_GROUPED] for y in cells]
        found = [average(*each) for each in groups for average in (mean, mean_of_others)]
        return np.column_stack(found) if found else np.empty((len(self.cells), 0))

    @cached_property
    def series(self) -> Array:
        """Cells, differences, and unmixed cells, shape (n, at most ``MOST_SERIES``)."""
        width, d = self.cells.shape[2], self.differences
        parts = [self.flat[:, :MOST_PAIRED], d]
        if self.unmix is not None and 1 < width <= d.shape[1]:
            parts += [part @ self.unmix.T for part in np.hsplit(d, d.shape[1] // width)]
        return np.hstack([*parts, self.flat[:, MOST_PAIRED:]])[:, :MOST_SERIES]


class Known(NamedTuple):
    """Originals that a family may learn from, NaN in test rows.

    Attributes
    ----------
    attribute : int
        Number of the predicted attribute.
    x : ndarray of shape (n, N)
        Originals.
    least : float
        Least value of the attribute.
    left : ndarray of shape (n,)
        Its residual after the first prediction.
    moved : sequence of (copy, ndarray of shape (n,))
        Rows of a copy that show the records (``moved_rows``), NaN if unknown.
    """

    attribute: int
    x: Array
    least: float
    left: Array
    moved: Sequence[tuple[int, Array]] = ()

    @property
    def residual(self) -> tuple[Indices, Array]:
        """Rows with a known residual, and centred residuals."""
        there = np.flatnonzero(np.isfinite(self.left))
        return there, self.left[there] - self.left[there].mean()

    def only(self, rows: Indices) -> Known:
        """Knowledge restricted to some rows."""
        unknown = np.ones(len(self.left), dtype=bool)
        unknown[rows] = False
        x, left = (np.where(unknown, np.nan, each.T).T for each in (self.x, self.left))
        moved = [(copy, np.where(unknown, np.nan, q)) for copy, q in self.moved]
        return self._replace(x=x, left=left, moved=moved)


def moved_rows(shown: Shown, x: Array) -> list[tuple[int, Array]]:
    """Copies with the other rows where one cell alone has a record's value or rank, shape (n,).

    NaN without such a row. By the attribute that most records follow by one rule.
    """
    found, ranks = list[tuple[int, Array]](), column_ranks(x)
    for copy in range(min(shown.cells.shape[1], MOST_PAIRED)):
        y, places = shown.filled[:, copy], list[Array]()
        for values, cells in zip([*x.T, *ranks.T], [*y.T, *column_ranks(y).T], strict=True):
            once, first, counts = np.unique(cells, return_index=True, return_counts=True)
            at = np.searchsorted(once, values).clip(0, len(once) - 1)
            moved = (once[at] == values) & (counts[at] == 1) & (first[at] != np.arange(len(at)))
            places.append(np.where(moved, first[at], np.nan))
        times, best = max(((rule(q, 1)[0], q) for q in places), key=lambda one: one[0])
        if times > FOLLOWED:
            found.append((copy, best))
    return found


def rule(q: Array, reach: int = REACH) -> tuple[int, int, float]:
    """Number of records that follow one k rows earlier at distance d, k and d, for most records."""
    found = [(0, 1, 0.0)]
    for k in range(1, reach + 1):
        d, times = np.unique((q[k:] - q[:-k])[np.isfinite(q[k:] - q[:-k])], return_counts=True)
        found += [(int(times.max()), k, float(d[times.argmax()]))] if len(d) else []
    return max(found, key=lambda one: one[0])


Column = Callable[[Shown], Array | Indices]
"""Computes one column of shape (n,) from any cells of the same records. Integers are codes without
an order."""
Columns = Iterator[tuple[str, Column]]


def each(name: str, function: Callable[..., Array | Indices], *places: Iterable[Any]) -> Columns:
    """Yield a function's column for each combination of its first arguments."""
    for place, some in enumerate(product(*places)):
        yield f"{name} {place}", partial(function, *some)


def joint_codes(beside: Sequence[tuple[str, NDArray[Any]]]) -> list[tuple[str, Indices]]:
    """Shown codes, of pairs, and of all together, shape (n,), with names."""
    single = [(repr(name), v) for name, v in beside if v.dtype.kind in "iu"]
    found = [*single]
    for several in sets_of(single):
        rows = np.column_stack([codes for _, codes in several])
        codes = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
        if codes.max() < MOST_NAMES * len(codes):
            found.append((" and ".join(name for name, _ in several), codes))
    return found


def sets_of(some: Sequence[One]) -> list[Sequence[One]]:
    """Pairs of the first ``MOST_PAIRED``, and all together."""
    return [*combinations(some[:MOST_PAIRED], 2), *([some] if len(some) > 2 else [])]


def alike_codes(
    beside: Sequence[tuple[str, NDArray[Any]]], cells: Array
) -> list[tuple[str, Indices]]:
    """Codes hidden in shown columns, shared by rows of similar cells, (n, q).

    A part of a text or whole number, or several parts and codes together.
    """
    Y = standard_ranks(cells)
    texts = [as_letters(v) for _, v in beside if has_parts(v)][:MOST_PAIRED]
    parts = [list(parts_of(text)) for text in texts]
    codes = [v for _, v in beside if v.dtype.kind in "iu"][:MOST_PAIRED]
    best = likest([*codes, *(joined(*pair) for pair in combinations(codes, 2))], Y)
    single = [*codes, *chain(*parts)]
    while best[0] and (more := likest((joined(best[1], v) for v in single), Y))[0] > best[0]:
        best = more
    found = [part for z, part in (best, *(likest(some, Y) for some in parts)) if z > ALIKE]
    return [(f"alike {k}", part) for k, part in enumerate(found)]


def likest(codes: Iterable[Indices], Y: Array) -> tuple[float, Indices]:
    """Largest likeness, at least 0, and its code."""
    each = ((likeness(code, Y), code) for code in codes)
    return max([(0.0, np.zeros(len(Y), np.intp)), *each], key=lambda one: one[0])


def parts_of(text: NDArray[np.str_]) -> Iterator[Indices]:
    """Yield codes of the beginnings, ends and first words of texts."""
    for each in (text, np.array([one[::-1] for one in text.tolist()])):
        for k in range(1, int(np.char.str_len(text).max(initial=1)) + 1):
            yield pd.factorize(each.astype(f"U{k}").astype(object))[0]
    words = pd.Series(text).str.split(r"\W+", n=FEW, expand=True).fillna("")
    yield from (pd.factorize(words[k])[0] for k in words.columns[:FEW])


def joined(one: Indices, other: Indices) -> Indices:
    """Code of pairs of codes."""
    return np.asarray(pd.factorize(one * (int(other.max()) + 1) + other)[0], dtype=np.intp)


def likeness(codes: Indices, Y: Array) -> float:
    """Largest normal deviate of products of two rows of one code, over columns.

    Examples
    --------
    >>> Y = np.random.default_rng(0).normal(size=(300, 1)).repeat(2, axis=0)
    >>> likeness(np.arange(600) // 2, Y) > 9.0, abs(likeness(np.arange(600) % 300, Y)) < 3.0
    (True, True)
    """
    counts = np.bincount(codes)
    pairs = float((counts * (counts - 1.0)).sum())
    sums = np.array([np.bincount(codes, y) for y in Y.T])
    squares = (sums**2).sum(axis=1) - (Y**2).sum(axis=0)
    return float(squares.max() / np.sqrt(2.0 * pairs)) if pairs else 0.0


def has_parts(v: NDArray[Any]) -> bool:
    """Whether a column is text, or different whole numbers."""
    return v.dtype.kind == "U" or bool(
        v.dtype.kind == "f"
        and (np.abs(v) < 2.0**53).all()
        and not (v % 1.0).any()
        and names_rows(v)
    )


def as_letters(v: NDArray[Any]) -> NDArray[np.str_]:
    """Text, or whole numbers as text."""
    return v if v.dtype.kind == "U" else v.astype(np.int64).astype(str)


def units_of(beside: Sequence[tuple[str, NDArray[Any]]], n: int) -> Indices:
    """Number of each row's group of an equal rare code, such as a household; shape (n,).

    The code with the fewest groups counts; without rare codes each row is its own group. Originals
    of a row's group do not inform on rows of a wholly unknown group.
    """
    groups = np.arange(n)
    for _, values in beside:
        _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
        rare = counts[codes.ravel()] < FEWEST_PER_CODE
        if values.dtype.kind in "iu" and rare.any():
            found = np.where(rare, codes.ravel(), len(counts) + np.arange(n))
            found = np.unique(found, return_inverse=True)[1].ravel()
            groups = min(groups, found, key=np.max)
    return groups


def nearest_rows(beside: Sequence[NDArray[Any]]) -> list[Indices]:
    """Nearest rows by ranks of two of the first shown numbers, or of all, shape (n, NEAR)."""
    numbers, found = [v for v in beside if v.dtype.kind == "f"][:FEW], list[Indices]()
    for some in sets_of(numbers):
        ranks = column_ranks(np.column_stack(some))
        found.append(scipy.spatial.cKDTree(ranks).query(ranks, min(NEAR, len(ranks)))[1])
    return found


def of_nearest(near: Indices, y: Array, known: Flags, units: Indices) -> Array:
    """Mean of y over known nearest rows of other units, weighted by 1/rank; shape (n,)."""
    w = (known[near] & (units[near] != units[:, None])) / np.arange(1, near.shape[1] + 1)
    return np.asarray((w * y[near]).sum(axis=1) / np.maximum(w.sum(axis=1), 1e-300))


def linked_rows(beside: Sequence[tuple[str, NDArray[Any]]]) -> list[Indices]:
    """Rows that show each record's rank as row number, or its value in another column; −1 for none.

    Examples
    --------
    >>> person, partner = np.array([7.0, 9.0, 8.0]), np.array([9.0, 7.0, 0.0])
    >>> [rows.tolist() for rows in linked_rows([("person", person)])]
    [[0, 2, 1], [0, 2, 1]]
    >>> [rows.tolist() for rows in linked_rows([("person", person), ("partner", partner)])][-2:]
    [[1, 0, -1], [1, 0, -1]]
    """
    numbers, texts = ([v for _, v in beside if v.dtype.kind == kind] for kind in "fU")
    ranks = [v.argsort(kind="stable").argsort() for v in numbers[:MOST_PAIRED] if names_rows(v)]
    pairs = [pair for rank in ranks[:FEW] for pair in permutations((rank, np.arange(len(rank))), 2)]
    for columns in (numbers, texts):
        pairs += [
            pair
            for one, other in permutations(columns[:MOST_PAIRED], 2)
            if names_rows(one) and np.isin(other, one).mean() > LINKED
            for pair in ((one, other), (other, one))
        ]
    found = []
    for sought, seen in pairs:
        values, first = np.unique(seen, return_index=True)
        at = np.searchsorted(values, sought).clip(0, len(values) - 1)
        found.append(np.where(values[at] == sought, first[at], -1))
    return found


def names_rows(v: NDArray[Any]) -> bool:
    """Whether most values of a column differ."""
    return len(np.unique(v)) > MOST_NAMES * len(v)


def mean(codes: Indices, values: Array) -> Array:
    """Mean of the values with an equal code, shape (n,)."""
    return (np.bincount(codes, values) / np.maximum(np.bincount(codes), 1))[codes]


def mean_of_others(codes: Indices, values: Array) -> Array:
    """Mean in other records with an equal code, or of all, shape (n,)."""
    counts = np.bincount(codes)[codes]
    others = (mean(codes, values) * counts - values) / np.maximum(counts - 1, 1)
    return np.where(counts > 1, others, values.mean())


class Feature(Plugin):
    """Columns that may help to predict an original."""

    kind = "feature"
    learns: ClassVar[bool] = False
    """Whether columns depend on originals, so that they are learnt and tested on different records.
    """
    divides: ClassVar[bool] = False
    """Whether columns may divide the rows into parts in which other columns help."""
    of_codes: ClassVar[bool] = False
    """Whether categories are predicted from them, with indicators as cells."""

    def columns(self, shown: Shown, known: Known) -> Columns:
        """Yield columns with their names.

        Parameters
        ----------
        known : Known
            Only for families that state ``learns``.
        """
        raise NotImplementedError
