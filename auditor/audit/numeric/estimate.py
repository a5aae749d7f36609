"""Estimate of the original by one attack, with its closed-form error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.attack import Attack, LinearAttack, Reconstruction, RowAttack, check_affine
from auditor.adversary.knowledge import Knowledge
from auditor.audit.numeric.linear_errors import Maps, held_out_theory
from auditor.audit.numeric.moment_pass import RowSelection, with_row_theory
from auditor.audit.numeric.reconstruct import CopyBlocks, rows_of
from auditor.audit.numeric.views import Gathered, ReleasedCopies
from auditor.base import NotApplicable
from auditor.base.types import Array, Coalition
from auditor.data.table import Table
from auditor.numerics.blocks import Moments, readable, row_blocks
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.schemes.base.scheme import Scheme, TableMoments


class Held(NamedTuple):
    """Copies of one coalition, and the table that its adversary wants.

    ``copies`` are their numbers, ``arrays`` their values.
    """

    scheme: Scheme
    table: Table
    moments: TableMoments
    copies: Coalition
    levels: tuple[float, ...]
    arrays: list[Array]
    law: NoiseLaw | None


def rebuilt(
    plugin: Attack, held: Held, knows: Knowledge, seed: int
) -> tuple[Array, float | None, Reconstruction | None, NDArray[np.intp]]:
    """Return estimates (n, N), theory's distortion, the fit, known rows.

    Raises
    ------
    NotApplicable
        The attack does not apply; the message is the reason.
    PluginError
        The attack returned no estimate.
    """
    scheme, table, moments, copies, levels, arrays, law = held
    blocks, joint = in_blocks(table, arrays), scheme.output_width(table.width) == table.width
    rows = RowSelection(table, [knows], seed, 1)
    facts = law, blocks, joint, scheme.public, copies
    released = ReleasedCopies(table, moments, levels, *facts, shown=scheme.shown)
    view, given = Gathered(released, rows).view(knows), rows.given(knows)
    if isinstance(plugin, LinearAttack) and (scheme.has_matrices or not joint):
        # moments of transformed copies about the original's mean would be lost in rounding
        plugin = plugin.over_rows()
    others, everybody = np.delete(table.values, given, axis=0), tuple(range(1, len(copies) + 1))
    if isinstance(plugin, LinearAttack):
        affine, theory = plugin.affine(view), None
        check_affine(affine, view)
        values = affine.apply(arrays, view.centre, np.empty_like(table.values))
        if affine.known is not None:
            values += (table.values - view.centre) @ affine.known.T
        if law is not None and (affine.fixed or (affine.apart and given.size)):
            maps = Maps.pad([affine], [everybody], len(copies))
            judged = Moments.of(others - view.centre)
            theory = float(held_out_theory(maps, judged, law)[0, -1])
        return values, theory, None, given
    if not isinstance(plugin, RowAttack):
        raise NotApplicable(f"{plugin.name} is neither a linear nor a row-level attack")
    seen = rows.seen(knows, blocks)
    fitted = plugin.fit(view, CopyBlocks(seen, everybody))
    expected = fitted.expected(others)
    squares = np.array([np.nan if expected is None else float(expected.sum())])
    squares = with_row_theory(squares, [fitted], seen, rows.judged(knows, blocks)[0])
    theory = float(squares[0]) / others.size
    return rows_of(fitted, blocks()), None if np.isnan(theory) else theory, fitted, given


def in_blocks(table: Table, arrays: Sequence[Array]) -> Callable[[], Any]:
    """Return a function that yields block number, a table's rows and its copies' rows."""
    bounds = row_blocks(table.rows, table.width)
    return lambda: (
        (k, table.read(a, b), readable([copy[a:b] for copy in arrays]))
        for k, (a, b) in enumerate(bounds)
    )
