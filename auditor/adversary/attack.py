"""Attack interfaces: affine maps, estimates of rows, posteriors."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np

from auditor.adversary.knowledge import Knowledge
from auditor.adversary.view import NOTHING, Given, Informed, View
from auditor.base import AuditorError, NotApplicable, PluginError
from auditor.base.types import (
    Array,
    Arrays,
    Coalition,
    Codes,
    CopyBlocks,
    Flags,
    Indices,
    Options,
    Pair,
    Shape,
    frozen,
    unprinted,
)
from auditor.data.table import Table
from auditor.numerics.blocks import Moments
from auditor.numerics.random_streams import stream
from auditor.process.containment import known
from auditor.registry import Plugin
from auditor.schemes.replacement.law import UniformLaw


@unprinted
class Affine:
    """The estimate ``centre + offset + W (y − H·centre) + V (x − centre)``.

    Attributes
    ----------
    weights : (N, kN)
        ``W``, on the coalition's stacked copies.
    offset : (N,)
        0 if the attack centres on the true mean.
    fixed
        Whether W and the offset depend on the law alone.
    known : (N, N) or None
        ``V``, on known true values: 0 outside the known columns (``View.known_columns``).
    apart
        Whether it was fitted to known ``Records`` alone, and is judged on others.
    """

    weights: Array
    offset: Array
    fixed: bool = True
    known: Array | None = None
    apart: bool = False


@unprinted
class AffineStack(Sequence[Affine]):
    """Maps of several coalitions in one array.

    Attributes
    ----------
    weights : (B, N, MN)
        0 outside the coalition.
    offsets : (B, N)
    held : sequence of B tuples of int
        Indices from 0.
    """

    weights: Array
    offsets: Array
    fixed: bool
    held: Sequence[Coalition]

    def __len__(self) -> int:
        return len(self.weights)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            some = self.weights[place], self.offsets[place]
            return AffineStack(*some, self.fixed, self.held[place])
        N = self.offsets.shape[1]
        weights = self.weights[place].reshape(N, -1, N)[:, self.held[place]].reshape(N, -1)
        return Affine(weights, self.offsets[place], self.fixed)


def check_real(*values: Any) -> None:
    """Refuse complex values, text and objects (``PluginError``)."""
    for value in values:
        kind = np.asarray(value).dtype
        if kind.kind not in "fiub":
            raise PluginError(
                f"the attack returned values of type {known(kind.type).__name__}, which are no real numbers"
            )


def checked(estimate: Array, shape: Shape) -> Array:
    """Finite numbers of a shape; ``PluginError`` for others."""
    check_real(estimate)
    estimate = np.asarray(estimate, dtype=float)
    if estimate.shape != shape:
        raise PluginError(
            f"the attack returned an estimate of shape {estimate.shape} for rows of shape {shape}"
        )
    if not np.isfinite(estimate).all():
        raise PluginError("the attack returned values that are not finite")
    return estimate


MOST_WEIGHT = 1e100
"""Its square times any accepted variance is a double."""


def check_finite_maps(weights: Array, offsets: Array) -> None:
    """Refuse maps that are not finite, or too large (``PluginError``)."""
    if not (np.isfinite(weights).all() and np.isfinite(offsets).all()):
        raise PluginError("the attack returned weights that are not finite")
    if np.abs(weights).max(initial=0.0) > MOST_WEIGHT:
        raise PluginError("the attack returned weights beyond what double precision can square")


def check_affine(affine: Affine, view: View) -> None:
    """Refuse a map that is not finite or fails ``check_shape``."""
    check_shape(affine, view)
    check_finite_maps(affine.weights, affine.offset)


def check_shape(affine: Affine, view: View) -> None:
    """Refuse wrong shapes and unknown true values (``PluginError``)."""
    if not isinstance(affine, Affine):
        raise PluginError(
            f"the attack returned a {known(type(affine)).__name__} where an Affine is expected"
        )
    check_real(affine.weights, affine.offset, *(() if affine.known is None else (affine.known,)))
    N, shape = view.width, np.shape(affine.weights)
    if len(shape) != 2 or shape[0] != N or shape[1] % N or np.shape(affine.offset) != (N,):
        raise PluginError(
            f"the attack returned weights of shape {shape} and an offset of shape {np.shape(affine.offset)} for "
            f"{N} attributes"
        )
    if affine.known is None:
        return
    unknown = np.setdiff1d(np.arange(N), view.known_columns)
    if (
        affine.known.shape != (N, N)
        or not np.isfinite(affine.known).all()
        or affine.known[:, unknown].any()
    ):
        raise PluginError("the attack weighs true values that its adversary does not know")


def filter_map(view: View, F: Array, mean: Array, fixed: bool) -> Affine:
    """``x̂ = m + F(Σ w_i y_i − m)`` as a map of the stacked copies.

    ``fixed``: F, (N, N), and m, (N,), depend on the law alone.
    """
    m = mean - view.centre
    return Affine((F[:, None, :] * view.weights[:, None]).reshape(len(F), -1), m - F @ m, fixed)


class Cost(NamedTuple):
    """Measured cost of an attack.

    Attributes
    ----------
    fit, row
        Core-seconds per attribute: per coalition, and per row.
    memory
        Bytes.
    most
        Rows beyond which it does not apply.
    """

    fit: float
    row: float
    memory: int = 0
    most: int = sys.maxsize


class Attack(Plugin):
    """A method that estimates ``X`` from a coalition's copies."""

    kind = "attack"
    attack_kind: ClassVar[str] = "joint"
    """Kind of attack; reports compare the strongest of each.
    
    ``linear``; nonlinear ``per attribute`` or ``joint``; ``with attributes``, ``with a sample`` or
    ``with records``; ``serial``; ``last digits``; ``naming`` and ``attribute disclosure``."""
    families: ClassVar[frozenset[str]] = frozenset({"additive"})
    """Families of schemes that it applies to."""
    knowledge: ClassVar[tuple[str, ...]] = ()
    """Usable knowledge; empty: any."""
    serial: ClassVar[bool] = False
    """Whether row order matters."""
    cost: ClassVar[Cost] = Cost(4e-4, 2e-7)
    """Cost for `auditor check`, in tables of some 20,000 rows; unused for linear attacks."""
    best_linear: ClassVar[bool] = False
    """Whether it is the best linear attack under a known law."""
    wins: ClassVar[str] = ""
    """Conditions of success and failure, for `auditor show`."""
    in_all: ClassVar[bool] = True
    """Whether `attacks: all` tries it; False if another attack is as strong wherever it applies."""

    def cost_under(self, distribution: str | None) -> Cost:
        """Cost under a noise distribution; None if unknown."""
        return self.cost

    def form(self) -> Attack:
        """Attack that runs, by default itself.

        One of two forms, linear or by rows, is registered; it returns the other by equal
        parameters.
        """
        return self

    def check(self, family: str, knowledge: Knowledge) -> None:
        """Raise ``NotApplicable`` for other schemes or knowledge, with the reason."""
        if family not in self.families:
            raise NotApplicable(
                f"{self.name} attacks {' and '.join(sorted(self.families))} perturbation, not {family}"
            )
        if self.knowledge and knowledge.name not in self.knowledge:
            raise NotApplicable(
                f"{self.name} cannot use {knowledge.name} knowledge; it uses {' or '.join(self.knowledge)}"
            )

    def check_table(self, table: Table) -> None:
        """Raise ``AuditorError`` for parameters that do not fit the table."""
        return

    def check_scheme(self, public: Options) -> None:
        """Raise ``AuditorError`` for parameters that do not fit the scheme."""
        return


