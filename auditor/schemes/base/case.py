"""Self-test cases: schemes known in advance to leak or to be honest."""

from __future__ import annotations

from typing import ClassVar, Literal

from auditor.schemes.base.scheme import Scheme

Records = Literal["normal", "lognormal", "heaped", "whole", "categories"]


class Case(Scheme):
    """A scheme that ``auditor selftest`` audits, honest or leaking by design.

    It states a law, and the audit tests it, as for any scheme. A self-test of another scheme
    inherits both classes:
    ``class Mine(Case, MyScheme)`` with ``honest = True``. Its kind is ``case``, so no scenario can
    name it.
    """

    kind = "case"
    honest: ClassVar[bool] = False
    """Whether the copies keep what they state: then an expectation that fails is a false alarm, and otherwise one that holds is a miss."""
    lawful: ClassVar[bool] = False
    """Whether the noise of a leak has the covariance that it states, and none with the records: no linear attack can show it."""
    records: ClassVar[Records] = "lognormal"
    """The table that is perturbed: two correlated attributes, or one with six categories."""
    expect: ClassVar[tuple[str, ...]] = ("no-collusion-gain", "noise-follows-law")
    """Expectations that are judged. A leak is found if one of them fails, and acquitted if all of them hold."""
