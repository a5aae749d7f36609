"""One batch of records drawn and written to a release folder."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from auditor.base import AuditorError, AuditorWarning, listed, pd, quoted
from auditor.data.describe import grouped_by
from auditor.data.formats.parts import whole_frame
from auditor.data.formats.release_folder import write_release
from auditor.data.load import file_notes, raw_columns
from auditor.data.raw_columns import InStep, blank_cells, column_names, kept_columns
from auditor.data.table import is_file
from auditor.process.containment import plugin_errors
from auditor.results.table_register import earlier_release, key_name, register_release
from auditor.runs.copy_files.draw import drawn_copies
from auditor.runs.copy_files.request import Asked, Parts
from auditor.schemes.base.scheme import Scheme

LOOKED_AT = 20_000
"""Records of a batch that are compared with their copies."""


def write_batch(
    scheme: Scheme,
    asked: Asked,
    paths: Sequence[Path],
    keep: Sequence[str],
    manifest: Callable[[dict[str, Any]], Mapping[str, Any]],
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
        kept = kept_columns(asked.data, keep, asked.rows, blank)
        parts = beside_kept(parts, kept, names)

    def whole() -> Mapping[str, Any]:
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
        notes += filter(None, [earlier_release(drawn.prints)])
        register_release(drawn.prints, paths[0].parent)
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


def beside_kept(parts: Parts, kept: InStep, order: Sequence[str]) -> Parts:
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
