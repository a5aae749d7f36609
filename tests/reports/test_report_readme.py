import importlib.util
import re
from pathlib import Path

import pytest

import auditor

ROOT = Path(__file__).parents[2]
NUMBER = r"\d[\d,]*(?:\.\d+)?"


def script():
    place = importlib.util.spec_from_file_location("make_sample", ROOT / "docs/make_sample.py")
    assert place is not None
    assert place.loader is not None
    made = importlib.util.module_from_spec(place)
    place.loader.exec_module(made)
    return made


@pytest.mark.slow
def test_the_quickstart_holds_and_the_readme_shows_what_it_prints():
    made = script()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    result = auditor.run("quickstart")
    assert not result.failed
    assert {judged.status for judged in result.expectations} == {"holds"}
    today = made.sample(result)
    assert len(today.splitlines()) > 30
    texts = made.shown(readme), today
    words, numbers = zip(
        *((re.sub(NUMBER, "#", text).split(), re.findall(NUMBER, text)) for text in texts),
        strict=True,
    )
    assert words[0] == words[1], "run python docs/make_sample.py"
    shown, found = ([float(number.replace(",", "")) for number in each] for each in numbers)
    assert found == pytest.approx(shown, rel=0.03, abs=0.05), "run python docs/make_sample.py"
