"""Lists of plugins and scenarios, and a page for each plugin."""

import inspect
import types
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from auditor import registry
from auditor.base import AuditorError, PluginError, did_you_mean
from auditor.process.environment import shipped_scenarios, templated
from auditor.results import metrics

KNOWN: dict[bool | None, str] = {
    None: "",
    True: "honest",
    False: "a leak is planted; what it states is not so",
}
"""Ground truth of a self-test case."""


def listing(kinds: Sequence[str]) -> str:
    """Lists with one line per plugin: name, package, kind, summary."""
    parts = []
    for kind in kinds:
        lines = _scenario_lines() if kind == "scenarios" else _plugin_lines(kind.removesuffix("s"))
        parts.append(
            (f"{kind}\n" if len(kinds) > 1 else "")
            + _columns(lines, indent="  " if len(kinds) > 1 else "")
        )
    return "\n\n".join(parts)


def _plugin_lines(kind: str) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = []
    for name in registry.names(kind):
        cls = registry.get(kind, name)
        aliases = f" (also: {', '.join(cls.aliases)})" if getattr(cls, "aliases", ()) else ""
        attack_kind = (cls.attack_kind,) if kind == "attack" else ()
        apart = "" if getattr(cls, "in_all", True) else " (not in `all`)"
        lines.append((name, registry.package(cls), *attack_kind, cls.summary() + aliases + apart))
    if kind == "expectation":
        lines = [line for line in lines if line[0] != "metric"]
        own = registry.package(registry.get("expectation", "metric"))
        lines += [
            (metric.name, own, f"{metric.meaning} With at-least, at-most or between.")
            for metric in metrics.METRICS.values()
        ]
    return lines


def _scenario_lines() -> list[tuple[str, ...]]:
    # start-up: only this list reads scenarios
    from auditor.scenario.yaml_document import load_file

    found: list[tuple[str, ...]] = []
    for path in shipped_scenarios():
        value: Any = load_file(path).value
        found.append((path.stem, str(value.get("title", "")) if isinstance(value, dict) else ""))
    return found


def _columns(lines: Iterable[tuple[str, ...]], indent: str = "") -> str:
    rows = list(lines)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    cells = (
        [*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[-1]]
        for row in rows
    )
    return "\n".join(indent + "  ".join(row) for row in cells)


def page(name: str) -> str:
    """Page of one plugin, metric or shipped scenario.

    Raises
    ------
    PluginError
        Unknown name.
    """
    from auditor.scenario.read import find_scenario  # start-up

    if found := registry.find(name):
        return "\n\n".join(map(_plugin_page, found))
    if metric := metrics.METRICS.get(metrics.canonical(name)):
        return f"{metric.name}: a metric, in {metric.unit}\n\n{metric.meaning}"
    try:
        return find_scenario(name).read_text(encoding="utf-8").rstrip()
    except (AuditorError, OSError):
        shipped = (path.stem for path in shipped_scenarios())
        known = [*registry.everything(), *metrics.METRICS, *shipped]
        raise PluginError(
            f"no plugin, metric or scenario is called {name!r}{did_you_mean(name, known)}"
        ) from None


def _plugin_page(cls: type[registry.Plugin]) -> str:
    told = cls.kind in ("attack", "scheme", "expectation")
    return templated(
        "cli/plugin.txt.jinja",
        cls=cls,
        known=KNOWN,
        rest=(inspect.getdoc(cls) or "").partition("\n")[2].strip(),
        package=registry.package(cls),
        reference=_reference(cls.reference),
        parameters=_parameters(cls.Parameters),
        notes=inspect.getdoc(inspect.getmodule(cls)) if told else None,
    )[:-1]


def _reference(reference: str) -> str:
    works = " ".join(map(metrics.WORKS.__getitem__, metrics.works_in(reference)))
    return f"{reference}. {works}" if works else reference


def _parameters(model: type[BaseModel]) -> str:
    lines = []
    for name, field in model.model_fields.items():
        default = (
            "required"
            if field.is_required()
            else f"default {_shown(field.get_default(call_default_factory=True))}"
        )
        lines.append(
            (
                field.alias or name,
                f"{_type(field.annotation)}{_range(field)}; {default}. {field.description or ''}".rstrip(),
            )
        )
    return _columns(lines, indent="  ")


def _shown(value: Any) -> str:
    return "none" if value is None else repr(value)


def _range(field: FieldInfo) -> str:
    words = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    bounds = [
        f"{sign} {getattr(rule, name):g}"
        for rule in field.metadata
        for name, sign in words.items()
        if hasattr(rule, name)
    ]
    return f" {', '.join(bounds)}" if bounds else ""


def _type(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is Literal:
        return " | ".join(str(choice) for choice in get_args(annotation))
    if origin in (Union, types.UnionType):
        return " | ".join(
            _type(choice) for choice in get_args(annotation) if choice is not type(None)
        )
    if origin is list:
        return f"list of {_type(get_args(annotation)[0])}"
    if origin is dict:
        return "mapping"
    if origin is not None:
        return _type(get_args(annotation)[0])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return (
            "{"
            + ", ".join(field.alias or name for name, field in annotation.model_fields.items())
            + ": …}"
        )
    words = {int: "integer", float: "number", str: "text", bool: "true | false"}
    return words.get(annotation, getattr(annotation, "__name__", "anything"))
