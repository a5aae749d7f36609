"""Hidden Markov chains: what a series of noisy categories says of each, and of how they follow one another.

Long series are cut into windows that are gone through side by side, so that every step is one matrix product.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``B_t`` | likelihood of what record t shows, by its true value, up to a factor | (s,) | |
| ``A`` | chance of the next record's value, given this one's | (s, s) | |
| ``π`` | chances of the value that a window begins with | (s,) | |
| ``α_t`` | ``∝ B_t ∘ (α_{t−1} A)``, sum 1; the factor left out is ``P(y_t; y_1 … y_{t−1})`` | (s,) | rabiner1989 |
| ``β_t`` | ``∝ A (B_{t+1} ∘ β_{t+1})`` | (s,) | rabiner1989 |
| ``ξ`` | ``Σ_t α_t(i) A_ij B_{t+1}(j) β_{t+1}(j)``, each term brought to sum 1: how often j is expected after i | (s, s) | baum1970 |
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
    """Return ``α``, shape (T, w, s), and the factors left out of it, shape (T, w), for B of shape (T, w, s)."""
    alpha, chances = np.empty_like(B), np.empty(B.shape[:2])
    for t, (b, here, chance) in enumerate(zip(B, alpha, chances, strict=True)):
        np.multiply(b, pi if t == 0 else alpha[t - 1] @ A, out=here)
        here /= here.sum(axis=1, out=chance)[:, None]
    return alpha, chances


def backward(A: Array, B: Array) -> Array:
    """Return ``β``, shape (T, w, s), each of sum s."""
    beta = np.ones_like(B)
    for t in range(len(B) - 2, -1, -1):
        here = np.matmul(B[t + 1] * beta[t + 1], A.T, out=beta[t])
        here *= B.shape[2] / here.sum(axis=1, keepdims=True)
    return beta


def posteriors(A: Array, pi: Array, B: Array) -> Array:
    """Return the chances of every record's values given all records near it, shape (b, s), for B of shape (b, s)."""
    seen = windows(B, WINDOW, WARM_UP)
    P = forward(A, pi, seen)[0] * backward(A, seen)
    inner = P[WARM_UP : WARM_UP + WINDOW].swapaxes(0, 1).reshape(-1, B.shape[1])[: len(B)]
    return np.asarray(inner / inner.sum(axis=1, keepdims=True))


def expected_moves(A: Array, pi: Array, B: Array) -> tuple[Array, float]:
    """Return ``ξ`` summed over all windows, shape (s, s), and their log-likelihood (E step of baum1970)."""
    alpha, chances = forward(A, pi, B)
    beta = backward(A, B)[1:]
    scale = 1.0 / (chances[1:] * np.einsum("twi,twi->tw", alpha[1:], beta))  # a term's sum, as B_t ∘ (α_{t−1} A) is α_t times its factor
    moves = (alpha[:-1] * scale[..., None]).reshape(-1, len(A)).T @ (B[1:] * beta).reshape(-1, len(A))
    return A * moves, float(np.log(chances).sum())
