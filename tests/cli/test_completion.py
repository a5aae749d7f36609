import pytest

from auditor.process.environment import shipped_scenarios
from tests.programs import environment, python


@pytest.fixture
def home(here, monkeypatch):
    monkeypatch.setenv("HOME", str(here))
    for variable in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    return here


@pytest.mark.parametrize(("shell", "place"), [
    ("bash", ".local/share/bash-completion/completions/auditor"), ("zsh", ".zfunc/_auditor"), ("fish", ".config/fish/completions/auditor.fish"),
])  # fmt: skip
def test_a_script_is_written_where_the_shell_looks_for_it(home, monkeypatch, command, shell, place):
    status, out, err = command("--install-completion", shell)
    assert (status, err) == (0, "")
    assert f"written: {home / place}" in out
    script = (home / place).read_text()
    assert f"_AUDITOR_COMPLETE={shell}_complete" in script
    (home / place).unlink()
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    assert command("--install-completion")[0] == 0
    assert (home / place).read_text() == script


def completed(*words, site):
    done = python(
        "-m", "auditor", cwd=site,
        env=environment(_AUDITOR_COMPLETE="bash_complete", COMP_WORDS=" ".join(["auditor", *words]), COMP_CWORD=str(len(words))),
    )  # fmt: skip
    return done.stdout.split()


@pytest.mark.slow
def test_commands_options_and_shipped_scenarios_are_completed(here):
    assert completed("co", site=here) == ["plain,compare"]
    assert "plain,--junit-xml" in completed("run", "--j", site=here)
    names = {f"plain,{path.stem}" for path in shipped_scenarios() if path.stem.startswith("li")}
    assert set(completed("run", "li", site=here)) == {*names, "file,li"}
