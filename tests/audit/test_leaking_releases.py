"""Leaking releases that mix shown columns, units, blanks and tails: none holds.

Honest partners hold.
"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.leaks import KINDS, SHOWN, verdict


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_leaking_release_holds(tmp_path, kind):
    assert verdict(kind(np.random.default_rng(2**42 + 13)), tmp_path).status != "holds"


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHOWN, ids=lambda kind: kind.__name__)
def test_a_column_that_is_made_of_other_records_pay_holds(tmp_path, kind):
    leak = kind(np.random.default_rng(2**42 + 13), leaks=False)
    record = verdict(leak, tmp_path)
    unread = "no attack could use the shown column 'shown': most records have a text of their own"
    assert record.status == "holds" or record.why.startswith(unread)
