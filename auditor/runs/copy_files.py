"""Write perturbed copies as files: what is handed to recipients, and nothing that would let them undo it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from auditor.data.columns.dates import SINCE
from auditor.data.formats.parts import pieces_of, whole_frame
from auditor.data.formats.release_folder import (
    MANIFEST,
    batches_of,
    check_free,
    copies_in,
    read_manifest,
    taken,
    write_release,
)
from auditor.data.load import file_notes
from auditor.data.microdata import as_table
from auditor.data.raw_columns import Kept, blank_cells, column_names
from auditor.data.request import is_file
from auditor.errors import AuditorError, AuditorWarning
from auditor.process.containment import plugin_errors
from auditor.process.deferred import pd
from auditor.process.environment import version
from auditor.registry import get
from auditor.results.files import located
from auditor.results.owner_key import key_name
from auditor.results.table_register import earlier_release, register_release
from auditor.runs.drawn_copies import WRITTEN, Asked, Precision, released_columns
from auditor.runs.finished_copies import AS_DRAWN, Treatment
from auditor.runs.perturb import Lineage, Release, make_plugin, prints_of
from auditor.schemes.base.scheme import Scheme, by_engine
from auditor.schemes.draw import released_grid
from auditor.text.column_names import listed


def write_copies(
    data: str,
    scheme: str,
    levels: Sequence[float],
    seed: int | None,
    output: Path,
    columns: Sequence[str] | None = None,
    rows: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    form: str | None = None,
    precision: Precision = "double",
    keep: Sequence[str] | Literal["rest"] = (),
    treatment: Treatment = AS_DRAWN,
    force: bool = False,
) -> list[Path]:
    """Perturb a table and write ``copy-1``, ``copy-2`` … and a manifest; return the paths written.

    Parameters
    ----------
    data : str
        A registered source, or a path to a file of data.
    scheme, levels, parameters
        As for ``auditor.perturb``.
    seed : int, optional
        For studies only, as for ``auditor.perturb``; left out, a secret key that is forgotten. The
        manifest holds neither.
    output : Path
        Folder, made if need be. Files appear under their names only when they are whole; copies can
        be read by their owner alone, the manifest, which may go to every recipient, by whoever the
        system's settings say.
    columns, rows
        Selection, as in a scenario's ``data``.
    form : 'csv' or 'parquet', optional
        Parquet for data in Parquet by default, csv (UTF-8, commas, decimal points) for all others.
    precision : 'double' or 'single'
        Numbers of 64 or 32 bits. Single takes half the room; categories are the same in both.
    keep : sequence of str or 'rest'
        Columns of the file that go into every copy **unchanged**; ``rest``: all but those
        perturbed. None by default: what is not named is not released.
    treatment : Treatment
        What is done about blank cells, and to copies once they are drawn.
    force : bool
        Whether to replace a release that is in the folder.

    Warns
    -----
    AuditorWarning
        What was left out, filled in, kept blank, rounded or cut off; that the same columns were
        released before; what ``force`` lost.

    Raises
    ------
    AuditorError
        The data, the scheme or the levels cannot be used, the folder cannot be written, holds the
        data itself or another release, or single precision would round a copy by more than a
        thousandth of its noise (of its own deviation, where the scheme states no noise).

    Notes
    -----
    Numbers are read, perturbed and written block by block, so that neither table nor copies need
    fit into memory: a block of every copy does, two megabytes each. So are categories, 65,536
    records at a time. Held in memory are the table of a scheme that must see all of it
    (k-anonymity), one with dates, and categories that keep their blanks.
    """
    kind = form or ("parquet" if _is_parquet(data) else "csv")
    paths = [output / f"copy-{k}.{kind}" for k in range(1, len(levels) + 1)]
    _check_room(data, output, paths)
    columns, wanted = _selection(data, columns, keep)
    with plugin_errors():
        chosen: Scheme = make_plugin("scheme", scheme, parameters or {})
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
        return written(chosen, asked, paths, wanted, lambda stated: head | stated, replaced)


def written(
    scheme: Scheme,
    asked: Asked,
    paths: Sequence[Path],
    keep: Sequence[str],
    manifest: Callable[[dict[str, Any]], Mapping[str, Any]],
    replaced: Iterable[str] = (),
) -> list[Path]:
    """Write the copies of a table, or of a batch of records, to a folder that is ``taken``; return the paths written.

    ``manifest`` makes the manifest of the folder from the entries that state these copies;
    ``replaced`` is as for ``write_release``.
    """
    blank = blank_cells(asked.raw()) if asked.treatment.missing == "drop" else None
    kept = Kept(asked.data, keep, asked.rows, blank) if keep else None
    with plugin_errors():
        asked.treatment.check(scheme)
        drawn = by_engine(WRITTEN, scheme)(scheme, asked)
    parts, folder = _drawn(drawn.parts), paths[0].parent
    if kept is not None:
        parts = beside(parts, kept, column_names(asked.data))

    def whole() -> Mapping[str, Any]:
        return manifest(
            {
                **drawn.stated,
                **({} if kept is None else {"kept": kept.columns}),
                "precision": asked.precision,
                "missing": asked.treatment.missing,
                "for_study_only": asked.seed is not None,
                "copies": [path.name for path in paths],
                "fingerprint": drawn.prints.of_table(),
                "fingerprint_key": key_name(),
            }
        )

    stated = write_release(folder, paths, parts, whole, replaced)
    again = earlier_release(drawn.prints) if asked.seed is None else None
    if asked.seed is None:
        register_release(drawn.prints, folder)
    for note in (
        *file_notes(asked.data),
        *drawn.notes,
        *_left_out(asked.data, drawn.stated["attributes"], keep),
        *filter(None, [again]),
    ):
        warnings.warn(AuditorWarning(note), stacklevel=3)
    return [*paths, stated]


def _earlier_copies(folder: Path, force: bool) -> set[str]:
    """Return the names of copies in a folder; refuse to replace any unless forced, and then warn of the loss.

    Raises
    ------
    AuditorError
        Saying which release is there.
    """
    found, manifest = copies_in(folder), read_manifest(folder)
    if not found and manifest is None and not (folder / MANIFEST).exists():
        return set()
    known = manifest or {}
    levels = ", ".join(f"{level:g}" for level in known.get("levels", ()))
    what = f"{min(found | {MANIFEST})} of another release"
    if manifest is not None:
        what = f"a release of {known.get('rows')} records ({known.get('scheme')}, levels {levels})"
    if not force:
        instead = (
            "extend that release, choose another folder with --output, or replace it with --force"
        )
        raise AuditorError(
            f"{folder}: holds {what}, and a second one would average out with it; {instead}"
        )
    lost = "it can no longer be extended or appended to, and whoever has its copies can average them with the new ones"
    warnings.warn(AuditorWarning(f"{folder}: {what} is lost: {lost}"), stacklevel=4)
    return found


def _left_out(data: str, perturbed: Sequence[str], kept: Sequence[str]) -> Iterator[str]:
    """Yield what columns of a file are in no copy."""
    left = (
        [name for name in column_names(data) if name not in (*perturbed, *kept)]
        if is_file(data)
        else []
    )
    if left:
        yield f"left out: {listed(left)}; only columns that are perturbed, or named to be kept, are in the copies"


READ_AS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "numeric": lambda X: np.float64,
    "categorical": lambda X: X.dtypes,
}
"""Types of copies that are read from files, by the engine that a scheme names."""


def read_release(X: Any, folder: Path | str) -> Release:
    """Return the release in a folder that ``auditor perturb`` wrote, to be extended, or to have records appended.

    New copies and records are written to the folder, under a lock and before they are returned.

    Parameters
    ----------
    X : DataFrame, or list of DataFrames
        The original, with its records in the order of the copies'; of several batches one after the
        other, or as a list.
    folder : Path or str

    Raises
    ------
    AuditorError
        The folder holds no whole release, or not one of this table, or another command is writing
        there.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise _no_release(folder)
    line = FolderLineage(
        pd.concat(list(X), ignore_index=True) if isinstance(X, (list, tuple)) else X, folder
    )
    with taken(folder):
        return line.read()


