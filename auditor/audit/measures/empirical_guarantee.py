"""Guarantees by the law, and lower bounds audited by trials.

| symbol | meaning | shape |
| --- | --- | --- |
| ``x, x + Δ`` | the two records within the bounds that the law distinguishes best | (N,) |
| ``a`` | weights of the coalition's combination of least noise | (k,) |
| ``T`` | ``Σ_i a_i (y_i − x)ᵀ K_0⁻¹ Δ``, proportional to the Gaussian log-likelihood ratio | scalar |
| ``L, U`` | Clopper–Pearson bounds (clopper1934) of the power under x + Δ, and of the false alarms under x | scalars |
| ``E`` | for categories: one output, or the outputs most typical of one input in the first trials | |

For Gaussian and Skellam noise the test is ``T > ΔᵀK_0⁻¹Δ/2``, and ``Φ⁻¹(L) − Φ⁻¹(U)`` is at most μ. For
Laplace and geometric noise it is «every value of every relevant copy lies at or beyond x + Δ», and
``ln(L/U)`` is at most ε, as for the events E of categories. Coalitions, and events in both directions,
share the confidence. Loose if the event is too rare for the trials: μ above 8, ε above ``ln trials``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from auditor.audit.base.release import Release
from auditor.audit.base.request import CellContext
from auditor.base import AuditorError, scipy
from auditor.base.types import Array, Coalition, Codes, Flags, Indices
from auditor.data.columns.categorical_table import code_type
from auditor.numerics.combination import best_unbiased_combination
from auditor.results.records import Measurement
from auditor.scenario.model import Scenario
from auditor.scenario.read_expectations import Guarantee
from auditor.schemes.base.guarantees import Filled, Guarantees
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw
from auditor.schemes.base.scheme import Key

CHUNK_ROWS = 2**14
"""Trials drawn at once. Random streams depend on it, so a change changes figures."""
ON_LATTICE = 0.25
"""Largest rounding error of a value of whole units, in units."""


@dataclass(frozen=True)
class Found:
    """Lower bound on a metric of one coalition, at least 0."""

    metric: str
    value: float


def audited(
    release: Release,
    stated: Guarantees,
    coalitions: Sequence[Coalition],
    trials: int,
    confidence: float,
) -> list[Found]:
    """Simultaneous lower bounds for all coalitions.

    Parameters
    ----------
    release : Release
        Its scheme draws the copies; the table is not used.
    trials : int
        For each of the two records.
    confidence : float
        In (0, 1).

    Returns
    -------
    list of Found
        Empty without a test: for uniform noise, noise of several shapes, serial noise, and
        attributes without noise.
    """
    law = stated.law
    if (
        not isinstance(law, KroneckerNoise)
        or law.serial is not None
        or law.distribution == "uniform"
        or not coalitions
        or (np.linalg.eigvalsh(law.shape) <= 0.0).any()
    ):
        return []
    test = best_test(stated, law, coalitions)
    power, alarms = (
        sum(map(test.hits, drawn), np.zeros(len(coalitions), dtype=np.intp))
        for drawn in _pair(release, test.change, trials)
    )
    alpha = (1.0 - confidence) / (2 * len(coalitions))
    low, high = lower_bound(power, trials, alpha), upper_bound(alarms, trials, alpha)
    with np.errstate(divide="ignore"):
        scale = np.log if test.metric == "empirical_epsilon" else scipy.special.ndtri
        values = scale(low) - scale(high)
    return [Found(test.metric, max(0.0, float(value))) for value in values]


def _pair(release: Release, change: Array, trials: int) -> Iterator[Iterator[Array]]:
    low, high = np.array([release.table.bounds[name] for name in release.table.attributes]).T
    start = np.where(change > 0, low, high)
    for which, record in (("changed", start + change), ("unchanged", start)):
        yield _drawn(release, which, record, start, trials)


def _drawn(
    release: Release, which: str, record: Array, start: Array, trials: int
) -> Iterator[Array]:
    key = replace(release.key, scheme=f"{release.key.scheme} trials of the {which} record")
    sampler = release.scheme.sampler(release.levels, release.moments.scale, key)
    for index, first in enumerate(range(0, trials, CHUNK_ROWS)):
        rows = min(CHUNK_ROWS, trials - first)
        copies = [np.empty((rows, record.size)) for _ in release.levels]
        sampler.block(index, np.tile(record, (rows, 1)), copies)
        yield np.stack(copies, axis=1) - start


@dataclass(frozen=True)
class Test:
    """Test of the changed record against the unchanged one.

    Attributes
    ----------
    change : ndarray of shape (N,)
    hits : callable
        Trials classified as the changed record, shape (C,), of copies less the unchanged record,
        (b, M, N).
    """

    metric: str
    change: Array
    hits: Callable[[Array], Indices]


def best_test(stated: Guarantees, law: KroneckerNoise, coalitions: Sequence[Coalition]) -> Test:
    """Best test for the law of every coalition's copies."""
    weights = np.zeros((law.copies, len(coalitions)))
    if law.distribution in ("gaussian", "skellam"):
        gaussian = law.distribution == "gaussian"
        change = stated.length([1]).corner if gaussian else stated.changes
        for place, coalition in enumerate(coalitions):
            index = np.asarray(coalition, dtype=np.intp) - 1
            Sigma = law.level_covariance[np.ix_(index, index)]
            weights[index, place] = best_unbiased_combination(Sigma)[0]
        direction = np.linalg.solve(law.shape, change)
        return Test(
            "empirical_gaussian_dp",
            change,
            lambda copies: np.count_nonzero(
                (copies @ direction) @ weights > 0.5 * (change @ direction), axis=0
            ),
        )
    levels = np.diag(law.level_covariance)
    for place, held in enumerate(coalitions):
        best = min(held, key=lambda copy: float(levels[copy - 1]))
        weights[np.array([best] if law.one_process else held) - 1, place] = 1.0
    beyond = stated.changes - ON_LATTICE * (0.0 if law.units is None else law.units)
    return Test(
        "empirical_epsilon",
        stated.changes,
        lambda copies: np.count_nonzero((copies < beyond).any(axis=2) @ weights == 0.0, axis=0),
    )


