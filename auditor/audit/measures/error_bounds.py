"""What is proved of errors, as records that stand beside those measured.

| metric | of | what it says |
| --- | --- | --- |
| ``error_floor`` | a coalition | no attack can do better on average (``auditor.audit.measures.entropy_bound``) |
| ``error_floor``, ``error_ceiling`` | an attack's cell | what theorems on this attack leave possible (``LinearAttack.error_bounds``) |

All are shares of variance, as ``normalized_error`` is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from auditor.adversary.attack import LinearAttack
from auditor.adversary.handed_back import check_real
from auditor.adversary.knowledge import Knowledge
from auditor.audit.base.records import ALL, CellContext
from auditor.audit.measures.entropy_bound import least_errors
from auditor.audit.numeric.error_bars import with_total
from auditor.audit.numeric.views import Gathered
from auditor.data.request import DataUse
from auditor.data.source import RecordLaw, law_of
from auditor.errors import NotApplicable, PluginError
from auditor.numerics.moments import Moments
from auditor.process.containment import contained
from auditor.results.records import Measurement
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.types import Array, Coalition


def floor_records(
    context: CellContext,
    data: DataUse,
    K_X: Array,
    law: NoiseLaw | None,
    coalitions: Sequence[Coalition],
) -> list[Measurement]:
    """Return the least error that any attack can have on each coalition, by attribute and together; or why it is not known.

    Parameters
    ----------
    data : DataUse
        Its source may declare the law that it draws records from.
    K_X : ndarray of shape (N, N)
    law : NoiseLaw or None
        Of the noise in all copies.
    """
    with contained() as failure:
        floors = with_total(
            _least_errors(law_of(data), context.attributes, K_X, law, coalitions)
        ) / with_total(context.variances)
        return [
            context.record("error_floor", coalition, float(floor), attribute=name)
            for coalition, row in zip(coalitions, floors, strict=True)
            for name, floor in zip((*context.attributes, ALL), row, strict=True)
        ]
    return [
        context.record("error_floor", coalition, status=failure.status, reason=failure.reason)
        for coalition in coalitions
    ]


def _least_errors(
    records: RecordLaw | None,
    attributes: Sequence[str],
    K_X: Array,
    law: NoiseLaw | None,
    coalitions: Sequence[Coalition],
) -> Array:
    if records is None:
        raise NotApplicable(
            "nobody declares the law that these records were drawn from, as nobody can of a file's"
        )
    if law is None:
        raise NotApplicable("needs the law of the noise")
    if law.serial is not None:
        raise NotApplicable(
            "noise that follows on from record to record is told by the copies of other records, too"
        )
    return least_errors(records, attributes, K_X, law, coalitions)


def attack_bound_records(
    context: CellContext,
    attack: LinearAttack,
    cell: tuple[str, str],
    knowledge: Knowledge,
    gathered: Gathered,
    coalitions: Sequence[Coalition],
) -> list[Measurement]:
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
        found = attack.error_bounds(
            held, joint.parts([1, *(copy + 1 for copy in coalition)], held.width)
        )
        if found is None:
            continue
        check_real(*found)
        if len(found) != 2 or not found[0] <= found[1]:
            raise PluginError("the attack returned bounds on its error that are no range")
        for metric, bound in zip(("error_floor", "error_ceiling"), found, strict=True):
            if math.isfinite(bound):
                records.append(
                    context.record(
                        metric, coalition, bound / whole, attack=cell[0], knowledge=cell[1]
                    )
                )
    return records
