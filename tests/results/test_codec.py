import hashlib
import json
import math
import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

import auditor
from auditor.audit.base.request import ReleaseAudit
from auditor.base import AuditorError
from auditor.base.types import frozen
from auditor.results import measurements, model
from auditor.results.measurements import Coded, Measurements
from auditor.results.model import AuditResult
from auditor.results.records import Measurement, ReleaseEvidence
from auditor.runs.tasks import carry_out, decoded, encoded, plan
from auditor.scenario.read import read_scenario

UNIFORM = {
    "seed": 2, "data": {"source": "census-like", "rows": 600, "bin": {"age": {"equal-width": 4}}},
    "schemes": [{"name": "uniform-multilevel", "levels": [0.3, 0.6, 0.45]}, {"name": "corner-wave", "levels": [0.25, 0.5, 1.0]}],
    "attacks": ["posterior", "llse"], "measures": ["error-distribution"],
    "expect": [{"no-collusion-gain": {}}],
}  # fmt: skip


def through(audits):
    return decoded(encoded(audits, 1.5))[1]


def bits(value):
    return struct.pack("<d", value)


@given(st.floats())
def test_floats_keep_every_bit_that_a_figure_has(value):
    where = "perfect", "llse", (1, 2), "*"
    evidence = ReleaseEvidence({}, "s", "p", 2, 1, 9, paired={where: (value, 0.0, 1.0)})
    table = Measurements.of([RECORD._replace(value=value)])
    (audit,) = through([ReleaseAudit(table, [], [], evidence)])
    for back in (audit.evidence.paired[where][0], audit.measurements.columns["value"][0]):
        assert math.isnan(back) if math.isnan(value) else bits(back) == bits(value)


