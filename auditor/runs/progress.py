"""Progress of a run: a live line, or few lines in a log.

A line has the number of finished cells and of all, one running cell, and the remaining time. A cell
here is a task: some replicates of one scheme at one sweep point.
rich is imported at first use, for fast start-up.
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

from auditor.base.errors import bounded
from auditor.base.text import clean, duration

if TYPE_CHECKING:
    from rich.console import Console

    from auditor.runs.run_scenario import Progress

CALM_SECONDS = 5.0
"""Least interval of lines in a log file."""
LIVE_SECONDS = 0.2
"""Least interval of changes in a notebook, because each is a message to the browser."""
NARROW = 100
"""Terminal width below which the bar is short."""

Listener = Callable[["Progress"], None]


@contextmanager
def shown(title: str, quiet: bool) -> Iterator[Listener | None]:
    """Show progress on standard error; yield a listener, or None if ``quiet``."""
    if quiet:
        yield None
        return
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        with bar(title, console) as listener:
            yield with_verdict(listener, lambda line: console.print(line, markup=False))
    else:
        yield with_verdict(calm(title), lambda line: click.echo(line, err=True))


def with_verdict(listener: Listener, say: Callable[[str], None]) -> Listener:
    """Return a listener that also says every new verdict so far."""
    last = [""]

    def listen(progress: Progress) -> None:
        if progress.so_far is None:
            listener(progress)
            return
        from auditor.runs.output import so_far  # start-up

        line = so_far(progress.so_far)
        if line and line != last[0]:
            last[0] = line
            with suppress(OSError):  # a full or closed device must not end the run
                say(clean(bounded(f"so far: {line}")))

    return listen


@contextmanager
def watched(title: str, wanted: bool | None) -> Iterator[Listener | None]:
    """Show progress of a run from Python; yield a listener or None.

    By default, progress is shown in a notebook, and at the prompt of Python or IPython in a
    terminal.
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


def notebook(
    title: str, display: Callable[..., Any], clock: Callable[[], float] = monotonic
) -> Listener:
    """Return a listener that updates one notebook line."""
    started = clock()
    last, first = [started], []
    handle = display(Line(f"{title}: reading the data"), display_id=True)

    def listen(progress: Progress) -> None:
        now = clock()
        first.append(progress.done)
        if progress.done < progress.total and len(first) > 1 and now - last[0] < LIVE_SECONDS:
            return
        last[0] = now
        handle.update(
            Line(
                f"{title}: {progress_text(progress, first[0], now - started)}",
                progress.done,
                progress.total,
            )
        )

    return listen


def progress_text(progress: Progress, first: int, seconds: float) -> str:
    """Describe the progress of a run that began with ``first`` tasks done.

    Earlier tasks are excluded from the pace.
    """
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
    """Yield a listener that moves a bar; names are cut if space is short."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    def cut(share: int) -> Column:
        return Column(ratio=share, no_wrap=True, overflow="ellipsis")

    def whole() -> Column:
        return Column(no_wrap=True)

    columns = (
        MofNCompleteColumn(table_column=whole()),
        BarColumn(8 if console.width < NARROW else 30, table_column=whole()),
        TimeRemainingColumn(table_column=whole()),
        TextColumn("left", table_column=whole()),
        TextColumn("{task.description}", markup=False, table_column=cut(5)),
        TextColumn("{task.fields[title]}", markup=False, style="dim", table_column=cut(2)),
    )
    with Bar(*columns, console=console, transient=True, expand=True) as moving:
        task = moving.add_task("reading the data", total=None, title=clean(title))
        yield lambda progress: moving.update(
            task, completed=progress.done, total=progress.total, description=clean(progress.current)
        )


def calm(title: str, clock: Callable[[], float] = monotonic) -> Listener:
    """Return a listener for logs.

    It prints at the start, at the end, and between at most every tenth and every few seconds.
    """
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
