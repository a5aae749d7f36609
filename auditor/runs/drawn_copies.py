"""Copies drawn and finished block by block on their way into files.

Each copy is finished alone, as a function of the copy, of public bounds and steps, and of the blank
cells. Theorem 4 is exact for copies as drawn, and no longer for these (docs/release.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.base.errors import AuditorError
from auditor.base.text import counted, listed, nearest, quoted
from auditor.base.types import Array, Indices
from auditor.data.columns.categorical_table import CategoricalTable, of_column, product, split
from auditor.data.columns.checks import check_plain
from auditor.data.columns.dates import SINCE, as_dates, plain_days
from auditor.data.columns.scan import MOST_PLACES
from auditor.data.load import load_table
from auditor.data.raw_columns import Blanks, InStep, Stored, blank_cells, raw_frames, stored_kinds
from auditor.data.request import DataUse, is_file
from auditor.data.table import Bounds as ColumnBounds
from auditor.data.table import Table, recorded
from auditor.numerics.random_streams import stream
from auditor.process.deferred import pa, pd
from auditor.process.environment import one_thread
from auditor.results.table_register import ColumnPrints
from auditor.runs.arguments import checked_levels
from auditor.runs.perturb import add_codes
from auditor.scenario.stated_levels import sized_by_bounds
from auditor.schemes.base.additive import DOUBLE_BITS, SINGLE_BITS
from auditor.schemes.base.scheme import Key, Scheme, TableMoments
from auditor.schemes.draw import drawn_blocks, drawn_codes, key_of, noise_deviations, whole_columns
from auditor.schemes.replacement.base import UniformScheme, never_drawn

Precision = Literal["double", "single"]


@dataclass(frozen=True)
class Earlier:
    """Facts that a later batch has from the earlier ones.

    ``scale`` has the moments of the first batch, which scale the noise; ``domains`` the possible
    values of categories; ``past`` is as of ``Key``.
    """

    records: int = 0
    scale: TableMoments | None = None
    domains: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    past: tuple[Array, ...] = ()


ROUNDED = 2.0**-24
"""Half the distance between neighbouring 32-bit numbers, relative to their size."""
UNSEEN = 1e-3
"""Largest ratio of rounding to noise: squared, a millionth of any attack's error."""


@dataclass(frozen=True)
class Asked:
    """Table to perturb, and form of the copies."""

    data: str
    columns: Sequence[str] | None
    rows: int | None
    levels: list[float]
    seed: int | None
    precision: Precision
    treatment: Treatment
    earlier: Earlier = field(default_factory=Earlier)

    @property
    def rng(self) -> np.random.Generator:
        """Random generator of a synthetic source."""
        return stream(self.seed or 0, "data")

    def raw(self) -> Iterator[pd.DataFrame]:
        """Yield the columns as stored, with blanks."""
        return raw_frames(self.data, self.columns, self.rows, self.rng)

    def kinds(self, columns: Sequence[str]) -> dict[str, Stored]:
        """Return the kinds of columns.

        Raises
        ------
        AuditorError
            A column with a date format is missing.
        """
        other = [name for name in self.treatment.forms if name not in columns]
        if other:
            raise AuditorError(
                f"dates: column {quoted(other[0])} is not perturbed; name it among the columns that are"
            )
        return stored_kinds(self.data, columns, self.raw(), self.treatment.forms)

    def blanks(self) -> Blanks:
        """Count blank cells, if they are allowed."""
        return Blanks(0, 0, {}) if self.treatment.missing == "refuse" else Blanks.of(self.raw())

    def table(
        self, domains: Mapping[str, Sequence[Any] | None] | None = None, dates: Sequence[str] = ()
    ) -> Table:
        """Return the table to perturb, means in place of blanks that are kept."""
        asked = self.treatment
        use = DataUse(
            self.data,
            self.columns,
            self.rows,
            "mean" if asked.missing == "keep" else asked.missing,
            categorical=dict(domains or {}),
            dates={name: asked.forms.get(name) for name in dates},
            unit=asked.unit,
        )
        return load_table(use, self.rng, varied=self.earlier.scale is None)

    def numbers(self) -> tuple[dict[str, Stored], Table]:
        """Return the kinds of the named columns, and the table, dates as days."""
        kinds = self.kinds(self.columns) if self.columns else {}
        return kinds, self.table(
            dates=[name for name, kind in kinds.items() if kind in ("date", "time")]
        )

    def categories(self) -> CategoricalTable:
        """Return categories to perturb.

        Domains are from earlier records, else observed or declared by the source.
        """
        if self.columns is None and is_file(self.data):
            raise AuditorError(
                "a uniform scheme perturbs categories: name the columns to take as such with --columns"
            )
        if self.treatment.missing == "keep" and self.blanks().total > 0:
            return filled_categories(self.raw(), self.earlier.domains)
        domains = {name: self.earlier.domains.get(name) for name in self.columns or ()}
        held = self.table(domains).categorical
        if held is None:
            raise AuditorError(
                "a uniform scheme perturbs categories: name the columns to take as such"
            )
        return held


