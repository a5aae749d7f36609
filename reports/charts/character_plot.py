"""Line plot in characters, readable without colour.

Braille dots draw the lines. A letter marks each measured point.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from rich.text import Text

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
STYLES = ("color(32)", "color(166)", "color(35)", "color(133)", "color(136)", "color(67)")
"""Line colours after Okabe and Ito, readable on dark and light terminals."""
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def style_of(index: int) -> str:
    """Return the colour of a series."""
    return STYLES[index % len(STYLES)]


Line = Sequence[tuple[float, float]]
"""Points of a series."""


def plot(lines: Sequence[Line], width: int, height: int) -> list[Text]:
    """Draw lines over a common y axis that starts at 0.

    Parameters
    ----------
    lines : sequence of Line
        At least one point in total.
    width, height : int
        Size in characters, axes included.

    Returns
    -------
    list of Text
        ``height`` rows, each at most ``width`` wide. X ticks are whole numbers.
    """
    points = [point for line in lines for point in line]
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    top = _ceiling(max(y for _, y in points))
    canvas = _Canvas(width - 8, height - 2, (left, right if right > left else left + 1), top)
    for index, line in enumerate(lines):
        canvas.draw(line, index)
    for index, line in enumerate(lines):
        canvas.mark(line, index)
    rows = [
        Text(f"{_tick(row, height - 2, top):>6} ┤") + canvas.row(row) for row in range(height - 2)
    ]
    return [
        *rows,
        Text(" " * 7 + "└" + "─" * (width - 8)),
        Text(" " * 8 + _x_ticks(left, right, width - 8)),
    ]


class _Canvas:
    """Grid of braille dots and letters, coloured by the last series drawn."""

    def __init__(self, columns: int, rows: int, span: tuple[float, float], top: float) -> None:
        self.columns, self.rows, self.span, self.top = columns, rows, span, top
        self.dots = [[0] * columns for _ in range(rows)]
        self.owner = [[-1] * columns for _ in range(rows)]
        self.letters: dict[tuple[int, int], str] = {}

    def _at(self, x: float, y: float) -> tuple[float, float]:
        """Map data to dots: two across and four down per character."""
        across = (x - self.span[0]) / (self.span[1] - self.span[0]) * (2 * self.columns - 2) + 0.5
        down = (1 - max(0.0, y) / self.top) * (4 * self.rows - 1)
        return across, down

    def draw(self, points: Sequence[tuple[float, float]], index: int) -> None:
        for start, end in itertools.pairwise(points):
            (x0, y0), (x1, y1) = self._at(*start), self._at(*end)
            steps = max(1, math.ceil(max(abs(x1 - x0), abs(y1 - y0))))
            for step in range(steps + 1):
                self._dot(x0 + (x1 - x0) * step / steps, y0 + (y1 - y0) * step / steps, index)

    def _dot(self, across: float, down: float, index: int) -> None:
        x, y = min(round(across), 2 * self.columns - 1), min(round(down), 4 * self.rows - 1)
        self.dots[y // 4][x // 2] |= _DOTS[y % 4][x % 2]
        self.owner[y // 4][x // 2] = index

    def mark(self, points: Sequence[tuple[float, float]], index: int) -> None:
        """Write the series' letter at each point, or ``+`` where two series meet."""
        for point in points:
            across, down = self._at(*point)
            where = (
                min(round(down), 4 * self.rows - 1) // 4,
                min(round(across), 2 * self.columns - 1) // 2,
            )
            letter = LETTERS[index % len(LETTERS)]
            self.letters[where] = letter if self.letters.get(where, letter) == letter else "+"
            self.owner[where[0]][where[1]] = -1 if self.letters[where] == "+" else index

    def row(self, row: int) -> Text:
        text = Text()
        for column in range(self.columns):
            dots, owner = self.dots[row][column], self.owner[row][column]
            character = self.letters.get((row, column)) or (chr(0x2800 + dots) if dots else " ")
            text.append(
                character, style_of(owner) if owner >= 0 else "bold" if character == "+" else ""
            )
        return text


def _ceiling(highest: float) -> float:
    if highest <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(highest))
    return next(
        step * power
        for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
        if step * power >= highest * (1 - 1e-9)
    )


def _tick(row: int, rows: int, top: float) -> str:
    marks = {0: top, rows - 1: 0.0} | ({(rows - 1) // 2: top / 2} if rows % 2 else {})
    return f"{marks[row]:.3g}" if row in marks else ""


def _x_ticks(left: float, right: float, columns: int) -> str:
    label = list(" " * columns)
    numbers = range(math.ceil(left), math.floor(right) + 1)
    every = max(1, math.ceil(len(numbers) * 4 / columns))
    for tick in numbers[::every]:
        text = str(tick)
        column = round((tick - left) / ((right - left) or 1) * (columns - 1))
        start = min(column, columns - len(text))
        label[start : start + len(text)] = text
    return "".join(label)
