"""Comparison matrix, further measures, cells without a figure, and labels."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from auditor.base import clean, counted
from auditor.base.types import Coalition, Names, Options
from auditor.results.metrics import METRICS, base
from auditor.results.model import AuditResult
from auditor.results.records import grouped

from .figures import TEXTS, Figure, Severity, clipped, listed, severity, share, with_error
from .reading import (
    BEYOND,
    ERROR,
    EVERYTHING,
    GAIN,
    Figures,
    Gap,
    Reading,
    Setting,
    best_single,
    lowest,
    nine_digits,
    unique,
)

RIGHT, TRUTH, BITS = "accuracy", "reconstruction_probability", "mutual_information"


class Guesses(NamedTuple):
    """Accuracy of a coalition's best guess, and of its best member alone.

    ``blind`` is the share guessed right without copies, ``truth`` the true value's probability.
    """

    right: Figure
    single: Figure | None
    blind: float
    truth: Figure
    bits: Figure | None

    def mistakes(self, right: float) -> float:
        """Share of mistakes without copies that remain: 0 exact, 1 no gain."""
        return max(0.0, 1 - right) / (1 - self.blind) if self.blind < 1 else 1.0

    @property
    def left(self) -> float:
        """Share of mistakes that remain."""
        return self.mistakes(self.right.value)


def guesses_categories(reading: Reading, setting: Setting) -> bool:
    """Whether the setting's attack guesses categories."""
    return bool(reading.figures(setting, BEYOND)) and bool(reading.figures(setting, TRUTH))


def losses(reading: Reading, setting: Setting) -> Figures:
    """Losses that rank coalitions.

    The loss is the normalized error, or ``1 − truth`` for categories.
    """
    if not guesses_categories(reading, setting):
        return reading.figures(setting)
    return {
        coalition: shown.complement for coalition, shown in reading.figures(setting, TRUTH).items()
    }


def guesses(reading: Reading, setting: Setting, coalition: Coalition) -> Guesses | None:
    """Coalition's guesses; None if the attack guesses no categories."""
    right, truth = (reading.figures(setting, metric) for metric in (RIGHT, TRUTH))
    beyond = reading.figures(setting, BEYOND).get(coalition)
    if beyond is None or coalition not in right or coalition not in truth:
        return None
    alone = best_single(losses(reading, setting), coalition)
    copy = () if alone is None else alone.coalition
    blind = right[coalition].value - beyond.value
    bits = reading.figures(setting, BITS).get(coalition)
    return Guesses(right[coalition], right.get(copy), blind, truth[coalition], bits)


PERFECT = "perfect"
EXACT = 1e-6
"""Normalized errors below this bound are exact up to rounding."""


def strongest(reading: Reading, scheme: str) -> Setting | None:
    """Scheme's setting with the lowest error bound."""
    found = [setting for setting in _settings(reading) if setting.scheme == scheme]
    return next(iter(by_strength(reading, judged(reading, found))), None)


def judged(reading: Reading, settings: Sequence[Setting]) -> Sequence[Setting]:
    """Settings that compete for the strongest on one measure.

    Guesses of categories have priority, unless errors of numbers are lower.
    """
    found = [setting for setting in settings if not reading.given(setting)] or settings
    guessing = [setting for setting in found if guesses_categories(reading, setting)]
    others = [setting for setting in found if setting not in guessing]
    if not guessing or not others:
        return found
    by_guesses, by_numbers = (
        min(
            (shown.ceiling for one in some for shown in reading.figures(one).values()),
            default=math.nan,
        )
        for some in (guessing, others)
    )
    return others if by_numbers < by_guesses * (1 - 1e-9) else guessing


def by_strength(reading: Reading, settings: Iterable[Setting]) -> list[Setting]:
    """Settings by the lowest error bound of a coalition.

    Exact reconstructions are ranked by their best single copy.
    """
    ranked = {}
    for setting in settings:
        found = losses(reading, setting)
        worst = lowest(found.values())
        if worst is not None:
            order, single = (worst.ceiling, 0.0), best_single(found, worst.coalition)
            if worst.ceiling < EXACT:
                order = 0.0, single.ceiling if single else 1.0
            ranked[setting] = [nine_digits(part) for part in order]
    return sorted(ranked, key=ranked.__getitem__)


