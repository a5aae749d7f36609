import re
import shlex
from pathlib import Path

import click
import pytest

from auditor.cli import cli
from auditor.scenario.read import read_scenario

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page, language):
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def commands():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
        lines += [code.replace("\n", " ") for code in re.findall(r"(?<!`)`(auditor [^`]+)`", text)]
        for line in lines:
            found = re.search(r"(?:^|&& |/)auditor ([a-z-].*)", line)
            if found:
                yield page.name, shlex.split(found[1].replace("…", ""), comments=True)


def unknown(words):
    name, *rest = words
    command = cli.get_command(click.Context(cli), name)
    if command is None:
        return {name}
    known = {
        option
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    } | {"--help", "-h"}
    return {word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)} - known


def test_every_command_has_the_options_that_are_shown():
    found = [(page, words) for page, words in commands() if not words[0].startswith("-")]
    assert len(found) > 30
    assert [(page, words, unknown(words)) for page, words in found if unknown(words)] == []


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any("schema: 1" in block for block in blocks(page, "yaml"))],
    ids=lambda page: page.name,
)
def test_every_scenario_that_is_shown_is_one(page, tmp_path, monkeypatch):
    for name in ("original.csv", "copy-1.csv", "copy-2.csv"):
        (tmp_path / name).write_text("a,b\n1,2\n3,5\n4,4\n")
    monkeypatch.chdir(tmp_path)
    for block in blocks(page, "yaml"):
        if "schema: 1" in block:
            (tmp_path / "shown.yaml").write_text(block)
            read_scenario(tmp_path / "shown.yaml")


@pytest.mark.slow
def test_the_page_on_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec("\n".join(blocks(ROOT / "docs/python.md", "python")), {})


@pytest.mark.slow
def test_the_site_builds_without_a_dead_link_and_asks_nothing_of_the_network(tmp_path):
    build, load_config = (
        pytest.importorskip("mkdocs.commands.build").build,
        pytest.importorskip("mkdocs.config").load_config,
    )
    import logging

    heard = []
    handler = logging.Handler()
    handler.emit = lambda record: (
        heard.append(record.getMessage()) if record.levelno >= logging.WARNING else None
    )
    logging.getLogger("mkdocs").addHandler(handler)
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path)))
    assert heard == []
    for page in tmp_path.glob("*.html"):
        assert not re.search(
            r"""<(?:script|link|img|iframe)[^>]*(?:src|href)=["']?(?:https?:)?//""",
            page.read_text(encoding="utf-8"),
        ), page.name