@dataclass(eq=False)
class FolderLineage(Lineage):
    """Line of a release in a folder: its newest state is what the folder holds.

    Attributes
    ----------
    X : DataFrame
        The originals of all batches.
    folder : Path
    """

    X: Any = None
    folder: Path = Path()

    def __init__(self, X: Any, folder: Path) -> None:
        self.X, self.folder = X, folder.absolute()

    @contextmanager
    def latest(self, release: Release, seed: int | None) -> Iterator[Release]:
        """Lock the folder and yield the release that it holds now."""
        with taken(self.folder):
            yield self.read()

    def read(self) -> Release:
        """Return the release in the folder, which is ``taken``."""
        folder, X = self.folder, self.X
        try:
            manifest = read_manifest(folder) or {}
            names, levels = manifest["attributes"], tuple(manifest["levels"])
            parts = batches_of(manifest)
            if any(part.get("post_processing") or part.get("missing") == "keep" for part in parts):
                why = "its copies are rounded, cut off or have blanks, and a new one hangs on its neighbours as they were drawn"
                raise AuditorError(f"{folder}: cannot be extended; {why}")
            scheme: Scheme = make_plugin("scheme", manifest["scheme"], manifest["parameters"])
            original = X[names]
            types = by_engine(READ_AS, scheme)(original)
            columns, files = (
                released_columns(scheme, names),
                zip(*(part["copies"] for part in parts), strict=True),
            )
            copies = [
                pd.concat([copy_columns(folder / name, columns).astype(types) for name in copy])
                for copy in files
            ]
            if len(X) == sum(part["rows"] for part in parts):
                _check_table(scheme, original, parts, folder)
        except (OSError, ValueError, LookupError, TypeError):
            raise _no_release(folder) from None
        if any(len(copy) != len(X) for copy in copies):
            raise AuditorError(f"{folder}: its copies have not as many records as the table")
        first = None if len(parts) == 1 else int(parts[0]["rows"])
        return Release(
            original,
            tuple(copy.set_index(X.index) for copy in copies),
            levels,
            scheme,
            first_batch=first,
            line=self,
        )

    def record(self, before: Release, made: Release, seed: int | None) -> Release:
        """Write the copies and records that the folder lacks; a copy that equals an earlier one of its level is that one.

        Raises
        ------
        AuditorError
            A new file would be written over another, or new records lack columns that the release
            keeps.
        """
        manifest = read_manifest(self.folder) or {}
        parts = [dict(part) for part in batches_of(manifest)]
        if len(made.original) > len(before.original):
            if parts[0].get("kept"):
                raise AuditorError(
                    f"{self.folder}: its copies keep columns unchanged; append records by `auditor perturb DATA --append`"
                )
            parts.append(
                {
                    "rows": len(made.original) - len(before.original),
                    "missing": "refuse",
                    "for_study_only": False,
                    "copies": [],
                }
            )
        out = [k for k in range(len(made.levels)) if k < len(before.levels) or not _is_out(made, k)]
        ends = np.cumsum([part["rows"] for part in parts])
        suffix = Path(parts[0]["copies"][0]).suffix
        paths: list[Path] = []
        frames: list[pd.DataFrame] = []
        for batch, (part, end) in enumerate(zip(parts, ends, strict=True)):
            rows = slice(int(end) - part["rows"], int(end))
            new = out[len(part["copies"]) :]
            frames += _with_kept(
                [pd.DataFrame(made.copies[k]).iloc[rows] for k in new], part, self.folder
            )
            names = [
                f"copy-{out.index(k) + 1}{f'-batch-{batch + 1}' if batch else ''}{suffix}"
                for k in new
            ]
            paths += [self.folder / name for name in names]
            part["copies"] = [*part["copies"], *names]
            part["for_study_only"] = part.get("for_study_only", False) or (
                seed is not None and bool(new)
            )
            if part.get("grid", made.scheme.on_grid):
                part["grid"] = _grid(made, rows, part.get("grid"))
        if paths:
            check_free(self.folder, paths)
            first, *later = parts
            stated = {**first, "levels": [made.levels[k] for k in out]} | (
                {"later_batches": later} if later else {}
            )
            write_release(self.folder, paths, [frames], lambda: stated)
        self.X = made.original if len(made.original) > len(before.original) else self.X
        return replace(made, line=self)


