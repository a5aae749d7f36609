"""Bounds and theory: entropy, error floor and rows."""

from functools import lru_cache

import numpy as np
import pytest

import auditor
from auditor.audit.attempts import linear as attempts, opened
from auditor.audit.measures.entropy import entropy_power, least_errors
from auditor.data.source import RecordLaw
from auditor.data.sources.gaussian import SHAPES, Intervals
from auditor.numerics.blocks import row_blocks
from auditor.schemes.base.noise_density import NoiseDensity
from auditor.schemes.base.noise_law import DenseNoise, KroneckerNoise


def fresh(levels, distribution="gaussian", K_0=None):
    return KroneckerNoise(
        np.diag(levels), np.eye(1) if K_0 is None else K_0, distribution=distribution
    )


def least(shape, law):
    """Of an attribute of variance 1, from all copies."""
    copies = tuple(range(1, law.copies + 1))
    return float(
        least_errors(RecordLaw({"x": SHAPES[shape]}), ["x"], np.eye(1), law, [copies])[0, 0]
    )


def test_a_normal_s_entropy_power_is_its_variance_and_of_any_other_law_less():
    assert entropy_power(0.5 * np.log(2 * np.pi * np.e * 7.0)) == pytest.approx(7.0, rel=1e-12)
    # uniform on a width of 3, variance 0.75
    assert entropy_power(np.log(3.0)) == pytest.approx(9.0 / (2 * np.pi * np.e), rel=1e-12)
    loud = [1e4]
    by_hand = {  # e^{2h}/2πe of variance 1: h = ½ ln 12, 1, 1 + ½ ln 2
        "uniform": 12 / (2 * np.pi * np.e), "exponential": np.e**2 / (2 * np.pi * np.e), "laplace": 2 * np.e**2 / (2 * np.pi * np.e),
    }  # fmt: skip
    for shape, power in by_hand.items():
        assert least(shape, fresh(loud)) == pytest.approx(power, rel=3e-4)


def test_the_survey_s_example_by_hand():
    """[0, 1] or [5, 6] under noise on [−1, 1]."""
    noise = fresh([1.0], "uniform", np.array([[1 / 3]]))
    law, variance = Intervals(Intervals.Parameters()).law(), 1 / 12 + 6.25
    found = float(least_errors(law, ["x"], np.array([[variance]]), noise, [(1,)])[0, 0])
    assert found == pytest.approx(np.exp(-0.5) / (2 * np.pi * np.e), rel=5e-4)
    assert 1.7 < (1 / 16) / found < 1.8


