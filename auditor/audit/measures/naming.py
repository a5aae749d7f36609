"""Records linked: how often the row that an attack takes for a target's is the target's own, beside chance.

| symbol | meaning | metric |
| --- | --- | --- |
| ``a, e`` | rows that seem likelier to be a target's than its own, and those that seem as likely, its own among them | |
| named | ``mean P(own row first)``, ``1/e`` where ``a = 0`` | ``named`` |
| among the first k | ``mean min(1, max(0, k − a)/e)`` | ``named(k)`` |
| gain | the same less chance: ``k/n`` of n rows | ``named_gain``, ``named_gain(k)`` |

Every target is looked for among all rows that the adversary has. There are at most 2,000 targets, spread evenly over the rows: the
standard error of a share is then at most 1.1 %; beyond some 130,000 rows there are fewer, down to 200 (3.5 %), for the sake of time.
Rows are compared in blocks, so memory grows neither with rows nor with targets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.attack import Reconstruction
from auditor.adversary.handed_back import checked
from auditor.audit.base.records import CellContext
from auditor.errors import PluginError
from auditor.numerics.read_only import readable
from auditor.numerics.statistics import Z_95
from auditor.results.records import Measurement
from auditor.types import Array, Blocks, Coalition

MOST_TARGETS, FEWEST_TARGETS = 2_000, 200
MOST_PAIRS = 2**28
"""Of target and row that are compared for one coalition, as long as that leaves enough targets: some two seconds."""
FIRST = (1, 10)
"""Of how many rows that seem likeliest a target's own may be one."""
CHUNK_VALUES = 2**18
"""Pairs of target and row that are compared at once: two megabytes."""
TIE = 1e-9
"""Likenesses nearer than this, in proportion, are one: they differ by rounding."""


@dataclass
class Naming:
    """Counts for one coalition.

    Attributes
    ----------
    own : ndarray of shape (t,)
        Likeness of each target's own row.
    above, equal : ndarrays of shape (t,)
        Other rows that seem likelier, and those that seem as likely.
    rows : int
        Rows that targets were looked for among.
    """

    own: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    above: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    equal: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    rows: int = 0

    def compare(self, likeness: Array, others: NDArray[np.bool_]) -> None:
        """Count rows, whose likeness to the targets has shape (t, b); ``others`` says which are not the target's own."""
        own = self.own[:, None]
        near = np.abs(likeness - own) <= TIE * (1.0 + np.abs(own))
        self.above = self.above + ((likeness > own) & ~near & others).sum(axis=1)
        self.equal = self.equal + (near & others).sum(axis=1)
        self.rows += likeness.shape[1]

    def first(self, k: int) -> Array:
        """Return each target's chance that its row is among the first k, rows as likely in any order, shape (t,)."""
        return np.asarray(np.clip((k - self.above) / (self.equal + 1.0), 0.0, 1.0))


def name_rows(
    namings: Sequence[Naming], fitted: Sequence[Reconstruction], coalitions: Sequence[Coalition], blocks: Blocks, rows: int,
    known: NDArray[np.intp],
) -> None:  # fmt: skip
    """Count, in two passes over so many rows, what attacks name; nothing for those that name none, or know nothing of targets.

    Raises
    ------
    PluginError
        A likeness is missing, has the wrong shape, or is not finite.
    """
    if not known.size or all(type(one).likeness is Reconstruction.likeness for one in fitted):
        return
    targets = chosen_targets(rows)
    values = []
    for first, x, copies in _numbered(blocks):
        here = targets[(targets >= first) & (targets < first + len(x))] - first
        values.append(x[here][:, known])
        for start in range(0, len(here), 64):  # each target's own row alone: a small square of which the diagonal is wanted
            some = here[start : start + 64]
            for naming, likeness in zip(namings, _likeness(fitted, coalitions, x[some][:, known], [c[some] for c in copies]), strict=True):
                naming.own = np.append(naming.own, np.diag(likeness))
    for naming in namings:
        naming.above, naming.equal = np.zeros(len(targets)), np.zeros(len(targets))
    wanted, size = np.concatenate(values), max(1, CHUNK_VALUES // len(targets))
    for first, x, copies in _numbered(blocks):
        for start in range(0, len(x), size):
            rows_here = [copy[start : start + size] for copy in copies]
            others = targets[:, None] != first + start + np.arange(len(rows_here[0]))
            for naming, likeness in zip(namings, _likeness(fitted, coalitions, wanted, rows_here), strict=True):
                naming.compare(likeness, others)


def chosen_targets(rows: int) -> NDArray[np.intp]:
    """Return the rows whose people are looked for.

    Examples
    --------
    >>> [len(chosen_targets(rows)) for rows in (3, 2_001, 10**6, 10**8)]
    [3, 2000, 268, 200]
    """
    wanted = min(rows, MOST_TARGETS, max(FEWEST_TARGETS, MOST_PAIRS // rows))
    return np.arange(wanted) * rows // wanted


def _numbered(blocks: Blocks) -> Iterator[tuple[int, Array, list[Array]]]:
    """Yield blocks with the number of their first row among those that are judged."""
    first = 0
    for _, x, copies in blocks():
        yield first, x, copies
        first += len(x)


def _likeness(fitted: Sequence[Reconstruction], coalitions: Sequence[Coalition], known: Array, copies: Sequence[Array]) -> Iterator[Array]:
    known, shown = readable([known])[0], readable(copies)
    for one, coalition in zip(fitted, coalitions, strict=True):
        found = one.likeness(known, [shown[copy - 1] for copy in coalition])
        if found is None:
            raise PluginError("the attack gave no likeness of rows where it says that it names them")
        yield checked(found, (len(known), len(copies[0])))


def naming_records(context: CellContext, attack: str, knowledge: str, coalition: Coalition, naming: Naming) -> list[Measurement]:
    """Return the records of one coalition; none when the attack names no rows."""
    records = []
    for k in FIRST if naming.rows else ():
        share, variant = naming.first(k), "" if k == 1 else f"({k})"
        value, chance = float(share.mean()), min(1.0, k / naming.rows)
        error = float(share.std()) / math.sqrt(len(share))
        for metric, found, low, high in (("named", value, 0.0, 1.0), ("named_gain", value - chance, -1.0, 1.0)):
            ends = max(low, found - Z_95 * error), min(high, found + Z_95 * error)
            records.append(context.record(
                metric + variant, coalition, found, error, ends, attack=attack, knowledge=knowledge, error_bar="sampling",
            ))  # fmt: skip
    return records
