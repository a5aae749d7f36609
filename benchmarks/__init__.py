"""Speeds, each a ratio to a floor or a peer measured in the same run: `python -m benchmarks`."""

import os
from pathlib import Path

# As in conftest.py: where compiled modules are forbidden every program that is timed would compile
# again, at no cost to users.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

FOLDER = Path(__file__).resolve().parent
