"""A release is one line."""

import copy
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.base import AuditorError, AuditorWarning
from auditor.runs.copy_files import write as release_folder
from auditor.runs.copy_files.read import append_copies, read_release
from auditor.runs.copy_files.write import write_copies
from tests.programs import PATIENCE, running, wait_for
from tests.tiers import each_once

ROWS = 6_000
RNG = np.random.default_rng(3)
NUMBERS = pd.DataFrame(
    RNG.normal(size=(ROWS, 2)) @ [[3.0, 1.0], [0.0, 2.0]] + [40.0, 10.0], columns=["age", "pay"]
)
CATEGORIES = pd.DataFrame({"job": RNG.choice(list("abc"), ROWS), "ward": RNG.integers(1, 4, ROWS)})
WHOLE = NUMBERS.round().astype(int)
PEOPLE = pd.DataFrame(
    {"a": RNG.integers(0, 50, 60), "b": RNG.integers(0, 50, 60), "s": RNG.integers(0, 5, 60)}
)
K_ANONYMITY = {"quasi": ["a", "b"], "sensitive": "s"}
LINES = {
    "corner-wave": (NUMBERS, [0.25, 1.0], [0.5, 0.6], {}), "laplace-multilevel": (NUMBERS, [0.25, 1.0], [0.5, 0.6], {}),
    "geometric-multilevel": (WHOLE, [0.25, 1.0], [0.5, 0.6], {}), "skellam-multilevel": (WHOLE, [0.25, 1.0], [0.5, 0.6], {}),
    "uniform-multilevel": (CATEGORIES, [0.2, 0.9], [0.5, 0.6], {}), "k-anonymity-multilevel": (PEOPLE, [2.0, 9.0], [4.0, 5.0], K_ANONYMITY),
}  # fmt: skip


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory, monkeypatch):
    """A key and a register of this test alone."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("AUDITOR_STATE", str(folder))
    return folder


@pytest.fixture
def table(tmp_path):
    NUMBERS.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def released(folder, scheme, form="csv"):
    """Write the first copies of a scheme's table, and return the table."""
    X, levels, _, parameters = LINES[scheme]
    X.to_parquet(folder / "table.parquet")
    write_copies(
        str(folder / "table.parquet"), scheme, levels, None, folder / "out", list(X.columns),
        parameters=parameters, form=form,
    )  # fmt: skip
    return X


def is_one_line(release, scheme):
    if scheme == "k-anonymity-multilevel":
        X, parameters = LINES[scheme][0], LINES[scheme][3]
        whole = auditor.perturb(X, scheme, release.levels, seed=1, **parameters)
        assert all(
            np.array_equal(np.asarray(a), np.asarray(b))
            for a, b in zip(release.copies, whole.copies, strict=True)
        )
    # of values at the higher level a share low/high is kept, and the rest is replaced by one of 9
    elif scheme == "uniform-multilevel":
        for low, high in itertools.combinations(np.argsort(release.levels), 2):
            kept = release.levels[low] / release.levels[high]
            alike = (release.copies[low].astype(str) == release.copies[high].astype(str)).all(
                axis=1
            )
            assert abs(alike.mean() - kept - (1 - kept) / 9) < 5 * 0.5 / np.sqrt(len(alike))
    else:
        # share of E Z⁴ beyond σ⁴
        tails = (
            4.5
            if scheme in ("laplace-multilevel", "skellam-multilevel", "geometric-multilevel")
            else 1.0
        )
        Z = np.array(
            [(made - release.original)["age"].to_numpy() for made in release.copies], dtype=float
        )
        scale = np.var(release.original["age"])
        error = np.abs(np.cov(Z) / scale - np.minimum.outer(release.levels, release.levels))
        reach = np.sqrt(
            (1 + tails) * np.outer(release.levels, release.levels) / len(release.original)
        )
        assert (error < 5 * reach).all()


@pytest.mark.parametrize("scheme", LINES)
def test_a_release_in_memory_that_is_extended_twice_is_one_line(scheme):
    X, levels, (first, second), parameters = LINES[scheme]
    release = auditor.perturb(
        X.astype("category") if scheme == "uniform-multilevel" else X, scheme, levels, **parameters
    )
    one, two, again = (
        release.extend([first]), copy.deepcopy(release).extend([second]), release.extend([first]),
    )  # fmt: skip
    assert (one.levels, two.levels) == ((*levels, first), (*levels, first, second))
    assert np.array_equal(np.asarray(again.copies[-1]), np.asarray(one.copies[-1]))
    is_one_line(two, scheme)


