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

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from auditor.audit.base.request import CellContext
from auditor.audit.numeric.release import Release
from auditor.base import scipy
from auditor.base.types import Array, Coalitions, Codes, Flags, Indices
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


Test = tuple[str, Array, Callable[[Array], Indices]]
"""Metric, change of the record, and trials classified as the changed record, shape (C,), of copies
less the unchanged record, (b, M, N)."""


def audited(
    release: Release, stated: Guarantees, coalitions: Coalitions, trials: int, confidence: float
) -> list[tuple[str, float]]:
    """Simultaneous lower bounds for all coalitions, each with its metric.

    Empty without a test: for uniform noise, noise of several shapes, serial noise, and attributes
    without noise.

    Parameters
    ----------
    release : Release
        Its scheme draws the copies; the table is not used.
    trials : int
        For each of the two records.
    confidence : float
        In (0, 1).
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
    metric, change, hits = best_test(stated, law, coalitions)
    low, high = np.array([release.table.bounds[name] for name in release.table.attributes]).T
    start = np.where(change > 0, low, high)
    alpha = (1.0 - confidence) / (2 * len(coalitions))
    scale = np.log if metric == "empirical_epsilon" else scipy.special.ndtri
    power, alarms = (
        sum(map(hits, _drawn(release, which, record, start, trials)))
        for which, record in (("changed", start + change), ("unchanged", start))
    )
    with np.errstate(divide="ignore"):
        values = scale(lower_bound(power, trials, alpha))
        values = values - scale(upper_bound(alarms, trials, alpha))
    return [(metric, max(0.0, float(value))) for value in values]


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


def best_test(stated: Guarantees, law: KroneckerNoise, coalitions: Coalitions) -> Test:
    """Best test for the law of every coalition's copies."""
    weights, change = np.zeros((law.copies, len(coalitions))), stated.changes
    if law.distribution in ("gaussian", "skellam"):
        change = stated.length([1]).corner if law.distribution == "gaussian" else change
        for place, coalition in enumerate(coalitions):
            held = law.of(coalition).level_covariance
            weights[np.array(coalition) - 1, place] = best_unbiased_combination(held)[0]
        direction = np.linalg.solve(law.shape, change)
        return (
            "empirical_gaussian_dp",
            change,
            lambda copies: np.count_nonzero(
                (copies @ direction) @ weights > 0.5 * (change @ direction), axis=0
            ),
        )
    levels = np.diag(law.level_covariance)
    for place, coalition in enumerate(coalitions):
        best = min(coalition, key=lambda copy: float(levels[copy - 1]))
        weights[np.array([best] if law.one_process else coalition) - 1, place] = 1.0
    beyond = change - ON_LATTICE * (0.0 if law.units is None else law.units)
    return (
        "empirical_epsilon",
        change,
        lambda copies: np.count_nonzero((copies < beyond).any(axis=2) @ weights == 0.0, axis=0),
    )


def release_guarantees(
    context: CellContext,
    scenario: Scenario,
    release: Release,
    law: NoiseLaw | None,
    coalitions: Coalitions,
) -> Iterator[Measurement]:
    """Yield each coalition's guarantees by law, and requested lower bounds.

    None without bounds or law, and for files. Infinite guarantees have a reason. Audits run in the
    first replicate only.
    """
    scheme, spans, table = release.scheme, release.moments.spans, release.table
    if law is None or spans is None or not scheme.adds_noise or not scheme.makes_copies:
        return
    measure = scenario.measure("guarantees")
    delta = Guarantee().delta if measure is None else float(measure.options["delta"])
    stated = Guarantees(law, spans, delta, table.unit_size, Filled.of(table.blanks))
    by_law = {coalition: stated.of(coalition) for coalition in coalitions}
    for coalition, figures in by_law.items():
        for metric, one in figures.items():
            name = f"{metric}({delta:g})" if metric == "epsilon_at_delta" else metric
            yield context.record(name, coalition, one.value, reason=one.note or None)
    measure = scenario.measure("empirical-epsilon")
    if measure is None or release.key.replicate > 1:
        return
    trials, confidence = int(measure.options["trials"]), float(measure.options["confidence"])
    found = audited(release, stated, coalitions, trials, confidence)
    for coalition, (metric, bound) in zip(coalitions, found, strict=False):
        limit = by_law[coalition][metric.removeprefix("empirical_")].value
        theory = limit if math.isfinite(limit) else None
        yield context.record(metric, coalition, bound, theory=theory)


