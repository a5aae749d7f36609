"""What attacks yield on the coalitions of a uniform release: sums over its records, and closed forms.

A posterior is worked out once for each outcome that records of a block show, and looked up for all
of them; where there are few outcomes at all, once a stripe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.categorical_attack import Inference
from auditor.audit.categorical.belief_gap import Gap
from auditor.audit.categorical.cell_records import Bars
from auditor.audit.categorical.posterior_measures import (
    Expected,
    Frame,
    Sums,
    expected,
    group_of,
    quantities,
)
from auditor.audit.counts.code_blocks import CodeBlock
from auditor.audit.counts.outcome_counts import Counts, Packing, different
from auditor.audit.numeric.gather import Draw
from auditor.data.columns.categorical_table import CategoricalTable
from auditor.numerics.passes import Job
from auditor.numerics.read_only import readable, seal
from auditor.process.containment import contained
from auditor.schemes.replacement.draws import code_type
from auditor.schemes.replacement.law import UniformLaw
from auditor.types import Array, Coalition

Try = tuple[str, str]
"""An attack's id and a state of knowledge's label."""

QUANTITIES = 8
"""Measured of every record, about."""
BLOCK_NUMBERS = 2**18
"""Numbers of a block of posteriors: they stay in the cache while they are measured."""
MOST_OUTCOMES = 2**18
"""Outcomes times values up to which closed forms are summed over every outcome, and records counted
for a whole stripe."""


@dataclass
class Measured:
    """What one attack yields on one coalition."""

    sums: Sums
    closed: dict[str, Expected] | None
    bars: Bars = field(default_factory=dict)
    gap: Gap | None = None


@dataclass(frozen=True)
class Fitted:
    """One attack with one state of knowledge, fitted to every coalition.

    Attributes
    ----------
    inferences, frames : dicts by coalition
    hidden : str or None
        Names the choice of rows that are known in clear and not attacked; None where there are
        none.
    """

    inferences: Mapping[Coalition, Inference] = field(repr=False)
    frames: Mapping[Coalition, Frame] = field(repr=False)
    hidden: str | None

    @property
    def serial(self) -> bool:
        """Whether posteriors depend on neighbouring records: these cannot be looked up by outcome then."""
        return any(inference.serial for inference in self.inferences.values())


@dataclass
class Found:
    """Sums by attack, knowledge and coalition, and what is counted for the stripe that is gone through; why attacks failed."""

    sums: dict[Try, dict[Coalition, Sums]] = field(default_factory=dict, repr=False)
    failed: dict[Try, tuple[str, str]] = field(default_factory=dict)
    waiting: dict[tuple[Coalition, str | None], Counts] = field(default_factory=dict, repr=False)

    def add(self, other: Found) -> None:
        """Add what was found in the stripes that follow."""
        for name, why in other.failed.items():
            self.failed.setdefault(name, why)
        for name, parts in other.sums.items():
            mine = self.sums.setdefault(name, {})
            for coalition, sums in parts.items():
                mine.setdefault(coalition, Sums(sums.size, sums.groups.size, sums.apart)).join(sums)


@dataclass(frozen=True)
class MeasureJob(Job[Found]):
    """Has every attack infer from every coalition.

    Attributes
    ----------
    size : int
        ``s``.
    groups : list of lists of (int, int, int)
        Block by block, ``(group, start, stop)`` of the row groups for the jackknife.
    fitted : dict
    draws : dict
        The rows known in clear, or that a law was learnt from.
    apart : bool
        Whether sums of every quantity are kept apart by row group.
    """

    size: int
    groups: Sequence[Sequence[tuple[int, int, int]]] = field(repr=False)
    fitted: Mapping[Try, Fitted] = field(repr=False)
    draws: Mapping[str, Draw] = field(repr=False)
    apart: bool = False

    def begin(self) -> Found:
        """Return nothing found."""
        return Found()

    def take(self, block: CodeBlock, into: Found) -> None:
        """Take one block."""
        groups = group_of(self.groups[block.index])
        for name, fitted in self.fitted.items():
            if fitted.serial:
                self._in_order(name, fitted, block, groups, into)
        for hidden in dict.fromkeys(
            fitted.hidden for fitted in self.fitted.values() if not fitted.serial
        ):
            left = slice(None) if hidden is None else self._left(hidden, block)
            x, group = block.x[left], groups[left]
            for coalition in dict.fromkeys(
                c for fitted in self._with(hidden).values() for c in fitted.inferences
            ):
                packing = self._packing(coalition)
                columns = [*(block.copy(number)[left] for number in coalition), x, group]
                if self._few(coalition):
                    into.waiting.setdefault((coalition, hidden), Counts(packing.dtype)).take(
                        packing.pack(columns)
                    )
                elif packing.wide:  # hardly any two records will show the same
                    self._measure(coalition, hidden, columns, np.ones(x.size), into)
                else:
                    keys, counts = different(packing.pack(columns))
                    self._measure(
                        coalition, hidden, packing.unpack(keys), counts.astype(np.float64), into
                    )

    def end(self, into: Found) -> None:
        """Measure what was counted for a whole stripe."""
        for (coalition, hidden), counts in into.waiting.items():
            keys, found = counts.all()
            self._measure(
                coalition,
                hidden,
                self._packing(coalition).unpack(keys),
                found.astype(np.float64),
                into,
            )
        into.waiting = {}

    def _with(self, hidden: str | None) -> dict[Try, Fitted]:
        return {
            name: fitted
            for name, fitted in self.fitted.items()
            if fitted.hidden == hidden and not fitted.serial
        }

    def _in_order(
        self, name: Try, fitted: Fitted, block: CodeBlock, groups: NDArray[np.intp], into: Found
    ) -> None:
        """Measure a block's records all at once, by an attack that looks at what stands beside what."""
        x = block.x.astype(np.intp)
        with contained() as failure:
            for coalition, inference in (
                fitted.inferences.items() if name not in into.failed else ()
            ):
                P = inference.checked(readable([block.copy(number) for number in coalition]))
                sums = into.sums.setdefault(name, {}).setdefault(
                    coalition, Sums(self.size, self._count, self.apart)
                )
                weight = (
                    None
                    if fitted.hidden is None
                    else self._left(fitted.hidden, block).astype(np.float64)
                )
                sums.add(
                    quantities(P, fitted.frames[coalition]), np.arange(x.size), x, groups, weight
                )
        if failure.error is not None:
            into.failed[name] = (failure.status, failure.reason)

    def _left(self, hidden: str, block: CodeBlock) -> NDArray[np.bool_]:
        left = np.ones(block.x.size, dtype=bool)
        left[self.draws[hidden].within(block.first, block.first + block.x.size)[0]] = False
        return left

    def _few(self, coalition: Coalition) -> bool:
        return bool(self.size ** (len(coalition) + 1) <= MOST_OUTCOMES)

    def _packing(self, coalition: Coalition) -> Packing:
        return Packing([*[self.size] * (len(coalition) + 1), self._count])

    @property
    def _count(self) -> int:
        return self.groups[-1][-1][0] + 1

    def _measure(
        self,
        coalition: Coalition,
        hidden: str | None,
        columns: Sequence[NDArray[np.integer[Any]]],
        weight: Array,
        into: Found,
    ) -> None:
        """Measure records, given by outcome, original value and row group, and how many there are of each; alike outcomes side by side."""
        if not weight.size:
            return
        shown, x, group = columns[:-2], columns[-2].astype(np.intp), columns[-1].astype(np.intp)
        new = np.ones(weight.size, dtype=bool)
        new[1:] = np.any([copy[1:] != copy[:-1] for copy in shown], axis=0)
        first = np.flatnonzero(new)
        place, table = (
            np.cumsum(new) - 1,
            [copy[first].astype(code_type(self.size)) for copy in shown],
        )
        seal(*table)
        for name, fitted in self._with(hidden).items():
            if name in into.failed:
                continue
            sums = into.sums.setdefault(name, {}).setdefault(
                coalition, Sums(self.size, self._count, self.apart)
            )
            with contained() as failure:
                rows = max(64, BLOCK_NUMBERS // self.size)
                for a in range(0, first.size, rows):
                    P = fitted.inferences[coalition].checked([part[a : a + rows] for part in table])
                    found = quantities(P, fitted.frames[coalition])
                    some = slice(*np.searchsorted(place, (a, a + rows)))
                    sums.add(found, place[some] - a, x[some], group[some], weight[some])
            if failure.error is not None:
                into.failed[name] = (failure.status, failure.reason)


def closed_forms(
    law: UniformLaw, data: CategoricalTable, inference: Inference, frame: Frame
) -> dict[str, Expected] | None:
    """Sum over every outcome a coalition's law allows; of multilevel copies the best stands for all (``best_is_sufficient``).

    None where they are too many, or where the best copy does not stand for all.
    """
    place, copies = law.best - 1, len(law.levels)
    members = (place,) if law.multilevel else tuple(range(copies))
    if law.multilevel and not law.best_is_sufficient():
        return None
    s, k = data.size, len(members)
    if s ** (k + 1) > MOST_OUTCOMES:
        return None
    given = law.of([member + 1 for member in members]).given_original().reshape(s, -1)
    # nobody shows an outcome that only values nobody has lead to
    possible = np.flatnonzero(given[data.prior > 0].any(axis=0))
    outcome = np.unravel_index(possible, (s,) * k)
    # every copy shows what the best one does: as likely as any other outcome with the same
    # posterior
    if law.multilevel:
        outcome = outcome * copies
    table = [np.asarray(part, dtype=data.code_type) for part in outcome]
    found = quantities(inference.checked(table), frame)
    return expected(given[:, possible], data.prior, found, data.rows)


def gain_in_theory(found: Mapping[Coalition, Measured], coalition: Coalition) -> float | None:
    """Return the closed-form collusion gain on the reconstruction error, or None where some part has no closed form."""
    forms = [found[c].closed for c in [coalition, *((copy,) for copy in coalition)]]
    errors = [1.0 - form["reconstruction_probability"].value for form in forms if form is not None]
    if len(errors) < len(forms):
        return None
    alone = min(errors[1:])
    return 0.0 if alone <= 0 else 1.0 - errors[0] / alone
