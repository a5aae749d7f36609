"""Wiener filter along the rows, for serially dependent records.

The data's spectrum is estimated from the copies, given the noise law and its autocorrelation
(``serial:``).

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``y_t`` | row t of the coalition's copies, averaged with minimum-variance weights | (N,) | ``auditor.adversary.view`` |
| ``m_t`` | the mean, a trend, means by place in seasons, and strong spectral lines | (N,) | ``_spectra.Lines`` |
| ``K_X, K_Z`` | covariance of the data about ``m``, as known or estimated, and of the noise in ``y_t`` | (N, N) | |
| ``A``, ``ν`` | ``K_X = A diag(1 − ν) Aᵀ``, ``K_Z = A diag(ν) Aᵀ``: coordinates ``A⁺(y − m)`` of variance 1 with noise ν | (N, r), (r,) | |
| ``r_h`` | autocorrelation of the noise at lag h, by its law; only ``r_0 = 1`` if records are independent | | |
| ``N(f)`` | spectrum of the noise: ``diag(ν)`` times the transform of r | (d,) | |
| ``S_X(f)`` | spectrum of the data: the copy's less N (``_spectra``) | (d, d) | |
| ``g_h`` | taps, the transform of ``S_X (S_X + N)⁻¹``, for lags h from −m to m | (2m+1, d, d) | wiener1949 |
| ``x̂_t`` | ``m_t + A Σ_h g_h A⁺(y_{t−h} − m_{t−h})`` | (N,) | |

The number of lags minimises Stein's unbiased risk on the half of the segments held out. Neighbours
are used only if rows have memory (``_spectra.has_memory``) and neighbours help by ``SURE_OF``
standard errors. Without neighbours and lines the result is ``llse``. Above ``MOST_LINE_ROWS`` rows,
no trends or lines are sought, and about so many rows fit the spectra.

For a stationary Gaussian process the least error is ``∫ S_X (S_X + K_Z)⁻¹ K_Z df``. Theory is the
error of the fitted filter on this table, for ``perfect`` knowledge. Fitted to the
noise that it filters, it passes 1 to 5 % more of it.

*Not checked*: the serial law of the noise, stationary data, and for trends independent noise of
rows. Beyond ``MOST_DIRECTIONS`` directions memory is ignored.
Reference: wiener1949; welch1967 and parzen1961 for spectra, stein1981 for the choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain

import numpy as np

from auditor.adversary.view import combined_noise
from auditor.numerics.blocks import evenly
from auditor.numerics.linear_algebra import Autoregression, Pencil, clip_to_psd, quotient
from auditor.plugin import (
    Array,
    Arrays,
    CopyBlocks,
    Cost,
    Indices,
    Pair,
    Perfect,
    Reconstruction,
    RowAttack,
    View,
    register,
    scipy,
)

from ._fits import fitted_once
from ._spectra import (
    FOLDS,
    PADDING,
    Lines,
    Spectrum,
    excess_risk,
    has_memory,
    noise_spectrum,
    periodograms,
    smoothed,
    wiener_gain,
)

MOST_DIRECTIONS = 24
"""Directions with cross-spectra: each frequency decomposes a matrix of this size."""
SPECTRUM_VALUES = 2**18
"""Approximate size of a spectrum: frequencies times squared directions."""
LONGEST, FEWEST_SEGMENTS = 1024, 4
"""Most rows of a segment, and fewest segments: two halves of two."""
SAME = 1e-6
"""Relative variance of noise below which attributes are related exactly."""
FEWEST_LINE_ROWS = 40
"""Fewest rows in which lines are sought."""
LEAST_NOISE = 1e-9
"""A direction with a smaller share of noise, or of data, is not filtered."""
MOST_LINE_ROWS = 2**17
"""Most rows in which lines are sought, a second per ten attributes, and that fit spectra."""
TOGETHER = 2**17
"""Approximate number of values per batch of transforms, so that they stay in the cache."""
LAGS = (2, 4, 8, 16, 32, 64, 128, 256)
"""Tried numbers of lags, at most a quarter of a segment; next to the choice for clearer copies."""
SURE_OF = 2.0
"""Standard errors by which memory must help. Unordered records exceed this about once in 30
tables."""


@register
class SerialFilter(RowAttack):
    """Wiener filter along the rows, with spectra estimated from the copies."""

    name = "serial-filter"
    attack_kind = "serial"
    cost = Cost(2e-3, 1.2e-6)
    serial = True
    combines = True
    reference = "wiener1949; huang2005, section 3"
    knowledge = ("perfect", "estimated")
    assumes = (
        "Rows follow one another (time, place, a sorted file); the adversary knows the law of the noise, along the rows too, "
        "and the data's mean and covariance or rows to estimate them from."
    )
    wins = "Wins over llse wherever neighbouring records are alike, follow a trend or return in cycles; on records in no order it is llse."

    def fit(self, view: View, blocks: CopyBlocks) -> Filtered:
        mu, K_X = view.data_moments
        K_Z, starts = combined_noise(view, view.combined[1]), view.starts
        release = starts.setdefault("release", {})
        lags = starts.get("lags", release.get("lags", LAGS))
        parts = (centred(view.weights, copies, mu) for copies in blocks)
        seen, law = view.released, view.law and view.law.serial
        # of a large table, moments and a block represent all rows
        first = [next(parts) if seen.count > MOST_LINE_ROWS else np.hstack(list(parts))]
        make = partial(fitted, view, K_X, K_Z, lags, chain(first, parts))
        kind = self.name, law, isinstance(view.knowledge, Perfect), lags, seen.count
        found = fitted_once(make, kind, K_X, K_Z, mu, view.weights, seen.products, *first)
        chosen = max(1, found.neighbours // 2)
        starts.setdefault("lags", (chosen,))
        if (found.kept < 1.0 - LEAST_NOISE).all():
            release.setdefault(
                "lags", tuple(k for k in LAGS if chosen <= 2 * k <= max(8, 2 * chosen))
            )
        return found


def fitted(
    view: View, K_X: Array, K_Z: Array, lags: Sequence[int], parts: Iterable[Array]
) -> Filtered:
    """Filter of centred rows, given the covariances of data and noise.

    ``parts`` have shapes (N, b); one part if lines are possible. ``lags`` as for ``fitted_taps``.
    """
    mu, count = view.data_moments[0], view.released.count
    serial = None if view.law is None else view.law.serial
    lines = Lines.none(len(mu), count)
    if FEWEST_LINE_ROWS <= count <= MOST_LINE_ROWS:
        (y,) = parts = list(parts)
        lines = Lines.of(y.T, np.diag(K_Z), serial is None)
        # shares differ between attributes, but their exact relations must hold
        lines = replace(lines, factors=lines.factors @ span(K_Z))
        if lines.frequencies.size:
            m = lines.values(0, count).T
            # two estimates of the rest, of variances 2σ⁴/n and 4σ²t/n for a trend of variance t
            M = np.atleast_2d(np.cov(m, bias=True))
            w = np.mean(quotient(2.0 * np.diag(M), 2.0 * np.diag(M) + np.diag(K_Z), 1.0))
            rest = w * (np.cov(y - m, bias=True) - (1.0 - lines.leverage.mean()) * K_Z)
            rest += (1.0 - w) * (K_X - M)
            K_X, parts = clip_to_psd(rest, K_X), [y - m]
    pencil = Pencil.of(K_X, K_Z)
    nu = np.clip(1.0 - pencil.share, 0.0, 1.0)
    used = np.argsort(nu, kind="stable")
    used = used[(nu[used] > LEAST_NOISE) & (nu[used] < 1.0 - LEAST_NOISE)][:MOST_DIRECTIONS]

    length = segment_length(count, used.size)
    r = autocorrelations(serial, length)
    taps = np.tile(np.diag(1.0 - nu[used]), (1 + FOLDS, 1, 1, 1))
    if length and used.size and lags != (1,):
        coordinates = ((pencil.inverse[used] @ part).T for part in parts)
        apart = max(1, count // MOST_LINE_ROWS)
        some = segments(coordinates, length, apart)
        taps = fitted_taps(some, r, nu[used], -(-(count // length) // apart), lags)
    known = isinstance(view.knowledge, Perfect)
    shape = mu, pencil, view.weights, 1.0 - nu, used
    return Filtered(*shape, taps[0], known, serial, lines, taps[1:])


def span(K: Array) -> Array:
    """Projection of rows of covariance K to directions that vary, transposed."""
    unit = np.sqrt(np.where(np.diag(K) > 0.0, np.diag(K), 1.0))
    values, Q = np.linalg.eigh(K / np.outer(unit, unit))
    Q = Q[:, values > SAME * values[-1]]
    return (Q @ Q.T) / unit[:, None] * unit


def autocorrelations(serial: Autoregression | None, lags: int) -> Array:
    """``r_0 … r_{lags − 1}`` of the noise."""
    return np.eye(1, lags)[0] if serial is None else serial.autocorrelations(lags)


def segment_length(rows: int, directions: int) -> int:
    """Rows of a segment, a power of two; 0 if rows are too few."""
    most = min(LONGEST, rows // FEWEST_SEGMENTS, SPECTRUM_VALUES // max(1, directions**2))
    return 1 << (most.bit_length() - 1) if most >= 8 else 0


def centred(weights: Array, copies: Arrays, mu: Array) -> Array:
    """``Σ w_i y_i − μ``, shape (N, b), contiguous (ten times as fast)."""
    return (
        np.ascontiguousarray(sum(w * copy for w, copy in zip(weights, copies, strict=True)).T)
        - mu[:, None]
    )


def segments(parts: Iterable[Array], length: int, apart: int = 1) -> Iterator[Array]:
    """Yield every ``apart``-th full segment of rows, shapes (s, length, d)."""
    left, first = None, 0
    for part in parts:
        rows = part if left is None else np.concatenate([left, part])
        whole = len(rows) // length * length
        for start, stop in evenly(0, whole // length, length * rows.shape[1], TOGETHER):
            every = rows[start * length : stop * length].reshape(-1, length, rows.shape[1])
            yield every[-first % apart :: apart]
            first += len(every)
        left = rows[whole:].copy()


def fitted_taps(
    stretches: Iterable[Array], r: Array, nu: Array, count: int, lags: Sequence[int]
) -> Array:
    """Taps, of all rows and without each fold, (1 + FOLDS, 2m + 1, d, d).

    Lag 0 alone if unsure.

    Parameters
    ----------
    stretches : iterable of ndarrays of shape (s, length, d)
        ``count`` segments of the copy, in coordinates of variance 1.
    r : ndarray of shape (length,)
    nu : ndarray of shape (d,)
    lags : sequence of int
        Tried; a single one is used. Fits to redraws keep that of the release.
    """
    length = len(r)
    sums = periodograms(stretches, length, count)

    def taps() -> Array:
        odd, even = sums.sum(axis=0) / np.array([(count + 1) // 2, count // 2])[:, None, None, None]
        few, chosen = [min(k, length // 4) for k in lags], 1
        if len(lags) == 1:
            chosen = few[0]
        elif r[1:].any() or has_memory(sums, count):
            chosen = chosen_lags(odd, even, count, r, nu, few)
        if chosen == 1:
            return np.tile(np.diag(1.0 - nu), (1 + FOLDS, 1, 1, 1))
        noise, m, found = noise_spectrum(r, nu, chosen), 2 * chosen, []
        rest = np.bincount(np.arange(count) * FOLDS // count, minlength=FOLDS)
        whole = sums.sum(axis=1)
        for left, rows in zip([0.0 * whole[0], *whole], [0, *rest], strict=True):
            G = wiener_gain(smoothed((whole.sum(axis=0) - left) / (count - rows), chosen), noise)
            g = np.fft.irfft(G, PADDING * length, axis=0)
            found.append(np.concatenate([g[-m:], g[: m + 1]]))
        return np.array(found)

    return fitted_once(taps, ("taps", count, lags), sums, r, nu)


def chosen_lags(
    odd: Spectrum, even: Spectrum, count: int, r: Array, nu: Array, tried: Sequence[int]
) -> int:
    """Lags of least risk for both halves; 1 if unsure."""
    length, noise, flat = len(r), noise_spectrum(r, nu), 1.0 - nu
    best, chosen = 0.0, 1
    for lags in dict.fromkeys(tried):
        seen, rows = noise_spectrum(r, nu, lags), count // 2 * length
        both = [
            excess_risk(wiener_gain(smoothed(fitted_to, lags), seen), flat, judged, noise, rows)
            for fitted_to, judged in ((odd, even), (even, odd))
        ]
        bound = sum(excess + SURE_OF / np.sqrt(2.0) * error for excess, error in both) / 2.0
        if bound < best:
            best, chosen = bound, lags
    return chosen


@dataclass(repr=False)
class Filtered(Reconstruction):
    """``x̂ = m_t + A Σ_h g_h A⁺(y_{t−h} − m_{t−h})``.

    Other directions are scaled by ``1 − ν``.
    """

    mu: Array
    pencil: Pencil
    weights: Array
    kept: Array
    used: Indices
    taps: Array
    known: bool
    serial: Autoregression | None
    lines: Lines
    without: Array
    first: int = 0

    def __post_init__(self) -> None:
        self.neighbours = len(self.taps) // 2

    @property
    def serial_rows(self) -> bool:
        """Whether other rows or the place of a row count."""
        return bool(self.neighbours or self.lines.frequencies.size)

    @property
    def own(self) -> Array:
        """Map of a row to its own estimate, shape (N, N)."""
        A, kept = self.pencil.basis, np.diag(self.kept)
        kept[np.ix_(self.used, self.used)] = self.taps[self.neighbours]
        return A @ kept @ self.pencil.inverse

    def at(self, first: int) -> Filtered:
        return replace(self, first=first) if self.lines.frequencies.size else self

    def rows(self, copies: Arrays) -> Array:
        """Estimates; the ends of the table are mirrored."""
        y, m = self._parted(self.weights, copies)
        return np.ascontiguousarray((self._passed(y) + m + self.mu[:, None]).T)

    def crossed(self, copies: Arrays, fold: Indices) -> Pair:
        """Estimates, and predictions from other rows and lines alone, shapes (b, N).

        Predictions are ``m_t + A (I − g_0)⁻¹ Σ_{h≠0} g_h A⁺(y_{t−h} − m_{t−h})``, best linear if
        the spectrum is true: ``I − G = N S_Y⁻¹``. Taps are fitted without the ``fold`` of a row,
        shape (b,), and so without its noise. For noise that is independent between rows.
        """
        y, m = self._parted(self.weights, copies)
        A, c = self.pencil.basis, self.pencil.inverse @ y
        x, h = m + (A * self.kept) @ c, self.lines.leverage[:, None]
        m = m - h / (1.0 - h) * y
        if self.neighbours:
            A, kept, c = A[:, self.used], self.kept[self.used], c[self.used]
            for k in np.unique(fold):
                taps, here = self.without[k], fold == k
                found, g_0 = self._convolved(c, response(taps))[:, here], taps[self.neighbours]
                x[:, here] += A @ (found - kept[:, None] * c[:, here])
                others = found - g_0 @ c[:, here]
                m[:, here] += A @ np.linalg.solve(np.eye(len(g_0)) - g_0, others)
        x, m = (np.ascontiguousarray((each + self.mu[:, None]).T) for each in (x, m))
        return x, m

    def _parted(self, weights: Array, copies: Arrays) -> Pair:
        y = centred(weights, copies, self.mu)
        m = self.lines.values(self.first, y.shape[1]).T
        return y - m, m

    def expected(self, x: Array) -> Array | None:
        """Error given the taps, shape (b,).

        None if moments were estimated. ``‖Σ_h g_h x_{t−h} − x_t‖² + tr A (Σ_{h,k} r_{h−k} g_h
        diag(ν) g_kᵀ) Aᵀ`` in the filter's coordinates. Not exact for the first and last rows, where
        mirrored noise counts twice.
        """
        if not self.known:
            return None
        true, _ = self._parted(np.ones(1), [x])
        lost = self._passed(true) - true
        return np.einsum("dt,dt->t", lost, lost) + self._passed_noise

    @cached_property
    def _passed_noise(self) -> float:
        passed = np.diag((1.0 - self.kept) * self.kept**2)
        r, flat = (
            autocorrelations(self.serial, len(self.taps)),
            self.taps.reshape(len(self.taps), -1),
        )
        around = scipy.linalg.matmul_toeplitz(r, flat).reshape(self.taps.shape)  # Σ_k r_{h−k} g_k
        passed[np.ix_(self.used, self.used)] = np.einsum(
            "hij,j,hkj->ik", self.taps, 1.0 - self.kept[self.used], around
        )
        return float(np.einsum("ai,ij,aj->", self.pencil.basis, passed, self.pencil.basis))

    def _passed(self, y: Array) -> Array:
        A, kept, c = self.pencil.basis, self.kept[:, None], self.pencil.inverse @ y
        found = kept * c
        if self.neighbours:
            found[self.used] = self._convolved(c[self.used], self._response)
        return A @ found

    @cached_property
    def _response(self) -> Spectrum:
        return response(self.taps)

    def _convolved(self, c: Array, G: Spectrum) -> Array:
        many = self.neighbours
        return convolved(np.pad(c, ((0, 0), (many, many)), mode="symmetric"), G, 2 * many)


def response(taps: Array) -> Spectrum:
    """Transform of taps, (2m + 1, d, d), for pieces of at least four times 2m rows."""
    return np.fft.rfft(taps, 1 << max(4, (4 * len(taps) - 4).bit_length()), axis=0)


def convolved(c: Array, G: Spectrum, more: int) -> Array:
    """``Σ_h g_h c_{t−h}`` by overlap-save, shape (d, n − more).

    Of c, shape (d, n), and the ``response`` of ``more + 1`` taps. Importing ``scipy.signal`` takes
    0.6 seconds.
    """
    size, rows = 2 * (len(G) - 1), c.shape[1] - more
    hop = size - more
    padded = np.pad(c, ((0, 0), (0, -rows % hop)))
    frames = np.lib.stride_tricks.sliding_window_view(padded, size, axis=1)[:, ::hop]
    F = np.moveaxis(np.fft.rfft(frames), -1, 0)
    found = np.fft.irfft(np.moveaxis(G @ F, 0, -1), size)
    return found[:, :, more:].reshape(len(c), -1)[:, :rows]
