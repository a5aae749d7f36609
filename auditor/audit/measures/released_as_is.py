"""Values that a copy shows exactly, filled blanks, causes in the noise.

| symbol | meaning |
| --- | --- |
| ``s`` | share of records whose released value rounds to the original |
| | for several copies: the value that two or more of them agree on |
| ``c`` | share of records with the commonest value |
| ``1 − (1 − s)/(1 − c)`` | share shown, beyond a guess of the commonest value |
| ``u`` | distance of a cell or guess from the value, over the largest one that rounds to it |
| ``C, A, B`` | records with ``u ≤ 1``, ``1 < u ≤ 2w + 1`` and ``2w + 1 < u ≤ 4w + 1``; A is 64 or more |
| ``μ`` | hits by chance, for a smooth law: ``A/2 · 1/Σ_{k ≤ w} q^k``, ``q = (B/A)^(1/w)`` |
| | or, if larger, hits by the cells of the 16 records with nearest but unequal cells |
| ``d`` | ``|x̂ − m|``: distance of the best linear estimate from the column's mean |
| ``t`` | distance within which most guesses «blank» are right |

``C − μ`` values are *kept*, without 0 and values of 2 % of the records. Blanks hold the mean. ``t``
is fitted on one half of the records and judged on the other.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from auditor.audit.base.request import ALL, CellContext
from auditor.audit.measures.privacy import parts_of_equal_size
from auditor.audit.numeric.release import Release
from auditor.base import pd
from auditor.base.types import Array, Arrays, Coalition, Coalitions, Flags, Indices, Options, Pair
from auditor.data.columns.kinds import as_text, many_alike, number_readings
from auditor.data.columns.scan import resolution
from auditor.data.copies import MOST_COLUMNS
from auditor.data.table import ShownColumn, Table
from auditor.numerics.linear_algebra import correlation
from auditor.numerics.statistics import share_error
from auditor.results.records import FITTED, KEPT, SHOWN, Measurement
from auditor.schemes.base.scheme import Scheme

SINGLE = 2.0**-23
"""Relative precision of single precision."""
MOST_COMPARED = 16
"""Copies that are compared, the first ones."""
HEAPED = 0.02
"""Share of a column's cells from which a value does not count."""
NEAREST, BESIDE = 64, 8
"""Records for the estimate of chance hits: near misses, and neighbours on either side."""
WIDER = 1.0, 2.0**7, 2.0**14
"""Multiples of single precision within which a continuous value counts as kept."""
SHARE = 0.0, 1.0
TOO_MANY, FEWEST_KEPT = 5.0, 6
"""Least deviations of ``C − μ``, with variance 4 μ + 1, and least hits."""


def shown_records(
    context: CellContext, X: Array, copies: Arrays, asked: Coalitions, steps: Array
) -> list[Measurement]:
    """Share of values that each copy shows, and that two copies agree on.

    Parameters
    ----------
    X : ndarray of shape (n, N)
    copies : sequence of M ndarrays of shape (n, N)
    steps : ndarray of shape (N,)
        Recording steps, NaN for continuous columns.
    """
    common, records = np.array([commonest(x) for x in X.T]), list[Measurement]()
    room = np.where(common < 1.0, 1.0 - common, np.inf)
    for coalition in (one for one in asked if len(one) in (1, len(copies))):
        shown = said([copies[copy - 1] for copy in coalition])
        share = (np.abs(shown - X) <= within(X, steps)).mean(axis=0)
        beyond = np.maximum(share - common, 0.0) / room
        error = share_error(share, len(X)) / room
        for name, *figure in zip(context.attributes, beyond.tolist(), error.tolist(), strict=True):
            records.append(
                context.estimate(SHOWN, coalition, *figure, bounds=SHARE, attribute=name)
            )
    return records


def said(copies: Arrays) -> Array:
    """Values of one copy, or values that two agree on (else NaN), shape (n, N)."""
    if len(copies) == 1:
        return copies[0]
    found = (most_shown(Y) for Y in np.stack(copies, axis=2).swapaxes(0, 1))
    return np.column_stack([np.where(number > 1, value, np.nan) for value, number in found])


