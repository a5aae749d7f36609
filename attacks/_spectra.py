"""How copies vary along the rows: spectra from segments of a table, smoothed, and the Wiener filter that they and the noise's law make.

Everything is in coordinates in which the copy has covariance I over a single row, and its noise ``diag(ν)``, the more so at frequency f the
more of the noise's autocorrelation r lies there. Both are seen through one window: what is narrower than it is wide must not be told apart.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``P(f)`` | periodogram, mean over segments of S rows, each padded to 2S | (F, d, d) | welch1967 |
| ``C_h`` | autocovariance at lag h: its transform, over the share ``1 − h/S`` of pairs that padding leaves | (d, d) | |
| ``S_Y(f)`` | transform of ``w(h/M) C_h``, Parzen's window w, and ``C_0 = I`` | (F, d, d) | parzen1961 |
| ``N(f)`` | ``diag(ν)`` times the transform of ``w(h/M) r_h``: 1 for noise that is drawn afresh for every record | (F, d) | |
| ``S_X(f)`` | positive part of ``S_Y(f) − N(f)``, brought to the power ``1 − ν`` that the data have | (F, d, d) | |
| ``G(f)`` | ``S_X (S_X + N)⁻¹`` | (F, d, d) | wiener1949 |
| risk | ``∫ tr (I − G) P' (I − G)* + 2 N·diag G − Σν``: unbiased for a G that P' did not teach | scalar | stein1981 |
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from auditor.plugin import Array, scipy

Spectrum = NDArray[np.complexfloating]

PADDING = 2
"""Zeros after a segment, as many as its rows: sums over lags then do not wrap around."""


def periodograms(segments: Iterable[Array], length: int) -> tuple[Spectrum, Spectrum, int]:
    """Return the mean periodograms of the segments at odd and at even places, each of shape (F, d, d), and how many there were.

    Parameters
    ----------
    segments : iterable of ndarrays of shape (s, length, d)
        In order, some at a time; two at least.
    """
    sums: list[Spectrum | int] = [0, 0]
    count = 0
    for several in segments:
        transforms = scipy.fft.rfft(several.swapaxes(1, 2), PADDING * length)
        for each in (0, 1):
            part = transforms[(each - count) % 2 :: 2]
            sums[each] = sums[each] + np.einsum("sif,sjf->fij", part, part.conj())
        count += len(several)
    return np.asarray(sums[0] / ((count + 1) // 2 * length)), np.asarray(sums[1] / (count // 2 * length)), count


def smoothed(P: Spectrum, lags: int) -> Spectrum:
    """Return ``S_Y``, shape (F, d, d), from lags below ``lags``; of lag 0 alone for 1: rows in no order."""
    size = PADDING * (len(P) - 1) if len(P) > 1 else 1
    C = np.fft.irfft(P, size, axis=0)
    h = _lags(size)
    # what padding leaves of lag h is (S − h)/S of its pairs
    C = C * (_window(h, lags) / np.maximum(1.0 - PADDING * h / size, 1.0 / size))[:, None, None]
    C[0] = np.eye(P.shape[1])
    return np.asarray(np.fft.rfft(C, axis=0))


def noise_spectrum(r: Array, nu: Array, lags: int | None = None) -> Array:
    """Return ``N(f)``, shape (F, d), of noise with autocorrelations r of lags 0 to S − 1: as ``smoothed`` shows it with so many lags.

    Without ``lags`` as a periodogram of segments of S rows shows it, in which lag h has ``(S − h)/S`` of its pairs.
    """
    size = PADDING * len(r)
    h = _lags(size)
    weight = np.maximum(1.0 - h / len(r), 0.0) if lags is None else _window(h, lags)
    return np.fft.rfft(np.append(r, 0.0)[h] * weight).real[:, None] * nu


def _lags(size: int) -> NDArray[np.intp]:
    """Return the lag of each of so many places, those of negative lags from the end."""
    return np.minimum(np.arange(size), size - np.arange(size))


def _window(h: NDArray[np.intp], lags: int) -> Array:
    return np.where(h < lags, parzen(h / lags), 0.0)


def parzen(u: Array) -> Array:
    """Return Parzen's lag window at ``u`` in [0, 1): its transform is nowhere negative, so that spectra are none either."""
    square, rest = u * u, 1.0 - u  # products, as powers of arrays take twenty times as long
    return np.where(u <= 0.5, 1.0 - 6.0 * square + 6.0 * square * u, 2.0 * rest * rest * rest)


