"""What is proved of errors, as records that stand beside those measured.

| metric | of | what it says |
| --- | --- | --- |
| ``error_floor``, ``error_ceiling`` | an attack's cell | what theorems on this attack leave possible (``LinearAttack.error_bounds``) |

All are shares of variance, as ``normalized_error`` is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from auditor.adversary.attack import LinearAttack
from auditor.adversary.handed_back import check_real
from auditor.adversary.knowledge import Knowledge
from auditor.audit.base.records import CellContext
from auditor.audit.numeric.views import Gathered
from auditor.errors import PluginError
from auditor.numerics.moments import Moments
from auditor.results.records import Measurement
from auditor.types import Coalition


def attack_bound_records(
    context: CellContext, attack: LinearAttack, cell: tuple[str, str], knowledge: Knowledge, gathered: Gathered,
    coalitions: Sequence[Coalition],
) -> list[Measurement]:  # fmt: skip
    """Return what theorems say that an attack's error over all attributes is at least and at most, on every coalition.

    Raises
    ------
    PluginError
        The attack returned something else than two numbers, the first no larger than the second.
    """
    view, joint = gathered.view(knowledge), Moments.merge(gathered.judged(knowledge))
    whole = float(context.variances.sum())
    records = []
    for coalition in coalitions:
        held = view.coalition(coalition)
        found = attack.error_bounds(held, joint.parts([1, *(copy + 1 for copy in coalition)], held.width))
        if found is None:
            continue
        check_real(*found)
        if len(found) != 2 or not found[0] <= found[1]:
            raise PluginError("the attack returned bounds on its error that are no range")
        for metric, bound in zip(("error_floor", "error_ceiling"), found, strict=True):
            if math.isfinite(bound):
                records.append(context.record(metric, coalition, bound / whole, attack=cell[0], knowledge=cell[1]))
    return records
