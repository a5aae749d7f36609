"""Independent component analysis against a matrix: unmix the copy into independent components, then find out which is which attribute.

Whatever the matrix, the copy is a mixture of the attributes; if they are independent and at most one is Gaussian the mixture can be undone
up to order, sign and scale. Those three are taken from what the adversary knows, and from nothing else.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``y`` | ``A s``, s independent components of variance 1 | (n',) | hyvarinen2000 |
| ``ŝ`` | ``B (y − ȳ)`` by FastICA, ``log cosh`` contrast, symmetric | (N,) | hyvarinen2000 |
| ``π, D`` | which component, with which sign, is which attribute | | liu2008, section 4.3 |
| ``x̂_j`` | ``mu_j + σ_j D_j ŝ_π(j)`` (``components: attributes``) | (N,) | |
| ``A_X`` | mixing matrix that ICA finds in the adversary's own records | (N, N) | guo2007 |
| ``x̂`` | ``x̄ + A_X D ŝ_π`` (``components: latent``) | (N,) | guo2007 |

| knowledge | what settles order, sign and scale |
| --- | --- |
| ``known-records`` | correlation of components and attributes over the known pairs; mean and scale by regression on them |
| ``known-sample``, ``unmatched-records`` | likeness of distributions (Wasserstein distance at variance 1); mean and scale of the sample |

Distributions are compared with their means, which a matrix does not hide; only a translation does, and they are centred then.

``components: attributes`` takes the attributes themselves for the independent components. ``latent`` is Guo and Wu's variant: attributes
may be mixtures; ICA of the known records and ICA of the copy find the same components, and matching those carries the copy back.

Theory. A matrix takes the fixed points of FastICA along, so that what is found in a copy is what is found in the table. Given the table and
the adversary's records, the error is then that of the fixed point next to the truth: the audit starts there (at the attributes; for
``latent`` at the adversary's own components) on the true rows that the attack was fitted to, takes the same steps to where they rest, and
puts the components in their places by the adversary's means and scales, but in the right order with the right signs. One draw of the
adversary's counts: where τ of a component (``_fastica``) is near 0 two fixed points may lie beside each other, one with each
sign of it, and theory takes the one with the signs that the attack ended at. A component taken for another, a wrong sign or a fixed
point elsewhere is a difference between measurement and theory.

There is none where «next to the truth» says nothing: where, over tables, the share of some component left in another has a standard
deviation above ``LARGEST_LEAK`` by the law of symmetric FastICA, as always between two Gaussian components, and in a short table with one
or none; where the steps from the truth do not come to rest, or come to rest where a component is no more than half of what it was, in
variance; and for copies with noise, which is unmixed with them. Over tables of independent records the leaks are as that law has them.

Wins on independent attributes that are not Gaussian, through any matrix with n' ≥ N, orthogonal or not. Fails with two Gaussian components:
any rotation of the two is as independent; with fewer columns than attributes; where two attributes have one distribution, no likeness
tells them apart (known pairs do); and ``latent`` with few known records, whose own components are then a guess. That the components found
are independent is *not checked*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
from pydantic import Field

from auditor.plugin import (
    Array,
    Cost,
    KnownRecords,
    KnownSample,
    NotApplicable,
    PluginParameters,
    Reconstruction,
    Records,
    RowAttack,
    UnmatchedRecords,
    UnpairedRecords,
    View,
    register,
    stream,
)

from ._fastica import Unmixing, leak_deviation, some_rows
from ._naming import Guide, Likeness, Pairs

Generator = Callable[[], "np.random.Generator"]  # in quotes, as numpy imports its generators when they are first named

LARGEST_LEAK = 0.08
"""Standard deviation, over tables, of the share of one component left in another, up to which there is a theory. Between two Gaussian
components it is as large in a long table as in a short one, and was below 0.1 in none of 1,000 tables (tests/attacks/test_ica.py)."""

HOPELESS_LEAK = 0.2
"""The same at the truth itself, beyond which steps from there are not tried: between two Gaussian components they would go on and on."""


@register
class IndependentComponents(RowAttack):
    """Unmixes the copy into independent components, and tells which is which attribute by what the adversary knows."""

    name = "ica"
    attack_kind = "with a sample"
    cost = Cost(1.5e-3, 8e-7)
    reference = "liu2008, section 4.3"
    families = frozenset({"rotation", "random-projection", "rotation-noise"})
    knowledge = (KnownRecords.name, KnownSample.name, UnmatchedRecords.name)
    assumes = "Attributes (or latent components) are independent, at most one of them Gaussian; a copy has as many columns as attributes."
    wins = "Wins on independent non-Gaussian attributes through any matrix; fails with two Gaussian ones, and with n' below N."

    class Parameters(PluginParameters):
        """What the independent components are."""

        components: Literal["attributes", "latent"] = Field(
            "attributes", description="the attributes themselves, or hidden ones that known records share with the copy (Guo and Wu)"
        )

    def fit(self, view: View, blocks: Iterable[list[Array]]) -> Reconstruction:
        """Return the unmixing and the map from components to attributes."""
        rows: Generator = partial(stream, view.seed, self.name, "rows")
        y = some_rows(blocks, rows())
        if y.shape[1] < view.width:
            raise NotApplicable(f"{y.shape[1]} columns cannot be unmixed into {view.width} attributes")
        found = Unmixing.of(y, view.width, stream(view.seed, self.name, "start"))
        guide = self._guide(view)
        order, signs = guide.order(found, y)
        noisy = any(view.levels)
        theory = None if noisy else Theory(guide, found.signs[order], rows)
        return Unmixed(found, *guide.place(found, order, signs), theory)

    def _guide(self, view: View) -> Guide:
        latent = self.parameters.components == "latent"
        if isinstance(view.given, Records):
            if latent:
                raise NotApplicable("known pairs settle the map by regression; Guo and Wu's variant is for records without their rows")
            if len(view.given.original) < 2:
                raise NotApplicable("needs at least two known records to tell scale from mean")
            return Pairs(view.given.original, np.hstack(view.given.copies))
        known = view.need(UnpairedRecords).original
        if len(known) < 2:
            raise NotApplicable("needs at least two records of the population to tell components apart")
        moved = bool(view.scheme.get("translation", False))
        if not latent:
            return Likeness(known, np.eye(view.width), np.diag(known.std(axis=0)), moved)
        own = Unmixing.of(known, view.width, stream(view.seed, self.name, "own")).matrix
        return Likeness(known, own, np.asarray(np.linalg.pinv(own)), moved)


class Unmixed(Reconstruction):
    """``x̂ = mean + A ŝ``."""

    def __init__(self, unmixing: Unmixing, mean: Array, A: Array, theory: Theory | None = None) -> None:
        self._unmixing, self._mean, self._A, self._theory = unmixing, mean, A, theory

    def rows(self, copies: Sequence[Array]) -> Array:
        """Return the components of the stacked copies, put in their places."""
        return np.asarray(self._mean + self._unmixing.apply(np.hstack(list(copies))) @ self._A.T)

    def row_theory(self, seen: Iterable[Array]) -> Callable[[Array], Array] | None:
        """Return the squared errors that the fixed point next to the truth leaves; None where there is no such point."""
        return None if self._theory is None else self._theory.of(seen)


@dataclass(frozen=True, eq=False)
class Theory:
    """What is left by an attack that ends next to the truth and takes no component for another; for the audit alone.

    Attributes
    ----------
    guide : Guide
    signs : ndarray of shape (N,)
        Of ``τ`` of the components that the attack found, in their places.
    rows : callable
        Returns anew the generator that chose the rows it was fitted to.
    """

    guide: Guide
    signs: Array = field(repr=False)
    rows: Generator

    def of(self, seen: Iterable[Array]) -> Callable[[Array], Array] | None:
        """Return theory's ``‖x̂ − x‖²`` of true records, given the true rows whose copies the attack was fitted to, block by block."""
        x = some_rows(([block] for block in seen), self.rows())
        s = (x - x.mean(axis=0)) @ self.guide.directions.T
        if leak_deviation((s / s.std(axis=0)).T).max() > HOPELESS_LEAK:
            return None
        try:
            best = Unmixing.beside(x, self.guide.directions, self.signs)
        except NotApplicable:  # the copies vary in as many directions by rounding alone
            return None
        if not best.fixed or best.kept.min() <= 0.5 or leak_deviation(best.apply(x).T).max() > LARGEST_LEAK:
            return None
        N = x.shape[1]
        right = Unmixed(best, *self.guide.without_matrix().place(best, np.arange(N), np.ones(N)))
        return lambda true: np.asarray(((right.rows([true]) - true) ** 2).sum(axis=1))
