"""Numbers of coalitions of an entry."""

import pytest

from auditor.adversary.coalitions import Coalitions

ENTRIES = [
    Coalitions("singles"), Coalitions("pairs"), Coalitions("prefixes"), Coalitions("all"), Coalitions("subsets"), Coalitions("copies", (1,)),
    Coalitions("first", count=1), Coalitions("random", count=3), Coalitions("random", count=1000),
]  # fmt: skip


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_size_is_how_many_are_named(entry):
    for copies in (1, 2, 5):
        assert entry.size(copies) == len(list(entry.expand(copies, seed=1)))
