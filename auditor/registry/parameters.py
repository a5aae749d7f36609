"""Messages about fields, and paths such as ``attacks[1].components``.

A path is ``("attacks", 1, "components")``: keys, and numbers, ids or names of list items, as in
``schemes[corner-wave].levels``. Other keys are quoted: ``sweep["data.rows"]``.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import (
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    TypeAlias,
    TypeGuard,
    TypeVar,
    Union,
    cast,
    get_args,
)

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    ValidationError,
    WithJsonSchema as Schema,
)
from pydantic_core import ErrorDetails

from auditor.base import AuditorError, Problem, ScenarioError, did_you_mean, quoted, shortened
from auditor.registry import PluginParameters

Path = tuple[str | int, ...]
Found = tuple[Path, str, bool]
"""Relative path, message, and whether the key is at fault."""

_KINDS = {
    str: "text",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


def is_whole(value: Any, low: float) -> TypeGuard[int]:
    """Whether a value is an integer of at least ``low``; booleans are not."""
    return is_number(value) and isinstance(value, int) and value >= low


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a value is a number; booleans are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def whole(value: Any) -> Any:
    """Convert a double with an integer value, as ``1e5``.

    Examples
    --------
    >>> whole(1e5), whole(2.5), whole(True), whole("1")
    (100000, 2.5, True, '1')
    """
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


Whole = Annotated[int, BeforeValidator(whole)]
"""An integer, which YAML may write with an exponent."""


class FieldError(ValueError):
    """Error of a validator with a complete message, below its own field."""

    def __init__(self, message: str, *place: str | int) -> None:
        super().__init__(message)
        self.place = place


class Form(PluginParameters):
    """Base of the models of sections and of named entries.

    ``alone`` is the field of a bare value, as in ``{known-records: 10}``.
    """

    alone: ClassVar[str] = ""

    @classmethod
    def spelt_out(cls, argument: Any) -> Any:
        """Entry's argument as a mapping of fields."""
        if argument is None:
            return {}
        return argument if isinstance(argument, dict) or not cls.alone else {cls.alone: argument}


def as_list(value: Any) -> Any:
    """Tuples as lists, as YAML has them."""
    return list(value) if isinstance(value, tuple) else value


def _several(value: Any) -> Any:
    return [value] if isinstance(value, str) else as_list(value)


def _distinct(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise ValueError("names a column twice")
    return names


NAMES_SCHEMA = {"type": "array", "items": {"type": "string"}, "minItems": 1}
Names = Annotated[
    list[str],
    BeforeValidator(_several),
    Field(min_length=1),
    AfterValidator(_distinct),
    Schema({"anyOf": [{"type": "string"}, NAMES_SCHEMA]}),
]
"""Column names, or a single one."""


def kind_of(value: object) -> str:
    """Name a value's kind for a message: ``an integer``, ``a list``."""
    return _KINDS.get(type(value), "a list" if isinstance(value, list) else "a mapping")


def shown(value: Any) -> str:
    """Format a scenario's value for a message, without table content."""
    if isinstance(value, list | tuple | dict) and len(value) > 4:
        return f"a {'mapping' if isinstance(value, dict) else 'list'} of {len(value)}"
    try:
        text = "nothing" if value is None else repr(value)
    except ValueError:  # too long for Python to print
        text = "a huge integer"
    return text if len(text) <= 60 else text[:57] + "…"


class _Finding(NamedTuple):
    place: Path
    branches: dict[Path, str | int]
    """Branch of each union, by its place."""
    item: ErrorDetails

    @property
    def kind(self) -> str:
        return self.item["type"]


def explain(
    error: ValidationError, model: type[BaseModel], value: Any, known: tuple[str, ...] = ()
) -> list[Found]:
    """Pydantic's errors as (relative path, message, key at fault).

    Without an intended branch of a union, a message lists all. ``known`` has further valid names.
    """
    tell: Callable[[Any], str] = kind_of if getattr(model, "holds_cells", False) else shown
    findings = [_finding(item, value) for item in error.errors(include_url=False)]
    problems: list[Found] = []
    for place in sorted({at for finding in findings for at in finding.branches}, key=len):
        inside = [finding for finding in findings if place in finding.branches]
        if inside:
            kept, summary = _meant(place, inside, tell)
            findings = [f for f in findings if place not in f.branches or f in kept]
            problems += summary
    by_place: dict[Path, list[_Finding]] = {}
    for finding in findings:
        by_place.setdefault(finding.place, []).append(finding)
    misspelt = {f.place[:-1] for f in findings if f.kind == "extra_forbidden"}
    for place, items in by_place.items():
        if items[0].kind == "missing" and place[:-1] in misspelt:
            continue  # the unknown field may be the missing one
        fields = _fields(model, place[:-1])
        kinds = {item.kind for item in items}
        if kinds == {"extra_forbidden"} and place[-1] in fields:
            problems.append((place, "does not go with the other fields", True))
        elif kinds == {"extra_forbidden"}:
            hint = did_you_mean(place[-1], [*fields, *(known if len(place) == 1 else ())])
            problems.append((place, f"is not a known field{hint}", True))
        elif "missing" in kinds:
            about = fields.get(str(place[-1]))
            problems.append((place, f"is required{(about and f': {about}') or ''}", False))
        else:
            own = ", ".join(_fields(model, place)) if kinds <= _MAPPINGS else ""
            problems.append((place, _wrong(place, items, own, tell), False))
    return problems


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]


