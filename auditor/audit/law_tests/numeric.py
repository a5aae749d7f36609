"""Test whether noise, and rounding, of a release follow the scheme."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from auditor.audit.law_tests.battery import Finding, Scores, as_test, battery, log_p, spread
from auditor.audit.law_tests.scores import (
    HARDLY_ANY,
    MOST_COORDINATES,
    Rows,
    Value,
    grids,
    release_scores,
    rows_of,
    rows_wanted,
    runs,
    some_copies,
    whitening,
)
from auditor.audit.numeric.release import Release
from auditor.base import scipy
from auditor.base.types import Array, Arrays, Names
from auditor.numerics.blocks import block_head, row_blocks
from auditor.numerics.statistics import (
    STRAY,
    column_ranks,
    generators,
    grid_of_digits,
    ratio,
    wave_tail,
    written_shorter,
)
from auditor.results.records import LAST_DIGITS, LawTest
from auditor.schemes.base.noise_density import LATTICE
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw, is_process

# -- Tests of digits: low digits are uniform, last digits show no original -------------------------


MOST_ROWS, DECADES, GRID = 2**13, 9, 2**17
MOST_VALUES, MOST_SWEPT, GROUPS = 12, 4, 4
"""Values that are tested, whitened columns that are tested at all frequencies, and groups of
weights, which are added up."""


def digits_test(scores: Scores, x: Array, values: Sequence[Value]) -> LawTest | None:
    """Test whether low digits depend on originals or on other copies.

    Parameters
    ----------
    scores : Scores
    x : ndarray of shape (n, N)
        Originals.
    values : sequence of Value
    """
    n = min(len(x), MOST_ROWS)
    ranks = column_ranks(x[:n])
    ranks = ranks[:, np.ptp(ranks, axis=0) > 0]
    group = np.concatenate([np.full(ranks.shape[1], -1), scores.groups])
    angle = 2.0 * np.pi * np.hstack([ranks, scores.values[:n]])
    waves = [np.cos(k * angle) + np.sin(k * angle) for k in (1, 2)]
    whitened, found = sum(value.whitened for value in values), list[Finding]()
    swept = spread(whitened, MOST_SWEPT)
    for place in {*swept, *spread(len(values), MOST_VALUES)}:
        value, c = values[place], values[place].values[:n]
        others = np.flatnonzero(group != value.group)
        parts = [others[first::GROUPS] for first in range(min(GROUPS, others.size))]
        if not parts:
            continue
        sums = np.stack([wave[:, part].sum(axis=1) for wave in waves for part in parts], axis=1)
        weights = (sums - sums.mean(axis=0)).astype(np.float32)
        power = np.square(weights).sum(axis=0)
        decades = 10.0 ** (math.ceil(math.log10(value.slowest)) + np.arange(DECADES))
        decades = decades[decades <= value.finest]
        turns = decades[:, None] * c
        # % is 60 times slower
        angle = (2.0 * np.pi * (turns - np.floor(turns))).astype(np.float32)
        t = (np.square(np.cos(angle) @ weights) + np.square(np.sin(angle) @ weights)) / power
        tried = [(t.max(axis=1, initial=0.0), decades, t.size)]
        if place in swept and np.ptp(c) > 0:
            step = float(np.ptp(c)) / (GRID - 1)
            cell = ((c - c.min()) / step + 0.5).astype(int)
            first = math.ceil(value.slowest * step * GRID)
            swept_to = np.arange(first, min(value.finest * step * GRID, GRID // 2 - 1) + 1).astype(
                np.intp
            )
            for b in weights.T[: len(parts)]:
                F = np.abs(scipy.fft.rfft(np.bincount(cell, b, GRID).astype(np.float32)))
                t = np.square(F[swept_to]) / np.square(b).sum()
                tried.append((t, swept_to / (step * GRID), len(t)))
        for t, frequencies, count in tried:
            if t.size:
                k = int(t.argmax())
                where = (
                    f"digits of {value.name} after parts of 1/{frequencies[k]:.5g} are correlated "
                    "with originals or other copies: r ="
                )
                exponent, r = float(log_p(wave_tail(float(t[k])))), math.sqrt(float(t[k]) / n)
                found.append(Finding(exponent, r, 0.0, where, count))
    return as_test("low digits", found, n) if found else None


GENERATED_ROWS, MOST_COLUMNS = 2**12, 32
"""Rows and columns looked at, evenly among all: a tenth of a second."""


def last_digits_test(
    law: NoiseLaw, x: Array, y: Array, names: Names, chosen: Sequence[int]
) -> LawTest | None:
    """Test that released doubles do not show originals by their rounding.

    None if no column has last digits.

    Parameters
    ----------
    law : NoiseLaw
        Of the noise in the copies chosen.
    x, y : ndarrays of shapes (n, N) and (n, M, N)
        Originals and released values.
    chosen : sequence of int
        Numbers of the copies.
    """
    if isinstance(law, KroneckerNoise) and law.units is not None:
        return None
    std = law.deviations
    places = [(int(i), int(j)) for i, j in zip(*np.nonzero(std), strict=True)]
    every = slice(None, None, math.ceil(len(x) / GENERATED_ROWS))
    found = list[tuple[float, str]]()  # ``ln E`` of one generator, and its column
    for i, j in (places[place] for place in spread(len(places), MOST_COLUMNS)):
        values, which, times = np.unique(y[every, i, j], return_inverse=True, return_counts=True)
        single = times[which] == 1  # repeated values are bounds or blanks
        if single.any() and not written_shorter(values):
            pair = (y[every, i, j][single], x[every, j][single])
            where = f"{names[j]!r} in copy {chosen[i]}"
            for generator in generators(law.distribution, float(std[i, j])):
                likelier = ratio(*pair, generator, grid_of_digits(values))
                found.append((float(np.log(STRAY + (1.0 - STRAY) * likelier).sum()), where))
    if not found:
        return None
    (log_e, where), rows = max(found), len(x[every])
    p = min(1.0, len(found) * math.exp(-max(log_e, 0.0)))
    told = f"given the original, the factor by which last digits of {where} are likelier than of rounded noise, a record, is"
    return LawTest(LAST_DIGITS, p, len(found), rows, math.exp(log_e / rows), 1.0, told, math.inf)


# --------------------------------------------------------------------------------------------------


def law_tests(release: Release, law: NoiseLaw | None) -> list[LawTest]:
    """Tests of a release's noise; none if no law is stated.

    Parameters
    ----------
    law : NoiseLaw or None
        Of the noise, before copies were transformed.

    Notes
    -----
    Only the first replicate is tested.
    """
    transformed = release.transformed
    if law is None or release.key.replicate > 1 or (transformed and not transformed.rigid):
        return []
    names, (x, copies) = release.table.attributes, looked_at(release, law_rows(release))
    if law.distribution == "unstated":
        drawn = None if release.key.grid else release.scheme.drawn_apart(release.levels, x, copies)
        return [] if drawn is None else row_tests(*drawn, names, False)
    spacing = 0.0
    if transformed is not None:  # rotated back, an error of h/2 in each column may grow by √N
        _, _, released = next(iter(release.blocks()))
        spacing = math.sqrt(len(names)) * max(float(grids(copy).max()) for copy in released)
    tests = row_tests(x, copies, law, names, transformed is None, spacing)
    # copies that audits draw are doubles of any digits, never released
    if not release.scheme.makes_copies:
        if release.serial is not None:
            _, copies = looked_at(replace(release, serial=None), law_rows(release))
        chosen = some_copies(law.copies, len(names), MOST_COORDINATES)
        y = np.stack([copies[copy - 1] for copy in chosen], axis=1)
        digits = last_digits_test(law.of(chosen), x, y, names, chosen)
        tests += [] if digits is None else [digits]
    return tests


def row_tests(
    x: Array, copies: Arrays, law: NoiseLaw, names: Names, on_grid: bool, spacing: float = 0.0
) -> list[LawTest]:
    """Tests of single rows, shape (n, N): noise by law, scores and low digits.

    Parameters
    ----------
    on_grid : bool
        Whether copies may be on a grid; not after a transformation.
    spacing : float
        Least precision of the values.
    """
    if len(x) < 3:
        return []
    chosen = some_copies(law.copies, len(names), MOST_COORDINATES)
    law, rows = law.of(chosen), rows_of(x, copies, names, chosen, on_grid)
    rows = rows._replace(grain=np.maximum(rows.grain, spacing))
    scores, own, values = release_scores(law, rows)
    tests = [
        no_noise_test(law, rows),
        *battery(scores, rows.x, rows.names, own),
        digits_test(scores, rows.x, values),
    ]
    return [test for test in tests if test is not None]


def no_noise_test(law: NoiseLaw, rows: Rows) -> LawTest | None:
    """Check that noise is 0 where the law says so, and on its lattice."""
    n, M, N = rows.noise.shape
    silent = law.deviations == 0
    excess = [np.abs(rows.noise[:, silent]) / (8.0 * rows.grain[silent] + 1e-300)]
    slack = 20.0 * math.sqrt(HARDLY_ANY * M * N)
    null = whitening(covariance_of_ties(law), N, np.zeros(M * N)).null
    bound = slack + 8.0 * rows.grain.ravel() @ np.abs(null).T
    excess.append(np.abs(rows.noise.reshape(n, -1) @ null.T) / bound)
    if isinstance(law, KroneckerNoise) and law.distribution in LATTICE:
        loud = np.flatnonzero(np.diag(law.shape) > 0)
        units = np.array([law.density_at(1.0, j).unit for j in loud.tolist()])
        k = rows.noise[:, :, loud] / units
        rounding = 2.0**-40 + 2.0**-44 * (np.abs(rows.x[:, None, loud]) / units + np.abs(k))
        excess.append(np.abs(k - np.rint(k)) / rounding)
    tests = sum(part.size for part in excess) // n
    if not tests:
        return None
    most = max(float(part.max(initial=0.0)) for part in excess)
    where = "noise where the law has none, or off its lattice, relative to the largest rounding, is"
    return LawTest("no noise by law", 0.0 if most > 1.0 else 1.0, tests, n, most, 1.0, where)


def covariance_of_ties(law: NoiseLaw) -> Array:
    """Covariance, or for a process a matrix with the same ties.

    Between nearly equal levels a process moves in few rows by all of its noise.
    """
    if not isinstance(law, KroneckerNoise) or not is_process(law):
        return law.covariance
    levels = np.diag(law.level_covariance)
    tied = np.where(levels[:, None] == levels, levels, 0.0) if law.one_process else np.diag(levels)
    return np.kron(tied, law.shape)


def law_rows(release: Release) -> int:
    """Number of rows that are tested one by one."""
    n, N = release.table.rows, release.table.width
    return rows_wanted(n, len(some_copies(release.copies, N, MOST_COORDINATES)) * N)


def looked_at(release: Release, wanted: int) -> tuple[Array, list[Array]]:
    """Rows that are tested one by one, shape (n, N), and their copies.

    The first rows of each block, if copies must be drawn again.
    """
    n, N = release.table.rows, release.table.width
    size, parts = row_blocks(n, N)[0][1], []
    if release.kept:
        blocks = release.blocks()
    elif release.in_order:
        blocks = release.blocks(block_head(n, N, wanted) or size)
    else:
        blocks = islice(release.blocks(), max(1, wanted // size))
    for _, x, copies in blocks:
        some = runs(len(x), wanted * len(x) // n if release.kept else len(x))
        x, *held = (each.take(some, axis=0) for each in (x, *copies))
        parts.append((x, *release.undone(held)))
    x, *copies = (np.concatenate(part) for part in zip(*parts, strict=True))
    return x, copies
