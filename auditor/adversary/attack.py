"""Attack interfaces: affine maps, estimates of rows, posteriors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any, ClassVar, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.view import NOTHING, Given, Informed, Knowledge, View
from auditor.base import AuditorError, NotApplicable, PluginError
from auditor.base.types import Array, Coalition, Codes
from auditor.data.table import Table
from auditor.numerics.blocks import CHUNK_VALUES, evenly
from auditor.numerics.moments import Moments
from auditor.numerics.random_streams import stream
from auditor.process.containment import known
from auditor.registry import Plugin
from auditor.schemes.replacement.law import UniformLaw


@dataclass(frozen=True, eq=False, repr=False)
class Affine:
    """The estimate ``centre + offset + W (y − H·centre) + V (x − centre)``.

    Attributes
    ----------
    weights : ndarray of shape (N, kN)
        ``W``, on the coalition's stacked copies.
    offset : ndarray of shape (N,)
        0 if the attack centres on the true mean.
    fixed : bool
        Whether W and the offset depend on the law alone, so theory has closed forms.
    known : ndarray of shape (N, N) or None
        ``V``, on known true values: 0 outside the known columns (``View.known_columns``).
    apart : bool
        Whether a map that is not fixed was fitted to known ``Records`` alone, and is judged on others.
    """

    weights: Array
    offset: Array
    fixed: bool = True
    known: Array | None = None
    apart: bool = False

    def apply(self, copies: Sequence[Array], centre: Array, out: Array) -> Array:
        """Write ``centre + offset + Σ W_i (y_i − centre)`` to ``out``.

        All have shape (n, N). No other memory grows with n.
        """
        blocks = np.split(self.weights, len(copies), axis=1)
        constant = centre + self.offset - sum(W @ centre for W in blocks)
        for a, b in evenly(0, len(out), out.shape[1], CHUNK_VALUES):
            out[a:b] = constant
            for W, copy in zip(blocks, copies, strict=True):
                if W.any():
                    out[a:b] += copy[a:b] @ W.T
        return out


@dataclass(frozen=True, eq=False, repr=False)
class AffineStack(Sequence[Affine]):
    """Maps of several coalitions in one array, unpacked on access.

    Attributes
    ----------
    weights : ndarray of shape (B, N, MN)
        0 outside the coalition.
    offsets : ndarray of shape (B, N)
    fixed : bool
    held : sequence of B tuples of int
        Indices from 0.
    """

    weights: Array
    offsets: Array
    fixed: bool
    held: Sequence[Coalition]

    def __len__(self) -> int:
        return len(self.weights)

    @overload
    def __getitem__(self, place: int) -> Affine: ...
    @overload
    def __getitem__(self, place: slice) -> AffineStack: ...
    def __getitem__(self, place: int | slice) -> Affine | AffineStack:
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


def checked(estimate: Array, shape: tuple[int, ...]) -> Array:
    """Return finite numbers of a shape; ``PluginError`` for others."""
    check_real(estimate)
    estimate = np.asarray(estimate, dtype=np.float64)
    if estimate.shape != shape:
        raise PluginError(
            f"the attack returned an estimate of shape {estimate.shape} for rows of shape {shape}"
        )
    if not np.isfinite(estimate).all():
        raise PluginError("the attack returned values that are not finite")
    return estimate


MOST_WEIGHT = 1e100
"""Its square times any accepted variance is still a double."""


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
        shapes = f"weights of shape {shape} and an offset of shape {np.shape(affine.offset)}"
        raise PluginError(f"the attack returned {shapes} for {N} attributes")
    if affine.known is None:
        return
    unknown = np.setdiff1d(np.arange(N), view.known_columns)
    if (
        affine.known.shape != (N, N)
        or not np.isfinite(affine.known).all()
        or affine.known[:, unknown].any()
    ):
        raise PluginError("the attack weighs true values that its adversary does not know")


class Cost(NamedTuple):
    """Measured cost of an attack.

    Attributes
    ----------
    fit, row : float
        Core-seconds per attribute: for a fit to one coalition, and per row.
    memory : int
        Bytes besides the data.
    """

    fit: float
    row: float
    memory: int = 0


class Attack(Plugin):
    """A method that estimates ``X`` from a coalition's copies."""

    kind = "attack"
    attack_kind: ClassVar[str] = "joint"
    """Kind of attack: reports compare the strongest attack of each kind, and name kinds that were not tried.
    
    Built-in kinds are ``linear``; nonlinear ``per attribute`` or ``joint``; ``with attributes``,
    ``with a sample`` or ``with records``, by necessary knowledge; ``serial``; ``last digits``;
    ``naming`` and ``attribute disclosure``, without numeric estimates."""
    families: ClassVar[frozenset[str]] = frozenset({"additive"})
    """Families of schemes that it applies to."""
    knowledge: ClassVar[tuple[str, ...]] = ()
    """Usable states of knowledge; empty: any."""
    serial: ClassVar[bool] = False
    """Whether it uses a record's neighbours, so that row order matters."""
    cost: ClassVar[Cost] = Cost(4e-4, 2e-7)
    """Cost of one fit in tables of up to some 20,000 rows, with estimates, for `auditor check`.
    Unused for linear attacks."""
    best_linear: ClassVar[bool] = False
    """Whether it is the best linear attack under a known law, as theorems on pooling assume."""
    wins: ClassVar[str] = ""
    """Conditions of success and failure, for `auditor show`."""

    def cost_under(self, distribution: str | None) -> Cost:
        """Return the cost under a noise distribution; None if unknown."""
        return self.cost

    def form(self) -> Attack:
        """Return the attack that runs, by default itself.

        Of a linear and a row-level form, one is registered and returns the other, made from equal
        parameters, with its own ``name``, ``families`` and ``knowledge``.
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

    def check_scheme(self, public: Mapping[str, Any]) -> None:
        """Raise ``AuditorError`` for parameters that do not fit the scheme."""
        return


class LinearAttack(Attack):
    """An attack by an affine map; its error needs only second moments."""

    attack_kind = "linear"

    @abstractmethod
    def affine(self, view: View) -> Affine:
        """Return the map for one coalition.

        Raises
        ------
        NotApplicable
            The view lacks necessary data; the message is the reason.
        """

    def affine_batch(self, view: View, coalitions: Sequence[tuple[int, ...]]) -> Sequence[Affine]:
        """Return the maps for several coalitions, of any sizes.

        Override to solve many at once, with an ``AffineStack``: 14 times faster for a thousand.
        """
        return [self.affine(view.coalition(copies)) for copies in coalitions]

    def error_bounds(self, view: View, joint: Moments) -> tuple[float, float] | None:
        """Return theoretical bounds on the squared error, summed; None if unknown.

        ``joint`` has moments of ``[X, Y_1 … Y_k]`` over the judged rows.
        """
        return None

    def over_rows(self) -> RowAttack:
        """Return the attack for copies of another width.

        ``NotApplicable`` without moments.
        """
        raise NotApplicable(
            "a linear attack on moments needs copies with as many columns as the original"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Inferred:
    """Posterior of one attribute's values for each record.

    Attributes
    ----------
    attribute : int
    values : ndarray of shape (V,)
        Sorted; other values have probability 0.
    groups : ndarray of shape (V,)
        Group of each value, 0 … G − 1; by default its own.
    posterior : ndarray of shape (b, G)
    prior : ndarray of shape (G,)
        Without the record's copies.
    claims : ndarray of shape (b,)
        The claimed group; −1 for none.
    linked : ndarray of shape (b,)
        Probability of naming the record's own row among indistinguishable ones.
    """

    attribute: int
    values: Array
    groups: NDArray[np.intp]
    posterior: Array
    prior: Array
    claims: NDArray[np.intp]
    linked: Array


@dataclass(frozen=True, eq=False, repr=False)
class Regions:
    """Claimed regions of rare records: ``low ≤ T x ≤ high``.

    Attributes
    ----------
    directions : ndarray of shape (N, N)
        ``T``; the identity for bounds on attributes.
    low, high : ndarrays of shape (b, N)
        Bounds per record, possibly infinite.
    claims : ndarray of bool, shape (b,)
    """

    directions: Array
    low: Array
    high: Array
    claims: NDArray[np.bool_]


class Reconstruction:
    """A nonlinear attack fitted to one coalition: copies in, estimates out.

    Attributes
    ----------
    neighbours : int
        Rows before and after a record that its estimate depends on. ``rows``, ``expected`` and
        similar methods get these rows too, fewer at the ends of the table; their results are
        ignored. ``inferred`` gets only the record's own row.
    known_noise : ndarray of shape (|K|,) or None
        Standard deviations of normal noise that the audit adds to known values in ``likeness``.
    in_clear : ndarray of shape (|K|,) or None
        Indices of attributes with known true values. An array of these, shape (b, |K|), then
        follows the copies.
    assigns : bool
        Whether it names all targets at once, by a one-to-one map of largest total likeness.
    """

    neighbours: int = 0
    known_noise: Array | None = None
    in_clear: NDArray[np.intp] | None = None
    assigns: bool = False

    def at(self, first: int) -> Reconstruction:
        """Return the attack on rows from place ``first``, by default itself."""
        return self

    def rows(self, copies: Sequence[Array]) -> Array:
        """Return estimates, shape (b, N), for a block of copies, each (b, N)."""
        raise NotImplementedError

    def intervals(self, copies: Sequence[Array], confidence: float) -> tuple[Array, Array] | None:
        """Return both ends of posterior intervals, shapes (b, N), or None."""
        return None

    def guesses(self, copies: Sequence[Array]) -> Iterator[Array] | None:
        """Return equally likely estimates, shapes (b, N), or None.

        As many for every block.
        """
        return None

    def chances(self, copies: Sequence[Array], tolerance: float) -> Array | None:
        """Return probabilities of ``‖x̂ − x‖ ≤ tolerance·‖x‖``, (b,), or None."""
        return None

    def inferred(self, copies: Sequence[Array]) -> Inferred | None:
        """Return the posterior of one attribute's values, or None."""
        return None

    def candidates(self, copies: Sequence[Array]) -> Array | None:
        """Return ``e^H`` of the posterior, (b, N), NaN if unknown; or None."""
        return None

    def regions(self, copies: Sequence[Array]) -> Regions | None:
        """Return claimed regions of rare records, or None."""
        return None

    def likeness(self, known: Array, copies: Sequence[Array]) -> Array | None:
        """Return each row's likeness to each target, shape (t, b), or None.

        Any increasing scale, independent of other rows. ``known`` has the targets' values of
        ``view.known_columns``, shape (t, |K|).
        """
        return None

    def expected(self, x: Array) -> Array | None:
        """Return the mean of ``‖x̂ − x‖²`` over draws, shape (b,), or None.

        For the audit alone: ``x`` are true records, shape (b, N).
        """
        return None

    def row_theory(self, seen: Iterable[Array]) -> Callable[[Array], Array] | None:
        """Return ``expected`` by the fitted rows; None if it does not need them.

        For the audit alone: ``seen`` yields true rows of the copies given to ``fit``, shape (b, N).
        """
        return None


