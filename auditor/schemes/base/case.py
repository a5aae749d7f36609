"""What a case of the self-test is: a scheme of which it is known beforehand whether its copies leak."""

from __future__ import annotations

from typing import ClassVar, Literal

from auditor.schemes.base.scheme import Scheme

Records = Literal["normal", "lognormal", "heaped", "whole", "categories"]


class Case(Scheme):
    """A scheme that ``auditor selftest`` audits, with an honest law or a planted leak.

    It states a law as any scheme does, and is audited by it. A scheme is put through the self-test by a class of both:
    ``class Mine(Case, MyScheme)`` with ``honest = True``. It is of the kind ``case``, so that no scenario can name it by mistake.
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
