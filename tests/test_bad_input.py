import os
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from auditor.base import LONGEST_LINE, MOST_LINES
from auditor.process import environment as memory
from tests.programs import environment, python

SECRETS = ("Alice", "87654321.125", "HIV", "1987-06-05")


@pytest.fixture
def auditor(command):

    def run(*arguments):
        status, out, err = command(*arguments)
        assert "Traceback" not in err
        assert not any(secret in out + err for secret in SECRETS)
        assert len(err.splitlines()) <= MOST_LINES + 1
        assert all(len(line) <= LONGEST_LINE + 10 for line in err.splitlines())
        return status, out, err

    return run


def scenario(
    source, data="", schemes="[{name: corner-wave, levels: [0.5]}]", attacks="[ndr]", more=""
):
    Path("s.yaml").write_text(
        f"data:\n  source: {source}\n{data}schemes: {schemes}\nattacks: {attacks}\n{more}"
    )
    return "s.yaml"


def perturb(auditor, file, *more, scheme="corner-wave"):
    return auditor("perturb", file, *f"--scheme {scheme} --levels 1 --output out".split(), *more)


@pytest.mark.parametrize("name", ["a" * 300 + ".csv", "~nosuchuser/x.csv", "x\0.csv"])
def test_a_name_that_no_file_can_have_is_not_there(here, auditor, name):
    source = '"' + name.replace("\0", "\\0") + '"'
    assert auditor("check", scenario(source))[0] == 2
    assert auditor("check", name)[0] == 2
    assert perturb(auditor, name)[0] == 2
    copies = f"[{{name: published, copies: [{source}]}}]"
    assert auditor("check", scenario("iris", schemes=copies))[0] == 2
    noise = f"[{{name: corner-wave, levels: [1], noise: {{matrix: {source}}}}}]"
    assert auditor("check", scenario("iris", schemes=noise))[0] == 2


@pytest.mark.parametrize("words", ["perturb iris --scheme corner-wave --levels 1 --output", "new"])
def test_nor_can_what_is_written_have_it(here, auditor, words):
    assert auditor(*words.split(), "a" * 300)[::2] == (2, "error: File name too long\n")


HEADERLESS = {
    "numbers": "87654321.125,5\n1,2\n3,4\n",
    "a number among words": "Alice,37,HIV\nBob,33,flu\nCarl,22,flu\n",
    "dates": "1987-06-05,x\n1,2\n3,4\n",
    "a word twice": "HIV,HIV,x\n1,2,5\n3,4,6\n",
    "a quote that nobody closed": 'x,y,"\n87654321.125,2,HIV\n3,4,flu\n"\n5,6,7\n8,9,1\n',
    "a category that repeats": "Anna,yes\n" + "".join(f"N{k},yes\nM{k},no\n" for k in range(12)),
    "written twice": "c,d\n" + "a,1\nc,2\n" * 6 + "c,d\n",
    "semicolons and decimal commas": "Alice;87654321,125;34\nBob;1000,5;20\nCarl;1001,5;21\n",
}


@pytest.mark.parametrize("what", HEADERLESS)
def test_a_record_is_not_taken_for_a_header(here, auditor, what):
    Path("t.csv").write_text(HEADERLESS[what])
    status, _, err = auditor("check", scenario("t.csv"))
    assert status == 2
    assert "t.csv: " in err
    assert perturb(auditor, "t.csv")[0] == 2


@pytest.mark.parametrize("beside", ["1", "x y"])
def test_a_column_may_have_the_name_of_a_category(here, auditor, beside):
    Path("t.csv").write_text("c,d\n" + f"c,{beside}\na,2\nb,{beside}\n" * 7)
    assert auditor("new", "s.yaml", "--data", "t.csv")[0] == 0


def test_a_folder_that_does_not_exist_is_named(here, auditor):
    for words in (["new", "nodir/"], ["new", "s.yaml", "--data", "nodir/"]):
        status, _, err = auditor(*words)
        assert status == 2
        assert "nodir/" in err
        assert "source" not in err


@pytest.mark.parametrize("names", [["87654321.125", "b"], ["1987-06-05", "87654321.125"]])
def test_a_parquet_file_made_of_one_without_a_header_is_refused_alike(here, auditor, names):
    pd.DataFrame(np.eye(3, 2), columns=names).to_parquet("t.parquet")
    assert auditor("check", scenario("t.parquet"))[0] == 2


@pytest.mark.parametrize(("name", "content"), [
    ("staff.csv", "name,age\nAlice,37\n"), ("staff.txt", "Alice: 1,HIV\n"),
    ("staff", '"Alice\t,{HIV\n&c *d\n'), ("staff.yaml", "- Alice\n- HIV\n"),
    ("staff.json", '[{"name": "Alice"}]'), ("staff.yaml", "HIV"),
])  # fmt: skip
def test_a_table_in_place_of_a_scenario_is_told_in_one_line(here, auditor, name, content):
    Path(name).write_text(content)
    for command in ("check", "run"):
        status, _, err = auditor(command, name)
        assert status == 2
        assert len(err.splitlines()) == 1
        assert "auditor new" in err


@pytest.mark.parametrize("name", ["t.parquet", "t.xlsx", "t.bin"])
def test_so_is_one_that_is_no_text(here, auditor, name):
    Path(name).write_bytes(b"PK\x03\x04\0\0Alice")
    assert "auditor new" in auditor("check", name)[2]
    assert auditor("report", name)[0] == 2


