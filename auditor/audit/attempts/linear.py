"""An attempt by a linear attack: its maps stacked for all coalitions, and their errors from moments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.affine import Affine, AffineStack
from auditor.adversary.attack import LinearAttack
from auditor.adversary.handed_back import check_finite_maps, check_shape
from auditor.adversary.knowledge import Knowledge, KnownRecords
from auditor.adversary.view import View
from auditor.audit.attempts.opened import Opened
from auditor.audit.numeric.closed_form import held_out_theory
from auditor.audit.numeric.error_bars import Errors, rounded_off, with_total
from auditor.audit.numeric.error_tally import Tally
from auditor.audit.numeric.limits import REDRAWS
from auditor.audit.numeric.linear_errors import OnRows, audit_linear, squared_errors
from auditor.audit.numeric.reconstruct import errors_by_rows, tally_linear
from auditor.audit.numeric.redraws import Redraws, seed_of
from auditor.audit.numeric.stacked_maps import Maps, holding
from auditor.audit.numeric.transformed_copies import backs
from auditor.errors import NotApplicable, PluginError
from auditor.numerics.moments import Moments
from auditor.results.evidence import ROW_REDRAWS
from auditor.results.records import ErrorBar
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.schemes.base.transform import Transformed
from auditor.types import Array, Block, Blocks, Coalition

MOST_STACKED = 2**20
"""Weights of all draws that are solved for at once: eight megabytes, and some four times as much on
the way."""


def linear_errors(
    opened: Opened, attack: LinearAttack, knowledge: Knowledge, tally: Tally
) -> Errors:
    """Return the errors of every coalition needed; what is counted record by record goes to the tally."""
    release, law = opened.release, opened.law_within
    (batches,) = fitted_maps(
        attack, [opened.gathered.view(knowledge)], opened.needed, [release.transformed]
    )
    maps = Maps.pad(batches, opened.needed, release.copies)
    check_finite_maps(maps.weights, maps.offsets)
    if (maps.weighed & ~holding(opened.needed, release.copies)).any():
        raise PluginError("the attack weighs copies that the coalition does not hold")
    K_X, judged = release.moments.covariance, opened.gathered.judged(knowledge)
    _count(opened, maps, knowledge, tally)
    again = None
    if opened.replicated:
        pass
    elif law is None or not law.tells_spread:
        again = _released_again(opened, attack, knowledge)
    elif not maps.fixed:
        again = _redrawn(opened, attack, knowledge, law)
    why: ErrorBar = "jackknife" if opened.alone else "replicates-needed"

    def by_rows(places: NDArray[np.intp]) -> OnRows:
        blocks, counts = opened.judged(knowledge)
        sums, grain = errors_by_rows(
            maps.at(places), opened.undone(blocks), counts, release.moments.mean
        )
        # Groups of moments are runs of those that errors on rows are summed by.
        ends = np.cumsum([count for groups in counts for count in groups if count])
        first = np.searchsorted(
            ends, np.cumsum([0, *(group.count for group in judged[:-1])]), side="right"
        )
        return OnRows(np.add.reduceat(sums, first, axis=0), grain)

    errors = audit_linear(
        opened.needed, maps, judged, K_X, law, again, opened.compared, why, by_rows
    )
    if attack.inverts and again is not None:
        errors = errors.steady(again, with_total(np.diag(K_X)))
    if law is None or not _apart(batches, knowledge):
        return errors
    # There is no theory of gains: a map of several copies may be better by luck than one of its
    # best copy alone, and what such a pair of maps leads to is not what pooling buys.
    expected = held_out_theory(maps, Moments.merge(judged), law)
    return errors.expecting(rounded_off(expected, with_total(np.diag(K_X))))


def fitted_maps(
    attack: LinearAttack,
    views: Sequence[View],
    coalitions: Sequence[Coalition],
    transformed: Sequence[Transformed | None],
) -> list[list[Sequence[Affine]]]:
    """Return, draw by draw, the maps of all coalitions in the coordinates that moments are gathered in, run by run.

    Raises
    ------
    PluginError
        The attack returned something else.
    """
    fitted = []
    for view, undo in zip(views, transformed, strict=True):
        batch = attack.affine_batch(view, coalitions)
        if len(batch) != len(coalitions):
            raise PluginError(
                f"the attack returned {len(batch)} maps for {len(coalitions)} coalitions"
            )
        # a stack is one array
        for affine in batch[:1] if isinstance(batch, AffineStack) else batch:
            check_shape(affine, view)
        fitted.append([backs(undo, batch, coalitions)])
    return fitted


def _count(opened: Opened, maps: Maps, knowledge: Knowledge, tally: Tally) -> None:
    """Count errors record by record, if that was asked for; a spread from the heads of the blocks where those are enough."""
    release = opened.release

    def count(into: Tally, blocks: Blocks | None = None, stride: int = 1) -> None:
        rows = opened.undone(opened.judged(knowledge, blocks)[0])

        def strided() -> Iterator[Block]:
            for index, x, copies in rows():
                yield index, x[::stride], [copy[::stride] for copy in copies]

        mean, K_X = release.moments.mean, release.moments.covariance
        tally_linear(maps, strided, mean, into, K_X, opened.law_within)

    head, bins = tally.head, tally.bins
    if head is not None and bins:
        spread = tally.spread_alone
        count(spread, lambda: release.heads(head))
        tally.counts, tally.spread_rows, tally.bins = spread.counts, spread.spread_rows, 0
    sample, tally.sample = tally.sample, None
    if sample is not None:
        count(sample, stride=tally.stride)
    if tally.of_all:
        count(tally)
    tally.bins, tally.sample = bins, sample


def _redrawn(
    opened: Opened, attack: LinearAttack, knowledge: Knowledge, law: NoiseLaw
) -> Array | None:
    """Return mean squared errors in other draws of this release, shape (R, B, N); None where the attack cannot be made in one."""
    release, key, found = opened.release, opened.release.key, []
    if knowledge.label not in opened.redraws:
        opened.redraws[knowledge.label] = Redraws(opened.gathered, knowledge, law)
    size = len(opened.needed) * release.copies * release.table.width**2
    parts = min(REDRAWS, 1 + REDRAWS * size // MOST_STACKED)
    for numbers in np.array_split(np.arange(REDRAWS), parts):
        seeds = [
            seed_of(key.audit_seed, key.scheme, key.replicate, int(number)) for number in numbers
        ]
        transformed = [
            release.scheme.transformed(release.levels, release.moments, replace(key, seed=seed))
            for seed in seeds
        ]
        views, judged = zip(
            *map(opened.redraws[knowledge.label].one, numbers.tolist(), seeds, transformed),
            strict=True,
        )
        try:
            fitted = fitted_maps(attack, views, opened.needed, transformed)
        except NotApplicable:  # what was drawn is too little for the attack
            return None
        for batches, rows in zip(fitted, judged, strict=True):
            found.append(
                squared_errors(Maps.pad(batches, opened.needed, release.copies), rows) / rows.count
            )
    return np.array(found)


def _released_again(opened: Opened, attack: LinearAttack, knowledge: Knowledge) -> Array | None:
    """Return the same from whole releases, in which noise follows on, or goes with the values, as it does.

    Of tables of more than a block replicates tell.
    """
    found = []
    for other in opened.released_again(ROW_REDRAWS):
        try:
            (batches,) = fitted_maps(
                attack, [other.gathered.view(knowledge)], opened.needed, [None]
            )
        except NotApplicable:
            return None
        maps = Maps.pad(batches, opened.needed, opened.release.copies)
        judged = Moments.merge(other.gathered.judged(knowledge))
        found.append(squared_errors(maps, judged) / judged.count)
    return np.array(found) if found else None


def _apart(batches: Sequence[Sequence[Affine]], knowledge: Knowledge) -> bool:
    """Whether every map was fitted to records in clear alone, which it is not judged on."""
    if not isinstance(knowledge, KnownRecords):
        return False
    return all(
        not isinstance(batch, AffineStack) and all(affine.apart for affine in batch)
        for batch in batches
    )
