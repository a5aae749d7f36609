"""What an attack is: an adversary's view in, an estimate of the original out. The engine measures; the attack estimates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.affine import Affine
from auditor.adversary.knowledge import Knowledge
from auditor.adversary.view import View
from auditor.data.table import Table
from auditor.errors import NotApplicable
from auditor.numerics.moments import Moments
from auditor.registry import Plugin
from auditor.types import Array


class Cost(NamedTuple):
    """What an attack takes, as measured once.

    Attributes
    ----------
    fit, row : float
        Seconds of a core for an attribute: to be fitted to one coalition's copies, and for each row learnt from.
    memory : int
        Bytes beside its numbers, as of a library that it imports.
    """

    fit: float
    row: float
    memory: int = 0


class Attack(Plugin):
    """A way of rebuilding ``X`` from a coalition's copies."""

    kind = "attack"
    attack_kind: ClassVar[str] = "joint"
    """What it is built on, in a few words of the field: reports compare the strongest attack of each kind, and name the kinds not tried.

    Those that ship are ``linear``; not linear, ``per attribute`` or ``joint``; ``with attributes``, ``with a sample`` or ``with records``,
    for what they cannot do without; ``serial``; ``last digits``; ``naming`` and ``attribute disclosure``, which estimate no numbers.
    """
    families: ClassVar[frozenset[str]] = frozenset({"additive"})
    """Families of schemes it applies to."""
    knowledge: ClassVar[tuple[str, ...]] = ()
    """Names of the states of knowledge it can use; empty: it needs none, and any will do."""
    serial: ClassVar[bool] = False
    """Whether it looks at a record's neighbours in the table: the order of the rows counts then."""
    cost: ClassVar[Cost] = Cost(4e-4, 2e-7)
    """What one fit takes in tables of up to some 20,000 rows, estimates included; `auditor check` adds it up. Not of linear attacks."""
    best_linear: ClassVar[bool] = False
    """Whether no linear attack has a smaller error where the law is known: theorems on pooling are about it."""
    wins: ClassVar[str] = ""
    """When it succeeds and when it fails, for `auditor show`."""

    def cost_under(self, distribution: str | None) -> Cost:
        """Return what a fit takes under noise of this distribution, as a scheme names it; None where nobody stated one."""
        return self.cost

    def form(self) -> Attack:
        """Return the attack that runs: itself, unless its parameters choose between a linear and a row-level form.

        A class that is both is registered as one of them and overrides this to return the other, made from the same parameters. What it
        returns states its own ``name``, ``families`` and ``knowledge``.
        """
        return self

    def check(self, family: str, knowledge: Knowledge) -> None:
        """Refuse a pairing that makes no sense.

        Raises
        ------
        NotApplicable
            With the reason that reports show.
        """
        if family not in self.families:
            raise NotApplicable(f"{self.name} attacks {' and '.join(sorted(self.families))} perturbation, not {family}")
        if self.knowledge and knowledge.name not in self.knowledge:
            raise NotApplicable(f"{self.name} cannot use {knowledge.name} knowledge; it uses {' or '.join(self.knowledge)}")

    def check_table(self, table: Table) -> None:
        """Refuse parameters that this table makes impossible, before anything runs.

        Raises
        ------
        AuditorError
            Saying which.
        """
        return

    def check_scheme(self, public: Mapping[str, Any]) -> None:
        """Refuse parameters that do not fit what is public of a scheme it attacks, before anything runs.

        Raises
        ------
        AuditorError
            Saying what was expected.
        """
        return


