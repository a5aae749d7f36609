"""Section ``coalitions``: names, copy numbers and random draws."""

from __future__ import annotations

from typing import Any

from auditor.adversary.coalitions import MOST_COALITIONS, NAMED, Coalitions
from auditor.errors import did_you_mean
from auditor.parameters import is_whole, whole
from auditor.types import Coalition


def parse_coalitions(value: Any) -> Coalitions:
    """Parse one entry of ``coalitions``, or a filter's ``coalition``.

    Raises
    ------
    ValueError
        Invalid entry; the message states the expected form.
    """
    if isinstance(value, str):
        if value not in NAMED:
            raise ValueError(
                f"must be one of {', '.join(NAMED)}, {{copies: […]}}, {{first: m}} or {{random: count}}; "
                f"got {value!r}{did_you_mean(value, NAMED)}"
            )
        return Coalitions(value)
    if isinstance(value, (list, tuple)):
        return Coalitions("copies", _copies(value))
    if isinstance(value, dict) and isinstance(value.get("name"), str):  # {name: random, count: 100}
        rest = [argument for key, argument in value.items() if key != "name"]
        return parse_coalitions(
            {value["name"]: rest[0]}
            if len(rest) == 1
            else value["name"]
            if not rest
            else list(value)
        )
    if isinstance(value, dict) and len(value) == 1:
        kind, argument = next(iter(value.items()))
        if kind == "copies":
            return Coalitions("copies", _copies(argument))
        if kind in ("first", "random"):
            return Coalitions(kind, count=_count(kind, argument))
    raise ValueError(
        f"must be one of {', '.join(NAMED)}, {{copies: [1, 3]}}, {{first: m}} or {{random: count}}; got {value!r:.60}"
    )


def _copies(value: Any) -> Coalition:
    valid = isinstance(value, (list, tuple)) and len(value) > 0
    if not valid or not all(
        isinstance(copy, int) and not isinstance(copy, bool) and copy >= 1 for copy in value
    ):
        raise ValueError(
            f"needs a list of copy numbers from 1, as {{copies: [1, 3]}}; got {value!r:.60}"
        )
    if len(set(value)) != len(value):
        raise ValueError(f"names a copy twice; got {value!r:.60}")
    return tuple(sorted(value))


def _count(kind: str, value: Any) -> int:
    value = whole(value)
    if not is_whole(value, 1, MOST_COALITIONS):
        raise ValueError(
            f"needs a count from 1 to {MOST_COALITIONS:,}, as {{{kind}: 100}}; got {value!r:.60}"
        )
    return value
