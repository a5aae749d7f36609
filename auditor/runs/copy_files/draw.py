"""Draw and finish copies, block by block, on their way into files.

Each copy is finished alone, from the copy, public bounds and steps, and the blank cells. Theorem 4
is no longer exact for finished copies (docs/release.md).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from math import ceil, floor, inf, isnan, nan
from typing import Any, Literal, NamedTuple

import numpy as np

from auditor.base import AuditorError, counted, listed, nearest, pa, pd, quoted
from auditor.base.types import Array, Flags, Generator, Indices, Levels, Names, Plain, frozen
from auditor.data.columns.categorical_table import CategoricalTable, coded_columns
from auditor.data.columns.checks import SINCE, Series, as_dates, check_plain, plain_days
from auditor.data.columns.scan import Grid
from auditor.data.load import Stored, blank_cells, load_table, raw_columns, stored_kinds
from auditor.data.table import DataUse, Table, is_file, recorded
from auditor.numerics.random_streams import stream
from auditor.process.environment import one_thread
from auditor.results.table_register import ColumnPrints
from auditor.scenario.arguments import checked_levels
from auditor.schemes.base.scheme import Scheme as Scheme, TableMoments
from auditor.schemes.corner_wave import DOUBLE_BITS, SINGLE_BITS
from auditor.schemes.draw import (
    codes_key_of,
    drawn_blocks,
    drawn_codes,
    key_of,
    noise_deviations,
    whole_columns,
)
from auditor.schemes.replacement.base import UniformScheme, never_drawn


class Drawn(NamedTuple):
    """Copies on their way into files.

    ``stated`` goes into the manifest. ``prints`` are complete once all parts are drawn.
    """

    parts: Parts
    stated: Plain
    notes: list[str]
    prints: ColumnPrints


def drawn_copies(scheme: Scheme, asked: Asked) -> Drawn:
    """Draw and finish copies block by block."""
    missing, cells = asked.treatment.missing, Counter[str]()
    records = incomplete = 0
    for blank in () if missing == "refuse" else map(pd.DataFrame.isna, asked.raw()):
        records, incomplete = records + len(blank), incomplete + int(blank.any(axis=1).sum())
        cells.update({str(name): int(n) for name, n in blank.sum().items()})
    levels, total = checked_levels(asked.levels, asked.seed, scheme), cells.total()
    kept = missing == "keep" and total > 0
    if isinstance(scheme, UniformScheme):
        found = _drawn_categories(scheme, asked, levels, kept)
    else:
        found = _drawn_numbers(scheme, asked, levels)
    parts = _blanked(found.parts, asked) if kept else found.parts
    notes = list(found.notes)
    if total:
        most = quoted(max(cells, key=cells.__getitem__))
        where = f"{counted(total, 'blank cell')} in {incomplete:,} of {counted(records, 'record')}, most in column {most}"
        told = {
            "drop": f"dropped: {where}; these records are in no copy",
            "mean": f"filled in: {where}; the column's mean was perturbed in their place. A value near it tells that "
            "the cell was blank: audit with `missing: mean` (blank_guessed). One record moves all filled cells",
            "keep": f"kept blank in every copy: {where}; every recipient sees which cells are blank, and of whom if records can be told",
        }
        notes.insert(0, told[missing])
    return found._replace(parts=parts, notes=notes)


def _drawn_categories(scheme: UniformScheme, asked: Asked, levels: Levels, blanks: bool) -> Drawn:
    table = asked.categories(blanks)
    prints, key = ColumnPrints(table.names), codes_key_of(scheme, table, asked.seed, asked.earlier)
    domains = [pd.Index(attribute.labels, tupleize_cols=False) for attribute in table.attributes]

    def frame(copy: Any) -> pd.DataFrame:
        columns = zip(table.names, domains, table.labelled(copy), strict=True)
        return pd.DataFrame(
            {name: pd.Categorical.from_codes(codes, domain) for name, domain, (_, codes) in columns}
        )

    def parts() -> Parts:
        for original, copies in drawn_codes(scheme, table, levels, key):
            prints.add_labels(table.labelled(original))
            yield list(map(frame, copies))

    note = never_drawn(scheme.over(table).replaced_by(table.size))
    stated = {"attributes": list(table.names), "rows": table.rows, "law": "replacement"}
    return Drawn(parts(), {**stated, "grid": None}, [note] if note else [], prints)


def _drawn_numbers(scheme: Scheme, asked: Asked, levels: Levels) -> Drawn:
    treatment, scale = asked.treatment, asked.scale
    kinds, table = asked.numbers()
    names, notes = list(table.attributes), list[str]()
    bits = DOUBLE_BITS if asked.precision == "double" else SINGLE_BITS
    key = key_of(scheme, table, levels, asked.seed, bits, scale, asked.earlier)
    key, prints = replace(key, past=asked.past), ColumnPrints(names)

    def drawn() -> Parts:
        columns = released_columns(scheme, names)
        blocks = drawn_blocks(scheme, table, levels, key, scale=scale, seen=prints.add_numbers)
        with one_thread():
            for _, _, copies in blocks:
                yield [
                    pd.DataFrame(scheme.to_columns(copy, names), columns=columns) for copy in copies
                ]

    parts = drawn()
    if table.units is not None:
        parts, shared = shared_in_units(parts, table)
        notes.append(
            f"records of one {quoted(treatment.unit)} have one noise in {listed(shared) or 'no column'}; columns "
            "that vary within units have a noise for each record"
        )
    if asked.precision == "single":
        parts = in_single(parts, noise_deviations(scheme, table, levels, scale))
    grid = dict(zip(names, key.grid, strict=True)) if key.grid else None
    stated = {"attributes": names, "rows": table.rows, "law": scheme.distribution, "grid": grid}
    whole, days = whole_columns(scheme, table, scale), list(table.dates)
    if treatment.is_plain and whole is None:
        notes += [f"{listed(days)}: written as {SINCE}; rounded, as dates" for _ in days[:1]]
    else:
        columns = finishes(table, kinds or asked.kinds(names), treatment, whole)
        parts = (
            [
                pd.DataFrame({name: columns[str(name)].finished(copy[name]) for name in copy})
                for copy in copies
            ]
            for copies in parts
        )
        # a column that is cut off or rounded is no longer on the grid
        lattice = whole is not None and not treatment.rounded
        stated["grid"] = grid and {
            name: step
            for name, step in grid.items()
            if columns[name][1:3] == (-inf, inf) and (lattice or isnan(columns[name].step))
        }
        stated["post_processing"] = _post_processing(columns, treatment)
        notes += _notes_of(columns, treatment)
    if days and not treatment.rounded:
        stated[SINCE.replace(" ", "_")] = days
    return Drawn(parts, stated, notes, prints)


def released_columns(scheme: Scheme, attributes: Names) -> list[str]:
    """Names of a copy's columns: the attributes, or ``y1, y2 …`` of other schemes."""
    width = scheme.output_width(len(attributes))
    return list(attributes) if width == len(attributes) else [f"y{k + 1}" for k in range(width)]


