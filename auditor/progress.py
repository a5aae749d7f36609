"""How far a run is, as it goes: a line that moves in a terminal, a few calm lines in a log file.

Told are the cells done of how many (a cell here is a task: some replicates of one scheme at one sweep point), one that is under way, and
the time left at the pace so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING

import rich_click as click

from auditor.errors import bounded
from auditor.text.safe_text import clean

if TYPE_CHECKING:
    from rich.console import Console

    from auditor.runs.run_scenario import Progress

CALM_SECONDS = 5.0
"""A log file hears of progress no more often than this."""
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
        if done == total:
            say(f"{done} of {total} done, took {now - started:.0f} s")
        elif done == first[0]:
            say(f"{done} of {total} done; {progress.current}")
        elif tenth > last_written[0] and now - last_written[1] >= CALM_SECONDS:
            last_written[:] = tenth, now
            # what an earlier run had done already says nothing of the pace of this one
            left = (now - started) / (done - first[0]) * (total - done)
            say(f"{done} of {total} done, about {left:.0f} s left; {progress.current}")

    return listen
