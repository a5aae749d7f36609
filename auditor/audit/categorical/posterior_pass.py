"""Fits to coalitions, and the pass that measures their posteriors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.attack import CategoricalAttack, CategoricalView, Inference, probabilities
from auditor.adversary.published import cells_of, published_prior
from auditor.adversary.view import (
    NOTHING,
    Given,
    Knowledge,
    KnownPairs,
    KnownRecords,
    Perfect,
    Prior,
    PublishedRules,
    SampleCounts,
)
from auditor.audit.base.session import made_attack
from auditor.audit.categorical.release import (
    CodeBlock,
    Expected,
    Frame,
    Sums,
    UniformRelease,
    distinct,
    expected,
    measured,
)
from auditor.audit.law_tests.categorical import (
    FEWEST_EXPECTED,
    Pairs,
    Transition,
    count_tests,
    of_original,
    score_tests,
    scored_copies,
    scored_rows,
    sources,
)
from auditor.audit.numeric.moment_pass import Draw, draws_of, key_of
from auditor.base import NotApplicable, PluginError, scipy
from auditor.base.types import Array, Coalition, Codes, Flags, Indices
from auditor.data.columns.categorical_table import CategoricalTable
from auditor.numerics.blocks import Job, readable
from auditor.numerics.random_streams import stream
from auditor.results.records import Facts, LawTest
from auditor.scenario.model import AttackUse
from auditor.schemes.replacement.base import MOST_COPIES, Between, between, drawn_between
from auditor.schemes.replacement.law import MatrixLaw, UniformLaw

# -- First pass over categories: counts, chosen records, tests of the law --------------------------


SCORED = "scored"
"""Name of the chosen records for scores."""


@dataclass(repr=False)
class Counted:
    """Result of the pass.

    Attributes
    ----------
    draws : mapping
        Chosen rows, by state of knowledge.
    pairs : dict of (int, int) to sparse arrays of shape (s, s)
        By source (0: the original) and copy: records by pair of values.
    between : ndarray of shape (d, 2)
        For copies between two others: records where these, and where all three agree.
    history : ndarray of shape (M + 1,)
        Records by history size.
    rows : dict of str to lists of lists of ndarrays
        Chosen records by block: originals and copies.
    seconds : float
    """

    draws: Mapping[str, Draw]
    between: NDArray[np.int64]
    history: NDArray[np.int64]
    pairs: dict[tuple[int, int], Any] = field(default_factory=dict)
    rows: dict[str, list[list[Codes]]] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, other: Counted) -> None:
        """Add the result of later records."""
        for place, counts in other.pairs.items():
            self.pairs[place] = self.pairs[place] + counts if place in self.pairs else counts
        for key, rows in other.rows.items():
            self.rows.setdefault(key, []).extend(rows)
        self.between = self.between + other.between
        self.history = self.history + other.history
        self.seconds += other.seconds

    def of(self, source: int, copy: int) -> Pairs:
        """Records by value of a source and of a copy."""
        counts = self.pairs[source, copy].tocoo()
        return Pairs(counts.row, counts.col, counts.data)


@dataclass(frozen=True, repr=False)
class CountJob(Job[Counted]):
    """Counts of pairs of values, and chosen records.

    Attributes
    ----------
    size : int
        ``s``.
    singles : tuple of int
        Copies that some coalition holds.
    copies : int
        ``M`` for history sizes, else 0.
    sources : sequence of (int, int)
        Source and copy.
    scored : tuple of int
        Scored copies.
    scored_rows : sequence of (int, int)
        Starts and stops of scored runs.
    """

    size: int
    singles: tuple[int, ...]
    between: Sequence[Between]
    draws: Mapping[str, Draw]
    copies: int
    sources: Sequence[tuple[int, int]] = ()
    scored: tuple[int, ...] = ()
    scored_rows: Sequence[tuple[int, int]] = ()
    exact = drawn = True

    def begin(self) -> Counted:
        """Empty result."""
        none = np.zeros((len(self.between), 2), dtype=np.int64)
        return Counted(self.draws, none, np.zeros(self.copies + 1, dtype=np.int64))

    def take(self, block: CodeBlock, into: Counted) -> None:
        """Count one block."""
        n, pairs, rows = block.x.size, {}, dict[str, list[list[Codes]]]()

        def values(number: int) -> Codes:
            return block.copy(number) if number else block.x

        def choose(key: str, numbers: Sequence[int], some: Any) -> None:
            rows.setdefault(key, []).append([values(number)[some].copy() for number in numbers])

        for source, copy in [*((0, number) for number in self.singles), *self.sources]:
            places = values(source), values(copy)
            ones = np.ones(n, dtype=np.int64)
            shape = self.size, self.size
            pairs[source, copy] = scipy.sparse.coo_array((ones, places), shape=shape).tocsr()
        found = np.zeros((len(self.between), 2), dtype=np.int64)
        for place, three in enumerate(self.between):
            agree = (left := values(three.left)) == values(three.right)
            found[place] = agree.sum(), (agree & (values(three.copy) == left)).sum()
        for start, stop in self.scored_rows if self.scored else ():
            a, b = (min(max(0, end - block.first), n) for end in (start, stop))
            if a < b:
                choose(SCORED, (0, *self.scored), slice(a, b))
        for key, draw in self.draws.items():
            choose(key, (0, *self.singles), draw.within(block.first, block.first + n)[0])
        history = np.zeros(1, dtype=np.int64)
        if self.copies and block.made is not None:
            history = np.bincount(block.made.history_sizes(), minlength=self.copies + 1)
        into.add(Counted({}, found, history, pairs, rows, block.seconds))


def _stated(release: UniformRelease) -> bool:
    law = release.law
    return law.by_retention or (isinstance(law, MatrixLaw) and not release.estimated)


def _between(release: UniformRelease) -> list[Between]:
    levels = release.law.levels
    return between(levels) if release.law.multilevel and len(levels) <= MOST_COPIES else []


def count(release: UniformRelease) -> Counted:
    """Counts of one release."""
    scenario, law, data, singles = release.scenario, release.law, release.data, release.singles
    replicate, stated = release.key.replicate, _stated(release)
    scored = tuple(scored_copies(singles, data.rows)) if stated and replicate == 1 else ()
    history = law.multilevel and scenario.measure("history-size") is not None
    return release.go_through(
        CountJob(
            data.size,
            tuple(singles),
            _between(release),
            draws_of(scenario.knowledge, data.rows, scenario.seed, replicate),
            len(law.levels) * history,
            sources(law.of(singles), singles) if stated else (),
            scored,
            scored_rows(len(scored), data.rows),
        )
    )


def facts(release: UniformRelease, counted: Counted) -> Facts:
    """Tests of single copies, and of copies between two others.

    A single copy's test has its number, level, p-value and degrees of freedom.
    """
    law, tests = release.law, list[tuple[int, float, float, int]]()
    for number in release.singles if not release.estimated else ():
        found = test_of_chances(counted.of(0, number), of_original(law, number))
        tests.append((number, law.levels[number - 1], *found))
    middle = _between(release)
    drawn = drawn_between(law, release.data.prior, middle, counted.between)
    return Facts(marginal=tests, drawn=drawn) if middle else Facts(marginal=tests)


def law_tests(release: UniformRelease, counted: Counted) -> list[LawTest]:
    """Tests of the stated law, if any."""
    data, singles, key = release.data, release.singles, release.key
    if not _stated(release) or not singles:
        return []
    tests = count_tests(release.law.of(singles), singles, counted.of, data.rows)
    if SCORED in counted.rows:
        scored = scored_copies(singles, data.rows)
        columns = [np.concatenate(parts) for parts in zip(*counted.rows[SCORED], strict=True)]
        rng = stream(key.audit_seed, key.scheme, key.replicate, "scores")
        values = np.unravel_index(columns[0], [attribute.size for attribute in data.attributes])
        originals = dict(zip(data.names, values, strict=True))
        tests += score_tests(release.law.of(scored), columns, scored, originals, rng)
    return tests


def test_of_chances(counted: Pairs, law: Transition) -> tuple[float, int]:
    """P-value and degrees of freedom of the chi-square test of a copy's law.

    Notes
    -----
    Pairs below five expected records are pooled, on and off the diagonal. Impossible outcomes give
    p = 0; too few records p = 1 and 0 degrees.
    """
    size = law.fresh.shape[1]
    of, every = counted.of(size), np.arange(size)
    if (law.chance(counted.a, counted.y) <= 0).any():
        return 0.0, 1
    expecting = law.expecting(of, FEWEST_EXPECTED)
    found = counted.joined(expecting, size)
    expected = of[found.a] * law.chance(found.a, found.y)
    large, same = expected >= FEWEST_EXPECTED, found.a == found.y
    totals = np.array([of @ law.chance(every, every), of.sum()])
    totals[1] -= totals[0]
    pools = [
        (found.records[~large & on].sum(), total - expected[large & on].sum())
        for on, total in zip((same, ~same), totals, strict=True)
    ]
    observed = np.append(found.records[large], [each for each, _ in pools])
    forecast = np.append(expected[large], [each for _, each in pools])
    keep = forecast >= FEWEST_EXPECTED
    # row totals fix one pair; rows with pooled pairs at most one together
    possible = (law.fresh > 0).sum(axis=1) + (law.kept > 0) * (
        law.fresh[law.row(every), every] <= 0
    )
    some = of > 0
    whole = some & (np.bincount(found.a[large], minlength=size) == possible)
    degrees = int(keep.sum() - whole.sum() - bool((~whole & some).any()))
    if degrees < 1:
        return 1.0, 0
    statistic = float(((observed[keep] - forecast[keep]) ** 2 / forecast[keep]).sum())
    return float(scipy.special.chdtrc(degrees, statistic)), degrees


# --------------------------------------------------------------------------------------------------


Fit = tuple[Inference, Frame]
"""An attack fitted to one coalition, and its reference."""

BLOCK_NUMBERS = 2**18
"""Numbers in a block of posteriors, to fit the cache."""
MOST_OUTCOMES = 2**18
"""Most outcomes times values for closed forms."""


@dataclass(frozen=True, repr=False)
class Attacker:
    """An attack with its knowledge and its view of all copies."""

    release: UniformRelease
    use: AttackUse
    view: CategoricalView
    attack: CategoricalAttack
    draw: Draw | None
    """Rows that the knowledge chooses."""

    @classmethod
    def of(
        cls, release: UniformRelease, counted: Counted, use: AttackUse, knowledge: Knowledge
    ) -> Attacker:
        """Attacker who sees every copy that some coalition holds.

        Raises
        ------
        NotApplicable
            The attack does not apply to categories, or to this knowledge.
        """
        members, data, given = tuple(release.singles), release.data, NOTHING
        rows = counted.rows.get(key_of(knowledge), [])
        if isinstance(knowledge, Perfect):
            given = Prior(data.prior)
        elif isinstance(knowledge, PublishedRules):
            given = Prior(published_prior(knowledge, data.attributes, data.prior))
        elif isinstance(knowledge, KnownRecords) and knowledge.count == data.rows:
            raise NotApplicable("every record is known in clear: none is left to attack")
        elif rows:
            given = given_rows(knowledge, data.size, *map(np.concatenate, zip(*rows, strict=True)))
        attack = made_attack(use)
        attack.check(release.scheme.family, knowledge)
        if not isinstance(attack, CategoricalAttack):
            raise NotApplicable(f"{use.name} does not attack categories")
        view = CategoricalView(members, release.law.of(members), knowledge, data.labels, given)
        return cls(release, use, view, attack, counted.draws.get(key_of(knowledge)))

    @property
    def knowledge(self) -> Knowledge:
        """State of knowledge."""
        return self.view.knowledge

    @property
    def name(self) -> tuple[str, str]:
        """Ids of attack and knowledge."""
        return self.use.id, self.knowledge.label

    def fit(self, view: CategoricalView, coalition: Coalition) -> Fit:
        """Attack fitted to a coalition of a view.

        Raises
        ------
        PluginError
            The inference is invalid.
        """
        data, known = self.release.data, self.knowledge.in_clear
        inference = self.attack.infer(view.coalition(coalition))
        if not isinstance(inference, Inference) or not isinstance(inference.fixed, bool):
            raise PluginError("the attack returned no Inference")
        probabilities(inference.prior, (data.size,), "a prior")
        predicates = self.attack.predicates(data.labels)
        for holds in predicates.values():
            if np.shape(holds) != (data.size,) or np.asarray(holds).dtype != np.bool_:
                raise PluginError("a statement about values must be a mask over the domain")
        rho = self.release.scenario.measure("rho-breach")
        return inference, Frame(
            inference.prior,
            inference.fixed and np.array_equal(inference.prior, data.prior),
            data.scores,
            None if rho is None else (float(rho.options["rho1"]), float(rho.options["rho2"])),
            predicates,
            cells_of(known, data.attributes) if known else None,
            parts_of(data, self.knowledge),
        )

    def fitted(self, coalitions: Sequence[Coalition]) -> list[Fitted]:
        """Attack fitted once, or with the estimated law of either half."""

        def one(view: CategoricalView, hidden: Draw | None) -> Fitted:
            return Fitted({each: self.fit(view, each) for each in coalitions}, hidden)

        known, halves = isinstance(self.knowledge, KnownRecords), self.release.halves()
        # known records are the source of the estimates themselves
        if known or not halves:
            return [one(self.view, self.draw if known else None)]
        return [one(replace(self.view, law=law), rows) for rows, law in halves]


def given_rows(knowledge: Knowledge, size: int, x: Codes, *copies: Codes) -> Given:
    """Data of an adversary who has some rows, and perhaps originals."""
    if isinstance(knowledge, KnownRecords):
        return KnownPairs(x, copies)
    counts = (np.bincount(copy, minlength=size).astype(np.float64) for copy in copies)
    return SampleCounts(tuple(counts))


@dataclass(frozen=True, repr=False)
class Fitted:
    """One attack with one state of knowledge, fitted to every coalition.

    Attributes
    ----------
    hidden : Draw or None
        Known rows, not attacked.
    """

    fits: Mapping[Coalition, Fit]
    hidden: Draw | None = None

    @property
    def serial(self) -> bool:
        """Whether posteriors depend on neighbouring records."""
        return any(inference.serial for inference, _ in self.fits.values())

    def judged(self, first: int, stop: int) -> Indices:
        """Attacked rows in ``[first, stop)``, counted from ``first``."""
        rows = np.arange(stop - first)
        return rows if self.hidden is None else np.delete(rows, self.hidden.within(first, stop)[0])


class Found(dict[Coalition, Sums]):
    """Sums of an attack's measures by coalition."""

    def add(self, other: Mapping[Coalition, Sums]) -> None:
        """Add the sums over later records."""
        for coalition, sums in other.items():
            if coalition in self:
                self[coalition].add(sums)
            else:
                self[coalition] = sums


