"""Collect scenario files with pytest: each expectation of a scenario is a test item, and so is that it runs at all.

``pytest scenarios/`` audits every scenario in the folder. This module is loaded in every pytest session, so it imports nothing heavy
until a file that looks like a scenario is met.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from auditor.errors import AuditorError

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
    parser.getgroup("auditor").addoption("--auditor-workers", type=int, default=None, metavar="N", help=about)
    parser.addini(WORKERS, about, default="1")
    parser.addini(TIMED, "whether expectations on seconds are judged (default true)", type="bool", default=True)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioFile | None:
    """Collect a YAML file that is a scenario; leave every other one alone."""
    if file_path.suffix.lower() in SUFFIXES and is_scenario(file_path):
        return ScenarioFile.from_parent(parent, path=file_path)
    return None


def is_scenario(path: Path) -> bool:
    """Tell whether a file is a mapping with ``data``, ``schemes`` and ``attacks`` at the top.

    One that has these keys in block style counts even when it cannot be parsed, so that its mistake is reported.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return False
    if not all(key in text for key in REQUIRED):
        return False
    if all(re.search(rf"^([\"']?){key}\1[ \t]*:", text, re.MULTILINE) for key in REQUIRED):
        return True
    from auditor.scenario.yaml.document import load

    try:
        value = load(text).value
    except AuditorError:
        return False
    return isinstance(value, dict) and all(key in value for key in REQUIRED)


class ScenarioFile(pytest.File):
    """A scenario file; it is run once, by the first of its items that needs the result."""

    scenario: Scenario
    _outcome: AuditResult | AuditorError | None = None

    def collect(self) -> Iterator[pytest.Item]:
        """Yield «runs», and one item for each expectation; a scenario that is not valid is a collection error."""
        from auditor.scenario.read import read_scenario

        try:
            self.scenario = read_scenario(self.path)
        except AuditorError as error:
            raise self.CollectError(str(error)) from None
        yield RunsItem.from_parent(self, name="runs")
        for place, use in enumerate(self.scenario.judged):
            yield ExpectationItem.from_parent(self, name=f"{use.name}[{place}]", place=place)

    def result(self) -> AuditResult:
        """Return what the audit found, running it at the first call.

        Raises
        ------
        AuditorError
            The data cannot be audited; the same at every call.
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


class Shortfall(Exception):  # noqa: N818 - a verdict, told without a traceback
    """An expectation that does not hold, or a cell that failed; the message is the reason."""


class ScenarioItem(pytest.Item):
    """One statement about a scenario."""

    parent: ScenarioFile

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the reason alone for a verdict or a wrong request; for a bug its place, but not its text, which might hold data."""
        if excinfo.errisinstance((Shortfall, AuditorError)):
            return str(excinfo.value)
        frames = [f"{entry.path}:{entry.lineno + 1}: in {entry.name}" for entry in excinfo.traceback.cut(path=__file__)]
        return "\n".join([*frames, f"{excinfo.typename} (its message is withheld: it might hold original values)"])

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return file, line and name for pytest's summary."""
        return self.path, self._line(), f"{self.path.name}: {self.name}"

    def _line(self) -> int:
        """Return the line, counted from 0, that the item stands for; pytest wants one of every item it skips."""
        return 0


class RunsItem(ScenarioItem):
    """Every attack and every scheme of the scenario runs through, and what every audit expects holds."""

    def runtest(self) -> None:
        """Fail when a cell failed, or when the audit refutes what no scenario need ask for."""
        result = self.parent.result()
        failed = [record for record in result.measurements if record.status == "failed"]
        if failed:
            reasons = dict.fromkeys(f"{record.scheme}, {record.attack}, {record.knowledge}: {record.reason}" for record in failed)
            raise Shortfall("\n".join([f"{len(failed)} cells failed", *reasons]))
        unasked = result.expectations[len(self.parent.scenario.judged) :]
        if unasked:
            raise Shortfall("\n".join(f"{record.expectation} {record.status}: {record.why}" for record in unasked))


class ExpectationItem(ScenarioItem):
    """One expectation of the scenario."""

    def __init__(self, *, place: int, **options: Any) -> None:
        super().__init__(**options)
        self.place = place

    def runtest(self) -> None:
        """Fail unless the expectation holds; one on seconds is skipped where the ini setting ``auditor_timed`` says so."""
        use = self.parent.scenario.judged[self.place]
        if getattr(use.expectation.parameters, "metric", None) == "seconds" and not self.config.getini(TIMED):
            pytest.skip(f"judges seconds; -o {TIMED}=true does so")
        record: ExpectationRecord = self.parent.result().expectations[self.place]
        if record.status != "holds":
            raise Shortfall(f"{record.status}: {record.why}")

    def _line(self) -> int:
        line = self.parent.scenario.places.problem(("expect", self.parent.scenario.judged[self.place].place), "").line
        return 0 if line is None else line - 1
