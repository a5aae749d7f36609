"""Published copies: files made elsewhere, audited as they are.

Attacks use ``law`` (a scheme's name and parameters, or a covariance file), or else a law estimated
from original and copies; a wrong law contradicts the measurement. Files match row by row, or by a
`key` column. Audited are records and columns that are complete everywhere. The stated law is of the
whole original.

With ``categorical:`` or ``bin:`` ``published`` means ``published-categories``, unless it states added
noise. Without a stated law one is estimated, cross-fitted on two halves.
"""

import warnings
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field, ValidationError, field_validator

from auditor.base import AuditorError, AuditorWarning, PluginError, quoted
from auditor.base.types import Array, Arrays, Levels, Plain
from auditor.data.alignment import common_part, misaligned
from auditor.data.copies import (
    JOIN_REMEDY,
    Copy,
    check_joined_by_row,
    copy_file,
    read_copy,
    shown_columns,
)
from auditor.data.formats.parts import header, notes_of, stored_names
from auditor.data.table import Audited, DataUse, ShownColumn, Table, remembered
from auditor.numerics.blocks import block_head, row_blocks, seal
from auditor.numerics.random_streams import stream
from auditor.registry import PluginParameters, get, register
from auditor.registry.parameters import explain, sentence
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
from auditor.schemes.corner_wave import AdditiveScheme
from auditor.schemes.replacement.base import categories_of


