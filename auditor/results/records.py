"""Flat records of results, and their combination over replicates."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from auditor.registry.parameters import format_path, is_number, shortened

K = TypeVar("K")
V = TypeVar("V")
SCHEMA_VERSION = 1
SCHEMA_VERSION_BESIDE = 2
"""Version of a ``results.json`` with measurements in another file; older programs refuse it."""
Status = Literal["ok", "not-applicable", "failed"]
Verdict = Literal["holds", "fails", "undecided"]
ErrorBar = Literal[
    "closed-form", "redraws", "jackknife", "sampling", "replicates", "replicates-needed", "none"
]
Disclosure = Literal["public", "private", "rounded", "withheld"]
FEWEST_REPLICATES = 5
"""Fewest replicates whose spread is the error bar, without a closed form."""
LARGEST = 1e150
"""Numbers beyond this are refused in files: sums of their squares would not be finite."""
COPIES = 2**31
MOST = 1 + 1e-9
"""A share of all records, up to rounding."""


def too_large(value: Any) -> str | None:
    """Message on a number that is too large, without recursion."""
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, (dict, list)):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            waiting += [((*place, key), item) for key, item in items]
        elif is_number(value) and not -LARGEST <= value <= LARGEST:
            return f"{shortened(format_path(place), 120)} must be a number of at most {LARGEST:g} in size"
    return None


def _ascending(values: tuple[float, ...]) -> tuple[float, ...]:
    if any(a > b for a, b in pairwise(values)):
        raise ValueError("must be ascending")
    return values


def _with_finite_values(point: dict[str, Any]) -> dict[str, Any]:
    if (wrong := too_large(point)) is not None:
        raise ValueError(wrong)
    return point


# ranges hold where results are read from files
Point = Annotated[dict[str, Any], AfterValidator(_with_finite_values)]
Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Share = Annotated[float, Field(ge=0, le=MOST)]
Copy = Annotated[int, Field(ge=1, lt=COPIES)]
Copies = Annotated[tuple[Copy, ...], AfterValidator(_ascending)]
Place = Annotated[int, Field(ge=0, le=10**4)]
Bins = tuple[tuple[Place, Place, Share], ...]


class Record(BaseModel):
    """Base of records with named fields."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, defer_build=True)


class Measurement(NamedTuple):
    """One figure of an audit, as a flat record; a list of records is a tidy table.

    Attributes
    ----------
    sweep : dict
        Sweep point: path → value.
    scheme : str
        The scheme's id.
    knowledge, attack : str or None
        None for figures of the release (``seconds``, ``utility_*``).
    coalition, levels : tuples
        Ascending copy numbers from 1, and their levels.
    replicate : int
        From 1; each has new noise.
    attribute : str
        Column name, or ``*`` for all attributes together.
    value, std_error, ci_low, ci_high : float or None
        Value, standard error and 95 % interval.
    theory : float or None
        The closed form of the cell.
    reason : str or None
        Reason of a status other than ``ok``; for an insider's attack, the fault in the noise.
    error_bar : str
        Method of ``std_error``. ``redraws``: other draws of the release. ``sampling``: records (or
        folds) as independent draws. ``replicates-needed``: none; five replicates would give one.
    """

    sweep: Point
    scheme: str
    knowledge: str | None
    attack: str | None
    coalition: Copies
    levels: tuple[Number, ...]
    replicate: Copy
    attribute: str
    metric: str
    value: Number | None
    std_error: Annotated[float, Field(ge=0, le=LARGEST)] | None
    ci_low: Number | None
    ci_high: Number | None
    theory: Number | None
    status: Status
    reason: str | None
    error_bar: ErrorBar


class Distribution(NamedTuple):
    """Distribution of one cell's absolute errors over the records (li2012, Fig. 3).

    Bin edges are multiples of the attribute's deviation. Neighbouring bins below ten records have
    their mean share. ``above`` is the share above the last edge.
    """

    sweep: Point
    scheme: str
    knowledge: str
    attack: str
    coalition: Copies
    replicate: Copy
    attribute: str
    edges: Annotated[tuple[Number, ...], Field(min_length=2), AfterValidator(_ascending)]
    shares: tuple[Share, ...]
    above: Share


