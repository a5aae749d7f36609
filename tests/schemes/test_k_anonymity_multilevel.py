"""k-anonymity of nested copies."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

import auditor
from auditor.base import AuditorError
from auditor.runs.perturb import perturb
from auditor.runs.run_scenario import run_scenario
from auditor.scenario.read import read_scenario
from auditor.schemes.generalisation.classes import promises
from auditor_reports.reading import Reading
from auditor_reports.verdict import Verdict
from tests.audited import cells

NAME = "k-anonymity-multilevel"


def people(n, seed, values=8):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.integers(0, values, (n, 3)).astype(float), columns=["a", "b", "s"])


@given(
    st.integers(1, 40), st.integers(1, 6), st.integers(1, 4),
    st.sampled_from(["equal", "ordered", "tree"]), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_every_union_of_classes_keeps_what_all_of_them_promise(n, classes, values, ground, seed):
    rng = np.random.default_rng(seed)
    finer, sensitive = rng.integers(0, classes, n), rng.integers(0, values, n).astype(float)
    coarser = rng.integers(0, classes, classes)[finer]
    tree = {place: (("low" if place < 2 else "high"), "all") for place in range(values)}
    kept, more = (
        promises(
            part[:, None], sensitive, sensitive, tree if ground == "tree" else ground, [1.0, 3.0]
        )
        for part in (finer, coarser)
    )
    assert more["anonymity_k"] >= kept["anonymity_k"]
    assert more["anonymity_distinct"] >= kept["anonymity_distinct"]
    assert more["anonymity_entropy"] >= kept["anonymity_entropy"] - 1e-12
    assert more["anonymity_alpha"] <= kept["anonymity_alpha"] + 1e-12
    assert more["anonymity_t"] <= kept["anonymity_t"] + 1e-12
    assert more["anonymity_size"] >= kept["anonymity_size"] - 1e-9
    assert more["anonymity_recursive(2)"] >= kept["anonymity_recursive(2)"] - 1e-12
    assert more["anonymity_recursive(3)"] >= kept["anonymity_recursive(3)"] - 1e-12
    assert more["anonymity_confidence"] <= kept["anonymity_confidence"] + 1e-12
    assert more.get("anonymity_range", 0.0) >= kept.get("anonymity_range", 0.0)


@settings(max_examples=12)
@given(st.permutations([2, 3, 5, 9]), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_a_copy_asked_for_later_is_what_it_would_have_been(levels, out, seed):
    frame = people(60, seed)
    whole = perturb(frame, NAME, levels, quasi=["a", "b"], sensitive="s")
    later = perturb(frame, NAME, levels[: out + 1], quasi=["a", "b"], sensitive="s")
    for k in levels[out + 1 :]:
        later = later.extend([k])
    for one, other in zip(whole.copies, later.copies, strict=True):
        pd.testing.assert_frame_equal(one, other)


@pytest.fixture
def judged():
    def run(scheme=NAME, levels=(2, 4, 8), **use):
        frame = people(200, 3, 20)
        document = {
            "data": {"source": "inline", "values": {column: frame[column].tolist() for column in frame}},
            "schemes": [{"id": "it", "name": scheme, "quasi": ["a", "b"], "sensitive": "s", "levels": list(levels), **use}],
            "knowledge": [{"known-attributes": ["a", "b"]}], "coalitions": ["subsets"], "attacks": ["homogeneity"], "measures": ["anonymity"],
            "expect": [{"theorem-4": {}}],
        }  # fmt: skip
        result = run_scenario(read_scenario(document))
        (found,) = result.expectations
        k = {record.coalition: record.value for record in cells(result, metric="anonymity_k")}
        return found, k, result.model_copy(update={"expectations": []})

    return run


@pytest.mark.parametrize("use", [{}, {"already-out": 2, "levels": [8, 2, 4]}])
def test_theorem_4_holds_by_law_for_nested_copies(judged, use):
    found, k, result = judged(**use)
    assert found.status == "holds", found.why
    assert Verdict(Reading(result), "it").finding == "no-gain"
    said = "by classes and ranges, for every attack that reads these: one copy says all there is in each of 4 coalitions"
    assert said in found.why
    levels = use.get("levels", (2, 4, 8))
    for coalition, value in k.items():
        assert (
            value
            == min(k[copy,] for copy in coalition)
            >= min(levels[copy - 1] for copy in coalition)
        )


def test_theorem_4_fails_for_copies_made_apart(judged):
    found, k, result = judged("k-anonymity", levels=(2, 3, 5))
    assert found.status == "fails"
    assert "no copy of" in found.why
    assert k[1, 2, 3] < 2
    nothing = {"value": 0.0, "std_error": 0.0, "ci_low": 0.0, "ci_high": 0.0}
    records = [
        record._replace(**nothing) if record.metric == "collusion_gain" else record
        for record in result.measurements
    ]
    told = Verdict(Reading(result.model_copy(update={"measurements": records})), "it")
    assert told.finding == "gain"
    said = "Pooling copies 1 and 2 leaves some record alone, where each of these copies has 2 or more in every class."
    assert told.sentence == said


def test_parameters_and_tables_that_cannot_be_are_refused():
    frame = people(12, 0)
    for wrong, said in (
        ({"quasi": ["a", "a"], "sensitive": "s"}, "each quasi-identifier once"), ({"quasi": ["a", "s"], "sensitive": "s"}, "not the sensitive"),
        ({"quasi": ["c"], "sensitive": "s"}, "no attribute 'c'"), ({"quasi": ["a"], "sensitive": "s", "method": "full-domain"}, "method"),
        ({"quasi": ["a"], "sensitive": "s", "distinct": 20}, "does not satisfy the rules"),
    ):  # fmt: skip
        with pytest.raises(AuditorError, match=said):
            perturb(frame, NAME, [2], **wrong)
    with pytest.raises(AuditorError):
        perturb(frame.assign(a=np.nan), NAME, [2], quasi=["a"], sensitive="s")


def test_copies_of_another_table_are_not_extended():
    release = perturb(people(60, 0), NAME, [2, 9], quasi=["a", "b"], sensitive="s")
    other = perturb(people(60, 1), NAME, [2, 9], quasi=["a", "b"], sensitive="s")
    mixed = type(release)(release.original, other.copies, release.levels, release.scheme)
    with pytest.raises(AuditorError, match="not what this table gives"):
        mixed.extend([4])


DISEASES = pd.CategoricalDtype(["flu", "HIV", "measles", "none"])
IMPLEMENTATIONS = ["process", "multi-pert"]


@pytest.fixture
def patients():
    draws = np.random.default_rng(0).choice(3, 4000, p=[0.6, 0.1, 0.3])
    return pd.Series(
        pd.Categorical.from_codes(draws, dtype=DISEASES), name="disease", index=range(10, 4010)
    )


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_extension_leaves_old_copies_alone_and_repeats_a_level(patients, implementation):
    release = auditor.perturb(
        patients, "uniform-multilevel", [0.8, 0.1], seed=7, implementation=implementation
    )
    longer = release.extend([0.4, 0.8], seed=8)
    assert longer.levels == (0.8, 0.1, 0.4, 0.8)
    assert longer.copies[0] is release.copies[0]
    assert longer.copies[3].equals(release.copies[0])
    assert len(release.copies) == 2
    agree = [(longer.copies[2] == longer.copies[k]).mean() for k in (0, 1)]
    # P(Y_j = Y_i) = ρ + (1 − ρ)/s, with ρ = p_w/p_b
    assert agree[0] == pytest.approx(0.5 + 0.5 / 4, abs=0.04)
    assert agree[1] == pytest.approx(0.25 + 0.75 / 4, abs=0.04)


def test_data_frames_perturb_category_columns_together_and_pass_the_rest_through(patients):
    X = pd.DataFrame(
        {
            "disease": patients,
            "age": np.arange(4000),
            "sex": pd.Categorical(np.arange(4000) % 2, categories=[0, 1]),
        }
    )
    X["sex"] = X["sex"].set_axis(X.index)
    copy = auditor.perturb(X, "uniform-multilevel", [0.5], seed=1).copies[0]
    assert list(copy) == list(X)
    assert copy["age"].equals(X["age"])
    assert copy.dtypes.equals(X.dtypes)
    # one product domain: both are kept together or drawn together
    both = ((copy["disease"] == X["disease"]) & (copy["sex"] == X["sex"])).mean()
    assert both == pytest.approx(0.5 + 0.5 / 8, abs=0.03)


def test_missing_categories_are_refused_without_telling_any():
    with pytest.raises(AuditorError, match="missing") as error:
        auditor.perturb(pd.Series(["secret", None]), "uniform", [0.5])
    assert "secret" not in str(error.value)


def test_attack_returns_posteriors_and_pooling_multilevel_copies_changes_nothing(patients):
    release = auditor.perturb(patients, "uniform-multilevel", [0.4, 0.8, 0.1], seed=7)
    best, everybody = (
        auditor.attack("posterior", release, coalition=[2]),
        auditor.attack("posterior", release),
    )
    np.testing.assert_allclose(everybody.posterior, best.posterior, atol=1e-14)
    assert everybody.values.equals(best.values)
    assert everybody.domain == (tuple(DISEASES.categories),)
    assert everybody.theory is None  # as `attack` answers for numbers without a closed form
    fresh = auditor.perturb(patients, "uniform", [0.4, 0.8, 0.1], seed=7)
    assert (
        auditor.attack("posterior", fresh).accuracy
        > auditor.attack("posterior", fresh, coalition=[2]).accuracy
    )
