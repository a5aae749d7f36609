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

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audit.insider_noise.finding import Finding, copies_in_words, line_squares
from auditor.base.types import Array, Coalition, Indices

NAME = "known-generator"
DRAWS = 24
PAIRS = 2 * DRAWS
"""Python's ``normalvariate`` accepts 73 % of pairs: all but 1 in 10⁴ seeds have ``DRAWS`` values."""
SAME = 0.99
LAST_SEED = 65_535
POPULAR = [
    int(word, 0)
    for word in (
        "65536 99999 100000 111111 123123 123321 123456 123457 141421 271828 314159 420042 424242 "
        "654321 666666 777777 888888 999999 1000000 1234567 3141592 7654321 8675309 12345678 "
        "31415926 42424242 87654321 123456789 314159265 987654321 1000000007 1234567890 "
        "2147483647 4294967295 0xBADC0DE 0xC0FFEE 0xCAFE 0xCAFEBABE 0xDEADBEEF 0xFEEDFACE "
        "0xB16B00B5 0x5EED"
    ).split()
]
"""Popular seeds beyond ``LAST_SEED``. All dates from 2000 to 2030 as eight digits are tried too."""

Stream = Callable[[int, int], Array]
"""Takes a seed and a number of draws."""

LEGACY = np.random.RandomState()
"""Seeded anew for each stream: to make one takes forty times as long as to seed it."""
PYTHON = random.Random()


def _numpy(seeded: Callable[[int], Any], law: str, seed: int, size: int) -> Array:
    return getattr(seeded(seed), law)(size=size)


def _python(law: str, seed: int, size: int) -> Array:
    draw = getattr(random.Random(seed), law)
    return np.array([draw(0.0, 1.0) for _ in range(size)])


def _seeded(seed: int) -> np.random.RandomState:
    LEGACY.seed(seed)
    return LEGACY


STREAMS: Mapping[str, Stream] = {
    f"numpy's {name}({{seed}}).{law}": partial(_numpy, seeded, method)
    for name, seeded in (("RandomState", _seeded), ("default_rng", np.random.default_rng))
    for law, method in (
        ("normal", "standard_normal"),
        ("uniform", "uniform"),
        ("laplace", "laplace"),
    )
} | {
    f"Python's random.Random({{seed}}).{law}": partial(_python, law)
    for law in ("uniform", "gauss", "normalvariate")
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
    return (A * B).sum(axis=1) / np.sqrt(
        np.maximum((A**2).sum(axis=1) * (B**2).sum(axis=1), 1e-300)
    )


def matches(U: Array) -> Iterator[tuple[str, int]]:
    """Yield generators and seeds whose first draws are the noise's."""
    P = _standard(np.array([values[:DRAWS] for values in sequences(U)])).astype(np.float32)
    seeds = all_seeds()
    seen = set()
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
    days = np.arange("2000-01-01", "2031-01-01", dtype="datetime64[D]").astype(str)
    dates = [int(day.replace("-", "")) for day in days.tolist()]
    return np.array([*range(LAST_SEED + 1), *POPULAR, *dates])


@cache
def first_draws() -> dict[str, NDArray[np.float32]]:
    """Return the first draws of all seeds by stream, shape (S, DRAWS), rows standardised.

    A process draws them once, in two seconds.
    """
    seeds, found = all_seeds().tolist(), dict[str, NDArray[np.float32]]()
    for generator, (draw, laws) in FIRST.items():
        values = np.array([draw(seed) for seed in seeds])
        for law, derived in laws.items():
            found[f"{generator}.{law}"] = _standard(derived(values)).astype(np.float32)
    return found


def laplace(doubles: Array) -> Array:
    """Return numpy's Laplace values of doubles, shape as doubles."""
    low, high = np.log(2.0 * doubles + 1e-300), -np.log(2.0 - 2.0 * doubles)
    return np.where(doubles < 0.5, low, high)


def box_muller(doubles: Array) -> Array:
    """Return the normals of Python's ``gauss``, shape as doubles."""
    angle, size = 2.0 * np.pi * doubles[:, ::2], np.sqrt(-2.0 * np.log1p(-doubles[:, 1::2]))
    return np.stack([np.cos(angle) * size, np.sin(angle) * size], axis=2).reshape(doubles.shape)


def kinderman_monahan(doubles: Array) -> Array:
    """Return the normals of Python's ``normalvariate``, one per pair of doubles."""
    u = 1.0 - doubles[:, 1::2]
    z = 4.0 * np.exp(-0.5) / np.sqrt(2.0) * (doubles[:, ::2] - 0.5) / u
    rejected = z * z / 4.0 > -np.log(u)
    return np.take_along_axis(z, np.argsort(rejected, axis=1, kind="stable")[:, :DRAWS], axis=1)


def _python_doubles(words: NDArray[Any]) -> Array:
    """Return doubles of pairs of 32 bits, as ``random.random`` makes them."""
    return np.asarray(((words[:, ::2] >> 5) * 2.0**26 + (words[:, 1::2] >> 6)) / 2.0**53)


def _of_legacy(seed: int) -> Array:
    normals = _seeded(seed).standard_normal(DRAWS)
    return np.concatenate([normals, _seeded(seed).random_sample(DRAWS)])


def _of_default(seed: int) -> Array:
    made = np.random.default_rng(seed)
    doubles = made.random(DRAWS)
    made.bit_generator.advance(-DRAWS)  # type: ignore[attr-defined]
    return np.concatenate([made.standard_normal(DRAWS), doubles])


def _of_python(seed: int) -> Array:
    PYTHON.seed(seed)
    return np.frombuffer(PYTHON.randbytes(16 * PAIRS), dtype="<u4")


Laws = Mapping[str, Callable[[Array], Array]]
NUMPY: Laws = {
    "normal": lambda both: both[:, :DRAWS],
    "uniform": lambda both: both[:, DRAWS:],
    "laplace": lambda both: laplace(both[:, DRAWS:]),
}
FIRST: Mapping[str, tuple[Callable[[int], Array], Laws]] = {
    "numpy's RandomState({seed})": (_of_legacy, NUMPY),
    "numpy's default_rng({seed})": (_of_default, NUMPY),
    "Python's random.Random({seed})": (
        _of_python,
        {
            "uniform": lambda words: _python_doubles(words[:, : 2 * DRAWS]),
            "gauss": lambda words: box_muller(_python_doubles(words[:, : 2 * DRAWS])),
            "normalvariate": lambda words: kinderman_monahan(_python_doubles(words)),
        },
    ),
}
"""A seed's first values by generator, and each law's draws from them: half the time of the streams
themselves."""


def _standard(rows: Array) -> Array:
    rows = rows - rows.mean(axis=1, keepdims=True)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
