"""Files and documents that a run leaves behind, and the report on standard output.

Documents are written by renderer plugins (``auditor_reports``).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from auditor import registry
from auditor.base.errors import FAILED_RUNNING, AuditorError, PluginFailed
from auditor.base.text import clean
from auditor.process.console import put, say, stream, tell
from auditor.process.containment import contained
from auditor.process.interrupt import shielded
from auditor.results.comparison import Comparison
from auditor.results.files import write_atomically, writing
from auditor.results.model import AuditResult
from auditor.results.records import Advice
from auditor.results.renderer import Renderer
from auditor.runs.finished_tasks import storing

NARROWEST = 40
"""Columns of the narrowest report; a narrower terminal breaks its lines."""


def made_folders(output: Path, names: list[str]) -> list[Path]:
    """Return each scenario's folder, made and writable."""
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
    """Write the results, unless empty ones would replace better ones; return whether written."""
    empty = result.partial is not None and not result.partial.finished
    if empty and (folder / "results.json").exists():
        say(f"stopped before any task was finished: {_near(folder)} is left as it was")
        return False
    with storing(_near(folder)):
        folder.mkdir(parents=True, exist_ok=True)  # it may have been removed during the run
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
            path.unlink(missing_ok=True)  # an older page is not of these results
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


def screen() -> dict[str, Any]:
    """Return the terminal's width and color, as the table's parameters."""
    console = Console(file=stream())
    return {
        "width": max(console.width, NARROWEST),
        "color": console.is_terminal and not os.environ.get("NO_COLOR"),
    }


def rendered(form: str, results: Sequence[AuditResult], **parameters: Any) -> str:
    """Return a document on results.

    Raises
    ------
    PluginFailed
        The renderer failed, or made no text.
    """
    return _made(form, parameters, lambda renderer: renderer.render(results))


def so_far(result: AuditResult) -> str:
    """Return one line on the verdict of an unfinished audit."""
    with contained():
        return str(registry.get("renderer", "table")().render_so_far(result))
    return ""


def rendered_comparison(form: str, comparisons: Sequence[Comparison], **parameters: Any) -> str:
    """Return a document on changes; see `rendered`."""
    return _made(form, parameters, lambda renderer: renderer.render_comparison(*comparisons))


def rendered_advice(form: str, advice: Advice, **parameters: Any) -> str:
    """Return a document on advice; see `rendered`."""
    return _made(form, parameters, lambda renderer: renderer.render_advice(advice))


def _made(form: str, parameters: dict[str, Any], write: Callable[[Renderer], object]) -> str:
    with contained() as failure:
        text = write(registry.get("renderer", form)(**parameters))
        if type(text) is str:
            return text
        failure.error = PluginFailed("it made no text")
    failure.raise_ours()
    raise PluginFailed(f"renderer {form!r} failed: {failure.reason}")


def deliver(text: str, output: str | None, read: Sequence[str]) -> None:
    """Print a document, or write it to a file, but not over the results that were ``read``."""
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
        Naming the folder.
    """
    if not Path(output).absolute().parent.is_dir():
        raise AuditorError(f"{Path(output).parent} is not a folder")
