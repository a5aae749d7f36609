"""Attacks on a release of categories, fitted to every coalition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from auditor.adversary.categorical_attack import (
    CategoricalAttack,
    CategoricalView,
    Inference,
    probabilities,
)
from auditor.adversary.given import NOTHING, Given, Prior, SampleCounts
from auditor.adversary.knowledge import Estimated, Knowledge, KnownRecords, Perfect, PublishedRules
from auditor.adversary.published_rules import cells_of, published_prior
from auditor.audit.base.session import made_attack
from auditor.audit.categorical.error_bars import Fit
from auditor.audit.categorical.first_pass import Counted
from auditor.audit.categorical.posterior_measures import Frame
from auditor.audit.categorical.posterior_pass import Fitted, Try
from auditor.audit.categorical.release import Half, UniformRelease
from auditor.audit.numeric.known_rows import key_of
from auditor.data.columns.categorical_table import CategoricalTable
from auditor.errors import NotApplicable, PluginError
from auditor.scenario.model import AttackUse
from auditor.types import Array, Coalition, Indices


def view_of(release: UniformRelease, counted: Counted, knowledge: Knowledge) -> CategoricalView:
    """Return the view of an adversary with every copy that some coalition holds."""
    members, data = tuple(release.singles), release.data
    given: Given = NOTHING
    if isinstance(knowledge, Perfect):
        given = Prior(data.prior)
    elif isinstance(knowledge, PublishedRules):
        given = Prior(published_prior(knowledge, data.attributes, data.prior))
    elif isinstance(knowledge, Estimated):
        given = SampleCounts(tuple(counted.samples[key_of(knowledge)].astype(np.float64)))
    elif isinstance(knowledge, KnownRecords):
        if knowledge.count == data.rows:
            raise NotApplicable("every record is known in clear: none is left to attack")
        given = counted.pairs_of(key_of(knowledge))
    return CategoricalView(members, release.law.of(members), knowledge, data.labels, given)


def fit_of(release: UniformRelease, use: AttackUse, knowledge: Knowledge) -> Fit:
    """Return the function that fits an attack to a view and a coalition.

    Raises
    ------
    NotApplicable
        The attack does not apply to categories, or to this knowledge.
    """
    attack, data = made_attack(use), release.data
    attack.check(release.scheme.family, knowledge)
    if not isinstance(attack, CategoricalAttack):
        raise NotApplicable(f"{use.name} does not attack categories")
    rho = release.scenario.measure("rho-breach")
    bounds = None if rho is None else (float(rho.options["rho1"]), float(rho.options["rho2"]))
    predicates = attack.predicates(data.labels)
    known = cells_of(knowledge.in_clear, data.attributes) if knowledge.in_clear else None
    parts = parts_of(data, knowledge)

    def fit(view: CategoricalView, coalition: Coalition) -> tuple[Inference, Frame]:
        inference = attack.infer(view.coalition(coalition))
        check_inference(inference, predicates, data.size)
        exact = inference.fixed and np.array_equal(inference.prior, data.prior)
        frame = Frame(inference.prior, exact, data.scores, bounds, predicates, known, parts)
        return inference, frame

    return fit


def fitted_parts(
    release: UniformRelease,
    view: CategoricalView,
    fit: Fit,
    use: AttackUse,
    halves: tuple[Half, ...],
) -> dict[Try, Fitted]:
    """Return an attack fitted once, or with the estimated law of each half of the records."""
    knowledge, needed = view.knowledge, release.needed
    # serial attacks take a pass for each coalition
    if made_attack(use).serial:
        M = release.context.copies
        needed = [one for one in needed if len(one) == 1 or use.tries(one, M)]

    def fitted(seen: CategoricalView, hidden: str | None) -> Fitted:
        found = {coalition: fit(seen, coalition) for coalition in needed}
        inferences = {c: inference for c, (inference, _) in found.items()}
        return Fitted(inferences, {c: frame for c, (_, frame) in found.items()}, hidden)

    # known records are the source of the estimates themselves
    if isinstance(knowledge, KnownRecords):
        return {(use.id, knowledge.label): fitted(view, key_of(knowledge))}
    if not halves:
        return {(use.id, knowledge.label): fitted(view, None)}
    return {
        (use.id, f"{knowledge.label}, {half.name}"): fitted(replace(view, law=half.law), half.name)
        for half in halves
    }


def check_inference(inference: Any, predicates: Mapping[str, Any], size: int) -> None:
    """Refuse an invalid inference of a plugin.

    Raises
    ------
    PluginError
        With the expected form.
    """
    if not isinstance(inference, Inference) or not isinstance(inference.fixed, bool):
        raise PluginError("the attack returned no Inference")
    probabilities(inference.prior, (size,), "a prior")
    for holds in predicates.values():
        if np.shape(holds) != (size,) or np.asarray(holds).dtype != np.bool_:
            raise PluginError("a statement about values must be a mask over the domain")


def parts_of(data: CategoricalTable, knowledge: Knowledge) -> dict[str, Indices]:
    """Return the value of each attribute by value of the domain.

    None for a single attribute, and if some attributes are known.
    """
    if len(data.attributes) == 1 or knowledge.in_clear:
        return {}
    return {one.name: cells_of([one.name], data.attributes) for one in data.attributes}


def shares_of(part: Indices, prior: Array) -> Array:
    """Return the shares of an attribute's values."""
    return np.asarray(np.bincount(part, prior), dtype=np.float64)


def unknown_shares(data: CategoricalTable, knowledge: Knowledge) -> Array:
    """Return the shares of the combinations of attributes that are not known."""
    if not knowledge.in_clear:
        return data.prior
    hidden = [one.name for one in data.attributes if one.name not in knowledge.in_clear]
    return shares_of(cells_of(hidden, data.attributes), data.prior)
