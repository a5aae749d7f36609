"""Papers that the workbench cites, by key (``bibliography.json``)."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files


@cache
def _works() -> dict[str, str]:
    works: dict[str, str] = json.loads(
        files("auditor.results").joinpath("bibliography.json").read_text(encoding="utf-8")
    )
    return works


def keys() -> list[str]:
    """Every key, sorted."""
    return sorted(_works())


def text(key: str) -> str:
    """Reference of a key.

    Raises
    ------
    KeyError
        Unknown key.
    """
    return _works()[key]


def keys_in(reference: str) -> list[str]:
    """Keys in ``guo2006; liu2008, section 3.3``, in order."""
    return [key for key in re.findall(r"[a-z]+\d{4}", reference) if key in _works()]


def cited(references: list[str]) -> list[str]:
    """All keys in references such as ``li2012, eq. 6``, once each, sorted."""
    return sorted({key for reference in references for key in keys_in(reference)})
