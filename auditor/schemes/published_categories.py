"""Published categorical copies: files that were made elsewhere by any randomised response or PRAM, audited as they are.

A copy's law is a transition matrix, the chance of every value it may show by the original's. With ``levels`` and ``law`` it is the one
that is stated, and the drawn values are compared with it. Without a law it is estimated from original and copies
(``auditor.schemes.replacement.estimated_law``), which is what an insider could know; half of the records teach it, and the attacks are
measured on the other half, in turn.

A scenario that names categories (``categorical:`` or ``bin:``) and the scheme ``published`` means this one, unless the law that it states
is of added noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from auditor.data.code_copies import CodeCopy, read_codes
from auditor.data.columns.categorical_table import BLOCK_WIDTH, CategoricalTable, split
from auditor.data.columns.record_keys import RecordKeys
from auditor.data.copies import JOIN_REMEDY
from auditor.data.formats.readers import notes_of
from auditor.data.request import DataUse
from auditor.data.table import Audited, Table
from auditor.errors import AuditorError, AuditorWarning
from auditor.numerics.blocks import row_blocks
from auditor.process.deferred import scipy
from auditor.registry import PluginParameters, register
from auditor.results.disclosure import FEWEST_RECORDS
from auditor.schemes.base.file_scheme import FileScheme
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import Copies, UniformScheme, categories_of
from auditor.schemes.replacement.distribution import distribution, never_drawn, parsed
from auditor.schemes.replacement.estimated_law import MOST_VALUES, EstimatedLaw, estimated
from auditor.schemes.replacement.law import UniformLaw
from auditor.text.column_names import counted, quoted
from auditor.types import Array, Coalition, Codes

LAWS = ("uniform", "uniform-multilevel")
UNRELATED = 1e-4
"""Chance of a relation as strong among unrelated rows, above which nothing shows that a copy's rows are the original's."""
FEWEST_SHUFFLED = 30
"""Records from which on equal frequencies of all values, and no relation, are no chance."""
TELLING = 0.1
"""By how much a value's share among records left out exceeds its share of the others, for its being left out to tell it."""
MOST_GROUPED = 64
"""Values that a relation is sought among; those of a larger domain are taken modulo that."""


