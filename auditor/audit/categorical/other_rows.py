"""The attack ``fitted-to-originals`` on categories in files, by boosted trees.

Each half of the records is predicted by trees fitted to the other half. Features of a record:

| feature | finds |
| --- | --- |
| all audited columns of all copies | values that depend on other columns (latent classes) |
| sums and differences of copies modulo the number of values | values split over copies |
| shown columns, also of adjacent rows, and shares of each value among equal codes | columns in clear, households |
| place in the file, and its remainders | values kept in every second row |
| cells of conspicuous other rows | moved rows, rows that share their noise |

| symbol | meaning | shape |
| --- | --- | --- |
| ``x``, ``y`` | values of the records and of one copy, in the table's order | (n,) |
| ``A_k`` | agreements k rows on, ``Σ_t [x_t = y_(t+k)]``, or k from the end, ``Σ_t [x_t = y_(-t-k)]`` | (n,) |
| ``μ``, ``v`` | mean and variance of ``A_k`` for random pairing, with a_v records and b_v cells of value v | |
| | ``μ = Σ a_v·b_v / n``, ``v = (Σ a_v(n − a_v)b_v(n − b_v) + (Σ a_v·b_v)² − Σ (a_v·b_v)²) / (n²(n − 1))`` | |
| ``C_k`` | ``Σ_v Σ_t e_tv e_(t+k)v``, ``e_tv = [y_t = v] − T[x_t, v]``, T the copy's shares given the original | scalar |

Fourier transforms of each value's indicator count all distances at once.

*Not checked*: rows beyond ``MOST_ROWS``, values rarer than the commonest ``MOST_VALUES``, moved rows
with recoded values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from auditor.audit.categorical.error_bars import Bar, Cell
from auditor.audit.categorical.release import UniformRelease
from auditor.audit.insider.feature import joint_codes, mean
from auditor.audit.insider.features.moved_rows import LOOKED_AT, WINDOW, parts, places
from auditor.audit.insider.fitted import fitted_records, halves_of
from auditor.base.types import Array, Coalition, Codes, Indices
from auditor.data.columns.categorical_table import split
from auditor.data.copies import characters
from auditor.data.table import ShownColumn, Table
from auditor.numerics.statistics import BY_CHANCE, beyond_chance, standard_ranks
from auditor.results.evidence import FITTED
from auditor.results.records import KEPT, Measurement
from auditor.schemes.published_categories import PublishedCategories

MOST_ROWS, FEWEST_ROWS = 10_000, 200
"""Most and fewest records that trees are fitted to and judged on."""
MOST_VALUES, MOST_CODES = 32, 255
"""Values of an attribute that are told apart, and codes that trees take as categories."""
STAGES = (8, 20, 60)
"""Numbers of trees for each value; the best is used."""
TREES = 480
"""Trees of one attribute at most, over all its values."""
MOST_SUMMED, MOST_COPIES = 3, 12
"""Copies that are summed modulo the number of values, and copies that are features."""
REMAINDERS = (2, 3, 4, 5, 7)
CERTAIN, RIGHT, FEWEST_KEPT = 0.7, 0.99, 50
"""Belief and accuracy from which shown values count as kept, and the fewest of them."""


class Features(NamedTuple):
    """Columns for trees, shape (n, f), and whether each is a code."""

    values: Array
    codes: list[bool]


def fitted_category_records(
    release: UniformRelease, shown: Sequence[ShownColumn]
) -> list[Measurement]:
    """Return errors of single copies and of all together, by attribute, for copies from files."""
    data, scheme = release.data, release.scheme
    if not isinstance(scheme, PublishedCategories) or data.rows < FEWEST_ROWS:
        return []
    rows = np.arange(data.rows)[:: -(-data.rows // MOST_ROWS)]
    files = dict(enumerate(scheme.held(), start=1))
    copies = {k: split(data, codes) for k, codes in files.items()}
    moved = {
        k: [split(data, cells) for cells in elsewhere(data.codes, codes, data.size)]
        for k, codes in files.items()
    }
    everybody = tuple(copies)
    asked = [one for one in release.coalitions if len(one) == 1 or one == everybody]
    several, found = len(data.attributes) > 1, list[Measurement]()
    for one in asked[: MOST_COPIES + 1]:
        held = [copies[k] for k in one[:MOST_COPIES]]
        others = [cells for k in one[:MOST_COPIES] for cells in moved[k]]
        beside = [column for column in shown if column.copy in (0, *one)]
        for place, (attribute, x) in enumerate(
            zip(data.attributes, split(data, data.codes), strict=True)
        ):
            P = predicted(x.astype(np.intp), attribute.size, place, held, others, beside, rows)
            name = attribute.name if several else "*"
            shows = [columns[place][rows].astype(np.intp) for columns in held]
            found += _records(release, one, name, x[rows].astype(np.intp), P, shows)
    return found


def predicted(
    x: Indices,
    size: int,
    place: int,
    held: Sequence[Sequence[Any]],
    others: Sequence[Sequence[Any]],
    beside: Sequence[ShownColumn],
    rows: Indices,
) -> Array:
    """Return cross-fitted probabilities of an attribute's values, shape (len(rows), size).

    Parameters
    ----------
    x : ndarray of shape (n,)
    size : int
        Number of values.
    place : int
        Of the attribute among the columns of a copy.
    held, others : sequences of copies, each a sequence of ndarrays of shape (n,)
        The copies, and their cells of conspicuous other rows.
    """
    # imported here: it costs a second
    from sklearn.ensemble import HistGradientBoostingClassifier

    features = features_of(size, place, held, others, beside, len(x))
    prior = np.bincount(x[rows], minlength=size) / len(rows)
    common = np.argsort(-prior, kind="stable")[:MOST_VALUES]
    # rarer values are one class, shared out by their frequencies
    classes = np.full(size, len(common))
    classes[common] = np.arange(len(common))
    within = np.zeros((len(common) + 1, size))
    within[classes, np.arange(size)] = prior
    within /= np.maximum(within.sum(axis=1, keepdims=True), 1e-300)
    P = np.tile(prior, (len(STAGES), len(rows), 1))
    parts = halves_of(rows, [(column.name, column.values) for column in beside])
    for taught, tested in zip(parts, parts[::-1], strict=True):
        y = classes[x[rows[taught]]]
        met = np.unique(y)
        if len(met) < 2:
            continue
        trees = HistGradientBoostingClassifier(
            max_iter=min(STAGES[-1], max(STAGES[0], TREES // len(met))),
            max_leaf_nodes=8,
            learning_rate=0.12,
            min_samples_leaf=20,
            l2_regularization=1.0,
            categorical_features=features.codes,
            early_stopping=False,
            random_state=0,
        ).fit(features.values[rows[taught]], y)
        chances = list(trees.staged_predict_proba(features.values[rows[tested]]))
        for stage, found in zip(STAGES, P, strict=True):
            found[tested] = chances[min(stage, len(chances)) - 1] @ within[trees.classes_]
    errors = [(found**2).sum() - 2 * found[np.arange(len(rows)), x[rows]].sum() for found in P]
    return P[int(np.argmin(errors))]


def features_of(
    size: int,
    place: int,
    held: Sequence[Sequence[Any]],
    others: Sequence[Sequence[Any]],
    beside: Sequence[ShownColumn],
    n: int,
) -> Features:
    """Return the columns that trees see; parameters as of ``predicted``."""
    found: list[tuple[Any, bool]] = [(column, True) for copy in (*held, *others) for column in copy]
    own = [copy[place].astype(np.intp) for copy in held]
    for signs in product((1, 0, -1), repeat=min(len(own), MOST_SUMMED)):
        used = [sign for sign in signs if sign]
        if len(used) > 1 and used[0] > 0:
            total = sum(sign * y for sign, y in zip(signs, own, strict=False) if sign)
            found += [(total % size, True), (-total % size, True)]
    for column in beside:
        v = column.values
        if v.dtype.kind == "U":
            found += [(place, True) for place in characters(v).T]
            continue
        found += [(np.roll(v, step), v.dtype.kind in "iu") for step in (0, 1, -1)]
    columns = [(column.name, column.values) for column in beside]
    few = [v for _, v in columns if v.dtype.kind in "iu" and v.max() < MOST_VALUES]
    for _, groups in joint_codes(columns):
        for y in own[:1]:
            shares = [mean(groups, y == value) for value in range(size)]
            found += [(share, False) for share in shares[:MOST_VALUES]]
        found += [(of_others(groups, v), True) for v in few[:MOST_SUMMED] if v is not groups]
    rows = np.arange(n)
    found += [(rows, False), *((rows % k, True) for k in REMAINDERS if n > 20 * k)]
    codes = [code and int(np.max(v)) < MOST_CODES for v, code in found]
    return Features(np.column_stack([np.asarray(v, dtype=np.float64) for v, _ in found]), codes)


def of_others(groups: Indices, codes: Indices) -> Indices:
    """Return the commonest code of the other records in each record's group, shape (n,)."""
    size = int(codes.max()) + 1
    counts = np.bincount(groups * size + codes, minlength=(groups.max() + 1) * size)
    others = counts.reshape(-1, size)[groups]
    others[np.arange(len(codes)), codes] -= 1
    return np.where(others.any(axis=1), others.argmax(axis=1) + 1, 0)


