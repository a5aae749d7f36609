"""Write releases and later batches of records to folders.

No file in a folder helps a recipient to undo the noise. Not even the moments that scale it are
there, as an exact covariance reveals the last record to an adversary who knows all others.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np

from auditor.base import AuditorError, AuditorWarning, listed, pd, quoted
from auditor.base.types import Levels, Names, Options, Plain
from auditor.data.describe import grouped_by
from auditor.data.formats.parts import whole_frame
from auditor.data.formats.release_folder import COPY, MANIFEST, read_manifest, taken, write_release
from auditor.data.load import (
    InStep,
    blank_cells,
    column_names,
    file_notes,
    kept_columns,
    load_table,
    raw_columns,
)
from auditor.data.table import Bounds, DataUse, is_file
from auditor.numerics.random_streams import stream
from auditor.process.containment import plugin_errors
from auditor.process.environment import version
from auditor.results.files import located
from auditor.results.table_register import key_name, register_release
from auditor.runs.arguments import checked_levels, make_plugin, parsed_levels, sized_by
from auditor.runs.copy_files.draw import (
    AS_DRAWN,
    Asked,
    Parts,
    Precision,
    Scheme,
    Treatment,
    drawn_copies,
)
from auditor.schemes.divisible_noise import ProcessScheme


def write_copies(
    data: str,
    scheme: str,
    levels: Levels | Mapping[str, Sequence[float]],
    seed: int | None,
    output: Path,
    columns: Names | None = None,
    rows: int | None = None,
    parameters: Options | None = None,
    form: str | None = None,
    precision: Precision = "double",
    keep: Names | Literal["rest"] = (),
    treatment: Treatment = AS_DRAWN,
    force: bool = False,
    bounds: Bounds = MappingProxyType({}),
) -> list[Path]:
    """Write ``copy-1``, ``copy-2`` … and a manifest; return their paths.

    Parameters
    ----------
    data : str
        A registered source, or a path to a file of data.
    scheme, levels, seed, parameters, bounds
        As for ``auditor.perturb``; the manifest holds neither seed nor key.
    output : Path
        Folder, made if missing. Only its owner can read copies.
    form : 'csv' or 'parquet', optional
        By default Parquet for data in Parquet, else csv (UTF-8, commas, decimal points).
    precision : 'double' or 'single'
        Numbers of 64 or 32 bits.
    keep : sequence of str or 'rest'
        Columns to copy **unchanged**; ``rest``: all that are not perturbed.
    force : bool
        Whether to replace a release in the folder.

    Warns
    -----
    AuditorWarning
        Omitted columns, blanks, rounding and bounds; an earlier release of these columns; one lost
        by ``force``.

    Raises
    ------
    AuditorError
        Data, scheme, levels or folder cannot be used; the folder holds the data or another release;
        or single precision would round a copy by more than a thousandth of its noise.

    Notes
    -----
    Data are streamed in blocks of two megabytes per copy, categories of 65,536 records. A table is
    in memory if the scheme needs all of it, for dates, or if categories keep blanks.
    """
    parameters = dict(parameters or {})
    if isinstance(levels, Mapping):
        ((currency, stated),) = levels.items()
        if not all(one > 0 for one in stated):
            raise AuditorError(f"--{currency} must be numbers above 0")
        columns = list(bounds) if columns is None else list(columns)
        if sorted(columns) != sorted(bounds):
            raise AuditorError(
                "--columns and --bounds must name the same columns; leave --columns out"
            )
        bounds = {name: bounds[name] for name in columns}
        given = parsed_levels(levels)
        sized = make_plugin("scheme", scheme, sized_by(given, scheme, parameters))
        levels = checked_levels(given, seed, sized, bounds)
        squares = [(high - low) ** 2 for low, high in bounds.values()]
        # the noise does not depend on the table
        parameters["noise"] = (
            {"variances": squares}
            if isinstance(sized, ProcessScheme)
            else {"matrix": np.diag(squares).tolist()}
        )
        missing = "drop" if treatment.missing == "keep" else treatment.missing
        use = DataUse.model_construct(
            source=data, columns=columns, rows=rows, missing=missing, bounds=bounds
        )
        table = load_table(use, stream(0, "data"))
        if table.blanks is not None and table.blanks.any():
            raise AuditorError(
                f"--{currency} is not kept by --missing mean: one record also moves each of "
                f"{int(table.blanks.sum()):,} filled cells; drop the records, or state --levels and audit them"
            )
    parquet = (
        path.suffix.lower() == ".parquet" or (path.is_dir() and any(path.glob("*.parquet")))
        for path in located(data)
    )
    kind = form or ("parquet" if any(parquet) else "csv")
    paths = [output / f"copy-{k}.{kind}" for k in range(1, len(levels) + 1)]
    _check_room(data, output, paths)
    columns, kept = _selection(data, columns, keep)
    with plugin_errors():
        chosen: Scheme = make_plugin("scheme", scheme, parameters)
    head = {
        "schema_version": 2,
        "auditor": version("auditor"),
        "scheme": chosen.name,
        "parameters": chosen.parameters.model_dump(mode="json", by_alias=True),
        "levels": list(levels),
    }
    asked = Asked(data, columns, rows, list(levels), seed, precision, treatment)
    with taken(output):
        replaced = _earlier_copies(output, force)
        return write_batch(chosen, asked, paths, kept, lambda stated: head | stated, replaced)


def _earlier_copies(folder: Path, force: bool) -> set[str]:
    found = {path.name for path in folder.glob("copy-*") if COPY.fullmatch(path.name)}
    manifest = read_manifest(folder)
    if not found and not (folder / MANIFEST).exists():
        return set()
    what = f"{min(found | {MANIFEST})} of another release"
    if manifest is not None:
        levels = ", ".join(f"{level:g}" for level in manifest.get("levels", ()))
        what = f"a release of {manifest.get('rows')} records ({manifest.get('scheme')}, levels {levels})"
    if not force:
        instead = (
            "extend that release, choose another folder with --output, or replace it with --force"
        )
        raise AuditorError(
            f"{folder}: holds {what}, and a second one would average out with it; {instead}"
        )
    lost = "it can no longer be extended or appended to, and whoever has its copies can average them with the new ones"
    warn_owner([f"{folder}: {what} is lost: {lost}"])
    return found


def _check_room(data: str, output: Path, paths: Sequence[Path]) -> None:
    source = next((path.resolve() for path in located(data)), None) if is_file(data) else None
    if source is not None and source == output.resolve():
        raise AuditorError(
            f"{output}: is the folder of the data: copies would be taken for parts of it; choose another with --output"
        )
    if source in [path.resolve() for path in paths]:
        raise AuditorError(
            f"{Path(data).name}: is the data itself, and a copy would be written over it; choose another folder with --output"
        )


def _selection(
    data: str, columns: Names | None, keep: Names | Literal["rest"]
) -> tuple[Names | None, list[str]]:
    if not keep:
        return columns, []
    if keep == "rest" and columns is None:
        raise AuditorError("to keep the rest, name the columns to perturb with --columns")
    names, perturbed = column_names(data), set(columns or ())
    rest = [name for name in names if name not in perturbed]
    wanted = rest if keep == "rest" else list(dict.fromkeys(keep))
    if both := [name for name in wanted if name in perturbed]:
        raise AuditorError(
            f"column {both[0]!r} is to be perturbed and kept unchanged; one of the two"
        )
    if not all(wanted):
        raise AuditorError("the rest has a column without a name; name the columns to keep")
    if columns is None:
        columns = [name for name in names if name not in wanted]
    return columns, wanted


# -- one batch of records --------------------------------------------------------------------------

LOOKED_AT = 20_000
"""Records of a batch that are compared with their copies."""


def write_batch(
    scheme: Scheme,
    asked: Asked,
    paths: Sequence[Path],
    keep: Names,
    manifest: Callable[[Plain], Options],
    replaced: Iterable[str] = (),
) -> list[Path]:
    """Draw and write one batch of records; return the paths of its files.

    ``manifest`` completes the batch's facts.
    """
    treatment, names = asked.treatment, column_names(asked.data) if is_file(asked.data) else []
    warn_owner(file_notes(asked.data))
    with plugin_errors():
        treatment.check(scheme)
        drawn = drawn_copies(scheme, asked)
    parts, perturbed = _contained(drawn.parts), drawn.stated["attributes"]
    if keep:
        blank = blank_cells(asked.raw()) if treatment.missing == "drop" else None
        parts = beside_kept(parts, kept_columns(asked.data, keep, asked.rows, blank), names)

    def whole() -> Options:
        return manifest(
            {
                **drawn.stated,
                **({"kept": list(keep)} if keep else {}),
                "precision": asked.precision,
                "missing": treatment.missing,
                "for_study_only": asked.seed is not None,
                "copies": [path.name for path in paths],
                "fingerprint": drawn.prints.of_table(),
                "fingerprint_key": key_name(),
            }
        )

    stated = write_release(paths[0].parent, paths, parts, whole, replaced)
    notes, left = list(drawn.notes), [name for name in names if name not in {*perturbed, *keep}]
    if left:
        notes.append(
            f"left out: {listed(left)}; only columns that are perturbed, or named to be kept, are in the copies"
        )
    if keep:
        pieces = raw_columns(asked.data, [*keep, *perturbed]).pieces
        frame = whole_frame(
            pieces[:1], [*keep, *perturbed], min(LOOKED_AT, asked.rows or LOOKED_AT)
        )
        notes += [
            f"column {quoted(key)} is kept, and within its groups {quoted(name)} has {share:.0%} of its variance: "
            "means over a group average the noise out, and the group itself tells of the value; "
            f"leave it out, or say --unit {key} if it names households or persons"
            for key, name, share in grouped_by(frame[list(keep)], frame[list(perturbed)])
            if key != treatment.unit
        ]
    if asked.seed is None:
        notes += register_release(drawn.prints, paths[0].parent)
    warn_owner(notes)
    return [*paths, stated]


def warn_owner(notes: Iterable[str]) -> None:
    """Warn the caller of the public function."""
    for note in notes:
        warnings.warn(AuditorWarning(note), stacklevel=4)


def _contained(parts: Parts) -> Parts:
    while True:
        with plugin_errors():
            part = next(parts, None)
        if part is None:
            return
        yield part


def beside_kept(parts: Parts, kept: InStep, order: Names) -> Parts:
    """Yield copies with the kept columns in the file's order, new columns last."""
    for copies in parts:
        unchanged = kept.take(len(copies[0]))
        if twice := set(unchanged) & set(copies[0]):
            raise AuditorError(
                f"a copy has a column {min(map(str, twice))!r} of its own; keep the other under another name"
            )
        names = [*unchanged, *copies[0]]
        names.sort(key=lambda name: order.index(name) if name in order else len(order))
        yield [
            pd.concat([unchanged, copy.reset_index(drop=True)], axis=1)[names] for copy in copies
        ]
    kept.finish()
