from __future__ import annotations

import json
import math
import struct
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import auditor
from auditor.audit.base.outcome import ReleaseAudit
from auditor.results.codec import CodecError, codec
from auditor.results.measurements import Measurements
from auditor.results.records import Measurement
from auditor.runs.tasks import carry_out, plan
from auditor.scenario.read import read_scenario

UNIFORM = {
    "seed": 2, "data": {"source": "census-like", "rows": 600, "bin": {"age": {"equal-width": 4}}},
    "schemes": [{"name": "uniform-multilevel", "levels": [0.3, 0.6, 0.45]}, {"name": "corner-wave", "levels": [0.25, 0.5, 1.0]}],
    "attacks": ["posterior", "llse"], "measures": ["error-distribution"],
    "expect": [{"no-collusion-gain": {}}],
}  # fmt: skip


def through(declared, value):
    encode, decode = codec(declared)
    return decode(json.loads(json.dumps(encode(value))))


def bits(value):
    return struct.pack("<d", value)


@given(st.floats())
def test_floats_keep_every_bit_that_a_figure_has(value):
    back = through(float, value)
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
    task = list(plan(scenario, scenario.sweep_points()))[place]
    audits = carry_out(task)
    assert audits[0].measurements
    assert audits[0].evidence.pooling
    assert audits[0].evidence.facts.keys() == ({"marginal", "drawn"} if place == 0 else set())
    assert shape(through(list[ReleaseAudit], audits)) == shape(audits)


RECORD = Measurement(
    {}, "s", "perfect", "llse", (1, 2), (0.5, 1.0), 1, "*", "rmse", 1.0, None, None, None, None,
    "ok", None, "none",
)  # fmt: skip


TABLE = [
    RECORD,
    RECORD._replace(coalition=(2,), value=None, theory=0.1 + 0.2),
    RECORD._replace(coalition=(2,), sweep={"data.rows": 1}),
]


def test_a_table_of_measurements_comes_back_as_its_records():
    back = through(Measurements, Measurements.of(TABLE))
    assert shape(list(back)) == shape(TABLE)
    assert len(through(Measurements, Measurements.of([]))) == 0


def test_a_table_that_is_none_is_refused():
    for field in Measurement._fields:
        for wrong in [
            ["text", None, None],
            [True, 1.0, 2.0],
            [[{"x": [1]}], [0, 0, 0]],
            [[None], [0, 0, 1]],
            [[None], [True, 0, 0]],
            3,
            [[None]],
        ]:
            encode, decode = codec(Measurements)
            plain = json.loads(json.dumps(encode(Measurements.of(TABLE))))
            if field == "sweep" and wrong == [[{"x": [1]}], [0, 0, 0]]:
                wrong = [[[1]], [0, 0, 0]]  # that was a sweep point
            plain[Measurement._fields.index(field)] = wrong
            with pytest.raises(CodecError):
                decode(plain)
