"""Last digits of published copies."""

import math

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.audit.law_tests.digits import last_digits_test
from auditor.schemes.base.noise_law import KroneckerNoise

ORIGINALS = {
    "whole": lambda rng, n: rng.poisson(3.0, n).astype(float), "income": lambda rng, n: np.exp(8.0 + rng.normal(size=n)),
    "normal": lambda rng, n: rng.normal(size=n), "constant but for one": lambda rng, n: np.r_[np.full(n - 1, 5.0), 9.0],
}  # fmt: skip
NOISE = {
    "laplace": lambda rng, std, n: rng.laplace(0.0, std / math.sqrt(2.0), n), "gaussian": lambda rng, std, n: rng.normal(0.0, std, n),
    "uniform": lambda rng, std, n: rng.uniform(-math.sqrt(3.0) * std, math.sqrt(3.0) * std, n),
}  # fmt: skip


def p_value(x, y, distribution="gaussian", std=1.0):
    law = KroneckerNoise(np.eye(1), np.eye(1) * std**2, distribution=distribution)
    found = last_digits_test(law, x[:, None], y[:, None, None], ["x"], [1])
    return None if found is None else found.p


@pytest.mark.parametrize("kind", ["whole", "income", "normal"])
@pytest.mark.parametrize("distribution", list(NOISE))
def test_noise_straight_from_numpy_is_found(kind, distribution):
    rng = np.random.default_rng(1)
    x = ORIGINALS[kind](rng, 1_000)
    std = 2.0 * x.std()
    assert p_value(x, x + NOISE[distribution](rng, std, len(x)), distribution, std) < 1e-9


def smooth(y, rng):
    return y * (1.0 + rng.integers(-(2**20), 2**20, len(y)) * 2.0**-52)


HONEST = {
    "smooth": smooth, "decimals": lambda y, rng: np.round(y, 3), "single": lambda y, rng: y.astype(np.float32).astype(float),
    "a grid": lambda y, rng: np.round(y * 2.0**14) / 2.0**14, "fifteen digits": lambda y, rng: np.array([float(f"{v:.15g}") for v in y]),
    "cut off": lambda y, rng: np.clip(smooth(y, rng), 0.0, 4.0), "cut off elsewhere": lambda y, rng: np.clip(smooth(y, rng), 2.0, 1e4),
    "the original": lambda y, rng: np.rint(y),
}  # fmt: skip


@pytest.mark.parametrize("write", list(HONEST))
@pytest.mark.parametrize("distribution", list(NOISE))
def test_honest_values_are_not_accused(write, distribution):
    rng = np.random.default_rng(2)
    for kind in ORIGINALS:
        for std in (0.1, 1.0, 30.0):
            for _ in range(3):
                x = ORIGINALS[kind](rng, 300)
                found = p_value(
                    x,
                    HONEST[write](x + NOISE[distribution](rng, std, len(x)), rng),
                    distribution,
                    std,
                )
                assert found is None or found > 1e-4, (kind, std)


@pytest.mark.parametrize(("make", "status"), [(lambda X: X + np.random.default_rng(3).laplace(0.0, 10.0, X.shape), "fails"),
                                              (lambda X: auditor.perturb(X, "laplace", [1.0], noise={"variance": 200.0}).copies[0], "holds")])  # fmt: skip
@pytest.mark.slow_after_first
def test_an_audit_of_files_shows_it_without_being_asked(tmp_path, make, status):
    X = pd.DataFrame({"rooms": np.random.default_rng(1).integers(1, 9, 2_000).astype(float)})
    X.to_csv(tmp_path / "table.csv", index=False)
    make(X).to_csv(tmp_path / "copy.csv", index=False)
    use = {
        "name": "published",
        "copies": [str(tmp_path / "copy.csv")],
        "aligned": True,
        "levels": [1.0],
        "law": {"scheme": "laplace", "noise": {"variance": 200.0}},
    }
    result = auditor.run({
        "data": {"source": str(tmp_path / "table.csv")}, "schemes": [use], "coalitions": ["all"], "attacks": ["llse"],
        "expect": [{"noise-follows-law": {"resolution": 0.5, "last-digits": asked}} for asked in (True, False)],
    })  # fmt: skip
    assert [record.status for record in result.expectations] == [status, "holds"]
    assert ("last digits of published" in result.expectations[0].why) == (status == "fails")
