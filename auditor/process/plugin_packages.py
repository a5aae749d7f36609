"""Plugin packages and their modules, found without import."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points

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
