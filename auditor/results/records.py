"""Flat records of results and evidence, combined over replicates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import pairwise
from math import fsum, inf, nan, sqrt
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypedDict

from auditor.base import shortened
from auditor.base.types import Coalition, Levels, Plain, frozen
from auditor.numerics.statistics import one_sided, quantile
from auditor.registry.parameters import format_path, is_number

K = TypeVar("K")
V = TypeVar("V")
SCHEMA_VERSION = 1
SCHEMA_VERSION_BESIDE = 2
"""Version of a ``results.json`` with measurements in another file; older programs refuse it."""
Status = Literal["ok", "not-applicable", "failed"]
Verdict = Literal["holds", "fails", "undecided"]
VERDICTS: tuple[Verdict, ...] = ("fails", "undecided", "holds")
"""The worst first."""
ErrorBar = Literal[
    "closed-form", "redraws", "jackknife", "sampling", "replicates", "replicates-needed", "none"
]
Disclosure = Literal["public", "private", "rounded", "withheld"]
STOPPED = {"SIGINT": 130, "SIGTERM": 143}
"""Exit status by signal: 128 plus its number, as in shells."""
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
        if isinstance(value, dict | list):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            waiting += [((*place, key), item) for key, item in items]
        elif is_number(value) and not -LARGEST <= value <= LARGEST:
            return f"{shortened(format_path(place), 120)} must be a number of at most {LARGEST:g} in size"
    return None


def _ascending(values: tuple[float, ...]) -> tuple[float, ...]:
    if any(a > b for a, b in pairwise(values)):
        raise ValueError("must be ascending")
    return values


def _with_finite_values(point: Plain) -> Plain:
    if (wrong := too_large(point)) is not None:
        raise ValueError(wrong)
    return point


# ranges hold where results are read from files
Point = Annotated[Plain, AfterValidator(_with_finite_values)]
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
    where: Plain
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
    values: int | None = None
    """Size of the domain of a categorical column."""
    unit: float | None = None
    """Unit of a standardized column, in its own units."""


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
    sweep: Plain = {}
    disclosure: Disclosure = "public"
    notes: list[str] = []


def pooled(records: Sequence[Measurement]) -> tuple[float, float | None]:
    """Mean and standard error of one cell over its replicates.

    The error is ``sqrt(Σ se²) / R``, also for bars from the spread of replicates, which are for a
    single
    draw. It is None if one is missing. The mean is NaN without values.
    """
    values = [record.value for record in records if record.value is not None]
    errors = [record.std_error for record in records]
    if not values:
        return nan, None
    if len(records) == 1:  # thousands of cells have one replicate
        return values[0], errors[0]
    mean = fsum(values) / len(values)
    if any(error is None for error in errors):
        return mean, None
    return mean, sqrt(fsum(error**2 for error in errors if error is not None)) / len(errors)


def uncertainty(records: Sequence[Measurement]) -> float:
    """Standard error for judging one cell.

    It is 0 for exact figures, and infinite without replicates.
    """
    error = pooled(records)[1]
    if error is None:
        return inf if any(record.error_bar == "replicates-needed" for record in records) else 0.0
    return error


def half_interval(degrees: float) -> float:
    """Half of a 95 % interval in standard errors, by Student's t."""
    return quantile(0.975, degrees)


def mean_theory(records: Sequence[Measurement]) -> float | None:
    """Closed form of one cell, averaged over replicates."""
    values = [record.theory for record in records]
    if not values or any(value is None for value in values):
        return None
    return fsum(value for value in values if value is not None) / len(values)


Cells = dict[tuple[Any, ...], list[Measurement]]
"""Measurements of the replicates of each cell."""


def cells(records: Iterable[Measurement]) -> Cells:
    """Groups of one cell's measurements, in order of first appearance."""
    groups, points = Cells(), dict[str, str]()
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
    coalition: Coalition


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


@frozen
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
    levels: Levels
    on_paper: float
    exposed: Exposed | None
    verdict: Verdict
    in_full: bool
    pooling: float
    losses: Sequence[float]
    epsilon: Epsilon | None = None

    @property
    def met(self) -> bool:
        """Whether every such release meets the target."""
        return self.verdict == "holds"

    @property
    def loss(self) -> float:
        """Mean loss of use over copies; NaN if unknown."""
        return sum(self.losses) / len(self.losses) if self.losses else nan


@frozen
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
    scenario: Plain
    command: str
    notes: tuple[str, ...]
    stopped: str | None = None

    @property
    def exit_status(self) -> int:
        """Exit status of the command line: 0, or 130 or 143 after a signal."""
        return 0 if self.stopped is None else STOPPED[self.stopped]

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
    levels: list[float] = []
    lossless: float | None = None
    kind: Literal["noise", "retention"] = "noise"
    estimated: bool = False


# -- Evidence that expectations judge, and its exact form in plain JSON values ---------------------


