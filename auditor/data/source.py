"""What a data source is: parameters in, a table out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor import registry
from auditor.data.record_law import RecordLaw
from auditor.process.deferred import pd
from auditor.registry import Plugin


class Outline(NamedTuple):
    """What a source knows of its table before it makes it.

    Attributes
    ----------
    columns : tuple of N str
    rows : int
        ``n``.
    mean : ndarray of shape (N,)
    covariance : ndarray of shape (N, N)
        Divisor n; exact but for rounding, as the mean is.
    """

    columns: tuple[str, ...]
    rows: int
    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]


class Source(Plugin):
    """A named source of microdata: ``frame`` returns raw columns; `auditor.data.load` selects, checks, standardises.

    A source of nothing but numbers may define ``numbers`` in place of ``frame``: its table is there before pandas is imported.
    """

    kind = "source"
    description: ClassVar[str] = ""
    licence: ClassVar[str] = ""
    labels: ClassVar[tuple[str, ...]] = ()
    """Columns that hold a class rather than a number: left out unless ``columns:`` asks for them."""

    def width(self) -> int:
        """Return how many attributes are drawn, for a synthetic source; 0 for one that has data of its own, of which no more can be had."""
        return 0

    def domains(self) -> dict[str, list[Any]]:
        """Return the domains of columns that are categories by nature; none unless a source says so."""
        return {}

    def law(self) -> RecordLaw | None:
        """Return the law that records are drawn from, independently of one another; None where nobody knows it, or they hang together."""
        return None

    def outline(self, rows: int | None) -> Outline | None:
        """Return what ``frame`` is sure to have, asked for so many ``rows``: ``auditor check`` need not wait for it then.

        Only of finite numbers, none of them missing, with no column constant; None where a source does not know.
        """
        return None

    public: ClassVar[bool] = False
    """Whether its records are no secret, being made up or published: figures of them are written in full."""

    def population(self, rng: np.random.Generator) -> NDArray[np.float64] | None:
        """Return the covariance of the law that records are drawn from, of all columns of ``frame``, where a source states one.

        Parameters
        ----------
        rng : Generator
            As ``frame`` was given it: a law that is drawn is the same one again.
        """
        return None

    def frame(self, rows: int | None, rng: np.random.Generator) -> pd.DataFrame:
        """Return the source's columns.

        Parameters
        ----------
        rows : int or None
            For a synthetic source how many records to draw (None: the source's own default); a source with data of its
            own returns its first ``rows`` records, or all of them when it has fewer: the loader says so to the user.
        rng : Generator
            The only randomness a source may use.
        """
        return pd.DataFrame(dict(self.numbers(rows, rng)))

    def numbers(self, rows: int | None, rng: np.random.Generator) -> Mapping[str, NDArray[Any]]:
        """Return the columns by name, as ``frame`` is asked for them: integers or floats of shape (n,), NaN where one is missing.

        Only those that are audited are looked up in what is returned.
        """
        raise NotImplementedError


def is_public(source: str) -> bool:
    """Tell whether the records of a scenario's ``source`` are no secret; those of a file are one."""
    return registry.has("source", source) and bool(registry.get("source", source).public)


def noise_seed(source: str, seed: int, fingerprint: str) -> int:
    """Return the seed of an audit's noise: the scenario's, and for a private table its fingerprint as well.

    A scenario's seed is public. Whoever could draw the noise again would have, in every figure, an equation for the records: as many copies
    and replicates as there are records, and they are solved. So only who has the table can draw the noise of a private one again; for them
    it is still a function of scenario, data and seed.
    """
    return seed if is_public(source) else int.from_bytes(hashlib.sha256(f"{seed} {fingerprint}".encode()).digest(), "little")
