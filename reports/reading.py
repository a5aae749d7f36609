"""Figures of an audit, pooled over replicates and indexed by cell."""

import json
import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

from auditor.base.types import Coalition, Plain
from auditor.results.model import AuditResult
from auditor.results.records import (
    AttributeSummary,
    DataSummary,
    Distribution,
    Measurement,
    Picture,
    cells,
    in_clear,
)

from .figures import Figure, figure

EVERYTHING = "*"
"""Pseudo-attribute for all attributes together."""
ERROR = "normalized_error"
MEDIAN = "median_error_ratio"
GAIN = "collusion_gain"
BEYOND = "accuracy_gain"
"""Accuracy above a guess without copies; only attacks on categories have it."""


Figures = dict[Coalition, Figure]
"""Figures by coalition."""


class Setting(NamedTuple):
    """A cell without its coalition."""

    point: int
    scheme: str
    knowledge: str | None
    attack: str | None


class Gap(NamedTuple):
    """An adversary without figures against a scheme, and the reason."""

    scheme: str
    knowledge: str | None
    attack: str | None
    status: str
    reason: str
    cells: int


class Reading:
    """The figures of one audit, by setting, metric and attribute.

    Attributes
    ----------
    points : list of dict
        Sweep points; one empty dict without a sweep.
    adversaries : list of (str, str)
        Pairs of knowledge and attack.
    """

    def __init__(self, result: AuditResult) -> None:
        self.result = result
        swept = {repr(r.sweep): r.sweep for r in (*result.measurements, *result.releases)}
        self.points: list[Plain] = list(swept.values()) or [{}]
        self._numbers = {key: index for index, key in enumerate(swept)}
        self._figures: dict[tuple[Setting, str, str], Figures] = {}
        for records in cells(result.measurements).values():
            shown, one = figure(records), records[0]
            if shown is not None:
                key = (self.setting_of(one), one.metric, one.attribute)
                self._figures.setdefault(key, {})[one.coalition] = shown
        self._take_out_what_was_given()
        self._copies = self._count_copies()
        measured = result.measurements
        named = [*(release.scheme for release in result.releases), *(r.scheme for r in measured)]
        self.schemes = unique([*named, *(spread.scheme for spread in result.distributions)])
        self.adversaries = unique(
            (str(r.knowledge), str(r.attack)) for r in measured if r.attack is not None
        )
        self.attributes = sorted(
            unique(r.attribute for r in measured), key=lambda name: name != EVERYTHING
        )
        self.metrics = unique(metric for _, metric, _ in self._figures)

    def _take_out_what_was_given(self) -> None:
        """Restrict overall errors to the attributes not given in clear.

        The error of the others is ``(D / v − Σ_given (v_j / v) e_j) · v / Σ_others v_j``.
        """
        for (setting, metric, attribute), found in list(self._figures.items()):
            given = self.given(setting)
            if metric != ERROR or attribute != EVERYTHING or not given:
                continue
            variances = self._variances(setting.point)
            others = [name for name in variances if name not in given]
            alone = self._figures.get((setting, ERROR, others[0])) if len(others) == 1 else None
            share = sum(variances[name] for name in others) / (sum(variances.values()) or 1.0)
            for coalition, shown in found.items():
                if alone is not None and coalition in alone:
                    found[coalition] = alone[coalition]
                elif share > 0:
                    errors = [
                        variances[name] * one.value
                        for name in given
                        if name in variances
                        and (one := self.figures(setting, ERROR, name).get(coalition))
                    ]
                    if not errors:
                        # errors of categories already exclude given attributes
                        continue
                    theirs = sum(errors) / sum(variances.values())
                    found[coalition] = shown.map(
                        lambda value, theirs=theirs, share=share: (value - theirs) / share  # type: ignore[misc]
                    )

    def _table(self, point: int) -> DataSummary | None:
        return next((one for one in self.result.data if self.point_of(one.sweep) == point), None)

    def _attribute(self, point: int, name: str) -> AttributeSummary | None:
        table = self._table(point)
        return next((one for one in table.attributes if one.name == name), None) if table else None

    def _variances(self, point: int) -> dict[str, float]:
        table = self._table(point) or next(iter(self.result.data), None)
        held = table.attributes if table else []
        return {one.name: one.variance for one in held if one.variance is not None}

    def point_of(self, sweep: Plain) -> int:
        """Sweep point's number; 0 if it was never measured."""
        return self._numbers.get(repr(sweep), 0)

    def setting_of(self, one: Measurement | Distribution | Picture) -> Setting:
        """Setting of a record."""
        return Setting(self.point_of(one.sweep), one.scheme, one.knowledge, one.attack)

    def figures(
        self, setting: Setting, metric: str = ERROR, attribute: str = EVERYTHING
    ) -> Figures:
        """Figures by coalition; empty if nothing was measured."""
        return self._figures.get((setting, metric, attribute), {})

    def unknown(self, setting: Setting, attribute: str) -> Figures:
        """Shares unknown of one attribute, by coalition.

        The smaller of the normalized error and the squared ratio of median errors.
        """
        errors, medians = (self.figures(setting, each, attribute) for each in (ERROR, MEDIAN))
        if not medians:
            return errors
        squared = {one: shown.map(lambda ratio: ratio**2) for one, shown in medians.items()}
        return {
            one: min(shown, squared.get(one, shown), key=lambda each: each.value)
            for one, shown in errors.items()
        }

    def settings(self, metric: str, scheme: str | None = None) -> list[Setting]:
        """Every setting with figures of a metric, optionally of one scheme."""
        return unique(
            one
            for one, measured, _ in self._figures
            if metric == measured and scheme in (None, one.scheme)
        )

    def keys(self) -> list[tuple[Setting, str, str]]:
        """Every (setting, metric, attribute) with figures."""
        return list(self._figures)

    def given(self, setting: Setting) -> set[str]:
        """Attributes that a setting's knowledge contains in clear."""
        stated, knowledge = self.result.scenario.get("knowledge"), setting.knowledge
        found = {*in_clear(knowledge)}
        for use in stated if isinstance(stated, list) else []:
            known = use.get("known-attributes") if isinstance(use, dict) else None
            names = [*map(str, known)] if isinstance(known, list) else []
            if names and knowledge == f"known-attributes({', '.join(names)})":
                found.update(names)
        return found

    def rows_of(self, point: int) -> int:
        """Number of records at a sweep point; 0 if unknown."""
        table = self._table(point)
        return table.rows if table else 0

    @property
    def standardized(self) -> bool:
        """Whether reconstruction errors are in standard deviations."""
        data = self.result.scenario.get("data")
        return isinstance(data, dict) and bool(data.get("standardize"))

    def deviation_of(self, point: int, attribute: str) -> float | None:
        """Attribute's standard deviation in its own units; None if unknown."""
        variance, one = self._variances(point).get(attribute), self._attribute(point, attribute)
        unit = (one.unit if one else None) if self.standardized else 1.0
        return None if variance is None or unit is None else math.sqrt(variance) * unit

    def mean_of(self, point: int, attribute: str) -> float:
        """Attribute's mean; 0 if it is standardized or unknown."""
        one = self._attribute(point, attribute)
        return one.mean or 0.0 if one else 0.0

    def copies_of(self, scheme: str, point: int = 0) -> int:
        """Number of copies of a scheme at a sweep point."""
        return self._copies.get((point, scheme), 0)

    def _count_copies(self) -> dict[tuple[int, str], int]:
        releases = self.result.releases
        counts = [((self.point_of(one.sweep), one.scheme), len(one.levels)) for one in releases]
        for (setting, _, _), found in self._figures.items():
            counts.append((setting[:2], max((one[-1] for one in found if one), default=0)))
        # an increasing order keeps the largest count
        return dict(sorted(counts, key=lambda one: one[1]))

    @cached_property
    def gaps(self) -> list[Gap]:
        """Settings that are not applicable or failed, once per reason."""
        found: dict[tuple[str, str | None, str | None, str, str], set[tuple[Any, ...]]] = {}
        for record in self.result.measurements:
            if record.status != "ok":
                key = (*record[1:4], record.status, record.reason or "no reason was given")
                where = repr(record.sweep), record.coalition, record.replicate
                found.setdefault(key, set()).add(where)
        return [Gap(*key, len(where)) for key, where in found.items()]

    def point_text(self, point: int) -> str:
        """Format a sweep point: ``data.rows = 1000, replicates = 3``."""
        return ", ".join(f"{path} = {plain(value)}" for path, value in self.points[point].items())


def lowest(found: Iterable[Figure]) -> Figure | None:
    """Figure with the lowest upper bound.

    Ranking by measured values would favour noise. Of figures with nine equal digits, the smallest
    coalition is first.
    """
    return min(
        found,
        key=lambda shown: (nine_digits(shown.ceiling), len(shown.coalition), shown.coalition),
        default=None,
    )


def nine_digits(value: float) -> float:
    """Round a value, so that rounding errors rank nothing."""
    return float(f"{round(value, 12):.9g}")


def best_single(found: Figures, members: Coalition) -> Figure | None:
    """Lowest figure of a single member, ranked by `lowest`."""
    return lowest(found[(copy,)] for copy in members if (copy,) in found)


def unique(items: Iterable[Any]) -> list[Any]:
    """Remove duplicates and keep the order."""
    return list(dict.fromkeys(items))


def plain(value: Any) -> str:
    """Format a scenario value on one line, as YAML.

    Examples: ``[llse, ndr]``, ``{known-records: 40}``.
    """
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(plain, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {plain(part)}' for name, part in value.items())}}}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
