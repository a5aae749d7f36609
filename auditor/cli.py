"""The command line: parses and calls. Nothing numeric is imported before a command runs."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from auditor.errors import AuditorError

if TYPE_CHECKING:
    from auditor.engine import Progress
    from auditor.results import AuditResult

click.rich_click.TEXT_MARKUP = "markdown"

WRONG_REQUEST = 2
FAILED_RUNNING = 3
FORMATS = ("table", "markdown", "json", "csv", "junit")
LISTS = ("attacks", "schemes", "sources", "scenarios", "expectations")

scenario_argument = click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO...")
set_option = click.option(
    "--set", "changes", multiple=True, metavar="PATH=VALUE", help="Change a place of the scenario, as `data.rows=1000` (repeatable)."
)
seed_option = click.option("--seed", type=click.IntRange(min=0), help="Instead of the scenario's own.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="auditor", message="%(prog)s %(version)s")
def cli() -> None:
    """How well does every known attack rebuild the private records from every coalition's perturbed copies?

    Exit status: 0 every expectation holds; 1 one does not; 2 the request is wrong; 3 an attack or scheme failed while running.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a user's error is one message, a bug keeps its traceback but not its text.

    The text of a foreign exception may quote whatever it met, and that may be an original value.
    """
    try:
        cli.main(args=None if arguments is None else list(arguments), prog_name="auditor", standalone_mode=True)
    except AuditorError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(WRONG_REQUEST)
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        sys.exit(130)
    except Exception as error:
        frames = "".join(traceback.format_tb(error.__traceback__))
        told = str(error) if os.environ.get("AUDITOR_DEBUG") else "message withheld, it might hold data; AUDITOR_DEBUG=1 shows it"
        click.echo(f"Traceback (most recent call last):\n{frames}{type(error).__name__}: {told}", err=True)
        sys.exit(FAILED_RUNNING)


@cli.command()
@scenario_argument
@click.option("--output", type=click.Path(file_okay=False), default="audit", show_default=True, help="Folder for the results.")
@click.option("--workers", type=click.IntRange(1, 1024), default=1, show_default=True, help="Processes; results do not depend on it.")
@click.option("--cluster", metavar="ADDRESS", help="A running Dask scheduler to use instead of processes here.")
@set_option
@seed_option
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="What to print.")
@click.option("--quiet", is_flag=True, help="No progress, and only the verdict.")
def run(
    scenarios: tuple[str, ...], output: str, workers: int, cluster: str | None, changes: tuple[str, ...], seed: int | None,
    form: str, quiet: bool,
) -> None:  # fmt: skip
    """Run audits, print the report, and write `results.json`, `results.parquet` and `report.html`."""
    from auditor.engine import check_data, run_scenario

    checked = _read_all(scenarios, changes, seed)
    _warn_of_broken_plugins()
    results = []
    for scenario in checked:
        check_data(scenario)
        with _progress(scenario.title, quiet) as listener:
            result = run_scenario(scenario, workers, cluster, listener, command=_command(scenario.name, changes, seed))
        folder = _folder(Path(output), scenario.name, [s.name for s in checked])
        _write(result, folder)
        results.append(result)
        if not quiet:
            click.echo(f"written: {folder / 'report.html'}", err=True)
    _print(results, "table" if quiet and form == "table" else form, quiet)
    sys.exit(max(result.exit_status for result in results))


def _folder(output: Path, name: str, names: list[str]) -> Path:
    if names.count(name) > 1:
        raise AuditorError(f"two scenarios are called {name!r}; their results would overwrite each other: run them apart")
    return output / name


def _command(name: str, changes: Sequence[str], seed: int | None) -> str:
    """Return the one line that would run the same again."""
    from shlex import quote

    options = [f"--set {quote(change)}" for change in changes] + ([f"--seed {seed}"] if seed is not None else [])
    return " ".join(["auditor run", quote(f"{name}.yaml"), *options])


def _write(result: AuditResult, folder: Path) -> None:
    from auditor import registry
    from auditor.results import write_atomically

    result.save(folder)
    page = registry.get("renderer", "html")().render([result])
    write_atomically(folder / "report.html", page.encode("utf-8", "backslashreplace"))


def _read_all(scenarios: Sequence[str], changes: Sequence[str], seed: int | None) -> list[Any]:
    """Read every scenario before any is run: a wrong one must not cost the time of those before it."""
    from auditor.errors import ScenarioError
    from auditor.scenario.read import read_scenario

    overrides = [_override(change) for change in changes]
    checked, messages = [], []
    for scenario in scenarios:
        try:
            checked.append(read_scenario(scenario, overrides, seed))
        except ScenarioError as error:
            messages.append(str(error))
    if messages:
        raise AuditorError("\n".join(messages))
    return checked


def _override(change: str) -> tuple[str, Any]:
    from auditor.scenario.yaml12 import scalar

    path, equals, text = change.partition("=")
    if not equals or not path:
        raise AuditorError(f"--set needs PATH=VALUE, as data.rows=1000; got {change!r}")
    return path.strip(), scalar(text, file=f"--set {path.strip()}")


def _warn_of_broken_plugins() -> None:
    from auditor import registry

    registry.discover()
    for failure in registry.failures:
        click.echo(f"warning: {failure}", err=True)


@contextmanager
def _progress(title: str, quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Show cells done, the current one and the time left; calm lines when the output is no terminal."""
    if quiet:
        yield None
        return
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _calm(title)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.fields[title]}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
               TextColumn("{task.description}", markup=False))  # fmt: skip
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading the data", total=None, title=title)
        yield lambda progress: bar.update(task, completed=progress.done, total=progress.total, description=progress.current)