class FileScheme(Scheme):
    """Copies from files, made elsewhere; levels may be unknown."""

    claims = "The statements of its makers, which the audit tests."
    needs_levels = False
    makes_copies = False
    needs_table = True

    class Parameters(PluginParameters):
        """Files of the copies, and their match to the original."""

        copies: list[str] = Field(min_length=1, max_length=10_000)
        """paths of .csv or .parquet files, in order of release"""
        key: str | None = Field(
            None,
            description="column of whole numbers or text that identifies records in the data and in every copy, which may then be in "
            "another order and lack some; without it, rows must match one to one",
        )
        aligned: bool = False
        """whether you vouch that rows and columns are the original's, and what looks otherwise is not refused"""

    def count(self, levels: Levels) -> int:
        return len(self.parameters.copies)

    def check_levels(self, levels: Levels) -> None:
        stated = self.stated()
        if stated is not None and not levels:
            raise AuditorError("a law by scheme needs the copies' levels")
        if levels and len(levels) != len(self.parameters.copies):
            raise AuditorError(
                f"{len(self.parameters.copies)} copies need as many levels; got {len(levels)}"
            )
        check = super().check_levels if stated is None else stated.check_levels
        check(levels)

    def check_table(self, table: Table, asked: DataUse) -> None:
        if self.parameters.key is None:
            check_joined_by_row(asked)
        dropped = (
            "`missing: drop` left records of the original out, and a copy must lack the same ones"
        )
        why = f"; {dropped}" if asked.missing == "drop" else ""
        copies = self.read(table, asked.rows is None, why)
        for note in (
            *chain.from_iterable(map(notes_of, self.files(table))),
            *self.common(table, copies).notes,
        ):
            warnings.warn(AuditorWarning(note), stacklevel=3)
        for copy in copies if not self.parameters.aligned else ():
            self.check_rows(copy, table)

    def audited(self, table: Table) -> Audited:
        return self.common(table, self.read(table))

    @abstractmethod
    def common(self, table: Table, copies: Sequence[Copy]) -> Audited:
        """Records and columns that all copies have in full, with notes."""

    @abstractmethod
    def check_rows(self, copy: Copy, table: Table) -> None:
        """Refuse a copy with rows of other records, or warn."""

    def files(self, table: Table) -> list[Path]:
        """Files in order of release."""
        return [copy_file(name, self.base, table.source) for name in self.parameters.copies]

    def stamps(self, table: Table) -> Hashable:
        """State of the files and of the read columns."""
        there = [(path, path.stat()) for path in self.files(table)]
        states = ((str(path), at.st_mtime_ns, at.st_size) for path, at in there)
        return self.name, self.parameters.key, table.fingerprint(), *states

    def read(self, table: Table, exact: bool = False, why: str = "") -> list[Copy]:
        """Copies as matched to a table's records."""
        given = self.parameters.key, exact, why, self.engine == "categorical"
        return [read_copy(path, table, *given) for path in self.files(table)]

    def shown(self, table: Table) -> list[ShownColumn]:
        found = remembered(("shown", self.stamps(table.whole)), lambda: self._shown(table.whole))
        return [column._replace(values=table.cut_out(column.values)) for column in found]

    def _shown(self, table: Table) -> list[ShownColumn]:
        names, copies, paths = self.beside(table), self.read(table), self.files(table)
        files = zip(paths, [c.rows for c in copies], [each for _, each in names], strict=True)
        found = shown_columns(files, table.attributes if self.engine == "numeric" else ())
        for number, (path, copy) in enumerate(zip(paths, copies, strict=True), start=1):
            if copy.order is not None:
                found.append(ShownColumn(number, "order of rows", np.nan_to_num(copy.order)))
            for step in (1, -1) if copy.beyond else ():  # records of others may be next to a record
                rows = copy.rows + np.where(copy.held, step, 0)
                cells = shown_columns([(path, rows, [name for name in header(path) if name])])
                cells.append(ShownColumn(1, "record", np.isin(rows, copy.rows).astype(int)))
                found += [
                    ShownColumn(
                        number, f"{c.name} of the row {'after' if step > 0 else 'before'}", c.values
                    )
                    for c in cells
                ]
        seal(*(column.values for column in found))
        return found

    def beside(self, table: Table) -> list[tuple[int, list[str]]]:
        whole = table.whole
        names = table.attributes if self.engine == "numeric" else categories_of(whole).names
        hidden = {*names, self.parameters.key}
        return [
            (number, [name for name in stored_names(path) if name not in hidden])
            for number, path in enumerate(self.files(whole), start=1)
        ]

    def stated(self) -> Any:
        """Scheme that the law names, or None."""
        law = self.parameters.law or {}
        scheme = stated_scheme(law) if "scheme" in law else None
        if scheme is not None:
            scheme.base = self.base
        return scheme

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

        law: Plain | None = None
        """{scheme: name, …its parameters}, or {covariance: file} for a K_Z of its own; levels are then needed"""

        @field_validator("law")
        @classmethod
        def _one_law(cls, law: Plain | None) -> Plain | None:
            if law is None:
                return law
            if len({"scheme", "covariance"} & set(law)) != 1:
                raise ValueError("must have `scheme` or `covariance`, and not both")
            if "covariance" in law:
                if len(law) > 1 or not isinstance(law["covariance"], str):
                    raise ValueError(
                        "must be {covariance: file}, the path of a CSV file without a header"
                    )
            elif law["scheme"] == Published.name or not isinstance(law["scheme"], str):
                raise ValueError("must name the scheme whose law the copies follow")
            elif not stated_scheme(law).adds_noise:
                raise ValueError(
                    f"must name a scheme that adds noise, which {law['scheme']} does not"
                )
            return law

    def check_table(self, table: Table, asked: DataUse) -> None:
        if asked.standardize:
            raise AuditorError(
                "published copies are in the data's own units: `standardize` must be false"
            )
        super().check_table(table, asked)
        common, stated = self.common(table, self.read(table)), self.stated()
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

    def check_rows(self, copy: Copy, table: Table) -> None:
        columns = np.flatnonzero(copy.said)
        full = np.flatnonzero(copy.full(columns))
        _check_alignment(
            copy.name,
            table.part(full, columns),
            copy.values[np.ix_(full, columns)],
            self.parameters.key is None,
        )

    def handed_in(self, table: Table) -> list[Array]:
        if table.cut is None and self.parameters.key is None:
            return []
        copies = self.read(table.whole)
        return (
            [copy.cells for copy in copies]
            if table.cut is not None or any(copy.order is not None for copy in copies)
            else []
        )

    def common(self, table: Table, copies: Sequence[Copy]) -> Audited:
        return remembered(self.stamps(table), lambda: common_part(table, copies))

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
        return self.stated() if whole else None

    def _law(self, levels: Levels, table: TableMoments) -> NoiseLaw | None:
        stated = self.parameters.law
        if stated is None:
            return None
        if "covariance" in stated:
            K_Z = matrix_of_file(str(stated["covariance"]), self.base, "law.covariance")
            d, N = self.count(levels) * table.mean.size, table.mean.size
            if K_Z.shape != (d, d):
                raise AuditorError(
                    f"law.covariance must be {d} × {d} (copies × attributes); got {K_Z.shape[0]} × {K_Z.shape[1]}"
                )
            try:
                return DenseNoise(check_covariance(K_Z), N)
            except ValueError as error:
                raise AuditorError(f"law.covariance {error}") from None
        scheme = self.stated()
        return None if scheme is None else scheme.law(levels, table)

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
    warnings.warn(
        AuditorWarning(
            f"{quoted(name)}: nothing shows that the copy's rows are the original's, in its order: {why}; "
            f"{VOUCH}"
        ),
        stacklevel=4,
    )


def stated_scheme(law: Plain) -> Any:
    """Scheme that a law names; ``ValueError`` for an unknown name or wrong parameters."""
    given = {key.replace("_", "-"): value for key, value in law.items() if key != "scheme"}
    try:
        cls = get("scheme", law["scheme"])
        return cls(cls.Parameters.model_validate(given))
    except PluginError as error:
        raise ValueError(f"names an {error}") from None
    except ValidationError as error:
        raise ValueError(f"is wrong: {sentence(explain(error, cls.Parameters, given))}") from None
