"""Request for advice, and its columns."""

from __future__ import annotations

from dataclasses import field
from typing import NamedTuple

from auditor.audit.measures.utility import is_class
from auditor.base import AuditorError, counted, quoted
from auditor.base.types import Names, Options, Plain, frozen
from auditor.data.columns.kinds import Column
from auditor.data.describe import describe
from auditor.data.load import load_table, load_target, read_columns
from auditor.data.table import Bounds, DataUse, Table, is_file
from auditor.numerics.random_streams import stream

MOST_ROWS, MOST_SAMPLED = 5_000, 50_000
"""Most records that are all measured by default, and most records of a sample."""
SURE = 2.84
"""Standard errors of a sample: 2.58 for 99 %, and a tenth more for five draws."""
CLOSE = 0.07
"""Precision of the noise level that decides the sample size."""
FEWEST_ROWS = 20
"""Fewer records decide nothing, and figures of fewer than ten are withheld (docs/privacy.md)."""

MOST_TOLD = 8
"""Most columns in one message."""


class Chosen(NamedTuple):
    """Table of one advice.

    Attributes
    ----------
    data : dict
        A scenario's section ``data``.
    measured : dict
        The section for the measured records.
    table : Table
        The measured records.
    all_rows : int
        Records without blanks.
    notes : tuple of str
        On omitted columns and records.
    """

    data: Plain
    measured: Plain
    table: Table
    all_rows: int
    notes: Names


def sample_size(target: float) -> int:
    """Number of records that settle the noise level to `CLOSE`.

    With noise v the share unknown is about ``u = v/(v + λ)``, so ``dv/v = du/(u(1 − u))``. The mean
    of n squared errors spreads by ``u·√(2/n)``.

    Examples
    --------
    >>> [sample_size(target) for target in (0.1, 0.5, 0.7, 0.95)]
    [5000, 13168, 36578, 50000]
    """
    n = 2.0 * (SURE / (CLOSE * (1.0 - target))) ** 2
    return int(min(max(n, MOST_ROWS), MOST_SAMPLED))


def chosen(request: Request, *, categories: bool = False) -> Chosen:
    """Choose the columns to perturb and the records to measure.

    Raises
    ------
    AuditorError
        No column can be perturbed, or records are too few.
    """
    source, rows, bounds, shown = request.data, request.rows, request.bounds, request.shown or ()
    columns, notes = request.columns, list[str]()
    columns = list(bounds) if bounds and columns is None else columns
    if categories and (columns is None or len(columns) != 1):
        raise AuditorError(
            "categories are advised on one column at a time, as several are perturbed as one; name it with --columns"
        )
    if columns is None and is_file(source):
        why = {
            column.name: "is what is to be predicted"
            if column.name == request.target
            else "is shown in every copy"
            if column.name in shown
            else _unfit(column)
            for column in describe(source).columns
        }
        columns = [name for name, reason in why.items() if not reason]
        notes = [
            f"column {quoted(name)} left out: it {reason}" for name, reason in why.items() if reason
        ]
        if not columns:
            raise AuditorError(
                "; ".join(["no column can be perturbed by adding noise", *notes[:MOST_TOLD]])
            )
    blank = 0
    if is_file(source) and columns is not None:
        blank = int(read_columns(source, columns).isna().any(axis=1).sum())
    if blank:
        notes.append(f"{counted(blank, 'record')} with blanks left out (missing: drop)")
    stated: Plain = {
        "columns": list(columns or ()),
        "missing": "drop" * bool(blank),
        "categorical": dict.fromkeys(columns or ()) if categories else {},
        "shown": list(shown),
        "bounds": {name: list(ends) for name, ends in bounds.items()},
    }
    data = {"source": source} | {name: value for name, value in stated.items() if value}
    table = _loaded(data, request.seed)
    if table.rows < FEWEST_ROWS:
        raise AuditorError(
            f"advice is measured, and needs at least {FEWEST_ROWS} records without blanks; there are {table.rows:,}"
        )
    if table.rows <= (rows or MOST_ROWS):
        return Chosen(data, data, table, table.rows, tuple(notes))
    measured = data | {"rows": min(rows or sample_size(request.unknown), table.rows)}
    every = table.rows
    table = _loaded(measured, request.seed)
    notes.append(
        f"measured on the first {table.rows:,} of {every:,} records (--rows takes more); the scenario audits "
        "all of them, and has the last word"
    )
    return Chosen(data, measured, table, every, tuple(notes))


