"""Finishing of drawn copies: bounds, rounding, and blank cells.

Each copy is finished alone. It reveals no more to a recipient of one copy, because the result is a
function of the copy, of public bounds and steps, and of the blank cells. Theorem 4 is exact for
several copies as drawn, and no longer for these (docs/release.md, with measured gains).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.base.errors import AuditorError
from auditor.base.text import counted, listed, nearest, quoted
from auditor.base.types import Array, Indices
from auditor.data.columns.categorical_table import CategoricalTable, of_column, product
from auditor.data.columns.checks import check_plain, floats
from auditor.data.columns.dates import as_dates, in_days, plain_days
from auditor.data.columns.resolution import MOST_PLACES, resolution
from auditor.data.raw_columns import InStep, Stored
from auditor.data.table import Table
from auditor.process.deferred import pa, pd
from auditor.schemes.base.scheme import Scheme

Blank = Literal["refuse", "drop", "mean", "keep"]
EXACT = 2.0**53
"""Up to here every whole number is a double."""
SECOND = 1 / 86_400
"""In days; finer than any fraction of a day with six places."""
Bounds = Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class Treatment:
    """An owner's requests on blank cells, rounding and bounds.

    Attributes
    ----------
    missing : 'refuse', 'drop', 'mean' or 'keep'
        Treatment of blank cells: an error; their records are in no copy; the column's mean is
        perturbed in their place; or they are blank in every copy.
    rounded : bool
        Whether copies are rounded to each column's resolution.
    bounds : mapping
        Column → lowest and highest written value, empty for none; column ``""`` means every column
        of numbers.
    forms : mapping
        Date columns → the format of their text, if not ISO 8601; rounded copies have it, too.
    steps : mapping, optional
        Steps that earlier copies were rounded to; by default the values' own.
    unit : str, optional
        Column that identifies units. All records of one have the noise of its first record in
        columns that are constant within every unit.
    """

    missing: Blank = "refuse"
    rounded: bool = False
    bounds: Bounds = field(default_factory=dict)
    forms: Mapping[str, str] = field(default_factory=dict)
    steps: Mapping[str, float] | None = None
    unit: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether copies are written as drawn."""
        return not (self.rounded or self.bounds or self.missing == "keep" or self.unit)

    def check(self, scheme: Scheme) -> None:
        """Refuse treatments that a scheme's copies do not allow."""
        categorical = scheme.engine == "categorical"
        if (self.rounded or self.bounds) and categorical:
            raise AuditorError(
                f"copies of {scheme.name} are of categories, which are neither rounded nor cut off at bounds"
            )
        if self.unit and not scheme.adds_noise:
            raise AuditorError(
                f"one noise per unit is for noise that is added; {scheme.name} adds none"
            )
        if not (self.is_plain or categorical or scheme.adds_noise):
            raise AuditorError(
                f"copies of {scheme.name} are not the table's columns plus noise: none is rounded, cut off or left blank"
            )


AS_DRAWN = Treatment()


class Finish(NamedTuple):
    """Finishing of one column in every copy.

    Attributes
    ----------
    kind : Stored
    low, high : float
        Infinite for none.
    step : float
        Rounding step; NaN for none.
    blanks : bool
        Whether blank cells may be among its whole numbers.
    form : str or None
        Format of dates as text, if not ISO 8601.
    """

    kind: Stored
    low: float
    high: float
    step: float
    blanks: bool
    form: str | None = None

    @property
    def is_bare(self) -> bool:
        """Whether numbers stay as drawn."""
        return math.isnan(self.step) and self.is_open

    @property
    def is_open(self) -> bool:
        """Whether no bound cuts numbers off."""
        return math.isinf(self.low) and math.isinf(self.high)

    def finished(self, column: pd.Series[Any]) -> pd.Series[Any]:
        """Return one column of a copy; a rounded one has the kind of the original."""
        x = np.clip(column.to_numpy(dtype=np.float64), self.low, self.high)
        if math.isnan(self.step):
            return pd.Series(x, dtype=column.dtype)
        x = np.rint(x / self.step) * self.step
        if self.kind in ("date", "time"):
            return self._dates(column.name, x)
        x = np.round(x, _places(self.step))
        if self.step % 1 or self.kind == "float":
            return pd.Series(x, dtype=column.dtype)
        if np.abs(x).max(initial=0.0) > EXACT:
            raise AuditorError(
                f"column {quoted(column.name)}: the noise makes whole numbers beyond 2^53; do not round it"
            )
        return pd.Series(x.astype(np.int64), dtype="Int64" if self.blanks else np.int64)

    def _dates(self, name: Any, days: Any) -> pd.Series[Any]:
        try:
            dates = as_dates(days, whole=self.step % 1 == 0)
        except ValueError as error:
            raise AuditorError(
                f"column {quoted(name)}: the noise makes {error}; state bounds for it, or do not round it"
            ) from None
        if self.form is not None:
            dates = dates.dt.strftime(self.form)
        elif self.kind == "date":
            dates = dates.astype(pd.ArrowDtype(pa.date32()))
        return dates


