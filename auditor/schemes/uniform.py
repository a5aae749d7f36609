r"""Retention-replacement: values kept with probability p, else redrawn.

| symbol | meaning | source |
| --- | --- | --- |
| ``p`` | retention probability, a copy's level: more = *less* noisy | xiao2009, section 1 |
| ``s`` | size of the domain | |
| ``π`` | distribution of replacements, (s,): ``1/s`` each, unless ``replacement`` is stated | agrawal2005 |
| ``P(y\|x)`` | ``p·[x = y] + (1 − p)·π_y`` | xiao2009, eq. 1 |

``uniform`` draws every copy independently: a shared value is probably the original.
``uniform-multilevel`` observes one process at times ``−ln p``: the least perturbed copy is
sufficient (xiao2009, Theorem 1). ``replacement: prior`` publishes expected shares: ``ε = ln(1 +
p/((1 − p)·min π))`` is least for uniform π, and infinite if some π is 0.

``multi-pert`` (Figure 3) stores a compressed history: ``⟨p, Y⟩`` by falling retention, where the
value changes. The printed update misses an *implicit* right neighbour ``⟨p_r, Y_r⟩``, equal to the
left one. Here it is explicit if and only if ``Y_r ≠ Y``.

Fails if the adversary knows how tuples depend on each other.

PRAM randomises categories by a published transition matrix:

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``P`` | ``matrix``: chance that x (row) becomes y (column); rows sum to 1 | (s, s) | gouweleeuw1998 |
| level | ``p``, share unchanged | scalar in [0, 1] | |
| ``T(p)`` | ``p·I + (1 − p)·P``; retention-replacement if P has equal rows | (s, s) | |
| ``Q`` | ``Q[y, x] = q_x P[x, y] / Σ_x' q_x' P[x', y]``, q the table's shares | (s, s) | |
| ``PQ`` | ``invariant``: replaces P and preserves shares, ``q P Q = q`` | (s, s) | gouweleeuw1998 |

Columns are perturbed independently. A value that two copies show is probably the original. The
matrix is public.
"""

import warnings
from bisect import bisect_left
from collections.abc import Sequence
from functools import reduce
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, field_validator

from auditor.base import AuditorError, AuditorWarning, counted, quoted, scipy
from auditor.base.types import Array, Codes, Flags, Indices, Integers, Levels, Plain, unprinted
from auditor.data.columns.categorical_table import BLOCK_WIDTH, CategoricalTable, split
from auditor.data.copies import JOIN_REMEDY, Copy, codes_of, with_sets
from auditor.data.table import Audited, DataUse, Table, remembered
from auditor.numerics.blocks import row_blocks
from auditor.numerics.linear_algebra import quotient
from auditor.numerics.random_streams import Rng
from auditor.registry import PluginParameters, register
from auditor.results.disclosure import FEWEST_RECORDS
from auditor.schemes.base.scheme import Key
from auditor.schemes.published import FileScheme, misplaced_rows, stated_scheme, warn_of_rows
from auditor.schemes.replacement.base import (
    Copies,
    Draws,
    FreshCopies,
    ProcessCopies,
    Replacement,
    UniformScheme,
    by_attribute,
    categories_of,
    check_chances,
    coins,
    columns_of,
    distribution,
    never_drawn,
    sent_through,
    stream_of,
)
from auditor.schemes.replacement.law import (
    MOST_VALUES,
    EstimatedLaw,
    MatrixLaw,
    UniformLaw,
    estimated,
)


@unprinted
class History:
    """Compressed histories of n tuples: values that change, by falling level.

    Attributes
    ----------
    levels
        Distinct retention probabilities, ascending.
    rows, p, y : (elements,)
        Tuple, level and value of each element.
    """

    original: Codes
    levels: tuple[float, ...]
    rows: Indices
    p: Array
    y: Codes

    def value(self, level: float) -> Codes:
        """Values at a level, shape (n,): each tuple's last element down to it."""
        values, held = self.original.copy(), self.p >= level
        values[self.rows[held]] = self.y[held]
        return values

    def neighbours(self, level: float) -> tuple[float | None, float | None]:
        """Released levels next above and next below an unreleased one."""
        place = bisect_left(self.levels, level)
        high = self.levels[place] if place < len(self.levels) else None
        return high, self.levels[place - 1] if place else None

    def record(self, level: float, values: Codes) -> Self:
        """Histories with a new copy."""
        high, low = self.neighbours(level)
        new = np.flatnonzero((values != self.value(level)) | (high is None))
        above, rest = self.p > level, self.p < (level if low is None else low)
        parts = [
            (self.rows[above], self.p[above], self.y[above]),
            (new, np.full(new.size, level), values[new]),
            (self.rows[rest], self.p[rest], self.y[rest]),
        ]
        if low is not None:
            right = self.value(low)
            after = self.explicit(values, right, low)
            parts.insert(2, (after, np.full(after.size, low), right[after]))
        levels = tuple(sorted((*self.levels, level)))
        return type(self)(self.original, levels, *map(np.concatenate, zip(*parts, strict=True)))

    def explicit(self, values: Codes, right: Codes, low: float) -> Indices:
        """Tuples with an element of the next lower level, ``low``."""
        return np.flatnonzero(values != right)


