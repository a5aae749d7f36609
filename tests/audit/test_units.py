"""Protected units of several records."""

import itertools

import numpy as np
import pandas as pd
import pytest

import auditor
from tests.audited import NO_LEARNER, audited_files
from tests.loading import load_table

RNG = np.random.default_rng(2**41 + 21)
START = RNG.bit_generator.state
N = 1_500


def scenario(folder, table, schemes, expect=(), **data):
    table.to_csv(folder / "table.csv", index=False)
    return {
        "schema": 1, "title": "units", "seed": 2**41, "data": {"source": str(folder / "table.csv"), **data}, "schemes": schemes,
        "knowledge": ["perfect"], "coalitions": ["all"], "attacks": "all" if "categorical" in data else ["llse"],
        "expect": list(expect),
    }  # fmt: skip


def audited(folder, table, noise, data, knowledge=("perfect",)):
    named = {"unit_error" if "unit" in data else "weighted_error": {"at-least": 0.4}}
    expect = [{"exposure": {"unknown": {"at-least": 0.4}, "close": {"at-most": 0.4}}}, named]
    copy = table[["pay", "age"]] + noise
    more = {"attacks": ["ndr"], "expect": expect, "knowledge": list(knowledge)}
    return audited_files(folder, table, [copy], data, **more)


