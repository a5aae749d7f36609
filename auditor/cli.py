"""The command line: parses and calls. Nothing numeric is imported before a command runs."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from auditor.errors import AuditorError, PluginFailed, StorageError, bounded

if TYPE_CHECKING:
    from auditor.results.comparison import Comparison
    from auditor.results.model import AuditResult
    from auditor.runs.copy_files import Precision
    from auditor.scenario.model import Scenario

click.rich_click.TEXT_MARKUP = "ansi"

WRONG_REQUEST = 2
FAILED_RUNNING = 3
FORMATS = ("table", "markdown", "json", "csv", "junit")
COMPARISONS = ("table", "html", "markdown", "json")
NARROWEST = 40
"""Columns of the narrowest report: lines of a narrower terminal are broken by the terminal."""
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

    Exit status: 0 every expectation holds; 1 one does not; 2 the request is wrong; 3 something failed while running (an attack, a scheme,
    a full disk, killed workers); 130 or 143 stopped by Ctrl-C or SIGTERM, with a partial report.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a user's error is one message, a bug keeps its traceback but not its text.

    The text of a foreign exception may quote whatever it met, and that may be an original value.
    """
    before = threading.enumerate()
    try:
        cli.main(args=None if arguments is None else list(arguments), prog_name="auditor", standalone_mode=True)
    except SystemExit as done:
        if arguments is None and "auditor.process.containment" in sys.modules:
            _close_up(before, done.code)
        raise
    except AuditorError as error:
        _say(f"error: {error}")
        sys.exit(FAILED_RUNNING if isinstance(error, (StorageError, PluginFailed)) else WRONG_REQUEST)
    except KeyboardInterrupt:
        _say("interrupted")
        sys.exit(130)
    except Exception as error:
        sys.exit(_told_of_bug(error))


def _told_of_bug(error: BaseException) -> int:
    """Tell where something broke; return the exit status."""
    from auditor.process.containment import known

    frames = "".join(traceback.format_tb(error.__traceback__))
    told = str(error) if os.environ.get("AUDITOR_DEBUG") else "message withheld, it might hold data; AUDITOR_DEBUG=1 shows it"
    _say(f"Traceback (most recent call last):\n{frames}{known(type(error)).__name__}: {told}")
    return FAILED_RUNNING


