"""What `import auditor` offers."""

from __future__ import annotations

from pathlib import Path

import yaml

import auditor


def test_no_name_that_is_offered_is_a_module_s() -> None:
    """Importing a module binds its name in the package: `auditor.attack` would be a function or a module, by who came first."""
    modules = {path.stem for path in Path(auditor.__file__).parent.iterdir()}
    assert not modules & set(auditor.__all__)


def test_every_name_that_is_offered_is_there() -> None:
    assert all(getattr(auditor, name).__name__ == name for name in auditor.__all__)


def test_dir_shows_what_is_public_and_nothing_else() -> None:
    assert dir(auditor) == sorted(auditor.__all__)


def test_the_project_is_cited_as_its_own_author() -> None:
    cited = yaml.safe_load((Path(__file__).parents[1] / "CITATION.cff").read_text(encoding="utf-8"))
    assert [author["name"] for author in cited["authors"]] == ["The auditor project"]
