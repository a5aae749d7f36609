import pytest

import auditor
from auditor import registry


@pytest.fixture(scope="module")
def bounded():
    return auditor.run({
        "seed": 4, "data": {"source": "gaussian", "rows": 400, "covariance": [[4.0, 0.0], [0.0, 4.0]], "exact": True},
        "schemes": [{"name": "independent", "id": "a<b>", "levels": [1.0, 3.0], "noise": {"variance": 4.0}}, {"name": "rotation"}],
        "knowledge": ["perfect", {"known-attributes": ["x1"]}], "coalitions": ["singles", "all"],
        "attacks": ["llse", "spectral-filter", "partial-disclosure"], "measures": ["error-bounds"],
    })  # fmt: skip


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_every_report_says_so(bounded, quickstart, form):
    renderer = registry.get("renderer", form)()
    said = " ".join(renderer.render([bounded]).split()).replace("\u00a0", " ")
    assert (
        "Proved: from copies alone, no attack leaves less of the variance unknown on average than 42.9 %"
        in said
    )
    assert "42.9 % from both copies" in said
    assert "error_ceiling" in said.replace("\\", "")  # by a theorem on one attack
    assert form != "html" or "a<b>" not in said.replace("<bdi>", "")
    assert "Proved:" not in renderer.render([quickstart])
