"""Figures with error bars, their notation, and the severity scale."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from math import floor, fsum, isfinite, isinf, log10
from pathlib import Path
from typing import NamedTuple

from auditor.base import clean
from auditor.base.types import Coalition, Names
from auditor.results.records import Measurement, half_interval, pooled

TEMPLATES = Path(__file__).resolve().with_name("templates")


def template(name: str) -> str:
    """Text of a file among the templates."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


TEXTS = json.loads(template("texts.json"))
"""Texts by use: the severity scale, definitions of metrics and error bars, words for parameters."""
Z95 = 1.959963984540054
"""Half-width of a 95 % normal interval, in standard errors."""
SIGNED = frozenset({"collusion_gain"})
"""Metrics that can be negative."""
TINY, SMALL, HUGE = 5e-5, 1e-4, 1e6
"""Bounds of powers of ten: below ``TINY`` (``SMALL`` without error bar), from ``HUGE``."""

_SPELLED = "no one two three four five six seven eight nine ten eleven twelve".split()


def isolated(name: object) -> str:
    """Name from data or scenario between isolates of its writing direction."""
    return f"\u2068{clean(name)}\u2069"


def said(text: str) -> str:
    """Clean text without isolates, for media without elements."""
    return clean(re.sub("[\u2068\u2069]", "", text))


class Figure(NamedTuple):
    """One number over all its replicates, with its 95 % interval.

    ``theory`` is the closed form of the same cell. ``error_bar`` is the method of the interval.
    """

    value: float
    low: float | None = None
    high: float | None = None
    theory: float | None = None
    coalition: Coalition = ()
    levels: tuple[float, ...] = ()
    error_bar: str = ""
    replicates: int = 1

    def map(self, change: Callable[[float], float]) -> Figure:
        """Apply an increasing function to value, interval and theory."""
        low, high, theory = (
            None if each is None else change(each) for each in (self.low, self.high, self.theory)
        )
        return self._replace(value=change(self.value), low=low, high=high, theory=theory)

    def turned(self, change: Callable[[float], float]) -> Figure:
        """Apply a decreasing function to value, interval and theory."""
        mapped = self.map(change)
        return mapped._replace(low=mapped.high, high=mapped.low)

    @property
    def complement(self) -> Figure:
        """One minus the figure."""
        return self.turned(lambda value: 1 - value)

    @property
    def ceiling(self) -> float:
        """Closed form if plausible, else the interval's upper end."""
        if self.low is None or self.high is None:
            return self.value
        slack = self.high - self.low
        if self.theory is not None and self.low - slack <= self.theory <= self.high + slack:
            return self.theory
        return self.high

    @property
    def floor(self) -> float:
        """Lower bound, mirrored from `ceiling`."""
        return -self.turned(lambda value: -value).ceiling

    @property
    def severity(self) -> Severity:
        """Severity of the upper bound."""
        return severity(self.ceiling)

    @property
    def half(self) -> float | None:
        """Half-width of the interval, the ``±`` of every report."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


def figure(records: Sequence[Measurement]) -> Figure | None:
    """Pool one cell's replicates; None without a finite value."""
    measured = [record for record in records if record.status == "ok" and record.value is not None]
    if not measured:
        return None
    value, error = pooled(measured)
    if not isfinite(value):
        return None
    count, source = len(measured), str(measured[0].error_bar)
    reach = Z95 if source != "replicates" or count < 2 else half_interval(count - 1)
    low, high = (None, None) if error is None else (value - reach * error, value + reach * error)
    first = measured[0]
    if low is not None and value >= 0 and source == "replicates" and first.metric not in SIGNED:
        low = max(0.0, low)
    if count == 1 and first.ci_low is not None and first.ci_high is not None:
        # this interval may be asymmetric or Student's
        low, high = first.ci_low, first.ci_high
    theories = [record.theory for record in measured if record.theory is not None]
    theory = fsum(theories) / len(theories) if theories else None
    return Figure(value, low, high, theory, first.coalition, first.levels, source, count)


