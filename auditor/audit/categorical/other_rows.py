"""Information in other rows, for copies of categories without a law.

| symbol | meaning | shape |
| --- | --- | --- |
| ``x``, ``y`` | values of the records and of one copy, in the table's order | (n,) |
| ``A_k`` | agreements k rows on, ``Σ_t [x_t = y_(t+k)]``, or k from the end, ``Σ_t [x_t = y_(-t-k)]`` | (n,) |
| ``μ``, ``v`` | mean and variance of ``A_k`` for random pairing, with a_v records and b_v cells of value v | |
| | ``μ = Σ a_v·b_v / n``, ``v = (Σ a_v(n − a_v)b_v(n − b_v) + (Σ a_v·b_v)² − Σ (a_v·b_v)²) / (n²(n − 1))`` | |
| ``C_k`` | ``Σ_v Σ_t e_tv e_(t+k)v``, ``e_tv = [y_t = v] − T[x_t, v]``, T the copy's shares given the original | scalar |
| ``P`` | posterior given the cells of a record and of conspicuous rows; the law is estimated from the other half | (n, s) |

Fourier transforms of each value's indicator count all distances at once. Conspicuous rows count as
one more copy each, as do blocks of moved rows. Rows with shared noise agree more often than their
originals. *Not found*: moved rows with recoded values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from auditor.audit.categorical.cell_records import FILES, Cell, belief_record, cell_records
from auditor.audit.categorical.error_bars import jackknifed
from auditor.audit.categorical.fitted import fitted_category_records
from auditor.audit.categorical.posterior_measures import Frame, Sums, group_of, quantities
from auditor.audit.categorical.posterior_pass import BLOCK_NUMBERS
from auditor.audit.categorical.release import Half, UniformRelease
from auditor.audit.insider.features.moved_rows import LOOKED_AT, WINDOW, parts, places
from auditor.audit.insider.fitted import fitted_records
from auditor.data.columns.categorical_table import split
from auditor.data.table import ShownColumn, Table
from auditor.numerics.statistics import BY_CHANCE, beyond_chance, standard_ranks
from auditor.results.records import Measurement
from auditor.schemes.published_categories import PublishedCategories
from auditor.schemes.replacement.estimated_law import EstimatedLaw, estimated
from auditor.types import Array, Codes, Indices

NAME, KNOWLEDGE = "other-rows", "perfect"
"""Attack and knowledge in records."""
FEWEST_TOLD = 0.01
"""Least share of records that another row shows, beyond chance."""
BEYOND = 1.2
"""Least ratio of agreements with predicted cells to agreements of successive records."""
MOST_COUNTED = 64
"""Values whose agreements are counted, the commonest."""


def other_row_records(
    release: UniformRelease, halves: Sequence[Half], parts: Mapping[str, Indices]
) -> list[Measurement]:
    """Return figures of copies that show records elsewhere, single and all together.

    Parameters
    ----------
    release : UniformRelease
        Only copies from files have records.
    halves : sequence of two Half
        Of its records.
    parts : dict of str to ndarray of shape (s,)
        As in ``Frame``.
    """
    scheme, data, everybody = release.scheme, release.data, tuple(release.singles)
    if not halves or not isinstance(scheme, PublishedCategories):
        return []
    held = dict(enumerate(scheme.held(), start=1))
    moved = {
        copy: cells for copy in everybody if (cells := elsewhere(data.codes, held[copy], data.size))
    }
    asked = [
        one
        for one in release.coalitions
        if (len(one) == 1 or one == everybody) and moved.keys() & set(one)
    ]
    frame = Frame(data.prior, True, data.scores, None, {}, None, parts)
    shares = {
        name: np.asarray(np.bincount(part, data.prior), dtype=np.float64)
        for name, part in parts.items()
    }
    group, records = (
        np.concatenate([group_of(groups) for groups in release.groups]),
        list[Measurement](),
    )
    for coalition in asked:
        cells = [held[copy] for copy in coalition] + [
            each for copy in coalition for each in moved.get(copy, [])
        ]
        sums = Sums(data.size, int(group[-1]) + 1)
        for half in halves:
            law = law_of(
                data.codes, cells, half.rows.rows, [attribute.size for attribute in data.attributes]
            )
            left = np.setdiff1d(np.arange(data.rows), half.rows.rows, assume_unique=True)
            for rows in np.array_split(left, math.ceil(len(left) * data.size / BLOCK_NUMBERS)):
                P = posterior(law, [cell[rows] for cell in cells], data.prior)
                sums.add(
                    quantities(P, frame),
                    np.arange(len(P)),
                    data.codes[rows].astype(np.intp),
                    group[rows],
                )
        cell = Cell(release.context.under(NAME, KNOWLEDGE), coalition, FILES)
        cell_records(
            cell,
            sums,
            None,
            jackknifed({coalition: sums})[coalition],
            data.prior,
            data.scores,
            None,
            shares,
        )
        belief_record(cell, sums, data.prior)
        records += cell.records
    return records


def law_of(x: Codes, cells: Sequence[Codes], taught: Indices, shape: Sequence[int]) -> EstimatedLaw:
    """Return the law of cells, shape (n,) each, estimated from the records ``taught``."""
    copies = {number: cell[taught] for number, cell in enumerate(cells, start=1)}
    return estimated(x[taught], copies, shape, [tuple(copies)])


def posterior(law: EstimatedLaw, cells: Sequence[Codes], prior: Array) -> Array:
    """Return ``P`` given cells, shape (b,) each; the prior for impossible cells."""
    likely = prior * law.likelihood(cells)
    total = likely.sum(axis=1, keepdims=True)
    return np.where(total > 0, likely / np.where(total > 0, total, 1.0), prior)


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
        # the conjugate's rows stand from the end
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
