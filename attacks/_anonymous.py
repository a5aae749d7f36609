"""Sensitive values of each equivalence class in k-anonymous copies.

| symbol | meaning | shape |
| --- | --- | --- |
| class | records of one class in every held copy; suppressed records are a class; a target is found by its quasi-identifiers | |
| ``P_E(v)`` | share of sensitive value v in the class: the posterior of each of its records | (classes, V) |
| ``P(v)`` | share in the copies as a whole: the prior | (V,) |

A record that all copies suppress has the posterior ``P`` and no row to be linked to.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np

from auditor.numerics.linear_algebra import quotient
from auditor.plugin import (
    Array,
    ClassRecords,
    Cost,
    Indices,
    Inferred,
    NotApplicable,
    Reconstruction,
    RowAttack,
    View,
    unprinted,
)
from auditor.schemes.generalisation.classes import classes, counted, ranges, released


def target_of(view: View) -> int:
    """Index of the sensitive attribute.

    Raises
    ------
    NotApplicable
        The adversary does not know all quasi-identifiers, or already knows the sensitive attribute.
    """
    target, known = (
        view.attributes.index(view.scheme["sensitive"]),
        {view.attributes[place] for place in view.known_columns},
    )
    if not set(view.scheme["quasi"]) <= known:
        raise NotApplicable(
            "finds a target's class by its quasi-identifiers, so needs to know all of them"
        )
    if view.scheme["sensitive"] in known:
        raise NotApplicable("looks for the sensitive attribute, which this adversary knows already")
    return target


@unprinted
class Classes:
    """Counts of sensitive values in every class.

    Attributes
    ----------
    target : int
        Index of the sensitive attribute.
    numbers : dict
        Class number, keyed by the class in each held copy.
    values : ndarray of shape (V,)
        Sensitive values, sorted.
    counts : ndarray of shape (classes, V)
    """

    target: int
    numbers: dict[tuple[int, ...], int]
    values: Array
    counts: Array

    @classmethod
    def of(cls, target: int, blocks: Iterable[list[ClassRecords]]) -> Classes:
        parts = [(classes(copies), *released(copies, target)) for copies in blocks]
        members, value, shown = (np.concatenate(each) for each in zip(*parts, strict=True))
        found, number = np.unique(members, axis=0, return_inverse=True)
        values, codes = np.unique(value[shown], return_inverse=True)
        counts = counted(number.ravel()[shown], codes.ravel(), (len(found), len(values)))
        return cls(
            target, {tuple(row): place for place, row in enumerate(found.tolist())}, values, counts
        )

    @property
    def prior(self) -> Array:
        return self.counts.sum(axis=0) / self.counts.sum()

    @property
    def posterior(self) -> Array:
        """``P_E(v)``, shape (classes, V); the prior for empty classes."""
        size = self.counts.sum(axis=1, keepdims=True)
        return np.where(size > 0, self.counts / np.where(size > 0, size, 1.0), self.prior)

    @property
    def sizes(self) -> Array:
        """Released records in each class, shape (classes,)."""
        return self.counts.sum(axis=1)

    def number(self, copies: Sequence[ClassRecords]) -> Indices:
        found, number = np.unique(classes(copies), axis=0, return_inverse=True)
        return np.array([self.numbers[tuple(row)] for row in found.tolist()], dtype=int)[
            number.ravel()
        ]


class ClassAttack(RowAttack):
    """Base of attacks that read sensitive values from equivalence classes."""

    families = frozenset({"k-anonymity"})
    cost = Cost(3e-4, 3e-7)
    knowledge = ("known-attributes",)
    assumes = (
        "The adversary knows that its target is in the table, and all of its quasi-identifiers."
    )

    @abstractmethod
    def claimed(self, sizes: Array, P_E: Array, P: Array) -> Indices:
        """Each class's claimed group, shape (classes,); −1 for none.

        Parameters
        ----------
        sizes : ndarray of shape (classes,)
            Released records in each class.
        P_E : ndarray of shape (classes, G)
        P : ndarray of shape (G,)
        """

    def groups(self, view: View, values: Array) -> Indices:
        """Each sensitive value's group, shape (V,); by default its own."""
        return np.arange(len(values))

    def fit(self, view: View, blocks: Iterable[list[ClassRecords]]) -> Reconstruction:
        return ClassReading(self, view, Classes.of(target_of(view), blocks))


def surest(sizes: Array, P_E: Array, confidence: float) -> Indices:
    return np.where((P_E.max(axis=1) >= confidence - 1e-12) & (sizes > 0), P_E.argmax(axis=1), -1)


def by_group(shares: Array, groups: Indices) -> Array:
    """Sum the shares of values, shape (…, V), within groups, shape (…, G)."""
    # the product with the identity would cost V² per class
    if (groups == np.arange(len(groups))).all():
        return shares
    return shares @ np.eye(int(groups.max()) + 1)[groups]


class ClassReading(Reconstruction):
    """Estimate every attribute of a record from its class.

    Midpoints of the intersected ranges, the class's commonest sensitive value, and other attributes
    as released.
    """

    def __init__(self, attack: ClassAttack, view: View, classes: Classes) -> None:
        self._classes, self._groups = classes, attack.groups(view, classes.values)
        self._posterior = by_group(classes.posterior, self._groups)
        self._prior = by_group(classes.prior, self._groups)
        self._claims = attack.claimed(classes.sizes, self._posterior, self._prior)

    def rows(self, copies: Sequence[ClassRecords]) -> Array:
        low, high = ranges(copies)
        out: Array = (low + high) / 2.0
        best = self._classes.values[self._classes.posterior.argmax(axis=1)]
        out[:, self._classes.target] = best[self._classes.number(copies)]
        return out

    def inferred(self, copies: Sequence[ClassRecords]) -> Inferred:
        number = self._classes.number(copies)
        size = self._classes.sizes[number]
        return Inferred(
            attribute=self._classes.target,
            values=self._classes.values,
            groups=self._groups,
            posterior=self._posterior[number],
            prior=self._prior,
            claims=self._claims[number],
            linked=quotient(1.0, size),
        )
