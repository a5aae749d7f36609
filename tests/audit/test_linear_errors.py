"""The moment engine against rows, its error bars against brute force."""

import numpy as np
import pytest

import auditor
from auditor.audit.numeric.linear_errors import Maps, audit_linear, crossed, spread
from auditor.numerics.blocks import Moments, centred
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor_attacks.llse import llse_weights
from tests.audited import as_audited, cells


def random_maps(rng, coalitions, N, M):
    weights = np.zeros((len(coalitions), N, M * N))
    for place, coalition in enumerate(coalitions):
        for copy in coalition:
            weights[place][:, (copy - 1) * N : copy * N] = rng.normal(size=(N, N))
    return Maps(weights, rng.normal(size=(len(coalitions), N)), fixed=True)


@pytest.mark.parametrize(
    "knowledge",
    ["perfect", {"estimated": {"rows": 150}}, {"estimated": {"rows": 150, "structure": "none"}}],
)
@pytest.mark.parametrize("scheme", ["independent", "correlated", "corner-wave"])
def test_an_audit_measures_what_its_attacks_reconstruct(scheme, knowledge):
    X = np.random.default_rng(1).lognormal(size=(150, 2)) @ np.array([[1.0, 0.5], [0.0, 30.0]])
    levels = [0.5, 0.3, 1.0]
    scenario = {
        "schema": 1, "title": "t", "seed": 9,
        "data": {"source": "inline", "values": {"a": X[:, 0].tolist(), "b": X[:, 1].tolist()}},
        "schemes": [{"name": scheme, "levels": levels}], "knowledge": [knowledge], "coalitions": ["subsets"],
        "attacks": ["llse", "ndr"],
    }  # fmt: skip
    records = cells(auditor.run(scenario), metric="distortion", attribute="*")
    release = as_audited(X, scheme, levels, 9)
    assert len(records) == 14
    for record in records:
        estimate = auditor.attack(
            record.attack, release, coalition=list(record.coalition), knowledge=knowledge
        )
        assert record.value == pytest.approx(estimate.distortion, rel=1e-11)
        assert record.theory == (
            None if estimate.theory is None else pytest.approx(estimate.theory, rel=1e-11)
        )


TABLES = {
    "correlated": np.random.default_rng(1).normal(size=(30, 2))
    @ np.array([[1.0, 0.9], [0.0, 0.3]]),
    "skewed": np.random.default_rng(2).lognormal(sigma=1.5, size=(30, 2)),
    "singular": np.outer(np.random.default_rng(3).lognormal(size=30), [1.0, -2.0]),
}
SIGMA = np.array([[0.5, 0.2], [0.2, 1.0]])


def draw_squared_errors(X, maps, law, draws, rng):
    """Brute force."""
    n, N = X.shape
    root = np.linalg.cholesky(law.level_covariance)
    values, Q = np.linalg.eigh(law.shape)
    shape_root = (Q * np.sqrt(np.clip(values, 0, None))) @ Q.T
    v = X - X.mean(axis=0)
    found = np.empty((draws, len(maps.offsets), N))
    for k in range(draws):
        Z = np.einsum("ij,jrn,nm->irm", root, rng.normal(size=(len(root), n, N)), shape_root)
        y = np.hstack([v + z for z in Z])
        errors = np.einsum("bnd,rd->brn", maps.weights, y) + maps.offsets[:, None, :] - v
        found[k] = (errors**2).mean(axis=1)
    return found


def covariance_and_error(a, b):
    products = (a - a.mean()) * (b - b.mean())
    return products.mean(), products.std() / np.sqrt(len(a))