def guarantees_of(scenario: Scenario, release: Release, law: NoiseLaw | None) -> Guarantees | None:
    """Guarantees of additive noise; None without bounds or law, and for files."""
    scheme, spans = release.scheme, release.moments.spans
    if law is None or spans is None or not scheme.adds_noise or not scheme.makes_copies:
        return None
    measure = scenario.measure("guarantees")
    delta = Guarantee().delta if measure is None else float(measure.options["delta"])
    table = release.table
    return Guarantees(law, spans, delta, table.unit_size, Filled.of(table.blanks))


def release_guarantees(
    context: CellContext,
    scenario: Scenario,
    release: Release,
    law: NoiseLaw | None,
    coalitions: Sequence[Coalition],
) -> Iterator[Measurement]:
    """Yield each coalition's guarantees by law, and requested lower bounds.

    Infinite guarantees have a reason. Audits run in the first replicate only.
    """
    stated = guarantees_of(scenario, release, law)
    if stated is None:
        return
    by_law = {coalition: stated.of(coalition) for coalition in coalitions}
    names = {"epsilon_at_delta": f"epsilon_at_delta({stated.delta:g})"}
    for coalition, figures in by_law.items():
        for metric, one in figures.items():
            name, note = names.get(metric, metric), one.note or None
            yield context.record(name, coalition, one.value, reason=note)
    measure = scenario.measure("empirical-epsilon")
    if measure is None or release.key.replicate > 1:
        return
    trials, confidence = int(measure.options["trials"]), float(measure.options["confidence"])
    found = audited(release, stated, coalitions, trials, confidence)
    for coalition, bound in zip(coalitions, found, strict=False):
        limit = by_law[coalition][bound.metric.removeprefix("empirical_")].value
        theory = limit if math.isfinite(limit) else None
        yield context.record(bound.metric, coalition, bound.value, theory=theory)


SELECTION = 0.1
"""Share of the trials that order the outputs; the others estimate."""
MOST_COPIES = 6
"""Most copies at once: three outputs of each make 729 together."""


@dataclass(frozen=True)
class EpsilonAudit:
    """A lower bound on ε.

    Attributes
    ----------
    epsilon : float
        In nats; 0 if the inputs are indistinguishable.
    event : tuple of int
        The outputs of the event that gave it.
    direction : str
        ``first`` if the event is likelier under the first input, else ``second``.
    confidence : float
        Probability that the bound is below the true ε.
    events : int
        Number of events.
    """

    epsilon: float
    event: tuple[int, ...]
    direction: str
    confidence: float
    events: int


def empirical_epsilon(
    first: ArrayLike, second: ArrayLike, size: int | None = None, confidence: float = 0.95
) -> EpsilonAudit:
    """Lower bound on ε from outputs under two inputs.

    Parameters
    ----------
    first, second : array of int, shape (n,) and (n',)
        Outputs as codes from 0, one per independent trial (*not checked*).
    size : int, optional
        Number of possible outputs; by default one more than the largest.
    confidence : float
        In (0, 1).

    Raises
    ------
    AuditorError
        Too few trials, outputs that are no codes, or an invalid confidence.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> audit = empirical_epsilon(rng.random(10_000) < 0.75, rng.random(10_000) < 0.25)
    >>> bool(0.95 < audit.epsilon < np.log(3))
    True
    """
    a, b = _codes(first), _codes(second)
    if not 0 < confidence < 1:
        raise AuditorError(f"confidence must be between 0 and 1; got {confidence!r}")
    largest = int(max(a.max(), b.max()))
    size = size or largest + 1
    if largest >= size:
        raise AuditorError(f"outputs must be codes below {size}")
    chosen, judged = zip(*(_split(codes, size) for codes in (a, b)), strict=True)
    masks = events(*chosen)
    hits = [masks @ counts for counts in judged]
    trials = [int(counts.sum()) for counts in judged]
    alpha = (1.0 - confidence) / (2 * len(masks) * 2)
    bounds = np.stack(
        [_log_ratio(hits[i], trials[i], hits[1 - i], trials[1 - i], alpha) for i in (0, 1)]
    )
    direction, place = np.unravel_index(int(np.argmax(bounds)), bounds.shape)
    epsilon = max(0.0, float(bounds[direction, place]))
    event = tuple(np.flatnonzero(masks[place]).tolist()) if epsilon > 0 else ()
    return EpsilonAudit(epsilon, event, ("first", "second")[int(direction)], confidence, len(masks))