def _fields(model: type[BaseModel], place: Path) -> dict[str, str | None]:
    models = [model]
    for part in place:
        if isinstance(part, str):
            models = [
                inner
                for each in models
                for name, field in each.model_fields.items()
                if (field.alias or name) == part
                for inner in _models(field.annotation)
            ]
    return {
        field.alias or name: field.description
        for each in models
        for name, field in each.model_fields.items()
    }


def _finding(item: ErrorDetails, value: Any) -> _Finding:
    place: Path = ()
    branches: dict[Path, str | int] = {}
    for step, part in enumerate(item["loc"]):
        absent = item["type"] == "missing" and step == len(item["loc"]) - 1
        if isinstance(value, dict) and isinstance(part, str) and (part in value or absent):
            place, value = (*place, part), value.get(part)
        elif isinstance(value, list | tuple) and isinstance(part, int) and part < len(value):
            place, value = (*place, part), value[part]
        else:
            branches.setdefault(place, part)
    below = getattr(item.get("ctx", {}).get("error"), "place", ())
    return _Finding((*place, *below), branches, item)


def _meant(
    place: Path, inside: list[_Finding], tell: Callable[[Any], str]
) -> tuple[list[_Finding], list[Found]]:
    groups: dict[str | int, list[_Finding]] = {}
    for finding in inside:
        groups.setdefault(finding.branches[place], []).append(finding)
    fits = [group for group in groups.values() if not any(_misfit(f, place) for f in group)]
    if fits or len(groups) == 1:
        return (fits or list(groups.values()))[0], []
    entered = [group for group in groups.values() if any(f.place != place for f in group)]
    unknown = [{f.place for f in group if f.kind == "extra_forbidden"} for group in entered]
    written = set[Path]().union(*unknown)
    named = [g for g, names in zip(entered, unknown, strict=True) if len(names) < len(written)]
    if named:
        return named[0], []
    wanted = [
        str(f.place[-1])
        for group in entered
        for f in group
        if f.kind == "missing" and len(f.place) == len(place) + 1
    ]
    for path in sorted(written, key=str):
        close = did_you_mean(path[-1], wanted)
        if close.startswith("; did"):
            return [], [(path, f"is not a known field{close}", True)]
    alone = [finding for finding in inside if finding.place == place]
    choices = [expected_by(finding.item).removeprefix("must be ") for finding in alone]
    choices += [f"{{{name}: …}}" for name in wanted]
    got = tell(alone[0].item["input"] if alone else None)
    return [], [
        (place, f"must be {' or '.join(dict.fromkeys(choices))}; got {got}{_nearest(alone)}", False)
    ]


def _misfit(finding: _Finding, place: Path) -> bool:
    if finding.place == place:
        return finding.kind != "value_error"
    return len(finding.place) == len(place) + 1 and finding.kind in ("missing", "extra_forbidden")


def _nearest(findings: list[_Finding]) -> str:
    words = [
        word
        for f in findings
        if f.kind == "literal_error"
        for word in re.findall(r"'([^']*)'", f.item["ctx"]["expected"])
    ]
    hint = did_you_mean(findings[0].item["input"], words) if words else ""
    return hint if hint.startswith("; did") else ""


