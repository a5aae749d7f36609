"""``auditor advise``: on paper first, then measured on one copy, then whole releases, and of those the one that loses least of its use."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any

import numpy as np

from auditor import registry
from auditor.audit.measures.utility import is_class
from auditor.data.load import load_target
from auditor.errors import AuditorError
from auditor.numerics.random_streams import stream
from auditor.results.advice import Advice, Tried
from auditor.results.model import AuditResult
from auditor.runs.advice.audits import Asked, draws
from auditor.runs.advice.candidates import AddedNoise, Candidate, Retention, mean_loss, not_counted, regression_loss
from auditor.runs.advice.columns import Chosen, chosen
from auditor.runs.advice.search import STEPS, weakest
from auditor.schemes.base.additive import AdditiveScheme
from auditor.schemes.base.scheme import table_moments
from auditor.schemes.replacement.base import UniformScheme

MOST_COPIES = 50
"""Of more the audit takes hours; further copies of a lossless release, each noisier than the first, tell nobody more."""
LARGEST_SPREAD = 1e6
ADDED, REPLACED = ("corner-wave", "correlated", "independent"), ("uniform-multilevel", "uniform")
USES = {
    "mean": "how much the standard error of a mean grows",
    "regression": "R² lost by regressions of each attribute on the others that are fitted to a copy",
    "classifier": "accuracy lost by a decision tree that is trained on a copy",
}
"""What loss of use is counted by."""
LOSSES = {"mean": mean_loss, "regression": regression_loss, "classifier": not_counted}
MODEL = "decision-tree"
TIED = 1e-9
"""Losses that differ by less are equal, and the scheme that was named first is taken: by default the lossless one."""


@dataclass(frozen=True)
class Request:
    """What is asked of advice.

    Attributes
    ----------
    data : str
        A path or a registered source.
    copies : int
    unknown : float
        Share of every attribute's variance that must stay unknown, in (0, 1).
    utility : str
        ``mean``, ``regression`` or ``classifier``, which predicts the column ``target``.
    schemes : tuple of str
        Those to compare; without any, all that add Gaussian noise to numbers and do not cancel it.
    columns : tuple of str, optional
    rows : int, optional
        Records to measure.
    spread : float
        How many times more the last copy is perturbed than the first; the others lie between in equal ratios.
    seed : int
        Of the noise that audits draw, and of nothing that is released.
    """

    data: str
    copies: int
    unknown: float
    utility: str = "mean"
    target: str | None = None
    schemes: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    rows: int | None = None
    spread: float = 4.0
    seed: int = 1

    def check(self) -> None:
        """Refuse what cannot be asked.

        Raises
        ------
        AuditorError
            Saying what was expected.
        """
        if not 0.0 < self.unknown < 1.0:
            why = "nothing that is released leaves everything unknown" if self.unknown >= 1.0 else "no release is needed to leave nothing"
            raise AuditorError(f"--unknown must be a share above 0 and below 1, as 0.5 for half; got {self.unknown:g}: {why}")
        if not 1 <= self.copies <= MOST_COPIES:
            why = "; of a lossless scheme further copies, noisier than the first, tell nobody more" if self.copies > MOST_COPIES else ""
            raise AuditorError(f"--copies must be from 1 to {MOST_COPIES}; got {self.copies:,}{why}")
        if not 1.0 <= self.spread <= LARGEST_SPREAD:
            raise AuditorError(f"--spread must be a ratio from 1 to {LARGEST_SPREAD:,.0f}; got {self.spread:g}")
        if (self.utility == "classifier") != (self.target is not None):
            raise AuditorError("--utility classifier needs --target, the column to predict; nothing else takes one")


Listener = Callable[[str], None]


def advise(request: Request, listener: Listener = lambda words: None) -> Advice:
    """Return which release leaves the target unknown to the strongest attack of every coalition, at the least loss of use.

    Parameters
    ----------
    request : Request
    listener : callable
        Told what is done before it is done.

    Raises
    ------
    AuditorError
        The request or the data cannot be used, or no level meets the target: then the message names the largest that is met.
    """
    request.check()
    registry.discover()
    schemes = _schemes(request)
    categories = isinstance(schemes[0], UniformScheme)
    table = chosen(request.data, request.columns, request.rows, request.seed, request.target, categories=categories)
    candidates = _candidates(request, schemes, table)
    asked = Asked(table.measured, request.unknown, table.table.rows, request.seed, categories, _utility(request, table))
    trials = Trials(asked, request.utility)
    listener(_plan(request, candidates, table))
    best: tuple[Tried, Candidate, int] | None = None
    for candidate in candidates:
        listener(f"looking for levels of {candidate.name}")
        place = trials.lowest(candidate, math.inf if best is None else best[0].loss)
        if place is not None and (best is None or trials.whole(candidate, place).loss < best[0].loss - TIED):
            best = (trials.whole(candidate, place), candidate, place)
    if best is None:
        raise AuditorError(trials.refusal(candidates[0]))
    return _advice(request, table, asked, trials, *best[1:])


def _schemes(request: Request) -> list[AdditiveScheme | UniformScheme]:
    """Return the schemes to compare, all for numbers or all for categories."""
    made = [registry.get("scheme", name)() for name in request.schemes or ADDED]
    for scheme in made:
        if not isinstance(scheme, (AdditiveScheme, UniformScheme)) or scheme.distribution not in (None, "gaussian"):
            raise AuditorError(f"scheme {scheme.name!r} has no level that decides what stays unknown; known are {', '.join(ADDED + REPLACED)}")
    if len({isinstance(scheme, UniformScheme) for scheme in made}) > 1:
        raise AuditorError("numbers and categories are advised on apart: name schemes of one kind with --scheme")
    if isinstance(made[0], UniformScheme) and request.utility != "mean":
        raise AuditorError("of categories loss is counted by --utility mean, the standard errors of their shares")
    return made


def _candidates(request: Request, schemes: Sequence[AdditiveScheme | UniformScheme], chosen: Chosen) -> list[Candidate]:
    made: list[Candidate] = []
    moments = table_moments(chosen.table)
    if request.utility == "regression" and moments.covariance.shape[0] < 2:
        raise AuditorError("--utility regression needs two columns of numbers or more; there is one")
    for scheme in schemes:
        if isinstance(scheme, UniformScheme):
            assert chosen.table.categorical is not None
            made.append(Retention(request.copies, request.spread, scheme, _prior(chosen)))
            continue
        candidate = AddedNoise(request.copies, request.spread, scheme, moments, LOSSES[request.utility])
        if candidate.told(candidate.ratios) < 1e-9:
            raise AuditorError(f"{scheme.name}: its copies cancel their noise when they are pooled, so no level leaves anything unknown")
        made.append(candidate)
    return made


def _prior(chosen: Chosen) -> Any:
    codes = chosen.table.categorical
    assert codes is not None
    counts = np.bincount(np.asarray(codes.codes), minlength=codes.size).astype(np.float64)
    if (counts == 0).any() or len(counts) < 2:
        raise AuditorError("a column of categories must have two values or more, each of them in some record")
    return counts / counts.sum()


def _utility(request: Request, chosen: Chosen) -> dict[str, Any]:
    if request.target is None:
        return {}
    data = chosen.measured
    label = load_target(
        request.data, request.target, columns=data.get("columns"), rows=data.get("rows"), missing=data.get("missing", "refuse"),
        rng=stream(request.seed, "data"),
    )  # fmt: skip
    if not is_class(label):
        raise AuditorError(f"--target {request.target!r} is a column of numbers, and a classifier predicts classes")
    return {"target": request.target, "models": [MODEL]}


def _plan(request: Request, candidates: Sequence[Candidate], chosen: Chosen) -> str:
    first = candidates[0]
    start = first.start(request.unknown)
    paper = "" if start is None else f": {first.name} needs {first.levels(start)[0]:g} or stronger"
    rows = chosen.table.rows
    return (
        f"on paper first{paper}; then every attack that applies is measured on single copies, and then on whole releases "
        f"({rows:,} records, {draws(rows)} draws of the noise each)"
    )


@dataclass
class Trials:
    """The releases that were considered; what is audited is audited once."""

    asked: Asked
    utility: str
    tried: dict[tuple[str, tuple[float, ...]], Tried] = field(default_factory=dict)
    audits: dict[tuple[str, tuple[float, ...]], AuditResult] = field(default_factory=dict)

    def lowest(self, candidate: Candidate, best: float) -> int | None:
        """Return the first place of a scheme's grid where its whole release meets the target; None where none does.

        Nor is one looked for where the closed form alone asks for levels that lose more of the use than ``best``.
        """
        place = candidate.start(self.asked.target)
        if place is None:
            return None
        on_paper = self._noted(candidate, candidate.levels(place), None)
        if self.utility != "classifier" and on_paper.loss > best:
            return None
        if candidate.curve:
            found = weakest(lambda at: self.single(candidate, at).met, place, candidate.places)
            if found is None:
                return None
            place = found
        return weakest(lambda at: self.whole(candidate, at).met, place, candidate.places)

    def single(self, candidate: Candidate, place: int) -> Tried:
        """Return what one copy shows that tells as much as the whole release; schemes of one curve share it."""
        key = (candidate.curve, candidate.alone(place))
        if key not in self.audits:
            self.audits[key] = self.asked.audit(candidate.name, candidate.alone(place))
        return self._noted(candidate, candidate.levels(place), self.audits[key])

    def whole(self, candidate: Candidate, place: int) -> Tried:
        """Return what the whole release shows."""
        levels = candidate.levels(place)
        key = (candidate.name, levels)
        if key not in self.audits:
            self.audits[key] = self.asked.audit(candidate.name, levels)
        return self._noted(candidate, levels, self.audits[key], in_full=True)

    def _noted(self, candidate: Candidate, levels: tuple[float, ...], audit: AuditResult | None, *, in_full: bool = False) -> Tried:
        """Note what is known of a release; an audit in full takes the place of one copy's, and that of what paper says."""
        pooled, alone = candidate.unknown(levels), candidate.unknown(levels[:1])
        losses = _measured_losses(audit, len(levels)) if self.utility == "classifier" and audit and in_full else candidate.losses(levels)
        exposed, met = (None, False) if audit is None else (self.asked.exposed(audit), self.asked.met(audit))
        made = Tried(candidate.name, levels, pooled, exposed, met, in_full, max(0.0, 1.0 - pooled / alone), losses)
        known = self.tried.get((candidate.name, levels))
        if known is None or (known.exposed is None, in_full) >= (made.exposed is None, known.in_full):
            self.tried[candidate.name, levels] = made
        return made

    def refusal(self, candidate: Candidate) -> str:
        """Say that no level meets the target, and which the largest is that is met."""
        shown = self.whole(candidate, candidate.places - 1)
        assert shown.exposed is not None
        most = math.floor(100 * min(shown.exposed.surely, shown.on_paper) - 1e-9) / 100
        return (
            f"no level leaves {self.asked.target:g} of every attribute unknown for sure: of the most perturbed release that was tried, "
            f"{candidate.name} at {', '.join(f'{level:g}' for level in shown.levels)}, {self.asked.rows:,} records show "
            f"{shown.exposed.unknown:.3f} ± {shown.exposed.half:.3f}" + (f"; the largest that is met is --unknown {most:g}" if most > 0 else "")
        )


