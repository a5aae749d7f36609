"""Copies of records that arrive later, as files beside those of a release: nothing that is out is written or drawn again.

A batch needs no secret and no noise of those before it. What noise is scaled to is found again in
the originals of the first batch, which their owner has anyway: it is in no file, as an exact
covariance would tell the last record to whoever knows all others.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from auditor.data import arrivals
from auditor.data.alignment import misaligned
from auditor.data.columns.categorical_table import CategoricalTable
from auditor.data.columns.record_keys import RecordKeys, record_keys
from auditor.data.formats.parts import column_as_written
from auditor.data.formats.release_folder import (
    MANIFEST,
    batches_of,
    check_free,
    read_manifest,
    taken,
)
from auditor.data.load import file_pieces
from auditor.data.table import Table
from auditor.errors import AuditorError, AuditorWarning
from auditor.process.containment import plugin_errors
from auditor.process.deferred import pd
from auditor.runs.copy_files import copy_columns, written
from auditor.runs.drawn_copies import Asked, Earlier
from auditor.runs.finished_copies import Blank, Treatment
from auditor.runs.perturb import make_plugin
from auditor.schemes.base.scheme import Scheme, table_moments
from auditor.schemes.draw import check_takes_batches
from auditor.schemes.replacement.base import UniformScheme
from auditor.types import Array

ONE_BATCH = (
    "rows",
    "grid",
    "post_processing",
    "kept",
    "missing",
    "for_study_only",
    "copies",
    "fingerprint",
    "fingerprint_key",
)
"""What a manifest states of a later batch by itself; scheme, levels, columns and precision are
those of the first."""

GIVE = "give the originals of every batch as they were, in order"
LOOKED_AT = 20_000
"""Records of a batch that are compared with their copies."""
NEEDED = ("scheme", "parameters", "levels", "attributes", "rows", "precision", "missing", "copies")


def append_copies(
    data: str,
    folder: Path,
    earlier: Sequence[str],
    seed: int | None = None,
    missing: Blank = "refuse",
    forms: Mapping[str, str] | None = None,
    key: str | None = None,
    repeats: bool = False,
) -> list[Path]:
    """Perturb records that arrived later, and write their copies beside those of a release; return the paths written.

    Parameters
    ----------
    data : str
        A path to a file with the new records: the columns that the release perturbs, and those that
        it keeps.
    folder : Path
        Of the release, as ``write_copies`` or this has left it. Scheme, levels, columns and what is
        done to copies are taken from it.
    earlier : sequence of str
        Paths to the originals of every batch that is out, in order; the first one's moments are
        what noise is scaled to.
    seed : int, optional
        For studies only, as for ``write_copies``.
    missing, forms
        What is done about blank cells of the new records, and how text holds dates; see
        ``Treatment``.
    key : str, optional
        A column that identifies records, in ``data`` and in all of ``earlier``.
    repeats : bool
        Whether records whose key is out already are perturbed again, rather than refused.

    Warns
    -----
    AuditorWarning
        Records that are out already; columns whose variance is far from the first batch's; and what
        ``write_copies`` warns of.

    Raises
    ------
    AuditorError
        The folder holds no release, ``earlier`` is not what was released, or the batch cannot be
        used.
    """
    if not folder.is_dir():
        raise _no_release(folder)
    with taken(folder):
        return _append(data, folder, earlier, seed, missing, forms or {}, key, repeats)


def _append(
    data: str,
    folder: Path,
    earlier: Sequence[str],
    seed: int | None,
    missing: Blank,
    forms: Mapping[str, str],
    key: str | None,
    repeats: bool,
) -> list[Path]:
    manifest = _read(folder)
    with plugin_errors():
        scheme: Scheme = make_plugin("scheme", manifest["scheme"], manifest["parameters"])
    check_takes_batches(scheme)
    if key is not None:
        _check_keys(key, data, earlier, repeats)
    treatment = _treatment(manifest, missing, forms)
    asked = Asked(
        data,
        manifest["attributes"],
        None,
        manifest["levels"],
        seed,
        manifest["precision"],
        treatment,
    )
    tables = _tables_before(scheme, asked, earlier, folder, manifest)
    asked = replace(asked, earlier=_earlier(tables, _past(scheme, tables, folder, manifest)))
    if isinstance(scheme, UniformScheme):
        scheme = scheme.over(tables[0])  # replacements stay those of the first batch
    if asked.earlier.scale is not None:
        for note in arrivals.notes(
            tables, asked.numbers()[1], np.diag(asked.earlier.scale.covariance)
        ):
            warnings.warn(AuditorWarning(note), stacklevel=3)
    paths = _paths(folder, manifest)
    check_free(folder, paths)

    def with_batch(stated: Mapping[str, Any]) -> Mapping[str, Any]:
        later = [
            *manifest.get("later_batches", []),
            {name: stated[name] for name in ONE_BATCH if name in stated},
        ]
        return {**manifest, "later_batches": later}

    return written(scheme, asked, paths, manifest.get("kept", []), with_batch)


def _tables_before(
    scheme: Scheme, asked: Asked, earlier: Sequence[str], folder: Path, manifest: Mapping[str, Any]
) -> list[Any]:
    """Return the originals of every batch that is out, of numbers or of categories.

    Raises
    ------
    AuditorError
        They are not what was released.
    """
    out, categorical = batches_of(manifest), scheme.engine == "categorical"
    if len(earlier) != len(out):
        wanted = f"{len(out)}; got {len(earlier)}"
        raise AuditorError(
            f"{folder}: name the originals of each batch that is out, in order, each by --earlier FILE: {wanted}"
        )
    given = zip(earlier, out, strict=True)
    before = [
        replace(asked, data=path, treatment=replace(asked.treatment, missing=part["missing"]))
        for path, part in given
    ]
    tables: list[Any] = [part.categories() for part in before] if categorical else _numbers(before)
    least = int(np.argmin(manifest["levels"]))
    for path, table, part in zip(earlier, tables, out, strict=True):
        if table.rows != part["rows"]:
            raise AuditorError(
                f"{path}: has {table.rows:,} records, and {part['rows']:,} of its batch are out; {GIVE}"
            )
        if not (categorical or part.get("post_processing") or part["missing"] == "keep"):
            _check_related(path, table, folder / part["copies"][least])
    return tables


def _paths(folder: Path, manifest: Mapping[str, Any]) -> list[Path]:
    """Return the paths of a batch's copies, each beside the copy of the first batch."""
    batch = len(batches_of(manifest)) + 1
    return [
        folder / f"{Path(name).stem}-batch-{batch}{Path(name).suffix}"
        for name in manifest["copies"]
    ]


