"""Values are put between edges as a search puts them, whether or not the grid is fine enough for it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.numerics.sorted_edges import edges_below

numbers = st.one_of(
    st.integers(-3, 3).map(float), st.floats(-1e6, 1e6), st.floats(0.0, 1e-300), st.sampled_from([1.0, 1.0 + 1e-15, 1e300, -1e308, 1e308])
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(edges=st.lists(numbers, max_size=40), values=st.lists(numbers, min_size=1, max_size=60))
def test_it_is_a_search(edges: list[float], values: list[float]) -> None:
    here, seen = np.sort(np.array(edges, dtype=float)), np.array(values + edges)
    with np.errstate(over="ignore"):
        for side in ("left", "right"):
            np.testing.assert_array_equal(edges_below(here, seen, side), np.searchsorted(here, seen, side=side))


def test_a_column_of_normals_is_put_between_its_quantiles() -> None:
    column = np.random.default_rng(3).standard_normal(5_000)
    edges = np.sort(column)[25::25]
    np.testing.assert_array_equal(edges_below(edges, column), np.searchsorted(edges, column))
