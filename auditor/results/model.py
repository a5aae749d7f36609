"""Results of an audit, frozen and versioned, with the bibliography.

Renderers read only this module. Results hold aggregates, never an original value. Figures are
exact in memory; `AuditResult.disclosed` rounds all output.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Self, get_type_hints

import numpy as np
from pydantic import PlainSerializer, PlainValidator, TypeAdapter, ValidationError
from pydantic_core import to_json

from auditor import registry
from auditor.base import AuditorError, clean, escaped, pd, shortened
from auditor.base.types import Options, Plain
from auditor.registry.parameters import expected_by, format_path
from auditor.results import measurements
from auditor.results.disclosure import disclosed
from auditor.results.files import write_atomically
from auditor.results.measurements import NUMBERS, Measurements, from_parquet
from auditor.results.metrics import RENAMED
from auditor.results.records import (
    SCHEMA_VERSION,
    SCHEMA_VERSION_BESIDE,
    STOPPED,
    DataSummary,
    Distribution,
    ExpectationRecord,
    Measurement,
    Picture,
    Record,
    Remedy,
    too_large,
)

MOST_IN_JSON = 4_000_000
"""Values of measurements in ``results.json``: about 200,000 measurements, or fewer that name
hundreds of copies each. Larger tables are in ``results.parquet`` only, at about 40 bytes a
measurement."""
TABLE = "results.parquet"
ROWS_AT_ONCE = 4_096
"""Rows in memory as text."""

HEAD = set(
    "scenario provenance data releases plugins references attack_kinds untried left_out".split()
)
"""Fields written unchanged, before the long lists."""


class SchemeSummary(Record):
    """One scheme at one sweep point, with its release and stated law."""

    sweep: Plain
    scheme: str
    plugin: str
    levels: list[float]
    summary: str
    claims: str
    notes: list[str] = []
    """Notes on excluded records and columns."""
    understated: bool = False
    """Whether some of these are less perturbed than the audited ones."""
    remedy: Remedy | None = None
    """Change that would leave half unknown; None if half is."""


class PluginSummary(Record):
    """Description of an attack or a scheme for reports."""

    kind: str
    id: str
    name: str
    summary: str
    assumes: str = ""
    wins: str = ""
    reference: str = ""
    parameters: Plain = {}


class Reference(Record):
    """A cited entry of the bibliography."""

    key: str
    text: str


class Provenance(Record):
    """Facts to repeat the audit and to recognize equal data.

    ``fingerprint`` is SHA-256 for a public table, otherwise a keyed hash, comparable under one
    ``fingerprint_key``. ``file`` is the scenario's path in the working directory, or its name.
    """

    versions: dict[str, str]
    seed: int
    fingerprint: str
    fingerprint_key: str = ""
    platform: str
    start: str
    duration: float
    command: str = ""
    file: str = ""


class Partial(Record):
    """Progress of an audit that stopped early; ``signal`` is None for a failure."""

    finished: int
    tasks: int
    why: str
    signal: str | None = None


def _table(given: Any) -> Measurements:
    if isinstance(given, Measurements) or (
        isinstance(given, Sequence) and all(isinstance(record, Measurement) for record in given)
    ):
        return Measurements.of(given)
    return Measurements.of(TypeAdapter(list[Measurement]).validate_python(given))


class AuditResult(Record):
    """Result of an audit.

    ``measurements`` is the tidy table, a sequence of records; ``frame()`` returns it as a
    DataFrame.
    """

    schema_version: int = SCHEMA_VERSION
    name: str = "audit"
    scenario: Plain
    provenance: Provenance
    data: list[DataSummary] = []
    releases: list[SchemeSummary] = []
    plugins: list[PluginSummary] = []
    references: list[Reference] = []
    expectations: list[ExpectationRecord]
    measurements: Annotated[
        Measurements,
        PlainValidator(_table),
        PlainSerializer(lambda table: [record._asdict() for record in table]),
    ]
    distributions: list[Distribution] = []
    pictures: list[Picture] = []
    attack_kinds: dict[str, str] = {}
    """Kind of each attack, by name."""
    untried: list[str] = []
    """Applicable attacks outside the scenario, by name."""
    left_out: list[str] = []
    """What the budget left out."""
    partial: Partial | None = None
    """Progress of a stopped audit; None if complete."""

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
        """Whether an attack, a scheme or an expectation failed."""
        return bool(self.measurements.where(status="failed").any()) or any(
            record.failed for record in self.expectations
        )

    @property
    def exit_status(self) -> int:
        """Exit status of the command line.

        0 if every expectation holds, 1 if one does not, 3 after a failure, and 130 or 143 after
        SIGINT or SIGTERM.
        """
        if self.partial is not None and self.partial.signal in STOPPED:
            return STOPPED[self.partial.signal]
        if self.failed or self.partial is not None:
            return 3
        return 0 if self.holds else 1

    def __repr__(self) -> str:
        statuses = Counter(record.status for record in self.expectations)
        judged = (
            ", ".join(f"{count} {status}" for status, count in sorted(statuses.items())) or "none"
        )
        stopped = ", partial" if self.partial is not None else ""
        return f"<AuditResult {clean(self.name)!r}: expectations: {judged}; {len(self.measurements):,} measurements{stopped}>"

    __str__ = __repr__

    def model_copy(self, *, update: Options | None = None, deep: bool = False) -> Self:
        """Results with fields replaced, without validation."""
        changed = dict(update or {})
        if "measurements" in changed:
            changed["measurements"] = Measurements.of(changed["measurements"])
        return super().model_copy(update=changed, deep=deep)

    def frame(self) -> pd.DataFrame:
        """Tidy DataFrame, one row a measurement (`auditor.results.measurements`)."""
        return measurements.frame(self.measurements)

    def disclosed(self) -> AuditResult:
        """Results that may leave the machine (`auditor.results.disclosure`)."""
        found: AuditResult = disclosed(self)
        return found

    @property
    def plot(self) -> Any:
        """Altair charts: ``result.plot()`` is the first, ``result.plot.collusion()`` one of all."""
        return _display().plots(self.disclosed())

    def _repr_html_(self) -> str:
        return str(_display().render([self]))

    def to_json(self) -> str:
        """Results as JSON, rounded as for `save`; NaN and infinity become null."""
        return b"".join(self.disclosed()._json()).decode()

    def _json(self, table: Plain | None = None) -> Iterator[bytes]:
        head = {
            "schema_version": self.schema_version if table is None else SCHEMA_VERSION_BESIDE,
            "name": self.name,
            **self.model_dump(mode="json", include=HEAD),
            "expectations": [
                record.model_dump(mode="json", exclude_defaults=True)
                for record in self.expectations
            ],
            **({} if self.partial is None else {"partial": self.partial.model_dump(mode="json")}),
            "distributions": [spread._asdict() for spread in self.distributions],
            "pictures": [picture._asdict() for picture in self.pictures],
        }
        yield _encoded(head)[:-1] + b',"measurements":'
        if table is not None:
            yield _encoded(table)
        else:
            lead = b"["
            for start in range(0, len(self.measurements), ROWS_AT_ONCE):
                rows = self.measurements.taken(slice(start, start + ROWS_AT_ONCE))
                yield lead + _encoded([row._asdict() for row in rows])[1:-1]
                lead = b","
            yield b"]" if lead == b"," else b"[]"
        yield b"}\n"

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write ``results.json`` and ``results.parquet`` atomically, as `disclosed`.

        Tables of more than ``MOST_IN_JSON`` values are only in ``results.parquet``, and
        ``results.json`` has its checksum.

        Returns
        -------
        Path
            The directory, created if necessary.
        """
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        released = self.disclosed()
        table = measurements.parquet(released.measurements)
        coalitions = released.measurements.columns["coalition"]
        held = np.array([len(held) for held in coalitions.values], dtype=int)
        values = 17 * len(released.measurements) + 2 * int(held[coalitions.places].sum())
        beside = None
        if values > MOST_IN_JSON:
            beside = {"file": TABLE, "sha256": hashlib.sha256(table).hexdigest()}
        write_atomically(folder / "results.json", released._json(beside))
        write_atomically(folder / TABLE, table)
        return folder

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AuditResult:
        """Read results from a ``results.json`` or its folder.

        Raises
        ------
        AuditorError
            The file is missing, is not an audit's results, or is of a newer version.
        """
        file = Path(path)
        if file.is_dir():
            file = file / "results.json"
        document = read_document(file)
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            raise no_results(file, error) from None
        except RecursionError:
            raise no_results(file, "nested too deeply") from None


