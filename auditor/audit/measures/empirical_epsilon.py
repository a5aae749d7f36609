r"""Empirical ε: a lower bound on privacy loss, from outputs on two inputs.

An attack names an event E and counts it under either input; ``ln(P(E|x)/P(E|x'))`` is at most ε. With
exact Clopper–Pearson bounds for both probabilities, the result is below the true ε with the stated
confidence, at any number of trials.

| symbol | meaning |
| --- | --- |
| ``E`` | an event: one output, or the outputs most typical of one input in the first trials |
| ``m`` | number of events, in both directions, which share the confidence (Bonferroni) |
| ``L, U`` | lower bound of ``P(E\|x)`` and upper bound of ``P(E\|x')``, each at ``1 − α/(2m)`` |

Reference: clopper1934. Loose if ε depends on events too rare for the trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.data.columns.categorical_table import code_type
from auditor.errors import AuditorError
from auditor.process.deferred import scipy
from auditor.schemes.base.scheme import Key
from auditor.types import Array, Codes, Flags, Indices

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
    """Return a lower bound on ε from outputs under two inputs.

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
    """Return counts of the outputs in ordering and in estimating trials."""
    cut = int(SELECTION * codes.size)
    return np.bincount(codes[:cut], minlength=size), np.bincount(codes[cut:], minlength=size)


def events(first: Indices, second: Indices) -> Flags:
    """Return events, masks of shape (m, s): single outputs, and the most typical ones."""
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
    """Return the exact lower bound at level ``1 − α`` (clopper1934); 0 at k = 0.

    The α-quantile of Beta(k, n − k + 1).
    """
    k = np.asarray(hits, dtype=np.float64)
    return np.where(
        k > 0, scipy.special.betaincinv(np.maximum(k, 1.0), trials - k + 1.0, alpha), 0.0
    )


def upper_bound(hits: Any, trials: int, alpha: float) -> Array:
    """Return the exact upper bound at level ``1 − α`` (clopper1934); 1 at k = n."""
    k = np.asarray(hits, dtype=np.float64)
    return np.where(
        k < trials, scipy.special.betaincinv(k + 1.0, np.maximum(trials - k, 1.0), 1.0 - alpha), 1.0
    )


class Trials:
    """Repeated copies of two values by a uniform scheme, for any coalition.

    Parameters
    ----------
    scheme : UniformScheme
    levels : sequence of float
        Retention probabilities in the order of release.
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
        """Return a lower bound on a coalition's ε, by copy numbers from 1.

        Outputs are the copies with the first value, the second, or another. By law a third value is
        equally likely for both. Of more than six copies the six least perturbed are used, so the
        bound holds.
        """
        best = sorted(coalition, key=lambda number: (-self._levels[number - 1], number))[
            :MOST_COPIES
        ]
        seen = []
        for copies in self._made:
            outcome = np.zeros(
                copies.original.size, dtype=np.uint8 if len(best) <= 5 else np.uint16
            )
            for number in sorted(best):
                outcome *= 3
                outcome += _which(copies.copy(number), *self._values)
            seen.append(outcome)
        return empirical_epsilon(seen[0], seen[1], 3 ** len(best), confidence)


def _which(shown: Codes, first: int, second: int) -> NDArray[np.uint8]:
    """Return 0 where a copy shows the first value, 1 where it shows the second, and 2 elsewhere, shape (n,)."""
    other = shown != first
    which = other.astype(np.uint8)
    other &= shown != second
    which += other
    return np.asarray(which)


def _rarest(pi: Array | None, size: int) -> tuple[int, int]:
    """Return two values: the least likely replacements, whose outputs are most typical."""
    order = range(size) if pi is None else np.argsort(pi, kind="stable").tolist()
    return order[0], order[min(1, size - 1)]
