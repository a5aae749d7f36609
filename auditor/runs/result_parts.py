"""Parts of a result that are computed after the tasks, and remedies for an exposure.

| symbol | meaning | source |
| --- | --- | --- |
| ``v`` | noise multiple of the best combination of the copies held | li2012, section 3.2 |
| ``u_j(v)`` | ``[K_X − G(v) K_X]_jj / K_jj``, the share of attribute j that the best linear attack leaves | li2012 (7) |
| ``v_e`` | where the best linear attack leaves as much as the strongest attack: ``u_j(v_e)`` | |
| ``v_h`` | where it leaves half: ``u_j(v_h) = 1/2`` | |

Levels times ``v_h/v_e`` leave half if the strongest attack stays equal to a linear one at ``v_e/v``
times the noise. This is an estimate, and exact for the best linear attack, with ``v_e = v``. Under
corner-wave noise of the data's shape ``v_h`` is 1. For retention, exact Bayes replaces the best
linear attack, and ``1 − p`` the noise.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor import registry
from auditor.audit.base.request import make_scheme, release_levels
from auditor.base.types import Array, Coalition
from auditor.data.request import is_file
from auditor.data.source import is_public
from auditor.data.table import Table
from auditor.numerics.combination import best_unbiased_combination
from auditor.numerics.linear_algebra import Pencil, clip_to_psd, regression
from auditor.numerics.statistics import quantile
from auditor.process.containment import contained
from auditor.process.deferred import scipy
from auditor.process.environment import version
from auditor.results import bibliography
from auditor.results import table_register as owner
from auditor.results.disclosure import FEWEST_RECORDS
from auditor.results.evidence import Evidence
from auditor.results.measurements import Measurements
from auditor.results.model import PluginSummary, Provenance, Reference, SchemeSummary
from auditor.results.records import (
    FEWEST_REPLICATES,
    AttributeSummary,
    DataSummary,
    Measurement,
    Remedy,
    in_clear,
    mean_theory,
    pooled,
)
from auditor.runs.check import table_of
from auditor.scenario.model import Scenario
from auditor.scenario.read import at_point
from auditor.schemes.base.additive import AdditiveScheme
from auditor.schemes.base.scheme import Scheme, TableMoments
from auditor.schemes.replacement.base import UniformScheme
from auditor.schemes.replacement.law import left_by_retention

ESTIMATED = ("redraws", "jackknife", "sampling", "replicates-needed")
"""Error bars that the spread between enough replicates replaces."""
SIGNED = ("collusion_gain", "accuracy_gain", "exact_gain", "named_gain", "belief_gap", "close")
"""Metrics that may be below 0."""
DRAWN_ANEW = "every replicate draws its levels anew, so that figures are means over such draws; the levels shown are the first replicate's"
PACKAGES = ("auditor", "numpy", "scipy", "pandas", "scikit-learn")


def spread_over_replicates(measurements: Measurements) -> Measurements:
    """Return measurements with error bars from five or more replicates.

    The spread between replicates, which are other draws, is the error of a single one, with
    Student's t for the interval. Cells with levels that differ between replicates count as estimated,
    because their closed form is of one draw of the levels.
    """
    bars, reasons = measurements.columns["error_bar"], measurements.columns["reason"]
    estimated = [place for place, bar in enumerate(bars.values) if bar in ESTIMATED]
    explained = np.array([reason is not None for reason in reasons.values], dtype=bool)
    replaceable = explained[reasons.places] | _levels_differ(measurements)
    replaceable &= measurements.where(status="ok")
    unknown = np.flatnonzero(np.isin(bars.places, estimated) | replaceable)
    cell = measurements.taken(unknown).cells()
    infinite = ~np.isfinite(measurements.columns["value"][unknown])  # a guarantee, in every draw
    spread = (np.bincount(cell) >= FEWEST_REPLICATES) & (np.bincount(cell, infinite) == 0)
    changed = unknown[spread[cell]]
    if not changed.size:
        return measurements
    some = measurements.taken(changed)
    cell, value = some.cells(), some.columns["value"]
    count = np.bincount(cell)
    wide = {each: quantile(0.975, each - 1) for each in set(count.tolist())}
    squares = (value - (np.bincount(cell, value) / count)[cell]) ** 2
    error = np.sqrt(np.bincount(cell, squares) / (count - 1))
    half = (np.array([wide[each] for each in count.tolist()]) * error)[cell]
    signed = [metric in SIGNED for metric in some.column("metric")]
    low = np.where(signed, value - half, np.maximum(0.0, value - half))
    found = {"std_error": error[cell], "ci_low": low, "ci_high": value + half}
    columns = {name: measurements.columns[name].copy() for name in found}
    for name, figures in found.items():
        columns[name][changed] = figures
    return measurements.replaced(
        **columns, error_bar=bars.put(changed, "replicates"), reason=reasons.put(changed, None)
    )


def _levels_differ(measurements: Measurements) -> NDArray[np.bool_]:
    cell, levels = measurements.cells(), measurements.columns["levels"]
    size = max(1, len(levels.values))
    found = np.unique(cell * size + levels.places) // size  # each cell once per level
    return np.asarray(np.bincount(found, minlength=1)[cell] > 1)


def summary_of_data(scenario: Scenario, point: dict[str, Any]) -> tuple[DataSummary, str]:
    """Return the table in aggregates, and its digest for resumed runs."""
    table, moments = table_of(scenario)
    public = is_public(scenario.data.source) or scenario.data.disclosure == "public"
    variances = np.diag(moments.covariance)
    # to the last bit: disclosure keys its secret shift on these numbers
    correlation = moments.covariance / np.sqrt(np.outer(variances, variances))
    digest = table.fingerprint()
    notes = list(table.notes)
    if is_file(scenario.data.source):
        # for start-up: file readers are slow to import
        from auditor.data.load import file_notes

        notes = [*file_notes(scenario.data.source, scenario.base), *notes]
    summary = DataSummary(
        source=table.source,
        rows=table.rows,
        attributes=_summaries_of_attributes(table, moments),
        correlation=np.clip(correlation, -1.0, 1.0).tolist(),
        description=table.description,
        licence=table.licence,
        fingerprint=owner.fingerprint(digest, public),
        disclosure="public" if public else "private",
        notes=notes,
        sweep={
            path: value
            for path, value in point.items()
            if path.partition(".")[0] in ("data", "seed")
        },
    )
    return summary, digest


def _summaries_of_attributes(table: Table, moments: TableMoments) -> list[AttributeSummary]:
    categories = () if table.categorical is None else table.categorical.attributes
    sizes = {attribute.name: attribute.size for attribute in categories}
    units: list[float | None] = [None] * table.width
    if table.standardized:
        units = np.sqrt(np.diag(table.scan.covariance)).tolist()
    found = [
        AttributeSummary(
            name=name,
            mean=float(mean),
            variance=float(variance),
            values=sizes.pop(name, None),
            unit=unit,
        )
        for name, mean, variance, unit in zip(
            table.attributes, moments.mean, np.diag(moments.covariance), units, strict=True
        )
    ]
    return found + [
        AttributeSummary(name=name, values=size, unit=None) for name, size in sizes.items()
    ]


def summaries_of_schemes(
    scenario: Scenario, points: Sequence[dict[str, Any]], evidence: Evidence, so_far: bool = False
) -> list[SchemeSummary]:
    """Return the description of every release, with a remedy if needed and not only ``so_far``."""
    measurements = Measurements.of(evidence.measurements)
    audited = {(str(release.sweep), release.scheme): release for release in evidence.releases}
    summaries = []
    for point in points:
        here = at_point(scenario, point)
        table, moments = table_of(here)
        for use in here.schemes:
            cls, release = registry.get("scheme", use.name), audited.get((str(point), use.id))
            anew = use.levels is not None and use.levels.each_replicate
            levels, remedy = list[float](), None
            with contained():  # if it fails, every cell of the scheme says so
                levels = list(release_levels(use, here))
                found = measurements.taken(measurements.where(scheme=use.id, sweep=point))
                if not so_far and len(found) and table.rows >= FEWEST_RECORDS and not anew:
                    scheme = make_scheme(use, here.base, table)
                    remedy = remedy_of(found, scheme, levels, table, moments)
            summaries.append(
                SchemeSummary(
                    sweep=point,
                    scheme=use.id,
                    plugin=use.name,
                    levels=levels,
                    summary=cls.summary(),
                    claims=cls.claims,
                    notes=[*(release.notes if release else ()), *([DRAWN_ANEW] if anew else [])],
                    understated=release is not None and release.understated,
                    remedy=remedy,
                )
            )
    return summaries


def summaries_of_plugins(scenario: Scenario) -> tuple[list[PluginSummary], list[Reference]]:
    """Return the descriptions of the plugins, and the references that they cite."""
    uses: list[tuple[Any, Any]] = [("scheme", use) for use in scenario.schemes]
    uses += [("attack", use) for use in scenario.attacks]
    plugins = []
    for kind, use in uses:
        cls = registry.get(kind, use.name)
        plugins.append(
            PluginSummary(
                kind=kind,
                id=use.id,
                name=use.name,
                summary=cls.summary(),
                assumes=cls.assumes,
                wins=getattr(cls, "wins", ""),
                reference=cls.reference,
                parameters=use.parameters.model_dump(mode="json", by_alias=True),
            )
        )
    named = [plugin.reference for plugin in plugins]
    named += [use.expectation.reference for use in scenario.expect]
    keys = sorted({*scenario.cite, *bibliography.cited(named)})
    return plugins, [Reference(key=key, text=bibliography.text(key)) for key in keys]


def provenance(
    scenario: Scenario,
    summaries: Sequence[DataSummary],
    started: datetime,
    duration: float,
    command: str,
) -> Provenance:
    """Return the record of a run."""
    versions = {package: version(package) for package in PACKAGES}
    public = all(summary.disclosure == "public" for summary in summaries)
    return Provenance(
        versions={"python": platform.python_version(), **versions},
        seed=scenario.seed,
        fingerprint=summaries[0].fingerprint,
        fingerprint_key="" if public else owner.key_name(),
        platform=f"{platform.system()} {platform.machine()}",
        start=started.isoformat(timespec="seconds"),
        duration=round(duration, 3),
        command=command,
        file=_file_of(scenario),
    )


def _file_of(scenario: Scenario) -> str:
    document = scenario.places.document
    path = Path(document.file if document is not None and document.file else "")
    if not path.name:
        return ""
    with suppress(OSError, ValueError):  # the current folder is gone, or the file is not below it
        path = path.relative_to(Path.cwd()) if path.is_absolute() else path
    return path.name if path.is_absolute() or ".." in path.parts else path.as_posix()


HALF = 0.5
NOTHING = 1e-6
"""Shares below this are an exact reconstruction up to rounding, for any levels."""
FURTHEST = 1e6
"""Largest noise multiple considered; the smallest is its inverse."""


def remedy_of(
    measurements: Measurements,
    scheme: Scheme,
    levels: Sequence[float],
    table: Table,
    moments: TableMoments,
) -> Remedy | None:
    """Return a remedy that leaves half of every attribute unknown, or None.

    Parameters
    ----------
    measurements : Measurements
        Of this release alone. Attributes that an adversary knows in clear do not count.
    levels : sequence of float
        Of all copies.
    """
    exposed = [cell for cell in _strongest(measurements) if _left(cell) < HALF]
    if isinstance(scheme, UniformScheme):
        # known columns expose others through published data, which retention cannot change
        exposed = [cell for cell in exposed if not in_clear(cell[0].knowledge)]
        return _replaced(exposed[0], scheme, levels, table) if exposed else None
    if not exposed:
        return None
    K_X = moments.covariance

    @cache  # one decomposition per set of known attributes
    def pencil(known: tuple[int, ...]) -> Pencil:
        law: Any = scheme.law(levels, moments.scale)
        return Pencil.of(_beyond(K_X, known), law.shape)

    found = [_added(cell, scheme, levels, table.attributes, K_X, pencil) for cell in exposed]
    # the remedy of the worst attribute
    return max(found, key=lambda one: (not one.levels, one.levels or [1.0 - one.unknown]))


def _strongest(measurements: Measurements) -> list[Sequence[Measurement]]:
    """Return each attribute's cell that leaves least, or that of all together.

    Measured figures are ranked, because all attacks share one draw of the noise. Among equal cells
    one with a closed form is preferred.
    """
    errors = measurements.taken(
        measurements.where(metric="normalized_error", status="ok")
        & ~measurements.where(attack=None)
    )
    knowledge, attribute = errors.columns["knowledge"], errors.columns["attribute"]
    clear = np.array(
        [[name in names for name in attribute.values] for names in map(in_clear, knowledge.values)],
        dtype=bool,
    )
    measured = ~np.isnan(errors.columns["value"]) & ~clear[knowledge.places, attribute.places]
    errors = errors.taken(measured)
    cell, name = errors.cells(), errors.columns["attribute"].places
    mean = np.bincount(cell, errors.columns["value"]) / np.bincount(cell)
    estimated = np.bincount(cell, np.isnan(errors.columns["theory"])) > 0
    of, found = name[np.unique(cell, return_index=True)[1]], {}
    for place in dict.fromkeys(name.tolist()):
        # only cells that round to the same four digits as the least
        least = np.flatnonzero((of == place) & (mean <= 1.002 * mean[of == place].min()))
        digits = np.char.mod("%.4g", mean[least]).astype(np.float64)
        first = least[np.lexsort((estimated[least], digits))[0]]
        found[attribute.values[place]] = errors.taken(cell == first)
    return [cell for name, cell in found.items() if name != "*" or len(found) == 1]


def _left(cell: Sequence[Measurement]) -> float:
    theory = mean_theory(cell)
    return pooled(cell)[0] if theory is None else theory


def _added(
    cell: Sequence[Measurement],
    scheme: Scheme,
    levels: Sequence[float],
    attributes: Sequence[str],
    K_X: Array,
    pencil: Callable[[tuple[int, ...]], Pencil],
) -> Remedy:
    one, left = cell[0], _left(cell)
    remedy = Remedy(
        attack=str(one.attack),
        attribute=one.attribute,
        unknown=left,
        lossless=1.0,
        estimated=mean_theory(cell) is None,
    )
    if not isinstance(scheme, AdditiveScheme) or one.attribute not in attributes or left < NOTHING:
        return remedy
    clear, j = in_clear(one.knowledge), attributes.index(one.attribute)
    known = tuple(place for place, name in enumerate(attributes) if name in clear)
    errors = pencil(known)

    def multiple(share: float) -> float | None:
        """Return the noise multiple that leaves a share; None if it does not exist."""

        def excess(log_v: float) -> float:
            return float(errors.error_of(j, np.exp(log_v)) / K_X[j, j]) - share

        limit = float(np.log(FURTHEST))
        if not excess(-limit) < 0.0 < excess(limit):
            return None
        return float(np.exp(scipy.optimize.brentq(excess, -limit, limit, xtol=1e-9)))

    if float(errors.error_of(j, np.asarray(FURTHEST)) / K_X[j, j]) <= HALF:
        # known without any copy, so noise cannot hide it
        return remedy.model_copy(update={"lossless": None})
    held = _pooled_level(scheme, levels, one.coalition)
    every = _pooled_level(scheme, levels, tuple(range(1, len(levels) + 1)))
    worth, half = multiple(left), multiple(HALF)
    if worth is None or half is None or held <= 0.0:
        return remedy
    # no remedy by data-shaped noise is stated for known attributes
    lossless = bool(known) or every >= min(levels) * (1.0 - 1e-9)
    update = {
        "levels": [_three_digits(level * half / worth) for level in levels],
        "lossless": None if lossless else _three_digits(max(1.0, held / worth)),
    }
    return remedy.model_copy(update=update)


def _three_digits(number: float) -> float:
    return float(f"{number:.3g}")


def _beyond(K_X: Array, known: Sequence[int]) -> Array:
    if not known:
        return K_X
    at = np.array(known)
    return clip_to_psd(K_X - regression(K_X[:, at], K_X[np.ix_(at, at)]) @ K_X[at], K_X)


def _pooled_level(scheme: AdditiveScheme, levels: Sequence[float], copies: Coalition) -> float:
    held = np.asarray(copies, dtype=np.intp) - 1
    covariance = np.asarray(scheme.level_covariance(levels))[np.ix_(held, held)]
    return float(best_unbiased_combination(covariance)[1])


def _replaced(
    cell: Sequence[Measurement], scheme: UniformScheme, levels: Sequence[float], table: Table
) -> Remedy | None:
    if table.categorical is None or cell[0].attribute != "*":
        return None
    prior, left = table.categorical.prior, _left(cell)
    if prior.size < 2 or not prior.all():  # the closed form needs every value of the domain
        return None
    # of schemes without levels in common, uniform-multilevel is advised
    pi = scheme.over(table.categorical).replaced_by(prior.size) if scheme.multilevel else None

    def retention(share: float) -> float:
        def excess(p: float) -> float:
            return left_by_retention(prior, p, pi) - share

        return float(scipy.optimize.brentq(excess, 0.0, 1.0))

    half, worth = retention(HALF), retention(max(left, NOTHING))
    multilevel = scheme.multilevel
    return Remedy(
        attack=str(cell[0].attack),
        attribute="*",
        unknown=left,
        levels=[_three_digits(level * half / worth) for level in levels] if multilevel else [],
        lossless=None if multilevel else _three_digits(half),
        kind="retention",
        estimated=mean_theory(cell) is None,
    )
