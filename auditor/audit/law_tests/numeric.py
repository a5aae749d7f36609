"""Test whether the noise of a release is the noise that its scheme states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from auditor.audit.base.release import Release
from auditor.audit.law_tests.battery import battery
from auditor.audit.law_tests.cells import no_noise_test, shared_cells_test
from auditor.audit.law_tests.chosen_rows import (
    MOST_COORDINATES,
    Rows,
    rows_of,
    rows_wanted,
    runs,
    some_copies,
)
from auditor.audit.law_tests.digits import digits_test
from auditor.audit.law_tests.last_digits import last_digits_test
from auditor.audit.law_tests.moments import moment_tests
from auditor.audit.law_tests.scores import release_scores
from auditor.numerics.blocks import block_head, row_blocks
from auditor.numerics.moments import Moments, of_rows
from auditor.results.evidence import LawTest
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.types import Array


def law_tests(release: Release, law: NoiseLaw | None, groups: Sequence[Moments]) -> list[LawTest]:
    """Return the tests of a release's noise; none if no law is stated.

    Parameters
    ----------
    release : Release
    law : NoiseLaw or None
        Of the noise, before copies were transformed if they were.
    groups : sequence of Moments
        Of ``[X, Y_1 … Y_M]`` over all rows, of every replicate; none if copies have other columns.

    Notes
    -----
    Single rows are tested in the first replicate: the program that draws it draws all others.
    """
    transformed = release.transformed
    if law is None or not groups or (transformed is not None and not transformed.rigid):
        return []
    names = release.table.attributes
    if law.distribution == "unstated":
        return _tests_of_draws(release, names)
    if release.key.replicate > 1:
        return moment_tests(law, groups, names)
    chosen = some_copies(law.copies, len(names), MOST_COORDINATES)
    blocks = list(looked_at(release, law_rows(release)))
    rows = rows_of(blocks, chosen, transformed is None)
    tests = [
        *moment_tests(law, groups, names, rows.grain),
        *row_tests(law.of(chosen), rows, names, chosen),
    ]
    # copies that audits draw are doubles of any digits, and no recipient gets them
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
    """Return the tests of single rows: cells, scores and low digits.

    Parameters
    ----------
    law : NoiseLaw
        Of the copies chosen.
    rows : Rows
    names : sequence of str
        The N attributes.
    chosen : sequence of int
        Numbers of the copies.
    """
    if len(rows.x) < 3 or law.distribution == "unstated":
        return []
    scores, own = release_scores(law, rows, names, chosen)
    tests = [
        no_noise_test(law, rows),
        shared_cells_test(law, rows, names, chosen),
        *battery(scores, rows.x, names, own),
        digits_test(law, rows, scores, names, chosen),
    ]
    return [test for test in tests if test is not None]


def in_memory_tests(
    x: Array, copies: Sequence[Array], law: NoiseLaw, names: Sequence[str], on_grid: bool
) -> list[LawTest]:
    """Return the tests of copies that are in memory."""
    if not len(x):
        return []
    chosen = some_copies(law.copies, len(names), MOST_COORDINATES)
    rows = rows_of([(x, copies)], chosen, on_grid)
    return [
        *moment_tests(law, [of_rows([x, *copies], x.mean(axis=0))], names, rows.grain),
        *row_tests(law.of(chosen), rows, names, chosen),
    ]


def _tests_of_draws(release: Release, names: Sequence[str]) -> list[LawTest]:
    """Return the tests of noise that the scheme separates from values.

    Copies on a grid have none.
    """
    if release.key.replicate > 1 or release.key.grid:
        return []
    x, *copies = (
        np.concatenate(part)
        for part in zip(*((x, *ys) for x, ys in looked_at(release, law_rows(release))), strict=True)
    )
    found = release.scheme.drawn_apart(release.levels, x, copies)
    return [] if found is None else in_memory_tests(*found, names, False)


def law_rows(release: Release) -> int:
    """Return the number of rows that are tested one by one."""
    n, N = release.table.rows, release.table.width
    return rows_wanted(n, len(some_copies(release.copies, N, MOST_COORDINATES)) * N)


def looked_at(release: Release, wanted: int) -> Iterator[tuple[Array, Sequence[Array]]]:
    """Yield rows that are tested one by one, block by block.

    If copies must be drawn again, these are the first rows of each block.
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
