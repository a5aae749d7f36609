"""What the originals teach of copies that nobody states a law of: the best piecewise-linear guess of each attribute.

Without a law most attacks do not apply: a copy that is the original in other units, or its ranks, would look as safe as noise. Whoever made
the copies knows how values were changed; the auditor learns it, as a guess of each attribute from the coalition's cells.

| symbol | meaning | shape |
| --- | --- | --- |
| ``x`` | an attribute of the records | (n,) |
| ``Y`` | the coalition's cells of them; p columns | (n, p) |
| heap | value that ``HEAPED`` or more of a column's cells have: a code or a fill, which says another thing than its size | |
| ``a, c`` | the attribute's value that most copies show, and how many do | (n,) |
| ``l`` | a where copies agree, else the attribute's column in that copy which alone leaves least | (n,) |
| ``P`` | what a record's place foretells of its cells, if anything; and normal scores of its place, and of its key | (n, q) |
| ``B`` | cells of other rows that tell of a record: of those k rows further, or k from the end, for the k that stand out | (n, r) |
| | or, where that leaves less, of where a record went by blocks (``moved_rows``), or means of others' cells (``coded_cells.shared``) | |
| ``g, m`` | guess of x by a product of powers of its cells, ``b_0 · Π_c y_c^(b_c)``, of cells above 0; mean x of one value of l | (n,) |
| ``r`` | what cells say that no line follows: residues, quotients, shares of a secret (``coded_cells.residue``) | (n,) |
| piece | records with the same columns heaped and the same c, and with l (or place, key, B, g, m, r) between two quantiles | records |
| ``e_t`` | error of the regression of x on Y, a, P, B, g, m, r that others of its piece teach: what is left, over ``1 − h_t`` | (n,) |

No record teaches its own error, so that an outlier does not foretell itself. A piece has `OWN_RECORDS` records for each coefficient; a
table of few records is one piece, and the guess the best linear one. A curve is followed as closely as pieces are narrow, and values
that are cut off, filled in or as they were are told apart by piece. Assumed, *not checked*: records of one piece are perturbed alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.audit.base.records import CellContext, error_records
from auditor.audit.measures.coded_cells import residue, shared
from auditor.audit.measures.every_cell import KNOWLEDGE, MOST_PATTERNS, OWN_RECORDS, by_group, residuals
from auditor.audit.measures.moved_rows import ENOUGH, moved_rows
from auditor.audit.measures.released_as_is import HEAPED, Mask, kept_records, most_shown
from auditor.audit.numeric.limits import MOST_TAUGHT
from auditor.data.common_records import MOST_CELLS
from auditor.numerics.statistics import BY_CHANCE, beyond_chance, standard_ranks
from auditor.process.deferred import scipy
from auditor.results.disclosure import FEWEST_RECORDS
from auditor.results.records import Measurement
from auditor.types import Array, Coalition, Indices

NAME = "fitted-to-originals"
"""What records call it."""
MOST_IN_PIECES = 32
"""Cells of a coalition up to which each attribute has pieces of its own; of more all are one regression, which takes a second where pieces
would take minutes."""
SHORT = 128
"""Rows of which a periodogram shows noise of a frequency that is another for every row."""
MOST_NAMES = 0.75
"""Different values of a column, as a share of its records, that may be names: of more hardly any record has another's."""
MOST_PIECES = 32
"""Pieces of one column: lines follow a smooth curve to a thousandth of its bend."""


