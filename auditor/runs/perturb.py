"""Releases in memory: copies of a table, extended by levels or records.

Levels are relative to the *first* batch's covariance. Each record's noise is drawn once, so that
all batches follow the law of one release, and Theorem 4 holds. Two copies of one record, at levels
a and b, are as good as one at level ``ab/(a + b)``.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from auditor.base import AuditorError, AuditorWarning, DataError, counted, listed, pd, quoted
from auditor.base.types import Array, Coalition, Codes, Flags, Integers, Levels, Microdata, Options
from auditor.data.columns.categorical_table import Attribute, CategoricalTable, coded_columns, split
from auditor.data.columns.checks import Series, cells_where, refuse_columns
from auditor.data.table import Bounds, Table, check_bounds
from auditor.numerics.random_streams import Seed
from auditor.process.containment import with_plugin_errors
from auditor.process.environment import one_thread
from auditor.results.table_register import ColumnPrints, key_name, register_release
from auditor.scenario.arguments import (
    checked_bounds,
    checked_levels,
    make_plugin,
    parsed_levels,
    sized_by,
)
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.schemes.base.scheme import Scheme, TableMoments, table_moments
from auditor.schemes.draw import (
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


@dataclass(frozen=True, eq=False)
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
    matrices: Seed | None = field(default=None, repr=False)
    """Seed of secret matrices, in memory only."""
    first_batch: int | None = None
    """Records of the first batch, to which noise is scaled; None if the only one."""
    bounds: Bounds = field(default_factory=dict, repr=False)
    """Largest change of one record by column, if stated."""
    line: Lineage = field(default_factory=Lineage, repr=False)
    """Newest state, which `extend` and `append` continue."""

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
    (``auditor.schemes.corner_wave``), far below the noise. Under whole noise they are multiples
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
        shape = table.rows, scheme.output_width(table.width)
        out_before = [np.ascontiguousarray(copy, dtype=float).reshape(shape) for copy in before]
        with one_thread():
            for _ in drawn_blocks(
                scheme, table, every, key, [*out_before, *blank], len(before), scale
            ):
                pass
        whole = whole_columns(scheme, table, scale)
        columns = (scheme.to_columns(copy, table.attributes) for copy in blank)
        new = [numbers_like(X, copy, whole) for copy in columns]
    if seed is None and not before:
        notes += register_release(prints_of(table))
    for note in notes:
        warnings.warn(AuditorWarning(note), stacklevel=4)
    return replace(out, copies=(*before, *new), levels=every, matrices=matrices)


# -- arrays and DataFrames as tables and back, and checks of later batches -------------------------


def framed(X: Microdata) -> pd.DataFrame:
    """Microdata as a frame; columns without a name are ``x1``, ``x2`` …

    Raises
    ------
    DataError
        It is no table.
    """
    if isinstance(X, pd.DataFrame):
        return X
    if isinstance(X, pd.Series):
        return X.to_frame("x1" if X.name is None else X.name)
    try:
        cells = np.asarray(X)
    except ValueError:  # lists of different lengths
        raise DataError("the table must hold numbers only") from None
    cells = cells[:, None] if cells.ndim == 1 else cells
    if cells.ndim != 2 or cells.dtype.names:
        raise DataError(
            f"a table must be an array of rows and columns, or a DataFrame; got shape {np.shape(X)}"
        )
    frame = pd.DataFrame(cells, columns=[f"x{column + 1}" for column in range(cells.shape[1])])
    return frame.infer_objects() if cells.dtype == object else frame


def like(X: Microdata, frame: pd.DataFrame) -> Microdata:
    """Frame in the form of ``X``."""
    if isinstance(X, pd.DataFrame):
        return frame
    if isinstance(X, pd.Series):
        column = frame.iloc[:, 0]
        column.name = X.name
        return column
    return np.array(frame).reshape(np.shape(X))


def as_table(X: Microdata, varied: bool = True) -> Table:
    """Microdata as a table.

    ``varied`` requires two rows and no constant column.

    Raises
    ------
    DataError
        It is no table of finite numbers.
    """
    values, names = _numbers(X)
    if not names:
        raise DataError(f"a table must have rows and columns; got an array of shape {np.shape(X)}")
    if len(values) < (fewest := 2 if varied else 1):
        raise DataError(
            f"a table needs at least {fewest} row{'s' * (fewest > 1)}; got {len(values)}"
        )
    if np.isnan(values).any():
        raise DataError(
            f"missing values in column {names[int(np.isnan(values).any(axis=0).argmax())]!r}"
        )
    table = Table(names, values, source="array")
    table.check(varied)
    return replace(table, scanned=table.scan)  # kept if part of the table is replaced


def copy_values(copy: Microdata) -> Array:
    """Copy as an array, shape (n, columns); may be constant."""
    return _numbers(copy)[0]


def _numbers(X: Microdata) -> tuple[Array, tuple[str, ...]]:
    if np.ma.is_masked(X):
        raise DataError("the table has masked values: leave those records out, or fill them in")
    frame, is_kind = framed(X).infer_objects(), pd.api.types
    text = [
        str(name)
        for name, kind in frame.dtypes.items()
        if not is_kind.is_numeric_dtype(kind) or is_kind.is_complex_dtype(kind)
    ]
    if text:
        raise DataError(
            f"columns must hold numbers; {', '.join(map(repr, text))} do not: select the others"
        )
    names = tuple(map(str, frame.columns))
    if len(set(names)) != len(names):
        raise DataError("two columns have the same name")
    values = np.ascontiguousarray(frame.to_numpy(float, na_value=np.nan))
    infinite = np.isinf(values)
    refuse_columns(
        names,
        infinite.any(axis=0),
        lambda j: f"has {cells_where(infinite[:, j], 'infinite value')}",
    )
    return values, names


def numbers_like(X: Microdata, values: Array, whole: Flags | None = None) -> Microdata:
    """Values of shape (n, N) in the form of ``X``.

    ``whole`` columns, shape (N,), become 64-bit integers if the original's are. If columns differ
    from the original's, only the index is kept, and columns are ``y1, y2, …``.
    """
    if values.size != np.size(X):
        columns = [f"y{column}" for column in range(1, values.shape[1] + 1)]
        is_framed = isinstance(X, pd.DataFrame | pd.Series)
        return pd.DataFrame(values, index=X.index, columns=columns) if is_framed else values
    frame = framed(X)
    made = pd.DataFrame(values, index=frame.index, columns=frame.columns)
    if whole is not None:
        integer = [pd.api.types.is_integer_dtype(kind) for kind in frame.dtypes]
        made = made.astype(dict.fromkeys(frame.columns[whole & integer], np.int64))
    return like(X, made)


def in_order(original: Microdata, released: Microdata) -> Microdata:
    """Original in the release's column order, if both have names.

    Raises
    ------
    DataError
        Column names or the order of record labels differ.
    """
    if (
        not (isinstance(original, pd.DataFrame) and isinstance(released, pd.DataFrame))
        or original.shape != released.shape
    ):
        return original
    if set(original.columns) != set(released.columns):
        raise DataError(
            f"the original must have the columns that were released: {listed(list(map(str, released.columns)))}"
        )
    mine, theirs = original.index, released.index
    if mine.is_unique and theirs.is_unique and not mine.equals(theirs) and mine.isin(theirs).all():
        raise DataError(
            "the original's records are in another order than those released, by their index; sort them alike"
        )
    return original[list(released.columns)]


def sensitive_columns(X: pd.DataFrame) -> list[Any]:
    """Columns to perturb: dtype ``category`` if any, else all."""
    declared = [name for name, kind in X.dtypes.items() if isinstance(kind, pd.CategoricalDtype)]
    return declared or list(X.columns)


def as_categories(X: Microdata) -> CategoricalTable:
    """Microdata as categories, with domains declared by dtype or observed.

    Raises
    ------
    DataError
        There are no records, or values are missing.
    """
    frame = framed(X)
    columns = sensitive_columns(frame)
    if not columns or frame.empty:
        raise DataError("a table needs at least one record and one column")
    return coded_columns(frame[columns].items(), {})


def categories_like(X: Microdata, table: CategoricalTable, codes: Codes) -> Microdata:
    """Product values in the form, dtypes and other columns of ``X``."""
    copy = framed(X).copy()
    columns = zip(sensitive_columns(copy), table.attributes, split(table, codes), strict=True)
    for name, attribute, part in columns:
        copy[name] = _typed(attribute, part, copy[name].dtype)
    made = like(X, copy)
    return made.astype(np.asarray(X).dtype) if isinstance(made, np.ndarray) else made


def _typed(attribute: Attribute, codes: Integers, kind: Any) -> Any:
    if isinstance(kind, pd.CategoricalDtype) and attribute.labels == tuple(kind.categories):
        return pd.Categorical.from_codes(codes, dtype=kind)
    labels = pd.Index(attribute.labels, tupleize_cols=False)
    return pd.Series(labels.take(codes).array).astype(kind).array


FAR = 2.0
"""Ratio of a batch's variance to the first one's, or its inverse, that causes a warning."""
FEWEST = 100
"""Fewest records for that warning: a ratio of 2 is then five standard errors from 1 for normal
data.
"""
TWICE = "a record that is perturbed twice has noise of its own in each copy, and these average out"


def batch_like(original: Microdata, X: Microdata) -> Microdata:
    """Batch with the original's column order and category types.

    Raises
    ------
    DataError
        Its columns, categories or kind differ from the original's.
    """
    mine, frame = framed(original), framed(X)
    is_framed = isinstance(X, pd.DataFrame | pd.Series)
    if isinstance(original, pd.DataFrame | pd.Series) != is_framed or np.ndim(original) != np.ndim(
        X
    ):
        raise DataError(
            "a batch must be given in the form of the records before it: all arrays, or all of pandas, with as many dimensions"
        )
    if isinstance(X, pd.Series):
        frame = frame.set_axis(mine.columns, axis=1)
    if sorted(map(str, frame)) != sorted(map(str, mine)):
        raise DataError(
            f"a batch must have the columns of the records before it: {listed(list(map(str, mine)))}"
        )
    if not is_framed:
        return X
    return like(original, frame[list(mine)].apply(lambda c: _in_type(c, mine[c.name].dtype)))


def _in_type(column: Series, kind: Any) -> Series:
    """Column as declared categories; pandas would blank others."""
    if not isinstance(kind, pd.CategoricalDtype):
        return column
    other = int((~column.isin(kind.categories)).sum())
    if other:
        raise DataError(
            f"column {quoted(column.name)} has {counted(other, 'record')} outside the declared domain"
        )
    return column.astype(kind)


def stacked(before: Microdata, X: Microdata) -> Microdata:
    """Records followed by a batch; running labels continue."""
    if isinstance(before, pd.DataFrame | pd.Series):
        return pd.concat([before, X], ignore_index=_counts(before.index) and _counts(X.index))
    return np.concatenate([np.asarray(before), np.asarray(X)])


def _counts(index: pd.Index[Any]) -> bool:
    return isinstance(index, pd.RangeIndex)


def check_labels(original: Microdata, X: Microdata, allowed: bool) -> None:
    """Refuse records already released, by labels that are no running index.

    Raises
    ------
    AuditorError
        Some are, and not ``allowed``; else a warning counts them.
    """
    if (
        not isinstance(original, pd.DataFrame | pd.Series)
        or _counts(original.index)
        or _counts(X.index)
    ):
        return
    refuse_repeats(
        int(X.index.isin(original.index).sum()), len(X), "label", allowed, "say repeats='allow'"
    )


def refuse_repeats(
    repeated: int, records: int, identifier: str, allowed: bool, remedy: str
) -> None:
    """Refuse a batch with known records, or warn if allowed.

    Raises
    ------
    AuditorError
        It has some, not allowed.
    """
    if not repeated:
        return
    found = f"{repeated:,} of {counted(records, 'record')} of the batch {'has' if repeated == 1 else 'have'} the {identifier} of a record "
    found += f"that is out already; {TWICE}"
    if not allowed:
        raise AuditorError(
            f"{found}: leave them out of the batch, or {remedy} if that is what you want"
        )
    warnings.warn(AuditorWarning(found), stacklevel=2)


def batch_notes(before: Sequence[Table], batch: Table, first_variances: Array) -> Iterator[str]:
    """Yield notes on a numeric batch: counts and variance ratios, no values."""
    known, new = np.concatenate([row_hashes(table) for table in before]), row_hashes(batch)
    equal, own = int(np.isin(new, known).sum()), len(known) - len(np.unique(known))
    if equal:
        chance = f"{own:,} of {counted(len(known), 'record')} before it equal another of these"
        yield f"{equal:,} of {counted(len(new), 'record')} of the batch equal one that is out already, in every column ({chance}); {TWICE}"
    if batch.rows < FEWEST:
        return
    ratios = np.diag(batch.scan.covariance) / first_variances
    for name, ratio in zip(batch.attributes, ratios.tolist(), strict=True):
        if not 1.0 / FAR <= ratio <= FAR:
            yield f"column {quoted(name)}: the batch's variance is {ratio:.2g} times the first batch's; noise keeps the "


"first batch's scale, so that levels mean another share of this batch's variance"


def row_hashes(table: Table) -> NDArray[np.uint64]:
    """64-bit hash of each record, shape (n,).

    The chance of any collision among 10⁶ records is 3·10⁻⁸.
    """
    # −0 becomes 0, which it equals
    frames = (pd.DataFrame(x + 0.0) for x in table.blocks())
    return np.concatenate([pd.util.hash_pandas_object(frame, index=False) for frame in frames])


def prints_of(table: Table | CategoricalTable) -> ColumnPrints:
    """Fingerprints of a table."""
    if isinstance(table, Table):
        prints = ColumnPrints(table.attributes)
        for x in table.blocks():
            prints.add_numbers(x)
    else:
        prints = ColumnPrints(table.names)
        prints.add_labels(table.labelled(table.codes))
    return prints


def is_other_table(part: Options, table: Table | CategoricalTable) -> bool:
    """Whether a batch's fingerprint, under the same key, is of another table."""
    same_key = part.get("fingerprint_key") == key_name()
    return same_key and prints_of(table).of_table() != part["fingerprint"]


def in_domain(table: CategoricalTable, X: Microdata, copy: Microdata) -> CategoricalTable:
    """Records in the columns of ``X`` as categories of a table's domain.

    Raises
    ------
    DataError
        A value is missing, or not in its domain.
    """
    frame = framed(copy)
    columns = frame[sensitive_columns(X)] if isinstance(X, pd.DataFrame) else frame
    named = zip(table.names, (column for _, column in columns.items()), strict=True)
    return coded_columns(
        named, {attribute.name: attribute.labels for attribute in table.attributes}
    )
