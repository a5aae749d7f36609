"""Releases and attacks from Python: copies of a table in memory, extended on demand, attacked at will."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from auditor import registry
from auditor.data import arrivals
from auditor.data.bounds import Bounds, check_bounds
from auditor.data.columns.categorical_table import CategoricalTable, split
from auditor.data.microdata import as_categories, as_table, numbers_like
from auditor.data.request import DataUse
from auditor.data.table import Table
from auditor.errors import AuditorError, AuditorWarning, Problem, ScenarioError
from auditor.field_paths import format_path
from auditor.numerics.random_streams import Seed
from auditor.process.containment import with_plugin_errors
from auditor.process.environment import one_thread
from auditor.registry import PluginParameters
from auditor.results.table_register import ColumnPrints, warn_and_register
from auditor.runs import perturb_categories as categories
from auditor.scenario.from_python import plain
from auditor.scenario.levels import CURRENCIES, Levels, parse_levels
from auditor.scenario.problems import Problems
from auditor.scenario.read_data import parse_bounds
from auditor.scenario.stated_levels import level_of
from auditor.schemes.base.additive import AdditiveScheme
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.schemes.base.scheme import Scheme, TableMoments, by_engine, table_moments
from auditor.schemes.draw import (
    HeldCopies,
    check_takes_batches,
    checked_seed,
    codes_key_of,
    drawn_blocks,
    key_of,
    whole_columns,
)
from auditor.schemes.replacement.base import UniformScheme
from auditor.types import Array, Microdata

_one_at_a_time = threading.RLock()


@dataclass(eq=False)
class Lineage:
    """Line of a release in memory, shared by all objects that `extend` and `append` have returned.

    Two copies that are drawn from one pair of neighbours have independent noise beyond these
    neighbours, and average out. So each call continues the newest state, on whichever object it is
    made.
    """

    newest: Release | None = None

    def __deepcopy__(self, memo: Any) -> Lineage:
        """Return the line itself: a copied object is the same release."""
        return self

    @contextmanager
    def latest(self, release: Release, seed: int | None) -> Iterator[Release]:
        """Lock the line and yield the release to continue; with a seed, for studies, the release that was asked."""
        with _one_at_a_time:
            yield self.newest if self.newest is not None and seed is None else release

    def record(self, before: Release, made: Release, seed: int | None) -> Release:
        """Note a continued release as the newest and return it; with a seed it starts a line of its own."""
        if seed is not None:
            return made
        self.newest = replace(made, line=self)
        return self.newest


@dataclass(frozen=True)
class Release:
    """Copies of one table, in order of release.

    Attributes
    ----------
    original : array or DataFrame
        ``X``, as it was given.
    copies : tuple
        ``Y_1 … Y_M``, each like the original.
    levels : tuple of float
        Their levels.
    scheme : Scheme
        What made them, with its parameters.
    """

    original: Microdata = field(repr=False)
    copies: tuple[Microdata, ...] = field(repr=False)
    levels: tuple[float, ...]
    scheme: Scheme
    state: Any = field(default=None, repr=False, compare=False)
    """What an extension goes on from, kept in memory only: of categories what makes the copies, of
    secret matrices where they come from."""
    first_batch: int | None = None
    """How many records the first batch had, to which noise is scaled; None while there is no
    other."""
    bounds: Bounds = field(default_factory=dict, repr=False)
    """By how much one record may change, by column, where that was stated."""
    line: Lineage = field(default_factory=Lineage, repr=False, compare=False)
    """What `extend` and `append` continue: the newest state of this release."""

    @with_plugin_errors
    def extend(self, levels: Any, seed: int | None = None) -> Release:
        """Return this release with new copies appended; earlier copies stay as they are.

        New copies are drawn from all copies that are out, also from copies that an earlier call has
        added to this object or to its folder: these are in the release that is returned. The same
        level again is the same copy, if the scheme ties its copies together. Copies of a release in
        a folder are written to that folder.

        Parameters
        ----------
        levels : list or range
            Levels of the new copies, as for ``perturb``, in any order; by a guarantee only where
            bounds are stated.
        seed : int, optional
            For studies, as for ``perturb``; it need not be that of the first copies. A release in
            memory is then extended as it is, and the next call does not know the new copies. Left
            out, their noise is drawn from a fresh secret key.

        Notes
        -----
        This is how copies are added to a release. Another call of ``perturb`` draws anew, and
        copies of two calls average out.
        """
        with self.line.latest(self, seed) as out:
            every = (*out.levels, *checked_levels(levels, seed, out.scheme, out.bounds))
            extended = by_engine(RELEASED, out.scheme)
            made = extended(
                out.scheme,
                out.original,
                out.copies,
                every,
                seed,
                out.state,
                out.first_batch,
                out.bounds,
            )
            return self.line.record(out, made, seed)

    @with_plugin_errors
    def append(
        self, X: Microdata, seed: int | None = None, repeats: Literal["refuse", "allow"] = "refuse"
    ) -> Release:
        """Return this release with a batch of new records appended to every copy; no old record is drawn again.

        It continues the newest state of the release, as `extend` does, and writes to the folder of
        a release in a folder.

        Parameters
        ----------
        X : like the original
            The new records, in the original's columns, one at least. An index that does not merely
            count records identifies them.
        seed : int, optional
            For studies, as for ``perturb``. Left out, the batch's noise is drawn from a fresh
            secret key.
        repeats : 'refuse' or 'allow'
            What to do about records whose label in the index is that of one that is out: they would
            have noise of their own a second time, and looks at levels a and b are together one at
            ``ab/(a + b)``.

        Warns
        -----
        AuditorWarning
            Records that equal others which are out, in every column; columns whose variance is far
            from the first batch's.

        Raises
        ------
        AuditorError
            The batch cannot be used, or has records that are out already, or the scheme is none
            that perturbs each record by itself.

        Notes
        -----
        Noise keeps the scale of the first batch: levels are multiples of *its* covariance. So
        copies of all batches together have the law of copies made at once, and Theorem 4 holds over
        batches and levels. Categories keep the domain they have.
        """
        if repeats not in ("refuse", "allow"):
            raise AuditorError(f"repeats must be 'refuse' or 'allow'; got {repeats!r}")
        with self.line.latest(self, seed) as out:
            check_takes_batches(out.scheme)
            X = arrivals.alike(out.original, X)
            arrivals.check_labels(out.original, X, repeats == "allow")
            new = by_engine(APPENDED, out.scheme)(out, X, seed)
            copies = tuple(
                arrivals.stacked(copy, batch) for copy, batch in zip(out.copies, new, strict=True)
            )
            first, every = out.first_batch or len(out.original), arrivals.stacked(out.original, X)
            made = Release(
                every, copies, out.levels, out.scheme, first_batch=first, bounds=out.bounds
            )
            return self.line.record(out, made, seed)

    def _repr_html_(self) -> str:
        return str(registry.get("renderer", "notebook")().release(self))

    @cached_property
    def law(self) -> NoiseLaw | None:
        """The exact law of the noise in all copies."""
        return self.scheme.law(self.levels, self._moments.scale)

    def noise_covariance(self) -> Array:
        """Return ``K_Z``, shape (MN, MN), copies stacked in order of release.

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
    """Make perturbed copies of a table.

    Parameters
    ----------
    X : ndarray of shape (n, N) or (n,), DataFrame or Series
        Finite numbers, n ≥ 2, no constant column; for a uniform scheme categories, with domains as
        dtype ``category`` declares them or else as observed. Of a DataFrame its ``category``
        columns are perturbed together, if it has any, and the others pass through.
    scheme : str
        A registered scheme; ``auditor list schemes`` names them.
    levels : list of float, or mapping; left out for schemes that have none, as ``"rotation"``
        Noise multiples σ² ≥ 0 (uniform schemes: retention probabilities) in order of release, or a
        range as a scenario has it: ``{"uniform": [0.25, 1.0], "count": 5}``. Or what each copy
        guarantees alone, ``{"epsilon": [1, 0.5]}`` or ``{"gaussian-dp": [1, 0.5]}``, or its noise's
        size in data units, ``{"scale": [3, 5]}``; these say ``noise`` themselves.
    seed : int, optional
        **For studies only**: same table and same seed, same copies; so whoever knows or guesses
        both takes the noise off again, and whoever holds the table but for one cell can try that
        cell's values. Left out, noise comes from a cipher under a key of the operating system's
        entropy that is forgotten afterwards, and nobody can make the copies again.
    bounds : mapping of column → (low, high), optional
        By how much one record may change, in every column of numbers (``x1``, ``x2`` … of an
        array): for levels by a guarantee and for ``noise="bounds"``. Knowledge from outside the
        table; records beyond are refused.
    **parameters
        The scheme's own, as in YAML with underscores: ``algorithm="on-demand"``,
        ``noise={"variance": 25.0}``.

    Returns
    -------
    Release

    Raises
    ------
    AuditorError
        A level, a bound, a parameter or the table cannot be used.

    Notes
    -----
    Numbers with added noise are whole multiples of a public power of two
    (``auditor.schemes.base.grid``), far below the noise; those of schemes whose noise is whole, of
    the step that the original's column is recorded in, and integers stay integers. For more copies
    of the same table later extend the release: two releases that know nothing of one another are
    fresh looks at ``X``, and average out.

    Examples
    --------
    >>> import numpy as np
    >>> release = perturb(np.array([9.0, 11.0, 10.5]), scheme="corner-wave", levels=[0.25, 0.5], seed=7)
    >>> release.extend([0.4], seed=8).levels
    (0.25, 0.5, 0.4)
    """
    if levels is None:
        levels = make_plugin("scheme", scheme, parameters).default_levels() or None
    asked = _parsed(levels)
    if asked.currency is not None and issubclass(registry.get("scheme", scheme), AdditiveScheme):
        parameters.setdefault("noise", CURRENCIES[asked.currency])
    chosen: Scheme = make_plugin("scheme", scheme, parameters)
    stated = _checked_bounds(chosen, bounds)
    return by_engine(RELEASED, chosen)(
        chosen, X, (), checked_levels(asked, seed, chosen, stated), seed, bounds=stated
    )


