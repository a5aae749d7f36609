"""What an adversary who knows the quasi-identifiers reads from k-anonymous copies: each record's class, and the sensitive values in it.

| symbol | meaning | shape |
| --- | --- | --- |
| class | records that look alike in every copy held (bounds, and whether suppressed); a target's own is found by its quasi-identifiers | |
| ``P_E(v)`` | share of sensitive value v in the class: what the adversary thinks of each record in it | (classes, V) |
| ``P(v)`` | share in the copies as a whole | (V,) |

Copies pooled: the records whose bounds agree in every copy. A record that any copy suppresses is known by the others; by none, by ``P``,
and then there is no row of it to be named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from auditor.plugin import Array, Inferred, NotApplicable, Reconstruction, View
from auditor.schemes.generalisation.copies import Layout


def layout_of(view: View) -> Layout:
    """Return where copies have what.

    Raises
    ------
    NotApplicable
        The adversary does not know all quasi-identifiers of its targets, or knows the sensitive attribute already.
    """
    layout, known = Layout.of(view.attributes, view.scheme["quasi"], view.scheme["sensitive"]), set(view.known_columns.tolist())
    if not set(layout.quasi) <= known:
        raise NotApplicable("finds a target's class by its quasi-identifiers, so needs to know all of them")
    if layout.target in known:
        raise NotApplicable("looks for the sensitive attribute, which this adversary knows already")
    return layout


@dataclass(frozen=True)
class Classes:
    """Every class's sensitive values.

    Attributes
    ----------
    keys : dict
        Number of the class by how its records look.
    values : ndarray of shape (V,)
        Sensitive values, sorted.
    counts : ndarray of shape (classes, V)
    """

    layout: Layout
    keys: dict[bytes, int] = field(repr=False)
    values: Array = field(repr=False)
    counts: Array = field(repr=False)

    @classmethod
    def of(cls, layout: Layout, blocks: Iterable[list[Array]]) -> Classes:
        """Count them in one pass."""
        parts = [(layout.signatures(copies), *layout.released(copies)) for copies in blocks]
        keys: dict[bytes, int] = {}
        number = np.array([keys.setdefault(row.tobytes(), len(keys)) for signature, _, _ in parts for row in signature])
        value, there = np.concatenate([v for _, v, _ in parts]), np.concatenate([t for _, _, t in parts])
        values, codes = np.unique(value[there], return_inverse=True)
        counts = np.zeros((len(keys), len(values)))
        np.add.at(counts, (number[there], codes.ravel()), 1.0)
        return cls(layout, keys, values, counts)

    @property
    def prior(self) -> Array:
        """``P(v)``."""
        return np.asarray(self.counts.sum(axis=0) / self.counts.sum())

    @property
    def posterior(self) -> Array:
        """``P_E(v)``; the prior for a class of which nothing is released."""
        size = self.counts.sum(axis=1, keepdims=True)
        return np.where(size > 0, self.counts / np.where(size > 0, size, 1.0), self.prior)

    @property
    def sizes(self) -> Array:
        """Records in each class that are released."""
        return np.asarray(self.counts.sum(axis=1))

    def number(self, copies: Sequence[Array]) -> NDArray[np.intp]:
        """Return each record's class."""
        return np.array([self.keys[row.tobytes()] for row in self.layout.signatures(copies)], dtype=np.intp)


class ClassReading(Reconstruction):
    """Quasi-identifiers at the middle of their bounds, the sensitive value as claimed, other attributes as released.

    Parameters
    ----------
    groups : ndarray of shape (V,)
        Which group of values each belongs to: what is claimed is a group.
    claims : ndarray of shape (classes,)
        The group claimed of each class's records; −1 for none.
    """

    def __init__(self, classes: Classes, groups: NDArray[np.intp], claims: NDArray[np.intp]) -> None:
        self._classes, self._groups, self._claims, self._target = classes, groups, claims, classes.layout.target
        member = np.eye(int(groups.max()) + 1)[groups]
        self._posterior, self._prior = classes.posterior @ member, classes.prior @ member

    def rows(self, copies: Sequence[Array]) -> Array:
        """Return the estimate of every attribute."""
        out, best = self._classes.layout.middles(copies[0]), self._classes.values[self._classes.posterior.argmax(axis=1)]
        out[:, self._target] = best[self._classes.number(copies)]
        return out

    def inferred(self, copies: Sequence[Array]) -> Inferred:
        """Return what is thought of each record's sensitive value."""
        number = self._classes.number(copies)
        size = self._classes.sizes[number]
        return Inferred(
            self._target, self._classes.values, self._groups, self._posterior[number], self._prior, self._claims[number],
            np.divide(1.0, size, out=np.zeros(len(size)), where=size > 0),
        )  # fmt: skip
