"""Changes between two audits beyond their error bars; report base class."""

import json
import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import wraps
from math import hypot
from pathlib import Path
from typing import Any

from auditor.base import AuditorError
from auditor.base.types import frozen
from auditor.numerics.statistics import Z_95, holm, two_sided
from auditor.registry import Plugin
from auditor.results.metrics import METRICS, base
from auditor.results.model import AuditResult
from auditor.results.records import (
    VERDICTS,
    Advice,
    Cells,
    ExpectationRecord,
    Measurement,
    cells,
    describe,
    in_clear,
    pooled,
    uncertainty,
)

LEVEL = 0.05
NOTICED = 0.01
"""Share of an exposure by which a new attack must improve on it, where error bars do not decide."""


@frozen
class Change:
    """Cell that differs, standard errors, and p-value of no difference (Holm).

    ``group`` is the cell without coalition and attribute.
    """

    cell: str
    metric: str
    old: float
    new: float
    worse: bool
    old_error: float | None = None
    new_error: float | None = None
    p_value: float = 0.0
    group: str = ""

    def __str__(self) -> str:
        return f"{self.cell}: {self.metric} {self.old:.4g} → {self.new:.4g}"


@frozen
class Comparison:
    """Changes between two audits.

    Attributes
    ----------
    worsened, improved : list of Change
        Cells that leak more, or less, the largest change first.
    verdicts : list of str
        Expectations that are better.
    broken : list of str
        Worse expectations, lost cells, a partial audit, no common cell, attributes more exposed to
        new attacks.
    compared : int
        Common cells.
    only_new, only_old, lost : dict of str to int
        Cells by scheme, attack, knowledge and sweep point; only the old audit measured ``lost``.
    stated_new, stated_old : list of str
        Expectations of one audit alone, with outcomes.
    refuted, exposed : int
        Numbers of worse expectations, and of more exposed attributes at the end of ``broken``.
    data : str
        Whether the data are equal, by fingerprints.
    """

    worsened: list[Change]
    improved: list[Change]
    verdicts: list[str]
    broken: list[str]
    compared: int
    old: str
    now: str
    only_new: dict[str, int]
    only_old: dict[str, int]
    lost: dict[str, int]
    stated_new: list[str]
    stated_old: list[str]
    refuted: int
    exposed: int
    data: str
    name: str = ""

    @property
    def worse(self) -> bool:
        """Whether anything is worse."""
        return bool(self.worsened or self.broken)


def compare_results(old: AuditResult, new: AuditResult) -> Comparison:
    """Compare two audits cell by cell.

    A difference counts beyond both error bars (two-sided, Holm over all cells, 5 %), or without
    error bars beyond rounding. The audits are taken as independent, which is conservative for a
    common seed.
    """
    normalized = all(
        any(r.metric == "normalized_error" for r in result.measurements) for result in (old, new)
    )
    dropped = {"rmse", "distortion"} if normalized else {"rmse"}
    before, after = (
        cells(r for r in result.measurements if _leaks(r, dropped)) for result in (old, new)
    )
    was, now = (
        {
            key: group
            for key, group in found.items()
            if all(r.status == "ok" and r.value is not None for r in group)
        }
        for found in (before, after)
    )
    shared = [key for key in was if key in now]
    changes = _changes([(was[key], now[key]) for key in shared])
    lost = Counter(_lost(after[key]) for key in was if key in after and key not in now)
    better, refuted = _verdicts(old, new)
    exposed = _more_exposed(was, now)
    appeared, gone = (
        [group[0] for key, group in here.items() if key not in there]
        for here, there in ((after, before), (before, after))
    )
    broken = list(refuted)
    for outcome, count in lost.items():
        are = "cell is" if count == 1 else "cells are"
        broken.append(f"{outcome}: {count:,} {are} no longer measured")
    if (part := new.partial) is not None:
        broken.append(f"the audit is partial: {part.finished} of {part.tasks} tasks were finished")
    if was and not shared and not lost:
        broken.append("no cell of the old audit is in the new one: nothing was compared")
    return Comparison(
        worsened=[change for change in changes if change.worse],
        improved=[change for change in changes if not change.worse],
        verdicts=better,
        broken=[*broken, *exposed],
        compared=len(shared),
        old=_called(old),
        now=_called(new),
        # a copy of a Counter by `asdict` would count its pairs
        only_new=dict(Counter(map(_group, appeared))),
        only_old=dict(Counter(map(_group, gone))),
        lost=dict(lost),
        stated_new=_stated(new, old),
        stated_old=_stated(old, new),
        refuted=len(refuted),
        exposed=len(exposed),
        data=_same_data(old, new),
    )


