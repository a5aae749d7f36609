"""A process with independent increments, and the sampler of its copies.

| symbol | meaning | shape |
| --- | --- | --- |
| ``v`` | variance of the noise, ``σ²·K_0[j, j]``, which is the process's time; one for each attribute j | (N,) |
| ``Z_v`` | the noise at v, independent of the increments after v; ``Z_0 = 0`` | |
| ``a < b < c`` | the variances next below a new copy, its own, and next above | (N,) |
| ``D`` | ``Z_c − Z_a``, the difference of the two neighbours | (rows, N) |

For any law of the increments, each copy is the least perturbed one plus independent noise, so that
copy is sufficient. Given its two neighbours a new copy is independent of all others. So
``Y_b = Y_a + U`` with U drawn from the conditional law of ``Z_b − Z_a`` given D, and ``X`` the copy
at level 0. Beyond the last copy U is an increment.

Increments of many laws are 0 with positive probability, so two copies share their noise in some
cells. A copy with ``U = D`` is set equal to its upper neighbour: ``Y_a + (Y_c − Y_a)`` may differ
in the last bit, and later draws between both must find a gap of 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from auditor.data.columns.resolution import MOST_PLACES, SLACK
from auditor.numerics.random_streams import Rng
from auditor.schemes.base.additive import CHUNK_VALUES, noise_stream
from auditor.schemes.base.grid import snap
from auditor.schemes.base.noise_density import Distribution
from auditor.schemes.base.plans import ORIGINAL, Step
from auditor.schemes.base.scheme import Key
from auditor.types import Array


class Process(NamedTuple):
    """A process with independent increments: two functions that draw from it.

    Attributes
    ----------
    distribution : str
        Distribution of ``Z_v``.
    increment : callable
        ``increment(rng, low, high, shape)`` returns ``Z_high − Z_low``, shape (rows, N); variances
        ``low ≤ high`` of shape (N,).
    bridge : callable
        ``bridge(rng, gap, low, middle, high)`` returns ``Z_middle − Z_low`` given ``Z_high − Z_low
        = gap`` of shape (rows, N).
        Variances ``low ≤ middle ≤ high`` of shape (N,), all 0 for an attribute without noise;
        nearly equal levels may have equal ones. Returns exactly 0, or exactly the gap, if the
        middle copy equals a neighbour.

    Notes
    -----
    On a lattice variances are in squared units, and differences in units. Neither function changes
    its inputs.
    """

    distribution: Distribution
    increment: Callable[[Rng, Array, Array, tuple[int, ...]], Array]
    bridge: Callable[[Rng, Array, Array, Array, Array], Array]


class ProcessSampler:
    """Executes a plan block by block on the copies, with ``X`` as level 0.

    Noise is never stored. A step uses its parents only: none drawn (a copy of its one parent), one
    (an increment), or two (a bridge).

    Parameters
    ----------
    process : Process
    steps : sequence of Step
    variances : ndarray of shape (N,)
        The diagonal of ``K_0``.
    levels : sequence of M floats
    key : Key
    units : ndarray of shape (N,), optional
        Lattice step of released values.
    """

    in_order = False
    """False: a chunk's indicators are all drawn before its sizes, so the draws depend on its number
    of rows.
    """

    def __init__(
        self,
        process: Process,
        steps: Sequence[Step],
        variances: Array,
        levels: Sequence[float],
        key: Key,
        units: Array | None = None,
    ) -> None:
        self._process = process
        self._steps = steps
        self._variances = variances if units is None else variances / units**2
        self._levels = levels
        self._key = key
        self._grid = np.array(key.grid)
        self._units = units
        self._fraction = as_fraction(np.ones(len(variances)) if units is None else units)

    def block(self, index: int, x: Array, out: Sequence[Array], existing: int = 0) -> None:
        """Write the copies of one block of rows; see ``Sampler``.

        Works in chunks that fit the cache.
        """
        streams = {
            step.copy: noise_stream(self._key, index, step.copy, self._levels[step.copy - 1])
            for step in self._steps
        }
        rows = max(1, CHUNK_VALUES // x.shape[1])
        for start in range(0, len(x), rows):
            part = slice(start, min(start + rows, len(x)))
            for step in self._steps:
                parents = [
                    (x if parent == ORIGINAL else out[parent - 1])[part]
                    for parent, _ in step.parents
                ]
                self._draw(step, parents, streams[step.copy], out[step.copy - 1][part])

    def _draw(self, step: Step, parents: Sequence[Array], rng: Rng, y: Array) -> None:
        if not step.fresh:
            np.copyto(y, parents[0])
            return
        low, *high = (self._variance(parent) for parent, _ in step.parents)
        own = self._variance(step.copy)
        if not high:
            self._add(parents[0], self._process.increment(rng, low, own, y.shape), y)
            return
        gap = self._gap(*parents)
        U = self._process.bridge(rng, gap, low, own, high[0])
        self._add(parents[0], U, y)
        np.copyto(y, parents[1], where=gap == U)

    def _variance(self, copy: int) -> Array:
        return self._variances * (0.0 if copy == ORIGINAL else self._levels[copy - 1])

    def _gap(self, low: Array, high: Array) -> Array:
        if self._units is None:
            return high - low
        if self._grid.size:  # released values lie on the lattice, also where a blank was imputed
            return np.asarray(np.rint(high / self._units) - np.rint(low / self._units))
        return np.asarray(np.rint((high - low) / self._units))

    def _add(self, low: Array, U: Array, y: Array) -> None:
        """Write ``Y_low + U`` to ``y``, on the lattice or, if released, the grid."""
        if self._units is None:
            np.add(low, U, out=y)
            if self._grid.size:
                snap(y, self._grid)
            return
        steps, power = self._fraction
        k = np.rint(low / self._units)
        np.divide((k + U) * steps, power, out=y)
        np.copyto(y, low, where=self._variances == 0)
        # an audit, where an imputed mean may be off the lattice; the added noise is whole
        if not self._grid.size:
            rest = low - k * steps / power
            np.add(
                y, rest, out=y, where=(np.abs(rest) > SLACK * self._units) & (self._variances > 0)
            )


def as_fraction(units: Array) -> tuple[Array, Array]:
    """Return units as ``steps/power``, with a power of ten if possible.

    For units of at most six decimal places. ``k·steps/power`` is then the double nearest to k
    units: 0.3, not 3·0.1. Powers of two and all other units stay as they are, since multiples of
    powers of two are exact.

    Examples
    --------
    >>> as_fraction(np.array([0.25, 5.0, 1 / 3]))
    (array([0.25      , 5.        , 0.33333333]), array([1., 1., 1.]))
    """
    steps, power = units.copy(), np.ones_like(units)
    for places in range(MOST_PLACES, -1, -1):
        whole = np.rint(units * 10.0**places)
        fits = (np.abs(units * 10.0**places - whole) < 1e-9 * whole) & (np.frexp(units)[0] != 0.5)
        steps[fits], power[fits] = whole[fits], 10.0**places
    return steps, power
