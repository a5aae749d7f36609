"""Leaks of columns that are not audited, with honest partners."""

import numpy as np
import pandas as pd
import pytest

from auditor.audit import without_law
from auditor.data.columns import scan
from auditor.data.columns.kinds import readings
from auditor.data.copies import shown_columns
from auditor.data.formats.parts import stored_names
from auditor.results.records import UNSEARCHED
from auditor_reports.pages import Markdown
from tests.audited import NO_LEARNER, audited_files

RNG = np.random.default_rng(2**41 + 9)
START = RNG.bit_generator.state
N = 1_000
EXPOSURE = {"exposure": {"unknown": {"at-least": 0.5}, "close": {"at-most": 0.1}}}


def audited(folder, table, copies, data=None, scheme=None, **changes):
    who = {"coalitions": ["all"], "attacks": ["llse"], "expect": [EXPOSURE]}
    return audited_files(folder, table, copies, data, scheme, **(who | changes))


def verdict(folder, table, copies, **data):
    (record,) = audited(folder, table, copies, data).expectations
    return record


def noisy(table, columns, level=3.0):
    copy = table.copy()
    for name in columns:
        x = table[name]
        copy[name] = x + RNG.normal(size=len(x)) * np.sqrt(level) * x.std()
    return copy


def test_files_that_no_insider_searched_get_no_tick(tmp_path):
    table = pd.DataFrame(RNG.normal(size=(N, 2)), columns=["pay", "age"])
    copies = [noisy(table, table.columns)]
    assert audited_files(tmp_path, table, copies).expectations[0].status == "holds"
    (record,) = audited_files(tmp_path, table, copies, knowledge=NO_LEARNER).expectations
    assert (record.status, UNSEARCHED in record.why) == ("undecided", True)
    few = pd.DataFrame(RNG.normal(size=(N, 120)), columns=[f"x{k}" for k in range(120)])
    (record,) = audited_files(tmp_path, few, [noisy(few, few.columns)]).expectations
    assert (record.status, UNSEARCHED in record.why) == ("undecided", True)


@pytest.mark.parametrize("leaks", [True, False])
def test_the_way_in_which_numbers_are_written(tmp_path, leaks):
    table = pd.DataFrame({"pay": RNG.lognormal(7, 0.5, N)})
    zeros = (6 * (table.pay.rank(pct=True) if leaks else pd.Series(RNG.random(N)))).astype(int)
    copy = noisy(table, ["pay"]).pay.map("{:.1f}".format) + zeros.map(lambda k: "0" * k)
    record = verdict(tmp_path, table, [copy.to_frame("pay")])
    assert (record.status == "fails") == leaks


@pytest.mark.parametrize("leaks", [True, False])
def test_a_leak_in_a_large_file_is_searched_in_stretches(tmp_path, monkeypatch, leaks):
    monkeypatch.setattr(scan, "HELD_BYTES", 0)
    monkeypatch.setattr(without_law, "STRETCH", 840)
    monkeypatch.setattr(without_law, "STRETCHES", 4)
    table = pd.DataFrame(RNG.normal(size=(9 * 840, 2)), columns=["pay", "age"])
    copy = noisy(table, table.columns)
    copy.loc[::5, "pay"] = 3.0 * (table.pay if leaks else RNG.normal(size=len(table)))[::5] + 11.0
    (record,) = audited_files(tmp_path, table, [copy], expect=[EXPOSURE]).expectations
    assert record.status == ("fails" if leaks else "holds")


