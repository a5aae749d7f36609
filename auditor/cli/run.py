"""Commands ``run`` and ``selftest``."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rich_click import command

from auditor.base import FAILED_RUNNING, AuditorError, PluginFailed, bounded
from auditor.cli.arguments import (
    each,
    guarded,
    one_line_warnings,
    options,
    read_all,
    warn_of_broken_plugins,
    with_budget,
)
from auditor.process.environment import put, say

if TYPE_CHECKING:
    from auditor.results.model import AuditResult
    from auditor.scenario.model import Scenario


@command()
@options("run")
@with_budget
@guarded
def run(
    scenarios: Sequence[str],
    output: str,
    workers: int | None,
    cluster: str | None,
    changes: Sequence[str],
    seed: int | None,
    form: str,
    full: bool,
    junit_xml: str | None,
    quiet: bool,
    resume: bool,
) -> None:
    """Run audits, print the report and write the results.

    The results are `results.json`, `results.parquet` and `report.html`. Finished tasks are kept in
    `finished-tasks` in the same folder. After a crash, a kill or a full disk, the same command with
    `--resume` continues from it. Ctrl-C ends a run with a partial report; a second one stops at
    once.
    """
    from auditor.process import containment
    from auditor.runs.workers import dismiss

    checked: list[Scenario] = []
    results: list[AuditResult] = []
    statuses: list[int] = []
    # the page is written after the report is printed, because the user waits for the report
    with containment.interruptible(), suppress(containment.Interrupted), ExitStack() as page:
        with suppress(containment.Interrupted):
            try:
                from auditor.runs import run_scenario  # noqa: F401 - once for all forks
                from auditor.runs.output import (
                    check_place,
                    deliver,
                    deposit,
                    deposit_page,
                    made_folders,
                    print_results,
                    rendered,
                )

                if junit_xml is not None:
                    check_place(junit_xml)  # before hours of work
                plans = _check_all(read_all(scenarios, changes, seed), workers)
                checked += [scenario for scenario, _ in plans]
                folders = made_folders(
                    Path(output).absolute(), [scenario.name for scenario in checked]
                )
                for (scenario, crew), folder in zip(plans, folders, strict=True):
                    page.close()  # write the previous scenario's page before this run
                    command = _command(scenario.name, changes, seed)
                    results.append(
                        _audited(scenario, folder, crew, cluster, command, resume, quiet)
                    )
                    statuses.append(results[-1].exit_status)
                    with containment.shielded():
                        if deposit(results[-1], folder):
                            page.callback(
                                lambda *asked: statuses.append(deposit_page(*asked)),
                                results[-1],
                                folder,
                                quiet,
                            )
                    if containment.exit_status() is not None:
                        break
            finally:
                dismiss()
        with suppress(containment.Interrupted), containment.shielded():
            try:
                if results and junit_xml is not None:
                    deliver(rendered("junit", results), junit_xml, ())
                if results:
                    print_results(results, form, quiet, Path(output), full)
            except PluginFailed as failure:
                say(f"error: {failure}")
                statuses.append(FAILED_RUNNING)
            _tell_stopped(checked, results)
    status = containment.exit_status()
    if len(results) < len(scenarios):  # stopped early: unwritten results are a failure
        statuses.append(FAILED_RUNNING)
    sys.exit(status or max(statuses))


def _check_all(scenarios: Sequence[Scenario], workers: int | None) -> list[tuple[Scenario, int]]:
    """Check every scenario against its data; return them within budgets, with processes.

    A wrong scenario must not cost the time of its predecessors.
    """
    from auditor.runs.check import check_data
    from auditor.runs.plan import within_budget, workers_worth

    def crew(scenario: Scenario) -> tuple[Scenario, int]:
        scenario, tables = within_budget(scenario, check_data(scenario))
        return scenario, workers_worth(scenario, tables) if workers is None else workers

    with one_line_warnings():
        return each(scenarios, crew)


def _audited(
    scenario: Scenario,
    folder: Path,
    workers: int,
    cluster: str | None,
    command: str,
    resume: bool,
    quiet: bool,
) -> AuditResult:
    from auditor.runs.output import shown
    from auditor.runs.run_scenario import run_scenario
    from auditor.runs.tasks import Keep

    keep = Keep(
        folder,
        resume,
        lambda message: None if quiet else say(bounded(f"{scenario.title}: {message}")),
    )
    with shown(scenario.title, quiet) as listener:
        return run_scenario(scenario, workers, cluster, listener, command, keep).disclosed()


def _command(name: str, changes: Sequence[str], seed: int | None) -> str:
    from shlex import quote

    options = [f"--set {quote(change)}" for change in changes] + (
        [f"--seed {seed}"] if seed is not None else []
    )
    return " ".join(["auditor run", quote(f"{name}.yaml"), *options])


def _tell_stopped(checked: Sequence[Scenario], results: Sequence[AuditResult]) -> None:
    from auditor.process import containment

    for result in results:
        if result.partial is not None:
            done = f"{result.partial.finished} of {result.partial.tasks} tasks are finished"
            say(
                f"{result.name}: PARTIAL: {done}; {result.partial.why}. The same command with --resume goes on from here."
            )
    if containment.exit_status() is None:
        return
    for scenario in checked[len(results) :]:
        say(f"{scenario.name}: not carried out")
    if checked and len(results) == len(checked) and not any(result.partial for result in results):
        say("interrupted, but everything was finished and written")


@command()
@options("selftest")
@guarded
def selftest(
    rows: tuple[int, ...],
    releases: tuple[int, ...],
    seed: int,
    cases: Sequence[str],
    form: str,
    quiet: bool,
) -> None:
    """Audit planted leaks and honest releases, and count the verdicts.

    Exit status: 0 if no leak was acquitted and no more honest releases were refuted than the stated
    level allows; 1 otherwise.
    """
    from auditor.cli.trials import markdown, self_test, terminal, to_json
    from auditor.runs.output import screen

    warn_of_broken_plugins()
    if len(releases) not in (1, len(rows)):
        raise AuditorError(
            f"--releases must be given once, or once for each of {len(rows)} --rows; got {len(releases)}"
        )
    found, start = [], time.process_time()
    for size, many in zip(rows, releases * (len(rows) if len(releases) == 1 else 1), strict=True):
        listener = None if quiet else lambda name, size=size: say(f"case {name}, {size:,} rows")
        found.append(self_test(size, many, seed, cases, listener))
    seconds = time.process_time() - start
    put(
        to_json(found)
        if form == "json"
        else markdown(found, seconds)
        if form == "markdown"
        else terminal(found, **screen()),
        nl=False,
    )
    sys.exit(max(each.exit_status for each in found))
