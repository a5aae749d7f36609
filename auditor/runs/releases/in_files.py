"""Release in a folder, read from Python: what is added to it is written to the folder before anybody gets it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from auditor.data.columns.dates import SINCE
from auditor.data.formats.readers import csv_frame, header
from auditor.data.microdata import as_table
from auditor.data.unperturbed_columns import Kept, column_names
from auditor.errors import AuditorError
from auditor.process.deferred import pd
from auditor.results.owner_key import key_name
from auditor.runs.copy_files import beside
from auditor.runs.drawn_copies import released_columns
from auditor.runs.perturb import Release, make_plugin, prints_of
from auditor.runs.releases.folder import MANIFEST, batches_of, check_free, read_manifest, taken, write_release
from auditor.runs.releases.lineage import Lineage
from auditor.schemes.base.scheme import Scheme, by_engine
from auditor.schemes.draw import released_grid

READ_AS: dict[str, Callable[[pd.DataFrame], Any]] = {"numeric": lambda X: np.float64, "categorical": lambda X: X.dtypes}
"""Types of copies that are read from files, by the engine that a scheme names."""


def read_release(X: Any, folder: Path | str) -> Release:
    """Return the release in a folder that ``auditor perturb`` wrote, to be extended, or to have records appended.

    New copies and records are written to the folder, under a lock and before they are returned.

    Parameters
    ----------
    X : DataFrame, or list of DataFrames
        The original, with its records in the order of the copies'; of several batches one after the other, or as a list.
    folder : Path or str

    Raises
    ------
    AuditorError
        The folder holds no whole release, or not one of this table, or another command is writing there.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise _no_release(folder)
    line = FolderLineage(pd.concat(list(X), ignore_index=True) if isinstance(X, (list, tuple)) else X, folder)
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
            columns, files = released_columns(scheme, names), zip(*(part["copies"] for part in parts), strict=True)
            copies = [pd.concat([copy_columns(folder / name, columns).astype(types) for name in copy]) for copy in files]
            if len(X) == sum(part["rows"] for part in parts):
                _check_table(scheme, original, parts, folder)
        except (OSError, ValueError, LookupError, TypeError):
            raise _no_release(folder) from None
        if any(len(copy) != len(X) for copy in copies):
            raise AuditorError(f"{folder}: its copies have not as many records as the table")
        first = None if len(parts) == 1 else int(parts[0]["rows"])
        return Release(original, tuple(copy.set_index(X.index) for copy in copies), levels, scheme, first_batch=first, line=self)

    def record(self, before: Release, made: Release, seed: int | None) -> Release:
        """Write the copies and records that the folder lacks; a copy that equals an earlier one of its level is that one.

        Raises
        ------
        AuditorError
            A new file would be written over another, or new records lack columns that the release keeps.
        """
        manifest = read_manifest(self.folder) or {}
        parts = [dict(part) for part in batches_of(manifest)]
        if len(made.original) > len(before.original):
            if parts[0].get("kept"):
                raise AuditorError(f"{self.folder}: its copies keep columns unchanged; append records by `auditor perturb DATA --append`")
            parts.append({"rows": len(made.original) - len(before.original), "missing": "refuse", "for_study_only": False, "copies": []})
        out = [k for k in range(len(made.levels)) if k < len(before.levels) or not _is_out(made, k)]
        ends = np.cumsum([part["rows"] for part in parts])
        suffix = Path(parts[0]["copies"][0]).suffix
        paths: list[Path] = []
        frames: list[pd.DataFrame] = []
        for batch, (part, end) in enumerate(zip(parts, ends, strict=True)):
            rows = slice(int(end) - part["rows"], int(end))
            new = out[len(part["copies"]) :]
            frames += _with_kept([pd.DataFrame(made.copies[k]).iloc[rows] for k in new], part, self.folder)
            names = [f"copy-{out.index(k) + 1}{f'-batch-{batch + 1}' if batch else ''}{suffix}" for k in new]
            paths += [self.folder / name for name in names]
            part["copies"] = [*part["copies"], *names]
            part["for_study_only"] |= seed is not None and bool(new)
            if part.get("grid", made.scheme.on_grid):
                part["grid"] = _grid(made, rows, part.get("grid"))
        if paths:
            check_free(self.folder, paths)
            first, *later = parts
            stated = {**first, "levels": [made.levels[k] for k in out]} | ({"later_batches": later} if later else {})
            write_release(self.folder, paths, [frames], lambda: stated)
        self.X = made.original if len(made.original) > len(before.original) else self.X
        return replace(made, line=self)


def _check_table(scheme: Scheme, X: pd.DataFrame, parts: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Refuse another table, or other order of records, where the fingerprints tell: in the same key, of numbers and categories as they are.

    Raises
    ------
    AuditorError
        A fingerprint differs.
    """
    start = 0
    for part in parts:
        batch, start = X.iloc[start : start + part["rows"]], start + part["rows"]
        if part.get("fingerprint_key") != key_name() or part["missing"] != "refuse" or SINCE.replace(" ", "_") in part:
            continue
        if prints_of(scheme, batch).of_table() != part["fingerprint"]:
            raise AuditorError(f"{folder}: is no release of this table: its records have other values, or another order")


def _is_out(release: Release, copy: int) -> bool:
    """Whether a copy equals an earlier one of the same level."""
    level, values = release.levels[copy], np.asarray(release.copies[copy])
    return any(release.levels[k] == level and np.array_equal(np.asarray(release.copies[k]), values) for k in range(copy))


def _grid(release: Release, rows: slice, before: Mapping[str, float] | None) -> dict[str, float] | None:
    """Return what the copies of a batch are multiples of: the finest grid that any of them was drawn on."""
    table = as_table(release.original.iloc[rows], varied=False)
    grid = released_grid(release.scheme, table, release.levels, scale=release._moments.scale)
    found = dict(zip(table.attributes, grid, strict=True)) if grid else None
    return found if before is None or found is None else {name: min(step, found[name]) for name, step in before.items()}


def _with_kept(copies: Sequence[pd.DataFrame], part: Mapping[str, Any], folder: Path) -> Sequence[pd.DataFrame]:
    """Return copies with the columns that a batch keeps unchanged, as its first copy has them."""
    if not part.get("kept") or not copies:
        return copies
    first = str(folder / part["copies"][0])
    return next(beside(iter([copies]), Kept(first, part["kept"]), column_names(first)))


def _no_release(folder: Path) -> AuditorError:
    return AuditorError(f"{folder}: holds no whole release of these columns, with {MANIFEST} and every copy it names")


def copy_columns(path: Path, names: list[str]) -> pd.DataFrame:
    """Return columns of a copy that was written."""
    if path.suffix == ".parquet":
        return pd.read_parquet(path, columns=names)
    return csv_frame(path.read_bytes(), path, header(path), names, None)[names]
