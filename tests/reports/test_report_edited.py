"""Results edited by hand."""

import json
import random

import pytest
import report_cases

from auditor.base.errors import AuditorError
from auditor.cli import main
from auditor.results.comparison import compare_results
from auditor.results.model import AuditResult
from auditor_reports.charts.audit_charts import charts
from auditor_reports.data_files import Csv, Json, Junit
from auditor_reports.figures.reading import Reading
from auditor_reports.markdown import Markdown
from auditor_reports.terminal import Terminal

ODD = (
    None, "", "abc", "\x1b[31m", -1, 0, 1e308, -1e308, 1e-320, 1e200, 10**400, True, [], [1], ["a"], {}, {"a": 1}, [[1]], [None], [0], [2, 1],
    [1e308], 2**63, "nan", "ok", "failed", "not-applicable", float("nan"), float("inf"),
)  # fmt: skip


def places(value, path=()):
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for index in sorted({0, 1, len(value) - 1} & set(range(len(value)))):
            yield from places(value[index], (*path, index))


def edited(text, path, odd):
    document = json.loads(text)
    part = document
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = odd
    return json.dumps(document)


@pytest.fixture(scope="module")
def small():
    return report_cases.Case(
        coalitions="prefixes",
        schemes=("independent", "correlated", "corner-wave"),
        levels=(0.5, 1.0),
        replicates=1,
    ).result()


@pytest.mark.parametrize(("seed", "count"), [(6, 25), pytest.param(7, 80, marks=pytest.mark.slow)])
def test_what_stands_in_an_edited_file_is_refused_or_reported(small, tmp_path, seed, count):
    text = small.to_json()
    jobs = [(path, odd) for path in places(json.loads(text)) for odd in ODD]
    refused = []
    for number, (path, odd) in enumerate(random.Random(seed).sample(jobs, count)):
        (tmp_path / "results.json").write_text(edited(text, path, odd), encoding="utf-8")
        try:
            read = AuditResult.load(tmp_path)
        except AuditorError as error:
            refused.append(str(error))
            continue
        for renderer in (Terminal(width=80), Markdown(), Junit(), Csv(), Json()):
            renderer.render([read])
        if number % 10 == 0:
            charts(Reading(read), "audit-1")
        for changed in (compare_results(small, read), compare_results(read, small)):
            Terminal(width=80).render_comparison(changed)
    assert 0.2 * count < len(refused) < 0.9 * count
    assert all(told.startswith(str(tmp_path)) and told.isprintable() for told in refused)


@pytest.mark.parametrize("command", [["report"], ["report", "--format", "junit"], ["compare"]])
def test_the_command_ends_with_status_2_and_one_message(small, tmp_path, command, capsys):
    whole = small.save(tmp_path / "whole")
    bad = tmp_path / "results.json"
    bad.write_text(
        edited(small.to_json(), ("measurements", 0, "value"), float("nan")), encoding="utf-8"
    )
    with pytest.raises(SystemExit) as caught:
        main([*command, *([str(whole)] if command == ["compare"] else []), str(bad)])
    assert caught.value.code == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == f"error: {bad}: NaN is not JSON; a figure that was not measured is null\n"
