"""Releases in memory: copies of a table, extended by levels or records."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from auditor import registry
from auditor.base.errors import AuditorError, AuditorWarning, Problem, ScenarioError
from auditor.base.types import Array, Codes, Microdata
from auditor.data.bounds import Bounds, check_bounds
from auditor.data.columns.categorical_table import CategoricalTable, of_column, product, split
from auditor.data.microdata import (
    as_categories,
    as_table,
    batch_like,
    batch_notes,
    categories_like,
    check_labels,
    numbers_like,
    sensitive_columns,
    stacked,
)
from auditor.data.request import DataUse
from auditor.data.table import Table
from auditor.process.containment import with_plugin_errors
from auditor.process.deferred import pd
from auditor.process.environment import one_thread
from auditor.registry import PluginParameters
from auditor.registry.parameters import format_path
from auditor.results.table_register import ColumnPrints, warn_and_register
from auditor.scenario.levels import CURRENCIES, Levels, parse_levels
from auditor.scenario.problems import Problems, plain
from auditor.scenario.read_data import parse_bounds
from auditor.scenario.stated_levels import level_of
from auditor.schemes.base.additive import AdditiveScheme
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.schemes.base.scheme import Key, Scheme, TableMoments, table_moments
from auditor.schemes.draw import (
    HeldCopies,
    check_takes_batches,
    checked_seed,
    codes_key_of,
    drawn_blocks,
    key_of,
    whole_columns,
)
from auditor.schemes.replacement.base import (
    BlockedCopies,
    Copies,
    UniformScheme,
    code_blocks,
    code_type,
    fork,
    never_drawn,
)
from auditor.schemes.uniform import MultiPertCopies

_one_at_a_time = threading.RLock()


@dataclass(eq=False)
class Lineage:
    """Line of a release in memory, shared by all objects that `extend` and `append` return.

    Two copies drawn from one pair of neighbours have independent noise beyond these, and average
    out. So each call continues the newest state, on any of the objects.
    """

    newest: Release | None = None

    def __deepcopy__(self, memo: Any) -> Lineage:
        """Return the line itself: a copied object is the same release."""
        return self

    @contextmanager
    def latest(self, release: Release, seed: int | None) -> Iterator[Release]:
        """Lock the line and yield its newest state; with a seed, for studies, ``release``."""
        with _one_at_a_time:
            yield self.newest if self.newest is not None and seed is None else release

    def record(self, before: Release, made: Release, seed: int | None) -> Release:
        """Note a continued release as the newest; with a seed it begins a line of its own."""
        if seed is not None:
            return replace(made, line=Lineage())
        self.newest = replace(made, line=self)
        return self.newest


class CategoryState(NamedTuple):
    """Categories of a release, and the generator of its copies."""

    table: CategoricalTable
    copies: Copies


@dataclass(frozen=True)
class Release:
    """Copies of one table, in order of release.

    Attributes
    ----------
    original : array or DataFrame
        ``X``, as given.
    copies : tuple
        ``Y_1 … Y_M``, each like the original.
    levels : tuple of float
        Their levels.
    scheme : Scheme
        Their scheme, with its parameters.
    """

    original: Microdata = field(repr=False)
    copies: tuple[Microdata, ...] = field(repr=False)
    levels: tuple[float, ...]
    scheme: Scheme
    state: Any = field(default=None, repr=False, compare=False)
    """For extensions, in memory only: the ``CategoryState``, or the seed of secret matrices."""
    first_batch: int | None = None
    """Records of the first batch, to which noise is scaled; None if it is the only one."""
    bounds: Bounds = field(default_factory=dict, repr=False)
    """Largest change of one record by column, if stated."""
    line: Lineage = field(default_factory=Lineage, repr=False, compare=False)
    """Newest state of this release, which `extend` and `append` continue."""

    @with_plugin_errors
    def extend(self, levels: Any, seed: int | None = None) -> Release:
        """Return this release with new copies appended; earlier copies stay as they are.

        New copies are drawn given all copies that are out, also by another object or in the folder. An
        equal level gives an equal copy, if the scheme ties its copies together.

        Parameters
        ----------
        levels : list or range
            In any order, as for ``perturb``. Levels by a guarantee need stated bounds.
        seed : int, optional
            For studies; the extended object begins a line of its own. By default a fresh secret key.

        Notes
        -----
        Copies of two calls of ``perturb`` average out.
        """
        with self.line.latest(self, seed) as out:
            new = checked_levels(levels, seed, out.scheme, out.bounds)
            return self.line.record(out, _with_levels(out, new, seed), seed)

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
            records identifies them.
        seed : int, optional
            For studies. By default a fresh secret key.
        repeats : 'refuse' or 'allow'
            Treatment of released index labels. A second, independent draw at levels a and b is one at
            ``ab/(a + b)``.

        Warns
        -----
        AuditorWarning
            Records that equal released ones; columns whose variance is far from the first batch's.

        Raises
        ------
        AuditorError
            The batch is invalid or has released records, or the scheme does not perturb each record by
            itself.

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
            new = _batch_copies(out, X, seed)
            made = replace(
                out,
                original=stacked(out.original, X),
                copies=tuple(map(stacked, out.copies, new)),
                state=None,
                first_batch=out.first_batch or len(out.original),
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
    """Perturb a table into copies.

    Parameters
    ----------
    X : ndarray of shape (n, N) or (n,), DataFrame or Series
        Finite numbers, n ≥ 2, no constant column; for uniform schemes categories, with domains by
        dtype ``category`` or as observed. If a DataFrame has ``category`` columns, they are
        perturbed together, and the others pass through.
    scheme : str
        A registered scheme; ``auditor list schemes`` names them.
    levels : list of float, or mapping; left out for schemes without levels, as ``"rotation"``
        Noise multiples σ² ≥ 0 (uniform schemes: retention probabilities) in order of release, or a
        range, ``{"uniform": [0.25, 1.0], "count": 5}``. Or each copy's own guarantee,
        ``{"epsilon": [1, 0.5]}`` or ``{"gaussian-dp": [1, 0.5]}``, or the noise's size in data
        units, ``{"scale": [3, 5]}``; these set ``noise``.
    seed : int, optional
        **For studies only**: an adversary who knows or guesses table and seed removes the noise,
        and one who lacks a single cell can try its values. By default a cipher's key from the
        operating system's entropy, which is not kept.
    bounds : mapping of column → (low, high), optional
        Range of every column of numbers (``x1``, ``x2`` … of an array), from knowledge outside the
        table: for levels by a guarantee and for ``noise="bounds"``. Records outside are refused.
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
    (``auditor.schemes.base.additive``), far below the noise. If the noise is whole, they are
    multiples of the original column's recording step, and integers stay integers.
    Extend a release for more copies: two independent releases average out.

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
    made = Release(X, (), (), chosen, bounds=stated)
    return _with_levels(made, checked_levels(asked, seed, chosen, stated), seed)


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
    """Return levels as noise multiples or probabilities.

    Raises
    ------
    AuditorError
        They are invalid for this scheme; or a guarantee lacks bounds, or has noise of another size.
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
    try:
        return plain(value)
    except ScenarioError:
        return value


def prints_of(table: Table | CategoricalTable) -> ColumnPrints:
    """Return the fingerprints of a table in memory."""
    prints = ColumnPrints(table.names if isinstance(table, CategoricalTable) else table.attributes)
    if isinstance(table, CategoricalTable):
        add_codes(prints, table, table.codes)
    else:
        prints.add_numbers(table.values)
    return prints


def add_codes(prints: ColumnPrints, table: CategoricalTable, codes: Codes) -> None:
    """Add the next records of categories to fingerprints."""
    labels = (attribute.labels for attribute in table.attributes)
    prints.add_labels(zip(labels, split(table, codes), strict=True))


# -- drawing copies --------------------------------------------------------------------------------


def _with_levels(out: Release, levels: tuple[float, ...], seed: int | None) -> Release:
    every, scheme = (*out.levels, *levels), out.scheme
    new: list[Microdata]
    table: Any
    if isinstance(scheme, UniformScheme):
        table = as_categories(out.original) if out.state is None else out.state.table
        key = codes_key_of(scheme, table, seed)
        if out.state is not None:
            copies = fork(out.state.copies)  # the release that is extended stays as it is
        elif out.copies:
            copies = _resumed_codes(out, scheme, table, key)
        else:
            copies = started_codes(scheme, table, levels, key)
        new = [categories_like(out.original, table, copies.ask(level, key)) for level in levels]
        state: Any = CategoryState(table, copies)
    else:
        table, known = out._table, out.state
        check_bounds(table, out.bounds)
        lost = scheme.has_matrices and scheme.needs_levels and known is None
        if out.copies and lost and seed is None:
            raise AuditorError(
                f"{scheme.name}: the matrices of copies made elsewhere are not known; extend the release that made them"
            )
        key = key_of(scheme, table, every, seed)
        if scheme.has_matrices:
            key = replace(key, matrices=key.seed if known is None else known)
        new = _drawn_numbers(scheme, out.original, table, every, key, out.copies)
        state = key.matrices
    if seed is None and not out.copies:
        warn_and_register(prints_of(table))
    return replace(out, copies=(*out.copies, *new), levels=every, state=state)


def _batch_copies(out: Release, X: Microdata, seed: int | None) -> list[Microdata]:
    scheme = out.scheme
    if isinstance(scheme, UniformScheme):
        domain = as_categories(out.original) if out.state is None else out.state.table
        batch: Any = CategoricalTable(domain.attributes, codes_of(domain, X, X))
        scheme = scheme.over(domain)
        key = codes_key_of(scheme, batch, seed, domain.rows)
        made = started_codes(scheme, batch, out.levels, key)
        copies = [categories_like(X, batch, made.ask(level, key)) for level in out.levels]
    else:
        batch, scale = as_table(X, varied=False), out._moments.scale
        check_bounds(batch, out.bounds)
        for note in batch_notes([out._table], batch, np.diag(scale.covariance)):
            warnings.warn(AuditorWarning(note), stacklevel=4)
        key = key_of(scheme, batch, out.levels, seed, scale=scale, records_before=out._table.rows)
        if out.law is not None and out.law.serial is not None:
            last = slice(-out.law.serial.order, None)
            released = (np.asarray(copy[last], float) for copy in (out.original, *out.copies))
            key = replace(key, past=tuple(x.reshape(-1, batch.width) for x in released))
        copies = _drawn_numbers(scheme, X, batch, out.levels, key, scale=scale)
    if seed is None:
        warn_and_register(prints_of(batch))
    return copies


def _drawn_numbers(
    scheme: Scheme,
    X: Microdata,
    table: Table,
    levels: tuple[float, ...],
    key: Key,
    before: Sequence[Microdata] = (),
    scale: TableMoments | None = None,
) -> list[Microdata]:
    new = [scheme.blank(table.rows, table.width) for _ in levels[len(before) :]]
    held = HeldCopies(before, new, (table.rows, scheme.output_width(table.width)))
    with one_thread():
        for _ in drawn_blocks(scheme, table, levels, key, held, len(before), scale):
            pass
    whole = whole_columns(scheme, table, scale)
    return [numbers_like(X, scheme.to_columns(copy, table.attributes), whole) for copy in new]


def started_codes(
    scheme: UniformScheme, table: CategoricalTable, levels: Sequence[float], key: Key
) -> Copies:
    """Return the generator of new copies; warn of values that are never drawn."""
    scheme = scheme.over(table)
    if note := never_drawn(scheme.replaced_by(table.size)):
        warnings.warn(AuditorWarning(f"{scheme.name}: {note}"), stacklevel=2)
    return scheme.blocked(table.codes, table.size, key)


def _resumed_codes(
    out: Release, scheme: UniformScheme, table: CategoricalTable, key: Key
) -> Copies:
    """Return the generator of copies that follow copies made elsewhere.

    Multilevel copies continue by the bridge, which needs their neighbours only.
    """
    scheme = scheme.over(table)
    if not scheme.multilevel:
        made = scheme.blocked(table.codes, table.size, key)
        for level in out.levels:
            made.skip(level)
        return made
    pi = scheme.replaced_by(table.size)
    released = [code_blocks(codes_of(table, out.original, copy)) for copy in out.copies]
    parts = [
        MultiPertCopies(
            part, table.size, replace(key, block=k), pi, out.levels, [copy[k] for copy in released]
        )
        for k, part in enumerate(code_blocks(table.codes))
    ]
    return BlockedCopies(parts, key)


def codes_of(table: CategoricalTable, X: Microdata, copy: Microdata) -> Codes:
    """Return records in the columns of ``X`` as codes of a table's domain.

    Raises
    ------
    DataError
        A value is missing, or not in its domain.
    """
    if isinstance(X, pd.DataFrame):
        columns = [copy[name] for name in sensitive_columns(X)]
    else:
        columns = [pd.Series(part) for part in np.asarray(copy).reshape(len(copy), -1).T]
    parts = [
        of_column(column, attribute.name, attribute.labels)[1]
        for attribute, column in zip(table.attributes, columns, strict=True)
    ]
    return product(table.attributes, parts).codes.astype(code_type(table.size))
