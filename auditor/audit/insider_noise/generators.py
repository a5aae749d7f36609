"""Noise of a known generator with a guessable seed.

| symbol | meaning | shape |
| --- | --- | --- |
| ``Z`` | noise of M copies, or noise over the original | (M, n, N) |
| ``E`` | first draws of every seed, by generator; rows standardised below | (S, D) |
| ``P`` | first D values of Z, or their ranks, in every natural order of drawing; standardised | (D, L) |
| match | a correlation in ``E P`` above ``SAME_FEW``, or of ``PROBE`` values anywhere in a series of draws | (S, L) |

Ranks know neither scale nor law. A match is drawn in full. Each column is compared with the draws by
ranks, and predicted by neighbours in the order of the draws.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audit.measures.every_cell import Finding, copies_in_words, line_squares
from auditor.base import scipy
from auditor.base.types import Array, Coalition, Indices
from auditor.data.table import ShownColumn
from auditor.numerics.statistics import standard_ranks, standardised

DRAWS = 24
SAME_FEW, SAME = 0.9, 0.99
"""Least correlation of ``DRAWS`` values, by chance in one of 10⁹ pairs, and of a whole column."""
LAST_SEED = 65_535
OFTEN = 0, 1, 42, 123, 1234
"""Seeds of streams, as long as the number of seeds, in which the noise may begin."""
PROBE, LIKE = 64, 0.8
"""Values that are searched for, and their least correlation."""
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
"""Popular seeds beyond ``LAST_SEED``. Also dates from 2000 to 2030 as eight digits."""
NUMBERS = [10**digits + row for digits in range(5, 10) for row in range(2 * PROBE)]
"""Seeds of the first records of a table, numbered from 100,000 or 100,001, and so on."""

LEGACY = np.random.RandomState()
"""Seeded for each stream, which is forty times faster than construction."""
PYTHON = random.Random()


def legacy_draws(seeds: Sequence[int], size: int) -> dict[str, Array]:
    """Draws of ``RandomState``, which ``np.random.seed`` seeds, by method, shape (S, size)."""
    found = {"normal": np.empty((len(seeds), size)), "random": np.empty((len(seeds), size))}
    for place, seed in enumerate(seeds):
        LEGACY.seed(seed)
        found["normal"][place] = LEGACY.standard_normal(size)
        LEGACY.seed(seed)
        found["random"][place] = LEGACY.random_sample(size)
    return found


def default_draws(seeds: Sequence[int], size: int) -> dict[str, Array]:
    """Draws of ``default_rng``. Seeding is slow, and done once for both methods."""
    found = {"normal": np.empty((len(seeds), size)), "random": np.empty((len(seeds), size))}
    for place, seed in enumerate(seeds):
        rng = np.random.Generator(bits := np.random.PCG64(seed))
        rng.random(out=found["random"][place])
        bits.advance(-size)
        rng.standard_normal(out=found["normal"][place])
    return found


def python_draws(seeds: Sequence[int], size: int) -> dict[str, Array]:
    """Draws of ``random.Random`` by method, (S, size), computed from its bits.

    Five times as fast as its methods. ``gauss`` is a pair by Box and Muller, ``normalvariate`` a
    ratio by Kinderman and Monahan, of which 0.73 are accepted: enough of ``2 size + 20``.
    """
    words, pairs = list[bytes](), 2 * size + 20
    for seed in seeds:
        PYTHON.seed(seed)
        words.append(PYTHON.randbytes(16 * pairs))
    high, low = np.frombuffer(b"".join(words), "<u4").reshape(len(seeds), 2 * pairs, 2).T
    u = ((high >> 5) * 2.0**26 + (low >> 6)).T / 2.0**53
    first, second = u[:, ::2], 1.0 - u[:, 1::2]
    few = slice(0, -(-size // 2))
    radius, angle = np.sqrt(-2.0 * np.log(second[:, few])), 2.0 * np.pi * first[:, few]
    gauss = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2)
    ratio = 4.0 * np.exp(-0.5) / np.sqrt(2.0) * (first - 0.5) / second
    order = np.argsort(ratio**2 / 4.0 > -np.log(second), axis=1, kind="stable")[:, :size]
    return {
        "random": u[:, :size],
        "gauss": gauss.reshape(len(seeds), -1)[:, :size],
        "normalvariate": np.take_along_axis(ratio, order, axis=1),
    }


GENERATORS: dict[str, Callable[[Sequence[int], int], dict[str, Array]]] = {
    "numpy's RandomState": legacy_draws,
    "numpy's default_rng": default_draws,
    "Python's random.Random": python_draws,
}
"""Generators that may have drawn the noise, by their names in messages."""
Stream = tuple[str, str]
"""Generator and method."""


SHUFFLES: dict[str, Callable[[int], Any]] = {
    "numpy's RandomState": np.random.RandomState,
    "numpy's default_rng": np.random.default_rng,
    "Python's random.Random": random.Random,
}
SHUFFLED = [*range(128), 1234, *range(1980, 2031), *POPULAR]
"""Seeds of permutations."""
MOST_SHUFFLED = 100_000
"""Most rows of permutations: four columns of so many take 40 s."""


def known_generators(
    X: Array,
    copies: Sequence[Array],
    coalitions: Sequence[Coalition],
    numbers: Iterable[ShownColumn] = (),
) -> list[Finding]:
    """Findings if a guessable seed draws the noise of any column.

    Parameters
    ----------
    X : ndarray of shape (n, N)
    copies : sequence of M ndarrays of shape (n, N)
    coalitions : sequence of tuple of int
        Copy numbers, from 1.
    numbers : iterable of ShownColumn
        May seed each row's draws.
    """
    if len(X) < DRAWS:
        return []
    seeds = {c.name: c.values.astype(np.int64).tolist() for c in numbers if may_seed(c.values)}
    left, found = redrawn(np.array(copies) - X, X, seeds)
    for copy, column, cause in reshuffled(X, copies):
        left[copy, :, column], found[copy] = 0.0, cause
    findings = []
    for one in coalitions:
        held = np.array(one) - 1
        causes = [
            f"the noise of {copies_in_words([copy for copy in one if found.get(copy - 1) == text])} follows {text}"
            for text in dict.fromkeys(map(found.get, held))
            if text
        ]
        squares = np.minimum(
            left[held].min(axis=0), line_squares(X, [copies[copy] for copy in held])
        )
        findings.append(Finding(one, squares, "; ".join(causes)))
    return findings if found else []


def reshuffled(X: Array, copies: Sequence[Array]) -> Iterator[tuple[int, int, str]]:
    """Yield copies, columns and causes of permutations by a popular seed.

    A seed permutes the columns in turn, or each by the same draws.
    """
    moved = [
        (number, j, copy[:, j])
        for number, copy in enumerate(copies)
        for j, x in enumerate(X.T)
        if (copy[:, j] != x).any() and np.array_equal(np.sort(copy[:, j]), np.sort(x))
    ]
    for cause, shuffler in SHUFFLES.items() if moved and len(X) <= MOST_SHUFFLED else ():
        for seed in SHUFFLED:
            rng = shuffler(seed)
            for _ in X.T:
                rng.shuffle(places := np.arange(len(X)))
                for number, j, y in moved:
                    if (X[places, j] == y).all():
                        yield number, j, f"{cause}({seed}).shuffle"


def may_seed(values: NDArray[Any]) -> bool:
    """Whether values are whole numbers that every generator accepts."""
    return values.dtype.kind == "f" and bool(
        ((values >= 0) & (values < 2**32) & (values % 1.0 == 0.0)).all()
    )


def redrawn(Z: Array, X: Array, seeds: Mapping[str, Sequence[int]]) -> tuple[Array, dict[int, str]]:
    """Mean squared noise beyond known draws, and generators by copy.

    The former has the shape of Z and is infinite without a match. Copies count from 0.
    """
    left, causes = np.full(Z.shape, np.inf), dict[int, str]()
    factors = np.array([np.ones(X.shape), np.where(X == 0, 1.0, X)])
    noise = (Z / factors[:, None]).reshape(-1, *X.shape)
    ranks = np.array([standard_ranks(copy) for copy in noise])
    again = by_column(seeds, ranks), drawn_again(np.split(ranks, 2), np.split(noise, 2))
    for cause, draws in chain(*again):
        e = np.array([standard_ranks(part) for part in draws])
        alike = np.mean(np.concatenate([e, e]) * ranks, axis=1)
        for place, column in np.argwhere(np.abs(alike) > SAME).tolist():
            factor, copy = divmod(place, len(Z))
            rest = unpredicted(draws[copy, :, column], noise[place, :, column])
            share = np.square(rest * factors[factor, :, column]).mean()
            if share < 0.5 * left[copy, 0, column]:
                left[copy, :, column], causes[copy] = share, cause
    return left, causes


def unpredicted(e: Array, z: Array) -> Array:
    """Part of z that neighbours in the order of draws e leave; none if z is monotone in e."""
    order, rest = np.argsort(e), np.zeros(len(z))
    steps, near = np.sign(np.diff(z[order])), np.pad(z[order], 1, mode="reflect")
    if abs(steps.sum()) != np.count_nonzero(steps):
        rest[order] = z[order] - (near[:-2] + near[2:]) / 2.0
    return rest


def by_column(seeds: Mapping[str, Sequence[int]], ranks: Array) -> Iterator[tuple[str, Array]]:
    """Yield causes and draws of generators that a column's numbers seed for each row."""
    for (name, each), (generator, draw) in product(seeds.items(), GENERATORS.items()):
        for method, few in draw(each[:PROBE], ranks.shape[2]).items():
            if np.abs(np.mean(standard_ranks(few) * ranks[:, : len(few)], axis=1)).max() > LIKE:
                draws = draw(each, ranks.shape[2])[method]
                shape = len(ranks) // 2, *draws.shape
                yield f"{generator}({name}).{method}", np.broadcast_to(draws, shape)


