"""How columns are named in messages: quoted, shortened, and never accompanied by a value from the table."""

from __future__ import annotations

from collections.abc import Iterable

from auditor.text.spelling import closest

LONGEST_NAME = 60
"""Characters of a quoted name, quotes included; a longer one is cut, since a header may hold anything."""


def quoted(name: object) -> str:
    """Return a name as it is safe to print: control and bidirectional marks escaped, at most 60 characters."""
    text = repr(str(name))
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 2] + "…" + text[-1]


def listed(names: Iterable[object], limit: int = 8) -> str:
    """Return names as ``'a', 'b' and 3 more``."""
    every = [quoted(name) for name in names]
    more = f" and {len(every) - limit} more" if len(every) > limit else ""
    return ", ".join(every[:limit]) + more


def nearest(name: object, known: Iterable[str]) -> str:
    """Return ``; did you mean 'age'?``, or the first few known names when nothing is close.

    Unlike `auditor.errors.did_you_mean` it is made for names that come from a file: they are quoted and shortened.
    """
    names = list(known)
    close = closest(name, names)
    if close:
        return "; did you mean " + " or ".join(quoted(match) for match in close) + "?"
    return f"; valid are {listed(names)}" if names else ""


def counted(number: int, noun: str) -> str:
    """Return ``1 record`` or ``2 records``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