def _display() -> Any:
    return registry.get("renderer", "notebook")()


def _encoded(value: Any) -> bytes:
    return escaped(to_json(value, inf_nan_mode="null").decode()).encode()


# -- Reading of stored results, in which nothing is trusted ----------------------------------------


_LEFT_OUT = ("value", "std_error", "ci_low", "ci_high", "theory", "reason", "error_bar")
"""Fields that another version, or another program, may leave out."""


def no_results(file: Path, why: str | ValidationError) -> AuditorError:
    """Error of a file that holds no results, without any of its values."""
    if isinstance(why, ValidationError):
        first = why.errors(include_url=False)[0]
        why = f"{shortened(format_path(first['loc']), 120)} {expected_by(first)}"
    return AuditorError(f"{file}: not the results of an audit ({why})")


def read_document(file: Path) -> Plain:
    """Document with its measurements and distributions as records.

    Raises
    ------
    AuditorError
        The file is missing, is not an audit's results or by a newer version of the program, or
        holds a value that no audit writes.
    """
    parsed = _parsed(file)
    document: Plain = parsed if isinstance(parsed, dict) else {}
    version = document.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise no_results(file, "no schema_version")
    if version > SCHEMA_VERSION_BESIDE:
        raise AuditorError(
            f"{file}: schema_version {version} is newer than this program reads ({SCHEMA_VERSION_BESIDE})"
        )
    if (wrong := too_large(document)) is not None:
        raise no_results(file, wrong)
    found: Any = document.get("measurements")
    if version == SCHEMA_VERSION_BESIDE and isinstance(found, dict):
        document |= {"schema_version": SCHEMA_VERSION, "measurements": _table_beside(file, found)}
    else:
        document["measurements"] = _records(file, "measurements", found, Measurement)
    for name, record in (("distributions", Distribution), ("pictures", Picture)):
        document[name] = _records(file, name, document.get(name, []), record)
    table = document["measurements"] = Measurements.of(document["measurements"])
    if len(wrong_at := np.flatnonzero(table.columns["ci_low"] > table.columns["ci_high"])):
        why = "has an interval that ends before it begins"
        raise no_results(file, f"measurements[{wrong_at[0]}] {why}")
    for place, spread in enumerate(document["distributions"]):
        if len(spread.edges) != len(spread.shares) + 1:
            why = "must have one share between every two edges"
            raise no_results(file, f"distributions[{place}] {why}")
    for place, picture in enumerate(document["pictures"]):
        whole = [picture.original, picture.estimate, *([picture.shown] if picture.shown else [])]
        ends = [[0, *(stop for _, stop, _ in bins)] for bins in whole]
        joined = [[*(first for first, _, _ in bins), picture.cells] for bins in whole]
        pairs = [one[at : at + 2] for one in picture.joint for at in (0, 2)]
        pairs += [one[:2] for bins in whole for one in bins]
        if ends != joined or any(not 0 <= a < b <= picture.cells for a, b in pairs):
            raise no_results(file, f"pictures[{place}] has bins that are no runs of its cells")
    return document


