"""Row-level reconstruction, block by block.

For attacks that are not linear, for shares of records recovered, and for distributions of errors.
Only averages over records are kept (``auditor.audit.numeric.error_tally``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Protocol, TypeVar

import numpy as np

from auditor.adversary.attack import Inferred, Reconstruction
from auditor.adversary.handed_back import checked
from auditor.audit.numeric.error_tally import Tally
from auditor.audit.numeric.limits import CHUNK_VALUES
from auditor.audit.numeric.linear_maps import Maps, crossed
from auditor.audit.numeric.neighbours import (
    Around,
    most_neighbours,
    shown,
    with_known,
    with_neighbours,
)
from auditor.numerics.read_only import readable
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.types import Array, Blocks, Coalition

T = TypeVar("T")

FEWEST_ROWS = 256
"""Fewest rows that are counted at once, so that counting cells costs little."""


class CountsRecords(Protocol):
    """Counter of whole records (`auditor.audit.measures.record_hits`)."""

    def add(
        self, fitted: Reconstruction, copies: Sequence[Array], estimate: Array, x: Array
    ) -> None:
        """Count one block's records, shapes (b, N), with their estimates."""


class CountsInferences(Protocol):
    """Counter of disclosed sensitive values (`auditor.audit.measures.inferences`)."""

    def add(self, found: Inferred | None, x: Array) -> None:
        """Count one block's records."""


