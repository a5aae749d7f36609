"""One tree of random streams per run: every draw has a name, and no draw depends on another's order."""

from __future__ import annotations

import hashlib
from typing import TypeAlias, overload

import numpy as np

from auditor.numerics.cipher import CipherStream, ReleaseKey

Seed: TypeAlias = int | ReleaseKey
"""Where the streams of a release begin: a number that may be known, or a secret key."""
Rng: TypeAlias = "np.random.Generator | CipherStream"  # in quotes, as numpy imports its generators when they are first named


@overload
def stream(seed: int, *name: object) -> np.random.Generator: ...
@overload
def stream(seed: ReleaseKey, *name: object) -> CipherStream: ...
@overload
def stream(seed: Seed, *name: object) -> Rng: ...
def stream(seed: Seed, *name: object) -> Rng:
    """Return the generator that belongs to a name, a child of the run's one ``SeedSequence``, or of the release's secret key.

    Children are keyed by what they are for (scheme, replicate, copy, block …) and not by when they were asked for, so
    adding an attack, a scheme or a worker changes no other number of a report.

    Parameters
    ----------
    seed : int or ReleaseKey
        The run's seed, ≥ 0; or the key of copies meant for release.
    *name : object
        Parts of the name; ``repr`` tells them apart, so 1 and '1' are two streams.

    Notes
    -----
    SFC64 is the fastest of numpy's generators for normal variates. The 128-bit hash of the name is the spawn key. It is for audits, which
    anybody may repeat: its state can be found from a handful of draws, so noise that protects comes from a cipher.

    Examples
    --------
    >>> stream(7, "copy", 1).random() == stream(7, "copy", 1).random()
    True
    """
    if isinstance(seed, ReleaseKey):
        return seed.stream(*name)
    # A hash and not a counter: a name means the same stream whatever else was drawn before, in any process. 128 bits of it are enough
    # that two names of one run never meet (10⁶ streams: a chance of 10⁻²⁷), and SeedSequence mixes them with the seed.
    digest = hashlib.sha256(repr(name).encode()).digest()
    words = tuple(int.from_bytes(digest[k : k + 4], "little") for k in range(0, 16, 4))
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=words)))
