"""What an attack is: an adversary's view in, an estimate of the original out. The engine measures; the attack estimates."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from auditor.combination import best_unbiased_combination
from auditor.data.table import Table
from auditor.errors import NotApplicable
from auditor.knowledge import Estimated, Knowledge, KnownAttributes, Perfect
from auditor.linear_algebra import EPS, Pencil, clip_to_psd
from auditor.moments import Moments
from auditor.noise import GaussianNoise, NoiseLaw, attribute_index
from auditor.registry import Plugin
from auditor.rowmap import write_estimates
from auditor.sealed import seal

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Records:
    """Records that an adversary was given in clear, matched to their copies' rows.

    Attributes
    ----------
    original : ndarray of shape (p, N)
        True values, in data units.
    copies : tuple of k ndarrays of shape (p, N)
        The same rows of the coalition's copies.
    """

    original: Array = field(repr=False)
    copies: tuple[Array, ...] = field(repr=False)


@dataclass(frozen=True)
class View:
    """Everything an adversary has: its coalition's copies, in moments, and its knowledge. Never the original.

    Attributes
    ----------
    attributes : tuple of str
        Column names, N of them.
    rows : int
        Rows released.
    copies : tuple of int
        The coalition, by copy number, ascending; k of them.
    levels : tuple of float
        Their levels.
    knowledge : Knowledge
        What else the adversary knows.
    law : NoiseLaw or None
        The law of the noise in the coalition's copies; None when nobody has stated it.
    centre : ndarray of shape (N,)
        A point near the data that moments are taken about. An attack may use it for nothing else. Copies that were turned are far
        from it: their moments are about their own means, whatever those are.
    exact_mean, exact_covariance : ndarray or None
        ``mu_X``, shape (N,), and ``K_X``, shape (N, N), if the adversary knows them.
    released : Moments
        Moments of the coalition's stacked copies over all rows, about the centre, d = kN.
    sample : Moments or None
        The same over the rows from which an ``Estimated`` adversary estimates.
    known : Moments or None
        Moments of ``[X, Y_1 … Y_k]`` over the records given in clear, about the centre, d = (k+1)N.
    records : Records or None
        Those records themselves, for attacks on rows.
    unmatched : ndarray of shape (p, N) or None
        Records given in clear without saying which released rows are theirs; in no order.
    population : ndarray of shape (s, N) or None
        Other draws from the population that the released records were drawn from.
    scheme : mapping
        The scheme's ``name`` and parameters, which are no secret; its random numbers are.
    seed : int
        Of the guesses of an attack that guesses; says nothing of the scheme's.
    """

    attributes: tuple[str, ...]
    rows: int
    copies: tuple[int, ...]
    levels: tuple[float, ...]
    knowledge: Knowledge
    law: NoiseLaw | None
    centre: Array = field(repr=False)
    exact_mean: Array | None = field(repr=False)
    exact_covariance: Array | None = field(repr=False)
    released: Moments = field(repr=False)
    sample: Moments | None = field(repr=False, default=None)
    known: Moments | None = field(repr=False, default=None)
    records: Records | None = field(repr=False, default=None)
    unmatched: Array | None = field(repr=False, default=None)
    population: Array | None = field(repr=False, default=None)
    scheme: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    seed: int = 0

    def __post_init__(self) -> None:
        """Seal every array: an attack that wrote to one would change what the next is shown."""
        seal(self.centre, self.exact_mean, self.exact_covariance, self.unmatched, self.population)
        for moments in (self.released, self.sample, self.known):
            if type(moments) is Moments:  # those awaited are nobody else's
                seal(moments.total, moments.products)
        if self.records is not None:
            seal(self.records.original, *self.records.copies)
        if self.law is not None:
            seal(*vars(self.law).values())

    @property
    def width(self) -> int:
        """Number of attributes ``N``."""
        return len(self.attributes)

    def coalition(self, copies: Sequence[int]) -> View:
        """Return the view of a smaller coalition; copy numbers must be among this view's."""
        places = [self.copies.index(copy) + 1 for copy in copies]
        return replace(
            self,
            copies=tuple(copies),
            levels=tuple(self.levels[place - 1] for place in places),
            law=None if self.law is None else self.law.of(places),
            released=_part(self.released, places, self.width),
            sample=None if self.sample is None else _part(self.sample, places, self.width),
            known=None if self.known is None else _part(self.known, [1, *(place + 1 for place in places)], self.width),
            records=None if self.records is None else self._records_of(self.records, places),
        )

    @staticmethod
    def _records_of(records: Records, places: Sequence[int]) -> Records:
        return Records(records.original, tuple(records.copies[place - 1] for place in places))

    @property
    def known_columns(self) -> NDArray[np.intp]:
        """Places of the attributes whose true values the adversary has for every record."""
        if not isinstance(self.knowledge, KnownAttributes):
            return np.empty(0, dtype=np.intp)
        return np.array(sorted(self.attributes.index(name) for name in self.knowledge.attributes), dtype=np.intp)

    @cached_property
    def weights(self) -> Array:
        """Weights, shape (k,), of the unbiased combination ``Σ w_i Y_i`` of least variance that the law allows; sum 1.

        Without a law the copies count alike. Bounded so that moments still resolve the combination.
        """
        return np.full(len(self.copies), 1.0 / len(self.copies)) if self._combination is None else self._combination[0]

    @cached_property
    def _combination(self) -> tuple[Array, Array] | None:
        """The combination and its noise multiple, its weights bounded by the grain of second moments: ε of what they are sums of."""
        if not isinstance(self.law, GaussianNoise):
            return None
        Sigma = self.law.level_covariance
        return best_unbiased_combination(Sigma, math.sqrt(EPS * (1.0 + float(np.diag(Sigma).max()))))

    @cached_property
    def grain(self) -> Array:
        """What doubles round the coalition's copies to, in roots of noise multiples, shape (N,): ε of their size over the noise's own."""
        law = self.law  # its own shape where that is to be estimated, too: an order of magnitude is all that is asked
        if not isinstance(law, GaussianNoise):
            return np.full(self.width, EPS)
        rough = self.released if self.sample is None else self.sample
        K_X = rough.covariance()[: self.width, : self.width] if self.exact_covariance is None else self.exact_covariance
        noise, loudest = np.diag(law.shape), float(np.diag(law.level_covariance).max(initial=0.0))
        size = np.sqrt(np.clip(self.centre**2 + np.diag(K_X) + loudest * noise, np.finfo(float).tiny, None))
        return np.asarray(EPS * np.where(noise > 0, size / np.sqrt(np.where(noise > 0, noise, 1.0)), np.sqrt(max(loudest, EPS))))

    @cached_property
    def combined_variance(self) -> float:
        """Noise multiple ``v`` of that combination, so that its noise has covariance ``v·K_0``.

        Raises
        ------
        NotApplicable
            The law is not known, or mixes shapes.
        """
        if self._combination is None:
            raise NotApplicable("the law of the noise is not known to have one shape across the copies")
        return float(self._combination[1])

    def combined(self, moments: Moments) -> tuple[Array, Array]:
        """Return mean, shape (N,), and covariance, shape (N, N), divisor r − 1, of ``Σ w_i Y_i`` over the rows of ``moments``."""
        W = np.kron(self.weights, np.eye(self.width))
        covariance = moments.covariance(max(1, moments.count - 1))
        return self.centre + W @ moments.mean, W @ covariance @ W.T

    @cached_property
    def data_moments(self) -> tuple[Array, Array]:
        """``mu_X``, shape (N,), and ``K_X``, shape (N, N), as this adversary knows or estimates them.

        With ``Estimated`` knowledge the covariance of the copies' best combination less its noise, ``Cov − v·K_0`` (clipped to be
        positive semi-definite), or ``Cov / (1 + v)`` when the noise follows the data (li2012, section 6.1).

        Raises
        ------
        NotApplicable
            This knowledge does not give moments.
        """
        if isinstance(self.knowledge, (Perfect, KnownAttributes)) and self.exact_mean is not None and self.exact_covariance is not None:
            return self.exact_mean, self.exact_covariance
        if not isinstance(self.knowledge, Estimated) or self.sample is None:
            raise NotApplicable(f"needs the data's mean and covariance, which {self.knowledge.label} knowledge does not give")
        mean, covariance = self.combined(self.sample)
        v = self.combined_variance
        assert isinstance(self.law, GaussianNoise)
        if self.law.follows_data:
            return mean, covariance / (1.0 + v)
        return mean, clip_to_psd(covariance - v * self.law.shape, covariance)

    @cached_property
    def pencil(self) -> Pencil:
        """``K_X`` and ``K_0`` diagonalised together, as this adversary knows them: one decomposition for every coalition.

        Raises
        ------
        NotApplicable
            This knowledge does not give moments, or the law of the noise is not known to have one shape across the copies.
        """
        law = self.known_law
        if not isinstance(law, GaussianNoise):
            raise NotApplicable("the law of the noise is not known to have one shape across the copies")
        return Pencil.of(self.data_moments[1], law.shape)

    @cached_property
    def known_law(self) -> NoiseLaw:
        """The law with everything in it that the adversary must estimate put to its estimate: ``Sigma ⊗ K̂_X`` when it follows the data.

        Raises
        ------
        NotApplicable
            Nobody has stated the law of the noise.
        """
        if self.law is None:
            raise NotApplicable("needs the law of the noise, which these copies come without")
        if isinstance(self.law, GaussianNoise) and self.law.follows_data:
            return replace(self.law, shape=self.data_moments[1])
        return self.law