def lowest_attribute(
    reading: Reading, settings: Sequence[Setting], names: Names = ()
) -> tuple[Setting, str, Figure] | None:
    """Setting, attribute and figure with the lowest error bound.

    Attributes known in clear are excluded. ``names`` restricts the attributes.
    """
    found = [
        (setting, name, shown)
        for setting in settings
        for name in names or reading.attributes
        if name not in (EVERYTHING, *reading.given(setting))
        and (shown := lowest(reading.unknown(setting, name).values())) is not None
    ]
    return min(
        found, key=lambda one: (max(EXACT, one[2].ceiling), len(one[2].coalition)), default=None
    )


def _settings(reading: Reading) -> list[Setting]:
    return unique([*reading.settings(ERROR), *reading.settings(BEYOND)])


@lru_cache(maxsize=1)  # a page calls it ten times, over every coalition
def leader(reading: Reading) -> Setting | None:
    """Default setting of charts.

    The strongest attack with perfect knowledge on most schemes, without exact reconstructions.
    """
    found = by_strength(reading, _settings(reading))
    bounds = {one: lowest(losses(reading, one).values()) for one in found}
    exact = {one.scheme for one in found if (shown := bounds[one]) and shown.ceiling < EXACT}
    many = Counter((one.knowledge, one.attack, one.point) for one in found)
    return min(
        found,
        key=lambda one: (
            one.knowledge != PERFECT,
            bool(reading.given(one)),
            -many[one.knowledge, one.attack, one.point],
            one.scheme in exact,
        ),
        default=None,
    )


UTILITIES: dict[str, Names] = TEXTS["utilities"]
"""Unit and meaning of the utility metrics without a model."""
LOSS, MODEL = "utility_loss_", "utility_"
PATHS: dict[str, str] = TEXTS["paths"]
"""Words for the most frequent swept paths."""


def unit(metric: str, reading: Reading) -> str:
    """Metric's unit; standardized tables use standard deviations."""
    if metric in UTILITIES:
        return UTILITIES[metric][0]
    if metric.startswith(MODEL):
        return "accuracy or R² lost" if metric.startswith(LOSS) else "accuracy or R²"
    known = METRICS.get(base(metric))
    stated = known.unit if known else ""
    return stated.replace("data units", data_unit(reading)).replace(
        "squared standard deviations", "variances"
    )


def data_unit(reading: Reading) -> str:
    """Unit of reconstruction errors."""
    return "standard deviations" if reading.standardized else "data units"


def utility_meaning(metric: str) -> str:
    """Describe a utility metric."""
    if metric in UTILITIES:
        return UTILITIES[metric][1]
    name = clean(metric.removeprefix(LOSS).removeprefix(MODEL).replace("_", " "))
    lost = "trained on the original, less that of one trained on the copy"
    how = lost if metric.startswith(LOSS) else "trained on the copy, by cross-validation"
    return f"accuracy (of a class) or R² (of a number) of a {name} {how}"


def metric_title(metric: str, reading: Reading, attribute: str = EVERYTHING) -> str:
    """Metric's axis title: ``rmse of age (data units)``."""
    of = "" if attribute == EVERYTHING else f" of {attribute_text(attribute)}"
    what = unit(metric, reading)
    return clean(f"{metric}{of} ({what})" if what and what != metric else f"{metric}{of}")


def path_title(path: str) -> str:
    """Swept path's axis title: ``records (data.rows)``."""
    return clean(f"{PATHS[path]} ({path})" if path in PATHS else path)


def attribute_text(attribute: str) -> str:
    """Name an attribute; ``*`` means all attributes."""
    return "all attributes" if attribute == EVERYTHING else attribute


OF_THE_AUDIT: dict[str, str] = TEXTS["estimates of the audit"]
"""Estimates by the audit itself from both originals and copies."""


@lru_cache
def knows(knowledge: str | None, *, attack: str | None = None, categories: bool = False) -> str:
    """Describe an adversary's knowledge; models and rules keep their YAML name."""
    if attack in OF_THE_AUDIT:
        return OF_THE_AUDIT[attack]
    known = "every category's share" if categories else "means and correlations"
    for pattern, text in TEXTS["knowledge"].items():
        if found := re.fullmatch(pattern, str(knowledge)):
            return clipped(found.expand(text.replace("{}", known)), 80)
    return f"{clipped(str(knowledge), 80)} knowledge"


VERBS = ("knows", "has", "assumes")


