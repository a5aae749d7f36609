"""Named streams of random numbers."""

import numpy as np

from auditor.numerics.random_streams import stream


def test_a_stream_is_known_by_its_name_alone():
    first = stream(1, "noise", "a", 3).random(4)
    stream(1, "something else").random(10)
    np.testing.assert_array_equal(stream(1, "noise", "a", 3).random(4), first)


def test_parts_of_a_name_are_not_run_together():
    names = [("a", "b"), ("ab",), ("a", 1), ("a", "1"), ("a", 1.0), (("a", 1),), ("b", "a")]
    draws = [stream(1, *name).random() for name in names]
    assert len(set(draws)) == len(draws)
