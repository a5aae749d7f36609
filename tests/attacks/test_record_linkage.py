"""Record linkage."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import multivariate_normal

import auditor
from auditor.adversary.knowledge import KnownAttributes
from auditor.adversary.view import ExactMoments, View
from auditor.audit.measures import record_disclosure
from auditor.audit.measures.record_disclosure import Disclosures
from auditor.base import AuditorError, NotApplicable
from auditor.numerics.blocks import Moments
from auditor.schemes.base.noise_law import DenseNoise, KroneckerNoise
from auditor_attacks.record_linkage import Comparison, RecordLinkage
from tests.audited import cells

NORMAL = {"source": "gaussian", "covariance": [[1.0, 0.5, 0.3], [0.5, 2.0, -0.4], [0.3, -0.4, 1.5]]}
EVERYBODY = 0.0005
"""Chance of naming one of 2,000."""


def linked(level=0.01, rows=400, known=("x1", "x2"), data=None, scheme="independent", **more):
    """Audit the attack."""
    result = auditor.run({
        "seed": 3, "data": data or NORMAL | {"rows": rows}, "knowledge": [{"known-attributes": list(known)}],
        "schemes": [{"name": scheme, "levels": level if isinstance(level, list) else [level]}],
        "attacks": [{"name": "record-linkage"} | more], "coalitions": ["singles", "all"],
    })  # fmt: skip
    assert not (
        reasons := [record.reason for record in result.measurements if record.status == "failed"]
    ), reasons
    return {(record.metric, record.coalition): record for record in cells(result, attribute="*")}


def fitted(K_X, mu, law, known, copies=1, **parameters):
    N = len(mu)
    view = View(
        attributes=tuple(f"x{j}" for j in range(N)), copies=tuple(range(1, copies + 1)), levels=(), law=law, centre=np.zeros(N),
        knowledge=KnownAttributes(tuple(f"x{j}" for j in known)), released=Moments.of(np.zeros((2, N * copies))), given=ExactMoments(mu, K_X),
    )  # fmt: skip
    return RecordLinkage(**parameters).fit(view, [])


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_odds_are_the_formula_written_out(seed):
    """``log N(ȳ."""
    rng = np.random.default_rng(seed)
    root, noise = rng.normal(size=(3, 3)), rng.normal(size=(6, 6))
    K_X, mu, K, K_Z = (
        root @ root.T + 0.1 * np.eye(3), rng.normal(size=3), [0, 2],
        noise @ noise.T + 0.1 * np.eye(6),
    )  # fmt: skip
    known, copies = rng.normal(size=(4, 2)), [rng.normal(size=(5, 3)), rng.normal(size=(5, 3))]
    found = fitted(K_X, mu, DenseNoise(K_Z, 3), K, copies=2).likeness(known, copies)
    H = np.tile(np.eye(3), (2, 1))
    Sigma_r = np.linalg.inv(H.T @ np.linalg.inv(K_Z) @ H)
    combined = np.hstack(copies) @ (Sigma_r @ H.T @ np.linalg.inv(K_Z)).T
    B = K_X[:, K] @ np.linalg.inv(K_X[np.ix_(K, K)])
    anybody = multivariate_normal(mu, K_X + Sigma_r).logpdf(combined)
    for t, x_K in enumerate(known):
        own = (multivariate_normal(mu + B @ (x_K - mu[K]), K_X - B @ K_X[K] + Sigma_r).logpdf(combined) - anybody)  # fmt: skip
        np.testing.assert_allclose(
            found[t] - found[t, 0], own - own[0], atol=1e-6 * (1 + np.abs(own).max())
        )


@pytest.mark.parametrize("by", ["odds", "distance"])
def test_noise_that_hides_all_leaves_chance(by):
    figures = linked(1e8, rows=2000, by=by)
    for k, metric in ((1, "named"), (10, "named(10)")):
        chance = k * EVERYBODY
        assert abs(figures[metric, (1,)].value - chance) < 4 * np.sqrt(chance / 2000)
        assert figures[metric.replace("named", "named_gain"), (1,)].value == pytest.approx(
            figures[metric, (1,)].value - chance
        )


LAPLACE = KroneckerNoise(np.diag([2.0, 8.0]), np.eye(3), distribution="laplace")
"""Scales 1 and 2."""


def test_what_has_no_density_is_refused_with_a_reason():
    with pytest.raises(NotApplicable, match="by distance it is weighed"):
        fitted(np.eye(3), np.zeros(3), LAPLACE, [0], copies=2, noise=0.1)
    fitted(np.eye(3), np.zeros(3), LAPLACE, [0], copies=2, noise=0.1, by="distance")
    with pytest.raises(NotApplicable, match="needs the law"):
        fitted(np.eye(1), np.zeros(1), None, [0])
    with pytest.raises(AuditorError, match="known-attributes"):
        auditor.attack(
            "record-linkage",
            auditor.perturb(np.random.default_rng(1).normal(size=(9, 1)), "independent", [1.0], seed=1),
        )  # fmt: skip


def test_the_audit_s_figures_are_distance_based_linkage_of_a_masked_file(tmp_path):
    """The survey's section 3.5."""
    n, std, rng = 120, np.array([0.1, 0.2, 0.5]), np.random.default_rng(35)
    original = rng.normal(size=(n, 3))
    original[1, :2] = original[0, :2]
    masked = original + std * rng.normal(size=original.shape)
    for name, table in (("original", original), ("masked", masked)):
        np.savetxt(
            tmp_path / f"{name}.csv", table, delimiter=",", header="age,pay,tax", comments="",
            fmt="%.17g",
        )  # fmt: skip
    np.savetxt(tmp_path / "noise.csv", np.diag(std**2), delimiter=",")
    result = auditor.run({
        "data": str(tmp_path / "original.csv"), "knowledge": [{"known-attributes": ["age", "pay"]}], "attacks": [{"name": "record-linkage", "by": "distance"}],
        "schemes": [{"name": "published", "copies": [str(tmp_path / "masked.csv")], "law": {"covariance": str(tmp_path / "noise.csv")}}],
    })  # fmt: skip
    found = {record.metric: record.value for record in result.measurements if record.metric.startswith("named")}  # fmt: skip
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


def test_noise_of_no_attribute_is_refused():
    with pytest.raises(AuditorError, match="no attribute 'income'; it has x1, x2, x3"):
        linked(noise={"income": 0.1})


def assigned(likeness, seed=0):
    class Whole:
        assigns, known_noise = True, None

        def likeness(self, known, copies):
            return likeness[:, copies[0][:, 0].astype(int)]

    one, rows = Disclosures(), np.arange(len(likeness), dtype=float)[:, None]
    record_disclosure.name_rows(
        [one], [Whole()], [(1,)], lambda: ((0, a, [a]) for a in np.array_split(rows, 3)), len(rows),
        np.array([0]), seed,
    )  # fmt: skip
    return one.right


def test_two_people_are_never_one_row():
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


def test_names_are_counted_by_hand():
    one = Disclosures(own=np.array([5.0]))
    one.compare(np.array([[7.0, 5.0, 5.0, 1.0]]), np.array([[True, False, True, True]]))
    assert [np.sum(one.sums[name]) for name in ("above", "equal", "compared")] == [1, 1, 4]
    assert [one.first(k)[0] for k in (1, 2, 3, 10)] == [0.0, 0.5, 1.0, 1.0]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [(None, "no likeness"), (np.zeros((1, 1)), "shape"), (np.full((64, 64), np.nan), "finite")],
)
def test_the_audit_does_not_trust_a_likeness(monkeypatch, wrong, told):
    monkeypatch.setattr(Comparison, "likeness", lambda self, known, copies: wrong)
    with pytest.raises(AssertionError, match=told):
        linked()
