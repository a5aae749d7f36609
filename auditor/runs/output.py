"""Progress, reports on standard output, and files of a run."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from html import escape
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from rich.console import Console

from auditor import registry
from auditor.base import FAILED_RUNNING, AuditorError, PluginFailed, bounded, clean, duration
from auditor.base.types import Plain
from auditor.process.containment import contained, shielded
from auditor.process.environment import put, say, stream, tell
from auditor.results.comparison import Comparison
from auditor.results.files import write_atomically, writing
from auditor.results.model import AuditResult
from auditor.results.records import Advice
from auditor.runs.tasks import storing

NARROWEST = 40
"""Columns of the narrowest report."""


def made_folders(output: Path, names: list[str]) -> list[Path]:
    """Each scenario's folder, made and writable."""
    folders = [output / name for name in names]
    for name, folder in zip(names, folders, strict=True):
        if names.count(name) > 1:
            raise AuditorError(
                f"two scenarios are called {name!r}; their results would overwrite each other: run them apart"
            )
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
    return folders


def deposit(result: AuditResult, folder: Path) -> bool:
    """Write the results, but never empty over measured results; return whether written."""
    empty = result.partial is not None and not result.partial.finished
    if empty and (folder / "results.json").exists():
        say(f"stopped before any task was finished: {_near(folder)} is left as it was")
        return False
    with storing(_near(folder)):
        folder.mkdir(parents=True, exist_ok=True)  # perhaps removed during the run
        result.save(folder)
    return True


@shielded()
def deposit_page(result: AuditResult, folder: Path, quiet: bool) -> int:
    """Write the page of results; return the exit status."""
    path = folder / "report.html"
    with storing(_near(folder)):
        try:
            write_atomically(path, rendered("html", [result]).encode("utf-8", "backslashreplace"))
        except PluginFailed as failure:
            path.unlink(missing_ok=True)
            say(f"written: {_near(folder / 'results.json')}, but no report.html: {failure}")
            return FAILED_RUNNING
    if not quiet:
        say(f"written: {_near(path)}")
    return 0


