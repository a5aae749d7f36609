"""Whether noise is as independent as its law says: a copy that adds nothing in second moments may still be informative.

Covariances alone cannot tell: ``Z_j − Z_b`` may be uncorrelated with ``Z_b`` and with the data and yet predict how large they are, and
then an attack that is not linear gains from copy j. The auditor has ``X`` and ``Z_i = Y_i − X``, so it can test for that.

| symbol | meaning |
| --- | --- |
| ``b`` | a coalition's copy with least noise |
| ``d`` | ``Z_j − Z_b``, one attribute at a time; its length over all attributes, in standard deviations |
| ``u`` | the same of ``Z_b``, and of ``X`` less its mean |
| ``s(·)`` | normal scores of ranks: the quantiles of N(0, 1) at rank/(r + 1), r rows tested |
| ``ρ`` | correlation of ``s(|u|)`` with ``s(|d|)`` and with ``s(d)``, of ``s(u)`` with ``s(|d|)``, and of the two lengths' scores |

For independent u and d, of any distributions, ``atanh ρ`` is N(0, 1/(r − 3)) (Fisher's transformation; normal scores make it hold for any
margins) up to terms too small to matter here. *Not checked*: other kinds of dependence, and rows beyond those tested.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.numerics.random_streams import stream
from auditor.process.deferred import scipy
from auditor.results.evidence import Dependence
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw, not_known_to_gain
from auditor.types import Array, Block, Coalition

MOST_ROWS, FEWEST_ROWS = 2**13, 2**10
ROWS_PASSED = 2**18
"""Rows that are read for those tested: all of most tables, the first of a longer one."""
SCORES_AT_MOST = 2**22
"""Values ranked in all, about half a second; many pairs of copies are tested in fewer rows each."""
MOST_PAIRS = 1000
"""Pairs tested, spread evenly over all of them."""
SAME = 1e-9
"""Copies that differ by less, beside their noise, are one copy and its rounding."""


def dependences(
    coalitions: Sequence[Coalition], blocks: Iterable[Block], rows: int, width: int, law: NoiseLaw | None
) -> dict[Coalition, Dependence]:
    """Return the strongest dependence in every coalition of two copies or more of which no law says that pooling gains.

    Coalitions without anything to test are left out.

    Parameters
    ----------
    coalitions : sequence of tuple of int
    blocks : iterable of (number, rows of the original, rows of every copy)
    rows, width : int
        Of these blocks together.
    law : NoiseLaw or None
        Says which copy of a coalition has least noise; without it, the rows tested do.
    """
    wide = not_known_to_gain(coalitions, law)
    if not wide:
        return {}
    x, Z = _looked_at(blocks, rows)
    levels = np.array([z.var(axis=0).sum() for z in Z]) if law is None else noise_levels(law)
    best = {coalition: min(coalition, key=lambda copy: levels[copy - 1]) for coalition in wide}
    pairs = sorted({(best[coalition], copy) for coalition in wide for copy in coalition if copy != best[coalition]})
    pairs = pairs[:: math.ceil(len(pairs) / MOST_PAIRS)]
    kept = max(FEWEST_ROWS, SCORES_AT_MOST // (len(pairs) * (2 * width + 1)))
    x, *Z = (rows[:: max(1, math.ceil(len(rows) / kept))] for rows in (x, *Z))
    known = {"record": _scores(x - x.mean(axis=0), "record")} | {str(b): _scores(Z[b - 1], b) for b in set(best.values())}
    found = {(b, j): _dependence(b, j, known["record"], known[str(b)], Z) for b, j in pairs}
    strongest = {coalition: _strongest(found, best[coalition], coalition) for coalition in wide}
    return {coalition: dependence for coalition, dependence in strongest.items() if dependence is not None}


def _looked_at(blocks: Iterable[Block], rows: int) -> tuple[Array, list[Array]]:
    """Return the originals and every copy's noise, shapes (r, N), in rows taken evenly from those gone through."""
    every = max(1, math.ceil(min(rows, ROWS_PASSED) / MOST_ROWS))
    parts: list[list[Array]] = []
    passed = 0
    for _, x, copies in blocks:
        chosen = slice(-passed % every, None, every)
        parts.append([np.array(x[chosen]), *(copy[chosen] - x[chosen] for copy in copies)])
        passed += len(x)
        if passed >= ROWS_PASSED:
            break
    whole = [np.concatenate(part) for part in zip(*parts, strict=True)]
    return whole[0], whole[1:]


