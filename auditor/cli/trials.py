"""Self-test: verdicts on planted leaks and honest releases.

A leak is *found* if an expectation fails, *acquitted* if all hold, and otherwise undecided. An
honest release is *refuted* if an expectation fails. Shares have exact 95 % intervals (Clopper &
Pearson 1934). Releases differ only in seed and table.
"""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field
from rich.console import Console
from rich.markdown import Markdown

from auditor import registry
from auditor.base import PluginFailed, pd, scipy
from auditor.base.types import frozen
from auditor.data.source import Source
from auditor.expectations.base import worst
from auditor.process.environment import templated
from auditor.registry import PluginParameters
from auditor.results.model import AuditResult
from auditor.results.records import VERDICTS, Verdict
from auditor.runs.api import run
from auditor.schemes.base.scheme import Case, Records

MIXING = np.array([[1.0, 0.5], [0.0, 0.9]])
"""Mixes independent attributes to a correlation of 0.49."""
CATEGORIES = "abcdef"
CONFIDENCE = 0.95

Counts = Mapping[Verdict, int]
Listener = Callable[[str], None]


class CaseTable(Source):
    """A self-test table: normal, skewed, heaped, whole-number or categorical."""

    name = "self-test-table"
    public = True

    class Parameters(PluginParameters):
        """Kind of table."""

        records: Records = Field("normal", description="kind of records")

    def width(self) -> int:
        return 1 if self.parameters.records == "categories" else len(MIXING)

    def domains(self) -> dict[str, list[Any]]:
        return {"answer": list(CATEGORIES)}

    def frame(self, rows: int | None, rng: np.random.Generator) -> pd.DataFrame:
        if self.parameters.records == "categories":
            weights = 1.0 / np.arange(1, len(CATEGORIES) + 1)
            return pd.DataFrame(
                {"answer": rng.choice(list(CATEGORIES), size=rows, p=weights / weights.sum())}
            )
        x = rng.standard_normal((rows or 1000, len(MIXING))) @ MIXING
        skewed = np.exp(x)
        shaped = {
            "normal": x,
            "lognormal": skewed,
            "heaped": np.maximum(x, 0.0),
            "whole": np.rint(10.0 * skewed),
        }[self.parameters.records]
        return pd.DataFrame(shaped, columns=["first", "second"])


@frozen
class Tally:
    """Verdicts on the releases of one case: the worst of each, and by expectation."""

    case: str
    about: str
    honest: bool
    together: Counts
    by_expectation: Mapping[str, Counts]


@frozen
class SelfTest:
    """Result of the self-test."""

    rows: int
    releases: int
    seed: int
    cases: tuple[Tally, ...]

    def total(self, honest: bool, expectation: str | None = None) -> Counts:
        """Verdicts on leaks or honest releases, of one expectation or all."""
        counts = [
            tally.together if expectation is None else tally.by_expectation.get(expectation, {})
            for tally in self.cases
            if tally.honest == honest
        ]
        return {verdict: sum(each.get(verdict, 0) for each in counts) for verdict in VERDICTS}

    def names(self, *honest: bool) -> list[str]:
        """Expectations on leaks or honest releases, or on all."""
        cases = (tally for tally in self.cases if tally.honest in (honest or (False, True)))
        return sorted({name for tally in cases for name in tally.by_expectation})

    def false_alarms(self) -> dict[str, tuple[Counts, float]]:
        """Verdicts on honest releases and the stated level, by expectation."""
        return {
            name: (self.total(True, name), registry.get("expectation", name)().parameters.level)
            for name in self.names(True)
        }

    @property
    def exit_status(self) -> int:
        """Exit status: 0 without acquitted leaks or excess refutations, else 1.

        A refutation rate is in excess if its interval lies above the stated level.
        """
        beyond = [
            name
            for name, (counts, level) in self.false_alarms().items()
            if interval(counts, "fails")[0] > level
        ]
        return 1 if beyond or self.total(False)["holds"] else 0

    def figures(self) -> dict[str, Any]:
        """Return everything as plain data, with intervals of shares."""

        def shares(counts: Counts) -> dict[str, Any]:
            return {
                verdict: {"count": counts[verdict], "interval": interval(counts, verdict)}
                for verdict in VERDICTS
            }

        alarms = {
            name: {"level": level, "refuted": shares(counts)["fails"]}
            for name, (counts, level) in self.false_alarms().items()
        }
        cases = [vars(tally) | {"together": shares(tally.together)} for tally in self.cases]
        return {
            **vars(self),
            "exit_status": self.exit_status,
            "leaks": shares(self.total(False)),
            "honest": shares(self.total(True)),
            "false_alarms": alarms,
            "cases": cases,
        }