def drawn_again(ranks: Sequence[Array], noise: Sequence[Array]) -> Iterator[tuple[str, Array]]:
    """Yield causes and draws, (M, n, N), of seeds that match first draws.

    Popular seeds may have made other draws before, and each row may have a seed of its own.

    Parameters
    ----------
    ranks, noise : sequence of ndarrays of shape (M, n, N)
        By factor of the noise.
    """
    shape, few = noise[0].shape, [one[:DRAWS] for part in noise for one in sequences(part)]
    few += [one[:DRAWS] for part in ranks for one in sequences(part)]
    P, seeds = standardised(np.array(few).T).astype(np.float32) / DRAWS, all_seeds()
    for stream, E in first_draws().items():
        alike = np.abs((E - E.mean(axis=1)[:, None]) / E.std(axis=1)[:, None] @ P) > SAME_FEW
        for seed in seeds[alike.any(axis=1)].tolist():
            yield from layouts(stream, seed, 0, shape)
    probes = [part.ravel()[:PROBE] for each in ranks for copy in each for part in (copy, copy.T)]
    n = scipy.fft.next_fast_len(len(seeds), real=True)
    G = scipy.fft.rfft(np.array(probes, dtype=np.float32), n, axis=1).conj()
    for (stream, seed), F in series().items():
        found = np.abs(scipy.fft.irfft(F * G, n)[:, : len(seeds)]) / PROBE > LIKE
        for start in np.flatnonzero(found.any(axis=0)).tolist():
            if seed >= 0:
                yield from layouts(stream, seed, start, shape)
            else:
                (generator, method), first = stream, int(seeds[start])
                draws = GENERATORS[generator](range(first, first + shape[1]), shape[2])[method]
                yield f"{generator}({first} + row).{method}", np.broadcast_to(draws, shape)


