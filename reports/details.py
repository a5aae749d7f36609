"""Tables of single metrics: noise of copies, shown columns, guarantees."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from auditor.base.types import Names
from auditor.results.metrics import EMPIRICAL, GUARANTEES, base
from auditor.results.records import Measurement

from .document import MARKDOWN, PAGE, TERMINAL, Block, Paragraph, Row, Table
from .figures import (
    Z95,
    Figure,
    braces,
    clipped,
    copies,
    isolated,
    number,
    percent,
    rounded,
    share,
    with_error,
)
from .matrix import (
    Guesses,
    MatrixCell,
    MatrixRow,
    by_strength,
    judged,
    knows,
    losses,
    reference_point,
)
from .reading import ERROR, EVERYTHING, GAIN, Reading, Setting, lowest, unique

FAR = 4.0
"""Standard errors of disagreement with theory; chance 1 in 16,000 cells."""
LEVELS = 12
"""Largest number of levels to list."""
FLOOR = "error_floor"
PROVED = "Proved: from copies alone, no attack leaves less of the variance unknown on average than "
BEST, NEAR = "★", "☆"
MARKS = f"{BEST} strongest against its scheme  {NEAR} not told apart from it by the error bars"


def facts(reading: Reading, cell: MatrixCell) -> list[tuple[str, str]]:
    """Facts of a cell: copies, levels, errors, theory, attributes."""
    setting, held, guessed = cell.setting, cell.coalition, cell.guesses
    shown = cell.worst or (guessed.right if guessed else None)
    if shown is None:
        return []
    levels = ", ".join(map(number, shown.levels[:LEVELS]))
    levels += " …" if len(shown.levels) > LEVELS else ""
    runs = f"{shown.replicates} replicate{'s' if shown.replicates != 1 else ''}"
    counted = " (in 1 − probability of the truth)" if guessed else ""
    single, gain = cell.single, reading.figures(setting, GAIN).get(held) if held[1:] else None
    found = {
        "The adversary": knows(setting.knowledge, attack=setting.attack, categories=bool(guessed)),
        "Sweep point": reading.point_text(setting.point),
        "Worst coalition": copies(held, reading.copies_of(cell.scheme, setting.point)),
        "Its levels" if held[1:] else "Its level": levels,
        **(_guessed(cell, guessed) if guessed else {}),
        "Normalized error": with_error(cell.worst) if cell.worst else "",
        "Theory": _theory(cell.worst) if cell.worst else "",
        "Error bar from": f"{shown.error_bar}, {runs}",
        "Most revealing single copy": f"{with_error(single)} ({copies(single.coalition, 99)})"
        if single
        else "",
        f"Collusion gain{counted}": _with_theory(gain) if gain else "",
    }
    own = (
        (name, with_error(one) + ", given in clear" * (name in cell.given))
        for name in reading.attributes
        if name != EVERYTHING and (one := reading.figures(setting, ERROR, name).get(held))
    )
    return [one for one in (*found.items(), *own) if one[1]]


def _guessed(cell: MatrixCell, found: Guesses) -> dict[str, str]:
    single = share(found.single) if cell.pooled and found.single else ""
    return {
        "Right guesses": share(found.right),
        "Right guesses from the most revealing copy": single,
        "Right guesses without any copy": percent(found.blind),
        "Probability given to the truth": _with_theory(found.truth),
        "Information on a record": f"{with_error(found.bits)} bits" if found.bits else "",
    }


def _with_theory(shown: Figure) -> str:
    theory = f", theory {number(shown.theory, shown.half)}"
    return with_error(shown) + (theory if shown.theory is not None else "")


def _theory(shown: Figure) -> str:
    if shown.theory is None:
        return "no closed form"
    distance, judged = _distance_to_theory(shown), "no error bar to judge it by"
    if distance is not None:
        verb = "agrees" if distance <= FAR else "disagrees"
        judged = f"{verb}, {distance:.1f} standard errors apart"
    return f"{number(shown.theory, shown.half)}, {judged}"


def _distance_to_theory(shown: Figure) -> float | None:
    if shown.theory is None or shown.half is None:
        return None
    distance = abs(shown.value - shown.theory)
    if distance <= 1e-9 * max(1.0, abs(shown.theory)):
        return 0.0
    return distance / (shown.half / Z95) if shown.half else None


def least_possible(reading: Reading, point: int) -> list[tuple[str, str]]:
    """Each scheme's least error, as ``5.65 % from both copies``."""
    found = []
    for scheme in reading.schemes:
        least = lowest(reading.figures(Setting(point, scheme, None, None), FLOOR).values())
        if least is not None:
            who = copies(least.coalition, reading.copies_of(scheme, point))
            found.append((scheme, f"{number(100.0 * least.value)} % from {who}"))
    return found


