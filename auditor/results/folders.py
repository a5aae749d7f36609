"""Results compared by where they are: two audits, or two folders of them, scenario by scenario."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from auditor.errors import AuditorError
from auditor.results.comparison import Comparison, compare_results
from auditor.results.model import AuditResult

GONE = "the scenario is not among the new results"


def compare_paths(old: str | os.PathLike[str], new: str | os.PathLike[str]) -> list[Comparison]:
    """Return what changed between two audits, or for each scenario of two folders that ``auditor run --output`` wrote.

    Scenarios are matched by the names of their folders. One that only the old folder has is worse
    news, as it may be the one that leaks; one that only the new folder has is listed.

    Raises
    ------
    AuditorError
        One of them cannot be read, or one holds the results of several audits and the other of a
        single one.
    """
    before, after = _several(Path(old)), _several(Path(new))
    if not before and not after:
        return [compare_results(AuditResult.load(old), AuditResult.load(new))]
    for path, found in ((old, before), (new, after)):
        if not found:
            AuditResult.load(path)  # says what is wrong with it, if anything
            raise AuditorError(
                f"{path}: holds the results of one audit, and the other folder those of several"
            )
    return list(_by_scenario(before, after))


def _several(folder: Path) -> dict[str, Path]:
    """Return the results in a folder of folders, by the scenario's name; none for a file, and for the folder of a single audit."""
    if (folder / "results.json").exists():
        return {}
    return {path.parent.name: path for path in sorted(folder.glob("*/results.json"))}


def _by_scenario(before: dict[str, Path], after: dict[str, Path]) -> Iterator[Comparison]:
    """Yield comparisons in order of names; results are held two at a time, as some are large."""
    for name in sorted(before.keys() | after.keys()):
        old, new = (
            AuditResult.load(found[name]) if name in found else None for found in (before, after)
        )
        if old is not None and new is not None:
            yield replace(compare_results(old, new), name=name)
        elif old is not None:
            yield replace(
                compare_results(old, _nothing_of(old)), name=name, now="–", data="", broken=[GONE]
            )
        elif new is not None:
            yield replace(compare_results(_nothing_of(new), new), name=name, old="–", data="")


def _nothing_of(result: AuditResult) -> AuditResult:
    return result.model_copy(update={"measurements": [], "expectations": [], "partial": None})
