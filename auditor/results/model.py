"""Results of an audit: frozen and versioned records, written and read.

Renderers read only this module. Results hold aggregates, never an original value. Figures are
exact in memory; `AuditResult.disclosed` rounds all output.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from pydantic import Field, PlainSerializer, PlainValidator, TypeAdapter, ValidationError
from pydantic_core import to_json

from auditor import registry
from auditor.base import clean, escaped
from auditor.results import measurements, storage
from auditor.results.disclosure import disclosed
from auditor.results.files import write_atomically
from auditor.results.measurements import Measurements
from auditor.results.records import (
    SCHEMA_VERSION,
    SCHEMA_VERSION_BESIDE,
    DataSummary,
    Distribution,
    ExpectationRecord,
    Measurement,
    Picture,
    Record,
    Remedy,
)

if TYPE_CHECKING:
    import pandas as pd


import json
import re
from functools import cache
from importlib.resources import files

STOPPED = {"SIGINT": 130, "SIGTERM": 143}
"""Exit status by signal: 128 plus its number, as in shells."""

MOST_IN_JSON = 4_000_000
"""Values of measurements in ``results.json``: about 200,000 measurements, or fewer that name
hundreds of copies each. Larger tables are in ``results.parquet`` only, at about 40 bytes a
measurement."""
TABLE = "results.parquet"
ROWS_AT_ONCE = 4_096
"""Rows in memory as text."""

HEAD = {
    "scenario",
    "provenance",
    "data",
    "releases",
    "plugins",
    "references",
    "attack_kinds",
    "untried",
    "left_out",
}
"""Fields written unchanged, before the long lists."""


class SchemeSummary(Record):
    """One scheme at one sweep point, with its release and stated law."""

    sweep: dict[str, Any]
    scheme: str
    plugin: str
    levels: list[float]
    summary: str
    claims: str
    notes: list[str] = Field(
        default_factory=list, description="notes on excluded records and columns"
    )
    understated: bool = Field(
        False, description="whether some of these are less perturbed than the audited ones"
    )
    remedy: Remedy | None = Field(
        None, description="change that would leave half unknown; None if half is"
    )


class PluginSummary(Record):
    """Description of an attack or a scheme for reports."""

    kind: str
    id: str
    name: str
    summary: str
    assumes: str = ""
    wins: str = ""
    reference: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)


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
    scenario: dict[str, Any]
    provenance: Provenance
    data: list[DataSummary] = Field(default_factory=list)
    releases: list[SchemeSummary] = Field(default_factory=list)
    plugins: list[PluginSummary] = Field(default_factory=list)
    references: list[Reference] = Field(default_factory=list)
    expectations: list[ExpectationRecord]
    measurements: Annotated[
        Measurements,
        PlainValidator(_table),
        PlainSerializer(lambda table: [record._asdict() for record in table]),
    ]
    distributions: list[Distribution] = Field(default_factory=list)
    pictures: list[Picture] = Field(default_factory=list)
    attack_kinds: dict[str, str] = Field(
        default_factory=dict, description="kind of each attack, by name"
    )
    untried: list[str] = Field(
        default_factory=list, description="applicable attacks outside the scenario, by name"
    )
    left_out: list[str] = Field(default_factory=list, description="what the budget left out")
    partial: Partial | None = Field(
        None, description="progress of a stopped audit; None if complete"
    )

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

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Results with fields replaced, without validation."""
        changed = dict(update or {})
        if "measurements" in changed:
            changed["measurements"] = Measurements.of(changed["measurements"])
        return super().model_copy(update=changed, deep=deep)

    def frame(self) -> pd.DataFrame:
        """Tidy DataFrame, one row a measurement (`auditor.results.storage`)."""
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

    def _json(self, table: dict[str, Any] | None = None) -> Iterator[bytes]:
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
        held = np.array([len(held) for held in coalitions.values], dtype=np.intp)
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
        document = storage.read(file)
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            raise storage.no_results(file, error) from None
        except RecursionError:
            raise storage.no_results(file, "nested too deeply") from None


def _display() -> Any:
    return registry.get("renderer", "notebook")()


def _encoded(value: Any) -> bytes:
    return escaped(to_json(value, inf_nan_mode="null").decode()).encode()


# -- Papers that the workbench cites, by key (``bibliography.json``) -------------------------------


@cache
def _works() -> dict[str, str]:
    works: dict[str, str] = json.loads(
        files("auditor.results").joinpath("bibliography.json").read_text(encoding="utf-8")
    )
    return works


def keys() -> list[str]:
    """Every key, sorted."""
    return sorted(_works())


def text(key: str) -> str:
    """Reference of a key.

    Raises
    ------
    KeyError
        Unknown key.
    """
    return _works()[key]


def keys_in(reference: str) -> list[str]:
    """Keys in ``guo2006; liu2008, section 3.3``, in order."""
    return [key for key in re.findall(r"[a-z]+\d{4}", reference) if key in _works()]


def cited(references: list[str]) -> list[str]:
    """All keys in references such as ``li2012, eq. 6``, once each, sorted."""
    return sorted({key for reference in references for key in keys_in(reference)})