@pytest.mark.parametrize(("scheme", "form"), each_once(LINES, ["csv", "parquet"]))
def test_a_release_in_a_folder_that_is_read_and_extended_twice_is_one_line(tmp_path, scheme, form):
    X = released(tmp_path, scheme, form)
    _, levels, (first, second), _ = LINES[scheme]
    # as two processes read it, before either extends it
    one, two = read_release(X, tmp_path / "out"), read_release(X, tmp_path / "out")
    one, two = one.extend([first]), two.extend([second])
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    again = read_release(X, tmp_path / "out").extend([first])
    assert np.array_equal(np.asarray(again.copies[-1]), np.asarray(one.copies[-1]))
    # the same level is the same copy
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert sorted(before) == [*(f"copy-{k}.{form}" for k in (1, 2, 3, 4)), "release.json"]
    out = read_release(X, tmp_path / "out")
    assert out.levels == two.levels == (*levels, first, second)
    assert all(
        np.array_equal(np.asarray(a), np.asarray(b))
        for a, b in zip(out.copies, two.copies, strict=True)
    )
    is_one_line(out, scheme)


def test_records_and_levels_that_are_added_to_a_folder_from_python_stay_there(tmp_path):
    X = released(tmp_path, "corner-wave")
    batch, stale = NUMBERS[:500] + 0.5, read_release(X, tmp_path / "out")
    stale.append(batch)
    # another object does not know the new records' originals
    with pytest.raises(AuditorError, match="not as many records"):
        read_release(X, tmp_path / "out")
    assert len(stale.extend([0.5]).copies[2]) == ROWS + 500
    manifest = json.loads((tmp_path / "out" / "release.json").read_text())
    assert manifest["levels"] == [0.25, 1.0, 0.5]
    assert manifest["copies"] == ["copy-1.csv", "copy-2.csv", "copy-3.csv"]
    (later,) = manifest["later_batches"]
    assert (later["rows"], later["copies"]) == (
        500,
        ["copy-1-batch-2.csv", "copy-2-batch-2.csv", "copy-3-batch-2.csv"],
    )
    for part in (manifest, later):
        for name, column in itertools.product(part["copies"], part["grid"]):
            assert not (
                pd.read_csv(tmp_path / "out" / name, float_precision="round_trip")[column]
                / part["grid"][column]
                % 1
            ).any()
    whole = read_release([X, batch], tmp_path / "out")
    assert whole.first_batch == ROWS
    is_one_line(whole, "corner-wave")
    batch.to_csv(tmp_path / "batch.csv", index=False)
    (NUMBERS[:300] - 0.5).to_csv(tmp_path / "third.csv", index=False)
    append_copies(
        str(tmp_path / "third.csv"),
        tmp_path / "out",
        [str(tmp_path / "table.parquet"), str(tmp_path / "batch.csv")],
    )
    assert (
        len(read_release([X, batch, NUMBERS[:300] - 0.5], tmp_path / "out").copies[2]) == ROWS + 800
    )


def test_a_release_is_not_continued_with_another_table_or_order(tmp_path):
    for scheme, column in (("corner-wave", "age"), ("uniform-multilevel", "job")):
        (folder := tmp_path / scheme).mkdir()
        X = released(folder, scheme)
        for other in (X[::-1].reset_index(drop=True), X.assign(**{column: X[column].iloc[0]})):
            with pytest.raises(
                AuditorError,
                match="is no release of this table: its records have other values, or another order",
            ):
                read_release(other, folder / "out")
        X.to_csv(folder / "table.csv", index=False)
        assert read_release(pd.read_csv(folder / "table.csv"), folder / "out").levels


def test_a_second_release_of_a_table_is_noticed_and_named(tmp_path, table, command, own_state):
    order = ("perturb", table, "--scheme", "corner-wave", "--levels", "0.25,1", "-o")
    status, _, err = command(*order, tmp_path / "one")
    assert (status, "released before" in err) == (0, False)
    before = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    status, _, err = command(*order, tmp_path / "one")
    assert (status, err.count("error:")) == (2, 1)
    said = "holds a release of 6000 records (corner-wave, levels 0.25, 1), and a second one would average out with it"
    assert said in " ".join(err.split())
    assert {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()} == before
    status, _, err = command(*order, tmp_path / "two", "--columns", "pay")
    assert status == 0
    assert f"the same records were released before, in {tmp_path / 'one'} on" in err
    assert "(column 'pay')" in err
    with pytest.warns(AuditorWarning, match=f"released before, in {tmp_path / 'two'} on"):
        auditor.perturb(pd.read_csv(table), "independent", [0.5])
    with pytest.warns(AuditorWarning, match="released before, in memory on"):
        auditor.perturb(pd.read_csv(table), "corner-wave", [0.5])
    status, _, err = command(*order, tmp_path / "one", "--force")
    assert status == 0
    sentence = "is lost: it can no longer be extended or appended to, and whoever has its copies can average them with the new ones"
    assert sentence in err
    text = (own_state / "releases.jsonl").read_text()
    assert (own_state / "releases.jsonl").stat().st_mode & 0o777 == 0o600
    assert not any(f"{value:.3f}" in text for value in NUMBERS["age"][:100])


