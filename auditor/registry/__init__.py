"""Plugin registry: packages by entry point, classes by decorator."""

import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType, ModuleType
from typing import Any, ClassVar, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict

from auditor.base import PluginError, did_you_mean
from auditor.process.containment import contained, shielded
from auditor.process.environment import modules_in

HOMES = {
    "attack": "auditor_attacks",
    "scheme": "auditor.schemes",
    "source": "auditor.data.sources",
    "expectation": "auditor.expectations",
    "renderer": "auditor_reports",
    "case": "auditor.schemes",
    "feature": "auditor.audit.insider.features",
}
"""Built-in packages by kind."""
KINDS = tuple(HOMES)
AUDITING = tuple(kind for kind in KINDS if kind not in ("renderer", "feature"))
"""Kinds that a scenario names."""


class PluginParameters(BaseModel):
    """Base of every plugin's ``Parameters``.

    Names have hyphens in YAML and underscores in Python. Strings after attributes are descriptions.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        populate_by_name=True,
        allow_inf_nan=False,
        arbitrary_types_allowed=True,
        alias_generator=lambda field: field.replace("_", "-"),
        defer_build=True,
        use_attribute_docstrings=True,
    )
    holds_cells: ClassVar[bool] = False
    """Whether values are cells, which messages must not quote."""


class Plugin:
    """Base of every plugin.

    A subclass states ``name``, its purpose in the docstring's first line, and ``Parameters``.
    """

    kind: ClassVar[str]
    name: ClassVar[str]
    reference: ClassVar[str] = ""
    """Bibliography keys and places, as ``li2012, eq. 6`` or ``guo2006; liu2008, section 3.3``."""
    assumes: ClassVar[str] = ""
    """Assumptions for validity or strength, shown in reports."""
    trial: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Parameters for ``auditor.testing``, if some have no default."""

    class Parameters(PluginParameters):
        """No parameters."""

    def __init__(self, parameters: PluginParameters | None = None, **values: Any) -> None:
        if parameters is None:
            parameters = self.Parameters.model_validate(values, by_name=True, by_alias=True)
        self.parameters: Any = parameters

    @classmethod
    def summary(cls) -> str:
        """First line of the class's docstring."""
        return (inspect.getdoc(cls) or "").partition("\n")[0]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.parameters!r})"


P = TypeVar("P", bound=type[Plugin])

_plugins: dict[str, dict[str, type[Plugin]]] = {kind: {} for kind in KINDS}
_discovered: set[str] = set()
"""Packages with all modules imported."""


class ImportFailure(NamedTuple):
    """A plugin module that could not be imported."""

    entry_point: str
    module: str
    error: str

    def __str__(self) -> str:
        return f"plugin module {self.module} (entry point {self.entry_point!r}) cannot be imported: {self.error}"


failures: list[ImportFailure] = []


def register(cls: P) -> P:
    """Register a plugin class under its ``kind`` and ``name``; a decorator.

    Raises
    ------
    PluginError
        Another class has the name.
    """
    kind, name = getattr(cls, "kind", None), getattr(cls, "name", None)
    if kind not in KINDS or not isinstance(name, str) or not name:
        raise PluginError(
            f"{_place(cls)}: a plugin needs a `name` and one of the plugin base classes"
        )
    if not cls.__doc__ and sys.flags.optimize < 2:
        raise PluginError(
            f"{_place(cls)}: {kind} {name!r} has no docstring; its first line is shown by `auditor list`"
        )
    spelt = (name, *getattr(cls, "aliases", ()))
    for other in spelt:
        taken = _plugins[kind].get(other)
        if taken is not None and _place(taken) != _place(cls):
            raise PluginError(
                f"{kind} {other!r} is registered twice: by {_place(taken)} and by {_place(cls)}"
            )
    _plugins[kind].update(dict.fromkeys(spelt, cls))
    return cls