@dataclass(frozen=True, repr=False)
class MeasureJob(Job[Found]):
    """Sums of one attack's measures on every coalition.

    Posteriors are computed by distinct outcome of a block, once for coalitions with one best copy.

    Attributes
    ----------
    size : int
        ``s``.
    groups : list of lists of (int, int, int)
        By block, ``(group, start, stop)`` of jackknife groups.
    parts : sequence of Fitted
        Fits that attack different rows.
    """

    size: int
    groups: Sequence[Sequence[tuple[int, int, int]]]
    parts: Sequence[Fitted]

    def begin(self) -> Found:
        """Empty result."""
        return Found()

    def take(self, block: CodeBlock, into: Found) -> None:
        """Process one block."""
        for part in self.parts:
            rows = part.judged(block.first, block.first + block.x.size)
            x, group = block.x[rows].astype(np.intp), group_of(self.groups[block.index])[rows]
            alike = dict[Coalition, list[Coalition]]()
            for one, (inference, _) in part.fits.items() if rows.size else ():
                counting = tuple(one[place] for place in inference.counting(len(one)))
                alike.setdefault(counting if counting in part.fits else one, []).append(one)
            for one, every in alike.items():
                fit, copies = part.fits[one], [block.copy(number) for number in one]
                for P, possible, some, u in posteriors(fit, block.x, copies, rows):
                    found = measured(P, fit[1], u, x[some], possible)
                    sums = found, x[some], group[some], self.size, self.groups[-1][-1][0] + 1
                    into.add({each: Sums.of(*sums) for each in every})


