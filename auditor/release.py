"""Releases and attacks from Python: copies of a table in memory, extended on demand, attacked at will."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from auditor import registry
from auditor.attack import Affine, Attack, LinearAttack, Reconstruction, RowAttack, View
from auditor.audit import check_affine, table_moments
from auditor.blocks import chunks, row_blocks
from auditor.categorical import release as categories
from auditor.categorical.scheme import UniformScheme
from auditor.cipher import ReleaseKey
from auditor.data.categorical import BLOCK_WIDTH, CategoricalTable, Codes
from auditor.data.naming import listed
from auditor.data.table import Table
from auditor.errors import AuditorError, DataError, NotApplicable, Problem, ScenarioError
from auditor.gathered import Gathered
from auditor.given_map import expected_errors
from auditor.grid import DOUBLE_BITS, grid_of
from auditor.hindsight import Originals, with_hindsight
from auditor.knowledge import Knowledge
from auditor.linear import closed_form, with_total
from auditor.maps import Maps
from auditor.moments import Moments
from auditor.noise import GaussianNoise, NoiseLaw
from auditor.registry import PluginParameters
from auditor.rows import CopyBlocks
from auditor.scenario.coalitions import Coalition, parse_coalitions
from auditor.scenario.knowledge import KnowledgeError, parse_knowledge
from auditor.scenario.levels import parse_levels
from auditor.scenario.plain import plain
from auditor.scenario.problems import Problems
from auditor.scheme import Key, RowsOf, Scheme, TableMoments
from auditor.sealed import readable
from auditor.streams import Seed
from auditor.transforms import TransformScheme

if TYPE_CHECKING:
    pass

Array = NDArray[np.float64]
Microdata = Any
"""An ndarray of shape (n, N) or (n,), a DataFrame or a Series, of numbers."""


@dataclass(frozen=True)
class Release:
    """Copies of one table, in order of release.

    Attributes
    ----------
    original : array or DataFrame
        ``X``, as it was given.
    copies : tuple
        ``Y_1 … Y_M``, each like the original.
    levels : tuple of float
        Their levels.
    scheme : Scheme
        What made them, with its parameters.
    """

    original: Microdata = field(repr=False)
    copies: tuple[Microdata, ...] = field(repr=False)
    levels: tuple[float, ...]
    scheme: Scheme
    state: Any = field(default=None, repr=False, compare=False)
    """What an extension goes on from, kept in memory only: of categories what makes the copies, of secret matrices where they come from."""

    def extend(self, levels: Any, seed: int | None = None) -> Release:
        """Return a release with new copies appended; those that are out already are shared, untouched.

        Parameters
        ----------
        levels : list or range
            Levels of the new copies, as for ``perturb``, in any order.
        seed : int, optional
            For studies, as for ``perturb``; it need not be that of the first copies. Left out, the new copies' noise is drawn from a
            fresh secret key: what ties them to the old ones is their neighbours by level, and not the key these were drawn from.

        Notes
        -----
        This is how copies are added to a release. Another call of ``perturb`` draws anew, and copies of two calls average out.
        """
        every = (*self.levels, *checked_levels(levels, seed, self.scheme))
        if isinstance(self.scheme, UniformScheme):
            return _released_categories(self.scheme, self.original, self.copies, every, seed, self.state)
        return _released(self.scheme, self.original, self.copies, every, seed, self.state)

    def _repr_html_(self) -> str:
        return str(registry.get("renderer", "notebook")().release(self))

    @cached_property
    def law(self) -> NoiseLaw | None:
        """The exact law of the noise in all copies."""
        return self.scheme.law(self.levels, self._moments)

    def noise_covariance(self) -> Array:
        """Return ``K_Z``, shape (MN, MN), copies stacked in order of release.

        Raises
        ------
        AuditorError
            The scheme states no law.
        """
        if self.law is None:
            raise AuditorError(f"scheme {self.scheme.name!r} states no law of its noise")
        return self.law.covariance

    @cached_property
    def _table(self) -> Table:
        return as_table(self.original)

    @cached_property
    def _moments(self) -> TableMoments:
        return table_moments(self._table)


def perturb(X: Microdata, scheme: str, levels: Any, seed: int | None = None, **parameters: Any) -> Release:
    """Make perturbed copies of a table.

    Parameters
    ----------
    X : ndarray of shape (n, N) or (n,), DataFrame or Series
        Finite numbers, n ≥ 2, no constant column; for a uniform scheme categories, with domains as dtype ``category`` declares them or
        else as observed. Of a DataFrame its ``category`` columns are perturbed together, if it has any, and the others pass through.
    scheme : str
        A registered scheme; ``auditor list schemes`` names them.
    levels : list of float, or mapping
        Noise multiples σ² ≥ 0 (uniform schemes: retention probabilities) in order of release, or a range
        as a scenario has it: ``{"uniform": [0.25, 1.0], "count": 5}``.
    seed : int, optional
        **For studies only**: same table and same seed, same copies; so whoever knows or guesses both takes the noise off again, and
        whoever holds the table but for one cell can try that cell's values. Left out, noise comes from a cipher under a key of the
        operating system's entropy that is forgotten afterwards, and nobody can make the copies again.
    **parameters
        The scheme's own, as in YAML with underscores: ``algorithm="on-demand"``, ``noise={"variance": 25.0}``.

    Returns
    -------
    Release

    Raises
    ------
    AuditorError
        A level, a parameter or the table cannot be used.

    Notes
    -----
    Numbers with added noise are whole multiples of a public power of two (``auditor.grid``), far below the noise. For more copies of the
    same table later extend the release: two releases that know nothing of one another are fresh looks at ``X``, and average out.

    Examples
    --------
    >>> import numpy as np
    >>> release = perturb(np.array([9.0, 11.0, 10.5]), scheme="corner-wave", levels=[0.25, 0.5], seed=7)
    >>> release.extend([0.4], seed=8).levels
    (0.25, 0.5, 0.4)
    """
    chosen: Scheme = make_plugin("scheme", scheme, parameters)
    if isinstance(chosen, UniformScheme):
        return _released_categories(chosen, X, (), checked_levels(levels, seed, chosen), seed)
    return _released(chosen, X, (), checked_levels(levels, seed, chosen), seed)


def checked_levels(levels: Any, seed: int | None, scheme: Scheme) -> tuple[float, ...]:
    """Return levels as numbers, drawn if a range was given.

    Raises
    ------
    AuditorError
        They are no levels, or none of this scheme.
    """
    if isinstance(levels, range) or (hasattr(levels, "tolist") and not np.isscalar(levels)):
        levels = list(levels)
    try:
        resolved = parse_levels(levels).resolve(_checked_seed(seed))
    except ValueError as error:
        raise AuditorError(f"levels {error}") from None
    scheme.check_levels(resolved)
    return resolved


def _checked_seed(seed: int | None) -> int:
    if seed is None:
        return secrets.randbits(128)
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise AuditorError(f"seed must be an integer of at least 0; got {seed!r}")
    return int(seed)


def secret_of(seed: int | None, fingerprint: str) -> Seed:
    """Return what the noise of one release is drawn from: without a seed a secret key, else a number made of seed and table.

    With the seed alone the copies of two tables would have the same noise, and their difference would show every cell that differs.
    """
    if seed is None:
        return ReleaseKey()
    return int.from_bytes(hashlib.sha256(f"{_checked_seed(seed)} {fingerprint}".encode()).digest())


def make_plugin(kind: str, name: str, parameters: Mapping[str, Any]) -> Any:
    """Return a plugin with checked parameters; names may have hyphens or underscores.

    Raises
    ------
    ScenarioError
        With every parameter that is wrong.
    """
    cls = registry.get(kind, name)
    problems = Problems()
    model = problems.model((), {key.replace("_", "-"): _spelt(value) for key, value in parameters.items()}, cls.Parameters)
    if model is None:
        raise ScenarioError(Problem(".".join(map(str, path)), f"{message} ({kind} {name!r})") for path, message, _ in problems.found)
    assert isinstance(model, PluginParameters)
    return cls(model)


def _spelt(value: Any) -> Any:
    """Return a parameter as a scenario would spell it, an array as lists; what no scenario can hold is the plugin's to refuse."""
    try:
        return plain(value)
    except ScenarioError:
        return value


