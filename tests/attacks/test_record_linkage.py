"""Record linkage: odds by hand and as the formula is printed, its limits under no noise and under too much, and how names are counted."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

import auditor
import auditor_attacks.record_linkage
from auditor.adversary.given import ExactMoments
from auditor.adversary.knowledge import KnownAttributes
from auditor.adversary.view import View
from auditor.audit.measures import naming
from auditor.audit.measures.naming import Naming
from auditor.errors import AuditorError, NotApplicable
from auditor.numerics.moments import Moments
from auditor.schemes.base.noise_law import DenseNoise, KroneckerNoise
from auditor_attacks.record_linkage import Comparison, RecordLinkage

NORMAL = {"source": "gaussian", "covariance": [[1.0, 0.5, 0.3], [0.5, 2.0, -0.4], [0.3, -0.4, 1.5]]}
EVERYBODY = 0.0005
"""Chance of naming one of 2,000."""


def linked(level=0.01, rows=400, known=("x1", "x2"), data=None, scheme="independent", **more):
    """Audit the attack; return its figures by metric and coalition."""
    result = auditor.run({
        "seed": 3, "data": data or NORMAL | {"rows": rows}, "knowledge": [{"known-attributes": list(known)}],
        "schemes": [{"name": scheme, "levels": level if isinstance(level, list) else [level]}],
        "attacks": [{"name": "record-linkage"} | more], "coalitions": ["singles", "all"],
    })  # fmt: skip
    assert not (
        reasons := [record.reason for record in result.measurements if record.status == "failed"]
    ), reasons
    return {
        (record.metric, record.coalition): record
        for record in result.measurements
        if record.attribute == "*"
    }


def fitted(K_X, mu, law, known, copies=1, **parameters):
    """Return the attack fitted to what an adversary knows; it looks at no row."""
    N = len(mu)
    view = View(
        attributes=tuple(f"x{j}" for j in range(N)), copies=tuple(range(1, copies + 1)), levels=(), law=law, centre=np.zeros(N),
        knowledge=KnownAttributes(tuple(f"x{j}" for j in known)), released=Moments.of(np.zeros((2, N * copies))), given=ExactMoments(mu, K_X),
    )  # fmt: skip
    return RecordLinkage(**parameters).fit(view, [])


# -- odds
# --------------------------------------------------------------------------------------------------------------


def test_odds_of_one_attribute_by_hand():
    """Variance 1, noise 1, the target's value 1: a row of 2 has log odds ½·4/2 − ½·1/1 = ½, a row of 0 has −½."""
    attack = fitted(np.eye(1), np.zeros(1), KroneckerNoise(np.eye(1), np.eye(1)), [0])
    np.testing.assert_allclose(
        attack.likeness(np.array([[1.0]]), [np.array([[2.0], [0.0]])]), [[0.5, -0.5]]
    )


def test_distance_by_hand():
    """Noise of variance 4: a row that is 2 off has ½·2²/4 = ½ less than the value itself; other attributes do not count."""
    law = KroneckerNoise(np.eye(1), np.diag([4.0, 1.0]))
    attack = fitted(np.eye(2), np.zeros(2), law, [0], by="distance")
    np.testing.assert_allclose(
        attack.likeness(np.array([[1.0]]), [np.array([[1.0, 9.0], [3.0, 0.0]])]), [[0.0, -0.5]]
    )


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_odds_are_the_formula_written_out(seed):
    """``log N(ȳ; m, K_{X|K} + Sigma_r) − log N(ȳ; mu, K_X + Sigma_r)`` but for what all rows share; two copies of any Gaussian law."""
    rng = np.random.default_rng(seed)
    root, noise = rng.normal(size=(3, 3)), rng.normal(size=(6, 6))
    K_X, mu, K, K_Z = (
        root @ root.T + 0.1 * np.eye(3),
        rng.normal(size=3),
        [0, 2],
        noise @ noise.T + 0.1 * np.eye(6),
    )
    known, copies = rng.normal(size=(4, 2)), [rng.normal(size=(5, 3)), rng.normal(size=(5, 3))]
    found = fitted(K_X, mu, DenseNoise(K_Z, 3), K, copies=2).likeness(known, copies)
    H = np.tile(np.eye(3), (2, 1))
    Sigma_r = np.linalg.inv(H.T @ np.linalg.inv(K_Z) @ H)
    combined = np.hstack(copies) @ (Sigma_r @ H.T @ np.linalg.inv(K_Z)).T
    B = K_X[:, K] @ np.linalg.inv(K_X[np.ix_(K, K)])
    anybody = multivariate_normal(mu, K_X + Sigma_r).logpdf(combined)
    for t, x_K in enumerate(known):
        own = (
            multivariate_normal(mu + B @ (x_K - mu[K]), K_X - B @ K_X[K] + Sigma_r).logpdf(combined)
            - anybody
        )
        np.testing.assert_allclose(
            found[t] - found[t, 0], own - own[0], atol=1e-6 * (1 + np.abs(own).max())
        )


