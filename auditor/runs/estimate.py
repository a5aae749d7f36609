"""Attacks from Python: a reconstruction of a release, and its error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.attack import Attack, CategoricalAttack, CategoricalView
from auditor.adversary.knowledge import Estimated, Knowledge, KnownRecords, Perfect, PublishedRules
from auditor.adversary.published import cells_of, published_prior
from auditor.adversary.view import NOTHING, Given, KnownPairs, Prior, SampleCounts
from auditor.audit.categorical.posterior_measures import restricted
from auditor.audit.numeric.views import estimated_noise
from auditor.base.errors import AuditorError, DataError, NotApplicable
from auditor.base.types import Array, Coalition, Codes, Microdata
from auditor.data.microdata import as_categories, as_table, categories_like, copy_values, in_order
from auditor.numerics.moments import Moments
from auditor.numerics.random_streams import stream
from auditor.process.containment import with_plugin_errors
from auditor.runs.arguments import make_plugin
from auditor.runs.estimate_numbers import Held, measured
from auditor.runs.perturb import Release, codes_of
from auditor.scenario.problems import plain
from auditor.scenario.read_knowledge import KnowledgeError, parse_knowledge
from auditor.scenario.read_plugins import parse_coalitions
from auditor.schemes.base.scheme import table_moments
from auditor.schemes.draw import checked_seed
from auditor.schemes.replacement.base import UniformScheme


@dataclass(frozen=True)
class CategoricalEstimate:
    """A reconstruction of categories, and its accuracy.

    Attributes
    ----------
    values : like the original
        The most probable value of every record.
    posterior : ndarray of shape (n, s)
        Over the domain; of several attributes the last one's value changes fastest.
    accuracy : float
        Share of records whose most probable value is the true one.
    reconstruction_probability : float
        Posterior probability of the true value, averaged over records.
    theory : None
        Estimates of categories have no closed-form error here; see ``matches-theory``.
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
    scheme: UniformScheme,
    X: Microdata,
    copies: Sequence[Microdata],
    levels: Sequence[float],
    coalition: Coalition,
    knows: Knowledge,
    seed: int,
) -> CategoricalEstimate:
    """Run a categorical attack on the copies of one coalition; see ``attack``."""
    if not isinstance(plugin, CategoricalAttack):
        raise NotApplicable(f"{plugin.name} does not attack categories")
    table = as_categories(X)
    held = [codes_of(table, X, copy) for copy in copies]
    law = scheme.over(table).channel(levels, table.size)

    def chosen(name: str, count: int) -> NDArray[np.intp]:
        if count > table.rows:
            raise AuditorError(
                f"knowledge {knows.label} needs that many rows; the table has {table.rows}"
            )
        return np.sort(stream(seed, name, 1).permutation(table.rows)[:count])

    given: Given = NOTHING
    if isinstance(knows, Perfect):
        given = Prior(table.prior)
    elif isinstance(knows, PublishedRules):
        given = Prior(published_prior(knows, table.attributes, table.prior))
    elif isinstance(knows, Estimated):
        rows = chosen("estimated", knows.rows)
        counts = (np.bincount(copy[rows], minlength=table.size) for copy in held)
        given = SampleCounts(tuple(each.astype(np.float64) for each in counts))
    elif isinstance(knows, KnownRecords):
        rows = chosen("known-records", knows.count)
        given = KnownPairs(table.codes[rows], tuple(copy[rows] for copy in held))
    P = plugin.infer(CategoricalView(coalition, law, knows, table.labels, given)).checked(held)
    if knows.in_clear:
        P = given_columns(P, cells_of(knows.in_clear, table.attributes), table.codes)
    best = P.argmax(axis=1).astype(table.codes.dtype)
    return CategoricalEstimate(
        values=categories_like(X, table, best),
        posterior=P,
        domain=tuple(attribute.labels for attribute in table.attributes),
        accuracy=float(np.mean(best == table.codes)),
        reconstruction_probability=float(P[np.arange(table.rows), table.codes].mean()),
        coalition=coalition,
    )


def given_columns(P: Array, known: NDArray[np.intp], codes: Codes) -> Array:
    """Return posteriors, shape (n, s), given each record's combination of known attributes."""
    return restricted(P, known == known[codes][:, None])


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
        A registered attack; ``auditor list attacks`` names them.
    release : Release
    original : array or DataFrame, optional
        ``X``, for the errors and exact moments; by default the release's own.
    coalition : list of int or 'all'
        Copy numbers from 1.
    knowledge : str or mapping
        As in a scenario: ``"perfect"``, ``{"estimated": {"rows": 400}}``, ``{"known-records":
        100}``, ``{"known-attributes": ["age"]}``.
    seed : int
        Of the rows that an adversary estimates from, or is given.
    **parameters
        The attack's own.

    Returns
    -------
    Estimate or CategoricalEstimate
        The latter of a uniform release: posteriors and best guesses.

    Raises
    ------
    NotApplicable
        The pairing makes no sense; the message is the reason.
    AuditorError
        A name, a copy number or a parameter is wrong.
    """
    plugin: Attack = make_plugin("attack", name, parameters).form()
    knows, scheme, seed = knowledge_of(knowledge), release.scheme, checked_seed(seed)
    copies = _coalition(coalition, len(release.copies))
    plugin.check(scheme.family, knows)
    levels = tuple(release.levels[copy - 1] for copy in copies if release.levels)
    if isinstance(scheme, UniformScheme):
        X = release.original if original is None else original
        held = [release.copies[copy - 1] for copy in copies]
        return estimate_categories(plugin, scheme, X, held, levels, copies, knows, seed)
    X = release.original if original is None else in_order(original, release.original)
    own = X is release.original
    table = release._table if own else as_table(X)
    if (table.rows, table.width) != (release._table.rows, release._table.width):
        raise DataError("the original must have as many rows and columns as what was released")
    values = (copy_values(release.copies[copy - 1], table.rows) for copy in copies)
    arrays = [scheme.from_columns(each, table.attributes) for each in values]
    moments = release._moments if own else table_moments(table)
    law, estimated = None if release.law is None else release.law.of(copies), None
    if law is None and not scheme.makes_copies:
        joint = np.hstack([table.values, *arrays]) - np.tile(moments.mean, len(arrays) + 1)
        estimated = estimated_noise([Moments.of(joint)], moments)
        law = None if estimated is None else estimated.law
    found = measured(
        plugin, Held(scheme, table, moments, copies, levels, arrays, law), X, knows, seed
    )
    # theory under an estimated law is no proof
    return found if estimated is None else replace(found, theory=None)


def knowledge_of(value: Any) -> Knowledge:
    """Return a state of knowledge that is spelt as in a scenario.

    Raises
    ------
    AuditorError
        It is none.
    """
    try:
        return parse_knowledge(plain(value))
    except KnowledgeError as error:
        raise AuditorError(f"knowledge {error}") from None


def _coalition(value: Any, M: int) -> Coalition:
    if isinstance(value, (set, frozenset, range)):
        value = list(value)
    try:
        entry = parse_coalitions(plain([value] if isinstance(value, (int, np.integer)) else value))
    except ValueError as error:
        raise AuditorError(f"coalition {error}") from None
    found = list(entry.expand(M, 0))
    if len(found) != 1:
        raise AuditorError("coalition must be one set of copies, as [1, 3] or 'all'")
    return found[0]
