"""Data given to an adversary besides its copies, one class per kind.

| knowledge | given |
| --- | --- |
| ``perfect``, ``known-attributes`` | ``ExactMoments`` of the table, and each attribute's distribution |
| ``estimated`` | ``SampleMoments`` of the copies |
| ``model`` | with the published regression: ``ModelledMoments`` of ``auditor.adversary.published_tree`` |
| ``model`` of a tree | with the tree: ``TreeMoments`` of ``auditor.adversary.published_tree`` |
| ``known-records`` | original ``Records`` with their copies' rows |
| ``unmatched-records``, ``known-sample`` | original ``UnpairedRecords`` |

For categories: a ``Prior`` (exact, or by published ``rules``), ``SampleCounts`` of the copies'
values, or ``KnownPairs``. ``uniform-prior`` gives none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from auditor.errors import NotApplicable
from auditor.numerics.blocks import seal
from auditor.numerics.moments import Moments
from auditor.types import Array, Codes


@dataclass(frozen=True)
class Given:
    """Base class, and the data of an uninformed adversary."""

    what: ClassVar[str] = "nothing"
    """Name in messages if an attack needs it."""

    def __post_init__(self) -> None:
        # read-only: attacks must not change each other's data
        for part in vars(self).values():
            # Pending moments are private.
            seal(
                *(
                    vars(part).values()
                    if type(part) is Moments
                    else part
                    if isinstance(part, tuple)
                    else (part,)
                )
            )

    def of(self, places: Sequence[int], width: int) -> Given:
        """Restrict to some copies, numbered from 1 among the held copies."""
        return self


NOTHING = Given()
G = TypeVar("G", bound=Given)


class Informed:
    """A view with given data."""

    given: Given

    def need(self, kind: type[G]) -> G:
        """Return the given data of the required kind.

        Raises
        ------
        NotApplicable
            The data are of another kind.
        """
        if not isinstance(self.given, kind):
            raise NotApplicable(f"needs {kind.what}")
        return self.given


@dataclass(frozen=True, eq=False, repr=False)
class ExactMoments(Given):
    """The table's own moments.

    Attributes
    ----------
    mean : ndarray of shape (N,)
        ``mu_X``.
    covariance : ndarray of shape (N, N)
        ``K_X``, divisor n.
    distribution : callable or None
        Map an attribute's index to its distinct values, ascending, and their shares.
    """

    what = "the data's exact mean and covariance"
    mean: Array
    covariance: Array
    distribution: Callable[[int], tuple[Array, Array]] | None = None


@dataclass(frozen=True, repr=False)
class SampleMoments(Given):
    """Moments of the stacked copies in a sample, about the view's centre, kN."""

    what = "released rows to estimate from"
    copies: Moments

    def of(self, places: Sequence[int], width: int) -> SampleMoments:
        """Restrict to some copies."""
        return replace(self, copies=self.copies.parts(places, width))

    def completed(self, mean: Array, covariance: Array) -> tuple[Array, Array]:
        """Add published knowledge to the estimated moments; none here."""
        return mean, covariance


@dataclass(frozen=True, eq=False, repr=False)
class Originals(Given):
    """Original records, shape (p, N), in data units."""

    what = "records of the population"
    original: Array


@dataclass(frozen=True, eq=False, repr=False)
class Records(Originals):
    """Original records, matched to their copies' rows.

    Attributes
    ----------
    copies : tuple of k ndarrays of shape (p, N)
        The corresponding rows of the copies.
    moments : Moments or None
        Of ``[X, Y_1 … Y_k]`` over these records, about the view's centre, d = (k+1)N; None for
        copies of another width.
    """

    what = "records in clear with their copies' rows"
    copies: tuple[Array, ...]
    moments: Moments | None = None

    def of(self, places: Sequence[int], width: int) -> Records:
        """Restrict to some copies."""
        moments = self.moments
        if moments is not None:
            moments = moments.parts([1, *(place + 1 for place in places)], width)
        return Records(self.original, tuple(self.copies[place - 1] for place in places), moments)


class UnpairedRecords(Originals):
    """Original records without their rows in the copies.

    From the table in random order, or other draws from the population.
    """


@dataclass(frozen=True, eq=False, repr=False)
class Prior(Given):
    """The prior of the domain's values, shape (s,).

    The table's own, or the maximum-entropy one given published results.
    """

    what = "the prior, which this knowledge does not give"
    probabilities: Array


@dataclass(frozen=True, eq=False, repr=False)
class SampleCounts(Given):
    """Counts of each value in a sample of each copy, shapes (s,)."""

    what = "released rows to estimate the prior from"
    counts: tuple[Array, ...]

    def of(self, places: Sequence[int], width: int) -> SampleCounts:
        """Restrict to some copies."""
        return SampleCounts(tuple(self.counts[place - 1] for place in places))


@dataclass(frozen=True, eq=False, repr=False)
class KnownPairs(Given):
    """Original records, shape (r,), with their copies, shapes (r,)."""

    what = "known records"
    original: Codes
    copies: tuple[Codes, ...]

    def of(self, places: Sequence[int], width: int) -> KnownPairs:
        """Restrict to some copies."""
        return KnownPairs(self.original, tuple(self.copies[place - 1] for place in places))
