"""Test whether a copy's rows match the original's; records in common.

| symbol | meaning | shape |
| --- | --- | --- |
| ``X``, ``Y`` | original and copy, a sample of records | (n, N) |
| ``z_j`` | Fisher's transform of the correlation of column j with itself, ``atanh r_j · √(n − 3)``: N(0, 1) if rows are unrelated | (N,) |
| ``s_j`` | its expectation under independent noise, ``atanh ρ_j · √(n − 3)`` | (N,) |

The copy's variance shows its noise: for ``Y = X + Z`` the correlation is ``ρ = σ_X / σ_Y``. For a
smoother copy (rounded, top-coded, in classes: ``E(Y | X)``) it is ``σ_Y / σ_X``. Rows count as
reordered if ``s`` requires a relation (`SURE`) and none is found (`UNRELATED`) by any column's
values or ranks, or mixture of columns (after a rotation). Much noise or few records leave the
result undecided.

One misaligned copy in 10⁴ is related by chance.
Differences of neighbours are tested too, as sorted records relate to any sorted records. Parts are
tested separately, as a record may be lost in the middle.
"""

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Literal

import numpy as np

from auditor.base import DataError, closest, counted, listed, quoted, scipy
from auditor.base.types import Array, Flags, Indices, Pair, frozen
from auditor.data.copies import Copy
from auditor.data.table import Audited, Table
from auditor.numerics.statistics import column_ranks, standardised
from auditor.results.disclosure import FEWEST_RECORDS

SURE = 10.0
"""Standard errors by which the expected correlation must exceed 0."""
UNRELATED = 1e-4
"""P-value of the strongest relation, over all columns and kinds of relation."""
PARTS = 8
PART_ROWS = 200
"""Least records per part; the table is tested in up to eight parts."""
FEWEST = 30
"""Fewest records for means of very skewed columns to be nearly normal."""
MIXTURE = 1e-2
"""P-value for the other columns to predict a misnamed column better."""
NEARER = 8.0
"""Standard errors between two correlations with one column: more than 5.6 of their difference."""
FARTHEST = 50
"""Largest shift of a copy, in rows, that is tested."""
MOVED_ROWS = 5_000
"""Records used in the test of shifts."""
SAME_VALUES = 0.05
"""Largest difference of sorted values of a shuffled copy, as a share of the column's variance."""


@frozen
class Finding:
    """A fault of a copy's rows or columns.

    ``certain`` if no noise explains it. ``cause`` follows «the copy's rows».
    """

    certain: bool
    cause: str


def misaligned(X: Array, Y: Array, names: tuple[str, ...]) -> Finding | None:
    """Fault of a copy's record or column order, or None.

    Parameters
    ----------
    X, Y : ndarrays of shape (n, N)
        Finite, in table order.
    names : tuple of N str

    Notes
    -----
    *Not checked*: the place of every record; a few exchanges look like noise.
    """
    varied = _varied(X, Y)
    X, Y = X[:, varied], Y[:, varied]
    if X.shape[1] == 0 or len(X) < 4:
        return None
    if fault := _swapped(X, Y, tuple(compress(names, varied))) or _moved(X, Y):
        return Finding(True, fault)
    whole = relation(X, Y)
    if whole != "related":
        return Finding(whole == "unrelated" or _apart(X, Y), _cause(X, Y))
    strongest = np.maximum(*(z_scores(*pair) for pair in _both(X, Y)))
    fits = _follows(strongest, expected(X, Y))
    if not fits and relation(_differences(X), _differences(Y)) == "unrelated":
        return Finding(True, _cause(X, Y))
    return _part(X, Y)


def _varied(X: Array, Y: Array) -> Flags:
    return (np.ptp(X, axis=0) > 0) & (np.ptp(Y, axis=0) > 0)


def _both(X: Array, Y: Array) -> tuple[Pair, ...]:
    """Values, and ranks within columns."""
    return (X, Y), (column_ranks(X), column_ranks(Y))


def _part(X: Array, Y: Array) -> Finding | None:
    count = len(X) // PART_ROWS if len(X) < PARTS * PART_ROWS else PARTS
    if count < 2:
        return None
    parts = list(zip(np.array_split(X, count), np.array_split(Y, count), strict=True))
    most = np.max([np.tanh(z_scores(x, y) / np.sqrt(len(x))) for x, y in parts], axis=0)
    wrong = next(
        (number for number, (x, y) in enumerate(parts) if relation(x, y, most) == "unrelated"), None
    )
    if wrong is None:
        return None
    return Finding(
        True,
        f"are not the original's all through: from about {wrong / count:.0%} of the table on they differ; is "
        "one lost, or one too many?",
    )


