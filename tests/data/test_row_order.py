import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.base.errors import AuditorError, DataError
from tests.loading import load_table, load_target


def loaded(path, **options):
    return load_table(str(path), rng=np.random.default_rng(0), **options)


@pytest.fixture
def days(tmp_path):
    frame = pd.DataFrame({
        "day": ["2026-01-03", "2026-01-01", "2026-01-04", "2026-01-02"],
        "x": [3.0, 1.0, 4.0, 2.0], "kind": list("cada"),
    })  # fmt: skip
    frame.to_csv(tmp_path / "days.csv", index=False)
    frame.assign(day=pd.to_datetime(frame["day"])).to_parquet(tmp_path / "days.parquet")
    return tmp_path


@pytest.mark.parametrize("name", ["days.csv", "days.parquet"])
def test_records_come_in_the_order_of_the_column_which_is_not_audited(days, name):
    table = loaded(days / name, columns=["x"], order="day")
    assert table.attributes == ("x",)
    assert table.values[:, 0].tolist() == [1.0, 2.0, 3.0, 4.0]


def test_missing_values_are_counted_and_none_is_told(tmp_path):
    pd.DataFrame({"t": [1, None, 3], "x": [1.0, 2.0, 3.5]}).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(
        DataError, match=r"1 record miss column 't', and have no place in the order"
    ) as caught:
        loaded(tmp_path / "t.csv", order="t")
    assert caught.value.path == ("order",)


@pytest.mark.parametrize(("section", "told"), [
    ({"columns": ["x"], "order": "dya"}, "data.order cannot be used: there is no column 'dya'; did you mean 'day'"),
    ({"columns": ["x"], "order": "x"}, "data.order names column 'x', which is audited"),
    ({"columns": ["x"], "oder": "day"}, "did you mean 'order'"),
])  # fmt: skip
def test_what_is_asked_for_wrongly_is_said_with_its_place(days, section, told):
    scenario = {
        "schema": 1, "data": {"source": str(days / "days.csv"), **section},
        "schemes": [{"name": "corner-wave", "levels": [1.0]}], "attacks": ["llse"],
    }  # fmt: skip
    with pytest.raises(AuditorError) as caught:
        auditor.run(scenario)
    assert told in str(caught.value)


def test_published_copies_are_in_the_files_own_order(days):
    scheme = {"name": "published", "copies": [str(days / "days.csv")]}
    data = {"source": str(days / "days.csv"), "columns": ["x"], "order": "day"}
    with pytest.raises(AuditorError, match=r"sort all files alike, and leave `data.order` out"):
        auditor.run({"schema": 1, "data": data, "schemes": [scheme], "attacks": ["ndr"]})


def test_an_autoregression_has_the_variance_and_correlations_of_its_law():
    X = load_table(
        "autoregressive",
        rows=50_000,
        parameters={"autocorrelation": 0.5, "correlation": 0.3},
        rng=np.random.default_rng(1),
    ).values
    spread = np.sqrt(2 / 50_000 * (1 + 0.25) / (1 - 0.25))
    assert np.abs(X.var(axis=0) - 1).max() < 4.5 * spread
    assert np.corrcoef(X.T)[0, 1] == pytest.approx(0.3, abs=5 * spread)
    assert np.corrcoef(X[1:, 0], X[:-1, 0])[0, 1] == pytest.approx(0.5, abs=5 * spread)


def test_a_markov_chain_stays_as_often_as_it_says_and_moves_anywhere_alike():
    scenario = {"values": 4, "stay": 0.7}
    found = load_target(
        "markov-chain", "state", rows=40_000, parameters=scenario, rng=np.random.default_rng(2)
    )
    x = found.astype(int)
    assert set(x.tolist()) == {1, 2, 3, 4}
    moves = np.zeros((4, 4))
    np.add.at(moves, (x[:-1] - 1, x[1:] - 1), 1.0)
    share = moves / moves.sum(axis=1, keepdims=True)
    expected = np.full((4, 4), 0.1) + 0.6 * np.eye(4)
    # some 10,000 records of each value
    assert np.abs(share - expected).max() < 4.5 * np.sqrt(0.7 * 0.3 / 8_000)
