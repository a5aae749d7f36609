"""Engine for releases of categories."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from auditor.audit.base.outcome import Attempt
from auditor.audit.base.records import CellContext
from auditor.audit.base.request import ReleaseRequest
from auditor.audit.base.session import cell_context
from auditor.audit.categorical.release import UniformRelease
from auditor.audit.categorical.session import CategoricalSession
from auditor.data.columns.categorical_table import BLOCK_WIDTH
from auditor.data.source import noise_seed
from auditor.data.table import Table
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import categories_of
from auditor.types import Coalition


class CategoricalEngine:
    """Engine for copies of categories."""

    hands_out_passes = True

    def block_width(self, table: Table) -> int:
        """Return the width that blocks of codes are divided by."""
        return BLOCK_WIDTH

    def ahead(self, request: ReleaseRequest) -> None:
        """Return nothing: each pass depends on the one before."""

    def attempts(self, request: ReleaseRequest) -> Mapping[int, Callable[[], Attempt]]:
        """Return none: one pass serves all attacks."""
        return {}

    def context(
        self, request: ReleaseRequest, levels: tuple[float, ...], copies: int
    ) -> CellContext:
        """Return the common part of the records of a release."""
        names = categories_of(request.table).names
        return cell_context(request, levels, copies, names, np.ones(len(names)))

    def open(self, request: ReleaseRequest) -> UniformRelease:
        """Return the release; no copy is drawn."""
        here, table = request.scenario, request.table
        seed = noise_seed(here.data.source, here.seed, table.fingerprint())
        return UniformRelease(
            here,
            categories_of(table),
            request.use,
            self.context(request, request.levels, request.copies),
            Key(seed, request.use.id, request.replicate),
            request.share,
            table,
        )

    def session(
        self, request: ReleaseRequest, context: CellContext, coalitions: list[Coalition]
    ) -> CategoricalSession:
        """Return the open release, after the first pass."""
        return CategoricalSession(self.open(request), request.pooling)
