"""Fingerprints of private tables."""

import hashlib
import itertools
import stat
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor import registry
from auditor.data.table import Table
from auditor.results import table_register as owner
from auditor.results.comparison import compare_results
from tests.programs import PATIENCE, environment, python

SCENARIO = {"seed": 1, "schemes": [{"name": "corner-wave", "levels": [1.0]}], "attacks": ["ndr"]}


@pytest.fixture
def state(tmp_path, monkeypatch):
    folder = tmp_path / "state"
    monkeypatch.setenv("AUDITOR_STATE", str(folder))
    owner._key.cache_clear()
    yield folder
    owner._key.cache_clear()


def audit(folder, records, name="answers.csv"):
    pd.DataFrame({"sick": records}).to_csv(folder / name, index=False)
    return auditor.run(SCENARIO | {"data": str(folder / name)})


def digest(records):
    return Table(("sick",), np.array(records, dtype=float)[:, None], "x").fingerprint()


def test_eight_answers_are_not_found_by_trying_all_of_them(state, tmp_path):
    answers = [0, 1, 1, 0, 0, 1, 0, 1]
    result = audit(tmp_path, answers)
    output = result.to_json()
    tried = [digest(guess) for guess in itertools.product((0, 1), repeat=8)]
    assert digest(answers) in tried  # the guess that was right before
    assert len(result.provenance.fingerprint) == 64
    for guess in tried:
        assert guess not in output
        assert hashlib.sha256(guess.encode()).hexdigest() not in output
    for form in ("table", "markdown", "latex", "json", "html", "csv", "junit", "sarif", "notebook"):
        page = registry.get("renderer", form)().render([result])
        assert not any(guess in page or guess[:19] in page for guess in tried)


def test_the_key_is_its_owner_s_alone_and_stays(state):
    first = owner.fingerprint("a table")
    path = state / owner.KEY
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(path.read_bytes()) == owner.BYTES
    owner._key.cache_clear()
    assert owner.fingerprint("a table") == first != owner.fingerprint("another")
    done = python(
        "-c",
        "from auditor.results import table_register as owner; print(owner.fingerprint('a table'))",
        check=True,
    )
    assert done.stdout.strip() == first
    assert [file.name for file in state.iterdir()] == [owner.KEY]


def test_processes_that_start_together_agree_on_one_key(state):
    command = [
        sys.executable,
        "-c",
        "from auditor.results import table_register as owner; print(owner.key_name())",
    ]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
        for _ in range(4)
    ]
    assert len({each.communicate(timeout=PATIENCE)[0] for each in running}) == 1


def test_a_comparison_says_whether_the_data_are_equal_or_undecided(state, tmp_path, monkeypatch):
    records, others = list(range(12)), list(range(1, 13))
    first, again, other = (
        audit(tmp_path, some, name)
        for some, name in ((records, "a.csv"), (records, "b.csv"), (others, "c.csv"))
    )
    assert compare_results(first, again).data == "The data are the same."
    assert compare_results(first, other).data == "The data are not the same."
    monkeypatch.setenv("AUDITOR_STATE", str(tmp_path / "another machine"))
    elsewhere = audit(tmp_path, records, "a.csv")
    assert elsewhere.provenance.fingerprint != first.provenance.fingerprint
    assert elsewhere.measurements == first.measurements  # the key is in no figure
    output = compare_results(first, elsewhere)
    assert output.data.startswith("Whether the data are the same cannot be told")
    assert not output.worse
    for form in ("table", "markdown", "json", "html"):
        shown = registry.get("renderer", form)().render_comparison(output)
        assert "cannot be told" in " ".join(shown.split()), form
    assert "cannot be told" in output.data