class LinearAttack(Attack):
    """An attack whose estimate is an affine map of the copies: its error needs only second moments, never a row."""

    attack_kind = "linear"
    inverts: ClassVar[bool] = False
    """Whether it inverts a matrix that it learnt under noise. The inverse of what may be singular has no mean square, so that one
    release gives its errors no interval unless other draws of the release show them to be steady."""

    any_size: ClassVar[bool] = False
    """Whether ``affine_draws`` takes coalitions of several sizes at once, as with an ``AffineStack`` on all copies: prefixes of a thousand
    copies are as many sizes. Without it those of each size are asked for by themselves."""

    @abstractmethod
    def affine(self, view: View) -> Affine:
        """Return the map for one coalition.

        Raises
        ------
        NotApplicable
            The view lacks what the attack needs; the message is the reason.
        """

    def affine_batch(self, view: View, coalitions: Sequence[tuple[int, ...]]) -> Sequence[Affine]:
        """Return the maps for several coalitions of one size; override where many can be solved at once, with an ``AffineStack``."""
        return [self.affine(view.coalition(copies)) for copies in coalitions]

    def affine_draws(self, views: Sequence[View], coalitions: Sequence[tuple[int, ...]]) -> Sequence[Sequence[Affine]]:
        """Return those maps for each of several draws of one release, whose views differ in moments and records alone.

        Of coalitions of several sizes, too, if ``any_size`` says so.

        The audit asks it for the spread of what was estimated; override where all draws can be solved at once, too.
        """
        return [self.affine_batch(view, coalitions) for view in views]

    def error_bounds(self, view: View, joint: Moments) -> tuple[float, float] | None:
        """Return what theorems say its squared error, summed over attributes, is at least and at most; None where there is none.

        For the audit alone, once the map is fitted: ``joint`` has moments of ``[X, Y_1 … Y_k]`` over the rows that it is judged on.
        """
        return None

    def over_rows(self) -> RowAttack:
        """Return the attack for copies with other columns than the original, of which there are no joint moments.

        Raises
        ------
        NotApplicable
            There is none: an attack that adds and subtracts copies and originals cannot be.
        """
        raise NotApplicable("a linear attack on moments needs copies with as many columns as the original")


@dataclass(frozen=True, eq=False)
class Inferred:
    """What an attack thinks of one attribute's values, record by record.

    Attributes
    ----------
    attribute : int
        Its place in the original.
    values : ndarray of shape (V,)
        Sorted; a true value that is not among them was not thought possible.
    groups : ndarray of shape (V,)
        Group of each value, 0 … G − 1; every value its own unless the attack is after less.
    posterior : ndarray of shape (b, G)
        Probability of each group.
    prior : ndarray of shape (G,)
        The same without looking at the record.
    claims : ndarray of shape (b,)
        The group that the attack claims to have found; −1 where it claims none.
    linked : ndarray of shape (b,)
        Chance of naming the record's own row among those it cannot be distinguished from.
    """

    attribute: int
    values: Array = field(repr=False)
    groups: NDArray[np.intp] = field(repr=False)
    posterior: Array = field(repr=False)
    prior: Array = field(repr=False)
    claims: NDArray[np.intp] = field(repr=False)
    linked: Array = field(repr=False)


@dataclass(frozen=True, eq=False)
class Regions:
    """Where an attack claims to have found records whose like are few: ``low ≤ T x ≤ high``.

    Attributes
    ----------
    directions : ndarray of shape (N, N)
        ``T``, what bounds are of: the identity, for bounds of attributes.
    low, high : ndarrays of shape (b, N)
        Bounds, record by record; infinite where there are none.
    claims : ndarray of bool, shape (b,)
        Of which records one is claimed; bounds of the others are not looked at.
    """

    directions: Array = field(repr=False)
    low: Array = field(repr=False)
    high: Array = field(repr=False)
    claims: NDArray[np.bool_] = field(repr=False)


