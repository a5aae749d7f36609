"""Laplace, geometric and Skellam noise, from processes or fresh draws.

| noise | law at variance v | increment from ``v_b`` to ``v_c`` | source |
| --- | --- | --- | --- |
| Laplace | scale ``b = √(v/2)`` | 0 with probability ``v_b/v_c``, else Laplace of scale c | koufogiannis2015 |
| geometric | ``(1 − q)/(1 + q)·q^{|k|}``, ``v = 2q/(1 − q)²`` | 0 with probability ``v_b/v_c``, else geometric of ``v_c`` | ghosh2009 |
| Skellam | ``e^{−v} I_k(v)``: difference of two Poisson numbers | Skellam of ``v_c − v_b`` | skellam1946 |

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``Sigma`` | ``min(σ_i², σ_j²)`` of one process, ``diag(σ_i²)`` of independent ones | (M, M) | li2011 (19); li2012, Theorem 3 |
| ``K_0`` | ``diag(K_X)`` by default: each attribute by its own deviation | (N, N) | |
| ``v`` | variance of one attribute's noise, ``σ²·K_0[j, j]``: the process's time | scalar | |
| ``a < b < c`` | variances next below a new copy, its own, next above | scalars | |
| ``D`` | ``Z_c − Z_a`` | (rows,) | |
| ``unit`` | public lattice step: the recording step, or a divisor of it | (N,) | |

The least perturbed copy is sufficient. A new copy is ``Y_b = Y_a + U``, U from the law of ``Z_b −
Z_a`` given D; beyond the last copy an increment. With ``U = D`` it equals its upper neighbour.
Attributes are independent. On a lattice sums are exact; values beyond 2⁵⁰ units are refused.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from auditor.base import AuditorError, nearest, quoted
from auditor.base.types import Array, Arrays, Indices, Levels, Pair, unprinted
from auditor.data.columns.scan import MOST_PLACES, SLACK
from auditor.data.table import Recorded
from auditor.numerics.blocks import evenly
from auditor.numerics.random_streams import LARGEST_TABLE, Rng, geometric, log_concave, skellam
from auditor.registry import PluginParameters, register
from auditor.schemes.base.noise_density import (
    Distribution,
    ProductShape,
    geometric_rate,
    log_skellam,
    product_shape,
)
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor.schemes.base.scheme import Key, Sampler, TableMoments
from auditor.schemes.corner_wave import (
    FARTHEST_OF_LONG_TAILS,
    ORIGINAL,
    AdditiveScheme,
    FreshNoise,
    Step,
    bridge_plan,
    min_covariance,
    noise_stream,
    snap,
    upward_plan,
)

CHUNK_VALUES = 2**15
"""Values drawn at once; draws depend on it."""


class Process(NamedTuple):
    """A process with independent increments, as two functions of an attribute.

    ``increment(rng, low, high, size)`` returns ``Z_high − Z_low``, shape (size,). ``bridge(rng,
    gap, low, middle, high)`` returns ``Z_middle − Z_low`` given ``Z_high − Z_low = gap ≥ 0``, shape
    (rows,), for variances ``low < middle < high``; exactly 0 or the gap if copies are equal.
    """

    distribution: Distribution
    increment: Callable[[Rng, float, float, int], Array]
    bridge: Callable[[Rng, Array, float, float, float], Array]

    def between(self, rng: Rng, gap: Array, low: float, middle: float, high: float) -> Array:
        """``Z_middle − Z_low`` given any gap, for ``low ≤ middle ≤ high``."""
        if middle <= low:
            return np.zeros_like(gap)
        if middle >= high:
            return gap
        return np.copysign(1.0, gap) * self.bridge(rng, np.abs(gap), low, middle, high) + 0.0


@unprinted
class ProcessSampler:
    """Executes a plan block by block on the copies, with ``X`` as level 0.

    ``variances``: diagonal of ``K_0``, in squared units; ``units``: lattice step.
    """

    process: Process
    steps: Sequence[Step]
    variances: Array
    levels: Levels
    key: Key
    units: Array | None
    in_order: ClassVar[bool] = False
    """False: draws depend on a chunk's number of rows.
    """

    def block(self, index: int, x: Array, out: Arrays, existing: int = 0) -> None:
        streams = {
            step.copy: noise_stream(self.key, index, step.copy, self.levels[step.copy - 1])
            for step in self.steps
        }
        for start, stop in evenly(0, len(x), x.shape[1], CHUNK_VALUES):
            for step in self.steps:
                parents = [
                    (x if parent == ORIGINAL else out[parent - 1])[start:stop]
                    for parent, _ in step.parents
                ]
                self._draw(step, parents, streams[step.copy], out[step.copy - 1][start:stop])

    def _draw(self, step: Step, parents: Arrays, rng: Rng, y: Array) -> None:
        if not step.fresh:
            np.copyto(y, parents[0])
            return
        levels = [0.0, *self.levels]
        low, *high = (levels[parent] for parent, _ in step.parents)
        gap = self._gap(*parents) if high else None
        U = np.empty(y.shape)
        for j, v in enumerate(self.variances.tolist()):
            a, b = v * low, v * levels[step.copy]
            if gap is None:
                U[:, j] = self.process.increment(rng, a, b, len(U))
            else:
                U[:, j] = self.process.between(rng, gap[:, j], a, b, v * high[0])
        self._add(parents[0], U, y)
        if gap is not None:
            np.copyto(y, parents[1], where=gap == U)

    @cached_property
    def _fraction(self) -> Pair:
        return as_fraction(np.ones(1) if self.units is None else self.units)

    def _gap(self, low: Array, high: Array) -> Array:
        if self.units is None:
            return high - low
        if self.key.grid:
            return np.rint(high / self.units) - np.rint(low / self.units)
        return np.rint((high - low) / self.units)

    def _add(self, low: Array, U: Array, y: Array) -> None:
        if self.units is None:
            np.add(low, U, out=y)
            if self.key.grid:
                snap(y, np.array(self.key.grid))
            return
        steps, power = self._fraction
        k = np.rint(low / self.units)
        np.divide((k + U) * steps, power, out=y)
        np.copyto(y, low, where=self.variances == 0)
        # an imputed mean may be off the lattice; the added noise is whole
        if not self.key.grid:
            rest = low - k * steps / power
            np.add(y, rest, out=y, where=(np.abs(rest) > SLACK * self.units) & (self.variances > 0))


def as_fraction(units: Array) -> Pair:
    """Units as ``steps/power``, with a power of ten if possible.

    With at most six decimal places, ``k·steps/power`` is the double nearest to k units.

    Examples
    --------
    >>> as_fraction(np.array([0.25, 5.0, 1 / 3]))
    (array([0.25      , 5.        , 0.33333333]), array([1., 1., 1.]))
    """
    steps, power = units.copy(), np.ones_like(units)
    for places in range(MOST_PLACES, -1, -1):
        whole = np.rint(units * 10.0**places)
        fits = (np.abs(units * 10.0**places - whole) < 1e-9 * whole) & (np.frexp(units)[0] != 0.5)
        steps[fits], power[fits] = whole[fits], 10.0**places
    return steps, power


class ProcessScheme(AdditiveScheme):
    """Base of schemes with noise of independent increments per attribute."""

    process: ClassVar[Process]
    one_process: ClassVar[bool]
    """Whether all copies are one process."""
    on_public_grid: ClassVar[Process | None] = None
    """Process in grid units for released copies; None: this one, rounded."""

    class Parameters(PluginParameters):
        """Variance of each attribute's noise at level 1."""

        noise: ProductShape = "data"
        """variance of each attribute's noise at level 1: the attribute's own (data), their mean (white), or stated"""

    @property
    def distribution(self) -> Distribution:
        return self.process.distribution

    def shape(self, table: TableMoments) -> Array:
        return product_shape(self.parameters.noise, table.covariance, table.spans)

    def units(self, table: TableMoments) -> Array | None:
        """Lattice step of each attribute, shape (N,), or None."""
        return None

    def law(self, levels: Levels, table: TableMoments) -> KroneckerNoise:
        Sigma, K_0 = self.level_covariance(levels), self.shape(table)
        return KroneckerNoise(
            Sigma,
            K_0,
            distribution=self.distribution,
            one_process=self.one_process,
            units=self.units(table),
        )

    def sampler(self, levels: Levels, table: TableMoments, key: Key, existing: int = 0) -> Sampler:
        process, units = self.process, self.units(table)
        if key.grid and self.on_public_grid is not None:
            process, units = self.on_public_grid, np.where(np.array(key.grid) > 0, key.grid, 1.0)
        variances = np.diag(self.shape(table))
        if units is not None:
            variances = variances / units**2
        return ProcessSampler(
            process, self.checked_plan(levels, key, existing), variances, levels, key, units
        )