def _part(moments: Moments, places: Sequence[int], width: int) -> Moments:
    """Return moments of some of the parts that are stacked side by side, numbered from 1; none where copies have other columns."""
    if moments.size == 0:
        return moments
    index = attribute_index(places, width)
    return Moments(moments.count, moments.total[index], moments.products[np.ix_(index, index)])


@dataclass(frozen=True)
class Affine:
    """A linear attack's estimate ``x̂ = centre + offset + W (y − H·centre) + V (x − centre)``.

    Attributes
    ----------
    weights : ndarray of shape (N, kN)
        ``W``, on the coalition's stacked copies.
    offset : ndarray of shape (N,)
        ``x̂ = centre + offset + W·(y − H·centre)``; 0 for an attack that centres on the true mean.
    fixed : bool
        Whether W and the offset depend on the law alone and not on the noise drawn; only then is there a theory. Error bars have a
        closed form then; else they count what another draw would have taught the attack, too.
    known : ndarray of shape (N, N) or None
        ``V``, on the record's own true values: 0 outside the columns the adversary knows (``View.known_columns``).
    apart : bool
        Of a map that is not fixed: whether it was learnt from records given in clear (``View.known``) and from no other row. It is
        judged on the others, and there is a theory then, the map taken as it is (``auditor.given_map``).
    """

    weights: Array = field(repr=False)
    offset: Array = field(repr=False)
    fixed: bool = True
    known: Array | None = field(repr=False, default=None)
    apart: bool = False

    def apply(self, copies: Sequence[Array], centre: Array, out: Array) -> Array:
        """Write ``centre + offset + Σ W_i (y_i − centre)`` for every row, block by block, and return it.

        Parameters
        ----------
        copies : sequence of k ndarrays of shape (n, N)
        centre : ndarray of shape (N,)
            The view's.
        out : ndarray of shape (n, N)
            Overwritten; the only memory used that grows with n.
        """
        return write_estimates(self.weights, self.offset, centre, copies, out)


