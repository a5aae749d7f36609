"""Multilevel k-anonymity: each coarser copy merges classes of a finer one.

| symbol | meaning | source |
| --- | --- | --- |
| level | k of a copy | samarati2001 |
| ``P_k`` | its partition of the records into classes of k or more | |
| ``P_f, P_c`` | its neighbours among the copies released before it: the next smaller k and the next larger k | |

Classes are nested: every class of ``P_k`` is a union of classes of ``P_f`` and lies within one of
``P_c``. Without ``P_f`` the classes of ``P_c`` are cut as Mondrian cuts the whole table
(lefevre2006); otherwise the cuts separate whole classes of ``P_f``.

Two records share a class in all copies held exactly if they share one in the finest, and every
union of classes keeps k, ℓ, α and t. So a coalition sees its finest copy's classes and ranges only
(docs/method.md, «Several levels of k»). A copy released after a finer one is a function of it and
of the next coarser one. In ascending order of k, all copies are functions of the first, and its
holder learns no more by any attack. In descending order coarse copies lose less utility.

Copies are computed in their order of release, so a later request has an equal result.

Not addressed: the weaknesses of one copy (``auditor.schemes.k_anonymity``). Classes released before
a finer copy may disclose that Mondrian cuts were refused; no attack here uses that.
"""

from __future__ import annotations

from collections.abc import Sequence

from auditor.data.table import Table
from auditor.registry import register
from auditor.schemes.generalisation.anonymous_scheme import AnonymousScheme
from auditor.schemes.generalisation.partition import Partition, bounds, merged, mondrian


@register
class KAnonymityMultilevel(AnonymousScheme):
    """Nested classes of k records: no coalition gains over its finest copy.

    Each coarser copy merges classes of a finer one (level = k).
    """

    name = "k-anonymity-multilevel"
    nested = True
    claims = "Any copies held show the classes of the finest among them, which keep its k, ℓ, α and t; nothing else."
    reference = "lefevre2006; xiao2009, Table 1"
    assumes = "The quasi-identifiers are all that an adversary can know of a record."

    def partitions(self, levels: Sequence[float], existing: int, table: Table) -> list[Partition]:
        """Return all copies' classes, each from its earlier neighbours."""
        made: list[Partition] = []
        for k in levels:
            Q, codes, rules = self.rules(k, table)
            finer, coarser = (
                None if place is None else made[place]
                for place in neighbours(k, levels[: len(made)])
            )
            if finer is not None:
                made.append(merged(finer, rules.k, coarser))
            # the finest so far: Mondrian cuts of the table, or of each class of the finest copy
            # before it
            else:
                made.append(
                    bounds(
                        Q,
                        Q,
                        mondrian(Q, codes, rules, None if coarser is None else coarser.classes),
                    )
                )
        return made


def neighbours(k: float, levels: Sequence[float]) -> tuple[int | None, int | None]:
    """Return the places of the next finer and the next coarser level.

    An existing level is both.

    Examples
    --------
    >>> neighbours(10, [30, 3, 5]), neighbours(10, [30]), neighbours(5, [30, 5])
    ((2, 0), (None, 0), (1, 1))
    """
    finer = [place for place, level in enumerate(levels) if level <= k]
    coarser = [place for place, level in enumerate(levels) if level >= k]
    return max(finer, key=levels.__getitem__, default=None), min(
        coarser, key=levels.__getitem__, default=None
    )
