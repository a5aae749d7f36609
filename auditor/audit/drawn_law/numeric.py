"""Is the noise that was drawn the noise that is stated? What an audit looks at in every release whose scheme states a law."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from auditor.audit.base.release import Release
from auditor.audit.drawn_law.chosen_rows import MOST_COORDINATES, rows_of, rows_wanted, runs, some_copies
from auditor.audit.drawn_law.last_digits import last_digits_test
from auditor.audit.drawn_law.moments import moment_tests
from auditor.audit.drawn_law.rows import row_tests
from auditor.numerics.blocks import block_head, row_blocks
from auditor.numerics.moments import Moments, of_rows
from auditor.results.evidence import LawTest
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.types import Array

GROUPS = 20
"""Runs of rows that moments are taken of where the rows are all there."""


def law_tests(
    release: Release, law: NoiseLaw | None, groups: Sequence[Moments], runs: Sequence[Moments] | None = None
) -> list[LawTest]:  # fmt: skip
    """Return what is found of a release's noise, one test a statistic; nothing where no law is stated.

    Parameters
    ----------
    release : Release
    law : NoiseLaw or None
        Of the noise, before copies were transformed if they were.
    groups : sequence of Moments
        Of ``[X, Y_1 … Y_M]`` over all rows; none where copies have other columns. Of every replicate, they cost nothing more.
    runs : sequence of Moments, optional
        By row group, products left out, where ``groups`` are not; as for ``moment_tests``.

    Notes
    -----
    Row by row the first replicate is looked at, which the same program draws as all others.
    """
    transformed = release.transformed
    if law is None or not groups or (transformed is not None and not transformed.rigid):
        return []
    names = release.table.attributes
    if law.distribution == "unstated":
        return _tests_of_draws(release, names)
    tests = moment_tests(law, groups, names, runs)
    if release.key.replicate == 1:
        chosen = some_copies(law.copies, len(names), MOST_COORDINATES)
        blocks = list(looked_at(release, law_rows(release)))
        rows = rows_of(blocks, chosen, transformed is None)
        tests += row_tests(law.of(chosen), rows, names, chosen)
        if not release.scheme.makes_copies:  # those that audits draw are doubles of any digits, and nobody gets them
            out = blocks if release.as_released is release else looked_at(release.as_released, law_rows(release))
            y = np.concatenate([np.stack([copies[copy - 1] for copy in chosen], axis=1) for _, copies in out])
            digits = last_digits_test(law.of(chosen), rows.x, y, names, chosen)
            tests += [] if digits is None else [digits]
    return tests


def _tests_of_draws(release: Release, names: Sequence[str]) -> list[LawTest]:
    """Return the same for what was drawn for noise that hangs on the values, where the scheme tells it apart; of copies on no grid."""
    if release.key.replicate > 1 or release.key.grid:
        return []
    x, *copies = (np.concatenate(part) for part in zip(*((x, *ys) for x, ys in looked_at(release, law_rows(release))), strict=True))
    found = release.scheme.drawn_apart(release.levels, x, copies)
    return [] if found is None else tests_on_rows(*found, names)


def tests_on_rows(x: Array, copies: Sequence[Array], law: NoiseLaw, names: Sequence[str]) -> list[LawTest]:
    """Return one test a statistic of copies that are all there: of their moments, by runs of rows, and row by row."""
    size = max(1, len(x) // GROUPS)
    groups = [of_rows([part[a : a + size] for part in (x, *copies)], x.mean(axis=0)) for a in range(0, len(x) - size + 1, size)]
    chosen = some_copies(law.copies, len(names), MOST_COORDINATES)
    return [*moment_tests(law, groups, names), *row_tests(law.of(chosen), rows_of([(x, copies)], chosen, False), names, chosen)]


def law_rows(release: Release) -> int:
    """Return how many rows the law is tested on one by one; those are kept where copies must be drawn again."""
    n, N = release.table.rows, release.table.width
    return rows_wanted(n, len(some_copies(release.copies, N, MOST_COORDINATES)) * N)


def looked_at(release: Release, wanted: int) -> Iterator[tuple[Array, Sequence[Array]]]:
    """Yield rows that are looked at one by one, block by block: of copies that must be drawn again the first of each block."""
    n, N = release.table.rows, release.table.width
    size = row_blocks(n, N)[0][1]
    if release.kept:
        blocks = ((x, copies, runs(len(x), wanted * len(x) // n)) for _, x, copies in release.blocks())
        found = ((x.take(chosen, axis=0), [copy.take(chosen, axis=0) for copy in copies]) for x, copies, chosen in blocks)
    elif release.drawing().in_order:
        found = ((x.copy(), [copy.copy() for copy in copies]) for _, x, copies in release.heads(block_head(n, N, wanted) or size))
    else:
        few = islice(release.blocks(), max(1, wanted // size))
        found = ((x.copy(), [copy.copy() for copy in copies]) for _, x, copies in few)
    for x, copies in found:
        yield x, (copies if release.undo is None else release.undo(copies))