STAFF, EXTENDED, APPENDED = (
    NUMBERS[:2_000], [0.5, 0.6, 0.4, 0.75], [NUMBERS[2_000:2_900], NUMBERS[2_900:3_600]],
)  # fmt: skip


class Owner:
    def __init__(self, folder):
        self.folder, self.out = folder, folder / "out"
        self.seen = {}
        folder.mkdir(exist_ok=True)
        for number, frame in enumerate([STAFF, *APPENDED]):
            frame.to_csv(folder / f"{number}.csv", index=False)

    def state(self):
        manifest = release_folder.read_manifest(self.out)
        return (
            ([], 0)
            if manifest is None
            else (manifest["levels"], len(release_folder.batches_of(manifest)))
        )

    def original(self):
        return [STAFF, *APPENDED][: self.state()[1]]

    def next_command(self):
        levels, batches = self.state()
        if not batches:
            return "perturb", lambda: write_copies(
                str(self.folder / "0.csv"), "corner-wave", [0.25, 1.0], None, self.out
            )
        extended, appended = len(levels) - 2, batches - 1
        if appended < len(APPENDED) and appended < extended:
            earlier = [str(self.folder / f"{number}.csv") for number in range(batches)]
            return "append", lambda: append_copies(
                str(self.folder / f"{batches}.csv"), self.out, earlier
            )
        if extended < len(EXTENDED):
            return "extend", lambda: read_release(self.original(), self.out).extend(
                [EXTENDED[extended]]
            )
        return None

    def look(self):
        there = {path.name: path.read_bytes() for path in self.out.glob("copy-*")}
        assert all(there.get(name) == content for name, content in self.seen.items())
        self.seen |= there

    def check(self):
        self.look()
        manifest = release_folder.read_manifest(self.out)
        named = [name for part in release_folder.batches_of(manifest) for name in part["copies"]]
        assert sorted(path.name for path in self.out.iterdir()) == sorted([*named, "release.json"])
        is_one_line(read_release(self.original(), self.out), "corner-wave")


def in_a_child(action, before):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            signal.signal(signal.SIGTERM, lambda *_: sys.exit())
            before()
            warnings.simplefilter("ignore")
            action()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    return status == 0


def killed_at(count, folder, number):
    left = itertools.count(count, -1)

    def hook(event, arguments):
        changes = event in CHANGES or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR))
        if changes and str(folder) in str(arguments[0]) and next(left) == 1:
            os.kill(os.getpid(), number)

    sys.addaudithook(hook)


CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.chmod"}


@pytest.mark.parametrize(
    ("kind", "number"),
    itertools.product(["perturb", "extend", "append"], [signal.SIGKILL, signal.SIGTERM]),
)
@pytest.mark.slow_after_first
def test_a_command_killed_at_any_file_change_is_finished_or_undone_next(tmp_path, kind, number):
    first, ends = Owner(tmp_path / "first"), []
    while (command := first.next_command())[0] != kind:
        command[1]()
    for count in itertools.count(1):
        shutil.copytree(tmp_path / "first", tmp_path / f"{count}")
        owner = Owner(tmp_path / f"{count}")
        before, (_, action) = owner.state(), owner.next_command()
        whole = in_a_child(action, lambda at=(count, owner.out, number): killed_at(*at))
        if owner.out.exists():
            owner.look()
        ends.append(owner.state() != before)
        owner.next_command()[1]()
        owner.check()
        if whole:
            break
    assert whole
    assert ends == sorted(ends)  # undone up to one moment, done from then on
    assert sum(ends) > 1
    assert len(ends) - sum(ends) > 2


SLOW = """
import sys, time
from auditor.cli import main
from auditor.runs.copy_files import write as writers
append = writers._File.append
def slow(self, frame):
    append(self, frame)
    self._handle.flush()
    time.sleep(60)
writers._File.append = slow
main(sys.argv[1:])
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_perturb_with_a_message_and_leaves_no_file(tmp_path, table, number):
    order = (
        "perturb", table, *"--scheme corner-wave --levels 0.25,1 -o".split(),
        tmp_path / "new" / "out",
    )  # fmt: skip
    start = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    with running("-c", start + SLOW, *order, stderr=subprocess.PIPE) as process:
        wait_for(
            lambda: any(path.stat().st_size for path in tmp_path.glob("new/out/.copy-*")),
            "nothing is written",
        )
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number
    assert err.strip() == f"interrupted by {number.name}"
    assert not (tmp_path / "new").exists()