def test_the_odds_are_calibrated_on_normal_data():
    """Named is, on average, the posterior probability of the likeliest row, ``mean max_i odds_i/Σ odds``; within four standard errors."""
    rng, root = np.random.default_rng(5), np.linalg.cholesky(np.array(NORMAL["covariance"]))
    x = rng.normal(size=(1500, 3)) @ root.T
    copy = x + 0.2 * rng.normal(size=x.shape)
    attack = fitted(
        np.array(NORMAL["covariance"]),
        np.zeros(3),
        KroneckerNoise(np.array([[0.04]]), np.eye(3)),
        [0, 1],
    )
    likeness = attack.likeness(x[:, :2], [copy])
    odds = np.exp(likeness - likeness.max(axis=1, keepdims=True))
    right, sure = (
        likeness.argmax(axis=1) == np.arange(len(x)),
        (odds / odds.sum(axis=1, keepdims=True)).max(axis=1),
    )
    assert 0.02 < right.mean() < 0.5
    assert abs(right.mean() - sure.mean()) < 4 * np.sqrt((sure * (1 - sure)).mean() / len(x))


# -- limits
# ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["odds", "distance"])
def test_hardly_any_noise_names_everybody(by):
    figures = linked(1e-12, by=by)
    assert figures["named", (1,)].value == 1.0
    assert figures["named_gain", (1,)].value == pytest.approx(1 - 1 / 400)


@pytest.mark.parametrize("by", ["odds", "distance"])
def test_noise_that_hides_all_leaves_chance(by):
    """One of 2,000, and ten of 2,000, within four standard errors of so many draws."""
    figures = linked(1e8, rows=2000, by=by)
    for k, metric in ((1, "named"), (10, "named(10)")):
        chance = k * EVERYBODY
        assert abs(figures[metric, (1,)].value - chance) < 4 * np.sqrt(chance / 2000)
        assert figures[metric.replace("named", "named_gain"), (1,)].value == pytest.approx(
            figures[metric, (1,)].value - chance
        )


def test_people_who_share_what_is_known_of_them_are_as_likely_as_one_another():
    """Without noise every second guess between two people of one age is right, and both are among the first ten."""
    x = np.column_stack([np.repeat(np.arange(50.0), 2), np.random.default_rng(1).normal(size=100)])
    law = KroneckerNoise(np.zeros((1, 1)), np.eye(2))
    likeness = fitted(np.cov(x.T), x.mean(axis=0), law, [0], by="distance").likeness(x[:, :1], [x])
    one = Naming(np.diag(likeness), np.zeros(100), np.zeros(100))
    one.compare(likeness, ~np.eye(100, dtype=bool))
    assert one.first(1).tolist() == [0.5] * 100
    assert one.first(10).tolist() == [1.0] * 100


def test_pooling_fresh_copies_names_more_and_pooling_corner_wave_copies_nobody():
    fresh, wave = (
        linked([0.01, 0.01], scheme="correlated"),
        linked([0.01, 0.02], scheme="corner-wave"),
    )
    assert fresh["named", (1, 2)].value > fresh["named", (1,)].value + 0.05
    assert wave["named", (1, 2)].value == wave["named", (1,)].value


def test_a_known_attribute_s_noise_is_told_by_another_s():
    """Two attributes of one common noise: the second, as good as constant, shows it; the odds see that, the distance does not."""
    law = KroneckerNoise(np.eye(1), np.array([[1.0, 1.0], [1.0, 1.0 + 1e-6]]))
    K_X, rng = np.diag([1.0, 1e-6]), np.random.default_rng(2)
    x = rng.normal(size=(300, 2)) * np.sqrt(np.diag(K_X))
    copy = x + rng.normal(size=(300, 1))
    shares = [
        (
            fitted(K_X, np.zeros(2), law, [0], by=by).likeness(x[:, :1], [copy]).argmax(axis=1)
            == np.arange(300)
        ).mean()
        for by in ("odds", "distance")
    ]
    assert shares[0] > 0.7
    assert shares[1] < 0.1


