"""Test whether the noise of a release is the noise that its scheme states."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from auditor.audit.base.release import Release
from auditor.audit.law_tests.battery import battery
from auditor.audit.law_tests.chosen_rows import (
    GRID_ROWS,
    MOST_COORDINATES,
    Rows,
    grids,
    rows_of,
    rows_wanted,
    runs,
    some_copies,
)
from auditor.audit.law_tests.digits import digits_test, last_digits_test
from auditor.audit.law_tests.scores import HARDLY_ANY, release_scores
from auditor.base.types import Array
from auditor.numerics.blocks import block_head, row_blocks
from auditor.results.evidence import LawTest
from auditor.schemes.base.noise_density import LATTICE
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw, is_process


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
    names, blocks = release.table.attributes, list(looked_at(release, law_rows(release)))
    if law.distribution == "unstated":
        if release.key.grid:
            return []
        x, *copies = (
            np.concatenate(part) for part in zip(*((x, *ys) for x, ys in blocks), strict=True)
        )
        found = release.scheme.drawn_apart(release.levels, x, copies)
        return [] if found is None else in_memory_tests(*found, names, False)
    chosen = some_copies(law.copies, len(names), MOST_COORDINATES)
    rows = rows_of(blocks, chosen, transformed is None)
    if transformed is not None:  # rotated back, an error of h/2 in each column may grow by √N
        _, _, released = next(iter(release.blocks()))
        spacing = max(float(grids(copy[:GRID_ROWS]).max()) for copy in released)
        rows = rows._replace(grain=np.maximum(rows.grain, math.sqrt(len(names)) * spacing))
    tests = row_tests(law.of(chosen), rows, names, chosen)
    # copies that audits draw are doubles of any digits, never released
    if not release.scheme.makes_copies:
        out = (
            blocks
            if release.as_released is release
            else looked_at(release.as_released, law_rows(release))
        )
        y = np.concatenate(
            [np.stack([copies[copy - 1] for copy in chosen], axis=1) for _, copies in out]
        )
        digits = last_digits_test(law.of(chosen), rows.x, y, names, chosen)
        tests += [] if digits is None else [digits]
    return tests


def row_tests(
    law: NoiseLaw, rows: Rows, names: Sequence[str], chosen: Sequence[int]
) -> list[LawTest]:
    """Tests of single rows: cells without noise, scores and low digits.

    Parameters
    ----------
    law : NoiseLaw
        Of the copies chosen.
    names : sequence of str
        The N attributes.
    chosen : sequence of int
        Numbers of the copies.
    """
    if len(rows.x) < 3 or law.distribution == "unstated":
        return []
    scores, own, values = release_scores(law, rows, names, chosen)
    tests = [
        no_noise_test(law, rows),
        *battery(scores, rows.x, names, own),
        digits_test(scores, rows.x, values),
    ]
    return [test for test in tests if test is not None]


def in_memory_tests(
    x: Array, copies: Sequence[Array], law: NoiseLaw, names: Sequence[str], on_grid: bool
) -> list[LawTest]:
    """Tests of copies that are in memory."""
    if not len(x):
        return []
    chosen = some_copies(law.copies, len(names), MOST_COORDINATES)
    return row_tests(law.of(chosen), rows_of([(x, copies)], chosen, on_grid), names, chosen)


def no_noise_test(law: NoiseLaw, rows: Rows) -> LawTest | None:
    """Check that noise is 0 where the law says so, and on its lattice."""
    n, M, N = rows.noise.shape
    deviation = law.deviations
    silent, unit = deviation == 0, np.where(deviation > 0, deviation, 1.0)
    excess = [np.abs(rows.noise[:, silent]) / (8.0 * rows.grain[silent] + 1e-300)]
    slack, z, known = 20.0 * math.sqrt(HARDLY_ANY * M * N), rows.noise / unit, rows.grain / unit
    if isinstance(law, KroneckerNoise):  # copies, then attributes
        parts = [(z.transpose(0, 2, 1), known.T, _levels(law)), (z, known, law.shape)]
    else:
        parts = [(z.reshape(n, -1), known.ravel(), law.covariance)]
    for values, off, K in parts:
        null = null_combinations(K)
        excess.append(np.abs(values @ null.T) / (slack + 8.0 * off @ np.abs(null).T))
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


def null_combinations(K: Array) -> Array:
    """Combinations without variance, of standardised coordinates."""
    own = np.sqrt(np.clip(np.diag(K), 0.0, None))
    loud = np.flatnonzero(own > 0)
    values, vectors = np.linalg.eigh(K[np.ix_(loud, loud)] / np.outer(own[loud], own[loud]))
    null = np.zeros((int((values <= HARDLY_ANY * len(K)).sum()), len(K)))
    null[:, loud] = vectors[:, values <= HARDLY_ANY * len(K)].T
    return null


def _levels(law: KroneckerNoise) -> Array:
    """``Sigma``, or for a process a matrix with the same ties.

    Between nearly equal levels a process moves in few rows by all of its noise.
    """
    if not is_process(law):
        return law.level_covariance
    levels = np.diag(law.level_covariance)
    return np.where(levels[:, None] == levels, levels, 0.0) if law.one_process else np.diag(levels)


def law_rows(release: Release) -> int:
    """Number of rows that are tested one by one."""
    n, N = release.table.rows, release.table.width
    return rows_wanted(n, len(some_copies(release.copies, N, MOST_COORDINATES)) * N)


def looked_at(release: Release, wanted: int) -> Iterator[tuple[Array, Sequence[Array]]]:
    """Yield rows that are tested one by one, block by block.

    The first rows of each block, if copies must be drawn again.
    """
    n, N = release.table.rows, release.table.width
    size = row_blocks(n, N)[0][1]
    if release.kept:
        blocks = (
            (x, copies, runs(len(x), wanted * len(x) // n)) for _, x, copies in release.blocks()
        )
        found = (
            (x.take(chosen, axis=0), [copy.take(chosen, axis=0) for copy in copies])
            for x, copies, chosen in blocks
        )
    elif release.drawing().in_order:
        found = (
            (x.copy(), [copy.copy() for copy in copies])
            for _, x, copies in release.heads(block_head(n, N, wanted) or size)
        )
    else:
        few = islice(release.blocks(), max(1, wanted // size))
        found = ((x.copy(), [copy.copy() for copy in copies]) for _, x, copies in few)
    for x, copies in found:
        yield x, (copies if release.undo is None else release.undo(copies))
