"""Hidden Markov chains: posteriors and transitions from noisy categories.

Long series are cut into windows that are processed in parallel, so every step is one matrix
product.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``B_t`` | likelihood of record t's copies for each true value, up to a factor | (s,) | |
| ``A`` | transition probabilities from one record to the next | (s, s) | |
| ``π`` | probabilities of a window's first value | (s,) | |
| ``α_t`` | ``∝ B_t ∘ (α_{t−1} A)``, sum 1; the divisor is ``P(y_t; y_1 … y_{t−1})`` | (s,) | rabiner1989 |
| ``γ_t`` | ``∝ B_t ∘ (A γ_{t+1})``, sum 1; ``B_t ∘ β_t`` of the source | (s,) | rabiner1989 |
| ``ξ`` | ``Σ_t α_t(i) A_ij γ_{t+1}(j)``, each term normalised to sum 1: expected transitions from i to j | (s, s) | baum1970 |
"""

from __future__ import annotations

import numpy as np

from auditor.plugin import Array

WINDOW = 512
"""Records of a window that get posteriors."""
WARM_UP = 256
"""Records added on either side of a window. Records further away are ignored. The loss is negligible for chains that keep a value
for up to about 50 records."""


def windows(B: Array, length: int, margin: int = 0) -> Array:
    """Cut likelihoods, shape (b, s), into windows padded by 1.

    The result has shape (length + 2·margin, w, s).
    """
    count = -(-len(B) // length)
    padded = np.ones((count * length + 2 * margin, B.shape[1]))
    padded[margin : margin + len(B)] = B
    starts = np.arange(count) * length
    return np.asarray(padded[np.arange(length + 2 * margin)[:, None] + starts])


def forward(A: Array, pi: Array, B: Array) -> tuple[Array, Array]:
    """Return ``α``, shape (T, …, w, s), and its divisors, shape (T, …, w)."""
    alpha, chances = np.empty(B.shape), np.empty(B.shape[:-1])
    for t, (b, here, chance) in enumerate(zip(B, alpha, chances, strict=True)):
        np.multiply(b, pi if t == 0 else np.matmul(alpha[t - 1], A, out=here), out=here)
        here /= here.sum(axis=-1, out=chance)[..., None]
    return alpha, chances


def both_ways(B: Array) -> Array:
    """Stack likelihoods in forward and reverse order.

    Shape (T, w, s) becomes (T, 2, w, s).
    """
    return np.stack([B, B[::-1]], axis=1)


def passes(A: Array, pi: Array, B: Array) -> tuple[Array, Array, Array, Array]:
    """Return ``α`` and ``γ`` of every window, and their divisors.

    Shapes (T, w, s) and (T, w). ``B`` is the result of ``both_ways``. ``γ_t ∝ B_t ∘ (A γ_{t+1})``
    is the recursion of ``α`` in reverse with a uniform start, so one loop computes both.
    """
    ways, chances = forward(np.stack([A, A.T]), np.stack([pi, np.ones_like(pi)])[:, None], B)
    return ways[:, 0], ways[::-1, 1], chances[:, 0], chances[::-1, 1]


def posteriors(A: Array, pi: Array, B: Array) -> Array:
    """Return every record's posterior given its neighbours, shape (b, s)."""
    alpha, gamma, _, _ = passes(A, pi, both_ways(windows(B, WINDOW, WARM_UP)))
    inner = slice(WARM_UP, WARM_UP + WINDOW)
    P = (
        (alpha[inner] * (gamma[WARM_UP + 1 : WARM_UP + WINDOW + 1] @ A.T))
        .swapaxes(0, 1)
        .reshape(-1, B.shape[1])[: len(B)]
    )
    return np.asarray(P / P.sum(axis=1, keepdims=True))


def expected_moves(A: Array, pi: Array, B: Array) -> tuple[Array, float]:
    """Return ``ξ`` summed over windows, shape (s, s), and the log-likelihood.

    E step of baum1970, for B of ``both_ways``.
    """
    alpha, gamma, chances, left_out = passes(A, pi, B)
    # α_{t−1} A γ_t, the sum of a term, is c_t / d_t times the next term's sum, by the divisors of
    # α_t and γ_t
    ratios = (chances[1:] / left_out[1:])[::-1]
    ratios[0] = np.einsum("wi,wi->w", alpha[-2] @ A, gamma[-1])
    alpha[:-1] /= np.cumprod(ratios, axis=0)[::-1, :, None]
    moves = np.matmul(alpha[:-1].swapaxes(1, 2), gamma[1:]).sum(axis=0)
    return A * moves, float(np.log(chances).sum())