def finishes(
    table: Table,
    kinds: Mapping[str, Stored],
    raw: Callable[[], Iterable[pd.DataFrame]],
    asked: Treatment,
    whole: NDArray[np.bool_] | None = None,
) -> dict[str, Finish]:
    """Return the finishing of each column; ``raw`` yields the columns as stored.

    Columns that are drawn ``whole`` are written as whole numbers, even unrounded; dates are days.

    Raises
    ------
    AuditorError
        Bounds name an unknown column, or are invalid.
    """
    names = table.attributes
    if unknown := [name for name in asked.bounds if name and name not in names]:
        raise AuditorError(
            f"bounds: no column {quoted(unknown[0])} is perturbed{nearest(unknown[0], names)}"
        )
    steps: Mapping[str, float] = {}
    if asked.rounded:
        steps = _steps(table, raw) if asked.steps is None else asked.steps
    elif whole is not None:
        steps = {name: 1.0 for name, each in zip(names, whole, strict=True) if each}
    found = {}
    for name in names:
        kind, step = kinds[name], steps.get(name, math.nan)
        if kind in ("date", "time") and not asked.rounded:
            step = math.nan
        if kind == "time" and asked.rounded and math.isnan(step):
            step = SECOND
        low, high = _bounds(name, kind, asked.bounds)
        if not math.isnan(step):  # inwards: rounding must not cross the bounds
            low = math.ceil(low / step - 1e-9) * step if low > -math.inf else low
            high = math.floor(high / step + 1e-9) * step if high < math.inf else high
        if low > high:
            raise AuditorError(
                f"bounds of column {quoted(name)}: none of its values, as they are rounded, lies between"
            )
        found[name] = Finish(kind, low, high, step, asked.missing == "keep", asked.forms.get(name))
    return found


def _steps(table: Table, raw: Callable[[], Iterable[pd.DataFrame]]) -> dict[str, float]:
    """Return each column's resolution; a blank cell counts as 0, a multiple of any step."""
    names = list(table.attributes)
    found = resolution(
        lambda: (np.nan_to_num(floats(in_days(frame[names], table.dates))) for frame in raw()),
        table.rows,
        table.width,
    )
    return dict(zip(names, found.steps.tolist(), strict=True))


def _bounds(name: str, kind: Stored, bounds: Bounds) -> tuple[float, float]:
    none = ("", "")
    low, high = bounds.get(name, none if kind in ("date", "time") else bounds.get("", none))
    found = _bound(name, kind, low, -math.inf), _bound(name, kind, high, math.inf)
    if found[0] > found[1]:
        raise AuditorError(f"bounds of column {quoted(name)}: the lower is above the upper")
    return found


def _bound(name: str, kind: Stored, text: str, none: float) -> float:
    if not text.strip():
        return none
    expected = "a number"
    if kind in ("date", "time"):
        expected = "a date, as 2020-01-31"
        days = plain_days(pd.Series([text.strip()]))
        if days is not None:
            return float(days[0])
    else:
        with suppress(ValueError):
            if not math.isnan(number := float(text)):
                return number
    raise AuditorError(f"bounds of column {quoted(name)}: each must be {expected}; got {text!r}")


def _places(step: float) -> int:
    scaled = (step * 10**places for places in range(MOST_PLACES))
    exact = (places for places, x in enumerate(scaled) if abs(x - round(x)) < 1e-9)
    return next(exact, MOST_PLACES)


