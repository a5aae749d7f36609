"""Reading of a `Scenario` from a file, a mapping or a shipped name."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from pathlib import Path as FilePath
from typing import Any

from auditor.base.errors import AuditorError, ScenarioError, did_you_mean, shortened
from auditor.base.text import clean
from auditor.data.formats import file_kinds
from auditor.process.shipped import shipped_scenarios
from auditor.registry.field_paths import parse_path
from auditor.results.files import located
from auditor.scenario.model import FIELDS, Scenario
from auditor.scenario.problems import Problems, plain
from auditor.scenario.sections import assemble, at_point, check_points
from auditor.scenario.yaml_document import Places, load_file, put

__all__ = ["Source", "at_point", "find_scenario", "read_scenario", "rebuild"]

Source = str | os.PathLike[str] | Mapping[str, Any] | Scenario


def read_scenario(
    source: Source, overrides: Iterable[tuple[str, Any]] = (), seed: int | None = None
) -> Scenario:
    """Return the checked scenario.

    Parameters
    ----------
    source : path, mapping or Scenario
        A YAML file, the name of a shipped scenario (with or without ``.yaml``), or plain values.
    overrides : iterable of (str, value)
        Changes before any check, as ``("data.rows", 1000)``.
    seed : int, optional
        Replaces the scenario's seed.

    Raises
    ------
    ScenarioError
        All errors, each with file, line, column and field.
    AuditorError
        The file does not exist, or an override's path is invalid.
    """
    value, name, base, places = _open(source)
    changes = [*overrides, *([("seed", seed)] if seed is not None else [])]
    value, changed = put(value, [(parse_path(path), plain(new)) for path, new in changes])
    places = replace(places, changed=(*places.changed, *changed))
    return _checked(value, base, name, places)


def _open(source: Source) -> tuple[Any, str, FilePath | None, Places]:
    if isinstance(source, Scenario):
        return source.document, source.name, source.base, source.places
    if isinstance(source, Mapping):
        return plain(source), "audit", None, Places()
    if not isinstance(source, (str, os.PathLike)):
        raise AuditorError(
            f"a scenario is a path, a name, a mapping or a Scenario; got {type(source).__name__}"
        )
    path = find_scenario(source)
    if path.stem in (".", ".."):
        raise AuditorError(
            f"{path}: results go to a folder named after the file, which must not be {path.stem!r}; rename the file"
        )
    check_no_table(path)
    document = load_file(path)
    return document.value, path.stem, path.parent, Places(document)


def rebuild(document: dict[str, Any], base: FilePath | None, name: str) -> Scenario:
    """Return a scenario from a checked document, as a worker receives it.

    Raises
    ------
    ScenarioError
        A plugin or file is missing on the worker's machine.
    """
    return _checked(document, base, name, Places())


def _checked(value: Any, base: FilePath | None, name: str, places: Places) -> Scenario:
    problems = Problems()
    scenario = assemble(value, problems, base, name)
    check_points(scenario, problems)
    if problems.found:
        raise ScenarioError(places.located(problems.found))
    return replace(scenario, places=places)


def find_scenario(name: str | os.PathLike[str]) -> FilePath:
    """Return the path of a scenario file, or of a shipped scenario.

    Raises
    ------
    AuditorError
        Neither exists.
    """
    path = FilePath(name)
    if there := located(str(name)):
        return there[0]
    shipped = {item.stem: item for item in shipped_scenarios()}
    if (
        path.parent in (FilePath(), FilePath("scenarios"))
        and path.name.removesuffix(".yaml") in shipped
    ):
        return shipped[path.name.removesuffix(".yaml")]
    raise AuditorError(
        f"{shortened(clean(path), 100)}: no such scenario file{did_you_mean(path.stem, shipped)}"
    )


SUFFIXES = tuple(
    ".csv .tsv .tab .parquet .feather .arrow .orc .avro .xls .xlsx .xlsm .xlsb .ods .numbers .dta .sav "
    ".sas7bdat .xpt .rds .rdata .npy .npz .h5 .hdf5 .mat .pkl .pickle .db .sqlite .sqlite3 .mdb .accdb "
    ".jsonl .ndjson .zip .gz .bz2 .xz .zst .7z .tar".split()
)
LOOKED_AT = 2**20
"""Bytes of the file's start to read; scenarios are smaller."""

_FIELD = re.compile(rf"""^[\s{{,]*["']?({"|".join(FIELDS)})["']?\s*:(?!\S)""", re.MULTILINE)
"""A scenario field at the start of a line; JSON may be on one line."""
_JSON_FIELD = re.compile(rf"""^\s*{{.*["']({"|".join(FIELDS)})["']\s*:""", re.DOTALL)


def check_no_table(path: Path) -> None:
    """Refuse a table or any other file without scenario fields, with advice.

    The message quotes nothing. Unreadable files and other encodings pass; the reader reports them.

    Raises
    ------
    AuditorError
        The file is not a scenario.
    """
    file = shortened(str(path), 100)
    if _is_readable(path):
        command = f"auditor new audit.yaml --data {shlex.quote(str(path) + '/' * path.is_dir())}"
        raise AuditorError(
            f"{file}: is a table, not a scenario; `{command}` makes a scenario of it"
        )
    remedy = "`auditor new audit.yaml` writes a scenario to start from, and its data: source names the table"
    if path.suffix.lower() in SUFFIXES and path.is_file():
        raise AuditorError(f"{file}: is a table, not a scenario; {remedy}")
    try:
        with path.open("rb") as stream:
            start = stream.read(LOOKED_AT)
    except (OSError, ValueError):
        return
    if b"\0" in start and not start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise AuditorError(f"{file}: is not text, so no scenario; {remedy}")
    text = start.decode("utf-8", "replace").removeprefix("\ufeff")
    content = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    if (
        content.strip()
        and not start.startswith((b"\xff\xfe", b"\xfe\xff"))
        and not (_FIELD.search(content) or _JSON_FIELD.search(content))
    ):
        raise AuditorError(
            f"{file}: is no scenario: none of its lines begins with a field of one, as `data:` or `schemes:`; {remedy}"
        )


def _is_readable(path: Path) -> bool:
    if path.is_dir():
        try:
            return any(
                inside.suffix.lower() in file_kinds.SUFFIXES
                for inside in path.iterdir()
                if inside.is_file()
            )
        except OSError:
            return False
    return path.suffix.lower() in file_kinds.SUFFIXES and path.is_file()
