import json
import math

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import auditor
from auditor import registry
from auditor.audit.numeric.release import open_release
from auditor.results.comparison import compare_results
from auditor.results.disclosure import FEWEST_RECORDS, half_step
from auditor.results.measurements import NUMBERS
from auditor.results.model import AuditResult
from auditor.runs.tables import table_of
from auditor.scenario.read import read_scenario
from auditor.schemes.base.scheme import table_moments
from auditor_reports.charts import inflated

FORMATS = ("table", "markdown", "latex", "json", "csv", "junit", "sarif", "html", "notebook")
SCENARIO = {
    "title": "Private", "seed": 7,
    "schemes": [{"name": "corner-wave", "levels": [0.5, 1.0]}, {"name": "independent", "levels": [0.5], "noise": {"variance": 0.3}}],
    "coalitions": ["subsets"], "attacks": ["ndr", "llse"],
    "measures": ["error-distribution", {"within": 0.1}, "entropy-privacy", "error-quantiles", "interval-privacy"],
    "utility": {},
    "expect": ["matches-theory", {"distortion": {"at-least": 1e-9}}, {"normalized_error": {"at-least": 0.0}}],
}  # fmt: skip


def audit(folder, records, names=("pay", "tax"), **changes):
    file = folder / "people.csv"
    pd.DataFrame(records, columns=list(names)).to_csv(file, index=False)
    return auditor.run(
        SCENARIO | {"data": {"source": str(file), "disclosure": "figures"}} | changes
    )


def people(rows, seed=5):
    return np.random.default_rng(seed).normal([4000.0, 0.3], [900.0, 0.1], (rows, 2))


def in_full(result):
    """The results as they were written before anything was rounded."""
    return json.loads(b"".join(result._json()).decode())


def written(result):
    return json.loads(result.to_json())


def variances(document, column):
    name = document["data"][0]["attributes"][column]["name"]
    found = [document["data"][0]["attributes"][column]["variance"]]
    cells = {}
    for r in document["measurements"]:
        if r["attribute"] == name and r["value"] is not None:
            cells.setdefault((r["scheme"], r["attack"], str(r["coalition"])), {})[r["metric"]] = r
    for cell in cells.values():
        if "distortion" in cell:
            for field in ("value", "theory", "std_error"):
                found.append(cell["distortion"][field] / cell["normalized_error"][field])
            found.append(cell["rmse"]["value"] ** 2 / cell["normalized_error"]["value"])
    for scheme, attack, coalition in cells:
        cell = cells[scheme, attack, coalition]
        if (attack, coalition) == ("ndr", "[1]") and scheme == "corner-wave":
            found.append(cell["distortion"]["theory"] / cell["distortion"]["levels"][0])
        if (attack, coalition) == ("ndr", "[1]") and scheme == "independent":
            found.append(0.3 * cell["distortion"]["levels"][0] / cell["normalized_error"]["theory"])
    found += [
        (d["edges"][-1] / 3.0) ** 2 for d in document["distributions"] if d["attribute"] == name
    ]
    return [each for each in found if each is not None and math.isfinite(each)]


def test_two_records_were_their_mean_and_standard_deviation_apart_and_are_withheld(tmp_path):
    records = people(2)
    result = audit(tmp_path, records)
    full, output = in_full(result), written(result)
    for column in (0, 1):
        truth = np.sort(records[:, column])
        mean = full["data"][0]["attributes"][column]["mean"]
        for variance in variances(full, column):
            assert np.allclose(mean + math.sqrt(variance) * np.array([-1, 1]), truth, rtol=1e-6)
        assert variances(output, column) == []
        assert output["data"][0]["attributes"][column]["mean"] is None
    assert output["data"][0]["correlation"] == output["distributions"] == []
    figures = [r for r in output["measurements"] if r["metric"] != "seconds"]
    assert all(
        r[field] is None
        for r in figures
        for field in ("value", "std_error", "ci_low", "ci_high", "theory")
    )
    assert {r["status"] for r in figures} == {"not-applicable"}
    assert any("fewer than 10 records; it has 2" in r["reason"] for r in figures)
    assert [e["status"] for e in output["expectations"]] == [e.status for e in result.expectations]
    assert {e["observed"] for e in output["expectations"]} == {None}
    assert [e["bound"] for e in output["expectations"]] == [None, 1e-9, 0.0]
    assert result.disclosed().exit_status == result.exit_status


