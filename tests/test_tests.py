import ast

import pytest
from test_imports import ROOMS

from tests.programs import ROOT, wait_for
from tests.tiers import each_once

TESTS = sorted((ROOT / "tests").rglob("*.py"))
BESIDE = {"attacks", "reports", "papers", "fuzz_corpus"}
"""Folders of tests that are no room of `auditor/`."""


def test_they_stand_in_the_rooms_of_what_they_test():
    folders = {
        path.parent.relative_to(ROOT / "tests").parts[0]
        for path in TESTS
        if path.parent != ROOT / "tests"
    }
    assert folders <= {name for names in ROOMS for name in names} | BESIDE


def test_each_value_is_in_a_pair():
    for first, second in (("abc", "12345"), ("abcd", "12"), ("a", "1")):
        pairs = each_once(first, second)
        assert [set(values) for values in zip(*pairs, strict=True)] == [set(first), set(second)]
        assert len(pairs) == max(len(first), len(second))


def waits(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            bounded = (
                node.args
                if node.func.attr in ("wait", "join")
                else [k for k in node.keywords if k.arg in (None, "timeout")]
            )
            if not bounded and ast.unparse(node.func).endswith(
                (".wait", ".join", ".communicate", "subprocess.run")
            ):
                yield f"{path.name}:{node.lineno}: {ast.unparse(node.func)}"


def test_none_waits_for_ever():
    assert [found for path in TESTS for found in waits(path)] == []


def test_waiting_gives_up_with_a_message():
    wait_for(lambda: True, "no")
    with pytest.raises(AssertionError, match="nobody came, after 0 s"):
        wait_for(lambda: False, "nobody came", seconds=0.0)
