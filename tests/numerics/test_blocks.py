"""Blocks and groups of rows: how a table is cut hangs on its shape alone, and not on who reads it or how much of it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.numerics.blocks import (
    BLOCK_VALUES,
    MOST_BLOCKS,
    STRIPES,
    moment_groups,
    row_blocks,
    row_groups,
    stripes,
)

properties = settings(max_examples=100, deadline=None, derandomize=True)
shapes = {"rows": st.integers(1, 300_000), "width": st.integers(1, 60)}


@given(**shapes)
@properties
def test_blocks_cut_all_rows_once_in_order(rows, width):
    blocks = row_blocks(rows, width)
    assert blocks[0][0] == 0
    assert blocks[-1][1] == rows
    assert all(a[1] == b[0] for a, b in itertools.pairwise(blocks))
    assert all(start < stop for start, stop in blocks)


@given(rows=st.integers(1, 200_000), more=st.integers(0, 200_000), width=st.integers(1, 60))
@properties
def test_a_longer_table_keeps_the_blocks_of_a_shorter_one(rows, more, width):
    """Noise is keyed by block, so more rows must not move the cut of those that were there."""
    short, long = row_blocks(rows, width), row_blocks(rows + more, width)
    assert long[: len(short) - 1] == short[:-1]


@given(rows=st.integers(2, 300_000), width=st.integers(1, 60))
@properties
def test_groups_cut_every_block_and_straddle_none(rows, width):
    blocks, groups = row_blocks(rows, width), row_groups(rows, width)
    assert len(groups) == len(blocks)
    for (start, stop), parts in zip(blocks, groups, strict=True):
        assert (parts[0][0], parts[-1][1]) == (start, stop)
        assert all(a[1] == b[0] for a, b in itertools.pairwise(parts))
        assert all(a < b for a, b in parts)


@given(blocks=st.integers(1, 20_000))
@properties
@pytest.mark.slow
def test_what_is_kept_of_a_table_does_not_grow_with_it(blocks):
    """As many groups of moments from ``STRIPES`` blocks on, of as many stripes each; and stripes are whole, in order, and not too long."""
    rows, width = blocks * (BLOCK_VALUES // 100), 100
    cuts, groups = stripes(rows, width), moment_groups(rows, width)
    assert [k for cut in cuts for k in range(*cut)] == list(range(blocks))
    assert all(0 < stop - first <= MOST_BLOCKS for first, stop in cuts)
    numbers = [group for parts in groups for group, _, _ in parts]
    assert numbers == sorted(numbers)
    if blocks > STRIPES:
        assert set(numbers) == set(range(STRIPES))
        assert all(
            len({group for k in range(*cut) for group, _, _ in groups[k]}) == 1 for cut in cuts
        )


@pytest.mark.parametrize(
    ("rows", "width", "columns", "count"),
    [
        (2_000, 30, 723, 32),
        (2_000, 30, 1_000, 32),
        (2_000, 30, 1_448, 16),
        (2_000, 30, 3_030, 8),
        (10**6, 500, 10**4, 8),
    ],
)
def test_large_moments_are_kept_of_fewer_groups_which_are_runs_of_the_others(
    rows, width, columns, count
):
    all_groups, fewer = moment_groups(rows, width), moment_groups(rows, width, columns)
    cuts = [[(a, b) for _, a, b in parts] for parts in all_groups]
    assert [[(a, b) for _, a, b in parts] for parts in fewer] == cuts
    numbers = [group for parts in fewer for group, _, _ in parts]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(count))
    assert max(map(numbers.count, set(numbers))) <= -(-len(numbers) // count)