class RowAttack(Attack):
    """An attack that needs rows, fitted once and run block by block."""

    jumps: ClassVar[bool] = False
    """Whether one draw in twenty may change its error by orders of magnitude, as by confused
    columns. Error bars then use more draws."""
    combines: ClassVar[bool] = False
    """Whether it uses only the best combination under Gaussian noise of one shape, or the least perturbed copy of a
    process with independent increments. Coalitions with equal relevant copies are then attacked once."""

    @abstractmethod
    def fit(self, view: View, blocks: Iterable[list[Array]]) -> Reconstruction:
        """Return the attack fitted to one coalition.

        ``blocks`` yields lists of k copies of shape (b, N), repeatedly.
        """


ROUNDING = 1e-9


@dataclass(frozen=True, repr=False)
class CategoricalView(Informed):
    """An adversary's law, knowledge and domain; never the original.

    ``law`` is of the ``copies``, ascending numbers. A label is a value, or a tuple of values, per code.
    ``given`` has data from its knowledge; see ``need``.
    """

    copies: tuple[int, ...]
    law: UniformLaw
    knowledge: Knowledge
    labels: tuple[Any, ...]
    given: Given = NOTHING

    @property
    def size(self) -> int:
        """``s``."""
        return self.law.size

    def coalition(self, copies: Sequence[int]) -> CategoricalView:
        """Return the view of a smaller coalition of this view's copies."""
        places = [self.copies.index(copy) + 1 for copy in copies]
        return replace(
            self, copies=tuple(copies), law=self.law.of(places), given=self.given.of(places, 1)
        )


