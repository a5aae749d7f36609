"""Releases in memory: copies of a table, extended by levels or records."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from auditor.base import AuditorError, AuditorWarning
from auditor.base.types import Array, Coalition, Levels, Microdata, frozen
from auditor.data.microdata import (
    as_categories,
    as_table,
    batch_like,
    batch_notes,
    categories_like,
    check_labels,
    in_domain,
    numbers_like,
    prints_of,
    stacked,
)
from auditor.data.table import Bounds, Table, check_bounds
from auditor.numerics.random_streams import Seed
from auditor.process.containment import with_plugin_errors
from auditor.process.environment import one_thread
from auditor.results.table_register import register_release
from auditor.runs.arguments import (
    checked_bounds,
    checked_levels,
    make_plugin,
    parsed_levels,
    sized_by,
)
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.schemes.base.scheme import Scheme, TableMoments, table_moments
from auditor.schemes.draw import (
    HeldCopies,
    check_takes_batches,
    codes_key_of,
    drawn_blocks,
    drawn_codes,
    key_of,
    whole_columns,
)
from auditor.schemes.replacement.base import UniformScheme, never_drawn

_one_at_a_time = threading.RLock()


@dataclass(eq=False)
class Lineage:
    """Line of a release in memory, shared by all objects that `extend` and `append` return.

    Independent copies between two neighbours would average out, so each call continues the newest
    state.
    """

    newest: Release | None = None

    def __deepcopy__(self, memo: Any) -> Lineage:
        """The line itself: a copied object is the same release."""
        return self

    @contextmanager
    def latest(self, release: Release, seed: int | None) -> Iterator[Release]:
        """Lock the line and yield its newest state; with a seed, for studies, ``release``."""
        with _one_at_a_time:
            yield self.newest if self.newest is not None and seed is None else release

    def record(self, before: Release, made: Release, seed: int | None) -> Release:
        """Note a continued release as the newest; with a seed it begins its own line."""
        if seed is not None:
            return replace(made, line=Lineage())
        self.newest = replace(made, line=self)
        return self.newest


@frozen
class Release:
    """Copies of one table, in order of release.

    Attributes
    ----------
    original : array or DataFrame
        ``X``, as given.
    copies : tuple
        ``Y_1 … Y_M``, each like the original.
    levels : tuple of float
        Noise multiples or retention probabilities.
    scheme : Scheme
        Their scheme, with its parameters.
    """

    original: Microdata = field(repr=False)
    copies: tuple[Microdata, ...] = field(repr=False)
    levels: tuple[float, ...]
    scheme: Scheme
    matrices: Seed | None = field(default=None, repr=False, compare=False)
    """Seed of secret matrices, in memory only."""
    first_batch: int | None = None
    """Records of the first batch, to which noise is scaled; None if it is the only one."""
    bounds: Bounds = field(default_factory=dict, repr=False)
    """Largest change of one record by column, if stated."""
    line: Lineage = field(default_factory=Lineage, repr=False, compare=False)
    """Newest state of this release, which `extend` and `append` continue."""

    @with_plugin_errors
    def extend(self, levels: Any, seed: int | None = None) -> Release:
        """Return this release with new copies appended; earlier copies stay as they are.

        New copies depend on all released copies of the line. Equal levels give equal copies, if the
        scheme's copies depend on each other.

        Parameters
        ----------
        levels : list or range
            In any order, as for ``perturb``. Levels by a guarantee need stated bounds.
        seed : int, optional
            For studies; begins a line of its own. By default a fresh secret key.

        Notes
        -----
        Copies of two calls of ``perturb`` average out.
        """
        with self.line.latest(self, seed) as out:
            new = checked_levels(levels, seed, out.scheme, out.bounds)
            return self.line.record(out, _drawn(out, out.original, new, seed, False), seed)

    @with_plugin_errors
    def append(
        self, X: Microdata, seed: int | None = None, repeats: Literal["refuse", "allow"] = "refuse"
    ) -> Release:
        """Return this release with new records in every copy; no old record is drawn again.

        It continues the newest state, also in the folder, as `extend` does.

        Parameters
        ----------
        X : like the original
            At least one new record, in the original's columns. An index that does not merely count
            identifies records.
        seed : int, optional
            For studies. By default a fresh secret key.
        repeats : 'refuse' or 'allow'
            Treatment of released index labels. A second, independent draw at levels a and b is one
            at ``ab/(a + b)``.

        Warns
        -----
        AuditorWarning
            Records that equal released ones; columns whose variance is far from the first batch's.

        Raises
        ------
        AuditorError
            The batch is invalid or has released records, or the scheme does not perturb each record
            by itself.

        Notes
        -----
        Levels stay multiples of the *first* batch's covariance, so Theorem 4 holds over batches and
        levels. Categories keep their domain.
        """
        if repeats not in ("refuse", "allow"):
            raise AuditorError(f"repeats must be 'refuse' or 'allow'; got {repeats!r}")
        with self.line.latest(self, seed) as out:
            check_takes_batches(out.scheme)
            X = batch_like(out.original, X)
            check_labels(out.original, X, repeats == "allow")
            batch = _drawn(out, X, out.levels, seed, True)
            made = replace(
                out,
                original=stacked(out.original, X),
                copies=tuple(map(stacked, out.copies, batch.copies)),
                first_batch=out.first_batch or len(out.original),
            )
            return self.line.record(out, made, seed)

    @cached_property
    def law(self) -> NoiseLaw | None:
        """The exact law of the noise in all copies."""
        return self.scheme.law(self.levels, self._moments.scale)

    def held(self, coalition: Coalition) -> tuple[tuple[float, ...], list[Microdata]]:
        """Coalition's levels and copies."""
        levels = tuple(self.levels[copy - 1] for copy in coalition if self.levels)
        return levels, [self.copies[copy - 1] for copy in coalition]

    def noise_covariance(self) -> Array:
        """``K_Z``, shape (MN, MN), copies stacked in order of release.

        Raises
        ------
        AuditorError
            The scheme states no law.
        """
        if self.law is None:
            raise AuditorError(f"scheme {self.scheme.name!r} states no law of its noise")
        return self.law.covariance

    @cached_property
    def _table(self) -> Table:
        return replace(as_table(self.original), first_batch=self.first_batch, bounds=self.bounds)

    @cached_property
    def _moments(self) -> TableMoments:
        return table_moments(self._table)


