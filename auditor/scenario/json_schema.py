"""JSON Schema of a scenario for editors, from the installed plugins."""

from __future__ import annotations

from typing import Any

from auditor import registry
from auditor.adversary.coalitions import NAMED
from auditor.adversary.knowledge import KINDS
from auditor.results import bibliography, metrics
from auditor.scenario.fields import FIELDS
from auditor.scenario.levels import CURRENCIES, DRAWN, MOST_COPIES, ORDERS, RANGES
from auditor.scenario.read_data import DISCLOSURE, MISSING, MOST_ROWS
from auditor.scenario.read_knowledge import MOST_SPLITS
from auditor.scenario.read_measures import MEASURES
from auditor.scenario.read_plugins import EVERY, SCHEME_FIELDS
from auditor.scenario.sections import MOST_REPLICATES

JSON = dict[str, Any]


def scenario_schema() -> JSON:
    """Return the JSON Schema (draft 2020-12) of a scenario, with all plugins."""
    definitions: JSON = {}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Audit scenario",
        "type": "object",
        "additionalProperties": False,
        "required": ["data", "schemes"],
        "anyOf": [{"required": ["attacks"]}, {"required": ["utility"]}],
        "properties": _ordered(
            {
                "schema": {"const": 1, "description": "version of this format"},
                "title": {"type": "string"},
                "cite": _optional({"enum": bibliography.keys()}),
                "seed": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "the whole run is a function of scenario, data and seed",
                },
                "data": _data(definitions),
                "schemes": _one_or_many(
                    _shared("scheme", _plugin("scheme", definitions, _scheme_fields()), definitions)
                ),
                "knowledge": _one_or_many(
                    _shared("knowledge", _knowledge(definitions), definitions)
                ),
                "coalitions": _one_or_many(_shared("coalition", _coalition(), definitions)),
                "attacks": _one_or_many(_shared("attack", _attack(definitions), definitions)),
                "measures": _optional(_shared("measure", _measure(), definitions)),
                "sweep": {
                    "type": ["object", "null"],
                    "additionalProperties": {"type": "array", "minItems": 1},
                },
                "replicates": {"type": "integer", "minimum": 1, "maximum": MOST_REPLICATES},
                "expect": _optional(_shared("expectation", _expectation(definitions), definitions)),
            }
        ),
        "$defs": definitions,
    }


def _ordered(properties: JSON) -> JSON:
    """Return properties in documentation order; others accept anything."""
    return {field: properties.get(field, {}) for field in FIELDS}


def _one_or_many(item: JSON) -> JSON:
    return {"anyOf": [item, {"type": "array", "items": item, "minItems": 1}]}


def _optional(item: JSON) -> JSON:
    return {"anyOf": [item, {"type": "array", "items": item}, {"type": "null"}]}


def _named(name: str, properties: JSON, required: list[str]) -> JSON:
    return _object(["name", *required], {"name": {"const": name}, **properties})


def _object(required: list[str], properties: JSON) -> JSON:
    return {
        "type": "object",
        "required": required,
        "additionalProperties": False,
        "properties": properties,
    }


def _shared(name: str, schema: JSON, definitions: JSON) -> JSON:
    definitions[name] = schema
    return {"$ref": f"#/$defs/{name}"}


def _parameters(kind: str, name: str, definitions: JSON) -> JSON:
    """Return a plugin's parameter properties, with shared nested models."""
    model_class = registry.get(kind, name).Parameters
    schema: JSON = model_class.model_json_schema(
        by_alias=True, ref_template=f"#/$defs/{kind}-{name}-{{model}}"
    )
    for model, definition in schema.pop("$defs", {}).items():
        definitions[f"{kind}-{name}-{model}"] = definition
    return schema