def _close_up(before: Sequence[threading.Thread], status: Any) -> None:
    """See to it that what plugins left behind adds nothing to the report, and does not keep the process from ending.

    Python would wait for threads, perhaps for ever.
    """
    from auditor.process.containment import withhold_uncaught

    withhold_uncaught()
    with suppress(OSError, ValueError, AttributeError):  # closed, or nobody reads it
        sys.stdout.flush()
        os.dup2(2, 1)
    left = [thread for thread in threading.enumerate() if thread not in before and thread.is_alive() and not thread.daemon]
    if left and isinstance(status, (int, type(None))):
        _say(f"warning: {len(left)} threads that a plugin started are still running; they are not waited for")
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(status or 0)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Keep standard output for the report while a command runs, and its exit status from whatever a plugin raises.

    What plugins raise is contained where they are called; this is for what slips through, and for Ctrl-C.
    """

    @wraps(command)
    def inner(*arguments: Any, **options: Any) -> None:
        from auditor.process.console import reserved
        from auditor.process.containment import exits_refused, is_ours, withhold_uncaught
        from auditor.process.interrupt import CtrlC, told_apart

        undo = withhold_uncaught()
        try:
            with reserved(), told_apart(), exits_refused():
                command(*arguments, **options)
        except CtrlC:
            _say("interrupted")
            sys.exit(130)
        except Exception as error:
            if isinstance(error, EOFError):  # Click would take it for a closed terminal
                sys.exit(_told_of_bug(error))
            raise
        except BaseException as error:
            if isinstance(error, SystemExit) and is_ours(error):
                raise
            sys.exit(_told_of_bug(error))
        finally:
            undo()

    return inner


def _say(message: object) -> None:
    """Tell a person something on standard error: names in it come from files, and must not steer the terminal."""
    from auditor.text.safe_text import clean_lines

    with suppress(OSError):  # a full or closed device: there is nobody left to tell
        click.echo(clean_lines(message), err=True)


def _put(text: str, nl: bool = True) -> None:
    from auditor.process.console import put

    put(text, nl)


def _tell(message: object) -> None:
    from auditor.text.safe_text import clean_lines

    _put(clean_lines(message))


@cli.command()
@scenario_argument
@click.option("--output", type=click.Path(file_okay=False), default="audit", show_default=True, help="Folder for the results.")
@click.option("--workers", type=click.IntRange(1, 1024), default=1, show_default=True, help="Processes; results do not depend on it.")
@click.option("--cluster", metavar="ADDRESS", help="A running Dask scheduler to use instead of processes here.")
@set_option
@seed_option
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="What to print.")
@click.option("--quiet", is_flag=True, help="No progress, and only the verdict.")
@click.option("--resume", is_flag=True, help="Use what earlier runs have finished; only what is missing or has changed is carried out.")
@guarded
def run(
    scenarios: tuple[str, ...], output: str, workers: int, cluster: str | None, changes: tuple[str, ...], seed: int | None,
    form: str, quiet: bool, resume: bool,
) -> None:  # fmt: skip
    """Run audits, print the report, and write `results.json`, `results.parquet` and `report.html`.

    What is finished is kept in `journal.jsonl` beside them. After a crash, a kill or a full disk, the same command with `--resume` goes on
    from there. Ctrl-C ends a run with a partial report; a second one stops at once.
    """
    from auditor import progress
    from auditor.process import interrupt
    from auditor.process.containment import contained
    from auditor.runs.workers import dismiss, prepare, without_collection

    checked: list[Scenario] = []
    results: list[AuditResult] = []
    statuses: list[int] = []
    with interrupt.interruptible():
        with suppress(interrupt.Interrupted):
            try:
                prepare(1 if cluster else workers)  # before anything that takes time
                with without_collection():
                    from auditor import registry
                    from auditor.runs.checkpoint import Keep
                    from auditor.runs.run_scenario import run_scenario

                    registry.discover()
                checked += _ready(scenarios, changes, seed)
                with contained():  # a renderer that cannot will say so when it is asked to
                    registry.get("renderer", "html").warm_up()
                folders = _folders(Path(output).absolute(), [scenario.name for scenario in checked])
                for scenario, folder in zip(checked, folders, strict=True):
                    keep = Keep(folder, resume, _telling(scenario.title, quiet))
                    with progress.shown(scenario.title, quiet) as listener:
                        result = run_scenario(scenario, workers, cluster, listener, _command(scenario.name, changes, seed), keep)
                    result = result.disclosed()  # from here on it is written, printed and drawn
                    results.append(result)
                    statuses.append(result.exit_status)
                    with interrupt.shielded():
                        statuses.append(_deposit(result, folder, quiet))
                    if interrupt.exit_status() is not None:
                        break
            finally:
                dismiss()
        with suppress(interrupt.Interrupted), interrupt.shielded():
            try:
                if results:
                    _print(results, form, quiet, Path(output))
            except PluginFailed as failure:
                _say(f"error: {failure}")
                statuses.append(FAILED_RUNNING)
            _tell_stopped(checked, results)
        status = interrupt.exit_status()
    if len(results) < len(scenarios):  # whatever cut it short: nothing is fine that was not written
        statuses.append(FAILED_RUNNING)
    sys.exit(status or max(statuses))


def _ready(scenarios: Sequence[str], changes: Sequence[str], seed: int | None) -> list[Scenario]:
    """Return the scenarios, read and checked against their data."""
    checked: list[Scenario] = _read_all(scenarios, changes, seed)
    _warn_of_broken_plugins()
    _check_all(checked)
    return checked


def _telling(title: str, quiet: bool) -> Callable[[str], None]:
    return lambda message: None if quiet else _say(bounded(f"{title}: {message}"))


def _deposit(result: AuditResult, folder: Path, quiet: bool) -> int:
    """Write the results, unless they are of nothing and would replace better ones; return the exit status that this asks for."""
    if result.partial is not None and not result.partial.finished and (folder / "results.json").exists():
        _say(f"stopped before any task was finished: {_near(folder)} is left as it was")
        return 0
    try:
        _write(result, folder)
    except OSError as error:
        told = f"{_near(folder)}: cannot be written ({error.strerror or type(error).__name__})"
        raise StorageError(f"{told}; every finished task is kept there: make room, and run again with --resume") from None
    except PluginFailed as failure:
        _say(f"written: {_near(folder / 'results.json')}, but no report.html: {failure}")
        return FAILED_RUNNING
    if not quiet:
        _say(f"written: {_near(folder / 'report.html')}")
    return 0


def _near(path: Path) -> Path:
    """Return a path as seen from here, where it is below."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _tell_stopped(checked: Sequence[Scenario], results: Sequence[AuditResult]) -> None:
    """Say what is missing of a run that was stopped or broke, and how to go on."""
    from auditor.process.interrupt import exit_status

    for result in results:
        if result.partial is not None:
            done = f"{result.partial.finished} of {result.partial.tasks} tasks are finished"
            _say(f"{result.name}: PARTIAL: {done}; {result.partial.why}. The same command with --resume goes on from here.")
    if exit_status() is None:
        return
    for scenario in checked[len(results) :]:
        _say(f"{scenario.name}: not carried out")
    if checked and len(results) == len(checked) and not any(result.partial for result in results):
        _say("interrupted, but everything was finished and written")