def _records(
    release: UniformRelease,
    coalition: Coalition,
    name: str,
    x: Indices,
    P: Array,
    shows: Sequence[Indices],
) -> list[Measurement]:
    cell, n = Cell(release.context.under(FITTED, "perfect"), coalition), len(x)
    shares = np.bincount(x, minlength=P.shape[1]) / n
    variance = 1.0 - float(shares @ shares)
    if variance <= 0:
        return []
    errors = ((P**2).sum(axis=1) - 2.0 * P[np.arange(n), x] + 1.0) / variance
    bar = Bar.normal(float(errors.std() / np.sqrt(n)), "sampling")
    cell.add("normalized_error", float(errors.mean()), bar, None, name, (0.0, np.inf))
    best, certain = P.argmax(axis=1), P.max(axis=1) >= CERTAIN
    certain &= np.any([y == best for y in shows], axis=0) & (shares.max() < CERTAIN)
    if certain.sum() >= FEWEST_KEPT and (best == x)[certain].mean() >= RIGHT:
        share = float(certain.mean())
        bar = Bar.normal(np.sqrt(share * (1.0 - share) / n), "sampling")
        cell.add(KEPT, share, bar, None, name, (0.0, 1.0))
    return cell.records


FEWEST_TOLD = 0.01
"""Least share of records that another row shows, beyond chance."""
BEYOND = 1.2
"""Least ratio of agreements with predicted cells to agreements of successive records."""
MOST_COUNTED = 64
"""Values whose agreements are counted, the commonest."""