class MultilevelProcess(ProcessScheme):
    """One process for all copies: the least perturbed copy is sufficient."""

    one_process = True
    claims = "No collusion gain: a coalition does no better than its least perturbed copy, whatever the attack."
    assumes = (
        "Nothing of the data: the noise's increments are independent of them and of each other."
    )

    level_covariance = staticmethod(min_covariance)
    plan = staticmethod(bridge_plan)
    # a copy above the last is then a function of it, even rounded to a grid
    released_plan = staticmethod(upward_plan)


class IndependentProcess(FreshNoise, ProcessScheme):
    """An independent process for every copy, even at a repeated level."""

    one_process = False
    assumes = "Recipients never pool their copies."


EXACT = 2.0**50
"""Largest whole number of units that survives two roundings."""
MOST_VARIANCE = 2.0**52
"""Largest variance of exact Skellam noise, in squared units."""
Unit = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class LatticeScheme(ProcessScheme):
    """Base of schemes that add noise in whole multiples of a unit."""

    on_lattice = True

    class Parameters(ProcessScheme.Parameters):
        """Variance of each attribute's noise at level 1, and its unit."""

        unit: Unit | dict[str, Unit] | None = None
        """step that divides values and noise, for all columns or by column; by default each column's recording step"""

    def units(self, table: TableMoments) -> Array:
        return units_of(self.parameters.unit, table.recorded, np.diag(self.shape(table)))

    def law(self, levels: Levels, table: TableMoments) -> KroneckerNoise:
        self._check_exact(levels, table)
        return super().law(levels, table)

    def sampler(self, levels: Levels, table: TableMoments, key: Key, existing: int = 0) -> Sampler:
        self._check_exact(levels[existing:], table)
        return super().sampler(levels, table, key, existing)

    def _check_exact(self, levels: Levels, table: TableMoments) -> None:
        check_exact(
            self.units(table), max(levels, default=0.0) * np.diag(self.shape(table)), table.recorded
        )