class Picture(NamedTuple):
    """Originals, a copy and estimates of one attribute, as shares of the records by bin.

    A bin is a run of cells, ``(first, stop, share)``, with ten records or more, or none. ``joint``
    has bins of original and estimate, and their share.

    Attributes
    ----------
    copy : int
        The copy nearest to the originals; 0 if none shows the attribute.
    records : int
        Records counted.
    cells : int
        For numbers centred on the mean, the outermost open; for categories ordered by frequency.
    width : float
        In standard deviations; 0 for categories.
    """

    sweep: Point
    scheme: str
    knowledge: str
    attack: str
    coalition: Copies
    attribute: str
    copy: Annotated[int, Field(ge=0, lt=COPIES)]
    records: Annotated[int, Field(ge=1)]
    cells: Place
    width: Share
    original: Bins
    shown: Bins
    estimate: Bins
    joint: tuple[tuple[Place, Place, Place, Place, Share], ...]


class ExpectationRecord(Record):
    """A statement of the scenario, and its verdict.

    ``line`` is its line in the scenario's file, from 1; None if implicit or set from outside.
    """

    expectation: str
    where: dict[str, Any]
    status: Verdict
    observed: float | None
    bound: float | list[float] | None
    why: str
    failed: bool = False
    """Whether the expectation plugin failed."""
    line: int | None = Field(default=None, ge=1)


class AttributeSummary(Record):
    """Aggregates of one column of the audited table."""

    name: str
    mean: float | None = None
    variance: float | None = None
    values: int | None = Field(None, description="size of the domain of a categorical column")
    unit: float | None = Field(None, description="unit of a standardized column, in its own units")


class DataSummary(Record):
    """Aggregates of the audited table.

    ``disclosure`` in memory: ``public`` or ``private``, with exact figures. In output of a private
    table: ``rounded`` to the precision of error bars, or ``withheld`` for few records.
    """

    source: str
    rows: int = Field(ge=0)
    attributes: list[AttributeSummary]
    correlation: list[list[float]]
    description: str = ""
    licence: str = ""
    fingerprint: str = ""
    sweep: dict[str, Any] = Field(default_factory=dict)
    disclosure: Disclosure = "public"
    notes: list[str] = Field(default_factory=list)


def pooled(records: Sequence[Measurement]) -> tuple[float, float | None]:
    """Mean and standard error of one cell over its replicates.

    The error is ``sqrt(Σ se²) / R``, also for bars from the spread of replicates, which are for a
    single
    draw. It is None if one is missing. The mean is NaN without values.
    """
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
    """Standard error for judging one cell.

    It is 0 for exact figures, and infinite without replicates.
    """
    error = pooled(records)[1]
    if error is None:
        return (
            math.inf if any(record.error_bar == "replicates-needed" for record in records) else 0.0
        )
    return error


def half_interval(degrees: float) -> float:
    """Half of a 95 % interval in standard errors, by Student's t."""
    # only some commands need scipy
    from auditor.numerics.statistics import quantile

    return quantile(0.975, degrees)


def mean_theory(records: Sequence[Measurement]) -> float | None:
    """Closed form of one cell, averaged over replicates."""
    values = [record.theory for record in records]
    if not values or any(value is None for value in values):
        return None
    return math.fsum(value for value in values if value is not None) / len(values)


def cells(records: Iterable[Measurement]) -> dict[tuple[Any, ...], list[Measurement]]:
    """Groups of one cell's measurements, in order of first appearance."""
    groups: dict[tuple[Any, ...], list[Measurement]] = {}
    points: dict[str, str] = {}
    sweep, text = None, ""
    for record in records:
        # neighbours mostly share one object, and records from a file have equal objects
        if record.sweep is not sweep:
            sweep, key = record.sweep, repr(record.sweep)
            text = points.get(key) or points.setdefault(key, json.dumps(sweep, sort_keys=True))
        groups.setdefault((text, *record[1:5], record.attribute, record.metric), []).append(record)
    return groups


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Values of each key, both in order of first appearance."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def describe(coalition: Sequence[int]) -> str:
    """Coalition in short: ``1–5``, or ``1, 3, 4``."""
    if len(coalition) > 2 and coalition[-1] - coalition[0] == len(coalition) - 1:
        return f"{coalition[0]}–{coalition[-1]}"
    return ", ".join(map(str, coalition))


SHOWN = "shown"
"""Metric of values that a copy shows unchanged."""

KEPT = "kept"
"""Metric of unchanged values among perturbed ones."""

BELIEVED = "value_belief"
"""Metric of the increase of belief in one category."""

WHOLE, PART = "known-attributes(", "; known: "
"""Start of a label with only names, and the text before names in other labels."""


def in_clear(knowledge: str | None) -> list[str]:
    """Names in ``known-attributes(age, salary)`` or after ``; known: ``."""
    label = str(knowledge)
    names = label.removeprefix(WHOLE) if label.startswith(WHOLE) else label.partition(PART)[2]
    return names.removesuffix(")").split(", ") if names else []


