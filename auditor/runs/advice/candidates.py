"""Schemes that advice compares: exposure and loss in closed form.

| symbol | meaning | source |
| --- | --- | --- |
| ``v`` | noise multiple of the best combination of all copies | li2012, section 3.2 |
| ``L_i = v/v_1·r_i`` | levels of the copies, in geometric ratios ``r_i`` from 1 to the spread | |
| ``K_X − G(v) K_X`` | error of the best linear attack on all copies pooled | li2012 (7) |
| ``p`` | retention probability of the least perturbed copy | xiao2009, section 1 |

Under jointly Gaussian noise ``Sigma ⊗ K_0`` the least-variance combination of the copies is
sufficient for the record: all copies together equal one copy at level ``v``. Under corner-wave
noise that copy is the least noisy one (li2012, Theorem 4), as under any process with independent
increments; under fresh noise ``1/v = Σ 1/L_i``. Schemes of one shape and distribution share one
exposure curve. For ``uniform-multilevel`` Theorem 1 of xiao2009 is equivalent; fresh draws have no
sufficient copy.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cached_property

import numpy as np

from auditor import registry
from auditor.base import AuditorError
from auditor.base.types import Array, Levels, Plain, frozen
from auditor.numerics.linear_algebra import Pencil, regression
from auditor.results.records import Epsilon
from auditor.runs.advice.columns import Chosen, Request
from auditor.scenario.arguments import make_plugin
from auditor.schemes.base.guarantees import Guarantee, Guarantees
from auditor.schemes.base.scheme import Scheme, TableMoments, table_moments
from auditor.schemes.corner_wave import AdditiveScheme
from auditor.schemes.divisible_noise import MultilevelProcess
from auditor.schemes.replacement.base import UniformScheme
from auditor.schemes.replacement.law import fresh_chances, left_by_retention

STEPS = 24
"""Levels of the grid per decade."""
ADDED, REPLACED = ("corner-wave", "correlated", "independent"), ("uniform-multilevel", "uniform")
GUARANTEED = ("corner-wave", "laplace-multilevel")
"""Schemes whose noise bounds can size: the least ε at δ for many columns, and a pure ε."""
LATTICES = ("geometric-multilevel", "skellam-multilevel")
LEAST_OF_BOUNDS = -12
"""Power of ten: columns and their noise may vary by a thousandth of their bounds."""

Loss = Callable[[Array, Array], float]
"""Of the table's covariance and the noise's in one copy."""


def noise_grid(low: int = -3) -> Levels:
    """Geometric noise multiples, ``10^low`` to 1000, to 3 digits.

    Examples
    --------
    >>> noise_grid(0)[:15]
    (1.0, 1.1, 1.21, 1.33, 1.47, 1.62, 1.78, 1.96, 2.15, 2.37, 2.61, 2.87, 3.16, 3.48, 3.83)
    """
    steps = range(low * STEPS, 3 * STEPS + 1)
    return tuple(float(f"{10 ** (step / STEPS):.3g}") for step in steps)


def weakest(
    meets: Callable[[int], bool],
    start: int,
    steps: int,
    first: int | None = None,
    guess: Callable[[int], int] | None = None,
) -> int | None:
    """First place of a grid that meets a target; None if none does.

    Parameters
    ----------
    meets : callable
        Whether a place meets the target; called once for few places. *Not checked*: that all
        later places meet it, too. Otherwise a place is returned that meets it after one that does
        not.
    start : int
        No place before it meets the target.
    steps : int
        Places of the grid.
    first : int, optional
        The place to try first.
    guess : callable, optional
        From a place that was tried, the place that may be the first.

    Examples
    --------
    >>> weakest(lambda place: place >= 5, 2, 100), weakest(lambda place: False, 2, 100)
    (5, None)
    >>> [weakest(lambda place: place >= 50, 2, 100, first, lambda place: 49) for first in (2, 49, 60)]
    [50, 50, 50]
    """
    failed, met, stride = start - 1, steps, 1
    place = start if first is None else min(max(first, start), steps - 1)
    while met - failed > 1:
        failed, met = (failed, place) if meets(place) else (place, met)
        wanted = (failed + met) // 2 if guess is None else guess(place)
        if met == steps:
            wanted = failed + stride if guess is None else max(wanted, failed + stride)
        elif failed == start - 1 and first is not None:
            wanted = min(wanted, met - stride)
        place, stride = min(max(wanted, failed + 1), met - 1), 2 * stride
    return None if met == steps else met


@frozen
class Candidate(ABC):
    """A scheme for some copies, on a grid from least to most perturbed."""

    copies: int
    spread: float
    scheme: Scheme
    grid: Levels = field(kw_only=True)

    @property
    def name(self) -> str:
        """Scheme's name."""
        return self.scheme.name

    def place_of(self, levels: Levels) -> int:
        """Place of a release's levels."""
        return next(place for place in range(self.places) if self.levels(place) == levels)

    @property
    def places(self) -> int:
        """Length of the grid."""
        return len(self.grid)

    @abstractmethod
    def levels(self, place: int) -> Levels:
        """Levels of the copies, the least perturbed first."""

    @property
    @abstractmethod
    def curve(self) -> str:
        """Name of the shared curve of exposure; empty without one."""

    @abstractmethod
    def alone(self, place: int) -> Levels:
        """Level of one copy that is sufficient for all."""

    def sufficient(self, place: int) -> Levels:
        """Levels of copies that disclose as much as all: one copy's on a shared curve."""
        return self.alone(place) if self.curve else self.levels(place)

    @abstractmethod
    def between(self, weaker: int, place: int) -> str:
        """Distance of two places in words."""

    @abstractmethod
    def unknown(self, levels: Levels) -> float:
        """Share of the worst attribute that closed-form attacks leave."""

    @abstractmethod
    def losses(self, levels: Levels) -> Levels:
        """Each copy's loss of use; empty if it must be measured."""

    def guarantees(self, levels: Levels, copies: Sequence[int]) -> Guarantee | None:
        """Guarantee of some copies for every record; None without bounds."""
        return None

    def epsilon(self, levels: Levels) -> Epsilon | None:
        """ε of all copies together; None without bounds."""
        stated = self.guarantees(levels, range(1, len(levels) + 1))
        if stated is None:
            return None
        return Epsilon(stated["epsilon_at_delta"].value, stated["epsilon"].value)

    def start(self, target: float, most: float | None = None) -> int | None:
        """First place whose closed forms meet the target, and ``most`` as largest ε."""
        for place in range(self.places):
            levels = self.levels(place)
            if self.unknown(levels) >= target - 1e-12 and within(self.epsilon(levels), most):
                return place
        return None

    @cached_property
    def ratios(self) -> Levels:
        """Perturbation relative to the least perturbed copy, geometric up to the spread."""
        last = max(1, self.copies - 1)
        return tuple(self.spread ** (place / last) for place in range(self.copies))


