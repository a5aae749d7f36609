from __future__ import annotations

import io
import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

import auditor
from auditor.progress import bar, calm, watched
from auditor.runs.run_scenario import Progress

TITLE = "A title that alone would fill most of a terminal of eighty characters, and more"
SCENARIO = {
    "seed": 1, "data": {"source": "gaussian", "covariance": [[1.0]], "rows": 50},
    "schemes": [{"name": "corner-wave", "id": "first", "levels": [1.0]}, {"name": "correlated", "id": "second", "levels": [1.0]}],
    "attacks": ["ndr"], "sweep": {"data.rows": [50, 60]},
}  # fmt: skip


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


class Output:
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


def test_python_shows_progress_where_somebody_waits(monkeypatch):
    for prompt, terminal, wanted, seen in [
        (True, True, None, True),
        (True, False, None, False),
        (False, True, None, False),
        (False, False, True, True),
        (True, True, False, False),
    ]:
        monkeypatch.delattr(sys, "ps1", raising=False)
        monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
        monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None, raising=False)
        if prompt:
            monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal, raising=False)
        with watched("Audit", wanted) as listener:
            assert (listener is not None) == seen
