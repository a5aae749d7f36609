"""What is done to copies once they are drawn: cut off at bounds, rounded to the original's resolution, and blank where it is blank.

All of it is done to a copy alone, knowing nothing of the others. A recipient of one copy learns
nothing more by it, as what is done is a function of the copy, of public bounds and steps, and of
which cells are blank. Of several copies Theorem 4 is exact as they were drawn, and no longer of
these: see docs/release.md for what the self-test measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.data.columns.categorical_table import CategoricalTable, of_column, product
from auditor.data.columns.checks import check_plain, floats
from auditor.data.columns.dates import as_dates, in_days, plain_days
from auditor.data.columns.resolution import MOST_PLACES, resolution
from auditor.data.raw_columns import InStep, Stored
from auditor.data.table import Table
from auditor.errors import AuditorError
from auditor.process.deferred import pa, pd
from auditor.schemes.base.scheme import Scheme
from auditor.text.column_names import counted, listed, nearest, quoted

Blank = Literal["refuse", "drop", "mean", "keep"]
EXACT = 2.0**53
"""Up to here every whole number is a double."""
Bounds = Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class Treatment:
    """What an owner asks for beside noise.

    Attributes
    ----------
    missing : 'refuse', 'drop', 'mean' or 'keep'
        What is done about blank cells: nothing, and there may be none; records that have one are in
        no copy; the column's mean is perturbed in their place; or they are blank in every copy.
    rounded : bool
        Whether copies are rounded to each column's resolution.
    bounds : mapping
        Column → lowest and highest value of its copies as they are written, either of them empty
        for none; column ``""`` stands for every column of numbers.
    forms : mapping
        Columns of dates → the format of their text, where that is not ISO 8601; copies that are
        rounded have it, too.
    steps : mapping, optional
        What columns are rounded to, where earlier copies have been; else what their values lie on.
    """

    missing: Blank = "refuse"
    rounded: bool = False
    bounds: Bounds = field(default_factory=dict)
    forms: Mapping[str, str] = field(default_factory=dict)
    steps: Mapping[str, float] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether copies are written as they are drawn."""
        return not (self.rounded or self.bounds or self.missing == "keep")

    def check(self, scheme: Scheme) -> None:
        """Refuse what cannot be done to a scheme's copies: a rotated column has no resolution, no bounds and no blanks of its own."""
        categorical = scheme.engine == "categorical"
        if (self.rounded or self.bounds) and categorical:
            raise AuditorError(
                f"copies of {scheme.name} are of categories, which are neither rounded nor cut off at bounds"
            )
        if not self.is_plain and not categorical and not scheme.adds_noise:
            raise AuditorError(
                f"copies of {scheme.name} are not the table's columns plus noise: none is rounded, cut off or left blank"
            )


AS_DRAWN = Treatment()


class Finish(NamedTuple):
    """What is done to one column of every copy.

    Attributes
    ----------
    kind : Stored
    low, high : float
        Infinite for none.
    step : float
        What it is rounded to a whole multiple of; NaN for nothing.
    blanks : bool
        Whether blank cells may be among its whole numbers.
    form : str or None
        Of dates that are written as text of another format than ISO 8601.
    """

    kind: Stored
    low: float
    high: float
    step: float
    blanks: bool
    form: str | None = None

    @property
    def is_bare(self) -> bool:
        """Whether the numbers are left as they are drawn."""
        return math.isnan(self.step) and self.is_open

    @property
    def is_open(self) -> bool:
        """Whether the numbers are cut off at no bound."""
        return math.isinf(self.low) and math.isinf(self.high)

    def of(self, column: pd.Series[Any]) -> pd.Series[Any]:
        """Return one column of a copy, of the kind that the original's is if it is rounded."""
        x = np.clip(column.to_numpy(dtype=np.float64), self.low, self.high)
        if math.isnan(self.step):
            return pd.Series(x, dtype=column.dtype)
        if self.kind in ("date", "time"):
            return self._dates(column.name, np.rint(x / self.step) * self.step)
        x = np.round(np.rint(x / self.step) * self.step, _places(self.step))
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
    """Return what is done to each column of a table's copies, ``raw`` being its columns as they are found.

    Columns that are ``whole`` as they are drawn are written as whole numbers, though nothing is
    rounded; dates are days, as elsewhere.

    Raises
    ------
    AuditorError
        Bounds are those of a column that there is not, or none.
    """
    unknown = [name for name in asked.bounds if name and name not in table.attributes]
    if unknown:
        raise AuditorError(
            f"bounds: no column {quoted(unknown[0])} is perturbed{nearest(unknown[0], table.attributes)}"
        )
    drawn = (
        {}
        if whole is None
        else {
            name: 1.0
            for name, is_whole in zip(table.attributes, whole.tolist(), strict=True)
            if is_whole
        }
    )
    steps = (
        drawn if not asked.rounded else _steps(table, raw) if asked.steps is None else asked.steps
    )
    found = {}
    for name in table.attributes:
        kind, step = kinds[name], steps.get(name, math.nan)
        if not asked.rounded and kind in ("date", "time"):
            step = math.nan
        if asked.rounded and kind == "time" and math.isnan(step):
            step = 1 / 86_400  # a second; finer than any fraction of a day with six places
        low, high = _bounds(name, kind, asked.bounds)
        if not math.isnan(step):  # inwards, or rounding would lead out of them
            low, high = math.ceil(low / step - 1e-9) * step if low > -math.inf else low, high
            high = math.floor(high / step + 1e-9) * step if high < math.inf else high
        if low > high:
            raise AuditorError(
                f"bounds of column {quoted(name)}: none of its values, as they are rounded, lies between"
            )
        found[name] = Finish(kind, low, high, step, asked.missing == "keep", asked.forms.get(name))
    return found


