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
| ``repeats`` | periods, and rows that share their noise, or its size, with others | pairs of neighbours in order of s: Poisson |
| ``neighbouring rows`` | noise that hangs on the row before, in any copy | ``Σ g_i h_{i+1} / ‖g‖`` over pairs that share no row: N(0, 1) |
| ``dependence on the data`` | noise whose size or sign goes with the data | ``Σ a_i g_i / ‖a‖`` with a any function of the data: N(0, 1) |
| ``joint law`` | noise of several copies or attributes whose sizes go together | correlations of u and w: t |
| ``no noise by law`` | noise in combinations that have none | none is allowed beyond rounding |

Values known to no better than the copies' grid, or their last bit, are taken as off by that much. *Not checked*: rows not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammainc, gammaln, ndtr, ndtri, stdtr

from auditor.audit.drawn_law.moments import HARDLY_ANY, whitening
from auditor.results.evidence import LawTest
from auditor.schemes.base.noise_law import GaussianNoise, NoiseLaw, psd_root
from auditor.types import Array

EPS = float(np.finfo(np.float64).eps)
ROUNDING = 8 * EPS
"""Of a value of the noise, beside the largest of the data's and the copies' values: what few additions leave."""
VALUES_AT_MOST = 2**18
"""Values of noise that are looked at row by row, about an eighth of a second; rows of many copies are fewer."""
FEWEST_ROWS, MOST_ROWS = 2**12, 2**17
MOST_COORDINATES = 256
"""Copies times attributes that are looked at row by row."""
RUN = 64
"""Rows that are looked at in one run, so that neighbours are among them."""
GRID_ROWS = 256
"""Rows that tell the grid that copies lie on."""
CELLS = 256
"""Places at which a distribution is compared with the law's."""
FINE = 2.0**-10
"""Noise that is known to no better than that share of its deviation is not looked at."""
SMALL = (2.0**-7, 2.0**-14, 2.0**-21, 2.0**-28, 2.0**-40)
LARGE = (2.0**-7, 2.0**-12)
MOST_PAIRS, MOST_JOINT = 64, 96
"""Pairs of copies, and combinations of copies and attributes, that are looked at, evenly among all."""
DENSITY = {"gaussian": 1.0 / math.sqrt(2.0 * math.pi), "uniform": 1.0 / math.sqrt(12.0)}
"""The largest density of noise of variance 1."""
DIFFERENCE = 1.0 / math.sqrt(6.0)
"""No less than the density of a difference of two such, of variance 1, whichever they are."""


class Rows(NamedTuple):
    """Rows that are looked at.

    Attributes
    ----------
    x : ndarray of shape (n, N)
    noise : ndarray of shape (n, M, N)
    grain : ndarray of shape (M, N)
        How well each value of the noise is known.
    """

    x: Array
    noise: Array
    grain: Array


