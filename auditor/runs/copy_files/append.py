"""Append later batches of records to a release folder."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from auditor.base import AuditorError, quoted
from auditor.base.types import Array, Names, Options
from auditor.data.formats.release_folder import batches_of, check_free, reopened
from auditor.data.load import file_keys, read_columns
from auditor.data.microdata import batch_notes, is_other_table, refuse_repeats
from auditor.data.table import Table
from auditor.process.containment import plugin_errors
from auditor.runs.arguments import make_plugin
from auditor.runs.copy_files.draw import Asked, Blank, Treatment
from auditor.runs.copy_files.write import warn_owner, write_batch
from auditor.schemes.base.scheme import Scheme, table_moments
from auditor.schemes.draw import check_takes_batches
from auditor.schemes.replacement.base import UniformScheme

OF_THE_RELEASE = ("attributes", "precision", "law")
"""Entries of the first batch that hold for all."""
GIVE = "give the originals of every batch as they were, in order"


def append_copies(
    data: str,
    folder: Path,
    earlier: Names,
    seed: int | None = None,
    missing: Blank = "refuse",
    forms: Mapping[str, str] | None = None,
    key: str | None = None,
    repeats: bool = False,
) -> list[Path]:
    """Write the copies of a later batch of records; return their paths.

    ``earlier`` are the originals of every released batch, in order; the first one's moments scale
    the noise. ``key`` identifies records in all files; ``repeats`` perturbs released records again.
    The release states scheme, levels, columns and treatment.

    Warns
    -----
    AuditorWarning
        As ``write_copies``; released records; columns of a variance far from the first batch's.

    Raises
    ------
    AuditorError
        The folder holds no release, ``earlier`` are not its originals, or the batch is invalid.
    """
    with reopened(folder) as manifest:
        with plugin_errors():
            scheme: Scheme = make_plugin("scheme", manifest["scheme"], manifest["parameters"])
        check_takes_batches(scheme)
        if key is not None:
            new = file_keys(key, data)
            out = np.any([new.places_in(file_keys(key, path)) >= 0 for path in earlier], axis=0)
            refuse_repeats(int(out.sum()), len(new.cells), "key", repeats, "say --repeats")
        done = manifest.get("post_processing") or {}
        if "unit" in done:
            raise AuditorError(
                f"the release has one noise per unit of {quoted(done['unit'])}, which no later batch knows; release the records anew"
            )
        clips = done.get("clip", {}).items()
        bounds = {"" if name == "*" else name: (low, high) for name, (low, high) in clips}
        step = done.get("round")
        asked = Asked(
            data,
            manifest["attributes"],
            None,
            manifest["levels"],
            seed,
            manifest["precision"],
            Treatment(missing, step is not None, bounds, forms or {}, step),
        )
        tables = _tables_before(scheme, asked, earlier, folder, manifest)
        records = sum(table.rows for table in tables)
        if isinstance(scheme, UniformScheme):
            scheme = scheme.over(tables[0])  # values are replaced as in the first batch
            domains = {attribute.name: attribute.labels for attribute in tables[0].attributes}
            asked = replace(asked, earlier=records, domains=domains)
        else:
            scale, past = table_moments(tables[0]), _past(scheme, tables, folder, manifest)
            asked = replace(asked, earlier=records, scale=scale, past=past)
            warn_owner(batch_notes(tables, asked.numbers()[1], np.diag(scale.covariance)))
        batch = len(tables) + 1
        names = map(Path, manifest["copies"])
        paths = [folder / f"{name.stem}-batch-{batch}{name.suffix}" for name in names]
        check_free(folder, paths)

        def with_batch(stated: Options) -> Options:
            own = {name: value for name, value in stated.items() if name not in OF_THE_RELEASE}
            return {**manifest, "later_batches": [*manifest.get("later_batches", []), own]}

        return write_batch(scheme, asked, paths, manifest.get("kept", []), with_batch)


def _tables_before(
    scheme: Scheme, asked: Asked, earlier: Names, folder: Path, manifest: Options
) -> list[Any]:
    out, tables = batches_of(manifest), list[Any]()
    if len(earlier) != len(out):
        wanted = f"{len(out)}; got {len(earlier)}"
        raise AuditorError(
            f"{folder}: name the originals of each batch that is out, in order, each by --earlier FILE: {wanted}"
        )
    for path, part in zip(earlier, out, strict=True):
        one = replace(asked, data=path, treatment=replace(asked.treatment, missing=part["missing"]))
        if scheme.engine == "categorical":
            blanks = part["missing"] == "keep"
            table: Any = one.categories(blanks)
        else:  # later columns need not vary
            scale = table_moments(tables[0]) if tables else None
            table = replace(one, scale=scale).numbers()[1]
        if table.rows != part["rows"]:
            raise AuditorError(
                f"{path}: has {table.rows:,} records, and {part['rows']:,} of its batch are out; {GIVE}"
            )
        if is_other_table(part, table):
            raise AuditorError(
                f"{path}: cannot be what {part['copies'][0]} is of: its records have other values, or another order; {GIVE}"
            )
        tables.append(table)
    return tables


def _past(
    scheme: Scheme, tables: Sequence[Table], folder: Path, manifest: Options
) -> tuple[Array, ...]:
    law = scheme.law(manifest["levels"], table_moments(tables[0]))
    if law is None or law.serial is None:
        return ()
    last, table = batches_of(manifest)[-1], tables[-1]
    if last.get("post_processing") or last["missing"] == "keep":
        raise AuditorError(
            f"{folder}: noise that follows on cannot go on from copies that were rounded, clipped or blanked"
        )
    start, names = max(0, table.rows - law.serial.order), list(table.attributes)
    copies = (
        read_columns(str(folder / name), names).to_numpy(float)[start:] for name in last["copies"]
    )
    return (table.read(start, table.rows), *copies)