def posteriors(
    fit: Fit, x: Codes, copies: Sequence[Codes], rows: Indices
) -> Iterator[tuple[Array, Flags | None, Indices, Indices]]:
    """Yield posteriors of distinct outcomes, and the records that show them.

    Parameters
    ----------
    x, copies : ndarrays of shape (b,)
        A block of records in order.
    rows : ndarray of shape (m,)
        The attacked ones.

    Yields
    ------
    P : ndarray of shape (v, s)
    possible : ndarray of shape (v, s) or None
        Values allowed by known attributes.
    some, u : ndarrays of int
        Places in ``rows``, and their rows of P.
    """
    (inference, frame), size = fit, fit[0].prior.size
    if inference.serial:
        first, place, step = np.arange(x.size), rows, x.size
    else:
        x, copies, step = x[rows], [copy[rows] for copy in copies], max(64, BLOCK_NUMBERS // size)
        outcome = [copies[number] for number in inference.counting(len(copies))]
        outcome += [] if frame.known is None else [frame.known[x].astype(x.dtype)]
        first, place = distinct(outcome, [size] * len(outcome))
    order = np.argsort(place, kind="stable")
    ordered, possible = place[order], None
    for a in range(0, first.size, step):
        here = first[a : a + step]
        some = order[slice(*np.searchsorted(ordered, (a, a + step)))]
        if frame.known is not None:
            possible = np.asarray(frame.known == frame.known[x[here], None])
        P = inference.checked(readable([copy[here] for copy in copies]))
        yield P, possible, some, place[some] - a


def group_of(groups: Sequence[tuple[int, int, int]]) -> Indices:
    """Row group of each record, from ``(group, start, stop)``."""
    return np.repeat([number for number, _, _ in groups], [b - a for _, a, b in groups])


def closed_forms(law: UniformLaw, data: CategoricalTable, fit: Fit) -> dict[str, Expected] | None:
    """Sums over every outcome that matters to a posterior, if not too many."""
    (inference, frame), copies, s = fit, len(law.levels), data.size
    counting = list(inference.counting(copies))
    if s ** (len(counting) + 1) > MOST_OUTCOMES:
        return None
    given = law.of([place + 1 for place in counting]).given_original().reshape(s, -1)
    # no record shows outcomes of absent values
    possible = np.flatnonzero(given[data.prior > 0].any(axis=0))
    shown = np.unravel_index(possible, (s,) * len(counting))
    outcome = [shown[0]] * copies
    for place, values in zip(counting, shown, strict=True):
        outcome[place] = values
    P = inference.checked([np.asarray(part, dtype=data.code_type) for part in outcome])
    return expected(given[:, possible], data.prior, P, frame, data.rows)


def parts_of(data: CategoricalTable, knowledge: Knowledge) -> dict[str, Indices]:
    """Each attribute's values in the domain.

    None for a single attribute, and if some attributes are known.
    """
    if len(data.attributes) == 1 or knowledge.in_clear:
        return {}
    return {one.name: cells_of([one.name], data.attributes) for one in data.attributes}


def shares_of(part: Indices, prior: Array) -> Array:
    """Shares of an attribute's values."""
    return np.asarray(np.bincount(part, prior), dtype=np.float64)


def unknown_shares(data: CategoricalTable, knowledge: Knowledge) -> Array:
    """Shares of the combinations of unknown attributes."""
    if not knowledge.in_clear:
        return data.prior
    hidden = [one.name for one in data.attributes if one.name not in knowledge.in_clear]
    return shares_of(cells_of(hidden, data.attributes), data.prior)
