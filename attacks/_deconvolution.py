"""Extreme deconvolution: fit a normal mixture to noisy rows by EM.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``u`` | observed rows, ``x + z``, in coordinates with independent noise | (n, r) | ``auditor.numerics.linear_algebra.Pencil`` |
| ``s`` | variances of the noise ``z``, which may be 0 | (r,) | |
| ``α, m, V`` | weights, means and covariances of the components of ``x`` | (K,), (K, r), (K, r, r) | bovy2011 |
| ``T`` | ``V + diag(s)``: covariance of one component's rows | (K, r, r) | bovy2011 |
| ``q`` | posterior probability of each component, given a row | (n, K) | bovy2011 |
| ``b`` | ``m + V T⁻¹ (u − m)``: posterior mean of ``x`` in that component | (n, K, r) | bovy2011 |
| ``B`` | ``V − V T⁻¹ V``: its posterior covariance | (K, r, r) | bovy2011 |

``b`` is affine in ``u``, so a step needs each component's weighted moments of ``u`` and K matrices of
shape (r, r). Noise of another law has its own expected moments (``_expectation_propagation``).

*Long tails.* If a row is too far for a normal, each mixture keeps wider ones, up to that row's
likeliest width, with the weight of one row each. A row far from all others then keeps its place.

The number of components doubles from 1 while the held-out likelihood rises by a standard error. A
component shares as many rows with all others as it has dimensions, and one: few rows then suffice.

*Atoms.* A point mass is a component whose variance converges slowly to 0. A component much narrower
than the noise becomes an atom at once, unless that lowers the held-out likelihood.

Reference: bovy2011. *Limit*: with strong noise only one component is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, cached_property
from itertools import chain
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.numerics.blocks import evenly
from auditor.plugin import Array, scipy, unprinted

CHUNK_VALUES = 2**14
"""Numbers per piece: 128 kB stay in the cache."""
WIDE = 16
"""Attributes beyond which rows are weighed by component."""
GRAIN = 1e-10
"""Least relative noise variance. It keeps ``T`` regular if neither copies nor component have
variance."""
GAIN, SEARCHED, SETTLED = 0.3, 1_000, 5_000
"""EM stops when a step gains less log-likelihood, in nats over all rows or over each so many: first
while sizes are tried, then at the end. Run to convergence, deconvolution makes spikes."""
MANY_PARAMETERS = 50
"""Parameters of a component beyond which a step must gain in proportion: small gains are then noise."""
MISSING = 1e9
"""Noise variance of an entry that counts as missing."""
NARROW = 0.1
"""Component variance over noise variance, in one attribute, below which an atom is tried."""
FIRST_LOOK = 5_000
"""Rows, at most three in four, that fit each number of components. All other rows validate it. The
chosen mixture is refitted to all."""
FEWEST_ROWS = 50
"""With fewer rows, only one component is fitted."""
ROWS_PER_COMPONENT, ROWS_PER_PARAMETER = 15, 5
"""Rows per component, and per parameter where noise-free entries let no component share rows."""
LONG_TAILED = 1.0
"""Excess kurtosis of noise-free values beyond which halves differ in width."""
UNLIKELY = 1e-3
"""Chance that normal rows have one that is too far for a normal."""
FARTHER, LEAST_WIDER = 9.0, 2.0
"""Ratio of the variances of wider normals, and their least multiple of the first."""
PATIENCE = 2
"""Unsuccessful doublings before the search ends: two components may not fit eight clusters."""


@unprinted
class Mixture:
    """A mixture of K normals; a covariance singular in a direction is an atom.

    Attributes
    ----------
    weights : ndarray of shape (K,)
        ``α``, sum 1.
    means : ndarray of shape (K, r)
    covariances : ndarray of shape (K, r, r)
        Positive semi-definite.
    fixed : int
        Number of last components that EM leaves as they are, each with the weight of one row.
    """

    weights: Array
    means: Array
    covariances: Array
    fixed: int = 0

    @property
    def size(self) -> int:
        return len(self.weights)

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        return self.weights, self.means, self.covariances


class Posterior:
    """Posterior under normal noise of variances (r,), or (K, r) by component."""

    def __init__(self, prior: Mixture, s: Array) -> None:
        self.prior, self.noise, m = prior, s, prior.means
        L = np.linalg.cholesky(prior.covariances + (s + GRAIN)[..., None] * np.eye(m.shape[1]))
        self._half = np.linalg.inv(L)  # L⁻¹: T⁻¹ = L⁻ᵀL⁻¹
        self._inverse = self._half.swapaxes(1, 2) @ self._half
        self._slope = (self._inverse @ m[:, :, None])[:, :, 0]
        log_weights = np.log(np.maximum(prior.weights, np.finfo(float).tiny))
        log_scale = np.log(np.sqrt(2.0 * np.pi) * np.einsum("krr->kr", L)).sum(axis=1)
        constant = log_weights - log_scale - 0.5 * (self._slope * m).sum(axis=1)
        i, j = upper(m.shape[1])
        bend = np.where(i == j, 0.5, 1.0) * self._inverse[:, i, j]
        # of ``features`` in ``log α_k N(u; m_k, T_k)``, by component
        self._factors = np.hstack([constant[:, None], self._slope, -bend])

    @property
    def size(self) -> int:
        return self.prior.size

    def without(self, missing: NDArray[np.bool_]) -> Posterior:
        return Posterior(self.prior, np.where(missing, MISSING, self.noise))

    @property
    def parameters(self) -> int:
        """Number of fitted coefficients of an entry of a posterior mean."""
        return self.prior.means.size + self.prior.size

    @cached_property
    def gain(self) -> Array:
        """``V T⁻¹`` of every component, shape (K, r, r)."""
        # ``V`` times ``T⁻¹`` would be wrong in the sixth digit where noise is lacking
        return (self._half @ self.prior.covariances).swapaxes(1, 2) @ self._half

    def chances_of(self, shown: Array, kind: type[np.floating] = np.float64) -> tuple[Array, Array]:
        """``q`` and rows' log-likelihoods, shapes (K, n) and (n,), given features."""
        # one product for all components: three times as fast as by component
        log_q = self._factors[:, : len(shown)] @ shown
        if len(shown) == 1 + self.prior.means.shape[1]:
            log_q -= 0.5 * np.einsum("krn,rn->kn", self._inverse @ shown[1:], shown[1:])
        return normalised(log_q, kind)

    def chances(self, u: Array) -> tuple[Array, Array]:
        # products are dearer than a few components
        return self.chances_of(features(u, min(WIDE, self.size)))

    def along(self, u: Array, a: Array) -> tuple[Array, Array, Array, Array]:
        """Posterior mixture of ``aᵀx`` given rows.

        ``q`` and means, shapes (K, n), deviations, (K,), and rows' log-likelihoods, (n,).
        """
        q, log_likelihood = self.chances(u)
        to = a @ self.gain
        mean = (self.prior.means * (a - to)).sum(axis=1)[:, None] + to @ u.T
        variance = (to * self.noise) @ a  # V − V T⁻¹ V = V T⁻¹ S, without cancellation
        return q, mean, np.sqrt(np.clip(variance, 0.0, None)), log_likelihood

    def mean(self, u: Array) -> Array:
        """Posterior mean, shape (n, r).

        ``u − s Σ_k q_k T_k⁻¹ (u − m_k)``, exact without noise.
        """
        found, s = np.array(u), np.broadcast_to(self.noise, self._slope.shape)
        inverse, slope = s[..., None] * self._inverse, s * self._slope
        for start, stop in evenly(0, len(u), self.prior.means.size, 4 * CHUNK_VALUES):
            v = u[start:stop]
            q, _ = self.chances(v)
            found[start:stop] -= np.einsum("kn,krn->nr", q, inverse @ v.T) - q.T @ slope
        return found


