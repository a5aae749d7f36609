"""Releases of categories from Python."""

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.base.errors import AuditorError

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
