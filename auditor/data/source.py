"""Base class of data sources."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from auditor import registry
from auditor.base import DataError, PluginError, PluginFailed, listed, nearest, pd, quoted, scipy
from auditor.base.types import Array, Generator, Names, Options, frozen
from auditor.data.columns.checks import check_rows
from auditor.data.table import DataUse, Promised, Table as Table, is_file
from auditor.process.containment import contained
from auditor.process.environment import check_room
from auditor.registry import Plugin, PluginParameters, get
from auditor.registry.parameters import explain, sentence


class Outline(NamedTuple):
    """Properties of a table known in advance: exact moments, divisor n."""

    columns: Names
    rows: int
    mean: Array
    covariance: Array


class Source(Plugin):
    """A named source of microdata; ``frame`` returns raw columns.

    `auditor.data.load` selects, checks and standardises. A purely numeric source may define
    ``numbers`` instead, without pandas.
    """

    kind = "source"
    description: ClassVar[str] = ""
    licence: ClassVar[str] = ""
    labels: ClassVar[Names] = ()
    """Class columns, excluded unless ``columns:`` names them."""

    def width(self) -> int:
        """Number of attributes of a synthetic source, else 0."""
        return 0

    def domains(self) -> dict[str, list[Any]]:
        """Domains of categorical columns; none by default."""
        return {}

    def law(self) -> RecordLaw | None:
        """Law of independent records; None if unknown or dependent."""
        return None

    def outline(self, rows: int | None) -> Outline | None:
        """Known properties of ``frame`` for ``rows`` records, or None.

        Only for complete, finite numeric columns that vary. ``auditor check`` then need not build
        them.
        """
        return None

    public: ClassVar[bool] = False
    """Whether its records are synthetic or published, so that figures are not rounded."""

    def population(self, rng: Generator) -> Array | None:
        """Population covariance of all columns, if stated.

        ``rng`` is as given to ``frame``, to draw a random law again.
        """
        return None

    def frame(self, rows: int | None, rng: Generator) -> pd.DataFrame:
        """Columns, drawn with ``rng`` alone.

        ``rows``: records to draw (None: the default), or first records.
        """
        return pd.DataFrame(dict(self.numbers(rows, rng)))

    def numbers(self, rows: int | None, rng: Generator) -> Mapping[str, NDArray[Any]]:
        """Columns by name; arguments as in ``frame``.

        Integers or floats of shape (n,), NaN if missing. Only audited columns are accessed.
        """
        raise NotImplementedError


class Synthetic(Source):
    """Base of sources that draw any number of records."""

    public = True
    licence = "generated, not subject to a licence"
    usual_rows: ClassVar[int] = 1000
    """Number of records by default."""

    def records(self, n: int, rng: Generator) -> Array:
        """Draw n records of the attributes ``x1`` to ``xN``, shape (n, N)."""
        raise NotImplementedError

    def numbers(self, rows: int | None, rng: Generator) -> Mapping[str, NDArray[Any]]:
        values = self.records(self.usual_rows if rows is None else rows, rng)
        return {f"x{i}": column for i, column in enumerate(values.T, 1)}


def is_public(source: str) -> bool:
    """Whether records are public, unlike a file's."""
    return registry.has("source", source) and bool(registry.get("source", source).public)


def noise_seed(source: str, seed: int, fingerprint: str) -> int:
    """Scenario's seed; for a private table mixed with its fingerprint.

    Otherwise every figure would be an equation for the records.
    """
    return (
        seed
        if is_public(source)
        else int.from_bytes(hashlib.sha256(f"{seed} {fingerprint}".encode()).digest(), "little")
    )


@frozen
class RecordShape:
    """Distribution function and support of one standardised attribute.

    ``low`` and ``high`` may omit a share of 1e-12.
    """

    cdf: Callable[[Array], Array]
    low: float
    high: float


def normal_cdf(t: Array) -> Array:
    """``Φ(t)``."""
    return scipy.special.ndtr(t)


NORMAL = RecordShape(normal_cdf, -7.5, 7.5)


@frozen
class RecordLaw:
    """Law of independent records, up to means and covariances.

    ``shapes``: each independent attribute's; empty if jointly normal.
    """

    shapes: Mapping[str, RecordShape] = field(default_factory=dict)

    @property
    def normal(self) -> bool:
        """Whether records are jointly normal."""
        return not self.shapes


