"""Self-test cases: schemes known in advance to leak or to be honest."""

from __future__ import annotations

from typing import ClassVar, Literal

from auditor.schemes.base.scheme import Scheme

Records = Literal["normal", "lognormal", "heaped", "whole", "categories"]


class Case(Scheme):
    """A scheme that ``auditor selftest`` audits, honest or leaking by design.

    It states a law, and the audit tests it, as for any scheme. A self-test of another scheme
    inherits both classes: ``class Mine(Case, MyScheme)`` with ``honest = True``. Its kind is
    ``case``, so no scenario can name it.
    """

    kind = "case"
    honest: ClassVar[bool] = False
    """Whether the copies follow the stated law. A failing expectation is then a false alarm, else a
    detection.
    """
    lawful: ClassVar[bool] = False
    """Whether a leak keeps the stated covariance and is uncorrelated with the records (invisible to
    linear attacks).
    """
    records: ClassVar[Records] = "lognormal"
    """The perturbed table: two correlated attributes, or one with six categories."""
    expect: ClassVar[tuple[str, ...]] = ("no-collusion-gain", "noise-follows-law")
    """Expectations evaluated. A leak counts as found if one of them fails."""