@register
class PublishedCategories(FileScheme, UniformScheme):
    """Categorical copies from files, made elsewhere: audited as they are, with a stated law or one estimated from them."""

    name = "published-categories"
    assumes = "Each file holds the same records as the data, row by row or by their `key`: tested unless `aligned` vouches for it."
    multilevel = False
    reference = "xiao2009, eq. 1"
    trial = MappingProxyType({"copies": ["a.csv"], "law": {"scheme": "uniform"}})

    class Parameters(PluginParameters):
        """Where the copies are, and what is said of them."""

        copies: list[str] = Field(description="paths of .csv or .parquet files, in order of release", min_length=1, max_length=10_000)
        law: dict[str, Any] | None = Field(
            None, description="{scheme: uniform} or {scheme: uniform-multilevel}, with `replacement` as of that scheme; levels, retention "
            "probabilities, are then needed",
        )
        key: str | None = Field(None, description="the column that identifies records, which the files are then joined by")
        aligned: bool = Field(False, description="whether you vouch that rows are the original's, and what looks otherwise is not refused")

        @field_validator("law")
        @classmethod
        def _one_law(cls, law: dict[str, Any] | None) -> dict[str, Any] | None:
            if law is not None and (set(law) - {"replacement"} != {"scheme"} or law["scheme"] not in LAWS):
                raise ValueError("must be {scheme: uniform} or {scheme: uniform-multilevel}; any other is estimated if it is left out")
            if law is not None:
                parsed(law.get("replacement", "uniform"))
            return law

    def check_levels(self, levels: Sequence[float]) -> None:
        """Refuse levels that are neither left out nor a retention probability for each copy."""
        if self.parameters.law is not None and not levels:
            raise AuditorError("a law by scheme needs the copies' levels, their retention probabilities")
        self.check_count(levels)
        super().check_levels(levels)

    def check_table(self, table: Table, asked: DataUse) -> None:
        """Refuse copies whose records or values are not the table's; warn where nothing shows that rows are in its order."""
        data, by_row, why = categories_of(table), self.parameters.key is None, self.check_join(asked)
        if note := never_drawn(self._stated_replacements(data)):
            warnings.warn(AuditorWarning(f"law: {note}"), stacklevel=2)
        if self.parameters.law is None and data.size > MOST_VALUES:
            fewer = "take fewer columns or wider bins, or state the law"
            raise AuditorError(f"the law of copies is estimated over at most {MOST_VALUES:,} values; the domain has {data.size:,}: {fewer}")
        copies = [read_codes(path, data, self._keys(table), asked.rows is None, why, table.dropped) for path in self.paths]
        for note in (*chain.from_iterable(map(notes_of, self.paths)), *self._audited(table, copies).notes):
            warnings.warn(AuditorWarning(note), stacklevel=2)
        for path, copy in zip(self.paths, copies, strict=True) if by_row and not self.parameters.aligned else ():
            _check_alignment(path.name, data.codes[copy.full], copy.codes[copy.full], data.size)

    def audited(self, table: Table) -> Audited:
        """Return the records that the original and all copies have, with every answer."""
        data, keys = categories_of(table), self._keys(table)
        return self._audited(table, [read_codes(path, data, keys, dropped=table.dropped) for path in self.paths])

    def _audited(self, table: Table, copies: Sequence[CodeCopy]) -> Audited:
        rows = np.flatnonzero(np.logical_and.reduce([copy.full for copy in copies]))
        if len(rows) == table.rows:
            return Audited(table)
        lacking = [f"{path.name} lacks {table.rows - int(copy.full.sum()):,}" for path, copy in zip(self.paths, copies, strict=True)]
        if len(rows) < FEWEST_RECORDS:
            few = f"original and copies have {counted(len(rows), 'record')} in common, with every answer"
            raise AuditorError(f"{few}; at least {FEWEST_RECORDS} are needed: {', '.join(lacking)}")
        note = f"{len(rows):,} of {table.rows:,} records are audited, those that every copy has with every answer: {', '.join(lacking)}"
        notes = [f"{note}; who leaves answers out may have perturbed the others less"]
        data = categories_of(table)
        telling = [told for path, copy in zip(self.paths, copies, strict=True) if (told := _tells(path.name, data, copy.full))]
        return Audited(table.part(rows, np.arange(table.width)), (*notes, *telling), bool(telling))

    def _keys(self, table: Table) -> RecordKeys | None:
        return None if self.parameters.key is None else table.keys

    def channel(self, levels: Sequence[float], size: int) -> UniformLaw:
        """Return the stated law, or the one that all records teach."""
        stated = self.parameters.law
        return self.estimated() if stated is None else replace(super().channel(levels, size), multilevel=stated["scheme"] == LAWS[1])

    def replaced_by(self, size: int) -> Array | None:
        """Return ``π`` as it is stated, shape (s,); None where it is uniform, or nothing is stated."""
        return self._stated_replacements(categories_of(self.audited_table))

    def _stated_replacements(self, data: CategoricalTable) -> Array | None:
        return distribution(parsed((self.parameters.law or {}).get("replacement", "uniform")), data)

    def estimated(self, rows: NDArray[np.integer[Any]] | None = None, coalitions: Sequence[Coalition] = ()) -> EstimatedLaw:
        """Return the law that some records teach, or all: of pairs of copies only those that some coalition's law is made of."""
        data, some = categories_of(self.audited_table), slice(None) if rows is None else rows
        copies = {number: copy[some] for number, copy in enumerate(self.held(), start=1)}
        return estimated(data.codes[some], copies, [attribute.size for attribute in data.attributes], coalitions)

    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        """Return what hands out the files' values in the place of draws."""
        start, stop = row_blocks(self.audited_table.rows, BLOCK_WIDTH)[key.block]
        return FileCopies(original, size, key, [copy[start:stop] for copy in self.held()])

    def held(self) -> list[Codes]:
        """Return all copies of the records that are audited; those of one release stay in memory for the passes that follow."""
        whole, paths = self.audited_table.whole, self.paths
        data = categories_of(whole)
        key = (data.fingerprint(), self.parameters.key, *((str(path.resolve()), path.stat().st_mtime_ns) for path in paths))
        if key not in _read:
            _read.clear()
            _read[key] = [read_codes(path, data, self._keys(whole), dropped=whole.dropped).codes for path in paths]
        return [self.audited_table.cut_out(codes) for codes in _read[key]]