class LinearAttack(Attack):
    """Attack by an affine map."""

    attack_kind = "linear"

    @abstractmethod
    def affine(self, view: View) -> Affine:
        """Map for one coalition.

        Raises
        ------
        NotApplicable
            Data are lacking; the message is the reason.
        """

    def affine_batch(self, view: View, coalitions: Sequence[Coalition]) -> Sequence[Affine]:
        """Maps for several coalitions, of any sizes.

        An override with an ``AffineStack`` is 14 times faster for a thousand.
        """
        return [self.affine(view.coalition(copies)) for copies in coalitions]

    def error_bounds(self, view: View, joint: Moments) -> tuple[float, float] | None:
        """Theoretical bounds on the squared error, summed; None if unknown.

        ``joint``: moments of ``[X, Y_1 … Y_k]``.
        """
        return None

    def over_rows(self) -> RowAttack:
        """Attack for copies of another width.

        ``NotApplicable`` without moments.
        """
        raise NotApplicable(
            "a linear attack on moments needs copies with as many columns as the original"
        )


@unprinted
class Inferred:
    """Posterior of one attribute's values for each record.

    Attributes
    ----------
    values : (V,)
        Sorted; other values have probability 0.
    groups : (V,)
        Group of each value, 0 … G − 1.
    posterior : (b, G)
    prior : (G,)
        claims : (b,)
        Group; −1 for none.
    linked : (b,)
        Probability of naming the record's own row.
    """

    attribute: int
    values: Array
    groups: Indices
    posterior: Array
    prior: Array
    claims: Indices
    linked: Array


