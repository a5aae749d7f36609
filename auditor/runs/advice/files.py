"""What advice leaves behind: the scenario that audits the recommended release, and the page."""

from __future__ import annotations

from pathlib import Path

import yaml

from auditor.results.advice import Advice
from auditor.results.files import write_atomically, writing
from auditor.runs.output import rendered_advice

HEAD = """\
# Made by `auditor advise`. Run it with `auditor run FILE`; copies to hand out are made with
#   {command}
"""


def write_advice(advice: Advice, folder: Path) -> list[Path]:
    """Write ``advice.yaml`` and ``advice.html``; return their paths.

    Raises
    ------
    StorageError
        The folder cannot be written.
    """
    text = yaml.safe_dump(advice.scenario, sort_keys=False, allow_unicode=True, width=100)
    # a comment ends with its line, whatever a column is called
    command = advice.command.encode("unicode_escape").decode("ascii")
    paths = [folder / "advice.yaml", folder / "advice.html"]
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(paths[0], (HEAD.format(command=command) + text).encode())
        write_atomically(
            paths[1], rendered_advice("html", advice).encode("utf-8", "backslashreplace")
        )
    return paths