class Drawn(NamedTuple):
    """Copies on their way into files.

    ``parts`` yields the next records of every copy, ``stated`` goes into the manifest, and ``prints``
    are complete once all parts are drawn.
    """

    parts: Iterator[Sequence[pd.DataFrame]]
    stated: dict[str, Any]
    notes: list[str]
    prints: ColumnPrints


def drawn_copies(scheme: Scheme, asked: Asked) -> Drawn:
    """Draw and finish copies block by block, as ``auditor.perturb`` draws them."""
    blanks, treatment = asked.blanks(), asked.treatment
    levels = checked_levels(asked.levels, asked.seed, scheme)
    notes = list(notes_of_blanks(treatment.missing, *blanks))
    blank = None
    if treatment.missing == "keep" and blanks.total > 0:
        blank = blank_cells(asked.raw())
    if isinstance(scheme, UniformScheme):
        held = asked.categories()
        prints = ColumnPrints(held.names)
        parts = _category_frames(scheme, held, levels, asked, prints)
        notes += filter(None, [never_drawn(scheme.over(held).replaced_by(held.size))])
        stated = {
            "attributes": list(held.names),
            "rows": held.rows,
            "law": "replacement",
            "grid": None,
        }
        return Drawn(finished(parts, {}, blank), stated, notes, prints)
    kinds, table = asked.numbers()
    names, scale = list(table.attributes), asked.earlier.scale
    bits = DOUBLE_BITS if asked.precision == "double" else SINGLE_BITS
    key = key_of(scheme, table, levels, asked.seed, bits, scale, asked.earlier.records)
    key = replace(key, past=asked.earlier.past)
    prints = ColumnPrints(names)
    parts = _number_frames(scheme, table, levels, key, scale, prints)
    if table.units is not None:
        shared = [name for name in names if name not in table.varying_in_units()]
        parts = shared_in_units(parts, table.units, shared)
        unit = f"records of one {quoted(treatment.unit)} have one noise in {listed(shared) or 'no column'}"
        notes.append(f"{unit}; columns that vary within units have a noise for each record")
    if asked.precision == "single":
        parts = _in_single(parts, noise_deviations(scheme, table, levels, scale))
    grid = dict(zip(names, key.grid, strict=True)) if key.grid else None
    stated = {"attributes": names, "rows": table.rows, "law": scheme.distribution, "grid": grid}
    whole, days = whole_columns(scheme, table, scale), list(table.dates)
    if treatment.is_plain and whole is None:
        notes += [f"{listed(days)}: written as {SINCE}; rounded, as dates" for _ in days[:1]]
    else:
        kinds = kinds or asked.kinds(names)
        columns = finishes(table, kinds, treatment, whole)
        parts = finished(parts, columns, blank)
        if grid:
            stated["grid"] = {
                name: step
                for name, step in grid.items()
                if columns[name].is_open
                and (
                    math.isnan(columns[name].step) or (whole is not None and not treatment.rounded)
                )
            }
        stated["post_processing"] = post_processing(
            columns if treatment.rounded else {}, treatment.bounds, treatment.unit
        )
        notes += notes_of(columns, treatment)
    if days and not treatment.rounded:
        stated[SINCE.replace(" ", "_")] = days
    return Drawn(parts, stated, notes, prints)


def _category_frames(
    scheme: UniformScheme,
    table: CategoricalTable,
    levels: tuple[float, ...],
    asked: Asked,
    prints: ColumnPrints,
) -> Iterator[Sequence[pd.DataFrame]]:
    domains = [pd.Index(attribute.labels, tupleize_cols=False) for attribute in table.attributes]
    for original, copies in drawn_codes(scheme, table, levels, asked.seed, asked.earlier.records):
        add_codes(prints, table, original)
        yield [
            pd.DataFrame(
                {
                    name: pd.Categorical.from_codes(codes, categories=domain)
                    for name, domain, codes in zip(
                        table.names, domains, split(table, copy), strict=True
                    )
                }
            )
            for copy in copies
        ]


