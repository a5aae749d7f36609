"""Published copies: files made elsewhere, audited as they are.

Attacks use ``law`` (a scheme's name and parameters, or a covariance file), or else a law estimated
from original and copies; a wrong law contradicts the measurement. Files match row by row, or by a
`key` column. Audited are records and columns that are complete everywhere. The stated law is of the
whole original.

With ``categorical:`` or ``bin:`` ``published`` means categorical copies, unless it states added
noise. An estimated law is cross-fitted on two halves.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field, ValidationError, field_validator

from auditor.base import AuditorError, AuditorWarning, PluginError, counted, quoted, scipy
from auditor.base.types import Array, Arrays, Codes, Flags, Indices, Levels
from auditor.data.alignment import common_part, misaligned, remembered
from auditor.data.columns.categorical_table import BLOCK_WIDTH, CategoricalTable, split
from auditor.data.copies import (
    JOIN_REMEDY,
    Copy,
    check_joined_by_row,
    codes_of,
    copy_file,
    read_copy,
    shown_columns,
    with_sets,
)
from auditor.data.formats.parts import header, notes_of
from auditor.data.table import Audited, DataUse, ShownColumn, Table
from auditor.numerics.blocks import block_head, row_blocks
from auditor.numerics.random_streams import stream
from auditor.registry import PluginParameters, get, register
from auditor.registry.parameters import explain, sentence
from auditor.results.disclosure import FEWEST_RECORDS
from auditor.schemes.base.additive import AdditiveScheme
from auditor.schemes.base.noise_density import check_covariance, matrix_of_file
from auditor.schemes.base.noise_law import DenseNoise, NoiseLaw
from auditor.schemes.base.scheme import (
    Key,
    MadeCopies,
    Sampler,
    Scheme,
    TableMoments,
    table_moments,
)
from auditor.schemes.replacement.base import (
    Copies,
    UniformScheme,
    categories_of,
    distribution,
    never_drawn,
    parsed,
)
from auditor.schemes.replacement.law import MOST_VALUES, EstimatedLaw, UniformLaw, estimated


class FileScheme(Scheme):
    """Copies from files, made elsewhere; levels may be unknown."""

    claims = "The statements of its makers, which the audit tests."
    needs_levels = False
    makes_copies = False
    needs_table = True

    class Parameters(PluginParameters):
        """Files of the copies, and their match to the original."""

        copies: list[str] = Field(
            description="paths of .csv or .parquet files, in order of release",
            min_length=1,
            max_length=10_000,
        )
        key: str | None = Field(
            None,
            description="column of whole numbers or text that identifies records in the data and in every copy, which may then be in "
            "another order and lack some; without it, rows must match one to one",
        )
        aligned: bool = Field(
            False,
            description="whether you vouch that rows and columns are the original's, and what looks otherwise is not refused",
        )

    def count(self, levels: Levels) -> int:
        return len(self.parameters.copies)

    def check_count(self, levels: Levels) -> None:
        """Refuse levels that are neither absent nor one per copy."""
        if levels and len(levels) != len(self.parameters.copies):
            raise AuditorError(
                f"{len(self.parameters.copies)} copies need as many levels; got {len(levels)}"
            )

    def check_join(self, asked: DataUse) -> str:
        """Refuse data that cannot be joined by row or by key."""
        if self.parameters.key is None:
            check_joined_by_row(asked)
        return (
            "; `missing: drop` left records of the original out, and a copy must lack the same ones"
            if asked.missing == "drop"
            else ""
        )

    def files(self, table: Table) -> list[Path]:
        """Files in order of release."""
        return [copy_file(name, self.base, table.source) for name in self.parameters.copies]

    def read(self, table: Table, exact: bool = False, why: str = "") -> list[Copy]:
        """Copies as matched to a table's records."""
        given = self.parameters.key, exact, why, self.engine == "categorical"
        return [read_copy(path, table, *given) for path in self.files(table)]

    def shown(self, table: Table) -> list[ShownColumn]:
        whole = table.whole
        names = [columns for _, columns in self.beside(table)]
        rows = [copy.rows for copy in self.read(whole)]
        found = shown_columns(zip(self.files(whole), rows, names, strict=True))
        return [column._replace(values=table.cut_out(column.values)) for column in found]

    def beside(self, table: Table) -> list[tuple[int, list[str]]]:
        whole = table.whole
        names = table.attributes if self.engine == "numeric" else categories_of(whole).names
        hidden = {*names, self.parameters.key, ""}
        return [
            (number, [name for name in header(path) if name not in hidden])
            for number, path in enumerate(self.files(whole), start=1)
        ]

    def warn(self, table: Table, notes: Sequence[str]) -> None:
        """Warn of the files' notes on reading, and of others."""
        for note in (*chain.from_iterable(map(notes_of, self.files(table))), *notes):
            warnings.warn(AuditorWarning(note), stacklevel=3)

    @property
    def audited_table(self) -> Table:
        """The audited records and columns."""
        if self.table is None:
            raise AuditorError(
                "published copies can be audited by a scenario only: there is nothing to perturb"
            )
        return self.table


