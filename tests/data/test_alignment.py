"""Alignment and order of rows; renamed columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.base import AuditorError, DataError
from auditor.data.alignment import misaligned
from auditor.data.describe import other_name
from tests.loading import load_table, load_target

NAMES = ("a", "b", "c")
ROWS = 1_000


def table(rng, rows=ROWS):
    age = rng.uniform(18, 90, rows)
    return np.column_stack([age, np.exp(rng.normal(size=rows)) * age * 500, rng.poisson(1.3, rows)])


def noisy(rng, X, variance=0.5):
    return X + rng.normal(size=X.shape) * X.std(axis=0) * np.sqrt(variance)


def lost(X):
    """Leave out the record in the middle and put a strange one at the end."""
    return np.vstack([X[: ROWS // 2], X[ROWS // 2 + 1 :], X[:1]])


DISORDER = {
    "shuffled": (lambda rng, X: rng.permutation(X), "hold the original's values in another order"),
    "shuffled and noisy": (lambda rng, X: rng.permutation(noisy(rng, X)), "another order"),
    "sorted by another column": (lambda rng, X: (Y := noisy(rng, X))[Y[:, 2].argsort()], "another order"),
    "one row down": (lambda rng, X: np.roll(noisy(rng, X), 1, axis=0), "are moved: row 2 of the copy is row 1 of the original"),
    "three rows up": (lambda rng, X: np.roll(noisy(rng, X), -3, axis=0), "are moved: row 1 of the copy is row 4 of the original"),
    "columns swapped": (lambda rng, X: noisy(rng, X)[:, [1, 0, 2]], "'a' holds 'b', 'b' holds 'a'"),
    "another table": (lambda rng, X: rng.normal(size=X.shape) * 40 + 7, "are not the original's records"),
    "other records of the same kind": (lambda rng, X: table(rng), "another order than the original's, or are other records"),
    "one record lost": (lambda rng, X: noisy(rng, lost(X)), "of the table on they differ"),
}  # fmt: skip


@pytest.mark.parametrize("what", DISORDER)
def test_disorder_is_found_and_named(what):
    rng = np.random.default_rng(14)
    X = table(rng)
    make, cause = DISORDER[what]
    found = misaligned(X, make(rng, X), NAMES)
    assert found is not None
    assert found.certain
    assert cause in found.cause


HONEST = {
    "as they are": lambda rng, X: X.copy(), "noise": noisy,
    "loud noise": lambda rng, X: noisy(rng, X, 25.0),
    "heavy-tailed noise": lambda rng, X: X + rng.standard_t(2, size=X.shape) * X.std(axis=0),
    "multiplied": lambda rng, X: X * rng.lognormal(size=X.shape),
    "rounded": lambda rng, X: np.round(X / X.std(axis=0)) * X.std(axis=0),
    "nearly all one value": lambda rng, X: np.maximum(X, np.quantile(X, 0.99, axis=0)),
    "top-coded": lambda rng, X: np.minimum(X, np.quantile(X, 0.5, axis=0)),
    "suppressed": lambda rng, X: np.zeros_like(X),
    "one column suppressed": lambda rng, X: X * [0, 1, 1], "other units": lambda rng, X: X * 7 + 3,
    "rotated": lambda rng, X: X @ np.linalg.qr(rng.normal(size=(3, 3)))[0],
    "a third retained": lambda rng, X: np.where(rng.random(X.shape) < 0.3, X, rng.permutation(X)),
    "one column swapped among records": lambda rng, X: np.column_stack([X[:, :2], rng.permutation(X[:, 2])]),
}  # fmt: skip


@pytest.mark.parametrize("what", HONEST)
def test_honest_copies_pass(what):
    for order in (lambda X: X, lambda X: X[X[:, 0].argsort()]):
        rng = np.random.default_rng(14)
        X = order(table(rng))
        assert misaligned(X, HONEST[what](rng, X), NAMES) is None


def test_noise_that_hides_the_order_is_not_blamed():
    rng = np.random.default_rng(14)
    X = table(rng)
    for Y in (noisy(rng, X, 1e6), rng.permutation(noisy(rng, X, 1e6))):
        found = misaligned(X, Y, NAMES)
        assert found is not None
        assert not found.certain


def test_a_few_records_are_not_enough():
    X = np.random.default_rng(14).normal(size=(9, 2))
    assert misaligned(X, X[::-1], NAMES[:2]).certain is False
    assert misaligned(X[:3], X[2::-1], NAMES[:2]) is None


@pytest.mark.slow
def test_honest_noise_is_refused_less_often_than_it_is_said():
    rng = np.random.default_rng(14)
    for draw in range(600):
        X = np.exp(rng.normal(size=(80, 2))) if draw % 2 else rng.normal(size=(80, 2))
        found = misaligned(X, noisy(rng, X, 10 ** rng.uniform(-2, 3)), NAMES[:2])
        assert found is None or not found.certain


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
        "autoregressive", rows=50_000, parameters={"autocorrelation": 0.5, "correlation": 0.3},
        rng=np.random.default_rng(1),
    ).values  # fmt: skip
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


RNG = np.random.default_rng(2**40 + 17)
TABLE = pd.DataFrame({
    "age": RNG.integers(18, 90, 500), "pay": RNG.lognormal(7, 0.5, 500).round(2), "sex": RNG.choice(["f", "m"], 500),
})  # fmt: skip
NOISY = TABLE.age + RNG.normal(0, 90, 500)


@pytest.mark.parametrize(
    ("column", "shown", "found"),
    [
        ("pay", TABLE.pay / 1000, True), ("pay", 3 - 2.5 * TABLE.pay, True),
        ("pay", np.log(TABLE.pay), True), ("pay", RNG.permutation(TABLE.pay), False),
        ("sex", TABLE.sex.map({"f": 2, "m": 1}), True),
        ("sex", TABLE.sex.map({"f": "x", "m": "y"}), True),
        ("sex", pd.Series(RNG.choice(["f", "m"], 500)), False),
    ],
)  # fmt: skip
def test_a_column_is_found_in_other_units_and_codes(column, shown, found):
    frame = pd.DataFrame({"z": RNG.normal(size=500), "other": shown})
    assert other_name(TABLE[column], frame) == ("other" if found else None)


@pytest.mark.parametrize(
    ("copy", "column", "rebuilt"),
    [
        ({"age": NOISY, "k_pay": TABLE.pay / 1000}, "pay", True),
        ({"age": NOISY, "k_pay": RNG.permutation(TABLE.pay)}, None, False),
        pytest.param({"age": NOISY, "g": TABLE.sex.map({"f": 2, "m": 1})}, "sex", True, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_a_drafted_audit_looks_for_lacking_columns(copy, column, rebuilt, here, command):
    TABLE.to_csv("t.csv", index=False)
    pd.DataFrame(copy).to_csv("c.csv", index=False)
    assert command("new", "s.yaml", "--data", "t.csv", "--copies", "c.csv")[0] == 0
    if not rebuilt:
        assert "'pay' is not in every copy" in (here / "s.yaml").read_text()
        return
    frame = auditor.run("s.yaml").frame()
    if column == "sex":
        assert frame[frame.metric == "accuracy"].value.max() > 0.99
    else:
        errors = frame[(frame.metric == "normalized_error") & (frame.attribute == column)]
        assert errors.value.min() < 0.01
