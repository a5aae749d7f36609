"""Noise of a known generator with a guessable seed.

| symbol | meaning | shape |
| --- | --- | --- |
| ``Z`` | noise of M copies | (M, n, N) |
| ``E`` | first draws of every seed, by generator and law; rows standardised | (S, D) |
| ``P`` | first D values of Z in every natural order of drawing; rows standardised | (L, D) |
| match | a correlation in ``E Pᵀ`` above ``SAME`` | (S, L) |

Correlation knows neither scale nor location, so levels need not be known. Of D = 24 independent
values it exceeds ``SAME`` by chance in one of 10²⁰ pairs. A match is then drawn in full, and each
column of each copy is compared with it.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from auditor.audit.insider_noise.finding import Finding, copies_in_words, line_squares
from auditor.types import Array, Coalition, Indices

NAME = "known-generator"
DRAWS = 24
TWISTER_DRAWS = 96
"""Doubles of which nearly every seed makes ``DRAWS`` normals by rejection."""
BLOCKS = 16
SAME = 0.99
LAST_SEED = 65_535
POPULAR = (
    65_536,
    99_999,
    100_000,
    111_111,
    123_123,
    123_321,
    123_456,
    123_457,
    141_421,
    271_828,
    314_159,
    420_042,
    424_242,
    654_321,
    666_666,
    777_777,
    888_888,
    999_999,
    1_000_000,
    1_234_567,
    3_141_592,
    7_654_321,
    8_675_309,
    12_345_678,
    31_415_926,
    42_424_242,
    87_654_321,
    123_456_789,
    314_159_265,
    987_654_321,
    1_000_000_007,
    1_234_567_890,
    2**31 - 1,
    2**32 - 1,
    0xBADC0DE,
    0xC0FFEE,
    0xCAFE,
    0xCAFEBABE,
    0xDEADBEEF,
    0xFEEDFACE,
    0xB16B00B5,
    0x5EED,
)
"""Popular seeds beyond ``LAST_SEED``. All dates from 2000 to 2030 as eight digits are tried too."""

Stream = Callable[[int, int], Array]
"""Takes a seed and a number of draws."""


def _repeat(draw: Callable[[], float], size: int) -> Array:
    return np.array([draw() for _ in range(size)])


STREAMS: dict[str, Stream] = {
    "numpy's RandomState({seed}).normal": lambda seed, size: np.random.RandomState(
        seed
    ).standard_normal(size),
    "numpy's RandomState({seed}).uniform": lambda seed, size: np.random.RandomState(
        seed
    ).random_sample(size),
    "numpy's RandomState({seed}).laplace": lambda seed, size: np.random.RandomState(seed).laplace(
        size=size
    ),
    "numpy's default_rng({seed}).normal": lambda seed, size: np.random.default_rng(
        seed
    ).standard_normal(size),
    "numpy's default_rng({seed}).uniform": lambda seed, size: np.random.default_rng(seed).random(
        size
    ),
    "numpy's default_rng({seed}).laplace": lambda seed, size: np.random.default_rng(seed).laplace(
        size=size
    ),
    "Python's random.Random({seed}).gauss": lambda seed, size: _repeat(
        partial(random.Random(seed).gauss, 0.0, 1.0), size
    ),
    "Python's random.Random({seed}).normalvariate": lambda seed, size: _repeat(
        partial(random.Random(seed).normalvariate, 0.0, 1.0), size
    ),
    "Python's random.Random({seed}).uniform": lambda seed, size: _repeat(
        random.Random(seed).random, size
    ),
}
"""Streams that may have drawn the noise, by their names in messages. ``np.random.seed`` seeds a
``RandomState``."""


def known_generators(
    X: Array, copies: Sequence[Array], coalitions: Sequence[Coalition]
) -> list[Finding]:
    """Return findings if a guessable seed draws the noise of any column.

    Parameters
    ----------
    X : ndarray of shape (n, N)
    copies : sequence of M ndarrays of shape (n, N)
    coalitions : sequence of tuple of int
        Copy numbers, from 1.
    """
    if len(X) < DRAWS:
        return []
    left, found = redrawn(np.array(copies) - X)
    findings = []
    for one in coalitions:
        held = np.array(one) - 1
        by_cause = {
            text: [copy for copy in one if found.get(copy - 1) == text]
            for text in dict.fromkeys(map(found.get, held))
            if text
        }
        causes = [
            f"the noise of {copies_in_words(numbers)} is {text}"
            for text, numbers in by_cause.items()
        ]
        squares = np.minimum(
            left[held].min(axis=0), line_squares(X, [copies[copy] for copy in held])
        )
        findings.append(Finding(NAME, one, squares, X.var(axis=0), "; ".join(causes)))
    return findings if found else []


def redrawn(Z: Array) -> tuple[Array, dict[int, str]]:
    """Return mean squared noise beyond known draws, and generators by copy.

    The former has the shape of Z and is infinite without a match. Copies count from 0.
    """
    left, causes = np.full(Z.shape, np.inf), dict[int, str]()
    centred = Z - Z.mean(axis=1, keepdims=True)
    U = centred / np.maximum(centred.std(axis=1, keepdims=True), 1e-300)
    for stream, seed in matches(U):
        flat = STREAMS[stream](seed, U.size)
        found = [
            (np.abs(_correlations(draws, U)) > SAME, order, draws)
            for order, draws in layouts(flat, U.shape)
        ]
        for same, order, draws in sorted(found, key=lambda one: -int(one[0].sum())):
            for copy, column in np.argwhere(same).tolist():
                e, z = draws[copy, :, column], Z[copy, :, column]
                rest = z - np.polyval(np.polyfit(e, z, 1), e)
                if np.square(rest).mean() < 0.5 * left[copy, 0, column]:
                    left[copy, :, column] = np.square(rest).mean()
                    causes[copy] = f"{stream.format(seed=seed)}, {order}"
    return left, causes


def _correlations(A: Array, B: Array) -> Array:
    """Return correlations over the middle axis of two arrays, shape (M, N)."""
    A, B = (part - part.mean(axis=1, keepdims=True) for part in (A, B))
    return np.asarray(
        (A * B).sum(axis=1) / np.sqrt(np.maximum((A**2).sum(axis=1) * (B**2).sum(axis=1), 1e-300))
    )


def matches(U: Array) -> Iterator[tuple[str, int]]:
    """Yield generators and seeds whose first draws are the noise's."""
    P = _standard(np.array([values[:DRAWS] for values in sequences(U)])).astype(np.float32)
    seeds = all_seeds()
    seen = set[tuple[str, int]]()
    for stream, E in first_draws().items():
        for seed in seeds[(np.abs(E @ P.T) > SAME).any(axis=1)].tolist():
            if (stream, seed) not in seen:
                seen.add((stream, seed))
                yield stream, seed


