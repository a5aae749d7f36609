"""Attacks from Python: a reconstruction of a release, and its error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.affine import Affine
from auditor.adversary.attack import Attack, LinearAttack, Reconstruction, RowAttack
from auditor.adversary.categorical_attack import CategoricalAttack, CategoricalView
from auditor.adversary.given import NOTHING, Given, KnownPairs, Prior, SampleCounts
from auditor.adversary.handed_back import check_affine
from auditor.adversary.knowledge import Estimated, Knowledge, KnownRecords, Perfect, PublishedRules
from auditor.adversary.published_rules import cells_of, published_prior
from auditor.adversary.view import View
from auditor.audit.categorical.known_attributes import KnownPart
from auditor.audit.numeric.error_bars import with_total
from auditor.audit.numeric.known_rows import RowSelection, with_row_theory
from auditor.audit.numeric.linear_maps import Maps, closed_form, held_out_theory
from auditor.audit.numeric.neighbours import rows_of
from auditor.audit.numeric.reconstruct import CopyBlocks
from auditor.audit.numeric.views import Gathered, ReleasedCopies
from auditor.data.microdata import (
    as_categories,
    as_table,
    categories_like,
    copy_values,
    in_order,
    numbers_like,
)
from auditor.data.table import Table
from auditor.errors import AuditorError, DataError, NotApplicable
from auditor.numerics.blocks import row_blocks
from auditor.numerics.moments import Moments
from auditor.numerics.random_streams import stream
from auditor.numerics.read_only import readable
from auditor.parameters import is_number
from auditor.process.containment import with_plugin_errors
from auditor.process.environment import one_thread
from auditor.runs.perturb import Release, codes_of, make_plugin
from auditor.scenario.from_python import plain
from auditor.scenario.read_coalitions import parse_coalitions
from auditor.scenario.read_knowledge import KnowledgeError, parse_knowledge
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.schemes.base.scheme import Scheme, TableMoments, table_moments
from auditor.schemes.draw import checked_seed
from auditor.schemes.replacement.base import UniformScheme
from auditor.types import Array, Coalition, Codes, Microdata


@dataclass(frozen=True)
class Estimate:
    """A reconstruction of the original, and its error.

    Attributes
    ----------
    values : array or DataFrame
        ``X̂``, like the original.
    theory : float or None
        Closed-form distortion (mean squared error over rows and attributes, squared data units),
        if it exists.
    distortion : float
        Measured distortion, over the records that the adversary was not given in clear.
    normalized_error : float
        ``N·D/Tr(K_X)``: 0 is exact, 1 no better than guessing the mean.
    coalition : tuple of int
        The copies used.
    """

    values: Microdata = field(repr=False)
    theory: float | None
    distortion: float
    normalized_error: float
    coalition: Coalition
    _fitted: Reconstruction | None = field(default=None, repr=False, compare=False)
    _copies: Sequence[Array] = field(default=(), repr=False, compare=False)

    def chances(self, tolerance: float) -> Array | None:
        """Return each record's chance of exact reconstruction, if the attack has one.

        As the adversary can compute it; None if the attack cannot.

        Parameters
        ----------
        tolerance : float
            A record counts as rebuilt with ``‖x̂ − x‖ ≤ tolerance·‖x‖``; above 0.

        Returns
        -------
        ndarray of shape (n,) or None
            In order of rows; its ``argmax`` is the record that is most exposed. Records given in
            clear are certain.

        Raises
        ------
        AuditorError
            The tolerance is not a number above 0.

        Examples
        --------
        >>> import auditor
        >>> X = np.random.default_rng(0).normal(size=(50, 3))
        >>> estimate = attack("known-io-rotation", auditor.perturb(X, "rotation", [0], seed=1), knowledge={"known-records": 1})
        >>> estimate.chances(0.5).shape
        (50,)
        """
        if not is_number(tolerance) or not 0 < tolerance < np.inf:
            raise AuditorError(f"the tolerance must be a number above 0; got {tolerance!r}")
        return (
            None if self._fitted is None else self._fitted.chances(self._copies, float(tolerance))
        )


@dataclass(frozen=True)
class CategoricalEstimate:
    """A reconstruction of categories, and its accuracy.

    Attributes
    ----------
    values : like the original
        The most probable value of every record.
    posterior : ndarray of shape (n, s)
        The posterior over the domain; of several attributes the last one's value changes fastest.
    domain : tuple
        Labels by attribute.
    accuracy : float
        Share of records whose most probable value is the true one.
    reconstruction_probability : float
        Posterior probability of the true value, averaged over records.
    coalition : tuple of int
        The copies used.
    """

    values: Microdata = field(repr=False)
    posterior: Array = field(repr=False)
    domain: tuple[tuple[Any, ...], ...] = field(repr=False)
    accuracy: float
    reconstruction_probability: float
    coalition: Coalition


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
    levels = tuple(release.levels[copy - 1] for copy in copies)
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
    law = None if release.law is None else release.law.of(copies)
    return measured(
        plugin, Held(scheme, table, moments, copies, levels, arrays, law), X, knows, seed
    )


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


# -- categories ------------------------------------------------------------------------------------


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
    return np.where(known == known[codes][:, None], KnownPart(known).posterior(P), 0.0)


# -- numbers ---------------------------------------------------------------------------------------


class Held(NamedTuple):
    """Copies of one coalition, and the table that its adversary wants.

    ``copies`` are their numbers, ``arrays`` their values.
    """

    scheme: Scheme
    table: Table
    moments: TableMoments
    copies: Coalition
    levels: tuple[float, ...]
    arrays: list[Array]
    law: NoiseLaw | None


def measured(plugin: Attack, held: Held, X: Microdata, knows: Knowledge, seed: int) -> Estimate:
    """Return an attack's estimate in the form of ``X``, which has the table's values."""
    table = held.table
    with one_thread():
        values, theory, fitted, given = rebuilt(plugin, held, knows, seed)
    errors = np.delete(table.values - values, given, axis=0).reshape(-1)
    distortion = float(errors @ errors) / errors.size
    scale = float(np.trace(held.moments.covariance)) / table.width
    return Estimate(
        values=numbers_like(X, values),
        theory=theory,
        distortion=distortion,
        normalized_error=distortion / scale,
        coalition=held.copies,
        _fitted=fitted,
        _copies=held.arrays,
    )


def rebuilt(
    plugin: Attack, held: Held, knows: Knowledge, seed: int
) -> tuple[Array, float | None, Reconstruction | None, NDArray[np.intp]]:
    """Return estimates, theory's distortion, the fit, and the rows in clear.

    Estimates have shape (n, N); only attacks on rows have a fit.

    Raises
    ------
    NotApplicable
        The pairing makes no sense; the message is the reason.
    PluginError
        The attack returned no estimate.
    """
    scheme, table, moments, copies, levels, arrays, law = held
    blocks, joint = in_blocks(table, arrays), scheme.output_width(table.width) == table.width
    rows = RowSelection(table, [knows], seed, 1)
    released = ReleasedCopies(
        table, moments, levels, law, blocks, joint, public=scheme.public, numbers=copies
    )
    view, given = Gathered(released, rows, late=True).view(knows), rows.given(knows)
    if isinstance(plugin, LinearAttack) and (scheme.has_matrices or not joint):
        # moments of transformed copies about the original's mean would be lost in rounding
        plugin = plugin.over_rows()
    if isinstance(plugin, LinearAttack):
        affine = plugin.affine(view)
        check_affine(affine, view)
        values = affine.apply(arrays, view.centre, np.empty_like(table.values))
        if affine.known is not None:
            values += (table.values - view.centre) @ affine.known.T
        return values, _linear_theory(affine, view, held, given), None, given
    if not isinstance(plugin, RowAttack):
        raise NotApplicable(f"{plugin.name} is neither a linear nor a row-level attack")
    fitted = plugin.fit(
        view, CopyBlocks(rows.seen(knows, blocks), tuple(range(1, len(copies) + 1)))
    )
    values = rows_of(fitted, blocks())
    expected = fitted.expected(np.delete(table.values, given, axis=0))
    squares = np.array([np.nan if expected is None else float(expected.sum())])
    theory = float(with_row_theory(squares, [fitted], *rows.originals(knows))[0])
    theory /= (table.rows - given.size) * table.width
    return values, None if np.isnan(theory) else theory, fitted, given


def in_blocks(table: Table, arrays: Sequence[Array]) -> Callable[[], Any]:
    """Return a function that yields block number, a table's rows and its copies' rows."""
    bounds = row_blocks(table.rows, table.width)
    return lambda: (
        (k, table.read(a, b), readable([copy[a:b] for copy in arrays]))
        for k, (a, b) in enumerate(bounds)
    )


def _linear_theory(affine: Affine, view: View, held: Held, given: NDArray[np.intp]) -> float | None:
    if view.law is None or not (affine.fixed or (affine.apart and given.size)):
        return None
    known = None if affine.known is None else affine.known[None]
    maps = Maps(affine.weights[None], affine.offset[None], affine.fixed, known)
    if affine.fixed:
        moments = held.moments
        found = closed_form(maps, moments.covariance, view.law, moments.rows).expected
        return float(with_total(found)[0, -1])
    judged = Moments.of(np.delete(held.table.values, given, axis=0) - view.centre)
    return float(held_out_theory(maps, judged, view.law)[0, -1])