def _same_data(old: AuditResult, new: AuditResult) -> str:
    if old.provenance.fingerprint_key != new.provenance.fingerprint_key:
        return "Whether the data are the same cannot be told: their fingerprints were made under different keys, on different machines."
    before, after = (
        [table.fingerprint for table in result.data] or [result.provenance.fingerprint]
        for result in (old, new)
    )
    return "The data are the same." if before == after else "The data are not the same."


def _called(result: AuditResult) -> str:
    part = result.partial
    cut = "" if part is None else f" (partial: {part.finished} of {part.tasks} tasks)"
    return f"{result.title}, {result.provenance.start}{cut}"


def _more_exposed(before: Cells, after: Cells) -> list[str]:
    strongest, lines = _strongest(before), []
    new = {key: group for key, group in after.items() if key not in before}
    for place, group in _strongest(new).items():
        if place not in strongest:
            continue
        (left, error), (was, was_error) = pooled(group), pooled(strongest[place])
        reach = Z_95 * hypot(error or 0.0, was_error or 0.0)
        if was - left > max(reach, NOTICED * was):
            lines.append(
                f"{_label(group[0])}: leaves {100 * left:.3g} % of the variance unknown, and was not tried; the "
                f"strongest that was leaves {100 * was:.3g} % ({_label(strongest[place][0])})"
            )
    return lines


def _strongest(measured: Cells) -> Cells:
    """Cell with the least of an attribute unknown, by sweep point and scheme.

    Adversaries who know attributes are excluded.
    """
    found = Cells()
    for key, group in measured.items():
        record = group[0]
        if record.metric != "normalized_error" or record.attribute == "*":
            continue
        place = key[0], record.scheme
        if in_clear(record.knowledge):
            continue
        if place not in found or pooled(group)[0] < pooled(found[place])[0]:
            found[place] = group
    return found


def _lost(now: list[Measurement]) -> str:
    first = next((record for record in now if record.status != "ok"), now[0])
    became = {"failed": "failed", "not-applicable": "not applicable"}.get(first.status, "no value")
    return f"{_group(first)}: now {became}{f' ({first.reason})' if first.reason else ''}"


def _leaks(record: Measurement, dropped: set[str]) -> bool:
    metric = METRICS.get(base(record.metric))
    return metric is not None and metric.leak != "neither" and record.metric not in dropped


def _scale(metric: str, *values: float) -> float:
    """Size that rounding is relative to; 1 for shares, which may be 0."""
    share = METRICS[base(metric)].unit.startswith(("share", "probability"))
    return 1.0 if share else max(map(abs, values))


def _changes(pairs: list[tuple[list[Measurement], list[Measurement]]]) -> list[Change]:
    figures = [(pooled(before), pooled(after)) for before, after in pairs]
    p_values = holm(
        [
            two_sided(
                b - a,
                hypot(uncertainty(before), uncertainty(after)),
                _scale(before[0].metric, a, b),
            )
            for (before, after), ((a, _), (b, _)) in zip(pairs, figures, strict=True)
        ]
    )
    changes = []
    for (before, _), ((a, error_a), (b, error_b)), p in zip(pairs, figures, p_values, strict=True):
        if p <= LEVEL:
            record = before[0]
            worse = b < a if METRICS[base(record.metric)].leak == "low" else b > a
            errors = (error_a, error_b, p, _group(record))
            changes.append(Change(_label(record), record.metric, a, b, worse, *errors))
    return sorted(changes, key=lambda c: -abs(c.new - c.old) / _scale(c.metric, c.old, c.new))


def _sweep(record: Measurement) -> str:
    return ", ".join(f"{path}={value}" for path, value in record.sweep.items())


def _label(record: Measurement) -> str:
    copies = "copy" if len(record.coalition) == 1 else "copies"
    held = f"{copies} {describe(record.coalition)}" if record.coalition else ""
    about = "all attributes" if record.attribute == "*" else record.attribute
    parts = (record.scheme, record.attack, record.knowledge, held, about, _sweep(record))
    return ", ".join(filter(None, parts))


