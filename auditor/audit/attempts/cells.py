"""Records of one attack on a numeric release, with one state of knowledge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from auditor.adversary.attack import Attack, LinearAttack, RowAttack
from auditor.adversary.knowledge import Knowledge
from auditor.adversary.published import TreeMoments
from auditor.audit.attempts.linear import linear_errors, padded_maps
from auditor.audit.attempts.opened import Opened
from auditor.audit.attempts.over_rows import Counters, fitted_to_rows, row_errors
from auditor.audit.base.records import ALL, CellContext, Cells, distribution_records, error_records
from auditor.audit.base.request import Attempt
from auditor.audit.base.session import CELLS, RECORDS, JointCounts, number_cells
from auditor.audit.measures.closeness import Baseline, closeness_records, sampled
from auditor.audit.measures.entropy import attack_bound_records
from auditor.audit.measures.privacy import (
    errors_alone,
    errors_in_leaves,
    number_records,
    tally_records,
    wanted_tally,
)
from auditor.audit.numeric.error_bars import Errors
from auditor.audit.numeric.error_tally import Tally
from auditor.audit.numeric.reconstruct import tally_linear, tally_rows
from auditor.base.errors import NotApplicable, PluginError
from auditor.base.types import Array, Block, Blocks, Coalition, Indices
from auditor.numerics.blocks import block_head, row_blocks
from auditor.results.evidence import PairedCell, PairedGain
from auditor.results.measurements import Measurements


def attack_outcome(
    opened: Opened,
    attack: Attack,
    name: str,
    knowledge: Knowledge,
    context: CellContext,
    base: Baseline | None = None,
) -> Attempt:
    """Return the outcome on every coalition.

    ``name`` is the attack's id in the scenario; ``base`` is for closeness, if requested.
    """
    scenario, release, needed, wanted = (
        opened.scenario,
        opened.release,
        opened.needed,
        opened.wanted,
    )
    opened.gathered.shares.asked = False
    attack.check(release.scheme.family, knowledge)
    if isinstance(attack, LinearAttack) and not opened.gathered.copies.joint:
        attack = attack.over_rows()
    scale = np.sqrt(np.diag(release.moments.covariance))
    tally = wanted_tally(scenario, scale, release.table)
    if base is not None:
        tally.sample, tally.stride = sampled(scale, base), base.stride
    counters = Counters()
    if isinstance(attack, LinearAttack):
        errors = linear_errors(opened, attack, knowledge, tally)
    elif isinstance(attack, RowAttack):
        counters = Counters.of(scenario, len(needed))
        errors = row_errors(opened, attack, knowledge, tally, counters)
    else:
        raise NotApplicable(f"{attack.name} is neither a linear nor a row-level attack")
    if not np.isfinite(errors.distortion.value).all():
        raise PluginError("the attack's errors are beyond what double precision can square")
    context, held = context.under(name, knowledge.label), [needed[place] for place in wanted]
    cells = Cells(context, needed, wanted)
    independent = opened.law is None or opened.law.tells_spread
    if isinstance(attack, LinearAttack) and independent and errors.bar == "redraws":
        # the redraws count all draws that the theory averages over, record by record
        if not np.isnan(errors.distortion.theory).all():
            errors = replace(errors, bar="sampling")
    records = tally_records(scenario, cells, tally, release.table)
    if tally.sample is not None and base is not None:
        records += closeness_records(cells, tally.sample, base)
    if scenario.measure("error-bounds") and isinstance(attack, LinearAttack):
        if release.transformed is None:
            records += attack_bound_records(context, attack, knowledge, opened.gathered, held)
    if knowledge.in_clear:
        records += number_records(context, knowledge, _known_alone(opened, knowledge))
    records += counters.records(cells)
    return Attempt(
        Measurements.concatenated([error_records(cells, errors), records]),
        distribution_records(cells, tally),
        _paired_gains(opened, context, errors),
        opened.gathered.shares.asked,
    )


def _paired_gains(
    opened: Opened, context: CellContext, errors: Errors
) -> dict[PairedCell, PairedGain]:
    if errors.paired is None:
        return {}
    names, found = (*context.attributes, ALL), errors.paired
    return {
        (str(context.knowledge), str(context.attack), opened.needed[place], name): (
            float(found.gain[place, column]),
            float(found.std_error[place, column]),
            float(found.degrees[place, column]),
        )
        for place in opened.wanted
        for column, name in enumerate(names)
    }


def _known_alone(opened: Opened, knowledge: Knowledge) -> Array:
    """Return the squared errors from known attributes without any copy, shape (N,)."""
    view, table = opened.gathered.view(knowledge), opened.release.table
    known = view.known_columns.tolist()
    if isinstance(view.given, TreeMoments):
        blocks = row_blocks(table.rows, table.width)
        X = np.concatenate([table.read(a, b) for a, b in blocks])
        tree = view.given.tree
        return errors_in_leaves(X, tree.leaf_of(X[:, tree.on]), known)
    return errors_alone(opened.release.moments.covariance, known)


def number_counts(
    opened: Opened, attack: Attack, knowledge: Knowledge, coalition: Coalition, column: int
) -> JointCounts:
    """Return counts from all rows, or from the heads of blocks of a long table."""
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
        """Return the cells of the attribute's values."""
        return number_cells(values, self.mean, float(self.scale[self.column]))