def label(reading: Reading, setting: Setting, joined: str = "") -> str:
    """Name an adversary: ``llse, knows means and correlations exactly``.

    In a sentence ``joined`` by ``which``.
    """
    if setting.attack is None:
        return "the release itself"
    said = knows(
        setting.knowledge, attack=setting.attack, categories=guesses_categories(reading, setting)
    )
    return f"{clipped(setting.attack, 60)}, {joined if said.split()[0] in VERBS else ''}{said}"


class MatrixCell:
    """Result of one attack with one knowledge against one scheme.

    Attributes
    ----------
    status : str
        ``ok``, ``not-applicable``, ``failed``, or ``missing`` outside the scenario.
    coalition : tuple of int
        The coalition that rebuilds most; empty without a figure.
    worst, single : Figure or None
        Its normalized error, and that of its best member.
    exposed : (str, Figure) or None
        The most exposed attribute, if worse than overall.
    mark : str
        Mark of the strongest adversaries.
    facts : sequence of (str, str)
        Detail of a measured cell.
    """

    mark = ""
    facts: Sequence[tuple[str, str]] = ()

    def __init__(self, reading: Reading, setting: Setting) -> None:
        found, errors = losses(reading, setting), reading.figures(setting)
        worst = lowest(found.values())
        self.setting, self.scheme = setting, setting.scheme
        self.coalition: Coalition = worst.coalition if worst else ()
        gaps = (gap[3:5] for gap in reading.gaps if gap[:3] == setting[1:])
        self.status, self.reason = ("ok", "") if worst else next(gaps, ("missing", ""))
        alone = best_single(found, self.coalition)
        self.pooled = alone is not None and alone.coalition != self.coalition
        self.worst = errors.get(self.coalition)
        self.single = errors.get(alone.coalition) if alone and self.pooled else None
        self.guesses = guesses(reading, setting, self.coalition)
        self.given = tuple(sorted(reading.given(setting)))
        most = lowest_attribute(reading, [setting]) if self.measured else None
        worse = most and self.whole and most[2].severity.rank > self.whole.rank
        self.exposed = most[1:] if most and worse else None

    @property
    def gap(self) -> str:
        """Text of a cell without a figure."""
        return {"not-applicable": "n/a", "failed": "✗ failed"}.get(self.status, "–")

    @property
    def why(self) -> str:
        """Reason of a gap inside the scenario, else empty."""
        outcome = {"not-applicable": "Not applicable", "failed": "Failed"}.get(self.status)
        return f"{outcome}: {self.reason}" if outcome else ""

    @property
    def measures(self) -> list[tuple[float, str]]:
        """Shares left by the normalized error and by right guesses, least first, with texts."""
        found = [(self.worst.value, with_error(self.worst))] if self.worst else []
        if self.guesses:
            found.append((self.guesses.left, f"{share(self.guesses.right)} right"))
        return sorted(found)

    @property
    def figure(self) -> str:
        """The measure with the least share left, as text."""
        return self.measures[0][1]

    @property
    def below(self) -> list[str]:
        """Secondary figures: the other measure, the best single copy, the most exposed attribute."""
        found = [text if "right" in text else f"error {text}" for _, text in self.measures[1:]]
        found += [f"single {with_error(self.single)}"] if self.single else []
        if self.exposed:
            found.append(f"{clipped(self.exposed[0], 24)} {with_error(self.exposed[1])}")
        return found

    def text(self, *, brief: bool) -> str:
        """Grade, figure and, unless ``brief``, secondary figures."""
        if self.severity is None or self.whole is None:
            return self.gap
        if brief and self.order >= 0.0005:
            # three decimals for all neighbours, unless a value would round to 0
            return f"{self.whole.word} {self.order:.3f}{self.mark}"
        first = f"{self.severity.word} {self.figure} {self.mark}".rstrip()
        return first.partition(" ±")[0] if brief else "\n".join([first, *self.below])

    @property
    def measured(self) -> bool:
        """Whether the cell has a figure."""
        return bool(self.measures)

    @property
    def severity(self) -> Severity | None:
        """The worse of the overall grade and the most exposed attribute's grade."""
        return self.exposed[1].severity if self.exposed else self.whole

    @property
    def whole(self) -> Severity | None:
        """Grade of all attributes together."""
        return severity(self.order) if self.measured else None

    @property
    def order(self) -> float:
        """Sort key of a column."""
        return min((left for left, _ in self.measures), default=math.inf)


class MatrixRow(NamedTuple):
    """One adversary against every scheme."""

    knowledge: str
    attack: str
    cells: list[MatrixCell]
    kind: str = ""
    knows: str = ""

    @property
    def reported(self) -> bool:
        """Whether any scheme has a figure or a failure."""
        return any(cell.measured or cell.status == "failed" for cell in self.cells)


