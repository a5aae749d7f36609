"""Close guesses and median errors."""

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.audit.measures.closeness import best_constant_share, least_median_error
from tests.audited import audited_files

RNG = np.random.default_rng(2**41 + 5)
START = RNG.bit_generator.state
N = 4_000


def audit(table, copies, tmp_path, exposure, tolerance=None, attacks=("ndr", "llse")):
    data = {} if tolerance is None else {"tolerance": tolerance}
    expect = [{"exposure": exposure}]
    return audited_files(tmp_path, table, copies, data, attacks=list(attacks), expect=expect)


def figures(result, attack, metric):
    frame = result.frame()
    rows = frame[(frame.attack == attack) & (frame.metric == metric) & (frame.status == "ok")]
    return rows.set_index("attribute")


def naive(x, estimate, tolerance):
    guesses = np.unique(np.concatenate([x - tolerance, x, x + tolerance]))
    best = max(np.mean(np.abs(x - guess) <= tolerance) for guess in guesses)
    return np.mean(np.abs(estimate - x) <= tolerance) - best


def test_constant_guesses_agree_with_a_search_over_all_of_them():
    for x in (RNG.lognormal(size=60), RNG.integers(0, 9, 61).astype(float)):
        reach = np.abs(RNG.normal(size=x.size)) + 0.1
        candidates = np.concatenate([x - reach, x + reach])
        shares = [np.mean(np.abs(x - guess) <= reach + 1e-12) for guess in candidates]
        assert best_constant_share(x, reach) == pytest.approx(max(shares))
        middles = (x[:, None] + x[None, :]).ravel() / 2
        half = int(np.ceil(x.size / 2)) - 1
        medians = [np.sort(np.abs(x - guess))[half] for guess in middles]
        assert least_median_error(x) == pytest.approx(min(medians))


def test_figures_of_the_copy_itself_are_the_naive_ones(tmp_path):
    table = pd.DataFrame({"pay": RNG.lognormal(3, 1, N), "age": RNG.uniform(20, 60, N)})
    table["size"] = RNG.lognormal(size=N)
    copy = table + RNG.normal(size=table.shape) * [5.0, 3.0, 0.2]
    tolerance = {"pay": 2.0, "age": {"relative": 0.05}}
    result = audit(table, [copy], tmp_path, {"close": {"at-most": 0.9}}, tolerance)
    close, ratio = (figures(result, "ndr", metric) for metric in ("close", "median_error_ratio"))
    x, y = table["pay"].to_numpy(), copy["pay"].to_numpy()
    assert close.value["pay"] == pytest.approx(naive(x, y, 2.0), abs=2e-3)
    x, y = table["size"].to_numpy(), copy["size"].to_numpy()
    tenth = 0.1 * np.subtract(*np.quantile(x, [0.75, 0.25]))
    assert close.value["size"] == pytest.approx(naive(x, y, tenth), abs=2e-3)
    x, y = table["age"].to_numpy(), copy["age"].to_numpy()
    assert close.value["age"] == pytest.approx(naive(x, y, 0.05 * x), abs=2e-3)
    expected = np.median(np.abs(y - x)) / least_median_error(x)
    assert ratio.value["age"] == pytest.approx(expected, rel=0.01)
    for frame in (close, ratio):
        assert (frame.ci_low < frame.value).all()
        assert (frame.value < frame.ci_high).all()


def test_honest_noise_on_a_skewed_table_holds(tmp_path):
    table = pd.DataFrame({"income": RNG.lognormal(9, 0.6, N), "hours": RNG.uniform(0, 60, N)})
    copy = table + RNG.normal(size=table.shape) * (2 * table.std().to_numpy())
    exposure = {"unknown": {"at-least": 0.5}, "close": {"at-most": 0.1}}
    result = audit(table, [copy], tmp_path, exposure, attacks=["ndr", "llse", "mixture-estimate"])
    assert [record.status for record in result.expectations] == ["holds"]


@pytest.mark.parametrize(
    ("tolerance", "expected"),
    [({"pay": 0}, "greater than 0"), ({"pai": 1.0}, "pay"), (3, "must be a mapping")],
)
def test_a_wrong_tolerance_is_refused_with_its_place(tmp_path, tolerance, expected):
    pd.DataFrame({"pay": RNG.normal(size=50)}).to_csv(tmp_path / "table.csv", index=False)
    asked = {
        "schema": 1,
        "title": "tolerance",
        "data": {"source": str(tmp_path / "table.csv"), "columns": ["pay"], "tolerance": tolerance},
        "schemes": [{"name": "independent", "levels": [1.0]}],
        "attacks": ["ndr"],
    }
    with pytest.raises(auditor.AuditorError, match=expected) as raised:
        auditor.run(asked)
    assert "tolerance" in str(raised.value)
