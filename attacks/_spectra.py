"""Smoothed spectra of copies along the rows, and the Wiener filter.

In these coordinates the copy has covariance I within a row and its noise ``diag(ν)``.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``P(f)`` | periodogram, mean over segments of S rows, each padded to 2S | (F, d, d) | welch1967 |
| ``C_h`` | autocovariance at lag h: its transform, over the share ``1 − h/S`` of pairs that padding leaves | (d, d) | |
| ``S_Y(f)`` | transform of ``w(h/M) C_h``, Parzen's window w, and ``C_0 = I`` | (F, d, d) | parzen1961 |
| ``N(f)`` | ``diag(ν)`` times the transform of ``w(h/M) r_h``, r the noise's autocorrelation; 1 if rows are independent | (F, d) | |
| ``S_X(f)`` | positive part of ``S_Y(f) − N(f)``, scaled to the data's power ``1 − ν`` | (F, d, d) | |
| ``G(f)`` | ``S_X (S_X + N)⁻¹`` | (F, d, d) | wiener1949 |
| trend | a line, and ``(1 − b λ/Σ C²) C``: cosine transform C of the rest in significant blocks of b, level λ | (K, N) | cai1999 |
| seasons, groups | equal numbers of rows; their means by place are shrunk by James and Stein's rule | (L, N) | |
| lines | frequencies of a Hann-tapered periodogram far above the median around them, and above the noise | (L,) | |
| risk | ``∫ tr (I − G) P' (I − G)* + 2 N·diag G − Σν``: unbiased for a G fitted without P' | scalar | stein1981 |
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from auditor.numerics.linear_algebra import quotient
from auditor.plugin import Array, Indices, Pair, scipy, unprinted

Spectrum = NDArray[np.complexfloating]

FOLDS = 4
"""Consecutive parts of a table. A part's rows are predicted by fits to the others."""
PADDING = 2
"""Length of a padded segment over its rows, so that lags do not wrap around."""
MOST_LINES, AROUND = 24, 128
"""Most spectral lines, and adjacent ordinates whose median is the level around them."""
SURE_GROUPS, SURE_PERIOD, FEWEST_GROUPS = 5.0, 3.0, 20
"""Standard errors by which ends of groups must be rougher, of any size and of a season, and fewest
groups of any size."""
MULTIPLE = 0.8
"""Least share of the largest excess, for longer groups: parts of groups have half of their ends."""
SURE_BLOCK, RED = 3.0, 4.0
"""Standard errors by which a block of cosines exceeds the level, and its least multiple of it."""
TREND_COSINES = 1, 8, 48
"""Numbers of slow cosines that show a trend together."""
SLOWEST = 1e-4
"""Cycles over all rows of the sine that stands for a straight line."""
SURE_OF_MEMORY = 3.0
"""Standard errors of a first look at memory. Independent rows exceed it in 5 % of tables."""
FEWEST_SEASONS = 5
"""Fewest repetitions of a season."""
LINE_ALARM, TREND_ALARM = 1e-3, 0.02
"""Chances that rows without an order show a line, and a trend."""


