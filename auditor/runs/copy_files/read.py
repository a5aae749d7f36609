"""Releases read from folders."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from auditor.base import AuditorError, DataError, pd
from auditor.base.types import Options
from auditor.data.columns.checks import SINCE
from auditor.data.formats.release_folder import (
    batches_of,
    check_free,
    no_release,
    read_manifest,
    reopened,
    write_release,
)
from auditor.data.load import column_names, kept_columns, read_columns
from auditor.data.microdata import as_categories, as_table, is_other_table
from auditor.runs.arguments import make_plugin
from auditor.runs.copy_files.draw import released_columns
from auditor.runs.copy_files.write import beside_kept
from auditor.runs.perturb import Lineage, Release
from auditor.schemes.base.scheme import Scheme
from auditor.schemes.draw import released_grid
from auditor.schemes.replacement.base import UniformScheme


def read_release(X: Any, folder: Path | str) -> Release:
    """Release in a folder, to be extended or appended to.

    New copies and records are written to the folder, under a lock, before they are returned.

    Parameters
    ----------
    X : DataFrame, or list of DataFrames
        The original in the copies' order; batches concatenated or as a list.
    folder : Path or str

    Raises
    ------
    AuditorError
        The folder has no whole release of this table, or another command is writing there.
    """
    X = pd.concat(list(X), ignore_index=True) if isinstance(X, list | tuple) else X
    with FolderLineage(X=X, folder=Path(folder).absolute()).reopened() as release:
        return release


@dataclass(eq=False)
class FolderLineage(Lineage):
    """Line of a release in a folder; ``X`` are the originals of all batches."""

    X: Any = None
    folder: Path = Path()

    @contextmanager
    def latest(self, release: Release, seed: int | None) -> Iterator[Release]:
        """Lock the folder and yield the release in it, with or without a seed."""
        with self.reopened() as out:
            yield out

    @contextmanager
    def reopened(self) -> Iterator[Release]:
        """Lock the folder and yield the release in it."""
        with reopened(self.folder) as manifest:
            yield self._read(manifest)

    def _read(self, manifest: Options) -> Release:
        folder, X = self.folder, self.X
        names, parts = manifest["attributes"], batches_of(manifest)
        try:
            if any(part.get("post_processing") or part.get("missing") == "keep" for part in parts):
                why = "its copies are rounded, cut off or have blanks, and a new one hangs on its neighbours as they were drawn"
                raise AuditorError(f"{folder}: cannot be extended; {why}")
            scheme: Scheme = make_plugin("scheme", manifest["scheme"], manifest["parameters"])
            original = X[names]
            types = original.dtypes if isinstance(scheme, UniformScheme) else np.float64
            columns = released_columns(scheme, names)
            copies = [
                pd.concat(
                    [read_columns(str(folder / name), columns).astype(types) for name in copy]
                )
                for copy in zip(*(part["copies"] for part in parts), strict=True)
            ]
            if len(X) == sum(part["rows"] for part in parts):
                _check_table(scheme, original, parts, folder)
        except (DataError, ValueError, LookupError, TypeError):
            raise no_release(folder) from None
        if any(len(copy) != len(X) for copy in copies):
            raise AuditorError(f"{folder}: its copies have not as many records as the table")
        return Release(
            original,
            tuple(copy.set_index(X.index) for copy in copies),
            tuple(manifest["levels"]),
            scheme,
            first_batch=None if len(parts) == 1 else int(parts[0]["rows"]),
            line=self,
        )

    def record(self, before: Release, made: Release, seed: int | None) -> Release:
        """Write the copies and records that the folder lacks.

        A copy that equals an earlier one of its level is that one.

        Raises
        ------
        AuditorError
            A new file would replace another, or new records lack columns that the release keeps.
        """
        manifest = read_manifest(self.folder) or {}
        parts = [dict(part) for part in batches_of(manifest)]
        added = len(made.original) - len(before.original)
        if added:
            if parts[0].get("kept"):
                raise AuditorError(
                    f"{self.folder}: its copies keep columns unchanged; append records by `auditor perturb DATA --append`"
                )
            batch = {"rows": added, "missing": "refuse", "for_study_only": False, "copies": []}
            parts.append(batch)
        old = len(before.levels)
        out = [k for k in range(len(made.levels)) if k < old or not _is_out(made, k)]
        suffix, start = Path(parts[0]["copies"][0]).suffix, 0
        paths: list[Path] = []
        frames: list[pd.DataFrame] = []
        for number, part in enumerate(parts, start=1):
            rows = slice(start, start := start + part["rows"])
            later = f"-batch-{number}" if number > 1 else ""
            new = out[len(part["copies"]) :]
            copies: Sequence[pd.DataFrame] = [pd.DataFrame(made.copies[k]).iloc[rows] for k in new]
            if part.get("kept") and copies:
                old_file = str(self.folder / part["copies"][0])
                kept = kept_columns(old_file, part["kept"])
                copies = next(beside_kept(iter([copies]), kept, column_names(old_file)))
            frames += copies
            names = [f"copy-{out.index(k) + 1}{later}{suffix}" for k in new]
            paths += [self.folder / name for name in names]
            part["copies"] = [*part["copies"], *names]
            study = seed is not None and bool(new)
            part["for_study_only"] = part.get("for_study_only", False) or study
            if part.get("grid", made.scheme.on_grid):
                part["grid"] = _grid(made, rows, part.get("grid"))
        if paths:
            check_free(self.folder, paths)
            first, *others = parts
            stated = {**first, "levels": [made.levels[k] for k in out]}
            stated |= {"later_batches": others} if others else {}
            write_release(self.folder, paths, [frames], lambda: stated)
        if added:
            self.X = made.original
        return replace(made, line=self)


def _check_table(scheme: Scheme, X: pd.DataFrame, parts: Sequence[Options], folder: Path) -> None:
    """Refuse another table or order by comparable fingerprints, without blanks and dates."""
    start = 0
    for part in parts:
        batch = X.iloc[start : start + part["rows"]]
        start += part["rows"]
        if part["missing"] != "refuse" or SINCE.replace(" ", "_") in part:
            continue
        categorical = isinstance(scheme, UniformScheme)
        if is_other_table(part, as_categories(batch) if categorical else as_table(batch, False)):
            raise AuditorError(
                f"{folder}: is no release of this table: its records have other values, or another order"
            )


def _is_out(release: Release, copy: int) -> bool:
    level, values = release.levels[copy], np.asarray(release.copies[copy])
    return any(
        release.levels[k] == level and np.array_equal(np.asarray(release.copies[k]), values)
        for k in range(copy)
    )


def _grid(
    release: Release, rows: slice, before: Mapping[str, float] | None
) -> dict[str, float] | None:
    table = as_table(release.original.iloc[rows], varied=False)
    grid = released_grid(release.scheme, table, release.levels, scale=release._moments.scale)
    if not grid:
        return None
    found = dict(zip(table.attributes, grid, strict=True))
    return {name: min(step, (before or found)[name]) for name, step in found.items()}