def probabilities(found: Any, shape: tuple[int, ...], what: str) -> Array:
    """Return a plugin's probabilities after a check (``PluginError``).

    Real, of the shape, finite, nonnegative, rows summing to 1.
    """
    check_real(found)
    P = np.asarray(found, dtype=np.float64)
    if P.shape != shape:
        raise PluginError(f"{what} must have shape {shape}; got {P.shape}")
    if P.size and not (
        float(P.min()) >= -ROUNDING and (np.abs(P.sum(axis=-1) - 1.0) <= ROUNDING).all()
    ):
        raise PluginError(f"{what} must be finite, not below 0, and sum to 1 in every record")
    return P


class Inference:
    """A categorical attack fitted to one coalition.

    Attributes
    ----------
    prior : ndarray of shape (s,)
    fixed : bool
        Whether prior and channel are independent of the drawn noise, so closed forms exist.
    serial : bool
        Whether a record's posterior depends on its neighbours. ``posterior`` then gets all records
        of a block in order, else each distinct outcome once. Must not be ``fixed``.
    """

    prior: Array
    fixed: bool = True
    serial: bool = False

    def posterior(self, copies: Sequence[Codes]) -> Array:
        """Return ``P(x | y_1 … y_k)``, shape (b, s), for copies of shape (b,)."""
        raise NotImplementedError

    def counting(self, copies: int) -> Sequence[int]:
        """Return the places of the copies that the posterior depends on."""
        return range(copies)

    def for_redraws(self) -> Inference:
        """Return the attack for redraws, which may share the start of a fit."""
        return self

    def checked(self, copies: Sequence[Codes]) -> Array:
        """Return ``posterior`` after the checks of ``probabilities``."""
        return probabilities(
            self.posterior(copies), (copies[0].size, self.prior.size), "a posterior"
        )