@unprinted
class Regions:
    """Claimed regions of rare records: ``low ≤ T x ≤ high``.

    Attributes
    ----------
    directions : (N, N)
        ``T``; the identity for bounds on attributes.
    low, high : (b, N)
        Possibly infinite.
    claims : bool, (b,)
    """

    directions: Array
    low: Array
    high: Array
    claims: Flags


class Reconstruction:
    """A nonlinear attack fitted to one coalition.

    Attributes
    ----------
    neighbours
        Rows before and after a record that its estimate depends on. Methods get these too, fewer at
        the table's ends; their results are ignored. ``inferred`` gets only the record's own row.
    known_noise : (|K|,) or None
        Standard deviations of noise added to known values in ``likeness``.
    in_clear : (|K|,) or None
        Indices of known attributes. Their values, (b, |K|), then follow the copies.
    assigns
        Whether targets are named by a one-to-one map of largest total likeness.
    stored
        Whether estimates are those of the released rows, for any copies.
    """

    neighbours: int = 0
    known_noise: Array | None = None
    in_clear: Indices | None = None
    assigns: bool = False
    stored: bool = False

    def at(self, first: int) -> Reconstruction:
        """Attack on rows from place ``first``, by default itself."""
        return self

    def rows(self, copies: Arrays) -> Array:
        """Estimates, shape (b, N), for a block of copies, each (b, N)."""
        raise NotImplementedError

    def intervals(self, copies: Arrays, confidence: float) -> Pair | None:
        """Both ends of posterior intervals, shapes (b, N), or None."""
        return None

    def guesses(self, copies: Arrays) -> Iterator[Array] | None:
        """Equally likely estimates, shapes (b, N), or None.

        As many for every block.
        """
        return None

    def chances(self, copies: Arrays, tolerance: float) -> Array | None:
        """Probabilities of ``‖x̂ − x‖ ≤ tolerance·‖x‖``, (b,), or None."""
        return None

    def inferred(self, copies: Arrays) -> Inferred | None:
        """Posterior of one attribute's values, or None."""
        return None

    def candidates(self, copies: Arrays) -> Array | None:
        """``e^H`` of the posterior, (b, N), NaN if unknown; or None."""
        return None

    def regions(self, copies: Arrays) -> Regions | None:
        """Claimed regions of rare records, or None."""
        return None

    def likeness(self, known: Array, copies: Arrays) -> Array | None:
        """Each row's likeness to each target, shape (t, b), or None.

        On any increasing scale. ``known``, (t, |K|), has the targets' known values.
        """
        return None

    def expected(self, x: Array) -> Array | None:
        """Mean of ``‖x̂ − x‖²`` over draws, shape (b,), or None.

        For the audit alone; true records ``x``, (b, N).
        """
        return None

    def row_theory(self, seen: Iterable[Array]) -> Callable[[Array], Array] | None:
        """``expected`` by the fitted rows; None if it does not need them.

        For the audit alone; ``seen`` yields true rows, (b, N).
        """
        return None


class RowAttack(Attack):
    """An attack by rows, block by block."""

    jumps: ClassVar[bool] = False
    """Whether one draw in twenty may change its error by orders of magnitude; error bars then use
    more draws."""
    combines: ClassVar[bool] = False
    """Whether the best combination (Gaussian noise of one shape) or the least perturbed copy (one
    process) suffices; coalitions with equal ones are attacked once."""

    @property
    def least_squares(self) -> bool:
        """Whether its error is least at its fit, so that error bars may hold the fit fixed."""
        return True

    @abstractmethod
    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        """Attack fitted to one coalition.

        ``blocks`` yields k copies of shape (b, N), repeatedly.
        """