def elsewhere(x: Codes, y: Codes, size: int) -> list[Codes]:
    """Return cells that show records elsewhere, shape (n,) each: shifted, reversed, in blocks.

    Examples
    --------
    >>> x = np.random.default_rng(0).integers(0, 4, 400)
    >>> [bool((cells == x).all()) for cells in elsewhere(x, np.roll(x, 3), 4)], elsewhere(x, x, 4)
    ([True], [])
    """
    n = len(x)
    a, b = (np.bincount(codes, minlength=size).astype(np.float64) for codes in (x, y))
    commonest = np.argsort(-a * b, kind="stable")[:MOST_COUNTED]
    a, b = a[commonest], b[commonest]
    mean = float(a @ b) / n
    variance = ((a * (n - a)) @ (b * (n - b)) + (a @ b) ** 2 - ((a * b) ** 2).sum()) / (
        n * n * max(1, n - 1)
    )
    least = mean + max(FEWEST_TOLD * n, beyond_chance(n) * np.sqrt(variance))
    agree = np.zeros((2, n))
    for value in commonest if mean > 0 else ():
        of_x, of_y = np.fft.rfft(x == value), np.fft.rfft(y == value)
        # the conjugate's rows count from the end
        agree += [np.fft.irfft(spectrum * of_x.conj(), n) for spectrum in (of_y, of_y.conj())]
    agree[0, 0] = 0.0  # a record's own row
    found = [
        (step, int(counts.argmax()))
        for step, counts in zip((1, -1), agree, strict=True)
        if counts.max() > least
    ]
    cells = [y[step * (np.arange(n) + k) % n] for step, k in found]
    return [
        *cells,
        *sharing(x, y, size, commonest),
        *by_blocks(x, y, commonest, max([least, *((one == x).sum() for one in cells)])),
    ]