def naive_llse(K_X, K_Z):
    H = np.tile(np.eye(len(K_X)), (len(K_Z) // len(K_X), 1))
    return np.diag(K_X - K_X @ H.T @ np.linalg.inv(H @ K_X @ H.T + K_Z) @ H @ K_X)


def test_of_normal_records_and_noise_it_is_the_best_linear_error():
    rng = np.random.default_rng(3)
    A, B, C = rng.standard_normal((3, 3, 3))
    K_X, levels = A @ A.T + np.eye(3), np.array([0.2, 1.0, 3.0])
    Sigma = np.minimum.outer(levels, levels)
    G = rng.standard_normal((9, 9))
    for law in (
        KroneckerNoise(np.diag(levels), B @ B.T), KroneckerNoise(Sigma, K_X, follows_data=True), KroneckerNoise(Sigma, C @ C.T),
        DenseNoise(G @ G.T + np.eye(9), 3),
    ):  # fmt: skip
        coalitions = [(1,), (3,), (1, 3), (1, 2, 3)]
        found = least_errors(RecordLaw(), ["a", "b", "c"], K_X, law, coalitions)
        for row, coalition in zip(found, coalitions, strict=True):
            np.testing.assert_allclose(
                row, naive_llse(K_X, law.of(coalition).covariance), rtol=1e-9
            )


@pytest.mark.parametrize("level", [1e-6, 1.0, 1e3])
def test_the_integral_has_the_closed_form_of_a_normal(level):
    assert least("normal", fresh([level])) == pytest.approx(level / (1 + level), rel=1e-6)
    assert least("normal", fresh([2 * level, 2 * level])) == pytest.approx(
        level / (1 + level), rel=1e-6
    )


def naive(shape, distribution, levels, seed):
    rng, draws = np.random.default_rng(seed), 2000
    law = SHAPES[shape]
    edges = np.linspace(law.low, law.high, 1501)
    mass = np.diff(law.cdf(edges))
    mass, middles, width = mass / mass.sum(), (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
    place = rng.choice(len(mass), draws, p=mass)
    x = edges[place] + width * rng.random(draws)
    likelihood, own = np.ones((draws, len(mass))), np.log(mass[place] / width)
    for level in levels:
        density = NoiseDensity(distribution, float(np.sqrt(level)))
        unit = {"gaussian": rng.standard_normal, "uniform": lambda n: rng.uniform(-np.sqrt(3), np.sqrt(3), n), "laplace":
                lambda n: rng.laplace(scale=np.sqrt(0.5), size=n)}[distribution](draws)  # fmt: skip
        y = x + density.std * unit
        likelihood *= density.pdf(y[:, None] - middles)
        own += density.log_pdf(y - x)
    whole = likelihood @ mass
    entropies = np.log(whole) - own
    errors = (x - (likelihood @ (mass * middles)) / whole) ** 2
    return tuple(
        float(part)
        for each in (entropies, errors)
        for part in (each.mean(), each.std() / np.sqrt(draws))
    )  # type: ignore[return-value]


CASES = [
    ("exponential", "laplace"), ("bimodal", "laplace"), ("laplace", "uniform"),
    ("gamma", "gaussian"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "distribution"), CASES)
def test_one_copy_leaves_the_naive_integral_s_entropy(shape, distribution):
    for level in (0.2, 1.0):
        nats, error, best, spread = naive(shape, distribution, [level], seed=7)
        found = least(shape, fresh([level], distribution))
        assert abs(0.5 * np.log(2 * np.pi * np.e * found) - nats) < 4.5 * error + 0.003
        assert found - 4.5 * spread < best < 3.0 * found, (shape, distribution, level)


def test_without_noise_nothing_is_left():
    assert least("uniform", fresh([0.0], "laplace")) == 0.0
    # linearly dependent copies
    assert least("uniform", KroneckerNoise(np.array([[1.0, 2.0], [2.0, 4.0]]), np.eye(1))) == 0.0
    assert (least_errors(RecordLaw(), ["x"], np.eye(1), fresh([0.0]), [(1,)]) == 0.0).all()


NORMAL = {
    "seed": 8, "data": {"source": "gaussian", "rows": 1500, "spectrum": {"large": 9.0, "count": 1, "small": 0.5, "attributes": 3}, "mean": 5.0},
    "schemes": [{"name": name, "levels": [0.1, 0.5, 1.0]} for name in
                ("corner-wave", "independent", "laplace", "laplace-multilevel", "linearly-dependent")],
    "coalitions": ["singles", "prefixes"], "attacks": ["llse", "udr"], "measures": ["error-bounds"],
    "sweep": {"data.spectrum.large": [0.6, 9.0], "schemes[1].levels": [[0.1, 0.5, 1.0], [2.0, 5.0, 9.0]]},
}  # fmt: skip
SHAPED = NORMAL | {
    "data": {"source": "components", "rows": 600, "shapes": ["exponential", "uniform", "bimodal"]},
    "schemes": NORMAL["schemes"][:4],
    "attacks": ["llse", {"name": "udr", "prior": "reconstructed"}],
    "sweep": {"schemes[1].levels": [[0.1, 0.5, 1.0], [2.0, 5.0, 9.0]]},
    "coalitions": [[1], [1, 2]],
}


@lru_cache(maxsize=2)
def cells(kind):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attempts, "REDRAWS", 2)  # error bars of learnt figures are not tested
        patch.setattr(opened, "ROW_REDRAWS", 2)
        found = auditor.run({"normal": NORMAL, "shaped": SHAPED}[kind]).measurements
    floors = {key(r): r.value for r in found if r.metric == "error_floor" and r.attack is None}
    errors = [r for r in found if r.metric == "normalized_error"]
    assert errors
    assert {key(r) for r in errors} == set(floors)
    return [(r, floors[key(r)] or 0.0) for r in errors]


def key(record):
    return (str(record.sweep), record.scheme, record.coalition, record.attribute)


def test_no_cell_of_a_sweep_is_below_its_bound_by_more_than_chance():
    """Levels × spectrum × copies, by attribute and together."""
    assert len(cells("normal")) == 4 * 5 * 2 * 5 * 4
    for record, floor in cells("normal"):
        assert record.value is not None
        assert record.value > floor * (1 - 5 * np.sqrt(2 / 1500)) - 1e-9, record


def test_of_records_that_are_not_normal_every_cell_is_above_without_allowance():
    assert len(cells("shaped")) == 2 * 4 * 2 * 2 * 4
    assert all(
        record.value is not None and record.value > floor for record, floor in cells("shaped")
    )


def test_for_normal_records_and_noise_the_best_linear_attack_meets_it_exactly():
    met = 0
    for record, floor in cells("normal"):
        if record.attack == "llse" and not record.scheme.startswith("laplace"):
            assert record.theory == pytest.approx(floor, rel=1e-7, abs=1e-7)
            met += 1
        elif record.theory is not None:
            assert record.theory >= floor * (1 - 1e-7) - 1e-9
    assert met == 4 * 3 * 5 * 4


def floors(data, **more):
    scenario = {
        "seed": 2, "data": data, "schemes": [{"name": "corner-wave", "levels": [0.5]}],
        "attacks": ["ndr"], "measures": ["error-bounds"],
    }  # fmt: skip
    return [r for r in auditor.run(scenario | more).measurements if r.metric == "error_floor"]


GAUSSIAN = {"source": "gaussian", "rows": 200, "covariance": [[4.0, 1.0], [1.0, 2.0]]}


def absent(found, why):
    return [(r.status, r.value) for r in found] == [("not-applicable", None)] and why in str(
        found[0].reason
    )


def test_of_records_whose_law_nobody_declares_there_is_none(tmp_path):
    rows = np.random.default_rng(1).normal(size=(50, 2))
    np.savetxt(tmp_path / "t.csv", rows, delimiter=",", header="a,b", comments="")
    why = "nobody declares the law"
    assert absent(
        floors(str(tmp_path / "t.csv")), why
    )  # normal by chance, which no source declares
    assert absent(floors({"source": "inline", "values": {"a": rows[:, 0].tolist()}}), why)
    assert absent(floors({"source": "iris"}), why)
    # a record depends on its neighbours
    assert absent(floors({"source": "autoregressive", "rows": 100}), why)
    assert absent(floors(GAUSSIAN | {"order": "x1"}), why)  # ranks depend on the ranked column
    mixed = {
        "source": "components", "rows": 100, "shapes": ["normal", "uniform"],
        "mixing": [[1, 1], [1, -1]],
    }  # fmt: skip
    assert absent(floors(mixed), why)


def test_of_noise_whose_law_is_not_known_record_by_record_there_is_none():
    assert absent(floors(GAUSSIAN, schemes=[{"name": "rotation"}]), "law of the noise")
    serial = [{"name": "corner-wave", "levels": [0.5], "serial": [0.5]}]
    assert absent(floors(GAUSSIAN, schemes=serial), "from record to record")


SCENARIO = {
    "schema": 1, "seed": 3,
    "data": {"source": "components", "shapes": ["exponential", "uniform", "laplace"], "rows": 3000, "mean": 2, "ratio": 1.2},
    "schemes": ["rotation", {"name": "random-projection", "dimensions": 4}],
    "knowledge": [{"known-records": 30}, {"known-sample": 800}, {"unmatched-records": 800}],
    # so that error bars need no redraws
    "coalitions": ["all"], "attacks": ["ica", {"id": "guo-wu", "name": "ica", "components": "latent"}], "replicates": 5,
}  # fmt: skip


def test_the_original_is_shown_after_every_estimate_has_been_made(monkeypatch):
    from auditor_attacks import ica

    calls = []
    rows, row_theory = ica.Unmixed.rows, ica.Unmixed.row_theory
    monkeypatch.setattr(
        ica.Unmixed, "rows", lambda self, copies: calls.append("rows") or rows(self, copies)
    )
    monkeypatch.setattr(
        ica.Unmixed,
        "row_theory",
        lambda self, seen: calls.append("row_theory") or row_theory(self, seen),
    )
    document = SCENARIO | {"data": SCENARIO["data"] | {"rows": 200_000}, "attacks": ["ica"], "knowledge": [{"known-records": 30}],
                           "schemes": ["rotation"], "replicates": 1}  # fmt: skip
    auditor.run(document)
    assert calls[: calls.index("row_theory")].count("rows") == len(row_blocks(200_000, 3))
