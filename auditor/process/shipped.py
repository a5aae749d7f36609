"""Scenario files shipped with the program."""

from pathlib import Path


def shipped_folder() -> Path:
    """Return the folder of shipped scenarios, in a package or checkout."""
    package = Path(__file__).parents[1]
    return next(filter(Path.is_dir, (package / "scenarios", package.parent / "scenarios")))


def shipped_scenarios() -> list[Path]:
    """Return the scenario files, by name."""
    return sorted(shipped_folder().glob("*.yaml"))
