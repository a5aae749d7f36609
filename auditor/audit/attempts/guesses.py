"""Cells of an attribute's originals, copies and estimates, for pictures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from auditor.adversary.attack import Attack, LinearAttack, RowAttack
from auditor.adversary.knowledge import Knowledge
from auditor.audit.attempts.linear import padded_maps
from auditor.audit.attempts.opened import Opened
from auditor.audit.attempts.over_rows import fitted_to_rows
from auditor.audit.base.session import CELLS, PER_DEVIATION, RECORDS, Guesses, number_cells
from auditor.audit.numeric.error_tally import Tally
from auditor.audit.numeric.reconstruct import tally_linear, tally_rows
from auditor.base import NotApplicable
from auditor.base.types import Array, Block, Blocks, Coalition
from auditor.numerics.blocks import block_head


def number_guesses(
    opened: Opened, attack: Attack, knowledge: Knowledge, coalition: Coalition, column: int
) -> Guesses:
    """Cells of all rows, or of the heads of blocks of a long table."""
    opened = replace(opened, coalitions=[coalition])
    release, joint = opened.release, opened.gathered.copies.joint
    if isinstance(attack, LinearAttack) and not joint:
        attack = attack.over_rows()
    mean, K_X = release.moments.mean, release.moments.covariance
    head = block_head(release.table.rows, release.table.width, RECORDS)
    rows: Blocks = release.blocks if head is None else partial(release.heads, head)
    judged, groups = opened.judged(knowledge, rows)
    shown, place, errors = list[list[Array]](), 0, list[tuple[Array, Array]]()
    tally = Tally(np.sqrt(np.diag(K_X)), kept=errors)

    def watched() -> Iterator[Block]:
        for index, x, copies in judged():
            held = [copies[copy - 1] for copy in coalition] if joint else []
            shown.append([each[:, column].copy() for each in (x, *held)])
            yield index, x, copies

    if isinstance(attack, LinearAttack):
        place = opened.needed.index(coalition)
        maps = padded_maps(opened, attack, opened.gathered.view(knowledge), release.transformed)[1]
        tally_linear(maps, opened.undone(watched), mean, tally, K_X, None)
    elif isinstance(attack, RowAttack):
        fitted = fitted_to_rows(opened, attack, knowledge, [coalition], {})
        tally_rows(*fitted, watched, groups, tally)
    else:
        raise NotApplicable(f"{attack.name} estimates no numbers")
    guesses = [x[:, column] + e[:, place, column] for e, x in errors]
    x, *copies, guess = (
        number_cells(np.concatenate(each), float(mean[column]), float(tally.scale[column]))
        for each in (*zip(*shown, strict=True), guesses)
    )
    return Guesses(CELLS, 1.0 / PER_DEVIATION, x, copies, guess)