def shape(value):
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return "dict", [(shape(key), shape(item)) for key, item in value.items()]
    if is_dataclass(value):
        return type(value), [shape(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, (list, tuple)):
        return type(value), [shape(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        value = float(value)  # a whole number where a float is declared
    return type(value), repr(value)


@pytest.mark.parametrize("place", [0, 1])
def test_what_a_task_yields_comes_back_with_the_same_types_and_values(place):
    scenario = read_scenario(UNIFORM)
    auditor.run(scenario)
    audits = carry_out(list(plan(scenario, [None]))[place])
    assert audits[0].measurements
    assert audits[0].evidence.pooling
    assert audits[0].evidence.facts.keys() == ({"drawn"} if place == 0 else set())
    assert shape(through(audits)) == shape(audits)


RECORD = Measurement(
    {}, "s", "perfect", "llse", (1, 2), (0.5, 1.0), 1, "*", "rmse", 1.0, None, None, None, None,
    "ok", None, "none",
)  # fmt: skip


TABLE = [
    RECORD,
    RECORD._replace(coalition=(2,), value=None, theory=0.1 + 0.2),
    RECORD._replace(coalition=(2,), sweep={"data.rows": 1}),
]


def test_a_table_that_is_none_is_refused():
    audit = ReleaseAudit(Measurements.of(TABLE), [], [], ReleaseEvidence({}, "s", "p", 2, 1, 9))
    assert through([audit])[0].measurements == TABLE
    found = json.loads(encoded([audit], 1.5))
    for wrong in [3, None, [], "", "x", found[1][0]["measurements"][:-9]]:
        found[1][0]["measurements"] = wrong
        with pytest.raises(ValidationError):
            decoded(json.dumps(found).encode())


BLANK = Measurement(
    {}, "s", "perfect", "llse", (1, 2), (0.5, 1.0), 1, "*", "rmse", 1.0, 0.1, 0.8, 1.2, 1.0, "ok",
    None, "closed-form",
)  # fmt: skip
RECORDS = [
    BLANK,
    BLANK._replace(replicate=2, value=1.5, theory=None),
    BLANK._replace(sweep={"p": 1}, metric="distortion", coalition=(1,), levels=(0.5,), error_bar="none", std_error=None),
    BLANK._replace(sweep={"p": 1.0}, attack=None, knowledge=None, coalition=(), levels=()),
    BLANK._replace(sweep={"p": True}, value=None, std_error=None, ci_low=None, ci_high=None, theory=None, status="failed", reason="why"),
    BLANK._replace(replicate=3, attribute="age"),
]  # fmt: skip


@pytest.fixture(scope="module")
def result():
    return auditor.run({
        "data": "iris", "schemes": [{"name": "correlated", "levels": [0.25, 1.0]}], "attacks": ["llse"], "coalitions": ["all"],
        "sweep": {"data.rows": [50, 100]}, "replicates": 2, "seed": 1,
    })  # fmt: skip


@pytest.fixture
def long(result, tmp_path, monkeypatch):
    """Results that are too long for JSON."""
    monkeypatch.setattr(model, "MOST_IN_JSON", len(result.measurements))
    return result.save(tmp_path)


def test_a_long_table_is_in_parquet_alone_and_read_from_there(result, long):
    document = json.loads((long / "results.json").read_text())
    assert document["schema_version"] == 2
    assert set(document["measurements"]) == {"file", "sha256"}
    again = AuditResult.load(long)
    assert [repr(record) for record in again.measurements] == [
        repr(record) for record in result.measurements
    ]
    assert again.to_json() == result.to_json()


def stored(folder, table):
    """Write another table, and have the results name it."""
    document = json.loads((folder / "results.json").read_text())
    pq.write_table(table, folder / "results.parquet")
    document["measurements"]["sha256"] = hashlib.sha256(
        (folder / "results.parquet").read_bytes()
    ).hexdigest()
    (folder / "results.json").write_text(json.dumps(document))


def test_what_is_wrong_in_a_long_table_is_said(long):
    for changes, shown in [
        ({"std_error": -1.0}, "std_error must be at least 0"),
        ({"value": 1e200}, "value must be at most 1e+150"),
        ({"ci_low": 2.0, "ci_high": 1.0}, "measurements[0] has an interval that ends before it begins"),
        ({"coalition": Coded(np.array([0]), [(2, 1)])}, "coalition must be ascending"),
        ({"status": Coded(np.array([0]), ["fine"])}, "status must be 'ok', 'not-applicable' or 'failed'"),
    ]:  # fmt: skip
        columns = {
            name: value if isinstance(value, Coded) else np.array([value])
            for name, value in changes.items()
        }
        stored(long, measurements.arrow(Measurements.of(RECORDS[:1]).replaced(**columns)))
        with pytest.raises(AuditorError) as caught:
            AuditResult.load(long)
        assert str(caught.value).endswith(f": not the results of an audit ({shown})")


def test_names_that_would_steer_a_terminal_come_back_as_they_are_and_stand_escaped_in_the_file():
    names = ["<script>", "a\x1b[31m\nb\u202e", "age"]
    content = measurements.parquet(
        Measurements.of([BLANK._replace(attribute=name, reason=name) for name in names])
    )
    assert [(record.attribute, record.reason) for record in measurements.from_parquet(content)] == [
        (name, name) for name in names
    ]
    assert pq.read_table(pa.BufferReader(content))["attribute"].to_pylist() == [
        "<script>", r"a\u001b[31m\nb\u202e", "age",
    ]  # fmt: skip


def swept(text):
    table = measurements.arrow(Measurements.of(RECORDS[:1]))
    return table.set_column(0, "sweep", pa.array([text]))


def test_a_sweep_point_that_is_no_json_is_refused(long):
    for text in ["{", "[" * 100_000, "9" * 5_000, '{"a": NaN}', None]:
        stored(long, swept(text))
        with pytest.raises(AuditorError, match=r"results\.parquet: not the results of an audit"):
            AuditResult.load(long)


def test_a_table_that_cannot_be_beside_is_refused(long):
    for name in [
        "../results.parquet", "/etc/passwd", "..", "", "results.parquet\0", "x" * 5_000, None, 3,
    ]:  # fmt: skip
        document = json.loads((long / "results.json").read_text())
        document["measurements"]["file"] = name
        (long / "results.json").write_text(json.dumps(document))
        with pytest.raises(AuditorError):
            AuditResult.load(long)


def test_a_table_that_is_another_or_none_is_refused(long):
    stored(long, pa.table({"value": [1.0]}))
    with pytest.raises(AuditorError, match="not the results of an audit"):
        AuditResult.load(long)
    (long / "results.parquet").write_bytes(b"")
    with pytest.raises(AuditorError, match=r"not the table that results\.json was written with"):
        AuditResult.load(long)
    (long / "results.parquet").unlink()
    with pytest.raises(
        AuditorError, match=r"no such file; results\.json has its measurements there"
    ):
        AuditResult.load(long)
    text = (long / "results.json").read_text().replace('"results.parquet"', '"../results.parquet"')
    (long / "results.json").write_text(text)
    with pytest.raises(AuditorError, match="must be the name of a file beside it"):
        AuditResult.load(long)


def test_a_frozen_class_is_a_dataclass_from_its_first_use_in_any_thread_or_subclass():
    @frozen
    class Point:
        x: int
        y: tuple[int, ...] = ()

    named = dataclass(frozen=True)(type("Named", (Point,), {"__annotations__": {"z": int}, "z": 3}))
    assert [one.name for one in fields(named)] == ["x", "y", "z"]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(frozen(type("Other", (Point,), {})), range(64)))[5].x == 5
    assert {Point(1): 2}[Point(1)] == 2 != Point(2)
    with pytest.raises(FrozenInstanceError):
        Point(1).x = 2