def _steps(table: Table, raw: Callable[[], Iterable[pd.DataFrame]]) -> dict[str, float]:
    """Return each column's resolution; blank cells are taken for 0, a whole multiple of any step, and not for a mean."""
    names = list(table.attributes)
    found = resolution(
        lambda: (np.nan_to_num(floats(in_days(frame[names], table.dates))) for frame in raw()),
        table.rows,
        table.width,
    )
    return dict(zip(names, found.steps.tolist(), strict=True))


def _bounds(name: str, kind: Stored, bounds: Bounds) -> tuple[float, float]:
    given = bounds.get(name, ("", "") if kind in ("date", "time") else bounds.get("", ("", "")))
    low, high = (
        _bound(name, kind, text, none)
        for text, none in zip(given, (-math.inf, math.inf), strict=True)
    )
    if low > high:
        raise AuditorError(f"bounds of column {quoted(name)}: the lower is above the upper")
    return low, high


def _bound(name: str, kind: Stored, text: str, none: float) -> float:
    if not text.strip():
        return none
    if kind in ("date", "time"):
        days = plain_days(pd.Series([text.strip()]))
        if days is not None:
            return float(days[0])
    else:
        with suppress(ValueError):
            if not math.isnan(number := float(text)):
                return number
    expected = "a date, as 2020-01-31" if kind in ("date", "time") else "a number"
    raise AuditorError(f"bounds of column {quoted(name)}: each must be {expected}; got {text!r}")


def _places(step: float) -> int:
    """Return the decimal places that write a step."""
    return next(
        (
            places
            for places in range(MOST_PLACES)
            if abs(step * 10**places - round(step * 10**places)) < 1e-9
        ),
        MOST_PLACES,
    )


def finished(
    parts: Iterator[Sequence[pd.DataFrame]], columns: Mapping[str, Finish], blanks: InStep | None
) -> Iterator[Sequence[pd.DataFrame]]:
    """Yield copies as they are written, block by block."""
    for part in parts:
        done = (
            [
                pd.DataFrame({name: columns[str(name)].of(copy[name]) for name in copy})
                for copy in part
            ]
            if columns
            else part
        )
        yield done if blanks is None else blanked(done, blanks.take(len(part[0])))


def blanked(copies: Sequence[pd.DataFrame], blank: pd.DataFrame) -> list[pd.DataFrame]:
    """Return copies without the cells that are blank."""
    return [
        pd.DataFrame({name: copy[name].mask(blank[name].to_numpy(dtype=bool)) for name in copy})
        for copy in copies
    ]


def filled_categories(
    frames: Iterable[pd.DataFrame], domains: Mapping[str, Sequence[Any]]
) -> CategoricalTable:
    """Return categories with each column's commonest value where it is blank, in memory; what that is matters to nobody.

    Parameters
    ----------
    frames : iterable of DataFrames
    domains : mapping
        Column → the values that it can have; left out, those that it has.

    Raises
    ------
    AuditorError
        A column has no values at all, or others than its domain's.
    """
    frame = pd.concat(list(frames), ignore_index=True)
    empty = [name for name in frame if not frame[name].notna().any()]
    if empty:
        raise AuditorError(f"column {quoted(empty[0])} has no values at all")
    for name in frame:
        check_plain(str(name), frame[name])
    found = [
        of_column(frame[name].fillna(frame[name].mode()[0]), str(name), domains.get(str(name)))
        for name in frame
    ]
    return product([attribute for attribute, _ in found], [codes for _, codes in found])


def post_processing(columns: Mapping[str, Finish], bounds: Bounds) -> dict[str, Any]:
    """Return what a manifest says was done to copies; nothing that says more of the original than they do."""
    said: dict[str, Any] = {}
    steps = {name: finish.step for name, finish in columns.items() if not math.isnan(finish.step)}
    if steps:
        said["round"] = steps
    if bounds:
        said["clip"] = {name or "*": list(pair) for name, pair in bounds.items()}
    return said


def notes_of(columns: Mapping[str, Finish], asked: Treatment) -> Iterator[str]:
    """Yield what an owner must know of what was done to the copies."""
    if asked.rounded:
        left = [name for name, finish in columns.items() if math.isnan(finish.step)]
        if left:
            yield f"not rounded: {listed(left)}, as {'it has' if len(left) == 1 else 'they have'} no resolution"
    if asked.rounded or asked.bounds:
        yield "copies that are rounded or cut off are not those that Theorem 4 is exact for: audit the files (scheme: published)"


def notes_of_blanks(
    missing: Blank, records: int, incomplete: int, cells: Mapping[str, int]
) -> Iterator[str]:
    """Yield what was done about blank cells."""
    total = sum(cells.values())
    if not total:
        return
    most = quoted(max(cells, key=lambda name: cells[name]))
    where = f"{counted(total, 'blank cell')} in {incomplete:,} of {counted(records, 'record')}, most in column {most}"
    if missing == "drop":
        yield f"dropped: {where}; these records are in no copy"
    elif missing == "mean":
        yield f"filled in: {where}; the column's mean was perturbed in their place, and no recipient can tell them from others"
    else:
        yield f"kept blank in every copy: {where}; every recipient sees which cells are blank, and of whom if records can be told"