def _number_frames(
    scheme: Scheme,
    table: Table,
    levels: tuple[float, ...],
    key: Key,
    scale: TableMoments | None,
    prints: ColumnPrints,
) -> Iterator[Sequence[pd.DataFrame]]:
    names = released_columns(scheme, table.attributes)
    blocks = drawn_blocks(scheme, table, levels, key, scale=scale, seen=prints.add_numbers)
    with one_thread():
        for _, _, copies in blocks:
            yield [
                pd.DataFrame(scheme.to_columns(copy, table.attributes), columns=names)
                for copy in copies
            ]


def released_columns(scheme: Scheme, attributes: Sequence[str]) -> list[str]:
    """Return the names of a copy's columns: the attributes, or ``y1, y2 …`` of other schemes."""
    columns = scheme.output_width(len(attributes))
    return (
        list(attributes) if columns == len(attributes) else [f"y{k}" for k in range(1, columns + 1)]
    )


def _in_single(
    parts: Iterator[Sequence[pd.DataFrame]], noise: NDArray[np.float64] | None
) -> Iterator[Sequence[pd.DataFrame]]:
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
        Blank cells are an error; their records are in no copy; the column's mean is perturbed in
        their place; or they are blank in every copy.
    bounds : mapping
        Column → lowest and highest written value, empty for none; column ``""`` means every column
        of numbers.
    forms : mapping
        Date columns → the format of their text, if not ISO 8601.
    steps : mapping, optional
        Steps that earlier copies were rounded to; by default the values' own.
    unit : str, optional
        Column of units. All records of one have the noise of its first record in columns that are
        constant within every unit.
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
            dates = dates.dt.strftime(self.form)
        elif self.kind == "date":
            dates = dates.astype(pd.ArrowDtype(pa.date32()))
        return dates


def finishes(
    table: Table,
    kinds: Mapping[str, Stored],
    asked: Treatment,
    whole: NDArray[np.bool_] | None = None,
) -> dict[str, Finish]:
    """Return the finishing of each column.

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
        found = recorded(table).steps.tolist() if asked.steps is None else []
        steps = dict(zip(names, found, strict=True)) if found else asked.steps or {}
    elif whole is not None:
        steps = {name: 1.0 for name, each in zip(names, whole, strict=True) if each}
    finished_by = {}
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
        finished_by[name] = Finish(
            kind, low, high, step, asked.missing == "keep", asked.forms.get(name)
        )
    return finished_by


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
    """Yield copies with the cells of each unit's first record in columns constant within units.

    ``units``, shape (n,), numbers the unit of each record.
    """
    _, first, number = np.unique(units, return_index=True, return_inverse=True)
    start, drawn = 0, dict[int, Array]()
    for copies in parts:
        here = slice(start, start + len(copies[0]))
        start = here.stop
        for place, copy in enumerate(copies):
            cells = drawn.setdefault(place, np.empty((len(units), len(columns))))
            cells[here] = copy[list(columns)]
            copy[list(columns)] = cells[first[number[here]]]
        yield copies


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


def sized(
    data: str,
    scheme: str,
    parameters: dict[str, Any],
    guarantees: Mapping[str, Sequence[float]],
    bounds: ColumnBounds,
    columns: Sequence[str] | None,
    rows: int | None,
    missing: Blank,
) -> tuple[list[float], dict[str, Any], list[str]]:
    """Return levels, parameters and columns for noise sized by bounds of all records."""
    ((currency, stated),) = guarantees.items()
    if not all(one > 0 for one in stated):
        raise AuditorError(f"--{currency} must be numbers above 0")
    names = list(bounds) if columns is None else list(columns)
    if sorted(names) != sorted(bounds):
        raise AuditorError("--columns and --bounds must name the same columns; leave --columns out")
    bounds = {name: bounds[name] for name in names}
    levels, parameters = sized_by_bounds(scheme, parameters, currency, stated, bounds)
    use = DataUse(data, names, rows, "drop" if missing == "keep" else missing, bounds=dict(bounds))
    table = load_table(use, stream(0, "data"))
    if table.blanks is not None and table.blanks.any():
        raise AuditorError(
            f"--{currency} is not kept by --missing mean: one record also moves each of "
            f"{int(table.blanks.sum()):,} filled cells; drop the records, or state --levels and audit them"
        )
    return levels, parameters, names
