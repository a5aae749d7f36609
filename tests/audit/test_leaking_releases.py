"""Leaking releases that mix shown columns, units, blanks and tails: none holds.

Honest partners hold.
"""

from __future__ import annotations

from inspect import signature

import numpy as np
import pandas as pd
import pytest

from benchmarks.leaks import KINDS, SHOWN, verdict
from tests.audited import audited_files, cells

HONEST = [(kind,) for kind in KINDS if "leaks" in signature(kind).parameters and kind not in SHOWN]

OTHERS = "household", "branch", "every_second", "shares", "beside_categories"
"""Kinds that test_shown_columns.py and test_fitted_categories.py plant, with honest partners."""


def of(kind, **leaks):
    return kind(np.random.default_rng(2**42 + 13), **leaks)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.__name__ not in OTHERS], ids=lambda kind: kind.__name__
)
def test_no_leaking_release_holds(tmp_path, kind):
    assert verdict(of(kind), tmp_path).status != "holds"


@pytest.mark.slow
@pytest.mark.parametrize(
    "kinds", [*HONEST, *(SHOWN[k::5] for k in range(5))], ids=lambda kinds: kinds[0].__name__
)
def test_an_honest_partner_does_not_fail(tmp_path, kinds):
    """Columns that are shown next to one table are so at once."""
    partner, *more = (of(kind, leaks=False) for kind in kinds)
    for place, other in enumerate(more):
        partner.copies[0][f"shown {place}"] = other.copies[0]["shown"]
    record = verdict(partner, tmp_path)
    few, unread = "too few records to decide", "most records have a text of their own"
    assert record.status == "holds" or few in record.why or unread in record.why
    assert record.status != "fails"


def test_no_attack_fails_on_columns_without_noise_beside_a_tail(tmp_path):
    rng = np.random.default_rng(2**40 + 5)
    table = pd.DataFrame(np.exp(rng.normal(10, 0.6, (600, 3))), columns=["pay", "age", "hours"])
    table.loc[:19, "pay"] *= 50
    noise = np.where(table["pay"].rank(pct=True) < 0.95, 3e4, 3.0) * rng.normal(size=600)
    result = audited_files(tmp_path, table, [table.assign(pay=table["pay"] + noise)], attacks="all")
    assert not [one.reason for one in cells(result, status="failed")]
    assert result.expectations[0].status == "fails"
