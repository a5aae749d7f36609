"""Names of adversaries: the attack, and its knowledge in words."""

from __future__ import annotations

from .figures import clipped
from .guesses import guesses_categories
from .reading import Reading, Setting

OF_THE_AUDIT = {
    "every-cell": "the best line through the originals, on every cell held",
    "fitted-to-originals": "the best curve through the originals, for who knows how copies were made",
    "coincidences": "least squares, for who knows which cells carry the same noise",
    "noise-density": "Bayes' rule, for who knows the density of the noise",
    "known-generator": "the noise drawn again from its seed",
    "other-rows": "Bayes on a record's cells and those of rows near it, for who knows how copies were made",
}
"""Estimates by the audit itself from both originals and copies."""


def knows(knowledge: str | None, *, attack: str | None = None, categories: bool = False) -> str:
    """Describe an adversary's knowledge; only ``perfect`` is spelled out."""
    if attack in OF_THE_AUDIT:
        return OF_THE_AUDIT[attack]
    if knowledge == "perfect":
        return (
            "knows every category's share exactly"
            if categories
            else "knows means and correlations exactly"
        )
    return f"{clipped(str(knowledge), 80)} knowledge"


def label(reading: Reading, setting: Setting) -> str:
    """Name an adversary: ``llse, knows means and correlations exactly``."""
    return _named(reading, setting, "")


def phrase(reading: Reading, setting: Setting) -> str:
    """Name an adversary in a sentence, with ``which knows …``."""
    return _named(reading, setting, "which ")


def _named(reading: Reading, setting: Setting, joined: str) -> str:
    if setting.attack is None:
        return "the release itself"
    said = knows(
        setting.knowledge, attack=setting.attack, categories=guesses_categories(reading, setting)
    )
    return f"{clipped(setting.attack, 60)}, {joined if said.startswith('knows') else ''}{said}"
