"""Errors of one linear attack on every coalition, from moments."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from auditor.adversary.attack import AffineStack, LinearAttack, check_finite_maps, check_shape
from auditor.adversary.knowledge import Knowledge, KnownRecords
from auditor.audit.attempts.opened import Opened
from auditor.audit.numeric.error_bars import (
    Errors,
    holding,
    redrawn,
    rounded_off,
    seed_of,
    with_total,
)
from auditor.audit.numeric.error_tally import REDRAWS, Tally
from auditor.audit.numeric.linear_errors import Maps, audit_linear, held_out_theory, squared_errors
from auditor.audit.numeric.moment_pass import some_rows
from auditor.audit.numeric.reconstruct import errors_in_pieces, tally_linear
from auditor.audit.numeric.views import Gathered
from auditor.base import NotApplicable, PluginError
from auditor.base.types import Array, Blocks, Coalitions


def linear_errors(
    opened: Opened, attack: LinearAttack, knowledge: Knowledge, tally: Tally
) -> Errors:
    """Errors of every necessary coalition; fill the tally."""
    release, law, needed = opened.release, opened.law_within, opened.needed
    maps = fitted_maps(attack, opened.gathered, knowledge, needed)
    check_finite_maps(maps.weights, maps.offsets)
    if (maps.weighed & ~holding(needed, release.copies)).any():
        raise PluginError("the attack weighs copies that the coalition does not hold")
    K_X, judged = release.moments.covariance, opened.gathered.judged(knowledge)
    _count(opened, maps, knowledge, tally)
    again = _errors_again(opened, attack, knowledge, _redrawn(opened, knowledge, maps.fixed))

    def by_rows() -> Array:
        rows = opened.undone(opened.judged(knowledge)[0])
        pieces = errors_in_pieces(maps, rows, release.moments.mean)
        return np.sum([np.einsum("rbn,rbn->bn", each, each) for *_, each in pieces], axis=0)

    errors = audit_linear(
        needed, maps, judged, K_X, law, again, opened.compared, opened.fallback, by_rows
    )
    if law is None or not maps.apart or not isinstance(knowledge, KnownRecords):
        return errors
    # no theory of gains: maps may differ by luck
    expected = held_out_theory(maps, opened.gathered.all_judged(knowledge), law)
    return errors.expecting(rounded_off(expected, with_total(np.diag(K_X))))


def fitted_maps(
    attack: LinearAttack, gathered: Gathered, knowledge: Knowledge, coalitions: Coalitions
) -> Maps:
    """Maps of all coalitions, in the coordinates of the moments.

    Raises
    ------
    PluginError
        The attack returned no maps of the right shape.
    """
    view, transformed = gathered.view(knowledge), gathered.release.transformed
    batch = attack.affine_batch(view, coalitions)
    if len(batch) != len(coalitions):
        raise PluginError(f"the attack returned {len(batch)} maps for {len(coalitions)} coalitions")
    # a stack is one array
    for affine in batch[:1] if isinstance(batch, AffineStack) else batch:
        check_shape(affine, view)
    maps = Maps.pad(batch, coalitions, gathered.release.copies)
    if transformed is None:
        return maps
    matrices = np.array([transform.matrix for transform in transformed.transforms])
    weights = maps.weights.reshape(*maps.offsets.shape, *matrices.shape[:2])[..., None, :]
    return replace(maps, weights=(weights @ matrices).reshape(maps.weights.shape))


def _count(opened: Opened, maps: Maps, knowledge: Knowledge, tally: Tally) -> None:
    """Add errors by record to the tally, from heads of blocks if enough."""
    release = opened.release

    def count(into: Tally, blocks: Blocks | None = None, stride: int = 1) -> None:
        rows = opened.undone(opened.judged(knowledge, blocks)[0])
        mean, K_X = release.moments.mean, release.moments.covariance
        some = some_rows(rows, lambda *_: slice(None, None, stride))
        tally_linear(maps, some, mean, into, K_X, opened.law_within)

    sample, tally.sample = tally.sample, None
    if sample is not None:
        count(sample, stride=tally.stride)
    if tally.of_all:
        count(tally)
    elif tally.bins:
        count(tally, partial(release.blocks, tally.head))
    tally.sample = sample


def _redrawn(opened: Opened, knowledge: Knowledge, fixed: bool) -> Iterable[Gathered]:
    """Moments in other draws; none if replicates or a closed form show the spread."""
    gathered, key, law = opened.gathered, opened.release.key, opened.law_within
    by_law = law is not None and law.tells_spread
    if opened.replicated or (by_law and fixed):
        return ()
    if law is None or not by_law:  # noise that is serial or depends on the values
        return (other.gathered for other in opened.released_again())
    parts = key.audit_seed, key.scheme, key.replicate
    return redrawn(gathered, knowledge, law, (seed_of(*parts, k) for k in range(REDRAWS)))


def _errors_again(
    opened: Opened, attack: LinearAttack, knowledge: Knowledge, others: Iterable[Gathered]
) -> Array | None:
    """Mean squared errors in redraws, shape (R, B, N); None if not applicable."""
    found = []
    with suppress(NotApplicable):
        for other in others:
            maps = fitted_maps(attack, other, knowledge, opened.needed)
            judged = other.all_judged(knowledge)
            found.append(squared_errors(maps, judged) / judged.count)
        return np.array(found) if found else None
    return None
