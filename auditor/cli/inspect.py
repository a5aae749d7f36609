"""Commands that run no audit.

``check``, ``list``, ``show``, ``new``, ``schema``, ``report`` and ``compare``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich_click import command

from auditor.base import AuditorError, bounded
from auditor.cli.arguments import (
    OPTIONS,
    each,
    guarded,
    one_line_warnings,
    options,
    read_all,
    warn_of_broken_plugins,
    with_budget,
)
from auditor.process.environment import put, say, tell

if TYPE_CHECKING:
    from auditor.base.types import Names


@command()
@options("check")
@with_budget
@guarded
def check(scenarios: Names, changes: Names, seed: int | None) -> None:
    """Validate without running, and print the plan and a time estimate."""
    from auditor.runs.check import check_data
    from auditor.runs.plan import outline, within_budget

    checked = read_all(scenarios, changes, seed)
    with one_line_warnings():
        each(checked, lambda each: tell(bounded(outline(*within_budget(each, check_data(each))))))


@command(name="list")
@options("list")
@guarded
def list_(what: str | None) -> None:
    """List plugins and scenarios, one per line."""
    from auditor.cli.catalogue import listing

    warn_of_broken_plugins()
    put(listing([what] if what else OPTIONS["list"]["what"]["type"]))


@command()
@options("show")
@guarded
def show(name: str) -> None:
    """Show one plugin or scenario: assumptions, parameters, paper."""
    from auditor.cli.catalogue import page

    warn_of_broken_plugins()
    put(page(name))


@command()
@options("new")
@guarded
def new(
    files: Names,
    data: str | None,
    copies: Names,
    template: str | None,
    force: bool,
    sheet: str | None,
    blank: Names,
) -> None:
    """Write a commented scenario; with --data, one that fits a table."""
    from auditor.results.files import with_reading, write_atomically, writing
    from auditor.scenario.draft import beside, drafted, template as template_of

    file, copies = _scenario_and_copies(files, copies)
    if copies and data is None:
        raise AuditorError("--copies needs the original as well: --data ORIGINAL")
    if data is not None and template is not None:
        raise AuditorError(
            "--data makes a scenario for a table, and --template takes an example: give one of them"
        )
    contents = {(path := Path(file)): b""}
    if data is None:
        contents[path] = template_of(template)
        contents |= {path.parent / other: content for other, content in beside(template).items()}
    _check_new(list(contents), force)  # before reading the table
    if data is not None:
        warn_of_broken_plugins()
        with one_line_warnings():
            given = with_reading(data, sheet, blank or None)
            contents[path] = drafted(path, given, copies).encode()
    for each_path, content in contents.items():
        with writing(each_path):
            each_path.parent.mkdir(exist_ok=True)
            write_atomically(each_path, content)
    tell(f"written: {file}. Next: auditor {'check' if data is None else 'run'} {file}")


def _scenario_and_copies(files: Names, copies: Names) -> tuple[str, list[str]]:
    """Scenario and all copies; further names after ``--copies NAME`` are copies."""
    scenarios = [name for name in files if name.lower().endswith((".yaml", ".yml"))]
    if not copies:
        scenarios, copies = list(files), []
    others = [name for name in files if name not in scenarios]
    if len(scenarios) != 1:
        raise AuditorError(f"needs one scenario to write, FILE.yaml; got {len(scenarios)}")
    if (folder := Path(scenarios[0])).is_dir() or scenarios[0].endswith("/"):
        state = "names a folder" if folder.is_dir() else "is a folder that does not exist"
        raise AuditorError(f"{scenarios[0]} {state}; name a scenario to write, FILE.yaml")
    return scenarios[0], [*copies, *others]


def _check_new(paths: Sequence[Path], force: bool) -> None:
    from auditor.scenario.read import check_no_table

    if paths[0].suffix.lower() not in (".yaml", ".yml"):
        check_no_table(paths[0])  # even --force must not overwrite a table of records
    there = [str(path) for path in paths if path.exists()]
    if there and not force:
        raise AuditorError(
            f"{', '.join(there)} {'is' if len(there) == 1 else 'are'} there already; --force overwrites what is there"
        )
    if not paths[0].parent.is_dir():
        raise AuditorError(f"{paths[0].parent} is not a folder")


@command()
@guarded
def schema() -> None:
    """Print the JSON Schema of a scenario, for editors."""
    import json

    from auditor.scenario.json_schema import scenario_schema

    warn_of_broken_plugins()
    put(json.dumps(scenario_schema(), indent=2, ensure_ascii=False))


@command()
@options("report")
@guarded
def report(results: Names, form: str, full: bool, output: str | None) -> None:
    """Render reports again from saved results, without the data."""
    from auditor.results.model import AuditResult
    from auditor.runs.output import deliver, print_results, rendered

    loaded = [AuditResult.load(path) for path in results]
    if output is None:
        print_results(loaded, form, full=full)
    else:
        deliver(rendered(form, loaded), output, results)


@command()
@options("compare")
@guarded
def compare(old: str, new: str, form: str, output: str | None) -> None:
    """List differences of two results beyond the error bars.

    OLD and NEW are results, or folders of results that are compared scenario by scenario.

    Exit status: 1 if anything got worse, a scenario is gone or no cell could be compared; 0
    otherwise.
    """
    from auditor.results.comparison import compare_paths
    from auditor.runs.output import deliver, rendered, screen

    comparisons = compare_paths(old, new)
    shape = screen() if form == "table" and output is None else {}
    deliver(rendered(form, comparisons, **shape), output, (old, new))
    compared = any(one.compared for one in comparisons)
    if not compared:
        say("nothing was compared: the old and the new results have no cell in common")
    sys.exit(1 if any(one.worse for one in comparisons) or not compared else 0)


COMMANDS = (check, list_, show, new, schema, report, compare)
