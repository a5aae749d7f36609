import json
import math

import numpy as np
import pyarrow.parquet as pq
import pytest

import auditor
from auditor.base import AuditorError
from auditor.registry.parameters import parse_path
from auditor.results.model import AuditResult
from auditor.results.records import SCHEMA_VERSION
from auditor.scenario.yaml_document import scalar

CONTRACT = [
    "sweep", "scheme", "knowledge", "attack", "coalition", "levels", "replicate", "attribute", "metric", "value", "std_error", "ci_low",
    "ci_high", "theory", "status", "reason",
]  # fmt: skip
GROUPING = ["coalition_label", "coalition_size", "level_min", "sweep.data.rows"]
SCENARIO = {
    "title": "Every kind of record", "seed": 4,
    "data": {"source": "gaussian", "covariance": [[1.0, 0.5], [0.5, 2.0]], "rows": 120},
    "schemes": [{"name": "corner-wave", "levels": [1.0, 0.25]}, {"name": "linearly-dependent", "levels": [0.5, 1.0]}],
    "knowledge": ["perfect", {"known-records": 5}], "coalitions": ["subsets"],
    "attacks": ["llse", "ndr"], "measures": ["within", "error-distribution", "seconds"],
    "sweep": {"data.rows": [60, 120]}, "replicates": 2,
    "expect": ["matches-theory", {"normalized_error": {"attack": "llse", "at-most": 1}}],
}  # fmt: skip


@pytest.fixture(scope="module")
def result():
    return auditor.run(SCENARIO)


@pytest.fixture(scope="module")
def saved(result, tmp_path_factory):
    return result.save(tmp_path_factory.mktemp("results") / "a" / "b")


@pytest.fixture(scope="module")
def document(saved):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads((saved / "results.json").read_text(encoding="utf-8"), parse_constant=refuse)


def test_the_document_holds_what_the_contract_says(document):
    assert {"schema_version", "scenario", "provenance", "expectations", "measurements"} <= set(
        document
    )
    assert document["schema_version"] == SCHEMA_VERSION == 1
    provenance = document["provenance"]
    assert {"versions", "seed", "fingerprint", "platform", "start", "duration"} <= set(provenance)
    assert {"python", "auditor", "numpy"} <= set(provenance["versions"])
    assert len(provenance["fingerprint"]) == 64
    assert provenance["duration"] >= 0


def test_a_measurement_has_the_fields_of_the_contract_in_their_order_and_their_types(document):
    for record in document["measurements"]:
        assert list(record)[: len(CONTRACT)] == CONTRACT
        assert set(record) - set(CONTRACT) == {"error_bar"}
        assert isinstance(record["sweep"], dict)
        assert record["sweep"]["data.rows"] in (60, 120)
        assert record["coalition"] == sorted(record["coalition"])
        assert record["coalition"][0] >= 1
        assert len(record["levels"]) == len(record["coalition"])
        assert record["replicate"] in (1, 2)
        assert record["attribute"] in ("x1", "x2", "*")
        assert record["status"] in ("ok", "not-applicable", "failed")
        assert (record["reason"] is None) == (record["status"] == "ok")
        assert (record["value"] is None) == (record["status"] != "ok")
        if record["std_error"] is not None:
            assert record["ci_low"] <= record["value"] <= record["ci_high"]


def test_metrics_agree_with_one_another(result):
    table = result.frame().query(
        "status == 'ok' and knowledge == 'perfect' and attribute == '*' and scheme == 'corner-wave'"
    )
    table = table.assign(
        rows=[sweep["data.rows"] for sweep in table["sweep"]],
        copies=[str(c) for c in table.coalition],
    )
    wide = table.pivot_table(
        index=["rows", "attack", "copies", "replicate"], columns="metric", values="value"
    )
    variance = {s.rows: np.mean([a.variance for a in s.attributes]) for s in result.data}
    assert np.allclose(wide.rmse**2, wide.distortion)
    assert np.allclose(
        wide.normalized_error, wide.distortion / wide.index.get_level_values("rows").map(variance)
    )
    single = wide.distortion.unstack("copies")[["(1,)", "(2,)"]].min(axis=1)
    both = wide.distortion.unstack("copies")["(1, 2)"]
    assert np.allclose(wide.collusion_gain.unstack("copies")["(1, 2)"], 1 - both / single)


def test_parquet_is_the_same_table(document, saved):
    table = pq.read_table(saved / "results.parquet")
    fields = list(document["measurements"][0])
    assert table.column_names == [*fields, *GROUPING]
    rows = table.select(fields).to_pylist()
    for row in rows:
        row["sweep"] = json.loads(row["sweep"])
    assert rows == document["measurements"]
    types = {field.name: str(field.type) for field in table.schema}
    assert types["coalition"] == "list<element: int64>"
    assert types["levels"] == "list<element: double>"
    assert types["value"] == types["theory"] == "double"


