"""Records rebuilt as a whole: the share within a relative Euclidean distance, beside the exact chance where an attack has one.

And records found among few: in a region that an attack claims holds the record, and hardly any
other.

| symbol | meaning | metric |
| --- | --- | --- |
| hit | ``‖x̂ − x‖ ≤ ε·‖x‖`` (liu2008, section 4.1) | |
| share | hits over records, averaged over the attack's guesses | ``records_within`` |
| claimed | records of which such a region is claimed, over all that are looked at | ``rare_claimed`` |
| disclosed | records that lie in the region claimed of them, over all that are looked at | ``rare_disclosed`` |
| exposed | hits over guesses for the record with the largest chance, as its adversary computes it | ``most_exposed`` |

An attack that guesses is judged on many guesses of the same release. One guess serves all records,
so their hits are dependent: the error bar is the spread between guesses, and without several
guesses a binomial one, which takes records for independent. Regions are counted of every attack
that claims some.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from auditor.adversary.attack import Reconstruction, Regions
from auditor.adversary.handed_back import check_real, checked
from auditor.audit.base.records import CellContext
from auditor.errors import PluginError
from auditor.numerics.statistics import quantile
from auditor.results.records import Measurement
from auditor.scenario.model import Scenario
from auditor.types import Array, Coalition

MOST_LOCATED = 2**14
"""Records of a block, evenly spread over it, of which regions are asked: they take longer than
estimates, and shares need no more."""
ROUNDING = 1e-9
"""Share of its terms by which a bound may be missed and still hold."""


@dataclass
class WholeRecords:
    """Sums over records for one coalition.

    Attributes
    ----------
    tolerance : float or None
        ``ε``, relative to the record's length; None where nobody asks how many are within.
    hits : ndarray of shape (G,)
        Records hit, by guess.
    chance : float
        Sum of the exact chances; NaN where there are none.
    best : (float, float)
        The largest chance and the share of guesses that hit that record.
    located, claimed, disclosed : int
        Records of which a region was asked, is claimed, and is claimed rightly.
    regions : bool
        Whether the attack claims any.
    """

    tolerance: float | None
    rows: int = 0
    hits: Array = field(default_factory=lambda: np.zeros(0))
    chance: float = 0.0
    best: tuple[float, float] = (-1.0, math.nan)
    located: int = 0
    claimed: int = 0
    disclosed: int = 0
    regions: bool = False

    def add(
        self, fitted: Reconstruction, copies: Sequence[Array], estimate: Array, x: Array
    ) -> None:
        """Count one block's records, shapes (b, N), which are estimated already."""
        if not len(x):
            return
        self.rows += len(x)
        some = slice(None, None, -(-len(x) // MOST_LOCATED) if fitted.neighbours == 0 else 1)
        self._locate(fitted.regions([copy[some] for copy in copies]), x[some])
        if self.tolerance is None:
            return
        reach = self.tolerance * np.linalg.norm(x, axis=1)
        # A record that is rebuilt but for rounding is rebuilt, at whatever tolerance.
        reach = np.maximum(reach, 1e-9 * np.linalg.norm(x, axis=1))
        others = fitted.guesses(copies)
        guesses = [estimate] if others is None else (checked(guess, x.shape) for guess in others)
        hit = np.array([np.linalg.norm(guess - x, axis=1) <= reach for guess in guesses])
        self.hits = hit.sum(axis=1) + (self.hits if self.hits.size else 0.0)
        chances = fitted.chances(copies, self.tolerance)
        if chances is None:
            self.chance = math.nan
            return
        chances = checked(chances, (len(x),))
        if not ((chances >= 0) & (chances <= 1)).all():
            raise PluginError("chances must lie from 0 to 1")
        self.chance += float(chances.sum())
        place = int(np.argmax(chances))
        self.best = max(self.best, (float(chances[place]), float(hit[:, place].mean())))

    def _locate(self, found: Regions | None, x: Array) -> None:
        """Count regions claimed of one block's records."""
        if found is None:
            return
        self.regions = True
        self.located += len(x)
        check_real(found.directions, found.low, found.high, found.claims)
        T, bounds = checked(found.directions, (x.shape[1],) * 2), (found.low, found.high)
        if (
            found.claims.shape != x.shape[:1]
            or found.claims.dtype != bool
            or any(bound.shape != x.shape for bound in bounds)
        ):
            raise PluginError(
                "regions need two bounds of every record's attributes, and whether they are claimed"
            )
        low, high, z = (each[found.claims] for each in (*bounds, x @ T.T))
        if np.isnan(low).any() or np.isnan(high).any():
            raise PluginError("the bounds of a region that is claimed must be numbers")
        slack = ROUNDING * (np.abs(x[found.claims]) @ np.abs(T).T)
        self.claimed += len(z)
        self.disclosed += int(((low - slack <= z) & (z <= high + slack)).all(axis=1).sum())

    @property
    def share(self) -> tuple[float, float]:
        """Share of the records hit, and its standard error."""
        shares = self.hits / self.rows
        share, G = float(shares.mean()), shares.size
        error = (
            float(shares.std(ddof=1)) / math.sqrt(G)
            if G > 1
            else math.sqrt(share * (1.0 - share) / self.rows)
        )
        return share, error

    @property
    def exposed(self) -> tuple[float, float, float] | None:
        """The most exposed record's measured share, its standard error by the exact chance, and that chance; None if unknown."""
        chance, share = self.best
        if math.isnan(self.chance) or chance < 0:
            return None
        return share, math.sqrt(chance * (1.0 - chance) / self.hits.size), chance


def wanted_hits(scenario: Scenario, count: int) -> list[WholeRecords]:
    """Return that many empty counters."""
    measure = scenario.measure("records-within")
    return [
        WholeRecords(None if measure is None else float(measure.options["tolerance"]))
        for _ in range(count)
    ]


def whole_record_records(
    context: CellContext,
    attack: str,
    knowledge: str,
    coalitions: Sequence[Coalition],
    counted: Sequence[WholeRecords],
) -> list[Measurement]:
    """Return the records of every coalition."""
    found = []
    for coalition, tally in zip(coalitions, counted, strict=True):
        for metric, count in (
            (("rare_claimed", tally.claimed), ("rare_disclosed", tally.disclosed))
            if tally.regions
            else ()
        ):
            share = count / tally.located
            error = math.sqrt(share * (1.0 - share) / tally.located)
            found.append(
                _record(context, attack, knowledge, coalition, metric, share, error, None, 1)
            )
        if tally.tolerance is None:
            continue
        share, error = tally.share
        theory = None if math.isnan(tally.chance) else tally.chance / tally.rows
        found.append(
            _record(
                context,
                attack,
                knowledge,
                coalition,
                "records_within",
                share,
                error,
                theory,
                tally.hits.size,
            )
        )
        if tally.exposed is not None:
            found.append(
                _record(
                    context,
                    attack,
                    knowledge,
                    coalition,
                    "most_exposed",
                    *tally.exposed,
                    tally.hits.size,
                )
            )
    return found


def _record(
    context: CellContext,
    attack: str,
    knowledge: str,
    coalition: Coalition,
    metric: str,
    value: float,
    error: float,
    theory: float | None,
    guesses: int,
) -> Measurement:
    reach = quantile(0.975, guesses - 1 if guesses > 1 else math.inf) * error
    interval = max(0.0, value - reach), min(1.0, value + reach)
    return context.record(
        metric,
        coalition,
        value,
        error,
        interval,
        theory,
        attack=attack,
        knowledge=knowledge,
        error_bar="sampling",
    )