VOUCH = "set `aligned: true` if you know that they are the same records in the same order"
VALUES_LOOKED_AT = 2**20
FEWEST_LOOKED_AT = 2_000
"""Least number of values, and of records, across the table for the row-order check."""


@register
class Published(FileScheme):
    """Copies from files, made elsewhere, with or without a stated noise law."""

    name = "published"
    family = "additive"
    assumes = (
        "Each file holds records of the data, row by row or by a `key` column, and columns of theirs: tested unless `aligned` vouches for "
        "it."
    )
    adds_noise = True
    level_of_original = 0.0
    trial = MappingProxyType({"copies": ["a.csv"], "law": {"scheme": "corner-wave"}})

    class Parameters(FileScheme.Parameters):
        """Files of the copies, and the law that they state."""

        law: dict[str, Any] | None = Field(
            None,
            description="{scheme: name, …its parameters}, or {covariance: file} for a K_Z of its own; levels are then needed",
        )

        @field_validator("law")
        @classmethod
        def _one_law(cls, law: dict[str, Any] | None) -> dict[str, Any] | None:
            if law is not None:
                _check_law(law)
            return law

    def check_levels(self, levels: Levels) -> None:
        stated = self._stated()
        if stated is not None and not levels:
            raise AuditorError("a law by scheme needs the copies' levels")
        self.check_count(levels)
        check = super().check_levels if stated is None else stated.check_levels
        check(levels)

    def check_table(self, table: Table, asked: DataUse) -> None:
        if asked.standardize:
            raise AuditorError(
                "published copies are in the data's own units: `standardize` must be false"
            )
        by_row, why = self.parameters.key is None, self.check_join(asked)
        copies = self.read(table, asked.rows is None, why)
        common = self._common(table, copies)
        stated = self._stated()
        gaps = common.table.cut is not None and (np.diff(common.table.cut.rows) > 1).any()
        if (
            gaps
            and isinstance(stated, AdditiveScheme)
            and stated.serial(table_moments(table).scale) is not None
        ):
            raise AuditorError(
                "law: `serial` noise follows on from record to record, and between those that all copies have in full some are missing; "
                "audit a stretch that is whole, or leave `law` out"
            )
        self.warn(table, common.notes)
        for copy in copies if not self.parameters.aligned else ():
            columns = np.flatnonzero(copy.said)
            full = np.flatnonzero(copy.full(columns))
            _check_alignment(
                copy.name, table.part(full, columns), copy.values[np.ix_(full, columns)], by_row
            )

    def audited(self, table: Table) -> Audited:
        return self._common(table, self.read(table))

    def handed_in(self, table: Table) -> list[Array]:
        if table.cut is None and self.parameters.key is None:
            return []
        copies = self.read(table.whole)
        return (
            [copy.cells for copy in copies]
            if table.cut is not None or any(copy.order is not None for copy in copies)
            else []
        )

    def _common(self, table: Table, copies: Iterable[Copy]) -> Audited:
        stamps = [
            (str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in self.files(table)
        ]
        return remembered(
            (tuple(stamps), self.parameters.key, table.fingerprint()),
            lambda: common_part(table, list(copies)),
        )

    def law(self, levels: Levels, table: TableMoments) -> NoiseLaw | None:
        cut = None if self.table is None else self.table.cut
        if cut is None:
            return self._law(levels, table.scale)
        law = self._law(levels, table_moments(cut.whole).scale)
        return None if law is None else law.of_attributes(cut.columns)

    def redrawn(self, levels: Levels, table: TableMoments) -> Scheme | None:
        law = self.law(levels, table)
        if law is None or not law.tells_spread:
            return None
        if law.distribution == "gaussian":
            return LawfulCopies(self, law)
        whole = self.table is None or self.table.cut is None
        return self._stated() if whole else None

    def _law(self, levels: Levels, table: TableMoments) -> NoiseLaw | None:
        stated = self.parameters.law
        if stated is None:
            return None
        if "covariance" in stated:
            return self._dense(
                str(stated["covariance"]), len(self.parameters.copies), table.mean.size
            )
        scheme = self._stated()
        return None if scheme is None else scheme.law(levels, table)

    def _stated(self) -> Scheme | None:
        stated = self.parameters.law
        if stated is None or "scheme" not in stated:
            return None
        scheme = _scheme_of(stated)
        scheme.base = self.base
        return scheme

    def _dense(self, name: str, M: int, N: int) -> DenseNoise:
        K_Z = matrix_of_file(name, self.base, "law.covariance")
        if K_Z.shape != (M * N, M * N):
            raise AuditorError(
                f"law.covariance must be {M * N} × {M * N} (copies × attributes); got {K_Z.shape[0]} × {K_Z.shape[1]}"
            )
        try:
            return DenseNoise(check_covariance(K_Z), N)
        except ValueError as error:
            raise AuditorError(f"law.covariance {error}") from None

    def sampler(self, levels: Levels, table: TableMoments, key: Key, existing: int = 0) -> Sampler:
        records = self.audited_table
        made = [records.cut_out(copy.values) for copy in self.read(records.whole)]
        return MadeCopies(made[existing:], row_blocks(*made[0].shape))


class LawfulCopies(Scheme):
    """Draws of Gaussian noise by a stated law, in place of files."""

    name = Published.name
    family = "additive"
    adds_noise = True

    def __init__(self, stated: Published, law: NoiseLaw) -> None:
        super().__init__(stated.parameters)
        self._law = law

    def count(self, levels: Levels) -> int:
        return self._law.copies

    def law(self, levels: Levels, table: TableMoments) -> NoiseLaw:
        return self._law

    def sampler(self, levels: Levels, table: TableMoments, key: Key, existing: int = 0) -> Sampler:
        return LawSampler(self._law, key)


class LawSampler(NamedTuple):
    """Draws the noise of all copies by a stated law, block by block."""

    law: NoiseLaw
    key: Key

    def block(self, index: int, x: Array, out: Arrays, existing: int = 0) -> None:
        rng = stream(self.key.seed, "stated law", self.key.replicate, index)
        noise = self.law.coloured(rng.standard_normal((len(x), self.law.copies * self.law.width)))
        for copy, each in zip(out, np.hsplit(noise, self.law.copies), strict=True):
            np.add(x, each, out=copy)


def _check_alignment(name: str, table: Table, copy: Array, by_row: bool) -> None:
    blocks = row_blocks(table.rows, table.width)
    head = block_head(
        table.rows, table.width, max(FEWEST_LOOKED_AT, VALUES_LOOKED_AT // table.width)
    )
    looked_at = [
        (start, stop if head is None else min(stop, start + head)) for start, stop in blocks
    ]
    X = np.concatenate([table.read(start, stop) for start, stop in looked_at])
    found = misaligned(
        X, np.concatenate([copy[start:stop] for start, stop in looked_at]), table.attributes
    )
    if found is None:
        return
    if found.certain:
        remedy = (
            f"{JOIN_REMEDY}, put them in the original's order"
            if by_row
            else "although joined by their keys: are these the original's"
        )
        raise misplaced_rows(name, found.cause, remedy)
    warn_of_rows(name, "it is too noisy for so few records to tell")


def misplaced_rows(name: str, cause: str, remedy: str) -> AuditorError:
    """Error of a copy with other rows than the original."""
    return AuditorError(f"{quoted(name)}: the copy's rows {cause}; {remedy}, or {VOUCH}")


def warn_of_rows(name: str, why: str) -> None:
    """Warn that a copy's rows may not be the original's."""
    problem = f"{quoted(name)}: nothing shows that the copy's rows are the original's, in its order"
    warnings.warn(AuditorWarning(f"{problem}: {why}; {VOUCH}"), stacklevel=4)


def _scheme_of(law: dict[str, Any]) -> Scheme:
    cls = get("scheme", law["scheme"])
    rest = {key.replace("_", "-"): value for key, value in law.items() if key != "scheme"}
    scheme: Scheme = cls(cls.Parameters.model_validate(rest))
    return scheme


def _check_law(law: dict[str, Any]) -> None:
    if len({"scheme", "covariance"} & set(law)) != 1:
        raise ValueError("must have `scheme` or `covariance`, and not both")
    if "covariance" in law:
        unknown = [key for key in law if key != "covariance"]
        if unknown or not isinstance(law["covariance"], str):
            raise ValueError("must be {covariance: file}, the path of a CSV file without a header")
        return
    if law["scheme"] == Published.name or not isinstance(law["scheme"], str):
        raise ValueError("must name the scheme whose law the copies follow")
    try:
        scheme = _scheme_of(law)
    except PluginError as error:
        raise ValueError(f"names an {error}") from None
    except ValidationError as error:
        model = get("scheme", law["scheme"]).Parameters
        given = {key: value for key, value in law.items() if key != "scheme"}
        raise ValueError(f"is wrong: {sentence(explain(error, model, given))}") from None
    if not scheme.adds_noise:
        raise ValueError(f"must name a scheme that adds noise, which {law['scheme']} does not")


LAWS = ("uniform", "uniform-multilevel")
UNRELATED = 1e-4
"""P-value of a relation above which the row order is unconfirmed."""
FEWEST_SHUFFLED = 30
"""Fewest records to call equal frequencies without a relation a shuffle."""
TELLING = 0.1
"""Difference of shares between missing and present records that counts as disclosure."""
MOST_GROUPED = 64
"""Most values in the test of a relation; larger domains modulo it."""


@register
class PublishedCategories(FileScheme, UniformScheme):
    """Categorical copies from files, with a stated or estimated law."""

    name = "published-categories"
    assumes = "Each file holds the same records as the data, row by row or by their `key`: tested unless `aligned` vouches for it."
    multilevel = False
    reference = "xiao2009, eq. 1"
    trial = MappingProxyType({"copies": ["a.csv"], "law": {"scheme": "uniform"}})

    class Parameters(FileScheme.Parameters):
        """Files of the copies, and the law that they state."""

        law: dict[str, Any] | None = Field(
            None,
            description="{scheme: uniform} or {scheme: uniform-multilevel}, with `replacement` as of that scheme; levels, retention "
            "probabilities, are then needed",
        )

        @field_validator("law")
        @classmethod
        def _one_law(cls, law: dict[str, Any] | None) -> dict[str, Any] | None:
            if law is not None and (
                set(law) - {"replacement"} != {"scheme"} or law["scheme"] not in LAWS
            ):
                raise ValueError(
                    "must be {scheme: uniform} or {scheme: uniform-multilevel}; any other is estimated if it is left out"
                )
            if law is not None:
                parsed(law.get("replacement", "uniform"))
            return law

    def check_levels(self, levels: Levels) -> None:
        if self.parameters.law is not None and not levels:
            raise AuditorError(
                "a law by scheme needs the copies' levels, their retention probabilities"
            )
        self.check_count(levels)
        super().check_levels(levels)

    def check_table(self, table: Table, asked: DataUse) -> None:
        table = with_sets(table, self.files(table))
        data = categories_of(table)
        by_row = self.parameters.key is None
        why = self.check_join(asked)
        if note := never_drawn(self._stated_replacements(data)):
            warnings.warn(AuditorWarning(f"law: {note}"), stacklevel=2)
        if self.parameters.law is None and data.size > MOST_VALUES:
            fewer = "take fewer columns or wider bins, or state the law"
            raise AuditorError(
                f"the law of copies is estimated over at most {MOST_VALUES:,} values; the domain has {data.size:,}: {fewer}"
            )
        copies = self.read(table, asked.rows is None, why)
        self.warn(table, self._audited(table, copies).notes)
        for copy in copies if by_row and not self.parameters.aligned else ():
            full = copy.full(slice(None))
            _check_codes_alignment(
                copy.name, data.codes[full], codes_of(copy, data)[full], data.size
            )

    def audited(self, table: Table) -> Audited:
        table = with_sets(table, self.files(table))
        return self._audited(table, self.read(table))

    def handed_in(self, table: Table) -> list[Array]:
        return [np.asarray(codes, dtype=np.float64) for codes in self.held()]

    def _audited(self, table: Table, copies: Sequence[Copy]) -> Audited:
        full = [copy.full(slice(None)) for copy in copies]
        rows = np.flatnonzero(np.logical_and.reduce(full))
        renamed = tuple(note for copy in copies for note in copy.notes)
        if len(rows) == table.rows:
            return Audited(table, renamed)
        lacking = [
            f"{copy.name} lacks {table.rows - int(held.sum()):,}"
            for copy, held in zip(copies, full, strict=True)
        ]
        if len(rows) < FEWEST_RECORDS:
            few = f"original and copies have {counted(len(rows), 'record')} in common, with every answer"
            raise AuditorError(f"{few}; at least {FEWEST_RECORDS} are needed: {', '.join(lacking)}")
        note = f"{len(rows):,} of {table.rows:,} records are audited, those that every copy has with every answer: {', '.join(lacking)}"
        notes = [f"{note}; who leaves answers out may have perturbed the others less"]
        data = categories_of(table)
        each = (_tells(copy.name, data, held) for copy, held in zip(copies, full, strict=True))
        telling = list(filter(None, each))
        return Audited(
            table.part(rows, np.arange(table.width)), (*renamed, *notes, *telling), bool(telling)
        )

    def channel(self, levels: Levels, size: int) -> UniformLaw:
        stated = self.parameters.law
        return (
            self.estimated()
            if stated is None
            else replace(super().channel(levels, size), multilevel=stated["scheme"] == LAWS[1])
        )

    def replaced_by(self, size: int) -> Array | None:
        return self._stated_replacements(categories_of(self.audited_table))

    def _stated_replacements(self, data: CategoricalTable) -> Array | None:
        return distribution(parsed((self.parameters.law or {}).get("replacement", "uniform")), data)

    def estimated(self, rows: Indices | slice = slice(None)) -> EstimatedLaw:
        """Law estimated from some records, or from all."""
        data, copies = categories_of(self.audited_table), [copy[rows] for copy in self.held()]
        return estimated(data.codes[rows], copies, [one.size for one in data.attributes])

    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        start, stop = row_blocks(self.audited_table.rows, BLOCK_WIDTH)[key.block]
        return FileCopies(original, size, key, [copy[start:stop] for copy in self.held()])

    def held(self) -> list[Codes]:
        """All copies of the audited records, cached."""
        whole = self.audited_table.whole
        stamps = [(str(path), path.stat().st_mtime_ns) for path in self.files(whole)]
        data = categories_of(whole)
        key = ("codes", data.fingerprint(), self.parameters.key, *stamps)
        made = remembered(key, lambda: [codes_of(copy, data) for copy in self.read(whole)])
        return [self.audited_table.cut_out(codes) for codes in made]


class FileCopies(Copies):
    """File copies of one block of records."""

    def __init__(self, original: Codes, size: int, key: Key, held: Sequence[Codes]) -> None:
        super().__init__(original, size, key)
        self._held = held

    def copy(self, number: int) -> Codes:
        return self._held[number - 1]


def _tells(name: str, data: CategoricalTable, held: Flags) -> str:
    """Describe disclosure by missing records or answers; "" if none.

    By the commonest answer (χ² of two shares).
    """
    n, m = len(held), int((~held).sum())
    if not FEWEST_RECORDS <= m <= n - FEWEST_RECORDS:
        return ""
    for attribute, codes in zip(data.attributes, split(data, data.codes), strict=True):
        is_most = codes == np.bincount(codes[~held]).argmax()
        out, kept, share = is_most[~held].mean(), is_most[held].mean(), is_most.mean()
        if (
            out - kept > TELLING
            and scipy.special.chdtrc(
                1, (out - kept) ** 2 * m * (n - m) / (n * share * (1.0 - share))
            )
            < UNRELATED
        ):
            what = f"{name}: of the records that it lacks, or lacks an answer of, {out:.0%} have one and the same {quoted(attribute.name)}"
            return f"{what}, of the others {kept:.0%}: what is left out is more exposed than the figures say"
    return ""


def _check_codes_alignment(name: str, original: Codes, copy: Codes, size: int) -> None:
    x, y = original.astype(np.intp) % MOST_GROUPED, copy.astype(np.intp) % MOST_GROUPED
    counts = np.bincount(x * MOST_GROUPED + y, minlength=MOST_GROUPED**2).reshape(
        MOST_GROUPED, MOST_GROUPED
    )
    counts = counts[counts.any(axis=1)][:, counts.any(axis=0)]
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / x.size
    freedom = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    if (
        freedom == 0
        or scipy.special.chdtrc(freedom, ((counts - expected) ** 2 / expected).sum()) < UNRELATED
    ):
        return
    same = (np.bincount(original, minlength=size) == np.bincount(copy, minlength=size)).all()
    if x.size >= FEWEST_SHUFFLED and same:
        cause = "hold the original's values in another order: shuffled, or sorted by something else"
        raise misplaced_rows(name, cause, f"put them in the original's order, {JOIN_REMEDY}")
    warn_of_rows(name, "it may tell nothing of them, or be in another order")