def most_shown(Y: Array) -> tuple[Array, Indices]:
    """Commonest value of each record's cells, (n, k), and its count, shapes (n,).

    Examples
    --------
    >>> most_shown(np.array([[1.0, 2.0, 2.0], [3.0, 4.0, 5.0]]))
    (array([2., 3.]), array([2, 1]))
    """
    Y = Y[:, :MOST_COMPARED]
    number = (Y[:, :, None] == Y[:, None, :]).sum(axis=2)
    best = number.argmax(axis=1)[:, None]
    return np.take_along_axis(Y, best, axis=1)[:, 0], np.take_along_axis(number, best, axis=1)[:, 0]


def kept_records(
    context: CellContext, X: Array, guesses: Arrays, steps: Array, coalition: Coalition
) -> list[Measurement]:
    """Largest share of kept values over guesses, (n, N) or (n, 1), if > 0."""
    found = []
    for j, name in enumerate(context.attributes):
        share = max(kept(X[:, j], np.broadcast_to(Y, X.shape)[:, j], steps[j]) for Y in guesses)
        error = share_error(share, len(X))
        if share > 0:
            found.append(
                context.estimate(KEPT, coalition, share, error, bounds=SHARE, attribute=name)
            )
    return found


def kept(x: Array, y: Array, step: float) -> float:
    """``C − μ`` as a share of eligible records; 0 if chance explains it.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(2, 1_000))
    >>> [round(kept(x[0], np.where(np.arange(1_000) < some, x[0], x[0] + x[1]), np.nan), 3) for some in (0, 20)]
    [0.0, 0.02]
    """
    return max(
        _kept(x, y, within(x, step) * wider) for wider in (WIDER if np.isnan(step) else WIDER[:1])
    )


def _kept(x: Array, y: Array, reach: Array) -> float:
    _, which, counts = np.unique(x, return_inverse=True, return_counts=True)
    free = (counts[which] < max(2.0, HEAPED * len(x))) & (x != 0)
    left = np.abs(y - x)
    hit = free & (left <= reach)
    if hit.sum() < FEWEST_KEPT:
        return 0.0
    rest = free & ~hit & (reach > 0)
    chance = max(by_noise(left[rest], reach[rest]), by_others(x, y, reach, free))
    beyond = float(hit.sum() - chance)
    return beyond / float(free.sum()) if beyond > TOO_MANY * np.sqrt(4.0 * chance + 1.0) else 0.0


def by_noise(left: Array, reach: Array) -> float:
    """Number of hits by smooth noise, from near misses."""
    with np.errstate(over="ignore"):
        u = np.sort(left / reach)
        w = np.ceil((u[min(NEAREST, len(u)) - 1] - 1.0) / 2.0) if len(u) else 0.0
        A, B = np.diff(np.searchsorted(u, [1.0, 2.0 * w + 1.0, 4.0 * w + 1.0], "right"))
    if not 0.0 < w < np.inf:
        return 0.0
    rate = np.log(A / max(0.5, min(A, B))) / w  # q = e^−rate
    return float(A / 2.0 / (-np.expm1(-rate * w) / np.expm1(rate) if rate > 0 else w))


def by_others(x: Array, y: Array, reach: Array, free: Flags) -> float:
    """Number of hits by neighbouring cells' values."""
    order, places = np.argsort(y, kind="stable"), np.arange(1, BESIDE + 1)[:, None]
    cells, reach = y[free], reach[free]
    below, above = (
        np.searchsorted(y[order], cells, "left") - places,
        np.searchsorted(y[order], cells, "right") + places - 1,
    )
    near = x[order[np.clip(np.concatenate([below, above]), 0, len(x) - 1)]]
    return float((np.abs(near - cells) <= reach).sum() / len(near))


def within(X: Array, steps: Array | float) -> Array:
    """Largest distance that rounds to the original, shape as X."""
    return np.where(np.isnan(steps), SINGLE * np.abs(X), (0.5 - 1e-9) * steps)


def commonest(x: Array) -> float:
    """Share of the records that have a column's commonest value."""
    return float(np.unique(x, return_counts=True)[1].max() / len(x))


ROWS = 20_000
"""First records that are looked at: the standard error is at most 0.4 %."""