def _parsed(levels: Any) -> Levels:
    if isinstance(levels, range) or (hasattr(levels, "tolist") and not np.isscalar(levels)):
        levels = list(levels)
    problems = Problems()
    found = problems.attempt(("levels",), parse_levels, levels)
    _refuse(problems)
    assert found is not None
    return found


def _checked_bounds(scheme: Scheme, bounds: Mapping[str, Sequence[float]] | None) -> Bounds:
    problems = Problems()
    found = problems.attempt(("bounds",), parse_bounds, plain(bounds or {})) or {}
    if found and scheme.engine != "numeric":
        problems.add(
            ("bounds",), f"are of columns of numbers, and {scheme.name} perturbs categories"
        )
    _refuse(problems)
    return found


def _refuse(problems: Problems, of: str = "") -> None:
    if problems.found:
        raise ScenarioError(
            Problem(format_path(path), f"{message}{of}") for path, message, _ in problems.found
        )


def checked_levels(
    levels: Any, seed: int | None, scheme: Scheme, bounds: Bounds = MappingProxyType({})
) -> tuple[float, ...]:
    """Return levels as noise multiples or probabilities, drawn if a range was given, found if a guarantee or a scale was.

    Raises
    ------
    AuditorError
        They are no levels, or none of this scheme; or a guarantee was stated without bounds, or of
        noise that is sized otherwise.
    """
    asked = _parsed(levels)
    if asked.currency not in (None, "scale") and not bounds:
        raise AuditorError(
            f"levels by {asked.currency} need bounds, by how much one record may change, as bounds={{'age': (0, 120)}}"
        )
    if asked.currency is not None:
        if (
            isinstance(scheme, AdditiveScheme)
            and scheme.parameters.model_dump().get("noise") != CURRENCIES[asked.currency]
        ):
            raise AuditorError(
                f"levels by {asked.currency} say how large the noise is: leave `noise` out when the first copies are made"
            )
        data = DataUse("", bounds=dict(bounds))
        asked = replace(
            asked, values=tuple(level_of(scheme, asked.currency, one, data) for one in asked.stated)
        )
    resolved = asked.resolve(checked_seed(seed))
    scheme.check_levels(resolved)
    return resolved


