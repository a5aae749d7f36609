"""Row-level reconstruction: for attacks that are not linear, for shares of records recovered, and for spreads of errors.

Runs block by block; what is counted (``auditor.audit.numeric.error_tally``) are averages over
records, and no record's estimate is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np

from auditor.adversary.attack import Inferred, Reconstruction
from auditor.adversary.handed_back import checked
from auditor.audit.numeric.closed_form import crossed
from auditor.audit.numeric.error_tally import Tally
from auditor.audit.numeric.limits import CHUNK_VALUES
from auditor.audit.numeric.neighbours import most_neighbours, shown, with_known, with_neighbours
from auditor.audit.numeric.stacked_maps import Maps
from auditor.numerics.read_only import readable
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.types import Array, Blocks, Coalition

FEWEST_ROWS = 256
"""Rows counted at once at least: their errors are then more than the cells that they are counted
in."""


class CountsRecords(Protocol):
    """Counts what is found of whole records, block by block (`auditor.audit.measures.record_hits`)."""

    def add(
        self, fitted: Reconstruction, copies: Sequence[Array], estimate: Array, x: Array
    ) -> None:
        """Count one block's records, shapes (b, N), which are estimated already."""


class CountsInferences(Protocol):
    """Counts what is inferred of sensitive values, block by block (`auditor.audit.anonymity.inferences`)."""

    def add(self, found: Inferred | None, x: Array) -> None:
        """Count one block's records."""


