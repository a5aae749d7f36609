"""Plot in characters, readable without colour: a letter marks each point."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.text import Text

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
STYLES = ("color(32)", "color(166)", "color(35)", "color(133)", "color(136)", "color(67)")
"""Colours after Okabe and Ito, readable on dark and light terminals."""
STEPS = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
"""Ends of the y axis, in powers of ten."""
BLOCKS = " ▁▂▃▄▅▆▇█"
Line = Sequence[tuple[float, float]]
"""Points of a series."""


def style_of(index: int) -> str:
    """Return the colour of a series."""
    return STYLES[index % len(STYLES)]


def plot(lines: Sequence[Line], width: int, height: int) -> list[Text]:
    """Plot series over a common y axis that starts at 0.

    ``width`` and ``height`` include the axes. ``+`` marks points of several series.
    """
    points = [point for line in lines for point in line]
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    top, rows, columns = _top(max(y for _, y in points)), height - 2, width - 8
    marked: dict[tuple[int, int], set[int]] = {}
    for index, line in enumerate(lines):
        for x, y in line:
            across = (x - left) / ((right - left) or 1) * (columns - 1)
            down = (1 - min(1.0, max(0.0, y / top))) * (rows - 1)
            marked.setdefault((round(down), round(across)), set()).add(index)
    made = []
    for row in range(rows):
        tick = f"{top * (1 - row / (rows - 1)):.3g}" if row in (0, rows // 2, rows - 1) else ""
        text = Text(f"{tick:>6} ┤")
        for column in range(columns):
            held = sorted(marked.get((row, column), ()))
            letter = LETTERS[held[0] % len(LETTERS)] if len(held) == 1 else "+" if held else " "
            text.append(letter, style_of(held[0]) if len(held) == 1 else "")
        made.append(text)
    ends = f"{left:g}".ljust(columns - len(f"{right:g}")) + f"{right:g}"
    return [*made, Text(" " * 7 + "└" + "─" * columns), Text(" " * 8 + ends)]


def sparklines(rows: Sequence[Sequence[float]]) -> list[str]:
    """Draw rows of columns on a common scale from 0."""
    top = max((height for row in rows for height in row), default=0.0) or 1.0
    return ["".join(BLOCKS[math.ceil(8 * height / top)] for height in row) for row in rows]


def _top(highest: float) -> float:
    if highest <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(highest))
    return next(step * power for step in STEPS if step * power >= highest * (1 - 1e-9))