def _loaded(data: Plain, seed: int) -> Table:
    return load_table(DataUse.model_construct(**data), stream(seed, "data"))


def _unfit(column: Column) -> str:
    if column.kind == "number":
        return ""
    hint = (
        "; advice on it alone: --columns with its name, --scheme uniform-multilevel"
        if column.kind == "category"
        else ""
    )
    return f"{column.why}{hint}"


MOST_COPIES = 50
"""An audit of more takes hours."""
LARGEST_SPREAD = 1e6
USES = {
    "mean": "how much the standard error of a mean grows",
    "regression": "R² lost by regressions of each attribute on the others that are fitted to a copy",
    "share": "how much the standard error of a category's share grows",
    "classifier": "accuracy lost by a decision tree that is trained on a copy",
}
"""Measures of the loss of use."""


@frozen
class Request:
    """Request for advice.

    Attributes
    ----------
    data : str
        A path or a registered source.
    copies : int
    unknown : float
        Target share of every attribute's variance, in (0, 1).
    utility : str
        ``mean``, ``regression`` or ``classifier`` of the column ``target``.
    schemes : tuple of str
        By default all that add Gaussian noise to numbers.
    columns, shown : tuples of str, optional
        Perturbed columns, and columns that every copy shows unperturbed.
    rows : int, optional
        Records to measure.
    spread : float
        Ratio of the last copy's perturbation to the first; geometric between.
    seed : int
        Of the noise in audits, never of a release.
    parameters : mapping
        Of every scheme.
    bounds : mapping
        Column → (low, high) of one record, to size the noise and state ε.
    delta : float
        δ of noise without a pure ε, in (0, 1).
    epsilon : float, optional
        The largest ε of all copies together.
    """

    data: str
    copies: int = 1
    unknown: float = 0.5
    utility: str = "mean"
    target: str | None = None
    schemes: Names = ()
    columns: Names | None = None
    shown: Names | None = None
    rows: int | None = None
    spread: float = 4.0
    seed: int = 1
    parameters: Options = field(default_factory=dict)
    bounds: Bounds = field(default_factory=dict)
    delta: float = 1e-5
    epsilon: float | None = None

    def check(self) -> None:
        """Refuse impossible requests.

        Raises
        ------
        AuditorError
            With the valid range.
        """
        if not 0.0 < self.unknown < 1.0:
            why = "; whatever is released tells something" if self.unknown >= 1.0 else ""
            raise AuditorError(
                f"--unknown must be a share above 0 and below 1, as 0.5 for half; got {self.unknown:g}{why}"
            )
        if not 1 <= self.copies <= MOST_COPIES:
            why = (
                "; of a lossless scheme further copies, noisier than the first, tell nobody more"
                if self.copies > MOST_COPIES
                else ""
            )
            raise AuditorError(
                f"--copies must be from 1 to {MOST_COPIES}; got {self.copies:,}{why}"
            )
        if not 1.0 <= self.spread <= LARGEST_SPREAD:
            raise AuditorError(
                f"--spread must be a ratio from 1 to {LARGEST_SPREAD:,.0f}; got {self.spread:g}"
            )
        if self.bounds and "noise" in self.parameters:
            raise AuditorError(
                "--bounds sizes the noise, so that ε hangs on no table; leave --param noise out"
            )
        if self.epsilon is not None and not (self.bounds and self.epsilon > 0.0):
            raise AuditorError(
                "--epsilon must be a number above 0, and needs --bounds of every column, as age=0:120"
            )
        if not 0.0 < self.delta < 1.0:
            raise AuditorError(f"--delta must be a chance above 0 and below 1; got {self.delta:g}")
        if (self.utility == "classifier") != (self.target is not None):
            raise AuditorError(
                "--utility classifier needs --target, the column to predict; nothing else takes one"
            )


MODEL = "decision-tree"


def utility_of(request: Request, chosen: Chosen) -> Plain:
    """Section ``utility`` of the audits: the class to predict, if any."""
    if request.target is None:
        return {}
    use = DataUse.model_construct(**chosen.measured)
    label = load_target(use, request.target, stream(request.seed, "data"))
    if not is_class(label):
        raise AuditorError(
            f"--target {request.target!r} is a column of numbers, and a classifier predicts classes"
        )
    return {"target": request.target, "models": [MODEL]}
