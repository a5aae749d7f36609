"""The examples in docstrings are run: one that is no longer true misleads whoever reads it."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import auditor
import auditor_attacks
import auditor_reports

MODULES = sorted(
    found.name
    for package in (auditor, auditor_attacks, auditor_reports)
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not found.name.endswith("__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_say(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples():
    found = (doctest.DocTestFinder().find(importlib.import_module(name)) for name in MODULES)
    assert sum(len(test.examples) for tests in found for test in tests) > 40