def fitted_records(
    context: CellContext, X: Array, copies: Sequence[Array], asked: Sequence[Coalition], key: Indices | None = None,
    steps: Array | None = None,
) -> list[Measurement]:  # fmt: skip
    """Return errors of every copy alone, and of all together; none where there are too few records, or too many cells, to learn from.

    Parameters
    ----------
    context : CellContext
    X : ndarray of shape (n, N)
    copies : sequence of M ndarrays of shape (n, N)
    asked : sequence of tuple of int
        The coalitions that are audited: others are left out.
    key : ndarray of shape (n,), optional
        By which records may be put in order, beside the order that they stand in.
    steps : ndarray of shape (N,), optional
        As in ``shown_records``, where it is asked which values the guesses have exactly.
    """
    n, N = X.shape
    everybody = tuple(range(1, len(copies) + 1))
    coalitions = [one for one in asked if len(one) == 1 or one == everybody]
    if not coalitions or N * len(copies) > MOST_CELLS or n < OWN_RECORDS * (N * len(copies) + 1):
        return []
    every = -(-n // MOST_TAUGHT)
    beside = [(other_rows(X, copy)[::every], moved_rows(X, copy)[::every], shared(copy)[::every]) for copy in copies]
    X, copies = X[::every], [copy[::every] for copy in copies]
    orders = [np.arange(len(X)), *([] if key is None else [key[::every]])]
    singles: list[Coalition] = [(copy,) for copy in everybody]
    alone = np.array([_least_left(X, [copy], None, orders, cells) for copy, cells in zip(copies, beside, strict=True)])
    errors = list(alone)
    if everybody in coalitions and len(copies) > 1:
        pooled = [np.hstack(cells) for cells in zip(*beside, strict=True)]
        errors.append(_least_left(X, copies, alone.mean(axis=1).argmin(axis=0), orders, pooled))
        singles.append(everybody)
    found = by_group(singles, errors, X.var(axis=0))
    records = list(error_records(context, NAME, KNOWLEDGE, singles, [singles.index(one) for one in coalitions], found))
    for one, squares in zip(singles, errors, strict=True):
        if steps is not None and one in coalitions:
            elsewhere = [cells[:, None] for copy in one for cells in beside[copy - 1][1].T]
            records += kept_records(context, X, [X + np.sqrt(squares), *elsewhere], steps, one, NAME)
    return records


def _least_left(X: Array, copies: Sequence[Array], leading: Array | None, orders: Sequence[Indices], beside: Sequence[Array]) -> Array:
    """Return ``squared_errors`` with the first B or, where that is more than a quarter, another that leaves less, shape (n, N)."""
    least = squared_errors(X, copies, leading, orders, beside[0])
    for B in beside[1:]:
        if B.size and (least.mean(axis=0) > (1.0 - ENOUGH**2) * X.var(axis=0)).any():
            errors = squared_errors(X, copies, leading, orders, B)
            least = np.where(errors.mean(axis=0) < least.mean(axis=0), errors, least)
    return least


def squared_errors(
    X: Array, copies: Sequence[Array], leading: Sequence[int] | Array | None = None, orders: Sequence[Indices] = (),
    beside: Array | None = None,
) -> Array:  # fmt: skip
    """Return ``e_t²``, shape (n, N), of originals X, shape (n, N), to whoever holds these copies, each of shape (n, N).

    ``leading`` names for each attribute the copy whose column l is, where no copies agree; the first unless given. Each of ``orders``,
    shape (n,), and each column of ``beside``, B, is tried in the place of l, and that taken which leaves an attribute least.
    """
    B = np.empty((len(X), 0)) if beside is None else beside
    Y = np.hstack(copies)
    heaped = np.column_stack([in_heap(column) for column in Y.T])
    patterns, pattern = np.unique(heaped, axis=0, return_inverse=True)
    further = np.column_stack([by_place(Y), *(scores(order) for order in orders), B])
    errors = np.empty(X.shape)
    if Y.shape[1] > MOST_IN_PIECES:
        return np.asarray(left_out(X, np.column_stack([Y, heaped, further])) ** 2)
    for j, copy in enumerate(np.zeros(X.shape[1], dtype=np.intp) if leading is None else leading):
        own = np.column_stack([held[:, j] for held in copies])
        agreed, number = most_shown(own)
        lead = np.where(number > 1, agreed, copies[copy][:, j])
        guesses = np.hstack([factors(X[:, j], Y), means_by_value(X[:, j], lead), residue(X[:, j], Y, own)])
        leads = [lead, *orders, *B.T, *guesses.T]
        cells = np.column_stack([Y, agreed, further, guesses])
        found = [_by_piece(X[:, j : j + 1], cells, patterns, pattern.ravel(), number, lead) for lead in leads]
        errors[:, j] = min(found, key=lambda one: float((one**2).mean()))
    return np.asarray(errors**2)


def _by_piece(x: Array, cells: Array, patterns: Mask, pattern: Indices, number: Indices, lead: Array) -> Array:
    """Return ``e_t`` of one attribute, shape (n,), of pieces along ``lead`` of records with one number c and the same columns heaped.

    ``cells`` of shape (n, q) begin with the p columns that ``patterns``, shape (P, p), are of; ``pattern``, shape (n,), says which.
    """
    errors, rest = np.empty(len(x)), np.ones(len(x), dtype=bool)
    kinds, kind, counts = np.unique(number * len(patterns) + pattern, return_inverse=True, return_counts=True)
    for place in np.argsort(-counts, kind="stable")[:MOST_PATTERNS]:
        rows, told = np.flatnonzero(kind == place), np.ones(cells.shape[1], dtype=bool)
        told[: patterns.shape[1]] = ~patterns[kinds[place] % len(patterns)]
        least = max(OWN_RECORDS * (int(told.sum()) + 1), FEWEST_RECORDS)
        if len(rows) < least:
            break
        rest[rows] = False
        for piece in pieces(lead[rows], least):
            at = rows[piece]
            errors[at] = left_out(x[at], cells[np.ix_(at, told)])[:, 0]
    if rest.any():
        errors[rest] = left_out(x, np.column_stack([cells, patterns[pattern], number]))[rest, 0]
    return errors


def factors(x: Array, Y: Array) -> Array:
    """Return ``g``, shape (n, 1), as every second record teaches it of the others; none, (n, 0), unless all are above 0.

    Where values were multiplied, by a factor that another copy tells or by noise, logarithms are what regression can add up. The guess of
    a record by all others would be a function of its own value, as what is left out of a sum is: a second regression would find it there.
    """
    if not ((x > 0).all() and (Y > 0).all()):
        return np.empty((len(x), 0))
    log, design = np.log(x), np.column_stack([np.ones(len(x)), np.log(Y)])
    guess = np.empty(len(x))
    for half in (slice(0, None, 2), slice(1, None, 2)):
        other = slice(1 - half.start, None, 2)
        guess[half] = design[half] @ np.linalg.lstsq(design[other], log[other])[0]
    return np.asarray(np.exp(np.clip(guess, log.min(), log.max()))[:, None])


def means_by_value(x: Array, y: Array) -> Array:
    """Return ``m``, shape (n, 1), as every second record teaches it of the others; none, (n, 0), where few have a cell that they know.

    Values that were given other names, each always the same, are in no order that a line could follow.
    """
    _, which, counts = np.unique(y, return_inverse=True, return_counts=True)
    if len(counts) > MOST_NAMES * len(y):
        return np.empty((len(x), 0))
    found = np.full(len(x), x.mean())
    for half in (slice(0, None, 2), slice(1, None, 2)):
        other = slice(1 - half.start, None, 2)
        met = np.bincount(which[other], minlength=len(counts))
        mean = np.bincount(which[other], x[other], len(counts)) / np.maximum(met, 1)
        found[half] = np.where(met > 0, mean, x[other].mean())[which[half]]
    return np.asarray(found[:, None])


def other_rows(X: Array, Y: Array) -> Array:
    """Return ``B`` of a copy, shape (n, r), of records in the table's order: rows that were moved, or replaced by others near them.

    A column's ranks are correlated with an attribute's at every distance at once (Fourier transforms), as they stand and from the end. Of
    records in no order, correlations of unrelated rows are normal about 0 with variance 1/n; of each pair that distance is taken which
    stands out most, if any does. In a series many do, and one of them is a record's neighbour.
    """
    n, least = len(X), beyond_chance(2 * len(X) * X.shape[1] * Y.shape[1]) * np.sqrt(len(X))
    x, y = (np.fft.rfft(standard_ranks(part), axis=0) for part in (X, Y))
    found = dict[tuple[int, int, int], Array]()
    for j, c in np.ndindex(X.shape[1], Y.shape[1]):
        for step, spectrum in ((1, y[:, c]), (-1, y[:, c].conj())):  # the conjugate's rows stand from the end
            moved = np.abs(np.fft.irfft(spectrum * x[:, j].conj(), n))
            if step == 1:
                moved[0] = 0.0  # a record's own row
            k = int(moved.argmax())
            if moved[k] > least:
                found[c, step, k] = Y[step * (np.arange(n) + k) % n, c]
    return np.column_stack([np.empty((n, 0)), *found.values()])


def scores(order: Indices) -> Array:
    """Return the normal scores of an order, shape (n,)."""
    places = order.argsort(kind="stable").argsort(kind="stable")
    return np.asarray(scipy.special.ndtri((places + 0.5) / len(order)))


def by_place(Y: Array) -> Array:
    """Return what a record's place in the table foretells of columns, shape (n, q): in the same way of all, and of near ones.

    Kept is what stands out of a column's periodogram, whose values are exponential about one mean where records are in no order, and of
    those of ``SHORT`` rows. Noise that drifts along the rows, comes again, or swings ever faster stands out; so does a table that is
    sorted, of which regression learns what it says.
    """
    Y, half = Y - Y.mean(axis=0), SHORT // 2
    padded = np.pad(Y, ((half, half - len(Y) % half + half), (0, 0)))
    frames = np.stack([padded[start : start + SHORT] for start in range(0, len(padded) - half, half)])
    # Of rows that are tapered by (1 − cos)/2, of which every second stretch overlaps, little leaks to other frequencies, and sums are 1.
    short = standing_out(frames * np.sin(np.pi * np.arange(SHORT) / SHORT)[:, None] ** 2, len(Y))
    found = np.hstack([standing_out(Y[None], len(Y))[0], (short[:-1, half:] + short[1:, :half]).reshape(-1, Y.shape[1])[: len(Y)]])
    return found[:, found.any(axis=0)]


def standing_out(frames: Array, n: int) -> Array:
    """Return what stands out of periodograms of stretches, shape (w, rows, p) as theirs, of n rows together."""
    F = np.fft.rfft(frames, axis=1)
    power = np.abs(F) ** 2
    usual = np.maximum(np.median(power, axis=1, keepdims=True), np.median(power, axis=(0, 1)))  # few values leave their own uncertain
    F[power <= usual / np.log(2.0) * np.log(n / BY_CHANCE)] = 0.0
    return np.fft.irfft(F, frames.shape[1], axis=1)


def left_out(X: Array, Y: Array) -> Array:
    """Return errors of each record by the regression of X on Y that all others teach, shape (m, N)."""
    left, rest = residuals(X, Y)
    return np.asarray(left / rest[:, None])


def in_heap(y: Array) -> Mask:
    """Return which cells of a column are in a heap, shape (n,); none where more than two values are heaps, as in classes."""
    _, which, counts = np.unique(y, return_inverse=True, return_counts=True)
    found = (counts >= max(2.0, HEAPED * len(y)))[which.ravel()]
    return np.asarray(found if (counts >= HEAPED * len(y)).sum() <= 2 else np.zeros(len(y), dtype=bool))


def pieces(lead: Array, least: int) -> list[Indices]:
    """Return places of records between quantiles of a column, each of ``least`` or more; records of one value stay together."""
    count = min(MOST_PIECES, len(lead) // least)
    edges = np.unique(np.quantile(lead, np.arange(1, count) / count)) if count > 1 else np.empty(0)
    which, found, gathered = np.searchsorted(edges, lead, side="left"), list[Indices](), np.empty(0, dtype=np.intp)
    for number in range(len(edges) + 1):
        gathered = np.concatenate([gathered, np.flatnonzero(which == number)])
        if len(gathered) >= least:
            found, gathered = [*found, gathered], np.empty(0, dtype=np.intp)
    if len(gathered):
        found = [*found[:-1], np.concatenate([*found[-1:], gathered])]
    return found
