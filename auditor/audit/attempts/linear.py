"""Errors of one linear attack on every coalition, from moments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from auditor.adversary.attack import (
    Affine,
    AffineStack,
    LinearAttack,
    check_finite_maps,
    check_shape,
)
from auditor.adversary.knowledge import Knowledge, KnownRecords
from auditor.adversary.view import SMALL, View
from auditor.audit.attempts.opened import Opened
from auditor.audit.numeric.error_bars import (
    Errors,
    holding,
    redrawn_views,
    rounded_off,
    seed_of,
    with_total,
)
from auditor.audit.numeric.error_tally import REDRAWS, Tally
from auditor.audit.numeric.linear_errors import Maps, audit_linear, held_out_theory, squared_errors
from auditor.audit.numeric.reconstruct import errors_by_rows, tally_linear
from auditor.audit.numeric.views import MomentsAgain
from auditor.base import NotApplicable, PluginError, scipy
from auditor.base.types import Array, Block, Blocks
from auditor.schemes.base.noise_law import NoiseLaw, Transformed


def linear_errors(
    opened: Opened, attack: LinearAttack, knowledge: Knowledge, tally: Tally
) -> Errors:
    """Errors of every necessary coalition; fill the tally."""
    release, law, needed = opened.release, opened.law_within, opened.needed
    view, transformed = opened.gathered.view(knowledge), release.transformed
    batch, maps = padded_maps(opened, attack, view, transformed)
    check_finite_maps(maps.weights, maps.offsets)
    if (maps.weighed & ~holding(needed, release.copies)).any():
        raise PluginError("the attack weighs copies that the coalition does not hold")
    K_X, judged = release.moments.covariance, opened.gathered.judged(knowledge)
    _count(opened, maps, knowledge, tally)
    again = None
    if opened.replicated:
        pass
    elif law is None or not law.tells_spread:  # noise that is serial or depends on the values
        others = (other.gathered for other in opened.released_again())
        draws = ((each.view(knowledge), each.all_judged(knowledge), None) for each in others)
        again = _errors_again(opened, attack, draws)
    elif not maps.fixed:
        again = _errors_again(opened, attack, _redrawn(opened, knowledge, law))

    def by_rows() -> tuple[Array, Array]:
        blocks, counts = opened.judged(knowledge)
        sums, grain = errors_by_rows(maps, opened.undone(blocks), counts, release.moments.mean)
        # groups of moments are runs of the row groups
        ends = np.cumsum([count for groups in counts for count in groups if count])
        starts = np.cumsum([0, *(group.count for group in judged[:-1])])
        first = np.searchsorted(ends, starts, side="right")
        return np.add.reduceat(sums, first, axis=0), grain

    errors = audit_linear(
        needed, maps, judged, K_X, law, again, opened.compared, opened.fallback, by_rows
    )
    held_out = isinstance(knowledge, KnownRecords) and not isinstance(batch, AffineStack)
    if law is None or not held_out or not all(affine.apart for affine in batch):
        return errors
    # no theory of gains: maps may differ by luck
    expected = held_out_theory(maps, opened.gathered.all_judged(knowledge), law)
    return errors.expecting(rounded_off(expected, with_total(np.diag(K_X))))


def padded_maps(
    opened: Opened, attack: LinearAttack, view: View, transformed: Transformed | None
) -> tuple[Sequence[Affine], Maps]:
    """Maps of every necessary coalition, as fitted and padded to all copies.

    In the coordinates of the moments.

    Raises
    ------
    PluginError
        The attack returned no maps of the right shape.
    """
    coalitions = opened.needed
    batch: Sequence[Affine] = attack.affine_batch(view, coalitions)
    if len(batch) != len(coalitions):
        raise PluginError(f"the attack returned {len(batch)} maps for {len(coalitions)} coalitions")
    # a stack is one array
    for affine in batch[:1] if isinstance(batch, AffineStack) else batch:
        check_shape(affine, view)
    if transformed is not None:
        matrices = [transform.matrix for transform in transformed.transforms]
        blocks = ([matrices[copy - 1] for copy in copies] for copies in coalitions)
        batch = [
            replace(affine, weights=affine.weights @ scipy.linalg.block_diag(*undone))
            for affine, undone in zip(batch, blocks, strict=True)
        ]
    return batch, Maps.pad(batch, coalitions, opened.release.copies)


def _count(opened: Opened, maps: Maps, knowledge: Knowledge, tally: Tally) -> None:
    """Count errors by record, in the heads of blocks if enough."""
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
        spread = Tally(tally.scale, bins=bins, reach=tally.reach)
        count(spread, lambda: release.heads(head))
        tally.sums, tally.spread_rows, tally.bins = spread.sums, spread.spread_rows, 0
    sample, tally.sample = tally.sample, None
    if sample is not None:
        count(sample, stride=tally.stride)
    if tally.of_all:
        count(tally)
    tally.bins, tally.sample = bins, sample


def _redrawn(opened: Opened, knowledge: Knowledge, law: NoiseLaw) -> Iterable[MomentsAgain]:
    """Views and moments in redraws by a law."""
    release, kept, key = opened.release, opened.gathered.again, opened.release.key
    seeds = [
        seed_of(key.audit_seed, key.scheme, key.replicate, number) for number in range(REDRAWS)
    ]
    parts = release.levels, release.moments
    draws = ((seed, release.scheme.transformed(*parts, replace(key, seed=seed))) for seed in seeds)
    again = kept.get(knowledge.label) or redrawn_views(opened.gathered, knowledge, law, draws)
    if release.copies * release.table.width <= SMALL:
        again = kept[knowledge.label] = list(again)
    return again


def _errors_again(
    opened: Opened, attack: LinearAttack, draws: Iterable[MomentsAgain]
) -> Array | None:
    """Mean squared errors in redraws, shape (R, B, N); None if not applicable."""
    found = []
    try:
        for view, judged, transformed in draws:
            maps = padded_maps(opened, attack, view, transformed)[1]
            found.append(squared_errors(maps, judged) / judged.count)
    except NotApplicable:
        return None
    return np.array(found) if found else None
