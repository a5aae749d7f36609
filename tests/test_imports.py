"""Imports run one way, and asking for help costs nothing."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# auditor.results.comparison is a reading of two results, as they are one of a run
FOR_REPORTS = {
    "auditor.results.model", "auditor.results.comparison", "auditor.results.renderer", "auditor.registry", "auditor.errors", "auditor.results.metrics", "auditor.text.safe_text",
}  # fmt: skip
"""Results and the words for them; text made safe to print; what a plugin is. No data, no engine."""


def imported(path):
    """Every module that a file imports, at the top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            # `from auditor import registry` imports a module as much as `import auditor.registry`.
            yield from (f"auditor.{alias.name}" for alias in node.names) if node.module == "auditor" else (node.module,)


def modules(folder):
    return sorted((ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("path", modules("auditor"), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_core_imports_no_attack_and_no_report(path):
    assert not {name for name in imported(path) if name.partition(".")[0] in ("attacks", "reports", "scenarios", "tests")}


@pytest.mark.parametrize("path", modules("reports"), ids=lambda path: path.name)
def test_reports_read_results_and_nothing_else(path):
    ours = {name for name in imported(path) if name.partition(".")[0] in ("auditor", "attacks")}
    assert ours <= FOR_REPORTS
    assert not {name for name in imported(path) if name.partition(".")[0] in ("numpy", "pandas", "scipy")}


@pytest.mark.parametrize("path", modules("attacks"), ids=lambda path: path.name)
def test_attacks_import_the_core_alone(path):
    assert not {name for name in imported(path) if name.partition(".")[0] in ("reports", "tests")}


def loaded_by(code):
    """The modules that a fresh interpreter has after some code."""
    script = f"import sys\ntry:\n    {code}\nexcept SystemExit:\n    pass\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "code",
    ["from auditor.cli import main; main(['--help'])", "from auditor.cli import main; main(['run', '--help'])", "import auditor"],
    ids=["help", "run-help", "import"],
)
def test_nothing_heavy_is_loaded_before_a_command_runs(code):
    heavy = {"numpy", "pandas", "pydantic", "scipy", "sklearn", "pyarrow", "altair", "joblib", "jinja2", "yaml", "auditor.registry"}
    assert not heavy & loaded_by(code)


def test_the_command_line_only_parses_and_calls():
    """At its top it imports nothing of ours but errors."""
    tree = ast.parse((ROOT / "auditor/cli.py").read_text(encoding="utf-8"))
    top = {node.module for node in tree.body if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("auditor")}
    assert top == {"auditor.errors"}