def noise_levels(law: NoiseLaw) -> Array:
    """Return each copy's noise variance by law, shape (M,): as a level where copies share one shape, else summed over attributes."""
    if isinstance(law, KroneckerNoise):
        return np.diag(law.level_covariance)
    return np.array(np.diag(law.covariance).reshape(law.copies, law.width).sum(axis=1))


class _Scores(NamedTuple):
    """Normal scores of noise, of its size, and of its length over all attributes: shapes (N, r), (N, r) and (r,)."""

    value: Array
    size: Array
    length: Array


def _scores(z: Array, *name: object) -> _Scores:
    """Return scores of what has a name: ties of noise that has some are broken by lots that no other scores are made with."""
    lots = stream(0, "ranks of equal values", *name)
    std = z.std(axis=0)
    lengths = ((z / np.where(std > 0, std, 1.0)) ** 2).sum(axis=1)
    return _Scores(_normal(z.T, lots), _normal(np.abs(z.T), lots), _normal(lengths[None], lots)[0])


def _normal(values: Array, lots: np.random.Generator) -> Array:
    """Return the normal scores of each row's ranks; equal values are ranked by lot, as their order in the table may tell of the records."""
    lot = lots.permutation(values.shape[1])
    order = lot[values[:, lot].argsort(axis=1, kind="stable")]
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(1, values.shape[1] + 1), axis=1)
    return np.asarray(scipy.special.ndtri(ranks / (values.shape[1] + 1)))


def _dependence(b: int, j: int, record: _Scores, noise: _Scores, Z: Sequence[Array]) -> Dependence | None:
    """Return the pair's largest correlation; None where the copies are the same, or hardly any rows were tested."""
    difference = Z[j - 1] - Z[b - 1]
    apart = difference.std(axis=0) > SAME * Z[j - 1].std(axis=0)
    if len(difference) < FEWEST_ROWS // 16 or not apart.any():
        return None
    d = _scores(difference, b, j)
    found = np.concatenate([_with_difference(noise, d, apart), _with_difference(record, d, apart)])
    strongest = int(np.abs(found).argmax())
    return Dependence(b, j, float(found[strongest]), len(difference), found.size, of_record=2 * strongest >= found.size)


def _with_difference(u: _Scores, d: _Scores, apart: NDArray[np.bool_]) -> Array:
    """Return every ``ρ`` of u with d, for attributes in which the copies differ; that of their values is left to second moments."""
    pairs = ((u.size, d.size), (u.size, d.value), (u.value, d.size))
    each = [_correlations(first, second)[apart] for first, second in pairs]
    return np.concatenate([*each, _correlations(u.length[None], d.length[None])])


def _correlations(first: Array, second: Array) -> Array:
    """Return the correlation of each row of the one with that of the other; scores have mean 0."""
    size = np.sqrt(np.einsum("nr,nr->n", first, first) * np.einsum("nr,nr->n", second, second))
    return np.asarray(np.divide(np.einsum("nr,nr->n", first, second), size, out=np.zeros(len(first)), where=size > 0))


def _strongest(found: Mapping[tuple[int, int], Dependence | None], best: int, coalition: Coalition) -> Dependence | None:
    """Return the largest correlation in a coalition, its number of tests that of all its pairs."""
    pairs = [pair for copy in coalition if copy != best and (pair := found.get((best, copy))) is not None]
    if not pairs:
        return None
    return max(pairs, key=lambda pair: abs(pair.correlation))._replace(tests=sum(pair.tests for pair in pairs))
