"""Attributes known exactly, by the label of a knowledge."""

from __future__ import annotations

SHOWN = "shown"
"""Metric of values that a copy shows unchanged."""

KEPT = "kept"
"""Metric of unchanged values among perturbed ones."""

BELIEVED = "value_belief"
"""Metric of the increase of belief in one category."""

WHOLE, PART = "known-attributes(", "; known: "
"""Start of a label with only names, and the text before names in other labels."""


def in_clear(knowledge: str | None) -> list[str]:
    """Return the names in ``known-attributes(age, salary)`` or after ``; known: ``."""
    label = str(knowledge)
    names = label.removeprefix(WHOLE) if label.startswith(WHOLE) else label.partition(PART)[2]
    return names.removesuffix(")").split(", ") if names else []
