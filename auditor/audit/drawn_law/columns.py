"""Noise in columns of one law: of one attribute in one copy, of a whitened combination of copies, or the length of all of them.

| symbol | meaning | law |
| --- | --- | --- |
| ``t`` | the noise, over its deviation | F |
| ``v = F(t)``, ``s = |2v − 1|`` | | uniform on (0, 1) |
| ``g`` | normal score of t, ``Φ⁻¹(v)`` | N(0, 1), independent from row to row |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from auditor.audit.drawn_law.chosen_rows import EPS, Rows
from auditor.audit.drawn_law.moments import whitening
from auditor.process.deferred import scipy
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw, psd_root
from auditor.types import Array

FINE = 2.0**-10
"""Noise that is known to no better than that share of its deviation is not looked at."""
MOST_JOINT = 96
"""Combinations of copies and attributes that are looked at, evenly among all."""
DENSITY = {
    "gaussian": 1.0 / math.sqrt(2.0 * math.pi), "uniform": 1.0 / math.sqrt(12.0), "laplace": math.sqrt(0.5),
    "geometric": 1.0, "skellam": 1.0,
}  # fmt: skip
"""The largest density of noise of variance 1; on a lattice, whose values are known exactly, anything will do."""


class Columns(NamedTuple):
    """Columns of ``t`` that are fine enough, ``v``, ``s`` and ``g``, all of shape (n, C), and how well t is known, (C,).

    Laid out in memory column by column, as tests go through them.
    """

    t: Array
    v: Array
    size: Array
    score: Array
    grain: Array
    names: list[str]

    @classmethod
    def of(cls, t: Array, grain: Array, names: Sequence[str], law: NoiseLaw) -> Columns:
        """Keep the columns that are fine enough."""
        fine = np.flatnonzero(grain <= FINE)
        t = t if fine.size == t.shape[1] else t.T[fine].T
        gaussian = law.distribution == "gaussian"
        v = scipy.special.ndtr(t) if gaussian else np.clip(0.5 + t / math.sqrt(12.0), 0.0, 1.0)
        return cls(t, v, sizes(v), t if gaussian else scores(v), grain[fine], [names[place] for place in fine.tolist()])

    def joined(self, *others: Columns) -> Columns:
        """Return the columns of all."""
        every = (self, *others)
        t, v, size, grain = (np.hstack([getattr(one, part) for one in every]) for part in ("t", "v", "size", "grain"))
        score = t if all(one.score is one.t for one in every) else np.hstack([one.score for one in every])
        return Columns(t, v, size, score, grain, [name for one in every for name in one.names])


def sizes(uniform: Array) -> Array:
    """Return ``s`` of v."""
    s = 2.0 * uniform
    s -= 1.0
    return np.abs(s, out=s)


def scores(uniform: Array) -> Array:
    """Return normal scores of values that are uniform on (0, 1)."""
    inside = np.clip(uniform, 1e-300, 1.0 - EPS / 2)
    return np.asarray(scipy.special.ndtri(inside, out=inside))


def within_copies(law: NoiseLaw, rows: Rows) -> tuple[Array, Array]:
    """Return each copy's noise over its deviations, shape (n, M, N), and how well it is known, infinite where there is none.

    Of uniform noise, which is uniform before ``K_0``'s root is applied and not after it, with the root undone.
    """
    M, N = rows.grain.shape
    deviation = np.sqrt(np.clip(np.diag(law.covariance), 0.0, None)).reshape(M, N)
    if law.distribution != "gaussian" and isinstance(law, KroneckerNoise):
        if whitening(law.shape).rows.shape[0] < N:
            return rows.noise, np.full((M, N), np.inf)
        undo = np.linalg.inv(psd_root(law.shape))
        sigma = np.sqrt(np.clip(np.diag(law.level_covariance), 0.0, None))[:, None]
        z, known = rows.noise @ undo.T, rows.grain @ np.abs(undo).T
        return over(z, sigma), np.where(sigma > 0, over(known, sigma), np.inf)
    return over(rows.noise, deviation), np.where(deviation > 0, over(rows.grain, deviation), np.inf)


def over(values: Array, deviation: Array) -> Array:
    """Return values in units of their deviations; those of deviation 0 as they are."""
    return np.asarray(values / np.where(deviation > 0, deviation, 1.0))


def combinations(law: NoiseLaw, rows: Rows) -> Columns | None:
    """Return whitened combinations of copies and attributes, evenly among all; Gaussian noise alone makes them independent."""
    if law.distribution != "gaussian":
        return None
    n, M, N = rows.noise.shape
    if isinstance(law, KroneckerNoise):
        A, B = whitening(law.level_covariance).rows, whitening(law.shape).rows
    else:
        A, B = np.eye(1), whitening(law.covariance).rows
    count = len(A) * len(B)
    if count < 2:
        return None
    kept = np.linspace(0, count - 1, min(count, MOST_JOINT)).astype(np.intp)
    W = np.array([np.outer(A[k // len(B)], B[k % len(B)]).ravel() for k in kept.tolist()])
    u, known = (W @ rows.noise.reshape(n, M * N).T).T, np.abs(W) @ rows.grain.ravel()
    found = Columns.of(u, known, ["a combination of copies and attributes"] * len(W), law)
    return found if found.names else None


def length_of(joint: Columns) -> Columns:
    """Return the length of a row's whitened noise, which is χ of r degrees: the sizes of a row's values that go together make it uneven."""
    r = joint.t.shape[1]
    v = scipy.special.gammainc(r / 2.0, np.square(joint.t).sum(axis=1, keepdims=True) / 2.0)
    t = scores(v)
    return Columns(t, v, sizes(v), t, np.atleast_1d(2.0 * np.linalg.norm(joint.grain)), ["the whole of a row's noise"])
