"""Named random streams of a run, independent of the order of draws.

| symbol | meaning | source |
| --- | --- | --- |
| ``K`` | 256 bits of entropy, one key per ``perturb`` or ``extend`` | |
| ``K_name`` | key of one named draw, ``HKDF-Expand(K, name)`` | RFC 5869 |
| ``w`` | 64-bit words, ``AES-256-CTR(K_name)`` of zeros; one stream per key | NIST SP 800-38A |

For release only: a few draws of SFC64, used in audits, determine all later ones
(``benchmarks/generator_attack.py``).
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NoReturn, TypeAlias, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from auditor.base import PluginError, scipy
from auditor.base.types import Array, Indices

Shape = int | tuple[int, ...] | None
Words = NDArray[np.uint64]

PIECE = 2**13
"""Words per piece: 64 KB."""
ZEROS = memoryview(bytes(8 * PIECE))
LARGEST_MEAN = 1e6
"""Largest Poisson mean."""


class ReleaseKey:
    """The secret behind one release's noise; in memory only, never printed.

    ``secret``: 32 bytes.
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secrets.token_bytes(32) if secret is None else secret

    def __repr__(self) -> str:
        return "ReleaseKey(secret)"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "the key of a release is kept in memory only: it cannot be pickled or copied to a file"
        )

    def __deepcopy__(self, memory: object) -> ReleaseKey:
        return self

    def stream(self, *name: object) -> CipherStream:
        """Stream of a name."""
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

        return CipherStream(HKDFExpand(SHA256(), 32, repr(name).encode()).derive(self._secret))


class CipherStream:
    """Draws from a cipher's key stream, with methods of numpy's ``Generator``.

    One stream per key.
    """

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._buffer = np.empty(8 * PIECE + 16, dtype=np.uint8)

    def __getattr__(self, name: str) -> NoReturn:
        if hasattr(np.random.Generator, name):
            raise PluginError(
                f"noise meant for release cannot be drawn with `{name}`: use random, standard_normal, standard_exponential, "
                "integers, poisson or permutation"
            )
        raise AttributeError(name)

    def random(self, size: Shape = None) -> Any:
        """Numbers uniform on [0, 1), multiples of 2⁻⁵³."""

        def uniform(words: Words) -> NDArray[Any]:
            words >>= np.uint64(11)
            return words.view(np.int64) * 2.0**-53

        return self._filled(uniform, size)

    def standard_normal(self, size: Shape = None) -> Any:
        """N(0, 1) draws, ``±Φ⁻¹(p)``, p uniform on (0, ½), within 9.3."""

        def normal(words: Words) -> Array:
            drawn = scipy.special.ndtri(((words & np.uint64(2**63 - 1)) + 0.5) * 2.0**-64)
            return np.where(words < 2**63, -drawn, drawn)

        return self._filled(normal, size)

    def standard_exponential(self, size: Shape = None) -> Any:
        """Exponential draws of mean 1, ``−ln p``."""
        return self._filled(lambda words: -np.log((words + 0.5) * 2.0**-64), size)

    def integers(
        self, low: int, high: int | None = None, size: Shape = None, dtype: DTypeLike = np.int64
    ) -> Any:
        """Whole numbers exactly uniform on ``low … high − 1``."""
        least, stop = (0, int(low)) if high is None else (int(low), int(high))
        span, kind = stop - least, np.iinfo(np.dtype(dtype))
        if not (span > 0 and kind.min <= least and stop - 1 <= kind.max):
            raise ValueError(
                f"a range must hold whole numbers from {kind.min} to {kind.max}, and at least one"
            )
        last = np.uint64(2**64 - 1 - 2**64 % span)

        def whole(words: Words) -> NDArray[np.int64]:
            # the last, incomplete run of remainders is drawn again
            while (beyond := words > last).any():
                again = self._encryptor.update(bytes(8 * int(beyond.sum())))
                words[beyond] = np.frombuffer(again, dtype=np.uint64)
            # as in int64
            return (words % np.uint64(span) + np.uint64(least % 2**64)).view(np.int64)

        return self._filled(whole, size, dtype)

    def poisson(self, lam: float = 1.0, size: Shape = None) -> Any:
        """Poisson numbers, by ``log_concave``."""
        if not 0 <= lam <= LARGEST_MEAN:
            raise ValueError(f"a Poisson mean must be from 0 to {LARGEST_MEAN:g}")

        def log_p(k: Array, at: Indices) -> Array:
            possible = np.maximum(k, 0.0)
            found = scipy.special.xlogy(possible, lam) - scipy.special.gammaln(possible + 1.0)
            return np.where(k < 0, -np.inf, found - lam)

        start = np.full(() if size is None else size, math.floor(lam), dtype=float)
        drawn = log_concave(self, start.ravel(), log_p).astype(np.int64).reshape(start.shape)
        return drawn[()]

    def permutation(self, x: int | NDArray[Any]) -> NDArray[Any]:
        """Permutation of numbers below x, or of the rows of x."""
        items = np.arange(x) if isinstance(x, (int, np.integer)) else np.asarray(x)
        return items[np.argsort(self.integers(2**63, size=len(items)), kind="stable")]

    def _filled(
        self, turn: Callable[[Words], NDArray[Any]], size: Shape, dtype: DTypeLike = np.float64
    ) -> Any:
        found = np.empty(() if size is None else size, dtype)
        flat = found.reshape(-1)
        for start in range(0, flat.size, PIECE):
            part = flat[start : start + PIECE]
            self._encryptor.update_into(ZEROS[: 8 * part.size], self._buffer.data)
            part[...] = turn(self._buffer[: 8 * part.size].view(np.uint64))
        return found[()] if size is None else found