class _AsPairs:
    """A mapping as a list of pairs, because JSON's keys are text."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        pair: Any = tuple.__class_getitem__(get_args(source))
        pairs = handler.generate_schema(list.__class_getitem__(pair))
        written = core_schema.plain_serializer_function_ser_schema(
            lambda mapping: list(mapping.items()), return_schema=pairs
        )
        return core_schema.no_info_after_validator_function(dict, pairs, serialization=written)


Pairs = Annotated[dict[K, V], _AsPairs()]
"""A mapping whose keys are no text."""


class NoiseGain(NamedTuple):
    """Share of the best copy's noise that a coalition removes.

    ``share`` is the squared multiple correlation of the best copy's noise with the other copies'
    differences from it; 0 by law if one copy is sufficient.
    """

    share: float
    regressors: int
    observations: int


class InsiderGain(NamedTuple):
    """Out-of-sample gain of a learner fitted to the originals.

    Attributes
    ----------
    best : int
        The copy with the least noise.
    copies : tuple of int
        Copies measured, perhaps of a wider coalition with this best copy.
    correlation, std_error, degrees : tuple of float
        By attribute: correlation of the other copies' addition with the best copy's residual; mean
        0 for lawful copies.
    """

    best: int
    copies: Coalition
    correlation: tuple[float, ...]
    std_error: tuple[float, ...]
    degrees: tuple[float, ...]
    rows: int

    @property
    def gain(self) -> tuple[float, ...]:
        """Share of the best copy's error that is removed, by attribute."""
        return tuple(max(r, 0.0) ** 2 for r in self.correlation)

    def p_values(self, place: int, margin: float) -> tuple[float, float]:
        """P-values of one attribute against gain ≥ margin and ≤ margin."""
        r = self.correlation[place]
        bound = sqrt(margin)
        error = self.std_error[place]
        degrees = self.degrees[place]
        return one_sided(r, bound, error, degrees), one_sided(-r, -bound, error, degrees)

    def p_value(self, bound: float) -> float:
        """P-value against all gains ≤ bound (Bonferroni over attributes)."""
        return min(
            1.0,
            len(self.gain) * min(self.p_values(place, bound)[1] for place in range(len(self.gain))),
        )


LAST_DIGITS = "last digits"
"""The statistic on the rounding of copies from files."""


class LawTest(NamedTuple):
    """One statistic of noise or replaced values against the stated law.

    Attributes
    ----------
    p : float
        The least p-value times the number of tests, at most 1.
    observed, expected : float
        The figure furthest from its law, and its value by law.
    where : str
        Its copies and attributes.
    telling : float
        Deviations over √rows for a departure of size 1: 1 for a correlation, √2 for a complex one.
    """

    statistic: str
    p: float
    tests: int
    rows: int
    observed: float
    expected: float
    where: str
    telling: float = 1.0
    departure: str = "a correlation"


@frozen
class Pooling:
    """Gain of one coalition, without trust in the scheme's statements.

    Attributes
    ----------
    sufficient : bool or None
        Whether one copy is sufficient by the stated law or the shown classes, if any.
    noise : NoiseGain or None
        Of the measured noise, if the law has one shape for all copies.
    unresolved : bool
        Whether second moments lose a combination of the copies.
    by_classes : bool
        Whether ``sufficient`` is about classes, and attacks that read these.
    """

    sufficient: bool | None
    noise: NoiseGain | None = None
    unresolved: bool = False
    insider: InsiderGain | None = None
    proved: bool = True
    by_classes: bool = False

    @property
    def proof(self) -> bool:
        """Whether a law proves sufficiency of one copy for every attack."""
        return self.proved and self.sufficient is not None


PairedCell = tuple[str, str, Coalition, str]
"""Knowledge, attack, coalition, attribute."""
PairedGain = tuple[float, float, float]
"""Gain over the coalition's copy with the least noise by law, standard error and degrees of
freedom."""


class Facts(TypedDict, total=False):
    """Facts about a release beyond its cells.

    ``drawn``: copies drawn between two others. ``fitted``: parameters fitted per attribute, divided
    by rows, if the law is estimated: an attack's possible advantage.
    ``told``: attacks and knowledge that knew the table's set of values.
    """

    fitted: float
    told: list[tuple[str, str]]
    drawn: list[Drawn]


@frozen
class ReleaseEvidence:
    """One audited release: scheme, sweep point and replicate."""

    sweep: Plain
    scheme: str
    plugin: str
    copies: int
    replicate: int
    rows: int
    pooling: Pairs[Coalition, Pooling] = field(default_factory=dict)
    paired: Pairs[PairedCell, PairedGain] = field(default_factory=dict)
    facts: Facts = field(default_factory=Facts)
    law: list[LawTest] = field(default_factory=list)
    """Test results by statistic; empty without a stated law."""
    notes: tuple[str, ...] = ()
    """Notes on excluded records and columns."""
    understated: bool = False
    """Whether some of these are less perturbed than the audited ones."""

    @property
    def from_files(self) -> bool:
        """Whether copies come from files, whose law proves nothing."""
        return any(not pooling.proved for pooling in self.pooling.values())


@frozen
class Evidence:
    """All evidence for expectations."""

    measurements: Sequence[Measurement]
    releases: Sequence[ReleaseEvidence]


class Drawn(NamedTuple):
    """One copy between two others, over records where these agree.

    ``heads`` and ``tails`` are ``u`` and ``v`` of xiao2009, eqs. 3 and 4, first cases; ``kept`` is
    ``u + v + (1 − u − v)/s``; ``same`` counts records where all three agree.
    """

    copy: int
    heads: float
    tails: float
    kept: float
    agreeing: int
    same: int


FITTED = "fitted-to-originals"
"""Name of the insider attack on copies without a law."""
UNSEARCHED = "no insider searched these files for leaks"
SAME = 1e-11
"""Smaller gains are rounding errors: the coalition's estimate equals its best copy's, in another
order of sums."""
ROW_REDRAWS = 9
"""Redraws of a release for attacks that need rows. Student's t with 8 degrees of freedom is 18 %
wider than the normal."""
