"""Errors of one linear attack on every coalition, from moments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from auditor.adversary.attack import (
    Affine,
    AffineStack,
    Attack,
    LinearAttack,
    RowAttack,
    check_finite_maps,
    check_shape,
)
from auditor.adversary.knowledge import Knowledge, KnownRecords
from auditor.adversary.view import SMALL, View
from auditor.audit.attempts.opened import Opened
from auditor.audit.attempts.over_rows import fitted_to_rows
from auditor.audit.base.session import CELLS, PER_DEVIATION, RECORDS, Guesses, number_cells
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
from auditor.audit.numeric.reconstruct import errors_by_rows, tally_linear, tally_rows
from auditor.base import NotApplicable, PluginError, scipy
from auditor.base.types import Array, Block, Blocks, Coalition
from auditor.numerics.blocks import Moments, block_head
from auditor.schemes.base.noise_law import Transformed


def linear_errors(
    opened: Opened, attack: LinearAttack, knowledge: Knowledge, tally: Tally
) -> Errors:
    """Errors of every necessary coalition; fill the tally."""
    release, law, needed = opened.release, opened.law_within, opened.needed
    batch, maps = padded_maps(opened, attack, knowledge)
    check_finite_maps(maps.weights, maps.offsets)
    if (maps.weighed & ~holding(needed, release.copies)).any():
        raise PluginError("the attack weighs copies that the coalition does not hold")
    K_X, judged = release.moments.covariance, opened.gathered.judged(knowledge)
    _count(opened, maps, knowledge, tally)
    again = None
    if not opened.replicated:
        if law is None or not law.tells_spread:
            again = _released_again(opened, attack, knowledge)
        elif not maps.fixed:
            again = _redrawn(opened, attack, knowledge)

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
    if law is None or not _held_out(batch, knowledge):
        return errors
    # no theory of gains: maps may differ by luck
    expected = held_out_theory(maps, opened.gathered.all_judged(knowledge), law)
    return errors.expecting(rounded_off(expected, with_total(np.diag(K_X))))


def padded_maps(
    opened: Opened, attack: LinearAttack, knowledge: Knowledge
) -> tuple[Sequence[Affine], Maps]:
    """Maps of every necessary coalition, as fitted and padded to all copies."""
    view, release = opened.gathered.view(knowledge), opened.release
    batch = fitted_maps(attack, view, opened.needed, release.transformed)
    return batch, Maps.pad(batch, opened.needed, release.copies)


def fitted_maps(
    attack: LinearAttack,
    view: View,
    coalitions: Sequence[Coalition],
    transformed: Transformed | None,
) -> Sequence[Affine]:
    """Maps of all coalitions, in the coordinates of the moments.

    Raises
    ------
    PluginError
        The attack returned no maps of the right shape.
    """
    batch = attack.affine_batch(view, coalitions)
    if len(batch) != len(coalitions):
        raise PluginError(f"the attack returned {len(batch)} maps for {len(coalitions)} coalitions")
    # a stack is one array
    for affine in batch[:1] if isinstance(batch, AffineStack) else batch:
        check_shape(affine, view)
    return batch if transformed is None else _undone(transformed, batch, coalitions)


def _undone(
    transformed: Transformed, batch: Sequence[Affine], coalitions: Sequence[Coalition]
) -> list[Affine]:
    matrices = [transform.matrix for transform in transformed.transforms]
    return [
        replace(
            affine,
            weights=affine.weights
            @ scipy.linalg.block_diag(*(matrices[copy - 1] for copy in copies)),
        )
        for affine, copies in zip(batch, coalitions, strict=True)
    ]


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


def _redrawn(opened: Opened, attack: LinearAttack, knowledge: Knowledge) -> Array | None:
    """Mean squared errors in redraws of moments, shape (R, B, N).

    None if the attack does not apply to a redraw.
    """
    release, kept, law, found = opened.release, opened.gathered.again, opened.law_within, []
    assert law is not None
    key, parts = release.key, (release.levels, release.moments)
    seeds = [
        seed_of(key.audit_seed, key.scheme, key.replicate, number) for number in range(REDRAWS)
    ]
    draws = ((seed, release.scheme.transformed(*parts, replace(key, seed=seed))) for seed in seeds)
    again = kept.get(knowledge.label) or redrawn_views(opened.gathered, knowledge, law, draws)
    if release.copies * release.table.width <= SMALL:
        again = kept[knowledge.label] = list(again)
    for view, judged, transformed in again:
        try:
            batch = fitted_maps(attack, view, opened.needed, transformed)
        except NotApplicable:
            return None
        found.append(_mean_errors(opened, batch, judged))
    return np.array(found)


def _released_again(opened: Opened, attack: LinearAttack, knowledge: Knowledge) -> Array | None:
    """Mean squared errors in whole redrawn releases, shape (R, B, N).

    For noise that is serial or depends on the values. None if the attack does not apply.
    """
    found = []
    for other in opened.released_again():
        try:
            view = other.gathered.view(knowledge)
            batch = fitted_maps(attack, view, opened.needed, None)
        except NotApplicable:
            return None
        judged = other.gathered.all_judged(knowledge)
        found.append(_mean_errors(opened, batch, judged))
    return np.array(found) if found else None


def _mean_errors(opened: Opened, batch: Sequence[Affine], judged: Moments) -> Array:
    maps = Maps.pad(batch, opened.needed, opened.release.copies)
    return squared_errors(maps, judged) / judged.count


def _held_out(batch: Sequence[Affine], knowledge: Knowledge) -> bool:
    return (
        isinstance(knowledge, KnownRecords)
        and not isinstance(batch, AffineStack)
        and all(affine.apart for affine in batch)
    )


# -- Cells of an attribute's originals, copies and estimates ---------------------------------------


def number_guesses(
    opened: Opened, attack: Attack, knowledge: Knowledge, coalition: Coalition, column: int
) -> Guesses:
    """Cells of all rows, or of the heads of blocks of a long table."""
    opened = replace(opened, coalitions=[coalition])
    release, joint = opened.release, opened.gathered.copies.joint
    if isinstance(attack, LinearAttack) and not joint:
        attack = attack.over_rows()
    mean, K_X = release.moments.mean, release.moments.covariance
    head = block_head(release.table.rows, release.table.width, RECORDS)
    rows: Blocks = release.blocks if head is None else partial(release.heads, head)
    judged, groups = opened.judged(knowledge, rows)
    shown, place, errors = list[list[Array]](), 0, list[tuple[Array, Array]]()
    tally = Tally(np.sqrt(np.diag(K_X)), kept=errors)

    def watched() -> Iterator[Block]:
        for index, x, copies in judged():
            held = [copies[copy - 1] for copy in coalition] if joint else []
            shown.append([each[:, column].copy() for each in (x, *held)])
            yield index, x, copies

    if isinstance(attack, LinearAttack):
        place = opened.needed.index(coalition)
        maps = padded_maps(opened, attack, knowledge)[1]
        tally_linear(maps, opened.undone(watched), mean, tally, K_X, None)
    elif isinstance(attack, RowAttack):
        fitted = fitted_to_rows(opened, attack, knowledge, [coalition], {})
        tally_rows(*fitted, watched, groups, tally)
    else:
        raise NotApplicable(f"{attack.name} estimates no numbers")
    guesses = [x[:, column] + e[:, place, column] for e, x in errors]
    x, *copies, guess = (
        number_cells(np.concatenate(each), float(mean[column]), float(tally.scale[column]))
        for each in (*zip(*shown, strict=True), guesses)
    )
    return Guesses(CELLS, 1.0 / PER_DEVIATION, x, copies, guess)
