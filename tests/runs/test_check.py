import pytest

from auditor.base.errors import AuditorError
from auditor.data.sources.census_like import CensusLike
from auditor.data.sources.shipped import Cps
from auditor.runs.check import check_data
from auditor.runs.plan import outline
from auditor.scenario.read import read_scenario
from tests.programs import ROOT, python

OF_CPS = sorted(
    path.stem
    for path in (ROOT / "scenarios").glob("*.yaml")
    if "source: cps" in path.read_text(encoding="utf-8")
)[::3]


def said(name, *changes):
    try:
        scenario = read_scenario(ROOT / f"scenarios/{name}.yaml", changes)
        return outline(scenario, check_data(scenario))
    except AuditorError as error:
        return str(error)


@pytest.fixture
def read(monkeypatch):
    """Have no source know its table ahead."""

    def forget():
        for source in (Cps, CensusLike):
            monkeypatch.setattr(source, "outline", lambda self, rows: None)

    return forget


@pytest.mark.parametrize("name", OF_CPS)
def test_a_plan_is_the_same_without_the_records(name, read):
    ahead = said(name)
    assert "valid; " in ahead
    read()
    assert said(name) == ahead


@pytest.mark.parametrize(
    "changes",
    [
        {"data.columns": ["age", "wage"]},
        {"data.rows": 200_000},
        {"data.missing": "drop"},
        {"data.source": "census-like", "data.columns": ["age"]},
        {"expect": [], "knowledge": [{"known-records": 193_682}]},
        {"schemes[0].levels": [1e300]},
        {
            "expect": [],
            "attacks": ["record-linkage"],
            "knowledge": [{"known-attributes": ["wage"]}],
        },
        {"expect": [{"normalized_error": {"attribute": "wage", "at-least": 0.1}}]},
    ],
    ids=str,
)
def test_whatever_is_wrong_is_told_likewise_without_the_records(changes, read):
    ahead = said("quickstart", *changes.items())
    read()
    assert said("quickstart", *changes.items()) == ahead


def test_nothing_is_read_to_check_the_quickstart():
    done = python(
        "-X", "importtime", "-m", "auditor", "check", ROOT / "scenarios/quickstart.yaml", check=True
    )
    assert "193,682 rows × 2" in done.stdout
    assert not {
        name
        for name in "pyarrow pandas scipy threadpoolctl numpy.random".split()
        if f" {name}\n" in done.stderr
    }