def _codes(outputs: ArrayLike) -> Codes:
    codes = np.asarray(outputs)
    if (
        codes.ndim != 1
        or codes.size < 2
        or not (np.issubdtype(codes.dtype, np.integer) or codes.dtype == bool)
    ):
        raise AuditorError("outputs must be a one-dimensional array of at least two codes")
    if codes.min() < 0:
        raise AuditorError("outputs must be codes from 0")
    return codes.view(np.uint8) if codes.dtype == bool else codes


def _split(codes: Codes, size: int) -> tuple[Indices, Indices]:
    cut = int(SELECTION * codes.size)
    return np.bincount(codes[:cut], minlength=size), np.bincount(codes[cut:], minlength=size)


def events(first: Indices, second: Indices) -> Flags:
    """Events, masks of shape (m, s): single outputs, and the most typical ones."""
    s = first.size
    ratio = (first + 0.5) / (first.sum() + 0.5 * s) * (second.sum() + 0.5 * s) / (second + 0.5)
    order = np.argsort(-ratio, kind="stable")
    rank = np.empty(s, dtype=np.intp)
    rank[order] = np.arange(s)
    telling = rank[None, :] <= np.arange(s - 1)[:, None]
    return np.unique(np.concatenate([np.eye(s, dtype=bool), telling, ~telling]), axis=0)


def _log_ratio(hits: Array, trials: int, others: Array, other_trials: int, alpha: float) -> Array:
    low, high = lower_bound(hits, trials, alpha), upper_bound(others, other_trials, alpha)
    with np.errstate(divide="ignore"):
        return np.log(low) - np.log(high)


def lower_bound(hits: Any, trials: int, alpha: float) -> Array:
    """Exact lower bound at level ``1 − α`` (clopper1934); 0 at k = 0.

    The α-quantile of Beta(k, n − k + 1).
    """
    k = np.asarray(hits, dtype=np.float64)
    return np.where(
        k > 0, scipy.special.betaincinv(np.maximum(k, 1.0), trials - k + 1.0, alpha), 0.0
    )


def upper_bound(hits: Any, trials: int, alpha: float) -> Array:
    """Exact upper bound at level ``1 − α`` (clopper1934); 1 at k = n."""
    return 1.0 - lower_bound(trials - np.asarray(hits), trials, alpha)


class Trials:
    """Repeated copies of two values by a uniform scheme, for any coalition.

    Parameters
    ----------
    levels : sequence of float
        Retention probabilities by copy.
    size : int
        ``s``.
    trials : int
        For each of the two values.
    key : Key
        Names the randomness.
    """

    def __init__(
        self, scheme: Any, levels: Sequence[float], size: int, trials: int, key: Key
    ) -> None:
        self._levels = tuple(levels)
        self._values, self._made = _rarest(scheme.replaced_by(size), size), []
        for place, value in enumerate(self._values, start=1):
            named = replace(key, scheme=f"{key.scheme} of value {place}")
            copies = scheme.copies(np.full(trials, value, dtype=code_type(size)), size, named)
            for level in levels:
                copies.skip(level)
            self._made.append(copies)

    def audit(self, coalition: Sequence[int], confidence: float = 0.95) -> EpsilonAudit:
        """Lower bound on a coalition's ε, by copy numbers from 1.

        Outputs are copies with the first value, the second, or another. At most the six least
        perturbed copies are used.
        """
        order = sorted(coalition, key=lambda number: (-self._levels[number - 1], number))
        best, (first, second) = sorted(order[:MOST_COPIES]), self._values
        seen = []
        for copies in self._made:
            outcome = np.zeros(copies.original.size, dtype=np.uint16)
            for number in best:
                shown = copies.copy(number)
                outcome = 3 * outcome + (shown != first) + ((shown != first) & (shown != second))
            seen.append(outcome)
        return empirical_epsilon(seen[0], seen[1], 3 ** len(best), confidence)


def _rarest(pi: Array | None, size: int) -> tuple[int, int]:
    order = range(size) if pi is None else np.argsort(pi, kind="stable").tolist()
    return order[0], order[min(1, size - 1)]
