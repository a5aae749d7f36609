"""Progress: in a terminal the figures keep their place, a log file hears of it calmly, and both name a cell that is under way."""

from __future__ import annotations

import io
import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

import auditor
from auditor.progress import bar, calm, notebook, watched
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
def test_a_terminal_shows_figures_time_left_and_the_cell_under_way_whatever_the_names(
    width: int,
) -> None:
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


def test_names_steer_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_a_log_file_hears_at_the_start_at_the_end_and_seldom_between(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seconds = iter(range(1000))
    listen = calm("Audit", lambda: float(next(seconds)))
    for done in range(101):
        listen(Progress(done, 100, f"cell {done + 1}"))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Audit: 0 of 100 done; cell 1"
    assert lines[1] == "Audit: 10 of 100 done, about 2 minutes left; cell 11"  # 11 s for 10 cells
    assert lines[-1] == "Audit: 100 of 100 done, took 2 minutes"
    assert len(lines) == 11


def test_the_time_left_is_by_the_pace_of_this_run_alone(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 0.0, 10.0])
    listen = calm("Audit", lambda: next(times))
    listen(Progress(50, 100, "taken from an earlier run"))
    listen(Progress(60, 100, "cell 61"))
    assert (
        capsys.readouterr().err.splitlines()[1] == "Audit: 60 of 100 done, about 40 s left; cell 61"
    )


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.slow_after_first
def test_what_is_told_is_under_way_and_named_as_in_the_scenario(workers: int) -> None:
    events: list[Progress] = []
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


class Output:
    """What stands in for a notebook's output: the lines that were shown, one after the other."""

    def __init__(self) -> None:
        self.shown: list[Any] = []

    def display(self, line: Any, display_id: bool) -> Output:
        assert display_id
        self.update(line)
        return self

    def update(self, line: Any) -> None:
        self.shown.append(line)


@pytest.fixture
def in_notebook(monkeypatch: pytest.MonkeyPatch) -> Output:
    output = Output()
    display = SimpleNamespace(display=output.display)
    ipython = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()), display=display)
    monkeypatch.setitem(sys.modules, "IPython", ipython)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "IPython.display", display)  # type: ignore[arg-type]
    return output


def test_a_run_in_a_notebook_moves_one_line_to_its_end(in_notebook: Output) -> None:
    auditor.run(SCENARIO | {"title": "<b>Mine</b>"})
    first, *_, last = in_notebook.shown
    assert repr(first) == "<b>Mine</b>: reading the data"
    assert re.fullmatch(r"<b>Mine</b>: 4 of 4 done, took \d+ s", repr(last))
    assert "<progress" not in last._repr_html_()
    assert "&lt;b&gt;Mine" in last._repr_html_()
    assert all("<b>" not in line._repr_html_() for line in in_notebook.shown)


def test_whoever_listens_or_wants_silence_has_no_line(in_notebook: Output) -> None:
    told: list[Progress] = []
    auditor.run(SCENARIO, progress=False)
    auditor.run(SCENARIO, listener=told.append)
    assert in_notebook.shown == []
    assert told[-1].done == 4


def test_a_notebook_s_line_changes_a_few_times_a_second_and_always_at_the_ends() -> None:
    output, times = Output(), iter([0.0, *(step * 0.01 for step in range(1001))])
    listen = notebook("Audit", output.display, lambda: next(times))
    for done in range(1001):
        listen(Progress(done, 1000, "cell"))
    assert 20 < len(output.shown) < 60  # ten seconds
    assert repr(output.shown[1]) == "Audit: 0 of 1000 done; cell"
    assert repr(output.shown[-1]) == "Audit: 1000 of 1000 done, took 10 s"
    assert '<progress value="' in output.shown[5]._repr_html_()


@pytest.mark.parametrize(("prompt", "terminal", "wanted", "seen"), [
    (True, True, None, True), (True, False, None, False), (False, True, None, False), (False, False, True, True), (True, True, False, False),
])  # fmt: skip
def test_python_shows_progress_where_somebody_waits(
    monkeypatch: pytest.MonkeyPatch, prompt: bool, terminal: bool, wanted: bool | None, seen: bool
) -> None:
    monkeypatch.delattr(sys, "ps1", raising=False)
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None, raising=False)
    if prompt:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    with watched("Audit", wanted) as listener:
        assert (listener is not None) == seen