class MultilevelLattice(LatticeScheme, MultilevelProcess):
    """One process of whole numbers for all copies of a request."""

    # increments are many times faster to draw than bridges
    plan = staticmethod(upward_plan)  # type: ignore[assignment]


def units_of(
    stated: float | Mapping[str, float] | None, recorded: Recorded, variances: Array
) -> Array:
    """Each attribute's unit: stated, else its recording step, else 1.

    ``AuditorError`` if a recording step is lacking or no multiple of its unit, or a unit names no
    column.
    """
    by_column = stated or {}
    if not isinstance(by_column, Mapping):
        by_column = dict.fromkeys(recorded.attributes, by_column)
    unknown = [name for name in by_column if name not in recorded.attributes]
    if unknown:
        raise AuditorError(
            f"unit: there is no column {quoted(unknown[0])}{nearest(unknown[0], recorded.attributes)}"
        )
    steps = zip(recorded.attributes, recorded.steps.tolist(), (variances > 0).tolist(), strict=True)
    return np.array([_unit(name, step, by_column.get(name), noisy) for name, step, noisy in steps])


def _unit(name: str, step: float, stated: float | None, noisy: bool) -> float:
    if np.isnan(step) and noisy:
        raise AuditorError(
            f"column {quoted(name)} is not recorded in whole multiples of any step of up to six decimal places, and this noise is whole: "
            "round the column (of a standardised one, before), leave it out, or take another scheme, as `laplace-multilevel`"
        )
    unit = stated if stated is not None else 1.0 if np.isnan(step) else step
    times = step / unit
    if noisy and (round(times) < 1 or abs(times - round(times)) > 1e-6 * times):
        raise AuditorError(
            f"column {quoted(name)} is recorded in steps of {step:g}, which is no whole multiple of its unit, {unit:g}: "
            "state a unit that divides it, or round the column to multiples of the unit"
        )
    return unit


def check_exact(units: Array, variances: Array, recorded: Recorded) -> None:
    """Refuse noise whose sums with values would be inexact (``AuditorError``).

    ``variances``: largest, in squared data units, (N,).
    """
    v = variances / units**2
    beyond = (v > MOST_VARIANCE) | (
        recorded.largest / units + FARTHEST_OF_LONG_TAILS * np.sqrt(v) > EXACT
    )
    beyond &= variances > 0
    if beyond.any():
        j = int(beyond.argmax())
        raise AuditorError(
            f"column {quoted(recorded.attributes[j])}: values and noise at these levels go beyond 2^50 units of {units[j]:g}, up to where "
            "whole numbers are exact; lower the levels, or round the column to a coarser unit"
        )


