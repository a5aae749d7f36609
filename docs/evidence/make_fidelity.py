"""Statements of five papers, and our measurements.

`python -m docs.evidence.make_fidelity RESULTS [--write docs/evidence/fidelity.md]`: RESULTS is a
folder written by `auditor run scenarios/*.yaml -o RESULTS`. The rows are in fidelity.yaml; figures,
dates and versions are read from RESULTS. The tests of the list are run. Exit status 1, and no page,
if a row is incomplete, a figure is missing or a test fails.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from auditor.results.model import AuditResult
from auditor.results.records import Measurement, cells
from auditor_reports.figures import Figure, braces, clipped, figure, number, with_error
from auditor_reports.pages import safe
from docs.evidence.fidelity_rows import ROOT, Paper, Row, Selector, papers

FIELDS = ("scheme", "attack", "knowledge", "attribute")
WIDTH = 250
"""Most characters of an explanation; the report has all."""
INTRODUCTION = """\
# Fidelity

<!-- By `python -m docs.evidence.make_fidelity RESULTS --write docs/evidence/fidelity.md` of `auditor run scenarios/*.yaml -o RESULTS`. -->

Statements of five papers – every system, theorem, figure, table, algorithm and numbered equation –, the printed values, and our
measurements. A figure has half of its 95 % interval; «theory» is the closed form of the same cell. The last table has date and version of
every scenario. *Held* are statements to prove, by tests that passed when this page was written. *Erratum*: the printed value is wrong.
*Not measured* has a reason. The list is `docs/evidence/fidelity.yaml`.
"""


class Missing(Exception):  # noqa: N818 - only the list is at fault
    """No match for a selector, or too many."""


def measured(selector: Selector, result: AuditResult) -> str:
    """Return a selector's figure as text.

    Raises
    ------
    Missing
        No cell matches, or several cells do.
    """
    if selector.expectation:
        return _judged(selector, result)
    if selector.column:
        return _moment(selector, result)
    found = list(cells(_matching(selector, result)).values())
    if not found:
        raise Missing("matches nothing")
    if selector.along:
        told = {_place(selector.along, records[0]): _told(records) for records in found}
        if len(told) < len(found):
            raise Missing(f"{len(found)} cells, {len(told)} of which differ in {selector.along}")
        if selector.only and len(told) < len(selector.only):
            raise Missing(
                f"{len(told)} of {len(selector.only)} values of {selector.along} are there"
            )
        return "; ".join(f"{place}: {text}" for place, text in told.items())
    if selector.of:
        extreme = (max if selector.of == "largest" else min)(found, key=_worth)
        return f"{_told(extreme)}, the {selector.of} of {len(found)}"
    if len(found) > 1:
        raise Missing(
            f"matches {len(found)} cells, as ({_described(found[0][0])}) and ({_described(found[1][0])})"
        )
    return _told(found[0])


def _matching(selector: Selector, result: AuditResult) -> list[Measurement]:
    wanted: dict[str, Any] = {
        "metric": selector.metric,
        "attribute": selector.attribute,
        "status": "ok",
    }
    wanted |= {
        field: value
        for field in ("scheme", "attack", "knowledge")
        if (value := getattr(selector, field)) is not None
    }
    if selector.coalition is not None:
        wanted["coalition"] = _copies(selector.coalition)
    table = result.measurements.taken(np.flatnonzero(result.measurements.where(**wanted)))
    records = [
        record
        for record in table
        if all(record.sweep.get(path) == value for path, value in selector.sweep.items())
    ]
    return [
        record
        for record in records
        if not selector.only or _value(selector.along, record) in selector.only
    ]


def _copies(given: Any) -> tuple[int, ...]:
    return tuple(range(1, given["first"] + 1)) if isinstance(given, dict) else tuple(given)


def _value(along: str, record: Measurement) -> Any:
    if along == "coalition":
        return len(record.coalition)
    if along == "level":
        return record.levels[0]
    return getattr(record, along) if along in FIELDS else record.sweep.get(along)


def _place(along: str, record: Measurement) -> str:
    value = _value(along, record)
    if along == "coalition":
        return f"{value} {'copy' if value == 1 else 'copies'}"
    return safe(
        f"{value:g}"
        if isinstance(value, float)
        else ", ".join(map(str, value))
        if isinstance(value, list)
        else str(value)
    )


def _described(record: Measurement) -> str:
    return "; ".join(
        map(
            str,
            (
                record.scheme,
                record.attack,
                record.knowledge,
                braces(record.coalition),
                record.sweep,
            ),
        )
    )


def _figure(records: Sequence[Measurement]) -> Figure:
    shown = figure(records)
    if shown is None:
        raise Missing("was not measured")
    return shown


def _worth(records: Sequence[Measurement]) -> float:
    return _figure(records).value


def _told(records: Sequence[Measurement]) -> str:
    shown = _figure(records)
    theory = "" if shown.theory is None else f" (theory {number(shown.theory, shown.half)})"
    return f"{with_error(shown)}{theory}"


def _judged(selector: Selector, result: AuditResult) -> str:
    found = [
        record
        for record in result.expectations
        if record.expectation == selector.expectation
        and all(
            record.where.get(field) == getattr(selector, field)
            for field in ("scheme", "attack", "knowledge", "metric")
            if getattr(selector, field)
        )
    ]
    if not found:
        raise Missing(f"there is no expectation {selector.expectation}")
    statuses = {record.status for record in found}
    if len(found) > 1:
        observed = ", ".join(
            number(record.observed) for record in found if record.observed is not None
        )
        return f"{', '.join(sorted(statuses))}, {len(found)} expectations" + (
            f" (observed {observed})" if observed else ""
        )
    return f"{found[0].status}: {safe(clipped(found[0].why, WIDTH))}"


def _moment(selector: Selector, result: AuditResult) -> str:
    for data in result.data:
        for attribute in data.attributes:
            if attribute.name == selector.column and selector.sweep == data.sweep:
                return f"{data.rows if selector.figure == 'rows' else getattr(attribute, selector.figure):,.7g}"
    raise Missing(f"there is no column {selector.column}")


class Results:
    """Results of scenarios in a folder, each loaded once and released."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(
        self, selectors: Sequence[Selector]
    ) -> tuple[dict[int, str], dict[str, AuditResult], list[str]]:
        """Return figures by selector, results by scenario, and missing figures.

        The results are without measurements.
        """
        texts, runs, missing = {}, {}, []
        for scenario in sorted({selector.scenario for selector in selectors}):
            if not (self.folder / scenario / "results.json").is_file():
                missing.append(f"{scenario}: not in {self.folder}")
                continue
            result = AuditResult.load(self.folder / scenario)
            if result.partial is not None:
                missing.append(
                    f"{scenario}: {result.partial.finished} of {result.partial.tasks} tasks are finished"
                )
                continue
            runs[scenario] = result.model_copy(update={"measurements": []})
            for selector in selectors:
                if selector.scenario == scenario:
                    try:
                        texts[id(selector)] = measured(selector, result)
                    except Missing as error:
                        missing.append(f"{scenario}, {selector.label}: {error}")
        return texts, runs, missing


