"""Errors of one row attack on every coalition, with redraws."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from auditor.adversary.attack import Reconstruction, RowAttack
from auditor.adversary.knowledge import Knowledge
from auditor.audit.attempts.opened import Opened
from auditor.audit.measures.record_disclosure import Disclosures, name_rows
from auditor.audit.numeric.error_bars import (
    Errors,
    from_groups,
    from_redraws,
    rounded_off,
    seed_of,
    with_total,
)
from auditor.audit.numeric.error_tally import HELD_DRAWS, ROWS_AGAIN, RUNS, Tally, size_quantile
from auditor.audit.numeric.moment_pass import some_rows, with_row_theory
from auditor.audit.numeric.reconstruct import CopyBlocks, first_alike, most_neighbours, tally_rows
from auditor.base import NotApplicable, scipy
from auditor.base.types import Array, Blocks, Coalition, Coalitions, Indices
from auditor.schemes.base.noise_law import KroneckerNoise

Starts = dict[Coalition, dict[str, Any]]
"""Fits to a coalition's copies, from which fits to redraws start."""
Fits = tuple[list[Reconstruction], list[Coalition]]
"""An attack fitted to every coalition, and the copies that each reads."""
MOST_JUDGED, PHASES = 40_000, 32
"""Rows of a large table on which attacks without neighbours are judged, about, and their groups.
Errors of income are known to 2 % (95 %). Runs of neighbours would be 6 times less precise."""
MANY_REDRAWS = 59
"""For attacks that jump: all redraws miss an event of probability 1/20 in 5 % of audits; nine miss
it in 63 %."""

MOST_STORED = 400
"""Most records with attacks that store estimates fitted again to each redraw."""


def row_errors(
    opened: Opened,
    attack: RowAttack,
    knowledge: Knowledge,
    tally: Tally,
    counters: list[Disclosures],
) -> Errors:
    """Errors of every necessary coalition; fill the tally and its counters."""
    starts: Starts = {}
    fits, sums, counts, expected = _over_rows(opened, attack, knowledge, tally, counters, starts)
    (fitted, held), (blocks, groups) = fits, opened.judged(knowledge)
    judged = sum(map(sum, groups))
    view, key = opened.gathered.view(knowledge), opened.release.key
    seed = seed_of(key.audit_seed, "known values", key.replicate, 0)
    name_rows(counters, fitted, held, blocks, judged, view.known_columns, seed)
    counters[:] = [counters[place] for place in first_alike(fitted, held)]
    expected *= judged / sum(counts)
    seen = opened.gathered.rows.seen(knowledge, opened.release.blocks)
    expected = with_row_theory(expected, fitted, seen, blocks)
    variances, compared = np.diag(opened.release.moments.covariance), opened.compared
    again, hits, bar = None, None, opened.fallback
    serial = any(one.neighbours or type(one).at is not Reconstruction.at for one in fitted)
    stored = judged > MOST_STORED and any(one.stored for one in fitted)
    if sum(counts) < judged:
        sums, bar = sums.reshape(-1, PHASES, *sums.shape[1:]).sum(axis=0), "jackknife"
        counts = np.reshape(counts, (-1, PHASES)).sum(axis=0).tolist()
    elif stored or (serial and judged > ROWS_AGAIN and opened.steadied(knowledge)):
        bar = opened.fallback if opened.replicated else "jackknife"
    elif not opened.replicated:
        if attack.least_squares and not (attack.jumps or serial):
            again = _held_fixed(opened, knowledge, fits)
        if again is None:
            again, hits = _redrawn(opened, attack, knowledge, tally.sample, starts)
    if again is None:
        errors = from_groups(opened.needed, sums, counts, variances, compared, bar)
    else:
        share, scale = 1.0 if attack.jumps else opened.again_share, with_total(variances)
        if tally.sample is not None and hits is not None:
            part = share * opened.release.table.rows / tally.sample.rows
            tally.sample.redrawn = hits, min(1.0, part)
        distortion, others = (
            rounded_off(with_total(each), scale) for each in (sums.sum(axis=0) / sum(counts), again)
        )
        noisy = any(opened.release.levels)
        errors = from_redraws(
            opened.needed, distortion, others, scale, compared, noisy=noisy, share=share
        )
    if opened.estimated:
        return errors
    theory = errors.distortion.theory.copy()
    theory[:, -1] = expected / judged / (theory.shape[1] - 1)
    return errors.expecting(theory)