# -- Laplace, geometric and Skellam noise ----------------------------------------------------------


def rate_gap(low: float, high: float) -> float:
    """``λ(low) − λ(high)`` without cancellation for close variances."""
    return float(
        2.0
        * np.arcsinh(
            (high - low)
            / (
                np.sqrt(low)
                * np.sqrt(high)
                * (np.sqrt(2.0 * low + 1.0) + np.sqrt(2.0 * high + 1.0))
            )
        )
    )


def increment(rng: Rng, low: float, high: float, size: int) -> Array:
    """``Z_high − Z_low``: 0, or fresh noise of variance ``high``."""
    if low == 0.0 < high:
        return _fresh(rng, high, size)
    drawn = np.zeros(size)
    if high > low:
        moved = np.flatnonzero(rng.random(size) >= low / high)
        drawn[moved] = _fresh(rng, high, len(moved))
    return drawn


def _fresh(rng: Rng, v: float, size: int) -> Array:
    return geometric(rng, geometric_rate(v), size) - geometric(rng, geometric_rate(v), size)


class Split(NamedTuple):
    """Unnormalised weights of the splits of a gap ``d ≥ 0``.

    ``none``: the first step was 0. ``whole``: only the second was (``U = d``). Else ``below`` 0,
    ``within`` the gap, ``above`` d. U is geometric of ratio ``q_b q_c``, within of ratio ρ.
    """

    none: Array
    whole: Array
    below: float
    above: Array
    within: Array


def split_weights(d: Array, low: float, middle: float, high: float) -> Split:
    """Split weights of gaps ``d ≥ 0``, divided by ``q_c^d``."""
    stay_1, stay_2 = low / middle, middle / high
    move_1, move_2 = (middle - low) / middle, (high - middle) / high
    g_b, g_c = 1.0 / np.sqrt(2.0 * middle + 1.0), 1.0 / np.sqrt(2.0 * high + 1.0)
    log_rho = -rate_gap(middle, high)
    rho_d = np.exp(log_rho * d)
    fresh = move_1 * move_2 * g_b * g_c
    outside = fresh / np.expm1(geometric_rate(middle) + geometric_rate(high))
    return Split(
        none=stay_1 * (move_2 * g_c + stay_2 * (d == 0)),
        whole=move_1 * stay_2 * g_b * rho_d,
        below=outside,
        above=outside * rho_d,
        within=fresh * np.expm1(log_rho * (d + 1.0)) / np.expm1(log_rho),
    )


def bridge(rng: Rng, d: Array, low: float, middle: float, high: float) -> Array:
    """``Z_middle − Z_low`` given ``Z_high − Z_low = d ≥ 0``, (b,).

    Two fresh steps have weight ``q_b^{|u|} q_c^{|D − u|}``, with ratio ``ρ = q_b/q_c`` inside 0 …
    D.
    """
    ways = split_weights(d, low, middle, high)
    to_whole = ways.within + ways.whole
    to_none = to_whole + ways.none
    to_above = to_none + ways.above
    u = rng.random(len(d)) * (to_above + ways.below)
    U = np.where(u < to_whole, d, 0.0)
    within = np.flatnonzero(u < ways.within)
    above = np.flatnonzero((u >= to_none) & (u < to_above))
    below = np.flatnonzero(u >= to_above)
    both = geometric_rate(middle) + geometric_rate(high)
    decay, last = rate_gap(middle, high), d[within]
    u = np.log1p(rng.random(len(last)) * np.expm1(-decay * (last + 1.0)))
    U[within] = np.minimum(np.floor(-u / decay), last)
    U[above] = d[above] + 1.0 + geometric(rng, both, len(above))
    U[below] = -1.0 - geometric(rng, both, len(below))
    return U


GEOMETRIC = Process("geometric", increment, bridge)


@register
class GeometricMultilevel(MultilevelLattice):
    """Multilevel geometric noise: no coalition gains over its best copy."""

    name = "geometric-multilevel"
    reference = "ghosh2009; xiao2009, section 5.2"
    process = GEOMETRIC


@register
class Geometric(LatticeScheme, IndependentProcess):
    """Fresh two-sided geometric noise in every copy. Broken under collusion."""

    name = "geometric"
    reference = "ghosh2009; li2012, section 5.1.1"
    process = GEOMETRIC


def laplace_increment(rng: Rng, low: float, high: float, size: int) -> Array:
    """``Z_high − Z_low``: 0, or Laplace noise of variance ``high``."""
    moves = (high - low) / high if high > 0 else 0.0
    # one uniform number is indicator and sign
    side = rng.random(size) - moves / 2.0
    Z = np.copysign(rng.standard_exponential(size) * np.sqrt(high / 2.0), side)
    return Z * (side < moves / 2.0)