def _released(
    scheme: Scheme, X: Microdata, before: tuple[Microdata, ...], levels: tuple[float, ...], seed: int | None, matrices: Seed | None = None
) -> Release:
    table = as_table(X)
    turned = isinstance(scheme, TransformScheme)
    if before and matrices is None and seed is None and turned and scheme.needs_levels:
        raise AuditorError(f"{scheme.name}: the matrices of copies made elsewhere are not known; extend the release that made them")
    key = key_of(scheme, table, levels, seed)
    if turned:
        key = replace(key, matrices=key.seed if matrices is None else matrices)
    shape = (table.rows, scheme.output_width(table.width))
    new = [np.empty(shape) for _ in range(len(levels) - len(before))]
    with threadpool_limits(limits=1):
        for _ in drawn_blocks(scheme, table, levels, key, _Held(before, new, shape), len(before)):
            pass
    return Release(X, (*before, *(like(X, copy) for copy in new)), levels, scheme, key.matrices)


def drawn_blocks(
    scheme: Scheme, table: Table, levels: tuple[float, ...], key: Key, copies: Sequence[Array] | None = None, existing: int = 0
) -> Iterator[tuple[int, int, Sequence[Array]]]:
    """Make the copies of a table block by block; yield first and last row (exclusive) and the block's rows of every copy.

    Parameters
    ----------
    scheme : Scheme
    table : Table
    levels : tuple of M floats
    key : Key
        As ``key_of`` makes it.
    copies : sequence of M ndarrays of shape (n, columns), optional
        Where to write them; the first ``existing`` are only read. Without it each block is written over the one before.
    """
    if scheme.makes_copies and hasattr(scheme, "table"):
        scheme.table = table
    sampler = scheme.sampler(levels, table_moments(table), key, existing)
    bounds = row_blocks(table.rows, table.width)
    memory = None if copies is not None else [np.empty((bounds[0][1], scheme.output_width(table.width))) for _ in levels]
    for index, (a, b) in enumerate(bounds):
        out = RowsOf(copies, a, b) if copies is not None else [block[: b - a] for block in memory or ()]
        sampler.block(index, table.read(a, b), out, existing)
        yield a, b, out


