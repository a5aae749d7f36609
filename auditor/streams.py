"""One tree of random streams per run: every draw has a name, and no draw depends on another's order."""

from __future__ import annotations

import hashlib

import numpy as np


def stream(seed: int, *name: object) -> np.random.Generator:
    """Return the generator that belongs to a name, a child of the run's one ``SeedSequence``.

    Children are keyed by what they are for (scheme, replicate, copy, block …) and not by when they were asked for, so
    adding an attack, a scheme or a worker changes no other number of a report.

    Parameters
    ----------
    seed : int
        The run's seed, ≥ 0.
    *name : object
        Parts of the name; ``repr`` tells them apart, so 1 and '1' are two streams.

    Notes
    -----
    SFC64 is the fastest of numpy's generators for normal variates. The 128-bit hash of the name is the spawn key.

    Examples
    --------
    >>> stream(7, "copy", 1).random() == stream(7, "copy", 1).random()
    True
    """
    digest = hashlib.sha256(repr(name).encode()).digest()
    words = tuple(int.from_bytes(digest[k : k + 4], "little") for k in range(0, 16, 4))
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=words)))
