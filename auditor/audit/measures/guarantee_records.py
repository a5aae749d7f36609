"""What copies with added noise guarantee every record, coalition by coalition, as records: by their law, and from below by an audit."""

from __future__ import annotations

import math
from collections.abc import Sequence

from auditor.audit.base.records import CellContext
from auditor.audit.base.release import Release
from auditor.audit.measures.empirical_guarantee import audited
from auditor.results.records import Measurement
from auditor.scenario.model import Scenario
from auditor.scenario.read_measures import Guarantee
from auditor.schemes.base.guarantees import Guarantees
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.types import Coalition


def guarantees_of(scenario: Scenario, release: Release, law: NoiseLaw | None) -> Guarantees | None:
    """Return the guarantees of a release of added noise; None where no bounds are stated, or no law is.

    Of copies from files there is none: that they follow a law that somebody states for them is no
    proof that they do.
    """
    scheme, spans = release.scheme, release.moments.spans
    if law is None or spans is None or not scheme.adds_noise or not scheme.makes_copies:
        return None
    return Guarantees(law, spans, _delta(scenario), release.table.unit_size)


def _delta(scenario: Scenario) -> float:
    measure = scenario.measure("guarantees")
    return Guarantee().delta if measure is None else float(measure.options["delta"])


def guarantee_records(
    context: CellContext, stated: Guarantees, coalitions: Sequence[Coalition]
) -> list[Measurement]:
    """Return every figure of every coalition's guarantee: infinite ones too, which say why, as bounds say that they are."""
    names = {"epsilon_at_delta": f"epsilon_at_delta({stated.delta:g})"}
    return [
        context.record(names.get(metric, metric), coalition, one.value, reason=one.note or None)
        for coalition in coalitions
        for metric, one in stated.of(coalition).items()
    ]


def audited_records(
    context: CellContext,
    scenario: Scenario,
    release: Release,
    stated: Guarantees,
    coalitions: Sequence[Coalition],
) -> list[Measurement]:
    """Return audited lower bounds beside what the law states, where the scenario asks for them; of one replicate, as they need no other."""
    measure = scenario.measure("empirical-epsilon")
    if measure is None or release.key.replicate > 1:
        return []
    found = audited(
        release,
        stated,
        coalitions,
        int(measure.options["trials"]),
        float(measure.options["confidence"]),
    )
    law = [
        stated.of(coalition)[one.metric.removeprefix("empirical_")].value
        for coalition, one in zip(coalitions, found, strict=False)
    ]
    return [
        context.record(
            one.metric, coalition, one.value, theory=theory if math.isfinite(theory) else None
        )
        for coalition, one, theory in zip(coalitions, found, law, strict=False)
    ]
