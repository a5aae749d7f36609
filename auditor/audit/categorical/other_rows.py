"""What other rows tell of a record, in copies of categories that nobody states a law of: moved rows, values of those near, shared noise.

| symbol | meaning | shape |
| --- | --- | --- |
| ``x``, ``y`` | values of the records, and one copy's, in the table's order | (n,) |
| ``A_k`` | records whose value the copy shows k rows further, ``Σ_t [x_t = y_(t+k)]``; or k from the end, ``Σ_t [x_t = y_(-t-k)]`` | (n,) |
| ``μ``, ``v`` | mean and variance of ``A_k`` where rows are paired at random: with a_v and b_v records and cells of value v | |
| | ``μ = Σ a_v·b_v / n``, ``v = (Σ a_v(n − a_v)b_v(n − b_v) + (Σ a_v·b_v)² − Σ (a_v·b_v)²) / (n²(n − 1))`` | |
| ``C_k`` | ``Σ_v Σ_t e_tv e_(t+k)v`` of ``e_tv = [y_t = v] − T[x_t, v]``, T the copy's shares given the original | scalar |
| ``P`` | posterior by the coalition's cells of a record and of the rows that stand out; the other half teaches the law | (n, s) |

The law of a record's own cells says nothing of a copy whose rows were all moved by one, or in which
values were replaced by those of the row before: it would look as safe as a shuffled one. Who made
it knows where they went. Distances are all counted at once, by Fourier transforms of each value's
indicator; of a series or a sorted table one that stands out is a neighbour's, which tells of a
record, too. The cells found are taken for one more copy each
(``auditor.schemes.replacement.estimated_law``). So are those of rows moved by blocks, each by a
distance of its own (``moved_blocks``). Rows whose noise is one draw agree with one another more
often than their originals make them: at the distance k of the largest C_k a cell that neither row
so far off agrees with was kept. *Not found*: moved rows whose values were given other names
besides; coins that are shared, and not what replaces values, which tell whoever knows other
originals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.audit.categorical.cell_records import FILES, Cell, belief_record, cell_records
from auditor.audit.categorical.error_bars import jackknifed
from auditor.audit.categorical.fitted import fitted_category_records
from auditor.audit.categorical.posterior_measures import Frame, Sums, group_of, quantities
from auditor.audit.categorical.posterior_pass import BLOCK_NUMBERS
from auditor.audit.categorical.release import Half, UniformRelease
from auditor.audit.insider.features.moved_blocks import LOOKED_AT, WINDOW, parts, places
from auditor.audit.insider.fitted import fitted_records
from auditor.data.columns.categorical_table import split
from auditor.data.shown_columns import ShownColumn
from auditor.data.table import Table
from auditor.numerics.statistics import BY_CHANCE, beyond_chance, standard_ranks
from auditor.results.records import Measurement
from auditor.schemes.published_categories import PublishedCategories
from auditor.schemes.replacement.estimated_law import EstimatedLaw, estimated
from auditor.types import Array, Codes, Indices

NAME, KNOWLEDGE = "other-rows", "perfect"
"""What records call it."""
FEWEST_TOLD = 0.01
"""Share of the records, beyond those by chance, that another row must show to be worth a look."""
BEYOND = 1.2
"""Times as many records as agree with the one before them that must agree with the cells that their
neighbours say."""
MOST_COUNTED = 64
"""Values whose agreement is counted, the commonest: each takes two transforms of the table's
length."""


def other_row_records(
    release: UniformRelease, halves: Sequence[Half], parts: Mapping[str, NDArray[np.intp]]
) -> list[Measurement]:
    """Return what whoever holds each copy that shows records elsewhere makes of it, and of all copies; nothing where none does.

    Parameters
    ----------
    release : UniformRelease
        Copies from files; of any other nothing is returned.
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
        cell = Cell(release.context, NAME, KNOWLEDGE, coalition, FILES)
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
    """Return the law of some cells of every record, shape (n,) each, as copies of it, that the records in places ``taught`` teach."""
    copies = {number: cell[taught] for number, cell in enumerate(cells, start=1)}
    return estimated(x[taught], copies, shape, [tuple(copies)])


def posterior(law: EstimatedLaw, cells: Sequence[Codes], prior: Array) -> Array:
    """Return ``P`` of records with these cells, shape (b,) each; the prior where the law has them impossible."""
    likely = prior * law.likelihood(cells)
    total = likely.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, likely / np.where(total > 0, total, 1.0), prior))


def elsewhere(x: Codes, y: Codes, size: int) -> list[Codes]:
    """Return the cells that show records elsewhere, each of shape (n,): further on, from the end, the strongest of either, or by blocks.

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
    """Return the cells of rows that share their noise with a record, shape (n,): those that agree with its own, if either of two does.

    ``Var C_k ≤ Σ_t Σ_uv cov(e_tu, e_tv)²``, equal where rows k apart are alike (Cauchy), with
    ``Σ_uv cov² = Σ_v T² − 2T³ + (Σ_v T²)²``. Far out the tail of rare values is a Poisson law's and
    no normal one's, so the bound is one like Bernstein's.
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
    """Return the cells where near records say that each one went, shape (n,); none where no more than ``least`` agree with the record.

    A record is placed among those that its neighbours are like, and in a series it is like them:
    more must agree than with the one before.
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
    beside = list[ShownColumn]()
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
