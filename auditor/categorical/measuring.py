"""What one attack yields on one coalition of a uniform release: sums over its records, and closed forms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.categorical.attack import Inference
from auditor.categorical.draws import Codes
from auditor.categorical.gap import Gap
from auditor.categorical.making import UniformRelease
from auditor.categorical.measures import (
    Expected,
    Frame,
    Sums,
    expected,
    quantities,
)
from auditor.scenario.coalitions import Coalition

Array = NDArray[np.float64]

BLOCK_NUMBERS = 2**18
"""Numbers of a block of posteriors: they stay in the cache while they are measured."""
MOST_OUTCOMES = 2**18
"""Outcomes times values up to which closed forms are summed over every outcome."""


@dataclass
class Measured:
    """What one attack yields on one coalition."""

    sums: Sums
    closed: dict[str, Expected] | None
    gap: Gap | None = None


def measure(
    release: UniformRelease, inference: Inference, coalition: Coalition, predicates: Mapping[str, Any], hidden: NDArray[np.intp] | None
) -> Measured:
    """Return what one attack, fitted to a coalition, yields on it; ``hidden`` are the records to be attacked, None for all."""
    data = release.data
    rho = release.scenario.measure("rho-breach")
    bounds = None if rho is None else (float(rho.options["rho1"]), float(rho.options["rho2"]))
    exact = inference.fixed and np.array_equal(inference.prior, data.prior)
    frame = Frame(inference.prior, exact, data.scores, bounds, predicates)
    sums = Sums(data.size, int(release.groups[-1]) + 1)
    copies = [release.copy(number) for number in coalition]
    x, groups = data.codes, release.groups
    if hidden is not None:
        copies, x, groups = [copy[hidden] for copy in copies], x[hidden], groups[hidden]
    closed = None
    outcomes = data.size ** len(copies)
    if outcomes * 8 <= x.size and outcomes * data.size <= MOST_OUTCOMES:
        _by_outcome(data.size, inference, frame, sums, copies, x, groups)
    else:
        _by_record(inference, frame, sums, copies, x, groups)
    if inference.fixed and hidden is None:
        closed = _closed(release, inference, frame, coalition)
    return Measured(sums, closed)


def _by_record(inference: Inference, frame: Frame, sums: Sums, copies: list[Codes], x: Codes, groups: NDArray[np.intp]) -> None:
    rows = max(64, BLOCK_NUMBERS // inference.prior.size)
    for a in range(0, x.size, rows):
        part = [copy[a : a + rows] for copy in copies]
        found = quantities(inference.checked(part), frame)
        sums.add(found, np.arange(part[0].size), x[a : a + rows].astype(np.intp), groups[a : a + rows])


def _by_outcome(s: int, inference: Inference, frame: Frame, sums: Sums, copies: list[Codes], x: Codes, groups: NDArray[np.intp]) -> None:
    """A posterior for every outcome there can be, and a look-up for every record."""
    k = len(copies)
    place = np.ravel_multi_index(tuple(copy.astype(np.intp) for copy in copies), (s,) * k)
    met, inverse = np.unique(place, return_inverse=True)
    table = [np.asarray(part, dtype=copies[0].dtype) for part in np.unravel_index(met, (s,) * k)]
    found, G = quantities(inference.checked(table), frame), sums.groups.size
    if met.size * s * G * 4 > x.size:
        sums.add(found, inverse, x.astype(np.intp), groups)
        return
    alike = np.bincount((inverse * s + x) * G + groups, minlength=met.size * s * G)  # records of one outcome, value and group
    kinds = np.flatnonzero(alike)
    sums.add(found, kinds // (s * G), kinds // G % s, kinds % G, alike[kinds].astype(np.float64))


def _closed(release: UniformRelease, inference: Inference, frame: Frame, coalition: Coalition) -> dict[str, Expected] | None:
    """Sum over every outcome the law allows; of multilevel copies the best stands for all (``best_is_sufficient``)."""
    law = release.law.of(coalition)
    place = law.best - 1
    members = (place,) if law.multilevel else tuple(range(len(coalition)))
    if law.multilevel and not law.best_is_sufficient():
        return None
    s, k = release.data.size, len(members)
    if s ** (k + 1) > MOST_OUTCOMES:
        return None
    given = law.of([member + 1 for member in members]).given_original().reshape(s, -1)
    possible = np.flatnonzero(given[release.data.prior > 0].any(axis=0))  # nobody shows an outcome that only values nobody has lead to
    outcome = np.unravel_index(possible, (s,) * k)
    if law.multilevel:  # every copy shows what the best one does: as likely as any other outcome with the same posterior
        outcome = outcome * len(coalition)
    table = [np.asarray(part, dtype=release.data.codes.dtype) for part in outcome]
    found = quantities(inference.checked(table), frame)
    return expected(given[:, possible], release.data.prior, found, release.data.rows)


def gain_in_theory(found: Mapping[Coalition, Measured], coalition: Coalition) -> float | None:
    """Return the closed-form collusion gain on the reconstruction error, or None where some part has no closed form."""
    forms = [found[c].closed for c in [coalition, *((copy,) for copy in coalition)]]
    errors = [1.0 - form["reconstruction_probability"].value for form in forms if form is not None]
    if len(errors) < len(forms):
        return None
    alone = min(errors[1:])
    return 0.0 if alone <= 0 else 1.0 - errors[0] / alone
