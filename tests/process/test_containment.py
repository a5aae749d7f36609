import gc
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from itertools import product
from pathlib import Path

import click
import numpy as np
import pytest
import yaml

import auditor
from auditor import base, registry
from auditor.adversary.attack import Inferred
from auditor.audit.measures.record_disclosure import check_inferred
from auditor.cli import main
from auditor.data import table as tables
from auditor.process.containment import WITHHELD, CtrlC, contained, known, own_interrupt
from auditor.results.measurements import Measurements
from tests.plugin_packages import install
from tests.process.misbehaving import NOW, PLUGINS, Manners
from tests.programs import PATIENCE, environment, python
from tests.tiers import each_once

CELL = "87654321.125"
NUMBERS = {"source": "gaussian", "covariance": [[1.0, 0.5], [0.5, 2.0]], "rows": 200}
CLASSES = {**NUMBERS, "bin": {"x1": {"quantile": 3}}, "columns": ["x1"]}
NUMERIC = {
    "data": NUMBERS,
    "schemes": [{"name": "corner-wave", "levels": [0.5, 0.25]}],
    "attacks": ["llse"],
}
CATEGORICAL = {
    "data": CLASSES,
    "schemes": [{"name": "uniform", "levels": [0.5, 0.25]}],
    "attacks": ["posterior"],
}
SCENARIOS = {
    "odd-linear": NUMERIC | {"attacks": ["odd-linear", "llse"]},
    "odd-rows": NUMERIC | {"attacks": ["odd-rows", "llse"]},
    "odd-categorical": CATEGORICAL | {"attacks": ["odd-categorical", "posterior"]},
    **{
        f"odd-{name}": fair
        | {"schemes": [{"name": f"odd-{name}", "levels": [0.5, 0.25]}, *fair["schemes"]]}
        for name, fair in (("additive", NUMERIC), ("uniform", CATEGORICAL))
    },
    "odd-source": NUMERIC | {"data": "odd-source"},
    "odd-expectation": NUMERIC | {"expect": ["odd-expectation"]},
    "html": NUMERIC,
}


class Ended(BaseException):
    pass


def raising(error):
    def act(*shown):
        raise error() if isinstance(error, type) else error

    return act


def named_after_data(*shown):
    raise type(f"Cell_{CELL}", (BaseException,), {})(CELL)


def deep(*shown):
    def deeper():
        return deeper()

    return deeper()


def dropped(*shown):
    class Last:
        def __del__(self):
            raise ValueError(CELL)

    Last()


def in_a_thread(act):
    def start(*shown):
        thread = threading.Thread(target=act, daemon=True)
        thread.start()
        thread.join(PATIENCE)

    return start


def forked(*shown):
    if os.fork() == 0:
        return


def said(*shown):
    print(CELL)  # noqa: T201
    os.write(1, b"87654321.125\n")
    subprocess.run([sys.executable, "-S", "-c", f"print({CELL})"], check=False, timeout=PATIENCE)


def replaced(*shown):
    sys.stdout = sys.stderr = None


def strict(*shown):
    np.seterr(all="raise")
    np.random.seed(0)  # noqa: NPY002
    random.seed(0)


def written_to(*shown):
    for part in shown:
        if isinstance(part, Measurements):
            part.columns["value"].fill(7.0)
            part.columns.clear()
        else:
            part.clear() if isinstance(part, list) else part.fill(7)


class Grim:
    def __getattribute__(self, name):
        raise ValueError(CELL)

    def __repr__(self):
        raise ValueError(CELL)

    __array__ = __len__ = __iter__ = __str__ = __repr__


def wrong(change):
    return lambda value: change(value) if isinstance(value, np.ndarray) else None


def first(number):
    def change(array):
        array = array.astype(np.result_type(array, type(number)))
        array.flat[0] = number
        return array

    return change


def below_zero(array):
    array = array.copy()
    array[:, 0], array[:, 1] = -0.5, array[:, 1] + 0.5 + array[:, 0]
    return array


