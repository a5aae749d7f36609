"""What `import auditor` offers, and what its wheel and source archive hold: all that is needed without the checkout, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from itertools import chain
from pathlib import Path, PurePosixPath

import pytest
import yaml

import auditor
from tests.programs import PATIENCE, ROOT, python


def test_no_name_that_is_offered_is_a_module_s() -> None:
    """Importing a module binds its name in the package: `auditor.attack` would be a function or a module, by who came first."""
    modules = {path.stem for path in Path(auditor.__file__).parent.iterdir()}
    assert not modules & set(auditor.__all__)


def test_every_name_that_is_offered_is_there() -> None:
    assert all(getattr(auditor, name).__name__ == name for name in auditor.__all__)


def test_dir_shows_what_is_public_and_nothing_else() -> None:
    assert dir(auditor) == sorted(auditor.__all__)


def test_the_project_is_cited_as_its_own_author() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert [author["name"] for author in cited["authors"]] == ["The auditor project"]


# -- wheel and source archive ------------------------------------------------------------------------------------------

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TARGETS = PYPROJECT["tool"]["hatch"]["build"]["targets"]
VERSION = PYPROJECT["project"]["version"]
LEFT_BEHIND = (
    "auditor/__pycache__/api.cpython-311.pyc", ".mypy_cache/3.11/api.json", ".venv/lib/site-packages/numpy/tests/test_api.py",
    "env311/lib/site-packages/auditor/api.py", "env311/lib/site-packages/numpy/tests/README.md", "audit/quickstart/journal.jsonl",
    "scenarios/audit/mine/journal.jsonl", "scenarios/audit/mine/report.html", "scenarios/audit/mine/results.json",
    "scenarios/audit/mine/results.parquet", "docs/audit/mine/results.json",
)  # fmt: skip
"""What work leaves in a checkout: caches, environments of any name, and results of audits, which may be of somebody's private table."""


def copied(source: Path) -> set[str]:
    """Copy what the source archive is to hold to a folder, and leave much behind in it that it is not to; return the names of the former."""
    source.mkdir()
    unwanted = shutil.ignore_patterns("__pycache__", *{PurePosixPath(name).name for name in LEFT_BEHIND if "audit/" in name})
    for path in chain.from_iterable(ROOT.glob(name.lstrip("/")) for name in (*TARGETS["sdist"]["include"], "pyproject.toml", ".gitignore")):
        shutil.copytree(path, source / path.name, ignore=unwanted) if path.is_dir() else shutil.copy(path, source)
    names = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    for name in LEFT_BEHIND:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("left behind")
    return names


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with source archive, the wheel built from it, and a venv that has the wheel; the names of the files that they were built from."""
    folder = tmp_path_factory.mktemp("package")
    names = copied(folder / "source")
    python("-m", "build", "--no-isolation", "--outdir", folder, folder / "source", check=True)
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    wheel, program = folder / f"auditor-{VERSION}-py3-none-any.whl", folder / "venv/bin/python"
    python("-m", "pip", "--python", program, "install", "--no-deps", "--no-index", "--no-compile", "--quiet", wheel, check=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "venv"), "platbase": str(folder / "venv")}))
    # What the wheel depends on; a link to a checkout that lies in those folders is not followed from here.
    (packages / "shared.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    return folder, names


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_its_packages_and_nothing_else(built) -> None:
    folder, source = built
    held = set(zipfile.ZipFile(folder / f"auditor-{VERSION}-py3-none-any.whl").namelist())
    packages = {name for name in source if name.partition("/")[0] in TARGETS["wheel"]["packages"]}
    assert {name for name in held if not name.startswith(f"auditor-{VERSION}.dist-info/")} == packages
    assert packages >= {
        "auditor/py.typed", "auditor/data/files/cps.parquet", "auditor/scenario/template.yaml", "auditor/scenario/new/templates/published.yaml",
        "reports/templates/page.html.j2", "reports/templates/report.css", "reports/templates/report.js", "scenarios/quickstart.yaml",
        "scenarios/published-copies/copy-1.csv",
    }  # fmt: skip


@pytest.mark.slow
def test_the_source_archive_holds_every_file_but_what_was_left_behind(built) -> None:
    folder, source = built
    with tarfile.open(folder / f"auditor-{VERSION}.tar.gz") as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert held == source | {"PKG-INFO"}


@pytest.mark.slow
def test_the_installed_wheel_runs_from_an_empty_folder_without_the_checkout(built, tmp_path, command) -> None:
    folder, _ = built
    variables = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def installed(*arguments: str, program: str = "auditor") -> str:
        done = subprocess.run(
            [folder / "venv/bin" / program, *arguments], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False, timeout=PATIENCE
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        return done.stdout

    where = "import attacks, auditor, reports, scenarios; print(*(p.__path__[0] for p in (attacks, auditor, reports, scenarios)), sep='\\n')"
    assert all(Path(path).is_relative_to(folder / "venv") for path in installed("-c", where, program="python").splitlines())
    assert VERSION in installed("--version")
    assert installed("list") == command("list")[1]
    installed("run", "published-copies", "--quiet")  # which reads files that lie beside it
    assert "<html" in (tmp_path / "audit/published-copies/report.html").read_text(encoding="utf-8")
    installed("new", "a.yaml")
    assert "valid" in installed("check", "a.yaml")