def _calm(title: str) -> Callable[[Progress], None]:
    """Return a listener that prints a line every tenth of the way."""
    told = [0]

    def listen(progress: Progress) -> None:
        tenth = 10 * progress.done // progress.total
        if tenth > told[0]:
            told[0] = tenth
            click.echo(f"{title}: {progress.done} of {progress.total} done", err=True)

    return listen


def _print(results: Sequence[AuditResult], form: str, quiet: bool = False) -> None:
    from auditor import registry

    if quiet and form == "table":
        for result in results:
            for record in result.expectations:
                click.echo(f"{result.name}: {record.status}: {record.expectation}: {record.why}")
        return
    renderer = registry.get("renderer", form)
    parameters = {}
    if form == "table":
        from rich.console import Console

        console = Console()
        parameters = {"width": console.width, "color": console.is_terminal and not os.environ.get("NO_COLOR")}
    click.echo(renderer(**parameters).render(results), nl=False)


@cli.command()
@scenario_argument
@set_option
@seed_option
def check(scenarios: tuple[str, ...], changes: tuple[str, ...], seed: int | None) -> None:
    """Validate without running, and print the plan: cells, rows, an estimate of the work."""
    from auditor.plan import outline

    for scenario in _read_all(scenarios, changes, seed):
        click.echo(outline(scenario))


@cli.command(name="list")
@click.argument("what", required=False, type=click.Choice(LISTS))
def list_(what: str | None) -> None:
    """Show what is installed, with one line each."""
    from auditor import catalogue

    _warn_of_broken_plugins()
    click.echo(catalogue.listing((what,) if what else LISTS))


@cli.command()
@click.argument("name")
def show(name: str) -> None:
    """Show one plugin or scenario: what it assumes, what it needs to know, its parameters, its paper."""
    from auditor import catalogue

    click.echo(catalogue.page(name))


@cli.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
def new(file: str, force: bool) -> None:
    """Write a commented scenario to start from."""
    from importlib.resources import files

    from auditor.results import write_atomically

    path = Path(file)
    if path.exists() and not force:
        raise AuditorError(f"{file} is there already; --force overwrites it")
    if not path.parent.is_dir():
        raise AuditorError(f"{path.parent} is not a folder")
    write_atomically(path, files("auditor").joinpath("scenario/template.yaml").read_bytes())
    click.echo(f"written: {file}. Next: auditor check {file}")


@cli.command()
def schema() -> None:
    """Print the JSON Schema of a scenario, for editors."""
    import json

    from auditor.scenario.schema import scenario_schema

    click.echo(json.dumps(scenario_schema(), indent=2, ensure_ascii=False))


@cli.command()
@click.argument("results", nargs=-1, required=True, metavar="RESULTS...")
@click.option("--format", "form", type=click.Choice((*FORMATS, "html")), default="table", show_default=True, help="What to make.")
@click.option("--output", type=click.Path(dir_okay=False), help="Write to this file instead of printing.")
def report(results: tuple[str, ...], form: str, output: str | None) -> None:
    """Render reports again from saved results, without the data."""
    from auditor import registry
    from auditor.results import AuditResult, write_atomically

    loaded = [AuditResult.load(path) for path in results]
    if output is None:
        _print(loaded, form)
        return
    if not Path(output).absolute().parent.is_dir():
        raise AuditorError(f"{Path(output).parent} is not a folder")
    text = registry.get("renderer", form)().render(loaded)
    write_atomically(Path(output), text.encode("utf-8", "backslashreplace"))


@cli.command()
@click.argument("old")
@click.argument("new")
def compare(old: str, new: str) -> None:
    """Tell what changed between two results, beyond the error bars; exit status 1 if anything got worse."""
    from auditor.comparison import compare_results
    from auditor.results import AuditResult

    comparison = compare_results(AuditResult.load(old), AuditResult.load(new))
    click.echo(comparison.text())
    sys.exit(1 if comparison.worse else 0)


@cli.command()
@click.argument("data")
@click.option("--scheme", required=True, help="A registered scheme.")
@click.option("--levels", required=True, metavar="L,L,...", help="Levels in order of release.")
@click.option("--seed", type=click.IntRange(min=0), help="Same seed, same copies; left out, nobody can make them again.")
@click.option("--output", required=True, type=click.Path(file_okay=False), help="Folder for the copies.")
@click.option("--columns", metavar="A,B,...", help="Columns to perturb and release; every numeric one by default.")
@click.option("--rows", type=click.IntRange(min=2), help="Only the first so many rows.")
@click.option("--param", "changes", multiple=True, metavar="NAME=VALUE", help="A parameter of the scheme (repeatable).")
@click.option("--format", "form", type=click.Choice(("csv", "parquet")), help="Of the copies; like the data by default.")
def perturb(
    data: str, scheme: str, levels: str, seed: int | None, output: str, columns: str | None, rows: int | None,
    changes: tuple[str, ...], form: str | None,
) -> None:  # fmt: skip
    """Write perturbed copies of DATA (a registered source or a .csv or .parquet file) as files."""
    from auditor.copies import write_copies

    selection = None if columns is None else [name for name in columns.split(",") if name]
    parameters = dict(_override(change) for change in changes)
    written = write_copies(data, scheme, _numbers(levels), seed, Path(output), selection, rows, parameters, form)
    for path in written:
        click.echo(f"written: {path}")


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise AuditorError(f"--levels must be numbers separated by commas, as 0.25,0.5,1; got {text!r}") from None


if __name__ == "__main__":
    main()