def relation(
    X: Array, Y: Array, most: Array | float = 1.0
) -> Literal["related", "unrelated", "unclear"]:
    """Decide whether rows are related, unrelated or unclear.

    Unrelated rows are not the original's under any independent noise. ``most`` bounds the expected
    correlations, as in a part.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> relation(X, X + 1), relation(X, X[::-1]), relation(X[:9], X[8::-1])
    ('related', 'unrelated', 'unclear')
    """
    varied = _varied(X, Y)
    X, Y, most = X[:, varied], Y[:, varied], np.broadcast_to(most, varied.shape)[varied]
    n, N = X.shape
    if N == 0 or n < 4:
        return "unclear"
    pairs = _both(X, Y)
    strongest = max(np.abs(z_scores(*pair)).max() for pair in pairs)
    mixed = min(_mixed_chance(*pair) for pair in pairs)
    if 4 * min(2 * N * scipy.special.ndtr(-strongest), mixed) < UNRELATED:
        return "related"
    if n <= 2 * N + FEWEST:  # a mixture of columns always fits few records
        return "unclear"
    return "unrelated" if expected(X, Y, most).max() >= SURE else "unclear"


def _apart(X: Array, Y: Array, errors: float = SURE) -> bool:
    error = np.sqrt((X.var(axis=0) + Y.var(axis=0)) / len(X) * _peak(X, Y))
    return len(X) >= FEWEST and bool(
        (np.abs(X.mean(axis=0) - Y.mean(axis=0)) > errors * error).any()
    )


def expected(X: Array, Y: Array, most: Array | float = 1.0) -> Array:
    """``s_j = atanh ρ_j · √(n − 3)``, shape (N,).

    ``ρ_j`` is the smaller over the larger deviation. n is divided by the ranks' kurtosis over 3 if
    above 1, since few records count if most values are equal.
    """
    deviations = np.std(X, axis=0), np.std(Y, axis=0)
    rho = np.minimum(*deviations) / np.maximum(*deviations)
    rho = np.clip(rho, 0.0, np.minimum(most, 1 - 1e-12))
    return np.arctanh(rho) * np.sqrt(np.maximum(0, len(X) / _peak(X, Y) - 3))


def _peak(X: Array, Y: Array) -> Array:
    fourth = [np.mean(standardised(column_ranks(part)) ** 4, axis=0) for part in (X, Y)]
    return np.maximum(1.0, np.maximum(*fourth) / 3)


def z_scores(X: Array, Y: Array) -> Array:
    """``atanh r_j · √(n − 3)`` of each column with its copy, (N,)."""
    return _fisher(np.einsum("ij,ij->j", standardised(X), standardised(Y)) / len(X), len(X))


def _fisher(r: Array, n: int) -> Array:
    return np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12)) * np.sqrt(max(1, n - 3))


def _mixed_chance(X: Array, Y: Array) -> float:
    """p-value of canonical correlations: Bartlett's χ² of Λ = Π (1 − ρ_k²)."""
    n, N = X.shape
    rho = _canonical(X, Y)
    return (
        float(scipy.special.chdtrc(N * N, -(n - N - 1.5) * np.log1p(-(rho**2)).sum()))
        if n > 2 * N + 2
        else 1.0
    )


def _canonical(X: Array, Y: Array) -> Array:
    U, V = (np.linalg.svd(standardised(part), full_matrices=False)[0] for part in (X, Y))
    return np.clip(np.linalg.svd(U.T @ V, compute_uv=False), 0.0, 1 - 1e-12)


def _differences(X: Array) -> Array:
    even = len(X) // 2 * 2
    return X[1:even:2] - X[:even:2]