# -- finishing of columns --------------------------------------------------------------------------


def _blanked(parts: Parts, asked: Asked) -> Parts:
    blanks = blank_cells(asked.raw())
    for copies in parts:
        blank = blanks.take(len(copies[0])).astype(bool)
        yield [
            pd.DataFrame({name: copy[name].mask(blank[name].to_numpy()) for name in copy})
            for copy in copies
        ]


# -- words for the owner and the manifest ----------------------------------------------------------


def _post_processing(columns: Mapping[str, Finish], asked: Treatment) -> Plain:
    steps = {name: finish.step for name, finish in columns.items() if not isnan(finish.step)}
    said: Plain = {
        "round": steps if asked.rounded else None,
        "clip": {name or "*": list(pair) for name, pair in asked.bounds.items()},
        "unit": asked.unit,
    }
    return {name: value for name, value in said.items() if value}


def _notes_of(columns: Mapping[str, Finish], asked: Treatment) -> Iterator[str]:
    left = [name for name, finish in columns.items() if isnan(finish.step)]
    if asked.rounded and left:
        yield f"not rounded: {listed(left)}, as {'it has' if len(left) == 1 else 'they have'} no resolution"
    if asked.rounded or asked.bounds:
        yield "copies that are rounded or cut off are not those that Theorem 4 is exact for: audit the files (scheme: published)"