def _check_all(scenarios: Sequence[Any]) -> None:
    """Check every scenario against its data before any is run: a wrong one must not cost the time of those before it."""
    from auditor.runs.check import check_data

    with _warnings_told():
        _each(scenarios, check_data)


@contextmanager
def _warnings_told() -> Iterator[None]:
    """Tell every warning once, as one line."""
    import warnings

    from auditor.errors import AuditorWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AuditorWarning)
        yield
    for message in dict.fromkeys(str(each.message) for each in caught if issubclass(each.category, AuditorWarning)):
        _say(bounded(f"warning: {message}"))


def _each(items: Sequence[Any], act: Callable[[Any], Any]) -> list[Any]:
    """Return what ``act`` makes of every item; what is wrong with any of them is told together, after all were tried."""
    done, messages = [], []
    for item in items:
        try:
            done.append(act(item))
        except (StorageError, PluginFailed):  # standard output is full, or a plugin broke: nothing is wrong with the item
            raise
        except AuditorError as error:
            messages.append(str(error))
    if messages:
        raise AuditorError("\n".join(messages))
    return done


def _folders(output: Path, names: list[str]) -> list[Path]:
    """Return each scenario's folder, made and known to be writable."""
    import tempfile

    for name in names:
        if names.count(name) > 1:
            raise AuditorError(f"two scenarios are called {name!r}; their results would overwrite each other: run them apart")
    folders = [output / name for name in names]
    for folder in folders:
        with _writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
    return folders


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Tell a user, without a traceback, that something cannot be written."""
    try:
        yield
    except OSError as error:
        raise AuditorError(f"{path}: cannot be written ({error.strerror or type(error).__name__})") from None


def _command(name: str, changes: Sequence[str], seed: int | None) -> str:
    """Return the one line that would run the same again."""
    from shlex import quote

    options = [f"--set {quote(change)}" for change in changes] + ([f"--seed {seed}"] if seed is not None else [])
    return " ".join(["auditor run", quote(f"{name}.yaml"), *options])


def _write(result: AuditResult, folder: Path) -> None:
    from auditor.results.files import write_atomically

    result.save(folder)
    try:
        page = _rendered("html", [result])
    except PluginFailed:
        (folder / "report.html").unlink(missing_ok=True)  # an older one would not be of these results
        raise
    write_atomically(folder / "report.html", page.encode("utf-8", "backslashreplace"))


def _rendered(form: str, results: Sequence[AuditResult] | Comparison, **parameters: Any) -> str:
    """Return a document.

    Raises
    ------
    PluginFailed
        The renderer failed, or made no text.
    """
    from auditor import registry
    from auditor.process.containment import contained

    with contained() as failure:
        renderer = registry.get("renderer", form)(**parameters)
        text = renderer.render(results) if isinstance(results, Sequence) else renderer.render_comparison(results)
        if type(text) is str:
            return text
        failure.error = PluginFailed("it made no text")
    failure.raise_ours()
    raise PluginFailed(f"renderer {form!r} failed: {failure.reason}")


def _read_all(scenarios: Sequence[str], changes: Sequence[str], seed: int | None) -> list[Any]:
    """Read every scenario, and tell everything that is wrong with any of them."""
    from auditor.scenario.read import read_scenario

    overrides = [_override(change) for change in changes]
    return _each(scenarios, lambda scenario: read_scenario(scenario, overrides, seed))


def _override(change: str) -> tuple[str, Any]:
    from auditor.scenario.yaml.document import scalar

    path, equals, text = change.partition("=")
    if not equals or not path:
        raise AuditorError(f"--set needs PATH=VALUE, as data.rows=1000; got {change!r}")
    return path.strip(), scalar(text, file=f"--set {path.strip()}")


def _warn_of_broken_plugins() -> None:
    from auditor import registry

    registry.discover()
    for failure in registry.failures:
        _say(f"warning: {failure}")


def _print(results: Sequence[AuditResult], form: str, quiet: bool = False, output: Path = Path()) -> None:
    if quiet and form == "table":
        for result in results:
            for record in result.expectations:
                _tell(f"{result.name}: {record.status}: {record.expectation}: {record.why}")
            if not result.expectations:
                _tell(f"{result.name}: nothing was expected, so there is no verdict; written: {output / result.name / 'report.html'}")
            broken = [record for record in result.measurements if record.status == "failed"]
            if broken:
                _tell(f"{result.name}: failed: {len(broken)} cells, the first for this reason: {broken[0].reason}")
        return
    _put(_rendered(form, results, **(_screen() if form == "table" else {})), nl=False)


def _screen() -> dict[str, Any]:
    """Return what the terminal is like, as the table's parameters."""
    from rich.console import Console

    from auditor.process.console import stream

    console = Console(file=stream())
    return {"width": max(console.width, NARROWEST), "color": console.is_terminal and not os.environ.get("NO_COLOR")}


