"""Audited table: columns read block by block, bounds, and its request.

Guarantees depend on the largest change of one record. A bound is external knowledge (ages lie
between 0 and 120), since the table's own extremes are private.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    GetPydanticSchema,
    model_validator,
    with_config,
)
from typing_extensions import TypedDict

from auditor.base import DataError, counted, did_you_mean, listed, nearest, pd, quoted
from auditor.base.types import Array, Flags, Indices, Pair, Plain, unprinted
from auditor.data.columns.categorical_table import (
    Bin,
    CategoricalTable,
    Domain,
    Hierarchy,
    check_hierarchies,
    split,
)
from auditor.data.columns.checks import (
    LARGEST_VARIANCE,
    RecordKeys,
    by_column,
    check_variance,
    check_varied,
    date_format,
    missing_codes,
)
from auditor.data.columns.kinds import readings
from auditor.data.columns.scan import FileRows, Grid, Resolution, Scale, Scan, resolution, scan
from auditor.numerics.blocks import row_blocks, seal
from auditor.registry.parameters import FieldError, Form, Names, Whole

LOOKED_AT = 2**16
"""First records in which missing codes are looked for."""


@unprinted
class Cut:
    """Places of records and columns in another table, ascending."""

    whole: Table
    rows: Indices
    columns: Indices


@unprinted
class Promised:
    """Records that ``make`` loads on first use, and remembers."""

    shape: tuple[int, int]
    make: Callable[[], Table]

    def __getitem__(self, rows: slice) -> Array:
        return self.make().content[rows]


class ShownColumn(NamedTuple):
    """One column in the original's records.

    ``copy`` is the first copy with it; 0 if every adversary knows it. ``values`` has shape (n,):
    numbers, codes without an order (integers), or text.
    """

    copy: int
    name: str
    values: NDArray[Any]

    def at(self, rows: Any) -> ShownColumn:
        """Column in some rows."""
        return self._replace(values=self.values[rows])


@unprinted
class Table:
    """Numeric microdata: ``n`` records (rows) by ``N`` attributes (columns).

    Attributes
    ----------
    content : ndarray of shape (n, N), FileRows or Promised
        Finite, C-contiguous float64, in data units.
    source, description, licence
        Name in the scenario, and origin.
    categorical
        Records as categories; ``N`` may then be 0.
    scanned
        Scan before standardisation.
    hierarchies, dates
        Columns as places among leaves, and as days, also in copies.
    units : ndarray of shape (n,), or None
        Each record's unit number.
    shown
        Columns that every adversary sees; of an order in time also its calendar.
    blanks : ndarray of shape (n, N), or None
        Blank cells, which hold their column's mean.
    cut
        Place in a larger table.
    dropped
        Whether records with a blank are excluded, also from copies.
    first_batch
        Records of the first batch, to which noise is scaled.
    population
        Finds the population covariance, (N, N), if stated.
    stated
        Moments that the source states, before standardisation.
    """

    attributes: tuple[str, ...]
    content: Array | FileRows | Promised
    source: str = "array"
    description: str = ""
    licence: str = ""
    categorical: CategoricalTable | None = None
    scanned: Scan | None = None
    standardized: bool = False
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict)
    dates: Mapping[str, str | None] = field(default_factory=dict)
    keys: RecordKeys | None = None
    units: Indices | None = None
    shown: tuple[ShownColumn, ...] = ()
    blanks: Flags | None = None
    cut: Cut | None = None
    dropped: bool = False
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    first_batch: int | None = None
    population: Callable[[], Array | None] | None = None
    stated: Pair | None = None

    @property
    def rows(self) -> int:
        """Number of records ``n``."""
        return int(self.content.shape[0])

    @property
    def width(self) -> int:
        """Number of attributes ``N``."""
        return int(self.content.shape[1])

    @property
    def streamed(self) -> bool:
        """Whether the records stay in their file."""
        return not isinstance(self.content, np.ndarray | Promised) or (
            self.categorical is not None and self.categorical.streamed
        )

    @property
    def values(self) -> Array:
        """All records, (n, N); reads a large file into memory each time."""
        return self.content[:]

    @property
    def unit_size(self) -> int:
        """Largest number of records in a unit."""
        return 1 if self.units is None else int(np.bincount(self.units).max())

    def varying_in_units(self, categories: bool = False) -> list[str]:
        """Columns of numbers, or of categories, that vary within units."""
        assert self.units is not None
        data, columns = self.categorical, zip(self.attributes, self.values.T, strict=True)
        if categories and data is not None:
            columns = zip(data.names, split(data, data.codes), strict=True)
        _, first, units = np.unique(self.units, return_index=True, return_inverse=True)
        return [name for name, x in columns if (x != x[first][units]).any()]

    def of_units(self, categories: bool) -> Table:
        """First record of every unit, for copies with one noise per unit.

        ``categories`` are perturbed, or else numbers.

        Raises
        ------
        DataError
            There are no units, or a perturbed column varies within them.
        """
        if self.units is None or self.first_batch is not None:
            raise DataError("per-unit needs `unit: COLUMN` under `data:`, and no `first-batch`")
        if varying := self.varying_in_units(categories):
            raise DataError(
                f"per-unit: {listed(varying)} varies within units, so it has no one value to perturb; "
                "leave it out here, or draw files by `auditor perturb --unit` and audit those"
            )
        first = np.sort(np.unique(self.units, return_index=True)[1])
        return self.part(first, np.arange(self.width))

    @property
    def whole(self) -> Table:
        """The table that has this part, or itself."""
        return self if self.cut is None else self.cut.whole

    def part(self, rows: Indices, columns: Indices) -> Table:
        """Some records and columns, by ascending places; in memory unless all."""
        if len(rows) == self.rows and len(columns) == self.width:
            return self
        data, content = self.categorical, self.values[np.ix_(rows, columns)]
        seal(content)
        return replace(
            self._bare(content, rows),
            attributes=tuple(self.attributes[j] for j in columns),
            categorical=None
            if data is None
            else CategoricalTable(data.attributes, data.codes[rows]),
            blanks=None if self.blanks is None else self.blanks[np.ix_(rows, columns)],
            cut=Cut(self, rows, columns),
            standardized=self.standardized,
        )

    def _bare(self, content: Array, rows: Any) -> Table:
        names = "categorical scanned keys blanks cut first_batch population stated".split()
        whole: Plain = dict.fromkeys(names)
        units = None if self.units is None else self.units[rows]
        shown = self.shown_in(rows)
        return replace(self, content=content, units=units, shown=shown, standardized=False, **whole)

    def shown_in(self, rows: Any) -> tuple[ShownColumn, ...]:
        """Shown columns of some records."""
        return tuple(each.at(rows) for each in self.shown)

    def cut_out(self, values: NDArray[Any]) -> NDArray[Any]:
        """Part of the whole table's values per record, or record and column."""
        if self.cut is None:
            return values
        return (
            values[self.cut.rows]
            if values.ndim == 1
            else values[np.ix_(self.cut.rows, self.cut.columns)]
        )

    def read(self, start: int, stop: int) -> Array:
        """Rows ``start:stop``, (stop − start, N), read-only."""
        return self.content[start:stop]

    def check(self, varied: bool = True) -> None:
        """Refuse extreme variances, and constant columns if they must vary."""
        variance = np.diag(self.scan.covariance)
        if varied:
            check_varied(self.attributes, self.scan.low, self.scan.high, variance)
        else:
            check_variance(self.attributes, variance)

    def blocks(self) -> Iterator[Array]:
        """Yield records block by block, in order."""
        return (self.read(*block) for block in row_blocks(self.rows, self.width))

    def shares(self, column: int) -> Pair:
        """A column's distinct values, ascending, and their shares."""
        found = [np.unique(x[:, column], return_counts=True) for x in self.blocks()]
        values, place = np.unique(np.concatenate([each for each, _ in found]), return_inverse=True)
        return values, np.bincount(place, np.concatenate([count for _, count in found])) / self.rows

    @cached_property
    def scan(self) -> Scan:
        """Scan of the records before standardisation."""
        if isinstance(self.content, Promised):
            return self.content.make().scan
        return scan(self.read, self.rows, self.width) if self.scanned is None else self.scanned

    @cached_property
    def resolution(self) -> Resolution:
        """Recording steps, in standard deviations for a standardised table."""
        if not self.standardized:
            return resolution(self.blocks, self.rows, self.width)
        scale = Scale.of(self.scan)
        found = resolution(lambda: map(scale.undone, self.blocks()), self.rows, self.width)
        return replace(found, steps=found.steps / scale.std)

    @cached_property
    def notes(self) -> list[str]:
        """Questions to the owner on the first records."""
        return (
            []
            if self.standardized
            else missing_codes(self.attributes, self.read(0, min(self.rows, LOOKED_AT)))
        )

    def moments(self) -> Pair:
        """Exact mean, (N,), and covariance with divisor n, (N, N)."""
        mean, K = self.stated or (self.scan.mean, self.scan.covariance)
        if not self.standardized:
            return mean, K
        std = np.sqrt(np.diag(K))
        return np.zeros(self.width), K / np.outer(std, std)

    def head(self, rows: int) -> Table:
        """First ``rows`` records as a table in memory."""
        blanks = None if self.blanks is None else self.blanks[:rows]
        return replace(self._bare(self.read(0, rows), slice(rows)), blanks=blanks)

    @property
    def key_columns(self) -> list[ShownColumn]:
        """Readings of the key, which every adversary sees."""
        if self.keys is None:
            return []
        found = readings(pd.Series(self.keys.cells))
        return [ShownColumn(0, self.keys.name, values) for _, values in found]

    def fingerprint(self) -> str:
        """SHA-256 over names, shape and values."""
        shape = (self.rows, self.width)
        digest = hashlib.sha256(
            repr((self.attributes, shape, self.standardized, self.scan.digest)).encode()
        )
        if self.categorical is not None:
            digest.update(self.categorical.fingerprint().encode())
        if self.keys is not None:
            digest.update(self.keys.digest.encode())
        for also in (self.units, self.blanks):
            if also is not None:
                digest.update(also.tobytes())
        if self.first_batch is not None:
            digest.update(f"first batch {self.first_batch}".encode())
        return digest.hexdigest()


