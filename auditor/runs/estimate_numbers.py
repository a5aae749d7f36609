"""Attacks on copies of numbers from Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from auditor.adversary.attack import Attack, Reconstruction
from auditor.adversary.knowledge import Knowledge
from auditor.audit.numeric.estimate import rebuilt
from auditor.audit.numeric.release import held_release
from auditor.base import AuditorError, DataError
from auditor.base.types import Array, Coalition, Microdata, frozen
from auditor.data.microdata import as_table, copy_values, in_order, numbers_like
from auditor.process.environment import one_thread
from auditor.registry.parameters import is_number
from auditor.runs.perturb import Release
from auditor.schemes.base.scheme import table_moments


@frozen
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
    _fitted: Reconstruction | None = field(default=None, repr=False, compare=False)
    _copies: Sequence[Array] = field(default=(), repr=False, compare=False)

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


def estimate_numbers(
    plugin: Attack,
    release: Release,
    original: Microdata | None,
    copies: Coalition,
    levels: tuple[float, ...],
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
    values = (copy_values(release.copies[copy - 1], table.rows) for copy in copies)
    arrays = [scheme.from_columns(each, table.attributes) for each in values]
    moments = release._moments if own else table_moments(table)
    law = None if release.law is None else release.law.of(copies)
    held = held_release(table, moments, scheme, levels, copies, arrays, law)
    with one_thread():
        found, theory, fitted, given = rebuilt(plugin, held, knows, seed)
    errors = np.delete(table.values - found, given, axis=0).reshape(-1)
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
