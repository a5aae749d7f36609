"""The audit of uniform releases end to end."""

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.base import AuditorError
from auditor.schemes.replacement.law import UniformLaw


def scenario(**changes):
    return {
        "data": {"source": "salary-like", "rows": 40_000}, "seed": 4,
        "schemes": [{"name": name, "levels": [0.3, 0.1, 0.5]} for name in ("uniform", "uniform-multilevel")],
        "coalitions": ["subsets"], "attacks": ["posterior"],
    } | changes  # fmt: skip


@pytest.fixture(scope="module")
def result():
    knowledge = ["perfect", "uniform-prior", {"estimated": {"rows": 5000}}, {"known-records": 500}]
    metrics = ("reconstruction_probability", "accuracy", "posterior_max", "normalized_error")
    expect = [{"matches-theory": {"metric": metric}} for metric in metrics]
    expect += [{"no-collusion-gain": {"scheme": "uniform-multilevel"}}, "marginal-is-uniform"]
    return auditor.run(scenario(knowledge=knowledge, measures=["rho-breach", "belief-gap", "history-size"], expect=expect,
                                attacks=[{"name": "posterior", "predicates": {"top": [49, 50]}}]))  # fmt: skip


@pytest.mark.slow
def test_every_expectation_holds(result):
    assert [record.status for record in result.expectations] == ["holds"] * 6, [
        r.why for r in result.expectations
    ]


@pytest.mark.slow
def test_multilevel_gain_is_zero_and_fresh_gain_is_not(result):
    gains = result.frame().query("metric == 'collusion_gain' and knowledge == 'perfect'")
    multi = gains[(gains.scheme == "uniform-multilevel")]
    assert multi.value.abs().max() < 1e-12
    assert multi.theory.abs().max() < 1e-12
    fresh = gains[(gains.scheme == "uniform") & (gains.coalition.map(len) == 3)]
    assert fresh.value.item() > 0.1


@pytest.mark.slow
def test_belief_gap_is_computed_and_measured(result):
    gaps = result.frame().query("metric == 'belief_gap' and knowledge == 'perfect'")
    z = (gaps.value - gaps.theory) / gaps.std_error
    assert z.abs().max() < 5
    assert gaps[gaps.scheme == "uniform-multilevel"].theory.max() < 1e-25
    assert gaps[gaps.scheme == "uniform"].theory.min() > 1e-3


@pytest.mark.slow
def test_standard_errors_cover_as_they_say():
    # 100 replicates at 5 coalition cells: z-scores of the measured values about theory are standard
    # normal
    frame = auditor.run(
        scenario(data={"source": "occupation-like", "rows": 500}, replicates=100, coalitions=["singles"]),
    ).frame()  # fmt: skip
    cells = frame[frame.metric.isin(["reconstruction_probability", "accuracy"])]
    # the closed-form error bar, against the spread over replicates
    for _, group in cells.groupby(["scheme", "metric", "levels"]):
        assert group.value.std() == pytest.approx(group.std_error.iloc[0], rel=0.3)
        assert group.value.mean() == pytest.approx(
            group.theory.iloc[0], abs=5 * group.std_error.iloc[0] / 10
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bin": {"salary": {"width": 3}}}, "bin.salary.width is not a known field"),
        ({"bin": {"salary": {"equal-width": 0}}}, "equal-width"),
        ({"bin": {"salary": {"edges": [1, 1]}}}, "rising"),
        ({"bin": {"wage": {"quantile": 5}}}, "no column"),
        ({"categorical": {"salary": [1, 2]}}, "outside the declared domain"),
        ({"categorical": 3}, "list of columns"),
    ],
)
def test_mistakes_about_categories_are_explained(change, message):
    with pytest.raises(AuditorError, match=message):
        auditor.run(scenario(data={"source": "salary-like", "rows": 100} | change))


def test_a_uniform_scheme_needs_categories_and_an_additive_one_numbers(tmp_path):
    with pytest.raises(AuditorError, match=r"data\.bin"):
        auditor.run(scenario(data={"source": "census-like", "rows": 100}))
    pd.DataFrame({"disease": ["flu", "HIV"] * 30}).to_csv(tmp_path / "d.csv", index=False)
    with pytest.raises(AuditorError, match="no column of numbers"):
        auditor.run(scenario(data={"source": str(tmp_path / "d.csv"), "categorical": ["disease"]},
                             schemes=[{"name": "independent", "levels": [0.5]}]))  # fmt: skip


@pytest.mark.parametrize("names", [["age", "disease"], ["disease", "age"]])
def test_a_product_domain_has_its_attributes_in_the_order_given(tmp_path, names):
    people = pd.DataFrame({"age": np.arange(60) % 3, "disease": ["flu", "HIV"] * 30})
    people.to_csv(tmp_path / "people.csv", index=False)
    data = {"source": str(tmp_path / "people.csv"), "categorical": names}
    value = [{"age": 1, "disease": "flu"}[name] for name in names]

    def audited(value):
        attacks = [{"name": "posterior", "predicates": {"q": [value]}}]
        return set(auditor.run(scenario(data=data, attacks=attacks)).frame().attribute)

    assert "q" in audited(value)
    with pytest.raises(AuditorError, match=", ".join(names)):
        audited(value[::-1])


def test_bounds_on_growth_of_belief_are_measured_and_reached_by_the_adversary_they_are_about():
    result = auditor.run(scenario(data={"source": "uniform-values", "values": 4, "rows": 500},
                                  measures=[{"delta-growth": {"delta": 0.4}}, {"rho-breach": {"rho1": 0.2, "rho2": 0.6}}]))  # fmt: skip
    frame = result.frame()
    for name, multilevel in (("uniform", False), ("uniform-multilevel", True)):
        for record in frame[(frame.scheme == name) & (frame.metric == "growth_bound")].itertuples():
            # naive: every prior of a statement on a fine grid, every outcome of the coalition's law
            # under two values
            given = UniformLaw(tuple(record.levels), 4, multilevel).given_original()
            odds = (given[0] / given[1]).max()
            prior = np.linspace(1e-4, 1 - 1e-4, 9999)
            assert record.value == pytest.approx(
                (prior * odds / (prior * odds + 1 - prior) - prior).max(), abs=1e-6
            )
    largest = (
        frame[frame.metric.str.startswith("admissible_retention")]
        .drop_duplicates("metric")
        .set_index("metric")
        .value
    )
    R = lambda p: 1 + 4 * p / (1 - p)  # noqa: E731
    delta, rho = (
        largest["admissible_retention(delta 0.4)"],
        largest["admissible_retention(rho 0.2 0.6)"],
    )
    assert (np.sqrt(R(delta)) - 1) / (np.sqrt(R(delta)) + 1) == pytest.approx(0.4)
    assert 0.2 * R(rho) / (0.2 * R(rho) + 0.8) == pytest.approx(0.6)
