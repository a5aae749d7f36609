"""One numeric release with its moments, for attacks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np

from auditor.adversary.knowledge import Knowledge
from auditor.audit.base.request import with_singles
from auditor.audit.numeric.error_bars import least_noise, seed_of
from auditor.audit.numeric.error_tally import (
    FEWEST_HELD,
    HELD_DRAWS,
    MOST_AGAIN,
    ROWS_AGAIN,
    RUNS,
    SHARED_VALUES,
)
from auditor.audit.numeric.moment_pass import RowSelection, Stripe
from auditor.audit.numeric.release import Release, open_release
from auditor.audit.numeric.views import Gathered
from auditor.base.types import Block, Blocks, Coalition, Coalitions, Indices, unprinted
from auditor.data.table import Table
from auditor.numerics.blocks import BLOCK_VALUES
from auditor.results.records import FEWEST_REPLICATES, ROW_REDRAWS, ErrorBar
from auditor.scenario.model import Scenario
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.schemes.base.scheme import Scheme


@unprinted
class Opened:
    """A release, and the coalitions that attack it.

    Attributes
    ----------
    coalitions : sequence of tuple of int
        As requested.
    pooling : bool
        Whether an expectation is about pooling.
    """

    scenario: Scenario
    release: Release
    gathered: Gathered
    coalitions: Coalitions
    pooling: bool = False

    @classmethod
    def of(
        cls,
        scenario: Scenario,
        release: Release,
        coalitions: Coalitions,
        pooling: bool = False,
        whole: Stripe | None = None,
    ) -> Opened:
        """Gather a release's moments, unless gathered elsewhere.

        Raises
        ------
        PluginError
            As for ``Gathered``.
        AuditorError
            The release could not be made elsewhere.
        """
        seed, replicate = scenario.seed, release.key.replicate
        rows = RowSelection(release.table, scenario.knowledge, seed, replicate)
        return cls(scenario, release, Gathered(release, rows, whole), coalitions, pooling)

    @property
    def by_record(self) -> Opened:
        """The release with noise independent between records.

        For serial noise, its innovations.
        """
        if self.law is None or self.law.serial is None:
            return self
        release = replace(self.release, serial=self.law.serial)
        return replace(self, release=release, gathered=Gathered(release, self.gathered.rows))

    @cached_property
    def again_places(self) -> list[slice]:
        """Runs of the records that are perturbed again."""
        rows, width = self.release.table.rows, self.release.table.width
        most = min(ROWS_AGAIN if self._steadied else MOST_AGAIN, BLOCK_VALUES // width)
        apart = rows // RUNS
        run = max(1, min(most // RUNS, apart))
        if rows <= (FEWEST_HELD if self._steadied else most):
            return [slice(0, rows)]
        return [slice(k * apart, k * apart + run) for k in range(RUNS)]

    @cached_property
    def again_table(self) -> Table:
        """The records that are perturbed again."""
        table, places = self.release.table, self.again_places
        if len(places) == 1:
            return table
        rows = np.concatenate([table.read(run.start, run.stop) for run in places])
        shown = table.shown_in(np.concatenate([np.arange(run.start, run.stop) for run in places]))
        return replace(table.head(1), content=rows, units=None, shown=shown)

    @property
    def again_share(self) -> float:
        """Share of the records that redraws have."""
        return self.again_table.rows / self.release.table.rows if self._steadied else 1.0

    @property
    def _steadied(self) -> bool:
        independent = self.law is not None and self.law.tells_spread
        return independent and self.release.transformed is None

    def steadied(self, knowledge: Knowledge) -> bool:
        """Whether more records of a large table steady an error.

        Not for adversaries who know some records.
        """
        large = len(self.again_places) > 1 and self._steadied
        return large and not self.gathered.rows.draw(knowledge)

    def held_again(self, knowledge: Knowledge) -> Iterator[tuple[int, Block]]:
        """Yield each run's place and redraw, draw by draw, for fixed attacks.

        None unless ``steadied``: then the spread between fits is of second order.
        """
        if not self.steadied(knowledge) or self._again_scheme is None:
            return
        for number in range(HELD_DRAWS):
            ((index, x, copies),) = self._drawn_again(number)[1].blocks()
            first = 0
            for run in self.again_places:
                stop = first + run.stop - run.start
                yield run.start, (index, x[first:stop], [copy[first:stop] for copy in copies])
                first = stop

    @cached_property
    def _again_scheme(self) -> Scheme | None:
        release = self.release
        return release.scheme.redrawn(release.levels, release.moments.scale)

    def _drawn_again(self, number: int) -> tuple[Scenario, Release]:
        release, key = self.release, self.release.key
        other = replace(
            self.scenario, seed=seed_of(key.audit_seed, key.scheme, key.replicate, number)
        )
        parts = self.again_table, release.moments, release.use, release.levels, key.replicate
        drawn, scheme = open_release(other, *parts), self._again_scheme
        if scheme is not None and scheme is not release.scheme:
            drawn = replace(drawn, scheme=scheme)
        return other, drawn

    def released_again(self, draws: int | None = None) -> Iterator[Opened]:
        """Yield other draws of this release, or of some of its records.

        None for files without a law that can be drawn from.
        """
        if self._again_scheme is None:
            return
        # attacks share small redraws
        kept, values = self.gathered.drawn, self.again_table.rows * self.release.table.width
        few = values * self.release.copies <= SHARED_VALUES
        for number in range(draws or ROW_REDRAWS):
            found = kept.get(number) or Opened.of(*self._drawn_again(number), ())
            if few:
                kept[number] = found
            yield replace(found, coalitions=self.coalitions)

    @cached_property
    def needed(self) -> list[Coalition]:
        """Coalitions, and members alone, to measure gains against."""
        return with_singles(self.coalitions)

    @property
    def wanted(self) -> list[int]:
        """Places of the requested coalitions among those needed."""
        asked = set(self.coalitions)
        return [place for place, coalition in enumerate(self.needed) if coalition in asked]

    @property
    def law(self) -> NoiseLaw | None:
        """The law of the noise in the copies."""
        return self.release.law

    @property
    def law_within(self) -> NoiseLaw | None:
        """The law before copies were transformed."""
        return self.law if self.release.transformed is None else self.release.transformed.law

    @property
    def estimated(self) -> bool:
        """Whether attacks get an estimated law, without theory."""
        return self.law is None and self.gathered.law is not None

    @property
    def fallback(self) -> ErrorBar:
        """Error bar without redraws: a jackknife for files."""
        return "replicates-needed" if self.release.scheme.makes_copies else "jackknife"

    @property
    def replicated(self) -> bool:
        """Whether the spread between replicates replaces all estimated error bars."""
        return self.scenario.replicates_of(self.release.use) >= FEWEST_REPLICATES

    @property
    def compared(self) -> Indices | None:
        """Places of the single copies that coalitions are paired with."""
        if not self.pooling or self.law is None:
            return None
        return least_noise(self.needed, self.law, self.release.moments.covariance)

    def judged(
        self, knowledge: Knowledge, blocks: Blocks | None = None
    ) -> tuple[Blocks, list[list[int]]]:
        """``RowSelection.judged`` of all blocks, or of the first rows of each."""
        return self.gathered.rows.judged(knowledge, blocks or self.release.blocks)

    def undone(self, blocks: Blocks) -> Blocks:
        """Blocks in the coordinates of the moments."""
        undone = self.release.undone
        return lambda: ((index, x, [*undone(copies)]) for index, x, copies in blocks())
