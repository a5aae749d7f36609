"""Release of whole numbers and on public grids."""

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.base import AuditorError, ScenarioError
from auditor.registry import get
from auditor.runs.perturb import as_table
from auditor.scenario.read import read_scenario
from auditor.schemes.base.scheme import Key, table_moments

MULTILEVEL, SCHEMES = (
    ("geometric-multilevel", "skellam-multilevel"),
    ("geometric-multilevel", "skellam-multilevel", "geometric", "skellam"),
)


def people(rows=3000, seed=1):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, rows)
    return pd.DataFrame({
        "age": age, "hours": np.round(rng.normal(38, 6, rows), 1), "income": 1000 * np.rint(np.exp(rng.normal(3.5, 0.8, rows))),
        "children": rng.poisson(0.3, rows),
    })  # fmt: skip


@pytest.mark.parametrize("scheme", SCHEMES)
def test_copies_are_on_the_original_s_lattice_with_the_stated_covariance(scheme):
    X = people()
    release = auditor.perturb(X, scheme, [1.0, 0.25, 4.0], seed=3).extend([0.5, 2.0], seed=4)
    for copy in release.copies:
        assert list(copy.dtypes.astype(str)) == ["int64", "float64", "float64", "int64"]
        assert (copy["hours"] == copy["hours"].round(1)).all()
        assert (copy["income"] % 1000 == 0).all()
    Z = np.hstack([copy.to_numpy() - X.to_numpy() for copy in release.copies])
    drawn, stated = Z.T @ Z / len(X), release.noise_covariance()
    own = np.diag(stated)
    kurtosis = np.maximum(release.law.excess_kurtosis, 0.0).max() + 3.0
    assert (np.abs(drawn - stated) < 5.5 * np.sqrt(kurtosis * np.outer(own, own) / len(X))).all()


@pytest.mark.parametrize(
    ("columns", "parameters", "said"),
    [
        ({"age": [1.0, 2.0, 4.0], "pay": [1.5, np.pi, 2.0]}, {}, r"column 'pay' is not recorded .* round the column"),
        ({"age": [1.0, 2.0, 4.0]}, {"unit": 2.0}, r"column 'age' is recorded in steps of 1, .* no whole multiple of its unit, 2"),
        ({"age": [1.0, 2.0, 4.0]}, {"unit": 0.3}, r"column 'age' is recorded in steps of 1, .* unit that divides it"),
        ({"age": [1.0, 2.0, 4.0]}, {"unit": {"agee": 1.0}}, r"there is no column 'agee'.*'age'"),
        ({"age": [1.0, 2.0, 4.0]}, {"unit": 1e-20}, r"column 'age': .* beyond 2\^50 units"),
        ({"age": [1.0, 2.0, 4.0]}, {"unit": 0.0}, r"unit"),
    ],
)  # fmt: skip
def test_what_lies_on_no_lattice_is_refused_by_name(columns, parameters, said):
    for scheme in ("geometric-multilevel", "skellam"):
        with pytest.raises(AuditorError, match=said):
            auditor.perturb(pd.DataFrame(columns), scheme, [1.0], **parameters)


def test_sums_beyond_exact_numbers_are_refused():
    with pytest.raises(
        AuditorError, match=r"column 'x1': values and noise at these levels go beyond 2\^50 units"
    ):
        auditor.perturb(np.arange(10.0), "skellam-multilevel", [1.0, 1e16])
    assert np.isfinite(
        auditor.perturb(np.arange(10.0), "skellam-multilevel", [1e14]).copies[0]
    ).all()


def test_released_values_carry_no_last_bits_of_the_original():
    X = np.cumsum(np.full(200, 0.1))
    assert (X != np.round(X, 1)).any()
    copy = auditor.perturb(X, "geometric-multilevel", [0.5]).copies[0]
    assert (copy == np.round(copy, 1)).all()


WHOLE = np.random.default_rng(1).integers(0, 9, (4_000, 2)).astype(float)
LEVELS = (2.0, 0.5, 1.0)


def drawn(scheme, X, key, existing=0, out=None):
    copies = [np.empty_like(X) for _ in LEVELS] if out is None else out
    get("scheme", scheme)().sampler(LEVELS, table_moments(as_table(WHOLE)), key, existing).block(
        0, X, copies, existing
    )
    return copies


@pytest.mark.parametrize("kind", ["laplace", "laplace-multilevel"])
@pytest.mark.parametrize("existing", [0, 2])
def test_laplace_noise_on_a_grid_of_whole_numbers_is_geometric_noise(kind, existing):
    grid = Key(3, "one name", grid=(1.0, 1.0))
    out = [WHOLE + 4.0, WHOLE - 2.0, np.empty_like(WHOLE)] if existing else None
    coarse = drawn(
        kind, WHOLE, grid, existing, None if out is None else [copy.copy() for copy in out]
    )
    whole = drawn(kind.replace("laplace", "geometric"), WHOLE, grid, existing, out)
    np.testing.assert_array_equal(coarse, whole)


def scenario(**scheme):
    return {"data": {"source": "inline", "values": {"a": WHOLE[:300, 0].tolist(), "b": WHOLE[:300, 1].tolist()}},
            "schemes": [{"levels": list(LEVELS)} | scheme], "coalitions": ["all"], "attacks": ["ndr"]}  # fmt: skip


@pytest.mark.parametrize(("name", "value", "told"), [("corner-wave", 1, "must be true or false; got 1"),
                                                     ("rotation", True, "must be left out: rotation draws no noise onto a grid")])  # fmt: skip
def test_a_grid_that_cannot_be_is_refused(name, value, told):
    with pytest.raises(ScenarioError, match=told):
        read_scenario(scenario(name=name, **{"public-grid": value}))


def test_noise_that_the_grid_cannot_hold_is_refused_before_anything_runs():
    far = scenario(name="corner-wave", **{"public-grid": True}) | {
        "data": {"source": "inline", "values": {"a": [1e9, 1e9 + 1, 1e9 + 2]}}
    }
    far["schemes"][0]["levels"] = [1e-12]
    with pytest.raises(
        ScenarioError, match="its noise is lost in the last digits of 64-bit numbers"
    ):
        auditor.run(far)