def interval(counts: Counts, verdict: Verdict) -> tuple[float, float]:
    """Exact 95 % interval of a verdict's share (clopper1934).

    Without releases it is 0 to 1.
    """
    releases = sum(counts.values())
    if not releases:
        return 0.0, 1.0
    low, high = scipy.stats.binomtest(counts[verdict], releases).proportion_ci(CONFIDENCE, "exact")
    return float(low), float(high)


def self_test(
    rows: int = 1000,
    releases: int = 5,
    seed: int = 0,
    cases: Sequence[str] = (),
    listener: Listener | None = None,
) -> SelfTest:
    """Audit releases of each case, with seeds from ``seed`` on, and count the verdicts.

    ``listener`` receives each case's name before its audit.

    Raises
    ------
    PluginError
        Unknown case, or a scheme with a case's name.
    PluginFailed
        The audit of a case failed.
    """
    chosen = [registry.get("case", name) for name in dict.fromkeys(cases or registry.names("case"))]
    with registry.lent("scheme", *chosen), registry.lent("source", CaseTable):
        tallies = []
        for case in chosen:
            if listener is not None:
                listener(case.name)
            verdicts = [
                {record.expectation: record.status for record in result.expectations}
                for result in (audited(case, rows, seed + place) for place in range(releases))
            ]
            by_expectation = {
                name: _counted([each[name] for each in verdicts if name in each])
                for name in dict.fromkeys(name for each in verdicts for name in each)
            }
            together = _counted([worst(list(each.values())) for each in verdicts])
            tallies.append(Tally(case.name, case.summary(), case.honest, together, by_expectation))
    return SelfTest(rows, releases, seed, tuple(tallies))


def audited(case: type[Case], rows: int, seed: int) -> AuditResult:
    """Audit of one release; scheme and table must be registered."""
    categories = case.records == "categories"
    data = {"source": CaseTable.name, "records": case.records, "rows": rows}
    result = run(
        {
            "schema": 1,
            "title": f"self-test of {case.name}",
            "seed": seed,
            "coalitions": ["subsets"],
            "data": data | ({"categorical": ["answer"]} if categories else {}),
            "schemes": [{"name": case.name, "levels": list(case.trial_levels), **case.trial}],
            "attacks": ["posterior" if categories else "llse"],
            "expect": list(case.expect),
        }
    )
    if result.failed:
        reasons = [
            *(r.reason for r in result.measurements if r.status == "failed"),
            *(r.why for r in result.expectations if r.failed),
        ]
        raise PluginFailed(f"case {case.name!r} failed: {reasons[0]}")
    return result


def _counted(verdicts: Sequence[Verdict]) -> Counts:
    return {verdict: list(verdicts).count(verdict) for verdict in VERDICTS}


def to_json(found: Sequence[SelfTest]) -> str:
    """Results as JSON; a list for several sizes."""
    every = [size.figures() for size in found]
    return json.dumps(every if len(every) > 1 else every[0], indent=2) + "\n"


def terminal(found: Sequence[SelfTest], width: int = 100, color: bool = False) -> str:
    """Markdown page for a terminal."""
    console = Console(width=width, force_terminal=color, no_color=not color, file=io.StringIO())
    with console.capture() as shown:
        console.print(Markdown(markdown(found)))
    return shown.get()


def markdown(found: Sequence[SelfTest], seconds: float | None = None) -> str:
    """Page in Markdown, with the command if its processor time is given."""
    return templated("cli/selftest.md.jinja", found=found, seconds=seconds, share=share)


def share(counts: Counts, verdict: Verdict) -> str:
    """Count with its exact 95 % interval.

    Examples
    --------
    >>> share({"fails": 5, "undecided": 0, "holds": 0}, "fails")
    '5 of 5 (48 to 100 %)'
    """
    low, high = interval(counts, verdict)
    return f"{counts[verdict]} of {sum(counts.values())} ({100 * low:.0f} to {100 * high:.0f} %)"