class MultiPertCopies(Copies):
    """The paper's algorithm on compressed histories, for levels in any order.

    It also continues a release (xiao2009, Lemma 1).
    """

    history_class = History

    def __init__(
        self,
        original: Codes,
        size: int,
        key: Key,
        pi: Array | None = None,
        levels: Levels = (),
        copies: Sequence[Codes] = (),
    ) -> None:
        super().__init__(original, size, key, pi)
        none = np.empty(0, dtype=int), np.empty(0), self.original[:0]
        self.history = self.history_class(self.original, (), *none)
        for level, made in zip(levels, copies, strict=True):
            super().skip(level)
            if level not in self.history.levels:
                self.history = self.history.record(level, made)

    def skip(self, level: float) -> None:
        super().skip(level)
        self.release(level, Draws(stream_of(self.key, len(self.levels)), self.size, self.pi))

    def release(self, level: float, draws: Draws) -> Codes:
        """Return the copy at a level, shape (n,), and store it."""
        held = self.history
        if level not in held.levels:
            high, low = held.neighbours(level)
            coin = coins(1.0 if high is None else high, level, low, self.size, self.pi)
            right = None if low is None else held.value(low)
            made = draws.pick(held.value(level), right, *coin)
            self.history = held.record(level, made)
        return self.history.value(level)

    def copy(self, number: int) -> Codes:
        return self.history.value(self.levels[number - 1])

    def history_sizes(self) -> Integers:
        return np.bincount(self.history.rows, minlength=self.original.size)


class RetentionReplacement(UniformScheme):
    """Base of both schemes."""

    class Parameters(PluginParameters):
        """Distribution of the replacements."""

        replacement: Replacement = Field(
            "uniform",
            description="distribution of replacements. uniform: equal chances; prior: each column's own shares, which then become "
            "public; a list: chances of one column's categories in order; {column: [...]}: of several columns",
        )

        @field_validator("replacement")
        @classmethod
        def _distribution(cls, stated: Replacement) -> Replacement:
            for column, shares in columns_of(stated):
                check_chances(column, shares)
            return stated

    @property
    def _stated(self) -> Replacement:
        return getattr(self.parameters, "replacement", "uniform")

    def check_table(self, table: Table, asked: DataUse) -> None:
        super().check_table(table, asked)
        if note := never_drawn(self._fit(categories_of(table))):
            warnings.warn(AuditorWarning(f"{self.name}: {note}"), stacklevel=2)

    def _fit(self, table: CategoricalTable) -> Array | None:
        return distribution(self._stated, table)

    def replaced_by(self, size: int) -> Array | None:
        return None if self._stated == "uniform" else self.fitted(size)


@register
class Uniform(RetentionReplacement):
    """Categories kept with probability p or redrawn. Broken under collusion."""

    name = "uniform"
    held_against = True
    multilevel = False
    claims = "Nothing under collusion: the reconstruction probability rises with every copy pooled (xiao2009, Fig. 7)."
    reference = "xiao2009, eq. 1"
    assumes = "Recipients never pool their copies, and tuples are independent."

    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        return FreshCopies(original, size, key, self.replaced_by(size))


@register
class UniformMultilevel(RetentionReplacement):
    """Multilevel replacement of categories: the best copy is sufficient."""

    name = "uniform-multilevel"
    held_against = True
    multilevel = True
    claims = "No collusion gain: the posterior given a coalition is that given its least perturbed copy (xiao2009, Theorem 1)."
    reference = "xiao2009, Theorem 1"
    assumes = "Tuples are independent; holds for every prior and every attack."

    class Parameters(RetentionReplacement.Parameters):
        """Replacement distribution and implementation; both have one law."""

        implementation: Literal["process", "multi-pert"] = "process"
        """process: a look-up in a stream of replacements; multi-pert: the paper's Figure 3 on compressed histories"""

    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        maker = ProcessCopies if self.parameters.implementation == "process" else MultiPertCopies
        return maker(original, size, key, self.replaced_by(size))


