"""The charts' script: made in a process of its own, or here where there is no interpreter to start, and the same either way."""

import sys

import pytest

from reports import html


@pytest.fixture(scope="module")
def elsewhere():
    """The script as a process of its own makes it."""
    return html._bundle()


@pytest.mark.slow
@pytest.mark.parametrize("executable", ["/nowhere/python", "", "false"])
def test_without_an_interpreter_the_script_is_made_here(monkeypatch, elsewhere, executable):
    assert len(elsewhere) > 500_000
    assert "vl_convert" not in html.__dict__
    monkeypatch.setattr(sys, "executable", executable)
    assert html._bundle() == elsewhere


@pytest.mark.slow
def test_a_module_in_the_working_directory_is_not_taken_for_the_library(monkeypatch, tmp_path):
    (tmp_path / "vl_convert.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(html, "BUNDLE", html.BUNDLE.replace("write(", "write(b'elsewhere' + "))
    assert html._bundle().startswith("elsewhere")
