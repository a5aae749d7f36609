"""Named random streams of a run, independent of the order of draws."""

from __future__ import annotations

import hashlib
from typing import TypeAlias, overload

import numpy as np

from auditor.numerics.cipher import CipherStream, ReleaseKey

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
