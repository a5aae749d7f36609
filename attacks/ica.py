"""Independent component analysis against a secret matrix.

Independent attributes, at most one Gaussian, are unmixed up to order, sign and scale.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``y`` | ``A s``, s independent components of variance 1 | (n',) | hyvarinen2000 |
| ``ŝ`` | ``B (y − ȳ)`` by FastICA, ``log cosh`` contrast, symmetric | (N,) | hyvarinen2000 |
| ``π, D`` | component and sign of each attribute | | liu2008, section 4.3 |
| ``x̂_j`` | ``mu_j + σ_j D_j ŝ_π(j)`` (``components: attributes``) | (N,) | |
| ``A_X`` | mixing matrix that ICA finds in the adversary's own records | (N, N) | guo2007 |
| ``x̂`` | ``x̄ + A_X D ŝ_π`` (``components: latent``) | (N,) | guo2007 |

| knowledge | source of order, sign and scale |
| --- | --- |
| ``known-records`` | correlation of components and attributes over the known pairs; mean and scale by regression |
| ``known-sample``, ``unmatched-records`` | similarity of distributions (Wasserstein distance at variance 1); mean and scale of the sample |

Distributions are compared with their means, unless the scheme translates. ``latent`` matches
components of known records and of the copy.

Theory is the error of the FastICA fixed point nearest to the truth, from the true attributes (or
the adversary's own components), with the attack's signs of τ (``_fastica``). None for noisy copies,
without convergence, if a component loses half of its variance, or for leaks beyond
``LARGEST_LEAK``.

Without known pairs it fails for attributes of equal distribution; ``latent`` fails with few known
records. Independence is *not checked*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Literal

import numpy as np

from auditor.plugin import (
    Array,
    Arrays,
    CopyBlocks,
    Cost,
    NotApplicable,
    PluginParameters,
    Reconstruction,
    Records,
    RowAttack,
    UnpairedRecords,
    View,
    register,
    stream,
    unprinted,
)

from ._fastica import Unmixing, leak_deviation
from ._fits import some_rows
from ._naming import Guide, Likeness, Pairs

Generator = Callable[[], "np.random.Generator"]

LARGEST_LEAK = 0.08
"""Largest standard deviation, over tables, of one component's share left in another, for which theory is given. Between two Gaussian
components it is above 0.1 (tests/attacks/test_ica.py)."""

HOPELESS_LEAK = 0.2
"""Leak at the truth beyond which no iteration is tried: with two Gaussian components it would not
end."""


@register
class IndependentComponents(RowAttack):
    """Unmix a copy into independent components; assign each to an attribute."""

    name = "ica"
    attack_kind = "with a sample"
    cost = Cost(1.5e-3, 8e-7)
    reference = "liu2008, section 4.3"
    families = frozenset({"rotation", "random-projection", "rotation-noise"})
    knowledge = ("known-records", "known-sample", "unmatched-records")
    assumes = "Attributes (or latent components) are independent, at most one of them Gaussian; a copy has as many columns as attributes."
    wins = "Wins on independent non-Gaussian attributes through any matrix; fails with two Gaussian ones, and with n' below N."

    class Parameters(PluginParameters):
        """Choice of independent components."""

        components: Literal["attributes", "latent"] = "attributes"
        """the attributes themselves, or hidden ones that known records share with the copy (Guo and Wu)"""

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        rows: Generator = partial(stream, view.seed, self.name, "rows")
        y = some_rows(blocks, rows())
        if y.shape[1] < view.width:
            raise NotApplicable(
                f"{y.shape[1]} columns cannot be unmixed into {view.width} attributes"
            )
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
                raise NotApplicable(
                    "known pairs settle the map by regression; Guo and Wu's variant is for records without their rows"
                )
            if len(view.given.original) < 2:
                raise NotApplicable("needs at least two known records to tell scale from mean")
            return Pairs(view.given.original, np.hstack(view.given.copies))
        known = view.need(UnpairedRecords).original
        if len(known) < 2:
            raise NotApplicable(
                "needs at least two records of the population to tell components apart"
            )
        moved = bool(view.scheme.get("translation", False))
        if not latent:
            return Likeness(known, np.eye(view.width), np.diag(known.std(axis=0)), moved)
        own = Unmixing.of(known, view.width, stream(view.seed, self.name, "own")).matrix
        return Likeness(known, own, np.asarray(np.linalg.pinv(own)), moved)


@unprinted
class Unmixed(Reconstruction):
    """``x̂ = mean + A ŝ``."""

    unmixing: Unmixing
    mean: Array
    A: Array
    theory: Theory | None = None

    def rows(self, copies: Arrays) -> Array:
        return self.mean + self.unmixing.apply(np.hstack(list(copies))) @ self.A.T

    def row_theory(self, seen: Iterable[Array]) -> Callable[[Array], Array] | None:
        return None if self.theory is None else self.theory.of(seen)


@unprinted
class Theory:
    """Error of a correct assignment at the fixed point.

    Attributes
    ----------
    guide : Guide
    signs : ndarray of shape (N,)
        Of ``τ`` of the attack's components, by attribute.
    rows : callable
        Returns a new copy of the generator that chose the fitted rows.
    """

    guide: Guide
    signs: Array
    rows: Generator

    def of(self, seen: Iterable[Array]) -> Callable[[Array], Array] | None:
        """Function from true records to ``‖x̂ − x‖²``, or None."""
        x = some_rows(([block] for block in seen), self.rows())
        s = (x - x.mean(axis=0)) @ self.guide.directions.T
        if leak_deviation((s / s.std(axis=0)).T).max() > HOPELESS_LEAK:
            return None
        try:
            best = Unmixing.beside(x, self.guide.directions, self.signs)
        except NotApplicable:
            return None
        if (
            not best.fixed
            or best.kept.min() <= 0.5
            or leak_deviation(best.apply(x).T).max() > LARGEST_LEAK
        ):
            return None
        N = x.shape[1]
        right = Unmixed(best, *self.guide.without_matrix().place(best, np.arange(N), np.ones(N)))
        return lambda true: ((right.rows([true]) - true) ** 2).sum(axis=1)
