"""Law of categorical copies drawn independently by stated matrices.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``T_i`` | chance that copy i shows y (column) of x (row); rows sum to 1 | (s, s) | gouweleeuw1998 |
| ``P(y_1, …, y_k | x)`` | ``Π T_i[x, y_i]``: copies are independent given the original | | |
| ``ε`` | ``max_{x, x'} Σ_i max_y ln(T_i[x, y] / T_i[x', y])`` | scalar | |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from auditor.schemes.replacement.law import EXACTLY, UniformLaw
from auditor.types import Array, Codes


@dataclass(frozen=True, eq=False)
class MatrixLaw(UniformLaw):
    """The law of one tuple's copies given its value.

    Copies of a higher level are less perturbed.

    Attributes
    ----------
    transitions : tuple of k ndarrays of shape (s, s)
        ``T_i``, in the order of the copies; rows are distributions, *not checked*.
    """

    transitions: tuple[Array, ...] = field(default=(), repr=False)
    by_retention: ClassVar[bool] = False

    def of(self, copies: Sequence[int]) -> MatrixLaw:
        """Return the law of a coalition, by copy numbers from 1."""
        levels, transitions = (
            tuple(each[copy - 1] for copy in copies) for each in (self.levels, self.transitions)
        )
        return replace(self, levels=levels, transitions=transitions)  # type: ignore[arg-type]

    @property
    def rarity(self) -> float:
        """One over the smallest transition probability; infinite if one is 0."""
        least = min(float(T.min()) for T in self.transitions)
        return math.inf if least == 0 else 1.0 / least

    def transition_matrix(
        self, source: int | None, target: int, prior: Array | None = None
    ) -> Array:
        """Return P(copy ``target`` | copy ``source`` or original); see base."""
        return (
            self.transitions[target - 1]
            if source is None
            else super().transition_matrix(source, target, prior)
        )

    def likelihood(self, copies: Sequence[Codes]) -> Array:
        """Return ``P(y_1, …, y_k | x)`` of records, shape (b, s).

        From each copy's values, shape (b,).
        """
        found = np.ones((copies[0].size, self.size))
        for T, y in zip(self.transitions, copies, strict=True):
            found *= T.T[y]
        return found

    def given_original(self) -> Array:
        """Return ``P(y_1, …, y_k | x)``, shape (s, …, s) with x first."""
        joint = np.ones(self.size)
        for T in self.transitions:
            joint = joint[..., None] * T.reshape(self.size, *(1,) * (joint.ndim - 1), self.size)
        return joint

    def epsilon(self) -> float:
        """Return the local differential privacy ``ε`` of all copies together.

        The largest log-ratio of any outcome under two originals.
        """
        total = np.zeros((self.size, self.size))
        # a value impossible under both originals does not distinguish them
        with np.errstate(divide="ignore", invalid="ignore"):
            for T in self.transitions:
                logs = np.log(T)
                total += np.array([np.fmax.reduce(row - logs, axis=1) for row in logs])
        return float(total.max())

    def best_is_sufficient(self) -> bool:
        """Whether the best copy is sufficient.

        Other copies' rows must be equal for all originals that share a possible value of the best
        copy.
        """
        possible = self.transitions[self.best - 1] > 0
        others = [T for place, T in enumerate(self.transitions) if place != self.best - 1]
        sets = np.unique(possible[:, possible.any(axis=0)], axis=1).T
        return all(np.ptp(T[alike], axis=0).max() <= EXACTLY for T in others for alike in sets)