def rows_wanted(rows: int, values: int) -> int:
    """Return how many of a table's rows are looked at, whose noise has so many values each."""
    return min(rows, max(FEWEST_ROWS, min(MOST_ROWS, VALUES_AT_MOST // values)))


def runs(length: int, wanted: int) -> NDArray[np.intp]:
    """Return which rows of a block are looked at: runs of neighbours, evenly from its first row to its last."""
    if wanted >= length:
        return np.arange(length)
    starts = np.linspace(0, length - RUN, max(2, round(wanted / RUN))).astype(np.intp)
    return np.unique(starts[:, None] + np.arange(min(RUN, length)))


def rows_of(blocks: Iterable[tuple[Array, Sequence[Array]]], chosen: Sequence[int], on_grid: bool) -> Rows:
    """Return the rows of some blocks together, of some copies.

    Parameters
    ----------
    blocks : iterable of (rows of the original, rows of every copy)
    chosen : sequence of int
        Numbers of the copies.
    on_grid : bool
        Whether copies may have been rounded to a grid; not if they were turned back since.
    """
    kept = [(x, np.stack([copies[copy - 1] for copy in chosen], axis=1)) for x, copies in blocks]
    x, y = np.concatenate([x for x, _ in kept]), np.concatenate([y for _, y in kept])
    largest = np.maximum(np.abs(x).max(axis=0), np.abs(y).max(axis=0))
    if not on_grid:
        return Rows(x, y - x[:, None], np.broadcast_to(ROUNDING * x.shape[1] * largest.max(), largest.shape))
    return Rows(x, y - x[:, None], np.maximum(ROUNDING * largest, grids(y.reshape(len(y), -1)).reshape(largest.shape)))


def grids(values: Array) -> Array:
    """Return the spacing of the grid of whole, decimal or binary fractions that each column lies on, 0 for 0 alone, shape (k,)."""
    values = values[:GRID_ROWS]  # of few rows it may be found coarser than it is, never finer
    mantissa, exponent = np.frexp(values)
    whole = (mantissa * 2.0**53).astype(np.int64)
    lowest = np.where(whole == 0, np.inf, np.ldexp((whole & -whole).astype(np.float64), exponent - 53)).min(axis=0)
    spacing = np.where(np.isinf(lowest), 0.0, lowest)
    for digits in range(10):
        for column in np.flatnonzero(_on(values, digits)).tolist():
            step = float(np.gcd.reduce(np.rint(values[:, column] * 10.0**digits).astype(np.int64)))
            spacing[column] = max(spacing[column], step / 10.0**digits)
    return np.asarray(spacing)


def _on(values: Array, digits: int) -> NDArray[np.bool_]:
    """Return which columns are whole multiples of ``10^−digits``, but for the last bit."""
    scaled = values * 10.0**digits
    near = np.abs(scaled - np.rint(scaled)) <= 2 * EPS * np.abs(scaled)
    return np.asarray((near & (np.abs(scaled) < 2.0**45)).all(axis=0))


class _Columns(NamedTuple):
    """Columns of ``t`` that are fine enough, ``v`` and ``g``, all of shape (n, C), and how well t is known, (C,)."""

    t: Array
    v: Array
    score: Array
    grain: Array
    names: list[str]

    @classmethod
    def of(cls, t: Array, grain: Array, names: Sequence[str], law: NoiseLaw) -> _Columns:
        """Keep the columns that are fine enough."""
        fine = np.flatnonzero(grain <= FINE)
        t = np.ascontiguousarray(t[:, fine])
        gaussian = law.distribution == "gaussian"
        v = ndtr(t) if gaussian else np.clip(0.5 + t / math.sqrt(12.0), 0.0, 1.0)
        return cls(t, v, t if gaussian else _scores(v), grain[fine], [names[place] for place in fine.tolist()])

    @property
    def size(self) -> Array:
        """``s``."""
        return np.asarray(np.abs(2.0 * self.v - 1.0))

    def joined(self, other: _Columns) -> _Columns:
        """Return the columns of both."""
        t, v, score = (np.hstack(pair) for pair in zip(self[:3], other[:3], strict=True))
        return _Columns(t, v, score, np.append(self.grain, other.grain), self.names + other.names)


def _scores(uniform: Array) -> Array:
    """Return normal scores of values that are uniform on (0, 1)."""
    return np.asarray(ndtri(np.clip(uniform, 1e-300, 1.0 - EPS / 2)))


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
    if n < 3:
        return []
    tests = [_no_noise(law, rows)]
    places = [f"{name!r} in copy {copy}" for copy in chosen for name in names]
    inner = _within_copies(law, rows)
    own = _Columns.of(inner[0].reshape(n, M * N), inner[1].ravel(), places, law)
    if not own.names:
        return [test for test in tests if test is not None]
    joint = _combinations(law, rows)
    every = own if joint is None else own.joined(joint).joined(_length(joint))
    size = every.size
    g, w = every.score, _scores(size)
    tests += [
        _distribution(every, law), _size(every, size, law), _without_noise(law, rows, chosen), _equal(law, rows, names, chosen),
        _repeats(own, size, law), _neighbours(g, w), _on_the_data(rows.x, g, w),
    ]  # fmt: skip
    tests += [] if joint is None else [_joint(joint.t, w[:, len(own.names) : -1])]
    return [test for test in tests if test is not None]


def _within_copies(law: NoiseLaw, rows: Rows) -> tuple[Array, Array]:
    """Return each copy's noise over its deviations, shape (n, M, N), and how well it is known, infinite where there is none.

    Of uniform noise, which is uniform before ``K_0``'s root is applied and not after it, with the root undone.
    """
    M, N = rows.grain.shape
    deviation = np.sqrt(np.clip(np.diag(law.covariance), 0.0, None)).reshape(M, N)
    if law.distribution != "gaussian" and isinstance(law, GaussianNoise):
        if whitening(law.shape).rows.shape[0] < N:
            return rows.noise, np.full((M, N), np.inf)
        undo = np.linalg.inv(psd_root(law.shape))
        sigma = np.sqrt(np.clip(np.diag(law.level_covariance), 0.0, None))[:, None]
        z, known = rows.noise @ undo.T, rows.grain @ np.abs(undo).T
        return _over(z, sigma), np.where(sigma > 0, _over(known, sigma), np.inf)
    return _over(rows.noise, deviation), np.where(deviation > 0, _over(rows.grain, deviation), np.inf)


def _over(values: Array, deviation: Array) -> Array:
    return np.asarray(values / np.where(deviation > 0, deviation, 1.0))


def _combinations(law: NoiseLaw, rows: Rows) -> _Columns | None:
    """Return whitened combinations of copies and attributes, evenly among all; Gaussian noise alone makes them independent."""
    if law.distribution != "gaussian":
        return None
    n, M, N = rows.noise.shape
    if isinstance(law, GaussianNoise):
        A, B = whitening(law.level_covariance).rows, whitening(law.shape).rows
    else:
        A, B = np.eye(1), whitening(law.covariance).rows
    count = len(A) * len(B)
    if count < 2:
        return None
    kept = np.linspace(0, count - 1, min(count, MOST_JOINT)).astype(np.intp)
    W = np.array([np.outer(A[k // len(B)], B[k % len(B)]).ravel() for k in kept.tolist()])
    u, known = rows.noise.reshape(n, M * N) @ W.T, np.abs(W) @ rows.grain.ravel()
    found = _Columns.of(u, known, ["a combination of copies and attributes"] * len(W), law)
    return found if found.names else None


def _length(joint: _Columns) -> _Columns:
    """Return the length of a row's whitened noise, which is χ of r degrees: the sizes of a row's values that go together make it uneven."""
    r = joint.t.shape[1]
    v = gammainc(r / 2.0, np.square(joint.t).sum(axis=1, keepdims=True) / 2.0)
    t = _scores(v)
    return _Columns(t, v, t, np.atleast_1d(2.0 * np.linalg.norm(joint.grain)), ["the whole of a row's noise"])


def _distribution(columns: _Columns, law: NoiseLaw) -> LawTest | None:
    """Return the test of Kolmogorov's distances, each taken at ``CELLS`` places: no more than the whole distance, and no sort."""
    n, C = columns.v.shape
    cells = np.minimum((columns.v * CELLS).astype(np.intp), CELLS - 1) + CELLS * np.arange(C)
    shares = np.bincount(cells.ravel(), minlength=C * CELLS).reshape(C, CELLS).cumsum(axis=1) / n
    gap = np.abs(shares - np.arange(1, CELLS + 1) / CELLS).max(axis=1)
    gap = np.clip(gap - DENSITY[law.distribution] * columns.grain, 0.0, None)
    place = int(gap.argmax())
    p = 2.0 * C * math.exp(-2.0 * n * float(gap[place]) ** 2)
    where = f"the largest distance from the law's distribution function, of {columns.names[place]}, is"
    return LawTest("distribution", min(1.0, p), C, n, float(gap[place]), 0.0, where)


def _size(columns: _Columns, s: Array, law: NoiseLaw) -> LawTest | None:
    """Return the test of how many values are near 0, and of how many are far from it."""
    n, C = columns.v.shape
    blur = 2.0 * DENSITY[law.distribution] * columns.grain + 4 * EPS
    found: list[tuple[Array, NDArray[np.intp], float, str]] = []
    for share, met in zip(SMALL, _below(s, SMALL), strict=True):
        p = np.where(share >= 8.0 * blur, _at_least(met, n, np.minimum(1.0, share + blur)), 1.0)
        found.append((p, met, share, "the share of values with next to no noise"))
    for share, met in zip(LARGE, _below(1.0 - s, LARGE), strict=True):
        more = _at_least(met, n, np.minimum(1.0, share + blur))
        fewer = 1.0 - _at_least(met + 1, n, np.maximum(0.0, share - blur))
        found.append((np.minimum(1.0, 2.0 * np.minimum(more, fewer)), met, share, "the share of values with most noise"))
    p, met, share, what = min(found, key=lambda one: float(one[0].min()))
    place, tests = int(p.argmin()), len(found) * C
    where = f"{what}, of {columns.names[place]}, is"
    return LawTest("size", min(1.0, tests * float(p[place])), tests, n, float(met[place] / n), share, where)


def _below(values: Array, bounds: Sequence[float]) -> list[NDArray[np.intp]]:
    """Return how many values of each column are below each of some falling bounds, shapes (C,)."""
    rows, columns = np.nonzero(values < bounds[0])
    few = values[rows, columns]
    return [np.bincount(columns[few < bound], minlength=values.shape[1]) for bound in bounds]


def _at_least(met: NDArray[np.integer], n: int, chance: Array) -> Array:
    """Return ``P(B ≥ met)`` of binomial B."""
    return np.asarray(np.where(met > n, 0.0, np.where(met > 0, betainc(np.maximum(met, 1), np.maximum(n - met + 1, 1), chance), 1.0)))


def _without_noise(law: NoiseLaw, rows: Rows, chosen: Sequence[int]) -> LawTest | None:
    """Return the test of the row with least noise, copy by copy: one that is out as it is shows where there are attributes enough."""
    n, M, N = rows.noise.shape
    found = []
    for place in range(M):
        own = law.of([place + 1])
        W = whitening(own.covariance).rows
        if law.distribution != "gaussian" and len(W) < N:
            continue
        r, known = len(W), float((np.abs(W) @ rows.grain[place]).max(initial=0.0))
        if r == 0 or known > FINE:
            continue
        least = float(np.sqrt(np.square(rows.noise[:, place] @ W.T).sum(axis=1).min()))
        reach = max(least, 8.0 * math.sqrt(r) * known)
        ball = r / 2 * math.log(math.pi) - float(gammaln(r / 2 + 1)) + r * math.log(max(reach, 1e-300))
        found.append((math.log(n) + ball + r * math.log(DENSITY[law.distribution]), least / math.sqrt(r), chosen[place]))
    if not found:
        return None
    chance, least, copy = min(found)
    p = min(1.0, len(found) * math.exp(min(0.0, chance)))
    return LawTest("rows without noise", p, len(found), n, least, 1.0, f"the least noise in a row of copy {copy}, in deviations, is")


def _equal(law: NoiseLaw, rows: Rows, names: Sequence[str], chosen: Sequence[int]) -> LawTest | None:
    """Return the test of differences of two copies' noise, and of that noise over its deviations, near 0."""
    n, M, N = rows.noise.shape
    pairs = [(i, k) for i in range(M) for k in range(i)]
    blocks = law.covariance.reshape(M, N, M, N)
    worst, tests = (1.0, 0.0, 0.0, ""), 0
    for i, k in pairs[:: max(1, math.ceil(len(pairs) / MOST_PAIRS))]:
        own, other, both = (np.einsum("nn->n", blocks[a, :, b]) for a, b in ((i, i), (k, k), (i, k)))
        scaled = np.sqrt(own / np.where(other > 0, other, np.inf))
        for factor in (np.ones(N), scaled):
            variance = own + factor**2 * other - 2.0 * factor * both
            deviation, known = np.sqrt(np.clip(variance, 0.0, None)), rows.grain[i] + factor * rows.grain[k]
            fine = np.flatnonzero((known <= FINE * deviation) & (variance > HARDLY_ANY * (own + factor**2 * other)) & (factor > 0))
            d = np.abs(rows.noise[:, i, fine] - factor[fine] * rows.noise[:, k, fine]) / deviation[fine]
            blur = known[fine] / deviation[fine]
            for share in SMALL[:4]:
                met = (d < share).sum(axis=0)
                p = np.where(share >= 8.0 * blur, _at_least(met, n, np.minimum(1.0, 2.0 * DIFFERENCE * (share + blur))), 1.0)
                tests += fine.size
                if fine.size and (least := float(p.min())) < worst[0]:
                    place = int(p.argmin())
                    where = f"the share of rows with the same noise in copies {chosen[k]} and {chosen[i]}, of {names[fine[place]]!r}, is"
                    worst = (least, float(met[place] / n), 2.0 * DIFFERENCE * share, where)
    if not tests:
        return None
    return LawTest("equal copies", min(1.0, tests * worst[0]), tests, n, worst[1], worst[2], worst[3] or "no share is unlikely:")


def _repeats(columns: _Columns, size: Array, law: NoiseLaw) -> LawTest | None:
    """Return the test of how many values have the size of another one, to as many digits as are known."""
    n = len(size)
    reach = 8.0 * DENSITY[law.distribution] * columns.grain + 8 * EPS
    fine = np.flatnonzero(n * reach <= 0.01)
    if not fine.size:
        return None
    ordered = np.ascontiguousarray(size[:, fine].T)
    ordered.sort(axis=1)
    met = (np.diff(ordered, axis=1) <= reach[fine, None]).sum(axis=1)
    expected = float(n) ** 2 * reach[fine]
    p = np.where(met > 0, gammainc(np.maximum(met, 1), expected), 1.0)  # P(Poisson ≥ met)
    place = int(p.argmin())
    where = f"the share of values that have the size of another, of {columns.names[fine[place]]}, is"
    return LawTest("repeats", min(1.0, fine.size * float(p[place])), fine.size, n, float(met[place] / n), float(expected[place] / n), where)


def _neighbours(g: Array, w: Array) -> LawTest | None:
    """Return the test of correlations with the row before: all pairs of columns, and sizes; pairs of rows that share none, both ways."""
    n = len(g) - len(g) % 2
    if n < 4:
        return None
    z = []
    for first, second in ((slice(0, n, 2), slice(1, n, 2)), (slice(1, n - 1, 2), slice(2, n, 2))):
        length, sizes = np.sqrt(np.square(g[first]).sum(axis=0)), np.sqrt(np.square(w[first]).sum(axis=0))
        z += [(g[first].T @ g[second] / length[:, None]).ravel(), np.einsum("nc,nc->c", w[first], w[second]) / sizes]
    return _normal("neighbouring rows", np.concatenate(z), n, "a correlation of a row's noise with that of the row before is")


def _on_the_data(x: Array, g: Array, w: Array) -> LawTest | None:
    """Return the test of correlations of noise, and of its size, with where a record lies, how far out, and over all attributes.

    Any function of the data will do; these are bounded, so that no outlier drowns the others: ``d/(d̄ + |d|)`` of the distance ``d`` from
    the mean, ``d̄`` its mean size.
    """
    n, d = len(x), x - x.mean(axis=0)
    usual = np.abs(d).mean(axis=0)
    side = d / (np.where(usual > 0, usual, 1.0) + np.abs(d))
    a = np.hstack([side, np.abs(side), np.abs(side).sum(axis=1, keepdims=True)])
    a -= a.mean(axis=0)
    norm = np.sqrt(np.square(a).sum(axis=0))
    varied = norm > 1e-9 * math.sqrt(n)
    if not varied.any():
        return None
    a = a[:, varied] / norm[varied]
    z = np.concatenate([(a.T @ g).ravel(), (a.T @ w).ravel()])
    return _normal("dependence on the data", z, n, "a correlation of the noise, or of its size, with where a record lies is")


def _normal(statistic: str, z: Array, n: int, where: str) -> LawTest:
    """Return the test that each of these is N(0, 1), told as a correlation."""
    worst = float(np.abs(z).max())
    return LawTest(statistic, min(1.0, 2.0 * z.size * float(ndtr(-worst))), z.size, n, worst / math.sqrt(n), 0.0, where)


def _joint(u: Array, w: Array) -> LawTest | None:
    """Return the test that whitened noise, and its size, of one combination foretells no other's."""
    n, C = u.shape
    if C < 2 or n < 4:
        return None
    length, sizes = np.sqrt(np.square(u).sum(axis=0)), np.sqrt(np.square(w).sum(axis=0))
    r = np.stack([w.T @ w / np.outer(sizes, sizes), u.T @ w / np.outer(length, sizes)])
    r[:, np.arange(C), np.arange(C)] = 0.0
    worst = min(float(np.abs(r).max()), 1.0 - 1e-15)
    tests = C * (C - 1) // 2 + C * (C - 1)
    p = 2.0 * tests * float(stdtr(n - 1, -worst * math.sqrt((n - 1) / (1.0 - worst**2))))
    return LawTest("joint law", min(1.0, p), tests, n, worst, 0.0, "a correlation of the sizes of noise in two copies or attributes is")


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
    units, known = _over(rows.noise, deviation), _over(rows.grain, deviation)
    parts = [(law.level_covariance, 1), (law.shape, 2)] if isinstance(law, GaussianNoise) else [(law.covariance, 0)]
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
