"""Disclosed values, records rebuilt as a whole, and named rows.

| metric | meaning | theory |
| --- | --- | --- |
| ``claimed``, ``disclosed`` | share of records with a claimed value, and with a correct claim | ``mean P(claim)`` |
| ``disclosed_beyond_chance`` | ``Σ (right − prior of the claim) / Σ (1 − prior of the truth)`` | likewise |
| ``accuracy`` | share of records whose likeliest value is true | ``mean max P`` |
| ``reconstruction_probability`` | mean probability of the true value | ``mean Σ P²`` |
| ``posterior_max`` | mean of the largest probability | |
| ``delta_growth`` | largest growth of a probability | |
| ``linkage`` | mean probability of naming the record's own row | |
| ``records_within`` | share of records with ``‖x̂ − x‖ ≤ ε·‖x‖``, averaged over guesses (liu2008, section 4.1) | |
| ``most_exposed`` | share of guesses that hit the record of largest probability | |
| ``rare_claimed``, ``rare_disclosed`` | share of records with a claimed region, and inside it | |
| ``named`` | ``mean P(own row first)``: ``1/e`` if no row is likelier and e rows are as likely | |
| ``named(k)`` | ``mean min(1, max(0, k − a)/e)``, with a likelier rows | |
| ``named_gain`` | less chance, ``k/n`` of n rows | |

Error bars are binomial, of ratios by the delta method, over guesses by their spread. Attacks that
assign rows one to one are judged on the assignment of largest likeness.

At most 2,000 targets, evenly spread, are sought among all rows, with standard errors up to 1.1 %.
Above 130,000 rows there are fewer, down to 200 (3.5 %).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.attack import (
    ROUNDING,
    Inferred,
    Reconstruction,
    Regions,
    check_real,
    checked,
    probabilities,
)
from auditor.audit.base.request import CellContext
from auditor.base import PluginError, scipy
from auditor.base.types import Array, Arrays, Blocks, Coalition, Coalitions, Flags, Indices
from auditor.numerics.blocks import readable
from auditor.numerics.random_streams import stream
from auditor.numerics.statistics import share_error
from auditor.results.records import Measurement


@dataclass
class Inferences:
    """Sums over records for one coalition, by metric."""

    rows: int = 0
    attribute: int = -1
    growth: float = 0.0
    sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, found: Inferred | None, x: Array) -> None:
        """Count one block's records, with true values ``x``, shape (b, N)."""
        if found is None or not len(x):
            return
        check_inferred(found, *x.shape)
        P, claims, at = found.posterior, found.claims, np.arange(len(x))
        true = true_groups(found, x[:, found.attribute])
        likeliest = P.argmax(axis=1)
        claimed, possible = claims >= 0, true >= 0
        counted: dict[str, NDArray[Any]] = {
            "claimed": claimed,
            "disclosed": claimed & (claims == true),
            "claim": P[at[claimed], claims[claimed]],
            "chance": found.prior[claims[claimed]],
            "doubt": 1.0 - np.where(possible, found.prior[true], 0.0),
            "accuracy": likeliest == true,
            "reconstruction_probability": P[at[possible], true[possible]],
            "square": np.einsum("bv,bv->b", P, P),
            "posterior_max": P[at, likeliest],
            "linkage": found.linked,
        }
        news = counted["disclosed"] - np.where(claimed, found.prior[claims], 0.0)
        counted |= {
            "news²": news**2,
            "news·doubt": news * counted["doubt"],
            "doubt²": counted["doubt"] ** 2,
        }
        for name, each in counted.items():
            self.sums[name] += float(each.sum())
        self.attribute, self.rows = found.attribute, self.rows + len(x)
        self.growth = max(self.growth, float((P.max(axis=0) - found.prior).max()))


