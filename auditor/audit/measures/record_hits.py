"""Records rebuilt as a whole, and rare records in a claimed region.

| symbol | meaning | metric |
| --- | --- | --- |
| hit | ``‖x̂ − x‖ ≤ ε·‖x‖`` (liu2008, section 4.1) | |
| share | hits over records, averaged over the attack's guesses | ``records_within`` |
| claimed | share of records with a claimed region | ``rare_claimed`` |
| disclosed | share of records inside their claimed region | ``rare_disclosed`` |
| exposed | share of guesses that hit the record of largest probability | ``most_exposed`` |

An attack that guesses is measured on many guesses from one release. A guess serves all records, so
their hits are dependent: the error bar is the spread between guesses. Without guesses it is
binomial, for independent records.
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
from auditor.results.records import Measurement
from auditor.scenario.model import Scenario
from auditor.types import Array, Coalition

MOST_LOCATED = 2**14
"""Records of a block, evenly spread, that are located; regions are slower than estimates."""
ROUNDING = 1e-9
"""Relative rounding error of a bound."""


@dataclass
class WholeRecords:
    """Sums over records for one coalition.

    Attributes
    ----------
    tolerance : float or None
        ``ε``, relative to the record's length; None if not requested.
    hits : ndarray of shape (G,)
        Records hit, by guess.
    chance : float
        Sum of the exact probabilities; NaN without them.
    best : (float, float)
        The largest probability, and the share of guesses that hit its record.
    located, claimed, disclosed : int
        Records asked about, with a claim, and with a correct claim.
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
        """Count one block's records, shapes (b, N), with their estimates."""
        if not len(x):
            return
        self.rows += len(x)
        some = slice(None, None, -(-len(x) // MOST_LOCATED) if fitted.neighbours == 0 else 1)
        self._locate(fitted.regions([copy[some] for copy in copies]), x[some])
        if self.tolerance is None:
            return
        reach = self.tolerance * np.linalg.norm(x, axis=1)
        # at any tolerance, rounding is no error
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
        """The most exposed record's share of hits, its standard error, and its probability."""
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
    context: CellContext, coalition: Coalition, tally: WholeRecords
) -> list[Measurement]:
    """Return the records of one coalition."""
    found = []

    def add(
        metric: str, share: float, error: float, theory: float | None = None, guesses: int = 1
    ) -> None:
        found.append(
            context.estimate(
                metric,
                coalition,
                share,
                error,
                theory,
                bounds=(0.0, 1.0),
                degrees=guesses - 1 if guesses > 1 else math.inf,
            )
        )

    if tally.regions:
        for metric, count in (("rare_claimed", tally.claimed), ("rare_disclosed", tally.disclosed)):
            share = count / tally.located
            add(metric, share, math.sqrt(share * (1.0 - share) / tally.located))
    if tally.tolerance is not None:
        theory = None if math.isnan(tally.chance) else tally.chance / tally.rows
        add("records_within", *tally.share, theory, tally.hits.size)
        if tally.exposed is not None:
            add("most_exposed", *tally.exposed, tally.hits.size)
    return found