def number(value: float | None, half: float | None = None) -> str:
    """Format a value to its error bar's precision.

    Examples: ``0.0833``, ``2×10⁻¹⁶``, ``15,200``, ``1.285×10⁹``.
    """
    if value is None:
        return "–"
    if isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size < (TINY if half else SMALL) and not (half and half > TINY):
        return "0" if value == 0 else _power(value, 0)
    if size >= HUGE:
        return _power(value, _digits(value, half))
    if size >= 1000:
        return _minus(f"{round(value, -_last_place(value, half)):,.0f}")
    if not half:
        return _minus(f"{value:.{max(0, 2 - floor(log10(size)))}f}" if size else "0", strip=True)
    return _minus(f"{value:.{_decimals(value, half)}f}")


def rounded(value: float, digits: int = 3) -> str:
    """Format a value without an error bar to some digits."""
    return number(float(f"{value:.{digits}g}"))


def plus_minus(half: float | None, value: float = 0.0) -> str:
    """Format an error bar as ``±0.0012``, or as empty text."""
    if not half or (abs(value) < TINY and half < TINY):
        return ""
    if abs(value) >= HUGE:
        return f"±{_power(half, 0)}" if half >= 1e4 else f"±{number(half)}"
    if abs(value) >= 1000:
        return f"±{round(half, -_last_place(value, half)):,.0f}" if half >= 0.5 else "±<1"
    decimals = _decimals(value, half)
    return (
        f"±{half:.{decimals}f}"
        if half >= 0.5 * 10**-decimals
        else f"±<{10**-decimals:.{decimals}f}"
    )


def with_error(shown: Figure | None) -> str:
    """Format a figure: ``0.0833 ±0.0012``, ``(1.285 ±0.003)×10⁹``."""
    if shown is None:
        return "–"
    if abs(shown.value) >= HUGE and shown.half:
        exponent, digits = _exponent(shown.value), _digits(shown.value, shown.half)
        scaled = [f"{part / 10.0**exponent:.{digits}f}" for part in (shown.value, shown.half)]
        return f"({_minus(scaled[0])} ±{scaled[1]})×10{_raised(exponent)}"
    return f"{number(shown.value, shown.half)} {plus_minus(shown.half, shown.value)}".rstrip()


def distinct_texts(first: float | None, *others: float) -> list[str]:
    """Format numbers with enough digits to differ."""
    values = [value for value in (first, *others) if value is not None]
    for digits in range(3, 8):
        texts = (
            [number(first), *map(number, others)]
            if digits == 3
            else [_significant(v, digits) for v in (first, *others)]
        )
        if len(set(texts)) == len({f"{value:.7g}" for value in values}) + (first is None):
            break
    return texts


def _significant(value: float | None, digits: int) -> str:
    if value is None or abs(value) < TINY or abs(value) >= HUGE:
        return number(value) if value is None or value == 0 else _power(value, digits - 1)
    places = digits - 1 - _exponent(value)
    return _minus(f"{round(value, places):,.{max(0, places)}f}", strip=True)


def percent(share: float) -> str:
    """Format a share: ``8.3 %``, ``<0.01 %``, ``20 %``."""
    scaled = round(100 * share, 9)  # a share of 0.1 less rounding error is 10 %
    if 5e-4 <= scaled < 5e-3:
        return "<0.01 %"
    decimals = 0 if abs(scaled) >= 10 else 1 if abs(scaled) >= 0.1 or abs(scaled) < 5e-4 else 2
    text = f"{scaled:.{decimals}f}"
    return _minus(text.removesuffix(".0").replace("-0", "0") if float(text) == 0 else text) + " %"


def share(shown: Figure | None) -> str:
    """Format a share with its error bar, or skewed interval; 100 % from 1 on."""
    if shown is None:
        return "–"
    if shown.value >= 1:
        return "100 %"
    if abs(shown.value) < 1e-4:
        return percent(shown.value)
    half = 100 * shown.half if shown.half else None
    decimals = 1 if not half else min(2, max(0, -floor(log10(half))))
    bar = "" if half is None else f" ± {half:.{decimals}f}" if half >= 0.005 else " ± <0.01"
    if half and shown.low is not None and 100 * (shown.value - shown.low) < half / 2:
        bar = (
            f" ({100 * max(0.0, shown.low):.{decimals}f}–{100 * shown.low + 2 * half:.{decimals}f})"
        )
    return f"{100 * shown.value:.{decimals}f}{bar} %"