def tally_linear(
    maps: Maps, blocks: Blocks, centre: Array, tally: Tally, K_X: Array, law: NoiseLaw | None
) -> None:
    """Count the errors of linear maps, with exact probabilities of hits under a Gaussian law."""
    B, N, MN = maps.weights.shape
    spread = None
    # The error of fixed weights is normal given the record, with mean −(I−V−WH) v + c and variance
    # diag(S).
    if maps.fixed and law is not None and law.distribution == "gaussian" and tally.tolerances:
        S = crossed(maps, maps, K_X, law, 1).passed
        spread = np.sqrt(np.clip(np.einsum("bnn->bn", S), 0.0, None))
    # x̂ − x = c − (I − V) v + W y in one product
    parts = (maps.offsets[..., None], -maps.own, maps.weights)
    everything = np.concatenate(parts, axis=2).reshape(B * N, 1 + N + MN).T
    size = max(FEWEST_ROWS, CHUNK_VALUES // (B * N))
    for _, x, copies in blocks():
        for start in range(0, len(x), size):
            true = x[start : start + size]
            v = true - centre
            y = [copy[start : start + size] - centre for copy in copies]
            errors = np.hstack([np.ones((len(v), 1)), v, *y]) @ everything
            tally.add(errors.reshape(len(v), B, N), true)
            if spread is not None:
                bias = maps.offsets - np.einsum("bij,rj->rbi", maps.lost, v)
                tally.expect(bias, spread, true)


def errors_by_rows(
    maps: Maps, blocks: Blocks, counts: Sequence[Sequence[int]], centre: Array
) -> tuple[Array, Array]:
    """Run linear maps over the rows, where second moments do not resolve the errors.

    Large terms cancel before they are squared here; moments square them first.

    Returns
    -------
    sums : ndarray of shape (G, B, N)
        Squared errors, summed by row group.
    grain : ndarray of shape (B, N)
        Mean squared error from rounding of doubles, ``(ε Σ |w| rms(y))²``.
    """
    B, N, MN = maps.weights.shape
    flat, own = maps.weights.reshape(B * N, MN), maps.own.reshape(B * N, N)
    sums, squares, rows = [], np.zeros(MN), 0
    size = max(1, CHUNK_VALUES // (B * N))
    for index, x, copies in blocks():
        stop = 0
        for count in filter(None, counts[index]):
            start, stop, found = stop, stop + count, np.zeros((B, N))
            for first in range(start, stop, size):
                here = slice(first, min(first + size, stop))
                raw = np.concatenate([copy[here] for copy in copies], axis=1)
                y = raw - np.tile(centre, MN // N)
                errors = (y @ flat.T - (x[here] - centre) @ own.T).reshape(-1, B, N) + maps.offsets
                found += np.einsum("rbn,rbn->bn", errors, errors)
                squares += np.einsum("rd,rd->d", raw, raw)
            rows += count
            sums.append(found)
    rms = np.sqrt(squares / max(rows, 1))
    return np.array(sums), (np.finfo(np.float64).eps * np.abs(maps.weights) @ rms) ** 2


def tally_rows(
    reconstructions: Sequence[Reconstruction],
    coalitions: Sequence[Coalition],
    blocks: Blocks,
    counts: Sequence[Sequence[int]],
    tally: Tally,
    records: Sequence[CountsRecords] = (),
    inferences: Sequence[CountsInferences] = (),
) -> tuple[Array, Array]:
    """Run fitted attacks over the rows.

    Parameters
    ----------
    counts : sequence of lists of int
        Rows of each row group, by block.
    records, inferences : sequences of B counters, optional

    Returns
    -------
    sums : ndarray of shape (G, B, N)
        Squared errors, summed by row group.
    expected : ndarray of shape (B,)
        Theory's squared errors summed over rows and attributes; NaN without theory.

    Raises
    ------
    PluginError
        An estimate has the wrong shape, or is not finite.
    """
    sums = []
    expected = np.zeros(len(coalitions))
    every = list(zip(map(id, reconstructions), map(tuple, coalitions), strict=True))
    first = [every.index(one) for one in every]  # equal attacks are run once
    for around in with_neighbours(blocks(), most_neighbours(reconstructions)):
        estimates, theory = _tally_block(
            reconstructions, coalitions, first, around, tally, records, inferences
        )
        expected += theory
        index, x, _ = around.block
        sums += [*_squares(estimates, x, counts[index], tally)]
    return np.array(sums), expected


def _tally_block(
    reconstructions: Sequence[Reconstruction],
    coalitions: Sequence[Coalition],
    first: Sequence[int],
    around: Around,
    tally: Tally,
    records: Sequence[CountsRecords],
    inferences: Sequence[CountsInferences],
) -> tuple[list[Array], list[float]]:
    x, wide = readable([around.block[1], around.x])
    copies, before, shape = readable(around.copies), around.before, x.shape
    asked = []
    for fitted, coalition in zip(reconstructions, coalitions, strict=True):
        held = with_known(fitted, [copies[copy - 1] for copy in coalition], wide)
        asked.append(shown(fitted, held, before, len(x), around.first))

    def of_each(ask: Callable[[Reconstruction, list[Array]], T]) -> list[T]:
        found = {place: ask(*asked[place]) for place in set(first)}
        return [found[place] for place in first]

    estimates = of_each(lambda fitted, mine: checked(fitted.rows(mine), shape))
    theory = {place: _theory(reconstructions[place], around, x) for place in set(first)}
    for inferred, (fitted, mine) in zip(inferences, asked, strict=False):
        inferred.add(fitted.inferred(mine), x)
    for counted, (fitted, mine), estimate in zip(records, asked, estimates, strict=False):
        counted.add(fitted, mine, estimate, x)
    confidence = tally.confidence
    if confidence is not None:
        ends = of_each(lambda fitted, mine: _intervals(fitted, mine, confidence, shape))
        low, high = (np.stack(each, axis=1) for each in zip(*ends, strict=True))
        tally.localise(low, high, x)
    if tally.candidates:
        left = of_each(lambda fitted, mine: _candidates(fitted, mine, shape))
        tally.leave(np.stack(left, axis=1))
    return estimates, [theory[place] for place in first]


def _squares(estimates: Sequence[Array], x: Array, counts: Sequence[int], tally: Tally) -> Array:
    stops = np.cumsum([count for count in counts if count]).tolist()
    sums = np.zeros((len(stops), len(estimates), x.shape[1]))
    size = max(FEWEST_ROWS, CHUNK_VALUES // sums[0].size) if stops else 1
    for first in range(0, len(x), size):
        here = slice(first, first + size)
        errors = np.stack([estimate[here] for estimate in estimates], axis=1)
        errors -= x[here, None]
        tally.add(errors, x[here], first)
        for total, (start, stop) in zip(sums, pairwise([0, *stops]), strict=True):
            part = errors[max(0, start - first) : max(0, stop - first)]
            if len(part):
                total += np.einsum("rbn,rbn->bn", part, part)
    return sums


def _theory(fitted: Reconstruction, around: Around, x: Array) -> float:
    inner, (true,) = shown(fitted, readable([around.x]), around.before, len(x), around.first)
    theory = inner.expected(true)
    return np.nan if theory is None else float(checked(theory, x.shape[:1]).sum())


def _intervals(
    fitted: Reconstruction, copies: list[Array], confidence: float, shape: tuple[int, ...]
) -> tuple[Array, Array]:
    found = fitted.intervals(copies, confidence)
    if found is None:
        return np.full(shape, np.nan), np.full(shape, np.nan)
    return checked(found[0], shape), checked(found[1], shape)


def _candidates(fitted: Reconstruction, copies: list[Array], shape: tuple[int, ...]) -> Array:
    found = fitted.candidates(copies)
    if found is None:
        return np.full(shape, np.nan)
    unknown = np.isnan(found)
    return np.where(unknown, np.nan, checked(np.where(unknown, 1.0, found), shape))


class CopyBlocks:
    """A coalition's copies, block by block, for an attack to fit; never the original."""

    def __init__(self, blocks: Blocks, coalition: Coalition) -> None:
        self._blocks, self._coalition = blocks, coalition

    def __iter__(self) -> Iterator[list[Array]]:
        """Yield lists of k arrays of shape (b, N), in order of rows."""
        for _, _, copies in self._blocks():
            yield readable([copies[copy - 1] for copy in self._coalition])