def blank_records(
    context: CellContext, release: Release, coalitions: Coalitions
) -> Iterator[Measurement]:
    """Yield shares of records guessed right, by copy and largest coalition.

    For the column with the largest gain.
    """
    blanks, parts, rows = release.table.blanks, list[Pair](), 0
    if blanks is None:
        return
    for _, x, copies in release.blocks():
        parts.append((x, np.stack(release.undone(copies))))
        rows += len(x)
        if rows >= ROWS:
            break
    X, Y = (np.concatenate(part, axis=-2) for part in zip(*parts, strict=True))
    largest = max(coalitions, key=len)
    for coalition in (one for one in coalitions if len(one) == 1 or one == largest):
        seen = np.hstack([Y[copy - 1] for copy in coalition])
        found = {
            context.attributes[j]: guessed(X[:, j], seen, blanks[:rows, j])
            for j in np.flatnonzero(blanks[:rows].any(axis=0))
        }
        if found:
            found[ALL] = max(found.values(), key=lambda shares: shares[0] - shares[1])
        for name, (right, usual) in found.items():
            error = share_error(right, rows)
            for metric, value in (("blank_guessed", right), ("blank_gain", right - usual)):
                yield context.estimate(
                    metric, coalition, value, error, attribute=name, bounds=(-1.0, 1.0)
                )


def guessed(x: Array, seen: Array, blank: Flags) -> tuple[float, float]:
    """Shares of records guessed right with copies and without.

    Parameters
    ----------
    x : ndarray of shape (n,)
        A column, filled.
    seen : ndarray of shape (n, k)
        Columns of the copies.
    blank : ndarray of shape (n,)
        Whether the cell was filled.
    """
    halves = np.arange(len(x)) % 2 == 0
    right = 0.0
    for taught in (halves, ~halves):
        centre = seen[taught].mean(axis=0)
        weights = np.linalg.lstsq(seen[taught] - centre, x[taught] - x[taught].mean(), rcond=None)[
            0
        ]
        distance = np.abs((seen - centre) @ weights)
        order = np.argsort(distance[taught])
        # right guesses if the k nearest are taken for blank
        gain = np.concatenate([[0], np.cumsum(np.where(blank[taught][order], 1, -1))])
        k = int(gain.argmax())
        reach = -1.0 if k == 0 else distance[taught][order][k - 1]
        right += np.count_nonzero((distance[~taught] <= reach) == blank[~taught])
    share = blank.mean()
    return float(right / len(x)), float(max(share, 1.0 - share))


# -- Diagnosis of copies from files: their noise, and their other columns --------------------------


MOSTLY = 0.5
"""Share of unused values from which a column counts as unused."""
TEXT = "most records have a text of their own; leave it out, or declare a random one as `key`"
NOT_READ = f"only {MOST_COLUMNS} columns of a file are read"
NO_INSIDER = "that needs `perfect` knowledge, a table in memory and ten records per cell"
MOST_COPIES, PARTS = 8, 20
"""Copies that are compared by two, and groups of equal size that a column of numbers is cut into."""
NO_NOISE = 1e-9
"""Deviation of noise, relative to the column's, below which it has no correlation."""


def noise_figures(
    context: CellContext, X: Array, copies: Arrays, steps: Array
) -> Iterator[Measurement]:
    """Yield the figures of the noise of copies, arrays of shape (n, N).

    ``steps`` are the original's recording steps, NaN for continuous columns.
    """
    few = copies[:MOST_COPIES]
    spread = X.std(axis=0)
    rounded = [resolution(lambda Y=Y: iter([Y]), *Y.shape).steps for Y in few]  # type: ignore[misc]
    for j, name in enumerate(context.attributes):
        Z = np.array([Y[:, j] - X[:, j] for Y in few])
        size = Z.std(axis=1)
        noisy = np.flatnonzero(size > NO_NOISE * spread[j]).tolist()
        r = correlation(np.cov([*Z, X[:, j]]))
        near = 1e-9 * np.abs(X[:, j]) if np.isnan(steps[j]) else 1e-6 * steps[j]
        found = list[tuple[str, Coalition, Any]]()
        for k, z in enumerate(Z):
            found.append(("values_equal", (k + 1,), np.mean(np.abs(z) <= near)))
            if k in noisy and spread[j] > 0:
                found.append(("noise_on_value", (k + 1,), r[k, -1]))
            if not np.isnan(rounded[k][j]):
                found.append(("rounding_step", (k + 1,), rounded[k][j]))
        for a, b in combinations(noisy, 2):
            pair = a + 1, b + 1
            found += [(f"noise_correlation{pair}", pair, r[a, b])]
            found += [(f"noise_ratio{pair}", pair, size[a] / size[b])]
        for metric, held, value in found:
            yield context.record(metric, held, float(value), attribute=name)