def test_saved_results_are_read_back_as_they_were(result, saved):
    for path in (saved, saved / "results.json", str(saved)):
        assert AuditResult.load(path) == result
    assert AuditResult.load(saved).to_json() == result.to_json()


def test_nan_and_infinity_are_null_in_json(result):
    odd = result.measurements[0]._replace(value=math.nan, theory=math.inf, ci_low=-math.inf)
    record = json.loads(result.model_copy(update={"measurements": [odd]}).to_json())[
        "measurements"
    ][0]
    assert (record["value"], record["theory"], record["ci_low"]) == (None, None, None)


def broken(document, path, value):
    *parents, last = parse_path(path)
    copied = json.loads(json.dumps(document))
    here = copied
    for element in parents:
        here = here[element]
    if value == "REMOVED":
        del here[last]
    else:
        here[last] = scalar(value)
    return json.dumps(copied)


BROKEN = r"""
schema_version = 3 ~ schema_version 3 is newer than this program reads (2)
schema_version = true ~ no schema_version
measurements = [[1]] ~ (measurements[0] must be a mapping)
measurements[0].value = much ~ (measurements[0].value must be a number)
measurements[3].theory = -1e200 ~ (measurements[3].theory must be a number of at most 1e+150
measurements[0].coalition = [2, 1] ~ (measurements[0].coalition must be ascending)
measurements[0].replicate = 0 ~ (measurements[0].replicate must be at least 1)
measurements[0].sweep = {a: .inf} ~ Infinity is not JSON
distributions[0].shares[0] = REMOVED ~ (distributions[0] must have one share between every two edges)
expectations[0].observed = .nan ~ NaN is not JSON; a figure that was not measured is null
expectations[0].status = maybe ~ (expectations[0].status must be 'holds', 'fails' or 'undecided')
provenance.seed = REMOVED ~ (provenance.seed is required)
scenario["\u001b[31m"] = 1e200 ~ scenario["\u001b[31m"] must be a number
"""


def test_what_are_no_results_is_refused_in_one_message(document, tmp_path):
    for line in BROKEN.strip().splitlines():
        change, _, shown = line.partition(" ~ ")
        (tmp_path / "results.json").write_text(broken(document, *change.split(" = ")))
        with pytest.raises(AuditorError) as caught:
            AuditResult.load(tmp_path)
        assert shown in str(caught.value)


def test_other_documents_are_refused(tmp_path):
    for text in [
        "[]", "", "[" * 100_000, '{"schema_version": 1, "measurements": 1' + "0" * 400 + "}",
    ]:  # fmt: skip
        (tmp_path / "results.json").write_text(text)
        with pytest.raises(AuditorError, match=r"no schema_version|cannot be read|must be a"):
            AuditResult.load(tmp_path)


def test_a_file_with_the_fields_of_the_contract_alone_is_read(document, tmp_path):
    fields = "sweep scheme knowledge attack coalition levels replicate attribute metric value std_error ci_low ci_high theory status reason"
    least = {
        key: document[key] for key in ("schema_version", "scenario", "provenance", "expectations")
    }
    least["measurements"] = [
        {field: record[field] for field in fields.split()} | {"of_a_later_version": 1}
        for record in document["measurements"]
    ]
    (tmp_path / "results.json").write_text(json.dumps(least | {"of_a_later_version": {}}))
    read = AuditResult.load(tmp_path)
    assert [record.value for record in read.measurements] == [
        record["value"] for record in document["measurements"]
    ]
    assert {record.error_bar for record in read.measurements} == {"none"}
    from auditor.results.comparison import compare_results

    assert not compare_results(read, read).worse


def test_missing_and_binary_files_are_refused(tmp_path):
    with pytest.raises(AuditorError, match=r"no such file; expected the results\.json of an audit"):
        AuditResult.load(tmp_path)
    (tmp_path / "results.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(AuditorError, match="cannot be read as JSON results"):
        AuditResult.load(tmp_path)


def test_a_file_is_replaced_whole_or_not_at_all(result, saved, monkeypatch):
    import os

    before = (saved / "results.json").read_bytes()

    def crash(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(OSError, match="disk full"):
        result.save(saved)
    monkeypatch.undo()
    assert (saved / "results.json").read_bytes() == before
    assert sorted(path.name for path in saved.iterdir()) == ["results.json", "results.parquet"]
