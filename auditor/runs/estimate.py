"""One attack from Python: a release and a state of knowledge in, a reconstruction with its theory out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.affine import Affine
from auditor.adversary.attack import Attack, LinearAttack, Reconstruction, RowAttack
from auditor.adversary.handed_back import check_affine
from auditor.adversary.knowledge import Knowledge
from auditor.adversary.view import View
from auditor.audit.numeric.error_bars import with_total
from auditor.audit.numeric.known_rows import Originals, RowSelection, with_row_theory
from auditor.audit.numeric.linear_maps import Maps, closed_form, held_out_theory
from auditor.audit.numeric.neighbours import rows_of
from auditor.audit.numeric.reconstruct import CopyBlocks
from auditor.audit.numeric.views import Gathered, ReleasedCopies
from auditor.data.microdata import as_table, copy_values, in_order, like
from auditor.data.table import Table
from auditor.errors import AuditorError, DataError, NotApplicable
from auditor.numerics.blocks import chunks, row_blocks
from auditor.numerics.moments import Moments
from auditor.numerics.read_only import readable
from auditor.parameters import is_number
from auditor.process.containment import with_plugin_errors
from auditor.process.environment import one_thread
from auditor.runs import perturb_categories as categories
from auditor.runs.perturb import Release, make_plugin
from auditor.scenario.from_python import plain
from auditor.scenario.read_coalitions import parse_coalitions
from auditor.scenario.read_knowledge import KnowledgeError, parse_knowledge
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.schemes.base.scheme import Scheme, TableMoments, by_engine, table_moments
from auditor.schemes.draw import checked_seed
from auditor.types import Array, Coalition, Microdata


@dataclass(frozen=True)
class Estimate:
    """A reconstruction of the original, and how good it is.

    Attributes
    ----------
    values : array or DataFrame
        ``X̂``, like the original.
    theory : float or None
        Closed-form distortion (mean squared error over rows and attributes, squared data units),
        where there is one.
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
        """Return each record's chance of being rebuilt as a whole, as the adversary can compute it; None if the attack knows of none.

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
        ``X``, to measure against and to take exact moments from; the release's own when left out.
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
    return by_engine(ESTIMATED, release.scheme)(
        plugin, release, original, coalition, knowledge, seed
    )


def _from_categories(
    plugin: Attack,
    release: Release,
    original: Microdata | None,
    coalition: Any,
    knowledge: Any,
    seed: int,
) -> Any:
    knows, coalition = knowledge_of(knowledge), _coalition(coalition, len(release.copies))
    plugin.check(release.scheme.family, knows)
    X = release.original if original is None else original
    return categories.estimate(
        plugin,
        release.scheme,
        X,
        release.copies,
        release.levels,
        coalition,
        knows,
        checked_seed(seed),
    )


def _from_numbers(
    plugin: Attack,
    release: Release,
    original: Microdata | None,
    coalition: Any,
    knowledge: Any,
    seed: int,
) -> Estimate:
    X = release.original if original is None else in_order(original, release.original)
    own = X is release.original
    table = release._table if own else as_table(X)
    if not own and (table.rows, table.width) != (release._table.rows, release._table.width):
        raise DataError("the original must have as many rows and columns as what was released")
    knows, copies = knowledge_of(knowledge), _coalition(coalition, len(release.copies))
    plugin.check(release.scheme.family, knows)
    moments = release._moments if own else table_moments(table)
    arrays = [
        release.scheme.from_columns(
            copy_values(release.copies[copy - 1], table.rows), table.attributes
        )
        for copy in copies
    ]
    levels, law = (
        tuple(release.levels[copy - 1] for copy in copies),
        None if release.law is None else release.law.of(copies),
    )
    held = Held(
        scheme=release.scheme,
        table=table,
        moments=moments,
        copies=copies,
        levels=levels,
        arrays=arrays,
        law=law,
    )
    return measured(plugin, held, X, knows, seed)


ESTIMATED: dict[str, Callable[..., Any]] = {
    "numeric": _from_numbers,
    "categorical": _from_categories,
}
"""What rebuilds the original from copies in memory, by the engine that a scheme names."""


class Held(NamedTuple):
    """What a coalition holds of a release, and the table that its adversary is after: ``copies`` are numbers, ``arrays`` those copies."""

    scheme: Scheme
    table: Table
    moments: TableMoments
    copies: Coalition
    levels: tuple[float, ...]
    arrays: list[Array]
    law: NoiseLaw | None


def measured(plugin: Attack, held: Held, X: Microdata, knows: Knowledge, seed: int) -> Estimate:
    """Return what an attack makes of what is held, like ``X``, which is the table's values, and how far it is from them."""
    table = held.table
    with one_thread():
        values, theory, fitted, given = rebuilt(plugin, held, knows, checked_seed(seed))
        distortion = mean_squared_error(table.values, values, given)
    scale = float(np.trace(held.moments.covariance)) / table.width
    return Estimate(
        values=like(X, values),
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
    """Return the estimates, shape (n, N), theory's distortion, what a row-level attack was fitted to, and the rows given in clear.

    Raises
    ------
    NotApplicable
        The pairing makes no sense; the message is the reason.
    PluginError
        The attack returned what is no estimate.
    """
    scheme, table, moments, copies, levels, arrays, law = held
    blocks, joint = in_blocks(table, arrays), scheme.output_width(table.width) == table.width
    rows = RowSelection(table, [knows], seed, 1)
    released = ReleasedCopies(
        table=table,
        moments=moments,
        levels=levels,
        law=law,
        blocks=blocks,
        joint=joint,
        public=scheme.public,
        numbers=copies,
    )
    gathered = Gathered(released, rows, late=True)
    if isinstance(plugin, LinearAttack) and (scheme.has_matrices or not joint):
        # of copies that were transformed moments about the original's mean are rounding, far from
        # the origin
        plugin = plugin.over_rows()
    seen = CopyBlocks(rows.seen(knows, blocks), tuple(range(1, len(copies) + 1)))
    values, theory, fitted = _reconstruct(
        plugin, gathered.view(knows), table, moments, arrays, seen, rows.originals(knows)
    )
    return values, theory, fitted, rows.given(knows)


def mean_squared_error(X: Array, X_hat: Array, given: NDArray[np.intp]) -> float:
    """Return the mean squared error over rows and attributes, without the rows that were given, piece by piece."""
    if given.size:
        X, X_hat = np.delete(X, given, axis=0), np.delete(X_hat, given, axis=0)
    return sum(_squares(X[a:b], X_hat[a:b]) for a, b in chunks(*X.shape)) / X.size


def _squares(first: Array, second: Array) -> float:
    gaps = (first - second).reshape(-1)
    return float(gaps @ gaps)


def in_blocks(table: Table, arrays: Sequence[Array]) -> Callable[[], Any]:
    """Return what gives a table's rows and its copies' block by block, anew at every call."""
    bounds = row_blocks(table.rows, table.width)
    return lambda: (
        (k, table.read(a, b), readable([copy[a:b] for copy in arrays]))
        for k, (a, b) in enumerate(bounds)
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


def _reconstruct(
    plugin: Attack,
    view: View,
    table: Table,
    moments: TableMoments,
    held: list[Array],
    seen: CopyBlocks,
    true: tuple[Originals, Originals],
) -> tuple[Array, float | None, Reconstruction | None]:
    given = true[1].without
    if isinstance(plugin, LinearAttack):
        affine = plugin.affine(view)
        check_affine(affine, view)
        values = affine.apply(held, view.centre, np.empty_like(table.values))
        if affine.known is not None:
            values += (table.values - view.centre) @ affine.known.T
        return values, _theory(affine, view, moments, table, given), None
    if not isinstance(plugin, RowAttack):
        raise NotApplicable(f"{plugin.name} is neither a linear nor a row-level attack")
    fitted = plugin.fit(view, seen)
    values = rows_of(fitted, in_blocks(table, held)())
    expected = fitted.expected(
        np.delete(table.values, given, axis=0) if given.size else table.values
    )
    squares = np.array([np.nan if expected is None else float(expected.sum())])
    theory = (
        float(with_row_theory(squares, [fitted], *true)[0])
        / (table.rows - given.size)
        / table.width
    )
    return values, None if np.isnan(theory) else theory, fitted


def _theory(
    affine: Affine, view: View, moments: TableMoments, table: Table, given: NDArray[np.intp]
) -> float | None:
    if view.law is None or not (affine.fixed or (affine.apart and given.size)):
        return None
    maps = Maps(
        affine.weights[None],
        affine.offset[None],
        affine.fixed,
        None if affine.known is None else affine.known[None],
    )
    if affine.fixed:
        return float(
            with_total(closed_form(maps, moments.covariance, view.law, moments.rows).expected)[
                0, -1
            ]
        )
    judged = Moments.of(np.delete(table.values, given, axis=0) - view.centre)
    return float(held_out_theory(maps, judged, view.law)[0, -1])