def column_figures(
    context: CellContext, X: Array, shown: Sequence[ShownColumn], originals: Options
) -> Iterator[Measurement]:
    """Yield figures of shown columns; ``originals`` have equal names."""
    everybody, seen, told = context.everybody, set[str](), set[str]()
    for column in sorted(shown, key=lambda column: "iufU".index(column.values.dtype.kind)):
        copies = everybody if column.copy == 0 else (column.copy,)
        _, codes, own = np.unique(column.values, return_inverse=True, return_counts=True)
        if column.values.dtype.kind == "f":
            codes = parts_of_equal_size(column.values, PARTS)
        key = f"{column.name} {column.copy}"
        if key not in seen:
            share = float((own == 1).sum() / len(codes))
            yield context.record(f"column_unique({column.name})", copies, share)
            if (original := originals.get(column.name)) is not None:
                yield context.record(
                    f"column_equal({column.name})", copies, _equal(column, original)
                )
        seen.add(key)
        counts = np.bincount(codes)
        if key in told or (counts > 0).sum() * 5 > len(codes):
            continue  # too few records
        told.add(key)
        for j, name in enumerate(context.attributes):
            mean = np.bincount(codes, X[:, j]) / np.maximum(counts, 1)
            within = ((X[:, j] - mean[codes]) ** 2).sum() / (len(codes) - (counts > 0).sum())
            total = X[:, j].var(ddof=1)
            if total > 0:
                tells = max(0.0, 1.0 - float(within / total))
                metric = f"column_tells({column.name})"
                yield context.record(metric, copies, tells, attribute=name)


def unused_figures(
    context: CellContext,
    scheme: Scheme,
    table: Table,
    found: Sequence[Measurement],
    alone: Iterable[str] = (),
) -> Iterator[Measurement]:
    """Yield shares of unused values of shown columns.

    ``found`` are records of the insider, who learns characters, not names and hashes; ``alone``
    names columns that no other attack uses.
    """
    beside = scheme.beside(table)
    read = [] if table.streamed or not any(names for _, names in beside) else scheme.shown(table)
    fitted = any(record.attack == FITTED for record in found)
    for name in dict.fromkeys(alone) if not fitted else ():
        yield context.record(f"column_unused({name})", (1,), 1.0, reason=NO_INSIDER)
    for number, names in beside:
        for place, name in enumerate(names):
            own = [_own(column.values) for column in read if column.name == name]
            if not own and place < MOST_COLUMNS and not table.streamed:
                continue  # a constant
            share = max(own) if own and fitted else 1.0
            if share >= MOSTLY:
                unread = table.streamed or not fitted
                reason = NO_INSIDER if unread else TEXT if own else NOT_READ
                yield context.record(f"column_unused({name})", (number,), share, reason=reason)


def _own(text: Any) -> float:
    """Share of texts that occur once, if many differ in letters, else 0."""
    if text.dtype.kind != "U" or many_alike(
        pd.Series(text).str.replace(r"\d", "", regex=True).to_numpy()
    ):
        return 0.0
    return float((np.unique(text, return_counts=True)[1] == 1).sum() / len(text))


def _equal(column: ShownColumn, original: Any) -> float:
    if column.values.dtype.kind == "f":
        readings = number_readings(pd.Series(original))
        return max(float(np.mean(column.values == each)) for each in readings)
    if column.values.dtype.kind == "U":
        return float(np.mean(column.values == as_text(pd.Series(original))))
    # codes have no labels: equal if each code is one original value
    pairs = pd.DataFrame({"code": column.values, "value": original.astype(str)})
    return float(pairs.value_counts().groupby("code").max().sum() / len(pairs))
