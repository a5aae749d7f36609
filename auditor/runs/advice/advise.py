"""Advice: closed forms, then audits of copies, then checks of releases."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote

import yaml

from auditor import registry
from auditor.adversary.attack import Attack
from auditor.base import AuditorError
from auditor.base.types import Names, frozen
from auditor.process.containment import Interrupted
from auditor.results.files import write_atomically, writing
from auditor.results.model import AuditResult
from auditor.results.records import Advice, Tried
from auditor.runs.advice.audits import Asked, Trials, by_closed_form
from auditor.runs.advice.candidates import (
    STEPS,
    AddedNoise,
    Candidate,
    candidates_of,
    parameters_of,
    schemes_of,
    weakest,
)
from auditor.runs.advice.columns import USES, Chosen, Request, chosen, utility_of
from auditor.runs.output import rendered
from auditor.schemes.replacement.base import UniformScheme

# -- Check a recommendation on the rows to be released, and without their order --------------------


MOST_CHECKED = 50_000
"""First rows on which a recommendation is checked."""
MOST_TRIES = 6
NEAR = 1.2
"""Attacks that leave at most this multiple of the least share are tried in a check."""
LESS, CUT = 1.25, 1.99
"""Least factor that advice mentions, of shares without and with serial attacks, and of levels; factor
of the target at which shares are cut off.
"""


def is_serial(name: str) -> bool:
    """Whether an attack uses the order of rows."""
    attack: type[Attack] = registry.get("attack", name)
    return attack.serial


@frozen
class Check:
    """Audits of one draw against some attacks."""

    asked: Asked
    candidate: Candidate
    attacks: Names

    def left(self, place: int) -> float:
        """Share unknown of the worst attribute at a place of the grid."""
        levels = self.candidate.sufficient(place)
        result = self.asked.audit(self.candidate.name, levels, self.attacks, 1)
        return self.asked.exposed(result).unknown

    def first(self, place: int, share: float) -> int:
        """Place near the first that leaves the target, from the share left at one."""
        met = [place] if share >= self.asked.target else []
        for _ in range(MOST_TRIES):
            wanted = by_closed_form(self.candidate, place, share, self.asked.target)
            if wanted == place:
                break
            place, share = wanted, self.left(wanted)
            met += [place] if share >= self.asked.target else []
        return min(met, default=place)


def checked_place(
    asked: Asked, candidate: Candidate, place: int, result: AuditResult, chosen: Chosen
) -> tuple[int, str]:
    """Place that meets the target on the rows of a release, and a note.

    ``result`` is the audit of the sample at ``place``. No weaker place is returned.
    """
    rows = min(chosen.all_rows, MOST_CHECKED)
    shares = asked.strongest(result, math.inf)
    near = NEAR * min(shares.values())
    attacks = sorted(name for name, share in shares.items() if share <= near or is_serial(name))
    check = Check(replace(asked, data={**chosen.data, "rows": rows}), candidate, attacks)
    share = check.left(place)
    note = f"checked on the first {rows:,} records, in order"
    if share >= asked.target:
        return place, f"{note}: {share:.3f} stays unknown"
    return max(
        place, check.first(place, share)
    ), f"{note}, which need more noise than the sample: there {share:.3f} stays unknown"


def shuffled_note(
    asked: Asked, candidate: Candidate, place: int, result: AuditResult
) -> str | None:
    """Note on the noise that suffices without the order of rows, if much less."""
    shares = asked.strongest(result, math.inf)
    serial = [share for name, share in shares.items() if is_serial(name)]
    others = {name: share for name, share in shares.items() if not is_serial(name)}
    if not serial or not others:
        return None
    least = min(others.values())
    # shares are cut off at twice the target
    if least < min(LESS * min(serial), CUT * asked.target):
        return None
    attacks = [name for name, share in others.items() if share <= NEAR * least]
    there = Check(asked, candidate, attacks).first(place, least)
    if LESS * candidate.levels(there)[0] > candidate.levels(place)[0]:
        return None
    now, then = candidate.levels(place)[0], candidate.levels(there)[0]
    return (
        f"the order of the records discloses them: if they are shuffled first, {candidate.name} at about {then:g} "
        f"in place of {now:g} leaves {asked.target:g} on average; advise on the shuffled table"
    )


# --------------------------------------------------------------------------------------------------


TIED = 1e-9
"""Losses that differ by less are equal; the first scheme is chosen."""


Listener = Callable[[str], None]


def advise(request: Request, listener: Listener = lambda words: None) -> Advice:
    """Release that meets the target at the least loss of use.

    The target is the share unknown to the strongest attack of every coalition.

    Parameters
    ----------
    request : Request
    listener : callable
        Called with a line before each stage.

    Raises
    ------
    AuditorError
        The request or the data cannot be used; or no level meets the target, with the largest that
        is met.
    """
    request.check()
    registry.discover(*registry.AUDITING)
    schemes = schemes_of(request)
    categories = isinstance(schemes[0], UniformScheme)
    table = chosen(request, categories=categories)
    candidates = candidates_of(request, schemes, table)
    measures = [{"guarantees": {"delta": request.delta}}] if request.bounds else []
    asked = Asked(
        table.measured,
        request.unknown,
        table.table.rows,
        request.seed,
        categories,
        utility_of(request, table),
        parameters_of(request),
        measures,
        table.all_rows,
    )
    trials = Trials(asked, request.utility, request.epsilon, listener)
    first, paper = candidates[0], ""
    if (start := first.start(request.unknown, request.epsilon)) is not None:
        paper = f": attacks with a closed form ask for {first.name} at {first.levels(start)[0]:g} or safer"
    listener(
        f"on paper first{paper}; then every attack that applies is measured on single copies, and then on whole releases "
        f"({asked.rows:,} records, up to {asked.draws} draws of the noise each)"
    )
    best: tuple[Tried, Candidate, int] | None = None
    try:
        for candidate in candidates:
            listener(f"looking for levels of {candidate.name}")
            place = trials.lowest(candidate, math.inf if best is None else best[0].loss)
            if place is not None and (
                best is None or trials.whole(candidate, place).loss < best[0].loss - TIED
            ):
                best = (trials.whole(candidate, place), candidate, place)
        if best is None:
            most = first.places - 1
            note = shuffled_note(asked, first, most, trials.audit(first, most))
            raise AuditorError("; ".join([trials.refusal(first), *([note] if note else [])]))
        trials.draw_out(candidates, *best[1:])
    except Interrupted as stop:
        best = best or trials.best_so_far(candidates)
        if best is None:
            raise
        trials.closed, trials.stopped = True, stop.signal
    return _advice(request, table, asked, trials, *best, listener)


def _advice(
    request: Request,
    chosen: Chosen,
    asked: Asked,
    trials: Trials,
    taken: Tried,
    best: Candidate,
    place: int,
    listener: Listener,
) -> Advice:
    while (
        place > 0
        and not trials.closed
        and trials.whole(best, place - 1, full=False).met
        and trials.whole(best, place - 1).met
    ):
        place -= 1
        taken = trials.whole(best, place)
    notes = [*chosen.notes]
    if trials.stopped is None:
        try:
            if asked.sampled:
                listener("checking the recommendation on the rows of the release")
                place, found = checked_place(asked, best, place, trials.audit(best, place), chosen)
                notes.append(found)
                taken = trials.whole(best, place)
            listener("looking for the level of shuffled records")
            note = shuffled_note(asked, best, place, trials.audit(best, place))
            notes += [note] if note else []
        except Interrupted as stop:
            trials.closed, trials.stopped = True, stop.signal
    step = None if trials.closed else steps_apart(trials, best, place)
    weaker = (
        trials.failing(best, place)
        if step is None
        else trials.whole(best, place - step, full=False)
    )
    title = f"{request.copies} {'copies that leave' if request.copies > 1 else 'copy that leaves'} {request.unknown:g} unknown"
    return Advice(
        data=request.data,
        rows=chosen.table.rows,
        all_rows=chosen.all_rows,
        replicates=asked.draws,
        target=request.unknown,
        delta=request.delta,
        utility=request.utility,
        use=USES["share" if asked.categories else request.utility],
        grid=_grid(best),
        frontier=tuple(
            sorted(
                trials.tried.values(),
                key=lambda one: (one.scheme != best.name, one.scheme, one.on_paper),
            )
        ),
        chosen=taken,
        weaker=weaker,
        step="" if weaker is None else best.between(best.place_of(weaker.levels), place),
        scenario=replace(asked, data=chosen.data).scenario(best.name, taken.levels, title),
        command=command(request, chosen, best, taken),
        notes=(*notes, *trials.notes()),
        stopped=trials.stopped,
    )


def steps_apart(trials: Trials, best: Candidate, place: int) -> int | None:
    """Distance to the next weaker release that surely fails, or None."""

    def fails(audited: Callable[[Candidate, int], Tried]) -> Callable[[int], bool]:
        return lambda back: audited(best, place - back).verdict == "fails"

    def guess(back: int) -> int:
        return place - trials.guess(best, place - back, -1.0)

    step: int | None = 1
    first = max(1, place and guess(0))
    for audited in (trials.single, partial(trials.whole, full=False)):
        step = step and weakest(fails(audited), step, place + 1, first, guess)
        first = step or 1
    return step


def _grid(candidate: Candidate) -> str:
    if not isinstance(candidate, AddedNoise):
        return "retention of the least perturbed copy, from 0.99 down to 0.01 in steps of 0.01"
    unit = "" if candidate.table.spans is None else ", over what bounds allow squared"
    return f"σ² of one copy equivalent to all{unit}, from {candidate.grid[0]:g} to {candidate.grid[-1]:g} in {STEPS} steps a decade"


def command(request: Request, chosen: Chosen, best: Candidate, taken: Tried) -> str:
    """Command that makes the recommended copies.

    Noise sized by bounds is stated by guarantees.
    """
    parameters, columns = dict(request.parameters), chosen.data.get("columns")
    if isinstance(best, AddedNoise) and request.bounds:
        copies = [[copy] for copy in range(1, len(taken.levels) + 1)]
        kept = [best.guarantees(taken.levels, copy) or {} for copy in copies]
        metric = "gaussian_dp" if math.isinf(kept[0]["epsilon"].value) else "epsilon"
        sized = (
            f"--{metric.replace('_', '-')} {','.join(f'{one[metric].value:.6g}' for one in kept)}"
        )
        units = best.scheme.law(taken.levels, best.table).units
        parameters |= (
            {}
            if units is None
            else {"unit": dict(zip(request.bounds, units.tolist(), strict=True))}
        )
        columns = None
    else:
        sized = f"--levels {','.join(f'{level:g}' for level in taken.levels)}"
    options = [f"--columns {quote(','.join(columns))}"] if columns else []
    options += [f"--keep {quote(','.join(request.shown))}"] if request.shown else []
    options += [
        f"--bounds {quote(f'{name}={low!r}:{high!r}')}"
        for name, (low, high) in request.bounds.items()
    ]
    options += [f"--param {quote(f'{name}={value}')}" for name, value in parameters.items()]
    options += [f"--missing {chosen.data['missing']}"] if "missing" in chosen.data else []
    return " ".join(
        [
            f"auditor perturb {quote(request.data)} --scheme {taken.scheme} {sized}",
            *options,
            "--output copies",
        ]
    )


HEAD = """\
# Made by `auditor advise`. Run it with `auditor run FILE`; copies to hand out are made with
#   {command}
"""


def write_advice(advice: Advice, folder: Path) -> list[Path]:
    """Write ``advice.yaml`` and ``advice.html``; return their paths.

    Raises
    ------
    StorageError
        The folder cannot be written.
    """
    text = yaml.safe_dump(advice.scenario, sort_keys=False, allow_unicode=True, width=100)
    # a column's name must not end the comment's line
    command = advice.command.encode("unicode_escape").decode("ascii")
    paths = [folder / "advice.yaml", folder / "advice.html"]
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(paths[0], (HEAD.format(command=command) + text).encode())
        write_atomically(paths[1], rendered("html", advice).encode("utf-8", "backslashreplace"))
    return paths