def make_plugin(kind: str, name: str, parameters: Mapping[str, Any]) -> Any:
    """Return a plugin with checked parameters; names may have hyphens or underscores.

    Raises
    ------
    ScenarioError
        With every parameter that is wrong.
    """
    cls = registry.get(kind, name)
    problems = Problems()
    model = problems.model(
        (),
        {key.replace("_", "-"): _spelt(value) for key, value in parameters.items()},
        cls.Parameters,
    )
    _refuse(problems, f" ({kind} {name!r})")
    assert isinstance(model, PluginParameters)
    return cls(model)


def _spelt(value: Any) -> Any:
    """Return a parameter as a scenario would spell it, an array as lists; what no scenario can hold is the plugin's to refuse."""
    try:
        return plain(value)
    except ScenarioError:
        return value


def prints_of(scheme: Scheme, X: Microdata) -> ColumnPrints:
    """Return the fingerprints of the columns that a scheme perturbs."""
    if isinstance(scheme, UniformScheme):
        return _prints_of_categories(as_categories(X))
    table = as_table(X, varied=False)
    prints = ColumnPrints(table.attributes)
    prints.add_numbers(table.values)
    return prints


def _prints_of_categories(table: CategoricalTable) -> ColumnPrints:
    prints = ColumnPrints(table.names)
    prints.add_labels(
        zip(
            (attribute.labels for attribute in table.attributes),
            split(table, table.codes),
            strict=True,
        )
    )
    return prints