def _plugin(kind: str, definitions: JSON, extra: JSON) -> JSON:
    choices: list[JSON] = [{"enum": registry.names(kind)}]
    for name in registry.names(kind):
        schema = _parameters(kind, name, definitions)
        properties = {"name": {"const": name}, **extra, **schema.get("properties", {})}
        choices.append(
            {
                "type": "object",
                "description": registry.get(kind, name).summary(),
                "additionalProperties": False,
                "required": ["name", *schema.get("required", [])],
                "properties": properties,
            }
        )
    return {"anyOf": choices}


def _scheme_fields() -> JSON:
    number = {"type": "number", "minimum": 0}
    ends = _pair(number)
    count = {"type": "integer", "minimum": 1, "maximum": MOST_COPIES}
    sorting = {"order": {"enum": list(ORDERS)}, "out-of": count}
    anew = {
        "each-replicate": {
            "type": "boolean",
            "description": "whether every replicate draws levels anew",
        }
    }
    ranges = [
        {
            "type": "object",
            "additionalProperties": False,
            "required": [kind, "count"],
            "properties": {
                kind: ends,
                "count": count,
                **sorting,
                **(anew if kind in DRAWN else {}),
            },
        }
        for kind in RANGES
    ]
    several = {"type": "array", "items": number, "minItems": 1, "maxItems": MOST_COPIES}
    stated = [
        {
            "type": "object",
            "additionalProperties": False,
            "required": [currency],
            "properties": {
                currency: {**several, "items": {"type": "number", "exclusiveMinimum": 0}}
            },
        }
        for currency in CURRENCIES
    ]
    fields = {
        "id": {"type": "string"},
        "levels": {"anyOf": [several, *ranges, *stated]},
        "already-out": {
            **number,
            "description": "copies, or share of them, that are out before the rest is asked for",
        },
        "public-grid": {
            "type": "boolean",
            "description": "whether copies lie on the grid of copies made for release",
        },
    }
    return {name: fields[name] for name in SCHEME_FIELDS if name in fields}


def _pair(number: JSON | None = None) -> JSON:
    return {"type": "array", "items": number or {"type": "number"}, "minItems": 2, "maxItems": 2}


def _data(definitions: JSON) -> JSON:
    leaves = {"type": "array", "items": {"type": ["string", "number"]}, "minItems": 1}
    branch = {"anyOf": [{"$ref": "#/$defs/hierarchy"}, leaves]}
    definitions["hierarchy"] = {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": branch,
    }
    common: JSON = {
        "columns": {
            "anyOf": [
                {"type": "array", "items": {"type": "string"}, "minItems": 1},
                {"type": ["string", "null"]},
            ]
        },
        "order": {
            "type": ["string", "null"],
            "description": "a column that says in which order records follow one another; not audited",
        },
        "key": {
            "type": ["string", "null"],
            "description": "a column that identifies records, which copies are joined by; not audited",
        },
        "rows": {"type": ["integer", "null"], "minimum": 2, "maximum": MOST_ROWS},
        "first-batch": {
            "type": ["integer", "null"],
            "minimum": 2,
            "description": "records of the first batch, to which noise is scaled",
        },
        "missing": {"enum": list(MISSING)},
        "standardize": {"type": "boolean"},
        "disclosure": {"enum": list(DISCLOSURE)},
        "bin": {
            "type": ["object", "null"],
            "additionalProperties": _bins(),
            "description": "columns cut into classes, for uniform schemes",
        },
        "categorical": {
            "anyOf": [
                {"type": "array", "items": {"type": "string"}},
                {"type": ["object", "string", "null"]},
            ],
            "description": "columns that are categories: names, or names with their domains",
        },
        "dates": {
            "anyOf": [
                {"type": "array", "items": {"type": "string"}},
                {"type": ["object", "string", "null"]},
            ],
            "description": "columns of dates, taken as days since 1970: names, or names with the format of their text, as %d/%m/%Y",
        },
        "bounds": {
            "type": ["object", "null"],
            "additionalProperties": _pair(),
            "description": "by how much one record may change, for guarantees: [low, high] of every column of numbers",
        },
        "tolerance": {
            "type": ["object", "null"],
            "additionalProperties": {
                "anyOf": [
                    {"type": "number", "exclusiveMinimum": 0},
                    {
                        "type": "object",
                        "required": ["relative"],
                        "properties": {"relative": {"type": "number", "exclusiveMinimum": 0}},
                        "additionalProperties": False,
                    },
                ]
            },
            "description": "largest error of a close guess: a number in units, or {relative: share}; default IQR/10",
        },
        "hierarchies": {
            "type": ["object", "null"],
            "additionalProperties": {"$ref": "#/$defs/hierarchy"},
            "description": "columns whose values belong together: nested mappings with lists of values at the ends",
        },
    }
    # a file by its suffix, or a folder of parts by its slash
    path = {"type": "string", "pattern": r"\.([cC][sS][vV]|[pP][aA][rR][qQ][uU][eE][tT])$|[/\\]"}
    choices: list[JSON] = [
        {"anyOf": [{"enum": registry.names("source")}, path]},
        _object(["source"], {"source": path, **common}),
    ]
    for name in registry.names("source"):
        schema = _parameters("source", name, definitions)
        properties = {"source": {"const": name}, **common, **schema.get("properties", {})}
        choices.append(_object(["source", *schema.get("required", [])], properties))
    return {"anyOf": choices}


