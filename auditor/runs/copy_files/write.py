"""Releases in folders: written and read.

No file in a folder helps a recipient to undo the noise. Not even the moments that scale it are
there, as an exact covariance reveals the last record to an adversary who knows all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from auditor.base import AuditorError
from auditor.data.formats.release_folder import MANIFEST, copies_in, read_manifest, taken
from auditor.data.load import load_table
from auditor.data.raw_columns import column_names
from auditor.data.table import Bounds, DataUse, is_file
from auditor.numerics.random_streams import stream
from auditor.process.containment import plugin_errors
from auditor.process.environment import version
from auditor.results.files import located
from auditor.runs.arguments import make_plugin
from auditor.runs.copy_files.batch import warn_owner, write_batch
from auditor.runs.copy_files.request import AS_DRAWN, Asked, Blank, Precision, Treatment
from auditor.scenario.stated_levels import sized_by_bounds
from auditor.schemes.base.scheme import Scheme


def write_copies(
    data: str,
    scheme: str,
    levels: Sequence[float] | Mapping[str, Sequence[float]],
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
        levels, parameters, columns = _sized(
            data, scheme, parameters, levels, bounds, columns, rows, treatment.missing
        )
    kind = form or ("parquet" if _is_parquet(data) else "csv")
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
    found, manifest = copies_in(folder), read_manifest(folder)
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
    data: str, columns: Sequence[str] | None, keep: Sequence[str] | Literal["rest"]
) -> tuple[Sequence[str] | None, list[str]]:
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


def _is_parquet(data: str) -> bool:
    return any(
        path.suffix.lower() == ".parquet" or (path.is_dir() and any(path.glob("*.parquet")))
        for path in located(data)
    )


def _sized(
    data: str,
    scheme: str,
    parameters: dict[str, Any],
    guarantees: Mapping[str, Sequence[float]],
    bounds: Bounds,
    columns: Sequence[str] | None,
    rows: int | None,
    missing: Blank,
) -> tuple[list[float], dict[str, Any], list[str]]:
    ((currency, stated),) = guarantees.items()
    if not all(one > 0 for one in stated):
        raise AuditorError(f"--{currency} must be numbers above 0")
    names = list(bounds) if columns is None else list(columns)
    if sorted(names) != sorted(bounds):
        raise AuditorError("--columns and --bounds must name the same columns; leave --columns out")
    bounds = {name: bounds[name] for name in names}
    levels, parameters = sized_by_bounds(scheme, parameters, currency, stated, bounds)
    use = DataUse(data, names, rows, "drop" if missing == "keep" else missing, bounds=dict(bounds))
    table = load_table(use, stream(0, "data"))
    if table.blanks is not None and table.blanks.any():
        raise AuditorError(
            f"--{currency} is not kept by --missing mean: one record also moves each of "
            f"{int(table.blanks.sum()):,} filled cells; drop the records, or state --levels and audit them"
        )
    return levels, parameters, names
