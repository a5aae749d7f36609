"""Leaks in the coins of categorical copies, and an honest release of them."""

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
    """Copies of which more values are kept than was asked for."""

    raised: ClassVar[float] = 0.1

    def copy(self, number: int) -> Codes:
        """Look the copy up at a higher retention than its own."""
        stated, self.levels = self.levels, [level + self.raised * (1.0 - level) for level in self.levels]
        try:
            return super().copy(number)
        finally:
            self.levels = stated


class CategoricalCase(Case, UniformMultilevel):
    """States the law of ``uniform-multilevel`` for one attribute of six categories."""

    records = "categories"


@register
class RetentionAbove(CategoricalCase):
    """Of the values that should be redrawn a tenth is kept: retention above the declared; pooling gains nothing."""

    name = "retention-above"

    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        """Return what keeps too much."""
        return RaisedCopies(original, size, key)


@register
class ForgetfulCoin(CategoricalCase):
    """Every copy is drawn anew: the coin ignores the copies that are out."""

    name = "forgetful-coin"

    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        """Return what draws afresh."""
        return FreshCopies(original, size, key)


@register
class HonestCategories(CategoricalCase):
    """The replacement process as it is: every expectation should hold."""

    name, honest = "honest-categories", True


@register
class HonestReplacement(CategoricalCase):
    """Values are replaced by the data's own shares."""

    name, honest = "honest-replacement", True
    trial = MappingProxyType({"replacement": "prior"})


@register
class ReplacedByAnother(CategoricalCase):
    """Values are replaced by all categories alike, where the data's own shares are stated; pooling gains nothing."""

    name = "replaced-by-another"
    trial = MappingProxyType({"replacement": "prior"})

    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        """Return what replaces uniformly."""
        return ProcessCopies(original, size, key)
