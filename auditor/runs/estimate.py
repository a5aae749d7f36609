"""Attacks from Python: a reconstruction of numbers or categories, and its error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.attack import Attack, CategoricalAttack, CategoricalView, Reconstruction
from auditor.adversary.knowledge import Estimated, Knowledge, KnownRecords, Perfect, PublishedRules
from auditor.adversary.published import cells_of, published_prior
from auditor.adversary.view import NOTHING, Given, KnownPairs, Prior, SampleCounts
from auditor.audit.categorical.release import restricted
from auditor.audit.numeric.estimate import Held, rebuilt
from auditor.audit.numeric.views import estimated_noise
from auditor.base import AuditorError, DataError, NotApplicable
from auditor.base.types import Array, Coalition, Microdata, frozen
from auditor.data.microdata import (
    as_categories,
    as_table,
    categories_like,
    copy_values,
    in_domain,
    in_order,
    numbers_like,
)
from auditor.numerics.blocks import Moments
from auditor.numerics.random_streams import stream
from auditor.process.containment import with_plugin_errors
from auditor.process.environment import one_thread
from auditor.registry.parameters import is_number
from auditor.runs.arguments import make_plugin
from auditor.runs.perturb import Release
from auditor.scenario.problems import plain
from auditor.scenario.read_data import KnowledgeError, parse_knowledge
from auditor.scenario.read_plugins import parse_coalitions
from auditor.schemes.base.scheme import table_moments
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
        A registered attack; ``auditor list attacks`` names them.
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
    return estimate_numbers(plugin, release, original, copies, levels, knows, seed)


def knowledge_of(value: Any) -> Knowledge:
    """State of knowledge that is spelt as in a scenario.

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


# -- numbers ---------------------------------------------------------------------------------------


@frozen
class Estimate:
    """A reconstruction of the original, and its error.

    Attributes
    ----------
    values : array or DataFrame
        ``X̂``, like the original.
    theory : float or None
        Closed-form mean squared error over rows and attributes, squared data units.
    distortion : float
        Measured, over records that the adversary does not know in clear.
    normalized_error : float
        ``N·D/Tr(K_X)``: 0 is exact, 1 no better than guessing the mean.
    """

    values: Microdata = field(repr=False)
    theory: float | None
    distortion: float
    normalized_error: float
    coalition: Coalition
    _fitted: Reconstruction | None = field(default=None, repr=False, compare=False)
    _copies: Sequence[Array] = field(default=(), repr=False, compare=False)

    def chances(self, tolerance: float) -> Array | None:
        """Each record's chance of exact reconstruction, if the attack has one.

        Parameters
        ----------
        tolerance : float
            A record counts as rebuilt with ``‖x̂ − x‖ ≤ tolerance·‖x‖``; above 0.

        Returns
        -------
        ndarray of shape (n,) or None
            By row, as the adversary can compute it. Records known in clear are certain.

        Raises
        ------
        AuditorError
            The tolerance is not a number above 0.

        Examples
        --------
        >>> import auditor
        >>> X = np.random.default_rng(0).normal(size=(50, 3))
        >>> copies = auditor.perturb(X, "rotation", [0], seed=1)
        >>> estimate = auditor.attack("known-io-rotation", copies, knowledge={"known-records": 1})
        >>> estimate.chances(0.5).shape
        (50,)
        """
        if not is_number(tolerance) or not 0 < tolerance < np.inf:
            raise AuditorError(f"the tolerance must be a number above 0; got {tolerance!r}")
        return (
            None if self._fitted is None else self._fitted.chances(self._copies, float(tolerance))
        )


def estimate_numbers(
    plugin: Attack,
    release: Release,
    original: Microdata | None,
    copies: Coalition,
    levels: tuple[float, ...],
    knows: Knowledge,
    seed: int,
) -> Estimate:
    """Run an attack on the copies of one coalition; see ``attack``."""
    X = release.original if original is None else in_order(original, release.original)
    own, scheme = X is release.original, release.scheme
    table = release._table if own else as_table(X)
    shape, wanted = ((each.rows, each.width) for each in (table, release._table))
    if shape != wanted:
        raise DataError(f"original must have shape {wanted}, as the release; got {shape}")
    values = (copy_values(release.copies[copy - 1], table.rows) for copy in copies)
    arrays = [scheme.from_columns(each, table.attributes) for each in values]
    moments = release._moments if own else table_moments(table)
    law, estimated = None if release.law is None else release.law.of(copies), None
    if law is None and not scheme.makes_copies:
        joint = np.hstack([table.values, *arrays]) - np.tile(moments.mean, len(arrays) + 1)
        estimated = estimated_noise([Moments.of(joint)], moments)
        law = None if estimated is None else estimated.law
    held = Held(scheme, table, moments, copies, levels, arrays, law)
    with one_thread():
        found, theory, fitted, given = rebuilt(plugin, held, knows, seed)
    errors = np.delete(table.values - found, given, axis=0).reshape(-1)
    distortion = float(errors @ errors) / errors.size
    scale = float(np.trace(moments.covariance)) / table.width
    return Estimate(
        values=numbers_like(X, found),
        theory=theory if estimated is None else None,  # under an estimated law it is no proof
        distortion=distortion,
        normalized_error=distortion / scale,
        coalition=copies,
        _fitted=fitted,
        _copies=arrays,
    )


# -- categories ------------------------------------------------------------------------------------


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
    held = [in_domain(table, X, copy).codes for copy in copies]
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
        given = SampleCounts(tuple(each.astype(float) for each in counts))
    elif isinstance(knows, KnownRecords):
        rows = chosen("known-records", knows.count)
        given = KnownPairs(table.codes[rows], tuple(copy[rows] for copy in held))
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


AnyEstimate = Estimate | CategoricalEstimate
