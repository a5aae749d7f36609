"""Base of planted leaks: corner-wave noise with changed innovations.

Copies at levels ``σ_1² < … < σ_M²`` are ``Y_k = X + Z_k`` with
``Z_k = Σ_{i ≤ k} sqrt(σ_i² − σ_{i−1}²) · K_0^½ g_i`` (li2012, Algorithm 2). With independent
standard normal ``g_i`` this is corner-wave noise exactly. A case changes ``g`` or ``Z``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from auditor.numerics.random_streams import Rng, stream
from auditor.schemes.base.case import Case
from auditor.schemes.base.noise_law import psd_root
from auditor.schemes.base.scheme import Key, Sampler, TableMoments
from auditor.schemes.corner_wave import CornerWave
from auditor.types import Array


class Planted(Case, CornerWave):
    """States corner-wave's law; a subclass plants a leak."""

    trial_levels = (0.3, 0.6, 0.9)
    share: ClassVar[float] = 0.5
    """Share of the records with changed innovations, at random."""

    def innovations(self, x: Array, g: Array, rng: Rng) -> None:
        """Change standard normal innovations in place.

        ``x`` has shape (b, N) and ``g`` shape (M, b, N).
        """

    def noise(self, x: Array, z: Sequence[Array], rng: Rng) -> Sequence[Array]:
        """Return the noise of the M copies, each of shape (b, N)."""
        return z

    def release(self, x: Array, z: Sequence[Array]) -> Sequence[Array]:
        """Return the M released copies, each of shape (b, N)."""
        return [x + noise for noise in z]

    def sampler(
        self, levels: Sequence[float], table: TableMoments, key: Key, existing: int = 0
    ) -> Sampler:
        """Return the sampler of a first release; ascending levels *not checked*."""
        return PlantedSampler(self, psd_root(self.law(levels, table).shape), levels, key)


class PlantedSampler:
    """Sampler of innovations that a case changes."""

    def __init__(self, case: Planted, root: Array, levels: Sequence[float], key: Key) -> None:
        self._case, self._root, self._key = case, root, key
        self._scales = np.sqrt(np.diff(np.asarray(levels, dtype=np.float64), prepend=0.0))

    def block(self, index: int, x: Array, out: Sequence[Array], existing: int = 0) -> None:
        """Write the copies of one block of rows; see ``Sampler``."""
        rng = stream(self._key.seed, "planted", self._key.scheme, self._key.replicate, index)
        fair = rng.standard_normal((len(out), *x.shape))
        g = fair.copy()
        self._case.innovations(x, g, rng)
        g = np.where(rng.random((len(x), 1)) < self._case.share, g, fair)
        z = np.cumsum(self._scales[:, None, None] * g, axis=0) @ self._root.T
        for copy, released in zip(
            out, self._case.release(x, self._case.noise(x, list(z), rng)), strict=True
        ):
            copy[...] = released
