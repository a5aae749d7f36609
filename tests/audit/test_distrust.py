"""Faults of a plugin do not reach other cells."""

import numpy as np
import pytest

import auditor
from auditor import registry
from auditor.adversary.attack import Affine, AffineStack, LinearAttack, Reconstruction, RowAttack
from auditor.base import AuditorError
from auditor.schemes.corner_wave import CornerWave
from auditor_attacks.llse import JointLLSE


def fair(view):
    return Affine(np.kron(view.weights, np.eye(view.width)), np.zeros(view.width))


def leave(view):
    raise SystemExit(0)


def write(array):
    array[...] = 1e9


AFFINE = {
    "writes-the-centre": lambda view: (write(view.centre), fair(view))[1],
    "writes-the-covariance": lambda view: (write(view.exact_covariance), fair(view))[1],
    "writes-the-moments": lambda view: (write(view.released.products), fair(view))[1],
    "writes-the-law": lambda view: (write(view.law.shape), fair(view))[1],
    "exits": leave,
    "complex": lambda view: Affine(fair(view).weights * 1j, fair(view).offset),
    "objects": lambda view: Affine(fair(view).weights.astype(object), fair(view).offset),
    "huge": lambda view: Affine(fair(view).weights * 1e300, fair(view).offset),
    "no-map": lambda view: (fair(view).weights, fair(view).offset),
}
ROWS = {
    "writes-the-copies": lambda copies: np.multiply(copies[0], 0.0, out=copies[0]),
    "complex-rows": lambda copies: copies[0] * 1j,
    "text-rows": lambda copies: copies[0].astype(str),
}


class Draws:
    def __init__(self, honest, break_):
        self._honest, self._break = honest, break_

    def block(self, index, x, out, existing=0):
        self._honest.block(index, x, out, existing)
        self._break(x)


SCHEMES = {
    "law-of-nothing": {"law": lambda self, levels, table: 42},
    "law-of-others": {"level_covariance": lambda self, levels: np.eye(7)},
    "draws-nothing": {"plan": lambda self, levels, existing=0: []},
    "writes-the-original": {
        "sampler": lambda self, levels, table, key, existing=0: Draws(
            CornerWave.sampler(self, levels, table, key, existing), write
        )
    },
    "leaves": {"sampler": lambda self, levels, table, key, existing=0: leave(self)},
}


def linear(name, affine):
    return type(
        "Linear",
        (LinearAttack,),
        {"name": name, "__doc__": "Breaks.", "affine": lambda self, view: affine(view)},
    )


def rowwise(name, rows):
    made = type("Made", (Reconstruction,), {"rows": lambda self, copies: rows(copies)})
    return type(
        "Rowwise",
        (RowAttack,),
        {"name": name, "__doc__": "Breaks.", "fit": lambda self, view, blocks: made()},
    )


@pytest.fixture(scope="module", autouse=True)
def _plugins():
    attacks = [linear(*each) for each in AFFINE.items()]
    attacks += [
        rowwise(*each) for each in (ROWS | {"first-copy": lambda copies: copies[0]}).items()
    ]
    schemes = [
        type("Broken", (CornerWave,), {"name": name, "__doc__": "Breaks."} | body)
        for name, body in SCHEMES.items()
    ]
    with registry.lent("attack", *attacks), registry.lent("scheme", *schemes):
        yield


SCENARIO = {
    "data": {"source": "gaussian", "covariance": [[1.0, 0.5], [0.5, 2.0]], "rows": 500},
    "schemes": [{"name": "corner-wave", "levels": [0.5, 0.25]}], "coalitions": "subsets", "seed": 3,
}  # fmt: skip


def figures(result, attack, scheme="corner-wave"):
    return [r[4:] for r in result.measurements if r.attack == attack and r.scheme == scheme]


@pytest.mark.parametrize("broken", [*AFFINE, *ROWS])
def test_a_broken_attack_fails_and_changes_nothing_for_others(broken):
    sound = ["llse", "first-copy"]
    alone = auditor.run(SCENARIO | {"attacks": sound})
    for attacks in ([broken, *sound], [*sound, broken]):
        result = auditor.run(SCENARIO | {"attacks": attacks})
        assert result.exit_status == 3
        assert {r.status for r in result.measurements if r.attack == broken} == {"failed"}
        for attack in sound:
            assert figures(result, attack) == figures(alone, attack)


@pytest.mark.parametrize("broken", SCHEMES)
def test_a_broken_scheme_fails_and_the_others_are_finished(broken):
    alone = auditor.run(SCENARIO | {"attacks": ["llse"]})
    result = auditor.run(
        SCENARIO
        | {
            "attacks": ["llse"],
            "schemes": [{"name": broken, "levels": [0.5, 0.25]}, *SCENARIO["schemes"]],
        }
    )
    assert result.exit_status == 3
    assert {r.status for r in result.measurements if r.scheme == broken} == {"failed"}
    assert figures(result, "llse") == figures(alone, "llse")


def test_an_attack_cannot_write_to_the_copies_of_a_release():
    X = np.random.default_rng(0).normal(size=(50, 2))
    release = auditor.perturb(X, "corner-wave", [0.5], seed=1)
    before = release.copies[0].copy()
    with pytest.raises(AuditorError, match=r"ValueError at test_distrust\.py"):
        auditor.attack("writes-the-copies", release)
    np.testing.assert_array_equal(release.copies[0], before)


TWO_COPIES = {
    "data": {"source": "gaussian", "covariance": [[1.0]], "rows": 50},
    "schemes": [{"name": "correlated", "levels": [0.5, 1.0]}],
    "attacks": ["llse"],
}


def test_a_plugin_that_returns_too_few_maps_is_told_so(monkeypatch):
    whole = JointLLSE.affine_batch
    monkeypatch.setattr(JointLLSE, "affine_batch", lambda *given: whole(*given)[:1])
    failed = {m.reason for m in auditor.run(TWO_COPIES).measurements if m.status == "failed"}
    assert failed == {"the attack returned 1 maps for 3 coalitions"}


def test_weights_on_copies_of_others_are_refused(monkeypatch):
    def greedy(self, view, coalitions):
        pooled, count = self.affine(view).weights, len(coalitions)
        return AffineStack(np.array([pooled] * count), np.zeros((count, 1)), True, [(0,)] * count)

    monkeypatch.setattr(JointLLSE, "affine_batch", greedy)
    alone = auditor.run(TWO_COPIES | {"coalitions": [[1]]}).measurements
    assert {m.reason for m in alone if m.status == "failed"} == {
        "the attack weighs copies that the coalition does not hold"
    }
    assert not [m for m in alone if m.attack == "llse" and m.value is not None]
