"""Markov chain of one attribute along the rows, with any margin and with jumps.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``y`` | an attribute of the combined copy, with noise of variance s | (n,) | |
| ``x, π`` | grid over the copy's range, and the data's margin on it, by EM | (G,), (G,) | laird1978 |
| ``z`` | normal scores of x under π | (G,) | |
| ``T`` | ``(1 − p) N(z'; ρ z, 1 − ρ²) + p π``: a Gaussian copula, and jumps with probability p | (G, G) | |
| ``x, π, T`` | or few points, their shares and moves, all of maximum likelihood | (K,), (K,), (K, K) | baum1970 |
| ``f_t, b_t`` | density of row t given earlier rows, and the likelihood of later rows | (G,) | rabiner1989 |

A random walk has ρ near 1, a household or a sorted key ρ = 1 and jumps. ρ and p maximise the
likelihood. Rows are independent unless it rises by ``SURE_OF``, and normal scores or their squares have
memory. Counters, cycles and codes move between few points: moves learnt from half of the windows must
predict the others better than the copula and than independence.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product

import numpy as np

from auditor.plugin import Array, Flags, Indices, Pair, scipy, unprinted

from ._spectra import has_memory, periodograms
from .serial_posterior import by_row, expected, forward, windows

POINTS, STEPS = 96, 60
"""Grid points; EM steps."""
FITTED, LENGTH, OVERLAP = 2048, 256, 128
"""Rows of a fit at most, of a piece, and of an overlap between pieces."""
TOGETHER = 32
"""Pieces of all attributes per array: 25 MB."""
# candidates; first pairs
RHO, JUMPS = (0.5, 0.8, 0.95, 0.98, 0.99, 0.995, 0.998, 0.9995, 1.0), (0.0, 0.02, 0.1, 0.3)
FIRST = (0.5, 0.0), (0.8, 0.0), (0.98, 0.0), (0.998, 0.02), (1.0, 0.1), (1.0, 0.3)
SURE_OF = 6.0
"""Least gain of log-likelihood over independent rows."""
TABLED = 4096
"""Values of a copy with a tabled mean."""
FEW, WINDOW, OWN = 16, 16, 1.0
"""Points that rows move between, rows of a window, and moves to every point by its share."""
GAIN, SURE_OF_MOVES = 0.1, 3.0
"""Gain of log-likelihood that ends EM, and standard errors by which moves must predict better."""
INDEPENDENT, MOVES = (0.0, 1.0), (2.0, 0.0)
"""ρ and p of independent rows, and in place of those of a chain with moves of any shape."""
TINY, LEAST = 1e-100, 1e-12


@unprinted
class Chain:
    """Chain of an attribute along the rows.

    Each ``group`` of rows starts from the density ``first``.
    """

    x: Array
    first: Array
    T: Array
    s: float
    group: int
    dependent: bool

    def likelihoods(self, y: Array) -> Array:
        return np.exp(-0.5 * (y[..., None] - self.x) ** 2 / self.s) + TINY

    def alone(self, y: Array) -> Array:
        """Mean, and means and own shares given each row alone, shape (3, n)."""
        t, *table = self._table
        return np.stack([np.interp(y, t, each) for each in table])

    @cached_property
    def _table(self) -> Array:
        reach = 4.0 * np.sqrt(self.s)
        t = np.linspace(self.x.min() - reach, self.x.max() + reach, TABLED)
        L = self.likelihoods(t)
        return np.stack([t, *moments(np.broadcast_to(self.first, L.shape), L, self.x, self.s)])

    def windows(self, y: Array) -> Pair:
        """Windows of likelihoods over each row's greatest, and its logarithm, (n,)."""
        L = self.likelihoods(y)
        top = L.max(axis=1)
        return windows(L / top[:, None], WINDOW), np.log(top)


def passed(first: Array, T: Array, L: Array, starts: Flags) -> Iterator[Pair]:
    """Yield densities of rows given earlier rows, and likelihoods, of K chains and c pieces.

    Shapes (K, c, G) and (K, c, 1). ``first`` has shape (K, 1, G), ``T`` (K, G, G), likelihoods of
    rows ``L`` (n, K or 1, c, G), and first rows of groups ``starts`` (n, c).
    """
    f = np.broadcast_to(first, (len(T), *L.shape[2:]))
    for here, new in zip(L, starts[:, :, None], strict=True):
        if new.any():
            f = np.where(new, first, f)
        q = f * here
        total = q.sum(axis=2, keepdims=True)
        yield f, total
        f = (q / total) @ T


