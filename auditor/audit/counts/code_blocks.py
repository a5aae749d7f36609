"""A block of records as codes: the original's, and those of every copy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from auditor.schemes.replacement.base import Copies
from auditor.types import Codes


@dataclass
class CodeBlock:
    """One block of records, and its copies as they are asked for.

    Attributes
    ----------
    index, first : int
        Its number, and that of its first record.
    x : ndarray of shape (b,)
        Originals.
    copy : callable
        From a copy's number to its values, shape (b,).
    made : Copies or None
        What made them; None where they were kept from an earlier pass.
    seconds : float
        Time of the requests.
    """

    index: int
    first: int
    x: Codes = field(repr=False)
    copy: Callable[[int], Codes] = field(repr=False)
    made: Copies | None = field(default=None, repr=False)
    seconds: float = 0.0