@pytest.mark.slow
@pytest.mark.parametrize("members", [1, 5])
def test_an_income_of_the_household_is_averaged_over_its_members(tmp_path, members):
    household = RNG.permutation(np.arange(N) // members)
    income = RNG.normal(50, 10, N)[household]
    table = pd.DataFrame({"hid": household, "income": income, "age": RNG.normal(40, 9, N)})
    asked = scenario(
        tmp_path, table, [{"name": "corner-wave", "levels": [2.0, 8.0]}],
        [{"exposure": {"unknown": {"at-least": 0.5}}}], columns=["income", "age"], unit="hid",
    )  # fmt: skip
    result = auditor.run(asked)
    frame = result.frame()
    insider = frame[(frame.attack == "fitted-to-originals") & (frame.metric == "normalized_error")]
    left = insider.set_index("attribute").value
    alone = 2.0 / 3.0  # normal values and noise: σ²/(1 + σ²)
    pooled = 0.4 / 1.4  # the noise of five records averages out to a fifth
    if members == 5:  # the learner finds most of it from 300 households
        assert pooled - 0.03 < left["income"] < 0.45
    else:
        assert left["income"] == pytest.approx(alone, abs=0.07)
    assert left["age"] == pytest.approx(alone, abs=0.07)
    assert result.expectations[0].status == ("fails" if members == 5 else "holds")


def test_epsilon_of_a_unit_agrees_with_an_enumeration_of_outputs(tmp_path):
    retention = 0.4
    channel = retention * np.eye(3) + (1 - retention) / 3
    for members in (2, 3):
        units = list(itertools.product(range(3), repeat=members))
        chance = np.array([[np.prod(channel[x, y]) for y in map(list, units)] for x in units])
        largest = max(float(np.log(a / b).max()) for a in chance for b in chance)
        table = pd.DataFrame(
            {"hid": np.arange(90) // members, "answer": RNG.permutation(list("abc") * 30)}
        )
        result = auditor.run(
            scenario(
                tmp_path, table, [{"name": "uniform-multilevel", "levels": [retention]}],
                categorical=["answer"], unit="hid",
            )
        )  # fmt: skip
        frame = result.frame()
        (stated,) = frame[frame.metric == "epsilon"].value
        assert stated == pytest.approx(largest)


def test_a_blank_is_a_unit_of_its_own_and_dropped_records_leave_theirs(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("hid,pay,age\n7,1,2\n,2,5\n7,3,1\n,4,9\nx,,3\nx,6,8\n", encoding="utf-8")
    table = load_table(
        str(path), columns=["pay", "age"], missing="drop", rng=np.random.default_rng(0), unit="hid"
    )
    a, b, c, d, e = table.units
    assert a == c
    assert len({a, b, d, e}) == 4
    assert table.unit_size == 2


def test_shown_columns_are_codes_numbers_and_a_calendar_of_the_records_that_are_left(tmp_path):
    (tmp_path / "t.csv").write_text(
        "town,day,pay,age\nA,2024-02-29,1,7\n,2024-03-01,5,\nA,2024-03-02,,3\nB,2025-03-01,9,8\n,2025-03-08,3,1\n"
        + "".join(f"C,2025-04-{k},{k},{k}\n" for k in range(10, 22))
    )
    asked = {"columns": ["pay"], "missing": "drop", "rng": RNG, "order": "day"}
    table = load_table(str(tmp_path / "t.csv"), shown=("town", "age"), **asked)
    found = {(each.name, each.values.dtype.kind): each.values.tolist()[:4] for each in table.shown}
    assert found["town", "i"] == [1, 0, 2, 0]  # blanks are a group
    assert found["age", "f"] == [7.0, 14.0, 8.0, 1.0]  # the median for a blank
    assert found["day: weekday", "i"] == [3, 4, 5, 5]
    assert found["day: month of the year", "i"] == [1, 2, 2, 2]
    few = table.part(np.array([0, 3]), np.array([0])).shown
    assert [each.values.tolist() for each in few] == [
        each.values[[0, 3]].tolist() for each in table.shown
    ]
    other = load_table(str(tmp_path / "t.csv"), unit="town", **asked)
    np.testing.assert_array_equal(other.shown[-1].values, other.units)


def test_a_unit_or_shown_column_that_is_audited_or_lacking_is_refused(tmp_path):
    table = pd.DataFrame({"hid": np.arange(60) // 2, "pay": RNG.normal(size=60)})
    schemes = [{"name": "independent", "levels": [1.0]}]
    for data, message in (
        ({"columns": ["hid", "pay"], "unit": "hid"}, "which is audited"),
        ({"columns": ["pay"], "unit": "hidd"}, "did you mean 'hid'"),
        ({"columns": ["hid", "pay"], "shown": "hid"}, "which is audited"),
        ({"columns": ["pay"], "shown": ["hidd"]}, "did you mean 'hid'"),
    ):
        with pytest.raises(auditor.AuditorError, match=message):
            auditor.run(scenario(tmp_path, table, schemes, **data))


@pytest.mark.slow
@pytest.mark.parametrize("leaks", [True, False])
def test_units_of_one_record_count_as_much_as_large_ones(tmp_path, leaks):
    sizes = np.concatenate([np.full(6, 100), np.ones(900, dtype=int)])
    unit = np.repeat(np.arange(len(sizes)), sizes)
    table = pd.DataFrame({"hid": unit, "pay": RNG.normal(50, 10, N), "age": RNG.normal(40, 9, N)})
    noise = RNG.normal(size=(N, 2)) * 25
    if leaks:  # single persons, 60 % of the records and 99 % of the units, get less noise
        noise[sizes[unit] == 1] *= 0.3
        noise[sizes[unit] > 1] *= 3
    data = {"columns": ["pay", "age"], "unit": "hid"}
    frame = audited(tmp_path, table, noise, data, NO_LEARNER).frame()
    row = frame[(frame.metric == "unit_error") & (frame.attack == "ndr")].set_index("attribute")
    x, w = table["pay"].to_numpy(), 1 / (sizes[unit] * len(sizes))
    variance = w @ (x - w @ x) ** 2
    assert row.value["pay"] == pytest.approx(w @ noise[:, 0] ** 2 / variance, rel=1e-5)
    assert (row.value["pay"] < 1.5) == leaks


@pytest.mark.slow
@pytest.mark.parametrize("leaks", [True, False])
def test_records_weigh_as_a_column_states(tmp_path, leaks):
    weight = np.where(np.arange(N) % 10 == 0, 81, 1)  # a tenth stands for nine tenths
    table = pd.DataFrame({"pay": RNG.normal(50, 10, N), "w": weight, "age": RNG.normal(40, 9, N)})
    noise = RNG.normal(size=(N, 2)) * 12
    if leaks:
        noise[weight > 1] *= 0.02
    result = audited(tmp_path, table, noise, {"weight": "w", "tolerance": {"pay": 2.0}})
    assert {one.status for one in result.expectations} == {"fails" if leaks else "holds"}
    frame = result.frame()
    assert set(frame.attribute) <= {"*", "pay", "age"}
    row = frame[(frame.metric == "weighted_error") & (frame.attack == "ndr")].set_index("attribute")
    x, w = table["pay"].to_numpy(), weight / weight.sum()
    variance = w @ (x - w @ x) ** 2
    assert row.value["pay"] == pytest.approx(w @ noise[:, 0] ** 2 / variance, rel=1e-5)
    z = w * (noise[:, 0] ** 2 / variance - row.value["pay"])
    assert row.std_error["pay"] == pytest.approx(np.sqrt(z @ z), rel=1e-5)


@pytest.mark.parametrize(("weights", "message"), [
    (["1", "-1"], "record 2 has none"), (["0", "0"], "all weights are 0"), (["1", "many"], "at least 0"),
])  # fmt: skip
def test_weights_that_are_none_are_refused_without_a_value(tmp_path, weights, message):
    (tmp_path / "t.csv").write_text("pay,w\n1,{}\n2,{}\n".format(*weights))
    with pytest.raises(auditor.AuditorError, match=message) as caught:
        load_table(str(tmp_path / "t.csv"), rng=RNG, weight="w")
    assert "many" not in str(caught.value)


def released_per_unit(folder, members, names, per_unit=True, expect=(), **data):
    unit = np.random.default_rng(2**41 + members).permutation(np.arange(1_200) // members)
    rng = np.random.default_rng(2**41 + 8)
    table = pd.DataFrame({"hid": unit, "rent": rng.lognormal(6, 0.4, 1_200).round()[unit]})
    table["answer"], table["age"] = np.array(list("abc"))[unit % 3], rng.integers(0, 90, 1_200)
    schemes = [{"name": name, "levels": [0.4, 0.2], "per-unit": per_unit} for name in names]
    data = {"unit": "hid"} | data
    return auditor.run(scenario(folder, table, schemes, expect, **data))


KINDS = [
    pytest.param(
        ["corner-wave"],
        {"columns": ["rent"], "bounds": {"rent": [0, 4_000]}},
        marks=pytest.mark.slow,
    ),
    (["uniform-multilevel"], {"categorical": ["answer"]}),
]


@pytest.mark.parametrize(("names", "data"), KINDS)
def test_one_noise_per_unit_is_audited_as_a_release_of_units(tmp_path, names, data):
    expect = ["no-collusion-gain", *(["noise-follows-law"] * ("columns" in data))]
    result = released_per_unit(tmp_path, 4, names, True, expect, **data)
    assert "fails" not in {one.status for one in result.expectations}
    assert "300 units of 1,200 records" in result.releases[0].notes[0]
    alone = released_per_unit(tmp_path, 1, names, **data).frame()
    metric = "epsilon" if "categorical" in data else "gaussian_dp"
    of_record = alone[alone.metric == metric].value
    frame = result.frame()
    if metric == "epsilon":  # of a change of one unit, whatever its number of records
        assert frame[frame.metric == metric].value.tolist() == of_record.tolist()
    apart = released_per_unit(tmp_path, 4, names, per_unit=False, **data).frame()
    one, four = (f[f.metric == metric].value.to_numpy() for f in (frame, apart))
    times = 4 if metric == "epsilon" else 2 * np.sqrt(variances_over_units(tmp_path))
    assert four == pytest.approx(times * one)


def variances_over_units(folder):
    rent = pd.read_csv(folder / "table.csv").groupby("hid").rent
    return rent.first().var(ddof=0) / rent.transform("first").var(ddof=0)


@pytest.mark.parametrize(("names", "data"), KINDS)
def test_units_of_one_give_the_same_figures_per_unit(tmp_path, names, data):
    one, two = (released_per_unit(tmp_path, 1, names, p, **data).frame() for p in (True, False))
    pd.testing.assert_frame_equal(one[one.metric != "seconds"], two[two.metric != "seconds"])


@pytest.mark.parametrize(("names", "data", "message"), [
    (["corner-wave"], {"columns": ["rent", "age"]}, "'age' varies within units"),
    (["uniform"], {"categorical": ["age"]}, "'age' varies within units"),
    (["corner-wave"], {"columns": ["rent"], "unit": None}, "per-unit needs"),
])  # fmt: skip
def test_columns_that_vary_within_units_have_no_noise_per_unit(tmp_path, names, data, message):
    with pytest.raises(auditor.AuditorError, match=message):
        released_per_unit(tmp_path, 4, names, **data)