def sequences(U: Array) -> Iterator[Array]:
    """Yield the first noise of all copies, each copy and each column."""
    few = U[:, :DRAWS]
    for axes in permutations(range(3)):
        whole = U if axes[2] == 1 else few
        yield whole.transpose(axes).ravel()
    for copy in U:
        yield copy[:DRAWS].ravel()
        yield from (copy[:DRAWS, column] for column in range(U.shape[2]))


def layouts(flat: Array, shape: tuple[int, ...]) -> Iterator[tuple[str, Array]]:
    """Yield orders of drawing, and a stream in each, shape (M, n, N)."""
    n, N = shape[1:]
    yield "drawn row by row", np.broadcast_to(flat[: n * N].reshape(n, N), shape)
    yield "drawn column by column", np.broadcast_to(flat[: n * N].reshape(N, n).T, shape)
    yield "drawn from the seed anew for each column", np.broadcast_to(flat[:n, None], shape)
    names = ("copy by copy", "row by row", "column by column")
    for axes in permutations(range(3)):
        order = ", ".join(names[axis] for axis in axes[:2])
        yield (
            f"drawn {order}",
            flat.reshape([shape[axis] for axis in axes]).transpose(np.argsort(axes)),
        )


@cache
def all_seeds() -> Indices:
    """Return the seeds that are tried, shape (S,)."""
    day, days = datetime.date(2000, 1, 1), []
    while day.year <= 2030:
        days.append(int(day.strftime("%Y%m%d")))
        day += datetime.timedelta(days=1)
    return np.array([*range(LAST_SEED + 1), *POPULAR, *days])


