import doctest
import importlib
import pkgutil

import auditor
import auditor_attacks
import auditor_reports


def test_examples_give_what_they_show():
    names = [
        found.name
        for package in (auditor, auditor_attacks, auditor_reports)
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not found.name.endswith("__main__")
    ]
    results = {name: doctest.testmod(importlib.import_module(name)) for name in names}
    assert [name for name, result in results.items() if result.failed] == []
    assert sum(result.attempted for result in results.values()) > 40
