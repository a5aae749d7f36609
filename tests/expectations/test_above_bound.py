"""The expectation `above-bound`."""

import numpy as np
import pytest

import auditor
from auditor.expectations.theory import AboveBound
from auditor.plugin import AdditiveScheme, Affine, LinearAttack, Step
from auditor.registry import lent
from auditor.results.records import Evidence, ReleaseEvidence
from tests.audited import record

ROWS = 5000  # √(2/n) is 2 %


def floor(value, **changes):
    release = {"metric": "error_floor", "attack": None, "knowledge": None, "error_bar": "none"}
    return record(value, None, **(release | changes))


def judged(*records, **parameters):
    expectation = AboveBound(AboveBound.Parameters(**parameters))
    return expectation.judge(
        Evidence(records, [ReleaseEvidence({}, "s", "corner-wave", 2, 1, ROWS)])
    )


@pytest.mark.parametrize(
    ("value", "error", "status"),
    [
        (0.60, 0.01, "holds"),
        (0.50, 0.0, "holds"),  # met exactly, as by the best linear attack on normal records
        (0.49, 0.0, "holds"),  # one standard error of the table's own luck, √(2/5000)·½ = 0.01
        (0.45, 0.0, "fails"),  # five standard errors
        (0.45, 0.05, "holds"),  # ± 0.1 is a fifth of the bound, and within it
        (0.45, 0.2, "undecided"),  # ± 0.4 is too wide
        (1.20, 0.2, "holds"),  # but far above the bound
    ],
)
def test_an_error_beside_what_no_attack_can_leave(value, error, status):
    assert judged(record(value, error), floor(0.5)).status == status


def test_who_knows_attributes_sees_more_than_copies_and_is_not_judged_by_what_they_leave():
    found = judged(record(0.1, 0.0, knowledge="known-attributes(x)"), floor(0.5))
    assert found.why == "no selected cell has a bound"


@pytest.mark.parametrize(
    ("low", "high", "status"),
    [(0.4, 0.6, "holds"), (0.5, 0.5, "holds"), (0.501, 0.6, "fails"), (0.4, 0.499, "fails")],
)
def test_a_theorem_on_one_attack_is_held_to_rounding_whatever_the_error_bar(low, high, status):
    own = {"attack": "llse", "knowledge": "perfect"}
    bounds = [floor(low, **own), floor(high, metric="error_ceiling", **own)]
    assert judged(record(0.5, 0.2), *bounds).status == status
    # another attack is not covered
    assert judged(record(0.5, 0.2, attack="other"), *bounds).status == "undecided"


class Stated(AdditiveScheme):
    """Fresh white noise of the requested levels, as stated."""

    name = "stated"
    quiet = 1.0
    mirrored = False

    def level_covariance(self, levels):
        return np.diag(np.asarray(levels, dtype=float))

    def plan(self, levels, existing=0):
        return [
            Step(copy, ((0, 1.0),), ((1 if self.mirrored else copy, (-1.0) ** copy * float(np.sqrt(self.quiet * level))),))
            for copy, level in enumerate(levels, start=1) if copy > existing
        ]  # fmt: skip


def verdict(scheme, attack=None, **more):
    scenario = {
        "seed": 9, "data": {"source": "gaussian", "rows": 2000, "covariance": [[4.0, 1.0], [1.0, 1.0]]},
        "schemes": [{"name": scheme.name, "levels": [0.5, 0.6]}], "measures": ["error-bounds"], "coalitions": ["singles", "all"],
        "attacks": ["llse" if attack is None else attack.name, "svd-filter"], "expect": ["above-bound"],
    }  # fmt: skip
    with lent("scheme", scheme), lent("attack", *([attack] if attack else [])):
        return auditor.run(scenario | more).expectations[0]


def test_copies_that_are_what_they_are_said_to_be_are_acquitted():
    assert verdict(Stated).status == "holds"


@pytest.mark.parametrize("leak", [{"quiet": 0.8}, {"mirrored": True}])
def test_less_noise_than_stated_and_noise_that_cancels_are_found(leak):
    found = verdict(type("Leaky", (Stated,), {"__doc__": Stated.__doc__, **leak}))
    assert found.status == "fails"
    assert "mirrored" not in leak or "copies 1, 2" in found.why, found.why


class Boasting(LinearAttack):
    """The copy as it is, with a theorem that it cannot keep."""

    name = "boasting"

    def affine(self, view):
        """Return the first copy."""
        return Affine(np.eye(view.width, view.width * len(view.copies)), np.zeros(view.width))

    def error_bounds(self, view, joint):
        """Return a promise of no error at all."""
        return 0.0, 1e-6


def test_a_theorem_that_is_none_is_found():
    found = verdict(Stated, Boasting)
    assert found.status == "fails"
    assert "a theorem says at most" in found.why


def test_where_nothing_is_known_it_is_undecided_and_it_asks_for_its_measure():
    assert verdict(Stated, data={"source": "iris"}, attacks=["llse"]).status == "undecided"
    with pytest.raises(auditor.ScenarioError, match="error-bounds"):
        verdict(Stated, measures=[])
