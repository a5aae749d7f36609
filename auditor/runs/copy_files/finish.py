"""Rounding, bounds, dates, precision and shared noise of drawn copies.

Each copy is finished alone, as a function of the copy, of public bounds and steps, and of the blank
cells. Theorem 4 is exact for copies as drawn, and no longer for these (docs/release.md).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.base.errors import AuditorError
from auditor.base.text import nearest, quoted
from auditor.base.types import Array, Indices
from auditor.data.columns.dates import as_dates, plain_days
from auditor.data.columns.scan import MOST_PLACES
from auditor.data.raw_columns import Stored
from auditor.data.table import Table, recorded
from auditor.process.deferred import pa, pd
from auditor.runs.copy_files.request import Bounds, Parts, Treatment

ROUNDED = 2.0**-24
"""Half the distance between neighbouring 32-bit numbers, relative to their size."""
UNSEEN = 1e-3
"""Largest ratio of rounding to noise: squared, a millionth of any attack's error."""
EXACT = 2.0**53
"""Up to here every whole number is a double."""
SECOND = 1 / 86_400
"""In days; finer than any fraction of a day with six places."""


class Finish(NamedTuple):
    """Finishing of one column: bounds (infinite for none), and a step (NaN for none).

    ``blanks``: blank cells may be among its whole numbers.
    """

    kind: Stored
    low: float
    high: float
    step: float
    blanks: bool
    form: str | None = None

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
            return dates.dt.strftime(self.form)
        return dates.astype(pd.ArrowDtype(pa.date32())) if self.kind == "date" else dates


def _places(step: float) -> int:
    scaled = (step * 10**places for places in range(MOST_PLACES))
    exact = (places for places, x in enumerate(scaled) if abs(x - round(x)) < 1e-9)
    return next(exact, MOST_PLACES)


def finishes(
    table: Table, kinds: Mapping[str, Stored], asked: Treatment, whole: NDArray[np.bool_] | None
) -> dict[str, Finish]:
    """Return the finishing of each column.

    Columns that are drawn ``whole`` are written as whole numbers, even unrounded; dates are days.

    Raises
    ------
    AuditorError
        Bounds name an unknown column, or are invalid.
    """
    names = table.attributes
    for name in asked.bounds:
        if name and name not in names:
            raise AuditorError(
                f"bounds: no column {quoted(name)} is perturbed{nearest(name, names)}"
            )
    steps: Mapping[str, float] = {}
    if asked.rounded and asked.steps is not None:
        steps = asked.steps
    elif asked.rounded:
        steps = dict(zip(names, recorded(table).steps.tolist(), strict=True))
    elif whole is not None:
        steps = {
            name: 1.0
            for name, each in zip(names, whole, strict=True)
            if each and kinds[name] not in ("date", "time")
        }
    found = {}
    for name in names:
        kind, step = kinds[name], steps.get(name, math.nan)
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


def _bounds(name: str, kind: Stored, bounds: Bounds) -> tuple[float, float]:
    dated, ends = kind in ("date", "time"), [-math.inf, math.inf]
    texts = bounds.get(name, ("", "") if dated else bounds.get("", ("", "")))
    for end, text in enumerate(map(str.strip, texts)):
        if not text:
            continue
        number = math.nan
        if dated:
            days = plain_days(pd.Series([text]))
            number = math.nan if days is None else float(days[0])
        else:
            with suppress(ValueError):
                number = float(text)
        if math.isnan(number):
            expected = "a date, as 2020-01-31" if dated else "a number"
            raise AuditorError(
                f"bounds of column {quoted(name)}: each must be {expected}; got {texts[end]!r}"
            )
        ends[end] = number
    if ends[0] > ends[1]:
        raise AuditorError(f"bounds of column {quoted(name)}: the lower is above the upper")
    return ends[0], ends[1]


def in_single(parts: Parts, noise: NDArray[np.float64] | None) -> Parts:
    """Yield copies as 32-bit numbers.

    On a grid, 32 bits hold the multiples exactly. Elsewhere a rounded copy is a function of the
    copy. Rounding that swallows the noise, or equates copies, is refused.
    """
    for part in parts:
        for place, copy in enumerate(part):
            rounding = ROUNDED * copy.abs().max(axis=0).to_numpy()
            spread = copy.std(axis=0, ddof=0).to_numpy() if noise is None else noise[place]
            worst = int((rounding - UNSEEN * spread).argmax())
            if spread[worst] > 0 and rounding[worst] > UNSEEN * spread[worst]:
                raise AuditorError(
                    f"copy {place + 1}, column {copy.columns[worst]!r}: 32-bit numbers are off by up to "
                    f"{rounding[worst] / spread[worst]:.1g} of its {'deviation' if noise is None else 'noise'}, "
                    f"and {UNSEEN:g} is the most that changes no conclusion; write it in double precision"
                )
        yield [copy.astype(np.float32) for copy in part]


def shared_in_units(parts: Parts, table: Table) -> tuple[Parts, list[str]]:
    """Return copies with one noise per unit in columns constant within units, and these columns.

    Each cell is the one of the unit's first record.
    """
    assert table.units is not None
    units: Indices = table.units
    varying = table.varying_in_units()
    columns = [name for name in table.attributes if name not in varying]
    is_first = ~pd.Series(units).duplicated().to_numpy()

    def shared() -> Parts:
        start = 0
        cells: dict[int, Array] = defaultdict(lambda: np.empty((units.max() + 1, len(columns))))
        for copies in parts:
            rows = slice(start, start := start + len(copies[0]))
            first, unit = is_first[rows], units[rows]
            for place, copy in enumerate(copies):
                cells[place][unit[first]] = copy[columns].to_numpy()[first]
                copy[columns] = cells[place][unit]
            yield copies

    return shared(), columns
