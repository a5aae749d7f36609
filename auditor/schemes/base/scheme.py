"""Base class of schemes: draws copies of a table and states their law."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from auditor import registry
from auditor.base import AuditorError, PluginError, did_you_mean
from auditor.base.types import (
    Array,
    Arrays,
    Block,
    Coalition,
    Coalitions,
    Levels,
    Names,
    Options,
    Plain,
    frozen,
    unprinted,
)
from auditor.data.table import Audited, DataUse, Recorded, ShownColumn, Table, recorded, spans
from auditor.numerics.blocks import seal
from auditor.numerics.linear_algebra import deviations
from auditor.numerics.random_streams import Seed
from auditor.registry import Plugin
from auditor.schemes.base.noise_law import NoiseLaw, Transformed, undo_root

E = TypeVar("E")


@unprinted
class TableMoments:
    """Exact first and second moments of the released table.

    Attributes
    ----------
    mean : (N,)
        ``mu_X``.
    covariance : (N, N)
        ``K_X``, divisor n.
    spans : (N,), optional
        ``Δ``, largest change of one record, in data units; None if unstated.
    first
        Of the first batch.
    of_first_batch
        Whether later batches follow.
    """

    mean: Array
    covariance: Array
    rows: int
    spans: Array | None = None
    table: Any = None
    """The ``Table``, for recording steps, autocorrelations and the population's covariance."""
    first: TableMoments | None = None
    of_first_batch: bool = False

    @property
    def scale(self) -> TableMoments:
        """Moments that noise is scaled to: the first batch's, if any."""
        return self if self.first is None else self.first

    def __post_init__(self) -> None:
        seal(self.mean, self.covariance)

    @cached_property
    def recorded(self) -> Recorded:
        """Recording steps of the columns."""
        return recorded(self.table)

    @cached_property
    def autocorrelations(self) -> tuple[Array, int]:
        """Autocorrelations of the records (``data_autocorrelations``)."""
        return data_autocorrelations(self.table, self.mean, self.covariance)

    @cached_property
    def population_covariance(self) -> Array:
        """Covariance of the population, (N, N); ``AuditorError`` if unstated."""
        stated = self.table.population
        K = None if stated is None else stated()
        if K is None:
            raise AuditorError(
                "noise: `of: population` needs a source that states the law of its records, as `gaussian` does"
            )
        if np.shape(K) != self.covariance.shape or not np.isfinite(K).all():
            raise PluginError(
                f"`population` must return a finite covariance of shape {self.covariance.shape}"
            )
        return K

    @cached_property
    def deviation(self) -> Array:
        """Standard deviations, shape (N,)."""
        return deviations(self.covariance)


@frozen
class Key:
    """Key of one release's random streams: equal keys, equal copies.

    Attributes
    ----------
    block
        Of records, for categorical schemes.
    grid : tuple of N floats
        Grid of released values; empty in audits.
    past : tuple of ndarrays
        Last records before a batch, originals first.
    matrices : int or ReleaseKey, optional
        Seed of secret matrices, if not ``seed``.
    """

    seed: Seed
    scheme: str
    replicate: int = 1
    block: int = 0
    grid: tuple[float, ...] = ()
    matrices: Seed | None = None
    past: tuple[Array, ...] = field(default=(), repr=False, compare=False)

    @property
    def audit_seed(self) -> int:
        """Seed of an audited release."""
        assert isinstance(self.seed, int), "audits draw from seeds"
        return self.seed


class Sampler(Protocol):
    """Draws the copies of one release block by block, in any order of blocks."""

    def block(self, index: int, x: Array, out: Arrays, existing: int = 0) -> None:
        """Write the copies of one block of rows.

        Parameters
        ----------
        x : (b, N)
        out : sequence of M ndarrays, as from ``Scheme.blank``
            One per copy; the first ``existing`` are only read.
        """


class MadeCopies(NamedTuple):
    """Sampler that returns rows of copies in memory."""

    copies: Arrays
    bounds: Sequence[tuple[int, int]]

    def block(self, index: int, x: Array, out: Arrays, existing: int = 0) -> None:
        for number, copy in enumerate(self.copies, start=existing):
            out[number][...] = copy[slice(*self.bounds[index])]


class LevelRange(NamedTuple):
    """Levels that a scheme can use: finite, from ``low`` to ``high``."""

    what: str
    low: float = 0.0
    high: float = np.inf
    excluded: tuple[float, ...] = ()
    whole: bool = False

    def holds(self, level: float) -> bool:
        """Whether a level lies in the range."""
        inside = bool(np.isfinite(level)) and self.low <= level <= self.high
        whole = not self.whole or float(level).is_integer()
        return inside and whole and level not in self.excluded


