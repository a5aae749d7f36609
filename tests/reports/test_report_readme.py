"""The quickstart holds all that it expects, and the README shows what it prints today. One run, so conftest.py leaves its file out."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import auditor

ROOT = Path(__file__).parents[2]


def script() -> ModuleType:
    place = importlib.util.spec_from_file_location("make_sample", ROOT / "docs/make_sample.py")
    assert place is not None
    assert place.loader is not None
    made = importlib.util.module_from_spec(place)
    place.loader.exec_module(made)
    return made


@pytest.mark.slow
def test_the_quickstart_holds_and_the_readme_shows_what_it_prints() -> None:
    """Up to the last digits, which another machine's arithmetic may round otherwise."""
    made = script()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    result = auditor.run("quickstart")
    assert not result.failed
    assert {judged.status for judged in result.expectations} == {"holds"}
    today = made.sample(result)
    assert len(today.splitlines()) > 40
    blurred = [re.sub(r"(\.\d)\d*", r"\1", text) for text in (made.shown(readme), today)]
    assert blurred[0] == blurred[1], "run python docs/make_sample.py"