class Exposed(NamedTuple):
    """Exposure of the worst attribute to the strongest attack of any coalition.

    Attributes
    ----------
    unknown, half : float
        Mean unknown share of the attribute's variance, and half-width of its 95 % range over single
        releases at the target.
    attack, attribute : str
        The strongest attack, and the attribute; ``*`` for categories.
    coalition : tuple of int
        The copies held.
    """

    unknown: float
    half: float
    attack: str
    attribute: str
    coalition: tuple[int, ...]


class Epsilon(NamedTuple):
    """ε of differential privacy of all copies together, within the stated bounds.

    Attributes
    ----------
    at_delta : float
        ε of (ε, δ).
    pure : float
        ε at δ = 0; infinite if there is none.
    """

    at_delta: float
    pure: float


@dataclass(frozen=True)
class Tried:
    """One candidate release.

    Attributes
    ----------
    on_paper : float
        Upper bound of the worst attribute's unknown share: closed form of the best attack.
    exposed : Exposed or None
        Measured exposure; None if the closed form already excludes the release.
    verdict : {'holds', 'fails', 'undecided'}
        For any new release, in every attribute; undecided if it depends on the draw.
    in_full : bool
        Whether the whole release was audited, or one sufficient copy.
    pooling : float
        Share of the best copy's error that pooling removes.
    losses : tuple of float
        Loss of use by copy; empty if not measured.
    epsilon : Epsilon or None
        By the law of the noise; None without bounds.
    """

    scheme: str
    levels: tuple[float, ...]
    on_paper: float
    exposed: Exposed | None
    verdict: Verdict
    in_full: bool
    pooling: float
    losses: tuple[float, ...]
    epsilon: Epsilon | None = None

    @property
    def met(self) -> bool:
        """Whether every such release meets the target."""
        return self.verdict == "holds"

    @property
    def loss(self) -> float:
        """Mean loss of use over copies; NaN if unknown."""
        return sum(self.losses) / len(self.losses) if self.losses else math.nan


@dataclass(frozen=True)
class Advice:
    """The release that meets the target at the least loss of use.

    Attributes
    ----------
    data : str
    rows, all_rows : int
        Measured and all records.
    target : float
        Required unknown share.
    delta : float
        δ of ``Epsilon.at_delta``.
    utility, use : str
        Measure of loss, and its description.
    grid : str
        The searched levels.
    frontier : tuple of Tried
        Measured releases, by scheme and strength.
    chosen : Tried
        The recommended release.
    weaker : Tried or None
        The next weaker release, which fails the same audit; None if there is none on the grid.
    step : str
        Distance of these two: closer releases are not distinguished.
    scenario : dict
        Makes and audits the recommended release.
    command : str
        Makes its copies.
    notes : tuple of str
        Exclusions and reasons.
    """

    data: str
    rows: int
    all_rows: int
    replicates: int
    target: float
    delta: float
    utility: str
    use: str
    grid: str
    frontier: tuple[Tried, ...]
    chosen: Tried
    weaker: Tried | None
    step: str
    scenario: dict[str, Any]
    command: str
    notes: tuple[str, ...]
    stopped: str | None = None

    @property
    def loss_on_average(self) -> float:
        """Interpolated loss at which the mean over draws meets the target."""
        measured = (one for one in self.frontier if one.scheme == self.chosen.scheme and one.losses)
        own = sorted((one.exposed.unknown, one.loss) for one in measured if one.exposed)
        return float(
            np.interp(self.target, [unknown for unknown, _ in own], [loss for _, loss in own])
        )


class Remedy(Record):
    """Change that would leave half of every attribute unknown.

    Attributes
    ----------
    attack, attribute : str
        The strongest attack and the worst attribute; ``*`` for categories.
    unknown : float
        Current unknown share.
    levels : list of float
        Sufficient levels of the scheme, if any.
    lossless : float or None
        Level of the least perturbed copy under another scheme without pooling gain. Without it or
        levels no noise suffices.
    kind : 'noise' or 'retention'
        Levels: noise multiples (more is safer) or retention probabilities (less is safer).
    estimated : bool
        Whether the closed form of linear attacks was scaled to the strongest attack's result.
    """

    attack: str
    attribute: str
    unknown: float
    levels: list[float] = Field(default_factory=list)
    lossless: float | None = None
    kind: Literal["noise", "retention"] = "noise"
    estimated: bool = False