def estimates(chains: Sequence[Chain], stretches: Iterable[tuple[Array, int]]) -> list[Array]:
    """Means given other rows, means given all, and own shares of each stretch, (3, n, N).

    A stretch has one column per chain, shape (n, N), and its first row's place in the table.
    """
    held = list(stretches)
    found = [np.stack([*map(Chain.alone, chains, y.T)], axis=2) for y, _ in held]
    sizes = [chain.dependent * len(chain.x) for chain in chains]
    for size in {*sizes} - {0}:
        some = [a for a, each in enumerate(sizes) if each == size]
        taken, parts = [chains[a] for a in some], [(y[:, some], first) for y, first in held]
        for whole, part in zip(found, _estimates(taken, parts), strict=True):
            whole[:, :, some] = part
    return found


def _estimates(chains: Sequence[Chain], stretches: Sequence[tuple[Array, int]]) -> Iterator[Array]:
    parts, sizes = list[tuple[Array, Flags]](), [len(y) for y, _ in stretches]
    for (y, first), n in zip(stretches, sizes, strict=True):
        places = np.arange(-OVERLAP, LENGTH + OVERLAP)[:, None] + np.arange(0, n, LENGTH)
        Y = np.where((places < 0) | (places >= n), np.nan, y.T[:, np.clip(places, 0, n - 1)])
        parts.append((Y, (places + first) % chains[0].group == 0))
    Y, starts = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
    together = max(1, TOGETHER // len(chains))
    pieces = [np.s_[..., start : start + together] for start in range(0, Y.shape[2], together)]
    found = [smoothed(chains, Y[some], starts[some]) for some in pieces]
    every = np.concatenate(found, axis=3).transpose(0, 3, 1, 2)
    ends = np.cumsum([-(-n // LENGTH) for n in sizes])
    for part, n in zip(np.split(every, ends[:-1], axis=1), sizes, strict=True):
        yield part.reshape(3, -1, len(chains))[:, :n]


def smoothed(chains: Sequence[Chain], Y: Array, starts: Flags) -> Array:
    """Estimates of pieces without their overlaps, shape (3, LENGTH, N, c).

    Of values ``Y``, shape (N, LENGTH + 2 OVERLAP, c), NaN outside of a stretch.
    """
    x, first, T = (np.stack([getattr(c, name) for c in chains]) for name in ("x", "first", "T"))
    L = np.stack([chain.likelihoods(y) for chain, y in zip(chains, Y, strict=True)], axis=1)
    L[np.isnan(L)] = 1.0
    stop = len(L) - OVERLAP
    q = np.empty_like(L[OVERLAP:stop])
    before = passed(first[:, None], T, L, starts)
    for t, (f, _) in zip(range(-OVERLAP, len(q)), before, strict=False):
        if t >= 0:
            q[t] = f
    b, back = np.ones(L.shape[1:]), np.ascontiguousarray(T.swapaxes(1, 2))
    for t in range(len(L) - 1, OVERLAP, -1):
        b = (L[t] * b) @ back
        b /= b.max(axis=2, keepdims=True)
        if starts[t].any():
            b[:, starts[t]] = 1.0
        if t <= stop:
            q[t - 1 - OVERLAP] *= b
    return moments(q, L[OVERLAP:stop], x, np.array([[chain.s] for chain in chains]))


def moments(q: Array, L: Array, x: Array, s: Array | float) -> Array:
    """Means by densities q up to a factor, and means and variances over s by ``q L``."""
    powers = np.stack([np.ones_like(x), x, x**2], axis=-1)
    (one, others, _), (total, mean, square) = (
        np.moveaxis(each @ powers, -1, 0) for each in (q, q * L)
    )
    mean = mean / total
    return np.stack([others / one, mean, (square / total - mean**2) / s])


def some_places(n: int) -> Indices:
    """Places of at most ``FITTED`` rows in even pieces, one a line."""
    c = -(-n // LENGTH)
    places = np.arange(n - n % c).reshape(c, -1)
    return places[:: -(-places.size // FITTED)]


def independent(y: Array) -> bool:
    """Whether normal scores of rows y and their squares have no memory."""
    y = y[some_places(len(y))]
    z = scipy.special.ndtri((y.ravel().argsort().argsort() + 0.5) / y.size).reshape(y.shape)
    both = np.stack([z, (z * z - 1.0) / np.sqrt(2.0)], axis=2)
    return not has_memory(periodograms([both], *y.shape[::-1]), len(y))


def fitted_chain(
    y: Array, s: float, group: int, start: tuple[float, float] | None = None, free: bool = True
) -> tuple[Chain, tuple[float, float]]:
    """Chain of maximum likelihood with ρ and p; ``start`` fixes ρ and p.

    Moves of any shape are tried if ``free``.
    """
    s = max(s, 1e-9 * y.var(), TINY)
    margin = 0.8 * np.sqrt(s)
    x = np.linspace(y.min() + margin, y.max() - margin, POINTS)
    places = some_places(len(y)).T
    starts = places % group == 0
    z = (x - y.mean()) ** 2 / max(y.var() - s, 0.01 * s)
    pi = 0.9 * np.exp(-0.5 * z) / np.exp(-0.5 * z).sum() + 0.1 / POINTS
    made = Chain(x, pi, np.eye(POINTS), s, group, False)
    L = made.likelihoods(y[places])
    flat = L.reshape(-1, POINTS)
    for _ in range(STEPS):
        pi = pi * ((1.0 / (flat @ pi)) @ flat) / len(flat)
    pi = np.maximum(pi, LEAST) / np.maximum(pi, LEAST).sum()

    def best(*tried: tuple[float, float]) -> tuple[float, float]:
        T = np.array([transitions(pi, *pair) for pair in tried])
        totals = np.array([total for _, total in passed(pi[None, None], T, L[:, None], starts)])
        found = np.log(totals).sum(axis=(0, 2, 3)) + [SURE_OF * (p == 1.0) for _, p in tried]
        return tried[found.argmax()]

    rho, p = start or best(*FIRST, INDEPENDENT)
    if start is None and p < 1.0:
        rho, p = best(*product(RHO, JUMPS))
    points = np.interp((np.arange(FEW) + 0.5) / FEW, np.cumsum(pi) - 0.5 * pi, x)
    few, rows = replace(made, x=points), y[places.T].ravel()
    made = replace(made, first=pi, T=transitions(pi, rho, p), dependent=p < 1.0)
    if start == MOVES or (start is None and free and moves_predict(few, made, rows)):
        return with_moves(few, rows), MOVES
    return made, (rho, p)


def with_moves(chain: Chain, y: Array) -> Chain:
    """Chain between points from those of ``chain``, by EM from independent rows y."""
    K, last = len(chain.x), -np.inf
    pi = np.full(K, 1.0 / K)
    chain = replace(chain, first=pi, T=np.tile(pi, (K, 1)), dependent=True)
    for _ in range(STEPS):
        seen, top = chain.windows(y)
        P, moves, now = expected(chain.T, chain.first, seen)
        now += top.sum()
        if now - last < GAIN:
            break
        last, q, moves = now, by_row(P)[: len(y)], moves + OWN * chain.first
        total, T = q.sum(axis=0) + LEAST, moves / moves.sum(axis=1, keepdims=True)
        x = (q.T @ y + LEAST * chain.x) / total
        chain = replace(chain, x=x, first=total / total.sum(), T=T)
    return chain


def moves_predict(few: Chain, chain: Chain, y: Array) -> bool:
    """Whether moves between few points predict rows y better than a chain and than none."""
    every = y[: len(y) // (2 * WINDOW) * 2 * WINDOW].reshape(-1, WINDOW)
    gains = list[Array]()
    for taught, judged in ((0, 1), (1, 0)):
        moved = with_moves(few, every[taught::2].ravel())
        alone = replace(moved, T=np.tile(moved.first, (FEW, 1)))
        logs = list[Array]()
        for one in (moved, chain, alone):
            seen, top = one.windows(every[judged::2].ravel())
            total = top.reshape(-1, WINDOW).sum(axis=1)
            logs.append(forward(one.T, one.first, seen)[1] + total)
        gains.append(logs[0] - np.array(logs[1:]))
        if (gains[-1].mean(axis=1) <= 0.0).any():
            return False
    gain = np.hstack(gains)
    return bool((gain.mean(axis=1) > SURE_OF_MOVES * gain.std(axis=1) / np.sqrt(len(every))).all())


def transitions(pi: Array, rho: float, p: float) -> Array:
    """``T``, with rows of sum 1."""
    ends = scipy.special.ndtri(np.append(0.0, np.cumsum(pi)) / pi.sum())
    ends[[0, -1]] = -np.inf, np.inf
    T = np.eye(len(pi))
    if rho < 1.0:
        z = scipy.special.ndtri(np.clip(np.cumsum(pi) - 0.5 * pi, LEAST, 1.0 - LEAST))
        reached = scipy.special.ndtr((ends - rho * z[:, None]) / np.sqrt(1.0 - rho * rho))
        T = np.diff(reached, axis=1)
    T = T + LEAST * pi  # so that no likelihood vanishes
    return (1.0 - p) * T / T.sum(axis=1, keepdims=True) + p * pi
