"""Counts that are taken block by block: the same in any order, in any number of parts, and for combinations no integer can hold."""

from __future__ import annotations

import collections

import numpy as np
import pytest

from auditor.audit.counts import outcome_counts as counts
from auditor.audit.counts.outcome_counts import (
    CELLS_A_KEY,
    Counts,
    Packing,
    batches,
    chosen,
    different,
)
from auditor.registry import get
from auditor.schemes.base.scheme import Key


@pytest.mark.parametrize("most", [0, 1, 500 * CELLS_A_KEY - 1, 500 * CELLS_A_KEY, 2**62])
def test_small_keys_are_binned_and_large_ones_sorted_with_the_same_counts(most):
    keys = np.random.default_rng(3).integers(0, min(most, 40) + 1, 500)
    keys[0] = most
    for some in (keys, keys[:1], keys[:0]):
        for found, wanted in zip(different(some), np.unique(some, return_counts=True), strict=True):
            np.testing.assert_array_equal(found, wanted)
            assert found.dtype == wanted.dtype


@pytest.mark.parametrize("radices", [[3, 10, 2], [50] * 12 + [32], [10_000] * 9])
def test_combinations_are_packed_and_counted_as_they_are(radices):
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, radix, 4_000) * (rng.random(4_000) < 0.1) for radix in radices]
    # the largest there can be
    columns = [np.append(column, radix - 1) for column, radix in zip(columns, radices, strict=True)]
    packing = Packing(radices)
    assert packing.wide == (len(radices) > 3)
    assert all(
        np.array_equal(a, b)
        for a, b in zip(packing.unpack(packing.pack(columns)), columns, strict=True)
    )
    naive = collections.Counter(zip(*(column.tolist() for column in columns), strict=True))
    order = rng.permutation(4_001)
    whole = Counts(packing.dtype)
    for part in np.array_split(order, 7):
        piece = Counts(packing.dtype)
        for half in np.array_split(part, 2):
            piece.take(packing.pack([column[half] for column in columns]))
        whole.add(piece)
    keys, found = whole.all()
    assert (
        dict(
            zip(
                zip(*(column.tolist() for column in packing.unpack(keys)), strict=True),
                found.tolist(),
                strict=True,
            )
        )
        == naive
    )


def test_a_sample_is_the_stated_share_and_the_smaller_one_part_of_the_larger():
    keys = np.arange(400_000)
    wide = np.zeros(keys.size, dtype=[("w0", np.int64), ("w1", np.int64)])
    wide["w1"] = keys
    for each in (keys, wide):
        assert chosen(each, 0).all()
        for halvings in (1, 3, 6):
            share = 2.0**-halvings
            # five standard errors of a share of 400,000
            assert abs(chosen(each, halvings).mean() - share) < 5 * np.sqrt(
                share * (1 - share) / keys.size
            )
            assert not (chosen(each, halvings + 1) & ~chosen(each, halvings)).any()


def test_passes_hold_no_more_than_they_may(monkeypatch):
    monkeypatch.setattr(counts, "PASS_CELLS", 10)
    dealt = batches([("a", 4), ("b", 6), ("c", 1), ("d", 50), ("e", 2)])
    assert dealt == [["a", "b"], ["c"], ["d"], ["e"]]


@pytest.mark.parametrize(
    "parameters", [None, {"implementation": "process"}, {"implementation": "multi-pert"}]
)
def test_every_block_has_a_stream_of_its_own_and_the_first_is_that_of_a_table_of_one_block(
    parameters,
):
    scheme = (
        get("scheme", "uniform")()
        if parameters is None
        else get("scheme", "uniform-multilevel")(**parameters)
    )
    x, levels, size = (np.arange(150_000) % 11).astype(np.uint8), (0.5, 0.2, 0.8), 2**16
    whole, alone = (
        scheme.blocked(x, 11, Key(3, "u", 2)),
        scheme.copies(x[:size], 11, Key(3, "u", 2)),
    )
    third = scheme.copies(x[2 * size :], 11, Key(3, "u", 2, 2))
    for number, level in enumerate(levels, start=1):
        copy = whole.ask(level)
        assert np.array_equal(copy[:size], alone.ask(level))
        assert np.array_equal(copy[2 * size :], third.ask(level))
        assert np.array_equal(copy, whole.copy(number))
        kept = [
            np.asarray(part == y)
            for part, y in zip(
                np.split(copy, [size, 2 * size]), np.split(x, [size, 2 * size]), strict=True
            )
        ]
        # records kept in two blocks are independent: four standard errors of their agreement
        p = level + (1 - level) / 11
        agree = p * p + (1 - p) ** 2
        assert abs((kept[0] == kept[1]).mean() - agree) < 4 * np.sqrt(agree * (1 - agree) / size)
    assert np.array_equal(whole.history_sizes()[:size], alone.history_sizes())