def _swapped(X: Array, Y: Array, names: tuple[str, ...]) -> str:
    n, N = X.shape
    if N < 2 or n < 10 * N:
        return ""
    x, y = standardised(column_ranks(X)), standardised(column_ranks(Y))
    R = np.clip(x.T @ y / n, 0.0, 1 - 1e-12)
    # takes 0.2 s
    from scipy.optimize import linear_sum_assignment

    # column j of the copy is most like order[j]
    order = linear_sum_assignment(-(R**2).T)[1]
    own, best = np.diag(R), R[order, np.arange(N)]
    wrong = np.flatnonzero((np.arctanh(best) - np.arctanh(own)) * np.sqrt(n - 3) > NEARER)
    # a rotation mixes columns; other columns do not predict a misnamed one
    X, Y = standardised(X), standardised(Y) / np.sqrt(n)
    linear = np.einsum("ij,ij->j", X[:, order], Y) ** 2 / n
    mixed = np.square(np.linalg.svd(X, full_matrices=False)[0].T @ Y).sum(axis=0)
    F = (mixed - linear) / (N - 1) / (np.maximum(1 - mixed, 1e-12) / (n - N - 1))
    mixture = scipy.special.fdtrc(N - 1, n - N - 1, F) < MIXTURE
    if not len(wrong) or mixture[wrong].any():
        return ""
    swapped = ", ".join(f"{quoted(names[j])} holds {quoted(names[order[j]])}" for j in wrong[:4])
    return (
        f"have columns under one another's names: {swapped}{' and so on' if len(wrong) > 4 else ''}"
    )


def _cause(X: Array, Y: Array) -> str:
    apart = np.mean((np.sort(X, axis=0) - np.sort(Y, axis=0)) ** 2, axis=0)
    if (apart <= SAME_VALUES * X.var(axis=0)).all():
        return "hold the original's values in another order: shuffled, or sorted by something else"
    if _apart(X, Y, SURE / 2):
        return "are not the original's records: columns differ in their means, as those of another table do"
    return "are in another order than the original's, or are other records of the same population"


