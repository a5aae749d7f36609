"""Leaking releases that mix shown columns, units, blanks and tails: none holds."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.leaks import KINDS, verdict


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_leaking_release_holds(tmp_path, kind):
    assert verdict(kind(np.random.default_rng(2**42 + 13)), tmp_path).status != "holds"
