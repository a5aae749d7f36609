"""Random numbers that nobody can make again: the key stream of a cipher, and exact samplers on top.

| symbol | meaning | source |
| --- | --- | --- |
| ``K`` | 256 bits of the operating system's entropy, one key for each call of ``perturb`` or ``extend`` | |
| ``K_name`` | the key of one named draw, ``HKDF-Expand(K, name)`` | RFC 5869 |
| ``w`` | 64-bit words, ``AES-256-CTR(K_name)`` of zeros; a key encrypts one stream only, so its counter starts at 0 | NIST SP 800-38A |

Who sees any number of these words cannot tell the next from a coin without breaking AES-256. The generators of audits make no such
promise: of SFC64 a few uniform draws tell all that follow (``tests/schemes/generator_attack.py``).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from auditor.errors import PluginError
from auditor.numerics.ziggurat import Words, fill_normal
from auditor.types import Array

Shape = int | tuple[int, ...] | None

PIECE = 2**13
"""Words made at once: 64 KB, which stay in a core's own cache while they are turned into numbers."""
ZEROS = memoryview(bytes(8 * PIECE))


class ReleaseKey:
    """The secret that the noise of one release is drawn from; it stays in memory, is never printed, and cannot be written.

    Parameters
    ----------
    secret : bytes, optional
        32 bytes; the operating system's entropy by default. Given for tests only.
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secrets.token_bytes(32) if secret is None else secret

    def __repr__(self) -> str:
        return "ReleaseKey(secret)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("the key of a release is kept in memory only: it cannot be pickled or copied to a file")

    def __deepcopy__(self, memory: object) -> ReleaseKey:
        return self

    def stream(self, *name: object) -> CipherStream:
        """Return the stream that belongs to a name; no two names share a cipher's key."""
        from cryptography.hazmat.primitives.hashes import SHA256  # here for start-up: audits need no cipher
        from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

        return CipherStream(HKDFExpand(SHA256(), 32, repr(name).encode()).derive(self._secret))


class CipherStream:
    """Draws from a cipher's key stream, with the names and parameters that ``numpy.random.Generator`` has for them.

    Parameters
    ----------
    key : bytes
        32 bytes that nothing else was encrypted with.
    """

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # for start-up, as above

        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._buffer = np.empty(8 * PIECE + 16, dtype=np.uint8)  # the cipher asks for room for one block more

    def __getattr__(self, name: str) -> NoReturn:
        if hasattr(np.random.Generator, name):
            raise PluginError(f"noise meant for release cannot be drawn with `{name}`: use random, standard_normal, standard_exponential, "
                              "integers, poisson or permutation")  # fmt: skip
        raise AttributeError(name)

    def random(self, size: Shape = None, out: Array | None = None) -> Any:
        """Return numbers uniform on [0, 1), multiples of 2⁻⁵³."""

        def uniform(words: Words, part: Array) -> None:
            words >>= np.uint64(11)
            np.multiply(words.view(np.int64), 2.0**-53, out=part)

        return self._filled(uniform, size, out)

    def standard_normal(self, size: Shape = None, out: Array | None = None) -> Any:
        """Return draws from N(0, 1); see ``auditor.numerics.ziggurat``."""
        return self._filled(lambda words, part: fill_normal(words, part, self.random), size, out)

    def standard_exponential(self, size: Shape = None, out: Array | None = None) -> Any:
        """Return draws from the exponential distribution of mean 1, ``−ln p`` with p uniform on (0, 1)."""

        def exponential(words: Words, part: Array) -> None:
            np.add(words, 0.5, out=part)
            part *= 2.0**-64
            np.negative(np.log(part, out=part), out=part)

        return self._filled(exponential, size, out)

    def integers(self, low: int, high: int | None = None, size: Shape = None, dtype: DTypeLike = np.int64) -> Any:
        """Return whole numbers uniform on ``low … high − 1`` (``0 … low − 1`` without ``high``), exactly: no remainder is favoured."""
        low, high = (0, low) if high is None else (low, high)
        span = int(high) - int(low)
        if not 0 < span <= 2**63:
            raise ValueError(f"a range must hold 1 to 2⁶³ whole numbers; got {span}")
        divisor, last = np.uint64(span), np.uint64(2**64 - 2**64 % span - 1)

        def whole(words: Words, part: NDArray[Any]) -> None:
            while (beyond := words > last).any():  # the last, incomplete run of remainders is drawn again
                words[beyond] = np.frombuffer(self._encryptor.update(bytes(8 * int(beyond.sum()))), dtype=np.uint64)
            words -= words // divisor * divisor
            np.add(words, low, out=part, casting="unsafe")

        return self._filled(whole, size, None, dtype)

    def poisson(self, mean: float) -> int:
        """Return a Poisson number: how many arrivals, exponentially apart, lie before ``mean``."""
        count, time = 0, 0.0
        while True:
            arrivals = time + np.cumsum(self.standard_exponential(int(mean + 5.0 * np.sqrt(mean)) + 16))
            count += int(np.searchsorted(arrivals, mean, side="right"))
            time = float(arrivals[-1])
            if time > mean:
                return count

    def permutation(self, x: int | NDArray[Any]) -> NDArray[Any]:
        """Return numbers below x, or the elements of x, in random order: that of random words, of which two are equal once in 2⁶⁴ pairs."""
        items = np.arange(x) if isinstance(x, (int, np.integer)) else np.asarray(x)
        return items[np.argsort(self.integers(2**63, size=len(items)), kind="stable")]

    def _filled(self, turn: Callable[[Words, Any], None], size: Shape, out: NDArray[Any] | None, dtype: DTypeLike = np.float64) -> Any:
        """Return numbers that ``turn`` makes of as many words, piece by piece; one number where neither size nor ``out`` is given."""
        wanted = np.empty((1,) if size is None else size, dtype=dtype) if out is None else out
        if not wanted.flags.c_contiguous:
            raise ValueError("numbers are drawn into arrays that are contiguous, in C order")
        flat = wanted.reshape(-1)
        for start in range(0, flat.size, PIECE):
            part = flat[start : start + PIECE]
            self._encryptor.update_into(ZEROS[: 8 * part.size], self._buffer.data)
            turn(self._buffer[: 8 * part.size].view(np.uint64), part)
        return wanted[0] if size is None and out is None else wanted
