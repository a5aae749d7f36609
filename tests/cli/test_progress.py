import io
import re
import sys
from types import ModuleType

import pytest
from rich.console import Console

from auditor.runs.output import bar, calm, watched
from auditor.runs.run_scenario import Progress, run_scenario
from auditor.scenario.read import read_scenario

TITLE = "A title that alone would fill most of a terminal of eighty characters, and more"
SCENARIO = {
    "seed": 1,
    "data": {"source": "gaussian", "covariance": [[1.0]], "rows": 50},
    "schemes": [
        {"name": "corner-wave", "id": "first", "levels": [1.0]},
        {"name": "correlated", "id": "second", "levels": [1.0]},
    ],
    "attacks": ["ndr"],
    "sweep": {"data.rows": [50, 60]},
}


@pytest.mark.parametrize("width", [60, 80, 160])
def test_a_terminal_shows_figures_time_left_and_the_cell_under_way_whatever_the_names(width):
    file = io.StringIO()
    with bar(
        TITLE, Console(file=file, width=width, force_terminal=True, color_system=None)
    ) as listen:
        listen(Progress(3, 40, "corner-wave at a.very.long.path.of.a.sweep=12345, replicate 7"))
    shown = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", file.getvalue()))
    moved = [line for line in shown if "3/40" in line]
    assert moved
    assert all(re.search(r"3/40 .*(\d:\d\d:\d\d|-:--:--) left corner", line) for line in moved)
    assert max(map(len, shown)) <= width


def test_names_steer_no_terminal(capsys):
    file = io.StringIO()
    with bar(
        "\x1b]0;title\x07", Console(file=file, width=80, force_terminal=True, color_system=None)
    ) as listen:
        listen(Progress(1, 2, "\u202eevil\x1b[2J\x9b31m"))
    calm("\x1b[2J")(Progress(1, 2, "\u202e\x9b"))
    printed = file.getvalue() + capsys.readouterr().err
    assert not {"\u202e", "\x9b", "\x07"} & set(printed)
    assert "\x1b[2J" not in printed
    assert "\x1b]" not in printed


def test_python_shows_progress_where_somebody_waits(monkeypatch):
    for prompt, terminal, wanted, seen in [
        (True, True, None, True), (True, False, None, False), (False, True, None, False),
        (False, False, True, True), (True, True, False, False),
    ]:  # fmt: skip
        monkeypatch.delattr(sys, "ps1", raising=False)
        monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
        monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None, raising=False)
        if prompt:
            monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal, raising=False)
        with watched("Audit", wanted) as listener:
            assert (listener is not None) == seen


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.slow_after_first
def test_what_is_told_is_under_way_and_named_as_in_the_scenario(workers):
    events = []
    run_scenario(read_scenario(SCENARIO, [], None), workers=workers, listener=events.append)
    first, events = events[0].so_far, [one for one in events if one.so_far is None]
    assert first is not None  # every release was looked at before the first task
    assert {one.scheme for one in first.measurements} == {"first", "second"}
    assert first.partial is not None
    assert [one.done for one in events] == [0, 1, 2, 3, 4]
    assert {one.total for one in events} == {4}
    if workers == 1:  # of several the longest are first
        assert events[0].current == "first at data.rows=50, replicate 1"
        assert [one.current.partition(",")[0] for one in events[1:4]] == [
            "second at data.rows=50", "first at data.rows=60", "second at data.rows=60",
        ]  # fmt: skip