def _wrong(place: Path, findings: list[_Finding], own: str, tell: Callable[[Any], str]) -> str:
    expected = " or ".join(dict.fromkeys(expected_by(finding.item) for finding in findings))
    stated = isinstance(findings[0].item.get("ctx", {}).get("error"), FieldError)
    whole_model = not place and all(finding.kind == "value_error" for finding in findings)
    if stated or whole_model or "; got" in expected:
        return expected
    got = tell(findings[0].item["input"])
    return f"{expected}{f' with {own}' if own else ''}; got {got}{_nearest(findings)}"


_MAPPINGS = {"dict_type", "model_type", "model_attributes_type"}
_WORDS = {
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "string_type": "must be text",
    "string_too_short": "must not be empty",
    "bool_type": "must be true or false",
    "missing": "is required",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    **dict.fromkeys(_MAPPINGS, "must be a mapping"),
}
_BOUNDS = {
    "greater_than": ("must be greater than {}", "gt"),
    "greater_than_equal": ("must be at least {}", "ge"),
    "less_than": ("must be less than {}", "lt"),
    "less_than_equal": ("must be at most {}", "le"),
    "too_short": ("must have {} or more entries", "min_length"),
    "too_long": ("must have {} or fewer entries", "max_length"),
}


def expected_by(item: ErrorDetails) -> str:
    """Expectation that a value does not meet, without the value."""
    kind, context = item["type"], item.get("ctx", {})
    if kind in _WORDS:
        return _WORDS[kind]
    if kind in _BOUNDS:
        words, name = _BOUNDS[kind]
        limit = context[name]
        big = isinstance(limit, float) or limit >= 2**64
        return words.format(f"{limit:g}" if big else f"{limit:,}")
    if kind == "literal_error":
        return f"must be {context['expected']}"
    if kind == "value_error":
        return str(context["error"])
    return item["msg"][:1].lower() + item["msg"][1:]


Value: TypeAlias = Union[dict[str, "Value"], list["Value"], str, int, float, bool, None]  # noqa: UP007 - recursive

# scenarios need 6; Python's stack allows about 1,000
MAX_DEPTH = 50

EVERY = "*"
"""Wildcard: ``schemes[*].levels`` is the levels of every scheme."""

_BARE = re.compile(r"[^\W\d][\w-]*")
"""Keys that `format_path` writes without quotes."""

# Alternatives have distinct first characters, so matching cannot be slow.
_ELEMENT = re.compile(
    r"""\[ (?P<index> -?[0-9]{1,1000} ) \]
      | \[ (?P<quoted> "(?:[^"\\]|\\.)*" ) \]
      | \[ (?P<name> [^\[\]"'\s] [^\[\]"']* ) \]
      | (?P<dot> \.? ) (?P<key> [^.\[\]"'\s]+ )
    """,
    re.VERBOSE | re.DOTALL,
)


def format_path(path: Path) -> str:
    """Format a path for error messages and ``--set``.

    Examples
    --------
    >>> format_path(("attacks", 1, "components")), format_path(("sweep", "data.rows"))
    ('attacks[1].components', 'sweep["data.rows"]')
    """
    return "".join(_format_element(element) for element in path).removeprefix(".")


def parse_path(text: str) -> Path:
    """Parse a path; the inverse of `format_path`, empty for the whole document.

    Raises
    ------
    AuditorError
        The text is not a path.

    Examples
    --------
    >>> parse_path("schemes[0].levels.count"), parse_path('sweep["data.rows"]')
    (('schemes', 0, 'levels', 'count'), ('sweep', 'data.rows'))
    """
    elements: list[str | int] = []
    at = 0
    while at < len(text):
        match = _ELEMENT.match(text, at)
        if match is None or (match["key"] is not None and bool(match["dot"]) != bool(elements)):
            raise _bad_path(text, at)
        elements.append(_parse_element(match, text))
        at = match.end()
    return tuple(elements)