def key_of(scheme: Scheme, table: Table, levels: tuple[float, ...], seed: int | None, bits: int = DOUBLE_BITS) -> Key:
    """Return what the copies of a table of numbers are drawn from, and the grid they lie on; see ``released_grid`` for its errors."""
    return Key(secret_of(seed, table.scan.digest), scheme.name, grid=released_grid(scheme, table, levels, bits))


def released_grid(scheme: Scheme, table: Table, levels: tuple[float, ...], bits: int = DOUBLE_BITS) -> tuple[float, ...]:
    """Return what released values are multiples of, by attribute, 0 for one without noise; nothing for a scheme that adds none.

    Raises
    ------
    AuditorError
        A column's noise is so small beside its values that numbers of so many bits cannot hold both.
    """
    noise = noise_deviations(scheme, table, levels) if scheme.on_grid else None
    if noise is None:
        return ()
    grid = grid_of(noise, np.maximum(np.abs(table.scan.low), np.abs(table.scan.high)), bits)
    if np.isnan(grid).any():
        column = table.attributes[int(np.isnan(grid).argmax())]
        raise AuditorError(
            f"column {column!r}: its noise is lost in the last digits of {64 if bits == DOUBLE_BITS else 32}-bit numbers "
            f"of its values' size; {'subtract an offset, or raise the levels' if bits == DOUBLE_BITS else 'write it in double precision'}"
        )
    return tuple(grid.tolist())


