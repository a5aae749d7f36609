"""Releases in folders: read, extended and appended to; and copies in files that are attacked."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from auditor.base import AuditorError, DataError, listed, pd, quoted
from auditor.base.types import Array, Levels, Names, Options, frozen
from auditor.data.columns.checks import SINCE, kind_of
from auditor.data.load import (
    column_names,
    file_keys,
    kept_columns,
    load_table,
    read_columns,
    source_pieces,
)
from auditor.data.table import DataUse, Table, is_file
from auditor.numerics.random_streams import stream
from auditor.process.containment import plugin_errors
from auditor.runs.copy_files.draw import Asked, Blank, Treatment, released_columns
from auditor.runs.copy_files.write import (
    batches_of,
    beside_kept,
    check_free,
    no_release,
    read_manifest,
    reopened,
    warn_owner,
    write_batch,
    write_release,
)
from auditor.runs.estimate import AnyEstimate, attack
from auditor.runs.perturb import (
    Lineage,
    Release,
    as_categories,
    as_table,
    batch_notes,
    is_other_table,
    refuse_repeats,
)
from auditor.scenario.arguments import checked_levels, make_plugin
from auditor.schemes.base.scheme import Scheme, table_moments
from auditor.schemes.draw import check_takes_batches, released_grid
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
                raise AuditorError(
                    f"{folder}: cannot be extended; its copies are rounded, cut off or have blanks, and a new one hangs "
                    "on its neighbours as they were drawn"
                )
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


# -- later batches of records ----------------------------------------------------------------------

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
        raise AuditorError(
            f"{folder}: name the originals of each batch that is out, in order, each by --earlier FILE: {len(out)}; got {len(earlier)}"
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


# -- copies in files, attacked without a scenario --------------------------------------------------

# Without a stated law, it is estimated from original and copies, without closed forms. Copies of
# categories need a stated law.


@frozen
class Request:
    """Arguments of one attack.

    ``scheme`` is a name or ``{name: …, …its parameters}``; ``levels`` then has one for each copy.
    ``columns`` are by default all common columns of numbers.
    """

    attack: str
    copies: Names
    original: str
    scheme: Any = None
    levels: Levels = ()
    columns: Names | None = None
    knowledge: Any = "perfect"
    seed: int = 0
    parameters: Options | None = None


def attack_files(asked: Request) -> AnyEstimate:
    """Estimate from all copies together.

    Raises
    ------
    AuditorError
        A file cannot be read, the copies are not the original's records, or the request does not
        apply.
    """
    with plugin_errors():
        release = _release(asked)
    options = {"knowledge": asked.knowledge, "seed": asked.seed, **(asked.parameters or {})}
    found: AnyEstimate = attack(asked.attack, release, **options)
    return found


def _release(asked: Request) -> Release:
    if asked.scheme is None:
        return _numbers(asked, {})
    law = asked.scheme if isinstance(asked.scheme, Mapping) else {"name": asked.scheme}
    rest = {key: value for key, value in law.items() if key != "name"}
    scheme = make_plugin("scheme", law.get("name", ""), rest)
    if len(asked.levels) != len(asked.copies):
        raise AuditorError(
            f"a scheme needs the level of each of {len(asked.copies)} copies; got {len(asked.levels)}"
        )
    if scheme.adds_noise:
        return _numbers(asked, {"law": {"scheme": scheme.name, **rest}})
    if scheme.engine != "categorical":
        raise AuditorError(
            f"copies by {scheme.name} are attacked from Python, or by a scenario; here by schemes that add noise or replace"
        )
    return _categories(asked, scheme)


def _numbers(asked: Request, law: Options) -> Release:
    copies = [str(Path(name).expanduser()) for name in asked.copies]
    scheme = make_plugin("scheme", "published", {"copies": copies, **law})
    table, levels = _original(asked), tuple(asked.levels)
    if law:
        scheme.check_levels(levels)
    scheme.check_table(table, DataUse.model_construct(source=asked.original))
    frames = []
    for copy in scheme.read(table, True):
        if np.isnan(copy.values).any():
            raise AuditorError(
                f"{copy.name}: has missing cells; a scenario with the scheme `published` audits what all copies have "
                "in full"
            )
        frames.append(pd.DataFrame(copy.values, columns=list(table.attributes)))
    X = pd.DataFrame(table.values, columns=list(table.attributes))
    return Release(X, tuple(frames), levels, scheme)


def _categories(asked: Request, scheme: Any) -> Release:
    names = list(asked.columns or _shared(asked, source_pieces(asked.original)[0]))
    original = read_columns(asked.original, names).astype("category")
    typed = []
    for path in asked.copies:
        copy, name = read_columns(path, names), Path(path).name
        if len(copy) != len(original):
            raise AuditorError(
                f"{name}: has {len(copy):,} rows where the original has {len(original):,}; rows must match one to one"
            )
        if not all(copy[column].isin(original[column].cat.categories).all() for column in names):
            raise AuditorError(f"{name}: has values that the original has not, or missing cells")
        typed.append(copy.astype(original.dtypes))
    return Release(original, tuple(typed), checked_levels(list(asked.levels), 0, scheme), scheme)


def _original(asked: Request) -> Table:
    def read(columns: Names | None) -> Table:
        use = DataUse.model_construct(source=asked.original, columns=columns)
        return load_table(use, stream(asked.seed, "data"))

    if asked.columns is not None:
        return read(asked.columns)
    if not is_file(asked.original):
        return read(_shared(asked, read(None).attributes))
    shared = _shared(asked, source_pieces(asked.original)[0])
    frame = read_columns(asked.original, shared)
    return read([name for name in shared if kind_of(frame[name]) == "numbers"] or shared)


def _shared(asked: Request, known: Names) -> list[str]:
    heads = [source_pieces(name)[0] for name in asked.copies]
    shared = [name for name in known if all(name in head for head in heads)]
    if not shared:
        raise AuditorError(f"the copies have none of the original's columns, {listed(known)}")
    return shared
