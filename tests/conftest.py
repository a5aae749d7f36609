import atexit
import os
import shutil
import signal
import tempfile

import pytest
from hypothesis import settings

settings.register_profile("audit", derandomize=True, deadline=None)
settings.load_profile("audit")

if "AUDITOR_STATE" not in os.environ:
    os.environ["AUDITOR_STATE"] = tempfile.mkdtemp(prefix="auditor-state-")
    atexit.register(shutil.rmtree, os.environ["AUDITOR_STATE"], ignore_errors=True)

# as of a job that a script started in the background; children inherit it
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

collect_ignore = ["fuzz_corpus"]  # scenarios that are wrong on purpose, for tests/test_fuzz.py


@pytest.fixture(autouse=True)
def _same_numbers_in_any_order(request):
    """Start the generator `RNG` of a module at its state `START`."""
    if start := getattr(request.module, "START", None):
        request.module.RNG.bit_generator.state = start


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A new folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command(capfd):
    from auditor.cli import main

    def run(*arguments):
        capfd.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return stopped.value.code or 0, out, err

    return run


@pytest.fixture
def few_redraws(monkeypatch):
    """Redraw little, for tests without error bars."""
    for name in ("linear.REDRAWS", "opened.ROW_REDRAWS"):
        monkeypatch.setattr(f"auditor.audit.attempts.{name}", 3)
    monkeypatch.setattr("auditor.audit.categorical.attack_records.REDRAWS", 3)


@pytest.fixture
def no_learner(monkeypatch):
    """No learner searches copies from files, for tests of other figures."""
    monkeypatch.setattr("auditor.audit.without_law.fitted_records", lambda *asked: [])
    monkeypatch.setattr("auditor.audit.categorical.session.insider_records", lambda release: [])


@pytest.fixture
def quick_advice(monkeypatch):
    """Advice by the fewest draws and by three attacks, one of each kind."""
    from auditor.runs.advice import audits

    every, three = audits.Asked.scenario, ["llse", "distribution-analysis", "map-estimate"]
    monkeypatch.setattr(audits, "MOST_DRAWS", audits.FEWEST_DRAWS)
    monkeypatch.setattr(audits.Asked, "scenario", lambda *asked: every(*asked) | {"attacks": three})
