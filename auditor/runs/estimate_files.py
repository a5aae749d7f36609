"""Estimates in words and in files, for the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from auditor import registry
from auditor.adversary.knowledge import Perfect
from auditor.base import AuditorError, pd
from auditor.data.formats.release_folder import SUFFIXES, table_files
from auditor.data.source import is_public
from auditor.data.table import is_file
from auditor.results.disclosure import FEWEST_RECORDS, rounded
from auditor.results.files import located, sweep, writing
from auditor.runs.attack_files import Request
from auditor.runs.estimate import AnyEstimate, knowledge_of
from auditor.runs.estimate_categories import CategoricalEstimate
from auditor.runs.estimate_numbers import Estimate


def described(asked: Request, found: AnyEstimate) -> str:
    """Estimate's quality in words, no sharper than private figures warrant.

    Raises
    ------
    AuditorError
        The table is a file with fewer records than a figure may be of.
    """
    rows, public = len(found.values), is_public(asked.original)
    if not public and rows < FEWEST_RECORDS:
        few = f"has {rows} records, and no figure is told of a private table with fewer than {FEWEST_RECORDS}"
        raise AuditorError(f"{asked.original}: {few}")

    def written(figure: float) -> str:
        return f"{figure if public else rounded(figure, rows):.4g}"

    copies, known = len(asked.copies), knowledge_of(asked.knowledge)
    held = f"{copies} {'copy' if copies == 1 else 'copies'}"
    knows, numeric = f"{known.label} knowledge", isinstance(found, Estimate)
    if isinstance(known, Perfect):
        what = "means and correlations" if numeric else "every category's share"
        knows = f"knows {what} exactly"
    lines = [f"{registry.get('attack', asked.attack).name}, {knows}, {held}, {rows:,} records"]
    if isinstance(found, CategoricalEstimate):
        lines += [
            f"guessed right: {written(100 * found.accuracy)} % of the records",
            f"probability of the true value: {written(found.reconstruction_probability)}, averaged over records",
        ]
        return "\n".join(lines)
    width, theory = found.values.shape[1], "none"
    scale = found.distortion / found.normalized_error if found.normalized_error else 0.0
    if found.theory is not None and scale:
        theory = f"{written(found.theory)} ({written(found.theory / scale)} normalized)"
    if not asked.scheme:
        theory += "; no law of the noise was stated, so it was estimated from original and copies"
    lines += [
        f"normalized error: {written(found.normalized_error)} (0: exact; 1: no better than guessing the mean)",
        f"mean squared error: {written(found.distortion)}, over {width} {'attribute' if width == 1 else 'attributes'}",
        f"closed form: {theory}",
    ]
    return "\n".join(lines)


def check_output(asked: Request, output: str) -> None:
    """Refuse a file that an estimate cannot be written to.

    Raises
    ------
    AuditorError
        Its kind is not written, or it is the original or one of the copies.
    """
    names = [*asked.copies, *([asked.original] if is_file(asked.original) else [])]
    if Path(output).suffix not in SUFFIXES:
        raise AuditorError(f"{output}: a reconstruction is written as {' or '.join(SUFFIXES)}")
    if Path(output).resolve() in [place.resolve() for name in names for place in located(name)]:
        raise AuditorError(
            f"{output}: is one of the files that were read, and would be written over; choose another with --output"
        )


def write_estimate(found: Any, output: str) -> Path:
    """Write the estimate by record to a file that only its owner can read."""
    path = Path(output)
    sweep(path.absolute().parent, (path.name,))
    with writing(path), table_files([path]) as (file,):
        file.append(pd.DataFrame(found.values))
    return path
