"""Series for charts: collusion curves and the coalition map.

The terminal's plot and the page's charts draw these same series.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from .figures import Figure
from .reading import ERROR, EVERYTHING, Reading, Setting, by_size, lowest


class Line(NamedTuple):
    """One named series of (x, y), and what a legend tells of it."""

    name: str
    points: Sequence[tuple[float, float]]
    note: str = ""


class CurvePoint(NamedTuple):
    """Error against the number of pooled copies, at one size.

    Attributes
    ----------
    shown : Figure
        The prefix of that length in order of release if ``prefix``, else the worst coalition of that size.
    mean : float
        Mean over all coalitions of that size that were measured.
    """

    setting: Setting
    attribute: str
    size: int
    prefix: bool
    shown: Figure
    mean: float


def curves(reading: Reading) -> list[CurvePoint]:
    """Return the collusion curves of every setting and attribute."""
    points = []
    for setting, metric, attribute in reading.keys():
        if metric == ERROR:
            points += curve(reading, setting, attribute)
    return points


def curve(reading: Reading, setting: Setting, attribute: str = EVERYTHING) -> list[CurvePoint]:
    """Return one collusion curve, by size: over prefixes when all of them were measured, else worst per size."""
    found = reading.figures(setting, ERROR, attribute)
    total = reading.copies_of(setting.scheme, setting.point)
    # one after another: all prefixes of thousands of copies together would not fit in memory
    by_prefix = all(tuple(range(1, size + 1)) in found for size in range(1, total + 1))
    points = []
    for size, group in sorted(by_size(found.values()).items()):
        shown = found[tuple(range(1, size + 1))] if by_prefix else lowest(group)
        if shown is not None and size > 0:
            mean = math.fsum(one.value for one in group) / len(group)
            points.append(CurvePoint(setting, attribute, size, by_prefix, shown, mean))
    return points


class MapPoint(NamedTuple):
    """One coalition of the coalition map; ``worst`` marks the lowest error of its setting and attribute."""

    setting: Setting
    attribute: str
    shown: Figure
    worst: bool


def coalition_map(reading: Reading, limit: int) -> tuple[list[MapPoint], int]:
    """Return every coalition's error, and how many were left out to stay within a limit.

    Left out are single attributes first, then coalitions in the middle of their size: the lowest, the highest and an
    even choice between them stay.
    """
    keys = [(setting, attribute) for setting, metric, attribute in reading.keys() if metric == ERROR]
    total = sum(len(reading.figures(setting, ERROR, attribute)) for setting, attribute in keys)
    if total > limit and any(attribute == EVERYTHING for _, attribute in keys):
        keys = [key for key in keys if key[1] == EVERYTHING]
    share = max(1, limit // max(1, len(keys)))
    points = []
    for setting, attribute in keys:
        found = list(reading.figures(setting, ERROR, attribute).values())
        worst = lowest(found)
        points += [MapPoint(setting, attribute, figure, figure is worst) for figure in _thinned(found, share)]
    return points, total - len(points)


def _thinned(found: list[Figure], limit: int) -> list[Figure]:
    if len(found) <= limit:
        return found
    kept, sizes = [], by_size(found)
    per_size = max(2, limit // len(sizes))
    for group in sizes.values():
        ordered = sorted(group, key=lambda figure: (figure.value, figure.coalition))
        step = max(1.0, (len(ordered) - 1) / (per_size - 1))
        chosen = {round(index * step) for index in range(per_size)}
        kept += [figure for index, figure in enumerate(ordered) if index in chosen]
    best = lowest(found)
    return kept if best is None or best in kept else [best, *kept]