def test_one_known_attribute_is_enough_without_noise():
    assert linked(1e-12, known=["x1"])["named", (1,)].value == 1.0


LAPLACE = KroneckerNoise(np.diag([2.0, 8.0]), np.eye(3), distribution="laplace")
"""Scales 1 and 2."""


def test_under_laplace_noise_known_attributes_count_by_their_density_and_the_others_by_odds():
    """Of two copies: ``−|y_1 − x| − |y_2 − x|/2`` of each known attribute, and the normal odds of the third given the two."""
    rng = np.random.default_rng(8)
    root = rng.normal(size=(3, 3))
    K_X, known, copies = (
        root @ root.T,
        rng.normal(size=(4, 2)),
        [rng.normal(size=(5, 3)) for _ in range(2)],
    )
    found = fitted(K_X, np.zeros(3), LAPLACE, [0, 1], copies=2).likeness(known, copies)
    seen = 0.8 * copies[0] + 0.2 * copies[1]  # weights by variance, and the combination's is 1.6
    B = K_X[2, :2] @ np.linalg.inv(K_X[:2, :2])
    narrow, wide = K_X[2, 2] - B @ K_X[:2, 2] + 1.6, K_X[2, 2] + 1.6
    for t in range(4):
        density = sum(
            -np.abs(copy[:, :2] - known[t]).sum(axis=1) / scale
            for copy, scale in zip(copies, (1, 2), strict=True)
        )
        odds = 0.5 * seen[:, 2] ** 2 / wide - 0.5 * (seen[:, 2] - B @ known[t]) ** 2 / narrow
        apart = found[t] - density - odds
        np.testing.assert_allclose(apart, apart[0], atol=1e-9)


def test_uniform_noise_rules_rows_out():
    """Noise on ±√3: a row that is 2 off is impossible, whatever else there is; all attributes known, nothing is left for odds."""
    attack = fitted(
        np.eye(1), np.zeros(1), KroneckerNoise(np.eye(1), np.eye(1), distribution="uniform"), [0]
    )
    near, far = attack.likeness(np.array([[1.0]]), [np.array([[-0.5], [-1.0]])])[0]
    assert near == 0.0
    assert np.isfinite(far)
    assert far < -1e90


def test_of_one_process_the_second_copy_changes_no_likeness():
    law = KroneckerNoise(
        np.array([[2.0, 2.0], [2.0, 8.0]]), np.eye(3), distribution="laplace", one_process=True
    )
    rng = np.random.default_rng(9)
    known, copies = rng.normal(size=(4, 2)), [rng.normal(size=(5, 3)) for _ in range(2)]
    both = fitted(np.eye(3) + 0.5, np.zeros(3), law, [0, 1], copies=2).likeness(known, copies)
    alone = fitted(np.eye(3) + 0.5, np.zeros(3), law.of([1]), [0, 1]).likeness(known, copies[:1])
    np.testing.assert_allclose(both, alone, atol=1e-12)


def test_an_attribute_without_noise_decides_beside_laplace_noise():
    law = KroneckerNoise(np.eye(1), np.diag([0.0, 2.0]), distribution="laplace")
    found = fitted(np.eye(2), np.zeros(2), law, [0, 1]).likeness(
        np.array([[1.0, 0.0]]), [np.array([[1.0, 9.0], [1.1, 0.0]])]
    )
    assert found[0, 0] > found[0, 1]


def test_what_has_no_density_is_refused_with_a_reason():
    with pytest.raises(NotApplicable, match="by distance it is weighed"):
        fitted(np.eye(3), np.zeros(3), LAPLACE, [0], copies=2, noise=0.1)
    fitted(np.eye(3), np.zeros(3), LAPLACE, [0], copies=2, noise=0.1, by="distance")
    with pytest.raises(NotApplicable, match="needs the law"):
        fitted(np.eye(1), np.zeros(1), None, [0])
    with pytest.raises(AuditorError, match="known-attributes"):
        auditor.attack(
            "record-linkage",
            auditor.perturb(
                np.random.default_rng(1).normal(size=(9, 1)), "independent", [1.0], seed=1
            ),
        )


