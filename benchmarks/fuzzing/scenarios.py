"""Mutations of scenarios: of the parsed document, and of the text."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from auditor.process.environment import shipped_scenarios
from auditor.scenario.yaml_document import load_file
from benchmarks.fuzzing.judge import Case, secrets
from benchmarks.fuzzing.tables import plain_tables

CORPUS = Path(__file__).parents[2] / "tests" / "fuzz_corpus"
DEEP: Any = None
for _ in range(60):
    DEEP = [DEEP]

NASTY: list[Any] = [
    None,
    True,
    False,
    "",
    " ",
    0,
    -1,
    1,
    2,
    1.5,
    -0.0,
    5e-324,
    1e-12,
    1e308,
    -1e308,
    float("nan"),
    float("inf"),
    float("-inf"),
    2**31,
    2**63,
    10**400,
    "nan",
    "1e400",
    "0x1F",
    "١٢٣",
    "1_000",
    [],
    {},
    [[]],
    [None],
    [[1, 2], [3, 4]],
    DEEP,
    {"a": {"b": {"c": 1}}},
    {"name": "llse"},
    {"name": ["llse"]},
    {"": 1},
    list(range(500)),
    [0.5] * 300,
    "x" * 300,
    "x" * 3000,
    "~nosuchuser/x.csv",
    "x\0.csv",
    "a" * 300 + ".csv",
    "/" * 5000,
    "/dev/null",
    ".",
    "..",
    "../..",
    "t.csv",
    "t.parquet",
    "s.yaml",
    "none.csv",
    "<script>alert(1)</script>",
    "\u202egnp.csv",
    "\x1b[31mred",
    "a\nb",
    "a\rb",
    "tab\there",
    "💥",
    "\ud800",
    "*",
    "all",
    "perfect",
    "__class__",
    "{0}",
    "%s",
    "$(id)",
    {"uniform": [0.25, 1.0], "count": 10**12},
    {"linear": [0, 1], "count": 50},
    {"random": 10**9},
    {"copies": [1, 1, 99]},
    {"copies": []},
    {"estimated": {"rows": 10**12}},
    {"known-records": 5},
    {"known-records": -1},
    {"known-attributes": ["age"]},
    {"known-sample": 10**9},
    {"quantile": 10**9},
    {"equal-width": 0},
    {"matrix": "t.csv"},
    {"variance": -1},
    {"spectrum": [1, -1]},
    {"data.rows": [5, 10**30]},
]
"""Values that nobody expects where they are put."""

Paths = list[tuple[Any, ...]]


@cache
def shapes() -> tuple[Any, ...]:
    """Return the documents to mutate: every section, and all shipped ones.

    On tiny tables, or on a few records.
    """
    own = [load_file(path).value for path in sorted((CORPUS / "shapes").glob("*.yaml"))]
    return tuple(own * 5 + [_few(load_file(path).value) for path in shipped_scenarios()])


def _few(document: Any) -> Any:
    data = document["data"] if isinstance(document["data"], dict) else {"source": document["data"]}
    small = (
        {"rows": 200}
        if "attributes" not in data and data["source"] not in ("inline", "iris", "wisconsin")
        else {}
    )
    return document | {"data": data | small}


def paths(value: Any, here: tuple[Any, ...] = ()) -> Paths:
    """Return the path of every part of a document but the document."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path for key, item in items for path in ((*here, key), *paths(item, (*here, key)))]


def at(value: Any, path: tuple[Any, ...]) -> Any:
    """Return a part."""
    for key in path:
        value = value[key]
    return value


def put(value: Any, path: tuple[Any, ...], new: Any) -> None:
    """Replace a part."""
    at(value, path[:-1])[path[-1]] = new


def _drop(document: Any, draw: random.Random) -> None:
    path = draw.choice(paths(document))
    del at(document, path[:-1])[path[-1]]


def _nasty(document: Any, draw: random.Random) -> None:
    put(document, draw.choice(paths(document)), copy.deepcopy(draw.choice(NASTY)))


def _retype(document: Any, draw: random.Random) -> None:
    path = draw.choice(paths(document))
    value = at(document, path)
    put(
        document,
        path,
        draw.choice(
            [
                [value],
                {"name": value} if not isinstance(value, dict) else list(value),
                str(value),
                {str(value)[:40]: value},
            ]
        ),
    )


def _misspell(document: Any, draw: random.Random) -> None:
    path = draw.choice(paths(document))
    value, key = at(document, path), path[-1]
    if isinstance(key, str) and (draw.random() < 0.5 or not isinstance(value, str)):
        parent = at(document, path[:-1])
        parent[slip(key, draw)] = parent.pop(key)
    else:
        put(document, path, slip(str(value)[:200], draw))


def slip(word: str, draw: random.Random) -> str:
    """Return a word with one letter wrong."""
    place = draw.randrange(len(word) + 1)
    return draw.choice(
        [
            word[:place] + word[place + 1 :],
            word[:place] + draw.choice("aeiou-_ X") + word[place:],
            word[:place] + word[place:].swapcase(),
            word[:place] + word[place : place + 2][::-1] + word[place + 2 :],
        ]
    )


def _swap(document: Any, draw: random.Random) -> None:
    one, other = (draw.choice(paths(document)) for _ in range(2))
    first, second = copy.deepcopy(at(document, one)), copy.deepcopy(at(document, other))
    put(document, one, second)
    if one != other[: len(one)] and other != one[: len(other)]:
        put(document, other, first)


def _repeat(document: Any, draw: random.Random) -> None:
    lists = [
        path
        for path in paths(document)
        if isinstance(at(document, path), list) and at(document, path)
    ]
    if lists:
        found = at(document, draw.choice(lists))
        found.extend(copy.deepcopy(draw.choice(found)) for _ in range(draw.choice([1, 1, 3, 200])))