RAISES = {
    "an exception": raising(ValueError(CELL)),
    "an error of ours": raising(base.AuditorError(f"the value is {CELL}")),
    "SystemExit(0)": raising(SystemExit(0)), "SystemExit(text)": raising(SystemExit(CELL)),
    "SystemExit(7)": raising(SystemExit(7)),
    "KeyboardInterrupt": raising(KeyboardInterrupt(CELL)),
    "GeneratorExit": raising(GeneratorExit(CELL)), "a BaseException": raising(Ended(CELL)),
    "a type named after data": named_after_data, "StopIteration": raising(StopIteration(CELL)),
    "MemoryError": raising(MemoryError(CELL)), "RecursionError": deep,
    "AssertionError": raising(AssertionError(CELL)), "EOFError": raising(EOFError(CELL)),
    "lost workers": raising(base.WorkersLost(CELL)), "a full disk": raising(base.StorageError(CELL)),
    "os._exit(0)": lambda *shown: os._exit(0),
}  # fmt: skip
CHANGES = {
    "exits in a thread": in_a_thread(lambda: sys.exit(0)),
    "raises in a thread": in_a_thread(raising(ValueError(CELL))), "raises in __del__": dropped,
    "forks": forked, "changes the folder": lambda *shown: os.chdir("/"), "closes standard output": lambda *shown: sys.stdout.close(),
    "replaces standard streams": replaced, "changes signal handlers": lambda *shown: signal.signal(signal.SIGINT, signal.SIG_IGN),
    "sets error state and seeds": strict, "leaves a thread running": lambda *shown: threading.Thread(target=time.sleep, args=(0.2,)).start(),
}  # fmt: skip
RETURNS = {
    "nothing": lambda value: None,
    "what breaks": lambda value: Grim(),
    "the wrong shape": wrong(lambda array: array[:-1]),
    "no number": wrong(lambda array: np.full(array.shape, np.nan)),
    "infinity": wrong(first(np.inf)),
    "objects": wrong(lambda array: np.full(array.shape, Grim(), dtype=object)),
    "text": wrong(lambda array: np.full(array.shape, f"{CELL}x")),
}


@pytest.fixture(scope="module", autouse=True)
def _plugins():
    registry.discover()
    gc.collect()
    gc.freeze()
    page = registry._plugins["renderer"].pop("html")
    for plugin in PLUGINS:
        registry.register(plugin)
    yield
    for plugin in PLUGINS:
        del registry._plugins[plugin.kind][plugin.name]
    registry._plugins["renderer"]["html"] = page


def behave(monkeypatch, kind, **manners):
    for name, value in vars(Manners(kind, **manners)).items():
        monkeypatch.setattr(NOW, name, value)


@pytest.fixture
def audit(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)

    def run(kind, *options, command="run", **manners):
        Path("x.yaml").write_text(yaml.safe_dump(SCENARIOS[kind]))
        behave(monkeypatch, kind, **manners)
        tables._remembered.clear()
        capfd.readouterr()
        with pytest.raises(SystemExit) as done:
            main([command, "x.yaml", *options])
        gc.collect()
        out, err = capfd.readouterr()
        return done.value.code or 0, out, err

    return run


def results(folder):
    path = folder / "audit/x/results.json"
    return json.loads(path.read_text()) if path.exists() else None


def assert_nothing_leaked(folder, *texts):
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert not any(
        CELL.encode() in content for content in (*files, *(text.encode() for text in texts))
    )


def assert_others_finished(kind, found):
    attacks = {"odd-linear": "llse", "odd-rows": "llse", "odd-categorical": "posterior"}
    schemes = {"odd-additive": "corner-wave", "odd-uniform": "uniform"}
    fair = [
        r
        for r in found["measurements"]
        if r["attack"] == attacks.get(kind, r["attack"])
        and r["scheme"] == schemes.get(kind, r["scheme"])
    ]
    assert any(r["metric"] == "distortion" and r["attack"] for r in fair)
    assert {r["status"] for r in fair} == {"ok"}


