"""Exclude originals by the last digits of released floating-point values.

Originals on a public lattice (whole numbers, cents, a known list) are few candidates. Last digits
exclude some of these, and Bayes' rule weights the rest.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``c`` | candidates: multiples of ``step``, or values of a known sample | (C,) | |
| ``p_c`` | their prior: normal with the data's moments, or the sample's shares; refitted by 5 EM steps | (C,) | |
| ``f_c`` | density of the copies at c by the law of their noise | (b, C) | |
| ``r_ic`` | likelihood ratio of copy i's last digits: 0 if no noise of the generator leads from c to ``y_i`` | (b, C) | ``ratio`` |
| ``q_c`` | ``∝ p_c f_c Π_i r_ic`` | (b, C) | mironov2012 |
| ``x̂`` | ``Σ q_c c`` | (b,) | |

The generator of each copy's noise is the most likely one. ``r`` is 1 if a smooth law rounded to
doubles or to a public grid is as likely. Attributes are treated one at a time. With more than 4,096
candidates the estimate is linear. *Not checked*: that a copy is ``x + z`` by one addition; for a
copy drawn from another copy the digits mislead.

Reference: mironov2012; jin2022. Wins on columns of few values with noise added in floating point,
as in ``x + rng.laplace(0, b)``. Finds nothing in copies on a public grid, as from ``auditor
perturb``. The step must be given, so ``attacks: all`` omits this attack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated

import numpy as np
from pydantic import Field

from auditor.numerics.last_digits import Generator, generators, grid_of_digits, likeliest
from auditor.plugin import (
    Array,
    Cost,
    NotApplicable,
    PluginParameters,
    Reconstruction,
    RowAttack,
    UnpairedRecords,
    View,
    register,
    stream,
)

from ._candidates import Posterior, prior_of
from ._channel import Channel
from ._fastica import some_rows
from ._posterior import by_attribute, channels

FITTED_CELLS, TRIED_CELLS = 2**18, 2**16
"""Rows times candidates used to fit the prior, and to identify each copy's generator."""
Copies = Array
Step = Annotated[float, Field(gt=0, allow_inf_nan=False)]


@register
class LowOrderBits(RowAttack):
    """Exclude originals by last digits, and weight the remaining candidates."""

    name = "low-order-bits"
    attack_kind = "last digits"
    combines = True
    reference = "mironov2012"
    knowledge = ("perfect", "estimated", "known-sample")
    cost = Cost(2e-3, 5e-6)
    assumes = "The adversary knows the law of the noise, and of what step originals are multiples, or a sample of their values."
    wins = (
        "Wins on columns of few values with noise straight from a generator of doubles, the more the more copies are independent; "
        "finds nothing in copies on a public grid, which every original can lead to."
    )
    trial = MappingProxyType({"step": 1.0})

    class Parameters(PluginParameters):
        """Public properties of the originals."""

        step: Step | dict[str, Step] = Field(
            description="what originals are whole multiples of: one number, or one by attribute, else 1; not asked of a known sample"
        )
        digits: bool = Field(True, description="false: by the law alone, for comparison")

    def fit(self, view: View, blocks: Iterable[list[Array]]) -> Reconstruction:
        """Return Bayes' rule over candidates, fitted to the coalition's copies."""
        found, counting = channels(view), [view.copies.index(copy) for copy in view.counting]
        alone = {place: channels(view.coalition((view.copies[place],))) for place in counting}
        steps = [self._step(name) for name in view.attributes]
        priors = [prior_of(view, j, step) for j, step in enumerate(steps)]
        if all(prior is None for prior in priors):
            raise NotApplicable(
                "every attribute may have more than 4,096 values, or has one alone; state a coarser step, if any"
            )
        rows = some_rows(blocks, stream(view.seed, self.name, "rows"))
        held = by_attribute(np.split(rows, len(view.copies), axis=1))
        columns = []
        for j, (prior, channel, copies) in enumerate(zip(priors, found, held, strict=True)):
            read = (
                {place: each[j] for place, each in alone.items()} if self.parameters.digits else {}
            )
            columns.append(
                _linear(view, channel, j)
                if prior is None or channel.exact
                else _fitted(prior, channel, copies, read)
            )
        return _Candidates(columns)

    def _step(self, attribute: str) -> float:
        step = self.parameters.step
        return step if isinstance(step, float) else float(step.get(attribute, 1.0))


def _fitted(
    prior: tuple[Array, Array], channel: Channel, copies: Copies, read: Mapping[int, Channel]
) -> Column:
    """Return one attribute's estimator, fitted to copies of shape (m, k)."""
    some, many = (
        copies[: max(16, cells // len(prior[0]))] for cells in (TRIED_CELLS, FITTED_CELLS)
    )
    made = [_found_out(prior, place, alone, some) for place, alone in read.items()]
    posterior = Posterior(*prior, channel, tuple(one for one in made if one is not None)).fitted(
        many
    )

    def column(y: Copies) -> tuple[Array, Array]:
        parts = [
            posterior.weights(part)
            for part in np.array_split(y, max(1, y.shape[0] * len(prior[0]) // FITTED_CELLS))
        ]
        q = np.concatenate(parts)
        explained = q.sum(axis=1) > 0.5
        entropy = -(q * np.log(np.where(q > 0, q, 1.0))).sum(axis=1)
        return np.where(explained, q @ posterior.values, channel.value(y)), np.where(
            explained, np.exp(entropy), np.nan
        )

    return column


def _found_out(
    prior: tuple[Array, Array], place: int, alone: Channel, copies: Copies
) -> tuple[int, Generator, float] | None:
    """Return a copy's index, generator and grid; None if not identified."""
    if alone.exact or alone.noise.on_lattice:
        return None
    y, tried = copies[:, place], generators(alone.noise.distribution, alone.noise.std)
    grid = grid_of_digits(y)
    found = likeliest(y, prior[0], Posterior(*prior, alone).weights(y[:, None]), tried, grid)
    return None if found is None else (place, found, grid)


Column = Callable[[Copies], tuple[Array, Array]]
"""Map one attribute's copies, shape (b, k), to estimates and numbers of candidates, shapes (b,);
NaN: unknown."""


def _linear(view: View, channel: Channel, j: int) -> Column:
    if isinstance(view.given, UnpairedRecords):
        mu, variance = (
            float(view.given.original[:, j].mean()),
            float(view.given.original[:, j].var()),
        )
    else:
        mu, variance = float(view.data_moments[0][j]), float(view.data_moments[1][j, j])
    total = variance + channel.noise.std**2
    gain = variance / total if total > 0 else 1.0
    return lambda y: (mu + gain * (channel.value(y) - mu), np.full(len(y), np.nan))


class _Candidates(Reconstruction):
    """Posterior means of all attributes."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns

    def _found(self, copies: Sequence[Array], which: int) -> Array:
        return np.stack(
            [
                column(y)[which]
                for column, y in zip(self._columns, by_attribute(copies), strict=True)
            ],
            axis=1,
        )

    def rows(self, copies: Sequence[Array]) -> Array:
        return self._found(copies, 0)

    def candidates(self, copies: Sequence[Array]) -> Array | None:
        return self._found(copies, 1)