def noise_deviations(scheme: Scheme, table: Table, levels: tuple[float, ...]) -> Array | None:
    """Return each copy's noise in each attribute, a standard deviation, shape (M, N); None where the scheme states no law."""
    law = scheme.law(levels, table_moments(table)) if scheme.makes_copies else None
    if law is None:
        return None
    variances = np.outer(np.diag(law.level_covariance), np.diag(law.shape)) if isinstance(law, GaussianNoise) else np.diag(law.covariance)
    return np.sqrt(np.clip(variances.reshape(law.copies, law.width), 0.0, None))


def drawn_codes(
    scheme: UniformScheme, table: CategoricalTable, levels: tuple[float, ...], seed: int | None
) -> Iterator[list[Codes]]:
    """Make the copies of categories block by block; yield the block's codes of every copy."""
    key = Key(secret_of(seed, "" if seed is None else codes_digest(table)), scheme.name)
    for block, (a, b) in enumerate(row_blocks(table.rows, BLOCK_WIDTH)):
        made = scheme.copies(table.read(a, b), table.size, replace(key, block=block))
        yield [made.ask(level) for level in levels]


def _released_categories(
    scheme: UniformScheme, X: Microdata, before: tuple[Microdata, ...], levels: tuple[float, ...], seed: int | None,
    state: categories.State | None = None,
) -> Release:  # fmt: skip
    table = categories.as_categories(X) if state is None else state.table
    key = Key(secret_of(seed, "" if seed is None else codes_digest(table)), scheme.name)
    if state is None:
        state = categories.resume(scheme, table, X, before, levels[: len(before)], key) if before else categories.start(scheme, table, key)
    state = state.fork()  # the release that is extended stays as it is
    new = state.extend(X, levels[len(before) :], key)
    return Release(X, (*before, *new), levels, scheme, state)


def codes_digest(table: CategoricalTable) -> str:
    """Return a SHA-256 over the records' codes; unlike the fingerprint the same in memory and in a file, whatever the labels are."""
    digest = hashlib.sha256()
    for a, b in row_blocks(table.rows, BLOCK_WIDTH):
        digest.update(np.ascontiguousarray(table.read(a, b)).data)
    return digest.hexdigest()


class _Held(Sequence[Array]):
    """Copies released before and new ones as arrays of one shape; an old one is turned into an array only when it is read."""

    def __init__(self, before: Sequence[Microdata], new: Sequence[Array], shape: tuple[int, ...]) -> None:
        self._before = before
        self._new = new
        self._shape = shape
        self._arrays: dict[int, Array] = {}

    def __len__(self) -> int:
        return len(self._before) + len(self._new)

    def __getitem__(self, place: Any) -> Any:
        if place >= len(self._before):
            return self._new[place - len(self._before)]
        if place not in self._arrays:
            self._arrays[place] = np.ascontiguousarray(self._before[place], dtype=np.float64).reshape(self._shape)
        return self._arrays[place]


def as_table(X: Microdata) -> Table:
    """Return microdata as a table.

    Raises
    ------
    DataError
        It is not a table of finite numbers with two rows and no constant column.
    """
    from auditor.data.checks import check_finite, check_names, check_varied

    values, names = _numbers(X)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or values.shape[1] == 0:
        raise DataError(f"a table must have rows and columns; got an array of shape {np.shape(X)}")
    if len(values) < 2:
        raise DataError(f"a table needs at least 2 rows; got {len(values)}")
    names = names or tuple(f"x{column}" for column in range(1, values.shape[1] + 1))
    check_names(names)
    if np.isnan(values).any():
        raise DataError(f"missing values in column {names[int(np.isnan(values).any(axis=0).argmax())]!r}")
    check_finite(names, values)
    table = Table(names, np.ascontiguousarray(values), source="array")
    check_varied(names, table.scan.low, table.scan.high, np.diag(table.scan.covariance))
    return table