def _measured_losses(result: AuditResult, copies: int) -> tuple[float, ...]:
    """Return what a model that is trained on each copy loses, averaged over the draws of the noise."""
    name = f"utility_loss_{MODEL.replace('-', '_')}"
    values = [[r.value for r in result.measurements if r.metric == name and r.coalition == (copy,)] for copy in range(1, copies + 1)]
    return tuple(float(np.mean([value for value in one if value is not None])) for one in values)


def _advice(request: Request, chosen: Chosen, asked: Asked, trials: Trials, best: Candidate, place: int) -> Advice:
    """Return the recommendation, after its weaker neighbour on the grid was audited as well: it must not meet the target."""
    while place > 0 and trials.whole(best, place - 1).met:
        place -= 1
    taken = trials.whole(best, place)
    weaker = trials.whole(best, place - 1) if place else None
    title = f"{request.copies} {'copies' if request.copies > 1 else 'copy'} that leave{'s' * (request.copies == 1)} {request.unknown:g} unknown"
    whole = replace(asked, data=chosen.data)
    return Advice(
        request.data, chosen.table.rows, chosen.all_rows, draws(asked.rows), request.unknown, request.utility,
        USES[request.utility] if not asked.categories else "how much the standard error of a category's share grows", _grid(best),
        tuple(sorted(trials.tried.values(), key=lambda one: (one.scheme != best.name, one.scheme, one.on_paper))), taken, weaker, whole.scenario(best.name, taken.levels, title),
        command(request, chosen, taken), chosen.notes,
    )  # fmt: skip


def _grid(candidate: Candidate) -> str:
    if isinstance(candidate, AddedNoise):
        return f"σ² of what all copies tell, from {candidate.grid[0]:g} to {candidate.grid[-1]:g} in {STEPS} steps a decade"
    return "retention of the least perturbed copy, from 0.99 down to 0.01 in steps of 0.01"


def command(request: Request, chosen: Chosen, taken: Tried) -> str:
    """Return the line that makes the recommended copies."""
    columns = chosen.data.get("columns")
    options = [f"--columns {quote(','.join(columns))}"] if columns else []
    options += [f"--missing {chosen.data['missing']}"] if "missing" in chosen.data else []
    levels = ",".join(f"{level:g}" for level in taken.levels)
    return " ".join(["auditor perturb", quote(request.data), f"--scheme {taken.scheme} --levels {levels}", *options, "--output copies"])
