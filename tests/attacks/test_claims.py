"""Every attack has a shipped scenario in which it succeeds and one in which it fails, as expectations, for a reason its documentation gives.

That the expectations hold is tested by ``pytest scenarios/``. Here: the expectation is there, it is
about this attack, it says what is claimed, and the reason stands in the attack's own words, as
``auditor show`` prints them."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import pytest
import yaml

from auditor import registry
from auditor.scenario.read import find_scenario, read_scenario

SKEWED = ["exponential", "gamma", "laplace", "bimodal"]
NORMAL = ["normal", "normal", "normal", "normal"]


class Claim(NamedTuple):
    """An expectation of a scenario, by its name and what its filter says at least, and words from the attack's documentation."""

    scenario: str
    expectation: str
    where: dict[str, Any]
    because: str


CLAIMS: dict[str, tuple[Claim, Claim]] = {  # attack: where it succeeds, where it fails
    "ndr": (
        Claim("survey-example-3.6", "normalized_error", {"attack": "ndr", "at-most": 0.06}, "Wins when noise is small beside the data"),
        Claim("survey-additive", "normalized_error", {"scheme": "strong noise", "attack": "ndr (as released)", "at-least": 5}, "Fails if the noise is larger than the data"),
    ),
    "udr": (
        Claim("survey-additive", "ranking", {"scheme": "like the data", "order": ["udr (learnt prior)", "udr (no correlations)", "MAP (normal prior)"]}, "reconstructed on clustered or skewed ones"),
        Claim("survey-additive", "ranking", {"scheme": ["white noise", "uniform"], "order": ["MAP (normal prior)", "eigen-analysis (PCA)", "udr (no correlations)", "ndr (as released)"]}, "loses to all that use correlations"),
    ),
    "spectral-filter": (
        Claim("survey-additive", "normalized_error", {"scheme": "white noise", "attack": "eigen-analysis (spectral)", "at-most": 0.3}, "when a few strong components stand clear of the noise"),
        Claim("survey-additive", "ranking", {"scheme": "like the data", "order": ["ndr (as released)", "eigen-analysis (spectral)"]}, "loses to pca-filter and bayes-estimate when weak components reach the bound, and under coloured noise"),
    ),
    "svd-filter": (
        Claim("survey-additive", "normalized_error", {"scheme": "white noise", "attack": ["eigen-analysis (PCA)", "eigen-analysis (SVD)"], "at-most": 0.15}, "Picks near the best number of directions when rows are many"),
        Claim("survey-additive", "ranking", {"scheme": "like the data", "order": ["ndr (as released)", "eigen-analysis (SVD)"]}, "under noise shaped like the data"),
    ),
    "pca-filter": (
        Claim("survey-additive", "normalized_error", {"scheme": "white noise", "attack": ["eigen-analysis (PCA)", "eigen-analysis (SVD)"], "at-most": 0.15}, "so correlated that few components hold nearly all variance"),
        Claim("survey-additive", "ranking", {"scheme": "like the data", "order": ["ndr (as released)", "eigen-analysis (PCA)"]}, "under noise shaped like the data"),
    ),
    "bayes-estimate": (
        Claim("survey-tables", "ranking", {"scheme": "independent", "order": ["bayes-estimate", "svd-filter", "ndr"]}, "Best of all linear attacks on one copy with known covariances"),
        Claim("huang2005-exp2", "ranking", {"order": ["udr", "bayes-estimate"]}, "udr when nothing is correlated"),
    ),
    "map-estimate": (
        Claim("survey-tables", "ranking", {"sweep": {"data.shapes": SKEWED}, "order": ["distribution-analysis", "map-estimate", "llse"]}, "Wins on skewed or clustered attributes"),
        Claim("survey-tables", "ranking", {"sweep": {"data.shapes": NORMAL}, "order": ["llse", "distribution-analysis", "map-estimate"]}, "on normal data an estimated prior loses to llse"),
    ),
    "mixture-estimate": (
        Claim("strongest-joint", "ranking", {"scheme": "corner-wave", "order": ["mixture-estimate", "map-estimate", "llse"]}, "Wins on curved, clustered, long-tailed or heaped attributes"),
        Claim("strongest-joint", "no-collusion-gain", {"scheme": "corner-wave", "attack": "mixture-estimate"}, "gains nothing from a second corner-wave copy"),
    ),
    "sample-estimate": (
        Claim("population-sample", "ranking", {"scheme": "corner-wave", "order": ["sample-estimate", "map-estimate"]}, "Wins with a sample that fills the space that the data do"),
        Claim("population-sample", "no-collusion-gain", {"scheme": "corner-wave", "attack": "sample-estimate"}, "gains nothing from a second corner-wave copy"),
    ),
    "quantile-matching": (
        Claim("other-units", "normalized_error", {"attack": "quantile-matching", "at-most": 0.15}, "Wins on copies in other units, of ranks"),
        Claim("other-units", "normalized_error", {"scheme": "data-swapping", "attack": "quantile-matching", "at-least": 1}, "fails where that changes"),
    ),
    "distribution-analysis": (
        Claim("survey-example-3.6", "normalized_error", {"attack": ["em", "iteration", "posterior-mean"], "at-most": 0.013}, "Wins on clustered attributes and bounded noise"),
        Claim("survey-additive", "normalized_error", {"scheme": "strong noise", "attack": ["MAP (learnt prior)", "distribution-analysis", "udr (learnt prior)"], "at-least": 0.9}, "Few records or strong noise blur the reconstruction"),
    ),
    "joint-distribution-analysis": (
        Claim("survey-rare-cells", "rare_disclosed", {"scheme": "coloured", "attack": "together", "coalition": [1], "at-least": 0.05}, "finds the rare records in it"),
        Claim("survey-rare-cells", "rare_disclosed", {"scheme": ["white", "coloured"], "attack": "together", "coalition": [3], "at-most": 0.005}, "noise as large as the data it claims hardly anybody"),
    ),
    "partial-disclosure": (
        Claim("survey-additive", "normalized_error", {"scheme": ["white noise", "strong noise"], "attack": "partial-disclosure", "at-most": 0.05}, "Wins over llse wherever a known attribute is correlated with an unknown one"),
        Claim("survey-tables", "normalized_error", {"attack": "partial-disclosure", "attribute": "x3", "between": [0.265, 0.305]}, "equals it where none is"),
    ),
    "tree-estimate": (
        Claim("published-tree", "ranking", {"scheme": "independent", "order": ["tree-estimate", "llse"]}, "Wins over llse where the target jumps or bends with its predictors"),
        Claim("published-tree", "normalized_error", {"scheme": "harmless", "attack": ["tree-estimate", "llse"], "at-least": 0.95}, "unless the predictors are known"),
    ),
    "low-order-bits": (
        Claim("low-order-bits", "exact", {"scheme": "straight from numpy", "attribute": "children", "at-least": 0.95}, "Wins on columns of few values with noise straight from a generator of doubles"),
        Claim("low-order-bits", "exact", {"scheme": ["on a public grid", "one process"], "attack": "low-order-bits", "at-most": 0.45}, "finds nothing in copies on a public grid"),
    ),
    "record-linkage": (
        Claim("record-linkage", "named", {"attack": "record-linkage", "coalition": [1], "at-least": 0.3}, "Wins with little noise on several known attributes"),
        Claim("record-linkage", "named", {"attack": "record-linkage", "coalition": [3], "at-most": 0.02}, "under noise as large as the data it names hardly more than chance"),
    ),
    "llse": (
        Claim("quickstart", "collusion-gain", {"attack": "llse", "scheme": "correlated", "coalition": "all", "at-least": 0.5}, "gains with every copy of fresh noise"),
        Claim("survey-tables", "ranking", {"sweep": {"data.shapes": SKEWED}, "order": ["distribution-analysis", "map-estimate", "llse"]}, "loses to map-estimate on clustered data"),
    ),
    "known-io-regression": (
        Claim("survey-rotation", "normalized_error", {"attack": "known-io-regression", "knowledge": "known-records(60)", "at-most": 1e-9}, "Wins with a few hundred records and an unknown law"),
        Claim("survey-tables", "ranking", {"scheme": "independent", "knowledge": "known-records(3)", "order": ["ndr", "known-io-regression"]}, "with p near kN to guessing the mean"),
    ),
    "known-io-boosting": (
        Claim("with-records", "ranking", {"scheme": "fresh", "knowledge": "known-records(600)", "order": ["known-io-boosting", "known-io-regression"]}, "Wins over every linear attack on skewed, clustered or curved data"),
        Claim("with-records", "no-collusion-gain", {"scheme": "nested"}, "gains nothing from more corner-wave copies"),
    ),
    "known-io-inverse": (
        Claim("with-records", "normalized_error", {"scheme": "turned", "attack": "known-io-inverse", "at-most": 1e-9}, "Exact on a matrix without noise"),
        Claim("with-records", "ranking", {"scheme": "nested", "order": ["known-io-regression", "known-io-inverse"]}, "loses to known-io-regression"),
    ),
    "transform-match": (
        Claim("with-records", "normalized_error", {"scheme": "cosine", "attack": "transform-match", "at-most": 1e-9}, "Exact for all records of a public transform that keeps every coefficient"),
        Claim("with-records", "normalized_error", {"scheme": "half a cosine", "attack": "transform-match", "attribute": "age", "at-least": 0.5}, "loses what was dropped and the rest does not tell"),
    ),
    "known-io-rotation": (
        Claim("survey-rotation", "normalized_error", {"attack": "known-io-rotation", "knowledge": "known-records(60)", "at-most": 1e-9}, "so for all once N independent ones are known"),
        Claim("survey-rotation", "normalized_error", {"attack": "known-io-rotation", "knowledge": "known-records(3)", "at-least": 0.3}, "else a blind guess outside it"),
    ),
    "known-io-projection": (
        Claim("survey-projection", "normalized_error", {"attack": "known-io-projection", "scheme": ["n'=12", "n'=24"], "at-most": 1e-9}, "Exact for records in the known records' span"),
        Claim("survey-projection", "normalized_error", {"attack": "known-io-projection", "scheme": "n'=6", "between": [0.4, 0.6]}, "while these are no more than dimensions"),
    ),
    "known-sample": (
        Claim("survey-known-sample", "records_within", {"sweep": {"data.shapes": ["exponential"]}, "at-least": 0.95}, "Wins on skewed or off-centre data"),
        Claim("survey-known-sample", "normalized_error", {"sweep": {"data.shapes": ["normal"]}, "at-least": 0.5}, "on data symmetric about 0 the signs are coin tosses"),
    ),
    "ica": (
        Claim("survey-ica", "normalized_error", {"attack": "ica", "scheme": ["rotation", "random-projection"], "at-most": 0.02}, "Wins on independent non-Gaussian attributes"),
        Claim("survey-ica", "normalized_error", {"attack": "ica", "attribute": ["x1", "x2"], "at-least": 0.05}, "fails with two Gaussian ones"),
    ),
    "posterior": (
        Claim("uniform-quickstart", "collusion-gain", {"scheme": "uniform", "coalition": "all", "at-least": 0.2}, "With every fresh copy"),
        Claim("uniform-quickstart", "no-collusion-gain", {"scheme": "uniform-multilevel"}, "a multilevel copy adds nothing to a less perturbed one"),
    ),
    "serial-filter": (
        Claim("serial", "ranking", {"order": ["serial-filter", "llse"], "sweep": {"data.autocorrelation": 0.95}}, "Wins over llse wherever neighbouring records are alike"),
        Claim("serial", "normalized_error", {"attack": "serial-filter", "scheme": "corner-wave", "sweep": {"data.autocorrelation": 0.0}, "between": [0.22, 0.24]}, "on records in no order it is llse"),
    ),
    "neighbour-mixture": (
        Claim("serial-skewed", "ranking", {"coalition": "all", "order": ["neighbour-mixture", "serial-filter", "llse"]}, "Wins on ordered records whose attributes are skewed"),
        Claim("serial", "normalized_error", {"attack": "neighbour-mixture", "scheme": "corner-wave", "sweep": {"data.autocorrelation": 0.0}, "between": [0.22, 0.24]}, "records in no order it is mixture-estimate"),
    ),
    "serial-posterior": (
        Claim("serial-categories", "accuracy", {"attack": "serial-posterior", "scheme": "uniform-multilevel", "sweep": {"data.stay": 0.96}, "at-least": 0.86}, "Wins over posterior wherever a record foretells the next"),
        Claim("serial-categories", "accuracy", {"attack": "serial-posterior", "scheme": "uniform-multilevel", "sweep": {"data.stay": 0.2}, "at-most": 0.55}, "on records in no order it is posterior"),
    ),
    "linkage": (
        Claim("survey-kanonymity", "disclosed", {"scheme": "raw", "attack": "linkage", "at-least": 0.1}, "Wins with k = 1"),
        Claim("survey-kanonymity", "disclosed", {"attack": "linkage", "at-most": 0}, "fails on one k-anonymous copy"),
    ),
    "homogeneity": (
        Claim("survey-kanonymity", "disclosed", {"scheme": "k", "attack": "homogeneity", "at-least": 0.08}, "Wins on classes whose sensitive values are alike"),
        Claim("survey-kanonymity", "disclosed", {"scheme": "diverse", "attack": "homogeneity", "at-most": 0}, "fails on diverse ones"),
    ),
    "similarity": (
        Claim("survey-kanonymity", "disclosed", {"scheme": "diverse", "attack": "similarity", "at-least": 0.05}, "Wins on classes diverse in value but not in meaning"),
        Claim("survey-kanonymity", "disclosed", {"scheme": "spread", "attack": "similarity", "at-most": 0}, "fails where values spread over groups"),
    ),
    "skewness": (
        Claim("survey-kanonymity", "disclosed", {"scheme": "raw", "attack": "skewness", "at-least": 0.05}, "Wins on diverse classes unlike the table"),
        Claim("survey-kanonymity", "disclosed", {"scheme": "close", "attack": "skewness", "at-most": 0}, "fails on classes t-close to it"),
    ),
}  # fmt: skip