def _copy_values(copy: Microdata, rows: int) -> Array:
    """Return a copy as an array of shape (n, columns); unlike an original's, its columns may be constant."""
    from auditor.data.checks import check_finite

    values, names = _numbers(copy)
    values = np.ascontiguousarray(values.reshape(rows, -1) if len(values) == rows else values)
    check_finite(names or tuple(f"y{column}" for column in range(1, values.shape[-1] + 1)), values)
    return values


def _numbers(X: Microdata) -> tuple[Array, tuple[str, ...]]:
    import pandas as pd

    names: tuple[str, ...] = ()
    if np.ma.is_masked(X):
        raise DataError("the table has masked values: leave those records out, or fill them in")
    if isinstance(X, pd.DataFrame):
        text = [str(name) for name, kind in X.dtypes.items() if not _real(kind)]
        if text:
            raise DataError(f"columns must hold numbers; {', '.join(map(repr, text))} do not: select the others")
        names = tuple(map(str, X.columns))
        if len(set(names)) != len(names):
            raise DataError("two columns have the same name")
    elif isinstance(X, pd.Series):
        names = (str(X.name),) if X.name is not None else ()
    try:
        if not isinstance(X, pd.DataFrame) and not _all_numbers(np.asarray(X)):
            raise TypeError
        return np.asarray(X, dtype=np.float64), names
    except (TypeError, ValueError):
        raise DataError("the table must hold numbers only") from None


def _real(kind: Any) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_complex_dtype(kind))


def _all_numbers(values: NDArray[Any]) -> bool:
    """Whether these are numbers as they stand: numpy would read text as such, and dates as days, without a word."""
    if values.dtype.kind != "O":
        return values.dtype.kind in "biuf"
    return not any(isinstance(cell, (str, bytes)) for cell in values.flat)


def like(X: Microdata, values: Array) -> Microdata:
    """Return values of shape (n, N) in the form of ``X``: its index and columns, or its number of dimensions.

    Of values with other columns than the original's only the index is kept; a DataFrame's columns are then ``y1, y2, …``.
    """
    import pandas as pd

    if isinstance(X, (pd.DataFrame, pd.Series)) and values.size != X.size:
        return pd.DataFrame(values, index=X.index, columns=[f"y{column}" for column in range(1, values.shape[1] + 1)])
    if values.size != np.size(X):
        return values

    if isinstance(X, pd.DataFrame):
        return pd.DataFrame(values, index=X.index, columns=X.columns)
    if isinstance(X, pd.Series):
        return pd.Series(values[:, 0], index=X.index, name=X.name)
    return values.reshape(np.shape(X))


