"""The noise that was drawn against the law that is stated, row by row: what covariances cannot show.

| symbol | meaning | law |
| --- | --- | --- |
| ``t`` | noise of one attribute in one copy, of one whitened combination of copies, or its length, over its deviation | F |
| ``v = F(t)``, ``s = |2v − 1|`` | | uniform on (0, 1) |
| ``g, w`` | normal scores of t and of its size, ``Φ⁻¹(v)`` and ``Φ⁻¹(s)`` | N(0, 1), independent from row to row |

Each statistic has a p-value that is exact, or a bound that holds, at any number of rows and for any table: a test given the data needs
nothing of them, as noise that follows its law is independent of them.

| statistic | what it finds | p-value |
| --- | --- | --- |
| ``distribution`` | another law of the same variance | ``2 exp(−2 n D²)`` (massart1990) |
| ``size`` | rows with hardly any noise, or far too much | shares of s near 0 and 1: binomial |
| ``rows without noise`` | single rows that are out as they are | n times the law's chance of a row so small, bounded by its density |
| ``equal copies`` | rows that two copies share their noise in | share of differences near 0: binomial |
| ``repeats`` | periods, and rows that share their noise, or its size, with others | neighbours in order of s: Poisson, or bounds |
| ``neighbouring rows`` | noise that hangs on the row before, in any copy | ``Σ g_i h_{i+1} / ‖g‖`` over pairs that share no row: N(0, 1) |
| ``dependence on the data`` | noise whose size or sign goes with the data | ``Σ a_i g_i / ‖a‖`` with a any function of the data: N(0, 1) |
| ``data of other rows`` | noise, or its size, that goes with another record, at any distance | ``Σ a_(i+h) g_i / ‖a‖``: N(0, 1) |
| ``pairs and the data`` | noise of two copies whose product goes with the data | ``Σ a e_i e_k / √(Σ a² e_i²)``: N(0, 1) |
| ``waves`` | noise that is a function of the record, or of the row's number, however fast it turns | a bound |
| ``joint law`` | noise of several copies or attributes whose sizes go together | correlations of u and w: t |
| ``low digits`` | another copy's noise, or the record, in the digits of a copy (``auditor.audit.drawn_law.low_digits``) | a bound |
| ``no noise by law`` | noise in combinations that have none | none is allowed beyond rounding |

Values known to no better than the copies' grid, or their last bit, are taken as off by that much. *Not checked*: rows not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from auditor.audit.drawn_law.chosen_rows import Rows
from auditor.audit.drawn_law.column_tests import (
    SMALL,
    at_least,
    distribution_test,
    joint_test,
    neighbours_test,
    on_the_data_test,
    other_rows_test,
    pairs_on_the_data_test,
    repeats_test,
    size_test,
    waves_test,
)
from auditor.audit.drawn_law.columns import DENSITY, FINE, MOST_JOINT, Columns, combinations, length_of, over, scores, within_copies
from auditor.audit.drawn_law.increments import (
    columns_of,
    equal_copies_test,
    independent_increments,
    lattice_test,
    own_increments,
    periods_test,
    zero_rows_test,
)
from auditor.audit.drawn_law.low_digits import low_digits_test
from auditor.audit.drawn_law.moments import HARDLY_ANY, whitening
from auditor.process.deferred import scipy
from auditor.results.evidence import LawTest
from auditor.schemes.base.increment_density import is_process
from auditor.schemes.base.noise_density import LATTICE
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw
from auditor.types import Array

MOST_PAIRS = 64
"""Pairs of copies that are looked at, evenly among all."""
SHARES = SMALL[:4]
"""Of rows, whose differences are looked for near 0."""
DIFFERENCE = 1.0 / math.sqrt(6.0)
"""No less than the density of a difference of two such, of variance 1, whichever they are."""


def row_tests(law: NoiseLaw, rows: Rows, names: Sequence[str], chosen: Sequence[int]) -> list[LawTest]:
    """Return one test a statistic, as far as the rows show it.

    Parameters
    ----------
    law : NoiseLaw
        Of the noise in the copies chosen.
    rows : Rows
    names : sequence of str
        The N attributes.
    chosen : sequence of int
        Numbers of the copies, M of them.
    """
    n, M, N = rows.noise.shape
    if n < 3 or law.distribution == "unstated":
        return []
    tests = [_no_noise(law, rows)]
    places = [f"{name!r} in copy {copy}" for copy in chosen for name in names]
    if is_process(law):
        own = columns_of(own_increments(law), rows, names, chosen)
        steps = columns_of(independent_increments(law), rows, names, chosen, MOST_JOINT)
        joint = steps if len(steps.names) > 1 else None
    else:
        inner = within_copies(law, rows)
        own = Columns.of(inner[0].reshape(n, M * N), inner[1].ravel(), places, law)
        joint = combinations(law, rows)
    if not own.names:
        return [test for test in tests if test is not None]
    every = own if joint is None else own.joined(joint, length_of(joint))
    g, w = every.score, scores(every.size)
    tests += [
        distribution_test(every, law), size_test(every, law), *_cells(law, rows, names, chosen),
        _repeats(law, rows, own, joint, chosen), neighbours_test(g, w), on_the_data_test(rows.x, g, w),
        other_rows_test(rows.x, own.score, w[:, : len(own.names)], own.names), waves_test(rows.x, own.v, own.names, names),
        low_digits_test(law, rows, chosen),
    ]  # fmt: skip
    tests += [] if joint is None else [joint_test(joint.t, w[:, len(own.names) : -1]), pairs_on_the_data_test(rows.x, joint.score)]
    return [test for test in tests if test is not None]


def _cells(law: NoiseLaw, rows: Rows, names: Sequence[str], chosen: Sequence[int]) -> list[LawTest | None]:
    """Return the tests of rows and cells with no noise of their own."""
    noise = np.ascontiguousarray(rows.noise.transpose(1, 2, 0))
    if not is_process(law):
        return [_without_noise(law, noise, rows.grain, chosen), _equal(law, noise, rows.grain, names, chosen)]
    equal = equal_copies_test(law, rows, names, chosen)
    if law.distribution not in LATTICE:
        return [_without_noise(law, noise, rows.grain, chosen), equal]
    return [zero_rows_test(law, rows, chosen), equal, lattice_test(law, rows)]


def _repeats(law: NoiseLaw, rows: Rows, own: Columns, joint: Columns | None, chosen: Sequence[int]) -> LawTest | None:
    """Return the test of values that come again; of noise on a lattice, whose values do by law, of runs of rows."""
    if is_process(law) and law.distribution in LATTICE:
        return periods_test(law, rows, chosen)
    return repeats_test(own, joint, law)


def _without_noise(law: NoiseLaw, noise: Array, grain: Array, chosen: Sequence[int]) -> LawTest | None:
    """Return the test of the row with least noise, copy by copy: one that is out as it is shows where there are attributes enough."""
    M, N, n = noise.shape
    found = []
    for place in range(M):
        own = law.of([place + 1])
        W = whitening(own.covariance).rows
        if law.distribution == "uniform" and len(W) < N:
            continue
        r, known = len(W), float((np.abs(W) @ grain[place]).max(initial=0.0))
        if r == 0 or known > FINE:
            continue
        least = math.sqrt(np.square(W @ noise[place]).sum(axis=0).min())
        reach = max(least, 8.0 * math.sqrt(r) * known)
        ball = r / 2 * math.log(math.pi) - float(scipy.special.gammaln(r / 2 + 1)) + r * math.log(max(reach, 1e-300))
        found.append((math.log(n) + ball + r * math.log(DENSITY[law.distribution]), least / math.sqrt(r), chosen[place]))
    if not found:
        return None
    chance, least, copy = min(found)
    p = min(1.0, len(found) * math.exp(min(0.0, chance)))
    return LawTest("rows without noise", p, len(found), n, least, 1.0, f"the least noise in a row of copy {copy}, in deviations, is")


def _equal(law: NoiseLaw, noise: Array, grain: Array, names: Sequence[str], chosen: Sequence[int]) -> LawTest | None:
    """Return the test of differences of two copies' noise, and of that noise over its deviations, near 0."""
    M, N, n = noise.shape
    pairs = [(i, k) for i in range(M) for k in range(i)]
    i, k = np.array(pairs[:: max(1, math.ceil(len(pairs) / MOST_PAIRS))], dtype=np.intp).reshape(-1, 2).T
    covariances = np.einsum("injn->ijn", law.covariance.reshape(M, N, M, N))
    own, other, both = (covariances[a, b][:, None] for a, b in ((i, i), (k, k), (i, k)))
    scaled = np.sqrt(own / np.where(other > 0, other, np.inf))
    factor = np.concatenate([np.ones_like(scaled), scaled], axis=1)  # shape (pairs, 2, N), as all that follows from it
    variance = own + factor**2 * other - 2.0 * factor * both
    deviation, known = np.sqrt(np.clip(variance, 0.0, None)), grain[i][:, None] + factor * grain[k][:, None]
    fine = (known <= FINE * deviation) & (variance > HARDLY_ANY * (own + factor**2 * other)) & (factor > 0)
    tests = int(fine.sum()) * len(SHARES)
    if not tests:
        return None
    within = np.where(fine, 2.0 * max(SHARES) * deviation, -1.0)  # hardly any are: each share is looked for among these alone
    met, d = np.zeros((len(i), 2, len(SHARES), N), dtype=np.intp), np.empty((N, n))
    for pair, form in np.ndindex(len(i), 2):
        np.multiply(noise[k[pair]], factor[pair, form, :, None], out=d)
        np.abs(np.subtract(noise[i[pair]], d, out=d), out=d)
        near = np.flatnonzero(d < within[pair, form, :, None])
        column = near // n
        small = d.ravel()[near] / deviation[pair, form, column]
        met[pair, form] = [np.bincount(column[small < share], minlength=N) for share in SHARES]
    blur = np.divide(known, deviation, out=np.ones_like(known), where=fine)[:, :, None]
    share = np.array(SHARES)[:, None]
    p = np.where(fine[:, :, None] & (share >= 8.0 * blur), at_least(met, n, np.minimum(1.0, 2.0 * DIFFERENCE * (share + blur))), 1.0)
    if p.min() == 1.0:
        return LawTest("equal copies", 1.0, tests, n, 0.0, 0.0, "no share is unlikely:")
    pair, _, size, column = worst = tuple(int(place) for place in np.unravel_index(int(p.argmin()), p.shape))
    where = f"the share of rows with the same noise in copies {chosen[k[pair]]} and {chosen[i[pair]]}, of {names[column]!r}, is"
    chance = 2.0 * DIFFERENCE * SHARES[size]
    return LawTest("equal copies", min(1.0, tests * float(p[worst])), tests, n, float(met[worst] / n), chance, where)