class CategoricalAttack(Attack):
    """An attack that infers a posterior of each record's value."""

    families: ClassVar[frozenset[str]] = frozenset({"uniform"})

    @abstractmethod
    def infer(self, view: CategoricalView) -> Inference:
        """Return the attack fitted to one coalition, or raise ``NotApplicable``."""

    def predicates(self, labels: Sequence[Any]) -> Mapping[str, NDArray[np.bool_]]:
        """Return predicates ``Q(X)`` to measure, as masks of shape (s,) by name."""
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


def mask(labels: Sequence[Any], wanted: Sequence[Any], name: str) -> NDArray[np.bool_]:
    """Return the domain values that a predicate names.

    For several attributes a value is a list. ``AuditorError`` if it is not in the domain.
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


@dataclass(frozen=True)
class Coalitions:
    """One entry of ``coalitions``.

    Attributes
    ----------
    kind : str
        ``singles``, ``pairs``, ``prefixes`` (copies 1 … j for every j), ``all``, ``subsets``
        (nonempty), ``copies`` (a list), ``first`` (copies 1 … m) or ``random`` (distinct subsets).
    copies : tuple of int
        For ``copies``.
    count : int
        For ``first`` and ``random``.
    """

    kind: str
    copies: Coalition = ()
    count: int = 0

    def spec(self) -> Any:
        """Return the scenario's spelling."""
        if self.kind in NAMED:
            return self.kind
        return {self.kind: list(self.copies) if self.kind == "copies" else self.count}

    def expand(self, M: int, seed: int) -> Iterator[Coalition]:
        """Yield the coalitions among M copies, each ascending.

        ``AuditorError`` if a copy does not exist, or they are too many.
        """
        everybody = tuple(range(1, M + 1))
        if self.kind in ("pairs", "subsets"):
            self._check_count(M)
            sizes = (2,) if self.kind == "pairs" else everybody
            yield from (held for size in sizes for held in combinations(everybody, size))
        elif self.kind == "singles":
            yield from ((copy,) for copy in everybody)
        elif self.kind == "prefixes":
            yield from (everybody[:size] for size in range(1, M + 1))
        elif self.kind == "all":
            yield everybody
        elif self.kind == "random":
            yield from _random_subsets(M, self.count, seed)
        else:
            copies = self.copies if self.kind == "copies" else tuple(range(1, self.count + 1))
            if missing := [copy for copy in copies if copy > M]:
                raise AuditorError(
                    f"a coalition names copy {missing[0]}, but only {M} copies are released"
                )
            yield copies

    def size(self, M: int) -> int:
        """Return the number of coalitions among M copies."""
        subsets = int(2**M) - 1
        sizes = {"singles": M, "pairs": M * (M - 1) // 2, "prefixes": M, "subsets": subsets}
        return min(self.count, subsets) if self.kind == "random" else sizes.get(self.kind, 1)

    def _check_count(self, M: int) -> None:
        count = self.size(min(M, 10_000))
        if count > MOST_COALITIONS:
            number = f"{count:,}" if count < 10**9 else f"about 10^{len(str(count)) - 1}"
            raise AuditorError(
                f"{self.kind} of {M} copies are {number if M < 10_000 else 'far too many'} coalitions; "
                f"at most {MOST_COALITIONS:,} can be audited, try random"
            )

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


def expand_all(entries: Iterable[Coalitions], M: int, seed: int) -> list[Coalition]:
    """Return all distinct coalitions, by size and then by copy number."""
    return list(_expanded(tuple(entries), M, seed))


@lru_cache(maxsize=2)
def _expanded(entries: tuple[Coalitions, ...], M: int, seed: int) -> tuple[Coalition, ...]:
    """Cached: half a million subsets need a second."""
    found = {coalition for entry in entries for coalition in entry.expand(M, seed)}
    return tuple(sorted(found, key=lambda coalition: (len(coalition), coalition)))