@dataclass(frozen=True)
class AffineStack(Sequence[Affine]):
    """Maps of several coalitions of one size, solved together and kept together: unpacked only for who asks for one of them.

    Attributes
    ----------
    weights : ndarray of shape (B, N, kN)
    offsets : ndarray of shape (B, N)
    fixed : bool
        As for each ``Affine``; none uses true values.
    """

    weights: Array = field(repr=False)
    offsets: Array = field(repr=False)
    fixed: bool = True

    def __len__(self) -> int:
        return len(self.weights)

    @overload
    def __getitem__(self, place: int) -> Affine: ...
    @overload
    def __getitem__(self, place: slice) -> AffineStack: ...
    def __getitem__(self, place: int | slice) -> Affine | AffineStack:
        if isinstance(place, slice):
            return AffineStack(self.weights[place], self.offsets[place], self.fixed)
        return Affine(self.weights[place], self.offsets[place], self.fixed)


class Attack(Plugin):
    """A way of rebuilding ``X`` from a coalition's copies."""

    kind = "attack"
    families: ClassVar[frozenset[str]] = frozenset({"additive"})
    """Families of schemes it applies to."""
    knowledge: ClassVar[tuple[str, ...]] = ()
    """Names of the states of knowledge it can use; empty: it needs none, and any will do."""
    wins: ClassVar[str] = ""
    """When it succeeds and when it fails, for `auditor show`."""

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

    def over_rows(self) -> RowAttack:
        """Return the attack for copies with other columns than the original, of which there are no joint moments.

        Raises
        ------
        NotApplicable
            There is none: an attack that adds and subtracts copies and originals cannot be.
        """
        raise NotApplicable("a linear attack on moments needs copies with as many columns as the original")