@pytest.mark.parametrize("level", ["rounded", "moments"])
def test_every_number_of_a_private_table_is_within_its_error_and_none_is_in_full(tmp_path, level):
    data = {"source": str(tmp_path / "people.csv"), "disclosure": level}
    result = audit(tmp_path, people(200), data=data)
    output = result.disclosed()
    assert output.data[0].disclosure == "rounded"
    moves = []
    for exact, after in zip(result.measurements, output.measurements, strict=True):
        for field in NUMBERS:
            before, now = getattr(exact, field), getattr(after, field)
            if before and exact.metric != "seconds":
                sizes = [abs(before), abs(exact.value or 0.0)]
                error = max([
                    exact.std_error or 0.0,
                    *(size * math.sqrt(2 / 200) + math.sqrt(abs(size * (1 - size)) / 200) for size in sizes),
                ])  # fmt: skip
                moves.append(abs(now - before) / error)
                assert len(f"{now:.12g}".strip("-").replace(".", "").split("e")[0].strip("0")) <= 4
        if after.value is not None and after.std_error is not None:
            assert after.ci_low <= after.value <= after.ci_high
    assert len(moves) > 500
    assert 0.26 < max(moves) <= 0.8  # rounding alone moves a figure by a quarter of its error
    for before, after in zip(result.data[0].attributes, output.data[0].attributes, strict=True):
        assert 0 < abs(after.mean - before.mean) < 0.26 * math.sqrt(before.variance / 200)


def test_records_are_not_the_solution_of_the_figures(tmp_path):
    rows, copies = 14, 40
    records = people(rows)[:, :1]
    schemes = [{"name": "correlated", "levels": np.linspace(0.3, 1.5, copies).round(4).tolist()}]
    plain = {
        "schemes": schemes, "attacks": ["llse"], "coalitions": ["singles"], "measures": [],
        "expect": [],
    }  # fmt: skip
    result = audit(tmp_path, records, ("pay",), **plain)

    def noise(source):
        scenario = read_scenario(SCENARIO | plain | {"data": source})
        table, moments = table_of(scenario)
        release = open_release(
            scenario, table, table_moments(table), scenario.schemes[0],
            tuple(schemes[0]["levels"]), 1,
        )  # fmt: skip
        ((_, x, drawn),) = ((k, x.copy(), [y.copy() for y in ys]) for k, x, ys in release.blocks())
        std = np.sqrt(moments.covariance[0, 0] * np.array(schemes[0]["levels"]))
        return np.array([(y - x)[:, 0] for y in drawn]) / std[:, None]

    def solved(document, g):
        value = {
            r["coalition"][0]: r["value"]
            for r in document["measurements"]
            if (r["metric"], r["attribute"]) == ("normalized_error", "pay")
        }
        level = np.array(schemes[0]["levels"])
        w = 1 / (1 + level)
        y = np.array([value[copy] for copy in range(1, copies + 1)])
        left = (1 - w) ** 2 + w**2 * level * (g**2).mean(axis=1) - y
        u, *_ = np.linalg.lstsq(
            g * (2 * w * (1 - w) * np.sqrt(level))[:, None] / rows, left, rcond=None
        )
        return u

    truth = (records[:, 0] - records.mean()) / records.std()
    own = noise(str(tmp_path / "people.csv"))
    # who has the table has the noise: the equations are right
    assert np.abs(solved(in_full(result), own) - truth).max() < 1e-6
    assert np.abs(solved(written(result), own) - truth).max() > 0.05
    public = noise({"source": "inline", "values": {"pay": list(range(rows))}})
    assert np.abs(solved(in_full(result), public) - truth).max() > 1.0
    assert abs(np.corrcoef(public.ravel(), own.ravel())[0, 1]) < 5 / math.sqrt(public.size)


def text_of(document):
    return inflated_parts(document) if "application/x-deflate" in document else document


def inflated_parts(page):
    import re

    return re.sub(
        r'<script type="application/x-deflate"[^>]*>[^<]*</script>',
        lambda found: inflated(found.group()),
        page,
    )


def holds(text, secret):
    whole = f"{abs(secret):.9f}".replace(".", "").lstrip("0")
    digits = f"{abs(secret):.9f}"
    cut = digits[: len(digits) - len(whole) + 7]
    return cut in text or f"{abs(secret):.{max(0, len(cut.partition('.')[2]))}f}" in text