def set_at(value: Value, path: Path, new: Value, places: list[Path] | None = None) -> Value:
    """Copy a value with one place, or all of ``[*]``, replaced or added.

    Missing mappings are created; a bare name becomes ``{name: …}``. ``places`` receives numbered
    paths.

    Raises
    ------
    AuditorError
        The path leads through a scalar, past a list, to an unknown or ambiguous name, or beyond
        `MAX_DEPTH`.

    Examples
    --------
    >>> set_at({"schemes": ["corner-wave"]}, ("schemes", 0, "levels"), [0.5])
    {'schemes': [{'name': 'corner-wave', 'levels': [0.5]}]}
    """
    if len(path) > MAX_DEPTH:
        raise AuditorError(
            f"a path of {len(path)} elements is longer than the {MAX_DEPTH} a scenario may be deep"
        )
    found: list[Path] = [] if places is None else places

    def changed(here: Any, parent: Any, at: Path, depth: int) -> Any:
        """Value with everything below it set; ``at`` is its numbered path."""
        if depth == len(path):
            found.append(at)
            return new
        element = path[depth]
        if isinstance(here, list):
            numbers = _item_numbers(here, path, depth)
            return [
                changed(item, here, (*at, n), depth + 1) if n in numbers else item
                for n, item in enumerate(here)
            ]
        if isinstance(element, str) and here is None:
            here = {}
        elif isinstance(element, str) and isinstance(here, str) and isinstance(parent, list):
            here = {"name": here}
        if isinstance(here, dict) and isinstance(element, str):
            return here | {element: changed(here.get(element), here, (*at, element), depth + 1)}
        raise AuditorError(
            f"{_place(path, depth)} is {kind_of(here)}, so nothing can be set at {shortened(format_path(path), 120)}"
        )

    return cast("Value", changed(value, None, (), 0))


def _format_element(element: str | int) -> str:
    if isinstance(element, int):
        return f"[{element}]"
    if _BARE.fullmatch(element):
        return f".{element}"
    return f"[{json.dumps(element, ensure_ascii=not element.isprintable())}]"


def _parse_element(match: re.Match[str], text: str) -> str | int:
    if match["index"] is not None:
        return int(match["index"])
    if match["quoted"] is None:
        return match["key"] or match["name"].rstrip()
    try:
        return str(json.loads(match["quoted"], strict=False))
    except json.JSONDecodeError:
        raise _bad_path(text, match.start("quoted")) from None


def _bad_path(text: str, at: int) -> AuditorError:
    found = quoted(text[at : at + 20]) if at < len(text) else "the end"
    return AuditorError(
        f"{quoted(text)} is not a path: at character {at + 1} expected a key, .key, [number], [name] or "
        f'["quoted key"]; got {found}'
    )


def _item_numbers(items: list[Value], path: Path, depth: int) -> list[int]:
    element, where, numbers = path[depth], _place(path, depth), list(range(len(items)))
    count = f"{len(items)} item" + "s" * (len(items) != 1)
    if element == EVERY:
        return numbers
    if isinstance(element, int):
        if element in numbers:
            return [element]
        raise AuditorError(f"{where} has {count}, numbered from 0; got [{element}]")
    ids = {n: item["id"] for n, item in enumerate(items) if isinstance(item, dict) and "id" in item}
    names = {
        n: item.get("name") if isinstance(item, dict) else item for n, item in enumerate(items)
    }
    found = [n for n in numbers if ids.get(n) == element]
    found = found or [n for n in numbers if names[n] == element]
    if len(found) == 1:
        return found
    if found:
        raise AuditorError(
            f"{where} has several items named {quoted(element)}: {', '.join(f'[{n}]' for n in found)}; choose by "
            "number or id"
        )
    known = (name for name in (*ids.values(), *names.values()) if isinstance(name, str))
    hint = did_you_mean(element, known)
    raise AuditorError(f"{where} is a list of {count}, none named {quoted(element)}{hint}")


def _place(path: Path, depth: int) -> str:
    return shortened(format_path(path[:depth]), 120) or "the document"


def sentence(found: Iterable[Found]) -> str:
    """Errors of fields, each after its path, as one sentence."""
    return "; ".join(f"{format_path(path)} {message}".lstrip() for path, message, _ in found)


# -- errors of a scenario by field, and models of its sections -------------------------------------

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


class FormError(ValueError):
    """Errors of one entry; ``found`` has relative paths and messages."""

    def __init__(self, found: Iterable[Found]) -> None:
        self.found = tuple(found)
        super().__init__(sentence(self.found))


def split(item: Any) -> tuple[Any, Any]:
    """Split an entry into name and argument.

    Forms: ``perfect``, ``{estimated: {rows: 400}}`` or ``{name: estimated, rows: 400}``.
    """
    if isinstance(item, str):
        return item, None
    if isinstance(item, dict) and isinstance(item.get("name"), str):
        return item["name"], {key: value for key, value in item.items() if key != "name"} or None
    if isinstance(item, dict) and len(item) == 1:
        return next(iter(item.items()))
    return None, None