# -- PRAM: categories randomised by a published transition matrix ----------------------------------


Matrix = Annotated[list[list[float]], Field(min_length=1)]


@register
class Pram(UniformScheme):
    """Categories randomised by a stated matrix, independently in every copy.

    Level = share of records left unchanged.
    """

    name = "pram"
    multilevel = False
    by_retention: ClassVar[bool] = False
    claims = "Nothing under collusion: a value that all copies show is probably the original. One copy keeps the ε of its matrix."
    reference = "gouweleeuw1998; hundepool2012, chapter 3"
    assumes = "Recipients never pool their copies, and tuples are independent."
    trial = MappingProxyType({"matrix": [[0.8, 0.1, 0.1], [0.3, 0.5, 0.2], [0.05, 0.25, 0.7]]})
    trial_levels = (0.0, 0.6, 0.3)

    class Parameters(PluginParameters):
        """The matrix, and whether to preserve shares."""

        matrix: Matrix | dict[str, Matrix]
        """rows of probabilities: each category (row) becomes each (column), in order; {column: [[...]]} for several columns"""
        invariant: bool = False
        """whether to follow with the reverse matrix (Bayes' rule), which preserves shares"""

        @field_validator("matrix")
        @classmethod
        def _stochastic(cls, stated: Matrix | dict[str, Matrix]) -> Matrix | dict[str, Matrix]:
            for column, matrix in columns_of(stated):
                for number, row in enumerate(matrix, start=1):
                    of = f"{column}row {number} "
                    if len(row) != len(matrix):
                        raise ValueError(
                            f"{of}must have one chance for each of {len(matrix)} rows; got {len(row)}"
                        )
                    check_chances(of, row)
            return stated

    def check_table(self, table: Table, asked: DataUse) -> None:
        super().check_table(table, asked)
        self.over(categories_of(table))

    def _fit(self, table: CategoricalTable) -> Array:
        if table.size > MOST_VALUES:
            raise AuditorError(
                f"pram is for at most {MOST_VALUES:,} values; the domain has {table.size:,}: take fewer columns"
            )
        parts = by_attribute(
            self.parameters.matrix,
            table,
            "matrix",
            "none",
            "rows",
            "; {column: [[...]]} gives one for each",
        )
        P = reduce(np.kron, map(np.array, parts))
        return invariant(P, table.prior) if self.parameters.invariant else P

    def transition(self, level: float, size: int) -> Array:
        """``T(p)``, shape (s, s).

        ``AuditorError`` before ``over``.
        """
        return level * np.eye(size) + (1.0 - level) * self.fitted(size)

    def channel(self, levels: Levels, size: int) -> MatrixLaw:
        return MatrixLaw(
            tuple(levels),
            size,
            False,
            transitions=tuple(self.transition(level, size) for level in levels),
        )

    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        return PramCopies(original, size, key, self)


class PramCopies(FreshCopies):
    """Copies drawn through the matrix, redrawn on request."""

    def __init__(self, original: Codes, size: int, key: Key, scheme: Pram) -> None:
        super().__init__(original, size, key)
        self._scheme = scheme

    def _drawn(self, level: float, rng: Rng) -> Codes:
        return sent_through(self.original, self._scheme.transition(level, self.size), rng)


def invariant(P: Array, q: Array) -> Array:
    """``P Q``, shape (s, s), which preserves shares: ``q P Q = q``.

    Q reverses P by Bayes' rule.

    Examples
    --------
    >>> invariant(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([0.5, 0.5])).round(3).tolist()
    [[0.667, 0.333], [0.333, 0.667]]
    """
    joint = q[:, None] * P
    Q = quotient(joint, joint.sum(axis=0)).T
    # outputs of probability 0 are spread by q
    return P @ Q + np.outer(1.0 - (P @ Q).sum(axis=1), q)


# -- files of categories made elsewhere ------------------------------------------------------------

# With `categorical:` or `bin:`, `published` means these copies, unless it states added noise. Without
# a stated law one is estimated, cross-fitted on two halves.

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
            raise AuditorError(
                f"the law of copies is estimated over at most {MOST_VALUES:,} values; the domain has {data.size:,}: "
                "take fewer columns or wider bins, or state the law"
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
            raise AuditorError(
                f"original and copies have {counted(len(rows), 'record')} in common, with every answer; at least "
                f"{FEWEST_RECORDS} are needed: {', '.join(lacking)}"
            )
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
        raise misplaced_rows(
            name,
            "hold the original's values in another order: shuffled, or sorted by something else",
            f"put them in the original's order, {JOIN_REMEDY}",
        )
    warn_of_rows(name, "it may tell nothing of them, or be in another order")
