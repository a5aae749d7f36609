"""Row-level reconstruction, block by block.

An estimate depends on the neighbours that the attack requests, so block edges have no effect.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np

from auditor.adversary.attack import Inferred, Reconstruction, Regions, checked
from auditor.audit.numeric.error_tally import CHUNK_VALUES, Tally
from auditor.audit.numeric.linear_errors import Maps, crossed
from auditor.base import PluginError
from auditor.base.types import Array, Arrays, Block, Blocks, Coalition, Coalitions
from auditor.numerics.blocks import readable
from auditor.schemes.base.noise_law import NoiseLaw


class Around(NamedTuple):
    """A block, and its original and copies with more rows on either side.

    The block's own rows start at row ``before``, which is row ``first`` of all.
    """

    block: Block
    x: Array
    copies: list[Array]
    before: int
    first: int


def with_neighbours(blocks: Iterable[Block], many: int, done: int = 0) -> Iterator[Around]:
    """Yield every block from ``done`` on, with ``many`` rows either side.

    Blocks are in order.
    """
    if not many:
        for block in blocks:
            yield Around(block, block[1], block[2], 0, done)
            done += len(block[1])
        return
    held: list[Array] = []  # rows of all tables, from ``before`` rows ahead of the first block on
    waiting, before = deque[Block](), 0
    for later in chain(blocks, [None]):
        if later is not None:
            rows = [later[1], *later[2]]
            waiting.append(later)
            held = [np.concatenate(pair) for pair in zip(held, rows, strict=True)] if held else rows
        while waiting:
            stop = before + len(waiting[0][1])
            if later is not None and len(held[0]) < stop + many:
                break
            x, *copies = (table[: stop + many] for table in held)
            yield Around(waiting[0], x, copies, before, done)
            done += len(waiting.popleft()[1])
            held, before = [table[max(0, stop - many) :] for table in held], min(stop, many)


def most_neighbours(fitted: Iterable[Reconstruction]) -> int:
    """Largest number of neighbours that some fitted attacks ask for.

    Raises
    ------
    PluginError
        One is no number of rows.
    """
    asked = [each.neighbours for each in fitted]
    if not all(isinstance(many, int) and many >= 0 for many in asked):
        raise PluginError("an attack's `neighbours` must be a whole number of rows, 0 or more")
    return max(asked, default=0)


def shown(
    fitted: Reconstruction, tables: Arrays, before: int, rows: int, first: int
) -> tuple[Reconstruction, list[Array]]:
    """Attack on a block's own rows, and tables with the necessary neighbours.

    Parameters
    ----------
    tables : ndarrays of shape (before + rows + after, N)
        Copies, or the original.
    before, rows : int
        Place and number of the block's own rows.
    first : int
        The first row's place among all.
    """
    start = max(0, before - fitted.neighbours)
    mine = [table[start : before + rows + fitted.neighbours] for table in tables]
    own = slice(before - start, before - start + rows)
    placed = fitted.at(first - before + start)
    inner = cast(Reconstruction, _Inner(placed, own)) if fitted.neighbours else placed
    return inner, mine


def with_known(fitted: Reconstruction, copies: Arrays, x: Array) -> list[Array]:
    """Copies for an attack, then the original columns that it knows, if any."""
    return list(copies) if fitted.in_clear is None else [*copies, x[:, fitted.in_clear]]


def rows_of(fitted: Reconstruction, blocks: Iterable[Block]) -> Array:
    """Estimates of all rows, shape (n, N)."""
    found = []
    for (_, x, _), wide, copies, before, first in with_neighbours(
        blocks, most_neighbours([fitted])
    ):
        inner, mine = shown(fitted, with_known(fitted, copies, wide), before, len(x), first)
        found.append(inner.rows(mine))
    return np.concatenate(found)


class _Inner:
    """Attack whose results are cut to a block's own rows."""

    def __init__(self, fitted: Reconstruction, own: slice) -> None:
        self._fitted, self._own = fitted, own

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._fitted, name)
        return (lambda *asked: _cut(found(*asked), self._own)) if callable(found) else found

    def inferred(self, copies: Arrays) -> Inferred | None:
        return self._fitted.inferred([copy[self._own] for copy in copies])


def _cut(found: Any, own: slice) -> Any:
    if isinstance(found, Regions):
        return Regions(found.directions, *_cut((found.low, found.high, found.claims), own))
    if isinstance(found, tuple):
        return tuple(each[own] for each in found)
    if isinstance(found, Iterator):
        return (each[own] for each in found)
    return None if found is None else found[own]


FEWEST_ROWS = 256
"""Fewest rows that are counted at once, so that counting cells costs little."""


Count = Callable[[Reconstruction, Arrays, Array, Array], None]
"""Counts one block's records, given the attack, its copies, its estimates and the true values."""


