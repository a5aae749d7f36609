"""The journal on disk: what is torn, damaged or forged costs itself only; what is whole is read back as it was written."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.errors import AuditorError, StorageError
from auditor.runs import journal as module
from auditor.runs.journal import NAME, Journal, storing

PARTS = {"data": "d1", "seed": "s1"}
KEYS = ["a" * 64, "b" * 64, "c" * 64]


def written(folder, count=3, parts=PARTS, whole=False):
    with Journal(folder, parts, False) as journal:
        for number, key in enumerate(KEYS[:count]):
            journal.append(key, [number, {"value": 0.1 + number}])
        if whole:
            journal.finish(KEYS)
    return folder / NAME


def reopened(folder, parts=PARTS):
    with Journal(folder, parts, True) as journal:
        return journal, [journal.read(key) for key in KEYS]


def test_entries_come_back_as_they_were(tmp_path):
    written(tmp_path)
    journal, values = reopened(tmp_path)
    assert values == [[number, {"value": 0.1 + number}] for number in range(3)]
    assert (journal.damaged, journal.changed, journal.whole, journal.entries) == (0, [], False, 3)


def test_a_journal_cut_at_any_byte_loses_the_torn_entry_only(tmp_path):
    """Every place at which a kill or a full disk can stop the writing."""
    content = written(tmp_path).read_bytes()
    ends = [place + 1 for place, byte in enumerate(content) if byte == ord("\n")]
    for cut in range(len(content) + 1):
        (tmp_path / NAME).write_bytes(content[:cut])
        whole = sum(end <= cut for end in ends)
        journal, values = reopened(tmp_path)
        assert sum(value is not None for value in values) == max(0, whole - 1), cut
        assert journal.damaged == (cut > 0 and cut not in ends)


def test_what_follows_a_torn_entry_is_written_in_its_place(tmp_path):
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    with Journal(tmp_path, PARTS, True) as journal:
        assert KEYS[2] not in journal
        journal.append(KEYS[2], [9])
        assert journal.read(KEYS[2]) == [9]
    journal, values = reopened(tmp_path)
    assert journal.damaged == 0
    assert values[1:] == [[1, {"value": 1.1}], [9]]


@given(place=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_a_damaged_byte_is_never_believed(tmp_path_factory, place, flip):
    folder = tmp_path_factory.mktemp("damaged")
    path = written(folder)
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= flip
    path.write_bytes(content)
    _, values = reopened(folder)
    truth = [[number, {"value": 0.1 + number}] for number in range(3)]
    assert all(value is None or value == right for value, right in zip(values, truth, strict=True))
    # a line break that is damaged joins two lines
    assert sum(value is None for value in values) <= 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n\n",
        b"\0" * 5000,
        b"not a journal at all\n" * 3,
        os.urandom(2000),
        b"[" * 100_000 + b"\n",
        b"0" * 32 + b" key {}\n",
    ],
    ids=["empty", "lines", "zeros", "text", "noise", "deep", "no checksum"],
)
def test_a_file_that_is_no_journal_is_no_error(tmp_path, content):
    (tmp_path / NAME).write_bytes(content)
    _, values = reopened(tmp_path)
    assert values == [None] * 3


@pytest.mark.parametrize("text", ["[" * 50_000, "NaN}", "", "[1", "9" * 5000])
def test_a_line_with_a_right_checksum_and_senseless_content_is_not_used(tmp_path, text):
    line = module._line
    (tmp_path / NAME).write_bytes(line("run", text) + line(KEYS[0], text) + line(KEYS[1], "[2]"))
    _, values = reopened(tmp_path)
    assert values == [None, [2], None]


def test_what_changed_is_named(tmp_path):
    written(tmp_path)
    journal, _ = reopened(tmp_path, {"data": "d2", "seed": "s1", "file x.csv": "f"})
    assert journal.changed == ["data", "file x.csv"]


def test_without_resume_the_old_journal_stays_until_something_new_is_finished(tmp_path):
    path = written(tmp_path)
    before = path.read_bytes()
    with Journal(tmp_path, PARTS, False) as journal:
        assert journal.entries == 3
        assert journal.read(KEYS[0]) is None
        assert path.read_bytes() == before
        journal.append(KEYS[1], ["new"])
    assert reopened(tmp_path)[1] == [None, ["new"], None]


def test_a_run_that_came_to_its_end_says_so_and_keeps_what_it_used_only(tmp_path):
    path = written(tmp_path, whole=True)
    assert reopened(tmp_path)[0].whole
    with Journal(tmp_path, PARTS | {"data": "d2"}, True) as journal:
        journal.append("d" * 64, ["fresh"])
        assert not Journal.__contains__(journal, "e" * 64)
        journal.finish([KEYS[0], "d" * 64])
    journal, values = reopened(tmp_path, PARTS | {"data": "d2"})
    assert journal.whole
    assert [value is not None for value in values] == [True, False, False]
    assert path.read_text().count("\n") == 4  # run, two entries, whole


def test_a_finished_journal_is_not_touched_again(tmp_path):
    path = written(tmp_path, whole=True)
    before = path.stat().st_mtime_ns, path.stat().st_ino
    with Journal(tmp_path, PARTS, True) as journal:
        journal.finish(KEYS)
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before


class FullDisk:
    """A file on a disk with so many bytes left."""

    def __init__(self, file, left):
        self._file, self.left = file, left

    def write(self, data):
        fits = min(len(data), self.left)
        if not fits:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.left -= fits
        return self._file.write(data[:fits])

    def __getattr__(self, name):
        return getattr(self._file, name)


@pytest.mark.parametrize(("number", "remedy"), [
    (errno.ENOSPC, "every finished task is kept there: make room, and run again with --resume"),
    (errno.EACCES, "every finished task is kept there: mend this, and run again with --resume"),
    (errno.ENOENT, "its folder was removed or renamed during the run; run again$"),
])  # fmt: skip
def test_an_error_of_writing_names_its_own_remedy(tmp_path, number, remedy):
    with pytest.raises(StorageError, match=remedy), storing(tmp_path):
        raise OSError(number, os.strerror(number))


def test_a_folder_that_is_removed_before_anything_is_finished_is_said_so(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    with Journal(folder, PARTS, False) as journal:
        folder.rmdir()
        with pytest.raises(StorageError, match="was removed or renamed during the run"):
            journal.append(KEYS[0], [0])


@pytest.mark.parametrize("left", [0, 1, 40, 100])
def test_a_full_disk_is_told_and_costs_nothing_that_was_finished(tmp_path, left):
    with Journal(tmp_path, PARTS, False) as journal:
        journal.append(KEYS[0], [0])
        journal._file = FullDisk(journal._file, left)
        with pytest.raises(StorageError, match=r"No space left on device.*run again with --resume"):
            journal.append(KEYS[1], ["x" * 200])
    journal, values = reopened(tmp_path)
    assert values == [[0], None, None]
    assert journal.damaged == 0


def test_a_disk_that_is_full_when_a_run_begins_leaves_the_old_journal(tmp_path, monkeypatch):
    before = written(tmp_path).read_bytes()
    real = os.fdopen
    monkeypatch.setattr(
        module.os, "fdopen", lambda *args, **options: FullDisk(real(*args, **options), 10)
    )
    with Journal(tmp_path, PARTS, False) as journal, pytest.raises(StorageError):
        journal.append(KEYS[0], [0])
    assert (tmp_path / NAME).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_two_runs_cannot_write_to_one_folder(tmp_path):
    with (
        Journal(tmp_path, PARTS, False),
        pytest.raises(AuditorError, match="another run is writing there"),
    ):
        Journal(tmp_path, PARTS, True)
    Journal(tmp_path, PARTS, True).close()


def test_left_overs_of_killed_programs_are_swept_away_and_nothing_else(tmp_path):
    old = tmp_path / ".results.json-abcd1234"
    young, other = tmp_path / ".report.html-abcd1234", tmp_path / ".mine-abcd1234"
    for path in (old, young, other):
        path.write_text("x")
    for path in (old, other):
        os.utime(path, (0, 0))
    Journal(tmp_path, PARTS, False).close()
    assert (old.exists(), young.exists(), other.exists()) == (False, True, True)


def test_a_journal_is_its_owner_s_alone(tmp_path):
    """Also one that was there before, open to others, and is gone on with."""
    path = Path(written(tmp_path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    with Journal(tmp_path, PARTS, True) as journal:
        journal.append("more", 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_numpy_s_numbers_are_written_as_python_s(tmp_path):
    import numpy as np

    with Journal(tmp_path, PARTS, False) as journal:
        text = journal.append(
            KEYS[0], [np.float64(0.1), np.int64(3), np.bool_(True), float("nan"), float("-inf")]
        )
    assert text == "[0.1,3,true,NaN,-Infinity]"
    assert str(json.loads(text)) == "[0.1, 3, True, nan, -inf]"


def test_a_folder_that_is_removed_under_a_run_is_told_in_one_message(tmp_path):
    """Found by ``python -m benchmarks.kills``: a traceback where it went between being made and being taken."""
    with pytest.raises(StorageError, match="cannot be written"):
        Journal(tmp_path / "gone", {}, resume=False)
    with Journal(tmp_path, {}, resume=False) as journal:
        journal.append("a" * 64, [1.0])
        (tmp_path / NAME).unlink()
        assert journal.read("a" * 64) is None