class Audited(NamedTuple):
    """Audited part of a table, with notes on the rest.

    ``understated``: some of the rest is less perturbed, so figures understate the exposure.
    """

    table: Table
    notes: tuple[str, ...] = ()
    understated: bool = False


Bounds = Mapping[str, tuple[float, float]]
"""Column → its lowest and highest value."""


LARGEST_SPAN = math.sqrt(LARGEST_VARIANCE)
"""Limit because squared spans are divided by noise variances up to `LARGEST_VARIANCE`."""


def check_bounds(table: Table, bounds: Bounds) -> None:
    """Refuse bounds that do not fit the numeric columns.

    Raises
    ------
    DataError
        A column is unknown or has no bounds, or records lie outside.
    """
    if not bounds:
        return
    for name in bounds:
        if name not in table.attributes:
            raise DataError(
                f"there is no audited column of numbers {quoted(name)}{nearest(name, table.attributes)}",
                ("bounds", name),
            )
    unstated = [name for name in table.attributes if name not in bounds]
    if unstated:
        raise DataError(
            f"bounds must name every column of numbers, as a guarantee is of whole records; {listed(unstated)} has none",
            ("bounds",),
        )
    low, high = np.array([bounds[name] for name in table.attributes]).T
    if ((table.scan.low < low) | (table.scan.high > high)).any():
        outside = sum(((x < low) | (x > high)).sum(axis=0) for x in table.blocks())
        wrong = {n: k for n, k in zip(table.attributes, outside, strict=True) if k}
        name, *others = wrong
        more = f", and so do {listed(others)}" * bool(others)
        raise DataError(
            f"column {quoted(name)} has {counted(int(wrong[name]), 'record')} outside the stated bounds{more}; "
            "widen them, or clip the data beforehand",
            ("bounds", name),
        )