_read: dict[Any, list[Codes]] = {}
"""By the original's fingerprint, and the files; of one release."""


class FileCopies(Copies):
    """The copies of one block of records, as files hold them."""

    def __init__(self, original: Codes, size: int, key: Key, held: Sequence[Codes]) -> None:
        super().__init__(original, size, key)
        self._held = held

    def _draw(self, level: float, key: Key) -> Codes:
        return self.copy(len(self.levels))

    def copy(self, number: int) -> Codes:
        """Return copy ``number``."""
        return self._held[number - 1]


def _tells(name: str, data: CategoricalTable, held: NDArray[np.bool_]) -> str:
    """Return how that a copy lacks a record, or an answer of it, tells what the answer is; nothing where it tells little.

    The commonest answer of a column is then commoner among records left out, by `TELLING` and by more than chance (χ² of two shares).
    """
    n, m = len(held), int((~held).sum())
    if not FEWEST_RECORDS <= m <= n - FEWEST_RECORDS:
        return ""
    for attribute, codes in zip(data.attributes, split(data, data.codes), strict=True):
        is_most = codes == np.bincount(codes[~held]).argmax()
        out, kept, share = is_most[~held].mean(), is_most[held].mean(), is_most.mean()
        if out - kept > TELLING and scipy.special.chdtrc(1, (out - kept) ** 2 * m * (n - m) / (n * share * (1.0 - share))) < UNRELATED:
            what = f"{name}: of the records that it lacks, or lacks an answer of, {out:.0%} have one and the same {quoted(attribute.name)}"
            return f"{what}, of the others {kept:.0%}: what is left out is more exposed than the figures say"
    return ""


def _check_alignment(name: str, original: Codes, copy: Codes, size: int) -> None:
    """Raise `AuditorError` for a shuffled copy; warn where nothing relates a copy to the original, as at a retention of 0."""
    x, y = original.astype(np.intp) % MOST_GROUPED, copy.astype(np.intp) % MOST_GROUPED
    counts = np.bincount(x * MOST_GROUPED + y, minlength=MOST_GROUPED**2).reshape(MOST_GROUPED, MOST_GROUPED)
    counts = counts[counts.any(axis=1)][:, counts.any(axis=0)]
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / x.size
    freedom = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    if freedom == 0 or scipy.special.chdtrc(freedom, ((counts - expected) ** 2 / expected).sum()) < UNRELATED:
        return
    vouch = "set `aligned: true` if you know that they are the same records in the same order"
    same = (np.bincount(original, minlength=size) == np.bincount(copy, minlength=size)).all()
    if x.size >= FEWEST_SHUFFLED and same:
        cause = "hold the original's values in another order: shuffled, or sorted by something else"
        raise AuditorError(f"{quoted(name)}: the copy's rows {cause}; put them in the original's order, {JOIN_REMEDY}, or {vouch}")
    problem = f"{quoted(name)}: nothing shows that the copy's rows are the original's, in its order"
    warnings.warn(AuditorWarning(f"{problem}: it may tell nothing of them, or be in another order; {vouch}"), stacklevel=2)
