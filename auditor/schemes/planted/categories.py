"""Leaks in categorical copies, and honest categorical releases."""

from __future__ import annotations

from types import MappingProxyType
from typing import ClassVar

from auditor.registry import register
from auditor.schemes.base.case import Case
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import Copies, FreshCopies, ProcessCopies
from auditor.schemes.uniform import UniformMultilevel
from auditor.types import Codes


class RaisedCopies(ProcessCopies):
    """Copies with higher retention than stated."""

    raised: ClassVar[float] = 0.1

    def copy(self, number: int) -> Codes:
        """Return the copy at a higher retention than its own."""
        stated, self.levels = (
            self.levels,
            [level + self.raised * (1.0 - level) for level in self.levels],
        )
        try:
            return super().copy(number)
        finally:
            self.levels = stated


class CategoricalCase(Case, UniformMultilevel):
    """States the law of ``uniform-multilevel`` for one attribute of 6 values."""

    records = "categories"


@register
class RetentionAbove(CategoricalCase):
    """A tenth of the redrawn values is kept; pooling gains nothing.

    Retention is above the stated one.
    """

    name = "retention-above"

    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        """Return copies of too high a retention."""
        return RaisedCopies(original, size, key)


@register
class ForgetfulCoin(CategoricalCase):
    """Every copy is drawn independently, although one process is stated."""

    name = "forgetful-coin"

    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        """Return fresh copies."""
        return FreshCopies(original, size, key)


@register
class HonestCategories(CategoricalCase):
    """The replacement process as stated: every expectation should hold."""

    name, honest = "honest-categories", True


@register
class HonestReplacement(CategoricalCase):
    """Values are replaced by draws from the data's own shares."""

    name, honest = "honest-replacement", True
    trial = MappingProxyType({"replacement": "prior"})


@register
class ReplacedByAnother(CategoricalCase):
    """Replacements are uniform, not the data's; pooling gains nothing.

    The law states the data's own shares.
    """

    name = "replaced-by-another"
    trial = MappingProxyType({"replacement": "prior"})

    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        """Return copies with uniform replacements."""
        return ProcessCopies(original, size, key)