@cache
def first_draws() -> dict[str, NDArray[np.float32]]:
    """Return the first draws of all seeds by stream, shape (S, DRAWS), rows standardised.

    A process draws them once, in three seconds. Blocks of seeds keep memory below 200 MB.
    """
    parts = [_first_draws(seeds.tolist()) for seeds in np.array_split(all_seeds(), BLOCKS)]
    return {stream: np.concatenate([part[stream] for part in parts]) for stream in STREAMS}


def _first_draws(seeds: Sequence[int]) -> dict[str, NDArray[np.float32]]:
    """Numpy's ``RandomState`` and Python seed the Mersenne Twister differently; each seed is drawn once for all laws."""
    legacy, python, doubles, normals = (
        np.empty((len(seeds), width)) for width in (TWISTER_DRAWS, TWISTER_DRAWS, DRAWS, DRAWS)
    )
    twister = np.random.RandomState()
    for place, seed in enumerate(seeds):
        twister.seed(seed)
        legacy[place] = twister.random_sample(TWISTER_DRAWS)
        twister.seed([seed])  # as `random.seed(seed)`
        python[place] = twister.random_sample(TWISTER_DRAWS)
        bits = np.random.PCG64(seed)
        start, generator = bits.state, np.random.Generator(bits)
        generator.standard_normal(out=normals[place])
        bits.state = start
        generator.random(out=doubles[place])
    draws = (
        polar(legacy),
        legacy,
        laplace(legacy),
        normals,
        doubles,
        laplace(doubles),
        box_muller(python),
        ratio_normals(python),
        python,
    )
    return {
        stream: _standard(part[:, :DRAWS]).astype(np.float32)
        for stream, part in zip(STREAMS, draws, strict=True)
    }


def _standard(rows: Array) -> Array:
    """Return rows with mean 0 and length 1."""
    rows = rows - rows.mean(axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300))


def polar(doubles: Array) -> Array:
    """Return ``RandomState`` normals of doubles by Marsaglia's polar method."""
    pairs = 2.0 * doubles.reshape(len(doubles), -1, 2) - 1.0
    square = (pairs**2).sum(axis=2)
    factor = np.sqrt(-2.0 * np.log(np.minimum(square, 1.0)) / square)
    return _accepted(factor[:, :, None] * pairs[:, :, ::-1], square < 1.0)


def box_muller(doubles: Array) -> Array:
    """Return the normals of Python's ``gauss``, shape as doubles."""
    angle, size = 2.0 * np.pi * doubles[:, ::2], np.sqrt(-2.0 * np.log1p(-doubles[:, 1::2]))
    return np.stack([np.cos(angle) * size, np.sin(angle) * size], axis=2).reshape(doubles.shape)


def ratio_normals(doubles: Array) -> Array:
    """Return normals of Python's ``normalvariate`` (Kinderman and Monahan)."""
    second = 1.0 - doubles[:, 1::2]
    z = 4.0 * np.exp(-0.5) / np.sqrt(2.0) * (doubles[:, ::2] - 0.5) / second
    return _accepted(z[:, :, None], z**2 / 4.0 <= -np.log(second))


def laplace(doubles: Array) -> Array:
    """Return numpy's Laplace values of doubles, shape as doubles."""
    return np.asarray(
        np.where(doubles < 0.5, np.log(2.0 * doubles + 1e-300), -np.log(2.0 - 2.0 * doubles))
    )


def _accepted(values: Array, accepted: Array) -> Array:
    """Return the first ``DRAWS`` accepted values of each row, in order."""
    first = np.argsort(np.logical_not(accepted), axis=1, kind="stable")[
        :, : -(-DRAWS // values.shape[2])
    ]
    return np.take_along_axis(values, first[:, :, None], axis=1).reshape(len(values), -1)[:, :DRAWS]
