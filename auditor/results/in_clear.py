"""Values in clear: those that copies show, and which attributes an adversary was given, from how results write its knowledge."""

from __future__ import annotations

SHOWN = "shown"
"""The metric of values that a copy shows as they are."""

KEPT = "kept"
"""The metric of values that stand as they were among others that are perturbed."""

BELIEVED = "value_belief"
"""The metric of how far belief in one value of categories rises."""

WHOLE, PART = "known-attributes(", "; known: "
"""How a label begins that is nothing but names, and what stands before the names where it says
something else, too."""


def in_clear(knowledge: str | None) -> list[str]:
    """Return the names in ``known-attributes(age, salary)`` and ``model(pay on age, rows=50; known: age)``; none in other labels."""
    label = str(knowledge)
    names = label.removeprefix(WHOLE) if label.startswith(WHOLE) else label.partition(PART)[2]
    return names.removesuffix(")").split(", ") if names else []
