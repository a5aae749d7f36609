import os
import re
import subprocess
from textwrap import dedent

import pyarrow.parquet as pq
import pytest

from tests.programs import PATIENCE, ROOT, python, virtual_environment

pytestmark = pytest.mark.slow


def written_in_contributing():
    blocks = re.findall(
        r"```(?:python|toml)\n(.*?)```",
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    attack, its_tests, pyproject, scheme = blocks
    return {
        "pyproject.toml": pyproject,
        "auditor_extras/__init__.py": '"""Extras."""\n',
        "auditor_extras/guess_the_mean.py": attack,
        "auditor_extras/halved.py": scheme,
        "auditor_extras/shrink.py": dedent(SHRINK).lstrip(),
        "tests/test_guess_the_mean.py": its_tests,
        "tests/test_all.py": dedent(TESTS).lstrip(),
    }


SHRINK = '''
    """Shrinks the first copy towards the mean by a fixed share."""

    import numpy as np
    from pydantic import Field

    from auditor.plugin import Affine, ExactMoments, LinearAttack, PluginParameters, register


    @register
    class Shrink(LinearAttack):
        """Shrinks the average of the copies towards the mean by a share that is a parameter."""

        name = "shrink"
        reference = "li2012, section 3.2"
        knowledge = ("perfect",)
        assumes = "The adversary knows the data's mean."
        wins = "Where the noise is weak; it shrinks by the same share however strong it is."

        class Parameters(PluginParameters):
            """How far."""

            share: float = Field(0.5, ge=0, le=1, description="0 takes the copies as they are, 1 the mean")

        def affine(self, view):
            keep = 1 - self.parameters.share
            W = np.kron(view.weights, keep * np.eye(view.width))
            return Affine(W, (1 - keep) * (view.need(ExactMoments).mean - view.centre))
'''

TESTS = """
    from auditor_extras.halved import Halved
    from auditor_extras.shrink import Shrink

    from auditor.testing import check_attack, check_scheme


    def test_the_scheme():
        check_scheme(Halved)


    def test_the_attack():
        check_attack(Shrink, {"share": 0.25})
"""

SCENARIO = """\
data: {source: gaussian, covariance: [[1.0, 0.5], [0.5, 2.0]], rows: 4000}
schemes: [{name: halved, levels: [0.5, 1.0]}]
attacks: [{name: shrink, share: 0.25}, llse, guess-the-mean]
coalitions: [subsets]
expect:
  - matches-theory
  - normalized_error: {attack: shrink, coalition: [1], between: [0.17, 0.24]}   # 0.75²·0.25 + 0.25² = 0.203
  - normalized_error: {attack: guess-the-mean, between: [0.999, 1.001]}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("third-party")
    for name, text in written_in_contributing().items():
        (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "source" / name).write_text(text, encoding="utf-8")
    python(
        *"-m build --wheel --no-isolation --outdir".split(), folder / "dist", folder / "source",
        check=True,
    )  # fmt: skip
    (wheel,) = (folder / "dist").glob("auditor_extras-0.1-*.whl")
    packages = virtual_environment(folder / "venv")
    python(
        *"-m pip install --no-deps --no-index --no-compile --quiet --target".split(), packages,
        wheel, check=True,
    )  # fmt: skip
    (packages / "checkout.pth").write_text(str(ROOT))
    return folder


def audit(site, *arguments):
    return module(site, "auditor", *arguments)


def module(site, *arguments):
    variables = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    command = [str(site / "venv/bin/python"), "-m", *arguments]
    return subprocess.run(
        command, cwd=site, env=variables, capture_output=True, text=True, check=False,
        timeout=PATIENCE,
    )  # fmt: skip


def test_a_scenario_uses_what_the_wheel_adds(site):
    (site / "extras.yaml").write_text(SCENARIO)
    done = audit(site, "run", "extras.yaml", "--quiet")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    table = pq.read_table(site / "audit/extras/results.parquet").to_pandas()
    assert set(table.attack) == {"shrink", "llse", "guess-the-mean"}
    assert set(table.scheme) == {"halved"}
    assert set(table.status) == {"ok"}


def test_the_wheel_s_plugins_are_listed_and_shown_as_the_built_in_ones(site):
    packages = dict(
        line.split()[:2]
        for line in audit(site, "list").stdout.splitlines()
        if line.startswith("  ")
    )
    assert (
        packages["guess-the-mean"] == packages["shrink"] == packages["halved"] == "auditor-extras"
    )
    assert (
        packages["llse"]
        == packages["iris"]
        == packages["corner-wave"]
        == packages["rmse"]
        == "auditor"
    )
    shown = audit(site, "show", "shrink").stdout
    assert "Package:        auditor-extras" in shown
    assert (
        "share  number ≥ 0, ≤ 1; default 0.5. 0 takes the copies as they are, 1 the mean" in shown
    )
    assert "Y. Li" in shown


def test_the_wheel_s_parameters_are_checked_as_the_built_in_ones(site):
    (site / "wrong.yaml").write_text(SCENARIO.replace("share: 0.25", "share: 1.25"))
    done = audit(site, "check", "wrong.yaml")
    assert done.returncode == 2
    assert "wrong.yaml:3:33: attacks[0].share must be at most 1; got 1.25" in done.stderr


def test_the_wheel_s_own_tests_pass_with_the_installed_package(site):
    done = module(site, "pytest", "-q", "-p", "no:cacheprovider", "source/tests")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