@pytest.mark.parametrize("name", TABLES)
def test_closed_forms_agree_with_brute_force(name):
    X, rng, draws = TABLES[name], np.random.default_rng(4), 4000
    K_X, law = (
        np.cov(X.T, bias=True),
        KroneckerNoise(SIGMA, np.cov(X.T, bias=True) + 0.2 * np.eye(2)),
    )
    maps = random_maps(rng, [(1,), (1, 2)], 2, 2)
    theory = crossed(maps, maps, K_X, law, len(X))
    found = draw_squared_errors(X, maps, law, draws, rng)
    each, total = np.split(theory.variance(), [2], axis=1)
    total = 4 * total[:, 0]  # of the sum, not of the mean
    cross = crossed(maps, Maps(maps.weights[::-1], maps.offsets[::-1], True), K_X, law, len(X))
    cross_each, cross_total = spread(cross.passed, cross.lost, len(X))
    expected, measured = [], []
    for b in range(2):
        columns = [found[:, b, 0], found[:, b, 1], found[:, b].sum(axis=1)]
        others = [found[:, 1 - b, 0], found[:, 1 - b, 1], found[:, 1 - b].sum(axis=1)]
        for column, value in zip(
            columns, [*theory.expected[b], theory.expected[b].sum()], strict=True
        ):
            expected.append(value)
            measured.append((column.mean(), column.std() / np.sqrt(draws)))
        for column, value in zip(columns, [*each[b], total[b]], strict=True):
            expected.append(value)
            measured.append(covariance_and_error(column, column))
        expected.append(cross_total[b])
        measured.append(covariance_and_error(columns[2], others[2]))
        expected.append(cross_each[b][0])
        measured.append(covariance_and_error(columns[0], others[0]))
    z = [(value - truth) / error for truth, (value, error) in zip(expected, measured, strict=True)]
    assert np.abs(z).max() < 4.5


def test_error_bar_of_a_gain_agrees_with_brute_force():
    """1,500 draws: their spread is known to 1.8 %, the delta method to 1 %."""
    rng = np.random.default_rng(5)
    X = rng.lognormal(size=(400, 2))
    law = KroneckerNoise(np.diag([0.4, 0.8]), K_X := np.cov(X.T, bias=True))
    weights = np.zeros((3, 2, 4))
    weights[0][:, :2], weights[1][:, 2:] = (llse_weights(K_X, law.of([k])) for k in (1, 2))
    weights[2] = llse_weights(K_X, law)
    maps = Maps(weights, np.zeros((3, 2)), True)
    found = draw_squared_errors(X - X.mean(axis=0), maps, law, 1500, rng).mean(axis=2)
    noise = (rng.normal(size=(400, 4)) @ law.root.T).reshape(400, 2, 2).swapaxes(0, 1)
    groups = np.array_split(centred([X, *(X + noise)], X.mean(axis=0)), 4)
    errors = audit_linear([(1,), (2,), (1, 2)], maps, [Moments.of(g) for g in groups], K_X, law)
    spread_of_gains = (1 - found[:, 2] / found[:, 0]).std()
    assert errors.gain.std_error[2, -1] == pytest.approx(spread_of_gains, rel=0.09)
    # precisions 2.5 and 1.25: 1/(1 + 3.75) over 1/3.5
    assert errors.gain.theory[2, -1] == pytest.approx(1 - (1 / 4.75) * 3.5, rel=1e-9)


def audited(X, levels, scheme="linearly-dependent"):
    frame = ",".join(f"c{j}" for j in range(X.shape[1]))
    np.savetxt("table.csv", X, delimiter=",", header=frame, comments="")
    result = auditor.run({
        "schema": 1, "title": "units", "seed": 1, "data": {"source": "table.csv"}, "attacks": ["llse", "ndr"],
        "schemes": [{"name": scheme, "levels": levels, "noise": "white"}], "coalitions": ["all"],
    })  # fmt: skip
    found = result.frame().query("metric == 'normalized_error' and attribute == 'c1'")
    return found[found.coalition.map(len) == len(levels)]


@pytest.mark.parametrize("levels", [[0.25, 1.0], [0.25, 0.5, 1.0]])
@pytest.mark.parametrize("ratio", [1e3, 1e8])
def test_an_exact_rebuild_reads_as_one_whatever_the_units(tmp_path, monkeypatch, ratio, levels):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(1).normal(size=(2_000, 2)) * [ratio, 1.0]
    release = auditor.perturb(X, scheme="linearly-dependent", levels=levels, noise="white", seed=1)
    first, last = np.sqrt(levels[0]), np.sqrt(levels[-1])
    rebuilt = (last * release.copies[0] - first * release.copies[-1]) / (last - first)
    assert np.mean((rebuilt - X)[:, 1] ** 2) < 1e-15
    found = audited(X, levels)
    assert (found.value == 0).all()
    assert (found.theory == 0).all()
    assert (found.std_error <= max(1e-12, 1e3 * (np.finfo(float).eps * ratio) ** 2)).all()


def test_a_safe_attribute_is_not_taken_for_rebuilt_in_units_far_apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(3).normal(size=(500, 2)) * [1e8, 1.0]
    for scheme in ("corner-wave", "independent"):
        assert (audited(X, [0.25, 1.0], scheme).value > 0.9).all()
