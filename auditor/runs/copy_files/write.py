"""Write releases and later batches of records to folders.

No file in a folder helps a recipient to undo the noise. Not even the moments that scale it are
there, as an exact covariance reveals the last record to an adversary who knows all others.

Tables of a folder are written together or not at all. Copies have hidden names that end in the
command's edition, a random mark, until all are whole and the manifest names the edition. The next
command removes the files of a command stopped earlier, and finishes one stopped later.
"""

from __future__ import annotations

import io
import json
import os
import re
import secrets
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np

from auditor.base import AuditorError, AuditorWarning, listed, pa, pd, pq, quoted, without_formula
from auditor.base.types import Levels, Names, Options, Plain
from auditor.data.describe import grouped_by
from auditor.data.formats.parts import whole_frame
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
from auditor.results.files import located, lock_folder, publish, write_atomically, writing
from auditor.results.table_register import key_name, register_release
from auditor.runs.copy_files.draw import (
    AS_DRAWN,
    Asked,
    Parts,
    Precision,
    Scheme,
    Treatment,
    drawn_copies,
)
from auditor.scenario.arguments import checked_levels, make_plugin, parsed_levels, sized_by
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
    warn_owner(
        [
            f"{folder}: {what} is lost: it can no longer be extended or appended to, and whoever has its copies "
            "can average them with the new ones"
        ]
    )
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


# -- release folders: lock, manifest and files -----------------------------------------------------

MANIFEST = "release.json"
COPY = re.compile(r"copy-\d+(-batch-\d+)?\.(csv|parquet)")
HIDDEN = re.compile(rf"\.({COPY.pattern}|{re.escape(MANIFEST)})-([0-9a-f]{{8}})?\w{{8}}")
PATIENCE = 10.0
"""Seconds that a command waits for another one in the same folder."""


@contextmanager
def taken(folder: Path) -> Iterator[None]:
    """Lock a release folder; finish or remove files of a stopped command.

    A missing folder is made, and removed if it stays empty.

    Raises
    ------
    AuditorError
        Another command holds the folder, or it cannot be written.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    lock = lock_folder(folder, PATIENCE)
    try:
        _settle(folder)
        yield
    finally:
        try:
            _settle(folder)
            with suppress(OSError):  # not empty
                for path in missing:
                    path.rmdir()
        finally:
            if lock is not None:
                os.close(lock)


def _settle(folder: Path) -> None:
    with writing(folder):
        hidden = [found for path in folder.iterdir() if (found := HIDDEN.fullmatch(path.name))]
        edition = (read_manifest(folder) or {}).get("edition") if hidden else None
        for found in hidden:
            if found[4] is not None and found[4] == edition:
                publish(folder / found[0], folder / found[1], private=True)
            else:
                (folder / found[0]).unlink()


def read_manifest(folder: Path) -> Plain | None:
    """Manifest of a release; None if it cannot be read."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) else None


NEEDED = "scheme parameters levels attributes rows precision missing copies".split()
"""Entries of the manifest of a whole release."""
EACH = "rows missing copies".split()
"""Entries of every batch."""


@contextmanager
def reopened(folder: Path) -> Iterator[Plain]:
    """Lock the folder of a release; yield its manifest.

    Raises
    ------
    AuditorError
        There is no whole release.
    """
    if not folder.is_dir():
        raise no_release(folder)
    with taken(folder):
        manifest = read_manifest(folder) or {}
        parts = batches_of(manifest)
        if not {*NEEDED} <= {*manifest} or any(not {*EACH} <= {*part} for part in parts):
            raise no_release(folder)
        yield manifest


def no_release(folder: Path) -> AuditorError:
    """Error of a folder without a whole release."""
    return AuditorError(
        f"{folder}: holds no whole release of these columns, with {MANIFEST} and every copy it names"
    )


def batches_of(manifest: Options) -> list[Options]:
    """Entries of each batch of records; the manifest is the first."""
    return [manifest, *manifest.get("later_batches", [])]


def check_free(folder: Path, paths: Sequence[Path]) -> None:
    """Refuse to overwrite files that are not in the manifest.

    Raises
    ------
    AuditorError
        Naming one.
    """
    there = [path.name for path in paths if path.exists()]
    if there:
        raise AuditorError(
            f"{folder}: holds {there[0]}, which {MANIFEST} does not name; move it to another folder, or remove it"
        )


