from __future__ import annotations

from xml.etree import ElementTree

import pytest

from auditor import registry
from auditor.results.model import Partial

TOLD = "Partial: 3 of 8 tasks finished; interrupted by SIGINT."


@pytest.fixture
def stopped(quickstart):
    records = [
        quickstart.expectations[0].model_copy(
            update={"status": "undecided", "why": "tasks are missing"}
        )
    ]
    part = Partial(finished=3, tasks=8, why="interrupted by SIGINT", signal="SIGINT")
    return quickstart.model_copy(
        update={"partial": part, "expectations": [*records, *quickstart.expectations[1:]]}
    )


def rendered(form, *results):
    return registry.get("renderer", form)().render(results)


@pytest.mark.parametrize("form", ["table", "html", "markdown", "notebook", "junit"])
def test_every_report_says_that_it_is_partial_and_a_whole_one_does_not(form, stopped, quickstart):
    assert TOLD in " ".join(rendered(form, stopped).split())
    assert "Partial" not in rendered(form, quickstart)


def test_junit_has_an_error_and_skips_what_is_undecided(stopped):
    suite = ElementTree.fromstring(rendered("junit", stopped)).find("testsuite")
    undecided = sum(record.status == "undecided" for record in stopped.expectations)
    assert (suite.get("errors"), suite.get("skipped")) == ("1", str(undecided))
    assert (
        int(suite.get("tests")) == len(suite.findall("testcase")) == len(stopped.expectations) + 1
    )
    assert [
        case.get("name") for case in suite.findall("testcase") if case.find("error") is not None
    ] == ["the audit is whole"]
    assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))


def test_what_stopped_it_is_escaped(stopped):
    part = stopped.partial.model_copy(update={"why": "<script>alert(1)</script>"})
    hostile = stopped.model_copy(update={"partial": part})
    for form in ("html", "notebook", "markdown"):
        assert "<script>alert" not in rendered(form, hostile)
    ElementTree.fromstring(rendered("junit", hostile))


@pytest.mark.parametrize(("signal", "status"), [("SIGINT", 130), ("SIGTERM", 143), (None, 3)])
def test_its_exit_status_is_the_signal_s(stopped, signal, status):
    part = stopped.partial.model_copy(update={"signal": signal})
    assert stopped.model_copy(update={"partial": part}).exit_status == status
