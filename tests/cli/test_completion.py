"""Shell completion, progress and the plugin of pytest."""

import pytest
import scipy.linalg  # noqa: F401 - pytester forgets imports inside, and numpy cannot be imported twice

import auditor.runs.api  # noqa: F401
from auditor import registry
from auditor.process.environment import shipped_scenarios
from tests.programs import environment, python


def completed(*words, site):
    done = python(
        "-m", "auditor", cwd=site,
        env=environment(_AUDITOR_COMPLETE="bash_complete", COMP_WORDS=" ".join(["auditor", *words]), COMP_CWORD=str(len(words))),
    )  # fmt: skip
    return done.stdout.split()


@pytest.mark.slow
def test_commands_options_and_shipped_scenarios_are_completed(here):
    script = python("-m", "auditor", env=environment(_AUDITOR_COMPLETE="bash_source")).stdout
    assert "_AUDITOR_COMPLETE=bash_complete" in script
    assert completed("co", site=here) == ["plain,compare"]
    assert "plain,--junit-xml" in completed("run", "--j", site=here)
    names = {f"plain,{path.stem}" for path in shipped_scenarios() if path.stem.startswith("li")}
    assert set(completed("run", "li", site=here)) == {*names, "file,li"}


registry.discover()
pytest_plugins = ["pytester"]

SCENARIO = """\
data: {source: gaussian, covariance: [[1.0, 0.5], [0.5, 2.0]], rows: 300}
schemes: [{name: correlated, levels: [0.25, 1.0]}]
attacks: [llse]
expect:
  - matches-theory
  - no-collusion-gain: {scheme: correlated}
  - collusion_gain: {coalition: all, at-least: 0.05}
"""


@pytest.fixture
def folder(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider -p auditor.runs.pytest_plugin")
    return pytester


def write(folder, **files):
    for name, text in files.items():
        (folder.path / f"{name}.yaml").write_text(text, encoding="utf-8")


def test_each_expectation_is_an_item_and_its_reason_is_the_failure(folder):
    write(folder, mine=SCENARIO)
    done = folder.runpytest_inprocess("-v")
    done.assert_outcomes(passed=3, failed=1)
    done.stdout.fnmatch_lines([
        "mine.yaml::runs PASSED*",
        "mine.yaml::matches-theory[[]0[]] PASSED*",
        "mine.yaml::no-collusion-gain[[]1[]] FAILED*",
        "mine.yaml::collusion_gain[[]2[]] PASSED*",
        "fails: by law: in correlated, no copy of 1, 2 makes the others useless*",
    ])  # fmt: skip
    done.stdout.no_fnmatch_line("*Traceback*")


def test_what_is_timed_is_judged_unless_the_settings_say_otherwise(folder):
    write(
        folder,
        timed=SCENARIO.partition("expect:")[0]
        + "measures: [seconds]\nexpect:\n  - seconds: {at-most: 1000}\n  - matches-theory\n",
    )
    folder.runpytest_inprocess().assert_outcomes(passed=3)
    done = folder.runpytest_inprocess("-o", "auditor_timed=false", "-rs")
    done.assert_outcomes(passed=2, skipped=1)
    done.stdout.fnmatch_lines(["SKIPPED*judges seconds; -o auditor_timed=true does so"])


@pytest.mark.parametrize(
    "text",
    ["", "- data\n- schemes\n- attacks\n", "data schemes attacks: [", "\x00data schemes attacks"],
)  # fmt: skip
def test_other_yaml_files_are_left_alone(folder, text):
    write(folder, other=text)
    folder.runpytest_inprocess().assert_outcomes()


@pytest.mark.parametrize(("text", "shown"), [
    (SCENARIO.replace("[llse]", "[lsse]"), "*mine.yaml:3:11: attacks[[]0[]] names an unknown attack 'lsse'; did you mean 'llse'?"),
    (SCENARIO.replace("[llse]", "[llse"), "*mine.yaml:4:7: not valid YAML*"),
])  # fmt: skip
def test_an_invalid_scenario_is_a_collection_error_with_its_place(folder, text, shown):
    write(folder, mine=text)
    done = folder.runpytest_inprocess()
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines([shown])
    done.stdout.no_fnmatch_line("*Traceback*")


def test_data_that_cannot_be_audited_fail_every_item_with_the_place(folder):
    write(folder, mine=SCENARIO.replace("rows: 300", "rows: 300, columns: [x1, x9]"))
    done = folder.runpytest_inprocess()
    done.assert_outcomes(failed=4)
    done.stdout.fnmatch_lines(
        ["*mine.yaml:1:89: data.columns[[]1[]] cannot be used: there is no column 'x9'*"]
    )


def test_a_cell_that_fails_fails_the_item_that_says_it_runs(folder, monkeypatch):
    from auditor_attacks.llse import JointLLSE

    def broken(self, view, coalitions):
        raise ValueError(f"secret {view.centre}")

    monkeypatch.setattr(JointLLSE, "affine_batch", broken)
    write(folder, mine=SCENARIO)
    done = folder.runpytest_inprocess("-v")
    done.stdout.fnmatch_lines([
        "mine.yaml::runs FAILED*", "*cells failed",
        "correlated, llse, perfect: ValueError at test_completion.py*",
    ])  # fmt: skip
    done.stdout.no_fnmatch_line("*secret*")


def test_a_bug_is_told_by_place_and_not_by_text(folder, monkeypatch):
    from auditor.runs import run_scenario as engine

    def broken(scenario, **options):
        raise RuntimeError("secret 123456.789")

    monkeypatch.setattr(engine, "run_scenario", broken)
    write(folder, mine=SCENARIO)
    done = folder.runpytest_inprocess()
    done.assert_outcomes(failed=4)
    done.stdout.fnmatch_lines(["*RuntimeError (its message is withheld*"])
    done.stdout.no_fnmatch_line("*123456.789*")
