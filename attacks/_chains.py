"""Hidden Markov chains: what a series of noisy categories says of each, and of how they follow one another.

Long series are cut into windows that are gone through side by side, so that every step is one matrix product.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``B_t`` | likelihood of what record t shows, by its true value, up to a factor | (s,) | |
| ``A`` | chance of the next record's value, given this one's | (s, s) | |
| ``π`` | chances of the value that a window begins with | (s,) | |
| ``α_t`` | ``∝ B_t ∘ (α_{t−1} A)``, sum 1; the factor left out is ``P(y_t; y_1 … y_{t−1})`` | (s,) | rabiner1989 |
| ``γ_t`` | ``∝ B_t ∘ (A γ_{t+1})``, sum 1; ``B_t ∘ β_t`` of the source | (s,) | rabiner1989 |
| ``ξ`` | ``Σ_t α_t(i) A_ij γ_{t+1}(j)``, each term brought to sum 1: how often j is expected after i | (s, s) | baum1970 |
"""

from __future__ import annotations

import numpy as np

from auditor.plugin import Array

WINDOW = 512
"""Records of a window whose posteriors are wanted."""
WARM_UP = 256
"""Records on either side of it: what is further away counts as unknown, which a chain has forgotten by then if it stays at one value for
some 50 records or fewer; of slower ones a little is lost."""


def windows(B: Array, length: int, margin: int = 0) -> Array:
    """Return the likelihoods window by window, shape (length + 2·margin, w, s), for B of shape (b, s); 1 beyond either end."""
    count = -(-len(B) // length)
    padded = np.ones((count * length + 2 * margin, B.shape[1]))
    padded[margin : margin + len(B)] = B
    starts = np.arange(count) * length
    return np.asarray(padded[np.arange(length + 2 * margin)[:, None] + starts])


def forward(A: Array, pi: Array, B: Array) -> tuple[Array, Array]:
    """Return ``α``, shape (T, …, w, s), and the factors left out of it, shape (T, …, w), for A of shape (…, s, s) and B as ``α``."""
    alpha, chances = np.empty(B.shape), np.empty(B.shape[:-1])
    for t, (b, here, chance) in enumerate(zip(B, alpha, chances, strict=True)):
        np.multiply(b, pi if t == 0 else np.matmul(alpha[t - 1], A, out=here), out=here)
        here /= here.sum(axis=-1, out=chance)[..., None]
    return alpha, chances


def both_ways(B: Array) -> Array:
    """Return likelihoods of shape (T, w, s) in order and in reverse, shape (T, 2, w, s)."""
    return np.stack([B, B[::-1]], axis=1)


def passes(A: Array, pi: Array, B: Array) -> tuple[Array, Array, Array, Array]:
    """Return ``α`` and ``γ``, shape (T, w, s), and the factors left out of them, shape (T, w), for B of ``both_ways``.

    ``γ_t ∝ B_t ∘ (A γ_{t+1})`` is the recursion of ``α`` backwards, along which nothing is known of the last record but what it shows:
    so one loop makes both.
    """
    ways, chances = forward(np.stack([A, A.T]), np.stack([pi, np.ones_like(pi)])[:, None], B)
    return ways[:, 0], ways[::-1, 1], chances[:, 0], chances[::-1, 1]


def posteriors(A: Array, pi: Array, B: Array) -> Array:
    """Return the chances of every record's values given all records near it, shape (b, s), for B of shape (b, s)."""
    alpha, gamma, _, _ = passes(A, pi, both_ways(windows(B, WINDOW, WARM_UP)))
    inner = slice(WARM_UP, WARM_UP + WINDOW)
    P = (alpha[inner] * (gamma[WARM_UP + 1 : WARM_UP + WINDOW + 1] @ A.T)).swapaxes(0, 1).reshape(-1, B.shape[1])[: len(B)]
    return np.asarray(P / P.sum(axis=1, keepdims=True))


def expected_moves(A: Array, pi: Array, B: Array) -> tuple[Array, float]:
    """Return ``ξ`` summed over all windows, shape (s, s), and their log-likelihood (E step of baum1970), for B of ``both_ways``."""
    alpha, gamma, chances, left_out = passes(A, pi, B)
    # α_{t−1} A γ_t, the sum of a term, is c_t / d_t times that of the next one, by the factors that α_t and γ_t were divided by
    ratios = (chances[1:] / left_out[1:])[::-1]
    ratios[0] = np.einsum("wi,wi->w", alpha[-2] @ A, gamma[-1])
    alpha[:-1] /= np.cumprod(ratios, axis=0)[::-1, :, None]
    moves = np.matmul(alpha[:-1].swapaxes(1, 2), gamma[1:]).sum(axis=0)
    return A * moves, float(np.log(chances).sum())