Seed: TypeAlias = int | ReleaseKey
"""Root of a release's streams: a public number, or a secret key."""
# in quotes, as numpy imports its generators on first use
Rng: TypeAlias = "np.random.Generator | CipherStream"


@overload
def stream(seed: int, *name: object) -> np.random.Generator: ...
@overload
def stream(seed: Seed, *name: object) -> Rng: ...
def stream(seed: Seed, *name: object) -> Rng:
    """Generator of a name, from a run's seed or a release's key.

    Streams are keyed by purpose (scheme, replicate, copy, block …), so an additional attack, scheme
    or worker changes no other result. Seeds are ≥ 0, or a key. By ``repr``, 1 and '1' are two
    streams.

    Examples
    --------
    >>> stream(7, "copy", 1).random() == stream(7, "copy", 1).random()
    True
    """
    if isinstance(seed, ReleaseKey):
        return seed.stream(*name)
    # A hash, not a counter: a name means one stream in any process and order.
    digest = hashlib.sha256(repr(name).encode()).digest()
    words = tuple(int.from_bytes(digest[k : k + 4], "little") for k in range(0, 16, 4))
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=words)))


# -- Whole numbers from uniform and exponential ones, for any version of numpy -----------------------

# Exact down to probabilities of about 2⁻⁵³, as whole float64.

LARGEST_TABLE = 2.0**12
"""Largest variance for tabled Skellam numbers: some 1,200 probabilities.
"""


def geometric(rng: Rng, rate: float, size: int) -> Array:
    """Numbers with ``P(k) = (1 − q) q^k``, ``q = e^{−rate}``, (size,)."""
    return np.floor(rng.standard_exponential(size) / rate)


def skellam(rng: Rng, v: float, size: int) -> Array:
    """Differences of two Poisson numbers of mean v/2, shape (size,).

    By inversion of a table.
    """
    place = np.searchsorted(_skellam_table(v), rng.random(size), side="right")
    return np.asarray((place + 1) // 2 * np.where(place % 2, 1.0, -1.0))


@lru_cache(maxsize=256)
def _skellam_table(v: float) -> Array:
    """Sums of ``e^{−v} I_k(v)`` over k = 0, 1, −1, 2 …"""
    p = scipy.special.ive(np.arange(np.ceil(10.0 * np.sqrt(v)) + 40.0), v)
    total = np.cumsum(np.concatenate([p[:1], np.repeat(p[1:], 2)]))
    total = total[: int((total < total[-1]).sum()) + 1]
    total[-1] = 1.0
    return total


def log_concave(rng: Rng, start: Array, log_p: Callable[[Array, Indices], Array]) -> Array:
    """Draws from n log-concave laws on the whole numbers, shape (n,).

    By rejection (Devroye 1987): of a mode m with ``p = P(m)``, ``P(m + x) ≤ p·min(1, e^{1 − p|x|})``.
    ``start`` is near each mode; ``log_p(k, at)`` has the log-probabilities at places ``at``.
    """
    mode, every = start.copy(), np.arange(len(start))
    for step in (1.0, -1.0):
        climbing = every
        while climbing.size:
            here = mode[climbing]
            higher = log_p(here + step, climbing) > log_p(here, climbing)
            climbing = climbing[higher]
            mode[climbing] += step
    top = log_p(mode, every)
    p, found, todo = np.exp(top), np.empty(len(start)), every
    while todo.size:
        w, n = 1.0 + p[todo] / 2.0, len(todo)
        y = np.where(
            rng.random(n) * (1.0 + w) < w, rng.random(n) * w, w + rng.standard_exponential(n)
        )
        side = np.where(rng.random(n) < 0.5, -1.0, 1.0)
        k = mode[todo] + side * np.rint(y / p[todo])
        hat = np.minimum(0.0, w - y) + top[todo]
        kept = np.log1p(-rng.random(n)) + hat <= log_p(k, todo)
        found[todo[kept]] = k[kept]
        todo = todo[~kept]
    return found