def _check_table(
    scheme: Scheme, X: pd.DataFrame, parts: Sequence[Mapping[str, Any]], folder: Path
) -> None:
    """Refuse another table, or other order of records, where the fingerprints tell: in the same key, of numbers and categories as they are.

    Raises
    ------
    AuditorError
        A fingerprint differs.
    """
    start = 0
    for part in parts:
        batch, start = X.iloc[start : start + part["rows"]], start + part["rows"]
        if (
            part.get("fingerprint_key") != key_name()
            or part["missing"] != "refuse"
            or SINCE.replace(" ", "_") in part
        ):
            continue
        if prints_of(scheme, batch).of_table() != part["fingerprint"]:
            raise AuditorError(
                f"{folder}: is no release of this table: its records have other values, or another order"
            )


def _is_out(release: Release, copy: int) -> bool:
    """Whether a copy equals an earlier one of the same level."""
    level, values = release.levels[copy], np.asarray(release.copies[copy])
    return any(
        release.levels[k] == level and np.array_equal(np.asarray(release.copies[k]), values)
        for k in range(copy)
    )


def _grid(
    release: Release, rows: slice, before: Mapping[str, float] | None
) -> dict[str, float] | None:
    """Return what the copies of a batch are multiples of: the finest grid that any of them was drawn on."""
    table = as_table(release.original.iloc[rows], varied=False)
    grid = released_grid(release.scheme, table, release.levels, scale=release._moments.scale)
    found = dict(zip(table.attributes, grid, strict=True)) if grid else None
    return (
        found
        if before is None or found is None
        else {name: min(step, found[name]) for name, step in before.items()}
    )