def within(epsilon: Epsilon | None, most: float | None) -> bool:
    """Whether ε at δ is at most the requested one, if both exist."""
    return most is None or epsilon is None or epsilon.at_delta <= most


@frozen
class AddedNoise(Candidate):
    """Noise added to numbers: Gaussian, or a process of another distribution."""

    scheme: AdditiveScheme
    table: TableMoments
    loss: Loss | None
    delta: float = 1e-5
    grid: Levels = field(default=noise_grid(), kw_only=True)

    @cached_property
    def shape(self) -> Array:
        """``K_0``."""
        return self.scheme.law([1.0], self.table).shape

    def guarantees(self, levels: Levels, copies: Sequence[int]) -> Guarantee | None:
        """Guarantee for a change within the stated bounds."""
        if (spans := self.table.spans) is None:
            return None
        return Guarantees(self.scheme.law(levels, self.table), spans, self.delta).of(copies)

    @cached_property
    def _pencil(self) -> Pencil:
        return Pencil.of(self.table.covariance, self.shape)

    def levels(self, place: int) -> Levels:
        """Levels that together equal one copy at the grid's level."""
        unit = self.grid[place] / self.scheme.pooled_level(self.ratios)
        return tuple(float(f"{unit * ratio:.4g}") for ratio in self.ratios)

    @property
    def curve(self) -> str:
        """Distribution and shape, on which exposure against ``v`` depends."""
        return f"{self.scheme.distribution} noise of shape {self.shape.tobytes().hex()}"

    def alone(self, place: int) -> Levels:
        return (float(f"{self.grid[place] / self.scheme.pooled_level((1.0,)):.4g}"),)

    def between(self, weaker: int, place: int) -> str:
        return f"a factor of {self.grid[place] / self.grid[weaker]:.2g} in σ²"

    def unknown(self, levels: Levels) -> float:
        """Least of ``[K_X − G(v) K_X]_jj / K_jj`` (li2012 (7))."""
        left = np.diag(self._pencil.error(np.asarray(self.scheme.pooled_level(levels))))
        return float((left / np.diag(self.table.covariance)).min())

    def losses(self, levels: Levels) -> Levels:
        """Each copy's loss by the noise's law; empty if it must be measured."""
        if self.loss is None:
            return ()
        own = np.diag(np.asarray(self.scheme.level_covariance(levels)))
        return tuple(self.loss(self.table.covariance, level * self.shape) for level in own.tolist())