def _group(record: Measurement) -> str:
    parts = (record.scheme, record.attack, record.knowledge, _sweep(record))
    return ", ".join(filter(None, parts))


def _stated(here: AuditResult, there: AuditResult) -> list[str]:
    known = set(map(_statement, there.expectations))
    return [
        f"expectation {_readable(record)}: {record.status}"
        for record in here.expectations
        if _statement(record) not in known
    ]


def _verdicts(old: AuditResult, new: AuditResult) -> tuple[list[str], list[str]]:
    before = {_statement(record): record.status for record in old.expectations}
    changed = [
        (
            VERDICTS.index(record.status) - VERDICTS.index(was),
            f"expectation {_readable(record)}: {was} → {record.status}",
        )
        for record in new.expectations
        for was in [before.get(_statement(record), record.status)]
    ]
    return [line for step, line in changed if step > 0], [
        line for step, line in changed if step < 0
    ]


def _readable(record: ExpectationRecord) -> str:
    where = ", ".join(
        f"{name} = {value if isinstance(value, str) else json.dumps(value)}"
        for name, value in record.where.items()
    )
    return f"{record.expectation} ({where})" if where else record.expectation


def _statement(record: ExpectationRecord) -> str:
    return f"{record.expectation} {json.dumps(record.where, sort_keys=True)}"


GONE = "the scenario is not among the new results"


def compare_paths(old: str | os.PathLike[str], new: str | os.PathLike[str]) -> list[Comparison]:
    """Changes between two audits, or by scenario between two folders.

    Scenarios match by folder name. One of only the old folder is bad news.

    Raises
    ------
    AuditorError
        A path cannot be read, or one has several audits and the other a single one.
    """
    before, after = _several(Path(old)), _several(Path(new))
    if not before and not after:
        return [compare_results(AuditResult.load(old), AuditResult.load(new))]
    for path, found in ((old, before), (new, after)):
        if not found:
            AuditResult.load(path)  # reports its error, if any
            raise AuditorError(
                f"{path}: holds the results of one audit, and the other folder those of several"
            )
    return list(_by_scenario(before, after))


def _several(folder: Path) -> dict[str, Path]:
    if (folder / "results.json").exists():
        return {}
    return {path.parent.name: path for path in sorted(folder.glob("*/results.json"))}


def _by_scenario(before: dict[str, Path], after: dict[str, Path]) -> Iterator[Comparison]:
    for name in sorted(before.keys() | after.keys()):
        old, new = (
            AuditResult.load(found[name]) if name in found else None for found in (before, after)
        )
        if old is not None and new is not None:
            yield replace(compare_results(old, new), name=name)
        elif old is not None:
            yield replace(
                compare_results(old, _nothing_of(old)), name=name, now="–", data="", broken=[GONE]
            )
        elif new is not None:
            yield replace(compare_results(_nothing_of(new), new), name=name, old="–", data="")


def _nothing_of(result: AuditResult) -> AuditResult:
    return result.model_copy(update={"measurements": [], "expectations": [], "partial": None})


# -- Base of renderers, which convert results to text ----------------------------------------------


class Renderer(Plugin):
    """Converts results to a document, without access to data or copies."""

    kind = "renderer"

    def __init_subclass__(cls, **options: Any) -> None:
        """Give every renderer only results that may be disclosed."""
        super().__init_subclass__(**options)
        if "render" in vars(cls):
            render = cls.render

            @wraps(render)
            def of_disclosed(self: Renderer, results: Sequence[AuditResult]) -> str:
                return render(self, [result.disclosed() for result in results])

            cls.render = of_disclosed  # type: ignore[method-assign]

    @abstractmethod
    def render(self, results: Sequence[AuditResult]) -> str:
        """Document for one or several audits."""
        raise NotImplementedError

    def render_so_far(self, result: AuditResult) -> str:
        """One line on the verdict of an unfinished audit; empty without a figure."""
        return ""

    def render_comparison(self, *comparisons: Comparison) -> str:
        """Document on changes between audits.

        Raises
        ------
        AuditorError
            The format has none.
        """
        raise AuditorError(f"format {self.name!r} has no comparison of two audits")

    def render_advice(self, advice: Advice) -> str:
        """Document on a recommended release.

        Raises
        ------
        AuditorError
            The format has none.
        """
        raise AuditorError(f"format {self.name!r} has no page of advice")