def spans(attributes: tuple[str, ...], bounds: Bounds) -> Array | None:
    """Largest change of one record, ``Δ = high − low``, (N,); None without bounds."""
    if not bounds or not attributes:
        return None
    return np.array([bounds[name][1] - bounds[name][0] for name in attributes])


@unprinted
class Recorded:
    """Recording steps (NaN if none) and largest absolute values, shape (N,)."""

    attributes: tuple[str, ...]
    steps: Array
    largest: Array


def recorded(table: Table) -> Recorded:
    """Recording steps of a table's columns.

    Standardised columns have none; a column of zeros has step 1. Cells equal to the mean, perhaps
    imputed, are ignored if no step fits.
    """
    largest = table.scan.largest
    if table.standardized:
        return Recorded(table.attributes, np.full(table.width, np.nan), largest)
    steps = table.resolution.steps.copy()
    for j in np.flatnonzero(np.isnan(steps)):
        steps[j] = 1.0 if largest[j] == 0 else _step_but_for_the_mean(table, int(j))
    return Recorded(table.attributes, steps, largest)


def _step_but_for_the_mean(table: Table, j: int) -> float:
    grid, mean = Grid(), float(table.scan.mean[j])
    spread = float(table.scan.high[j] - table.scan.low[j])
    for x in (block[:, j] for block in table.blocks()):
        grid.add(x[np.abs(x - mean) > 1e-9 * spread])
        if grid.continuous:
            break
    return grid.step