def wiener_gain(S_Y: Spectrum, noise: Array) -> Spectrum:
    """Return ``G``, shape (F, d, d), for noise ``N(f)``, shape (F, d), whose means over all frequencies, ν, are within (0, 1)."""
    N, nu = noise[:, :, None] * np.eye(noise.shape[1]), over_frequencies(noise)
    S_X = positive_part(S_Y - N)
    # The positive part of an estimate has more power than the data: without this, noise would pass where hardly anything else is.
    have = over_frequencies(np.einsum("fii->fi", S_X).real)
    scale = np.sqrt((1.0 - nu) / np.maximum(have, np.finfo(float).tiny))
    S_X = S_X * scale[:, None] * scale
    # G = S_X (S_X + N)⁻¹, solved from the right
    return np.asarray(np.linalg.solve(S_X + N, S_X).conj().swapaxes(1, 2))


def positive_part(S: Spectrum) -> Spectrum:
    """Return Hermitian matrices of shape (F, d, d) without the directions in which they are negative."""
    size = np.abs(S)
    # Gershgorin: with more on its diagonal than beside it in every row a matrix has no such direction, as hardly any of a spectrum's has
    sure = (2.0 * np.einsum("fii->fi", S).real > size.sum(axis=2)).all(axis=1)
    found = S.copy()
    power, Q = np.linalg.eigh(S[~sure])
    found[~sure] = (Q * np.maximum(power, 0.0)[:, None, :]) @ Q.conj().swapaxes(1, 2)
    return found


def over_frequencies(values: Array) -> Array:
    """Return the mean over all frequencies of what is given for those from 0 to ½, along the first axis, of an even number of rows."""
    weight = np.full(len(values), 2.0)
    weight[[0, -1]] = 1.0
    return np.asarray(np.tensordot(weight, values, 1) / (2.0 * (len(values) - 1)))


@dataclass(frozen=True)
class Risk:
    """What a filter is estimated to leave, beyond what the filter without memory leaves.

    Attributes
    ----------
    excess : float
        Difference of squared errors, in units of a copy's variance; below 0 where memory helps.
    std_error : float
    """

    excess: float
    std_error: float = field(repr=False)


def judged_by(P: Spectrum) -> tuple[Spectrum, Spectrum]:
    """Return what filters are judged by: a periodogram, and the spectrum that it is smoothed to, which tells the error of their risk."""
    return P, smoothed(P, max(2, len(P) // 8))


def excess_risk(G: Spectrum, flat: Array, P: Spectrum, S: Spectrum, noise: Array, rows: int) -> Risk:
    """Return the risk of ``G`` over that of the constant gains ``flat``, judged on rows with periodogram P that did not teach either.

    ``S`` is that periodogram smoothed (``judged_by``), and ``noise`` is ``N(f)`` as a periodogram shows it, shape (F, d).

    The ordinates of a periodogram are about independent with covariance S ⊗ S*, so that the mean of ``tr A P`` over frequencies has
    variance ``2 ∫ tr (A S)² / n`` for n real rows.
    """
    lost, lost_flat = np.eye(len(flat)) - G, np.diag(1.0 - flat)
    A = lost.conj().swapaxes(1, 2) @ lost - lost_flat @ lost_flat
    AP = A @ P
    added = 2.0 * over_frequencies(np.einsum("fi,fi->f", np.einsum("fii->fi", G).real - flat, noise))
    excess = float(over_frequencies(np.einsum("fii->f", AP).real) + added)
    spread = float(over_frequencies(np.einsum("fij,fji->f", A @ S, AP).real))
    return Risk(excess, float(np.sqrt(max(0.0, 2.0 * spread) / rows)))
