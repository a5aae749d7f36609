"""What would change an exposure: closed forms, scaled by what the strongest attack left where it has none.

| symbol | meaning | source |
| --- | --- | --- |
| ``v`` | noise multiple of the best combination of the copies held | li2012, section 3.2 |
| ``u_j(v)`` | ``[K_X − G(v) K_X]_jj / K_jj``, the share of attribute j that the best linear attack leaves | li2012 (7) |
| ``v_e`` | where the best linear attack would leave what the strongest left: ``u_j(v_e)`` | |
| ``v_h`` | where it would leave half: ``u_j(v_h) = 1/2`` | |

Levels times ``v_h/v_e`` leave half if the strongest attack goes on to know as much as a linear one
would of ``v_e/v`` times the noise: an estimate, and exact for the best linear attack itself, of
which ``v_e = v``. Under corner-wave noise of the data's shape ``v_h`` is 1. Of retention the same
with exact Bayes in the place of the best linear attack, and ``1 − p`` in that of noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from auditor.data.table import Table
from auditor.numerics.combination import best_unbiased_combination
from auditor.numerics.linear_algebra import Pencil, clip_to_psd, regression
from auditor.process.deferred import scipy
from auditor.results.in_clear import in_clear
from auditor.results.measurements import Measurements
from auditor.results.records import Measurement, mean_theory, pooled
from auditor.results.remedies import Remedy
from auditor.schemes.base.additive import AdditiveScheme
from auditor.schemes.base.scheme import Scheme, TableMoments
from auditor.schemes.replacement.base import UniformScheme
from auditor.schemes.replacement.law import left_by_retention
from auditor.types import Array, Coalition

HALF = 0.5
NOTHING = 1e-6
"""Shares below this are an exact reconstruction up to rounding: no factor of the levels would
change it."""
FURTHEST = 1e6
"""Noise multiples are looked for up to this, and down to one over it."""


def remedy_of(
    measurements: Measurements,
    scheme: Scheme,
    levels: Sequence[float],
    table: Table,
    moments: TableMoments,
) -> Remedy | None:
    """Return what would leave half of every attribute unknown, of one release; None where half is left, or nothing was measured.

    Parameters
    ----------
    measurements : Measurements
        Of this release alone; of an adversary who was given attributes in clear the others are
        looked at.
    levels : sequence of float
        Of all copies.
    """
    exposed = [cell for cell in _strongest(measurements) if _left(cell) < HALF]
    if not exposed:
        return None
    if isinstance(scheme, UniformScheme):
        # what who knows some columns is left with depends on what else was published of the others,
        # and retention does not change that
        open_ = [cell for cell in exposed if not in_clear(cell[0].knowledge)]
        return _replaced(open_[0], scheme, levels, table) if open_ else None

    @cache  # decomposed once for all attributes beside which the same others are known
    def pencil(known: tuple[int, ...]) -> Pencil | None:
        K_X = moments.covariance
        return (
            Pencil.of(_beyond(K_X, known), scheme.law(levels, moments.scale).shape)
            if isinstance(scheme, AdditiveScheme)
            else None
        )

    found = [
        _added(cell, scheme, levels, table.attributes, moments.covariance, pencil)
        for cell in exposed
    ]
    # what the worst attribute needs
    return max(found, key=lambda one: (not one.levels, one.levels or [1.0 - one.unknown]))


def _strongest(measurements: Measurements) -> list[Sequence[Measurement]]:
    """Return of every attribute the cell that leaves least; of all together where none was measured by itself.

    What was measured is ranked, on one draw of the noise for all attacks; of equals the one with a
    closed form goes first.
    """
    errors = measurements.taken(
        measurements.where(metric="normalized_error", status="ok")
        & ~measurements.where(attack=None)
    )
    knowledge, attribute = errors.columns["knowledge"], errors.columns["attribute"]
    clear = np.array(
        [[name in names for name in attribute.values] for names in map(in_clear, knowledge.values)],
        dtype=bool,
    )
    measured = ~np.isnan(errors.columns["value"]) & ~clear[knowledge.places, attribute.places]
    errors = errors.taken(measured)
    cell, name = errors.cells(), errors.columns["attribute"].places
    mean = np.bincount(cell, errors.columns["value"]) / np.bincount(cell)
    estimated = np.bincount(cell, np.isnan(errors.columns["theory"])) > 0
    of, found = name[np.unique(cell, return_index=True)[1]], {}
    for place in dict.fromkeys(name.tolist()):
        # rounded to four digits, others are larger
        least = np.flatnonzero((of == place) & (mean <= 1.002 * mean[of == place].min()))
        first = np.lexsort((estimated[least], np.char.mod("%.4g", mean[least]).astype(np.float64)))[
            0
        ]
        found[attribute.values[place]] = errors.taken(cell == least[first])
    return [cell for name, cell in found.items() if name != "*" or len(found) == 1]


def _left(cell: Sequence[Measurement]) -> float:
    theory = mean_theory(cell)
    return pooled(cell)[0] if theory is None else theory


def _added(
    cell: Sequence[Measurement],
    scheme: Scheme,
    levels: Sequence[float],
    attributes: Sequence[str],
    K_X: Array,
    pencil: Callable[[tuple[int, ...]], Pencil | None],
) -> Remedy:
    """Return what would change the exposure of one attribute to one attack by numbers with something added."""
    one, left = cell[0], _left(cell)
    remedy = Remedy(
        attack=str(one.attack),
        attribute=one.attribute,
        unknown=left,
        lossless=1.0,
        estimated=mean_theory(cell) is None,
    )
    if not isinstance(scheme, AdditiveScheme) or one.attribute not in attributes or left < NOTHING:
        return remedy
    clear = in_clear(one.knowledge)
    known = tuple(j for j, name in enumerate(attributes) if name in clear)
    decomposed = pencil(known)
    if decomposed is None:
        return remedy
    curve = _curve(decomposed, K_X, attributes.index(one.attribute))
    # what is known of the record without any copy: no noise takes that back
    if curve(np.asarray(FURTHEST)) <= HALF:
        return remedy.model_copy(update={"lossless": None})
    held, every = (
        _pooled_level(scheme, levels, copies)
        for copies in (one.coalition, tuple(range(1, len(levels) + 1)))
    )
    worth, half = _where(curve, left), _where(curve, HALF)
    if worth is None or half is None or held <= 0.0:
        return remedy
    # what data-shaped noise leaves beside known attributes is not told
    lossless = bool(known) or every >= min(levels) * (1.0 - 1e-9)
    needed = [float(f"{level * half / worth:.3g}") for level in levels]
    return remedy.model_copy(
        update={
            "levels": needed,
            "lossless": None if lossless else float(f"{max(1.0, held / worth):.3g}"),
        }
    )


def _beyond(K_X: Array, known: Sequence[int]) -> Array:
    """Return the covariance of what known attributes leave of all, shape (N, N)."""
    if not known:
        return K_X
    told = np.array(known)
    return clip_to_psd(K_X - regression(K_X[:, told], K_X[np.ix_(told, told)]) @ K_X[told], K_X)


def _pooled_level(scheme: AdditiveScheme, levels: Sequence[float], copies: Coalition) -> float:
    held = np.asarray(copies, dtype=np.intp) - 1
    return float(
        best_unbiased_combination(np.asarray(scheme.level_covariance(levels))[np.ix_(held, held)])[
            1
        ]
    )


def _curve(pencil: Pencil, K_X: Array, j: int) -> Callable[[Array], Array]:
    return lambda v: pencil.error_of(j, v) / K_X[j, j]


def _where(curve: Callable[[Array], Array], share: float) -> float | None:
    """Return where a rising curve of noise multiples reaches a share; None where it does not."""
    low, high = -np.log(FURTHEST), np.log(FURTHEST)
    if not curve(np.exp(low)) < share < curve(np.exp(high)):
        return None
    # cut in 32 by hand: `scipy.optimize` takes as long to import as 10,000 looks at the curve
    while high - low > 1e-9:
        at = np.linspace(low, high, 33)
        low, high = at[np.searchsorted(curve(np.exp(at[1:-1])), share) + np.arange(2)]
    return float(np.exp((low + high) / 2.0))


def _replaced(
    cell: Sequence[Measurement], scheme: UniformScheme, levels: Sequence[float], table: Table
) -> Remedy | None:
    """Return what would change the exposure of categories that are kept with a probability."""
    if table.categorical is None or cell[0].attribute != "*":
        return None
    prior, left = table.categorical.prior, _left(cell)
    # else uniform-multilevel is advised
    pi = scheme.over(table.categorical).replaced_by(prior.size) if scheme.multilevel else None
    known = prior[prior > 0.0]
    # the closed form is of a domain all of whose values there are
    if known.size < 2 or known.size < prior.size:
        return None
    half, worth = (
        scipy.optimize.brentq(lambda p, at=at: left_by_retention(prior, p, pi) - at, 0.0, 1.0)
        for at in (HALF, max(left, NOTHING))
    )
    needed = [float(f"{level * half / worth:.3g}") for level in levels] if scheme.multilevel else []
    best = None if scheme.multilevel else float(f"{half:.3g}")
    return Remedy(
        attack=str(cell[0].attack),
        attribute="*",
        unknown=left,
        levels=needed,
        lossless=best,
        kind="retention",
        estimated=mean_theory(cell) is None,
    )
