"""Whether the records of a copy from a file are the original's, row by row; a shuffled copy would be praised for noise that it has not.

| symbol | meaning | shape |
| --- | --- | --- |
| ``X``, ``Y`` | original and copy, records from all over the table | (n, N) |
| ``z_j`` | Fisher's transform of the correlation of column j with itself, ``atanh r_j · √(n − 3)``: N(0, 1) if rows are unrelated | (N,) |
| ``s_j`` | what it would be if the copy were the original plus independent noise, ``atanh ρ_j · √(n − 3)`` | (N,) |

Noise of whatever law shows in the copy's own variance: of ``Y = X + Z`` the correlation is ``ρ = σ_X / σ_Y``, and of a copy that is
smoother than the original (rounded, top-coded, in classes: ``E(Y | X)`` of few values) it is ``σ_Y / σ_X``. Rows are taken for another
order where ``s`` says that they cannot fail to be related (`SURE`) and nothing relates them (`UNRELATED`): no column by its values or by
its ranks, and no mixture of columns, as after a rotation. Where noise may explain that nothing is seen, or records are too few, nobody can
tell.

False alarms: of a Gaussian column with ``s = 10`` the ranks' ``z`` falls below the bound with a chance of less than 10⁻⁶, for up to 50
columns. What is missed: one misaligned copy in 10⁴ is related by chance.

Records that are sorted are related to any others that are, so differences between neighbours are looked at as well; and parts of the table,
since a record may be lost in the middle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from auditor.numerics.statistics import column_ranks, standardised
from auditor.process.deferred import scipy
from auditor.text.column_names import quoted
from auditor.types import Array

SURE = 10.0
"""Standard errors that the correlation to be expected is above 0."""
UNRELATED = 1e-4
"""Chance of a relation as strong as the strongest among unrelated rows, all columns and kinds of relation counted."""
PARTS = 8
PART_ROWS = 200
"""The table is looked at in up to eight parts, of at least so many records."""
FEWEST = 30
"""Records from which on means of very skewed columns are near enough to normal to be ten standard errors apart by no chance."""
MIXTURE = 1e-2
"""Chance that the other columns tell as much more of one that has the wrong name."""
NEARER = 8.0
"""Standard errors between two correlations with one column, each of which has one: more than 5.6 of their difference."""
FARTHEST = 50
"""Rows by which a copy is moved to see whether it fits then."""
MOVED_ROWS = 5_000
"""Records that are looked at for it."""
SAME_VALUES = 0.05
"""Share of a column's variance by which the sorted values of a shuffled copy differ at most."""


@dataclass(frozen=True)
class Finding:
    """What is the matter with a copy's rows or columns.

    Attributes
    ----------
    certain : bool
        Whether no noise explains it; otherwise nobody can tell.
    cause : str
        What it looks like, to be read after «the copy's rows».
    """

    certain: bool
    cause: str


def misaligned(X: Array, Y: Array, names: tuple[str, ...]) -> Finding | None:
    """Return what is wrong with the order of a copy's records or columns; None if they are related as they should be.

    Parameters
    ----------
    X, Y : ndarrays of shape (n, N)
        Finite; neighbours in the table are neighbours here.
    names : tuple of N str
        The columns, for the message.

    Notes
    -----
    *Not checked*: that every single record is in its place; a few that are exchanged cannot be distinguished from noise.
    """
    varied = (np.ptp(X, axis=0) > 0) & (np.ptp(Y, axis=0) > 0)
    X, Y = X[:, varied], Y[:, varied]
    if X.shape[1] == 0 or len(X) < 4:
        return None
    columns = tuple(name for name, there in zip(names, varied, strict=True) if there)
    swapped = _swapped(X, Y, columns)
    if swapped:
        return Finding(True, swapped)
    moved = _moved(X, Y)
    if moved:
        return Finding(True, moved)
    whole = relation(X, Y)
    if whole != "related":
        return Finding(whole == "unrelated" or _apart(X, Y), _cause(X, Y))
    if not _fits(X, Y) and relation(_differences(X), _differences(Y)) == "unrelated":
        return Finding(True, _cause(X, Y))
    return _part(X, Y)


def _part(X: Array, Y: Array) -> Finding | None:
    """Return where the rows are unrelated, though the correlations of another part are to be expected there."""
    count = len(X) // PART_ROWS if len(X) < PARTS * PART_ROWS else PARTS
    if count < 2:
        return None
    parts = list(zip(np.array_split(X, count), np.array_split(Y, count), strict=True))
    most = np.max([np.tanh(z_scores(x, y) / np.sqrt(len(x))) for x, y in parts], axis=0)
    wrong = next((number for number, (x, y) in enumerate(parts) if relation(x, y, most) == "unrelated"), None)
    if wrong is None:
        return None
    finding = f"are not the original's all through: from about {wrong / count:.0%} of the table on they differ"
    return Finding(True, f"{finding}; is one lost, or one too many?")