def test_the_audit_s_figures_are_distance_based_linkage_of_a_masked_file(tmp_path):
    """The survey's section 3.5: external originals with names beside a masked file; each is linked to its nearest masked record.

    Written out record by record, with fresh noise of two sizes and two people of one age and pay;
    chance is one of n."""
    n, std, rng = 120, np.array([0.1, 0.2, 0.5]), np.random.default_rng(35)
    original = rng.normal(size=(n, 3))
    original[1, :2] = original[0, :2]
    masked = original + std * rng.normal(size=original.shape)
    for name, table in (("original", original), ("masked", masked)):
        np.savetxt(
            tmp_path / f"{name}.csv",
            table,
            delimiter=",",
            header="age,pay,tax",
            comments="",
            fmt="%.17g",
        )
    np.savetxt(tmp_path / "noise.csv", np.diag(std**2), delimiter=",")
    result = auditor.run({
        "data": str(tmp_path / "original.csv"), "knowledge": [{"known-attributes": ["age", "pay"]}], "attacks": [{"name": "record-linkage", "by": "distance"}],
        "schemes": [{"name": "published", "copies": [str(tmp_path / "masked.csv")], "law": {"covariance": str(tmp_path / "noise.csv")}}],
    })  # fmt: skip
    found = {
        record.metric: record.value
        for record in result.measurements
        if record.metric.startswith("named")
    }
    linked, among_ten = 0, 0
    for person in range(n):
        distances = [
            sum(((original[person, a] - row[a]) / std[a]) ** 2 for a in (0, 1)) for row in masked
        ]
        nearest = sorted(range(n), key=distances.__getitem__)
        linked, among_ten = linked + (nearest[0] == person), among_ten + (person in nearest[:10])
    assert 0.2 < linked / n < 0.9
    assert found["named"] == linked / n
    assert found["named(10)"] == among_ten / n
    assert found["named"] - found["named_gain"] == pytest.approx(1 / n)


# -- copies without a law
# ----------------------------------------------------------------------------------------------


def test_without_a_law_distance_is_to_the_mean_of_the_copies_in_deviations():
    """Variances 4 and 1; a row whose copies' mean is 2 and 1 off: ½·(2²/4 + 1²/1) = 1 less than the value itself."""
    attack = fitted(np.diag([4.0, 1.0]), np.zeros(2), None, [0, 1], copies=2, by="distance")
    rows = [np.array([[1.0, 5.0], [4.0, 8.0]]), np.array([[1.0, 5.0], [2.0, 4.0]])]
    found = attack.likeness(np.array([[1.0, 5.0]]), rows)
    assert found[0, 0] - found[0, 1] == pytest.approx(1.0)
    # a row's values are taken as they are
    np.testing.assert_allclose(attack.rows(rows), [[1.0, 5.0], [3.0, 6.0]])


def test_groups_of_ten_name_one_in_ten_at_most_and_columns_alone_in_threes_nearly_everybody():
    grouped = linked([10], scheme="micro-aggregation", by="distance", rows=600)[("named", (1,))]
    assert grouped.value <= 0.1
    release = {"method": "univariate"}
    result = auditor.run({
        "seed": 3, "data": NORMAL | {"rows": 600}, "knowledge": [{"known-attributes": ["x1", "x2"]}], "coalitions": ["singles"],
        "schemes": [{"name": "micro-aggregation", "levels": [3]} | release], "attacks": [{"name": "record-linkage", "by": "distance"}],
    })  # fmt: skip
    assert next(record.value for record in result.measurements if record.metric == "named") > 0.9