class Scheme(Plugin):
    """A way of drawing copies ``Y_1 … Y_M`` of a table ``X`` at given levels."""

    kind = "scheme"
    family: ClassVar[str]
    """Family that attacks select on: ``additive``, ``uniform`` …"""
    engine: ClassVar[Literal["numeric", "categorical"]] = "numeric"
    """Engine that audits the copies (``auditor.audit.engine``).
    """
    claims: ClassVar[str] = ""
    """The scheme's promise under collusion, if any."""
    needs_levels: ClassVar[bool] = True
    on_grid: ClassVar[bool] = False
    """Whether its sampler rounds draws to ``Key.grid``."""
    on_lattice: ClassVar[bool] = False
    """Whether original and released values are whole multiples of their column's unit.
    """
    makes_copies: ClassVar[bool] = True
    """Whether it draws the copies itself."""
    needs_table: ClassVar[bool] = False
    """Whether it needs the whole table (``table``).
    """
    adds_noise: ClassVar[bool] = False
    """Whether released values are the original plus noise."""
    fresh_shaped_noise: ClassVar[bool] = False
    """Whether noise is as in li2012's Theorem 3: independent between copies, shaped like the data.
    """
    held_against: ClassVar[bool] = False
    """Whether copies from files are compared with its law at estimated levels (metric ``off_law``).
    All parameters must have defaults. Not inherited.
    """
    has_matrices: ClassVar[bool] = False
    """Whether it multiplies records by secret matrices."""
    level_range: ClassVar[LevelRange] = LevelRange("a finite noise multiple σ² ≥ 0")
    level_of_original: ClassVar[float | None] = None
    """Level at which a copy is the original. Copies of two runs then average out.
    """
    trial_levels: ClassVar[tuple[float, ...]] = (0.5, 0.8, 0.65)
    """Three levels for ``auditor.testing``, unless the scheme has its own.
    """
    other_trials: ClassVar[tuple[Options, ...]] = ()
    """Parameters besides ``trial`` for attacks in ``auditor.testing``.
    """

    base: Path | None = None
    """Folder of file names in the parameters."""
    table: Any = None
    """The original, a ``Table``, for a scheme that ``needs_table``."""

    def check_levels(self, levels: Levels) -> None:
        """Refuse levels the scheme cannot use (``AuditorError``)."""
        for number, level in enumerate(levels, start=1):
            if not self.level_range.holds(level):
                raise AuditorError(f"level {number} must be {self.level_range.what}; got {level!r}")

    def check_table(self, table: Table, asked: DataUse) -> None:
        """Refuse a table the scheme cannot release; accepts any by default.

        ``asked``: the scenario's selection, exclusions and rescaling. ``AuditorError`` names the
        requirement.
        """

    def audited(self, table: Table) -> Audited:
        """Part of a table that all copies contain, or ``AuditorError``."""
        return Audited(table)

    def handed_in(self, table: Table) -> list[Array]:
        """All values of existing copies, if they exceed the audited records.

        Per copy every attribute, then extra columns; NaN for no value.
        """
        return []

    def shown(self, table: Table) -> list[ShownColumn]:
        """Further columns of copies from files."""
        return []

    def beside(self, table: Table) -> list[tuple[int, list[str]]]:
        """Names of these columns, with the number of the copy."""
        return []

    def redrawn(self, levels: Levels, table: TableMoments) -> Scheme | None:
        """Scheme that draws such copies again, or None."""
        return self if self.makes_copies else None

    @property
    def distribution(self) -> str | None:
        """Distribution of added noise, or None."""
        return None

    def default_levels(self) -> tuple[float, ...]:
        """Levels of a release that states none."""
        return ()

    def count(self, levels: Levels) -> int:
        """Number of copies."""
        return len(levels)

    @property
    def public(self) -> Plain:
        """The scheme's public name and parameters."""
        return {"name": self.name, **self.parameters.model_dump()}

    def output_width(self, width: int) -> int:
        """Number of columns of a copy."""
        return width

    def blank(self, rows: int, width: int) -> Array:
        """Memory for records of a copy."""
        return np.empty((rows, self.output_width(width)))

    def to_columns(self, copy: Array, attributes: Names) -> Array:
        """Copy's rows as released columns, (b, output_width(N))."""
        return copy

    def from_columns(self, columns: Array, attributes: Names) -> Array:
        """Rows of a copy from its released columns."""
        return columns

    def law(self, levels: Levels, table: TableMoments) -> NoiseLaw | None:
        """Exact noise law of copies at these levels, or None."""
        return None

    def making_seconds(self, levels: Levels, rows: int, width: int) -> float:
        """Core-seconds per release besides a draw per value."""
        return 0.0

    def transformed(self, levels: Levels, table: TableMoments, key: Key) -> Transformed | None:
        """Square matrices applied to original plus noise, or None."""
        return None

    def drawn_apart(
        self, levels: Levels, x: Array, copies: Arrays
    ) -> tuple[Array, list[Array], NoiseLaw] | None:
        """Draws apart from values, where the law is unstated, or None.

        For tests: points of shape (r, N), copies as points plus independent noise, and its law.
        """
        return None

    def facts(self, levels: Levels, table: TableMoments) -> dict[str, float]:
        """Figures of the release for the results, metric → value."""
        return {}

    def promises(
        self, blocks: Iterable[Block], coalitions: Coalitions
    ) -> dict[Coalition, dict[str, float]]:
        """Return, by coalition, measured promises by metric; empty by default.

        ``blocks`` yields number, original rows and copies' rows.
        """
        return {}

    def sufficient(self, blocks: Iterable[Block], coalitions: Coalitions) -> dict[Coalition, bool]:
        """Return, by coalition, whether one copy is sufficient for all others.

        As ``promises``, for deterministic schemes.
        """
        return {}

    @abstractmethod
    def sampler(self, levels: Levels, table: TableMoments, key: Key, existing: int = 0) -> Sampler:
        """Sampler of copies ``existing + 1 … M``; ``levels`` of all M."""