@with_plugin_errors
def perturb(
    X: Microdata,
    scheme: str,
    levels: Any = None,
    seed: int | None = None,
    *,
    bounds: Mapping[str, Sequence[float]] | None = None,
    **parameters: Any,
) -> Release:
    """Perturb a table into copies.

    Parameters
    ----------
    X : ndarray of shape (n, N) or (n,), DataFrame or Series
        Finite numbers, n ≥ 2, no constant column; for uniform schemes categories, with domains by
        dtype or as observed. If a DataFrame has ``category`` columns, they are perturbed together,
        and others pass through.
    scheme : str
        A registered scheme; ``auditor list schemes`` names them.
    levels : list of float, or mapping; left out for schemes without levels, as ``"rotation"``
        Noise multiples σ² ≥ 0 (uniform schemes: retention probabilities) in order of release, or a
        range, ``{"uniform": [0.25, 1.0], "count": 5}``. Or each copy's own guarantee,
        ``{"epsilon": [1, 0.5]}`` or ``{"gaussian-dp": [1, 0.5]}``, or the noise's size in data
        units, ``{"scale": [3, 5]}``; a guarantee or a size sets ``noise``.
    seed : int, optional
        **For studies only**: an adversary with the table and a guessed seed removes the noise,
        and an adversary without one cell can try its values. By default a cipher's key from the
        operating system's entropy, which is not kept.
    bounds : mapping of column → (low, high), optional
        Range of every column of numbers (``x1``, ``x2`` … of an array), from outside the table, for
        levels by a guarantee and ``noise="bounds"``. Records outside are refused.
    **parameters
        The scheme's own, with underscores: ``algorithm="on-demand"``, ``noise={"variance": 25.0}``.

    Returns
    -------
    Release

    Raises
    ------
    AuditorError
        A level, a bound, a parameter or the table cannot be used.

    Notes
    -----
    Numbers with added noise are multiples of a public power of two
    (``auditor.schemes.base.additive``), far below the noise. Under whole noise they are multiples
    of the column's recording step, and integers stay integers. Extend a release for more copies:
    independent releases average out.

    Examples
    --------
    >>> import numpy as np
    >>> release = perturb(np.array([9.0, 11.0, 10.5]), scheme="corner-wave", levels=[0.25, 0.5],
    ...                   seed=7)
    >>> release.extend([0.4], seed=8).levels
    (0.25, 0.5, 0.4)
    """
    if levels is None:
        levels = make_plugin("scheme", scheme, parameters).default_levels() or None
    asked = parsed_levels(levels)
    chosen: Scheme = make_plugin("scheme", scheme, sized_by(asked, scheme, parameters))
    stated = checked_bounds(chosen, bounds)
    made = Release(X, (), (), chosen, bounds=stated)
    return _drawn(made, X, checked_levels(asked, seed, chosen, stated), seed, False)


