"""Series along a swept path, the number of copies or the utility."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from .figures import Figure
from .matrix import SHOWN_ELSEWHERE, telling
from .reading import ERROR, EVERYTHING, Reading, Setting, best, by_size, plain

UTILITY = "utility_"


class SweepPoint(NamedTuple):
    """One metric at one swept value; ``others`` lists the other paths' values."""

    path: str
    at: Any
    others: str
    metric: str
    setting: Setting
    attribute: str
    shown: Figure


def swept_paths(reading: Reading) -> list[str]:
    """Return the paths with more than one value, in order."""
    paths: dict[str, set[str]] = {}
    for point in reading.points:
        for path, value in point.items():
            paths.setdefault(path, set()).add(json.dumps(value, sort_keys=True, default=str))
    return [path for path, values in paths.items() if len(values) > 1]


def sweep_lines(reading: Reading) -> list[SweepPoint]:
    """Return each metric along each swept path.

    Errors are from the worst coalition, other metrics from the largest.
    """
    paths = swept_paths(reading)
    points = []
    for path in paths:
        for setting, metric, attribute in reading.keys():
            at = reading.points[setting.point]
            found = reading.figures(setting, metric, attribute)
            shown = telling(metric, found)
            if path in at and shown is not None:
                others = ", ".join(
                    f"{other} = {plain(at[other])}"
                    for other in paths
                    if other != path and other in at
                )
                points.append(SweepPoint(path, at[path], others, metric, setting, attribute, shown))
    return points


class MeasurePoint(NamedTuple):
    """One measure at one number of copies, from the strongest coalition."""

    metric: str
    setting: Setting
    attribute: str
    size: int
    shown: Figure


def measure_points(reading: Reading) -> list[MeasurePoint]:
    """Return metrics other than errors by number of copies, if that varies."""
    points = []
    for setting, metric, attribute in reading.keys():
        if metric in SHOWN_ELSEWHERE or setting.attack is None:
            continue
        sizes = by_size(reading.figures(setting, metric, attribute).values())
        points += [
            MeasurePoint(metric, setting, attribute, size, best(group))
            for size, group in sorted(sizes.items())
        ]
    places = {(point.setting.point, point.size) for point in points}
    # with one size per sweep point, the sweep chart already shows everything
    return points if len(places) > len({place for place, _ in places}) else []


class FrontierPoint(NamedTuple):
    """A coalition's copies: their utility and an attack's normalized error."""

    metric: str
    setting: Setting
    utility: Figure
    shown: Figure


def frontier(reading: Reading) -> list[FrontierPoint]:
    """Return coalitions that have a ``utility_*`` metric and an error.

    Accuracies precede errors and losses.
    """
    points = []
    for setting, metric, attribute in reading.keys():
        if not metric.startswith(UTILITY) or attribute != EVERYTHING:
            continue
        useful = reading.figures(setting, metric, attribute)
        for other in reading.settings(ERROR):
            if other[:2] == setting[:2] and (setting.attack is None or setting == other):
                errors = reading.figures(other)
                points += [
                    FrontierPoint(metric, other, useful[c], errors[c])
                    for c in useful
                    if c in errors
                ]
    return sorted(points, key=lambda point: any(word in point.metric for word in ("error", "loss")))