def by_engine(choices: Mapping[str, E], scheme: Scheme | type[Scheme]) -> E:
    """Return the choice for the scheme's engine, or raise ``PluginError``."""
    if scheme.engine not in choices:
        meant = did_you_mean(str(scheme.engine), choices)
        raise PluginError(
            f"scheme {scheme.name!r} names an engine that there is not: {scheme.engine!r}{meant}"
        )
    return choices[scheme.engine]


def schemes_held_against(engine: str) -> list[Any]:
    """Schemes of one engine that file copies are compared with.

    Examples
    --------
    >>> [scheme.name for scheme in schemes_held_against("categorical")]
    ['uniform', 'uniform-multilevel']
    """
    every = (registry.get("scheme", name) for name in registry.names("scheme"))
    return [
        scheme for scheme in every if vars(scheme).get("held_against") and scheme.engine == engine
    ]


def table_moments(table: Table) -> TableMoments:
    """Exact mean and covariance (divisor n), also of a first batch."""
    mean, covariance = table.moments()
    first = (
        None
        if table.first_batch is None
        else replace(table_moments(table.head(table.first_batch)), of_first_batch=True)
    )
    return TableMoments(
        mean, covariance, table.rows, spans(table.attributes, table.bounds), table, first
    )


Records = Literal["normal", "lognormal", "heaped", "whole", "categories"]


class Case(Scheme):
    """A scheme that ``auditor selftest`` audits, honest or leaking by design.

    To test another scheme: ``class Mine(Case, MyScheme)`` with ``honest = True``.
    """

    kind = "case"
    honest: ClassVar[bool] = False
    """Whether the copies follow the stated law: a failure is then a false alarm.
    """
    lawful: ClassVar[bool] = False
    """Whether a leak is invisible to linear attacks.
    """
    records: ClassVar[Records] = "lognormal"
    """Table: two correlated attributes, or one with six categories."""
    expect: ClassVar[tuple[str, ...]] = ("no-collusion-gain", "noise-follows-law")
    """Expectations; a leak counts as found if one fails."""


MOST_LAGS = 12
"""Largest lag: a year of months."""


def data_autocorrelations(table: Table, mean: Array, K_X: Array) -> tuple[Array, int]:
    """Mean autocorrelations by lag, and the number of values used.

    ``r_h = tr(K_X⁺ C_h) / rank K_X``, shape (P + 1,), from ``n · rank K_X`` values, with
    ``C_h = Σ_{t>h} (x_t − μ)(x_{t−h} − μ)ᵀ / n``.
    """
    most = min(MOST_LAGS, table.rows // 4)
    undo, sums, past = undo_root(K_X), np.zeros(most + 1), np.zeros((most, len(K_X)))
    for x in table.blocks():
        rows = np.concatenate([past, (x - mean) @ undo.T])
        sums += [np.vdot(rows[most:], rows[most - h : len(rows) - h]) for h in range(most + 1)]
        past = rows[len(rows) - most :]
    return sums / sums[0], round(sums[0])