def sharing(x: Codes, y: Codes, size: int, values: Indices) -> list[Codes]:
    """Return cells of rows that share their noise with a record, shape (n,).

    ``Var C_k ≤ Σ_t Σ_uv cov(e_tu, e_tv)²``, by Cauchy, with
    ``Σ_uv cov² = Σ_v T² − 2T³ + (Σ_v T²)²``. Rare values have Poisson tails,
    so the bound is like Bernstein's.
    """
    n = len(x)
    T = (
        np.bincount(x.astype(np.intp) * size + y, minlength=size**2).reshape(size, size)
        / np.bincount(x, minlength=size).clip(1)[:, None]
    )
    squares, t = np.square(T).sum(axis=1), math.log(n / BY_CHANCE)
    variance = float((squares - 2.0 * (T**3).sum(axis=1) + squares**2)[x].sum())
    power = np.zeros(n // 2 + 1)
    for value in values:
        power += np.abs(np.fft.rfft((y == value) - T[x, value])) ** 2
    C = np.fft.irfft(power, n)[1 : (n + 1) // 2]
    if not C.size or C.max() <= max(FEWEST_TOLD * n, math.sqrt(2.0 * variance * t) + 2.0 * t):
        return []
    k = 1 + int(C.argmax())
    before, after = np.roll(y, k), np.roll(y, -k)
    return [np.where(before == y, before, after)]


def by_blocks(x: Codes, y: Codes, values: Indices, least: float) -> list[Codes]:
    """Return cells at places that near records predict, shape (n,), if more than ``least`` agree.

    In a series, more must agree than successive records do.
    """
    n = len(x)
    if n < 2 * WINDOW:
        return []
    looks = [(x[some], y[some]) for some in parts(n, LOOKED_AT)] if n > LOOKED_AT else []
    if looks and not any(
        by_blocks(*look, values, least * len(look[0]) / n + 2.0 * math.sqrt(len(look[0])))
        for look in looks
    ):
        return []
    cells = y[
        places(*(standard_ranks((codes[:, None] == values).astype(np.float64)) for codes in (x, y)))
    ]
    return [cells] if (cells == x).sum() > max(least, BEYOND * (x[1:] == x[:-1]).sum()) else []


def fitted_to_files(release: UniformRelease) -> list[Measurement]:
    """Return figures of an insider who learns from all columns of the copies' files."""
    scheme, table = release.scheme, release.table
    if scheme.makes_copies or table is None or table.streamed:
        return []
    shown = scheme.shown(table)
    found = fitted_category_records(release, shown)
    return found + numbers_beside(release, table, shown) if table.width else found


def numbers_beside(
    release: UniformRelease, table: Table, shown: Sequence[ShownColumn]
) -> list[Measurement]:
    """Return figures of the audited table's columns of numbers that the copies' files show."""
    scheme = release.scheme
    copies, X = [codes.astype(np.uint32) for codes in scheme.handed_in(table)], table.values
    cells = np.zeros((len(copies), *X.shape))
    beside = []
    for column in shown:
        if column.name in table.attributes and column.values.dtype.kind == "f":
            cells[column.copy - 1, :, table.attributes.index(column.name)] = column.values
        else:
            beside.append(column)
    for number, codes in enumerate(copies, start=1):
        parts = zip(release.data.names, split(release.data, codes), strict=True)
        beside += [ShownColumn(number, name, part.astype(np.intp)) for name, part in parts]
    context = release.context.of_columns(table.attributes, X.var(axis=0))
    steps = table.resolution.steps
    here = release.scenario
    asked = here.data.tolerance if here.asks_closeness else None
    return fitted_records(context, X, list(cells), release.coalitions, None, steps, beside, asked)