def mean_loss(K_X: Array, K_Z: Array) -> float:
    """Growth of a mean's standard error, averaged over attributes.

    ``sqrt(1 + [K_Z]_jj/[K_X]_jj) − 1``.

    Examples
    --------
    >>> mean_loss(np.eye(2), 3.0 * np.eye(2))
    1.0
    """
    return float(np.mean(np.sqrt(1.0 + np.diag(K_Z) / np.diag(K_X)) - 1.0))


def regression_loss(K_X: Array, K_Z: Array) -> float:
    """R² that regressions fitted to a copy lose, averaged over attributes.

    Each attribute is regressed on the others. The copy's coefficients ``b = K_Y,oo⁻¹ K_Y,oj`` with
    ``K_Y = K_X + K_Z`` are used on the original, whose best are ``b*``: the loss is ``(b − b*)ᵀ
    K_X,oo (b − b*) / K_X,jj``. *Not counted*: sampling error.
    """
    losses = []
    for j in range(len(K_X)):
        others = np.arange(len(K_X)) != j
        inner = np.ix_(others, others)
        best, learnt = (regression(K[j, others][None], K[inner])[0] for K in (K_X, K_X + K_Z))
        off = learnt - best
        losses.append(off @ K_X[inner] @ off / K_X[j, j])
    return float(np.mean(losses))


LOSSES: dict[str, Loss] = {"mean": mean_loss, "regression": regression_loss}
"""Losses with a closed form."""


@frozen
class Retention(Candidate):
    """Categories kept with a probability, or drawn from the domain, uniformly or by ``pi``."""

    scheme: UniformScheme
    prior: Array
    pi: Array | None = None
    grid: Levels = field(default=tuple(step / 100 for step in range(99, 0, -1)), kw_only=True)

    def levels(self, place: int) -> Levels:
        """Retention probabilities, each the first over a ratio."""
        return tuple(float(f"{self.grid[place] / ratio:.4g}") for ratio in self.ratios)

    @property
    def curve(self) -> str:
        """Its name if the least perturbed copy is sufficient (xiao2009, Theorem 1)."""
        return f"single copies of {self.name}" if self.scheme.multilevel else ""

    def alone(self, place: int) -> Levels:
        return (self.grid[place],)

    def between(self, weaker: int, place: int) -> str:
        return f"{self.grid[weaker] - self.grid[place]:.2g} of retention"

    def unknown(self, levels: Levels) -> float:
        """Share unknown to exact Bayes; an upper bound for fresh draws."""
        return left_by_retention(self.prior, max(levels), self.pi)

    def losses(self, levels: Levels) -> Levels:
        """Growth of a share's standard error in each copy."""
        return tuple(share_loss(self.prior, level, self.pi) for level in levels)


