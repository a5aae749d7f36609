"""Releases and attacks from Python: copies of a table in memory, extended on demand, attacked at will."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from auditor import registry
from auditor.data.microdata import as_table, like
from auditor.data.microdata_categories import as_categories
from auditor.data.table import Table
from auditor.errors import AuditorError, Problem, ScenarioError
from auditor.numerics.random_streams import Seed
from auditor.process.containment import plugin_errors
from auditor.process.environment import one_thread
from auditor.registry import PluginParameters
from auditor.runs import perturb_categories as categories
from auditor.scenario.from_python import plain
from auditor.scenario.levels import parse_levels
from auditor.scenario.problems import Problems
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.schemes.base.scheme import Key, Scheme, TableMoments, by_engine, table_moments
from auditor.schemes.draw import HeldCopies, checked_seed, codes_digest, drawn_blocks, key_of, secret_of
from auditor.schemes.replacement.base import UniformScheme
from auditor.types import Array, Microdata


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

    @plugin_errors()
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
        return by_engine(RELEASED, self.scheme)(self.scheme, self.original, self.copies, every, seed, self.state)

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


@plugin_errors()
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
    Numbers with added noise are whole multiples of a public power of two (``auditor.schemes.base.grid``), far below the noise. For more
    copies of the
    same table later extend the release: two releases that know nothing of one another are fresh looks at ``X``, and average out.

    Examples
    --------
    >>> import numpy as np
    >>> release = perturb(np.array([9.0, 11.0, 10.5]), scheme="corner-wave", levels=[0.25, 0.5], seed=7)
    >>> release.extend([0.4], seed=8).levels
    (0.25, 0.5, 0.4)
    """
    chosen: Scheme = make_plugin("scheme", scheme, parameters)
    return by_engine(RELEASED, chosen)(chosen, X, (), checked_levels(levels, seed, chosen), seed)


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
        resolved = parse_levels(levels).resolve(checked_seed(seed))
    except ValueError as error:
        raise AuditorError(f"levels {error}") from None
    scheme.check_levels(resolved)
    return resolved


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


def _released_numbers(
    scheme: Scheme, X: Microdata, before: tuple[Microdata, ...], levels: tuple[float, ...], seed: int | None, matrices: Seed | None = None
) -> Release:
    table = as_table(X)
    if before and matrices is None and seed is None and scheme.has_matrices and scheme.needs_levels:
        raise AuditorError(f"{scheme.name}: the matrices of copies made elsewhere are not known; extend the release that made them")
    key = key_of(scheme, table, levels, seed)
    if scheme.has_matrices:
        key = replace(key, matrices=key.seed if matrices is None else matrices)
    shape = (table.rows, scheme.output_width(table.width))
    new = [np.empty(shape) for _ in range(len(levels) - len(before))]
    with one_thread():
        for _ in drawn_blocks(scheme, table, levels, key, HeldCopies(before, new, shape), len(before)):
            pass
    return Release(X, (*before, *(like(X, copy) for copy in new)), levels, scheme, key.matrices)


def _released_categories(
    scheme: UniformScheme, X: Microdata, before: tuple[Microdata, ...], levels: tuple[float, ...], seed: int | None,
    state: categories.State | None = None,
) -> Release:  # fmt: skip
    table = as_categories(X) if state is None else state.table
    key = Key(secret_of(seed, "" if seed is None else codes_digest(table)), scheme.name)
    if state is None:
        state = categories.resume(scheme, table, X, before, levels[: len(before)], key) if before else categories.start(scheme, table, key)
    state = state.fork()  # the release that is extended stays as it is
    new = state.extend(X, levels[len(before) :], key)
    return Release(X, (*before, *new), levels, scheme, state)


RELEASED: dict[str, Callable[..., Release]] = {"numeric": _released_numbers, "categorical": _released_categories}
"""What makes copies of microdata in memory, by the engine that a scheme names."""
