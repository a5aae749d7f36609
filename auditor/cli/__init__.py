"""Command line: parse arguments and call the API.

- ``program``: entry and exit.
- ``guard``: wrapper of every command.
- ``arguments``: arguments of several commands.
- ``completion``: tab completion.
- ``run``, ``advise``, ``perturb``, ``attack``, ``selftest``, ``inspect``: the commands.

Modules import only errors and the console at the top. Commands import the rest, so ``auditor
--help`` starts fast. ``auditor.runs.output`` writes results. ``auditor.api`` is the Python
equivalent.
"""

from auditor.cli.program import cli, main

__all__ = ["cli", "main"]