def laplace_bridge(rng: Rng, d: Array, low: float, middle: float, high: float) -> Array:
    """``U = Z_middle − Z_low`` given ``D = Z_high − Z_low ≥ 0``.

    Both increments are mixtures of 0 and a Laplace number. With ``S = (1 − r₁)/(1 − r₁r₂)``, ``r₁ =
    a²/b²``, ``r₂ = b²/c²``, ``q = (1 − b/c)/2``, ``k = 1/b + 1/c``, ``l = 1/b − 1/c`` and ``t =
    e^{−lD}``, for ``D > 0``: ``U = 0`` with probability ``1 − S``, and else

        below 0 with probability ``q``,         where ``−U`` is exponential of rate k,
        between 0 and D with ``(1 − q)(1 − t)``, exponential of rate l, truncated at D,
        exactly D with ``(1 − 2q)·t``,
        beyond D with ``q·t``,                  where ``U − D`` is exponential of rate k.

    ``D = 0`` gives ``U = 0``.
    """
    b, c = np.sqrt(middle / 2.0), np.sqrt(high / 2.0)
    apart = (high - middle) / (2.0 * (b + c))
    S = (middle - low) / (high - low) * (high / middle)
    q, beyond, between = apart / (2.0 * c), b * (c / (b + c)), b * (c / apart)
    u, E = rng.random(len(d)), rng.standard_exponential(len(d))
    excess = E - d / between
    U = np.where(excess < 0.0, E * between, np.where(u < 2.0 * S * q, d + excess * beyond, d))
    U = np.where(u < S * q, E * -beyond, U)
    return U * ((u < S) & (d > 0.0))


LAPLACE = Process("laplace", laplace_increment, laplace_bridge)
"""On a grid of step g the process is two-sided geometric noise of equal variance. ``1/(1 + v(1 −
cos ug)/g²)`` is ``1/(1 + v u²/2)`` up to a share of ``(ug)²/12``, and the increments are 0 with
equal probabilities.
"""


@register
class LaplaceMultilevel(MultilevelProcess):
    """Multilevel Laplace noise: no coalition gains over its best copy."""

    name = "laplace-multilevel"
    reference = "koufogiannis2015; xiao2009, section 5.2"
    process, on_public_grid = LAPLACE, GEOMETRIC


@register
class Laplace(IndependentProcess):
    """Fresh Laplace noise in every copy. Broken under collusion."""

    name = "laplace"
    reference = "dwork2006; li2012, section 5.1.1"
    process, on_public_grid = LAPLACE, GEOMETRIC


def skellam_increment(rng: Rng, low: float, high: float, size: int) -> Array:
    """``Z_high − Z_low``."""
    v = high - low
    if 0.0 < v <= LARGEST_TABLE:
        return skellam(rng, v, size)
    zeros = np.zeros(size)
    return log_concave(rng, zeros, lambda k, _: log_skellam(k, v)) if v > 0.0 else zeros


def skellam_bridge(rng: Rng, d: Array, low: float, middle: float, high: float) -> Array:
    """``Z_middle − Z_low`` given ``Z_high − Z_low = d ≥ 0``, (b,).

    ``P(u) = P_1(u) P_2(D − u)/P(D)``, of variances ``v_b − v_a``, ``v_c − v_b`` and ``v_c − v_a``:
    log-concave, with mean ``D (v_b − v_a)/(v_c − v_a)``.
    """
    first, second = middle - low, high - middle

    def log_p(k: Array, at: Indices) -> Array:
        parts = log_skellam(k, first) + log_skellam(d[at] - k, second)
        return parts - log_skellam(d[at], high - low)

    return log_concave(rng, np.rint(d * (first / (high - low))), log_p)


SKELLAM = Process("skellam", skellam_increment, skellam_bridge)


@register
class SkellamMultilevel(MultilevelLattice):
    """Multilevel Skellam noise: no coalition gains over its best copy."""

    name = "skellam-multilevel"
    reference = "skellam1946; agarwal2021; xiao2009, section 5.2"
    process = SKELLAM


@register
class Skellam(LatticeScheme, IndependentProcess):
    """Fresh Skellam noise in every copy. Broken under collusion."""

    name = "skellam"
    reference = "skellam1946; agarwal2021; li2012, section 5.1.1"
    process = SKELLAM