def _released_numbers(
    scheme: Scheme,
    X: Microdata,
    before: tuple[Microdata, ...],
    levels: tuple[float, ...],
    seed: int | None,
    matrices: Seed | None = None,
    first_batch: int | None = None,
    bounds: Bounds = MappingProxyType({}),
) -> Release:
    table = replace(as_table(X), first_batch=first_batch, bounds=bounds)
    check_bounds(table, bounds)
    if before and matrices is None and seed is None and scheme.has_matrices and scheme.needs_levels:
        raise AuditorError(
            f"{scheme.name}: the matrices of copies made elsewhere are not known; extend the release that made them"
        )
    key = key_of(scheme, table, levels, seed)
    if scheme.has_matrices:
        key = replace(key, matrices=key.seed if matrices is None else matrices)
    new = [scheme.blank(table.rows, table.width) for _ in levels[len(before) :]]
    held = HeldCopies(before, new, (table.rows, scheme.output_width(table.width)))
    prints = ColumnPrints(table.attributes)
    with one_thread():
        for _ in drawn_blocks(
            scheme, table, levels, key, held, len(before), seen=prints.add_numbers
        ):
            pass
    if seed is None and not before:
        warn_and_register(prints)
    whole = whole_columns(scheme, table)
    made = (numbers_like(X, scheme.to_columns(copy, table.attributes), whole) for copy in new)
    return Release(X, (*before, *made), levels, scheme, key.matrices, first_batch, bounds)


def _appended_numbers(release: Release, X: Microdata, seed: int | None) -> list[Microdata]:
    """Return the copies of a batch of records, scaled to the first batch."""
    batch, before, scale, scheme = (
        as_table(X, varied=False),
        release._table,
        release._moments.scale,
        release.scheme,
    )
    check_bounds(batch, release.bounds)
    for note in arrivals.notes([before], batch, np.diag(scale.covariance)):
        warnings.warn(AuditorWarning(note), stacklevel=4)
    key = key_of(scheme, batch, release.levels, seed, scale=scale, records_before=before.rows)
    if release.law is not None and release.law.serial is not None:
        last = slice(-release.law.serial.order, None)
        out = (
            np.asarray(copy[last], dtype=np.float64).reshape(-1, batch.width)
            for copy in (release.original, *release.copies)
        )
        key = replace(key, past=tuple(out))
    copies = [scheme.blank(batch.rows, batch.width) for _ in release.levels]
    prints = ColumnPrints(batch.attributes)
    with one_thread():
        for _ in drawn_blocks(
            scheme, batch, release.levels, key, copies, scale=scale, seen=prints.add_numbers
        ):
            pass
    if seed is None:
        warn_and_register(prints)
    whole = whole_columns(scheme, batch, scale)
    return [numbers_like(X, scheme.to_columns(copy, batch.attributes), whole) for copy in copies]


def _released_categories(
    scheme: UniformScheme,
    X: Microdata,
    before: tuple[Microdata, ...],
    levels: tuple[float, ...],
    seed: int | None,
    state: categories.State | None = None,
    first_batch: int | None = None,
    bounds: Bounds = MappingProxyType({}),
) -> Release:
    table = as_categories(X) if state is None else state.table
    key = codes_key_of(scheme, table, seed)
    if state is None:
        old = levels[: len(before)]
        state = (
            categories.resume(scheme, table, X, before, old, key)
            if old
            else categories.start(scheme, table, levels, key)
        )
    state = state.fork()  # the release that is extended stays as it is
    new = state.extend(X, levels[len(before) :], key)
    if seed is None and not before:
        warn_and_register(_prints_of_categories(table))
    return Release(X, (*before, *new), levels, scheme, state, first_batch)


def _appended_categories(release: Release, X: Microdata, seed: int | None) -> list[Microdata]:
    """Return the copies of a batch of records, whose values must be of the domain there is."""
    scheme, domain = (
        release.scheme,
        as_categories(release.original) if release.state is None else release.state.table,
    )
    assert isinstance(scheme, UniformScheme)
    table, scheme = categories.of_domain(domain, X), scheme.over(domain)
    if seed is None:
        warn_and_register(_prints_of_categories(table))
    key = codes_key_of(scheme, table, seed, domain.rows)
    return categories.start(scheme, table, release.levels, key).extend(X, release.levels, key)


RELEASED: dict[str, Callable[..., Release]] = {
    "numeric": _released_numbers,
    "categorical": _released_categories,
}
"""What makes copies of microdata in memory, by the engine that a scheme names."""
APPENDED: dict[str, Callable[..., list[Microdata]]] = {
    "numeric": _appended_numbers,
    "categorical": _appended_categories,
}
"""What makes those of a batch of records, likewise."""