@pytest.mark.parametrize("written", ["number", "beginning of a text", "three codes of four"])
@pytest.mark.parametrize("members", [5, 1])
def test_the_income_of_a_household_whose_number_is_shown(tmp_path, members, written):
    rows = 1_500
    household = RNG.permutation(np.arange(rows) // members)
    income, some = RNG.lognormal(9, 0.5, rows)[household], RNG.integers(10, 99, rows)
    shown = {
        "number": [household], "beginning of a text": [(household + 1e4) * 100 + some],
        "three codes of four": [household % 11, some, household // 11 % 11, household // 121],
    }[written]  # fmt: skip
    codes = {f"c{k}": np.char.add("c", v.astype(int).astype(str)) for k, v in enumerate(shown)}
    table = pd.DataFrame({"income": income, "age": RNG.uniform(0, 90, rows)} | codes)
    copy = noisy(table, ["income", "age"])
    record = verdict(tmp_path, table, [copy], columns=["income", "age"])
    assert record.status == ("fails" if members > 1 else "holds")


@pytest.mark.parametrize(("name", "disguise"), [("", np.positive), ("masked", np.log)])
@pytest.mark.slow_after_first
def test_a_column_in_clear_under_another_name_and_unit(tmp_path, name, disguise):
    """Multiples, and two parts of a sum, are kinds of ``benchmarks.leaks``."""
    table = pd.DataFrame({"pay": RNG.lognormal(7, 0.5, N).round(2), "age": RNG.uniform(18, 90, N)})
    copy = noisy(table, ["age"]).drop(columns="pay").assign(**{name: disguise(table["pay"])})
    record = verdict(tmp_path, table, [copy])
    assert record.status == "fails"
    assert "pay" in record.why


@pytest.mark.parametrize("leaks", [True, False])
def test_a_column_of_numbers_beside_audited_categories(tmp_path, leaks):
    region = RNG.integers(0, 8, N)
    named = np.char.add("r", region.astype(str))
    pay, age = RNG.lognormal(7, 0.5, N).round(), RNG.normal(size=N)
    table = pd.DataFrame({"region": named, "pay": pay, "age": age})
    copy = (table if leaks else noisy(table, ["pay"])).assign(age=RNG.permutation(age))
    replaced = RNG.random(N) > 0.2
    copy = copy.assign(region=np.where(replaced, RNG.permutation(copy["region"]), copy["region"]))
    data = {"columns": ["pay", "age"], "categorical": ["region"], "bin": {"age": {"quantile": 2}}}
    result = audited(tmp_path, table, [copy], data, attacks="all")
    (record,), names = result.expectations, ["attack", "coalition_label", "attribute", "metric"]
    assert not result.frame().duplicated(names).any()  # numbers and categories stay apart
    assert ("share unknown 0 " in record.why and "pay" in record.why) == leaks
    assert (record.status == "fails") == leaks


@pytest.mark.parametrize("mirrored", [False, True])
def test_columns_and_records_of_others_are_joined_by_the_key(tmp_path, mirrored):
    table = pd.DataFrame({"id": np.arange(N), "pay": RNG.lognormal(7, 0.5, N)})
    copy = noisy(table, ["pay"])
    others = (2.0 * table - copy).assign(id=RNG.permutation(N) + N)
    both = pd.concat([copy, others]).sort_index(kind="stable")
    shuffled = copy.assign(code=table["pay"].rank()).sample(frac=0.9, random_state=1)
    files = [both if mirrored else shuffled]
    record = verdict(tmp_path, table, files, columns=["pay"], key="id")
    assert record.status == "fails"
    assert "pay" in record.why


@pytest.mark.parametrize("leaks", [True, False])
def test_a_grade_gives_close_guesses_in_spite_of_a_long_tail(tmp_path, leaks):
    grade = RNG.integers(0, 12, N)
    base = 1_000 * (1.3**grade if leaks else RNG.lognormal(1, 0.4, N)) + RNG.normal(0, 40, N)
    pay = np.where(RNG.random(N) < 0.04, 1e6 * RNG.pareto(1.5, N), base)
    table = pd.DataFrame({"grade": pd.Series(grade).map("E{}".format), "pay": pay})
    copy = noisy(table, ["pay"])
    expect = [{"exposure": {"close": {"at-most": 0.1}}}]
    result = audited(tmp_path, table, [copy], {"columns": ["pay"]}, expect=expect)
    assert result.expectations[0].status == ("fails" if leaks else "holds")
    frame = result.frame()
    insider = frame[(frame.attack == "fitted-to-originals") & (frame.attribute == "pay")]
    figures = insider.set_index("metric").value
    assert (figures["close"] > 0.5) == leaks
    assert (figures["median_error_ratio"] < 0.2) == leaks


@pytest.mark.parametrize("leaks", [True, False])
def test_columns_shown_beside_a_stated_law_are_used(tmp_path, leaks):
    table = pd.DataFrame(RNG.normal(50, 9, (N, 2)), columns=["pay", "age"])
    place = table["pay"].rank() if leaks else RNG.permutation(N)
    copy = noisy(table, ["pay", "age"]).assign(place=place)
    law = {"law": {"scheme": "independent"}, "levels": [3]}
    found = audited(tmp_path, table, [copy], scheme=law).expectations[0].status
    assert found == ("fails" if leaks else "holds")


@pytest.mark.parametrize(("text", "knowledge", "why"), [
    (lambda k: f"P{k:05}", "perfect", ""),
    (lambda k: np.base_repr(k * 7919**2 % 36**6, 36), "perfect", "have a text of their own"),
    (lambda k: f"P{k:05}", {"estimated": {"rows": 400}}, "needs `perfect` knowledge"),
])  # fmt: skip
def test_a_tick_needs_an_attack_that_could_use_each_shown_column(tmp_path, text, knowledge, why):
    table = pd.DataFrame(RNG.normal(50, 9, (N, 2)), columns=["pay", "age"])
    copy = noisy(table, ["pay", "age"]).assign(name=[text(k) for k in RNG.permutation(N)], unit="m")
    result = audited(tmp_path, table, [copy], knowledge=[knowledge])
    record = result.expectations[0]
    assert record.status == ("undecided" if why else "holds")
    assert ("no attack could use the shown column 'name'" in record.why) == bool(why)
    assert why in record.why
    page = Markdown().render([result])
    assert ("a shown column was not used" in page) == ("Leave that column out" in page) == bool(why)


def test_columns_that_only_parquet_files_hold_are_read(tmp_path):
    path, k = tmp_path / "copy.parquet", RNG.permutation(N)
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(k, "ns")
    blob = [int(value).to_bytes(2, "big") for value in k]
    pd.DataFrame({"day": day, "blob": blob}, index=k).to_parquet(path)
    assert stored_names(path) == ["day", "blob", "__index_level_0__"]
    for name in stored_names(path):
        found = [one.values for one in shown_columns([(path, np.arange(N), [name])])]
        numbers = [v for v in found if v.dtype.kind == "f" and v.std() > 0]
        assert max(np.corrcoef(v, k)[0, 1] for v in numbers) > 0.99


def test_blanks_of_numbers_are_a_code():
    cells = pd.Series(np.where(np.arange(N) % 3 == 0, np.nan, RNG.normal(size=N)))
    np.testing.assert_array_equal(dict(readings(cells))["blank"], cells.isna())