def test_a_scenario_s_declared_values_are_not_quoted(here, auditor):
    for source, data in (
        ("inline", "values: {a: [1, HIV, 3], b: [Alice, 2, [87654321.125]]}"),
        ("iris", "hierarchies: {d: {a: [HIV, HIV]}}"),
        ("iris", "hierarchies: {d: {a: HIV}}"),
        ("iris", "categorical: {d: [HIV, HIV]}"),
    ):
        assert auditor("check", scenario(source, data=f"  {data}\n"))[0] == 2


@pytest.mark.parametrize("file", ["..yaml", "...yaml"])
def test_a_scenario_s_file_name_cannot_lead_out_of_the_output_folder(here, auditor, file):
    Path(scenario("iris")).rename(file)
    assert auditor("run", file, "--output", "o/out") == (
        2, "", f"error: {file}: results go to a folder named after the file, which must not be {file[:-5]!r}; rename the file\n"
    )  # fmt: skip
    assert [path.name for path in here.iterdir()] == [file]


@pytest.mark.parametrize(("character", "asked"), [
    ("\n", ["check"]), ("\x1b", ["run"]),
    ("\x85", "perturb --scheme corner-wave --levels 1 --output out".split()),
    ("\u2028", ["check"]),
])  # fmt: skip
def test_the_name_of_a_file_breaks_no_line(here, auditor, asked, character):
    name = f"a{character}b" + (".csv" if "perturb" in asked else ".yaml")
    Path(scenario("iris")).rename(name)
    shown = name.replace(character, " " if character == "\n" else "�")
    assert auditor(asked[0], name, *asked[1:]) == (
        2, "", f"error: {shown}: the name of a file must not hold control characters; rename it\n"
    )  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize(("kind", "suffix"), [
    ("pipe", ".csv"), ("device", ".csv.gz"), ("pipe", ".parquet"), ("device", ".yaml"),
])  # fmt: skip
def test_a_pipe_or_a_device_is_no_file_and_is_not_waited_for(here, auditor, kind, suffix):
    file = Path("x" + suffix)
    os.mkfifo(file) if kind == "pipe" else file.symlink_to("/dev/zero")
    told = f"error: {file}: expected a file or a folder; got a pipe or a device\n"
    if suffix == ".yaml":
        assert auditor("check", file) == (2, "", told)
        return
    assert perturb(auditor, file) == (2, "", told)
    status, _, err = auditor("check", scenario(file))
    assert status == 2
    assert "s.yaml:2:11: data.source" in err
    assert "got a pipe or a device" in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device here")
@pytest.mark.parametrize("command", [["check", "s.yaml"], ["run", "s.yaml"]])
@pytest.mark.slow_after_first
def test_a_full_device_is_said_and_nothing_is_lost(here, command):
    scenario("iris")
    with Path("/dev/full").open("w") as full:
        done = python("-m", "auditor", *command, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 3
    assert "error: " in done.stderr
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert command[0] != "run" or Path("audit/s/results.json").exists()


@pytest.mark.slow
def test_missing_documentation_and_letters_that_a_terminal_lacks_change_no_status(here):
    scenario("iris")
    ascii_only = environment(PYTHONIOENCODING="ascii")
    done = python("-OO", "-m", "auditor", "check", "s.yaml", env=ascii_only)
    assert done.returncode == 0, done.stderr
    assert "1 release ? 1 replicate" in done.stdout


def test_more_rows_than_memory_are_refused_before_they_are_drawn(here, auditor, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 8 * 2**30)
    status, _, err = auditor("check", scenario("census-like", data="  rows: 1000000000\n"))
    assert status == 2
    assert "1,000,000,000 rows of 2 columns need 59.6 GiB of memory, and there are 8.0 GiB" in err
    wide = "  rows: 1000000\n  spectrum: {large: 5, count: 2, small: 1, attributes: 5000}\n"
    assert "1,000,000 rows of 5,000 columns" in auditor("run", scenario("gaussian", data=wide))[2]
    assert perturb(auditor, "salary-like", "--rows", 10**9, scheme="uniform")[0] == 2


@pytest.fixture
def copies(here):
    rng = np.random.default_rng(14)
    X = pd.DataFrame(rng.normal(size=(300, 2)) * [1.0, 50.0], columns=["a", "b"])
    Y = X + rng.normal(size=X.shape) * [0.5, 25.0]
    X.to_csv("x.csv", index=False)
    Y.to_csv("y.csv", index=False)
    Y.sample(frac=1, random_state=1).to_csv("shuffled.csv", index=False)


def published(name, more="", data=""):
    return scenario("x.csv", data, f"[{{name: published, copies: [{name}.csv]{more}}}]")


def test_a_shuffled_copy_is_refused_before_anything_is_audited(copies, auditor):
    for command in ("check", "run"):
        status, _, err = auditor(command, published("shuffled"))
        assert status == 2
        assert "'shuffled.csv': the copy's rows hold the original's values in another order" in err
    assert not Path("audit/s/results.json").exists()
    assert auditor("check", published("y"))[0] == 0
    assert auditor("check", published("shuffled", ", aligned: true"))[0] == 0