def _no_noise(law: NoiseLaw, rows: Rows) -> LawTest | None:
    """Return the test that combinations without noise by law, and copies at level 0, have none beyond rounding."""
    n, M, N = rows.noise.shape
    excess, tests = [], 0
    deviation = np.sqrt(np.clip(np.diag(law.covariance), 0.0, None)).reshape(M, N)
    silent = deviation == 0
    if silent.any():
        excess.append(float((np.abs(rows.noise[:, silent]) / (8.0 * rows.grain[silent] + 1e-300)).max()))
        tests += int(silent.sum())
    slack = 20.0 * math.sqrt(HARDLY_ANY * M * N)
    units, known = over(rows.noise, deviation), over(rows.grain, deviation)
    parts = [(_levels(law), 1), (law.shape, 2)] if isinstance(law, KroneckerNoise) else [(law.covariance, 0)]
    for K, axis in parts:
        own = np.sqrt(np.clip(np.diag(K), 0.0, None))
        null = whitening(K).null * own  # in units of each coordinate
        if not len(null):
            continue
        flat = axis == 0
        z = units.reshape(n, -1) @ null.T if flat else np.moveaxis(units, axis, 2) @ null.T
        reach = known.ravel() @ np.abs(null).T if flat else np.moveaxis(known, axis - 1, 1) @ np.abs(null).T
        excess.append(float((np.abs(z) / (slack + 8.0 * reach)).max()))
        tests += reach.size
    if not excess:
        return None
    worst = max(excess)
    return LawTest("no noise by law", 0.0 if worst > 1.0 else 1.0, tests, n, worst, 1.0,
                   "noise where the law has none, beside what rounding can leave, is")  # fmt: skip


def _levels(law: KroneckerNoise) -> Array:
    """Return ``Sigma``, shape (M, M); of a process a matrix that is singular only where levels are equal.

    At levels that are nearly so a process moves in few rows, and there by all of its noise.
    """
    if not is_process(law):
        return law.level_covariance
    levels = np.diag(law.level_covariance)
    return np.diag(levels) if not law.one_process else np.where(levels[:, None] == levels, levels, 0.0)
