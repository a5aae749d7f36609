"""Named random streams of a run, independent of the order of draws.

| symbol | meaning | source |
| --- | --- | --- |
| ``K`` | 256 bits of the operating system's entropy, one key for each call of ``perturb`` or ``extend`` | |
| ``K_name`` | the key of one named draw, ``HKDF-Expand(K, name)`` | RFC 5869 |
| ``w`` | 64-bit words, ``AES-256-CTR(K_name)`` of zeros; a key encrypts one stream only, so its counter starts at 0 | NIST SP 800-38A |

Copies for release draw from the cipher's words: prediction of the next word from earlier ones
requires breaking AES-256. Generators of audits have no such property: a few uniform draws of SFC64
determine all later ones (``tests/schemes/generator_attack.py``).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from auditor.base.errors import PluginError
from auditor.base.types import Array
from auditor.numerics import whole_draws
from auditor.process.deferred import scipy

Shape = int | tuple[int, ...] | None
Words = NDArray[np.uint64]

PIECE = 2**13
"""Words per piece: 64 KB, which fits a core's own cache."""
ZEROS = memoryview(bytes(8 * PIECE))
WHOLE = np.frompyfunc(int, 1, 1)
"""Python integers, which do not overflow, from numbers or arrays."""
LARGEST_MEAN = 1e6
"""Largest Poisson mean: its log-probabilities are exact to 1e-9."""


class ReleaseKey:
    """The secret behind one release's noise; in memory only, never printed.

    It cannot be serialised.

    Parameters
    ----------
    secret : bytes, optional
        32 bytes; the operating system's entropy by default. For tests only.
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
        """Return the stream of a name; every name has its own cipher key."""
        # here for start-up: audits need no cipher
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

        return CipherStream(HKDFExpand(SHA256(), 32, repr(name).encode()).derive(self._secret))


class CipherStream:
    """Draws from a cipher's key stream, with numpy's ``Generator`` interface.

    Parameters
    ----------
    key : bytes
        32 bytes not used for any other encryption.
    """

    def __init__(self, key: bytes) -> None:
        # for start-up, as above
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        # the cipher requires room for one more block
        self._buffer = np.empty(8 * PIECE + 16, dtype=np.uint8)

    def __getattr__(self, name: str) -> NoReturn:
        if hasattr(np.random.Generator, name):
            raise PluginError(
                f"noise meant for release cannot be drawn with `{name}`: use random, standard_normal, standard_exponential, "
                "integers, poisson or permutation"
            )
        raise AttributeError(name)

    def random(
        self, size: Shape = None, dtype: DTypeLike = np.float64, out: Array | None = None
    ) -> Any:
        """Return numbers uniform on [0, 1), multiples of 2⁻⁵³.

        Of 2⁻²⁴ in single precision.
        """
        bits = 24 if np.dtype(dtype) == np.float32 else 53

        def uniform(words: Words, part: Array) -> None:
            words >>= np.uint64(64 - bits)
            np.multiply(words.view(np.int64), 2.0**-bits, out=part)

        return self._filled(uniform, size, dtype, out)

    def standard_normal(
        self, size: Shape = None, dtype: DTypeLike = np.float64, out: Array | None = None
    ) -> Any:
        """Return draws from N(0, 1), ``±Φ⁻¹(p)`` of p uniform on (0, ½).

        A word's first bit is the sign, the others are p. No draw is beyond 9.3.
        """

        def normal(words: Words, part: Array) -> None:
            negative = words >= 2**63
            np.add(words & np.uint64(2**63 - 1), 0.5, out=part)
            part *= 2.0**-64
            scipy.special.ndtri(part, out=part)
            np.negative(part, out=part, where=~negative)

        return self._filled(normal, size, dtype, out)

    def standard_exponential(
        self,
        size: Shape = None,
        dtype: DTypeLike = np.float64,
        method: str = "zig",
        out: Array | None = None,
    ) -> Any:
        """Return exponential draws of mean 1, ``−ln p`` with p uniform on (0, 1).

        For either method of numpy.
        """

        def exponential(words: Words, part: Array) -> None:
            np.add(words, 0.5, out=part)
            part *= 2.0**-64
            np.negative(np.log(part, out=part), out=part)

        return self._filled(exponential, size, dtype, out)

    def integers(
        self,
        low: ArrayLike,
        high: ArrayLike | None = None,
        size: Shape = None,
        dtype: DTypeLike = np.int64,
        endpoint: bool = False,
    ) -> Any:
        """Return whole numbers exactly uniform on ``low … high − 1``.

        Up to ``high`` with ``endpoint``; from 0 to ``low`` without ``high``. Both ends may be
        arrays, which are broadcast.
        """
        kind = np.dtype(dtype)
        if kind.kind not in "biu":
            raise TypeError(f"whole numbers are drawn as an integer type or bool; got {kind}")
        least = WHOLE(0 if high is None else low)
        most = WHOLE(low if high is None else high) - (not endpoint)
        wanted = np.empty(np.broadcast(least, most).shape if size is None else size, kind)
        lowest, highest = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
        if not wanted.size:
            return wanted
        if not np.all((lowest <= least) & (least <= most) & (most <= highest)):
            raise ValueError(
                f"a range must hold whole numbers from {lowest} to {highest}, and at least one"
            )
        span = most - least + 1
        start, divisor, last = (
            np.broadcast_to(np.asarray(part % 2**64, np.uint64), wanted.shape).reshape(-1)
            for part in (least, span, -(2**64 % span) - 1)
        )
        flat = wanted.reshape(-1)
        for at, words in self._pieces(flat.size):
            # the last, incomplete run of remainders is drawn again
            while (beyond := words > last[at]).any():
                words[beyond] = np.frombuffer(
                    self._encryptor.update(bytes(8 * int(beyond.sum()))), dtype=np.uint64
                )
            # a span of 2⁶⁴ is 0 here, and numpy's quotient too: words are unchanged
            with np.errstate(divide="ignore"):
                words -= words // divisor[at] * divisor[at]
            words += start[at]  # negative numbers are their complements of 2⁶⁴, as in int64
            flat[at] = words.view(np.int64)
        return wanted[()] if size is None else wanted

    def poisson(self, lam: ArrayLike = 1.0, size: Shape = None) -> Any:
        """Return Poisson numbers; see ``auditor.numerics.whole_draws``."""
        mean = np.asarray(lam, dtype=np.float64)
        if not np.all((mean >= 0) & (mean <= LARGEST_MEAN)):
            raise ValueError(f"a Poisson mean must be from 0 to {LARGEST_MEAN:g}")
        mean = np.broadcast_to(mean, mean.shape if size is None else size)
        drawn = whole_draws.poisson(self, mean.ravel()).astype(np.int64).reshape(mean.shape)
        return drawn[()] if size is None else drawn

    def permutation(self, x: ArrayLike, axis: int = 0) -> NDArray[Any]:
        """Return a permutation of numbers below x, or of x along an axis.

        Sorted by random words; two words are equal with probability 2⁻⁶³.
        """
        items, axis = (
            (np.arange(x), 0) if isinstance(x, (int, np.integer)) else (np.asarray(x), axis)
        )
        count = np.moveaxis(items, axis, 0).shape[0]  # numpy's own error for an invalid axis
        return np.take(items, np.argsort(self.integers(2**63, size=count), kind="stable"), axis)

    def _filled(
        self,
        turn: Callable[[Words, Array], None],
        size: Shape,
        dtype: DTypeLike,
        out: NDArray[Any] | None,
    ) -> Any:
        """Return numbers computed from words; a scalar without size and out."""
        kind = np.dtype(dtype)
        wanted = np.empty(() if size is None else size, kind) if out is None else out
        if kind not in (np.float64, np.float32) or wanted.dtype != kind:
            raise TypeError(
                f"numbers are drawn as float64 or float32, into arrays of this type; got {kind} and {wanted.dtype}"
            )
        if not (wanted.flags.c_contiguous or wanted.flags.f_contiguous):
            raise ValueError("numbers are drawn into arrays that are contiguous")
        if out is not None and size is not None and np.empty(size).shape != out.shape:
            raise ValueError("size must be the shape of the array that numbers are drawn into")
        flat = wanted.reshape(-1, order="A")
        for at, words in self._pieces(flat.size):
            part = flat[at] if kind == np.float64 else np.empty(words.size)
            turn(words, part)
            if kind == np.float32:
                flat[at] = part
        return wanted[()] if size is None and out is None else wanted

    def _pieces(self, size: int) -> Iterator[tuple[slice, Words]]:
        """Yield places of a flat array with their words (reused memory)."""
        for start in range(0, size, PIECE):
            at = slice(start, min(start + PIECE, size))
            self._encryptor.update_into(ZEROS[: 8 * (at.stop - start)], self._buffer.data)
            yield at, self._buffer[: 8 * (at.stop - start)].view(np.uint64)


Seed: TypeAlias = int | ReleaseKey
"""Root of a release's streams: a public number, or a secret key."""
# in quotes, as numpy imports its generators on first use
Rng: TypeAlias = "np.random.Generator | CipherStream"


