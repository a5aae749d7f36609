"""Column names in messages: quoted and shortened, without values."""

from __future__ import annotations

from collections.abc import Iterable

from auditor.text.spelling import closest

LONGEST_NAME = 60
"""Longest quoted name in characters, because a header may hold anything."""


def quoted(name: object) -> str:
    """Return a printable quoted name of at most 60 characters."""
    text = repr(str(name))
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 2] + "…" + text[-1]


def listed(names: Iterable[object], limit: int = 8) -> str:
    """Join names as ``'a', 'b' and 3 more``."""
    every = [quoted(name) for name in names]
    more = f" and {len(every) - limit} more" if len(every) > limit else ""
    return ", ".join(every[:limit]) + more


def nearest(name: object, known: Iterable[str]) -> str:
    """Return ``; did you mean 'age'?``, or the first known names.

    Names from files are quoted and shortened, unlike in `auditor.errors.did_you_mean`.
    """
    names = list(known)
    close = closest(name, names)
    if close:
        return "; did you mean " + " or ".join(quoted(match) for match in close) + "?"
    return f"; valid are {listed(names)}" if names else ""


def counted(number: int, noun: str) -> str:
    """Return ``1 record`` or ``2 records``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