def _read(folder: Path) -> dict[str, Any]:
    try:
        manifest = read_manifest(folder) or {}
        for part in batches_of(manifest):
            _ = [part[name] for name in ("rows", "missing", "copies")]
        return {**manifest, **{name: manifest[name] for name in NEEDED}}
    except (LookupError, TypeError):
        raise _no_release(folder) from None


def _no_release(folder: Path) -> AuditorError:
    return AuditorError(
        f"{folder}: holds no release that records can be appended to; expected {MANIFEST} as `auditor perturb` writes it"
    )


def _treatment(manifest: Mapping[str, Any], missing: Blank, forms: Mapping[str, str]) -> Treatment:
    """Return what is done to a later batch's copies: what was done to the first one's, to the same steps."""
    done = manifest.get("post_processing") or {}
    bounds = {
        "" if name == "*" else name: (pair[0], pair[1])
        for name, pair in done.get("clip", {}).items()
    }
    return Treatment(missing, "round" in done, bounds, forms, done.get("round"))


def _check_related(path: str, table: Table, copy: Path) -> None:
    """Refuse originals that a copy cannot be of, whatever the noise, if it is still there; a few changed cells are not seen."""
    if not copy.exists():
        return
    rows = min(table.rows, LOOKED_AT)
    try:
        released = copy_columns(copy, list(table.attributes)).to_numpy(dtype=np.float64)[:rows]
    except (OSError, ValueError, LookupError):
        released = np.empty((0, table.width))
    if len(released) != rows:
        raise AuditorError(f"{copy}: is not as it was written")
    found = misaligned(table.read(0, rows), released, table.attributes)
    if found is not None and found.certain:
        raise AuditorError(
            f"{path}: cannot be what {copy.name} is of, whose rows {found.cause}; {GIVE}"
        )


def _numbers(before: Sequence[Asked]) -> list[Table]:
    """Return the tables of every batch that is out; only in the first must every column vary."""
    first = before[0].numbers()[1]
    followed = Earlier(scale=table_moments(first))
    return [first, *(replace(part, earlier=followed).numbers()[1] for part in before[1:])]


def _past(
    scheme: Scheme, tables: Sequence[Any], folder: Path, manifest: Mapping[str, Any]
) -> tuple[Array, ...]:
    """Return the last records that are out and their copies, where noise follows on from record to record; else nothing.

    Raises
    ------
    AuditorError
        What was added to these records cannot be told, as the copies were changed since.
    """
    law = (
        None
        if scheme.engine == "categorical"
        else scheme.law(manifest["levels"], table_moments(tables[0]))
    )
    if law is None or law.serial is None:
        return ()
    last, table = batches_of(manifest)[-1], tables[-1]
    if last.get("post_processing") or last["missing"] == "keep":
        raise AuditorError(
            f"{folder}: noise that follows on cannot go on from copies that were rounded, clipped or blanked"
        )
    start = max(0, table.rows - law.serial.order)
    copies = (
        copy_columns(folder / name, list(table.attributes)).to_numpy(dtype=np.float64)[start:]
        for name in last["copies"]
    )
    return (table.read(start, table.rows), *copies)


def _earlier(tables: Sequence[Any], past: tuple[Array, ...]) -> Earlier:
    """Return what a batch has from those before it."""
    records, first = sum(table.rows for table in tables), tables[0]
    if isinstance(first, CategoricalTable):
        return Earlier(
            records, domains={attribute.name: attribute.labels for attribute in first.attributes}
        )
    return Earlier(records, table_moments(first), past=past)


def _check_keys(key: str, data: str, earlier: Sequence[str], allowed: bool) -> None:
    """Refuse records that are out already, by their keys; see ``arrivals.refuse_repeats``."""
    new = _keys(key, data)
    out = np.any([new.places_in(_keys(key, path)) >= 0 for path in earlier], axis=0)
    arrivals.refuse_repeats(int(out.sum()), len(new.cells), "key", allowed, "say --repeats")


def _keys(key: str, data: str) -> RecordKeys:
    _, pieces = file_pieces(data, [key], None)
    return record_keys(key, pd.Series(column_as_written(pieces, key), dtype=object))
