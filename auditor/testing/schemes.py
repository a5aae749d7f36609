"""Contract of schemes: the stated law, the seed, stable extensions."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from auditor.audit.law_tests.categorical import SCORED_ROWS, count_tests, pairs_of, score_tests
from auditor.audit.law_tests.numeric import row_tests
from auditor.base import AuditorError
from auditor.base.types import Array, Arrays, Options
from auditor.numerics.random_streams import stream
from auditor.process.environment import one_thread
from auditor.runs.perturb import as_categories
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.schemes.base.scheme import Key, Scheme, table_moments
from auditor.schemes.corner_wave import AdditiveScheme, implied_level_covariance, whitened
from auditor.schemes.draw import drawn_blocks
from auditor.schemes.replacement.base import UniformScheme
from auditor.testing.attacks import answers, as_numbers, levels_of, people
from auditor.testing.contract import LEVEL, READS_ONLY, SEED, Contract, digest

ROWS = 20_000
"""Detects a standard deviation off by 3 %, or a correlation by 0.05, in about 100 tests at ``LEVEL``.
"""
ROWS_WITHOUT_LAW = 400
ROWS_OF_CATEGORIES = 100_000
"""Detects a retention probability off by 0.01 at ``LEVEL``."""
VALUES = 3
OUT = 2
"""Copies already released in the extension check."""


def check_scheme(cls: type[Scheme], parameters: Options | None = None) -> None:
    """Check that a scheme keeps its contract, on three copies of one table.

    Parameters
    ----------
    cls
        Registered or not. Without copies, only its description is checked.
    parameters
        In scenario spelling; default ``cls.trial``.

    Raises
    ------
    ContractError
        With the name of the check: one of ``check_plugin``, or ``says what it promises``, ``refuses
        impossible levels``, ``draws``, ``finite``, ``same seed, same copies``, ``another seed,
        other copies``, ``leaves what it is shown as it is``, ``blocks in any order``, ``own draws
        in every block``, ``plan draws from the law``, ``follows its law``, ``extension leaves
        copies as they are``, ``extension follows the law``, ``classes are nested``.

    Notes
    -----
    Not checked: the quality of the law, schemes without one, and multilevel copies of categories
    without retention. Statistics as in `noise-follows-law`. An honest scheme fails with probability
    1e-6 per test.
    """
    contract = _CategoriesContract if issubclass(cls, UniformScheme) else _NumbersContract
    contract(cls, parameters).check()


class _SchemeContract(Contract):
    levels: tuple[float, ...] = ()

    def check(self) -> None:
        self.check_description()
        self.require(
            "says what it promises",
            isinstance(getattr(self.cls, "family", None), str) and len(self.cls.claims) > 10,
            "`family`, and what it promises under collusion in `claims`",
            "one of them empty",
        )
        if not self.cls.makes_copies:
            return
        scheme = self.make()
        for level in (float("nan"), -1.0):
            try:
                scheme.check_levels([level])
            except AuditorError:
                continue
            an_error = f"an AuditorError for a level of {level}"
            self.require("refuses impossible levels", False, an_error, "none")
        with one_thread(), self.no_other_error("draws"):
            self.levels = levels_of(scheme)
            self.check_copies()

    def check_copies(self) -> None:
        raise NotImplementedError

    def key(self, seed: int, block: int = 0) -> Key:
        return Key(seed, self.cls.name, matrices=SEED, block=block)

    def where(self) -> str:
        return f", at levels {list(self.levels)}" if self.levels else ""

    def require_law(self, check: str, tests: Sequence[Any]) -> None:
        for test in tests:  # moments first: they explain more
            self.require(
                check,
                test.p * len(tests) > LEVEL,
                f"by the stated law that {test.where} {test.expected:.4g}",
                f"{test.observed:.4g} ({test.statistic}, {test.rows:,} rows, p = {test.p:.1g})",
            )


class _CategoriesContract(_SchemeContract):
    def check_copies(self) -> None:
        table = as_categories(answers(ROWS_OF_CATEGORIES))
        scheme = self.make().over(table)
        original = table.codes.copy()
        before, copies = original.copy(), []
        made = scheme.copies(original, VALUES, self.key(SEED))
        for number, level in enumerate(self.levels, start=1):
            copies.append(made.ask(level).copy())
            same = all(np.array_equal(made.copy(k), copy) for k, copy in enumerate(copies, 1))
            as_drawn = f"copies 1 to {number} as drawn"
            self.require("extension leaves copies as they are", same, as_drawn)
        again = scheme.copies(original, VALUES, self.key(SEED))
        same = digest([again.ask(level) for level in self.levels]) == digest(copies)
        self.require("same seed, same copies", same, "the same copies from the same key")
        self.require(READS_ONLY, np.array_equal(before, original), "the codes as they were")
        for check, key in (
            ("another seed, other copies", self.key(SEED + 1)),
            ("own draws in every block", self.key(SEED, block=1)),
        ):
            drawn = scheme.copies(original, VALUES, key).ask(self.levels[0])
            self.require(check, not np.array_equal(drawn, copies[0]), "other draws", "the same")
        law, columns = scheme.channel(self.levels, VALUES), [original, *copies]
        inside = all(copy.shape == original.shape and (copy < VALUES).all() for copy in copies)
        self.require("follows its law", inside, f"codes from 0 to {VALUES - 1}, one a record")
        if law.by_retention or not law.multilevel:
            numbers, rows = range(1, len(columns)), len(original)
            counts = count_tests(
                law, numbers, lambda a, y: pairs_of(columns[a], columns[y], VALUES), rows
            )
            first = [column[:SCORED_ROWS] for column in columns]
            originals = {"original": first[0]}
            scores = score_tests(law, first, numbers, originals, stream(SEED, "scores"))
            self.require_law("follows its law", [*counts, *scores])


class _NumbersContract(_SchemeContract):
    def check_copies(self) -> None:
        # a scheme without a law needs few records
        for rows in (ROWS_WITHOUT_LAW, ROWS):
            values = people(rows, 0.8)
            self.table = as_numbers(np.rint(values) if self.cls.on_lattice else values)
            self.moments = table_moments(self.table)
            law = self._law()
            if law is None:
                break
        before = digest([self.table.values])
        copies, again = self._draw(SEED), self._draw(SEED)
        self._require_finite(copies)
        same = digest(copies) == digest(again)
        self.require("same seed, same copies", same, "the same copies from the same key")
        self.require(READS_ONLY, before == digest([self.table.values]), "the table as it was")
        if law is not None:
            wanted = (len(self.levels), self.table.width)
            fits = (law.copies, law.width) == wanted
            self.require("follows its law", fits, f"a law of {wanted} copies and attributes")
            if np.diag(law.covariance).any():
                other = digest(copies) != digest(self._draw(SEED + 1))
                self.require("another seed, other copies", other, "other noise", "the same")
                self._check_blocks()
        self._check_plan()
        self._check_law("follows its law", law, copies, SEED)
        self._check_nested(copies)
        self._check_extension(copies, law)

    def _law(self) -> NoiseLaw | None:
        scheme = self.make()
        transformed = scheme.transformed(self.levels, self.moments, self.key(SEED))
        law: NoiseLaw | None = (
            scheme.law(self.levels, self.moments) if transformed is None else transformed.law
        )
        return law

    def _draw(self, seed: int, out: Arrays = (), existing: int = 0) -> list[Array]:
        scheme, shape = self.make(), self.table.values.shape
        copies = list(out) or [_unwritten(scheme.blank(*shape)) for _ in self.levels]
        for _ in drawn_blocks(scheme, self.table, self.levels, self.key(seed), copies, existing):
            pass
        return copies

    def _require_finite(self, copies: Iterable[Array]) -> None:
        columns = (self.make().to_columns(copy, self.table.attributes) for copy in copies)
        self.require("finite", all(np.isfinite(x).all() for x in columns), "finite numbers")

    def _check_blocks(self) -> None:
        x, found = self.table.values[:100], []
        for order in ((0, 1), (1, 0)):
            sampler = self.make().sampler(self.levels, self.moments, self.key(SEED))
            drawn = {index: [np.full(x.shape, np.nan) for _ in self.levels] for index in order}
            for index in order:
                sampler.block(index, x, drawn[index])
            found.append([digest(drawn[index]) for index in (0, 1)])
        same = "the same copies of a block whichever block was drawn first"
        self.require("blocks in any order", found[0] == found[1], same)
        own = "other noise in the second block of rows"
        self.require("own draws in every block", found[0][0] != found[0][1], own, "the first's")

    def _check_plan(self) -> None:
        scheme = self.make()
        if not isinstance(scheme, AdditiveScheme):
            return
        Sigma = scheme.level_covariance(self.levels)
        for existing in (0, OUT):
            before = Sigma[:existing, :existing] if existing else None
            plan = scheme.plan(self.levels, existing)
            drawn = implied_level_covariance(plan, len(self.levels), before)
            i, j = np.unravel_index(np.abs(drawn - Sigma).argmax(), Sigma.shape)
            self.require(
                "plan draws from the law",
                np.allclose(drawn, Sigma, rtol=1e-9, atol=1e-9 * float(np.abs(Sigma).max())),
                f"{Sigma[i, j]:.6g} between copies {i + 1} and {j + 1}, as `level_covariance` says",
                f"that `plan` with {existing} copies out draws from {drawn[i, j]:.6g}",
            )

    def _check_law(self, check: str, law: NoiseLaw | None, copies: Arrays, seed: int) -> None:
        if law is None:
            return
        scheme, X = self.make(), self.table.values
        transformed = scheme.transformed(self.levels, self.moments, self.key(seed))
        noisy = copies if transformed is None else transformed.undo(copies)
        if law.serial is not None:
            noisy, law = whitened(law.serial, X, noisy), replace(law, serial=None)
        if law.distribution == "unstated":
            apart = scheme.drawn_apart(self.levels, X, noisy)
            if apart is None:
                return
            X, noisy, law = apart
        names = self.table.attributes
        self.require_law(check, row_tests(X, noisy, law, names, transformed is None))

    def _check_extension(self, copies: list[Array], law: NoiseLaw | None) -> None:
        unwritten = [_unwritten(np.empty_like(copy)) for copy in copies[OUT:]]
        out = self._draw(SEED + 2, [*(copy.copy() for copy in copies[:OUT]), *unwritten], OUT)
        same = digest(out[:OUT]) == digest(copies[:OUT])
        as_before = "copies that are out as they were"
        self.require("extension leaves copies as they are", same, as_before)
        self._require_finite(out)
        self._check_law("extension follows the law", law, out, SEED + 2)
        self._check_nested(out)

    def _check_nested(self, copies: Arrays) -> None:
        if not getattr(self.cls, "nested", False):
            return
        pairs = list(combinations(range(1, len(copies) + 1), 2))
        nested = self.make().sufficient([(0, self.table.values, list(copies))], pairs)
        for (one, other), holds in nested.items():
            unions = f"the classes of copies {one} and {other} to be unions of one another's"
            self.require("classes are nested", holds, unions, "that some cut them")


def _unwritten(copy: Array) -> Array:
    copy.view(np.uint8)[...] = 255
    return copy
