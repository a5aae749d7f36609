"""Attacks on copies of categories from Python."""

from dataclasses import field
from typing import Any

import numpy as np

from auditor.adversary.attack import Attack, CategoricalAttack, CategoricalView
from auditor.adversary.knowledge import Knowledge
from auditor.adversary.published import cells_of
from auditor.audit.categorical.posterior_pass import given_by, restricted
from auditor.audit.numeric.moment_pass import draws_of
from auditor.base import AuditorError, NotApplicable
from auditor.base.types import Array, Coalition, Microdata, frozen
from auditor.data.microdata import as_categories, categories_like, in_domain
from auditor.runs.perturb import Release as Release
from auditor.schemes.replacement.base import UniformScheme


@frozen
class CategoricalEstimate:
    """A reconstruction of categories, and its accuracy.

    Attributes
    ----------
    values : like the original
        The most probable value of every record.
    posterior : ndarray of shape (n, s)
        Over the domain; of several attributes the last changes fastest.
    accuracy : float
        Share of records with a true most probable value.
    reconstruction_probability : float
        Posterior probability of the true value, averaged over records.
    theory : None
        No closed form here; see ``matches-theory``.
    """

    values: Microdata = field(repr=False)
    posterior: Array = field(repr=False)
    domain: tuple[tuple[Any, ...], ...] = field(repr=False)
    accuracy: float
    reconstruction_probability: float
    coalition: Coalition
    theory: None = None


def estimate_categories(
    plugin: Attack,
    release: Release,
    original: Microdata | None,
    coalition: Coalition,
    knows: Knowledge,
    seed: int,
) -> CategoricalEstimate:
    """Run a categorical attack on the copies of one coalition; see ``attack``."""
    if not isinstance(plugin, CategoricalAttack):
        raise NotApplicable(f"{plugin.name} does not attack categories")
    X, scheme = release.original if original is None else original, release.scheme
    assert isinstance(scheme, UniformScheme)
    table, (levels, copies) = as_categories(X), release.held(coalition)
    held = [in_domain(table, X, copy).codes for copy in copies]
    law = scheme.over(table).channel(levels, table.size)
    if knows.row_count > table.rows:
        raise AuditorError(
            f"knowledge {knows.label} needs that many rows; the table has {table.rows}"
        )
    draws = draws_of([knows], table.rows, seed, 1).values()
    chosen = (column[draw.rows] for draw in draws for column in (table.codes, *held))
    given = given_by(knows, table, chosen)
    P = plugin.infer(CategoricalView(coalition, law, knows, table.labels, given)).checked(held)
    if knows.in_clear:
        known = cells_of(knows.in_clear, table.attributes)
        P = restricted(P, known == known[table.codes][:, None])
    best = P.argmax(axis=1).astype(table.codes.dtype)
    return CategoricalEstimate(
        values=categories_like(X, table, best),
        posterior=P,
        domain=tuple(attribute.labels for attribute in table.attributes),
        accuracy=float(np.mean(best == table.codes)),
        reconstruction_probability=float(P[np.arange(table.rows), table.codes].mean()),
        coalition=coalition,
    )