def _records(file: Path, name: str, found: Any, record: Any) -> list[Any]:
    """Records of a list; other versions may leave out fields, or have more."""
    rows = found if isinstance(found, list) else [found]
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            what = f"[{place}] must be a mapping" if rows is found else " must be a list"
            raise no_results(file, f"{name}{what}")
    absent = dict.fromkeys(field for field in _LEFT_OUT if field in record._fields)
    full = [
        {field: value for field, value in (absent | row).items() if field in record._fields}
        for row in rows
    ]
    for row in full if "error_bar" in absent else ():
        row["error_bar"] = row["error_bar"] or "none"
    try:
        adapter: Any = TypeAdapter(dict[str, list[record]])
        read: list[Any] = adapter.validate_json(to_json({name: full}), strict=True)[name]
    except ValidationError as error:
        raise no_results(file, error) from None
    if record is not Measurement:
        return read
    return [row._replace(metric=RENAMED.get(row.metric, row.metric)) for row in read]


def _table_beside(file: Path, beside: Plain) -> Measurements:
    name = beside.get("file")
    if not isinstance(name, str) or Path(name).name != name:
        raise no_results(file, "measurements.file must be the name of a file beside it")
    path = file.parent / name
    try:
        content = path.read_bytes()
    except (OSError, ValueError):  # a NUL byte
        why = f"{file.name} has its measurements there"
        raise AuditorError(f"{path}: no such file; {why}") from None
    if hashlib.sha256(content).hexdigest() != beside.get("sha256"):
        why = f"{file.name} was written with (its checksum differs)"
        raise AuditorError(f"{path}: not the table that {why}")
    try:
        table = from_parquet(content)
    except ValueError as error:
        raise no_results(path, str(error)) from None
    for field, hint in get_type_hints(Measurement, include_extras=True).items():
        column = table.columns[field]
        values = column[~np.isnan(column)].tolist() if field in NUMBERS else column.values
        column_type: Any = list.__class_getitem__(hint)
        try:
            TypeAdapter(column_type).validate_python(values, strict=True)
        except ValidationError as error:
            raise no_results(path, f"{field} {expected_by(error.errors()[0])}") from None
    return table


def _parsed(file: Path) -> Any:
    def refuse(constant: str) -> None:
        raise AuditorError(
            f"{file}: {constant} is not JSON; a figure that was not measured is null"
        )

    try:
        return json.loads(file.read_text(encoding="utf-8"), parse_constant=refuse)
    except FileNotFoundError:
        raise AuditorError(f"{file}: no such file; expected the results.json of an audit") from None
    except json.JSONDecodeError as error:
        raise AuditorError(
            f"{file}:{error.lineno}:{error.colno}: cannot be read as JSON results ({error.msg})"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        why = type(error).__name__
        raise AuditorError(f"{file}: cannot be read as JSON results ({why})") from None