SELECTION = 0.1
"""Share of the trials that order the outputs; the others estimate."""
MOST_COPIES = 6
"""Most copies at once: three outputs of each make 729 together."""


def empirical_epsilon(outputs: Sequence[Codes], size: int, confidence: float) -> float:
    """Lower bound on ε from outputs under two inputs, in nats.

    Parameters
    ----------
    outputs : sequence of two ndarrays of int, shapes (n,) and (n',)
        Codes below ``size``, one per independent trial (*not checked*).
    confidence : float
        In (0, 1).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> outputs = [(rng.random(10_000) < share).astype(np.uint8) for share in (0.75, 0.25)]
    >>> bool(0.95 < empirical_epsilon(outputs, 2, 0.95) < np.log(3))
    True
    """
    chosen, judged = [], []
    for codes in outputs:
        cut = int(SELECTION * codes.size)
        chosen.append(np.bincount(codes[:cut], minlength=size))
        judged.append(np.bincount(codes[cut:], minlength=size))
    masks = events(*chosen)
    alpha = (1.0 - confidence) / (4 * len(masks))
    low, high = (
        np.stack([bound(masks @ counts, int(counts.sum()), alpha) for counts in judged])
        for bound in (lower_bound, upper_bound)
    )
    with np.errstate(divide="ignore"):
        return max(0.0, float((np.log(low) - np.log(high[::-1])).max()))


def events(first: Indices, second: Indices) -> Flags:
    """Events, masks of shape (m, s): single outputs, and the most typical ones."""
    s = first.size
    ratio = (first + 0.5) / (first.sum() + 0.5 * s) * (second.sum() + 0.5 * s) / (second + 0.5)
    order = np.argsort(-ratio, kind="stable")
    rank = np.empty(s, dtype=int)
    rank[order] = np.arange(s)
    telling = rank[None, :] <= np.arange(s - 1)[:, None]
    return np.unique(np.concatenate([np.eye(s, dtype=bool), telling, ~telling]), axis=0)


def lower_bound(hits: Any, trials: int, alpha: float) -> Array:
    """Exact lower bound at level ``1 − α`` (clopper1934); 0 at k = 0.

    The α-quantile of Beta(k, n − k + 1).
    """
    k = np.asarray(hits, dtype=float)
    return np.where(
        k > 0, scipy.special.betaincinv(np.maximum(k, 1.0), trials - k + 1.0, alpha), 0.0
    )


def upper_bound(hits: Any, trials: int, alpha: float) -> Array:
    """Exact upper bound at level ``1 − α`` (clopper1934); 1 at k = n."""
    return 1.0 - lower_bound(trials - np.asarray(hits), trials, alpha)


def category_bounds(
    scheme: Any,
    levels: Sequence[float],
    size: int,
    trials: int,
    key: Key,
    coalitions: Coalitions,
    confidence: float,
) -> list[float]:
    """Lower bound on each coalition's ε, from copies of the two rarest values.

    Outputs are copies with the first value, the second, or another. At most the six least perturbed
    copies are used. ``trials`` is for each value; ``key`` names the randomness.
    """
    pi, made, found = scheme.replaced_by(size), [], []
    order = range(size) if pi is None else np.argsort(pi, kind="stable").tolist()
    values = order[0], order[min(1, size - 1)]
    for place, value in enumerate(values, start=1):
        named = replace(key, scheme=f"{key.scheme} of value {place}")
        made.append(scheme.copies(np.full(trials, value, dtype=code_type(size)), size, named))
        for level in levels:
            made[-1].skip(level)
    for coalition in coalitions:
        best = sorted(coalition, key=lambda number: (-levels[number - 1], number))[:MOST_COPIES]
        seen = [np.zeros(trials, dtype=np.uint16) for _ in values]
        for copies, outcome in zip(made, seen, strict=True):
            for number in sorted(best):
                first, second = (copies.copy(number) != value for value in values)
                outcome *= 3
                outcome += first.astype(np.uint16) + (first & second)
        found.append(empirical_epsilon(seen, 3 ** len(best), confidence))
    return found