def finished(
    parts: Iterator[Sequence[pd.DataFrame]], columns: Mapping[str, Finish], blanks: InStep | None
) -> Iterator[Sequence[pd.DataFrame]]:
    """Yield finished copies, block by block."""
    for copies in parts:
        if columns:
            copies = [
                pd.DataFrame({name: columns[str(name)].finished(copy[name]) for name in copy})
                for copy in copies
            ]
        if blanks is not None:
            blank = blanks.take(len(copies[0])).astype(bool)
            copies = [
                pd.DataFrame({name: copy[name].mask(blank[name].to_numpy()) for name in copy})
                for copy in copies
            ]
        yield copies


def filled_categories(
    frames: Iterable[pd.DataFrame], domains: Mapping[str, Sequence[Any]]
) -> CategoricalTable:
    """Return categories in memory, each column's commonest value in place of blanks.

    Parameters
    ----------
    frames : iterable of DataFrames
    domains : mapping
        Column → its possible values; by default as observed.

    Raises
    ------
    AuditorError
        A column has no values at all, or some outside its domain.
    """
    frame = pd.concat(list(frames), ignore_index=True)
    parts = []
    for name, column in frame.items():
        if not column.notna().any():
            raise AuditorError(f"column {quoted(name)} has no values at all")
        check_plain(str(name), column)
        filled = column.fillna(column.mode()[0])
        parts.append(of_column(filled, str(name), domains.get(str(name))))
    return product([attribute for attribute, _ in parts], [codes for _, codes in parts])


def shared_in_units(
    parts: Iterator[Sequence[pd.DataFrame]], units: Indices, columns: Sequence[str]
) -> Iterator[Sequence[pd.DataFrame]]:
    """Yield copies whose records have the cells of their unit's first record in some columns.

    Parameters
    ----------
    units : ndarray of shape (n,)
        Unit of each record, from 0.
    columns : sequence of str
        Constant within every unit of the original.
    """
    start, kept = 0, dict[int, Array]()
    for copies in parts:
        which = units[start : start + len(copies[0])]
        start += len(which)
        number, first = np.unique(which, return_index=True)
        for place, copy in enumerate(copies):
            cells = copy[list(columns)].to_numpy()
            seen = kept.setdefault(place, np.full((units.max() + 1, len(columns)), np.nan))
            new = np.isnan(seen[number]).all(axis=1)
            seen[number[new]] = cells[first[new]]
            copy[list(columns)] = seen[which]
        yield copies


def constant_in_units(table: Table) -> list[str]:
    """Return the columns that are constant within every unit of a table."""
    assert table.units is not None
    frame = pd.DataFrame(table.values, columns=list(table.attributes))
    varies = frame.groupby(table.units).nunique().max() > 1
    return [name for name in table.attributes if not varies[name]]


def post_processing(
    columns: Mapping[str, Finish], bounds: Bounds, unit: str | None = None
) -> dict[str, Any]:
    """Return a manifest's entry on rounding, bounds and units."""
    said: dict[str, Any] = {}
    steps = {name: finish.step for name, finish in columns.items() if not math.isnan(finish.step)}
    if steps:
        said["round"] = steps
    if bounds:
        said["clip"] = {name or "*": list(pair) for name, pair in bounds.items()}
    if unit:
        said["unit"] = unit
    return said


def notes_of(columns: Mapping[str, Finish], asked: Treatment) -> Iterator[str]:
    """Yield warnings for the owner about rounding and bounds."""
    left = [name for name, finish in columns.items() if math.isnan(finish.step)]
    if asked.rounded and left:
        yield f"not rounded: {listed(left)}, as {'it has' if len(left) == 1 else 'they have'} no resolution"
    if asked.rounded or asked.bounds:
        yield "copies that are rounded or cut off are not those that Theorem 4 is exact for: audit the files (scheme: published)"


def notes_of_blanks(
    missing: Blank, records: int, incomplete: int, cells: Mapping[str, int]
) -> Iterator[str]:
    """Yield a warning about the treatment of blank cells."""
    total = sum(cells.values())
    if not total:
        return
    most = quoted(max(cells, key=lambda name: cells[name]))
    where = f"{counted(total, 'blank cell')} in {incomplete:,} of {counted(records, 'record')}, most in column {most}"
    yield {
        "drop": f"dropped: {where}; these records are in no copy",
        "mean": f"filled in: {where}; the column's mean was perturbed in their place. A value near it tells that "
        "the cell was blank: audit with `missing: mean` (blank_guessed). One record moves all filled cells",
        "keep": f"kept blank in every copy: {where}; every recipient sees which cells are blank, and of whom if records can be told",
    }[missing]
