"""Attacks on copies of numbers from Python."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from auditor.adversary.attack import Attack, LinearAttack, Reconstruction, RowAttack, check_affine
from auditor.adversary.knowledge import Knowledge
from auditor.audit.numeric.linear_errors import Maps, held_out_theory
from auditor.audit.numeric.moment_pass import RowSelection, with_row_theory
from auditor.audit.numeric.reconstruct import CopyBlocks, errors_in_pieces, rows_of
from auditor.audit.numeric.release import Release as Drawn, held_release
from auditor.audit.numeric.views import Gathered
from auditor.base import AuditorError, DataError, NotApplicable
from auditor.base.types import Array, Coalition, Indices, Microdata
from auditor.numerics.blocks import Moments, readable
from auditor.process.environment import one_thread
from auditor.registry.parameters import is_number
from auditor.runs.perturb import Release, as_table, copy_values, in_order, numbers_like
from auditor.schemes.base.scheme import table_moments


@dataclass(frozen=True, eq=False)
class Estimate:
    """A reconstruction of the original, and its error.

    Attributes
    ----------
    values : array or DataFrame
        ``X̂``, like the original.
    theory : float or None
        Closed-form mean squared error over rows and attributes, squared data units.
    distortion : float
        Measured, over records that the adversary does not know in clear.
    normalized_error : float
        ``N·D/Tr(K_X)``: 0 is exact, 1 no better than guessing the mean.
    """

    values: Microdata = field(repr=False)
    theory: float | None
    distortion: float
    normalized_error: float
    coalition: Coalition
    _fitted: Reconstruction | None = field(default=None, repr=False)
    _copies: Sequence[Array] = field(default=(), repr=False)

    def chances(self, tolerance: float) -> Array | None:
        """Each record's chance of exact reconstruction, if the attack has one.

        Parameters
        ----------
        tolerance : float
            A record counts as rebuilt with ``‖x̂ − x‖ ≤ tolerance·‖x‖``; above 0.

        Returns
        -------
        ndarray of shape (n,) or None
            By row, as the adversary can compute it. Records known in clear are certain.

        Raises
        ------
        AuditorError
            The tolerance is not a number above 0.

        Examples
        --------
        >>> import auditor
        >>> X = np.random.default_rng(0).normal(size=(50, 3))
        >>> copies = auditor.perturb(X, "rotation", [0], seed=1)
        >>> estimate = auditor.attack("known-io-rotation", copies, knowledge={"known-records": 1})
        >>> estimate.chances(0.5).shape
        (50,)
        """
        if not is_number(tolerance) or not 0 < tolerance < np.inf:
            raise AuditorError(f"the tolerance must be a number above 0; got {tolerance!r}")
        return (
            None if self._fitted is None else self._fitted.chances(self._copies, float(tolerance))
        )


def rebuilt(
    plugin: Attack, release: Drawn, knows: Knowledge, seed: int
) -> tuple[Array, float | None, Reconstruction | None, Indices]:
    """Estimates (n, N), theory's distortion, the fit, known rows.

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
        values = np.concatenate([x + errors[:, 0] for _, x, errors in pieces])
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


def estimate_numbers(
    plugin: Attack,
    release: Release,
    original: Microdata | None,
    copies: Coalition,
    knows: Knowledge,
    seed: int,
) -> Estimate:
    """Run an attack on the copies of one coalition; see ``attack``."""
    X = release.original if original is None else in_order(original, release.original)
    own, scheme = X is release.original, release.scheme
    table = release._table if own else as_table(X)
    shape, wanted = ((each.rows, each.width) for each in (table, release._table))
    if shape != wanted:
        raise DataError(f"original must have shape {wanted}, as the release; got {shape}")
    levels, given = release.held(copies)
    arrays = [scheme.from_columns(copy_values(copy), table.attributes) for copy in given]
    moments = release._moments if own else table_moments(table)
    law = None if release.law is None else release.law.of(copies)
    held = held_release(table, moments, scheme, levels, copies, arrays, law)
    with one_thread():
        found, theory, fitted, known = rebuilt(plugin, held, knows, seed)
    errors = np.delete(table.values - found, known, axis=0).reshape(-1)
    distortion = float(errors @ errors) / errors.size
    scale = float(np.trace(moments.covariance)) / table.width
    return Estimate(
        values=numbers_like(X, found),
        theory=theory,
        distortion=distortion,
        normalized_error=distortion / scale,
        coalition=copies,
        _fitted=fitted,
        _copies=arrays,
    )