def page(
    given: Sequence[Paper], texts: dict[int, str], runs: dict[str, AuditResult], tested: str
) -> str:
    """Return the page."""
    rows = [row for paper in given for row in paper.rows]
    left = [row for row in rows if row.todo]
    by_run, by_test = sum(bool(row.measured) for row in rows), sum(bool(row.tests) for row in rows)
    told = (
        f"{len(rows)} rows: {by_run} measured by {len(runs)} scenarios, {by_test} held by tests ({tested}), "
        f"{sum(bool(row.erratum) for row in rows)} with an erratum, {len(left)} not measured or not wholly.\n"
    )
    parts = [INTRODUCTION, told, *(_section(paper, texts) for paper in given), _when(runs)]
    return "\n".join(parts)


def _section(paper: Paper, texts: dict[int, str]) -> str:
    head = f"## {paper.title}\n\n| where | what it says | what it prints | measured here | lives in |\n| --- | --- | --- | --- | --- |\n"
    return head + "".join(_line(row, texts) for row in paper.rows)


def _line(row: Row, texts: dict[int, str]) -> str:
    figures = [
        f"{safe(one.label)}: **{texts[id(one)]}** (`{one.scenario}`)" for one in row.measured
    ]
    tests = [f"held: {_sentence(test)}" for test in row.tests]
    page = [f"on a page of its own: [{row.page}]({row.page})"] if row.page else []
    todo = [f"*not measured*: {safe(row.todo)}"] if row.todo else []
    prints = safe(row.prints) + (f"<br>*Erratum*: {safe(row.erratum)}" if row.erratum else "")
    lives = "<br>".join(f"`{path}`" for path in row.lives)
    columns = [
        places(row.at),
        safe(row.claim),
        prints,
        "<br>".join([*figures, *tests, *page, *todo]),
        lives,
    ]
    return f"| {' | '.join(columns)} |\n"


