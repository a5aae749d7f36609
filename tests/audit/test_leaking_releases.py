"""Leaking releases that mix shown columns, units, blanks and tails: none holds.

Honest partners hold.
"""

from __future__ import annotations

from inspect import signature

import numpy as np
import pytest

from benchmarks.leaks import KINDS, verdict

HONEST = [kind for kind in KINDS if "leaks" in signature(kind).parameters]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_leaking_release_holds(tmp_path, kind):
    assert verdict(kind(np.random.default_rng(2**42 + 13)), tmp_path).status != "holds"


@pytest.mark.slow
@pytest.mark.parametrize("kind", HONEST, ids=lambda kind: kind.__name__)
def test_an_honest_partner_does_not_fail(tmp_path, kind):
    record = verdict(kind(np.random.default_rng(2**42 + 13), leaks=False), tmp_path)
    few, unread = "too few records to show this", "most records have a text of their own"
    assert record.status == "holds" or few in record.why or unread in record.why
    assert record.status != "fails"
