"""The audit of uniform releases end to end: figures against theory, wrong schemes caught, nothing about single records told."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest

import auditor
from auditor.audit.categorical import error_bars
from auditor.audit.categorical.copy_figures import test_of_chances as chi_square
from auditor.data.load import load_table
from auditor.errors import AuditorError
from auditor.numerics.random_streams import stream
from auditor.registry import _plugins, get, register
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import Copies, UniformScheme, stream_of
from auditor.schemes.replacement.draws import replacements
from auditor.schemes.replacement.law import UniformLaw, transition_matrix


def pair_counts(x, y, size):
    """Return how many records show each pair of values, shape (s, s)."""
    return np.bincount(x.astype(np.intp) * size + y, minlength=size * size).reshape(size, size)


def scenario(**changes):
    return {
        "data": {"source": "salary-like", "rows": 40_000},
        "seed": 4,
        "schemes": [
            {"name": name, "levels": [0.3, 0.1, 0.5]} for name in ("uniform", "uniform-multilevel")
        ],
        "coalitions": ["subsets"],
        "attacks": ["posterior"],
    } | changes


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


def test_multilevel_gain_is_zero_and_fresh_gain_is_not(result):
    gains = result.frame().query("metric == 'collusion_gain' and knowledge == 'perfect'")
    multi = gains[(gains.scheme == "uniform-multilevel")]
    assert multi.value.abs().max() < 1e-12
    assert multi.theory.abs().max() < 1e-12
    fresh = gains[(gains.scheme == "uniform") & (gains.coalition.map(len) == 3)]
    assert fresh.value.item() > 0.1


def test_belief_gap_is_computed_and_measured(result):
    gaps = result.frame().query("metric == 'belief_gap' and knowledge == 'perfect'")
    z = (gaps.value - gaps.theory) / gaps.std_error
    assert z.abs().max() < 5
    assert gaps[gaps.scheme == "uniform-multilevel"].theory.max() < 1e-25
    assert gaps[gaps.scheme == "uniform"].theory.min() > 1e-3


def test_largest_belief_gap_is_over_every_outcome_and_by_hand(result):
    gaps = result.frame().query("metric == 'largest_belief_gap' and knowledge == 'perfect'")
    assert gaps[gaps.scheme == "uniform-multilevel"].value.max() < 1e-13
    small = auditor.run(
        scenario(
            data={"source": "uniform-values", "values": 3, "rows": 50},
            measures=["belief-gap"],
            coalitions=["all"],
        )
    )
    found = (
        small.frame().query("metric == 'largest_belief_gap' and scheme == 'uniform'").value.item()
    )
    q = load_table(
        "uniform-values", parameters={"values": 3}, rows=50, rng=stream(4, "data")
    ).categorical.prior
    joint = UniformLaw((0.3, 0.1, 0.5), 3, False).joint(q)
    alone = joint.sum(axis=(1, 2), keepdims=True)
    assert found == pytest.approx(
        np.sqrt(((joint / joint.sum(axis=0) - alone / alone.sum(axis=0)) ** 2).sum(axis=0)).max(),
        abs=1e-12,
    )


@pytest.mark.parametrize("implementation", ["process", "multi-pert"])
def test_timing_requests_changes_no_copy(implementation):
    schemes = [
        {
            "name": "uniform-multilevel",
            "implementation": implementation,
            "levels": [0.3, 0.1, 0.5, 0.3],
            "already-out": 2,
        }
    ]
    plain, timed = (
        auditor.run(scenario(schemes=schemes, **more)).frame()
        for more in ({}, {"measures": ["seconds"]})
    )
    assert 0 < timed.query("metric == 'seconds'").value.item() < 60
    assert timed.query("metric != 'seconds'").value.tolist() == plain.value.tolist()


def test_growth_does_not_exceed_its_bound_nor_history_its_law(result):
    frame = result.frame()
    growth = frame[(frame.metric == "delta_growth") & frame.theory.notna()]
    assert (growth.value <= growth.theory + 1e-12).all()
    history = frame[frame.metric == "history_size"]
    assert abs(history.value - history.theory).item() < 5 * history.std_error.item()
    assert {"top", "*"} == set(frame[frame.metric == "reconstruction_probability"].attribute)


@pytest.mark.slow
def test_standard_errors_cover_as_they_say():
    # 100 replicates at 5 coalition cells: z-scores of the measured values about theory are standard
    # normal
    frame = auditor.run(
        scenario(
            data={"source": "occupation-like", "rows": 500}, replicates=100, coalitions=["singles"]
        )
    ).frame()
    cells = frame[frame.metric.isin(["reconstruction_probability", "accuracy"])]
    # the closed-form error bar, against the spread over replicates
    for _, group in cells.groupby(["scheme", "metric", "levels"]):
        assert group.value.std() == pytest.approx(group.std_error.iloc[0], rel=0.3)
        assert group.value.mean() == pytest.approx(
            group.theory.iloc[0], abs=5 * group.std_error.iloc[0] / 10
        )


# -- wrong schemes
# -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def next_only():
    """A scheme that claims the multilevel law but draws from the next less perturbed copy alone."""

    class NextOnlyCopies(Copies):
        def __init__(self, original, size, key):
            super().__init__(original, size, key)
            self._kept = []

        def skip(self, level, key=None):
            super().skip(level, key)
            above = [
                (p, y) for p, y in zip(self.levels[:-1], self._kept, strict=True) if p >= level
            ]
            p, y = min(above, key=lambda pair: pair[0]) if above else (1.0, self.original)
            rng = stream_of(key or self.key, len(self.levels))
            kept = rng.random(y.size) < level / p
            self._kept.append(np.where(kept, y, replacements(rng, y.size, self.size)))

        def copy(self, number):
            return self._kept[number - 1]

    @register
    class NextOnly(UniformScheme):
        """Broken: forgets the more perturbed neighbour."""

        name = "next-only"
        multilevel = True

        def copies(self, original, size, key):
            return NextOnlyCopies(original, size, key)

    yield "next-only"
    del _plugins["scheme"]["next-only"]


def test_a_scheme_that_draws_otherwise_than_it_says_is_caught_on_the_data(next_only):
    document = scenario(
        data={"source": "salary-like", "rows": 200_000},
        schemes=[{"name": next_only, "levels": [0.6, 0.3, 0.5]}],
        coalitions=[{"copies": [2, 3]}],
        expect=["no-collusion-gain", "marginal-is-uniform"],
    )
    gain, marginal, law = auditor.run(document).expectations
    assert (law.expectation, law.status) == ("noise-follows-law", "fails")  # asked for or not
    assert gain.status == "fails"
    assert "on the data" in gain.why
    assert marginal.status == "holds"


def test_marginal_test_has_uniform_p_values_and_rejects_another_level():
    rng = np.random.default_rng(0)
    x = rng.choice(6, 3000, p=[0.4, 0.3, 0.2, 0.08, 0.015, 0.005]).astype(np.uint8)
    p_values = []
    for seed in range(300):
        copies = get("scheme", "uniform")().copies(x, 6, Key(seed, "u"))
        p_values.append(
            chi_square(pair_counts(x, copies.ask(0.4), 6), transition_matrix(0.4, 6))[0]
        )
    assert kstest(p_values, "uniform").pvalue > 1e-4
    assert chi_square(pair_counts(x, copies.copy(1), 6), transition_matrix(0.5, 6))[0] < 1e-6
    assert chi_square(pair_counts(x, x, 6), transition_matrix(1.0, 6))[0] == 1.0
    assert chi_square(pair_counts(x, (x + 1) % 6, 6), transition_matrix(1.0, 6))[0] == 0.0


# -- data
# -------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "prior"), [("occupation-like", "inversion"), ("salary-like", "em")]
)
def test_values_that_nobody_has_and_copies_that_say_all_or_nothing(source, prior, monkeypatch):
    monkeypatch.setattr(error_bars, "REDRAWS", 5)  # the error bars of 59 are not looked at
    # 60 records leave values of the domain unused: at retention 1 these are never shown, and an
    # estimated prior may rule out what is shown
    schemes = [
        {"name": name, "levels": [0.3, 0.0, 1.0, 0.3]} for name in ("uniform", "uniform-multilevel")
    ]
    knowledge = ["perfect", "uniform-prior", {"estimated": {"rows": 5}}, {"known-records": 5}]
    measures = ["rho-breach", "delta-growth", "belief-gap", "marginal-gap", "history-size"]
    result = auditor.run(scenario(data={"source": source, "rows": 60}, schemes=schemes, knowledge=knowledge, measures=measures,
                                  attacks=[{"name": "posterior", "prior": prior}]))  # fmt: skip
    assert set(result.frame().status) == {"ok"}
    frame = result.frame().query(
        "knowledge == 'perfect' and metric in ['accuracy', 'reconstruction_probability']"
    )
    original = frame[frame.coalition.map(lambda copies: 3 in copies)]
    assert set(original.value) == {1.0}
    theory = original.theory.dropna()
    assert len(theory) >= 2 + 2 * 8  # of every multilevel coalition, and of single fresh copies
    assert theory.to_numpy() == pytest.approx(1.0)


def test_values_without_an_order_have_the_normalized_error_of_their_indicators(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "disease": rng.choice(["flu", "HIV", "none"], 3000, p=[0.6, 0.1, 0.3]),
            "sex": rng.choice(["f", "m"], 3000),
        }
    )
    frame.to_csv(tmp_path / "people.csv", index=False)
    document = scenario(data={"source": str(tmp_path / "people.csv"), "categorical": ["disease", "sex"]}, knowledge=["perfect", "uniform-prior"],
                        expect=["matches-theory"])  # fmt: skip
    result = auditor.run(document)
    assert result.expectations[0].status == "holds", result.expectations[0].why
    cells = result.frame().query(
        "metric in ['normalized_error', 'reconstruction_probability'] and attribute == '*'"
    )
    index = ["scheme", "knowledge", cells.coalition.map(tuple)]
    theory = cells.set_index([*index, "metric"]).theory.unstack().loc[:, "perfect", :].dropna()
    q = frame.value_counts(normalize=True).to_numpy()
    assert len(theory) >= 3 + 7
    np.testing.assert_allclose(
        theory.normalized_error, (1 - theory.reconstruction_probability) / (1 - q @ q), atol=1e-12
    )
    # naive: one-hot originals, the posterior from Python, squared errors over variances
    release = auditor.perturb(frame.astype("category"), "uniform", [0.3, 0.5], seed=1)
    estimate = auditor.attack("posterior", release, coalition=[2])
    labels = list(zip(frame["disease"], frame["sex"], strict=True))
    domain = [(d, s) for d in estimate.domain[0] for s in estimate.domain[1]]
    hot = np.array([[label == value for value in domain] for label in labels], dtype=float)
    naive = ((estimate.posterior - hot) ** 2).sum() / 3000 / hot.var(axis=0).sum()
    single = cells.query(
        "scheme == 'uniform' and knowledge == 'perfect' and metric == 'normalized_error'"
    )
    measured = single[single.coalition.map(list).map(lambda copies: copies == [3])]
    assert naive == pytest.approx(measured.value.item(), abs=5 * 2**0.5 * measured.std_error.item())
    pairs = result.frame().query(
        "metric in ['normalized_error', 'distortion'] and attribute == '*'"
    )
    D = pairs.set_index(
        ["scheme", "knowledge", pairs.coalition.map(tuple), "metric"]
    ).value.unstack()
    # N·D/Tr(K_X)
    np.testing.assert_allclose(D.normalized_error, len(domain) * D.distortion / (1 - q @ q))


@pytest.mark.parametrize("names", [["age", "disease"], ["disease", "age"]])
def test_a_product_domain_has_its_attributes_in_the_order_given(tmp_path, names):
    pd.DataFrame({"age": np.arange(60) % 3, "disease": ["flu", "HIV"] * 30}).to_csv(
        tmp_path / "people.csv", index=False
    )
    data = {"source": str(tmp_path / "people.csv"), "categorical": names}
    value = {"age": 1, "disease": "flu"}
    attacks = [{"name": "posterior", "predicates": {"q": [[value[name] for name in names]]}}]
    assert "q" in set(auditor.run(scenario(data=data, attacks=attacks)).frame().attribute)
    wrong = [{"name": "posterior", "predicates": {"q": [[value[name] for name in names[::-1]]]}}]
    with pytest.raises(AuditorError, match=", ".join(names)):
        auditor.run(scenario(data=data, attacks=wrong))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bin": {"salary": {"width": 3}}}, "equal-width"),
        ({"bin": {"salary": {"equal-width": 0}}}, "number of bins"),
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


# -- both worlds
# ---------------------------------------------------------------------------------------------------------------


def test_additive_copies_of_a_binned_column_have_the_same_measures():
    document = scenario(
        data={
            "source": "cps",
            "columns": ["salary"],
            "rows": 20_000,
            "bin": {"salary": {"quantile": 10}},
        },
        schemes=[{"name": name, "levels": [0.5, 1.0]} for name in ("correlated", "corner-wave")],
        coalitions=["subsets"],
        expect=[
            {"matches-theory": {"metric": m}}
            for m in ("accuracy", "mutual_information", "normalized_error")
        ],
    )
    result = auditor.run(document)
    assert [record.status for record in result.expectations] == ["holds"] * 3
    frame = result.frame()
    gains = (
        frame[(frame.metric == "collusion_gain") & (frame.coalition.map(len) == 2)]
        .set_index("scheme")
        .theory
    )
    assert gains["corner-wave"] == pytest.approx(0.0, abs=1e-9)
    assert gains["correlated"] > 0.005


def test_posterior_of_a_bin_by_naive_bayes():
    from auditor.audit.categorical.binned_columns import Binned, infer
    from auditor.data.columns.categorical_table import bin_codes, bins_between, product
    from auditor.data.table import Table
    from auditor.schemes.base.noise_law import KroneckerNoise

    x = np.random.default_rng(0).gamma(2.0, 1.0, 400)
    edges = np.quantile(x, np.linspace(0, 1, 5))
    codes = bin_codes(x, edges)
    data = product([bins_between("x", edges)], [codes])
    T = x + 0.5 * np.random.default_rng(1).standard_normal(400)
    weights = np.exp(-0.5 * ((T[:, None] - x) / 0.5) ** 2)
    P = np.stack([weights[:, codes == c].sum(axis=1) for c in range(4)], axis=1)
    P /= P.sum(axis=1, keepdims=True)
    law = KroneckerNoise(np.array([[0.25]]), np.eye(1))
    sums, _ = infer(
        Binned(Table(("x",), x[:, None]), data, 0),
        lambda: [(0, x[:, None], [T[:, None]])],
        law,
        [(1,)],
    )[1,]
    assert sums.mean("reconstruction_probability") == pytest.approx(
        P[np.arange(400), codes].mean(), abs=2e-3
    )


def test_command_line_perturbs_categories(tmp_path):
    from auditor.runs.copy_files import write_copies

    pd.DataFrame({"disease": ["flu", "HIV"] * 30, "age": range(60)}).to_csv(
        tmp_path / "people.csv", index=False
    )
    paths = write_copies(
        str(tmp_path / "people.csv"),
        "uniform-multilevel",
        [1.0, 0.5],
        3,
        tmp_path / "out",
        columns=["disease"],
    )
    first, second = (pd.read_csv(path) for path in paths[:2])
    assert first["disease"].tolist() == ["flu", "HIV"] * 30
    assert set(second["disease"]) == {"flu", "HIV"}
    assert list(second) == ["disease"]
    with pytest.raises(AuditorError, match="--columns"):
        write_copies(
            str(tmp_path / "people.csv"), "uniform-multilevel", [1.0, 0.5], 3, tmp_path / "other"
        )


@pytest.mark.parametrize(
    ("predicates", "message"),
    [
        ({"q": []}, "1"),
        ({"q": ["nobody has this"]}, r"attacks\[0\].*not in the domain"),
        ({"q": [["flu", 1]]}, "one of each of age, disease, in this order"),
    ],
)
def test_statements_about_values_that_do_not_exist_are_refused_before_anything_runs(
    tmp_path, predicates, message
):
    pd.DataFrame({"age": np.arange(60) % 3, "disease": ["flu", "HIV"] * 30}).to_csv(
        tmp_path / "people.csv", index=False
    )
    data = {"source": str(tmp_path / "people.csv"), "categorical": ["age", "disease"]}
    with pytest.raises(AuditorError, match=message):
        auditor.run(scenario(data=data, attacks=[{"name": "posterior", "predicates": predicates}]))
    right = auditor.run(
        scenario(
            data=data,
            attacks=[{"name": "posterior", "predicates": {"q": [[1, "flu"], [2, "HIV"]]}}],
        )
    )
    assert "q" in set(right.frame().attribute)


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


@pytest.mark.parametrize("options", [{"rho1": 0.6, "rho2": 0.5}, {"rho1": 0.1, "rho2": 1.5}])
def test_bounds_that_are_no_probabilities_are_refused(options):
    with pytest.raises(AuditorError, match=r"rho2.*must be"):
        auditor.run(scenario(measures=[{"rho-breach": options}]))