@pytest.mark.parametrize("rows", [2, FEWEST_RECORDS, 40])
@pytest.mark.slow_after_first
def test_no_format_holds_a_record_or_a_moment_of_a_short_file(tmp_path, rows):
    records = people(rows)
    result = audit(tmp_path, records)
    secrets = [*records.ravel(), *records.mean(axis=0), *records.var(axis=0), *records.std(axis=0)]
    secrets += [] if rows == 2 else [np.corrcoef(records.T)[0, 1]]  # of two records it is 1 or -1
    shown = {form: text_of(registry.get("renderer", form)().render([result])) for form in FORMATS}
    folder = result.save(tmp_path / "out")
    other = audit(tmp_path, people(rows, seed=6))
    compared = compare_results(AuditResult.load(folder), other.disclosed())
    shown |= {
        f"compare {form}": registry.get("renderer", form)().render_comparison(compared)
        for form in ("table", "markdown", "json", "html")
    }
    shown |= {
        "frame": pq.read_table(folder / "results.parquet").to_pandas().to_csv(),
        "results.json": (folder / "results.json").read_text(),
    }
    shown |= {
        "notebook repr": result._repr_html_(),
        "verdicts": str(result.disclosed().expectations),
    }
    assert any(output.strip() for output in shown.values())
    for form, text in shown.items():
        assert [secret for secret in secrets if holds(text, secret)] == [], form
    assert all(
        holds(b"".join(result._json()).decode(), secret)
        for secret in (*records.mean(axis=0), *records.var(axis=0))
        if secret > 1e-2
    )


def test_the_command_writes_and_prints_what_is_disclosed(here, command):
    records = people(3)
    pd.DataFrame(records, columns=["pay", "tax"]).to_csv("people.csv", index=False)
    (here / "short.yaml").write_text(json.dumps(SCENARIO | {"data": "people.csv"}))
    printed = command("run", "short.yaml", "--format", "markdown")[1]
    assert "figures of tables with too few records are withheld" in printed
    folder = here / "audit" / "short"
    texts = [
        printed,
        (folder / "results.json").read_text(),
        text_of((folder / "report.html").read_text()),
    ]
    texts.append(pq.read_table(folder / "results.parquet").to_pandas().to_csv())
    secrets = [*records.ravel(), *records.mean(axis=0), *records.var(axis=0), *records.std(axis=0)]
    assert [secret for secret in secrets for text in texts if holds(text, secret)] == []


def test_a_table_in_the_scenario_and_a_source_that_is_public_are_told_in_full():
    values = {"pay": [3.0, 5.0], "tax": [1.0, 4.0]}
    short = auditor.run(SCENARIO | {"data": {"source": "inline", "values": values}})
    assert short.disclosed() is short
    assert written(short)["data"][0]["attributes"][0]["variance"] == 1.0
    assert written(short)["data"][0]["disclosure"] == "public"


def test_what_is_disclosed_is_disclosed_once_and_read_back(tmp_path):
    result = audit(tmp_path, people(40))
    output = result.disclosed()
    assert output != result
    assert output.disclosed() is output
    assert AuditResult.load(result.save(tmp_path / "a")) == output
    output.save(tmp_path / "b")
    for name in ("results.json", "results.parquet"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_rounding_by_hand():
    for value, error, wanted in [
        (3.14159, 0.1, 3.15), (-3.14159, 0.1, -3.15), (7.0, 0.0, 7.0), (0.0, 1.0, 0.0),
        (1e9, 3e8, 1e9),
    ]:  # fmt: skip
        assert half_step(value, error) == wanted


def test_an_error_far_below_its_error_bar_is_within_its_interval_and_not_written_as_0(tmp_path):
    result = audit(tmp_path, people(40))
    (one,) = [m for m in result.measurements if m.metric == "normalized_error"][:1]
    for value in (0.9988, 0.0):
        wide = one._replace(value=value, std_error=5000.0, ci_low=0.0, ci_high=value)
        (found,) = result.model_copy(update={"measurements": [wide]}).disclosed().measurements
        assert (found.value > 0.0) == (value > 0.0)
        assert 0.0 <= found.ci_low <= found.value <= found.ci_high