def write_release(
    folder: Path,
    paths: Sequence[Path],
    parts: Iterable[Sequence[pd.DataFrame]],
    manifest: Callable[[], Options],
    replaced: Iterable[str] = (),
) -> Path:
    """Write copies block by block, then the manifest; return its path.

    ``folder`` is ``taken``. ``manifest`` is called after the copies. ``replaced`` copies are
    removed once the new ones are whole.
    """
    edition = secrets.token_hex(4)

    def commit() -> None:
        text = json.dumps({**manifest(), "edition": edition}, indent=2, ensure_ascii=False) + "\n"
        for name in replaced:
            (folder / name).unlink(missing_ok=True)
        write_atomically(folder / MANIFEST, text.encode())

    with writing(folder), table_files(paths, edition, commit) as files:
        for part in parts:
            for file, copy in zip(files, part, strict=True):
                file.append(copy)
    return folder / MANIFEST


SUFFIXES = (".csv", ".parquet")
"""Formats of written files."""


@contextmanager
def table_files(
    paths: Sequence[Path], edition: str = "", commit: Callable[[], None] | None = None
) -> Iterator[list[_File]]:
    """Write several tables of equal columns in parallel.

    Files (mode 0600) get their names together, after a flush; an error leaves none. ``edition``
    marks temporary names. ``commit`` is called before renaming; a later error leaves the files.
    """
    temporary: list[Path] = []
    files: list[_File] = []
    try:
        for path in paths:
            descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-{edition}")
            temporary.append(Path(name))
            files.append(_File(descriptor, path.suffix))
        yield files
        for file in files:
            file.finish()
        whole = temporary
        if commit is not None:
            temporary = []
            commit()
        for made, path in zip(whole, paths, strict=True):
            publish(made, path, private=True)
        # new names survive a power cut
        descriptor = os.open(paths[0].parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    finally:
        for file in files:
            file.close()
        for made in temporary:
            made.unlink(missing_ok=True)


def _csv(frame: pd.DataFrame) -> bytes:
    """Records as CSV; pyarrow writes numbers nine times as fast as pandas."""
    from pyarrow import csv as pa_csv

    buffer = io.BytesIO()
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        types = [t.value_type if pa.types.is_dictionary(t) else t for t in table.schema.types]
        numbers = [pa.types.is_floating(t) or pa.types.is_integer(t) for t in types]
        text = [pa.types.is_string(t) or pa.types.is_large_string(t) for t in types]
        # a blank in a table of one column would be a blank line
        bare = len(types) > 1 or (numbers[0] and not table.column(0).null_count)
        if bare and all(np.logical_or(numbers, text)):
            options = pa_csv.WriteOptions(include_header=False, quoting_style="none")
            pa_csv.write_csv(table, buffer, options)
            return buffer.getvalue()
    except pa.ArrowException:  # mixed types, or a cell that needs quotation marks
        buffer = io.BytesIO()
    frame.to_csv(buffer, index=False, header=False, lineterminator="\n")
    return buffer.getvalue()


class _File:
    def __init__(self, descriptor: int, suffix: str) -> None:
        self._handle = os.fdopen(descriptor, "wb")
        self._is_parquet = suffix == ".parquet"
        self._begun = False
        self._writer: pq.ParquetWriter | None = None

    def append(self, frame: pd.DataFrame) -> None:
        if self._is_parquet:
            table = pa.Table.from_pandas(frame, preserve_index=False)
            # by default blocks of distinct numbers get dictionaries: five times the time, a quarter larger
            self._writer = self._writer or pq.ParquetWriter(
                self._handle, table.schema, dictionary_pagesize_limit=65_536
            )
            self._writer.write_table(table)
        else:
            if not self._begun:
                names = [without_formula(str(name)) for name in frame.columns]
                frame.head(0).to_csv(self._handle, index=False, header=names, lineterminator="\n")
            self._handle.write(_csv(frame))
            self._begun = True

    def finish(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._handle.flush()
        os.fsync(self._handle.fileno())
        self._handle.close()

    def close(self) -> None:
        if self._writer is not None:
            with suppress(OSError, pa.ArrowException):  # abandoned: the disk may be full
                self._writer.close()
        self._handle.close()