@cli.command()
@scenario_argument
@set_option
@seed_option
@guarded
def check(scenarios: tuple[str, ...], changes: tuple[str, ...], seed: int | None) -> None:
    """Validate without running, and print the plan: cells, rows, an estimate of the work."""
    from auditor.runs.plan import outline

    checked = _read_all(scenarios, changes, seed)
    _warn_of_broken_plugins()
    with _warnings_told():
        _each(checked, lambda scenario: _tell(bounded(outline(scenario))))


@cli.command(name="list")
@click.argument("what", required=False, type=click.Choice(LISTS))
@guarded
def list_(what: str | None) -> None:
    """Show what is installed, with one line each."""
    from auditor import catalogue

    _warn_of_broken_plugins()
    _put(catalogue.listing((what,) if what else LISTS))


@cli.command()
@click.argument("name")
@guarded
def show(name: str) -> None:
    """Show one plugin or scenario: what it assumes, what it needs to know, its parameters, its paper."""
    from auditor import catalogue

    _warn_of_broken_plugins()
    _put(catalogue.page(name))


@cli.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
@guarded
def new(file: str, force: bool) -> None:
    """Write a commented scenario to start from."""
    from importlib.resources import files

    from auditor.results.files import write_atomically

    path = Path(file)
    if path.exists() and not force:
        raise AuditorError(f"{file} is there already; --force overwrites it")
    if not path.parent.is_dir():
        raise AuditorError(f"{path.parent} is not a folder")
    with _writing(path):
        write_atomically(path, files("auditor").joinpath("scenario/template.yaml").read_bytes())
    _tell(f"written: {file}. Next: auditor check {file}")


@cli.command()
@guarded
def schema() -> None:
    """Print the JSON Schema of a scenario, for editors."""
    import json

    from auditor.scenario.json_schema import scenario_schema

    _warn_of_broken_plugins()
    _put(json.dumps(scenario_schema(), indent=2, ensure_ascii=False))


@cli.command()
@click.argument("results", nargs=-1, required=True, metavar="RESULTS...")
@click.option("--format", "form", type=click.Choice((*FORMATS, "html")), default="table", show_default=True, help="What to make.")
@click.option("--output", type=click.Path(dir_okay=False), help="Write to this file instead of printing.")
@guarded
def report(results: tuple[str, ...], form: str, output: str | None) -> None:
    """Render reports again from saved results, without the data."""
    from auditor.results.model import AuditResult

    loaded = [AuditResult.load(path) for path in results]
    if output is None:
        _print(loaded, form)
    else:
        _deliver(_rendered(form, loaded), output, results)


def _deliver(text: str, output: str | None, read: Sequence[str]) -> None:
    """Print a document, or write it to a file, but not over the results that it was made of."""
    from auditor.results.files import write_atomically

    if output is None:
        _put(text, nl=False)
        return
    if Path(output).resolve() in [path.resolve() for name in read for path in (Path(name), Path(name) / "results.json")]:
        raise AuditorError(f"{output}: holds the results themselves, and would be written over; choose another file with --output")
    if not Path(output).absolute().parent.is_dir():
        raise AuditorError(f"{Path(output).parent} is not a folder")
    with _writing(Path(output)):
        write_atomically(Path(output), text.encode("utf-8", "backslashreplace"))