def _bins() -> JSON:
    count = {"type": "integer", "minimum": 1}
    edges = {"type": "array", "items": {"type": "number"}, "minItems": 2}
    rules = {"equal-width": count, "quantile": count, "edges": edges}
    return {"anyOf": [_object([rule], {rule: argument}) for rule, argument in rules.items()]}


def _model(definitions: JSON) -> list[JSON]:
    common: JSON = {
        "target": {"type": "string"},
        "rows": {"type": "integer", "minimum": 2},
        "known": {"type": "boolean"},
    }
    number, names = (
        {"type": "number"},
        {"type": "array", "items": {"type": "string"}, "minItems": 1},
    )
    positive, share = (
        {"type": "number", "minimum": 0},
        {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    )
    node: JSON = {"$ref": "#/$defs/regression-tree"}
    split = {"split": {"type": "string"}, "at": number, "below": node, "above": node}
    leaf = {"mean": number, "variance": positive, "share": share}
    definitions["regression-tree"] = {
        "anyOf": [_object(list(split), split), _object(["mean", "variance"], leaf)]
    }
    fitted: JSON = {"predictors": {"anyOf": [{"type": "string"}, names]}}
    forms: list[tuple[JSON, JSON]] = [
        (fitted, {"depth": {"type": "integer", "minimum": 1, "maximum": MOST_SPLITS}}),
        (
            {
                "coefficients": {
                    "type": "object",
                    "additionalProperties": number,
                    "minProperties": 1,
                },
                "intercept": number,
                "residual-variance": positive,
            },
            {},
        ),
        ({"tree": node}, {}),
    ]
    return [_object(["target", "rows", *own], {**common, **own, **more}) for own, more in forms]


def _rules() -> JSON:
    name, share = {"type": "string"}, {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
    names = {"anyOf": [name, {"type": "array", "items": name, "minItems": 1}]}
    values = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
    rule = {
        **_object(
            ["then"],
            {
                "if": values,
                "then": {**values, "minProperties": 1},
                "confidence": share,
                "support": share,
            },
        ),
        "dependentRequired": {"confidence": ["support"], "support": ["confidence"]},
    }
    branches = {"target": name, "predictors": names, "depth": {"type": "integer", "minimum": 1}}
    tree = _object([*branches], branches)
    return {
        "margins": {"type": "array", "items": names, "minItems": 1},
        "if-then": {"type": "array", "items": rule, "minItems": 1},
        "tree": tree,
        "known": names,
    }


def _knowledge(definitions: JSON) -> JSON:
    count: JSON = {"type": "integer", "minimum": 1}
    estimated = _object(
        ["rows"],
        {"rows": {"type": "integer", "minimum": 2}, "structure": {"enum": ["scheme", "none"]}},
    )
    names = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    arguments: dict[str, JSON] = {"estimated": estimated, "known-attributes": names}
    choices: list[JSON] = [{"enum": ["perfect", "uniform-prior"]}]
    for kind in KINDS:
        if kind == "model":
            for form in _model(definitions):
                choices.append(_object([kind], {kind: form}))
                choices.append(_named(kind, form["properties"], form["required"]))
        elif kind == "rules":
            either = {"anyOf": [{"required": [key]} for key in ("margins", "if-then", "tree")]}
            inside = {
                "type": "object",
                "additionalProperties": False,
                "properties": _rules(),
                **either,
            }
            choices.append(_object([kind], {kind: inside}))
            choices.append({**_named(kind, _rules(), []), **either})
        elif kind not in ("perfect", "uniform-prior"):
            argument = arguments.get(kind, count)
            choices.append(_object([kind], {kind: argument}))
            named = "attributes" if kind == "known-attributes" else "count"
            inner: JSON = argument["properties"] if kind == "estimated" else {named: argument}
            needed: list[str] = ["rows"] if kind == "estimated" else [*inner]
            choices.append(_named(kind, inner, needed))
        else:
            choices.append(_named(kind, {}, []))
    return {"anyOf": choices}


def _attack(definitions: JSON) -> JSON:
    every = {
        "const": EVERY,
        "description": "every attack that can use some of the knowledge stated against some of the schemes",
    }
    own = {"id": {"type": "string"}, "coalitions": _one_or_many({"$ref": "#/$defs/coalition"})}
    return {"anyOf": [every, *_plugin("attack", definitions, own)["anyOf"]]}


def _coalition() -> JSON:
    copies = {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 1}
    count = {"type": "integer", "minimum": 1}
    kinds = {"copies": ("copies", copies), "first": ("count", count), "random": ("count", count)}
    objects = [_object([key], {key: argument}) for key, (_, argument) in kinds.items()]
    objects += [_named(key, {field: argument}, [field]) for key, (field, argument) in kinds.items()]
    return {
        "anyOf": [
            {"enum": list(NAMED)},
            copies,
            _object(["name"], {"name": {"enum": list(NAMED)}}),
            *objects,
        ]
    }


def _measure() -> JSON:
    number: JSON = {"type": "number", "exclusiveMinimum": 0}
    option: JSON = {"anyOf": [number, {"type": ["array", "string"]}]}
    choices: list[JSON] = [{"enum": [*MEASURES, *metrics.ALWAYS]}]
    for name, options in MEASURES.items():
        inner = dict.fromkeys(options, option)
        mapping: JSON = {
            "type": ["object", "null"],
            "additionalProperties": False,
            "properties": inner,
        }
        argument: JSON = {
            "anyOf": [mapping, number, {"type": "array", "items": {"anyOf": [number, mapping]}}]
        }
        choices.append(_object([name], {name: argument}))
        choices.append(_named(name, inner, []))
    return {"anyOf": choices}


def _expectation(definitions: JSON) -> JSON:
    properties: JSON = {}
    for name in registry.spellings("expectation"):
        schema = _parameters("expectation", name, definitions)
        schema.pop("title", None)
        if name != "metric":
            properties[name] = {"anyOf": [schema, {"type": "null"}]}
    bounds = _parameters("expectation", "metric", definitions)
    bounds["properties"].pop("metric", None)
    bounds["required"] = [field for field in bounds.get("required", []) if field != "metric"]
    bounds = _shared("bounds", bounds, definitions)
    properties |= dict.fromkeys([*metrics.METRICS, *metrics.RENAMED], bounds)
    entry = {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "properties": properties,
        "patternProperties": {r"^utility_|\(.+\)$": bounds},
        "additionalProperties": False,
    }
    named = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"enum": sorted(properties)}},
    }
    return {"anyOf": [{"enum": sorted(properties)}, entry, named]}