def _with_kept(
    copies: Sequence[pd.DataFrame], part: Mapping[str, Any], folder: Path
) -> Sequence[pd.DataFrame]:
    """Return copies with the columns that a batch keeps unchanged, as its first copy has them."""
    if not part.get("kept") or not copies:
        return copies
    first = str(folder / part["copies"][0])
    return next(beside(iter([copies]), Kept(first, part["kept"]), column_names(first)))


def _no_release(folder: Path) -> AuditorError:
    return AuditorError(
        f"{folder}: holds no whole release of these columns, with {MANIFEST} and every copy it names"
    )


def copy_columns(path: Path, names: list[str]) -> pd.DataFrame:
    """Return columns of a copy that was written."""
    return whole_frame(pieces_of(path.resolve(strict=True)), names, None)


def unperturbed(scheme: str, levels: Sequence[float]) -> list[int]:
    """Return the numbers of the copies, from 1, that a scheme leaves as the data are.

    Examples
    --------
    >>> unperturbed("corner-wave", [0.5, 0.0]), unperturbed("uniform", [0.0, 1.0]), unperturbed("rotation", [0.0])
    ([2], [2], [])
    """
    level = get("scheme", scheme).level_of_original
    return [number for number, each in enumerate(levels, start=1) if each == level]


def averages_out(scheme: str) -> bool:
    """Whether the copies of two runs of a scheme on one table say more together than apart, as those of noise and of replacements do.

    Examples
    --------
    >>> averages_out("corner-wave"), averages_out("k-anonymity")
    (True, False)
    """
    return get("scheme", scheme).level_of_original is not None


def is_nested(scheme: str) -> bool:
    """Whether copies are made of the classes of those before them, which another run knows nothing of.

    Examples
    --------
    >>> is_nested("k-anonymity-multilevel"), is_nested("k-anonymity")
    (True, False)
    """
    return bool(getattr(get("scheme", scheme), "nested", False))


def _check_room(data: str, output: Path, paths: Sequence[Path]) -> None:
    """Refuse to write over the data, or among its parts."""
    source = next((path.resolve() for path in located(data)), None) if is_file(data) else None
    if source is not None and source == output.resolve():
        raise AuditorError(
            f"{output}: is the folder of the data: copies would be taken for parts of it; choose another with --output"
        )
    if source is not None and source in [path.resolve() for path in paths]:
        raise AuditorError(
            f"{source.name}: is the data itself, and a copy would be written over it; choose another folder with --output"
        )


def _selection(
    data: str, columns: Sequence[str] | None, keep: Sequence[str] | Literal["rest"]
) -> tuple[Sequence[str] | None, list[str]]:
    """Return the columns to perturb, and those to keep."""
    if not keep:
        return columns, []
    if keep == "rest" and columns is None:
        raise AuditorError("to keep the rest, name the columns to perturb with --columns")
    names = column_names(data)
    wanted = (
        [name for name in names if name not in set(columns or ())]
        if keep == "rest"
        else list(dict.fromkeys(keep))
    )
    both = [name for name in wanted if name in set(columns or ())]
    if both:
        raise AuditorError(
            f"column {both[0]!r} is to be perturbed and kept unchanged; one of the two"
        )
    if not all(wanted):
        raise AuditorError("the rest has a column without a name; name the columns to keep")
    return [
        name for name in names if name not in set(wanted)
    ] if columns is None else columns, wanted


def _drawn(parts: Iterator[Sequence[pd.DataFrame]]) -> Iterator[Sequence[pd.DataFrame]]:
    """Yield what a scheme draws; whatever it raises ends the command, and neither in status 0 nor in another folder."""
    while True:
        with plugin_errors():
            part = next(parts, None)
        if part is None:
            return
        yield part


def beside(
    parts: Iterator[Sequence[Any]], kept: Kept, order: Sequence[str]
) -> Iterator[Sequence[Any]]:
    """Yield copies with the columns that are kept, in the order of the file; new columns come last."""
    for copies in parts:
        unchanged = kept.take(len(copies[0]))
        twice = set(kept.columns) & set(copies[0].columns)
        if twice:
            raise AuditorError(
                f"a copy has a column {min(twice)!r} of its own; keep the other under another name"
            )
        names = [*kept.columns, *copies[0].columns]
        names.sort(key=lambda name: order.index(name) if name in order else len(order))
        yield [
            pd.concat([unchanged, copy.reset_index(drop=True)], axis=1)[names] for copy in copies
        ]
    kept.finish()


def _is_parquet(data: str) -> bool:
    """Whether the data are in Parquet: a file, or a folder that holds any."""
    return data.lower().endswith(".parquet") or any(
        path.is_dir() and any(path.glob("*.parquet")) for path in located(data)
    )
