import os
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from itertools import chain
from pathlib import Path, PurePosixPath

import pytest

import auditor
from tests.programs import PATIENCE, ROOT, python, virtual_environment


def test_no_name_that_is_offered_is_a_module_s():
    modules = {path.stem for path in Path(auditor.__file__).parent.iterdir()}
    assert not modules & set(auditor.__all__)


def test_every_name_that_is_offered_is_there():
    assert all(getattr(auditor, name).__name__ == name for name in auditor.__all__)


PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TARGETS = PYPROJECT["tool"]["hatch"]["build"]["targets"]
VERSION = PYPROJECT["project"]["version"]
WHEEL = f"auditor-{VERSION}-py3-none-any.whl"
FOREIGN = ("attacks", "reports", "scenarios")
LEFT_BEHIND = (
    "auditor/__pycache__/api.cpython-311.pyc", ".mypy_cache/3.11/api.json", ".venv/lib/site-packages/numpy/tests/test_api.py",
    "env311/lib/site-packages/auditor/runs/api.py", "env311/lib/site-packages/numpy/tests/README.md", "audit/quickstart/finished-tasks/run.json",
    "scenarios/audit/mine/finished-tasks/run.json", "scenarios/audit/mine/report.html", "scenarios/audit/mine/results.json",
    "scenarios/audit/mine/results.parquet", "docs/audit/mine/results.json",
)  # fmt: skip


def copied(source):
    source.mkdir()
    unwanted = shutil.ignore_patterns(
        "__pycache__", *{PurePosixPath(name).name for name in LEFT_BEHIND if "audit/" in name}
    )
    for path in chain.from_iterable(
        ROOT.glob(name.lstrip("/"))
        for name in (*TARGETS["sdist"]["include"], "pyproject.toml", ".gitignore")
    ):
        shutil.copytree(
            path, source / path.name, ignore=unwanted
        ) if path.is_dir() else shutil.copy(path, source)
    names = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    for name in LEFT_BEHIND:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("left behind")
    return names


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    names = copied(folder / "source")
    python("-m", "build", "--no-isolation", "--outdir", folder, folder / "source", check=True)
    return folder, names


@pytest.fixture(params=["wheel", "editable"])
def installed(request, built, tmp_path):
    folder, _ = built
    packages = virtual_environment(tmp_path / "venv")
    for name in FOREIGN:
        (packages / name).mkdir()
        (packages / name / "__init__.py").write_text("OWNER = 'another project'\n")
    what = (
        [folder / WHEEL]
        if request.param == "wheel"
        else ["--no-build-isolation", "--editable", folder / "source"]
    )
    program = tmp_path / "venv/bin/python"
    python(
        "-m", "pip", "--python", program,
        *"install --no-deps --no-index --no-compile --quiet".split(), *what, check=True,
    )  # fmt: skip
    variables = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    work = tmp_path / "work"
    work.mkdir()

    def run(*arguments, program="auditor"):
        done = subprocess.run(
            [tmp_path / "venv/bin" / program, *arguments], cwd=work, env=variables,
            capture_output=True, text=True, check=False, timeout=PATIENCE,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        return done.stdout

    return run, work, (packages if request.param == "wheel" else folder / "source")


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_its_packages_and_nothing_else(built):
    folder, source = built
    held = set(zipfile.ZipFile(folder / WHEEL).namelist())
    split = [
        (first, rest)
        for first, slash, rest in (name.partition("/") for name in source)
        if first in TARGETS["wheel"]["only-include"]
    ]
    packages = {f"{TARGETS['wheel']['sources'].get(first, first)}/{rest}" for first, rest in split}
    assert {
        name for name in held if not name.startswith(f"auditor-{VERSION}.dist-info/")
    } == packages
    assert {name.partition("/")[0] for name in packages} == {
        "auditor", "auditor_attacks", "auditor_reports",
    }  # fmt: skip
    assert packages >= {
        "auditor/py.typed", "auditor/data/files/cps.parquet", "auditor/scenario/template.yaml", "auditor/scenario/new/templates/published.yaml",
        "auditor_reports/templates/page.html.j2", "auditor_reports/templates/report.css", "auditor_reports/templates/report.js",
        "auditor/scenarios/quickstart.yaml", "auditor/scenarios/published-copies/copy-1.csv",
    }  # fmt: skip


@pytest.mark.slow
def test_the_source_archive_holds_every_file_but_what_was_left_behind(built):
    folder, source = built
    with tarfile.open(folder / f"auditor-{VERSION}.tar.gz") as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert held == source | {"PKG-INFO"}


@pytest.mark.slow
def test_an_installed_program_runs_beside_packages_of_its_folders_names(installed, command):
    run, work, place = installed
    ours = "import auditor_attacks.llse, auditor, auditor_reports.pages as html; print(auditor_attacks.llse.__file__, auditor.__file__, html.__file__)"
    assert all(
        Path(path).is_relative_to(place) for path in run("-c", ours, program="python").split()
    )
    theirs = f"import {', '.join(FOREIGN)}; print({', '.join(f'{name}.OWNER' for name in FOREIGN)}, sep=', ')"
    assert (
        run("-c", theirs, program="python") == ", ".join(["another project"] * len(FOREIGN)) + "\n"
    )
    assert VERSION in run("--version")
    assert run("list") == command("list")[1]
    run("run", "survey-example-3.6", "--quiet")
    assert "<html" in (work / "audit/survey-example-3.6/report.html").read_text(encoding="utf-8")
    run("new", "a.yaml")
    assert run("check", "a.yaml", "published-copies").count("valid") == 2