def check_inferred(found: Inferred, rows: int, width: int) -> None:
    """Refuse an invalid inference of a plugin.

    Raises
    ------
    PluginError
        The form is not as expected.
    """
    if (
        not isinstance(found, Inferred)
        or not isinstance(found.attribute, (int, np.integer))
        or found.attribute not in range(width)
    ):
        raise PluginError("the attack inferred nothing about an attribute of the table")
    check_real(found.values, found.groups, found.claims, found.linked)
    G = np.size(found.prior)
    probabilities(found.prior, (G,), "a prior")
    probabilities(found.posterior, (rows, G), "a posterior")
    for codes, shape, low in (
        (found.groups, np.shape(found.values), 0),
        (found.claims, (rows,), -1),
    ):
        if (
            np.shape(codes) != shape
            or codes.dtype.kind not in "iu"
            or not ((codes >= low) & (codes < G)).all()
        ):
            raise PluginError(
                f"groups must be whole numbers from {low} to {G - 1}, one for each value and each record"
            )
    if (
        np.ndim(found.values) != 1
        or not np.isfinite(found.values).all()
        or (np.diff(found.values) <= 0).any()
    ):
        raise PluginError("the values thought possible must be finite and rise")
    if (
        np.shape(found.linked) != (rows,)
        or not ((found.linked >= 0) & (found.linked <= 1 + ROUNDING)).all()
    ):
        raise PluginError("chances of naming a record's row must lie from 0 to 1")


def true_groups(found: Inferred, values: Array) -> Indices:
    """Group of each true value, shape (b,); −2 for an impossible value."""
    place = np.minimum(np.searchsorted(found.values, values), len(found.values) - 1)
    return np.where(found.values[place] == values, found.groups[place], -2)


def inference_records(
    context: CellContext, coalition: Coalition, counted: Inferences
) -> list[Measurement]:
    """Records of one coalition; none if the attack infers nothing."""
    n = counted.rows
    if not n:
        return []
    mean = {name: total / n for name, total in counted.sums.items()}
    mean |= {"delta_growth": counted.growth, "linkage": mean.pop("linkage")}
    names = "claim chance doubt square news² news·doubt doubt²"
    claim, chance, doubt, square, *squares = map(mean.pop, names.split())
    doubt = doubt or math.inf  # without doubt nothing is beyond chance
    mean["disclosed_beyond_chance"] = beyond = (mean["disclosed"] - chance) / doubt
    spread = squares[0] - 2.0 * beyond * squares[1] + beyond**2 * squares[2]
    theory = {
        "disclosed": claim,
        "disclosed_beyond_chance": (claim - chance) / doubt,
        "accuracy": mean["posterior_max"],
        "reconstruction_probability": square,
    }
    errors = {metric: share_error(min(1.0, abs(mean[metric])), n) for metric in theory}
    errors["disclosed_beyond_chance"] = math.sqrt(max(0.0, spread) / n) / doubt
    return [
        context.estimate(
            metric,
            coalition,
            value,
            errors.get(metric, 0.0),
            theory.get(metric),
            attribute=attribute,
            error_bar="closed-form",
        )
        for metric, value in mean.items()
        for attribute in (context.attributes[counted.attribute], "*")
    ]


MOST_LOCATED = 2**13
"""Records of a block, evenly spread, that are located; regions are slower than estimates."""
BOUND_ROUNDING = 1e-9
"""Relative rounding error of a bound."""


