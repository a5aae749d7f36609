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

At most 2,000 targets, evenly spread, are sought among all rows; above 130,000 rows fewer, at least 200.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

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
MOST_LOCATED = 2**13
"""Records of a block, evenly spread, that are located; regions are slower than estimates."""
BOUND_ROUNDING = 1e-9
"""Relative rounding error of a bound."""
COUNTED = "claimed disclosed accuracy reconstruction_probability posterior_max delta_growth linkage"
"""Figures of inferred values, in order."""


@dataclass(repr=False)
class Disclosures:
    """Counts over the records of one coalition.

    Attributes
    ----------
    tolerance : float or None
        ``ε`` of whole records, if requested.
    sums : dict
        Numbers, or arrays: ``hits`` by guess, shape (G,); ``above`` and ``equal``, the likelier and
        tied other rows by target, shape (t,). ``chance`` is NaN if unknown.
    attribute, growth : int, float
        The inferred attribute, and the largest growth of a probability.
    best : (float, float)
        The largest probability of a whole record, and its record's share of hits.
    own : ndarray of shape (t,)
        Likeness of each target's own row.
    right : ndarray of shape (t,) or None
        1 for targets assigned their own row; None without assignment.
    """

    tolerance: float | None = None
    sums: dict[str, Any] = field(default_factory=lambda: defaultdict(float))
    attribute: int = -1
    growth: float = 0.0
    best: tuple[float, float] = (-1.0, math.nan)
    own: Array = field(default_factory=lambda: np.zeros(0))
    right: Array | None = None

    def count(self, **counts: Any) -> None:
        """Add to the sums."""
        for name, each in counts.items():
            self.sums[name] = self.sums[name] + each

    def add(self, fitted: Reconstruction, copies: Arrays, estimate: Array, x: Array) -> None:
        """Count one block's records, shapes (b, N), with their estimates."""
        if not len(x):
            return
        if (inferred := fitted.inferred(copies)) is not None:
            self.infer(inferred, x)
        some = slice(None, None, -(-len(x) // MOST_LOCATED) if fitted.neighbours == 0 else 1)
        if (regions := fitted.regions([copy[some] for copy in copies])) is not None:
            self.locate(regions, x[some])
        if self.tolerance is None:
            return
        # at any tolerance, rounding is no error
        reach = max(self.tolerance, 1e-9) * np.linalg.norm(x, axis=1)
        others = fitted.guesses(copies)
        guesses = [estimate] if others is None else (checked(guess, x.shape) for guess in others)
        hit = np.array([np.linalg.norm(guess - x, axis=1) <= reach for guess in guesses])
        chances, chance = fitted.chances(copies, self.tolerance), math.nan
        if chances is not None:
            chances = checked(chances, (len(x),))
            if not ((chances >= 0) & (chances <= 1)).all():
                raise PluginError("chances must lie from 0 to 1")
            chance, place = float(chances.sum()), int(np.argmax(chances))
            self.best = max(self.best, (float(chances[place]), float(hit[:, place].mean())))
        self.count(rows=len(x), hits=hit.sum(axis=1), chance=chance)

    def infer(self, found: Inferred, x: Array) -> None:
        """Count one block's inferred values, with true values ``x``, shape (b, N)."""
        check_inferred(found, *x.shape)
        P, claims, at = found.posterior, found.claims, np.arange(len(x))
        true, likeliest = true_groups(found, x[:, found.attribute]), P.argmax(axis=1)
        claimed, possible = claims >= 0, true >= 0
        disclosed = claimed & (claims == true)
        doubt = 1.0 - np.where(possible, found.prior[true], 0.0)
        news = disclosed - np.where(claimed, found.prior[claims], 0.0)
        sums = {
            "inferred": np.ones(len(x)),
            "claimed": claimed,
            "disclosed": disclosed,
            "claim": P[at[claimed], claims[claimed]],
            "prior": found.prior[claims[claimed]],
            "doubt": doubt,
            "accuracy": likeliest == true,
            "reconstruction_probability": P[at[possible], true[possible]],
            "square": np.einsum("bv,bv->b", P, P),
            "posterior_max": P[at, likeliest],
            "linkage": found.linked,
            "news²": news**2,
            "news·doubt": news * doubt,
            "doubt²": doubt**2,
        }
        self.count(**{name: float(each.sum()) for name, each in sums.items()})
        self.attribute = found.attribute
        self.growth = max(self.growth, float((P.max(axis=0) - found.prior).max()))

    def locate(self, found: Regions, x: Array) -> None:
        """Count one block's claimed regions, and records inside theirs."""
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
        inside = ((low - slack <= z) & (z <= high + slack)).all(axis=1)
        self.count(located=len(x), rare_claimed=len(z), rare_disclosed=int(inside.sum()))

    def compare(self, likeness: Array, others: Flags) -> None:
        """Count rows by likeness to the targets, (t, b), except ``others``."""
        own = self.own[:, None]
        near = np.abs(likeness - own) <= TIE * (1.0 + np.abs(own))
        above = (likeness > own) & ~near & others
        self.count(
            compared=likeness.shape[1], above=above.sum(axis=1), equal=(near & others).sum(axis=1)
        )

    def first(self, k: int) -> Array:
        """Probability that each target's row is among the first k, shape (t,)."""
        return np.clip((k - self.sums["above"]) / (self.sums["equal"] + 1.0), 0.0, 1.0)

    def records(self, context: CellContext, coalition: Coalition) -> Iterator[Measurement]:
        """Yield the records of everything that was counted."""
        for metric, value, error, theory in self._inferences() if self.sums["inferred"] else ():
            for name in (context.attributes[self.attribute], "*"):
                figures = metric, coalition, value, error, theory
                yield context.estimate(*figures, attribute=name, error_bar="closed-form")
        for metric, value, error, theory, degrees in self.figures():
            bounds = -1.0 if metric.startswith("named_gain") else 0.0, 1.0
            figures = metric, coalition, value, error, theory
            yield context.estimate(*figures, bounds=bounds, degrees=degrees)

    def _inferences(self) -> Iterator[tuple[str, float, float, float | None]]:
        n = self.sums["inferred"]
        mean = {name: total / n for name, total in self.sums.items()} | {
            "delta_growth": self.growth
        }
        doubt = mean["doubt"] or math.inf  # without doubt no share is beyond chance
        beyond = (mean["disclosed"] - mean["prior"]) / doubt
        spread = mean["news²"] - 2.0 * beyond * mean["news·doubt"] + beyond**2 * mean["doubt²"]
        theory = {
            "disclosed": mean["claim"],
            "accuracy": mean["posterior_max"],
            "reconstruction_probability": mean["square"],
        }
        for metric in COUNTED.split():
            share = mean[metric]
            error = share_error(min(1.0, share), n) if metric in theory else 0.0
            yield metric, share, error, theory.get(metric)
        error = math.sqrt(max(0.0, spread) / n) / doubt
        yield "disclosed_beyond_chance", beyond, error, (mean["claim"] - mean["prior"]) / doubt

    def figures(self) -> Iterator[tuple[str, float, float, float | None, float]]:
        """Yield metrics of named rows, claimed regions and whole records.

        With values, standard errors, theory and degrees of freedom.
        """
        sums, rows = self.sums, self.sums["compared"]
        for k in (FIRST if self.right is None else FIRST[:1]) if rows else ():
            share = self.first(k) if self.right is None else self.right
            value, error = float(share.mean()), float(share.std()) / math.sqrt(len(share))
            for metric, less in (("named", 0.0), ("named_gain", min(1.0, k / rows))):
                name = metric if k == 1 else f"{metric}({k})"
                yield name, value - less, error, None, math.inf
        for metric in ("rare_claimed", "rare_disclosed") if sums["located"] else ():
            share = sums[metric] / sums["located"]
            yield metric, share, share_error(share, sums["located"]), None, math.inf
        if self.tolerance is None:
            return
        shares, (chance, best) = np.asarray(sums["hits"] / sums["rows"]), self.best
        mean, G = float(shares.mean()), shares.size
        error, degrees = float(share_error(mean, sums["rows"])), math.inf
        if G > 1:
            error, degrees = float(shares.std(ddof=1)) / math.sqrt(G), G - 1.0
        yield "records_within", mean, error, sums["chance"] / sums["rows"], degrees
        if chance >= 0 and not math.isnan(sums["chance"]):
            yield "most_exposed", best, share_error(chance, G), chance, degrees


def name_rows(
    counters: Sequence[Disclosures],
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
        for counter, one, coalition in zip(counters, fitted, coalitions, strict=True):
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
            counter.right = (order[given] == targets).astype(float)
            counter.count(compared=len(order))
        return
    # each target's own row: the diagonal of a small square
    for some in (slice(start, start + 64) for start in range(0, len(targets), 64)):
        likenesses = _likeness(fitted, coalitions, wanted[some], [copy[some] for copy in held])
        for counter, likeness in zip(counters, likenesses, strict=True):
            counter.own = np.append(counter.own, np.diag(likeness))
    size = max(1, CHUNK_VALUES // len(targets))
    for first, x, *copies in _numbered(blocks):
        for start in range(0, len(x), size):
            rows_here = [copy[start : start + size] for copy in copies]
            others = targets[:, None] != first + start + np.arange(len(rows_here[0]))
            likenesses = _likeness(fitted, coalitions, wanted, rows_here)
            for counter, likeness in zip(counters, likenesses, strict=True):
                counter.compare(likeness, others)


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