ROUNDING = 1e-9


@dataclass(frozen=True, repr=False)
class CategoricalView(Informed):
    """View of copies of categories: law, knowledge, domain; no original.

    ``copies`` ascend. A label is a value, or a tuple of values, per code.
    """

    copies: Coalition
    law: UniformLaw
    knowledge: Knowledge
    labels: tuple[Any, ...]
    given: Given = NOTHING

    @property
    def size(self) -> int:
        """``s``."""
        return self.law.size

    def coalition(self, copies: Sequence[int]) -> CategoricalView:
        """View of a smaller coalition of this view's copies."""
        places = [self.copies.index(copy) + 1 for copy in copies]
        return replace(
            self, copies=tuple(copies), law=self.law.of(places), given=self.given.of(places, 1)
        )


def probabilities(found: Any, shape: Shape, what: str) -> Array:
    """Plugin's probabilities after a check (``PluginError``).

    Real, of the shape, finite, nonnegative, rows summing to 1.
    """
    check_real(found)
    P = np.asarray(found, dtype=float)
    if P.shape != shape:
        raise PluginError(f"{what} must have shape {shape}; got {P.shape}")
    if P.size and not (
        float(P.min()) >= -ROUNDING and (np.abs(P @ np.ones(shape[-1]) - 1.0) <= ROUNDING).all()
    ):
        raise PluginError(f"{what} must be finite, not below 0, and sum to 1 in every record")
    return P


class Inference:
    """A categorical attack fitted to one coalition.

    Attributes
    ----------
    prior : (s,)
    fixed
        Whether prior and channel are independent of the drawn noise.
    serial
        Whether neighbours matter. ``posterior`` then gets a block's records in order, else each
        distinct outcome once. Not ``fixed``.
    """

    prior: Array
    fixed: bool = True
    serial: bool = False

    def posterior(self, copies: Sequence[Codes]) -> Array:
        """``P(x | y_1 … y_k)``, shape (b, s), for copies of shape (b,)."""
        raise NotImplementedError

    def mixture(self, copies: Sequence[Codes]) -> tuple[Array, Codes] | None:
        """Weights w and values y, shapes (b,), of posteriors ``(1 − w)·prior + w·1_y``, if such."""
        return None

    def counting(self, copies: int) -> Sequence[int]:
        """Places of the copies that the posterior depends on."""
        return range(copies)

    def for_redraws(self) -> Inference:
        """Attack for redraws, which may share the start of a fit."""
        return self

    def checked(self, copies: Sequence[Codes]) -> Array:
        """``posterior`` after the checks of ``probabilities``."""
        return probabilities(
            self.posterior(copies), (copies[0].size, self.prior.size), "a posterior"
        )


class CategoricalAttack(Attack):
    """An attack that infers a posterior of each record's value."""

    families: ClassVar[frozenset[str]] = frozenset({"uniform"})

    @abstractmethod
    def infer(self, view: CategoricalView) -> Inference:
        """Return the attack fitted to one coalition, or raise ``NotApplicable``."""

    def predicates(self, labels: Sequence[Any]) -> Mapping[str, Flags]:
        """Predicates ``Q(X)`` to measure, as masks of shape (s,) by name."""
        return {}

    def check_table(self, table: Table) -> None:
        """Refuse predicates on values outside the table's domain."""
        data = table.categorical
        if data is None:
            return
        try:
            self.predicates(data.labels)
        except AuditorError as error:
            if len(data.names) == 1:
                raise
            raise AuditorError(
                f"{error}: a value there is a list of one of each of {', '.join(data.names)}, in this order"
            ) from None


def _text(value: Any) -> Any:
    return tuple(str(part) for part in value) if isinstance(value, (list, tuple)) else str(value)


def mask(labels: Sequence[Any], wanted: Sequence[Any], name: str) -> Flags:
    """Domain values that a predicate names.

    ``AuditorError`` if a value is not in the domain.
    """
    places = {_text(label): k for k, label in enumerate(labels)}
    chosen = np.zeros(len(labels), dtype=bool)
    for number, value in enumerate(wanted, 1):
        place = places.get(_text(value))
        if place is None:
            raise AuditorError(
                f"predicate {name!r}: value {number} of {len(wanted)} is not in the domain"
            )
        chosen[place] = True
    return chosen


