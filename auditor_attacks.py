"""Give the folder `attacks` of a checkout its installed name."""

from pathlib import Path

__path__ = [str(Path(__file__).with_name("attacks"))]