def errors_in_pieces(
    maps: Maps, blocks: Blocks, centre: Array
) -> Iterator[tuple[int, Array, Array]]:
    """Yield pieces: first row in the block, x, (b, N), and errors, (b, B, N)."""
    B, N, MN = maps.weights.shape
    # x̂ − x = c − (I − V) v + W y in one product
    parts = (maps.offsets[..., None], -maps.own, maps.weights)
    everything = np.concatenate(parts, axis=2).reshape(B * N, 1 + N + MN).T
    size = max(FEWEST_ROWS, CHUNK_VALUES // (B * N))
    for _, x, copies in blocks():
        for start in range(0, len(x), size):
            rows = np.hstack([part[start : start + size] for part in (x, *copies)])
            v = np.hstack([np.ones((len(rows), 1)), rows - np.tile(centre, 1 + MN // N)])
            yield start, rows[:, :N], (v @ everything).reshape(len(v), B, N)


def tally_linear(
    maps: Maps, blocks: Blocks, centre: Array, tally: Tally, K_X: Array, law: NoiseLaw | None
) -> None:
    """Count errors of linear maps, and exact hit probabilities if Gaussian."""
    spread = None
    # The error is normal given the record: mean −(I−V−WH) v + c, variance diag(S).
    if maps.fixed and law is not None and law.distribution == "gaussian" and tally.tolerances:
        S = crossed(maps, maps, K_X, law, 1).passed
        spread = np.sqrt(np.clip(np.einsum("bnn->bn", S), 0.0, None))
    for start, x, errors in errors_in_pieces(maps, blocks, centre):
        tally.add(errors, x, start)
        if spread is not None:
            bias = maps.offsets - np.einsum("bij,rj->rbi", maps.lost, x - centre)
            tally.expect(bias, spread, x)


def first_alike(reconstructions: Sequence[Reconstruction], coalitions: Coalitions) -> list[int]:
    """Return for each coalition the first place with an equal attack on equal copies."""
    every = list(zip(map(id, reconstructions), map(tuple, coalitions), strict=True))
    return [every.index(one) for one in every]


def tally_rows(
    reconstructions: Sequence[Reconstruction],
    coalitions: Coalitions,
    blocks: Blocks,
    counts: Sequence[Sequence[int]],
    tally: Tally,
    counters: Sequence[Count] = (),
    first: int | None = None,
) -> tuple[Array, Array]:
    """Run fitted attacks over the rows.

    Parameters
    ----------
    counts : sequence of lists of int
        Rows of each row group, by block.
    counters : sequence of callables, optional
        By coalition; called for the first of coalitions that are alike.
    first : int, optional
        Place of a redraw's first row; without theory.

    Returns
    -------
    sums : ndarray of shape (G, B, N)
        Squared errors by row group.
    expected : ndarray of shape (B,)
        Sum of theory's squared errors; NaN without theory.

    Raises
    ------
    PluginError
        An estimate has the wrong shape, or is not finite.
    """
    B, N = len(coalitions), tally.scale.size
    sizes = [count for groups in counts for count in groups if count]
    group = np.repeat(np.arange(len(sizes)), sizes)
    sums, expected = np.zeros((len(sizes), B, N)), np.zeros(B)
    alike, size, done = first_alike(reconstructions, coalitions), CHUNK_VALUES // (B * N), 0
    for around in with_neighbours(blocks(), most_neighbours(reconstructions), first or 0):
        estimates, theory = _tally_block(
            reconstructions, coalitions, alike, around, tally, counters, first is None
        )
        expected += theory
        x = around.block[1]
        for start in range(0, len(x), max(FEWEST_ROWS, size)):
            here = slice(start, start + max(FEWEST_ROWS, size))
            errors = np.stack([estimate[here] for estimate in estimates], axis=1)
            errors -= x[here, None]
            tally.add(errors, x[here], start)
            numbers = group[done + start : done + start + len(errors)]
            numbers, firsts = np.unique(numbers, return_index=True)
            sums[numbers] += np.add.reduceat(np.square(errors), firsts)
        done += len(x)
    return sums, expected


def _tally_block(
    reconstructions: Sequence[Reconstruction],
    coalitions: Coalitions,
    alike: Sequence[int],
    around: Around,
    tally: Tally,
    counters: Sequence[Count],
    predict: bool,
) -> tuple[list[Array], list[float]]:
    x, wide = readable([around.block[1], around.x])
    copies, nothing = readable(around.copies), np.full(x.shape, np.nan)
    found = dict[int, tuple[Array, float, tuple[Array, ...], Array]]()
    for place in dict.fromkeys(alike):
        fitted, held = reconstructions[place], [copies[copy - 1] for copy in coalitions[place]]
        tables = [*with_known(fitted, held, wide), wide]
        inner, (*mine, true) = shown(fitted, tables, around.before, len(x), around.first)
        estimate = checked(inner.rows(mine), x.shape)
        theory = inner.expected(true) if predict else None
        ends = None if tally.confidence is None else inner.intervals(mine, tally.confidence)
        left = inner.candidates(mine) if tally.candidates else None
        if left is not None:  # NaN is kept
            left = checked(np.where(np.isnan(left), 1.0, left), x.shape) + 0.0 * left
        found[place] = (
            estimate,
            np.nan if theory is None else float(checked(theory, x.shape[:1]).sum()),
            tuple(checked(end, x.shape) for end in ends) if ends else (nothing, nothing),
            nothing if left is None else left,
        )
        if counters:
            counters[place](inner, mine, estimate, x)
    estimates, theories, intervals, candidates = zip(*(found[k] for k in alike), strict=True)
    if tally.confidence is not None:
        low, high = (np.stack(each, axis=1) for each in zip(*intervals, strict=True))
        tally.localise(low, high, x)
    if tally.candidates:
        tally.average("left", np.stack(candidates, axis=1))
    return list(estimates), list(theories)


class CopyBlocks:
    """A coalition's copies, block by block, never the original."""

    def __init__(self, blocks: Blocks, coalition: Coalition) -> None:
        self._blocks, self._coalition = blocks, coalition

    def __iter__(self) -> Iterator[list[Array]]:
        """Yield lists of k arrays of shape (b, N), in order of rows."""
        for _, _, copies in self._blocks():
            yield readable([copies[copy - 1] for copy in self._coalition])
