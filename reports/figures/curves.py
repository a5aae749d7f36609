"""Series of the collusion curves and the coalition map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from .figures import Figure
from .reading import ERROR, EVERYTHING, Reading, Setting, by_size, lowest


class Line(NamedTuple):
    """A named series of (x, y) with a note for the legend."""

    name: str
    points: Sequence[tuple[float, float]]
    note: str = ""


class CurvePoint(NamedTuple):
    """Error at one number of pooled copies.

    Attributes
    ----------
    shown : Figure
        The first ``size`` copies in order of release if ``prefix``, else the worst coalition of
        this size.
    mean : float
        Mean over all measured coalitions of this size.
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
    """Return one collusion curve by size.

    It uses prefixes if all were measured, else the worst coalition of each size.
    """
    found = reading.figures(setting, ERROR, attribute)
    total = reading.copies_of(setting.scheme, setting.point)
    # a generator, because all prefixes of thousands of copies would not fit in memory
    by_prefix = all(tuple(range(1, size + 1)) in found for size in range(1, total + 1))
    points = []
    for size, group in sorted(by_size(found.values()).items()):
        shown = found[tuple(range(1, size + 1))] if by_prefix else lowest(group)
        if shown is not None and size > 0:
            mean = math.fsum(one.value for one in group) / len(group)
            points.append(CurvePoint(setting, attribute, size, by_prefix, shown, mean))
    return points


class MapPoint(NamedTuple):
    """One coalition; ``worst`` marks the lowest error of its setting."""

    setting: Setting
    attribute: str
    shown: Figure
    worst: bool


def coalition_map(reading: Reading, limit: int) -> tuple[list[MapPoint], int]:
    """Return coalitions' errors within a limit, and the number left out.

    Single attributes are left out first, then coalitions inside the range of their size. The
    lowest, the highest and an even selection between them stay.
    """
    keys = [
        (setting, attribute) for setting, metric, attribute in reading.keys() if metric == ERROR
    ]
    total = sum(len(reading.figures(setting, ERROR, attribute)) for setting, attribute in keys)
    if total > limit and any(attribute == EVERYTHING for _, attribute in keys):
        keys = [key for key in keys if key[1] == EVERYTHING]
    share = max(1, limit // max(1, len(keys)))
    points = []
    for setting, attribute in keys:
        found = list(reading.figures(setting, ERROR, attribute).values())
        worst = lowest(found)
        points += [
            MapPoint(setting, attribute, figure, figure is worst)
            for figure in _thinned(found, share)
        ]
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