def tally_linear(
    maps: Maps, blocks: Blocks, centre: Array, tally: Tally, K_X: Array, law: NoiseLaw | None
) -> None:
    """Run linear maps over the rows and count their errors; adds the exact chances when weights and law are known."""
    B, N, MN = maps.weights.shape
    # The error of fixed weights is normal given the record, with mean −(I−V−WH) v + c and variance
    # diag(S): the chance of a hit is exact.
    known = (
        maps.fixed and law is not None and law.distribution == "gaussian" and bool(tally.tolerances)
    )
    spread = (
        np.sqrt(np.clip(np.einsum("bnn->bn", crossed(maps, maps, K_X, law)[1]), 0.0, None))
        if known and law is not None
        else None
    )
    lost = maps.lost
    # x̂ − x = W y − V v + c in one product, of 1, v and y
    everything = np.hstack(
        [
            maps.offsets.reshape(B * N, 1),
            -maps.own.reshape(B * N, N),
            maps.weights.reshape(B * N, MN),
        ]
    )
    for _, x, copies in blocks():
        size = max(FEWEST_ROWS, CHUNK_VALUES // (B * N))
        for start in range(0, len(x), size):
            true = x[start : start + size]
            v = true - centre
            y = [copy[start : start + size] - centre for copy in copies]
            tally.add(
                (np.hstack([np.ones((len(v), 1)), v, *y]) @ everything.T).reshape(len(v), B, N),
                true,
            )
            if spread is not None:
                tally.expect(np.einsum("bij,rj->rbi", -lost, v) + maps.offsets, spread, true)


def errors_by_rows(
    maps: Maps, blocks: Blocks, counts: Sequence[Sequence[int]], centre: Array
) -> tuple[Array, Array]:
    """Run linear maps over the rows, where second moments do not resolve what is left.

    Returns
    -------
    sums : ndarray of shape (G, B, N)
        Squared errors, summed by row group.
    grain : ndarray of shape (B, N)
        How large an error the rounding of doubles may make, squared, on average over rows: ``(ε Σ |w| rms(y))²``.
    """
    B, N, MN = maps.weights.shape
    flat, own = maps.weights.reshape(B * N, MN), maps.own.reshape(B * N, N)
    sums, squares, rows = [], np.zeros(MN), 0
    for index, x, copies in blocks():
        stop = 0
        for count in counts[index]:
            start, stop = stop, stop + count
            found, size = np.zeros((B, N)), max(1, CHUNK_VALUES // (B * N))
            for first in range(start, stop, size):
                here = slice(first, min(first + size, stop))
                raw = np.concatenate([copy[here] for copy in copies], axis=1)
                y = raw - np.tile(centre, MN // N)
                # Errors first, squares after: the large terms cancel before they are squared, where
                # moments square them first.
                errors = (y @ flat.T - (x[here] - centre) @ own.T).reshape(-1, B, N) + maps.offsets
                found += np.einsum("rbn,rbn->bn", errors, errors)
                squares += np.einsum("rd,rd->d", raw, raw)
            rows += count
            if count:
                sums.append(found)
    return np.array(sums), (
        np.finfo(np.float64).eps * np.abs(maps.weights) @ np.sqrt(squares / max(rows, 1))
    ) ** 2


def tally_rows(
    reconstructions: Sequence[Reconstruction],
    coalitions: Sequence[Coalition],
    blocks: Blocks,
    counts: Sequence[Sequence[int]],
    tally: Tally,
    records: Sequence[CountsRecords] = (),
    inferences: Sequence[CountsInferences] = (),
) -> tuple[Array, Array]:
    """Run fitted attacks over the rows; return squared errors summed by row group, shape (G, B, N), and what theory expects, (B,).

    Parameters
    ----------
    counts : sequence of lists of int
        Rows of each row group, block by block.
    records : sequence of B counters, optional
        What to count of whole records.
    inferences : sequence of B counters, optional
        What to count of sensitive values disclosed.

    Returns
    -------
    sums : ndarray of shape (G, B, N)
    expected : ndarray of shape (B,)
        Theory's squared errors summed over rows and attributes; NaN for an attack without theory.

    Raises
    ------
    PluginError
        An attack's estimate has the wrong shape, or is not finite.
    """
    sums: list[Array] = []
    expected = np.zeros(len(coalitions))
    every = [
        (id(fitted), tuple(coalition))
        for fitted, coalition in zip(reconstructions, coalitions, strict=True)
    ]
    # coalitions that are attacked as one are estimated once, at the first's place
    first = [every.index(one) for one in every]
    for (index, x, _), wide, copies, before in with_neighbours(
        blocks(), most_neighbours(reconstructions)
    ):
        (x, wide), copies = readable([x, wide]), readable(copies)
        asked = [
            shown(
                fitted, with_known(fitted, [copies[c - 1] for c in coalition], wide), before, len(x)
            )
            for fitted, coalition in zip(reconstructions, coalitions, strict=True)
        ]
        estimates = {
            place: checked(asked[place][0].rows(asked[place][1]), x.shape) for place in set(first)
        }
        theory = {place: _theory(reconstructions[place], wide, before, x) for place in estimates}
        expected += [theory[place] for place in first]
        for inferred, (fitted, mine) in zip(inferences, asked, strict=False):
            inferred.add(fitted.inferred(mine), x)
        for counted, (fitted, mine), place in zip(records, asked, first, strict=False):
            counted.add(fitted, mine, estimates[place], x)
        if tally.confidence is not None:
            intervals = {
                place: _intervals(*asked[place], tally.confidence, x.shape) for place in estimates
            }
            low, high = (
                np.stack([intervals[place][end] for place in first], axis=1) for end in (0, 1)
            )
            tally.localise(low, high, x)
        if tally.candidates:
            left = {place: _candidates(*asked[place], x.shape) for place in estimates}
            tally.leave(np.stack([left[place] for place in first], axis=1))
        sums += [*_squares([estimates[place] for place in first], x, counts[index], tally)]
    return np.array(sums), expected


def _squares(estimates: Sequence[Array], x: Array, counts: Sequence[int], tally: Tally) -> Array:
    """Return squared errors summed by row group, shape (G, B, N); errors are counted in pieces of rows that stay in the cache."""
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


def _theory(fitted: Reconstruction, wide: Array, before: int, x: Array) -> float:
    """Return theory's squared errors summed over a block's rows, which stand among their neighbours; NaN without theory."""
    inner, (true,) = shown(fitted, [wide], before, len(x))
    theory = inner.expected(true)
    return np.nan if theory is None else float(checked(theory, x.shape[:1]).sum())


def _intervals(
    fitted: Reconstruction, copies: list[Array], confidence: float, shape: tuple[int, ...]
) -> tuple[Array, Array]:
    """Return an attack's intervals, NaN when it gives none."""
    found = fitted.intervals(copies, confidence)
    if found is None:
        return np.full(shape, np.nan), np.full(shape, np.nan)
    return checked(found[0], shape), checked(found[1], shape)


def _candidates(fitted: Reconstruction, copies: list[Array], shape: tuple[int, ...]) -> Array:
    """Return how many values an attack leaves, NaN where it does not say."""
    found = fitted.candidates(copies)
    if found is None:
        return np.full(shape, np.nan)
    unknown = np.isnan(found)
    return np.where(unknown, np.nan, checked(np.where(unknown, 1.0, found), shape))


class CopyBlocks:
    """A coalition's copies, block by block, for an attack to be fitted to; never the original."""

    def __init__(self, blocks: Blocks, coalition: Coalition) -> None:
        self._blocks = blocks
        self._coalition = coalition

    def __iter__(self) -> Iterator[list[Array]]:
        """Yield lists of k arrays of shape (b, N), in order of rows."""
        for _, _, copies in self._blocks():
            yield readable([copies[copy - 1] for copy in self._coalition])