def relation(X: Array, Y: Array, most: Array | float = 1.0) -> Literal["related", "unrelated", "unclear"]:
    """Tell whether rows are related, cannot be the same records under any independent noise, or may be either.

    ``most`` bounds the correlations that are expected, as by those of the whole table in a part of it.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> relation(X, X + 1), relation(X, X[::-1]), relation(X[:9], X[8::-1])
    ('related', 'unrelated', 'unclear')
    """
    varied = (np.ptp(X, axis=0) > 0) & (np.ptp(Y, axis=0) > 0)
    X, Y, most = X[:, varied], Y[:, varied], np.broadcast_to(most, varied.shape)[varied]
    n, N = X.shape
    if N == 0 or n < 4:
        return "unclear"
    ranks = column_ranks(X), column_ranks(Y)
    strongest = max(np.abs(z_scores(X, Y)).max(), np.abs(z_scores(*ranks)).max())
    chance = min(2 * N * 2 * scipy.special.ndtr(-strongest), 2 * _mixed_chance(X, Y), 2 * _mixed_chance(*ranks))
    if 2 * chance < UNRELATED:
        return "related"
    if n <= 2 * N + FEWEST:  # any records are a mixture of so many columns
        return "unclear"
    return "unrelated" if expected(X, Y, most).max() >= SURE else "unclear"


def _apart(X: Array, Y: Array, errors: float = SURE) -> bool:
    """Whether a column's mean is not the original's, by so many standard errors: noise has mean 0."""
    error = np.sqrt((X.var(axis=0) + Y.var(axis=0)) / len(X) * _peak(X, Y))
    return len(X) >= FEWEST and bool((np.abs(X.mean(axis=0) - Y.mean(axis=0)) > errors * error).any())


def expected(X: Array, Y: Array, most: Array | float = 1.0) -> Array:
    """Return ``s_j = atanh ρ_j · √(n − 3)``, shape (N,), with ``ρ_j`` the ratio of the smaller to the larger deviation.

    Where nearly all values are one, few records tell anything: n is divided by the kurtosis of the ranks, as far as that is above 3.
    """
    deviations = np.std(X, axis=0), np.std(Y, axis=0)
    rho = np.minimum(*deviations) / np.maximum(*deviations)
    return np.asarray(np.arctanh(np.clip(rho, 0.0, np.minimum(most, 1 - 1e-12))) * np.sqrt(np.maximum(0, len(X) / _peak(X, Y) - 3)))


def _peak(X: Array, Y: Array) -> Array:
    """Return the larger kurtosis of the ranks of each column and its copy, over 3, and at least 1; shape (N,)."""
    fourth = [np.mean(standardised(column_ranks(part)) ** 4, axis=0) for part in (X, Y)]
    return np.asarray(np.maximum(1.0, np.maximum(*fourth) / 3))


def z_scores(X: Array, Y: Array) -> Array:
    """Return ``atanh r_j · √(n − 3)`` of every column with its own copy, shape (N,)."""
    r = np.einsum("ij,ij->j", standardised(X), standardised(Y)) / len(X)
    return np.asarray(np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12)) * np.sqrt(max(1, len(X) - 3)))


def _mixed_chance(X: Array, Y: Array) -> float:
    """Return the chance of such canonical correlations among unrelated rows, by Bartlett's χ² for Wilks' Λ = Π (1 − ρ_k²)."""
    n, N = X.shape
    rho = _canonical(X, Y)
    return float(scipy.special.chdtrc(N * N, -(n - N - 1.5) * np.log1p(-(rho**2)).sum())) if n > 2 * N + 2 else 1.0


def _canonical(X: Array, Y: Array) -> Array:
    """Return the canonical correlations, shape (N,): 1 for a copy that is a rotation."""
    U, V = (np.linalg.svd(standardised(part), full_matrices=False)[0] for part in (X, Y))
    return np.asarray(np.clip(np.linalg.svd(U.T @ V, compute_uv=False), 0.0, 1 - 1e-12))


def _differences(X: Array) -> Array:
    """Return the differences of rows 1 and 2, 3 and 4 and so on: independent where rows are, and nothing of a trend is left."""
    even = len(X) // 2 * 2
    return X[1:even:2] - X[:even:2]


