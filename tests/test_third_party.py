"""A third party's package, built as a real wheel and installed into a venv, adds an attack and a scheme that a scenario uses."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from textwrap import dedent

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[1]

FILES = {
    "pyproject.toml": """
        [build-system]
        requires = ["hatchling"]
        build-backend = "hatchling.build"

        [project]
        name = "auditor-extras"
        version = "0.1"
        description = "An attack and a scheme for the audit workbench."

        [project.entry-points."auditor.plugins"]
        extras = "auditor_extras"

        [tool.hatch.build.targets.wheel]
        packages = ["auditor_extras"]
    """,
    "auditor_extras/__init__.py": '"""Extras."""\n',
    "auditor_extras/shrink.py": '''
        """Shrinks the first copy towards the mean by a fixed share."""

        import numpy as np
        from pydantic import Field

        from auditor.adversary.attack import LinearAttack
        from auditor.adversary.affine import Affine
        from auditor.registry import PluginParameters, register


        @register
        class Shrink(LinearAttack):
            """Shrinks the average of the copies towards the mean by a share that is a parameter."""

            name = "shrink"
            reference = "li2012, section 3.2"
            knowledge = ("perfect",)

            class Parameters(PluginParameters):
                """How far."""

                share: float = Field(0.5, ge=0, le=1, description="0 takes the copies as they are, 1 the mean")

            def affine(self, view):
                keep = 1 - self.parameters.share
                W = np.kron(view.weights, keep * np.eye(view.width))
                return Affine(W, (1 - keep) * (view.exact_mean - view.centre))
    ''',
    "auditor_extras/halved.py": '''
        """Fresh noise of half the asked level."""

        import numpy as np

        from auditor.schemes.base.additive import AdditiveScheme, Step
        from auditor.registry import register


        @register
        class Halved(AdditiveScheme):
            """Fresh noise of half the level that was asked for, which is a bad idea."""

            name = "halved"

            def level_covariance(self, levels):
                return np.diag(np.asarray(levels) / 2)

            def plan(self, levels, existing=0):
                return [Step(copy, ((0, 1.0),), ((copy, float(np.sqrt(level / 2))),))
                        for copy, level in enumerate(levels, start=1) if copy > existing]
    ''',
}

SCENARIO = """\
data: {source: gaussian, covariance: [[1.0, 0.5], [0.5, 2.0]], rows: 4000}
schemes: [{name: halved, levels: [0.5, 1.0]}]
attacks: [{name: shrink, share: 0.25}, llse]
coalitions: [subsets]
expect:
  - matches-theory
  - normalized_error: {attack: shrink, coalition: [1], between: [0.17, 0.24]}   # 0.75²·0.25 + 0.25² = 0.203
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A venv that sees this interpreter's packages, with the third party's wheel installed by pip."""
    folder = tmp_path_factory.mktemp("third-party")
    for name, text in FILES.items():
        (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "source" / name).write_text(dedent(text).lstrip(), encoding="utf-8")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder / "dist"), str(folder / "source")]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = (folder / "dist").glob("auditor_extras-0.1-*.whl")
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    packages = sysconfig.get_path("purelib", vars={"base": str(folder / "venv"), "platbase": str(folder / "venv")})
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--no-compile", "--quiet", "--target", packages, str(wheel)]
    subprocess.run(pip, check=True, capture_output=True)
    shared = [str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))]
    (Path(packages) / "shared.pth").write_text("\n".join(shared))
    return folder


def audit(site, *arguments):
    # The venv's own interpreter, and nothing but its own path.
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    command = [str(site / "venv/bin/python"), "-m", "auditor", *arguments]
    return subprocess.run(command, cwd=site, env=environment, capture_output=True, text=True, check=False)


def test_a_scenario_uses_what_the_wheel_adds(site):
    (site / "extras.yaml").write_text(SCENARIO)
    done = audit(site, "run", "extras.yaml", "--quiet")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    table = pq.read_table(site / "audit/extras/results.parquet").to_pandas()
    assert set(table.attack) == {"shrink", "llse"}
    assert set(table.scheme) == {"halved"}
    assert set(table.status) == {"ok"}


def test_the_wheel_s_plugins_are_listed_and_shown_as_the_built_in_ones(site):
    listed = audit(site, "list").stdout
    assert "shrink " in listed
    assert "halved " in listed
    assert "llse " in listed
    shown = audit(site, "show", "shrink").stdout
    assert "share  number ≥ 0, ≤ 1; default 0.5. 0 takes the copies as they are, 1 the mean" in shown
    assert "Y. Li" in shown


def test_the_wheel_s_parameters_are_checked_as_the_built_in_ones(site):
    (site / "wrong.yaml").write_text(SCENARIO.replace("share: 0.25", "share: 1.25"))
    done = audit(site, "check", "wrong.yaml")
    assert done.returncode == 2
    assert "wrong.yaml:3:33: attacks[0].share must be at most 1; got 1.25" in done.stderr
