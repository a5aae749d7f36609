"""Attacks from Python: a reconstruction of numbers or categories, and its error."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from auditor.adversary.attack import Attack, CategoricalAttack, CategoricalView
from auditor.adversary.knowledge import Knowledge
from auditor.adversary.published import cells_of
from auditor.audit.categorical.posterior_pass import given_by, restricted
from auditor.audit.numeric.moment_pass import draws_of
from auditor.base import AuditorError, NotApplicable
from auditor.base.types import Array, Coalition, Microdata
from auditor.process.containment import with_plugin_errors
from auditor.registry.parameters import FormError, plain
from auditor.runs.estimate_numbers import Estimate, estimate_numbers
from auditor.runs.perturb import Release as Release, as_categories, categories_like, in_domain
from auditor.scenario.arguments import make_plugin
from auditor.scenario.read_plugins import parse_coalitions, parse_knowledge
from auditor.schemes.draw import checked_seed
from auditor.schemes.replacement.base import UniformScheme


@with_plugin_errors
def attack(
    name: str,
    release: Release,
    original: Microdata | None = None,
    coalition: Any = "all",
    knowledge: Any = "perfect",
    seed: int = 0,
    **parameters: Any,
) -> Any:
    """Rebuild the original from a coalition's copies.

    Parameters
    ----------
    name : str
        A registered attack (``auditor list attacks``).
    release : Release
    original : array or DataFrame, optional
        ``X``, for errors and exact moments; by default the release's.
    coalition : list of int or 'all'
        Copy numbers from 1.
    knowledge : str or mapping
        As in a scenario: ``"perfect"``, ``{"estimated": {"rows": 400}}``, ``{"known-records":
        100}``, ``{"known-attributes": ["age"]}``.
    seed : int
        Of the rows that an adversary estimates from or knows.
    **parameters
        The attack's own.

    Returns
    -------
    Estimate or CategoricalEstimate
        The latter of a uniform release: posteriors and best guesses.

    Raises
    ------
    NotApplicable
        The attack does not apply; the message is the reason.
    AuditorError
        A name, a copy number or a parameter is wrong.
    """
    if not isinstance(release, Release):
        raise AuditorError(
            f"release must be of `perturb` or `read_release`; got a {type(release).__name__}"
        )
    plugin: Attack = make_plugin("attack", name, parameters).form()
    knows, scheme, seed = knowledge_of(knowledge), release.scheme, checked_seed(seed)
    copies = _coalition(coalition, len(release.copies))
    plugin.check(scheme.family, knows)
    estimated = estimate_categories if isinstance(scheme, UniformScheme) else estimate_numbers
    return estimated(plugin, release, original, copies, knows, seed)


def knowledge_of(value: Any) -> Knowledge:
    """State of knowledge that is spelt as in a scenario.

    Raises
    ------
    AuditorError
        It is none.
    """
    try:
        return parse_knowledge(plain(value))
    except FormError as error:
        raise AuditorError(f"knowledge {error}") from None


def _coalition(value: Any, M: int) -> Coalition:
    if isinstance(value, set | frozenset | range):
        value = list(value)
    try:
        entry = parse_coalitions(plain([value] if isinstance(value, int | np.integer) else value))
    except ValueError as error:
        raise AuditorError(f"coalition {error}") from None
    found = list(entry.expand(M, 0))
    if len(found) != 1:
        raise AuditorError("coalition must be one set of copies, as [1, 3] or 'all'")
    return found[0]


# -- attacks on copies of categories ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
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
        No closed form; see ``matches-theory``.
    """

    values: Microdata = field(repr=False)
    posterior: Array = field(repr=False)
    domain: tuple[tuple[Any, ...], ...] = field(repr=False)
    accuracy: float
    reconstruction_probability: float
    coalition: Coalition
    theory: None = None


AnyEstimate = Estimate | CategoricalEstimate


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
