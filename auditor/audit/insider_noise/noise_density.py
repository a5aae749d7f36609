"""Bayes' rule with the noise's own density, estimated from other rows.

| symbol | meaning | shape |
| --- | --- | --- |
| ``x`` | one attribute, or two whose noise depends on each other | (n, d) |
| ``y_m`` | that attribute in the coalition's copies, least noise first | (n, d) |
| ``y_0`` | best linear guess of x from all other attributes' cells, divided by its slope: one more copy | (n, d) |
| ``e_m`` | ``z_m − Σ_l B_ml z_l`` over earlier copies l: noise that they do not predict linearly | (n, d) |
| ``g_m`` | density of ``e_m`` | |
| ``c`` | candidates for x: originals of other rows, or ``y_1`` less noise of other rows | (S, d) |
| estimate | ``Σ_c c · w_c / Σ_c w_c`` with ``log w_c = Σ_m log g_m(e_m(c))``, plus ``log p(c)`` for candidates from noise | (n, d) |

Densities of one half of the rows are judged on the other, both ways. An attribute keeps its best
linear regression unless held-out rows are surely estimated better. *Not checked*: noise
depends on earlier copies linearly.

A density is a histogram on the scale ``asinh(e / s)``, s the median absolute value, smoothed by the
Gaussian width with the largest held-out likelihood.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from auditor.audit.insider.learner import least_squares
from auditor.audit.measures.every_cell import Finding, copies_in_words
from auditor.base import scipy
from auditor.base.types import Array, Coalition, Indices

JUDGED = 4_000
"""Rows that are judged."""
CANDIDATES = 256
FEWEST_ROWS = 1_000
"""Rows without which a density is too coarse."""
SURE, GAIN = 2.5, 0.02
"""Standard errors and share of the line's error by which the estimate must be better."""
TAUGHT = 20_000
"""Rows of the table that are used."""
TOGETHER = 128
"""Rows that are estimated at once: their candidates fit a processor's cache."""
NEGLIGIBLE = 0.05
"""Correlation of noise below which copies count as independent."""
RESOLVED = 1e-6
"""Share left by a line below which an attribute is known already."""
FOLLOWS = 0.05
"""Share of an attribute's variance that other attributes' cells must explain to count as a copy."""


