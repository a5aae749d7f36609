"""k-anonymity at several levels: each coarser copy merges classes of the finer one, so that any copies held tell what the finest does.

| symbol | meaning | source |
| --- | --- | --- |
| level | k of a copy | samarati2001 |
| ``P_k`` | its partition of the records into classes of k or more | |
| ``P_f, P_c`` | its neighbours: of the copies released before it the one with the next smaller k and the one with the next larger | |

Classes are nested: every class of ``P_k`` is a union of classes of ``P_f`` and lies within one of ``P_c``. Without ``P_f`` the classes of
``P_c`` are cut as Mondrian cuts the whole table (lefevre2006); with it whole classes of ``P_f`` are parted by such cuts.

Two records share a class in all copies held exactly when they do in the finest of them, and every union of classes keeps k, ℓ, α and t.
So a coalition sees its finest copy's classes, ranges and promises, and no others (docs/method.md, «Several levels of k»). A copy that is
made after a finer one is a function of it and of the next coarser one: released from small k to large, all copies are functions of the
first, and whoever has that learns nothing from them, whatever the attack. From large k to small, coarse copies lose less.

Copies are made in their order of release, and one that is asked for later is what it would have been, had it been asked for then.

Not closed by it: what k-anonymity leaves open in one copy (``auditor.schemes.k_anonymity``). Classes of a copy that was out before a finer
one may tell that some of Mondrian's cuts were not allowed; no attack here looks for that.
"""

from __future__ import annotations

from collections.abc import Sequence

from auditor.data.table import Table
from auditor.registry import register
from auditor.schemes.generalisation.anonymous_scheme import AnonymousScheme
from auditor.schemes.generalisation.partition import Partition, bounds, merged, mondrian


@register
class KAnonymityMultilevel(AnonymousScheme):
    """Nested classes (level = k): each coarser copy merges a finer one's, so that pooled copies tell what the finest does."""

    name = "k-anonymity-multilevel"
    nested = True
    claims = "Any copies held show the classes of the finest among them, which keep its k, ℓ, α and t; nothing else."
    reference = "lefevre2006; xiao2009, Table 1"
    assumes = "The quasi-identifiers are all that an adversary can know of a record."

    def partitions(self, levels: Sequence[float], existing: int, table: Table) -> list[Partition]:
        """Return each copy's classes, made of its neighbours' among the copies before it; those of all copies, out or not."""
        made: list[Partition] = []
        for k in levels:
            Q, codes, rules = self.rules(k, table)
            finer, coarser = (None if place is None else made[place] for place in neighbours(k, levels[: len(made)]))
            if finer is not None:
                made.append(merged(finer, rules.k, coarser))
            else:  # the finest so far: Mondrian's cuts of the table, or of each class of the copy that was the finest
                made.append(bounds(Q, Q, mondrian(Q, codes, rules, None if coarser is None else coarser.classes)))
        return made


def neighbours(k: float, levels: Sequence[float]) -> tuple[int | None, int | None]:
    """Return the places of the next finer level and of the next coarser one, each the same level if it is there already.

    Examples
    --------
    >>> neighbours(10, [30, 3, 5]), neighbours(10, [30]), neighbours(5, [30, 5])
    ((2, 0), (None, 0), (1, 1))
    """
    finer = [place for place, level in enumerate(levels) if level <= k]
    coarser = [place for place, level in enumerate(levels) if level >= k]
    return max(finer, key=levels.__getitem__, default=None), min(coarser, key=levels.__getitem__, default=None)
