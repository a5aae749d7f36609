"""A run is a function of scenario, data and seed; of nothing else, least of all of who does the work or what else was asked."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auditor
from auditor.numerics.blocks import BLOCK_VALUES, MOST_BLOCKS, STRIPES, moment_groups, row_blocks, row_groups, stripes
from auditor.numerics.random_streams import stream

properties = settings(max_examples=100, deadline=None, derandomize=True)
shapes = {"rows": st.integers(1, 300_000), "width": st.integers(1, 60)}

SCENARIO = {
    "schema": 1,
    "title": "determinism",
    "seed": 5,
    "replicates": 2,
    "data": {"source": "gaussian", "covariance": [[1.0, 0.5], [0.5, 2.0]], "rows": 500},
    "schemes": [{"name": "corner-wave", "levels": {"uniform": [0.25, 1.0], "count": 3}}],
    "knowledge": ["perfect", {"estimated": {"rows": 100}}],
    "coalitions": ["subsets"],
    "attacks": ["llse"],
    "expect": [{"no-collusion-gain": {}}],
}
MORE_SCHEMES = [{"name": "independent", "levels": {"uniform": [0.25, 1.0], "count": 3}}, *SCENARIO["schemes"]]


def figures(**changes):
    """Return every record of the first scenario's cells, without what the clock says."""
    scenario = SCENARIO | changes
    result = auditor.run(scenario)
    return [r for r in result.measurements if r.scheme == "corner-wave" and r.attack == "llse"]


def test_the_same_again():
    assert figures() == figures()


def test_one_and_two_workers_give_the_same_results():
    scenario = SCENARIO | {"schemes": MORE_SCHEMES}
    one, two = auditor.run(scenario, workers=1), auditor.run(scenario, workers=2)
    assert one.measurements == two.measurements
    assert one.expectations == two.expectations


@pytest.mark.parametrize(
    "changes",
    [
        {"attacks": ["ndr", "llse"]},
        {"schemes": MORE_SCHEMES},
        {"expect": []},
        {"measures": [{"within": {"tolerance": 0.5}}, "seconds"]},
    ],
    ids=["attack", "scheme", "expectation", "measure"],
)
def test_adding_one_thing_changes_no_number_of_another(changes):
    plain = figures()
    extra = [record for record in figures(**changes) if record.metric != "within"]
    assert extra == plain


def test_adding_knowledge_changes_no_other_s_numbers():
    more = figures(knowledge=["perfect", {"estimated": {"rows": 100}}, {"estimated": {"rows": 200}}])
    assert [record for record in more if record.knowledge != "estimated(rows=200)"] == figures()


def test_adding_a_replicate_changes_no_earlier_one():
    more = figures(replicates=3)
    assert [record for record in more if record.replicate <= 2] == figures()


def test_adding_a_level_at_the_end_changes_no_earlier_copy():
    longer = figures(schemes=[{"name": "corner-wave", "levels": {"uniform": [0.25, 1.0], "count": 4}}])
    singles = [r for r in longer if r.coalition in ((1,), (2,), (3,)) and r.metric == "distortion"]
    before = [r for r in figures() if len(r.coalition) == 1 and r.metric == "distortion"]
    assert [r.coalition for r in singles] == [r.coalition for r in before]
    np.testing.assert_allclose([r.value for r in singles], [r.value for r in before], rtol=1e-12)


def test_seeds_matter():
    ours, other = figures(), figures(seed=6)
    assert all(a.value != b.value for a, b in zip(ours, other, strict=True) if a.metric == "distortion")


def test_replicates_draw_noise_anew():
    values = {r.replicate: r.value for r in figures() if r.coalition == (1,) and r.metric == "distortion" and r.attribute == "*"}
    assert len(set(values.values())) == 2


def test_schemes_with_the_same_random_levels_get_the_same_draws():
    result = auditor.run(SCENARIO | {"schemes": MORE_SCHEMES})
    assert len({tuple(release.levels) for release in result.releases}) == 1


# -- streams -----------------------------------------------------------------------------------------------------------


def test_a_stream_is_known_by_its_name_alone():
    first = stream(1, "noise", "a", 3).random(4)
    stream(1, "something else").random(10)
    np.testing.assert_array_equal(stream(1, "noise", "a", 3).random(4), first)


def test_parts_of_a_name_are_not_run_together():
    names = [("a", "b"), ("ab",), ("a", 1), ("a", "1"), ("a", 1.0), (("a", 1),), ("b", "a")]
    draws = [stream(1, *name).random() for name in names]
    assert len(set(draws)) == len(draws)


# -- blocks ------------------------------------------------------------------------------------------------------------


@given(**shapes)
@properties
def test_blocks_cut_all_rows_once_in_order(rows, width):
    blocks = row_blocks(rows, width)
    assert blocks[0][0] == 0
    assert blocks[-1][1] == rows
    assert all(a[1] == b[0] for a, b in itertools.pairwise(blocks))
    assert all(start < stop for start, stop in blocks)


@given(**shapes)
@properties
def test_blocks_are_of_one_size_but_the_last(rows, width):
    sizes = {stop - start for start, stop in row_blocks(rows, width)[:-1]}
    assert len(sizes) <= 1
    assert all(size * width <= max(BLOCK_VALUES, 64 * width) for size in sizes)


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


@given(rows=st.integers(2, 300_000), width=st.integers(1, 60))
@properties
def test_there_are_groups_enough_for_a_jackknife(rows, width):
    count = sum(map(len, row_groups(rows, width)))
    assert count >= 0.6 * min(rows, 32)


@given(blocks=st.integers(1, 20_000))
@properties
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
        assert all(len({group for k in range(*cut) for group, _, _ in groups[k]}) == 1 for cut in cuts)