def _over_rows(
    opened: Opened,
    attack: RowAttack,
    knowledge: Knowledge,
    tally: Tally,
    counters: Sequence[Disclosures],
    starts: Starts,
) -> tuple[Fits, Array, list[int], Array]:
    fits = fitted_to_rows(opened, attack, knowledge, opened.needed, starts)
    blocks, counts = opened.judged(knowledge)
    apart = min(sum(map(sum, counts)) // MOST_JUDGED, min(map(sum, counts)) // PHASES)
    alone = not (attack.jumps or most_neighbours(fits[0]) or any(one.stored for one in fits[0]))
    alone &= all(one.tolerance is None for one in counters)
    if apart > 1 and alone and opened.steadied(knowledge) and not tally.in_order:
        if not opened.replicated:
            blocks, counts = thinned(blocks, counts, apart)
            tally.stride = max(1, tally.stride // apart)
    adds = [each.add for each in counters]
    sums, expected = tally_rows(*fits, blocks, counts, tally, adds)
    return fits, sums, [count for groups in counts for count in groups if count], expected


def thinned(
    blocks: Blocks, counts: Sequence[Sequence[int]], apart: int
) -> tuple[Blocks, list[list[int]]]:
    """Rows at a distance, dealt into ``PHASES`` groups, and group sizes.

    Groups run through a whole block, so they share trends.
    """

    def dealt(rows: int) -> list[Indices]:
        return [np.arange(phase * apart, rows, PHASES * apart) for phase in range(PHASES)]

    some = some_rows(blocks, lambda _, size: np.concatenate(dealt(size)))
    return some, [[*map(len, dealt(sum(groups)))] for groups in counts]


def fitted_to_rows(
    opened: Opened, attack: RowAttack, knowledge: Knowledge, coalitions: Coalitions, starts: Starts
) -> Fits:
    """Attack fitted to every coalition, and the copies that it reads."""
    view = opened.gathered.view(knowledge)
    seen = opened.gathered.rows.seen(knowledge, opened.release.blocks)
    held = list(coalitions)
    if attack.combines:
        held = [view.coalition(coalition).counting for coalition in coalitions]
    alike = isinstance(view.law, KroneckerNoise)

    def clarity(copies: Coalition) -> tuple[int, list[float]]:
        return -len(copies), sorted(view.coalition(copies).levels)

    def fit(copies: Coalition) -> Reconstruction:
        own = starts.setdefault(copies, {"release": starts.setdefault((), {})} if alike else {})
        return attack.fit(replace(view.coalition(copies), starts=own), CopyBlocks(seen, copies))

    once = {copies: fit(copies) for copies in sorted(dict.fromkeys(held), key=clarity)}
    return [once[copies] for copies in held], held


def _held_fixed(opened: Opened, knowledge: Knowledge, fits: Fits) -> Array | None:
    """Mean squared errors in redraws, (R, B, N), without fitting again.

    Records err independently, so runs of neighbours show a spread. R is the degrees of freedom plus
    1: each row is the mean plus one contrast of draws or runs.
    """
    found, nothing = list[Array](), Tally(np.ones(opened.release.table.width))
    for first, block in opened.held_again(knowledge):
        counts = [[len(block[1])]]
        found.append(tally_rows(*fits, partial(iter, [block]), counts, nothing, first=first)[0][0])
    if not found:
        return None
    each = np.array(found).reshape(HELD_DRAWS, RUNS, *found[0].shape) / opened.again_table.rows
    off = np.tensordot(scipy.linalg.helmert(HELD_DRAWS), each, 1).reshape(-1, *found[0].shape)
    mixed = np.tensordot(scipy.linalg.helmert(len(off) + 1).T, off, 1)
    return np.asarray(each.sum(axis=1).mean(axis=0) + np.sqrt(RUNS) * mixed)


def _redrawn(
    opened: Opened, attack: RowAttack, knowledge: Knowledge, sample: Tally | None, starts: Starts
) -> tuple[Array | None, Array | None]:
    """Mean squared errors in redraws of the release, shape (R, B, N).

    With shares of hits and median errors of ``sample``, (2, R, B, N). None without redraws.
    """
    found, hits = list[Array](), list[Array]()
    many = MANY_REDRAWS if attack.jumps else None
    for other in opened.released_again(many):
        tally = Tally(np.ones(opened.release.table.width))
        if sample is not None:
            tally.sample = Tally(sample.scale, sample.tolerances, sizes=True, least=sample.least)
        try:
            _, sums, counts, _ = _over_rows(other, attack, knowledge, tally, (), starts)
        except NotApplicable:
            return None, None
        found.append(sums.sum(axis=0) / sum(counts))
        if tally.sample is not None:
            share = tally.sample.sums["hits"][0] / tally.sample.rows
            hits.append(np.array([share, size_quantile(tally.sample.sums["size_counts"], 0.5)]))
    return np.array(found) if found else None, np.stack(hits, axis=1) if hits else None
