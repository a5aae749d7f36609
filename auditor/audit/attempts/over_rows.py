"""An attempt by an attack on rows: fitted to every coalition's copies, run over the rows that it is judged on, and again in other draws."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.adversary.attack import Reconstruction, RowAttack
from auditor.adversary.knowledge import Knowledge
from auditor.audit.anonymity.inferences import Inferences
from auditor.audit.attempts.opened import Opened
from auditor.audit.measures.naming import Naming, name_rows
from auditor.audit.measures.record_hits import WholeRecords
from auditor.audit.numeric.error_bars import (
    Errors,
    from_groups,
    from_redraws,
    rounded_off,
    with_total,
)
from auditor.audit.numeric.error_tally import Tally
from auditor.audit.numeric.reconstruct import CopyBlocks, tally_rows
from auditor.audit.numeric.redraws import seed_of
from auditor.audit.numeric.row_theory import with_row_theory
from auditor.errors import NotApplicable
from auditor.results.evidence import ROW_REDRAWS
from auditor.results.records import ErrorBar
from auditor.types import Array, Coalition

MANY_REDRAWS = 59
"""For attacks that jump: what happens in one draw of twenty is missed by all of them in 5 of 100
audits, by nine in 63."""


def row_errors(
    opened: Opened,
    attack: RowAttack,
    knowledge: Knowledge,
    tally: Tally,
    records: Sequence[WholeRecords],
    inferences: Sequence[Inferences],
    namings: Sequence[Naming],
) -> Errors:
    """Return the errors of every coalition needed; what is counted record by record goes to the tally and the counters."""
    fitted, sums, counts, expected = _over_rows(
        opened, attack, knowledge, tally, records, inferences
    )
    blocks, _ = opened.judged(knowledge)
    known, key, held = (
        opened.gathered.view(knowledge).known_columns,
        opened.release.key,
        _held(opened, attack, knowledge),
    )
    name_rows(
        namings,
        fitted,
        held,
        blocks,
        sum(counts),
        known,
        seed_of(key.audit_seed, "known values", key.replicate, 0),
    )
    expected = with_row_theory(expected, fitted, *opened.gathered.rows.originals(knowledge))
    variances, compared = np.diag(opened.release.moments.covariance), opened.compared
    again = _redrawn(opened, attack, knowledge)
    if again is None:
        bar: ErrorBar = "jackknife" if opened.alone and not attack.jumps else "replicates-needed"
        errors = from_groups(opened.needed, sums, counts, variances, compared, bar)
    else:
        scale = with_total(variances)
        distortion, others = (
            rounded_off(with_total(each), scale) for each in (sums.sum(axis=0) / sum(counts), again)
        )
        errors = from_redraws(
            opened.needed, distortion, others, scale, compared, noisy=any(opened.release.levels)
        )
    if opened.estimated:
        return errors
    theory = errors.distortion.theory.copy()
    theory[:, -1] = expected / sum(counts) / variances.size
    return errors.expecting(theory)


def _over_rows(
    opened: Opened,
    attack: RowAttack,
    knowledge: Knowledge,
    tally: Tally,
    records: Sequence[WholeRecords] = (),
    inferences: Sequence[Inferences] = (),
) -> tuple[list[Reconstruction], Array, list[int], Array]:
    """Return the fitted attacks, their squared errors summed by row group and the groups' sizes, and what theory expects."""
    view, seen = (
        opened.gathered.view(knowledge),
        opened.gathered.rows.seen(knowledge, opened.release.blocks),
    )
    held = _held(opened, attack, knowledge)
    once = {
        copies: attack.fit(view.coalition(copies), CopyBlocks(seen, copies))
        for copies in dict.fromkeys(held)
    }
    fitted = [once[copies] for copies in held]
    blocks, counts = opened.judged(knowledge)
    sums, expected = tally_rows(fitted, held, blocks, counts, tally, records, inferences)
    return fitted, sums, [count for groups in counts for count in groups if count], expected


def _held(opened: Opened, attack: RowAttack, knowledge: Knowledge) -> list[Coalition]:
    """Return the copies that the attack is shown of every coalition needed: those that say all that the coalition's do, if it asks so."""
    view = opened.gathered.view(knowledge)
    return [
        view.coalition(coalition).counting if attack.combines else coalition
        for coalition in opened.needed
    ]


def _redrawn(opened: Opened, attack: RowAttack, knowledge: Knowledge) -> Array | None:
    """Return mean squared errors in other draws of this release, shape (R, B, N).

    None where replicates tell anyway, where a draw takes long (more than one block of rows), or
    where copies are not ours to draw.
    """
    if opened.replicated:
        return None
    found = []
    for other in opened.released_again(MANY_REDRAWS if attack.jumps else ROW_REDRAWS):
        try:
            _, sums, counts, _ = _over_rows(
                other, attack, knowledge, Tally(np.ones(opened.release.table.width))
            )
        except NotApplicable:
            return None
        found.append(sums.sum(axis=0) / sum(counts))
    return np.array(found) if found else None
