"""Which packages declare plugins, and which modules are in them; found without importing any."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points

ENTRY_POINT_GROUP = "auditor.plugins"


def declared() -> list[EntryPoint]:
    """Return the entry points that name plugin packages, by name; files of all installed distributions are read."""
    return sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: (point.name, point.value))


def modules_in(package: str, folders: Iterable[str]) -> Iterator[str]:
    """Yield the full names of a package's modules, but for those whose names begin with ``_``."""
    for info in pkgutil.iter_modules(list(folders), package + "."):
        if not info.name.rpartition(".")[2].startswith("_"):
            yield info.name
