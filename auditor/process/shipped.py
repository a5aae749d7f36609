"""Shipped scenarios, and plugin packages found without import."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path


def shipped_folder() -> Path:
    """Return the folder of shipped scenarios, in a package or checkout."""
    package = Path(__file__).parents[1]
    return next(filter(Path.is_dir, (package / "scenarios", package.parent / "scenarios")))


def shipped_scenarios() -> list[Path]:
    """Return the scenario files, by name."""
    return sorted(shipped_folder().glob("*.yaml"))


ENTRY_POINT_GROUP = "auditor.plugins"


def declared() -> list[EntryPoint]:
    """Return the entry points of plugin packages, by name."""
    return sorted(
        entry_points(group=ENTRY_POINT_GROUP), key=lambda point: (point.name, point.value)
    )


def modules_in(package: str, folders: Iterable[str]) -> Iterator[str]:
    """Yield the names of a package's public modules."""
    for info in pkgutil.iter_modules(list(folders), package + "."):
        if not info.name.rpartition(".")[2].startswith("_"):
            yield info.name