class Reconstruction:
    """A non-linear attack, fitted to one coalition: rows of copies in, rows of estimates out.

    Attributes
    ----------
    neighbours : int
        How many rows before and after a record its estimate depends on. ``rows``, ``expected`` and their like are then given
        neighbouring rows in the table's order, as many on either side of the rows wanted, and fewer where the table begins and ends;
        what they return for those is not used. Nothing else of the order may be relied on. ``inferred`` sees a record's own row only.
    known_noise : ndarray of shape (|K|,) or None
        Standard deviations of normal noise in what the adversary knows of its targets; the audit draws it before ``likeness`` is asked.
    in_clear : ndarray of shape (|K|,) or None
        Places of attributes whose true values it goes by, as its knowledge gives them of every record: where copies are asked for, one
        more array, of shape (b, |K|), then follows the last of them.
    assigns : bool
        Whether it names all targets at once, no two of them one row, such that the sum of their likenesses is largest.
    """

    neighbours: int = 0
    known_noise: Array | None = None
    in_clear: NDArray[np.intp] | None = None
    assigns: bool = False

    def rows(self, copies: Sequence[Array]) -> Array:
        """Return estimates, shape (b, N), for one block of the coalition's copies, each of shape (b, N)."""
        raise NotImplementedError

    def intervals(self, copies: Sequence[Array], confidence: float) -> tuple[Array, Array] | None:
        """Return both ends of intervals that hold each value with that posterior probability, shapes (b, N); None if it has none."""
        return None

    def guesses(self, copies: Sequence[Array]) -> Iterator[Array] | None:
        """Return estimates, shape (b, N), any of which it might as well have made, the same for every block; None: its one alone."""
        return None

    def chances(self, copies: Sequence[Array], tolerance: float) -> Array | None:
        """Return each record's exact chance, shape (b,), of ``‖x̂ − x‖ ≤ tolerance·‖x‖``, as the adversary computes it; None: unknown."""
        return None

    def inferred(self, copies: Sequence[Array]) -> Inferred | None:
        """Return what the attack thinks of one attribute's values; None for an attack that only estimates."""
        return None

    def candidates(self, copies: Sequence[Array]) -> Array | None:
        """Return how many equally likely values would leave as much doubt, ``e^H`` of the posterior, shape (b, N); NaN where unknown."""
        return None

    def regions(self, copies: Sequence[Array]) -> Regions | None:
        """Return where it claims to have found records whose like are few; None for an attack that claims no such thing."""
        return None

    def likeness(self, known: Array, copies: Sequence[Array]) -> Array | None:
        """Return how likely each row of the copies seems to be each target's, shape (t, b), on any rising scale; None: names no rows.

        ``known`` has the targets' values of the attributes that the adversary knows, shape (t, |K|), in the order of
        ``view.known_columns``; which row is whose is for the audit to know. A row's likeness must not depend on the rows beside it.
        """
        return None

    def expected(self, x: Array) -> Array | None:
        """Return theory's expected ``‖x̂ − x‖²``, shape (b,), over the draws of scheme and attack; None where there is none.

        For the audit alone, once the estimates are in: ``x`` are the true records, shape (b, N).
        """
        return None

    def row_theory(self, seen: Iterable[Array]) -> Callable[[Array], Array] | None:
        """Return what gives ``expected`` of true records, for theory that must first see the true rows the attack was fitted to.

        For the audit alone, once all estimates are in: ``seen`` yields the original's rows whose copies were given to ``fit``, in
        blocks of shape (b, N) and as often as wanted. They are read only if gone through. None where ``expected`` says all there is.
        """
        return None


class RowAttack(Attack):
    """An attack that needs the rows themselves; it is fitted once to a view and then run block by block."""

    jumps: ClassVar[bool] = False
    """Whether one draw in twenty of what it was given may change its error by orders of magnitude, as where columns are taken for one
    another. Its error bars then come from more other releases, for that to be seen among them."""
    combines: ClassVar[bool] = False
    """Whether it sees Gaussian noise of one shape through the best combination of the copies alone, and a process with independent
    increments through its least perturbed copy: a coalition is then attacked with the copies that count in it, once for all coalitions
    that have these in common (corner-wave: the best copy)."""

    @abstractmethod
    def fit(self, view: View, blocks: Iterable[list[Array]]) -> Reconstruction:
        """Return the attack fitted to one coalition.

        Parameters
        ----------
        view : View
            The adversary's view.
        blocks : iterable of lists of k ndarrays of shape (b, N)
            The coalition's copies, block by block; may be gone through as often as wanted.
        """
