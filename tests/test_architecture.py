import ast
import re
from functools import cache
from itertools import chain
from pathlib import Path

import pytest
from test_imports import NESTED, ROOMS, imported, is_module, modules, name_of, nested_room, room

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
GLOSSARY = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w/]+\.py):([\w.]+)`", PAGE)))
"""Every ``path:function`` of the page."""
BESIDE = {"attacks/": "attacks", "reports/": "reports"}


def drawings():
    found = []
    for text in re.findall(r"```mermaid\nflowchart TD\n(.*?)```", PAGE, flags=re.DOTALL):
        labels = dict(re.findall(r'(\w+)\["([^"]+)"\]', text))
        lines = [
            re.sub(r'\["[^"]+"\]', "", line).split() for line in text.splitlines() if line.strip()
        ]
        assert all(len(words) == 1 or (len(words) == 3 and words[1] == "-->") for words in lines), (
            "one arrow, or one room, a line"
        )
        found.append(
            (
                set(labels.values()),
                {(labels[words[0]], labels[words[2]]) for words in lines if len(words) == 3},
            )
        )
    return found


def of_package(name):
    top = name.partition(".")[0]
    return room(name) if top == "auditor" else f"{top}/"


def of_house(name):
    for house in NESTED:
        if name == house or name.startswith(house + "."):
            return f"{house.rpartition('.')[2]}/{nested_room(name, house)}"
    return ""


@cache
def imports():
    every = chain.from_iterable(modules(folder) for folder in ("auditor", "attacks", "reports"))
    ours = ("auditor", "attacks", "reports")
    return {name_of(path): {n for n in imported(path) if is_module(n) and n.partition(".")[0] in ours and n != "auditor"}
            for path in every if name_of(path) != "auditor"}  # fmt: skip


def between_rooms(drawing):
    pairs = set()
    for name, others in imports().items():
        for other in others:
            a, b = (
                (of_package(name), of_package(other))
                if drawing == 0
                else (of_house(name), of_house(other))
            )
            if a and b and a != b and (drawing == 0 or a.partition("/")[0] == b.partition("/")[0]):
                pairs.add((a, b))
    return pairs


def defined(path):
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}.{inner.name}"
                for inner in node.body
                if isinstance(inner, ast.FunctionDef)
            }
    return found


def test_every_function_that_the_walk_names_exists():
    assert [
        (path, name)
        for path, name in NAMED
        if not (ROOT / path).is_file() or name not in defined(ROOT / path)
    ] == []


def test_the_drawing_holds_every_room():
    (first, _), (second, _) = drawings()
    assert first == {*chain.from_iterable(ROOMS), *BESIDE}
    inner = {
        f"{house.rpartition('.')[2]}/{name}"
        for house, rooms in NESTED.items()
        for name in chain.from_iterable(rooms)
    }
    assert second == inner


@pytest.mark.parametrize("drawing", [0, 1], ids=["rooms", "rooms-in-rooms"])
def test_arrows_are_the_imports_there_are(drawing):
    arrows, real = drawings()[drawing][1], between_rooms(drawing)
    assert not arrows - real, "arrows without an import"
    reached = set(arrows)
    while grown := {(a, d) for a, b in reached for c, d in arrows if b == c} - reached:
        reached |= grown
    assert not real - reached, "imports that no arrows lead along"


def test_terms_stand_in_the_glossary_once():
    rows = [
        line.split(" | ")[0].removeprefix("| ")
        for line in GLOSSARY.splitlines()
        if line.startswith("| ")
    ]
    terms = [row for row in rows if row not in ("term", "metric", "---")]
    assert len(terms) == len(set(terms))
