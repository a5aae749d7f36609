"""The command line: what is asked is parsed here, and what is asked for is called; no figure is made here.

``program`` is where it starts and ends, ``guard`` what surrounds every command, ``arguments`` what several commands take,
``completion`` how Tab completes them.
The commands are ``run``, ``advise``, ``perturb``, ``attack``, ``selftest`` and ``inspect`` (check, list, show, new, schema, report,
compare).

Uses every other room. At the top of these modules nothing of ours is imported but errors and the console: the rest is
imported when a command runs, so that ``auditor --help`` need not wait for it. What a run writes, makes and prints is
``auditor.runs.output``; the same from Python is ``auditor.api``.
"""

from auditor.cli.program import cli, main

__all__ = ["cli", "main"]