@cache
def series() -> dict[tuple[Stream, int], NDArray[np.complex64]]:
    """Fourier transforms of draws; seed −1: all seeds' first draws."""
    size = len(all_seeds())
    # 77,541 has large prime factors: its transforms take five times as long
    n = scipy.fft.next_fast_len(size, real=True)
    found = {(stream, -1): E[:, 0] for stream, E in first_draws().items()}
    for generator, draw in GENERATORS.items():
        for method, each in draw(OFTEN, size).items():
            found |= {((generator, method), seed): e for seed, e in zip(OFTEN, each, strict=True)}
    return {
        key: scipy.fft.rfft(((each - each.mean()) / each.std()).astype(np.float32), n)
        for key, each in found.items()
    }


def sequences(U: Array) -> Iterator[Array]:
    """Yield the first noise of all copies, each copy and each column."""
    few = U[:, :DRAWS]
    for axes in permutations(range(3)):
        whole = U if axes[2] == 1 else few
        yield whole.transpose(axes).ravel()
    for copy in U:
        yield copy[:DRAWS].ravel()
        yield from (copy[:DRAWS, column] for column in range(U.shape[2]))


def layouts(
    stream: Stream, seed: int, start: int, shape: tuple[int, ...]
) -> Iterator[tuple[str, Array]]:
    """Yield causes and a stream in natural orders of drawing, shape (M, n, N)."""
    (generator, method), (_, n, N) = stream, shape
    flat = GENERATORS[generator]([seed], start + int(np.prod(shape)))[method][0, start:]
    few, names = flat[: n * N], ("copy by copy", "row by row", "column by column")
    orders = {
        names[1]: few.reshape(n, N),
        names[2]: few.reshape(N, n).T,
        "from the seed anew for each column": flat[:n, None],
    }
    for axes in permutations(range(3)):
        order = ", ".join(names[axis] for axis in axes[:2])
        orders[order] = flat.reshape([shape[axis] for axis in axes]).transpose(np.argsort(axes))
    after = f" after {start} draws" if start else ""
    for order, draws in orders.items():
        yield f"{generator}({seed}).{method}, drawn {order}{after}", np.broadcast_to(draws, shape)


@cache
def all_seeds() -> Indices:
    """Seeds that are tried, shape (S,)."""
    days = np.arange("2000-01-01", "2031-01-01", dtype="datetime64[D]").astype(str)
    dates = [int(day.replace("-", "")) for day in days.tolist()]
    return np.array([*range(LAST_SEED + 1), *POPULAR, *dates, *NUMBERS])


@cache
def first_draws() -> dict[Stream, NDArray[np.float32]]:
    """First draws of all seeds by stream, shape (S, DRAWS).

    A process draws them once.
    """
    seeds, found = all_seeds().tolist(), dict[Stream, NDArray[np.float32]]()
    for generator, draw in GENERATORS.items():
        parts = [draw(seeds[k : k + 4_096], DRAWS) for k in range(0, len(seeds), 4_096)]
        for method in parts[0]:
            whole = np.concatenate([part[method] for part in parts])
            found[generator, method] = whole.astype(np.float32)
    return found