def share_loss(prior: Array, p: float, pi: Array | None = None) -> float:
    """Growth of a share's standard error, averaged over categories.

    ``sqrt(f(1−f)) / (p sqrt(q(1−q))) − 1`` with the released share ``f = pq + (1−p)π`` of a share
    q, whose estimate is ``(f̂ − (1−p)π)/p`` (xiao2009, eq. 1 solved for q).

    Examples
    --------
    >>> share_loss(np.array([0.5, 0.5]), 0.5)
    1.0
    """
    f = p * prior + fresh_chances(p, len(prior), pi)
    return float(np.mean(np.sqrt(f * (1.0 - f) / (prior * (1.0 - prior))) / p - 1.0))


# -- the request's candidates ----------------------------------------------------------------------


def schemes_of(request: Request) -> list[AdditiveScheme | UniformScheme]:
    """Schemes to compare, all for numbers or all for categories."""
    # white noise is searched only if its loss has a closed form
    added = ADDED if request.utility in LOSSES else ADDED[:-1]
    names = request.schemes or (GUARANTEED if request.bounds else added)
    made = []
    for name in dict.fromkeys(names):
        if request.bounds and not issubclass(registry.get("scheme", name), AdditiveScheme):
            raise AuditorError(
                f"--bounds size noise that is added to numbers, and {name} adds none"
            )
        scheme = make_plugin("scheme", name, parameters_of(request))
        gaussian = isinstance(scheme, AdditiveScheme) and scheme.distribution == "gaussian"
        retains = isinstance(scheme, UniformScheme) and scheme.by_retention
        if not (gaussian or retains or isinstance(scheme, MultilevelProcess)):
            known = ", ".join(dict.fromkeys(ADDED + GUARANTEED + LATTICES + REPLACED))
            raise AuditorError(
                f"scheme {scheme.name!r} has no level that decides what stays unknown; valid are {known}"
            )
        made.append(scheme)
    if len({isinstance(scheme, UniformScheme) for scheme in made}) > 1:
        raise AuditorError(
            "numbers and categories are advised on apart: name schemes of one kind with --scheme"
        )
    if isinstance(made[0], UniformScheme) and request.utility != "mean":
        raise AuditorError(
            "of categories loss is counted by --utility mean, the standard errors of their shares"
        )
    return made


def parameters_of(request: Request) -> Plain:
    """Parameters of every scheme; stated bounds size the noise."""
    return {**request.parameters, **({"noise": "bounds"} if request.bounds else {})}


def candidates_of(
    request: Request, schemes: Sequence[AdditiveScheme | UniformScheme], chosen: Chosen
) -> list[Candidate]:
    """Schemes with their closed forms on the chosen data."""
    moments, loss = table_moments(chosen.table), LOSSES.get(request.utility)
    if request.utility == "regression" and moments.covariance.shape[0] < 2:
        raise AuditorError(
            "--utility regression needs two columns of numbers or more; there is one"
        )
    grid = noise_grid(LEAST_OF_BOUNDS if request.bounds else -3)
    asked = request.copies, request.spread
    made: list[Candidate] = []
    for scheme in schemes:
        if isinstance(scheme, UniformScheme):
            categories = chosen.table.categorical
            assert categories is not None
            prior = np.asarray(categories.prior)
            if len(prior) < 2 or not prior.all():
                raise AuditorError(
                    "a column of categories must have two values or more, each of them in some record"
                )
            pi = scheme.over(categories).replaced_by(prior.size)
            made.append(Retention(*asked, scheme, prior, pi))
            continue
        noise = AddedNoise(*asked, scheme, moments, loss, request.delta, grid=grid)
        level, twice = (
            scheme.pooled_level(tuple(scale * ratio for ratio in noise.ratios))
            for scale in (1.0, 2.0)
        )
        if level < 1e-9:
            raise AuditorError(
                f"{noise.name}: its copies cancel their noise when they are pooled, so no level leaves anything unknown"
            )
        if abs(twice - 2.0 * level) > 1e-9 * level:
            raise AuditorError(
                f"{noise.name}: its noise is not in proportion to its levels, and which would do cannot be told on paper"
            )
        made.append(noise)
    return made