def _near(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def print_results(
    results: Sequence[AuditResult],
    form: str,
    quiet: bool = False,
    output: Path = Path(),
    full: bool = True,
) -> None:
    """Print a report of all results; a quiet table has the verdicts alone."""
    if form != "table":
        put(rendered(form, results), nl=False)
        return
    if not quiet:
        put(rendered(form, results, **screen(), full=full), nl=False)
        return
    for result in results:
        lines = [
            f"{record.status}: {record.expectation}: {record.why}" for record in result.expectations
        ]
        if not lines:
            page = output / result.name / "report.html"
            lines.append(f"nothing was expected, so there is no verdict; written: {page}")
        broken = [record for record in result.measurements if record.status == "failed"]
        if broken:
            lines.append(
                f"failed: {len(broken)} cells, the first for this reason: {broken[0].reason}"
            )
        for line in lines:
            tell(clean(f"{result.name}: {line}"))


def screen() -> Plain:
    """The terminal's width and color, as parameters of the table."""
    console = Console(file=stream())
    return {
        "width": max(console.width, NARROWEST),
        "color": console.is_terminal and not os.environ.get("NO_COLOR"),
    }


def rendered(form: str, subject: Any, **options: Any) -> str:
    """Document on results, on `Comparison`s, or on `Advice`.

    Raises
    ------
    PluginFailed
        The renderer failed, or made no text.
    """
    with contained() as failure:
        renderer = registry.get("renderer", form)(**options)
        if isinstance(subject, Advice):
            text = renderer.render_advice(subject)
        elif isinstance(subject[0], Comparison):
            text = renderer.render_comparison(*subject)
        else:
            text = renderer.render(subject)
        if type(text) is str:
            return text
        failure.error = PluginFailed("it made no text")
    failure.raise_ours()
    raise PluginFailed(f"renderer {form!r} failed: {failure.reason}")


def so_far(result: AuditResult) -> str:
    """Line on the verdict of an unfinished audit."""
    with contained():
        return str(registry.get("renderer", "table")().render_so_far(result))
    return ""


def deliver(text: str, output: str | None, read: Sequence[str]) -> None:
    """Print a document, or write it to a file, but not over ``read`` results."""
    if output is None:
        put(text, nl=False)
        return
    sources = (
        source
        for path in map(Path, read)
        for source in (path, path / "results.json", *path.glob("*/results.json"))
    )
    if Path(output).resolve() in [source.resolve() for source in sources]:
        raise AuditorError(
            f"{output}: holds the results themselves, and would be written over; choose another file with --output"
        )
    check_place(output)
    with writing(Path(output)):
        write_atomically(Path(output), text.encode("utf-8", "backslashreplace"))


def check_place(output: str) -> None:
    """Refuse a file in a missing folder.

    Raises
    ------
    AuditorError
        The folder does not exist.
    """
    if not Path(output).absolute().parent.is_dir():
        raise AuditorError(f"{Path(output).parent} is not a folder")


if TYPE_CHECKING:
    from auditor.runs.run_scenario import Listener, Progress

CALM_SECONDS = 5.0
"""Least interval of lines in a log file."""
LIVE_SECONDS = 0.2
"""Least interval of changes in a notebook, as each is a message to the browser."""
NARROW = 100
"""Terminal width below which the bar is short."""


@contextmanager
def shown(title: str, quiet: bool) -> Iterator[Listener | None]:
    """Show progress on standard error; yield a listener, or None if ``quiet``."""
    if quiet:
        yield None
        return
    console = Console(stderr=True)
    if console.is_terminal:
        with bar(title, console) as listener:
            yield with_verdict(listener, lambda line: console.print(line, markup=False))
    else:
        yield with_verdict(calm(title), say)


def with_verdict(listener: Listener, say: Callable[[str], None]) -> Listener:
    """Listener that also says every new verdict."""
    last = [""]

    def listen(progress: Progress) -> None:
        if progress.so_far is None:
            listener(progress)
            return
        line = so_far(progress.so_far)
        if line and line != last[0]:
            last[0] = line
            with suppress(OSError):  # a full or closed device must not end the run
                say(clean(bounded(f"so far: {line}")))

    return listen


@contextmanager
def watched(title: str, wanted: bool | None) -> Iterator[Listener | None]:
    """Show progress of a run from Python; yield a listener or None.

    By default in a notebook, and at the prompt of Python or IPython in a terminal.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    live = getattr(shell, "kernel", None) is not None
    asked = shell is not None or hasattr(sys, "ps1")
    if live and wanted is not False:
        yield with_verdict(
            notebook(title, import_module("IPython.display").display), lambda line: None
        )
    elif wanted or (wanted is None and asked and sys.stderr is not None and sys.stderr.isatty()):
        with shown(title, quiet=False) as listener:
            yield listener
    else:
        yield None


class Line:
    """A line in a notebook: escaped text and progress."""

    def __init__(self, text: str, done: int = 0, total: int = 0) -> None:
        self.text, self.done, self.total = clean(text), done, total

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        moving = (
            f'<progress value="{self.done}" max="{self.total}"></progress> '
            if self.done < self.total
            else ""
        )
        return f"<div>{moving}{escape(self.text)}</div>"


def notebook(title: str, display: Callable[..., Any]) -> Listener:
    """Listener that updates one notebook line."""
    handle = display(Line(f"{title}: reading the data"), display_id=True)

    def tell(progress: Progress, text: str) -> None:
        handle.update(Line(text, progress.done, progress.total))

    return paced(title, tell, LIVE_SECONDS, 0)


def paced(
    title: str, tell: Callable[[Progress, str], None], seconds: float, parts: int
) -> Listener:
    """Listener that tells start, end, and progress at most every few seconds.

    With ``parts``, also at most so often.
    """
    started, first = monotonic(), list[int]()
    last = [0.0, started]

    def listen(progress: Progress) -> None:
        now, done = monotonic(), progress.done
        first.append(done)
        part = parts * done // max(1, progress.total)
        due = now - last[1] >= seconds and (part > last[0] or not parts)
        if due or len(first) == 1 or done == progress.total:
            last[:] = part, now
            tell(progress, f"{title}: {progress_text(progress, first[0], now - started)}")

    return listen


def progress_text(progress: Progress, first: int, seconds: float) -> str:
    """Progress and pace of a run that began with ``first`` tasks done."""
    done, total = progress.done, progress.total
    if done == total:
        return f"{done} of {total} done, took {duration(seconds)}"
    left = (
        f", about {duration(seconds / (done - first) * (total - done))} left"
        if done > first
        else ""
    )
    return f"{done} of {total} done{left}; {progress.current}"


@contextmanager
def bar(title: str, console: Console) -> Iterator[Listener]:
    """Yield a listener that moves a bar; names are cut to fit."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress as Bar,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    def cut(share: int) -> Column:
        return Column(ratio=share, no_wrap=True, overflow="ellipsis")

    columns = (
        MofNCompleteColumn(),
        BarColumn(8 if console.width < NARROW else 30),
        TimeRemainingColumn(),
        TextColumn("left"),
        TextColumn("{task.description}", markup=False, table_column=cut(5)),
        TextColumn("{task.fields[title]}", markup=False, style="dim", table_column=cut(2)),
    )
    with Bar(*columns, console=console, transient=True, expand=True) as moving:
        task = moving.add_task("reading the data", total=None, title=clean(title))
        yield lambda progress: moving.update(
            task, completed=progress.done, total=progress.total, description=clean(progress.current)
        )


def calm(title: str) -> Listener:
    """Listener for logs: start, end, and at most every tenth and every few seconds."""

    def tell(progress: Progress, text: str) -> None:
        say(clean(bounded(text)))

    return paced(title, tell, CALM_SECONDS, 10)
