"""A public grid for audits, and Laplace noise on it: the process is rounded and stays lossless; copies rounded one by one do not."""

from __future__ import annotations

import numpy as np
import pytest

import auditor
from auditor.data.microdata import as_table
from auditor.errors import ScenarioError
from auditor.registry import get
from auditor.scenario.read import read_scenario
from auditor.schemes.base.noise_density import NoiseDensity
from auditor.schemes.base.scheme import Key, table_moments
from auditor.schemes.draw import released_grid

WHOLE = np.random.default_rng(1).integers(0, 9, (4_000, 2)).astype(float)
LEVELS = (2.0, 0.5, 1.0)


def drawn(scheme, X, key, existing=0, out=None):
    copies = [np.empty_like(X) for _ in LEVELS] if out is None else out
    get("scheme", scheme)().sampler(LEVELS, table_moments(as_table(WHOLE)), key, existing).block(
        0, X, copies, existing
    )
    return copies


# -- Laplace noise on a grid


@pytest.mark.parametrize("kind", ["laplace", "laplace-multilevel"])
@pytest.mark.parametrize("existing", [0, 2])
def test_laplace_noise_on_a_grid_of_whole_numbers_is_geometric_noise(kind, existing):
    """The last copy is drawn between two that are out: a bridge, and exact as well."""
    grid = Key(3, "one name", grid=(1.0, 1.0))
    out = [WHOLE + 4.0, WHOLE - 2.0, np.empty_like(WHOLE)] if existing else None
    coarse = drawn(
        kind, WHOLE, grid, existing, None if out is None else [copy.copy() for copy in out]
    )
    whole = drawn(kind.replace("laplace", "geometric"), WHOLE, grid, existing, out)
    np.testing.assert_array_equal(coarse, whole)


def test_on_a_grid_it_keeps_its_law_and_a_noisier_copy_needs_no_original():
    X = WHOLE + np.pi
    grid = released_grid(get("scheme", "laplace-multilevel")(), as_table(X), LEVELS)
    copies = drawn("laplace-multilevel", X, Key(3, "l", grid=grid))
    for level, copy in zip(LEVELS, copies, strict=True):
        assert not ((copy / grid) % 1).any()
        z = (copy - X) / np.sqrt(level * WHOLE.var(axis=0))
        # of Laplace noise the square has variance 5: five standard errors of 8,000 values
        assert (z**2).mean() == pytest.approx(1.0, abs=5 * np.sqrt(5 / z.size))
        law = NoiseDensity("laplace", 1.0)
        # Kolmogorov, 1e-5
        assert np.abs(
            np.sort(law.cdf(z.ravel())) - (np.arange(z.size) + 0.5) / z.size
        ).max() < 2.5 / np.sqrt(z.size)
    # at rest from 1 to 2
    assert (copies[2] == copies[0]).mean() == pytest.approx(0.5, abs=5 * np.sqrt(0.25 / z.size))
    again = [np.empty_like(X), copies[1].copy(), np.empty_like(X)]
    get("scheme", "laplace-multilevel")().sampler(
        (0.5, 2.0, 1.0), table_moments(as_table(WHOLE)), Key(4, "l", grid=grid), 1
    ).block(0, np.full_like(X, np.nan), [copies[1], again[0], again[2]], 1)
    assert np.isfinite(again[0]).all()


def gain(step, *, of_the_process, fine=16, levels=(0.25, 1.0)):
    """``1 − E Var(X | Y_1, Y_2)/E Var(X | Y_1)`` of a yes/no value of variance ¼, by enumeration of two-sided geometric noise.

    ``fine`` steps make a unit. Copies are rounded to ``step`` units one by one, or original and
    increments each are."""
    cell = round(step * fine)
    unit = cell if of_the_process else 1  # of the noise, in fine steps
    v = [NoiseDensity("geometric", np.sqrt(level / 4) * fine / unit) for level in levels]
    reach = np.arange(-(14 * fine) // unit, (14 * fine) // unit + 1)
    start, fresh = v[0].pdf(reach), v[1].pdf(reach)
    joint = []
    for x in (0.0, 1.0):
        y_1 = np.rint(x * fine / unit) + reach
        there = y_1[:, None] + reach  # Y_2 of fresh noise; else it is Y_1
        places = [
            np.rint(y * unit / cell).astype(int)
            for y in (np.broadcast_to(y_1[:, None], there.shape), there)
        ]
        rest = levels[0] / levels[1]
        size = int(60 / step) + 8
        J = np.zeros((size, size))
        np.add.at(
            J, (places[0] + size // 2, places[1] + size // 2), (1 - rest) * start[:, None] * fresh
        )
        np.add.at(J, (places[0][:, 0] + size // 2, places[0][:, 0] + size // 2), rest * start)
        joint.append(J / 2)
    both = joint[0] * joint[1] / np.where(joint[0] + joint[1] > 0, joint[0] + joint[1], 1.0)
    alone = [J.sum(axis=1) for J in joint]
    one = alone[0] * alone[1] / np.where(alone[0] + alone[1] > 0, alone[0] + alone[1], 1.0)
    return 1.0 - both.sum() / one.sum()


@pytest.mark.parametrize(("step", "least"), [(2.0, 0.1), (0.5, 0.01)])
def test_copies_rounded_one_by_one_break_theorem_4_and_a_rounded_process_keeps_it(step, least):
    assert gain(step, of_the_process=False) > least
    assert abs(gain(step, of_the_process=True)) < 1e-12


# -- in audits


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