@dataclass
class WholeRecords:
    """Sums over records for one coalition.

    Attributes
    ----------
    tolerance : float or None
        ``ε``, if requested.
    hits : ndarray of shape (G,)
        Records hit, by guess.
    chance : float
        Sum of exact probabilities, or NaN.
    best : (float, float)
        The largest probability, and its record's share of hits.
    located, claimed, disclosed : int
        Records sought, claimed, and correctly claimed.
    regions : bool
    """

    tolerance: float | None
    rows: int = 0
    hits: Array | float = 0.0
    chance: float = 0.0
    best: tuple[float, float] = (-1.0, math.nan)
    located: int = 0
    claimed: int = 0
    disclosed: int = 0
    regions: bool = False

    def add(self, fitted: Reconstruction, copies: Arrays, estimate: Array, x: Array) -> None:
        """Count one block's records, shapes (b, N), with their estimates."""
        if not len(x):
            return
        self.rows += len(x)
        some = slice(None, None, -(-len(x) // MOST_LOCATED) if fitted.neighbours == 0 else 1)
        self._locate(fitted.regions([copy[some] for copy in copies]), x[some])
        if self.tolerance is None:
            return
        # at any tolerance, rounding is no error
        reach = max(self.tolerance, 1e-9) * np.linalg.norm(x, axis=1)
        others = fitted.guesses(copies)
        guesses = [estimate] if others is None else (checked(guess, x.shape) for guess in others)
        hit = np.array([np.linalg.norm(guess - x, axis=1) <= reach for guess in guesses])
        self.hits = self.hits + hit.sum(axis=1)
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
        slack = BOUND_ROUNDING * (np.abs(x[found.claims]) @ np.abs(T).T)
        self.claimed += len(z)
        self.disclosed += int(((low - slack <= z) & (z <= high + slack)).all(axis=1).sum())

    def figures(self) -> Iterator[tuple[str, float, float, float | None, float]]:
        """Yield metrics with their values, standard errors, theory and degrees of freedom."""
        if self.regions:
            for metric, count in (
                ("rare_claimed", self.claimed),
                ("rare_disclosed", self.disclosed),
            ):
                share = count / self.located
                yield metric, share, share_error(share, self.located), None, math.inf
        if self.tolerance is None:
            return
        shares, (chance, best) = np.asarray(self.hits / self.rows), self.best
        share, G = float(shares.mean()), shares.size
        error = share_error(share, self.rows)
        if G > 1:
            error = float(shares.std(ddof=1)) / math.sqrt(G)
        known, degrees = not math.isnan(self.chance), G - 1 if G > 1 else math.inf
        yield "records_within", share, error, self.chance / self.rows if known else None, degrees
        if known and chance >= 0:
            yield "most_exposed", best, share_error(chance, G), chance, degrees


def whole_record_records(
    context: CellContext, coalition: Coalition, tally: WholeRecords
) -> list[Measurement]:
    """Records of one coalition."""
    one, bounds = coalition, (0.0, 1.0)
    return [
        context.estimate(metric, one, share, error, theory, bounds=bounds, degrees=degrees)
        for metric, share, error, theory, degrees in tally.figures()
    ]


MOST_TARGETS, FEWEST_TARGETS = 2_000, 200
MOST_PAIRS = 2**28
"""Pairs of target and row for one coalition, if that leaves enough targets: two seconds."""
MOST_ASSIGNED = 2**22
"""Pairs for an assignment: 33 MB, up to eight seconds."""
FIRST = (1, 10)
"""Values of k."""
CHUNK_VALUES = 2**18
"""Pairs that are compared at once: two megabytes."""
TIE = 1e-9
"""Largest relative difference of tied likenesses."""


@dataclass(repr=False)
class Naming:
    """Counts for one coalition.

    Attributes
    ----------
    own : ndarray of shape (t,)
        Likeness of each target's own row.
    above, equal : ndarrays of shape (t,)
        Likelier and tied other rows.
    rows : int
        Rows compared.
    right : ndarray of shape (t,) or None
        1 for targets assigned their own row; None without assignment.
    """

    own: Array = field(default_factory=lambda: np.zeros(0))
    above: Array | float = 0.0
    equal: Array | float = 0.0
    rows: int = 0
    right: Array | None = None

    def compare(self, likeness: Array, others: Flags) -> None:
        """Count rows by likeness to the targets, (t, b), except ``others``."""
        own = self.own[:, None]
        near = np.abs(likeness - own) <= TIE * (1.0 + np.abs(own))
        self.above = self.above + ((likeness > own) & ~near & others).sum(axis=1)
        self.equal = self.equal + (near & others).sum(axis=1)
        self.rows += likeness.shape[1]

    def first(self, k: int) -> Array:
        """Probability that each target's row is among the first k, shape (t,)."""
        return np.clip((k - self.above) / (self.equal + 1.0), 0.0, 1.0)


def name_rows(
    namings: Sequence[Naming],
    fitted: Sequence[Reconstruction],
    coalitions: Coalitions,
    blocks: Blocks,
    rows: int,
    known: Indices,
    seed: int = 0,
) -> None:
    """Count the rows that an attack, fitted to several coalitions, names.

    In two passes; none if it names no rows, or knows no values of targets. ``seed`` is for noise in
    knowledge and the order of assignments.

    Raises
    ------
    PluginError
        A likeness is missing, has the wrong shape, or is not finite.
    """
    if not known.size or all(type(one).likeness is Reconstruction.likeness for one in fitted):
        return
    assigns = fitted[0].assigns
    targets = chosen_targets(
        rows, MOST_ASSIGNED if assigns else MOST_PAIRS, 1 if assigns else FEWEST_TARGETS
    )
    parts = []
    for first, *tables in _numbered(blocks):
        here = targets[(targets >= first) & (targets < first + len(tables[0]))] - first
        parts.append([table[here] for table in tables])
    x, *held = (np.concatenate(part) for part in zip(*parts, strict=True))
    wanted, noise = x[:, known], fitted[0].known_noise
    if noise is not None:
        wanted = wanted + noise * stream(seed, "known-noise").standard_normal(wanted.shape)
    if assigns:
        for naming, one, coalition in zip(namings, fitted, coalitions, strict=True):
            whole = np.concatenate(
                [
                    next(_likeness([one], [coalition], wanted, copies))
                    for _, _, *copies in _numbered(blocks)
                ],
                axis=1,
            )
            # the solver prefers the first of tied rows
            order = stream(seed, "assignment").permutation(whole.shape[1])
            _, given = scipy.optimize.linear_sum_assignment(whole[:, order], maximize=True)
            naming.right, naming.rows = (order[given] == targets).astype(np.float64), len(order)
        return
    # each target's own row: the diagonal of a small square
    for some in (slice(start, start + 64) for start in range(0, len(targets), 64)):
        likenesses = _likeness(fitted, coalitions, wanted[some], [copy[some] for copy in held])
        for naming, likeness in zip(namings, likenesses, strict=True):
            naming.own = np.append(naming.own, np.diag(likeness))
    size = max(1, CHUNK_VALUES // len(targets))
    for first, x, *copies in _numbered(blocks):
        for start in range(0, len(x), size):
            rows_here = [copy[start : start + size] for copy in copies]
            others = targets[:, None] != first + start + np.arange(len(rows_here[0]))
            for naming, likeness in zip(
                namings, _likeness(fitted, coalitions, wanted, rows_here), strict=True
            ):
                naming.compare(likeness, others)


def chosen_targets(rows: int, pairs: int = MOST_PAIRS, fewest: int = FEWEST_TARGETS) -> Indices:
    """Rows of the targets.

    Examples
    --------
    >>> [len(chosen_targets(rows)) for rows in (3, 2_001, 10**6, 10**8)]
    [3, 2000, 268, 200]
    """
    wanted = min(rows, MOST_TARGETS, max(fewest, pairs // rows))
    return np.arange(wanted) * rows // wanted


def _numbered(blocks: Blocks) -> Iterator[Any]:
    """Yield each block's first row, originals and copies."""
    first = 0
    for _, x, copies in blocks():
        yield first, x, *copies
        first += len(x)


def _likeness(
    fitted: Sequence[Reconstruction], coalitions: Coalitions, known: Array, copies: Arrays
) -> Iterator[Array]:
    known, shown = readable([known])[0], readable(copies)
    for one, coalition in zip(fitted, coalitions, strict=True):
        found = one.likeness(known, [shown[copy - 1] for copy in coalition])
        if found is None:
            raise PluginError(
                "the attack gave no likeness of rows where it says that it names them"
            )
        yield checked(found, (len(known), len(copies[0])))


def naming_records(context: CellContext, coalition: Coalition, naming: Naming) -> list[Measurement]:
    """Records of one coalition; none if the attack names no rows."""
    records = []
    for k in (FIRST if naming.right is None else FIRST[:1]) if naming.rows else ():
        share, variant = (
            naming.first(k) if naming.right is None else naming.right,
            "" if k == 1 else f"({k})",
        )
        value, chance = float(share.mean()), min(1.0, k / naming.rows)
        error = float(share.std()) / math.sqrt(len(share))
        for metric, found, low in (("named", value, 0.0), ("named_gain", value - chance, -1.0)):
            records.append(
                context.estimate(metric + variant, coalition, found, error, bounds=(low, 1.0))
            )
    return records
