"""One release of numbers with its moments gathered: what every attack is fitted to, and what its errors are measured on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.knowledge import Knowledge
from auditor.audit.base.release import Release, WhiteRelease, open_release
from auditor.audit.numeric.error_bars import least_noise
from auditor.audit.numeric.estimated_noise import estimated_noise
from auditor.audit.numeric.gather import Stripe
from auditor.audit.numeric.limits import groups_apart
from auditor.audit.numeric.redraws import Redraws, seed_of
from auditor.audit.numeric.row_selection import RowSelection
from auditor.audit.numeric.transformed_copies import undone
from auditor.audit.numeric.views import Gathered, ReleasedCopies
from auditor.errors import PluginError
from auditor.numerics.blocks import BLOCK_VALUES
from auditor.process.containment import known
from auditor.results.records import FEWEST_REPLICATES
from auditor.scenario.model import Scenario
from auditor.schemes.base.noise_law import DenseNoise, KroneckerNoise, NoiseLaw
from auditor.types import Blocks, Coalition


@dataclass(frozen=True)
class Opened:
    """A release, and the coalitions that try to undo it.

    Attributes
    ----------
    scenario : Scenario
    release : Release
    gathered : Gathered
    coalitions : sequence of tuple of int
        Those asked for.
    pooling : bool
        Whether an expectation asks what pooling buys.
    redraws : dict
        By label of a state of knowledge: other draws that attacks share.
    again : dict
        Other draws of the whole release that attacks share, if they are small.
    """

    scenario: Scenario
    release: Release
    gathered: Gathered
    coalitions: Sequence[Coalition]
    pooling: bool = False
    redraws: dict[str, Redraws] = field(default_factory=dict, repr=False)
    again: dict[int, Opened] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        scenario: Scenario,
        release: Release,
        coalitions: Sequence[Coalition],
        pooling: bool = False,
        stripes: Iterable[Stripe] | None = None,
    ) -> Opened:
        """Gather a release's moments, or take the stripes that others gathered.

        Raises
        ------
        PluginError
            The scheme stated a law that cannot be its copies'.
        AuditorError
            Others could not make the release.
        """
        table, law = release.table, release.scheme.law(release.levels, release.moments.scale)
        _check_law(law, release.copies, table.width)
        joint = release.scheme.output_width(table.width) == table.width
        copies = ReleasedCopies(
            table=table,
            moments=release.moments,
            levels=release.levels,
            law=law,
            blocks=release.blocks,
            joint=joint,
            public=release.scheme.public,
            numbers=tuple(range(1, release.copies + 1)),
            transformed=release.transformed,
            apart=wants_groups(release, law, pooling),
        )
        gathered = Gathered(
            copies,
            RowSelection(table, scenario.knowledge, scenario.seed, release.key.replicate),
            stripes,
        )
        if (
            release.scheme.adds_noise
            and not release.scheme.makes_copies
            and joint
            and gathered.finite
        ):
            gathered.noise = estimated_noise(gathered.groups, release.moments)
        if stripes is not None:
            release.seconds = gathered.seconds
        return cls(scenario, release, gathered, coalitions, pooling)

    @property
    def by_record(self) -> Opened:
        """The release for tests that suppose every record's noise to be drawn afresh: of noise that follows on its innovations.

        Not kept where it is this one: what refers to itself lives on until the collector comes, and
        this holds all moments.
        """
        return self if self.law is None or self.law.serial is None else self._innovations

    @cached_property
    def _innovations(self) -> Opened:
        law = self.law
        assert law is not None
        assert law.serial is not None
        release = WhiteRelease.of(self.release, law.serial)
        copies = replace(self.gathered.copies, law=replace(law, serial=None), blocks=release.blocks)
        return replace(
            self, release=release, gathered=Gathered(copies, self.gathered.rows), again={}
        )

    def released_again(self, draws: int) -> Iterator[Opened]:
        """Yield so many other draws of this release; none where one takes long (several blocks), or copies are not ours to draw."""
        release, key = self.release, self.release.key
        table_values = release.table.rows * release.table.width
        if table_values > BLOCK_VALUES or not release.scheme.makes_copies:
            return
        # small ones are kept for the next attack
        few = table_values * release.copies * draws <= BLOCK_VALUES
        for number in range(draws):
            if number in self.again:
                yield replace(self.again[number], coalitions=self.coalitions)
                continue
            other = replace(
                self.scenario, seed=seed_of(key.audit_seed, key.scheme, key.replicate, number)
            )
            drawn = open_release(
                other, release.table, release.moments, release.use, release.levels, key.replicate
            )
            made = Opened.of(other, drawn, self.coalitions)
            if few:
                self.again[number] = made
            yield made

    @cached_property
    def needed(self) -> list[Coalition]:
        """The coalitions, and the single copies that their gains are measured against."""
        members = {(copy,) for coalition in self.coalitions for copy in coalition}
        return sorted(
            members | set(self.coalitions), key=lambda coalition: (len(coalition), coalition)
        )

    @property
    def wanted(self) -> list[int]:
        """Places among those needed of those asked for."""
        asked = set(self.coalitions)
        return [place for place, coalition in enumerate(self.needed) if coalition in asked]

    @property
    def law(self) -> NoiseLaw | None:
        """The law of the noise in the copies."""
        return self.gathered.copies.law

    @property
    def estimated(self) -> bool:
        """Whether attacks are given a law that nobody states, so that no theory may rest on it."""
        return self.law is None and self.gathered.law is not None

    @property
    def alone(self) -> bool:
        """Whether nobody can draw such copies again, so that these are all that can be judged: files without a law of their noise."""
        return not self.release.scheme.makes_copies and (
            self.law_within is None or not self.law_within.tells_spread
        )

    @property
    def law_within(self) -> NoiseLaw | None:
        """The law of the noise, or of what there was before copies were transformed."""
        return self.law if self.release.transformed is None else self.release.transformed.law

    @property
    def replicated(self) -> bool:
        """Whether the spread between replicates will take the place of any estimated error bar."""
        return self.scenario.replicates_of(self.release.use) >= FEWEST_REPLICATES

    @property
    def compared(self) -> NDArray[np.intp] | None:
        """Places of the single copies to pair coalitions with, when an expectation asks what pooling buys."""
        return (
            least_noise(self.needed, self.law, self.release.moments.covariance)
            if self.pooling and self.law is not None
            else None
        )

    def judged(
        self, knowledge: Knowledge, blocks: Blocks | None = None
    ) -> tuple[Blocks, list[list[int]]]:
        """Return ``RowSelection.judged`` of all blocks, or of the first rows of each."""
        return self.gathered.rows.judged(
            knowledge, self.release.blocks if blocks is None else blocks
        )

    def undone(self, blocks: Blocks) -> Blocks:
        """Return blocks in the coordinates that moments are gathered in."""
        return undone(self.release.transformed, blocks)


def wants_groups(release: Release, law: NoiseLaw | None, pooling: bool) -> bool:
    """Return ``ReleasedCopies.apart``, given the law of the noise in the copies, and whether an expectation asks what pooling buys."""
    return groups_apart(law if release.transformed is None else release.transformed.law, pooling)


def _check_law(law: NoiseLaw | None, copies: int, width: int) -> None:
    """Refuse a law of something else than the noise in these copies; the harness does not trust what a plugin states."""
    if law is None:
        return
    if not isinstance(law, (KroneckerNoise, DenseNoise)):
        raise PluginError(
            f"the scheme stated a {known(type(law)).__name__} for the law of its noise"
        )
    parts = (
        (law.level_covariance, law.shape) if isinstance(law, KroneckerNoise) else (law.covariance,)
    )
    sizes = (copies, width) if isinstance(law, KroneckerNoise) else (copies * width,)
    for part, size in zip(parts, sizes, strict=True):
        if np.shape(part) != (size, size) or not np.isfinite(part).all():
            raise PluginError(
                f"the scheme stated no finite law for {copies} copies of {width} attributes"
            )
