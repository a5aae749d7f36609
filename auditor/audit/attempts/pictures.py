"""Joint counts of an attribute's originals, copies and estimates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from auditor.adversary.attack import Attack, LinearAttack, RowAttack
from auditor.adversary.knowledge import Knowledge
from auditor.audit.attempts.linear import padded_maps
from auditor.audit.attempts.opened import Opened
from auditor.audit.attempts.over_rows import fitted_to_rows
from auditor.audit.base.session import CELLS, RECORDS, JointCounts, number_cells
from auditor.audit.numeric.error_tally import Tally
from auditor.audit.numeric.reconstruct import tally_linear, tally_rows
from auditor.base.errors import NotApplicable
from auditor.base.types import Array, Block, Blocks, Coalition, Indices
from auditor.numerics.blocks import block_head


def number_counts(
    opened: Opened, attack: Attack, knowledge: Knowledge, coalition: Coalition, column: int
) -> JointCounts:
    """Counts from all rows, or from the heads of blocks of a long table."""
    opened = replace(opened, coalitions=[coalition])
    release, joint = opened.release, opened.gathered.copies.joint
    if isinstance(attack, LinearAttack) and not joint:
        attack = attack.over_rows()
    moments = release.moments
    K_X, mean = moments.covariance, moments.mean
    counts = JointCounts(CELLS, coalition)
    scale = np.sqrt(np.diag(K_X))
    tally = _Pairs(scale, column=column, place=opened.needed.index(coalition), counts=counts)
    tally.mean = float(mean[column])
    head = block_head(release.table.rows, release.table.width, RECORDS)
    rows: Blocks = release.blocks if head is None else partial(release.heads, head)
    judged, groups = opened.judged(knowledge, rows)

    def watched() -> Iterator[Block]:
        for index, x, copies in judged():
            held = [copies[copy - 1][:, column] for copy in coalition] if joint else []
            counts.add_copies(tally.cells(x[:, column]), [tally.cells(copy) for copy in held])
            yield index, x, copies

    if isinstance(attack, LinearAttack):
        maps = padded_maps(opened, attack, knowledge)[1]
        tally_linear(maps, opened.undone(watched), mean, tally, K_X, None)
    elif isinstance(attack, RowAttack):
        tally.place = 0
        fitted = fitted_to_rows(opened, attack, knowledge, [coalition], {})
        tally_rows(*fitted, watched, groups, tally)
    else:
        raise NotApplicable(f"{attack.name} estimates no numbers")
    return counts


@dataclass
class _Pairs(Tally):
    column: int = 0
    place: int = 0
    mean: float = 0.0
    counts: JointCounts = field(default_factory=lambda: JointCounts(CELLS, ()))

    def add(self, errors: Array, x: Array, start: int = 0) -> None:
        truth = x[:, self.column]
        self.counts.add(self.cells(truth), self.cells(truth + errors[:, self.place, self.column]))

    def cells(self, values: Array) -> Indices:
        """Cells of the attribute's values."""
        return number_cells(values, self.mean, float(self.scale[self.column]))