T = TypeVar("T")
REMEMBERED = 8
"""Most tables and their copies that a process keeps."""
_remembered: dict[Hashable, Any] = {}


def remembered(key: Hashable, find: Callable[[], T]) -> T:
    """Result for a key, found once; the key must contain all that it depends on."""
    if key not in _remembered:
        _remembered[key] = find()
        for oldest in list(_remembered)[:-REMEMBERED]:
            del _remembered[oldest]
    found: T = _remembered[key]
    return found


# -- A scenario's request for data: selection, gaps, scale and categories --------------------------


MOST_ROWS = 10**9
"""Limit against typing errors: two columns would need 16 GB."""


def _pair(ends: Any) -> Any:
    if isinstance(ends, list | tuple) and len(ends) == 2:
        return tuple(ends)
    raise ValueError("must be [low, high]")


def _rising(ends: tuple[float, float]) -> tuple[float, float]:
    if not 0 < ends[1] - ends[0] <= LARGEST_SPAN:
        raise ValueError(f"needs low < high, at most {LARGEST_SPAN:g} apart")
    return ends


Ends = Annotated[tuple[float, float], BeforeValidator(_pair), AfterValidator(_rising)]
"""Lowest and highest value of a column."""
DateFormat = Annotated[str, AfterValidator(date_format)]


def _by_column(form: Any) -> BeforeValidator:
    return BeforeValidator(by_column, json_schema_input_type=form | None)


@with_config(ConfigDict(extra="forbid"))
class Relative(TypedDict):
    """Tolerance as a share of the true value."""

    relative: Annotated[float, Field(gt=0, le=1e9)]


Tolerances = dict[str, Annotated[float, Field(gt=0, le=1e300)] | Relative]


NOT_AUDITED = {
    "order": ": records are put in the order of a column that is not",
    "unit": ": units are named by a column that is not",
    "weight": ": records are weighed by a column that is not",
    "shown": "",
}


def _rounded_or_public(stated: Any) -> Any:
    # `moments` and `figures` of earlier scenarios are read as `rounded`
    return "public" if stated == "public" else "rounded"


