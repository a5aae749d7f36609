"""Published categorical copies: files made elsewhere, audited as they are.

With ``categorical:`` or ``bin:`` ``published`` means these copies, unless it states added noise.
Without a stated law one is estimated, cross-fitted on two halves.
"""

import warnings
from collections.abc import Sequence
from types import MappingProxyType

import numpy as np
from pydantic import Field, field_validator

from auditor.base import AuditorError, AuditorWarning, counted, quoted, scipy
from auditor.base.types import Array, Codes, Flags, Indices, Levels, Plain
from auditor.data.columns.categorical_table import BLOCK_WIDTH, CategoricalTable, split
from auditor.data.copies import JOIN_REMEDY, Copy, codes_of, with_sets
from auditor.data.table import Audited, DataUse, Table, remembered
from auditor.numerics.blocks import row_blocks
from auditor.registry import register
from auditor.results.disclosure import FEWEST_RECORDS
from auditor.schemes.base.scheme import Key
from auditor.schemes.published import FileScheme, misplaced_rows, stated_scheme, warn_of_rows
from auditor.schemes.replacement.base import Copies, UniformScheme, categories_of, never_drawn
from auditor.schemes.replacement.law import MOST_VALUES, EstimatedLaw, UniformLaw, estimated

# -- Copies of categories ---------------------------------------------------------------------------


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

        law: Plain | None = Field(
            None,
            description="{scheme: uniform} or {scheme: uniform-multilevel}, with `replacement` as of that scheme; levels, retention "
            "probabilities, are then needed",
        )

        @field_validator("law")
        @classmethod
        def _one_law(cls, law: Plain | None) -> Plain | None:
            if law is not None and (
                set(law) - {"replacement"} != {"scheme"} or law["scheme"] not in LAWS
            ):
                raise ValueError(
                    "must be {scheme: uniform} or {scheme: uniform-multilevel}; any other is estimated if it is left out"
                )
            if law is not None:
                stated_scheme(law)
            return law

    def check_table(self, table: Table, asked: DataUse) -> None:
        table = with_sets(table, self.files(table))
        data, stated = categories_of(table), self.stated()
        if stated and (note := never_drawn(stated.over(data).replaced_by(data.size))):
            warnings.warn(AuditorWarning(f"law: {note}"), stacklevel=2)
        if stated is None and data.size > MOST_VALUES:
            fewer = "take fewer columns or wider bins, or state the law"
            raise AuditorError(
                f"the law of copies is estimated over at most {MOST_VALUES:,} values; the domain has {data.size:,}: {fewer}"
            )
        super().check_table(table, asked)

    def check_rows(self, copy: Copy, table: Table) -> None:
        data, full = categories_of(table), copy.full(slice(None))
        if self.parameters.key is None:
            _check_codes_alignment(
                copy.name, data.codes[full], codes_of(copy, data)[full], data.size
            )

    def audited(self, table: Table) -> Audited:
        return super().audited(with_sets(table, self.files(table)))

    def handed_in(self, table: Table) -> list[Array]:
        return [np.asarray(codes, dtype=float) for codes in self.held()]

    def common(self, table: Table, copies: Sequence[Copy]) -> Audited:
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
        if (stated := self.stated()) is None:
            return self.estimated()
        return stated.over(categories_of(self.audited_table)).channel(levels, size)

    def replaced_by(self, size: int) -> Array | None:
        if (stated := self.stated()) is None:
            return None
        return stated.over(categories_of(self.audited_table)).replaced_by(size)

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
        data = categories_of(whole)
        made = remembered(
            self.stamps(whole), lambda: [codes_of(copy, data) for copy in self.read(whole)]
        )
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
    x, y = original.astype(int) % MOST_GROUPED, copy.astype(int) % MOST_GROUPED
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