@dataclass(frozen=True)
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
        Chance of naming the record's own row among those it cannot be told from.
    """

    attribute: int
    values: Array = field(repr=False)
    groups: NDArray[np.intp] = field(repr=False)
    posterior: Array = field(repr=False)
    prior: Array = field(repr=False)
    claims: NDArray[np.intp] = field(repr=False)
    linked: Array = field(repr=False)


class Reconstruction:
    """A non-linear attack, fitted to one coalition: rows of copies in, rows of estimates out."""

    def rows(self, copies: Sequence[Array]) -> Array:
        """Return estimates, shape (b, N), for one block of the coalition's copies, each of shape (b, N)."""
        raise NotImplementedError

    def intervals(self, copies: Sequence[Array], confidence: float) -> tuple[Array, Array] | None:
        """Return both ends of intervals that hold each value with that posterior probability, shapes (b, N); None if it has none."""
        return None

    def guesses(self, copies: Sequence[Array]) -> Iterator[Array]:
        """Yield estimates, shape (b, N), any of which the attack might as well have made; the same guesses for every block."""
        yield self.rows(copies)

    def chances(self, copies: Sequence[Array], tolerance: float) -> Array | None:
        """Return each record's exact chance, shape (b,), of ``‖x̂ − x‖ ≤ tolerance·‖x‖``, as the adversary computes it; None: unknown."""
        return None

    def inferred(self, copies: Sequence[Array]) -> Inferred | None:
        """Return what the attack thinks of one attribute's values; None for an attack that only estimates."""
        return None

    def expected(self, x: Array) -> Array | None:
        """Return theory's expected ``‖x̂ − x‖²``, shape (b,), over the draws of scheme and attack; None where there is none.

        For the audit alone, once the estimates are in: ``x`` are the true records, shape (b, N).
        """
        return None

    def hindsight(self, seen: Iterable[Array]) -> Callable[[Array], Array] | None:
        """Return what gives ``expected`` of true records, for theory that must first see the true rows the attack learnt from.

        For the audit alone, once all estimates are in: ``seen`` yields the original's rows whose copies were given to ``fit``, in
        blocks of shape (b, N) and as often as wanted. They are read only if gone through. None where ``expected`` says all there is.
        """
        return None


class RowAttack(Attack):
    """An attack that needs the rows themselves; it is fitted once to a view and then run block by block."""

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