def matrix(reading: Reading) -> list[MatrixRow]:
    """Comparison; all cells show the reference sweep point."""
    point, kinds = reference_point(reading), reading.result.attack_kinds
    names = {one.id: one.name for one in reading.result.plugins if one.kind == "attack"}
    rows = []
    for knowledge, attack in reading.adversaries:
        settings = (Setting(point, scheme, knowledge, attack) for scheme in reading.schemes)
        cells = [MatrixCell(reading, one) for one in settings]
        rows.append(MatrixRow(knowledge, attack, cells, kinds.get(names.get(attack, ""), "")))
    categories = all(
        cell.guesses or row.attack in OF_THE_AUDIT
        for row in rows
        for cell in row.cells
        if cell.measured
    )
    return [row._replace(knows=knows(row.knowledge, categories=categories)) for row in rows]


def reference_point(reading: Reading) -> int:
    """Leading adversary's sweep point; 0 without a sweep."""
    setting = leader(reading)
    return 0 if setting is None else setting.point


ERRORS = frozenset({ERROR, "distortion", "rmse"})
SHOWN_ELSEWHERE = ERRORS | {GAIN, "column_equal", "column_unique"}


def telling(metric: str, found: Figures) -> Figure | None:
    """Setting's lowest error, or the largest coalition's metric."""
    if metric in ERRORS:
        return lowest(found.values())
    return found[max(found, key=len)] if found else None


def gathered(gaps: Iterable[Gap]) -> list[tuple[str, str, str]]:
    """Status, adversaries and reason of every gap, failures first.

    Adversaries are named once per reason:
    ``ica and llse (knowledge: perfect) against rotation (6 cells)``.
    """
    found = grouped(
        ((gap.status, gap.knowledge, gap.reason.removeprefix(f"{gap.attack} ")), gap)
        for gap in gaps
    )
    groups = []
    for (status, knowledge, reason), held in found.items():
        known = f" (knowledge: {clipped(knowledge, 60)})" if knowledge else ""
        schemes, attacks = (
            listed([clipped(name, 60) for name in unique(names)])
            for names in (
                (gap.scheme for gap in held),
                (gap.attack or "the release" for gap in held),
            )
        )
        cells = counted(sum(gap.cells for gap in held), "cell")
        groups.append((status, f"{attacks}{known} against {schemes} ({cells})", reason))
    return sorted(groups, key=lambda group: group[0] != "failed")


def untried_kinds(result: AuditResult) -> tuple[dict[str, list[str]], list[str]]:
    """Untried attacks of untried kinds, by kind, and of tried kinds."""
    kinds = result.attack_kinds
    had = {kinds.get(plugin.name) for plugin in result.plugins if plugin.kind == "attack"}
    new = [name for name in result.untried if kinds.get(name) not in had]
    found = grouped((kinds.get(name, "of no stated kind"), name) for name in new)
    return found, [name for name in result.untried if kinds.get(name) in had]


def untried_text(result: AuditResult) -> str:
    """Name the applicable kinds of attack that were not tried.

    For kinds that were tried, count the attacks left out.
    """
    kinds, more = untried_kinds(result)
    which = ", ".join(clipped(kind, 60) for kind in kinds)
    attacks = counted(len(more), "more attack")
    if not which and not more:
        return ""
    apply = "applies" if len(more) == 1 else "apply"
    left = f"Every kind of attack was tried; {attacks} {apply}"
    if which:
        left = f"Not tried: {which}" + f", and {attacks} of kinds that were tried" * bool(more)
    return f"{left}. `attacks: all` tries all that can be strongest."


def limited_text(attacks: Sequence[str | Options]) -> str:
    """State which attacks ran on some coalitions only.

    Malformed entries of edited files are ignored.
    """
    groups: dict[str, list[str]] = {}
    for attack in attacks if isinstance(attacks, list) else ():
        if isinstance(attack, Mapping) and isinstance(attack.get("coalitions"), list):
            on = ", ".join(
                entry if isinstance(entry, str) else "a choice of its own"
                for entry in attack["coalitions"]
            )
            groups.setdefault(on, []).append(clipped(str(attack.get("id", attack.get("name"))), 60))
    return " ".join(
        f"Tried on some coalitions only ({on}): {', '.join(names)}." for on, names in groups.items()
    )