@dataclass(frozen=True)
class Estimate:
    """A reconstruction of the original, and how good it is.

    Attributes
    ----------
    values : array or DataFrame
        ``X̂``, like the original.
    theory : float or None
        Closed-form distortion (mean squared error over rows and attributes, squared data units), where there is one.
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
            In order of rows; its ``argmax`` is the record that is most exposed. Records given in clear are certain.

        Raises
        ------
        AuditorError
            The tolerance is not a number above 0.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(50, 3))
        >>> estimate = attack("known-io-rotation", perturb(X, "rotation", [0], seed=1), knowledge={"known-records": 1})
        >>> estimate.chances(0.5).shape
        (50,)
        """
        if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)) or not 0 < tolerance < np.inf:
            raise AuditorError(f"the tolerance must be a number above 0; got {tolerance!r}")
        return None if self._fitted is None else self._fitted.chances(self._copies, float(tolerance))


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
        As in a scenario: ``"perfect"``, ``{"estimated": {"rows": 400}}``, ``{"known-records": 100}``, ``{"known-attributes": ["age"]}``.
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
    if isinstance(release.scheme, UniformScheme):
        knows, coalition = _knowledge(knowledge), _coalition(coalition, len(release.copies))
        plugin.check(release.scheme.family, knows)
        X = release.original if original is None else original
        return categories.estimate(plugin, release.scheme, X, release.copies, release.levels, coalition, knows, _checked_seed(seed))
    X = release.original if original is None else _in_order(original, release.original)
    own = X is release.original
    table = release._table if own else as_table(X)
    if not own and (table.rows, table.width) != (release._table.rows, release._table.width):
        raise DataError("the original must have as many rows and columns as what was released")
    knows, copies = _knowledge(knowledge), _coalition(coalition, len(release.copies))
    plugin.check(release.scheme.family, knows)
    moments = release._moments if own else table_moments(table)
    arrays = [_copy_values(release.copies[copy - 1], table.rows) for copy in copies]
    levels, law = tuple(release.levels[copy - 1] for copy in copies), None if release.law is None else release.law.of(copies)
    with threadpool_limits(limits=1):
        gathered = Gathered(table, moments, levels, law, in_blocks(table, arrays), [knows], _checked_seed(seed), 1,
                            release.scheme.output_width(table.width), release.scheme.public, copies=copies, late=True)  # fmt: skip
        if isinstance(plugin, LinearAttack) and not (gathered.joint and release.scheme.family == "additive"):
            plugin = plugin.over_rows()  # of copies that were turned moments about the original's mean are rounding, far from the origin
        seen = CopyBlocks(gathered.seen_rows(knows), tuple(range(1, len(copies) + 1)))
        true = gathered.true_rows(knows)
        values, theory, fitted = _reconstruct(plugin, gathered.view(knows), table, moments, arrays, seen, true)
        distortion = mean_squared_error(table.values, values, gathered.given_rows(knows))
    scale = float(np.trace(moments.covariance)) / table.width
    return Estimate(like(X, values), theory, distortion, distortion / scale, copies, fitted, arrays)


def _in_order(original: Microdata, released: Microdata) -> Microdata:
    """Return another original with its columns in the order of what was released, where both have names.

    Raises
    ------
    DataError
        Its columns have other names, or its records the same labels in another order: errors would be of strangers.
    """
    import pandas as pd

    if not (isinstance(original, pd.DataFrame) and isinstance(released, pd.DataFrame)) or original.shape != released.shape:
        return original
    if set(original.columns) != set(released.columns):
        raise DataError(f"the original must have the columns that were released: {listed(list(map(str, released.columns)))}")
    mine, theirs = original.index, released.index
    if mine.is_unique and theirs.is_unique and not mine.equals(theirs) and mine.isin(theirs).all():
        raise DataError("the original's records are in another order than those released, by their index; sort them alike")
    return original[list(released.columns)]


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
    return lambda: ((k, table.read(a, b), readable([copy[a:b] for copy in arrays])) for k, (a, b) in enumerate(bounds))


def _knowledge(value: Any) -> Knowledge:
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
    plugin: Attack, view: View, table: Table, moments: TableMoments, held: list[Array], seen: CopyBlocks,
    true: tuple[Originals, Originals],
) -> tuple[Array, float | None, Reconstruction | None]:  # fmt: skip
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
    values = np.concatenate([fitted.rows(copies) for _, _, copies in in_blocks(table, held)()])
    expected = fitted.expected(np.delete(table.values, given, axis=0) if given.size else table.values)
    squares = np.array([np.nan if expected is None else float(expected.sum())])
    theory = float(with_hindsight(squares, [fitted], *true)[0]) / (table.rows - given.size) / table.width
    return values, None if np.isnan(theory) else theory, fitted


def _theory(affine: Affine, view: View, moments: TableMoments, table: Table, given: NDArray[np.intp]) -> float | None:
    if view.law is None or not (affine.fixed or (affine.apart and given.size)):
        return None
    maps = Maps(affine.weights[None], affine.offset[None], affine.fixed, None if affine.known is None else affine.known[None])
    if affine.fixed:
        return float(with_total(closed_form(maps, moments.covariance, view.law, moments.rows).expected)[0, -1])
    judged = Moments.of(np.delete(table.values, given, axis=0) - view.centre)
    return float(expected_errors(maps, judged, view.law)[0, -1])