@cli.command()
@click.argument("old")
@click.argument("new")
@click.option("--format", "form", type=click.Choice(COMPARISONS), default="table", show_default=True, help="What to make.")
@click.option("--output", type=click.Path(dir_okay=False), help="Write to this file instead of printing.")
@guarded
def compare(old: str, new: str, form: str, output: str | None) -> None:
    """Tell what changed between two results, beyond the error bars; exit status 1 if anything got worse."""
    from auditor.results.comparison import compare_results
    from auditor.results.model import AuditResult

    comparison = compare_results(AuditResult.load(old), AuditResult.load(new))
    screen = _screen() if form == "table" and output is None else {}
    _deliver(_rendered(form, comparison, **screen), output, (old, new))
    sys.exit(1 if comparison.worse else 0)


FOR_STUDY = (
    "WARNING: copies made with --seed are FOR STUDY ONLY: whoever knows or guesses the seed and the table takes the noise off again. "
    "For copies to hand out leave --seed out."
)
FOR_RELEASE = """\
note: another run on this table draws anew, and the copies of two runs average out. For more copies later extend this release, in Python:
  from auditor.runs.copy_files import read_release
  release = read_release(X, FOLDER).extend([LEVEL])    # X: the table as a DataFrame
  release.copies[-1].to_csv("another.csv", index=False)"""


@cli.command()
@click.argument("data")
@click.option("--scheme", required=True, help="A registered scheme.")
@click.option("--levels", required=True, multiple=True, metavar="L,L,...", help="Levels in order of release (repeatable).")
@click.option("--seed", type=click.IntRange(min=0), help="For studies only: the same copies again; left out, nobody can make them again.")
@click.option("--output", required=True, type=click.Path(file_okay=False), help="Folder for the copies.")
@click.option("--columns", metavar="A,B,...", help="Columns to perturb and release; every numeric one by default.")
@click.option("--keep", metavar="A,B,...", help="Columns of the file that go into every copy UNCHANGED; without it none does.")
@click.option("--keep-rest", is_flag=True, help="Keep every column that --columns does not name, unchanged: names and identifiers too.")
@click.option("--rows", type=click.IntRange(min=2), help="Only the first so many rows.")
@click.option("--param", "changes", multiple=True, metavar="NAME=VALUE", help="A parameter of the scheme (repeatable).")
@click.option("--format", "form", type=click.Choice(("csv", "parquet")), help="Of the copies; like the data by default.")
@click.option(
    "--precision", type=click.Choice(("double", "single")), default="double", show_default=True,
    help="Numbers of 64 or 32 bits; single is refused where its rounding could change a conclusion.",
)  # fmt: skip
@guarded
def perturb(
    data: str, scheme: str, levels: tuple[str, ...], seed: int | None, output: str, columns: str | None, keep: str | None, keep_rest: bool,
    rows: int | None, changes: tuple[str, ...], form: str | None, precision: Precision,
) -> None:  # fmt: skip
    """Write perturbed copies of DATA (a registered source, a .csv or .parquet file, or a folder of them) as files, block by block.

    Only perturbed columns are released, unless others are asked for by name with --keep: attributes that are not sensitive pass through
    as they are, cell by cell. A column that tells who somebody is should not be among them.
    """
    from auditor.runs.copy_files import averages_out, unperturbed, write_copies

    _warn_of_broken_plugins()
    if keep is not None and keep_rest:
        raise AuditorError("--keep names columns and --keep-rest keeps all there are; one of the two")
    selection = None if columns is None else _names(columns)
    unchanged: Any = "rest" if keep_rest else _names(keep or "")
    parameters = dict(_override(change) for change in changes)
    numbers = _numbers(",".join(levels))
    written = write_copies(data, scheme, numbers, seed, Path(output), selection, rows, parameters, form, precision, unchanged)
    for path in written:
        _tell(f"written: {path}")
    for copy in unperturbed(scheme, numbers):
        _say(f"warning: level {numbers[copy - 1]:g} perturbs nothing: copy {copy} is the data as they are")
    if seed is not None:
        _say(FOR_STUDY)
    elif averages_out(scheme):
        _say(FOR_RELEASE)


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise AuditorError(f"--levels must be numbers separated by commas, as 0.25,0.5,1; got {text!r}") from None


if __name__ == "__main__":
    main()