def features(u: Array, widest: int) -> Array:
    """``1, u_i, u_i u_j`` (i ≤ j) of rows, beyond ``widest`` attributes ``1, u_i``."""
    v = np.ascontiguousarray(u.T)
    i, j = upper(len(v) if len(v) <= widest else 0)
    return np.concatenate([np.ones((1, len(u))), v, v[i] * v[j]])


@cache
def upper(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Places of an upper triangle."""
    return np.triu_indices(size)


def normalised(log_q: Array, kind: type[np.floating] = np.float64) -> tuple[Array, Array]:
    """Columns of ``q``, sum 1, and the logarithms of their sums before."""
    top = log_q.max(axis=0)
    q = np.subtract(log_q, top, out=np.empty(log_q.shape, kind), casting="same_kind")
    q = np.exp(q, out=q).astype(np.float64, copy=False)
    total = q.sum(axis=0)
    q *= 1.0 / total
    return q, top + np.log(total)


class Moments(NamedTuple):
    """Expected sums over rows, by component, with values about the previous means ``m``.

    ``Σ q``, shape (K,), ``Σ q (x − m)``, shape (K, r), ``Σ q (x − m)(x − m)ᵀ``, shape (K, r, r),
    and the log-likelihood.
    """

    total: Array
    first: Array
    second: Array
    log_likelihood: float


@unprinted
class NoisyRows:
    """Rows observed through normal noise, for which ``u`` is sufficient.

    ``u``, shape (n, r), summarises each entry's copies; ``s`` and ``fourth``, shape (r,), are the variance
    and fourth cumulant of its noise.
    """

    error: ClassVar[float] = 0.0
    """Error of a row's log-likelihood, in nats. More components must gain more than this."""
    sure_of: ClassVar[float] = 1.0
    """Standard errors that more components must gain."""
    most_steps: ClassVar[int] = 200
    """Most EM steps. Noise that is not normal starts from the fit under normal noise."""

    own_start: ClassVar[bool] = True

    u: Array
    s: Array
    fourth: Array

    def part(self, where: NDArray[np.generic] | slice) -> NoisyRows:
        """Select rows by their indices, a slice or a mask."""
        return replace(self, u=self.u[where])

    def noise(self, prior: Mixture) -> Array:
        """Variances, (r,), or (K, r) by component."""
        return self.s

    def pieces(self, width: int) -> Iterator[NoisyRows]:
        for start, stop in evenly(0, len(self.u), width, CHUNK_VALUES):
            yield self.part(slice(start, stop))

    @cached_property
    def _shown(self) -> list[Array]:
        """Features of pieces, kept between steps."""
        return [features(part.u, WIDE) for part in self.pieces(8)]

    def chances(self, prior: Mixture) -> tuple[Array, Array]:
        posterior = Posterior(prior, self.noise(prior))
        q, log_likelihood = zip(*map(posterior.chances_of, self._shown), strict=True)
        return np.concatenate(q, axis=1), np.concatenate(log_likelihood)

    def moments(self, prior: Mixture) -> Moments:
        """E step's sums."""
        m, V, posterior = prior.means, prior.covariances, Posterior(prior, self.noise(prior))
        (K, r), log_likelihood = m.shape, 0.0
        (i, j), second = upper(r), np.zeros((K, r, r))
        sums = np.zeros((K, len(self._shown[0])))
        for shown in self._shown:
            # single precision: a quarter of the time
            q, log = posterior.chances_of(shown, np.float32)
            sums += q @ shown.T
            log_likelihood += float(log.sum())
            if r > WIDE:
                second += [(shown[1:] * each) @ shown[1:].T for each in q]
        total, first = sums[:, 0], sums[:, 1 : 1 + r]
        if r <= WIDE:
            second[:, i, j] = second[:, j, i] = sums[:, 1 + r :]
        d = first - total[:, None] * m
        second -= m[:, :, None] * first[:, None] + d[:, :, None] * m[:, None]
        gain = posterior.gain
        # b − m = V T⁻¹ (u − m), and B = V − V T⁻¹ V
        second = gain @ second @ gain.swapaxes(1, 2) + total[:, None, None] * (V - gain @ V)
        return Moments(total, (gain @ d[:, :, None])[:, :, 0], second, log_likelihood)


Placing = Callable[[Mixture, Any], Any]
"""Posterior means of a mixture, with weights fitted to rows, and a ``risk`` of further rows."""


def common(prior: Mixture, s: Array) -> Array:
    """Harmonic mean of each component's covariance and all components', (K, r, r).

    The latter is of ``T``, less the noise, which is above 0. A component's atom stays an atom.
    """
    values, axes = np.linalg.eigh(prior.covariances)
    # V = R Rᵀ without variances of rounding errors, which would double in each step
    R = axes * np.sqrt(np.where(values > GRAIN, values, 0.0))[:, None]
    one = np.eye(len(s))
    precision = np.tensordot(prior.weights, np.linalg.inv(prior.covariances + np.diag(s)), 1)
    every = np.linalg.inv(precision) - np.diag(s) + GRAIN * one
    # (V⁻¹ + every⁻¹)⁻¹ = R (I + Rᵀ every⁻¹ R)⁻¹ Rᵀ
    inner = one + R.swapaxes(1, 2) @ np.linalg.solve(every, R)
    return 2.0 * R @ np.linalg.solve(inner, R.swapaxes(1, 2))


def em_step(prior: Mixture, rows: NoisyRows, shared: int = 0) -> tuple[Mixture, float]:
    """Next mixture, and the log-likelihood before.

    ``shared`` further rows of covariance ``common`` stabilise components of few rows.
    """
    found = rows.moments(prior)
    total = np.maximum(found.total, np.finfo(float).tiny)
    moved = found.first / total[:, None]
    V = found.second - total[:, None, None] * moved[:, :, None] * moved[:, None, :]
    if shared:
        V += shared * common(prior, rows.s)
    V /= (total + shared)[:, None, None]
    V = (V + V.swapaxes(1, 2)) / 2.0
    free = prior.size - prior.fixed
    total[free:] = 1.0
    moved[free:], V[free:] = 0.0, prior.covariances[free:]
    return Mixture(total / total.sum(), prior.means + moved, V, prior.fixed), found.log_likelihood


def long_tailed(start: Mixture, rows: NoisyRows) -> Mixture:
    """Add wider normals if a row is too far for one, up to that row's likeliest width."""
    n, r = rows.u.shape
    m, V = start.means, np.diag(np.diag(start.covariances[0]))
    variance = np.diag(V) + rows.s + GRAIN
    farthest = ((rows.u - m) ** 2 / variance).sum(axis=1).max()
    if farthest < scipy.special.chdtri(r, UNLIKELY / n):
        return start
    count = int(np.log(max(farthest / r / LEAST_WIDER, 1.0)) / np.log(FARTHER)) + 1
    widths = farthest / r / FARTHER ** np.arange(count)
    weights = np.full(widths.size, 1.0 / n)
    return Mixture(
        np.append(1.0 - weights.sum(), weights),
        np.tile(m, (widths.size + 1, 1)),
        np.concatenate([start.covariances, np.multiply.outer(widths, V)]),
        widths.size,
    )


def rows_of_own(r: int) -> int:
    """Rows of a component that need no further ones."""
    return ROWS_PER_PARAMETER * (r + 1) * (r + 2) // 2


def climbed(prior: Mixture, rows: NoisyRows, per: int) -> Mixture:
    """Run EM from a start until a step gains less than ``GAIN``, or so much per rows."""
    K, r = prior.means.shape
    parameters = r * (r + 3) / 2
    few = len(rows.u) < K * rows_of_own(r)
    last, shared = -np.inf, r + 1 if few and rows.s.all() else 0
    least = GAIN * max(1.0, len(rows.u) / per) * max(1.0, parameters / MANY_PARAMETERS)
    for _ in range(rows.most_steps):
        new, likelihood = em_step(prior, rows, shared)
        if likelihood - last < least:
            return prior
        prior, last = new, likelihood
    return prior


def split(prior: Mixture, rows: NoisyRows, most: int) -> Mixture:
    """Split components in two, the heaviest first, up to ``most`` in total.

    The halves lie along the axis on which the rows look least normal, by the first terms of
    negentropy: ``skewness²/12 + excess kurtosis²/48``. Long tails split by width, other shapes by
    place. The pair keeps the component's mean and covariance.
    """
    q, _ = rows.chances(prior)
    heaviest = np.argsort(-prior.weights[: prior.size - prior.fixed], kind="stable")[
        : most - prior.size
    ]
    parts = [
        _halves(*each, rows, q[k]) if k in heaviest else [each]
        for k, each in enumerate(zip(prior.weights, prior.means, prior.covariances, strict=True))
    ]
    weights, means, covariances = zip(*chain.from_iterable(parts), strict=True)
    return Mixture(np.array(weights), np.array(means), np.array(covariances), prior.fixed)


def _halves(
    weight: float, m: Array, V: Array, rows: NoisyRows, q: Array
) -> list[tuple[float, Array, Array]]:
    """Both halves of a component; the component if it has no width."""
    values, axes = np.linalg.eigh(V)
    z, q = (rows.u - m) @ axes, q / max(q.sum(), np.finfo(float).tiny)
    z = z - q @ z
    variance = np.maximum(q @ z**2, GRAIN)
    z = z / np.sqrt(variance)
    square = z * z  # products: powers of arrays are twenty times slower
    kurtosis = q @ (square * square) - 3.0 - rows.fourth @ axes**4 / variance**2
    skewed, tailed = (q @ (square * z)) ** 2 / 12.0, kurtosis**2 / 48.0
    best = int(np.where(values > GRAIN, skewed + tailed, -1.0).argmax())
    if values[best] <= GRAIN:
        return [(weight, m, V)]
    step = axes[:, best] * np.sqrt(values[best] / 2.0)
    along, of_x = np.outer(step, step), kurtosis[best] * (variance[best] / values[best]) ** 2
    if of_x > LONG_TAILED and tailed[best] > skewed[best]:
        return [(weight / 2.0, m, V + sign * along) for sign in (1.0, -1.0)]
    return [(weight / 2.0, m + sign * step, V - along) for sign in (1.0, -1.0)]


def with_atoms(prior: Mixture, s: Array, A: Array) -> Mixture:
    """Replace components narrower than the noise by atoms in that attribute.

    ``V − V a aᵀV / aᵀVa``: the covariance given that attribute, ``aᵀx``. A component narrower than
    the grain is an atom already.

    ``A`` has shape (N, r): attributes in the coordinates of ``u``.
    """
    covariances, free = prior.covariances.copy(), prior.size - prior.fixed
    for V, own in zip(covariances[:free], np.broadcast_to(s, prior.means.shape), strict=False):
        for a, noise in zip(A, A**2 @ own, strict=True):
            along = V @ a
            # below the grain ``Va`` is rounding error
            if GRAIN * noise < a @ along < NARROW * noise:
                V -= np.outer(along, along) / (a @ along)
    return Mixture(prior.weights, prior.means, covariances, prior.fixed)


def learn(
    start: Mixture, rows: NoisyRows, A: Array, most: int, placing: Placing | None = None
) -> Mixture:
    """Fit a mixture to noisy rows, with the number of components validated.

    ``start`` has one component, and ``A``, shape (N, r), the attributes in the coordinates of ``u``.
    Each size must raise the likelihood of held-out rows. ``start`` is chosen if its ``risk`` on the
    same rows is less by a standard error.
    """
    n, r = rows.u.shape
    if n < FEWEST_ROWS or r == 0:
        return start
    most = min(most, n // (ROWS_PER_COMPONENT if rows.s.all() else rows_of_own(r)))
    rows = rows.part(np.lexsort(rows.u.T))
    teaching = np.diff(np.floor(np.arange(n + 1) * min(0.75, FIRST_LOOK / n))) > 0
    # other likelihoods start from the fit under plain normal noise
    plain = rows if rows.own_start else NoisyRows(rows.u, rows.s, rows.fourth)
    held, rest = rows.part(~teaching), plain.part(teaching)

    def fitted(grown: Mixture) -> tuple[Mixture, Array]:
        """Of EM's results with and without atoms, the likelier of held-out rows."""
        tried = climbed(grown, rest, SEARCHED)
        pointed, fits = with_atoms(tried, rest.noise(tried), A), [tried]
        if not np.array_equal(pointed.covariances, tried.covariances):
            fits.insert(0, climbed(pointed, rest, SEARCHED))
        each = [(mixture, held.chances(mixture)[1]) for mixture in fits]
        return max(each, key=lambda fit: float(fit[1].sum()))

    tried = long_tailed(start, plain) if rows.own_start else start
    judged, failures, most = held.chances(start)[1], 0, most + tried.fixed
    if tried.fixed:
        tried, judged = fitted(tried)
    best = one = tried
    while tried.size < most and failures < PATIENCE:
        grown = split(tried, rest, min(2 * tried.size - tried.fixed, most))
        if grown.size == tried.size:
            break
        tried, likelihood = fitted(grown)
        gained = likelihood - judged
        if gained.mean() > rows.error + rows.sure_of * gained.std() / np.sqrt(gained.size):
            best, judged, failures = tried, likelihood, 0
        else:
            failures += 1
    if placing is not None and best is not one and n <= FIRST_LOOK:
        risks = [placing(each, rows.part(teaching)).risk(held) for each in (best, one)]
        gained = risks[0] - risks[1]
        if gained.mean() > gained.std() / np.sqrt(gained.size):
            best = one
    if best is start:
        return start
    best = climbed(best, plain, SETTLED)
    return best if rows.own_start else climbed(best, rows, SETTLED)
