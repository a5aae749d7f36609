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
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from pydantic import Field, model_validator

from auditor.numerics.linear_algebra import quotient
from auditor.plugin import (
    Array,
    AuditorError,
    ClassRecords,
    Cost,
    Indices,
    Inferred,
    NotApplicable,
    PluginParameters,
    Reconstruction,
    RowAttack,
    View,
    register,
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
        return quotient(self.counts, self.sizes[:, None], self.prior)

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


@register
class Homogeneity(ClassAttack):
    """Claim the sensitive value of classes with (nearly) one value.

    | symbol | meaning | source |
    | --- | --- | --- |
    | claim | the commonest value of the class, if its share is at least c (``confidence``) | machanavajjhala2007 |

    k does not limit it; ℓ-diversity (c = 1) and (α, k) with α < c do.
    """

    name = "homogeneity"
    attack_kind = "attribute disclosure"
    reference = "machanavajjhala2007; liu2008, section 5"
    wins = "Wins on classes whose sensitive values are alike, whatever k; fails on diverse ones."

    class Parameters(PluginParameters):
        """Confidence of a claim."""

        confidence: float = Field(1.0, gt=0, le=1)
        """share of one value in a class from which it is claimed"""

    def claimed(self, sizes: Array, P_E: Array, P: Array) -> Indices:
        return np.where(
            (P_E.max(axis=1) >= self.parameters.confidence - 1e-12) & (sizes > 0),
            P_E.argmax(axis=1),
            -1,
        )


@register
class Similarity(Homogeneity):
    """Claim the group of similar values that a class lies within.

    | symbol | meaning | source |
    | --- | --- | --- |
    | group | similar sensitive values: of one hierarchy node, or between two neighbouring ``edges`` | li2007 |
    | claim | the commonest group of the class, if its share is at least c (``confidence``) | |

    ``height`` selects nodes of the hierarchy under ``data: hierarchies:``, 1 being the lowest. ``edges``
    cut a numeric column. t-closeness only bounds the gain over the table.
    """

    name = "similarity"
    reference = "li2007; liu2008, section 5"
    wins = "Wins on classes diverse in value but not in meaning; fails where values spread over groups."
    trial = MappingProxyType({"edges": [90.0, 100.0, 110.0]})

    class Parameters(PluginParameters):
        """Groups of similar values, by ``height`` or ``edges``."""

        height: int | None = Field(None, ge=1)
        """height of the nodes in the declared hierarchy; 1 the lowest"""
        edges: list[float] | None = Field(None, min_length=1)
        """borders between groups of values, in their unit; a border belongs to the upper one"""
        confidence: float = Field(1.0, gt=0, le=1)
        """share of one group in a class from which it is claimed"""

        @model_validator(mode="after")
        def _one(self) -> Any:
            if (self.height is None) == (self.edges is None):
                raise ValueError("give either height or edges")
            return self

    def check_scheme(self, public: Mapping[str, Any]) -> None:
        height, sensitive = self.parameters.height, public.get("sensitive")
        if height is None or sensitive is None:
            return
        hierarchy = public["hierarchies"].get(sensitive)
        if hierarchy is None:
            raise AuditorError(f"height needs a hierarchy of {sensitive!r} under data.hierarchies")
        if height >= hierarchy.height:
            raise AuditorError(
                f"height must be below the root's, {hierarchy.height} in the hierarchy of {sensitive!r}; got {height}"
            )

    def groups(self, view: View, values: Array) -> Indices:
        if self.parameters.edges is not None:
            return np.searchsorted(np.sort(self.parameters.edges), values, side="right")
        self.check_scheme(view.scheme)
        hierarchy = view.scheme["hierarchies"][view.scheme["sensitive"]]
        return hierarchy.groups(self.parameters.height)[values.astype(int)]


@register
class Skewness(ClassAttack):
    """Claim a sensitive value far commoner in the class than in the table.

    | symbol | meaning | source |
    | --- | --- | --- |
    | claim | the value of largest growth, ``max P_E(v)/P(v)``, if it grew by ``factor`` and reached ``least`` | li2007 |

    t-closeness bounds ``P_E(v) − P(v)``.
    """

    name = "skewness"
    attack_kind = "attribute disclosure"
    reference = "li2007; liu2008, section 5"
    wins = "Wins on diverse classes unlike the table; fails on classes t-close to it."

    class Parameters(PluginParameters):
        """Thresholds of a claim."""

        factor: float = Field(2.0, gt=1)
        """growth of a value's share, class over table, that makes it suspect"""
        least: float = Field(0.5, gt=0, le=1)
        """share in the class that it must reach"""

    def claimed(self, sizes: Array, P_E: Array, P: Array) -> Indices:
        growth = P_E / P
        suspect = (growth >= self.parameters.factor - 1e-12) & (
            P_E >= self.parameters.least - 1e-12
        )
        return np.where(suspect.any(axis=1), np.where(suspect, growth, 0.0).argmax(axis=1), -1)


@register
class Linkage(ClassAttack):
    """Name a target's row by its quasi-identifiers.

    | symbol | meaning | source |
    | --- | --- | --- |
    | ``|E|`` | rows that share the target's generalised quasi-identifiers in every held copy | samarati2001 |
    | ``linkage`` | ``mean 1/|E|``, the probability of naming the right row; 0 for a fully suppressed record | |
    | claim | the sensitive value of the only row of a class | |

    k-anonymity bounds the probability by 1/k for one copy.
    """

    name = "linkage"
    attack_kind = "naming"
    reference = "samarati2001; liu2008, section 5"
    wins = (
        "Wins with k = 1 and on pooled copies whose classes cross; fails on one k-anonymous copy."
    )

    def claimed(self, sizes: Array, P_E: Array, P: Array) -> Indices:
        return np.where(sizes == 1, P_E.argmax(axis=1), -1)
