"""Stands in for the package of this name in programs that tests start: making the charts' script takes it a second and a half of every run.

What the script does in a report is seen by ``tests/reports``, which has the real one.
"""


def javascript_bundle(snippet: str) -> str:
    """Return the snippet alone, without the libraries that it speaks of."""
    return snippet
