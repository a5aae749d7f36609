"""Which schemes are compared, and what is asked of their audits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from auditor import registry
from auditor.audit.measures.utility import is_class
from auditor.data.load import load_target
from auditor.errors import AuditorError
from auditor.numerics.random_streams import stream
from auditor.runs.advice.candidates import (
    AddedNoise,
    Candidate,
    Retention,
    mean_loss,
    regression_loss,
)
from auditor.runs.advice.columns import Chosen
from auditor.runs.advice.request import Request
from auditor.runs.advice.search import noise_grid
from auditor.runs.advice.trials import MODEL
from auditor.runs.perturb import make_plugin
from auditor.schemes.base.additive import AdditiveScheme
from auditor.schemes.base.increments import MultilevelProcess
from auditor.schemes.base.scheme import table_moments
from auditor.schemes.replacement.base import UniformScheme
from auditor.types import Array

ADDED, REPLACED = ("corner-wave", "correlated", "independent"), ("uniform-multilevel", "uniform")
GUARANTEED = ("corner-wave", "laplace-multilevel")
"""Where bounds size the noise: the one has the least ε at δ for many columns, the other a pure
ε."""
LATTICES = ("geometric-multilevel", "skellam-multilevel")
LEAST_OF_BOUNDS = -12
"""Power of ten: a column may vary by a thousandth of what its bounds allow, and its noise by a
thousandth of its variance."""
LOSSES = {"mean": mean_loss, "regression": regression_loss}
"""Those that have a closed form."""


def schemes_of(request: Request) -> list[AdditiveScheme | UniformScheme]:
    """Return the schemes to compare, all for numbers or all for categories."""
    # white noise is worth a search where paper can tell that it is not
    added = ADDED if request.utility in LOSSES else ADDED[:-1]
    every = GUARANTEED if request.bounds else added
    if request.bounds and (
        odd := [
            name
            for name in request.schemes
            if not issubclass(registry.get("scheme", name), AdditiveScheme)
        ]
    ):
        raise AuditorError(f"--bounds size noise that is added to numbers, and {odd[0]} adds none")
    made = [
        make_plugin("scheme", name, parameters_of(request))
        for name in dict.fromkeys(request.schemes or every)
    ]
    for scheme in made:
        gaussian = isinstance(scheme, AdditiveScheme) and scheme.distribution == "gaussian"
        retains = isinstance(scheme, UniformScheme) and scheme.by_retention
        if not (gaussian or retains or isinstance(scheme, MultilevelProcess)):
            known = ", ".join(dict.fromkeys(ADDED + GUARANTEED + LATTICES + REPLACED))
            raise AuditorError(
                f"scheme {scheme.name!r} has no level that decides what stays unknown; valid are {known}"
            )
    if len({isinstance(scheme, UniformScheme) for scheme in made}) > 1:
        raise AuditorError(
            "numbers and categories are advised on apart: name schemes of one kind with --scheme"
        )
    if isinstance(made[0], UniformScheme) and request.utility != "mean":
        raise AuditorError(
            "of categories loss is counted by --utility mean, the standard errors of their shares"
        )
    return made


def parameters_of(request: Request) -> dict[str, Any]:
    """Return the parameters of every scheme: bounds size the noise where they are stated, so that ε hangs on nothing but its law."""
    return {**request.parameters, **({"noise": "bounds"} if request.bounds else {})}


def candidates_of(
    request: Request, schemes: Sequence[AdditiveScheme | UniformScheme], chosen: Chosen
) -> list[Candidate]:
    """Return the schemes with what they tell and lose on paper."""
    made: list[Candidate] = []
    moments = table_moments(chosen.table)
    if request.utility == "regression" and moments.covariance.shape[0] < 2:
        raise AuditorError(
            "--utility regression needs two columns of numbers or more; there is one"
        )
    for scheme in schemes:
        if isinstance(scheme, UniformScheme):
            prior, categories = _prior(chosen), chosen.table.categorical
            pi = None if categories is None else scheme.over(categories).replaced_by(prior.size)
            made.append(Retention(request.copies, request.spread, scheme, prior, pi=pi))
            continue
        loss, grid = (
            LOSSES.get(request.utility),
            noise_grid(LEAST_OF_BOUNDS if request.bounds else -3),
        )
        made.append(
            _added(
                AddedNoise(
                    request.copies, request.spread, scheme, moments, loss, request.delta, grid=grid
                )
            )
        )
    return made


def _added(candidate: AddedNoise) -> AddedNoise:
    """Return a scheme that adds noise, if levels alone scale it."""
    told = candidate.pooled_level(candidate.ratios)
    if told < 1e-9:
        raise AuditorError(
            f"{candidate.name}: its copies cancel their noise when they are pooled, so no level leaves anything unknown"
        )
    if (
        abs(candidate.pooled_level(tuple(2.0 * ratio for ratio in candidate.ratios)) - 2.0 * told)
        > 1e-9 * told
    ):
        raise AuditorError(
            f"{candidate.name}: its noise is not in proportion to its levels, and which would do cannot be told on paper"
        )
    return candidate


def _prior(chosen: Chosen) -> Array:
    """Return the shares of the categories."""
    assert chosen.table.categorical is not None
    prior = chosen.table.categorical.prior
    if len(prior) < 2 or not prior.all():
        raise AuditorError(
            "a column of categories must have two values or more, each of them in some record"
        )
    return np.asarray(prior)


def utility_of(request: Request, chosen: Chosen) -> dict[str, Any]:
    """Return the section ``utility`` of the audits: the class to predict, if one is."""
    if request.target is None:
        return {}
    data = chosen.measured
    label = load_target(
        request.data,
        request.target,
        columns=data.get("columns"),
        rows=data.get("rows"),
        missing=data.get("missing", "refuse"),
        rng=stream(request.seed, "data"),
    )
    if not is_class(label):
        raise AuditorError(
            f"--target {request.target!r} is a column of numbers, and a classifier predicts classes"
        )
    return {"target": request.target, "models": [MODEL]}
