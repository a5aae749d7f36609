"""JSON Schema of a scenario for editors, from the installed plugins."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from auditor import registry
from auditor.adversary.knowledge import KINDS
from auditor.data.formats.file_kinds import SUFFIXES
from auditor.data.table import DataUse
from auditor.registry.parameters import Form
from auditor.results import metrics
from auditor.scenario.model import CURRENCIES, RANGES, ByGuarantee, Listed, Range, Utility
from auditor.scenario.read import Document
from auditor.scenario.read_expectations import MEASURES
from auditor.scenario.read_plugins import COALITIONS, EVERY, AttackForm, SchemeForm, UseForm

JSON = dict[str, Any]


def scenario_schema() -> JSON:
    """JSON Schema (draft 2020-12) of a scenario, with all plugins."""
    definitions: JSON = {}
    root = _model(Document, "scenario", definitions)
    coalitions = _entries("coalition", COALITIONS, definitions)
    coalitions["anyOf"].append({"type": "array", "items": {"type": "integer", "minimum": 1}})
    definitions["coalition"] = coalitions
    several = {"$ref": "#/$defs/coalition"}
    schemes = _plugins("scheme", SchemeForm, {"levels": _levels(definitions)}, definitions)
    attacks = _plugins("attack", AttackForm, {"coalitions": _list(several)}, definitions)
    every = "the attacks that can be the strongest, with some of the knowledge against some scheme"
    attacks["anyOf"].append({"const": EVERY, "description": every})
    measures = _entries("measure", MEASURES, definitions)
    measures["anyOf"].append({"enum": list(metrics.ALWAYS)})
    definitions |= {
        "scheme": schemes,
        "attack": attacks,
        "measure": measures,
        "knowledge": _entries("knowledge", KINDS, definitions),
        "expectation": _expectation(definitions),
    }
    root["properties"] |= {
        "cite": _list({"enum": sorted(metrics.WORKS)}, optional=True),
        "data": _data(definitions),
        "schemes": _list({"$ref": "#/$defs/scheme"}),
        "knowledge": _list({"$ref": "#/$defs/knowledge"}),
        "coalitions": _list(several),
        "attacks": _list({"$ref": "#/$defs/attack"}),
        "measures": _list({"$ref": "#/$defs/measure"}, optional=True),
        "utility": {"anyOf": [_model(Utility, "utility", definitions), {"type": "null"}]},
        "expect": _list({"$ref": "#/$defs/expectation"}, optional=True),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **root,
        "title": "Audit scenario",
        "anyOf": [{"required": ["attacks"]}, {"required": ["utility"]}],
        "$defs": definitions,
    }


def _model(model: type[BaseModel], name: str, definitions: JSON) -> JSON:
    found = model.model_json_schema(ref_template=f"#/$defs/{name}-{{model}}")
    schema: JSON = _with_bounds(found)
    for inner, definition in schema.pop("$defs", {}).items():
        definitions[f"{name}-{inner}"] = definition
    return {"type": "object", "additionalProperties": False, "properties": {}} | schema


_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
"""Names that pydantic leaves in schemas with a validator."""


def _with_bounds(part: Any) -> Any:
    if isinstance(part, list):
        return [_with_bounds(one) for one in part]
    if not isinstance(part, dict):
        return part
    is_number = part.get("type") in ("integer", "number")
    return {
        _BOUNDS.get(key, key) if is_number else key: _with_bounds(value)
        for key, value in part.items()
    }


def _list(item: JSON, optional: bool = False) -> JSON:
    if optional:
        return {"anyOf": [item, {"type": "array", "items": item}, {"type": "null"}]}
    return {"anyOf": [item, {"type": "array", "items": item, "minItems": 1}]}


def _named(schema: JSON, name: str, shared: JSON | None = None, key: str = "name") -> JSON:
    properties = {key: {"const": name}, **(shared or {}), **schema["properties"]}
    return schema | {"properties": properties, "required": [key, *schema.get("required", [])]}


def _entries(kind: str, forms: Mapping[str, type[Form]], definitions: JSON) -> JSON:
    """``NAME``, ``{NAME: argument}`` or ``{name: NAME, …}`` of every form."""
    bare: list[str] = []
    choices: list[JSON] = [{"enum": bare}]
    for name, form in forms.items():
        schema = _model(form, f"{kind}-{name}", definitions)
        argument: list[JSON] = [schema]
        if form.alone:
            argument.append(schema["properties"][form.alone])
        if not schema.get("required"):
            bare.append(name)
            argument.append({"type": "null"})
        if "tolerances" in form.model_fields:
            argument.append({"type": "array", "items": {"type": ["number", "object"]}})
        entry = {"type": "object", "required": [name], "additionalProperties": False}
        choices += [entry | {"properties": {name: {"anyOf": argument}}}, _named(schema, name)]
    return {"anyOf": choices}


def _plugins(kind: str, form: type[UseForm], fields: JSON, definitions: JSON) -> JSON:
    shared = _model(form, kind, definitions)["properties"] | fields
    choices: list[JSON] = [{"enum": registry.names(kind)}]
    for name in registry.names(kind):
        cls = registry.get(kind, name)
        schema = _model(cls.Parameters, f"{kind}-{name}", definitions)
        others = {field: value for field, value in shared.items() if field != "name"}
        choices.append(_named(schema, name, others) | {"description": cls.summary()})
    return {"anyOf": choices}


def _levels(definitions: JSON) -> JSON:
    listed = _model(Listed, "levels", definitions)["properties"]["levels"]
    ranges, stated = (
        _model(form, "levels", definitions) | {"oneOf": [{"required": [kind]} for kind in kinds]}
        for form, kinds in ((Range, RANGES), (ByGuarantee, CURRENCIES))
    )
    return {"anyOf": [listed, ranges, stated]}


def _data(definitions: JSON) -> JSON:
    common = _model(DataUse, "data", definitions)
    del common["properties"]["parameters"]
    # a file by its suffix, with options behind it, or a folder of parts by its slash
    ends = "|".join(one[1:] for suffix in SUFFIXES for one in (suffix, suffix.upper()))
    path = {"type": "string", "pattern": rf"\.({ends})(#|$)|[/\\]"}
    choices: list[JSON] = [
        {"anyOf": [{"enum": registry.names("source")}, path]},
        common | {"properties": common["properties"] | {"source": path}},
    ]
    shared = {name: value for name, value in common["properties"].items() if name != "source"}
    for name in registry.names("source"):
        schema = _model(registry.get("source", name).Parameters, f"source-{name}", definitions)
        choices.append(_named(schema, name, shared, key="source"))
    return {"anyOf": choices}


def _expectation(definitions: JSON) -> JSON:
    properties: JSON = {}
    for name in registry.spellings("expectation"):
        parameters = registry.get("expectation", name).Parameters
        schema = _model(parameters, f"expectation-{name}", definitions)
        properties[name] = {"anyOf": [schema, {"type": "null"}]}
    bounds = properties.pop("metric")["anyOf"][0]
    bounds["properties"].pop("metric")
    bounds["required"] = [field for field in bounds.get("required", []) if field != "metric"]
    definitions["bounds"] = bounds
    shared = {"$ref": "#/$defs/bounds"}
    properties |= dict.fromkeys([*metrics.METRICS, *metrics.RENAMED], shared)
    entry = {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "properties": properties,
        "patternProperties": {r"^utility_|\(.+\)$": shared},
        "additionalProperties": False,
    }
    names = {"enum": sorted(properties)}
    named = {"type": "object", "required": ["name"], "properties": {"name": names}}
    return {"anyOf": [names, entry, named]}
