"""Blocks and groups of rows."""

import itertools

import pytest
from hypothesis import given, settings, strategies as st

from auditor.numerics.blocks import (
    BLOCK_VALUES,
    MOST_BLOCKS,
    STRIPES,
    moment_groups,
    row_blocks,
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
    short, long = row_blocks(rows, width), row_blocks(rows + more, width)
    assert long[: len(short) - 1] == short[:-1]


@given(blocks=st.integers(1, 20_000))
@properties
@pytest.mark.slow
def test_what_is_kept_of_a_table_does_not_grow_with_it(blocks):
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