def places(at: Sequence[str]) -> str:
    """Return places by kind, for example ``Theorem 4; Equations 14, 15``."""
    kinds: dict[str, list[str]] = {}
    for place in at:
        kind, _, number = place.partition(" ")
        kinds.setdefault(kind, []).append(number)
    plural = {"Appendix": "Appendices", "Corollary": "Corollaries"}
    return "; ".join(
        f"{kind if len(some) == 1 else plural.get(kind, f'{kind}s')} {', '.join(some)}"
        for kind, some in kinds.items()
    )


def _sentence(test: str) -> str:
    """Return a test's name as words, and its file."""
    file, _, name = test.partition("::")
    return f"{safe(name.removeprefix('test_').replace('_', ' '))} (`{file}`)"


def _when(runs: dict[str, AuditResult]) -> str:
    lines = [
        f"| `{name}` | {run.provenance.start[:10]} | {run.provenance.versions.get('auditor', '?')} | {_state(run)} |\n"
        for name, run in sorted(runs.items())
    ]
    return (
        "## When each was measured\n\n| scenario | on | by version | its expectations |\n| --- | --- | --- | --- |\n"
        + "".join(lines)
    )


def _state(run: AuditResult) -> str:
    wrong = sum(record.status != "holds" for record in run.expectations)
    return (
        f"{wrong} of {len(run.expectations)} do not hold"
        if wrong
        else f"all {len(run.expectations)} hold"
    )


def main(arguments: Sequence[str]) -> int:
    """Fill the list and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--write", type=Path, help="the page to write")
    parser.add_argument(
        "--no-tests", action="store_true", help="do not run the tests that are named"
    )
    asked = parser.parse_args(arguments)
    given = papers()
    texts, runs, missing = Results(asked.results).fill(
        [selector for paper in given for row in paper.rows for selector in row.measured]
    )
    wrong = [*(problem for paper in given for problem in paper.problems), *missing]
    tests = sorted({test for paper in given for row in paper.rows for test in row.tests})
    if not wrong and not asked.no_tests:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
        wrong = (
            []
            if subprocess.run(command, cwd=ROOT, check=False).returncode == 0
            else ["a test that holds a row failed"]
        )
    if wrong:
        sys.stderr.write("".join(f"{problem}\n" for problem in wrong))
        return 1
    run = (
        "not run now"
        if asked.no_tests
        else f"passed on {datetime.now(UTC):%Y-%m-%d}, version {version('auditor')}"
    )
    text = page(given, texts, runs, f"{len(tests)} of them, {run}")
    if asked.write:
        asked.write.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