# -- drawing copies --------------------------------------------------------------------------------


def _drawn(out: Release, X: Microdata, levels: Levels, seed: int | None, later: bool) -> Release:
    before: tuple[Microdata, ...] = () if later else out.copies
    every, matrices = (*(() if later else out.levels), *levels), out.matrices
    table: Any
    notes = list[str]()
    if isinstance(out.scheme, UniformScheme):
        table = as_categories(out.original)
        fitted, rows_before = out.scheme.over(table), table.rows if later else 0
        if later:
            table = in_domain(table, X, X)
        released = [in_domain(table, X, copy).codes for copy in before]
        if not released and (note := never_drawn(fitted.replaced_by(table.size))):
            notes.append(f"{fitted.name}: {note}")
        made = drawn_codes(
            fitted, table, every, codes_key_of(fitted, table, seed, rows_before), released
        )
        codes = zip(*(new for _, new in made), strict=True)
        new = [categories_like(X, table, np.concatenate(copy)) for copy in codes]
    else:
        table = as_table(X, varied=False) if later else out._table
        check_bounds(table, out.bounds)
        scheme, scale = out.scheme, out._moments.scale if later else None
        if (
            before
            and seed is None
            and scheme.needs_levels
            and scheme.has_matrices
            and matrices is None
        ):
            raise AuditorError(
                f"{scheme.name}: the matrices of copies made elsewhere are not known; extend the release that made them"
            )
        key = key_of(
            scheme, table, every, seed, scale=scale, records_before=out._table.rows if later else 0
        )
        if scheme.has_matrices:
            matrices = key.seed if matrices is None else matrices
            key = replace(key, matrices=matrices)
        if scale is not None:
            notes += batch_notes([out._table], table, np.diag(scale.covariance))
        if later and out.law is not None and out.law.serial is not None:
            last = slice(-out.law.serial.order, None)
            ends = (np.asarray(copy[last], float) for copy in (out.original, *out.copies))
            key = replace(key, past=tuple(x.reshape(-1, table.width) for x in ends))
        blank = [scheme.blank(table.rows, table.width) for _ in levels]
        held = HeldCopies(before, blank, (table.rows, scheme.output_width(table.width)))
        with one_thread():
            for _ in drawn_blocks(scheme, table, every, key, held, len(before), scale):
                pass
        whole = whole_columns(scheme, table, scale)
        columns = (scheme.to_columns(copy, table.attributes) for copy in blank)
        new = [numbers_like(X, copy, whole) for copy in columns]
    if seed is None and not before:
        notes += register_release(prints_of(table))
    for note in notes:
        warnings.warn(AuditorWarning(note), stacklevel=4)
    return replace(out, copies=(*before, *new), levels=every, matrices=matrices)