@unprinted
class Lines:
    """A constant, trends and sinusoids along the rows.

    Attributes
    ----------
    frequencies : ndarray of shape (L,)
        In cycles per row.
    factors : ndarray of shape (1 + 2L, N)
    leverage : ndarray of shape (N,)
        Mean share of a row in its own value.
    period : int
        Rows of equal consecutive groups, or all.
    """

    frequencies: Array
    factors: Array
    leverage: Array
    period: int

    @classmethod
    def none(cls, width: int, rows: int) -> Lines:
        return cls(np.zeros(0), np.zeros((1, width)), np.zeros(width), rows)

    @classmethod
    def of(cls, y: Array, noise: Array, independent: bool) -> Lines:
        """Fit lines to rows, shape (n, N); trends and seasons under ``independent`` noise.

        ``noise`` has variances, shape (N,).
        """
        n, period, p, fits = len(y), len(y), len(y), [cls.sharp]
        if independent:
            p, fits = season(y, noise), [cls.trend, cls.periodic, cls.sharp]
            rest = y - (place_means(y, p) if p else y.mean(axis=0))
            period = group_rows(rest / (rest.std(axis=0) + 1e-300), n, p)
        found = cls.none(y.shape[1], period)
        for fit in fits:
            more = fit(y - found.values(0, n), noise, p or period)
            pairs = zip(np.split(found.factors[1:], 2), np.split(more.factors[1:], 2), strict=True)
            found = cls(
                np.append(found.frequencies, more.frequencies),
                np.vstack([found.factors[:1] + more.factors[:1], *chain.from_iterable(pairs)]),
                found.leverage + more.leverage,
                period,
            )
        return found

    @classmethod
    def sharp(cls, y: Array, noise: Array, period: int) -> Lines:
        """Fit significant spectral lines."""
        found = replace(cls.none(y.shape[1], period), frequencies=line_frequencies(y, noise))
        if not found.frequencies.size:
            return found
        factors = scipy.linalg.lstsq(found.design(0, len(y)), y)[0]
        return replace(found, factors=factors, leverage=found.leverage + len(factors) / len(y))

    @classmethod
    def periodic(cls, y: Array, noise: Array, period: int) -> Lines:
        """Means of rows at equal places, shrunk by James and Stein's rule."""
        n, N = y.shape
        if n < 2 * period or period < 4:
            return cls.none(N, period)
        y = y - y.mean(axis=0)
        means = place_means(y, period)
        error = ((y - means) ** 2).sum(axis=0) / (n - period)
        power = (means**2).sum(axis=0) + 1e-300
        share, p = np.maximum(1.0 - (period - 3) * error / power, 0.0), period
        F = np.fft.rfft(share * means[:p], axis=0) * 2.0 / p
        F[0] /= 2.0
        F[p // 2 :] /= 1.0 + (p % 2 == 0)
        factors = np.vstack([F.real, -F[1:].imag])
        return cls(np.arange(1, len(F)) / p, factors, share * p / n, p)

    @classmethod
    def trend(cls, y: Array, noise: Array, period: int) -> Lines:
        """Fit a line and slow cosines to rows, shape (n, N); none without a trend.

        Cosines are shrunk by James and Stein's rule in dyadic blocks.
        """
        if not has_trend(y):
            return cls.none(y.shape[1], period)
        n, t = len(y), np.arange(len(y)) - 0.5 * (len(y) - 1)
        slope = (t @ y / (t @ t))[None]
        C, power = cosines(y - t[:, None] * slope)
        share = np.zeros((1 + min(TREND_COSINES[-1], n // 4), y.shape[1]))
        low = 1
        while low < len(share):
            b = min(max(low - 1, 1), len(share) - low)
            found = power[low : low + b].sum(axis=0)
            sure = found > np.maximum(b + SURE_BLOCK * np.sqrt(2.0 * b), RED * b)
            share[low : low + b] = sure * (1.0 - b / np.maximum(found, b))
            low += b
        kept = share * C[: len(share)]
        (k,) = np.nonzero(kept.any(axis=1))
        # cos(2πf(t + ½)) = cos πf cos 2πft − sin πf sin 2πft, with f = k/2n
        c, f = np.sqrt(2.0 / n) * kept[k], k / (2.0 * n)
        half = np.pi * f[:, None]
        line = slope * n / (2.0 * np.pi * SLOWEST)
        waves = t[0] * slope, np.cos(half) * c, 0.0 * slope, -np.sin(half) * c, line
        return cls(
            np.append(f, SLOWEST / n), np.vstack(waves), (share.sum(axis=0) + 1.0) / n, period
        )

    def design(self, first: int, rows: int) -> Array:
        """1, cosines and sines at rows from ``first``, shape (rows, 1 + 2L)."""
        phase = 2.0 * np.pi * np.arange(first, first + rows)[:, None] * self.frequencies
        return np.hstack([np.ones((rows, 1)), np.cos(phase), np.sin(phase)])

    def values(self, first: int, rows: int) -> Array:
        """Sum of the lines at rows from ``first``, shape (rows, N)."""
        size = int(np.ceil(np.sqrt(rows)))
        # e^{i(a + b)} = e^{ia} e^{ib}: twenty times as fast as cosines of all rows
        starts, steps = (
            np.exp(2j * np.pi * np.outer(t, self.frequencies))
            for t in (np.arange(first, first + rows, size), np.arange(size))
        )
        cosines, sines = np.split(self.factors[1:], 2)
        waves = (starts * (cosines - 1j * sines).T[:, None]) @ steps.T
        return self.factors[0] + waves.real.reshape(len(waves), -1).T[:rows]


def cosines(y: Array) -> Pair:
    """Rows' cosine transform, and its squares over the level, (n, N).

    By the mean of the upper half of the frequencies, or of those next to a trend's.
    """
    C = scipy.fft.dct(y, norm="ortho", axis=0)
    most = TREND_COSINES[-1]
    upper, next_to = (C[part] ** 2 for part in (slice(len(y) // 2, None), slice(most, 3 * most)))
    level = np.maximum(upper.mean(axis=0), next_to.mean(axis=0) if len(next_to) else 0.0)
    return C, C**2 / (level + np.finfo(float).tiny)


def has_trend(y: Array) -> bool:
    """Whether slow cosines exceed the level, by χ²."""
    power = np.cumsum(cosines(y)[1][1 : 1 + TREND_COSINES[-1]], axis=0)
    least = min(scipy.special.chdtrc(k, power[min(k, len(power)) - 1]).min() for k in TREND_COSINES)
    return bool(least * len(TREND_COSINES) * y.shape[1] < TREND_ALARM)


def place_means(y: Array, period: int) -> Array:
    """Mean of all rows at equal places of a period, by row."""
    place = np.arange(len(y)) % period
    sums = np.stack([np.bincount(place, column) for column in y.T], axis=1)
    return (sums / np.bincount(place)[:, None])[place]


def group_rows(u: Array, count: int, period: int = 0) -> int:
    """Rows of equal consecutive groups, as of a panel; else all.

    Means of adjacent rows must differ more at the ends of groups than within, in logarithms. Groups
    of a known ``period`` need less evidence.
    """
    found, most = count, 0.0
    sums = np.cumsum(np.pad(u, ((1, 0), (0, 0))), axis=0)
    sizes = [size for size in range(2, len(u) // FEWEST_GROUPS + 1) if count % size == 0]
    for size in sorted({*sizes, period} - {0}):
        ends = np.arange(size, len(u) - size + 1, size)
        for h in {1, min(3, size // 2), size // 2}:
            at, within = (
                np.log(((sums[b + h] - 2.0 * sums[b] + sums[b - h]) ** 2).sum(axis=1) + 1e-300)
                for b in (ends, ends + size // 2)
            )
            z = np.sqrt(len(ends)) * (at - within).mean() / ((at - within).std() + 1e-300)
            if z > max(SURE_PERIOD if size == period else SURE_GROUPS, MULTIPLE * most):
                found, most = size, max(z, most)
    return found


def season(y: Array, noise: Array) -> int:
    """Period whose harmonics together exceed the level, by χ²; else 0."""
    n, N = y.shape
    R = over_level(y, noise, np.ones(n))
    # one line is no long season
    R = np.minimum(R / (over_frequencies(R) + 1e-300), 1.5 * np.log(R.size / LINE_ALARM))
    # sums over harmonics by Poisson's formula: Σ_k R(k/p) = p Σ_h C_hp
    C = np.fft.irfft(R, axis=0)[:n]
    tried = np.arange(2, n // FEWEST_SEASONS + 1)
    sums = np.array([C[p::p].sum(axis=0) for p in tried])
    sums = tried[:, None] * (C[0] + 2.0 * sums) - R[0]
    chance = scipy.special.chdtrc(tried[:, None] - 1.0, np.maximum(sums, 0.0)).min(axis=1)
    sure = chance * N * tried.size < LINE_ALARM
    return int(tried[chance.argmin()]) if sure.any() else 0


def over_level(y: Array, noise: Array, taper: Array) -> Array:
    """Tapered periodogram over the level, the median of near ordinates."""
    n = len(y)
    P = np.abs(np.fft.rfft((y - y.mean(axis=0)) * taper[:, None], PADDING * n, axis=0)) ** 2
    P /= max(float(taper @ taper), 1.0)
    parts = np.array_split(P, max(1, len(P) // AROUND))
    level = [np.broadcast_to(np.median(part, axis=0), part.shape) for part in parts]
    floor = np.maximum(noise, np.finfo(float).tiny)
    return P / np.maximum(np.vstack(level) / np.log(2.0), floor)


def line_frequencies(y: Array, noise: Array) -> Array:
    """Frequencies of significant spectral lines, strongest first."""
    R = over_level(y, noise, np.hanning(len(y)))
    ratio = R.max(axis=1)
    low, middle, high = ratio[:-2], ratio[1:-1], ratio[2:]
    peaks = (middle >= low) & (middle > high) & (middle > np.log(R.size / LINE_ALARM))
    found = np.flatnonzero(peaks)
    found = found[np.argsort(-middle[found], kind="stable")][:MOST_LINES]
    # vertex of a parabola through three logarithms
    a, b, c = (np.log(np.maximum(part[found], 1e-300)) for part in (low, middle, high))
    shift = quotient(a - c, 2.0 * (a - 2.0 * b + c), where=a + c < 2.0 * b)
    return (found + 1.0 + np.clip(shift, -0.5, 0.5)) / (PADDING * len(y))


def periodograms(segments: Iterable[Array], length: int, count: int) -> Spectrum:
    """Sums of periodograms of odd and even segments by fold, (FOLDS, 2, F, d, d).

    ``segments`` yields ``count`` segments of shapes (s, length, d), in order.
    """
    sums: dict[int, Spectrum] = {}
    first = 0
    for several in segments:
        transforms = scipy.fft.rfft(several.swapaxes(1, 2), PADDING * length)
        place = np.arange(first, first + len(several))
        part = 2 * (place * FOLDS // count) + place % 2
        for each in np.unique(part).tolist():
            some = transforms[part == each]
            sums[each] = sums.get(each, 0) + np.einsum("sif,sjf->fij", some, some.conj()) / length
        first += len(several)
    none = np.zeros_like(next(iter(sums.values())))
    found = np.array([sums.get(each, none) for each in range(2 * FOLDS)])
    return found.reshape(FOLDS, 2, *none.shape)


def has_memory(sums: Spectrum, count: int) -> bool:
    """Whether rows of ``count`` segments of variance 1 are dependent, by ``periodograms``.

    ``z_h``, (d, d), has independent standard normal entries if rows are independent. For some power
    of two L, the sum of squares or of diagonal entries at L lags must exceed chance.
    """
    P = sums.sum(axis=(0, 1))
    S, d = len(P) - 1, P.shape[1]
    h = np.arange(1, S // 2 + 1)
    z = np.fft.irfft(P, axis=0)[h] * (S / np.sqrt(count * (S - h)))[:, None, None]
    L = 1 << np.arange(len(h).bit_length())
    squares, signed = (z**2).sum(axis=(1, 2)) - d * d, np.einsum("hii->h", z)
    found = np.cumsum([squares / (np.sqrt(2.0) * d), signed / np.sqrt(d)], axis=1)[:, L - 1]
    return bool((found / np.sqrt(L)).max() > SURE_OF_MEMORY)


def smoothed(P: Spectrum, lags: int) -> Spectrum:
    """``S_Y``, shape (F, d, d), from lags below ``lags``."""
    size = PADDING * (len(P) - 1) if len(P) > 1 else 1
    C = np.fft.irfft(P, size, axis=0)
    h = _lags(size)
    # padding leaves (S − h)/S of the pairs at lag h
    C = C * (_window(h, lags) / np.maximum(1.0 - PADDING * h / size, 1.0 / size))[:, None, None]
    C[0] = np.eye(P.shape[1])
    return np.fft.rfft(C, axis=0)


def noise_spectrum(r: Array, nu: Array, lags: int | None = None) -> Array:
    """``N(f)``, shape (F, d), from autocorrelations of the noise.

    Lags 0 to S − 1. Smoothed like ``smoothed`` if ``lags`` is set; else as in a periodogram of
    segments of S rows.
    """
    size = PADDING * len(r)
    h = _lags(size)
    weight = np.maximum(1.0 - h / len(r), 0.0) if lags is None else _window(h, lags)
    return np.fft.rfft(np.append(r, 0.0)[h] * weight).real[:, None] * nu


def _lags(size: int) -> Indices:
    """Lag of each FFT index."""
    return np.minimum(np.arange(size), size - np.arange(size))


def _window(h: Indices, lags: int) -> Array:
    return np.where(h < lags, parzen(h / lags), 0.0)


def parzen(u: Array) -> Array:
    """Parzen's lag window at ``u`` in [0, 1)."""
    square, rest = u * u, 1.0 - u  # products: powers of arrays are twenty times slower
    return np.where(u <= 0.5, 1.0 - 6.0 * square + 6.0 * square * u, 2.0 * rest * rest * rest)


def wiener_gain(S_Y: Spectrum, noise: Array) -> Spectrum:
    """``G``, shape (F, d, d), for noise ``N(f)``, shape (F, d).

    The noise's means over frequencies, ν, must be within (0, 1).
    """
    N, nu = noise[:, :, None] * np.eye(noise.shape[1]), over_frequencies(noise)
    S_X = positive_part(S_Y - N)
    # the positive part of an estimate has too much power
    have = over_frequencies(np.einsum("fii->fi", S_X).real)
    scale = np.sqrt((1.0 - nu) / np.maximum(have, np.finfo(float).tiny))
    S_X = S_X * scale[:, None] * scale
    return np.linalg.solve(S_X + N, S_X).conj().swapaxes(1, 2)


def positive_part(S: Spectrum) -> Spectrum:
    """Set negative eigenvalues of Hermitian matrices, (F, d, d), to 0."""
    power, Q = np.linalg.eigh(S)
    return (Q * np.maximum(power, 0.0)[:, None, :]) @ Q.conj().swapaxes(1, 2)


def over_frequencies(values: Array) -> Array:
    """Mean over all frequencies from values at 0 to ½.

    On the first axis.
    """
    weight = np.full(len(values), 2.0)
    weight[[0, -1]] = 1.0
    return np.tensordot(weight, values, 1) / (2.0 * (len(values) - 1))


def excess_risk(
    G: Spectrum, flat: Array, P: Spectrum, noise: Array, rows: int
) -> tuple[float, float]:
    """Risk of ``G`` minus the risk of constant gains ``flat``, and its standard error.

    In a copy's variance; negative if memory helps.

    Of rows that fitted neither: P, and unsmoothed ``N(f)``, shape (F, d). Ordinates are approximately
    independent with covariance S ⊗ S* by the smoothed P, so the mean of ``tr A P`` has variance
    ``2 ∫ tr (A S)² / n``.
    """
    S = smoothed(P, max(2, len(P) // 8))
    lost, lost_flat = np.eye(len(flat)) - G, np.diag(1.0 - flat)
    A = lost.conj().swapaxes(1, 2) @ lost - lost_flat @ lost_flat
    AP = A @ P
    added = 2.0 * over_frequencies(
        np.einsum("fi,fi->f", np.einsum("fii->fi", G).real - flat, noise)
    )
    excess = float(over_frequencies(np.einsum("fii->f", AP).real) + added)
    spread = float(over_frequencies(np.einsum("fij,fji->f", A @ S, AP).real))
    return excess, float(np.sqrt(max(0.0, 2.0 * spread) / rows))
