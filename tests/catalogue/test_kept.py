import json
import os
import sys

import pytest
from plugin_packages import install

from auditor.catalogue import kept, pages
from auditor.cli.inspect import LISTS
from tests.programs import environment, python

HEAVY = {
    *("numpy pandas pydantic scipy sklearn pyarrow yaml auditor.registry auditor.scenario").split()
}
ALL_ANSWERS = """
import json, sys
from auditor.catalogue import kept
found = {command: kept.answer(command, lambda: "not kept") for command in json.loads(kept._place().read_bytes())["answers"]}
loaded = sorted(sys.modules)
from auditor.catalogue import pages
print(json.dumps([found, pages.answers(), loaded]))
"""

PLUGIN = '''
    """A source that third parties ship."""

    from auditor.plugin import Source, register


    @register
    class Theirs(Source):
        """WHAT."""

        name = "theirs"
'''


@pytest.mark.slow
def test_what_is_kept_is_what_is_found_and_nothing_is_imported_for_it(tmp_path):
    private = environment(XDG_CACHE_HOME=str(tmp_path))
    made = python("-m", "auditor", "list", env=private, check=True).stdout
    found, truth, loaded = json.loads(python("-c", ALL_ANSWERS, env=private, check=True).stdout)
    assert found == truth
    assert found["list"] + "\n" == made
    assert {
        "show llse",
        "show rmse",
        "show quickstart",
        *(f"list {kinds}" for kinds in LISTS),
    } <= found.keys()
    assert not HEAVY & set(loaded)


@pytest.mark.slow
def test_a_package_shows_as_soon_as_it_is_installed_or_changed(tmp_path):
    private = environment(tmp_path / "site", XDG_CACHE_HOME=str(tmp_path))

    def listed():
        done = python("-m", "auditor", "list", "sources", env=private, check=True)
        return done.stdout + done.stderr

    assert "theirs" not in listed()
    module = install(tmp_path / "site", "theirs", source=PLUGIN) / "theirs" / "source.py"
    assert "WHAT." in listed()
    module.write_text(module.read_text().replace("WHAT", "Something else"))
    assert "Something else." in listed()
    module.write_text("1 / 0")
    assert "ZeroDivisionError" in listed()


@pytest.mark.parametrize("content", [b"", b"[]", b'{"state": 1, "files": 2}', None])
def test_a_file_that_is_none_of_ours_is_passed_over(tmp_path, monkeypatch, content):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delitem(sys.modules, "auditor.registry")
    monkeypatch.setattr(kept, "_keep", lambda before: 1 / 0)
    place = kept._place()
    place.parent.mkdir(mode=0o700)
    place.mkdir() if content is None else place.write_bytes(content)
    assert kept.answer("list", lambda: "made") == "made"


def nobody_elses(place):
    place.parent.mkdir(mode=0o700)
    place.write_text(
        json.dumps({"state": kept._state([]), "files": [], "answers": {"list": "kept"}})
    )
    place.chmod(0o600)


@pytest.mark.skipif(os.name == "nt", reason="owners and modes are Unix's")
@pytest.mark.parametrize(
    "spoil",
    [
        lambda place, _: place.chmod(0o620),
        lambda place, _: place.parent.chmod(0o777),
        lambda place, patch: patch.setattr(os, "geteuid", lambda: place.stat().st_uid + 1),
        lambda place, patch: patch.setattr(kept, "LARGEST", 10),
        lambda place, _: (place.unlink(), os.mkfifo(place)),
        lambda place, _: (place.unlink(), place.symlink_to("/dev/zero")),
    ],
    ids=["others-write-it", "others-write-its-folder", "of-another", "huge", "pipe", "endless"],
)
def test_what_another_user_may_have_put_there_is_never_printed(tmp_path, monkeypatch, spoil):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delitem(sys.modules, "auditor.registry")
    nobody_elses(kept._place())
    assert kept.answer("list", lambda: "made") == "kept"
    spoil(kept._place(), monkeypatch)
    monkeypatch.setattr(kept, "_keep", lambda before: None)
    assert kept.answer("list", lambda: "made") == "made"


def test_nothing_is_written_through_a_link_in_a_folder_that_others_write_to(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(pages, "answers", lambda: {})
    mine, place = tmp_path / "mine", kept._place()
    mine.write_text("mine")
    place.parent.mkdir()
    place.parent.chmod(0o777)
    place.symlink_to(mine)
    kept._keep(before=2**63)
    assert mine.read_text() == "mine"