# -- noise in what is known
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["odds", "distance"])
def test_noise_in_what_is_known_stands_in_the_formula(by):
    """The target's values are ``x_K + e``: the regression on them, and what is left of the record given them, are as printed."""
    rng = np.random.default_rng(7)
    root = rng.normal(size=(3, 3))
    K_X, mu, K, Sigma_r = (
        root @ root.T + 0.1 * np.eye(3),
        rng.normal(size=3),
        [0, 2],
        np.diag([0.3, 0.2, 0.4]),
    )
    D = np.diag([0.5 * K_X[0, 0], 0.0])
    known, copy = rng.normal(size=(4, 2)), rng.normal(size=(5, 3))
    attack = fitted(K_X, mu, DenseNoise(Sigma_r, 3), K, by=by, noise={"x0": 0.5})
    np.testing.assert_allclose(attack.known_noise, np.sqrt(np.diag(D)))
    found = attack.likeness(known, [copy])
    B = K_X[:, K] @ np.linalg.inv(K_X[np.ix_(K, K)] + D)
    for t, x_K in enumerate(known):
        if by == "odds":
            own = multivariate_normal(mu + B @ (x_K - mu[K]), K_X - B @ K_X[K] + Sigma_r).logpdf(
                copy
            )
            own -= multivariate_normal(mu, K_X + Sigma_r).logpdf(copy)
        else:
            own = multivariate_normal(x_K, Sigma_r[np.ix_(K, K)] + D).logpdf(copy[:, K])
        np.testing.assert_allclose(found[t] - found[t, 0], own - own[0], atol=1e-8)


def test_odds_from_noisy_values_are_calibrated():
    """As without: named is, on average, the probability of the likeliest row. Whoever takes noisy values for exact names fewer."""
    rng, root = np.random.default_rng(8), np.linalg.cholesky(np.array(NORMAL["covariance"]))
    x = rng.normal(size=(1500, 3)) @ root.T
    copy = x + 0.02 * rng.normal(size=x.shape)
    known = x[:, :2] + np.sqrt([1.0, 2.0]) * [0.5, 0.01] * rng.normal(size=(1500, 2))
    right = {}
    for noise in ({"x0": 0.25, "x1": 1e-4}, 0.0):
        law = KroneckerNoise(np.array([[4e-4]]), np.eye(3))
        likeness = fitted(
            np.array(NORMAL["covariance"]), np.zeros(3), law, [0, 1], noise=noise
        ).likeness(known, [copy])
        odds = np.exp(likeness - likeness.max(axis=1, keepdims=True))
        named, sure = (
            likeness.argmax(axis=1) == np.arange(len(x)),
            (odds / odds.sum(axis=1, keepdims=True)).max(axis=1),
        )
        right[noise == 0.0] = (
            named.mean(),
            sure.mean(),
            np.sqrt((sure * (1 - sure)).mean() / len(x)),
        )
    share, expected, error = right[False]
    assert abs(share - expected) < 4 * error
    assert share > right[True][0] + 0.02


def test_from_no_noise_in_what_is_known_to_all():
    exact, none, some, all_ = (
        linked(1e-4, **more)["named", (1,)].value
        for more in ({}, {"noise": 0.0}, {"noise": 0.01}, {"noise": 1e6})
    )
    assert exact == none
    assert exact > some + 0.1
    assert some > all_ + 0.1
    assert all_ < 0.02


def test_every_coalition_s_adversary_knows_the_same():
    """So that of corner-wave copies the best names as many as both, to the last."""
    figures = linked([0.001, 0.002], scheme="corner-wave", noise={"x1": 0.01})
    assert figures["named", (1, 2)].value == figures["named", (1,)].value


def test_noise_of_no_attribute_is_refused():
    with pytest.raises(AuditorError, match="no attribute 'income'; it has x1, x2, x3"):
        linked(noise={"income": 0.1})


# -- all targets at once
# ------------------------------------------------------------------------------------------------


def assigned(likeness, seed=0):
    """Name the people of a likeness of all rows to all of them; return how many are right."""

    class Whole:
        assigns, known_noise = True, None

        def likeness(self, known, copies):
            return likeness[:, copies[0][:, 0].astype(int)]

    one, rows = Naming(), np.arange(len(likeness), dtype=float)[:, None]
    naming.name_rows(
        [one],
        [Whole()],
        [(1,)],
        lambda: ((0, a, [a]) for a in np.array_split(rows, 3)),
        len(rows),
        np.array([0]),
        seed,
    )
    return one.right


def test_two_people_are_never_one_row():
    """Both are likeliest the first row; but the second person by more, and the first is next likeliest the second."""
    np.testing.assert_array_equal(assigned(np.array([[5.0, 4.0], [3.0, 0.0]])), [0.0, 0.0])
    np.testing.assert_array_equal(assigned(np.array([[3.0, 0.0], [5.0, 4.0]])), [1.0, 1.0])


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_the_assignment_is_the_best_of_all_permutations(seed):
    likeness = np.random.default_rng(seed).normal(size=(5, 5))
    best = max(
        permutations(range(5)), key=lambda rows: sum(likeness[t, row] for t, row in enumerate(rows))
    )
    np.testing.assert_array_equal(assigned(likeness), np.array(best) == np.arange(5))


