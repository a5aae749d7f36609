"""Estimates in words and in files, for the command line."""

from pathlib import Path
from typing import Any

import numpy as np

from auditor import registry
from auditor.base import AuditorError, pd
from auditor.data.source import is_public
from auditor.data.table import is_file
from auditor.process.environment import templated
from auditor.results.disclosure import FEWEST_RECORDS, rounded
from auditor.results.files import located, sweep, writing
from auditor.runs.copy_files.read import Request
from auditor.runs.copy_files.write import SUFFIXES, table_files
from auditor.runs.estimate import AnyEstimate, knowledge_of


def described(asked: Request, found: AnyEstimate) -> str:
    """Estimate's quality in words, no sharper than private figures warrant.

    Raises
    ------
    AuditorError
        The table is a file with fewer records than a figure may be of.
    """
    rows, public = len(found.values), is_public(asked.original)
    if not public and rows < FEWEST_RECORDS:
        raise AuditorError(
            f"{asked.original}: has {rows} records, and no figure is told of a private table with fewer than "
            f"{FEWEST_RECORDS}"
        )

    def written(figure: float) -> str:
        return f"{figure if public else rounded(figure, rows):.4g}"

    return templated(
        "runs/estimate.txt.jinja",
        found=found,
        name=registry.get("attack", asked.attack).name,
        known=knowledge_of(asked.knowledge),
        copies=len(asked.copies),
        rows=rows,
        width=np.shape(found.values)[-1],
        law=asked.scheme,
        written=written,
    ).rstrip()


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
