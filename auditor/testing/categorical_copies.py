"""Checks of categorical schemes: joint law by χ², scores of rows, seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor.audit.law_tests.categorical import SCORED_ROWS, score_tests
from auditor.data.microdata import as_categories
from auditor.numerics.random_streams import stream
from auditor.process.deferred import scipy
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import UniformScheme
from auditor.schemes.replacement.law import MatrixLaw, UniformLaw
from auditor.testing.contract import LEVEL, READS_ONLY, SEED, digest, made, require
from auditor.testing.tables import answers, levels_of
from auditor.types import Array

ROWS = 100_000
"""Detects a retention probability off by 0.01 at ``LEVEL``."""
VALUES = 3


@dataclass(frozen=True)
class CategoricalCopies:
    """Copies of one column of three categories, drawn one by one."""

    cls: type[UniformScheme]
    parameters: Mapping[str, Any] | None

    def check(self) -> None:
        """Run every check."""
        table = as_categories(answers(ROWS))
        scheme: UniformScheme = made(self.cls, self.parameters).over(table)
        levels, key = levels_of(scheme), Key(SEED, scheme.name)
        original = table.codes.copy()
        before = original.copy()
        made_copies = scheme.copies(original, VALUES, key)
        copies = []
        for number, level in enumerate(levels, start=1):
            copies.append(made_copies.ask(level).copy())
            same = all(
                np.array_equal(made_copies.copy(k), copies[k - 1]) for k in range(1, number + 1)
            )
            require(
                self.cls,
                "extension leaves copies as they are",
                same,
                f"expected copies 1 to {number} as drawn, found others",
            )
        again = scheme.copies(original, VALUES, key)
        drawn_again = [again.ask(level) for level in levels]
        require(
            self.cls,
            "same seed, same copies",
            digest(drawn_again) == digest(copies),
            "expected the same copies from the same key, found others",
        )
        require(
            self.cls,
            READS_ONLY,
            np.array_equal(before, original),
            "expected the codes as they were, found others",
        )
        for check, other in (
            ("another seed, other copies", Key(SEED + 1, scheme.name)),
            ("own draws in every block", Key(SEED, scheme.name, block=1)),
        ):
            drawn = scheme.copies(original, VALUES, other).ask(levels[0])
            require(
                self.cls,
                check,
                not np.array_equal(drawn, copies[0]),
                "expected other draws, found the same",
            )
        law = scheme.channel(levels, VALUES)
        self._follows(law.given_original(), original, copies)
        if law.by_retention or isinstance(law, MatrixLaw):
            self._rows_are_independent(law, [original, *copies])

    def _follows(self, given: Array, original: Any, copies: Sequence[Any]) -> None:
        """χ² test over outcomes of value and copies; one degree less per value."""
        shape = (VALUES,) * (len(copies) + 1)
        inside = all(copy.shape == original.shape and (copy < VALUES).all() for copy in copies)
        require(
            self.cls,
            "follows its law",
            inside,
            f"expected codes from 0 to {VALUES - 1}, one a record, found others",
        )
        found = np.bincount(
            np.ravel_multi_index((original, *copies), shape), minlength=VALUES ** len(shape)
        ).reshape(shape)
        expected = given * np.bincount(original, minlength=VALUES).reshape(-1, *(1,) * len(copies))
        off = (found - expected) ** 2 / expected
        p, place = (
            float(scipy.special.chdtrc(off.size - VALUES, off.sum())),
            np.unravel_index(off.argmax(), shape),
        )
        require(
            self.cls,
            "follows its law",
            p > LEVEL,
            f"expected {expected[place]:.1f} of {ROWS:,} records with value {place[0]} and copies {[int(k) for k in place[1:]]} "
            f"by the stated law, found {found[place]} (p = {p:.1g})",
        )

    def _rows_are_independent(self, law: UniformLaw, columns: Sequence[Any]) -> None:
        """Test scores of the copies; Bonferroni over statistics."""
        numbers = range(1, len(columns))
        first = [column[:SCORED_ROWS] for column in columns]
        tests = score_tests(law, first, numbers, {"original": first[0]}, stream(SEED, "scores"))
        for test in tests:
            require(
                self.cls,
                "follows its law",
                test.p * len(tests) > LEVEL,
                f"expected by the stated law that {test.where} {test.expected:.4g}, found {test.observed:.4g} "
                f"({test.statistic}, {test.rows:,} records, p = {test.p:.1g})",
            )