@pytest.mark.parametrize(
    ("how", "kind"),
    [*each_once(RAISES, SCENARIOS), *(("SystemExit(text)", kind) for kind in SCENARIOS)],
)
def test_what_a_plugin_raises_ends_in_3_and_the_others_are_finished(kind, how, audit, tmp_path):
    status, out, err = audit(kind, "--format", "json", "--quiet", act=RAISES[how])
    assert status == (2 if (kind, how) == ("odd-source", "MemoryError") else 3), err
    assert_nothing_leaked(tmp_path, out, err)
    assert "Traceback" not in err
    if kind == "odd-source":
        assert out == ""
        assert results(tmp_path) is None
    else:
        assert json.loads(out)["measurements"] == results(tmp_path)["measurements"]
        assert_others_finished(kind, results(tmp_path))


@pytest.mark.parametrize(
    ("how", "kind"),
    each_once(["SystemExit(0)", "an error of ours", "a BaseException", "KeyboardInterrupt"], SCENARIOS),
)  # fmt: skip
def test_a_plugin_that_cannot_be_made_ends_in_3_and_others_finish(kind, how, audit, tmp_path):
    status, out, err = audit(kind, "--format", "json", "--quiet", made=RAISES[how])
    others = ("odd-source", "odd-expectation", "html")
    assert status == (2 if how == "an error of ours" and kind not in others else 3), err
    assert_nothing_leaked(tmp_path, out, err)
    if status == 3 and kind != "odd-source":
        assert_others_finished(kind, results(tmp_path))


@pytest.mark.parametrize(("how", "kind"), each_once(CHANGES, SCENARIOS))
def test_what_a_plugin_changes_is_put_back_and_the_run_is_whole(kind, how, audit, tmp_path):
    before = signal.getsignal(signal.SIGINT), (sys.stdout, sys.stderr), np.geterr()
    status, out, err = audit(kind, "--format", "json", "--quiet", act=CHANGES[how])
    assert status == 0, err
    assert json.loads(out)["measurements"] == results(tmp_path)["measurements"]
    assert {r["status"] for r in results(tmp_path)["measurements"]} == {"ok"}
    assert_nothing_leaked(tmp_path, out, err)
    assert (signal.getsignal(signal.SIGINT), (sys.stdout, sys.stderr), np.geterr()) == before
    assert Path.cwd() == tmp_path


@pytest.mark.parametrize("kind", SCENARIOS)
@pytest.mark.slow_after_first
def test_what_a_plugin_prints_is_no_part_of_the_report(kind, audit, tmp_path):
    status, out, err = audit(kind, "--format", "json", "--quiet", act=said)
    assert status == 0
    assert json.loads(out)["measurements"] == results(tmp_path)["measurements"]
    assert err.count(CELL) >= 3
    assert_nothing_leaked(tmp_path, out)


@pytest.mark.parametrize(("how", "kind"), each_once(RETURNS, SCENARIOS))
def test_what_a_plugin_hands_back_is_checked(kind, how, audit, tmp_path):
    status, out, err = audit(kind, "--format", "json", "--quiet", spoil=RETURNS[how])
    if (kind, how) == ("odd-source", "the wrong shape"):  # a source may have any number of rows
        return
    assert status in ((2, 3) if kind == "odd-source" else (3,)), (out, err)
    assert "Traceback" not in err
    assert_nothing_leaked(tmp_path, out, err)
    if kind != "odd-source":
        assert_others_finished(kind, results(tmp_path))


@pytest.mark.parametrize(("kind", "spoil"), [
    ("odd-categorical", below_zero), ("odd-categorical", lambda P: P * 0.5),
    ("odd-categorical", lambda P: P.astype(complex)), ("odd-uniform", lambda y: y + 3),
    ("odd-uniform", lambda y: y.astype(float)), ("odd-uniform", lambda y: y.astype(np.int64) - 1),
])  # fmt: skip
def test_probabilities_and_codes_outside_their_range_fail(kind, spoil, audit, tmp_path):
    status, _, err = audit(kind, "--quiet", spoil=spoil)
    assert status == 3, err
    failed = [r for r in results(tmp_path)["measurements"] if r["status"] == "failed"]
    assert {r["attack"] if kind == "odd-categorical" else r["scheme"] for r in failed} == {kind}
    assert_others_finished(kind, results(tmp_path))