def read_entry(item: Any, forms: Mapping[str, type[Form]], what: str) -> tuple[str, Any]:
    """Entry's name and its validated form.

    Raises
    ------
    FormError
        All errors of the entry; ``what`` describes it, as ``a measure``.
    """
    name, argument = split(item)
    if name not in forms:
        hint = did_you_mean(name or "", forms)
        raise FormError([((), f"must be {what}; got {shown(item)}{hint}", False)])
    problems = Problems()
    place = () if isinstance(item, dict) and "name" in item else (name,)
    form = problems.model(place or ("name",), forms[name].spelt_out(argument), forms[name])
    if form is None:
        # a bare value is at its entry's place
        bare = 1 if forms[name].alone and not isinstance(argument, dict) else 0
        raise FormError(
            ((*place, *path[1 + bare :]), message, key) for path, message, key in problems.found
        )
    return name, form


@dataclass
class Problems:
    """Errors so far: (path, message, whether the *key* is wrong)."""

    found: list[Found] = field(default_factory=list)

    def add(self, path: Path, message: str, key: bool = False) -> None:
        """Add an error; ``key`` places it at the key instead of the value."""
        self.found.append((path, message, key))

    def attempt(self, path: Path, parse: Callable[[Any], T], value: Any) -> T | None:
        """Return ``parse(value)``, or add the ValueError that it raises."""
        try:
            return parse(value)
        except FormError as error:
            self.found += [((*path, *place), message, key) for place, message, key in error.found]
        except ValueError as error:
            self.add((*path, *getattr(error, "place", ())), str(error))
        return None

    def each(self, path: Path, parse: Callable[[Any], T], value: Any) -> list[T | None]:
        """Every item of a list by ``parse``; None for invalid items."""
        return [
            self.attempt((*path, place), parse, item)
            for place, item in enumerate(self.sequence(path, value))
        ]

    def sequence(self, path: Path, value: Any, optional: bool = False) -> list[Any]:
        """A list; a single item becomes one. Empty only if ``optional``, and then also null."""
        if optional and value is None:
            return []
        if isinstance(value, str | dict):
            return [value]
        if not isinstance(value, list | tuple):
            self.add(path, f"must be a list; got {shown(value)}")
            return []
        if not value and not optional:
            self.add(path, "must name at least one")
        return list(value)

    def unique(self, path: Path, names: Iterable[str | None], what: str) -> None:
        """Report repeated names; None is unreadable."""
        seen: set[str] = set()
        remedy = "; give one of them an id of its own" if what in ("scheme", "attack") else ""
        for place, name in enumerate(names):
            if name in seen:
                self.add((*path, place), f"repeats {what} {name!r}{remedy}")
            elif name is not None:
                seen.add(name)

    def model(
        self, path: Path, value: Any, model: type[M], beside: tuple[str, ...] = ()
    ) -> M | None:
        """Return the validated model, or report all errors.

        ``beside`` has fields that are read elsewhere, to suggest spellings.
        """
        if not path and not isinstance(value, dict):  # a document may be a table
            self.add(path, f"must be a mapping; got {kind_of(value)}")
            return None
        aliases = {field.alias or name for name, field in model.model_fields.items()}
        spelt = value
        if isinstance(value, dict):
            spelt = {
                key.replace("_", "-") if key.replace("_", "-") in aliases else key: item
                for key, item in value.items()
            }
        try:
            return model.model_validate(spelt)
        except ValidationError as error:
            for relative, message, key in explain(error, model, spelt, beside):
                self.add((*path, *relative), message, key)
            return None


MOST_DIGITS = 1000


def plain(value: Any, path: Path = ()) -> Any:
    """Convert numpy scalars, arrays, tuples and paths to plain values.

    Raises
    ------
    ScenarioError
        A value has no YAML form: an object, a huge integer, or deep nesting.
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    why = f"holds a {type(value).__name__}, which no scenario can"
    if len(path) > MAX_DEPTH:
        why = f"is nested too deeply: over {MAX_DEPTH} lists and mappings in one another"
    elif isinstance(value, Mapping):
        return {str(key): plain(item, (*path, str(key))) for key, item in value.items()}
    elif isinstance(value, list | tuple):
        return [plain(item, (*path, place)) for place, item in enumerate(value)]
    elif isinstance(value, int) and abs(value) >= 10**MOST_DIGITS:
        why = f"is an integer of more than {MOST_DIGITS} digits"
    elif value is None or isinstance(value, bool | int | float | str):
        return value
    raise ScenarioError([Problem(format_path(path), why)])