@overload
def stream(seed: int, *name: object) -> np.random.Generator: ...
@overload
def stream(seed: ReleaseKey, *name: object) -> CipherStream: ...
@overload
def stream(seed: Seed, *name: object) -> Rng: ...
def stream(seed: Seed, *name: object) -> Rng:
    """Return the generator of a name, from a run's seed or a release's key.

    Streams are keyed by purpose (scheme, replicate, copy, block …), so an additional attack, scheme
    or worker changes no other result.

    Parameters
    ----------
    seed : int or ReleaseKey
        The run's seed, ≥ 0; or the key of copies for release.
    *name : object
        Parts of the name, distinguished by ``repr``: 1 and '1' are two streams.

    Notes
    -----
    SFC64 is numpy's fastest generator of normals. It is for audits only: a few draws determine its
    state.

    Examples
    --------
    >>> stream(7, "copy", 1).random() == stream(7, "copy", 1).random()
    True
    """
    if isinstance(seed, ReleaseKey):
        return seed.stream(*name)
    # A hash, not a counter: a name means one stream in any process and order. With 128 bits
    # collisions in a run are improbable (10⁶ streams: 10⁻²⁷); SeedSequence mixes in the seed.
    digest = hashlib.sha256(repr(name).encode()).digest()
    words = tuple(int.from_bytes(digest[k : k + 4], "little") for k in range(0, 16, 4))
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=words)))