# -- requests for copies, and finishing of drawn columns -------------------------------------------

Precision = Literal["double", "single"]
Blank = Literal["refuse", "drop", "mean", "keep"]
Bounds = Mapping[str, tuple[str, str]]
Parts = Iterator[Sequence[pd.DataFrame]]
"""The next records of every copy."""


@frozen
class Treatment:
    """An owner's requests on blank cells, rounding and bounds.

    Attributes
    ----------
    missing : 'refuse', 'drop', 'mean' or 'keep'
        Blank cells are an error; drop their records; perturb the column's mean instead; or they
        stay blank.
    bounds : mapping
        Column → lowest and highest written value, empty for none; ``""`` means every column of
        numbers.
    forms : mapping
        Date columns → the format of their text, if not ISO 8601.
    steps : mapping, optional
        Steps of earlier copies; by default the values' own.
    unit : str, optional
        Column of units. A unit's records share noise in columns that are constant within every
        unit.
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


@frozen
class Asked:
    """Table to perturb, form of the copies, and facts from earlier batches.

    ``earlier`` is their number of records. ``scale`` has the moments of the first batch,
    ``domains``
    the possible values of categories. ``past`` is as of ``Key``.
    """

    data: str
    columns: Names | None
    rows: int | None
    levels: list[float]
    seed: int | None
    precision: Precision
    treatment: Treatment
    earlier: int = 0
    scale: TableMoments | None = None
    domains: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    past: tuple[Array, ...] = ()

    @property
    def rng(self) -> Generator:
        """Random generator of a synthetic source."""
        return stream(self.seed or 0, "data")

    def raw(self) -> Iterator[pd.DataFrame]:
        """Yield the columns as stored, with blanks."""
        raw = raw_columns(self.data, self.columns, self.rows, rng=self.rng)
        return map(pd.DataFrame, raw.read(raw.names))

    def kinds(self, columns: Names) -> dict[str, Stored]:
        """Kinds of columns.

        Raises
        ------
        AuditorError
            A column with a date format is missing.
        """
        for name in self.treatment.forms:
            if name not in columns:
                raise AuditorError(
                    f"dates: column {quoted(name)} is not perturbed; name it among the columns that are"
                )
        return stored_kinds(self.data, columns, self.raw(), self.treatment.forms)

    def table(self, **kinds: Any) -> Table:
        """Table to perturb, means in place of blanks that are kept."""
        missing = "mean" if self.treatment.missing == "keep" else self.treatment.missing
        use = DataUse.model_construct(
            source=self.data,
            columns=self.columns,
            rows=self.rows,
            missing=missing,
            unit=self.treatment.unit,
            **kinds,
        )
        return load_table(use, self.rng, varied=self.scale is None)

    def numbers(self) -> tuple[dict[str, Stored], Table]:
        """Kinds of the named columns, and the table, dates as days."""
        kinds, forms = self.kinds(self.columns) if self.columns else {}, self.treatment.forms
        dated = [name for name, kind in kinds.items() if kind in ("date", "time")]
        return kinds, self.table(dates={name: forms.get(name) for name in dated})

    def categories(self, blanks: bool) -> CategoricalTable:
        """Categories to perturb; ``blanks`` have each column's commonest value.

        Domains are from earlier records, else observed or declared by the source.

        Raises
        ------
        AuditorError
            The table has none, one without values, or a value outside its domain.
        """
        held = None
        if blanks:
            frame = pd.concat(list(self.raw()), ignore_index=True)
            for name, column in frame.items():
                if not column.notna().any():
                    raise AuditorError(f"column {quoted(name)} has no values at all")
                check_plain(str(name), column)
            filled = ((name, column.fillna(column.mode()[0])) for name, column in frame.items())
            held = coded_columns(filled, self.domains)
        elif self.columns is not None or not is_file(self.data):
            domains = {name: self.domains.get(name) for name in self.columns or ()}
            held = self.table(categorical=domains).categorical
        if held is None:
            raise AuditorError(
                "a uniform scheme perturbs categories: name the columns to take as such with --columns"
            )
        return held


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

    def finished(self, column: Series) -> Series:
        """A finished column; a rounded one has the original's kind."""
        x = np.clip(column.to_numpy(dtype=float), self.low, self.high)
        if isnan(self.step):
            return pd.Series(x, dtype=column.dtype)
        x = np.rint(x / self.step) * self.step
        if self.kind in ("date", "time"):
            return self._dates(column.name, x)
        grid = Grid()
        grid.add(np.array([self.step]))
        x = np.round(x, grid.places)
        if self.step % 1 or self.kind == "float":
            return pd.Series(x, dtype=column.dtype)
        if np.abs(x).max(initial=0.0) > EXACT:
            raise AuditorError(
                f"column {quoted(column.name)}: the noise makes whole numbers beyond 2^53; do not round it"
            )
        return pd.Series(x.astype(np.int64), dtype="Int64" if self.blanks else np.int64)

    def _dates(self, name: Any, days: Any) -> Series:
        try:
            dates = as_dates(days, whole=self.step % 1 == 0)
        except ValueError as error:
            raise AuditorError(
                f"column {quoted(name)}: the noise makes {error}; state bounds for it, or do not round it"
            ) from None
        if self.form is not None:
            return dates.dt.strftime(self.form)
        return dates.astype(pd.ArrowDtype(pa.date32())) if self.kind == "date" else dates


