"""The parameter ``replacement`` and the distribution ``π`` it denotes.

| value | ``π`` |
| --- | --- |
| ``uniform`` | ``1/s`` each |
| ``prior`` | the table's own share of every category; of several columns the product of each column's own |
| ``[0.5, 0.3, 0.2]`` | of one column's categories, in their order |
| ``{column: [...], ...}`` | of several columns, each replaced independently of the others: the product |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from auditor.data.columns.categorical_table import Attribute, CategoricalTable
from auditor.errors import AuditorError, did_you_mean
from auditor.text import counted, quoted
from auditor.types import Array

Shares = Annotated[list[float], Field(min_length=1)]
Replacement = Literal["uniform", "prior"] | Shares | dict[str, Shares]

ROUNDING = 1e-9
"""Tolerance of the sum of probabilities."""


def checked(stated: Replacement) -> Replacement:
    """Return the parameter, if it denotes a distribution.

    Raises
    ------
    ValueError
        A probability is negative, or the sum is not 1.
    """
    for name, shares in _columns(stated).items():
        of = f"column {quoted(name)}: " if name else ""
        if min(shares) < 0:
            raise ValueError(f"{of}must be chances of at least 0; got {min(shares):g}")
        if abs(sum(shares) - 1.0) > ROUNDING:
            raise ValueError(f"{of}must be chances that sum to 1; got a sum of {sum(shares):.10g}")
    return stated


def parsed(stated: Any) -> Replacement:
    """Return the parameter from an unchecked value.

    Raises
    ------
    ValueError
        It has none of the forms, or is no distribution.
    """
    try:
        form: Replacement = TypeAdapter(Replacement).validate_python(stated, strict=True)
    except ValidationError:
        raise ValueError(
            "replacement must be uniform, prior, a list of chances, or {column: [...]}"
        ) from None
    return checked(form)


def _columns(stated: Replacement) -> Mapping[str, Sequence[float]]:
    return stated if isinstance(stated, dict) else {"": stated} if isinstance(stated, list) else {}


def distribution(stated: Replacement, table: CategoricalTable) -> Array | None:
    """Return ``π`` over a table's domain, shape (s,); None if uniform.

    Raises
    ------
    AuditorError
        The number of probabilities differs from a column's categories.
    """
    if stated == "uniform":
        return None
    parts = (
        _marginals(table)
        if stated == "prior"
        else [np.asarray(shares) / sum(shares) for shares in _by_attribute(stated, table)]
    )
    return reduce(lambda pi, part: np.outer(pi, part).ravel(), parts)


def _marginals(table: CategoricalTable) -> list[Array]:
    whole = table.prior.reshape([attribute.size for attribute in table.attributes])
    axes = range(whole.ndim)
    return [
        np.asarray(whole.sum(axis=tuple(other for other in axes if other != axis))) for axis in axes
    ]


def _by_attribute(stated: Replacement, table: CategoricalTable) -> list[Sequence[float]]:
    held, names = _columns(stated), table.names
    if "" in held and "" not in names:
        if len(names) > 1:
            every = ", ".join(map(quoted, names))
            raise AuditorError(
                f"replacement must be {{column: [...]}} for {counted(len(names), 'column')}: {every}"
            )
        held = {names[0]: held[""]}
    check_columns(held, names, "replacement", "no chances")
    return [_of(attribute, held[attribute.name]) for attribute in table.attributes]


def check_columns(
    held: Iterable[str], names: Sequence[str], what: str, none: str, remedy: str = ""
) -> None:
    """Refuse a parameter by column that lacks or adds a perturbed column.

    Raises
    ------
    AuditorError
        Naming the first unknown or missing column.
    """
    for name in held:
        if name not in names:
            raise AuditorError(
                f"{what} names column {quoted(name)}, which is not perturbed{did_you_mean(name, names)}"
            )
    for name in names:
        if name not in held:
            raise AuditorError(f"{what} has {none} for column {quoted(name)}{remedy}")


def _of(attribute: Attribute, shares: Sequence[float]) -> Sequence[float]:
    if len(shares) != attribute.size:
        wanted = f"{attribute.size:,} chances, one for each category in order"
        raise AuditorError(
            f"replacement of column {quoted(attribute.name)} must have {wanted}; got {len(shares):,}"
        )
    return shares


def never_drawn(pi: Array | None) -> str:
    """Return a warning about values that are never drawn, or ""."""
    count = 0 if pi is None else int((pi == 0).sum())
    if not count:
        return ""
    assert pi is not None
    are = "is" if count == 1 else "are"
    return f"{count:,} of {pi.size:,} values {are} never drawn as replacements: a copy that shows one shows the original, and ε is infinite"
