"""What copies of categories from files look like: the retention of each, and how far they are from the laws that schemes have.

| symbol | meaning |
| --- | --- |
| ``m`` | share of the records that a copy leaves as they are, of n |
| ``p̂`` | ``(m − 1/s)/(1 − 1/s)``, the most likely retention of a uniform law; standard error ``√(m(1 − m)/n) / (1 − 1/s)`` |
| ``u`` | largest ``|n_xy/n_x − T(p̂)[x, y]|`` over values x of `ENOUGH` records or more |
| ``d`` | share of records in which two copies that follow one another by retention agree, where the better of them shows the original, or |
| | where it does not: largest difference from the share that a scheme's law has at the same retentions |

Fresh copies agree by chance given the original; copies of one multilevel release as often as
``T(p̂_j/p̂_i)`` says, whatever the original. These are figures to read. Nothing is proved by an
estimate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audit.categorical.cell_records import Bar, Cell
from auditor.audit.categorical.release import UniformRelease
from auditor.data.columns.categorical_table import split
from auditor.results.records import Measurement
from auditor.schemes.base.scheme import schemes_held_against
from auditor.schemes.replacement.law import UniformLaw, step, transition_matrix
from auditor.types import Array, Codes

ENOUGH = 100
"""Records of a value whose chances are compared: each is then known to ± 0.1 at worst."""


def estimated_records(
    release: UniformRelease, x: Codes, copies: Sequence[Codes]
) -> list[Measurement]:
    """Return every copy's retention and distance from uniform perturbation, and how near the copies are to each scheme's joint law."""
    records = []
    for number, y in enumerate(copies, start=1):
        cell = Cell(release.context, None, None, (number,))
        parts = zip(
            release.data.attributes, split(release.data, x), split(release.data, y), strict=True
        )
        each = [(attribute.name, *retention(a, b, attribute.size)) for attribute, a, b in parts]
        whole = ("*", *retention(x, y, release.data.size))
        for name, value, error in [whole, *(each if len(each) > 1 else [])]:
            cell.add(
                f"estimated_retention(copy {number})",
                value,
                Bar.normal(error, "closed-form"),
                attribute=name,
            )
        cell.add(f"off_uniform(copy {number})", off_uniform(x, y, release.data.size))
        records += cell.records
    cell = Cell(release.context, None, None, release.context.everybody)
    for scheme in schemes_held_against("categorical") if len(copies) > 1 else ():
        cell.add(
            f"off_law({scheme.name})", off_law(x, copies, release.data.size, scheme.multilevel)
        )
    return [*records, *cell.records]


def retention(
    x: NDArray[np.integer[Any]], y: NDArray[np.integer[Any]], size: int
) -> tuple[float, float]:
    """Return the most likely retention of a uniform law, which is below 0 of copies that avoid the original, and its standard error.

    Examples
    --------
    >>> retention(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0]), 2)[0]
    0.5
    """
    if size == 1:
        return 1.0, 0.0
    m, scale = float(np.mean(x == y)), 1.0 - 1.0 / size
    return (m - 1.0 / size) / scale, math.sqrt(m * (1.0 - m) / x.size) / scale


def off_uniform(x: Codes, y: Codes, size: int) -> float:
    """Return ``u``; 0 where no value has records enough."""
    counts = np.bincount(x.astype(np.intp) * size + y, minlength=size * size).reshape(size, size)
    common = counts.sum(axis=1) >= ENOUGH
    chances = counts[common] / counts[common].sum(axis=1, keepdims=True)
    law = transition_matrix(float(np.clip(retention(x, y, size)[0], 0.0, 1.0)), size)
    return float(np.abs(chances - law[common]).max(initial=0.0))


def off_law(x: Codes, copies: Sequence[Codes], size: int, multilevel: bool) -> float:
    """Return ``d`` from the law of fresh copies, or of one multilevel release."""
    levels = tuple(float(np.clip(retention(x, y, size)[0], 0.0, 1.0)) for y in copies)
    order = UniformLaw(levels, size, multilevel).descending
    gaps = [
        _gap(x, copies[i], copies[j], (levels[i], levels[j]), size, multilevel)
        for i, j in pairwise(order)
    ]
    return max(gaps, default=0.0)


def _gap(
    x: Codes, y_i: Codes, y_j: Codes, levels: tuple[float, float], size: int, multilevel: bool
) -> float:
    kept, agree = y_i == x, y_i == y_j
    p = step(*levels) if multilevel else levels[1]
    by_law: Array = (
        np.full(x.size, p + (1.0 - p) / size)
        if multilevel
        else np.where(kept, p + (1.0 - p) / size, (1.0 - p) / size)
    )
    return float(
        max(
            abs(np.mean(kept & agree) - np.mean(kept * by_law)),
            abs(np.mean(~kept & agree) - np.mean(~kept * by_law)),
        )
    )