@contextmanager
def lent(kind: str, *classes: type[Plugin]) -> Iterator[None]:
    """Register plugins under another kind while the block runs.

    Raises
    ------
    PluginError
        A name exists in this kind.
    """
    discover(kind)
    for cls in classes:
        if cls.name in _plugins[kind]:
            raise PluginError(
                f"{cls.kind} {cls.name!r} cannot run: there is a {kind} of that name, {_place(_plugins[kind][cls.name])}"
            )
    _plugins[kind].update({cls.name: cls for cls in classes})
    try:
        yield
    finally:
        for cls in classes:
            del _plugins[kind][cls.name]


def _place(cls: type) -> str:
    try:
        _, line = inspect.getsourcelines(cls)
        return f"{cls.__module__}.{cls.__qualname__} ({inspect.getsourcefile(cls)}:{line})"
    except (OSError, TypeError):
        return f"{cls.__module__}.{cls.__qualname__}"


def declaring(kind: str, attribute: str) -> list[str]:
    """Names of a kind's plugins that set an attribute.

    Examples
    --------
    >>> declaring("attack", "best_linear")
    ['llse']
    """
    return [name for name in names(kind) if getattr(get(kind, name), attribute, False)]


def discover(*kinds: str) -> None:
    """Import plugin packages that may hold some kinds (default: all), once.

    Import errors go to ``failures``.
    """
    due = {HOMES[kind] for kind in kinds or KINDS}
    if due <= _discovered:
        return
    due |= {entry.module for entry in _entries()} - set(HOMES.values())
    due -= _discovered
    _discovered.update(due)  # imported modules may call this function
    try:
        with shielded():  # the report of an interrupted run needs whole packages
            for entry in _entries():
                if entry.module in due:
                    package = _import(entry.name, entry.module)
                    for module in modules_in(entry.module, getattr(package, "__path__", ())):
                        _import(entry.name, module)
    except BaseException:
        _discovered.difference_update(due)
        raise


def discover_if_extended() -> None:
    """Import every plugin that a scenario may name if other packages have plugins."""
    if not {entry.module for entry in _entries()} <= set(HOMES.values()):
        discover(*AUDITING)


def has(kind: str, name: str) -> bool:
    """Whether a plugin of this kind and name exists."""
    discover(kind)
    return name in _plugins[kind]


@cache
def _entries() -> list[EntryPoint]:
    """Entry points of plugin packages, by name."""
    points = entry_points(group="auditor.plugins")
    return sorted(points, key=lambda point: (point.name, point.value))


def _import(entry_point: str, module: str) -> ModuleType | None:
    with contained() as failure:  # a third-party module may raise anything
        return importlib.import_module(module)
    failures.append(ImportFailure(entry_point, module, failure.reason))
    return None


def names(kind: str) -> list[str]:
    """Registered names of one kind, sorted, without aliases."""
    discover(kind)
    return sorted(name for name, cls in _plugins[kind].items() if cls.name == name)


def spellings(kind: str) -> list[str]:
    """Every name that ``get`` accepts for one kind, with aliases."""
    discover(kind)
    return sorted(_plugins[kind])


def get(kind: str, name: str) -> type[Any]:
    """Plugin class of a kind and name.

    Raises
    ------
    PluginError
        Unknown name; with close names and failed imports.
    """
    if has(kind, name):
        return _plugins[kind][name]
    broken = "".join(f" ({failure})" for failure in failures)
    raise PluginError(f"unknown {kind} {name!r}{broken}{did_you_mean(name, _plugins[kind])}")


def package(cls: type[Plugin]) -> str:
    """Plugin's distribution, else its top-level package."""
    within = (each for each in _entries() if f"{cls.__module__}.".startswith(f"{each.module}."))
    named = next(filter(None, map(_distribution, within)), None)
    return named or cls.__module__.partition(".")[0]


@cache
def _distribution(entry: EntryPoint) -> str | None:
    return None if entry.dist is None else str(entry.dist.name)


def find(name: str) -> list[type[Plugin]]:
    """Plugins of any kind with a name, for ``auditor show``."""
    discover()
    return [_plugins[kind][name] for kind in KINDS if name in _plugins[kind]]


def everything() -> set[str]:
    """Every name that ``find`` accepts."""
    discover()
    return {name for kind in KINDS for name in _plugins[kind]}
