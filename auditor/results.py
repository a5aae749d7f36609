"""What an audit found: plain, frozen, versioned records, and how they are written and read again.

Renderers read this module and nothing else. Results hold aggregates only: no original value ever. In memory they are in full; what is
written, printed or drawn is what `AuditResult.disclosed` leaves of them.
"""

from __future__ import annotations

import gc
import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from auditor.errors import AuditorError
from auditor.files import write_atomically
from auditor.printing import escaped, visible_on_one_line

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION = 1
STOPPED = {"SIGINT": 130, "SIGTERM": 143}
"""Exit status by the signal that stopped an audit: 128 and its number, as shells have it."""

Status = Literal["ok", "not-applicable", "failed"]
Verdict = Literal["holds", "fails", "undecided"]
ErrorBar = Literal["closed-form", "redraws", "jackknife", "sampling", "replicates", "replicates-needed", "none"]
Disclosure = Literal["public", "moments", "figures", "rounded", "withheld"]

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
        The adversary's knowledge and the attack's id; None for figures of the release itself (``seconds``, ``utility_*``).
    coalition : tuple of int
        Copy numbers held, ascending, from 1.
    levels : tuple of float
        The levels of those copies, in the same order.
    replicate : int
        From 1; each draws the noise anew.
    attribute : str
        A column's name, or ``*`` for all attributes together.
    metric : str
        For example ``distortion`` (squared data units), ``normalized_error`` (1 = no better than guessing the mean).
    value, std_error, ci_low, ci_high : float or None
        The measured value, its standard error and a 95 % interval; None where there is none.
    theory : float or None
        The closed form for the same cell.
    status : {'ok', 'not-applicable', 'failed'}
    reason : str or None
        Why a cell is not applicable or failed.
    error_bar : {'closed-form', 'redraws', 'jackknife', 'sampling', 'replicates', 'replicates-needed', 'none'}
        Where ``std_error`` comes from; ``redraws``: from other draws of the same release, which the audit made for the purpose;
        ``sampling``: as if the records (or a cross-validation's folds) were independent draws; ``replicates-needed``: there is none, as
        one release does not tell what was drawn once for all its records, and five replicates would.
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
    """How the absolute errors of one cell are spread over the records (the paper's Fig. 3).

    Attributes
    ----------
    edges : tuple of float
        Bin edges in data units, ``len(shares) + 1`` of them. They are multiples of the attribute's standard deviation,
        never the largest error itself, which could betray an outlying record.
    shares : tuple of float
        Share of the records in each bin, in [0, 1].
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


class SchemeSummary(BaseModel):
    """One scheme at one sweep point: what was released, and the law it claims."""

    model_config = ConfigDict(frozen=True)

    sweep: dict[str, Any]
    scheme: str
    plugin: str
    levels: list[float]
    summary: str
    claims: str


class PluginSummary(BaseModel):
    """What a reader of a report must know of an attack or a scheme."""

    model_config = ConfigDict(frozen=True)

    kind: str
    id: str
    name: str
    summary: str
    assumes: str = ""
    wins: str = ""
    reference: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)


class ExpectationRecord(BaseModel):
    """A statement of the scenario, and whether the audit proved or refuted it."""

    model_config = ConfigDict(frozen=True)

    expectation: str
    where: dict[str, Any]
    status: Verdict
    observed: float | None
    bound: float | list[float] | None
    why: str
    failed: bool = False
    """Whether what should judge it failed."""


class AttributeSummary(BaseModel):
    """Aggregates of one column of the table that was audited."""

    model_config = ConfigDict(frozen=True)

    name: str
    mean: float | None = None
    variance: float | None = None
    values: int | None = Field(None, description="size of the domain, of a column that is taken as categories")


class DataSummary(BaseModel):
    """The table that was audited, in aggregates.

    ``disclosure``: figures of a ``public`` table are in full; of a ``private`` one they are too, in memory alone; what is written of it
    is ``rounded``, or ``withheld`` where there are too few records (`auditor.disclosure`).
    """

    model_config = ConfigDict(frozen=True)

    source: str
    rows: int = Field(ge=0)
    attributes: list[AttributeSummary]
    correlation: list[list[float]]
    description: str = ""
    licence: str = ""
    fingerprint: str = ""
    sweep: dict[str, Any] = Field(default_factory=dict)
    disclosure: Disclosure = "public"


class Reference(BaseModel):
    """An entry of the bibliography, as cited by the scenario or one of its plugins."""

    model_config = ConfigDict(frozen=True)

    key: str
    text: str


class Provenance(BaseModel):
    """Enough to run the audit again and know that it was the same.

    ``fingerprint`` tells tables apart: of a public one a SHA-256, of a private one a keyed hash, under the key of which ``fingerprint_key``
    is the name; it can be compared with others under that key alone (`auditor.owner`).
    """

    model_config = ConfigDict(frozen=True)

    versions: dict[str, str]
    seed: int
    fingerprint: str
    fingerprint_key: str = ""
    platform: str
    start: str
    duration: float
    command: str = ""


class Partial(BaseModel):
    """How far an audit came that did not come to its end.

    Attributes
    ----------
    finished, tasks : int
        Tasks whose measurements are in the results, of how many; a task is some replicates of one scheme at one sweep point.
    why : str
        What stopped it.
    signal : str or None
        The signal that did, ``SIGINT`` (Ctrl-C) or ``SIGTERM``; None when something broke.
    """

    model_config = ConfigDict(frozen=True)

    finished: int
    tasks: int
    why: str
    signal: str | None = None


class AuditResult(BaseModel):
    """Everything an audit found.

    ``measurements`` is the tidy table; ``frame()`` gives it as a DataFrame. ``exit_status`` is the command line's.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    schema_version: int = SCHEMA_VERSION
    name: str = "audit"
    scenario: dict[str, Any]
    provenance: Provenance
    data: list[DataSummary] = Field(default_factory=list)
    releases: list[SchemeSummary] = Field(default_factory=list)
    plugins: list[PluginSummary] = Field(default_factory=list)
    references: list[Reference] = Field(default_factory=list)
    expectations: list[ExpectationRecord]
    measurements: list[Measurement]
    distributions: list[Distribution] = Field(default_factory=list)
    partial: Partial | None = Field(None, description="how far the audit came, if it was stopped; None when it is whole")

    @property
    def title(self) -> str:
        """The scenario's title."""
        return str(self.scenario.get("title") or self.name)

    @property
    def holds(self) -> bool:
        """Whether every expectation holds."""
        return all(record.status == "holds" for record in self.expectations)

    @property
    def failed(self) -> bool:
        """Whether an attack, a scheme or an expectation failed while running."""
        return any(record.status == "failed" for record in self.measurements) or any(record.failed for record in self.expectations)

    @property
    def exit_status(self) -> int:
        """0 every expectation holds; 1 one does not; 3 something failed while running; 130 or 143 stopped by SIGINT or SIGTERM."""
        if self.partial is not None and self.partial.signal in STOPPED:
            return STOPPED[self.partial.signal]
        if self.failed or self.partial is not None:
            return 3
        return 0 if self.holds else 1

    def frame(self) -> pd.DataFrame:
        """Return the measurements as a tidy DataFrame, one row a measurement."""
        import pandas as pd

        return pd.DataFrame(self.measurements, columns=list(Measurement._fields))

    def disclosed(self) -> AuditResult:
        """Return the results as they may leave the owner's machine: of a private table rounded, or withheld (`auditor.disclosure`)."""
        from auditor.disclosure import disclosed

        return disclosed(self)

    @property
    def plot(self) -> Any:
        """The charts of these results: ``result.plot.collusion()`` and its kin return Altair charts."""
        return _display().plots(self.disclosed())

    def _repr_html_(self) -> str:
        return str(_display().render([self]))

    def to_json(self) -> str:
        """Return the results as they may be written, as JSON; NaN and infinity become null, as JSON has neither."""
        return self.disclosed()._json()

    def _json(self) -> str:
        head = {
            "schema_version": self.schema_version,
            "name": self.name,
            **self.model_dump(mode="json", include={"scenario", "provenance", "data", "releases", "plugins", "references"}),
            "expectations": [record.model_dump(mode="json", exclude_defaults=True) for record in self.expectations],
            **({} if self.partial is None else {"partial": self.partial.model_dump(mode="json")}),
        }
        long = (("measurements", self.measurements), ("distributions", self.distributions))
        lists = (f'"{name}":[{",".join(_written(record._asdict()) for record in records)}]' for name, records in long)
        return escaped(f"{_written(head)[:-1]},{','.join(lists)}}}\n")

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write ``results.json`` and ``results.parquet`` atomically, with what may leave the owner's machine (`disclosed`).

        Returns
        -------
        Path
            The directory written to, made if it was not there.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        told = self.disclosed()
        write_atomically(folder / "results.json", told.to_json().encode())
        sink = pa.BufferOutputStream()
        pq.write_table(told._arrow(), sink)
        write_atomically(folder / "results.parquet", sink.getvalue().to_pybytes())
        return folder

    def _arrow(self) -> Any:
        """The tidy table with explicit types, so that an empty or all-null column keeps its own; ``sweep`` is JSON text."""
        import pyarrow as pa

        number, text = pa.float64(), pa.string()
        types = {
            "coalition": pa.list_(pa.int64()), "levels": pa.list_(number), "replicate": pa.int64(),
            "value": number, "std_error": number, "ci_low": number, "ci_high": number, "theory": number,
        }  # fmt: skip
        columns = zip(*self.measurements, strict=True) if self.measurements else ((),) * len(Measurement._fields)
        arrays = {}
        for field, values in zip(Measurement._fields, columns, strict=True):
            cells = [json.dumps(value) for value in values] if field == "sweep" else list(values)
            if field not in types and field != "sweep":  # names come from files, and whoever prints the table must not be steered by them
                safe = {name: None if name is None else visible_on_one_line(name) for name in set(cells)}
                cells = [safe[name] for name in cells]
            arrays[field] = pa.array(cells, type=types.get(field, text))
        return pa.table(arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AuditResult:
        """Read results from a ``results.json`` or the folder that holds one.

        Raises
        ------
        AuditorError
            The file is missing, is not an audit's results, or was written by a newer version of the program.
        """
        file = Path(path)
        if file.is_dir():
            file = file / "results.json"
        with _without_collector():
            return cls._read(file)

    @classmethod
    def _read(cls, file: Path) -> AuditResult:
        from pydantic import ValidationError

        from auditor import stored

        document = stored.read(file)
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise AuditorError(f"{file}: not the results of an audit ({ascii(place)[1:-1]}: {first['msg'].lower()})") from None
        except RecursionError:
            raise AuditorError(f"{file}: not the results of an audit (nested too deeply)") from None


def _display() -> Any:
    """Return the renderer for notebooks, found as every renderer is: this package imports none."""
    from auditor import registry

    return registry.get("renderer", "notebook")()


_encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode


def _written(value: dict[str, Any]) -> str:
    """Write JSON; NaN and infinity, which are rare and cost a walk over everything, are looked for only where JSON refuses them."""
    try:
        return _encode(value)
    except ValueError:
        return _encode(_finite(value))


@contextmanager
def _without_collector() -> Iterator[None]:
    """Hold the cyclic garbage collector back while many records are made that all stay: it would walk them again and again."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _finite(value: Any) -> Any:
    """Replace NaN and infinity by None, all the way down."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def pooled(records: Sequence[Measurement]) -> tuple[float, float | None]:
    """Return mean and standard error of one cell over its replicates; NaN and None when nothing was measured.

    Error bars that come from the replicates themselves (``error_bar == 'replicates'``) are each the spread of a single
    draw, as closed-form ones are, so the rule is one: ``sqrt(Σ se²) / R``. None when any replicate has no error bar.
    """
    values = [record.value for record in records if record.value is not None]
    errors = [record.std_error for record in records]
    if not values:
        return math.nan, None
    mean = math.fsum(values) / len(values)
    if any(error is None for error in errors):
        return mean, None
    return mean, math.sqrt(math.fsum(error**2 for error in errors if error is not None)) / len(errors)


def uncertainty(records: Sequence[Measurement]) -> float:
    """Return the standard error to judge one cell by: 0 for figures that have none, infinite where one release does not tell."""
    error = pooled(records)[1]
    if error is None:
        return math.inf if any(record.error_bar == "replicates-needed" for record in records) else 0.0
    return error


def half_interval(degrees: float) -> float:
    """Return half of a 95 % interval in standard errors, by Student's t: few replicates know their own spread badly."""
    from auditor.statistics import quantile

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
        if record.sweep is not sweep:  # neighbours mostly share one, and records read from a file hold equal ones
            sweep, told = record.sweep, repr(record.sweep)
            text = points.get(told) or points.setdefault(told, json.dumps(sweep, sort_keys=True))
        groups.setdefault((text, *record[1:5], record.attribute, record.metric), []).append(record)
    return groups
