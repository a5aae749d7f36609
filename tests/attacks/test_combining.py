"""Attacks that see the copies' best combination alone are fitted once to all coalitions that have it in common: their figures stay the same."""

from __future__ import annotations

import pytest

import auditor
from auditor.adversary.attack import RowAttack
from auditor.registry import discover, get, names

SCENARIO = {
    "schema": 1, "title": "t", "seed": 1, "data": {"source": "components", "shapes": ["bimodal", "normal"], "rows": 120},
    "schemes": [{"name": "corner-wave", "levels": [0.3, 0.5, 0.4]}, {"name": "independent", "levels": [0.5, 0.3]},
                {"name": "independent", "id": "bounded", "levels": [0.3, 0.5], "distribution": "uniform"}],
    "knowledge": ["perfect", {"known-sample": 50}], "coalitions": ["subsets"], "expect": [], "replicates": 5,
}  # fmt: skip


TREE = {"model": {"target": "x2", "predictors": ["x1"], "depth": 1, "rows": 100}}


def combining() -> list[type[RowAttack]]:
    """Attacks that say so of themselves."""
    discover()
    return [
        cls
        for cls in (get("attack", name) for name in names("attack"))
        if issubclass(cls, RowAttack) and cls.combines
    ]


def test_several_say_so():
    assert {
        "mixture-estimate",
        "map-estimate",
        "serial-filter",
        "distribution-analysis",
        "sample-estimate",
    } <= {a.name for a in combining()}


@pytest.mark.slow
@pytest.mark.parametrize("cls", combining(), ids=lambda cls: cls.name)
def test_figures_are_those_of_every_coalition_fitted_by_itself(cls, monkeypatch):
    fits, fit, used = [], cls.fit, {"name": cls.name, **cls.trial}
    monkeypatch.setattr(
        cls, "fit", lambda self, view, blocks: fits.append(view.copies) or fit(self, view, blocks)
    )
    scenario = {
        **SCENARIO,
        "attacks": [used],
        "knowledge": [TREE] if cls.knowledge == ("model",) else SCENARIO["knowledge"],
    }
    together = auditor.run(scenario)
    few = len(fits)
    monkeypatch.setattr(cls, "combines", False)
    alone = auditor.run(scenario)
    assert together.measurements == alone.measurements
    assert few < len(fits) - few  # of corner-wave's seven coalitions three are fitted
