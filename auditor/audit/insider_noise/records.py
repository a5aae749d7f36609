"""Records of the attacks of an insider who knows the noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from auditor.audit.base.request import CellContext, Cells, error_records
from auditor.audit.insider_noise.coincidences import coincidences
from auditor.audit.insider_noise.generators import known_generators
from auditor.audit.insider_noise.noise_density import noise_density
from auditor.audit.measures.every_cell import KNOWLEDGE, Finding, by_group
from auditor.base.types import Array, Coalition
from auditor.data.table import ShownColumn
from auditor.results.measurements import Coded
from auditor.results.records import Measurement

Attack = Callable[[Array, Sequence[Array], Sequence[Coalition]], list[Finding]]
ATTACKS: dict[str, Attack] = {"coincidences": coincidences, "noise-density": noise_density}
MOST_COLUMNS = 64
"""Columns of all copies together, up to which noise is looked at: time grows with their square."""


def insider_noise_records(
    context: CellContext,
    X: Array,
    copies: Sequence[Array],
    asked: Sequence[Coalition],
    shown: Sequence[ShownColumn],
) -> list[Measurement]:
    """Records of single copies and of all, for attacks that succeed.

    X and each copy have shape (n, N). The cause in words is the ``reason`` of the records.
    """
    everybody = tuple(range(1, len(copies) + 1))
    coalitions = list(dict.fromkeys([*((copy,) for copy in everybody), everybody]))
    wanted = [place for place, one in enumerate(coalitions) if one in asked]
    if not wanted or X.shape[1] * len(copies) > MOST_COLUMNS:
        return []
    records = list[Measurement]()
    seeded = partial(known_generators, numbers=shown)
    for name, attack in (ATTACKS | {"known-generator": seeded}).items():
        findings = attack(X, copies, coalitions)
        if not findings:
            continue
        errors = by_group(coalitions, [found.squares for found in findings], context.variances)
        here = context.under(name, KNOWLEDGE)
        table = error_records(Cells(here, coalitions, wanted), errors)
        places = table.columns["coalition"].places
        records += table.replaced(
            reason=Coded(places, [findings[place].cause or None for place in wanted])
        )
    return records