def mark(reading: Reading, rows: Sequence[MatrixRow]) -> bool:
    """Mark the strongest cells by ★ or ☆; False if every scheme has one adversary."""
    marked = False
    for cells in zip(*(row.cells for row in rows), strict=True):
        held = {one.setting: one for one in cells if one.measured}
        contest = {
            one: shown
            for one in judged(reading, [*held])
            if (shown := lowest(losses(reading, one).values())) is not None
        }
        best = next(iter(by_strength(reading, contest)), None)
        if best is None or len(held) < 2:
            continue
        for one, shown in contest.items():
            reach = ((shown.half or 0.0) ** 2 + (contest[best].half or 0.0) ** 2) ** 0.5
            equal = _equal(shown, contest[best])
            if equal or shown.value - contest[best].value <= reach:
                held[one].mark, marked = BEST if equal else NEAR, True
    return marked


def _equal(shown: Figure, best: Figure) -> bool:
    near = abs(shown.ceiling - best.ceiling) <= 1e-9 * max(1e-9, abs(best.ceiling))
    return near and abs(shown.value - best.value) <= 1e-9


ALONE = {"values_equal": "kept", "noise_on_value": "follows the value", "rounding_step": "step"}
PAIRS = {"noise_correlation": "correlation", "noise_ratio": "ratio of sizes"}
SHOWN = {"column_equal": "kept", "column_unique": "unique"}
MOST = {TERMINAL: 24, MARKDOWN: 60, PAGE: 300}
MOST_TOLD = 6
"""Audited columns of a cell, the best told first."""
NOISE = (
    "Copies minus the original. Kept: share of values equal to the original's. Follows the value: correlation "
    "of the noise with the original. Step: all values are its multiples. A correlation of ±1 is one noise in two copies."
)
COLUMNS = (
    "Columns of the copies that are not audited. Kept: share of values equal to the original's, up to recoding. "
    "Unique: share of records with a value of their own. Tells: share of an audited column's variance between equal values."
)
BOUNDS = (
    "Guarantees for every record under the law of the noise, against every attack. The record may be any other within the stated bounds. "
    "The columns are μ of Gaussian differential privacy, ε, and ε of (ε, δ) at {}. ≤ marks an upper bound. "
    "Audited: a lower bound on μ or ε from copies of two extreme records. Noise scaled to the table's moments is assumed public."
)
Key = tuple[str, str, str]
"""Variant of a metric, scheme and copies, and attribute."""


def noise(reading: Reading) -> list[Block]:
    """Noise of each copy, and of each pair of copies, by column."""
    return [
        Paragraph(NOISE, "lead"),
        *(
            _table(
                "copies",
                [*heads.values()],
                [
                    Row(where, [cells.get(one, "–") for one in heads], group=name)
                    for (_, where, name), cells in _cells(reading, heads)
                ],
                "column",
            )
            for heads in (ALONE, PAIRS)
        ),
    ]


