"""Errors from known attributes without any copy."""

from __future__ import annotations

import numpy as np

from auditor.adversary.knowledge import Knowledge
from auditor.adversary.published import TreeMoments
from auditor.audit.attempts.opened import Opened
from auditor.audit.base.records import CellContext
from auditor.audit.measures.privacy import errors_alone, errors_in_leaves, number_records
from auditor.numerics.blocks import row_blocks
from auditor.results.records import Measurement


def known_alone_records(
    opened: Opened, context: CellContext, knowledge: Knowledge
) -> list[Measurement]:
    """Figures of an adversary who holds no copy."""
    view, table = opened.gathered.view(knowledge), opened.release.table
    known = view.known_columns.tolist()
    errors = errors_alone(opened.release.moments.covariance, known)
    if isinstance(view.given, TreeMoments):
        blocks = row_blocks(table.rows, table.width)
        X = np.concatenate([table.read(a, b) for a, b in blocks])
        tree = view.given.tree
        errors = errors_in_leaves(X, tree.leaf_of(X[:, tree.on]), known)
    return list(number_records(context, knowledge, errors))
