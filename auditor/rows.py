"""Row-level reconstruction: for attacks that are not linear, for shares of records recovered, and for spreads of errors.

Runs block by block; what is counted (``auditor.tally``) are averages over records, and no record's estimate is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from auditor.attack import Reconstruction
from auditor.containment import known
from auditor.errors import PluginError
from auditor.linear import crossed
from auditor.maps import Coalition, Maps
from auditor.noise import NoiseLaw
from auditor.sealed import readable
from auditor.tally import Tally

if TYPE_CHECKING:
    from auditor.inferences import Inferences
    from auditor.whole_records import WholeRecords

Array = NDArray[np.float64]

CHUNK_VALUES = 2**15
"""Errors held at once: 256 KB, so that every step of their counting finds them in a core's own cache, in memory used before."""

Blocks = Callable[[], Iterable[tuple[int, Array, list[Array]]]]
"""Yields (block number, original rows, all copies' rows), anew at every call."""


def tally_linear(maps: Maps, blocks: Blocks, centre: Array, tally: Tally, K_X: Array, law: NoiseLaw | None) -> None:
    """Run linear maps over the rows and count their errors; adds the exact chances when weights and law are known."""
    B, N, MN = maps.weights.shape
    known = maps.fixed and law is not None and law.distribution == "gaussian" and bool(tally.tolerances)
    spread = np.sqrt(np.clip(np.einsum("bnn->bn", crossed(maps, maps, K_X, law)[1]), 0.0, None)) if known and law is not None else None
    lost, flat, own = maps.lost, maps.weights.reshape(B * N, MN), maps.own.reshape(B * N, N)
    for _, x, copies in blocks():
        size = max(1, CHUNK_VALUES // (B * N))
        for start in range(0, len(x), size):
            v = x[start : start + size] - centre
            y = np.concatenate([copy[start : start + size] - centre for copy in copies], axis=1)
            true = x[start : start + size]
            tally.add((y @ flat.T - v @ own.T).reshape(len(v), B, N) + maps.offsets, true)
            if spread is not None:
                tally.expect(np.einsum("bij,rj->rbi", -lost, v) + maps.offsets, spread, true)


def errors_by_rows(maps: Maps, blocks: Blocks, counts: Sequence[Sequence[int]], centre: Array) -> tuple[Array, Array]:
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
                errors = (y @ flat.T - (x[here] - centre) @ own.T).reshape(-1, B, N) + maps.offsets
                found += np.einsum("rbn,rbn->bn", errors, errors)
                squares += np.einsum("rd,rd->d", raw, raw)
            rows += count
            if count:
                sums.append(found)
    return np.array(sums), (np.finfo(np.float64).eps * np.abs(maps.weights) @ np.sqrt(squares / max(rows, 1))) ** 2


def tally_rows(
    reconstructions: Sequence[Reconstruction],
    coalitions: Sequence[Coalition],
    blocks: Blocks,
    counts: Sequence[Sequence[int]],
    tally: Tally,
    records: Sequence[WholeRecords] = (),
    inferences: Sequence[Inferences] = (),
) -> tuple[Array, Array]:
    """Run fitted attacks over the rows; return squared errors summed by row group, shape (G, B, N), and what theory expects, (B,).

    Parameters
    ----------
    counts : sequence of lists of int
        Rows of each row group, block by block.
    records : sequence of B WholeRecords, optional
        What to count of whole records.
    inferences : sequence of B Inferences, optional
        What to count of sensitive values learnt.

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
    for index, x, copies in blocks():
        (x,), copies = readable([x]), readable(copies)
        held = [[copies[c - 1] for c in coalition] for coalition in coalitions]
        estimates = [checked(fitted.rows(mine), x.shape) for fitted, mine in zip(reconstructions, held, strict=True)]
        for place, fitted in enumerate(reconstructions):
            theory = fitted.expected(x)
            expected[place] += np.nan if theory is None else checked(theory, x.shape[:1]).sum()
        for learnt, fitted, mine in zip(inferences, reconstructions, held, strict=False):
            learnt.add(fitted.inferred(mine), x)
        for counted, fitted, mine in zip(records, reconstructions, held, strict=False):
            counted.add(fitted, mine, x)
        errors = np.stack(estimates, axis=1) - x[:, None, :]
        tally.add(errors, x)
        if tally.confidence is not None:
            intervals = [_intervals(fitted, [copies[c - 1] for c in coalition], tally.confidence, x.shape)
                         for fitted, coalition in zip(reconstructions, coalitions, strict=True)]  # fmt: skip
            tally.localise(np.stack([low for low, _ in intervals], axis=1), np.stack([high for _, high in intervals], axis=1), x)
        stops = np.cumsum(counts[index])
        sums.extend((errors[stop - count : stop] ** 2).sum(axis=0) for stop, count in zip(stops, counts[index], strict=True) if count)
    return np.array(sums), expected


def _intervals(fitted: Reconstruction, copies: list[Array], confidence: float, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return an attack's intervals, NaN when it gives none."""
    found = fitted.intervals(copies, confidence)
    if found is None:
        return np.full(shape, np.nan), np.full(shape, np.nan)
    return checked(found[0], shape), checked(found[1], shape)


def check_real(*values: Any) -> None:
    """Refuse what numpy would make numbers of with a warning, or without: complex values, text, objects.

    Raises
    ------
    PluginError
        The harness does not trust what a plugin returns.
    """
    for value in values:
        kind = np.asarray(value).dtype
        if kind.kind not in "fiub":
            raise PluginError(f"the attack returned values of type {known(kind.type).__name__}, which are no real numbers")


def checked(estimate: Array, shape: tuple[int, ...]) -> Array:
    """Return finite numbers of a shape; the harness does not trust what a plugin returns.

    Raises
    ------
    PluginError
        Saying what was expected.
    """
    check_real(estimate)
    estimate = np.asarray(estimate, dtype=np.float64)
    if estimate.shape != shape:
        raise PluginError(f"the attack returned an estimate of shape {estimate.shape} for rows of shape {shape}")
    if not np.isfinite(estimate).all():
        raise PluginError("the attack returned values that are not finite")
    return estimate


class CopyBlocks:
    """A coalition's copies, block by block, for an attack to be fitted to; never the original."""

    def __init__(self, blocks: Blocks, coalition: Coalition) -> None:
        self._blocks = blocks
        self._coalition = coalition

    def __iter__(self) -> Iterator[list[Array]]:
        """Yield lists of k arrays of shape (b, N), in order of rows."""
        for _, _, copies in self._blocks():
            yield readable([copies[copy - 1] for copy in self._coalition])
