"""Comparison of results by path: two audits, or two folders of audits."""

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
    """Return the changes between two audits, or by scenario between two folders.

    The folders are outputs of ``auditor run --output``. Scenarios match by folder name. A scenario
    of only the old folder is bad news, because it may be the one that leaks.

    Raises
    ------
    AuditorError
        A path cannot be read, or one has several audits and the other a single one.
    """
    before, after = _several(Path(old)), _several(Path(new))
    if not before and not after:
        return [compare_results(AuditResult.load(old), AuditResult.load(new))]
    for path, found in ((old, before), (new, after)):
        if not found:
            AuditResult.load(path)  # reports its error, if any
            raise AuditorError(
                f"{path}: holds the results of one audit, and the other folder those of several"
            )
    return list(_by_scenario(before, after))


def _several(folder: Path) -> dict[str, Path]:
    """Return the results in a folder of folders by name; empty for a single audit."""
    if (folder / "results.json").exists():
        return {}
    return {path.parent.name: path for path in sorted(folder.glob("*/results.json"))}


def _by_scenario(before: dict[str, Path], after: dict[str, Path]) -> Iterator[Comparison]:
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
