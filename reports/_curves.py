"""Series for charts: collusion curves, the coalition map, error distributions and sweep lines.

The terminal's plot and the page's charts draw these same series.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from auditor.results import Distribution
from reports._figures import Figure
from reports._matrix import telling
from reports._reading import ERROR, EVERYTHING, Reading, Setting, lowest


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
    sizes: dict[int, list[Figure]] = {}
    for coalition, figure in found.items():
        sizes.setdefault(len(coalition), []).append(figure)
    total = reading.copies_of(setting.scheme, setting.point)
    prefixes = [tuple(range(1, size + 1)) for size in range(1, total + 1)]
    by_prefix = all(prefix in found for prefix in prefixes)
    points = []
    for size, group in sorted(sizes.items()):
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
    sizes: dict[int, list[Figure]] = {}
    for figure in found:
        sizes.setdefault(len(figure.coalition), []).append(figure)
    kept = []
    per_size = max(2, limit // len(sizes))
    for group in sizes.values():
        ordered = sorted(group, key=lambda figure: (figure.value, figure.coalition))
        step = max(1.0, (len(ordered) - 1) / (per_size - 1))
        chosen = {round(index * step) for index in range(per_size)}
        kept += [figure for index, figure in enumerate(ordered) if index in chosen]
    best = lowest(found)
    return kept if best is None or best in kept else [best, *kept]


class Bin(NamedTuple):
    """One bin of an error distribution: share of the records with absolute error in [low, high), and up to ``high``."""

    record: Distribution
    low: float
    high: float
    share: float
    cumulative: float


def distribution_bins(reading: Reading) -> list[Bin]:
    """Return the error distributions, averaged over replicates, bin by bin."""
    groups: dict[tuple[Any, ...], list[Distribution]] = {}
    for record in reading.result.distributions:
        key = (reading.point_of(record.sweep), *record[1:5], record.attribute, record.edges)
        groups.setdefault(key, []).append(record)
    return [item for records in groups.values() for item in _bins(records)]


def _bins(records: list[Distribution]) -> Iterator[Bin]:
    first, cumulative = records[0], 0.0
    for index, (low, high) in enumerate(zip(first.edges, first.edges[1:], strict=False)):
        share = math.fsum(record.shares[index] for record in records) / len(records)
        cumulative += share
        yield Bin(first, low, high, share, cumulative)


class SweepPoint(NamedTuple):
    """One metric at one value of one swept path; ``others`` writes the values of the other swept paths."""

    path: str
    at: Any
    others: str
    metric: str
    setting: Setting
    attribute: str
    shown: Figure


def swept_paths(reading: Reading) -> list[str]:
    """Return the swept paths that take more than one value, in order."""
    paths: dict[str, set[str]] = {}
    for point in reading.points:
        for path, value in point.items():
            paths.setdefault(path, set()).add(json.dumps(value, sort_keys=True, default=str))
    return [path for path, values in paths.items() if len(values) > 1]


def sweep_lines(reading: Reading) -> list[SweepPoint]:
    """Return every metric along every swept path: errors at their worst coalition, the rest at the largest."""
    paths = swept_paths(reading)
    points = []
    for path in paths:
        for setting, metric, attribute in reading.keys():
            at = reading.points[setting.point]
            found = reading.figures(setting, metric, attribute)
            shown = telling(metric, found)
            if path in at and shown is not None:
                others = ", ".join(f"{other} = {at[other]}" for other in paths if other != path and other in at)
                points.append(SweepPoint(path, at[path], others, metric, setting, attribute, shown))
    return points
