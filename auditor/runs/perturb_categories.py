"""Releases and attacks on categories from Python: Series, DataFrames and arrays go in and come out alike."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.categorical_attack import CategoricalAttack, CategoricalView
from auditor.adversary.given import NOTHING, Given, KnownPairs, Prior, SampleCounts
from auditor.adversary.knowledge import Estimated, Knowledge, KnownRecords, Perfect, PublishedRules
from auditor.adversary.published_rules import cells_of, published_prior
from auditor.audit.categorical.known_attributes import KnownPart
from auditor.data.columns.categorical_table import CategoricalTable, of_column, product
from auditor.data.microdata_categories import as_categories, like, sensitive_columns
from auditor.errors import AuditorError, AuditorWarning, NotApplicable
from auditor.numerics.random_streams import stream
from auditor.process.deferred import pd
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import (
    BlockedCopies,
    BridgedCopies,
    Copies,
    UniformScheme,
    code_blocks,
    fork,
)
from auditor.schemes.replacement.distribution import never_drawn
from auditor.schemes.replacement.draws import code_type
from auditor.types import Array, Coalition, Codes, Microdata


@dataclass
class State:
    """What a release of categories keeps: its table, and what makes its copies."""

    table: CategoricalTable
    copies: Copies

    def fork(self) -> State:
        """Return the same release, to be extended on its own."""
        return State(self.table, fork(self.copies))

    def extend(self, X: Microdata, levels: Sequence[float], key: Key) -> list[Microdata]:
        """Return new copies in the form of ``X``."""
        return [like(X, self.table, self.copies.ask(level, key)) for level in levels]


def start(
    scheme: UniformScheme, table: CategoricalTable, levels: Sequence[float], key: Key
) -> State:
    """Return a release of which nothing is out yet and whose first copies are at these levels; warn of values that are never drawn."""
    scheme = scheme.over(table).started(levels)
    if note := never_drawn(scheme.replaced_by(table.size)):
        warnings.warn(AuditorWarning(f"{scheme.name}: {note}"), stacklevel=2)
    return State(table, scheme.blocked(table.codes, table.size, key))


def resume(
    scheme: UniformScheme,
    table: CategoricalTable,
    X: Microdata,
    before: Sequence[Microdata],
    levels: Sequence[float],
    key: Key,
) -> State:
    """Return a release whose copies were made elsewhere: multilevel ones go on by the bridge, which needs nothing but them."""
    scheme = scheme.over(table)
    if not scheme.multilevel:
        state = State(table, scheme.blocked(table.codes, table.size, key))
        for level in levels:
            state.copies.skip(level)
        return state
    pi = scheme.replaced_by(table.size)
    out = [code_blocks(_codes_of(table, X, copy)) for copy in before]
    parts = [
        BridgedCopies(
            part, table.size, replace(key, block=k), pi, levels, [copy[k] for copy in out]
        )
        for k, part in enumerate(code_blocks(table.codes))
    ]
    return State(table, BlockedCopies(parts, key))


def of_domain(table: CategoricalTable, X: Microdata) -> CategoricalTable:
    """Return further records of a table's attributes.

    Raises
    ------
    DataError
        A value is missing, or not in its domain.
    """
    return CategoricalTable(table.attributes, _codes_of(table, X, X))


def _codes_of(table: CategoricalTable, X: Microdata, copy: Microdata) -> Codes:
    columns = [copy[name] for name in sensitive_columns(X)] if isinstance(X, pd.DataFrame) else None
    if columns is None:
        values = np.asarray(copy)
        columns = [pd.Series(part) for part in (values[:, None] if values.ndim == 1 else values).T]
    parts = [
        of_column(column, a.name, a.labels)[1]
        for a, column in zip(table.attributes, columns, strict=True)
    ]
    return product(table.attributes, parts).codes.astype(code_type(table.size))


@dataclass(frozen=True)
class CategoricalEstimate:
    """What an attack makes of a coalition's categorical copies.

    Attributes
    ----------
    values : like the original
        The most probable value of every record.
    posterior : ndarray of shape (n, s)
        The posterior over the domain; of several attributes the last one's value changes fastest.
    domain : tuple
        Labels by attribute.
    accuracy : float
        Share of the records whose most probable value is the true one.
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


def estimate(
    attack: Any,
    scheme: Any,
    X: Microdata,
    copies: Sequence[Microdata],
    levels: Sequence[float],
    coalition: Coalition,
    knowledge: Knowledge,
    seed: int,
) -> CategoricalEstimate:
    """Run a categorical attack on one coalition; see ``auditor.attack``."""
    if not isinstance(attack, CategoricalAttack):
        raise NotApplicable(f"{attack.name} does not attack categories")
    table = as_categories(X)
    held = [_codes_of(table, X, copies[copy - 1]) for copy in coalition]
    law = scheme.over(table).channel([levels[copy - 1] for copy in coalition], table.size)
    inference = attack.infer(_view(table, law, held, coalition, knowledge, seed))
    P = inference.checked(held)
    if knowledge.in_clear:
        P = given_columns(P, cells_of(knowledge.in_clear, table.attributes), table.codes)
    best = P.argmax(axis=1).astype(table.codes.dtype)
    truth = P[np.arange(table.rows), table.codes]
    return CategoricalEstimate(
        values=like(X, table, best),
        posterior=P,
        domain=tuple(a.labels for a in table.attributes),
        accuracy=float(np.mean(best == table.codes)),
        reconstruction_probability=float(truth.mean()),
        coalition=coalition,
    )


def given_columns(P: Array, known: NDArray[np.intp], codes: Codes) -> Array:
    """Return posteriors, shape (n, s), of who is told which combination of known attributes' values each record has."""
    return np.where(known == known[codes][:, None], KnownPart(known).posterior(P), 0.0)


def _view(
    table: CategoricalTable,
    law: Any,
    held: list[Codes],
    coalition: Coalition,
    knowledge: Knowledge,
    seed: int,
) -> CategoricalView:
    def rows(what: str, count: int) -> NDArray[np.intp]:
        if count > table.rows:
            raise AuditorError(
                f"knowledge {knowledge.label} needs that many rows; the table has {table.rows}"
            )
        return np.sort(stream(seed, what, 1).permutation(table.rows)[:count])

    given: Given = Prior(table.prior) if isinstance(knowledge, Perfect) else NOTHING
    if isinstance(knowledge, PublishedRules):
        given = Prior(published_prior(knowledge, table.attributes, table.prior))
    if isinstance(knowledge, Estimated):
        chosen = rows("estimated", knowledge.rows)
        given = SampleCounts(
            tuple(
                np.bincount(copy[chosen], minlength=table.size).astype(np.float64) for copy in held
            )
        )
    if isinstance(knowledge, KnownRecords):
        chosen = rows("known-records", knowledge.count)
        given = KnownPairs(table.codes[chosen], tuple(copy[chosen] for copy in held))
    return CategoricalView(coalition, law, knowledge, table.labels, given)