class DataUse(Form):
    """The table to audit: section ``data`` of a scenario, for every source."""

    source: str
    """a registered source, or a path to a file of data"""
    columns: Names | None = None
    rows: Annotated[Whole, Field(ge=2, le=MOST_ROWS)] | None = None
    missing: Literal["refuse", "drop", "mean", "value"] = "refuse"
    blank: list[str | int | float] | None = None
    """words and numbers of a file that mean no value; default NA, None …"""
    sheet: str | None = None
    """sheet of an Excel workbook; default the first"""
    standardize: bool = False
    disclosure: Annotated[
        Literal["rounded", "public", "moments", "figures"], AfterValidator(_rounded_or_public)
    ] = "rounded"
    order: str | None = None
    """column that orders the records; not audited"""
    key: str | None = None
    """column that identifies records, to join copies; not audited"""
    unit: str | None = None
    """column that identifies protected units, as households; not audited"""
    weight: str | None = None
    """column of weights of records in weighted figures; not audited"""
    shown: Names = Field([])
    """columns that every copy shows unperturbed, as a place; not audited"""
    first_batch: Annotated[Whole, Field(ge=2)] | None = None
    """records of the first batch, to which noise is scaled"""
    bin: Annotated[dict[str, Bin], _by_column(dict[str, Bin])] = Field({})
    """columns cut into classes, for uniform schemes"""
    categorical: Annotated[
        dict[str, Domain | None], _by_column(str | list[str] | dict[str, Domain | None])
    ] = Field({})
    """columns of categories: names, or names with their domains"""
    hierarchies: Annotated[
        Plain, _by_column(dict[str, Plain]), AfterValidator(check_hierarchies)
    ] = Field({})
    """nested mappings with lists of values at the ends, by column"""
    dates: Annotated[
        dict[str, DateFormat | None], _by_column(str | list[str] | dict[str, str | None])
    ] = Field({})
    """columns of dates: names, or names with the format of their text"""
    bounds: Annotated[dict[str, Ends], _by_column(dict[str, Ends])] = Field({})
    """range of each column's possible values, [low, high], for guarantees"""
    tolerance: Annotated[Plain, GetPydanticSchema(lambda _, schema: schema(Tolerances))] = Field({})
    """largest close error by column, or {relative: share}; default IQR/10"""
    parameters: Plain = Field({})
    """the source's own, which a scenario has beside the others"""

    @model_validator(mode="after")
    def _compatible(self) -> DataUse:
        for name in self.dates:
            if name in self.categorical:
                raise FieldError("cannot be taken as categories as well", "dates", name)
        for name in self.hierarchies:
            if self.standardize or name in {**self.bin, **self.categorical, **self.dates}:
                why = "cannot be binned, standardized or taken as categories or dates as well"
                raise FieldError(why, "hierarchies", name)
        beside = (*self.dates, *self.hierarchies, *self.categorical)
        audited = (*(self.columns or ()), *beside)
        for of in ("bounds", "tolerance") if self.columns is not None else ():
            for name in getattr(self, of):
                if name not in audited:
                    hint = did_you_mean(name, audited)
                    raise FieldError(f"names a column that is not audited{hint}", of, name)
        if self.bounds and self.standardize:
            why = (
                "are stated in the data's own units, which `standardize` takes away; leave one out"
            )
            raise FieldError(why, "bounds")
        for of, why in NOT_AUDITED.items():
            value = getattr(self, of)
            for name in value if isinstance(value, list) else [value]:
                if name in (*audited, *self.bin):
                    raise FieldError(f"names column {name!r}, which is audited{why}", of)
        return self

    def spec(self) -> Plain:
        """Request in scenario form, with defaults."""
        given = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        own = given.pop("parameters")
        stated = {name: value for name, value in given.items() if value or name == "standardize"}
        return {"source": self.source, "columns": None, "rows": None, **stated, **own}


def is_file(source: str) -> bool:
    """Whether a scenario's ``source`` is a path, not a registered source."""
    return "/" in source or "\\" in source or bool(Path(source).suffix)
