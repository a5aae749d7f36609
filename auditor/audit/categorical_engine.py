"""Engine for releases of categories."""

from __future__ import annotations

from functools import partial

import numpy as np

from auditor.audit.base.records import CellContext
from auditor.audit.base.request import ReleaseRequest, parts_in_steps
from auditor.audit.base.session import cell_context
from auditor.audit.categorical.release import UniformRelease
from auditor.audit.categorical.session import CategoricalSession
from auditor.data.columns.categorical_table import BLOCK_WIDTH
from auditor.data.source import noise_seed
from auditor.results.evidence import ReleaseEvidence
from auditor.results.measurements import Measurements
from auditor.results.records import Distribution, Picture
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import categories_of


class CategoricalEngine:
    """Engine for copies of categories."""

    divides_held_tables = False

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
        data, share = categories_of(table), partial(parts_in_steps, request, self.open, BLOCK_WIDTH)
        return UniformRelease(
            here,
            data,
            request.use,
            self.context(request, request.levels, request.copies),
            Key(seed, request.use.id, request.replicate),
            share if request.share is not None and data.streamed else None,
            table,
        )

    def audit(
        self, request: ReleaseRequest, evidence: ReleaseEvidence
    ) -> tuple[Measurements, list[Distribution], list[Picture]]:
        """Return all records of one release, and fill in the evidence."""
        return CategoricalSession(self.open(request), request.pooling).run(
            evidence, tell=request.tell, brief=request.brief
        )
