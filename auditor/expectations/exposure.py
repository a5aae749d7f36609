"""Bounds on the share of an attribute that stays unknown.

``unknown`` is the normalized error of one attribute. Every attribute, attack and coalition must
meet the bound (Holm): a mean over attributes would hide one that is rebuilt. Attributes that the
adversary is given in clear are left out.

Three more shares count as ``unknown``:

- classes of records: sensitive values that no attack claims rightly, beyond their base rates;
- copies without a law: values that no copy shows unchanged, since a few large values make most of
  a long tail's variance;
- several categorical columns: doubt about the value that is given away most.

A lower bound is undecided if some records are unchanged among perturbed ones, or if excluded
records or columns are less perturbed. It holds against the attacks that were tried, and states
their number. No figure bounds attacks that were not tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from pydantic import Field, model_validator

from auditor.expectations.base import Expectation, Filter, Judgement, copies_released, selector
from auditor.expectations.metric import judge_bounds
from auditor.registry import PluginParameters, register
from auditor.results.evidence import Evidence
from auditor.results.in_clear import BELIEVED, KEPT, SHOWN, in_clear
from auditor.results.records import Measurement, cells

METRIC = "normalized_error"
GIVEN_AWAY = "disclosed_beyond_chance"


class Unknown(PluginParameters):
    """Bounds on the share of an attribute's variance that stays unknown."""

    at_least: float | None = Field(None, ge=0, description="smallest share allowed: 0.5 is half")
    at_most: float | None = Field(
        None, ge=0, description="largest share allowed, for what a scenario expects to break"
    )

    @model_validator(mode="after")
    def _some_bound(self) -> Unknown:
        if self.at_least is None and self.at_most is None:
            raise ValueError("needs a bound: at-least or at-most")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError("has a lower bound above its upper bound")
        return self


@register
class Exposure(Expectation):
    """At least a share of every attribute stays unknown to every adversary measured, from single copies and pooled ones (Holm)."""

    name = "exposure"
    reference = "holm1979"
    trial = MappingProxyType({"unknown": {"at-least": 0.5}})

    class Parameters(Filter):
        """The bound, and the filter; without `attribute` every attribute by itself."""

        unknown: Unknown = Field(
            description="{at-least: share} of an attribute's variance that stays unknown"
        )

    def judge(self, evidence: Evidence) -> Judgement:
        """Return the verdict over every selected attribute, attack and coalition."""
        found, asked = (
            shares_unknown(evidence.measurements, self.parameters, copies_released(evidence)),
            self.parameters.unknown,
        )
        bound = asked.at_least if asked.at_least is not None else asked.at_most
        if not found:
            return Judgement(
                "undecided",
                "no attack that the filter admits gave an error of an attribute",
                None,
                bound,
            )
        judged = judge_bounds(
            list(cells(found).values()), asked.at_least, asked.at_most, bound, "share unknown"
        )
        attacks = len({record.attack for record in found if record.attack})
        why, barer = (
            f"{judged.why}; {attacks} attack{'s' * (attacks > 1)} tried",
            _barer(evidence, found),
        )
        explained = [
            record
            for record in found
            if record.reason and record.value is not None and record.value < (asked.at_least or 0.0)
        ]
        if judged.status == "fails" and explained:
            why = f"{why}; {min(explained, key=lambda record: (round(record.value or 0.0, 6), len(record.coalition))).reason}"
        if judged.status == "holds" and asked.at_least is not None and barer:
            why = f"of what copies have in common and in full {why}; what was left out of {', '.join(barer)} is less perturbed than that"
            return Judgement("undecided", why, judged.observed, judged.bound)
        apart = filter(
            selector(self.parameters, KEPT, copies_released(evidence), each_attribute=True),
            evidence.measurements,
        )
        bare = max(apart, key=lambda record: record.value or 0.0, default=None)
        if judged.status == "holds" and asked.at_least is not None and bare is not None:
            why = f"on average {why}; {bare.value:.2g} of the values of {bare.attribute!r} stand as they were, more than by chance"
            return Judgement("undecided", why, judged.observed, judged.bound)
        return Judgement(judged.status, why, judged.observed, judged.bound)


def shares_unknown(
    measurements: Sequence[Measurement],
    filters: Exposure.Parameters,
    copies: dict[tuple[str, str], int],
) -> list[Measurement]:
    """Return the shares that are judged.

    Parameters
    ----------
    measurements : sequence of Measurement
    filters : Exposure.Parameters
    copies : dict
        Number of copies by sweep point and scheme.
    """
    # all attributes together are judged where they are asked for
    whole = filters.attribute is not None
    metrics = (METRIC, GIVEN_AWAY, SHOWN, BELIEVED, KEPT)
    errors, away, *clear = (
        selector(filters, metric, copies, each_attribute=True) for metric in metrics
    )
    found = [
        r for r in measurements if r.status == "ok" and (r.attack or r.metric in (SHOWN, KEPT))
    ]
    apart = {_who(r) for r in found if r.metric == METRIC and r.attribute != "*"}
    measured = [
        r
        for r in found
        if whole or r.attribute != "*" or r.metric == BELIEVED or _who(r) not in apart
    ]
    measured = [r for r in measured if r.attribute not in in_clear(r.knowledge)]
    judged = [*filter(errors, measured), *map(_kept, filter(away, measured))]
    # of the value that is given away most, or shown: others are given away less
    if filters.unknown.at_least is not None and judged:
        judged += map(_kept, filter(lambda r: any(each(r) for each in clear), measured))
    return judged


def _who(record: Measurement) -> tuple[str, str, str | None, str | None]:
    """Return sweep point, scheme, knowledge and attack."""
    return str(record.sweep), record.scheme, record.knowledge, record.attack


def _barer(evidence: Evidence, found: Sequence[Measurement]) -> list[str]:
    """Return the schemes with excluded records or columns that are more exposed."""
    judged = {(str(record.sweep), record.scheme) for record in found}
    worse = [
        release
        for release in evidence.releases
        if release.understated and (str(release.sweep), release.scheme) in judged
    ]
    return list(dict.fromkeys(release.scheme for release in worse))


def _kept(record: Measurement) -> Measurement:
    """Return the share of records whose value is not given away, or not shown."""
    value, low, high, theory = (
        None if each is None else 1 - each
        for each in (record.value, record.ci_high, record.ci_low, record.theory)
    )
    return record._replace(value=value, ci_low=low, ci_high=high, theory=theory)
