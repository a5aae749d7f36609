"""Command line: parse arguments and call the API.

``program`` is the entry, ``guard`` wraps every command, ``arguments`` holds shared arguments; ``run``,
``copies`` and ``inspect`` have the commands.

Modules import only errors and the console at the top. Commands import the rest, so ``auditor
--help`` starts fast. ``auditor.runs.output`` writes results. ``auditor.api`` is the Python
equivalent.
"""

from auditor.cli.program import cli, main

__all__ = ["cli", "main"]