OPTIONS = ("columns", "order", "key", "rows", "missing", "standardize")
"""Options of every source in addition to its own parameters."""


CONVERTING = (
    "order key unit weight shown first_batch bin categorical hierarchies dates bounds".split()
)
"""Requests that change the source's columns."""


def outlined_table(use: DataUse, make: Callable[[], Table]) -> Table | None:
    """Table of which ``make`` builds the records on first use; else None.

    Raises
    ------
    DataError
        The source refuses the request.
    """
    if is_file(use.source) or any(getattr(use, field) for field in CONVERTING):
        return None
    with asked_source(use.source, use.parameters, use.rows) as made:
        known = made.outline(use.rows)
        if known is None:
            return None
        N, (mean, K) = len(known.columns), map(np.asarray, (known.mean, known.covariance))
        sizes = mean.shape == (N,) and K.shape == (N, N)
        if not (sizes and np.isfinite([mean @ mean, np.abs(K).sum()]).all()):
            raise PluginError(
                f"source {use.source!r} broke its contract: `outline` must return finite moments of its columns, or None"
            )
        names = tuple(select(known.columns, use.columns, made.labels))
    check_rows(known.rows, use.rows)
    places = [known.columns.index(name) for name in names]
    return Table(
        names,
        Promised((known.rows, len(names)), make),
        use.source,
        standardized=use.standardize,
        dropped=use.missing == "drop",
        stated=(mean[places], K[np.ix_(places, places)]),
    )


def law_of(use: DataUse) -> RecordLaw | None:
    """Law of the requested records; None if from a file or transformed.

    Raises
    ------
    PluginError
        The source returned no law; its code may raise anything.
    """
    if is_file(use.source) or use.order is not None or use.dates or use.hierarchies:
        return None
    with asked_source(use.source, use.parameters, None) as made:
        found = made.law()
    if found is not None and not isinstance(found, RecordLaw):
        raise PluginError(
            f"source {use.source!r} broke its contract: `law` must return a RecordLaw, or None"
        )
    return found


def select(
    known: Names, columns: Names | None, labels: Names, **beside: str | Names | None
) -> list[str]:
    """Selected names, in order, and ``beside`` (``order``, ``key``, ``shown``).

    "" denotes an unnamed column, which cannot be requested.
    """
    others = {
        name: use
        for use, names in beside.items()
        for name in ([names] if isinstance(names, str) else names or ())
    }
    for name, use in others.items():
        if not name or name not in known:
            raise DataError(
                f"there is no column {quoted(name)}{nearest(name, filter(None, known))}", (use,)
            )
    if columns is None:
        return [name for name in known if name not in labels or name in others]
    if not columns:
        raise DataError("`columns` must name at least one column")
    named = [name for name in known if name]
    twice = sorted({name for name in columns if list(columns).count(name) > 1})
    if twice:
        raise DataError(f"`columns` names {listed(twice)} more than once")
    unknown = {name: at for at, name in enumerate(columns) if name not in named}
    if unknown:
        lacking = [f"there is no column {quoted(name)}{nearest(name, named)}" for name in unknown]
        raise DataError("; ".join(lacking), ("columns", min(unknown.values())))
    return list(dict.fromkeys([*columns, *others]))


@contextmanager
def asked_source(name: str, parameters: Options, rows: int | None) -> Iterator[Source]:
    """Build a source for a query; turn exceptions into request or plugin errors."""
    cls: type[Source] = get("source", name)
    with contained() as failure:
        made = cls(_parameters(cls, parameters))
        check_room(rows or 0, made.width())
        yield made
        return
    if failure.cause in (MemoryError, OverflowError):  # too many rows requested
        raise failure.cause from None
    failure.raise_ours()
    raise PluginFailed(f"source {name!r} failed: {failure.reason}")


def _parameters(cls: type[Source], values: Options) -> PluginParameters:
    given = dict(values)
    try:
        return cls.Parameters.model_validate(given, by_name=True, by_alias=True)
    except ValidationError as error:
        why = sentence(explain(error, cls.Parameters, given, OPTIONS))
        raise DataError(f"source {cls.name!r}: {why}") from None
