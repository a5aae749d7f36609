"""Contract of schemes: the stated law, the seed, stable extensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from auditor.audit.law_tests.numeric import in_memory_tests
from auditor.data.table import Table
from auditor.errors import AuditorError
from auditor.process.environment import one_thread
from auditor.schemes.base.additive import AdditiveScheme
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.schemes.base.plans import implied_level_covariance
from auditor.schemes.base.scheme import Key, Scheme, TableMoments, table_moments
from auditor.schemes.base.serial import whitened
from auditor.schemes.draw import drawn_blocks
from auditor.schemes.replacement.base import UniformScheme
from auditor.testing.categorical_copies import CategoricalCopies
from auditor.testing.contract import (
    LEVEL,
    READS_ONLY,
    SEED,
    ContractError,
    check_plugin,
    digest,
    made,
    nothing_else_raised,
    require,
)
from auditor.testing.tables import as_numbers, levels_of, people
from auditor.types import Array

ROWS = 20_000
"""Detects a standard deviation off by 3 %, or a correlation by 0.05, at ``LEVEL`` over about 100
tests."""
ROWS_WITHOUT_LAW = 400
OUT = 2
"""Copies already released in the extension check."""


def check_scheme(cls: type[Scheme], parameters: Mapping[str, Any] | None = None) -> None:
    """Check that a scheme keeps its contract, on three copies of one table.

    Parameters
    ----------
    cls : type
        The scheme's class, registered or not. Without copies, only its description is checked.
    parameters : mapping, optional
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
    Not checked: the quality of the law, and schemes without one. The statistics are from the
    expectation `noise-follows-law`; categories use a χ² test over all outcomes. An honest scheme
    fails with probability 1e-6 per test.
    """
    check_plugin(cls, parameters)
    require(
        cls,
        "says what it promises",
        isinstance(getattr(cls, "family", None), str) and len(cls.claims) > 10,
        "expected `family`, and what it promises under collusion in `claims`, found one of them empty",
    )
    if not cls.makes_copies:
        return
    _impossible_refused(cls, made(cls, parameters))
    with one_thread(), nothing_else_raised(cls, "draws"):
        if issubclass(cls, UniformScheme):
            CategoricalCopies(cls, parameters).check()
        else:
            _numbers(cls, parameters).check()


def _impossible_refused(cls: type[Scheme], scheme: Scheme) -> None:
    for level in (float("nan"), -1.0):
        try:
            scheme.check_levels([level])
        except AuditorError:
            continue
        raise ContractError(
            cls,
            "refuses impossible levels",
            f"expected an AuditorError for a level of {level}, found none",
        )


# -- numbers
# -----------------------------------------------------------------------------------------------------------


def _numbers(cls: type[Scheme], parameters: Mapping[str, Any] | None) -> _Numbers:
    scheme: Scheme = made(cls, parameters)
    levels, few = levels_of(scheme), _people(cls, ROWS_WITHOUT_LAW)
    law = scheme.law(levels, table_moments(few))
    stated = (
        law is not None
        or scheme.transformed(levels, table_moments(few), Key(SEED, scheme.name)) is not None
    )
    table = _people(cls, ROWS) if stated else few
    return _Numbers(cls, parameters, table, table_moments(table), levels, table.values.copy())


def _people(cls: type[Scheme], rows: int) -> Table:
    """Return a table for the scheme, whole numbers for lattice noise."""
    values = people(rows, 0.8)
    return as_numbers(np.rint(values) if cls.on_lattice else values)


def unwritten(copy: Array) -> Array:
    """Fill a copy with set bits (NaN for doubles), to detect unwritten cells."""
    copy.view(np.uint8)[...] = 255
    return copy


@dataclass(frozen=True)
class _Numbers:
    cls: type[Scheme]
    parameters: Mapping[str, Any] | None
    table: Table = field(repr=False)
    moments: TableMoments = field(repr=False)
    levels: tuple[float, ...]
    before: Array = field(repr=False)

    def check(self) -> None:
        copies = self._draw(self._key(SEED))
        self._require("finite", self._finite(copies), "expected finite numbers, found others")
        again = self._draw(self._key(SEED))
        self._require(
            "same seed, same copies",
            digest(copies) == digest(again),
            "expected the same copies from the same key, found others",
        )
        self._require(
            READS_ONLY,
            digest([self.before]) == digest([self.table.values]),
            "expected the table as it was, found that its values changed",
        )
        law = self._law()
        if law is not None and np.diag(law.covariance).any():
            other = self._draw(self._key(SEED + 1))
            self._require(
                "another seed, other copies",
                digest(copies) != digest(other),
                "expected other noise from another key, found the same",
            )
            self._blocks(law)
        self._plan()
        self._follows("follows its law", law, copies, self._key(SEED))
        self._nested(copies)
        self._extension(copies, law)

    def _draw(
        self, key: Key, copies: Sequence[Array] | None = None, existing: int = 0
    ) -> list[Array]:
        scheme = self._scheme()
        out = (
            [unwritten(scheme.blank(*self.table.values.shape)) for _ in self.levels]
            if copies is None
            else list(copies)
        )
        for _ in drawn_blocks(scheme, self.table, self.levels, key, out, existing):
            pass
        return out

    def _finite(self, copies: Sequence[Array]) -> bool:
        return all(
            np.isfinite(self._scheme().to_columns(copy, self.table.attributes)).all()
            for copy in copies
        )

    def _scheme(self) -> Scheme:
        scheme: Scheme = made(self.cls, self.parameters)
        return scheme

    def _key(self, seed: int) -> Key:
        return Key(seed, self.cls.name, matrices=SEED)

    def _law(self) -> NoiseLaw | None:
        scheme = self._scheme()
        transformed = scheme.transformed(self.levels, self.moments, self._key(SEED))
        law = scheme.law(self.levels, self.moments) if transformed is None else transformed.law
        if law is not None:
            found, wanted = (law.copies, law.width), (len(self.levels), self.table.width)
            self._require(
                "follows its law",
                found == wanted,
                f"expected a law of {wanted} copies and attributes, found one of {found}",
            )
        return law

    def _noise(self, copies: Sequence[Array], key: Key) -> Sequence[Array]:
        transformed = self._scheme().transformed(self.levels, self.moments, key)
        return copies if transformed is None else transformed.undo(copies)

    def _blocks(self, law: NoiseLaw) -> None:
        """Draw two blocks in both orders, and equal rows in two blocks."""
        x = self.table.values[:100]
        found = []
        for order in ((0, 1), (1, 0)):
            sampler = self._scheme().sampler(self.levels, self.moments, self._key(SEED))
            drawn = {
                index: [np.full((100, self.table.width), np.nan) for _ in self.levels]
                for index in order
            }
            for index in order:
                sampler.block(index, x, drawn[index])
            found.append(drawn)
        self._require(
            "blocks in any order",
            all(digest(found[0][index]) == digest(found[1][index]) for index in (0, 1)),
            "expected the same copies of a block whichever block was drawn first, found others",
        )
        self._require(
            "own draws in every block",
            digest(found[0][0]) != digest(found[0][1]),
            "expected other noise in the second block of rows, found the first's",
        )

    def _plan(self) -> None:
        scheme = self._scheme()
        if not isinstance(scheme, AdditiveScheme):
            return
        Sigma = scheme.level_covariance(self.levels)
        for existing in (0, OUT):
            before = Sigma[:existing, :existing] if existing else None
            drawn = implied_level_covariance(
                scheme.plan(self.levels, existing), len(self.levels), before
            )
            i, j = np.unravel_index(np.abs(drawn - Sigma).argmax(), Sigma.shape)
            self._require(
                "plan draws from the law",
                np.allclose(drawn, Sigma, rtol=1e-9, atol=1e-9 * float(np.abs(Sigma).max())),
                f"expected {Sigma[i, j]:.6g} between copies {i + 1} and {j + 1}, as `level_covariance` says, found that `plan` "
                f"with {existing} copies out draws from {drawn[i, j]:.6g}",
            )

    def _follows(self, check: str, law: NoiseLaw | None, copies: Sequence[Array], key: Key) -> None:
        if law is None:
            return
        transformed = self._scheme().transformed(self.levels, self.moments, key)
        noisy, X, names = self._noise(copies, key), self.table.values, self.table.attributes
        if law.serial is not None:
            noisy, law = whitened(law.serial, X, noisy), replace(law, serial=None)
        if law.distribution == "unstated":
            apart = self._scheme().drawn_apart(self.levels, X, noisy)
            if apart is None:
                return
            X, noisy, law = apart
        tests = in_memory_tests(X, noisy, law, names, transformed is None)
        for test in tests:  # moments first: a variance explains more than its distribution
            self._require(
                check,
                test.p * len(tests) > LEVEL,
                f"expected by the stated law that {test.where} {test.expected:.4g}, found {test.observed:.4g} "
                f"({test.statistic}, {test.rows:,} rows, p = {test.p:.1g})",
            )

    def _extension(self, copies: list[Array], law: NoiseLaw | None) -> None:
        """Extend the released copies with another key."""
        out = [
            *(copy.copy() for copy in copies[:OUT]),
            *(unwritten(np.empty_like(copy)) for copy in copies[OUT:]),
        ]
        self._draw(self._key(SEED + 2), out, OUT)
        self._require(
            "extension leaves copies as they are",
            digest(out[:OUT]) == digest(copies[:OUT]),
            "expected copies that are out as they were, found others",
        )
        self._require(
            "finite", self._finite(out), "expected finite numbers in an extension, found others"
        )
        self._follows("extension follows the law", law, out, self._key(SEED + 2))
        self._nested(out)

    def _nested(self, copies: Sequence[Array]) -> None:
        """Check that of two nested copies one is sufficient for the other."""
        if not getattr(self.cls, "nested", False):
            return
        numbers = range(1, len(copies) + 1)
        nested = self._scheme().sufficient(
            [(0, self.table.values, list(copies))], list(combinations(numbers, 2))
        )
        for (one, other), says in nested.items():
            self._require(
                "classes are nested",
                says,
                f"expected the classes of copies {one} and {other} to be unions of one another's, "
                "found that some cut them",
            )

    def _require(self, check: str, holds: object, said: str) -> None:
        require(self.cls, check, holds, f"{said}, at levels {list(self.levels)}")
