"""Record linkage: how often an attack names the target's own row.

| symbol | meaning | metric |
| --- | --- | --- |
| ``a, e`` | rows that seem likelier than the target's own, and rows as likely, its own included | |
| named | ``mean P(own row first)``, ``1/e`` if ``a = 0`` | ``named`` |
| among the first k | ``mean min(1, max(0, k − a)/e)`` | ``named(k)`` |
| assigned | share of targets with their own row in the one-to-one assignment of largest likeness | ``named`` |
| gain | less chance, ``k/n`` of n rows | ``named_gain``, ``named_gain(k)`` |

Every target is sought among all rows. There are at most 2,000 targets, evenly spread: a share's
standard error is 1.1 % at most. Above 130,000 rows there are fewer, down to 200 (3.5 %). An assignment
uses the whole matrix, so it has fewer targets from 2,000 rows on. Noise in the adversary's knowledge is
drawn once per target.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from auditor.adversary.attack import Reconstruction
from auditor.adversary.handed_back import checked
from auditor.audit.base.records import CellContext
from auditor.errors import PluginError
from auditor.numerics.random_streams import stream
from auditor.numerics.read_only import readable
from auditor.process.deferred import scipy
from auditor.results.records import Measurement
from auditor.types import Array, Blocks, Coalition, Flags, Indices

MOST_TARGETS, FEWEST_TARGETS = 2_000, 200
MOST_PAIRS = 2**28
"""Pairs of target and row for one coalition, if that leaves enough targets: two seconds."""
MOST_ASSIGNED = 2**22
"""Pairs for an assignment: 33 MB, up to eight seconds."""
FIRST = (1, 10)
"""Values of k."""
CHUNK_VALUES = 2**18
"""Pairs that are compared at once: two megabytes."""
TIE = 1e-9
"""Largest relative difference of tied likenesses."""


@dataclass(repr=False)
class Naming:
    """Counts for one coalition.

    Attributes
    ----------
    own : ndarray of shape (t,)
        Likeness of each target's own row.
    above, equal : ndarrays of shape (t,)
        Other rows that are likelier, and tied ones.
    rows : int
        Rows that were compared.
    right : ndarray of shape (t,) or None
        1 if the assignment gave the target its own row; None without assignment.
    """

    own: Array = field(default_factory=lambda: np.zeros(0))
    above: Array = field(default_factory=lambda: np.zeros(0))
    equal: Array = field(default_factory=lambda: np.zeros(0))
    rows: int = 0
    right: Array | None = None

    def compare(self, likeness: Array, others: Flags) -> None:
        """Count rows by likeness to the targets, (t, b); ``others`` excludes a target's own."""
        own = self.own[:, None]
        near = np.abs(likeness - own) <= TIE * (1.0 + np.abs(own))
        self.above = self.above + ((likeness > own) & ~near & others).sum(axis=1)
        self.equal = self.equal + (near & others).sum(axis=1)
        self.rows += likeness.shape[1]

    def first(self, k: int) -> Array:
        """Return the probability that each target's row is among the first k, shape (t,)."""
        return np.clip((k - self.above) / (self.equal + 1.0), 0.0, 1.0)


