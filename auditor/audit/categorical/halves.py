"""Attacks that use a law learnt from the release itself: learnt from one half of the records and measured on the other, in turn.

A law that was learnt from a record knows what noise that record had, and flatters whoever uses it:
most where outcomes are many, so that copies would seem to be worth pooling that are not. Sums over
both halves are those over all records, each measured by a stranger.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from auditor.audit.categorical.cell_records import Bar, Bars
from auditor.audit.categorical.posterior_measures import Sums
from auditor.audit.categorical.posterior_pass import Found, Try
from auditor.audit.categorical.release import UniformRelease
from auditor.audit.numeric.gather import Draw
from auditor.numerics.random_streams import stream
from auditor.numerics.statistics import jackknife_error
from auditor.schemes.published_categories import PublishedCategories
from auditor.schemes.replacement.estimated_law import EstimatedLaw
from auditor.types import Coalition


class Half(NamedTuple):
    """Records that a law was learnt from, which are then not attacked; and the law, of all copies that some coalition holds."""

    name: str
    rows: Draw
    law: EstimatedLaw


def halves_of(release: UniformRelease) -> tuple[Half, ...]:
    """Return two halves of the records, dealt at random, with what each teaches; none where a law is stated."""
    if not isinstance(release.scheme, PublishedCategories) or not release.estimated:
        return ()
    order = stream(release.scenario.seed, "halves", release.key.replicate).permutation(
        release.data.rows
    )
    halves = []
    for number, rows in enumerate(np.array_split(order, 2), start=1):
        law = release.scheme.estimated(np.sort(rows), release.needed)
        halves.append(
            Half(f"learnt from half {number}", Draw.of(rows, clear=True), law.of(release.singles))
        )
    return tuple(halves)


def put_together(found: Found, parts: Mapping[Try, list[Try]]) -> Found:
    """Return sums by attack and knowledge from those of its parts; where one failed, all did."""
    whole = Found()
    for name, keys in parts.items():
        failed = [found.failed[key] for key in keys if key in found.failed]
        if failed:
            whole.failed[name] = failed[0]
            continue
        for key in keys:
            whole.add(Found({name: found.sums.get(key, {})}))
    return whole


def jackknifed(sums: Mapping[Coalition, Sums]) -> dict[Coalition, Bars]:
    """Return the error bar of every mean over records, each group of rows left out in turn; what was learnt is taken as it is."""
    return {coalition: _bars(each) for coalition, each in sums.items()}


def _bars(sums: Sums) -> Bars:
    sizes = sums.sizes
    some = sizes > 0
    if some.sum() < 2:
        return {}
    bars = {}
    for name, groups in sums.by_group.items():
        left_out = (groups.sum() - groups[some]) / (sizes.sum() - sizes[some])
        bars[name] = Bar.normal(float(jackknife_error(left_out)), "jackknife", int(some.sum()) - 1)
    return bars
