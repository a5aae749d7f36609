"""What an adversary was given beside its copies: one class for each kind, and a view holds one of them.

| knowledge | given |
| --- | --- |
| ``perfect``, ``known-attributes`` | ``ExactMoments`` of the table, and each attribute's distribution |
| ``estimated`` | ``SampleMoments`` of the copies |
| ``model`` | these and the regression that was published: ``ModelledMoments`` of ``auditor.adversary.published_model`` |
| ``model`` of a tree | these and the tree: ``TreeMoments`` of ``auditor.adversary.published_tree`` |
| ``known-records`` | ``Records`` in clear with their copies' rows |
| ``unmatched-records``, ``known-sample`` | ``UnpairedRecords`` in clear |

Of categories: the ``Prior``, exact or with ``rules`` what was published makes of it; ``SampleCounts`` of the copies' values, or
``KnownPairs`` of codes; nothing with ``uniform-prior``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeVar

from auditor.errors import NotApplicable
from auditor.numerics.moments import Moments
from auditor.numerics.read_only import seal
from auditor.types import Array, Codes


@dataclass(frozen=True)
class Given:
    """Base, and what an adversary has that was given nothing."""

    what: ClassVar[str] = "nothing"
    """What messages call it where an attack needs it."""

    def __post_init__(self) -> None:
        """Seal every array: an attack that wrote to one would change what the next is shown."""
        for part in vars(self).values():
            # Moments that are awaited are nobody else's.
            seal(*(vars(part).values() if type(part) is Moments else part if isinstance(part, tuple) else (part,)))

    def of(self, places: Sequence[int], width: int) -> Given:
        """Return what a smaller coalition has of it, its copies numbered from 1 among those held; all, unless copies are in it."""
        return self


NOTHING = Given()
G = TypeVar("G", bound=Given)


class Informed:
    """A view in which there is something given."""

    given: Given

    def need(self, kind: type[G]) -> G:
        """Return what the adversary was given, of the kind that an attack needs.

        Raises
        ------
        NotApplicable
            It was given something else.
        """
        if not isinstance(self.given, kind):
            raise NotApplicable(f"needs {kind.what}")
        return self.given


@dataclass(frozen=True, eq=False)
class ExactMoments(Given):
    """The table's own moments.

    Attributes
    ----------
    mean : ndarray of shape (N,)
        ``mu_X``.
    covariance : ndarray of shape (N, N)
        ``K_X``, divisor n.
    distribution : callable or None
        Of an attribute's place, returns the distinct values that the table has, ascending, and their shares, of one shape.
    """

    what = "the data's exact mean and covariance"
    mean: Array = field(repr=False)
    covariance: Array = field(repr=False)
    distribution: Callable[[int], tuple[Array, Array]] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class SampleMoments(Given):
    """Moments of the coalition's stacked copies over the rows that are estimated from, about the view's centre, d = kN."""

    what = "released rows to estimate from"
    copies: Moments = field(repr=False)

    def of(self, places: Sequence[int], width: int) -> SampleMoments:
        """Return those of some of the copies."""
        return replace(self, copies=self.copies.parts(places, width))

    def completed(self, mean: Array, covariance: Array) -> tuple[Array, Array]:
        """Return the data's moments as estimated from these, with what else is known of the data put into them; nothing is here."""
        return mean, covariance


@dataclass(frozen=True, eq=False)
class Records(Given):
    """Records in clear, matched to their copies' rows.

    Attributes
    ----------
    original : ndarray of shape (p, N)
        True values, in data units.
    copies : tuple of k ndarrays of shape (p, N)
        The same rows of the coalition's copies.
    moments : Moments or None
        Of ``[X, Y_1 … Y_k]`` over these records, about the view's centre, d = (k+1)N; None where copies have other columns than the table.
    """

    what = "records in clear with their copies' rows"
    original: Array = field(repr=False)
    copies: tuple[Array, ...] = field(repr=False)
    moments: Moments | None = field(repr=False, default=None)

    def of(self, places: Sequence[int], width: int) -> Records:
        """Return the same records with some of their copies' rows."""
        moments = None if self.moments is None else self.moments.parts([1, *(place + 1 for place in places)], width)
        return Records(self.original, tuple(self.copies[place - 1] for place in places), moments)


@dataclass(frozen=True, eq=False)
class UnpairedRecords(Given):
    """Records in clear without rows of copies: released ones, in no order, or other draws from the population; knowledge says which.

    Attributes
    ----------
    original : ndarray of shape (p, N)
        True values, in data units.
    """

    what = "records of the population"
    original: Array = field(repr=False)


@dataclass(frozen=True, eq=False)
class Prior(Given):
    """The prior of the domain's values, shape (s,): the table's own, or the one of most entropy under what was published of it."""

    what = "the prior, which this knowledge does not give"
    probabilities: Array = field(repr=False)


@dataclass(frozen=True, eq=False)
class SampleCounts(Given):
    """For each copy how often each value occurs among the rows that are estimated from, each of shape (s,)."""

    what = "released rows to estimate the prior from"
    counts: tuple[Array, ...] = field(repr=False)

    def of(self, places: Sequence[int], width: int) -> SampleCounts:
        """Return those of some of the copies."""
        return SampleCounts(tuple(self.counts[place - 1] for place in places))


@dataclass(frozen=True, eq=False)
class KnownPairs(Given):
    """Records in clear with their copies: originals of shape (r,), copies of shape (k, r)."""

    what = "known records"
    original: Codes = field(repr=False)
    copies: tuple[Codes, ...] = field(repr=False)

    def of(self, places: Sequence[int], width: int) -> KnownPairs:
        """Return the same records with some of their copies."""
        return KnownPairs(self.original, tuple(self.copies[place - 1] for place in places))