def name_rows(
    namings: Sequence[Naming],
    fitted: Sequence[Reconstruction],
    coalitions: Sequence[Coalition],
    blocks: Blocks,
    rows: int,
    known: Indices,
    seed: int = 0,
) -> None:
    """Count the rows that an attack, fitted to several coalitions, names.

    In two passes; none if it names no rows, or knows no values of targets. ``seed`` is for the noise
    in its knowledge, and for the order of an assignment.

    Raises
    ------
    PluginError
        A likeness is missing, has the wrong shape, or is not finite.
    """
    if not known.size or all(type(one).likeness is Reconstruction.likeness for one in fitted):
        return
    assigns = fitted[0].assigns
    targets = chosen_targets(
        rows, MOST_ASSIGNED if assigns else MOST_PAIRS, 1 if assigns else FEWEST_TARGETS
    )
    wanted = _known_values(fitted[0], blocks, targets, known, seed)
    if assigns:
        # one after another, as each needs the whole matrix
        for naming, one, coalition in zip(namings, fitted, coalitions, strict=True):
            _assign(naming, one, coalition, blocks, (wanted, targets), seed)
        return
    for first, x, copies in _numbered(blocks):
        places = np.flatnonzero((targets >= first) & (targets < first + len(x)))
        # each target's own row: the diagonal of a small square
        for start in range(0, len(places), 64):
            some = places[start : start + 64]
            rows_here = [copy[targets[some] - first] for copy in copies]
            for naming, likeness in zip(
                namings, _likeness(fitted, coalitions, wanted[some], rows_here), strict=True
            ):
                naming.own = np.append(naming.own, np.diag(likeness))
    for naming in namings:
        naming.above, naming.equal = np.zeros(len(targets)), np.zeros(len(targets))
    size = max(1, CHUNK_VALUES // len(targets))
    for first, x, copies in _numbered(blocks):
        for start in range(0, len(x), size):
            rows_here = [copy[start : start + size] for copy in copies]
            others = targets[:, None] != first + start + np.arange(len(rows_here[0]))
            for naming, likeness in zip(
                namings, _likeness(fitted, coalitions, wanted, rows_here), strict=True
            ):
                naming.compare(likeness, others)


def _known_values(
    one: Reconstruction, blocks: Blocks, targets: Indices, known: Indices, seed: int
) -> Array:
    """Return the known values of the targets with noise, shape (t, |K|)."""
    parts = [
        x[targets[(targets >= first) & (targets < first + len(x))] - first][:, known]
        for first, x, _ in _numbered(blocks)
    ]
    values = np.concatenate(parts)
    if one.known_noise is None:
        return values
    return values + one.known_noise * stream(seed, "known-noise").standard_normal(values.shape)


def _assign(
    naming: Naming,
    one: Reconstruction,
    coalition: Coalition,
    blocks: Blocks,
    sought: tuple[Array, Indices],
    seed: int,
) -> None:
    """Assign rows to targets; ``sought`` are the targets' values and rows."""
    wanted, targets = sought
    likeness = np.concatenate(
        [next(_likeness([one], [coalition], wanted, copies)) for _, _, copies in _numbered(blocks)],
        axis=1,
    )
    # in random order, as the solver prefers the first of tied rows
    order = stream(seed, "assignment").permutation(likeness.shape[1])
    likeness = likeness[:, order]
    _, given = scipy.optimize.linear_sum_assignment(likeness, maximize=True)
    naming.right, naming.rows = (order[given] == targets).astype(np.float64), likeness.shape[1]


def chosen_targets(rows: int, pairs: int = MOST_PAIRS, fewest: int = FEWEST_TARGETS) -> Indices:
    """Return the rows of the targets.

    Examples
    --------
    >>> [len(chosen_targets(rows)) for rows in (3, 2_001, 10**6, 10**8)]
    [3, 2000, 268, 200]
    """
    wanted = min(rows, MOST_TARGETS, max(fewest, pairs // rows))
    return np.arange(wanted) * rows // wanted


def _numbered(blocks: Blocks) -> Iterator[tuple[int, Array, list[Array]]]:
    first = 0
    for _, x, copies in blocks():
        yield first, x, copies
        first += len(x)


def _likeness(
    fitted: Sequence[Reconstruction],
    coalitions: Sequence[Coalition],
    known: Array,
    copies: Sequence[Array],
) -> Iterator[Array]:
    known, shown = readable([known])[0], readable(copies)
    for one, coalition in zip(fitted, coalitions, strict=True):
        found = one.likeness(known, [shown[copy - 1] for copy in coalition])
        if found is None:
            raise PluginError(
                "the attack gave no likeness of rows where it says that it names them"
            )
        yield checked(found, (len(known), len(copies[0])))


def naming_records(context: CellContext, coalition: Coalition, naming: Naming) -> list[Measurement]:
    """Return the records of one coalition; none if the attack names no rows."""
    records = []
    for k in (FIRST if naming.right is None else FIRST[:1]) if naming.rows else ():
        share, variant = (
            naming.first(k) if naming.right is None else naming.right,
            "" if k == 1 else f"({k})",
        )
        value, chance = float(share.mean()), min(1.0, k / naming.rows)
        error = float(share.std()) / math.sqrt(len(share))
        for metric, found, low in (("named", value, 0.0), ("named_gain", value - chance, -1.0)):
            records.append(
                context.estimate(metric + variant, coalition, found, error, bounds=(low, 1.0))
            )
    return records
