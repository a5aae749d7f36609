"""Pytest collection of scenarios, one item per expectation.

``pytest scenarios/`` audits every scenario in the folder. Every pytest session loads this module,
so slow imports are local.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from auditor.base import AuditorError

if TYPE_CHECKING:
    from auditor.results.model import AuditResult
    from auditor.results.records import ExpectationRecord
    from auditor.scenario.model import Scenario

SUFFIXES = (".yaml", ".yml")
REQUIRED = ("data", "schemes", "attacks")
WORKERS = "auditor_workers"
TIMED = "auditor_timed"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option and the ini setting for the number of workers."""
    about = "processes to run a scenario with (default 1); results do not depend on it"
    parser.getgroup("auditor").addoption(
        "--auditor-workers", type=int, default=None, metavar="N", help=about
    )
    parser.addini(WORKERS, about, default="1")
    parser.addini(
        TIMED,
        "whether expectations on seconds are judged (default true)",
        type="bool",
        default=True,
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioFile | None:
    """Collect scenarios in YAML."""
    if file_path.suffix.lower() in SUFFIXES and is_scenario(file_path):
        return ScenarioFile.from_parent(parent, path=file_path)
    return None


def is_scenario(path: Path) -> bool:
    """Whether a file has the fields ``data``, ``schemes`` and ``attacks``."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return False
    # at the start of a line; in JSON also indented, or on one line
    field = r"^(?:[\"']?{0}[\"']?|\s*\"{0}\"|\s*{{.*\b{0}[\"']?)[ \t]*:"
    return all(re.search(field.format(key), text, re.MULTILINE) for key in REQUIRED)


class ScenarioFile(pytest.File):
    """A scenario file, run by the first item that needs the result."""

    scenario: Scenario
    _outcome: AuditResult | AuditorError | None = None

    def collect(self) -> Iterator[pytest.Item]:
        """Yield «runs» and one item per expectation; invalid files are errors."""
        from auditor.scenario.read import read_scenario

        try:
            self.scenario = read_scenario(self.path)
        except AuditorError as error:
            raise self.CollectError(str(error)) from None
        yield RunsItem.from_parent(self, name="runs")
        for place, use in enumerate(self.scenario.expect):
            yield ExpectationItem.from_parent(self, name=f"{use.name}[{place}]", place=place)

    def result(self) -> AuditResult:
        """Audit's result; the first call runs it.

        Raises
        ------
        AuditorError
            The data cannot be audited; repeated at every call.
        """
        if self._outcome is None:
            try:
                self._outcome = self._run()
            except AuditorError as error:
                self._outcome = error
        if isinstance(self._outcome, AuditorError):
            raise self._outcome
        return self._outcome

    def _run(self) -> AuditResult:
        from auditor.runs.check import check_data
        from auditor.runs.run_scenario import run_scenario

        check_data(self.scenario)
        return run_scenario(self.scenario, workers=self._workers()).disclosed()

    def _workers(self) -> int:
        asked = self.config.getoption(WORKERS)
        try:
            number = int(self.config.getini(WORKERS) if asked is None else asked)
        except ValueError:
            number = 0
        if number < 1:
            raise AuditorError("auditor-workers must be an integer of at least 1")
        return number


class Shortfall(Exception):  # noqa: N818 - a verdict without traceback
    """An expectation that does not hold, or a failed cell, with the reason."""


class ScenarioItem(pytest.Item):
    """One statement about a scenario."""

    parent: ScenarioFile

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Verdict's reason, or a bug's place without its message."""
        if excinfo.errisinstance((Shortfall, AuditorError)):
            return str(excinfo.value)
        frames = [
            f"{entry.path}:{entry.lineno + 1}: in {entry.name}"
            for entry in excinfo.traceback.cut(path=__file__)
        ]
        return "\n".join(
            [
                *frames,
                f"{excinfo.typename} (its message is withheld: it might hold original values)",
            ]
        )

    def reportinfo(self) -> tuple[Path, int, str]:
        """File, line and name for pytest's summary."""
        return self.path, self._line(), f"{self.path.name}: {self.name}"

    def _line(self) -> int:
        return 0


class RunsItem(ScenarioItem):
    """All attacks and schemes run, and implicit expectations hold."""

    def runtest(self) -> None:
        """Fail if a cell failed or an implicit expectation does not hold."""
        result = self.parent.result()
        failed = [record for record in result.measurements if record.status == "failed"]
        if failed:
            reasons = dict.fromkeys(
                f"{record.scheme}, {record.attack}, {record.knowledge}: {record.reason}"
                for record in failed
            )
            raise Shortfall("\n".join([f"{len(failed)} cells failed", *reasons]))
        unasked = result.expectations[len(self.parent.scenario.expect) :]
        if unasked:
            raise Shortfall(
                "\n".join(
                    f"{record.expectation} {record.status}: {record.why}" for record in unasked
                )
            )


class ExpectationItem(ScenarioItem):
    """One expectation."""

    def __init__(self, *, place: int, **options: Any) -> None:
        super().__init__(**options)
        self.place = place

    def runtest(self) -> None:
        """Fail unless the expectation holds; skip seconds if not judged."""
        use = self.parent.scenario.expect[self.place]
        if getattr(
            use.expectation.parameters, "metric", None
        ) == "seconds" and not self.config.getini(TIMED):
            pytest.skip(f"judges seconds; -o {TIMED}=true does so")
        record: ExpectationRecord = self.parent.result().expectations[self.place]
        if record.status != "holds":
            raise Shortfall(f"{record.status}: {record.why}")

    def _line(self) -> int:
        line = self.parent.scenario.places.problem(
            ("expect", self.parent.scenario.expect[self.place].place), ""
        ).line
        return 0 if line is None else line - 1
