"""Estimate of the original by one attack, with its closed-form error."""

from __future__ import annotations

import numpy as np

from auditor.adversary.attack import Attack, LinearAttack, Reconstruction, RowAttack, check_affine
from auditor.adversary.knowledge import Knowledge
from auditor.audit.numeric.linear_errors import Maps, held_out_theory
from auditor.audit.numeric.moment_pass import RowSelection, with_row_theory
from auditor.audit.numeric.reconstruct import CopyBlocks, errors_in_pieces, rows_of
from auditor.audit.numeric.release import Release
from auditor.audit.numeric.views import Gathered
from auditor.base import NotApplicable
from auditor.base.types import Array, Indices
from auditor.numerics.blocks import Moments, readable


def rebuilt(
    plugin: Attack, release: Release, knows: Knowledge, seed: int
) -> tuple[Array, float | None, Reconstruction | None, Indices]:
    """Return estimates (n, N), theory's distortion, the fit, known rows.

    All copies of the release attack. An estimated law states no theory.

    Raises
    ------
    NotApplicable
        The attack does not apply; the message is the reason.
    PluginError
        The attack returned no estimate.
    """
    table, law, blocks = release.table, release.law, release.blocks
    rows = RowSelection(table, [knows], seed, 1)
    gathered, given = Gathered(release, rows), rows.given(knows)
    view, everybody = gathered.view(knows), tuple(range(1, release.copies + 1))
    if isinstance(plugin, LinearAttack) and (release.scheme.has_matrices or not release.joint):
        # moments of transformed copies about the original's mean would be lost in rounding
        plugin = plugin.over_rows()
    others, theory = np.delete(table.values, given, axis=0), np.full(1, np.nan)
    if isinstance(plugin, LinearAttack):
        affine, fitted = plugin.affine(view), None
        check_affine(affine, view)
        maps = Maps.pad([affine], [everybody], release.copies)
        pieces = errors_in_pieces(maps, blocks, view.centre)
        values = np.concatenate([x + errors[:, 0] for x, _, errors in pieces])
        if law is not None and (affine.fixed or (affine.apart and given.size)):
            theory = held_out_theory(maps, Moments.of(others - view.centre), law)[0, -1:]
    elif isinstance(plugin, RowAttack):
        seen = rows.seen(knows, blocks)
        fitted = plugin.fit(view, CopyBlocks(seen, everybody))
        expected = fitted.expected(others)
        theory = theory if expected is None else expected.sum(keepdims=True)
        theory = with_row_theory(theory, [fitted], seen, rows.judged(knows, blocks)[0])
        theory = theory / others.size
        held = ((k, x, readable(copies)) for k, x, copies in blocks())
        values = rows_of(fitted, held)
    else:
        raise NotApplicable(f"{plugin.name} is neither a linear nor a row-level attack")
    stated = law is gathered.law and not np.isnan(theory[0])
    return values, float(theory[0]) if stated else None, fitted, given
