"""Speeds, each a ratio to a floor or a peer measured in the same run: `python -m benchmarks`."""

from pathlib import Path

FOLDER = Path(__file__).resolve().parent
