"""Laplace noise on public grids."""

import numpy as np
import pytest

import auditor
from auditor.base.errors import ScenarioError
from auditor.data.microdata import as_table
from auditor.registry import get
from auditor.scenario.read import read_scenario
from auditor.schemes.base.scheme import Key, table_moments

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
