"""First pass over a release of categories, with the tests and facts from its counts."""

from __future__ import annotations

from functools import partial

import numpy as np

from auditor.audit.categorical.first_pass import CountJob
from auditor.audit.categorical.release import UniformRelease
from auditor.audit.categorical.release_records import marginal_tests
from auditor.audit.law_tests.categorical import (
    count_tests,
    score_tests,
    scored_copies,
    scored_rows,
    sources,
)
from auditor.audit.numeric.known_rows import draws_of
from auditor.numerics.random_streams import stream
from auditor.results.evidence import Facts, LawTest
from auditor.schemes.replacement.draws import MOST_COPIES, between, drawn_between
from auditor.schemes.replacement.law import MatrixLaw


class Counting:
    """Counts of one release.

    Attributes
    ----------
    counted : Counted
    draws : dict
        The rows that each state of knowledge chooses.
    """

    def __init__(self, release: UniformRelease) -> None:
        self._release, scenario = release, release.scenario
        law, data, singles = release.law, release.data, tuple(release.singles)
        replicate = release.key.replicate
        few = law.multilevel and len(law.levels) <= MOST_COPIES
        # copies between two others, whose random draws are tested
        self._between = between(law.levels) if few else []
        self.draws = draws_of(scenario.knowledge, data.rows, scenario.seed, replicate)
        # whether the law states each copy's transitions, from another copy or the original
        self._stated = law.by_retention or isinstance(law, MatrixLaw)
        scored = scored_copies(singles, data.rows) if self._stated and replicate == 1 else ()
        self._scored = tuple(scored)
        self.counted = release.go_through(
            CountJob(
                data.size,
                singles,
                tuple(self._between),
                self.draws,
                law.multilevel and scenario.measure("history-size") is not None,
                sources(law.of(singles), singles) if self._stated else (),
                self._scored,
                scored_rows(len(self._scored), data.rows),
            )
        )

    def facts(self) -> Facts:
        """Return the tests of single copies, and of copies between two others."""
        release, counted = self._release, self.counted
        found: Facts = {"marginal": marginal_tests(release, counted)}
        if self._between:
            prior = release.data.prior
            found["drawn"] = drawn_between(release.law, prior, self._between, counted.between)
        return found

    def law_tests(self) -> list[LawTest]:
        """Return the tests of the stated law, if any."""
        release, data, singles = self._release, self._release.data, self._release.singles
        if not self._stated or not singles:
            return []
        dense = partial(self.counted.dense, size=data.size)
        tests = count_tests(release.law.of(singles), singles, dense, data.rows)
        if self._scored:
            columns = [np.concatenate(parts) for parts in zip(*self.counted.rows, strict=True)]
            key, law = release.key, release.law.of(self._scored)
            rng = stream(key.audit_seed, key.scheme, key.replicate, "scores")
            values = np.unravel_index(columns[0], [attribute.size for attribute in data.attributes])
            originals = dict(zip(data.names, values, strict=True))
            tests += score_tests(law, columns, self._scored, originals, rng)
        return tests