def test_rows_that_are_all_alike_are_named_by_chance():
    """Not in the order in which people and rows happen to stand, which would name everybody: of 300 one is right on average."""
    right = [assigned(np.zeros((300, 300)), seed).sum() for seed in range(20)]
    # matches of random permutations: mean and variance 1
    assert abs(np.mean(right) - 1.0) < 4 * np.sqrt(1 / 20)


def test_a_whole_table_is_named_better_than_one_by_one():
    alone, whole = (linked(0.01, assignment=choice) for choice in (False, True))
    assert whole["named", (1,)].value > alone["named", (1,)].value + 0.05
    assert whole["named_gain", (1,)].value == pytest.approx(whole["named", (1,)].value - 1 / 400)
    assert ("named(10)", (1,)) not in whole


def test_of_more_rows_fewer_people_are_assigned_and_of_too_many_none(monkeypatch):
    monkeypatch.setattr(naming, "MOST_ASSIGNED", 400 * 50)
    record = linked(1e-6, assignment=True)["named", (1,)]
    assert record.value == 1.0
    monkeypatch.setattr(auditor_attacks.record_linkage, "MOST_ROWS", 399)
    (record,) = linked(1e-6, assignment=True).values()
    assert (record.status, "at most 20,000 rows" in record.reason) == ("not-applicable", True)


# -- how names are counted
# ---------------------------------------------------------------------------------------------


def test_names_are_counted_by_hand():
    """One row likelier than the target's and one as likely: never first, one of the first two every second time."""
    one = Naming(np.array([5.0]), np.zeros(1), np.zeros(1))
    one.compare(np.array([[7.0, 5.0, 5.0, 1.0]]), np.array([[True, False, True, True]]))
    assert (one.above[0], one.equal[0], one.rows) == (1, 1, 4)
    assert [one.first(k)[0] for k in (1, 2, 3, 10)] == [0.0, 0.5, 1.0, 1.0]


@pytest.mark.parametrize("chunk", [700, 2**18])
@pytest.mark.parametrize("cuts", [[], [70], [1, 64, 65, 299]])
def test_names_are_those_of_the_whole_matrix_in_any_blocks(monkeypatch, cuts, chunk):
    """Every third row's person is looked for; beside a loop over the likeness of all rows to all of them."""
    monkeypatch.setattr(naming, "MOST_TARGETS", 100)
    monkeypatch.setattr(naming, "CHUNK_VALUES", chunk)
    x = np.random.default_rng(4).normal(size=(300, 2))
    copy = x + 0.05 * np.random.default_rng(6).normal(size=x.shape)
    attack = fitted(np.eye(2), np.zeros(2), KroneckerNoise(np.array([[0.0025]]), np.eye(2)), [0])
    one = Naming()
    parts = list(zip(np.split(x, cuts), np.split(copy, cuts), strict=True))
    naming.name_rows(
        [one], [attack], [(1,)], lambda: ((0, a, [b]) for a, b in parts), 300, np.array([0])
    )
    likeness = attack.likeness(x[::3, :1], [copy])
    assert one.above.tolist() == [float((row > row[3 * t]).sum()) for t, row in enumerate(likeness)]
    assert one.rows == 300
    assert not one.equal.any()


def test_a_sample_of_targets_says_what_all_say(monkeypatch):
    """Every fourth person is looked for among everybody, within four standard errors of what all say."""
    everybody = linked(0.01, rows=1600)["named", (1,)]
    monkeypatch.setattr(naming, "MOST_TARGETS", 400)
    some = linked(0.01, rows=1600)["named", (1,)]
    assert some.std_error > 1.5 * everybody.std_error
    assert abs(some.value - everybody.value) < 4 * some.std_error


@pytest.mark.parametrize(
    ("wrong", "told"),
    [(None, "no likeness"), (np.zeros((1, 1)), "shape"), (np.full((64, 64), np.nan), "finite")],
)
def test_the_audit_does_not_trust_a_likeness(monkeypatch, wrong, told):
    monkeypatch.setattr(Comparison, "likeness", lambda self, known, copies: wrong)
    with pytest.raises(AssertionError, match=told):
        linked()