ERRORS = ("normalized_error",)
"""Metrics that are small when an attack succeeds."""


def expectations(scenario: str) -> list[tuple[str, dict[str, Any]]]:
    """The scenario's expectations as they are written, knowledge by its label."""
    written = yaml.safe_load(find_scenario(scenario).read_text(encoding="utf-8"))["expect"]
    return [
        (name, dict(where or {}))
        for item in written
        for name, where in (item.items() if isinstance(item, dict) else [(item, None)])
    ]


def label(knowledge: Any) -> Any:
    """``known-records(60)`` for ``{known-records: 60}``."""
    return (
        f"{next(iter(knowledge))}({next(iter(knowledge.values()))})"
        if isinstance(knowledge, dict)
        else knowledge
    )


def says(where: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether a filter says all that is wanted; a sweep may pin more."""
    for field, value in wanted.items():
        found = where.get(field)
        if field == "knowledge":
            found = label(found)
        if field == "sweep":
            if not isinstance(found, dict) or any(
                found.get(path) != one for path, one in value.items()
            ):
                return False
        elif found != value:
            return False
    return True


def ids(attack: str, scenario: str) -> set[str]:
    return {use.id for use in read_scenario(find_scenario(scenario)).attacks if use.name == attack}


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def documentation(attack: str) -> str:
    cls = registry.get("attack", attack)
    return " ".join(f"{cls.wins} {cls.assumes} {inspect.getdoc(inspect.getmodule(cls))}".split())


def test_every_attack_has_its_claims():
    assert set(CLAIMS) == set(registry.names("attack"))


@pytest.mark.parametrize(
    ("attack", "succeeds"),
    [(attack, succeeds) for attack in sorted(CLAIMS) for succeeds in (True, False)],
)
@pytest.mark.slow_after_first
def test_a_scenario_shows_it(attack, succeeds):
    claim = CLAIMS[attack][0 if succeeds else 1]
    assert any(
        name == claim.expectation and says(where, claim.where)
        for name, where in expectations(claim.scenario)
    ), claim
    assert claim.because in documentation(attack)
    assert ids(attack, claim.scenario), f"{claim.scenario} does not run {attack}"


@pytest.mark.parametrize(
    ("attack", "succeeds"),
    [(attack, succeeds) for attack in sorted(CLAIMS) for succeeds in (True, False)],
)
def test_the_expectation_is_about_the_attack_and_goes_the_way_it_is_claimed(attack, succeeds):
    claim = CLAIMS[attack][0 if succeeds else 1]
    where, own = claim.where, ids(attack, claim.scenario)
    if claim.expectation == "ranking":
        places = [place for place, name in enumerate(where["order"]) if name in own]
        assert places
        rivals = [place for place, name in enumerate(where["order"]) if name not in own]
        # the winner stands before some other attack, the loser behind one
        assert min(places) < max(rivals) if succeeds else max(places) > min(rivals)
        return
    everybody = {use.id for use in read_scenario(find_scenario(claim.scenario)).attacks}
    named = set(listed(where.get("attack"))) or everybody
    assert named & own
    if claim.expectation == "no-collusion-gain":
        assert not succeeds
    elif "between" in where:  # theory pins a failure on both sides
        assert not succeeds
        assert where["between"][0] > 0.2
    else:
        small_is_success = claim.expectation in ERRORS
        assert ("at-most" in where) == (succeeds == small_is_success)
        bound = where.get("at-most", where.get("at-least"))
        assert bound <= 0.3 if small_is_success and succeeds else True