def _moved(X: Array, Y: Array) -> str:
    X, Y = X[:MOVED_ROWS], Y[:MOVED_ROWS]
    s, farthest = expected(X, Y), min(FARTHEST, len(X) // 4)
    both = [(standardised(x), standardised(y)) for x, y in _both(X, Y)]
    strength = {k: _strength(both, k) for k in range(-farthest, farthest + 1)}
    fits = [k for k in sorted(strength, key=abs) if _follows(strength[k], s)]
    if not fits or fits[0] == 0:
        return ""
    k = fits[0]
    # A trend or a rotation lets any neighbour fit nearly as well, but not better than without a
    # shift.
    if (strength[k] - strength[0]).max() <= NEARER or _canonical(
        *_beside(X, Y, k)
    ).sum() <= _canonical(X, Y).sum():
        return ""
    return f"are moved: row {1 + max(0, k)} of the copy is row {1 + max(0, -k)} of the original"


def _strength(both: list[Pair], k: int) -> Array:
    pairs = [_beside(x, y, k) for x, y in both]
    r = np.max([np.einsum("ij,ij->j", x, y) / len(x) for x, y in pairs], axis=0)
    return _fisher(r, len(pairs[0][0]))


def _beside(X: Array, Y: Array, k: int) -> Pair:
    return X[max(0, -k) : len(X) - max(0, k)], Y[max(0, k) : len(Y) - max(0, -k)]


def _follows(z: Array, s: Array) -> bool:
    return bool(s.max() >= SURE and (z > s / 2)[s >= SURE].all())


# -- Records and columns complete in the original and all copies -----------------------------------


LEAST_CHANCE = 1e-4
"""P-value of the rank test that excluded records were perturbed less."""

MOST_CELLS = 256
"""Most cells per record over all copies for attacks on incomplete records (`every-cell`)."""
BARER = 0.5
"""An excluded column counts as less perturbed if its squared error is below this share of the
audited minimum.
"""
LESS = ": it is less perturbed than what was audited, and more exposed than the figures say"


def common_part(table: Table, copies: Sequence[Copy]) -> Audited:
    """Complete records of the common columns, with notes.

    A suppressed cell discloses no value, but imputed would count as protected. Such records may be
    perturbed less elsewhere, so errors of excluded cells are noted.

    Raises
    ------
    DataError
        No column is common, fewer than ten records remain, or a column is constant.
    """
    columns = np.flatnonzero(np.logical_and.reduce([copy.said for copy in copies]))
    if not len(columns):
        raise DataError(
            "no column is in all copies; audit those that share some in an entry of `schemes:` of their own"
        )
    rows = np.flatnonzero(np.logical_and.reduce([copy.full(columns) for copy in copies]))
    part = table.part(rows, columns)
    notes = [n for copy in copies for n in (*copy.notes, *_lacking(copy, table, columns))]
    if part is table:
        return Audited(table, tuple(notes))
    if len(rows) < table.rows and len(rows) < FEWEST_RECORDS:
        raise DataError(_too_few(len(rows), copies))
    part.check()
    which = (
        ""
        if part.width == table.width
        else f", in {listed(part.attributes)}, which all copies have"
    )
    notes.append(
        f"audited are {len(rows):,} of {counted(table.rows, 'record')}, those that the original and all "
        f"copies have in full{which}"
    )
    if table.width * len(copies) <= MOST_CELLS:
        notes.append("`every-cell`, a linear fit to the originals, attacks all records and columns")
    rest = [found for copy in copies for found in _not_audited(copy, table, rows, columns)]
    return Audited(
        part,
        (*notes, *(f"{note}{LESS if bare else ''}" for note, bare in rest)),
        any(bare for _, bare in rest),
    )


def _too_few(found: int, copies: Sequence[Copy]) -> str:
    had = f"original and copies have {counted(found, 'record')} in common and in full"
    problem = f"{had}; an audit of some records needs {FEWEST_RECORDS}"
    nothing = [quoted(copy.name) for copy in copies if not copy.held.any()]
    if nothing:
        return f"{problem}: {nothing[0]} has none of the original's; are its keys the same, and written alike?"
    return f"{problem}; audit fewer copies at a time, or fewer columns with `columns:`"


def _lacking(copy: Copy, table: Table, columns: Indices) -> Iterator[str]:
    name, records, cells = quoted(copy.name), int((~copy.held).sum()), copy.suppressed[:, columns]
    for column in (table.attributes[j] for j in np.flatnonzero(~copy.said)):
        near = [quoted(other) for other in closest(column, copy.others)]
        yield f"{name}: lacks column {quoted(column)}, which is not audited{f'; is it {near[0]}?' if near else ''}"
    if records:
        yield f"{name}: lacks {records:,} of the original's {counted(table.rows, 'record')}"
    if copy.beyond:
        yield f"{name}: has {counted(copy.beyond, 'record')} that the original has not, which are left out"
    if cells.any():
        share, most = (
            cells[copy.held].mean(),
            quoted(table.attributes[columns[int(cells.sum(axis=0).argmax())]]),
        )
        where = f"{counted(int(cells.any(axis=1).sum()), 'record')}, most in column {most}"
        yield f"{name}: {cells.sum():,} of its cells are missing ({share:.1%}), in {where}; these records are left out"


def _not_audited(
    copy: Copy, table: Table, rows: Indices, columns: Indices
) -> Iterator[tuple[str, bool]]:
    from scipy.stats import mannwhitneyu  # takes a second

    name, off = quoted(copy.name), (copy.values - table.values) ** 2 / np.diag(table.moments()[1])
    audited, others = off[np.ix_(rows, columns)], np.delete(off, rows, axis=0)[:, columns]
    for j in np.setdiff1d(np.flatnonzero(copy.said), columns):
        if np.isfinite(off[:, j]).sum() >= FEWEST_RECORDS:
            far, column = float(np.nanmean(off[:, j])), quoted(table.attributes[j])
            lead = f"{name}: column {column} is not audited, as another copy lacks it; audit it in an entry of `schemes:` of its own"
            apart = f"Cells differ from the original by {far:.2g} of the variance (mean square)"
            yield f"{lead}. {apart}", far < BARER * audited.mean(axis=0).min()
    parts = [(others[np.isfinite(others[:, j]), j], audited[:, j], j) for j in range(len(columns))]
    # By column: a mean over fewer cells has another distribution.
    found = [
        (mannwhitneyu(*two, alternative="less").pvalue, *two, j)
        for *two, j in parts
        if len(two[0]) >= FEWEST_RECORDS
    ]
    if found:
        p, beside, theirs, j = min(found, key=lambda each: each[0])
        lead = f"{name}: cells of records that are not audited differ from the original by {beside.mean():.2g} of the variance (mean square"
        yield (
            f"{lead}, column {quoted(table.attributes[columns[j]])}), those audited by {theirs.mean():.2g}",
            p * len(found) < LEAST_CHANCE,
        )