def finishes(
    table: Table, kinds: Mapping[str, Stored], asked: Treatment, whole: Flags | None
) -> dict[str, Finish]:
    """Finishing of each column.

    Columns drawn ``whole`` are written as whole numbers; dates are days.

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
        kind, step = kinds[name], steps.get(name, nan)
        if kind == "time" and asked.rounded and isnan(step):
            step = SECOND
        low, high = _bounds(name, kind, asked.bounds)
        if not isnan(step):  # inwards: rounding must not cross the bounds
            low = ceil(low / step - 1e-9) * step if low > -inf else low
            high = floor(high / step + 1e-9) * step if high < inf else high
        if low > high:
            raise AuditorError(
                f"bounds of column {quoted(name)}: none of its values, as they are rounded, lies between"
            )
        found[name] = Finish(kind, low, high, step, asked.missing == "keep", asked.forms.get(name))
    return found


def _bounds(name: str, kind: Stored, bounds: Bounds) -> tuple[float, float]:
    dated, ends = kind in ("date", "time"), [-inf, inf]
    texts = bounds.get(name, ("", "") if dated else bounds.get("", ("", "")))
    for end, text in enumerate(map(str.strip, texts)):
        if not text:
            continue
        number = nan
        if dated:
            days = plain_days(pd.Series([text]))
            number = nan if days is None else float(days[0])
        else:
            with suppress(ValueError):
                number = float(text)
        if isnan(number):
            expected = "a date, as 2020-01-31" if dated else "a number"
            raise AuditorError(
                f"bounds of column {quoted(name)}: each must be {expected}; got {texts[end]!r}"
            )
        ends[end] = number
    if ends[0] > ends[1]:
        raise AuditorError(f"bounds of column {quoted(name)}: the lower is above the upper")
    return ends[0], ends[1]


def in_single(parts: Parts, noise: Array | None) -> Parts:
    """Yield copies as 32-bit numbers.

    Exact for multiples on a grid. Rounding that swallows the noise, or equates copies, is refused.
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
    """Copies with one noise per unit in columns constant within units; these columns.

    Each cell is from the unit's first record.
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
