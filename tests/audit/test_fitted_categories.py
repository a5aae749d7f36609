"""An insider's trees on categories: each leak that columns, copies and rows show, and its partner."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import yaml

import auditor
from auditor.scenario.draft import drafted
from tests.audited import audited_files

RNG = np.random.default_rng(2**41 + 51)
START = RNG.bit_generator.state
N = 3_000


def audit(folder, table, copies, categorical, **data):
    table, *copies = ("v" + each.astype(str) for each in (table, *copies))
    scheme = {"name": "published-categories", "aligned": True}
    data |= {"categorical": categorical}
    result = audited_files(folder, table, copies, data, scheme, coalitions=["all"], attacks="all")
    frame = result.frame()
    frame = frame[(frame.metric == "normalized_error") & (frame.attack == "fitted-to-originals")]
    return result.expectations[0], frame.set_index("attribute").value


def replaced(values, size, retention):
    kept = RNG.random(len(values)) < retention
    return np.where(kept, values, RNG.integers(0, size, len(values)))


@pytest.mark.parametrize("leaks", [True, False])
@pytest.mark.parametrize("key", [None, "id"])
def test_a_category_that_a_column_in_clear_or_the_order_of_rows_determines(tmp_path, leaks, key):
    branch = RNG.integers(0, 15, N)
    region = branch // 3 if leaks else RNG.integers(0, 5, N)
    table = pd.DataFrame({"region": region, "branch": branch})
    copy = table.assign(region=replaced(region, 5, 0.3))
    if key:
        table, copy = (each.drop(columns="branch").assign(id=range(N)) for each in (table, copy))
        copy = copy.iloc[branch.argsort()]
    record, left = audit(tmp_path, table, [copy], ["region"], key=key)
    assert (record.status, left["*"] < 0.05) == ("fails" if leaks else "holds", leaks)


@pytest.mark.parametrize("leaks", [True, False])
def test_a_category_that_a_household_of_four_shares(tmp_path, leaks):
    """Bayes' rule leaves 0.52 of the variance with the household, and 0.84 without."""
    house = RNG.permutation(np.arange(N) // 4)
    table = pd.DataFrame({"region": RNG.integers(0, 5, N)[house if leaks else slice(None)]})
    copy = table.apply(lambda column: replaced(column, 5, 0.4)).assign(house=house)
    _, left = audit(tmp_path, table.assign(house=house), [copy], ["region"])
    assert (left["*"] < 0.6) == leaks


@pytest.mark.parametrize("leaks", [True, False])
def test_columns_with_one_latent_class_tell_of_each_other(tmp_path, leaks):
    hidden = RNG.integers(0, 3, N)
    share = 0.9 if leaks else 0.0
    columns = [np.where(RNG.random(N) < share, hidden, RNG.integers(0, 3, N)) for _ in "abcde"]
    table = pd.DataFrame(dict(zip("abcde", columns, strict=True)))
    copy = table.apply(lambda column: replaced(column, 3, 0.5))
    _, left = audit(tmp_path, table, [copy], list("ab"))
    alone = 0.75  # one column: 1 − p² of the variance
    assert left["a"] == pytest.approx(alone, abs=0.05) if not leaks else left["a"] < 0.68


@pytest.mark.parametrize("leaks", [True, False])
def test_values_kept_in_every_second_row(tmp_path, leaks):
    x = RNG.integers(0, 4, N)
    kept = np.arange(N) % 2 == 0 if leaks else RNG.random(N) < 0.2
    table = pd.DataFrame({"answer": x})
    copy = pd.DataFrame({"answer": np.where(kept, x, RNG.integers(0, 4, N))})
    record, left = audit(tmp_path, table, [copy], ["answer"])
    assert (record.status == "holds") != leaks
    assert (left["*"] < 0.55) == leaks


@pytest.mark.parametrize("leaks", [True, False])
def test_a_value_that_is_the_sum_of_three_copies(tmp_path, leaks):
    x = RNG.integers(0, 5, N)
    parts = RNG.integers(0, 5, (3, N))
    if leaks:
        parts[2] = (x - parts[0] - parts[1]) % 5
    table = pd.DataFrame({"answer": x})
    copies = [pd.DataFrame({"answer": part}) for part in parts]
    record, left = audit(tmp_path, table, copies, ["answer"])
    assert (record.status, left["*"] < 0.05) == ("fails" if leaks else "holds", leaks)


@pytest.mark.parametrize("by", ["column", "row number", "moved", None])
def test_a_value_moved_or_shifted_by_another_column_or_by_the_row_number(tmp_path, by):
    """A draft judges each column: together they stay unknown."""
    x, other = RNG.integers(0, 5, (2, N))
    shift = np.arange(N) % 7 if by == "row number" else RNG.integers(0, 5, N)
    shown = shift if by == "column" else replaced(other, 5, 0.3)
    original, copy = (str(tmp_path / name) for name in ("original.csv", "copy.csv"))
    shifted = x[np.arange(N) ^ 1] if by == "moved" else (x + shift) % 5
    for file, *columns in ((original, x, other), (copy, shifted, shown)):
        pd.DataFrame(columns).T.map("v{}".format).to_csv(file, index=False)
    result = auditor.run(yaml.safe_load(drafted(tmp_path / "audit.yaml", original, [copy])))
    assert [one.status for one in result.expectations] == ["fails" if by else "holds"]


@pytest.mark.parametrize(("leaks", "knowledge", "status"), [
    (True, "perfect", "fails"), (False, "perfect", "holds"),
    (False, {"estimated": {"rows": 400}}, "undecided"),
])  # fmt: skip
def test_drawn_copies_beside_a_shown_column(leaks, knowledge, status):
    """Without ``perfect`` knowledge no attack uses the column."""
    x = RNG.integers(0, 4, 1500)
    zone = (x if leaks else RNG.permutation(x)) + 4 * RNG.integers(0, 3, len(x))
    values = {"region": x.tolist(), "zone": zone.tolist()}
    (record,) = auditor.run({
        "data": {"source": "inline", "values": values, "categorical": ["region"], "shown": ["zone"]},
        "schemes": [{"name": "uniform-multilevel", "levels": [0.3]}], "knowledge": [knowledge],
        "attacks": ["posterior"], "expect": [{"exposure": {"unknown": {"at-least": 0.5}}}],
    }).expectations  # fmt: skip
    assert record.status == status
    assert ("'zone'" in record.why) == (status == "undecided")
