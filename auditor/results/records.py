"""The flat records that results are made of, and how they are put together over replicates."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field

K = TypeVar("K")
V = TypeVar("V")
SCHEMA_VERSION = 1
SCHEMA_VERSION_BESIDE = 2
"""Of a results.json whose measurements are in a file beside it: programs that know of none must not
take them for missing."""
Status = Literal["ok", "not-applicable", "failed"]
Verdict = Literal["holds", "fails", "undecided"]
ErrorBar = Literal[
    "closed-form", "redraws", "jackknife", "sampling", "replicates", "replicates-needed", "none"
]
Disclosure = Literal["public", "private", "rounded", "withheld"]
FEWEST_REPLICATES = 5
"""From so many replicates on their own spread is the error bar where there is no closed form."""


class Measurement(NamedTuple):
    """One number of an audit, as a flat record; a list of them is a tidy table.

    Attributes
    ----------
    sweep : dict
        The sweep point, path → value; empty when nothing is swept.
    scheme : str
        The scheme's id.
    knowledge, attack : str or None
        The adversary's knowledge and the attack's id; None for figures of the release itself
        (``seconds``, ``utility_*``).
    coalition : tuple of int
        Copy numbers held, ascending, from 1.
    levels : tuple of float
        The levels of those copies, in the same order.
    replicate : int
        From 1; each draws the noise anew.
    attribute : str
        A column's name, or ``*`` for all attributes together.
    metric : str
        For example ``distortion`` (squared data units), ``normalized_error`` (1 = no better than
        guessing the mean).
    value, std_error, ci_low, ci_high : float or None
        The measured value, its standard error and a 95 % interval; None where there is none.
    theory : float or None
        The closed form for the same cell.
    status : {'ok', 'not-applicable', 'failed'}
    reason : str or None
        Why a cell is not applicable or failed; of an insider's attack, the fault in the noise that
        it uses.
    error_bar : {'closed-form', 'redraws', 'jackknife', 'sampling', 'replicates',
    'replicates-needed', 'none'}
        Where ``std_error`` comes from; ``redraws``: from other draws of the same release, which the
        audit made for the purpose; ``sampling``: as if the records (or a cross-validation's folds)
        were independent draws; ``replicates-needed``: there is none, as one release does not tell
        what was drawn once for all its records, and five replicates would.
    """

    sweep: dict[str, Any]
    scheme: str
    knowledge: str | None
    attack: str | None
    coalition: tuple[int, ...]
    levels: tuple[float, ...]
    replicate: int
    attribute: str
    metric: str
    value: float | None
    std_error: float | None
    ci_low: float | None
    ci_high: float | None
    theory: float | None
    status: Status
    reason: str | None
    error_bar: ErrorBar


class Distribution(NamedTuple):
    """How the absolute errors of one cell are spread over the records (li2012, Fig. 3).

    Attributes
    ----------
    edges : tuple of float
        Bin edges in data units, ``len(shares) + 1`` of them. They are multiples of the attribute's
        standard deviation, never the largest error itself, which could betray an outlying record.
    shares : tuple of float
        Share of the records in each bin, in [0, 1]. Neighbouring bins that hold fewer than ten
        records have their mean share.
    above : float
        Share of the records beyond the last edge.
    """

    sweep: dict[str, Any]
    scheme: str
    knowledge: str
    attack: str
    coalition: tuple[int, ...]
    replicate: int
    attribute: str
    edges: tuple[float, ...]
    shares: tuple[float, ...]
    above: float


class ExpectationRecord(BaseModel):
    """A statement of the scenario, and whether the audit proved or refuted it.

    ``line`` is where it stands in the scenario's file, from 1; None where it was set from outside,
    or nobody asked for it.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    expectation: str
    where: dict[str, Any]
    status: Verdict
    observed: float | None
    bound: float | list[float] | None
    why: str
    failed: bool = False
    """Whether what should judge it failed."""
    line: int | None = Field(default=None, ge=1)


class AttributeSummary(BaseModel):
    """Aggregates of one column of the table that was audited."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    name: str
    mean: float | None = None
    variance: float | None = None
    values: int | None = Field(
        None, description="size of the domain, of a column that is taken as categories"
    )
    unit: float | None = Field(
        None, description="of a standardized column: what 1 stands for in its own units"
    )


class DataSummary(BaseModel):
    """The table that was audited, in aggregates.

    ``disclosure``: figures of a ``public`` table are in full; of a ``private`` one they are too, in
    memory alone; what is written of it is ``rounded`` to the precision of its error bars, or
    ``withheld`` where there are too few records (`auditor.results.disclosure`).
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    source: str
    rows: int = Field(ge=0)
    attributes: list[AttributeSummary]
    correlation: list[list[float]]
    description: str = ""
    licence: str = ""
    fingerprint: str = ""
    sweep: dict[str, Any] = Field(default_factory=dict)
    disclosure: Disclosure = "public"


def pooled(records: Sequence[Measurement]) -> tuple[float, float | None]:
    """Return mean and standard error of one cell over its replicates; NaN and None when nothing was measured.

    Error bars that come from the replicates themselves (``error_bar == 'replicates'``) are each the
    spread of a single draw, as closed-form ones are, so the rule is one: ``sqrt(Σ se²) / R``. None
    when any replicate has no error bar.
    """
    # as most cells are; the same figures with less work
    if len(records) == 1 and records[0].value is not None:
        value, error = records[0].value + 0.0, records[0].std_error
        return value, None if error is None else math.sqrt(error**2)
    values = [record.value for record in records if record.value is not None]
    errors = [record.std_error for record in records]
    if not values:
        return math.nan, None
    mean = math.fsum(values) / len(values)
    if any(error is None for error in errors):
        return mean, None
    return mean, math.sqrt(math.fsum(error**2 for error in errors if error is not None)) / len(
        errors
    )


def uncertainty(records: Sequence[Measurement]) -> float:
    """Return the standard error to judge one cell by: 0 for figures that have none, infinite where one release does not tell."""
    error = pooled(records)[1]
    if error is None:
        return (
            math.inf if any(record.error_bar == "replicates-needed" for record in records) else 0.0
        )
    return error


def half_interval(degrees: float) -> float:
    """Return half of a 95 % interval in standard errors, by Student's t: few replicates know their own spread badly."""
    # scipy, which whoever only reads and lists results does not wait for
    from auditor.numerics.statistics import quantile

    return quantile(0.975, degrees)


def mean_theory(records: Sequence[Measurement]) -> float | None:
    """Return the closed form of one cell, averaged over its replicates: it differs where what an adversary was given does."""
    values = [record.theory for record in records]
    if not values or any(value is None for value in values):
        return None
    return math.fsum(value for value in values if value is not None) / len(values)


def cells(records: Iterable[Measurement]) -> dict[tuple[Any, ...], list[Measurement]]:
    """Group measurements of one cell over replicates, in order of first appearance."""
    groups: dict[tuple[Any, ...], list[Measurement]] = {}
    points: dict[str, str] = {}
    sweep, text = None, ""
    for record in records:
        # neighbours mostly share one, and records read from a file hold equal ones
        if record.sweep is not sweep:
            sweep, key = record.sweep, repr(record.sweep)
            text = points.get(key) or points.setdefault(key, json.dumps(sweep, sort_keys=True))
        groups.setdefault((text, *record[1:5], record.attribute, record.metric), []).append(record)
    return groups


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the values of each key, both in order of first appearance."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def describe(coalition: Sequence[int]) -> str:
    """Return a coalition in short: ``1–5``, or ``1, 3, 4``."""
    if len(coalition) > 2 and coalition[-1] - coalition[0] == len(coalition) - 1:
        return f"{coalition[0]}–{coalition[-1]}"
    return ", ".join(map(str, coalition))