def shown_columns(reading: Reading) -> list[Block]:
    """Each column that copies show, and its share of the audited columns' variance."""
    told = dict[Names, list[tuple[float, str]]]()
    for (*shown, name), (_, value) in _values(reading, ("column_tells",)):
        told.setdefault(tuple(shown), []).append((value, name))
    rows = []
    for (column, where, _), cells in _cells(reading, SHOWN):
        found = sorted(told.get((column, where), ()), reverse=True)[:MOST_TOLD]
        tells = [f"{clipped(name, 30)} {percent(min(1.0, value))}" for value, name in found]
        shares = [cells.get(one, "–") for one in SHOWN]
        rows.append(Row(clipped(column, 40), [*shares, "; ".join(tells) or "–"], group=where))
    heads = [*SHOWN.values(), "tells"]
    return [Paragraph(COLUMNS, "lead"), _table("shown column", heads, rows, "first shown by")]


def guarantees(reading: Reading) -> list[Block]:
    """Guarantees of each coalition; empty without stated bounds."""
    asked = reading.result.scenario.get("data")
    if not (isinstance(asked, dict) and asked.get("bounds")):
        return []
    point, deltas = reference_point(reading), list[str]()
    found = dict[tuple[str, tuple[int, ...]], dict[str, Measurement]]()
    for record in reading.result.measurements:
        metric = base(record.metric)
        known = metric in (*GUARANTEES, *EMPIRICAL) and record.attribute == EVERYTHING
        if record.attack is None and known:
            deltas += [record.metric] if metric == "epsilon_at_delta" else []
            if reading.point_of(record.sweep) == point:
                found.setdefault((record.scheme, record.coalition), {}).setdefault(metric, record)
    order = reading.schemes.index
    cells = sorted(found.items(), key=lambda one: (order(one[0][0]), len(one[0][1]), one[0]))
    rows = [Row(braces(held), _bounds(each), group=scheme) for (scheme, held), each in cells]
    delta = ", ".join(f"δ = {name.partition('(')[2].rstrip(')')}" for name in unique(deltas))
    reasons: dict[str, str] = {}
    for (scheme, coalition), figures in found.items():
        one = figures.get("epsilon_at_delta")
        if one is not None and _bound(one) == "∞" and one.reason:
            reasons.setdefault(scheme, f", copies {braces(coalition)}: {one.reason}.")
    return [
        Paragraph(BOUNDS.format(delta or "the stated δ"), "lead"),
        _table("copies", ("μ", "ε", "ε at δ", "audited"), rows, "scheme"),
        *(Paragraph(isolated(name) + why, "note") for name, why in reasons.items()),
    ]


def _table(first: str, heads: Names, rows: Sequence[Row], group: str) -> Table:
    return Table(first, heads, rows, "plain", group=group, most=MOST)


def _bounds(figures: Mapping[str, Measurement]) -> tuple[str, ...]:
    found = (_bound(figures.get(metric)) for metric in GUARANTEES)
    audited = next((_bound(figures[metric]) for metric in EMPIRICAL if metric in figures), "–")
    return (*found, audited if audited == "–" else f"≥ {audited}")


def _bound(record: Measurement | None) -> str:
    if record is None or record.status != "ok":
        return "–"
    if record.value is None or math.isinf(record.value):
        return "∞"
    above = (record.reason or "").startswith("an upper bound")
    return f"{'≤ ' if above else ''}{number(record.value)}"


def _cells(reading: Reading, heads: Iterable[str]) -> Iterable[tuple[Key, dict[str, str]]]:
    found = dict[Key, dict[str, str]]()
    for key, (metric, value) in _values(reading, heads):
        shares = metric in ("values_equal", "column_equal", "column_unique")
        found.setdefault(key, {})[metric] = percent(value) if shares else rounded(value, 4)
    return found.items()


def _values(reading: Reading, metrics: Iterable[str]) -> Iterator[tuple[Key, tuple[str, float]]]:
    point = reference_point(reading)
    for setting, metric, attribute in reading.keys():
        if setting.point == point and base(metric) in metrics:
            variant = "" if base(metric) in PAIRS else metric.partition("(")[2].removesuffix(")")
            for coalition, shown in reading.figures(setting, metric, attribute).items():
                who = copies(coalition, reading.copies_of(setting.scheme, point))
                where = f"{setting.scheme}, {who}" if len(reading.schemes) > 1 else who
                yield (variant, where, attribute), (base(metric), shown.value)
