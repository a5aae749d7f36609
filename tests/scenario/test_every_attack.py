import pytest

import auditor
from auditor import registry
from auditor.base.errors import ScenarioError
from auditor.scenario.read import EVERY, read_scenario

NUMBERS = {"source": "gaussian", "covariance": [[1.0, 0.5], [0.5, 2.0]], "rows": 60}


def scenario(**changes):
    whole = {
        "data": NUMBERS, "schemes": [{"name": "corner-wave", "levels": [0.3, 0.6, 1.0]}],
        "coalitions": ["subsets"], "attacks": EVERY,
    }  # fmt: skip
    return whole | changes


def names(**changes):
    return {use.name for use in read_scenario(scenario(**changes)).attacks}


def test_every_attack_that_applies_is_one_that_can_use_the_knowledge_against_a_scheme():
    with_moments, with_records = names(), names(knowledge=[{"known-records": 20}])
    assert {"llse", "map-estimate", "pca-filter", "distribution-analysis"} <= with_moments
    assert "known-io-regression" in with_records - with_moments
    assert "llse" in with_moments - with_records
    assert not with_moments & {"posterior", "homogeneity", "ica"}
    assert names(knowledge=["perfect", {"known-records": 20}]) >= with_moments | with_records
    turned = names(
        schemes=[{"name": "rotation-noise", "levels": [0.3]}], knowledge=[{"known-records": 20}]
    )
    assert {"ica", "known-io-regression"} <= turned
    assert "llse" not in turned


def test_the_resolved_scenario_names_them_and_reads_the_same():
    first = read_scenario(scenario())
    assert read_scenario(first.spec()).attacks == first.attacks


@pytest.mark.slow
def test_what_a_scenario_leaves_out_is_told():
    assert auditor.run(scenario(attacks=["llse"])).untried == sorted(
        names() - {"llse"}, key=registry.names("attack").index
    )
    whole = auditor.run(scenario(attacks=EVERY))
    assert whole.untried == []
    assert whole.attack_kinds == {
        name: registry.get("attack", name).attack_kind for name in names()
    }


def test_what_is_wrong_is_told():
    for attacks, message in [
        ("al", "unknown attack"),
        ([{"name": EVERY}], "unknown attack"),
        ([{"name": "llse", "coalitions": ["singels"]}], "did you mean 'singles'"),
        ([{"name": "llse", "coalition": ["singles"]}], "did you mean 'coalitions'"),
        ([{"name": "llse", "coalitions": []}], "at least one"),
    ]:
        with pytest.raises(ScenarioError, match=message):
            read_scenario(scenario(attacks=attacks))
