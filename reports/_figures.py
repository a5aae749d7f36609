"""A figure with its error bar, pooled over replicates, and how figures are written in every report."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from auditor.results import Measurement, pooled

Z95 = 1.959963984540054
"""Half of a 95 % normal interval, in standard errors."""

_SPELLED = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


class Figure(NamedTuple):
    """One number of the audit over all its replicates.

    Attributes
    ----------
    low, high : float or None
        The 95 % interval.
    theory : float or None
        The closed form for the same cell, averaged over replicates.
    error_bar : str
        Where the interval comes from.
    """

    value: float
    low: float | None
    high: float | None
    theory: float | None
    coalition: tuple[int, ...]
    levels: tuple[float, ...]
    error_bar: str
    replicates: int

    @property
    def half(self) -> float | None:
        """Half the width of the interval; the ``±`` of every report."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


def figure(records: Sequence[Measurement]) -> Figure | None:
    """Pool one cell's replicates; None when none of them has a value."""
    measured = [record for record in records if record.status == "ok" and record.value is not None]
    if not measured:
        return None
    value, error = pooled(measured)
    if not math.isfinite(value):
        return None
    low, high = (None, None) if error is None else (value - Z95 * error, value + Z95 * error)
    if len(measured) == 1 and measured[0].ci_low is not None and measured[0].ci_high is not None:
        low, high = measured[0].ci_low, measured[0].ci_high  # its own interval may be asymmetric or Student's
    theories = [record.theory for record in measured if record.theory is not None]
    theory = math.fsum(theories) / len(theories) if theories else None
    first = measured[0]
    return Figure(value, low, high, theory, first.coalition, first.levels, first.error_bar, len(measured))


def number(value: float | None, half: float | None = None) -> str:
    """Write a value to the precision that its error bar supports: ``0.0833``, ``2e-16``, ``15,200``."""
    if value is None:
        return "–"
    if value == 0 and not half:
        return "0"
    if value != 0 and abs(value) < 5e-5 and not (half and half > 5e-5):
        return _minus(f"{value:.0e}")
    if abs(value) >= 1000:
        return _minus(f"{value:,.0f}")
    return _minus(f"{value:.{_decimals(value, half)}f}")


def plus_minus(half: float | None, value: float = 0.0) -> str:
    """Write an error bar to the precision of its value: ``±0.0012``; empty when there is none."""
    if half is None or (abs(value) < 5e-5 and half < 5e-5):
        return ""
    if abs(value) >= 1000:
        return f"±{half:,.0f}" if half >= 0.5 else "±<1"
    decimals = _decimals(value, half)
    return f"±{half:.{decimals}f}" if half >= 0.5 * 10**-decimals or half == 0 else f"±<{10**-decimals:.{decimals}f}"


def with_error(shown: Figure | None) -> str:
    """Write a figure and its error bar: ``0.0833 ±0.0012``."""
    if shown is None:
        return "–"
    return f"{number(shown.value, shown.half)} {plus_minus(shown.half, shown.value)}".rstrip()


def percent(share: float) -> str:
    """Write a share: ``8.3 %``, ``0.04 %``, ``20 %``."""
    scaled = 100 * share
    decimals = 0 if abs(scaled) >= 10 else 1 if abs(scaled) >= 0.1 or abs(scaled) < 5e-4 else 2
    text = f"{scaled:.{decimals}f}"
    return _minus(text.removesuffix(".0").replace("-0", "0") if float(text) == 0 else text) + " %"


def times(ratio: float) -> str:
    """Write a factor: ``2.4 times``, ``830 times``, ``over a million times``."""
    if not math.isfinite(ratio) or ratio >= 1e6:
        return "over a million times"
    return f"{ratio:,.0f} times" if ratio >= 100 else f"{ratio:.3g} times"


def copies(coalition: Sequence[int], total: int) -> str:
    """Name a coalition in words: ``copy 1``, ``copies 1 and 3``, ``copies 1–4``, ``all five copies``."""
    if len(coalition) == 1:
        return f"copy {coalition[0]}"
    if len(coalition) == total:
        return "both copies" if total == 2 else f"all {spelled(total)} copies"
    parts = _runs(coalition)
    if len(parts) > 6:
        return f"{spelled(len(coalition))} of the {spelled(total)} copies"
    return "copies " + (" and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0])


def spelled(count: int) -> str:
    """Spell a small count out."""
    return _SPELLED[count] if 0 <= count < len(_SPELLED) else f"{count:,}"


def braces(coalition: Sequence[int]) -> str:
    """Write a coalition as a set, runs shortened: ``{1–3, 5}``."""
    return "{" + ", ".join(_runs(coalition)) + "}"


def clean(text: object) -> str:
    """Make text from data or a scenario safe to print: no control characters, no direction overrides, one line."""
    return "".join(
        "�" if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") else character
        for character in str(text).replace("\n", " ").replace("\t", " ")
    )


def clipped(text: object, width: int) -> str:
    """Shorten cleaned text to a number of characters with an ellipsis."""
    safe = clean(text)
    return safe if len(safe) <= width else safe[: max(1, width - 1)].rstrip() + "…"


def _runs(coalition: Sequence[int]) -> list[str]:
    """Split into runs of three or more consecutive copies: ``[1, 2, 3, 5]`` → ``['1–3', '5']``."""
    parts: list[list[int]] = []
    for copy in sorted(coalition):
        if parts and copy == parts[-1][-1] + 1:
            parts[-1].append(copy)
        else:
            parts.append([copy])
    return [text for run in parts for text in ([f"{run[0]}–{run[-1]}"] if len(run) > 2 else map(str, run))]


def _decimals(value: float, half: float | None) -> int:
    if half:
        leading = math.floor(math.log10(half))  # two digits of an error bar that begins with 1, else one
        return min(4, max(0 if abs(value) >= 100 else 2, -leading + (half < 2 * 10.0**leading)))
    return 1 if abs(value) >= 100 else 4 if abs(value) < 0.01 else 3


def _minus(text: str) -> str:
    return text.replace("-", "−", 1) if text.startswith("-") else text