def _graft(document: Any, draw: random.Random) -> None:
    other = draw.choice(shapes())
    key = draw.choice(list(other))
    source = draw.choice([path for path in paths(other) if path[0] == key])
    like = [path for path in paths(document) if path[0] == key] or paths(document)
    put(document, draw.choice(like), copy.deepcopy(at(other, source)))


def _extreme(document: Any, draw: random.Random) -> None:
    numbers = [path for path in paths(document) if type(at(document, path)) in (int, float)]
    if numbers:
        path = draw.choice(numbers)
        put(
            document,
            path,
            at(document, path)
            * draw.choice([0, -1, 2, 1000, 10**9, 1e-9, 1e-300, 1e150, 0.5, 1e60, 1e-60, 1e100]),
        )


OF_STRUCTURE: dict[str, Callable[[Any, random.Random], None]] = {
    "a part left out": _drop,
    "a nasty value": _nasty,
    "another type": _retype,
    "a slip of the pen": _misspell,
    "parts swapped": _swap,
    "items repeated": _repeat,
    "a part of another scenario": _graft,
    "an extreme number": _extreme,
}

TOKENS = [
    b"\t",
    b"&a ",
    b"*a",
    b"<<: *a\n",
    b"!!python/object/apply:os.system [id]",
    b"!!binary ",
    b"? ",
    b"- - - -",
    b"\n---\n",
    b"%YAML 1.1\n",
    b"...\n",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xc2\x85",
    b"\xe2\x80\xa8",
    b"\xed\xa0\x80",
    b"\r",
    b"\r\n",
    b"'",
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b": ",
    b"#",
    b"|\n",
    b">-\n  ",
    b"@",
    b"`",
    b"\\",
    b'"\\ud800"',
    b'"\\x1b[2J"',
    b"[" * 2000,
    b"{a: " * 300,
    b"x" * 70_000,
    b"9" * 5000,
    b"~",
    b"0o17",
    b"1e999",
    b"-.inf",
    b".nan",
    b"1_0",
    b"\xd9\xa1",
    b"=",
    b"\x1b[31m",
]
BOMB = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (98 + k, 98 + k, b",".join([b"*%c" % (97 + k)] * 9)) for k in range(9)
)


def _flip(text: bytearray, draw: random.Random) -> None:
    for _ in range(draw.choice([1, 1, 3, 20])):
        text[draw.randrange(len(text))] ^= 1 << draw.randrange(8)


def _cut(text: bytearray, draw: random.Random) -> None:
    start = draw.randrange(len(text))
    del text[start : draw.choice([start + draw.randrange(1, 30), len(text)])]


def _insert(text: bytearray, draw: random.Random) -> None:
    place = draw.randrange(len(text) + 1)
    text[place:place] = draw.choice(TOKENS)


def _indent(text: bytearray, draw: random.Random) -> None:
    lines = bytes(text).split(b"\n")
    place = draw.randrange(len(lines))
    lines[place] = (
        draw.choice([b" ", b"   ", b"\t", b"- "]) + lines[place]
        if draw.random() < 0.7
        else lines[place].lstrip(b" ")
    )
    text[:] = b"\n".join(lines)


def _lines(text: bytearray, draw: random.Random) -> None:
    lines = bytes(text).split(b"\n")
    place = draw.randrange(len(lines))
    lines[draw.randrange(len(lines)) : 0] = [lines[place]] * draw.choice([1, 1, 2, 400])
    text[:] = draw.choice([b"\n", b"\n", b"\n", b"\r\n", b"\r"]).join(lines)


def _encode(text: bytearray, draw: random.Random) -> None:
    text[:] = draw.choice(
        [
            lambda: b"\xef\xbb\xbf" + text,
            lambda: bytes(text).decode("latin-1").encode("utf-16"),
            lambda: text.replace(b"\n", b"\r\n"),
            lambda: BOMB + text,
            lambda: text + b"\n---\n" + text,
            lambda: text.replace(b" ", b"\xc2\xa0"),
            lambda: text.replace(b"\n", b"\n\n", 40),
            lambda: text + b"".join(b"k%d: 1\n" % k for k in range(2000)),
            lambda: bytes(text).upper(),
            lambda: text[::-1],
        ]
    )()


OF_TEXT: dict[str, Callable[[bytearray, random.Random], None]] = {
    "bits flipped": _flip,
    "text cut out": _cut,
    "a token put in": _insert,
    "wrongly indented": _indent,
    "lines repeated": _lines,
    "other encodings, bombs": _encode,
}


def mutated(draw: random.Random) -> Case:
    """Return a scenario with one to three mistakes, and its tiny tables."""
    document, kind = copy.deepcopy(draw.choice(shapes())), draw.choice([*OF_STRUCTURE, *OF_TEXT])
    for number in range(draw.choice([1, 1, 2, 3])):
        name = kind if number == 0 and kind in OF_STRUCTURE else draw.choice(list(OF_STRUCTURE))
        if (kind in OF_STRUCTURE or number) and paths(document):
            OF_STRUCTURE[name](document, draw)
    text = bytearray(written(document))
    if kind in OF_TEXT:
        OF_TEXT[kind](text, draw)
    return case(kind, bytes(text), run=draw.random() < 0.25)


def written(document: Any) -> bytes:
    """Return a document as YAML."""
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1000)
    return str(text).encode("utf-8", "surrogatepass")


def case(kind: str, text: bytes, run: bool = True) -> Case:
    """Return a scenario with its tiny tables."""
    return Case(kind, {**plain_tables(), "s.yaml": text}, secrets(plain_tables(), text), run=run)