def _swapped(X: Array, Y: Array, names: tuple[str, ...]) -> str:
    """Return which columns stand under one another's names: each is far nearer to one other."""
    n, N = X.shape
    if N < 2 or n < 10 * N:
        return ""
    x, y = standardised(column_ranks(X)), standardised(column_ranks(Y))
    R = np.clip(x.T @ y / n, 0.0, 1 - 1e-12)
    from scipy.optimize import linear_sum_assignment  # a fifth of a second, which every start would pay

    order = linear_sum_assignment(-(R**2).T)[1]  # column j of the copy is most like column order[j] of the original
    own, best = np.diag(R), R[order, np.arange(N)]
    wrong = np.flatnonzero((np.arctanh(best) - np.arctanh(own)) * np.sqrt(n - 3) > NEARER)
    # A rotation mixes columns. One under another's name has that one's deviation and noise, and the others tell no more of it.
    ratio = np.std(X, axis=0)[order] / np.std(Y, axis=0)
    linear = np.einsum("ij,ij->j", standardised(X)[:, order], standardised(Y)) / n
    off = np.minimum(np.abs(best - ratio), np.abs(linear - ratio))
    mixed = np.sum((np.linalg.svd(standardised(X), full_matrices=False)[0].T @ standardised(Y)) ** 2, axis=0) / n
    more = mixed - linear**2
    F = more / (N - 1) / (np.maximum(1 - mixed, 1e-12) / (n - N - 1))
    mixture = scipy.special.fdtrc(N - 1, n - N - 1, F) < MIXTURE
    if not len(wrong) or ((off > 0.2) | mixture)[wrong].any():
        return ""
    swapped = ", ".join(f"{quoted(names[j])} holds {quoted(names[order[j]])}" for j in wrong[:4])
    return f"have columns under one another's names: {swapped}{' and so on' if len(wrong) > 4 else ''}"


def _cause(X: Array, Y: Array) -> str:
    """Return what unrelated rows look like."""
    apart = np.mean((np.sort(X, axis=0) - np.sort(Y, axis=0)) ** 2, axis=0)
    if (apart <= SAME_VALUES * X.var(axis=0)).all():
        return "hold the original's values in another order: shuffled, or sorted by something else"
    if _apart(X, Y, SURE / 2):
        return "are not the original's records: columns differ in their means, as those of another table do"
    return "are in another order than the original's, or are other records of the same population"


def _moved(X: Array, Y: Array) -> str:
    """Return by how many rows the copy must be moved to fit; nothing if it fits as it stands, or nowhere."""
    X, Y = X[:MOVED_ROWS], Y[:MOVED_ROWS]
    s, farthest = expected(X, Y), min(FARTHEST, len(X) // 4)
    both = [(standardised(x), standardised(y)) for x, y in ((X, Y), (column_ranks(X), column_ranks(Y)))]
    strength = {k: _strength(both, k) for k in range(-farthest, farthest + 1)}
    fits = [k for k in sorted(strength, key=abs) if s.max() >= SURE and (strength[k] > s / 2)[s >= SURE].all()]
    if not fits or fits[0] == 0:
        return ""
    k = fits[0]
    # A trend makes any neighbour fit nearly as well, and so may a rotation; neither does better than as it stands.
    if (strength[k] - strength[0]).max() <= NEARER or _canonical(*_beside(X, Y, k)).sum() <= _canonical(X, Y).sum():
        return ""
    return f"are moved: row {1 + max(0, k)} of the copy is row {1 + max(0, -k)} of the original"


def _strength(both: list[tuple[Array, Array]], k: int) -> Array:
    """Return the larger ``z`` of values and ranks with the copy moved by k rows, shape (N,)."""
    pairs = [_beside(x, y, k) for x, y in both]
    r = np.max([np.einsum("ij,ij->j", x, y) / len(x) for x, y in pairs], axis=0)
    return np.asarray(np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12)) * np.sqrt(max(1, len(pairs[0][0]) - 3)))


def _beside(X: Array, Y: Array, k: int) -> tuple[Array, Array]:
    """Return original and copy with the copy moved by k rows."""
    return X[max(0, -k) : len(X) - max(0, k)], Y[max(0, k) : len(Y) - max(0, -k)]


def _fits(X: Array, Y: Array) -> bool:
    """Whether the copy has the correlations to be expected in every column where they cannot be missed."""
    s = expected(X, Y)
    z = np.maximum(z_scores(X, Y), z_scores(column_ranks(X), column_ranks(Y)))
    return bool(s.max() >= SURE and (z > s / 2)[s >= SURE].all())