def listed(names: Names) -> str:
    """Join names: ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def times(ratio: float) -> str:
    """Format a factor: ``2.4 times``, ``830 times``, ``over a million times``."""
    if not isfinite(ratio) or ratio >= 1e6:
        return "over a million times"
    return f"{ratio:,.0f} times" if ratio >= 100 else f"{ratio:.3g} times"


def copies(coalition: Sequence[int], total: int) -> str:
    """Name a coalition: ``copy 1``, ``copies 1–4``, ``all five copies``."""
    if len(coalition) == 1:
        return f"copy {coalition[0]}"
    if len(coalition) == total:
        return "both copies" if total == 2 else f"all {spelled(total)} copies"
    parts = _runs(coalition)
    if len(parts) > 6:
        return f"{spelled(len(coalition))} of the {spelled(total)} copies"
    return f"copies {listed(parts)}"


def spelled(count: int) -> str:
    """Spell a small count."""
    return _SPELLED[count] if 0 <= count < len(_SPELLED) else f"{count:,}"


def braces(coalition: Sequence[int]) -> str:
    """Format a coalition as a set with runs: ``{1–3, 5}``."""
    return "{" + ", ".join(_runs(coalition)) + "}"


def unbroken(text: str) -> str:
    """Join a figure, its error bar and its per cent sign by no-break spaces."""
    return re.sub(r"(?<=\d) (?=[±%])|(?<=±) (?=[<\d])", "\u00a0", text)


def clipped(text: object, width: int) -> str:
    """Clean text and shorten it with an ellipsis."""
    safe = clean(text)
    return safe if len(safe) <= width else safe[: max(1, width - 1)].rstrip() + "…"


def _runs(coalition: Sequence[int]) -> list[str]:
    parts: list[list[int]] = []
    for copy in sorted(coalition):
        if parts and copy == parts[-1][-1] + 1:
            parts[-1].append(copy)
        else:
            parts.append([copy])
    return [
        text
        for run in parts
        for text in ([f"{run[0]}–{run[-1]}"] if len(run) > 2 else map(str, run))
    ]


def _decimals(value: float, half: float) -> int:
    least, most = 0 if abs(value) >= 100 or half >= 1 else 2, 4 if abs(value) >= 0.01 else 6
    return min(most, max(least, -_last_place(value, half)))


def _last_place(value: float, half: float | None) -> int:
    if not half:
        return _exponent(value) - 3
    leading = _exponent(half)
    return leading - (half < 2 * 10.0**leading)


def _digits(value: float, half: float | None) -> int:
    return 3 if not half else min(4, max(1, _exponent(value) - _last_place(value, half)))


def _exponent(value: float) -> int:
    return floor(log10(abs(value)))


def _power(value: float, decimals: int) -> str:
    mantissa, _, exponent = f"{value:.{decimals}e}".partition("e")
    return f"{_minus(mantissa)}×10{_raised(int(exponent))}"


def _raised(exponent: int) -> str:
    return str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _minus(text: str, *, strip: bool = False) -> str:
    text = text.rstrip("0").rstrip(".") if strip and "." in text else text
    return text.replace("-", "−", 1) if text.startswith("-") else text


class Severity(NamedTuple):
    """One step of the severity scale.

    ``rank`` is 5 (worst) to 1. ``below`` bounds the normalized error, as ``bound`` says in words.
    Of five ``bars`` ``rank`` are filled.
    """

    rank: int
    word: str
    below: float
    meaning: str
    style: str
    bars: str
    bound: str


SCALE = tuple(Severity(**step) for step in TEXTS["scale"])


def severity(normalized_error: float) -> Severity:
    """Severity of a normalized error."""
    return next((step for step in SCALE if normalized_error < step.below), SCALE[-1])
