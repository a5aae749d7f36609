"""How far a run is, as it goes: a line that moves in a terminal or a notebook, a few calm lines in a log file.

A line has how many cells of how many are done (a cell here is a task: some replicates of one scheme at one sweep point), one that is under
way, and the time left at the pace so far. rich is imported by whoever shows one, for start-up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from html import escape
from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING, Any

import rich_click as click

from auditor.errors import bounded
from auditor.text.durations import duration
from auditor.text.safe_text import clean

if TYPE_CHECKING:
    from rich.console import Console

    from auditor.runs.run_scenario import Progress

CALM_SECONDS = 5.0
"""A log file hears of progress no more often than this."""
LIVE_SECONDS = 0.2
"""A notebook's line changes no more often than this: every change is a message to the browser."""
NARROW = 100
"""In a terminal of fewer characters than this the bar is short, so that figures and the cell under way keep their place."""

Listener = Callable[["Progress"], None]


@contextmanager
def shown(title: str, quiet: bool) -> Iterator[Listener | None]:
    """Show progress on standard error, and yield what a run tells it to; None when ``quiet``."""
    if quiet:
        yield None
        return
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        with bar(title, console) as listener:
            yield listener
    else:
        yield calm(title)


@contextmanager
def watched(title: str, wanted: bool | None) -> Iterator[Listener | None]:
    """Show progress of a run from Python, and yield what the run tells it to; None where nothing is shown.

    Unless ``wanted`` says so, that is where somebody waits: in a notebook, and in a terminal at the prompt of Python or IPython.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    live = getattr(shell, "kernel", None) is not None
    asked = shell is not None or hasattr(sys, "ps1")
    if live and wanted is not False:
        yield notebook(title, import_module("IPython.display").display)
    elif wanted or (wanted is None and asked and sys.stderr is not None and sys.stderr.isatty()):
        with shown(title, quiet=False) as listener:
            yield listener
    else:
        yield None


class Line:
    """What a notebook shows in place of a bar: a text, and how far it is; names in it stay text."""

    def __init__(self, text: str, done: int = 0, total: int = 0) -> None:
        self.text, self.done, self.total = clean(text), done, total

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        moving = f'<progress value="{self.done}" max="{self.total}"></progress> ' if self.done < self.total else ""
        return f"<div>{moving}{escape(self.text)}</div>"


def notebook(title: str, display: Callable[..., Any], clock: Callable[[], float] = monotonic) -> Listener:
    """Return a listener that changes one line of a notebook's output; ``display`` is IPython's."""
    started = clock()
    last, first = [started], []
    handle = display(Line(f"{title}: reading the data"), display_id=True)

    def listen(progress: Progress) -> None:
        now = clock()
        first.append(progress.done)
        if progress.done < progress.total and len(first) > 1 and now - last[0] < LIVE_SECONDS:
            return
        last[0] = now
        handle.update(Line(f"{title}: {progress_text(progress, first[0], now - started)}", progress.done, progress.total))

    return listen


def progress_text(progress: Progress, first: int, seconds: float) -> str:
    """Say how far a run is that began with ``first`` tasks done, so many seconds ago.

    What an earlier run had done already says nothing of the pace of this one.
    """
    done, total = progress.done, progress.total
    if done == total:
        return f"{done} of {total} done, took {duration(seconds)}"
    left = f", about {duration(seconds / (done - first) * (total - done))} left" if done > first else ""
    return f"{done} of {total} done{left}; {progress.current}"


@contextmanager
def bar(title: str, console: Console) -> Iterator[Listener]:
    """Yield a listener that moves a bar; where room is short, names are cut, and never the figures."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    def cut(share: int) -> Column:
        return Column(ratio=share, no_wrap=True, overflow="ellipsis")

    def whole() -> Column:
        return Column(no_wrap=True)

    columns = (
        MofNCompleteColumn(table_column=whole()), BarColumn(8 if console.width < NARROW else 30, table_column=whole()),
        TimeRemainingColumn(table_column=whole()), TextColumn("left", table_column=whole()),
        TextColumn("{task.description}", markup=False, table_column=cut(5)),
        TextColumn("{task.fields[title]}", markup=False, style="dim", table_column=cut(2)),
    )  # fmt: skip
    with Bar(*columns, console=console, transient=True, expand=True) as moving:
        task = moving.add_task("reading the data", total=None, title=clean(title))
        yield lambda progress: moving.update(task, completed=progress.done, total=progress.total, description=clean(progress.current))


def calm(title: str, clock: Callable[[], float] = monotonic) -> Listener:
    """Return a listener that prints a line at the start, at the end, and at most every tenth of the way and every few seconds between."""
    started = clock()
    last_written: list[float] = [0, started]
    first: list[int] = []

    def say(text: str) -> None:
        with suppress(OSError):  # a full or closed device must not end the run
            click.echo(clean(bounded(f"{title}: {text}")), err=True)

    def listen(progress: Progress) -> None:
        now = clock()
        if not first:
            first.append(progress.done)
        done, total = progress.done, progress.total
        tenth = 10 * done // max(1, total)
        if done in (total, first[0]):
            say(progress_text(progress, first[0], now - started))
        elif tenth > last_written[0] and now - last_written[1] >= CALM_SECONDS:
            last_written[:] = tenth, now
            say(progress_text(progress, first[0], now - started))

    return listen