# -- Coalitions: sets of copies that one adversary holds -------------------------------------------


NAMED = ("singles", "pairs", "prefixes", "all", "subsets")
MOST_COALITIONS = 1_100_000
"""Just over 2²⁰: every subset of 20 copies."""


@frozen
class Coalitions:
    """One entry of ``coalitions``.

    Attributes
    ----------
    kind
        ``singles``, ``pairs``, ``prefixes`` (copies 1 … j for every j), ``all``, ``subsets``
        (nonempty), ``copies`` (a list), ``first`` (copies 1 … m) or ``random`` (distinct subsets).
    copies
        For ``copies``.
    count
        For ``first`` and ``random``.
    """

    kind: str
    copies: Coalition = ()
    count: int = 0

    def spec(self) -> Any:
        """Scenario's spelling."""
        if self.kind in NAMED:
            return self.kind
        return {self.kind: list(self.copies) if self.kind == "copies" else self.count}

    def expand(self, M: int, seed: int) -> Iterator[Coalition]:
        """Yield the coalitions among M copies, each ascending.

        ``AuditorError`` for unknown copies, or too many coalitions.
        """
        everybody = tuple(range(1, M + 1))
        sizes = {"singles": (1,), "pairs": (2,), "subsets": everybody}
        ends = {"prefixes": everybody, "all": (M,), "first": (self.count,)}
        if self.kind == "random":
            yield from _random_subsets(M, self.count, seed)
        elif self.kind in sizes:
            if self.size(M) > MOST_COALITIONS:
                raise AuditorError(
                    f"{self.kind} of {M} copies are too many coalitions; at most {MOST_COALITIONS:,} can be audited, try random"
                )
            yield from (held for size in sizes[self.kind] for held in combinations(everybody, size))
        else:
            held = [tuple(range(1, end + 1)) for end in ends.get(self.kind, ())] or [self.copies]
            if missing := [copy for copy in held[-1] if copy > M]:
                there = "1 copy is" if M == 1 else f"{M} copies are"
                raise AuditorError(
                    f"a coalition names copy {missing[0]}, but only {there} released"
                )
            yield from held

    def size(self, M: int) -> int:
        """Number of coalitions among M copies."""
        subsets = int(2**M) - 1
        sizes = {"singles": M, "pairs": M * (M - 1) // 2, "prefixes": M, "subsets": subsets}
        return min(self.count, subsets) if self.kind == "random" else sizes.get(self.kind, 1)

    def matches(self, coalition: Coalition, M: int) -> bool:
        """Whether a coalition is included; ``random`` matches any."""
        if self.kind in ("singles", "pairs"):
            return len(coalition) == (1 if self.kind == "singles" else 2)
        if self.kind == "copies":
            return coalition == self.copies
        sizes = {"prefixes": min(len(coalition), M), "all": M, "first": min(self.count, M)}
        return self.kind not in sizes or coalition == tuple(range(1, sizes[self.kind] + 1))


def _random_subsets(M: int, count: int, seed: int) -> Iterator[Coalition]:
    """Yield uniform distinct nonempty subsets, equal for every scheme."""
    if M <= 20 and count >= 2**M - 1:
        yield from Coalitions("subsets").expand(M, seed)
        return
    rng = stream(seed, "coalitions", M)
    seen: set[Coalition] = set()
    while len(seen) < count:
        coalition = tuple(int(copy) + 1 for copy in (rng.random(M) < 0.5).nonzero()[0])
        if coalition and coalition not in seen:
            seen.add(coalition)
            yield coalition


@lru_cache(maxsize=2)
def expand_all(entries: tuple[Coalitions, ...], M: int, seed: int) -> tuple[Coalition, ...]:
    """All distinct coalitions, by size and then by copy number.

    Half a million subsets need a second, so they are cached.
    """
    found = {coalition for entry in entries for coalition in entry.expand(M, seed)}
    return tuple(sorted(found, key=lambda coalition: (len(coalition), coalition)))
