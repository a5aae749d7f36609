"""Cells of an attribute's originals, copies and estimates, for pictures."""

from dataclasses import replace
from functools import partial

import numpy as np

from auditor.adversary.attack import Attack, LinearAttack, RowAttack
from auditor.adversary.knowledge import Knowledge
from auditor.audit.attempts.linear import fitted_maps
from auditor.audit.attempts.opened import Opened
from auditor.audit.attempts.over_rows import fitted_to_rows
from auditor.audit.base.session import CELLS, PER_DEVIATION, RECORDS, Guesses, number_cells
from auditor.audit.numeric.reconstruct import errors_in_pieces, rows_of
from auditor.base import NotApplicable
from auditor.base.types import Blocks, Coalition
from auditor.numerics.blocks import block_head


def number_guesses(
    opened: Opened, attack: Attack, knowledge: Knowledge, coalition: Coalition, column: int
) -> Guesses:
    """Cells of all rows, or of the heads of blocks of a long table."""
    opened = replace(opened, coalitions=[coalition])
    release, joint = opened.release, opened.release.joint
    if isinstance(attack, LinearAttack) and not joint:
        attack = attack.over_rows()
    mean, K_X = release.moments.mean, release.moments.covariance
    head = block_head(release.table.rows, release.table.width, RECORDS)
    rows: Blocks = release.blocks if head is None else partial(release.blocks, head)
    judged = opened.judged(knowledge, rows)[0]
    if isinstance(attack, LinearAttack):
        maps = fitted_maps(attack, opened.gathered, knowledge, [coalition])
        pieces = errors_in_pieces(maps, opened.undone(judged), mean)
        guess = np.concatenate([(x + errors[:, 0])[:, column] for _, x, errors in pieces])
    elif isinstance(attack, RowAttack):
        ((fitted,), (held,)) = fitted_to_rows(opened, attack, knowledge, [coalition], {})
        theirs = ((k, x, [copies[copy - 1] for copy in held]) for k, x, copies in judged())
        guess = rows_of(fitted, theirs)[:, column]
    else:
        raise NotApplicable(f"{attack.name} estimates no numbers")
    own, deviation = coalition if joint else (), float(np.sqrt(K_X[column, column]))
    parts = ([each[:, column] for each in (x, *(y[k - 1] for k in own))] for _, x, y in judged())
    x, *copies, guess = (
        number_cells(each, float(mean[column]), deviation)
        for each in (*map(np.concatenate, zip(*parts, strict=True)), guess)
    )
    return Guesses(CELLS, 1.0 / PER_DEVIATION, x, copies, guess)