@pytest.mark.parametrize("kind", [kind for kind in SCENARIOS if kind != "odd-source"])
@pytest.mark.slow_after_first
def test_what_a_plugin_is_shown_cannot_be_changed_for_others(kind, audit, tmp_path):
    audit(kind, "--quiet")
    before = results(tmp_path)["measurements"]
    status, _, err = audit(kind, "--quiet", act=written_to)
    assert status == (0 if kind == "odd-expectation" else 3), err
    sound = [r for r in results(tmp_path)["measurements"] if r["status"] == "ok"]
    at_fault = {r["attack"] if kind in ("odd-linear", "odd-rows", "odd-categorical") else r["scheme"]
                for r in results(tmp_path)["measurements"] if r["status"] == "failed"}  # fmt: skip
    assert sound == [r for r in before if not {r["attack"], r["scheme"]} & at_fault]


@pytest.mark.parametrize(
    "how", ["an exception", "SystemExit(0)", "a type named after data", "os._exit(0)"]
)
def test_a_module_that_raises_when_imported_is_reported(how, tmp_path, monkeypatch):
    (tmp_path / "grim_module.py").write_text(
        "from tests.process.misbehaving import NOW\nNOW.made()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(NOW, "made", RAISES[how])
    monkeypatch.setattr(registry, "failures", [])
    assert registry._import("grim", "grim_module") is None
    (failure,) = registry.failures
    assert "grim_module" in str(failure)
    assert "ModuleNotFoundError" not in str(failure)
    assert CELL not in str(failure)


@pytest.mark.parametrize(
    ("how", "kind"),
    each_once(["SystemExit(0)", "KeyboardInterrupt", "GeneratorExit", "os._exit(0)"], SCENARIOS),
)
def test_a_plugin_cannot_end_check_in_0_before_the_plan_is_printed(kind, how, audit):
    status, out, err = audit(kind, command="check", made=RAISES[how])
    assert status == 3 or (status == 0 and "cells" in out), err


REFUSALS = {"an error of ours", "lost workers", "a full disk"}
"""Errors that a scheme may refuse a request with."""


@pytest.mark.parametrize(
    ("how", "where"),
    each_once([*RAISES, "changes the folder"], product(["odd-additive", "odd-uniform"], ["made", "act"])),
)  # fmt: skip
def test_errors_of_a_scheme_end_perturb_without_copies(where, how, command, tmp_path, monkeypatch):
    kind, moment = where
    monkeypatch.chdir(tmp_path)
    behave(monkeypatch, kind, **{moment: (RAISES | CHANGES)[how]})
    asked = ["--columns", "species"] if kind == "odd-uniform" else []
    status, out, err = command(
        "perturb", "iris", "--scheme", kind, "--levels", "0.5,0.25", "--output", "copies", *asked
    )
    assert "Traceback" not in err
    written = sum(
        Path("copies", name).exists() for name in ("copy-1.csv", "copy-2.csv", "release.json")
    )
    refused = 2 if how in REFUSALS else 3, 0
    assert (status, written) == ((0, 3) if how == "changes the folder" else refused)
    assert_nothing_leaked(tmp_path, out, err)


@pytest.mark.parametrize(
    ("how", "where"),
    each_once(RAISES, product(["odd-additive", "odd-linear", "odd-rows"], ["made", "act"])),
)
def test_what_a_plugin_raises_cannot_end_the_program_of_a_python_caller(where, how, monkeypatch):
    kind, moment = where
    X = np.random.default_rng(0).normal(size=(50, 2))
    release = auditor.perturb(X, "corner-wave", [0.5, 0.25], seed=1)
    behave(monkeypatch, kind, **{moment: RAISES[how]})
    with pytest.raises(base.AuditorError) as told:
        auditor.perturb(X, kind, [0.5, 0.25], seed=1) if kind == "odd-additive" else auditor.attack(
            kind, release
        )
    shown = "".join(traceback.format_exception(told.value))
    assert how == "an error of ours" or CELL not in shown


@pytest.mark.parametrize(("kind", "error"), [
    ("odd-additive", click.exceptions.Exit(0)), ("odd-linear", click.Abort()),
    ("odd-expectation", click.UsageError(CELL)),
])  # fmt: skip
def test_errors_of_the_command_line_library_end_in_3(kind, error, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plugin = next(each for each in PLUGINS if each.name == kind)
    refusing = type(
        "Parameters",
        (plugin.Parameters,),
        {"__module__": __name__, "model_validate": classmethod(raising(error))},
    )
    monkeypatch.setattr(plugin, "Parameters", refusing)
    Path("x.yaml").write_text(yaml.safe_dump(SCENARIOS[kind]))
    for verb in ("run", "check"):
        status, out, err = command(verb, "x.yaml")
        assert (status, results(tmp_path)) == (3, None), err
        assert_nothing_leaked(tmp_path, out, err)


INFERRED = {
    "attribute": 0, "values": np.array([1.0, 2.0]), "groups": np.array([0, 1]), "posterior": np.array([[0.5, 0.5], [1.0, 0.0]]),
    "prior": np.array([0.75, 0.25]), "claims": np.array([-1, 0]), "linked": np.array([0.5, 1.0]),
}  # fmt: skip


WRONG = [
    {"attribute": 2}, {"attribute": "x1"}, {"values": np.array([2.0, 1.0])}, {"values": np.array([1.0, np.nan])}, {"groups": np.array([0, 2])},
    {"posterior": np.array([[1.5, -0.5], [1.0, 0.0]])}, {"posterior": np.array([[0.5, 0.4], [1.0, 0.0]])}, {"posterior": np.eye(3)},
    {"prior": np.array([1.5, -0.5])}, {"claims": np.array([-2, 0])}, {"claims": np.array([0.5, 0.5])}, {"linked": np.array([0.5, 1.5])},
]  # fmt: skip


def test_what_an_attack_infers_of_values_is_checked():
    check_inferred(Inferred(**INFERRED), 2, 2)
    for change in WRONG:
        with pytest.raises(base.PluginError):
            check_inferred(Inferred(**INFERRED | change), 2, 2)


@pytest.mark.parametrize(
    "kind", ["odd-linear", "odd-categorical", "odd-additive", "odd-expectation"]
)
def test_a_real_ctrl_c_is_130_while_a_plugin_runs(kind, audit):
    assert audit(kind, "--quiet", act=lambda *shown: os.kill(os.getpid(), signal.SIGINT))[0] == 130


def test_ctrl_c_is_heard_by_a_command_whose_parent_had_it_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(CtrlC), own_interrupt():
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_signal_that_a_destructor_swallows_is_sent_again():
    class Swallows:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)

    def work():
        Swallows()
        time.sleep(PATIENCE)

    with pytest.raises(CtrlC), own_interrupt():
        work()


def test_a_real_ctrl_c_passes_in_python_too():
    with pytest.raises(KeyboardInterrupt), contained():
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


ATTACK = '''
    """Leaves."""
    import ctypes, os, threading, time
    import numpy as np
    from auditor.adversary.attack import LinearAttack
    from auditor.adversary.attack import Affine
    from auditor.registry import register

    @register
    class Leaves(LinearAttack):
        """Leaves."""
        name = "leaves"

        def affine(self, view):
            {act}
            return Affine(np.kron(view.weights, np.eye(view.width)), np.zeros(view.width))
'''


def command(tmp_path, act, *options):
    site = install(tmp_path / "site", "grim", leaves=ATTACK.format(act=act))
    two = [{"name": "corner-wave", "id": name, "levels": [0.5, 0.25]} for name in ("one", "two")]
    (tmp_path / "x.yaml").write_text(
        yaml.safe_dump(NUMERIC | {"attacks": ["leaves", "llse"], "schemes": two})
    )
    run = "-m auditor run x.yaml --format json --quiet".split()
    return python(*run, *options, cwd=tmp_path, env=environment(site))


LEFT = {
    "threading.Thread(target=time.sleep, args=(600,)).start()": "that a plugin started did not end",
    "import atexit; atexit.register(print, 87654321.125); atexit.register(os.write, 1, b'87654321.125')": "87654321.125",
}


@pytest.mark.slow
@pytest.mark.parametrize(("act", "told"), LEFT.items(), ids=["a thread", "at exit"])
def test_what_is_left_for_the_end_keeps_no_process_and_adds_nothing(tmp_path, act, told):
    done = command(tmp_path, act)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["measurements"] == results(tmp_path)["measurements"]
    assert told in done.stderr


@pytest.mark.slow
def test_os_exit_in_a_worker_is_a_cell_that_failed(tmp_path):
    done = command(tmp_path, "os._exit(0)", "--workers", "2")
    assert done.returncode == 3, done.stderr
    found = {(r["attack"], r["status"]) for r in json.loads(done.stdout)["measurements"]}
    assert found == {("leaves", "failed"), ("llse", "ok")}


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_a_plugin_forks_in_a_worker_does_not_fork_again(tmp_path, workers):
    act = f"(lambda own: os.fork() or print(own, file=open({str(tmp_path / 'forks')!r}, 'a')))(os.getpid())"
    done = command(tmp_path, act, "--workers", workers)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["measurements"] == results(tmp_path)["measurements"]
    forks = (tmp_path / "forks").read_text().split()
    assert len(set(forks)) == int(workers)
    assert len(forks) > 2 * int(workers)


WARNS = f"import warnings; warnings.warn('{CELL[:4]}' + '{CELL[4:]}'); np.divide([1.0], [0.0])"


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_of_a_plugin_s_warning_kind_and_place_are_told(tmp_path, workers):
    done = command(tmp_path, WARNS, "--workers", workers)
    assert done.returncode == 0, done.stderr
    lines = {
        f"warning: {kind} at leaves.py:15 ({WITHHELD})"
        for kind in ("UserWarning", "RuntimeWarning")
    }
    assert set(done.stderr.splitlines()) == lines


def warned(act):
    before = warnings.showwarning
    with contained():
        act()
    assert warnings.showwarning is before


def test_of_warnings_in_python_ours_are_shown_as_ever_and_a_plugin_s_withheld(capsys):
    told = base.AuditorWarning("of ours"), CELL
    with pytest.warns(base.AuditorWarning, match="of ours") as caught:
        warned(lambda: [warnings.warn(warning, stacklevel=1) for warning in told])
    assert len(caught) == 1
    err = capsys.readouterr().err
    assert CELL not in err
    assert err.startswith("warning: UserWarning at test_containment.py:")


def told(act):
    with contained() as failure:
        act()
    return failure


def test_of_a_foreign_exception_kind_and_place_are_told():
    assert told(raising(ValueError(CELL))).reason.startswith("ValueError at test_containment.py:")
    assert told(raising(Ended(CELL))).reason.startswith("BaseException at ")
    assert told(named_after_data).reason.startswith("BaseException at ")
    assert told(raising(np.linalg.LinAlgError(CELL))).reason.startswith("LinAlgError at ")
    assert known(type(CELL, (KeyError,), {"__module__": "builtins"})) is KeyError


def test_a_reason_that_stands_in_the_code_is_told_and_one_put_together_is_not():
    def constant():
        raise base.NotApplicable("needs three copies\x1b[2J")

    def together():
        raise base.NotApplicable(f"needs {CELL}")

    found = told(constant)
    assert (found.status, found.reason) == ("not-applicable", "needs three copies�[2J")
    found = told(together)
    assert found.status == "not-applicable"
    assert found.reason.startswith("NotApplicable at test_containment.py:")