def noise_density(
    X: Array, copies: Sequence[Array], coalitions: Sequence[Coalition]
) -> list[Finding]:
    """Findings if the density leaves less than a line.

    X and each copy have shape (n, N).
    """
    every = -(-len(X) // TAUGHT)
    # halves by a column's order would differ
    order = every * np.random.default_rng(0).permutation(-(-len(X) // every))
    X, Y = X[order], np.array([copy[order] for copy in copies])
    n, halves = len(X), (slice(0, None, 2), slice(1, None, 2))
    if n < FEWEST_ROWS:
        return []
    held = [Y[np.array(one) - 1] for one in coalitions]
    squares = [np.empty((n, X.shape[1])) for _ in held]
    for each, found in zip(held, squares, strict=True):
        cells = each.transpose(1, 0, 2).reshape(n, -1)
        for here, there in (halves, halves[::-1]):
            line = least_squares(cells, X, np.arange(n)[there])
            found[here] = (X[here] - line[here]) ** 2
    squares, better = [found[:JUDGED] for found in squares], [list[str]() for _ in held]
    for targets in dependent_attributes(X, Y):
        own = RESOLVED * X[:, targets].var(axis=0)
        fits = {
            place: [_fitted(X, each, targets, np.arange(n)[half]) for half in halves]
            for place, each in enumerate(held)
            if own.all() and (squares[place][:, targets].mean(axis=0) > own).all()
        }
        for from_noise in (False, True):
            tried = {
                place: _errors_of(fit, min(n, JUDGED), from_noise) for place, fit in fits.items()
            }
            if any(_gains(squares[place][:, targets], errors) for place, errors in tried.items()):
                # another method for one copy alone would count as a gain of pooling
                for place, errors in tried.items():
                    if errors.mean() < squares[place][:, targets].mean():
                        squares[place][:, targets] = errors
                        better[place] += [str(j + 1) for j in targets]
    if not any(better):
        return []
    return [
        Finding(one, found, _cause(one, list(dict.fromkeys(columns))))
        for one, found, columns in zip(coalitions, squares, better, strict=True)
    ]


def _errors_of(fits: Sequence[Fit], rows: int, from_noise: bool) -> Array:
    found = [fit(np.arange(side, rows, 2), from_noise) for side, fit in enumerate(fits[::-1])]
    errors = np.empty((rows, found[0].shape[1]))
    errors[::2], errors[1::2] = found
    return errors


def _cause(coalition: Coalition, columns: Sequence[str]) -> str:
    some = ", ".join(columns[:4]) + (", …" if len(columns) > 4 else "")
    shows = f"shows more of column{'s' * (len(columns) > 1)} {some} than a linear estimate"
    return f"the shape of the noise of {copies_in_words(coalition)} {shows}" if columns else ""


def dependent_attributes(X: Array, Y: Array) -> list[list[int]]:
    """Single attributes, then pairs with dependent noise sizes."""
    n, N = X.shape
    found = [[j] for j in range(N)]
    rank = np.argsort(np.argsort(np.abs(Y - X), axis=1), axis=1)
    size = np.abs([np.atleast_2d(np.corrcoef(copy.T)) for copy in rank]).max(axis=0)
    return found + [[a, b] for a, b in combinations(range(N), 2) if size[a, b] > 6.0 / np.sqrt(n)]


def _gains(line: Array, found: Array) -> bool:
    """Whether squared errors are surely below the line's by ``GAIN``.

    By ``SURE`` standard errors or, as outliers can hide these, by as many more rows with a gain
    than half.
    """
    gain = ((line - found) / line.mean(axis=0)).mean(axis=1)
    m, mean = len(gain), float(gain.mean())
    return mean > GAIN and (
        mean > SURE * gain.std() / np.sqrt(m)
        or 2.0 * float((gain > 0).mean()) - 1.0 > (1 + SURE) / np.sqrt(m)
    )


Density = Callable[[Array], Array]
"""Log-density of values, shape (..., d)."""
Fit = Callable[[Indices, bool], Array]
"""Squared errors in some rows, shape (m, d), with candidates from noise or from originals."""


def _fitted(X: Array, Y: Array, targets: list[int], learn: Indices) -> Fit:
    """Estimator of some attributes, fitted to one half of the rows."""
    x, copies = X[:, targets], list(Y[:, :, targets])
    others = np.delete(Y, targets, axis=2).transpose(1, 0, 2).reshape(len(X), -1)
    if others.shape[1]:
        guess, mean = least_squares(others, x, learn), x[learn].mean(axis=0)
        slope = guess[learn].var(axis=0) / x[learn].var(axis=0)
        new = guess - least_squares(np.hstack(copies), guess, learn)
        own = new[learn].var(axis=0) / guess[learn].var(axis=0)  # 0 if columns are collinear
        if (slope > FOLLOWS).all() and (own > NEGLIGIBLE**2).all():
            copies.append((guess - mean) / slope + mean)
    copies.sort(key=lambda copy: float((copy - x)[learn].var(axis=0).sum()))
    noise, laws = [(copy - x)[learn] for copy in copies], list[tuple[Array, Density | None]]()
    for place, z in enumerate(noise):
        earlier = np.hstack([np.ones((len(learn), 1)), *noise[:place]])
        B = np.linalg.lstsq(earlier, z, rcond=1e-8)[0]
        size = np.abs(B) * earlier.std(axis=0)[:, None]
        B[1:][size[1:] < NEGLIGIBLE * z.std(axis=0)] = 0.0
        rest = z - earlier @ B
        laws.append((B, fitted_density(rest) if rest.std() > 1e-9 * z.std() else None))
    prior, originals = fitted_density(x[learn]), representatives(x[learn])
    drawn = representatives(noise[0])

    def errors(rows: Indices, from_noise: bool) -> Array:
        if len(rows) > TOGETHER:
            parts = np.array_split(rows, -(-len(rows) // TOGETHER))
            return np.concatenate([errors(part, from_noise) for part in parts])
        held = [copy[rows][:, None] for copy in copies]
        c = held[0] - drawn if from_noise else np.tile(originals, (len(rows), 1, 1))
        z, log = [copy - c for copy in held], prior(c) if from_noise else np.zeros(c.shape[:2])
        for place, (B, law) in enumerate(laws):
            if law is None or (from_noise and place == 0):
                continue  # candidates from noise follow the first copy's density already
            e = z[place] - B[0]
            if B[1:].any():
                e = e - np.concatenate(z[:place], axis=2) @ B[1:]
            log = log + law(e)
        w = np.exp(log - log.max(axis=1, keepdims=True))
        return np.asarray((x[rows] - np.einsum("tc,tcd->td", w, c) / w.sum(axis=1)[:, None]) ** 2)

    return errors


def representatives(values: Array) -> Array:
    """Quantiles of one column, or evenly spaced rows of several."""
    places = ((np.arange(CANDIDATES) + 0.5) / CANDIDATES * len(values)).astype(int)
    return np.sort(values, axis=0)[places] if values.shape[1] == 1 else values[places]


CELLS = {1: 1024, 2: 96}
"""Cells along an axis, by the number of axes."""
WIDTHS = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Standard deviations of the smoothing, in cells."""
FLOOR = 1e-3
"""Share of a wide density that is mixed in: no value has probability 0."""


def fitted_density(values: Array) -> Density:
    """Log-density of a sample, shape (m, d), with d 1 or 2.

    Held-out likelihood over every second row chooses the smoothing.
    """
    d = values.shape[1]
    scale = np.maximum(np.median(np.abs(values), axis=0), 1e-3 * values.std(axis=0) + 1e-300)
    u, K = np.arcsinh(values / scale), CELLS[d]
    spread = np.ptp(u, axis=0) + 1e-9
    low, step = u.min(axis=0) - 0.05 * spread, 1.1 * spread / K

    def cells(v: Array) -> tuple[Indices, ...]:
        places = (np.arcsinh(v / scale) - low) / step
        return tuple(np.clip(places[..., axis], 0, K - 1).astype(np.intp) for axis in range(d))

    one, other = np.zeros((2, *[K] * d))
    for part, counts in ((values[::2], one), (values[1::2], other)):
        np.add.at(counts, cells(part), 1.0)
    likelihood = np.log(_smoothed(other)) * one + np.log(_smoothed(one)) * other
    best = int(likelihood.reshape(len(WIDTHS), -1).sum(axis=1).argmax())
    log = np.log(_smoothed(one + other)[best])
    for axis in range(d):  # in the values' own units
        edges = scale[axis] * np.sinh(low[axis] + step[axis] * np.arange(K + 1))
        log -= np.log(np.diff(edges)).reshape([-1 if place == axis else 1 for place in range(d)])
    return lambda v: log[cells(v)]


def _smoothed(counts: Array) -> Array:
    widths = (*WIDTHS, len(counts) / 24.0)
    smooth = [scipy.ndimage.gaussian_filter(counts, width, mode="wrap") for width in widths]
    found = np.array(smooth) / counts.sum()
    wide = 0.99 * found[-1] + 0.01 / counts.size
    return (1.0 - FLOOR) * found[:-1] + FLOOR * wide
