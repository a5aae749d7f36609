"""Claims of sensitive values beyond chance."""

import numpy as np
import pytest

from auditor.adversary.attack import Inferred
from auditor.audit.base.records import CellContext
from auditor.audit.measures.record_disclosure import Inferences, inference_records

PRIOR = np.array([0.9, 0.07, 0.03])


def drawn(rng, n):
    x = rng.choice(3, size=n, p=PRIOR)
    told = np.where(rng.random(n) < 0.8, x, rng.choice(3, size=n, p=PRIOR))
    posterior = np.full((n, 3), 0.05) + 0.85 * np.eye(3)[told]
    claims = np.where(rng.random(n) < 0.5, told, -1)
    return Inferred(0, np.arange(3.0), np.arange(3), posterior, PRIOR, claims, np.zeros(n)), x[
        :, None
    ].astype(float)


def measured(found, x):
    counted = Inferences()
    for rows in np.array_split(np.arange(len(x)), 3):  # blocks of records
        counted.add(
            Inferred(
                0,
                found.values,
                found.groups,
                found.posterior[rows],
                PRIOR,
                found.claims[rows],
                found.linked[rows],
            ),
            x[rows],
        )
    context = CellContext({}, "k-anonymity", (5.0,), 0, ("ill",), np.ones(1), 1)
    records = inference_records(context, (1,), counted)
    return next(r for r in records if (r.metric, r.attribute) == ("disclosed_beyond_chance", "ill"))


def test_it_is_what_right_claims_are_worth_over_the_doubt_of_all_records():
    found, x = drawn(np.random.default_rng(1), 500)
    news = doubt = 0.0
    for claim, true in zip(found.claims, x[:, 0].astype(int), strict=True):
        doubt += 1 - PRIOR[true]
        if claim >= 0:
            news += (claim == true) - PRIOR[claim]
    assert measured(found, x).value == pytest.approx(news / doubt)


def test_its_error_bar_is_the_spread_over_draws_of_the_records():
    draws, rng = 400, np.random.default_rng(2)
    records = [measured(*drawn(rng, 1_500)) for _ in range(draws)]
    errors = [(r.ci_high - r.value) / 1.96 for r in records]
    spread = np.std([r.value for r in records], ddof=1)
    # four standard errors of a standard deviation
    assert np.mean(errors) == pytest.approx(spread, rel=4 / np.sqrt(2 * draws))
